"""Expansion of a study: warnings of agents, objects that are no environments, the dry run."""

from __future__ import annotations

import warnings

import pytest

import windage as wd
from windage.errors import InputError

OWN = "tests.unit.study.own"


def heard_of(study, folder):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        study.run(folder)
    return [str(one.message) for one in heard]


def test_what_an_agent_warns_of_is_said_once(tmp_path):
    radii = {"kind": "paper", "scale": 0.1}
    study = wd.Study([{"id": "riverswim"}], [{"id": "swucrl2-cw", "radii": radii}], horizon=200)
    assert heard_of(study, tmp_path / "r") == [
        "swucrl2-cw on riverswim, T = 200: paper x0.1 radii do not cover the truth as the theorem "
        "needs"
    ]


def test_it_is_said_once_though_its_numbers_change_with_the_horizon(tmp_path):
    study = wd.Study([{"id": "riverswim"}], [{"id": "borl"}], horizon=[200, 300, 400], seeds=2)
    said = heard_of(study, tmp_path / "r")
    assert len(said) >= 1
    assert all(one.startswith("borl on riverswim, T = 200: ") for one in said)
    assert len({one.partition(" = ")[0] for one in said}) == len(said)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": "long"}, r"environments[0].horizon: 'long' (str) is not an integer"),
        ({"horizon": 0}, r"environments[0].horizon: 0 is not"),
        ({"pairs": "few"}, r"environments[0]: makes a Odd whose space is 'few'. Fix: give it wd.S"),
    ],
)
def test_a_world_that_is_none_is_blamed_and_not_the_agent(options, message, tmp_path):
    study = wd.Study([{"id": f"{OWN}:Odd", **options}], [{"id": "random"}])
    with pytest.raises(InputError) as caught:
        study.run(tmp_path / "results")
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "results").exists()


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
    assert (found.runs, found.done, found.steps) == (6, 0, 2 * 200 + 4 * 2_000)
    assert not (tmp_path / "results").exists()
    assert study.run(tmp_path / "results").runs == found.runs
    again = study.preview(tmp_path / "results")
    assert (again.runs, again.done, again.steps) == (6, 6, 0)
    assert [one.done for one in again.places] == [2, 2, 2, 2]
    with pytest.warns(DeprecationWarning, match="`there` is called `done`"):
        assert (again.there, again.places[0].there) == (6, 2)
