"""What a study comes to, before it runs."""

from __future__ import annotations

import pytest

import windage as wd


@pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")
@pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning")
def test_a_run_that_two_labels_share_is_counted_once(tmp_path):
    """At T = 200 the numbers by hand are those without budgets, at T = 2,000 they are not."""
    space = wd.envs.make("riverswim", horizon=200).space
    same = wd.SWUCRL2CW.oblivious(space, horizon=200)
    by_hand = {"label": "by hand", "window": same.window, "widening": same.widening}
    study = wd.Study(
        [{"id": "riverswim"}],
        [
            {"id": "swucrl2-cw", "window": "oblivious", "widening": "oblivious"},
            {"id": "swucrl2-cw", **by_hand},
        ],
        horizon=[200, 2_000],
        seeds=2,
    )
    found = study.preview(tmp_path / "results")
    assert [one.seeds for one in found.places] == [2, 2, 2, 2]
    assert (found.runs, found.there, found.steps) == (6, 0, 2 * 200 + 4 * 2_000)
    assert not (tmp_path / "results").exists()
    assert study.run(tmp_path / "results").runs == found.runs
    again = study.preview(tmp_path / "results")
    assert (again.runs, again.there, again.steps) == (6, 6, 0)
    assert [one.there for one in again.places] == [2, 2, 2, 2]
