"""Parameters picked on seeds of their own: what is picked, what is shown, what is refused."""

from __future__ import annotations

import warnings

import pytest

import windage as wd
from tests.unit.study.test_runner import study
from windage.errors import InputError, StateError
from windage.report.page import make_report
from windage.study.store import Store

WINDOWS = [20, 80, 320]
WORLDS = [{"id": "riverswim"}, {"id": "two-state-cosine"}]
REST = [{"id": "random"}, {"id": "sw-psrl", "label": "as set", "window": 80}]
OVER = {"over": "window", "seeds": 3}
OWN = "tests.unit.study.own"


def tuned(agents=(), **options):
    table = {"id": "sw-psrl", "window": WINDOWS}
    return wd.Study(WORLDS, [table, *REST, *agents], seeds=2, **({"tune": OVER} | options))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning") / "results"
    return folder, tuned(horizon=[300, 500]).run(folder, workers=1)


def test_the_best_on_tuning_seeds_is_shown_on_fresh_ones(results):
    """Witness: every candidate run by hand on the tuning seeds, and the best one on the others."""
    folder, done = results
    shown = wd.load_results(folder)
    assert done.tuning.runs == 2 * 2 * 3 * 3
    for name in ("riverswim", "two-state-cosine"):
        for T in (300, 500):
            model = wd.envs.make(name, horizon=T)

            def regret(window, seed):
                agent = wd.agents.make("sw-psrl", model.space, horizon=T, window=window, seed=seed)  # noqa: B023
                return wd.dynamic_regret(wd.run(model, agent, seed), model).total  # noqa: B023

            means = {w: sum(regret(w, seed) for seed in (2, 3, 4)) for w in WINDOWS}
            best = min(means, key=means.get)
            here = shown.filter(environment=name, horizon=T, agent="sw-psrl")
            assert here["window"].to_list() == [best, best]
            assert here["seed"].to_list() == [0, 1]
            by_hand = [regret(best, seed) for seed in (0, 1)]
            assert here["regret"].to_list() == pytest.approx(by_hand, abs=1e-9)
    assert shown["agent"].unique(maintain_order=True).to_list() == ["sw-psrl", "random", "as set"]


def test_what_was_tuned_is_written_down_and_kept_apart(results):
    folder, done = results
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json", "runs", "oracles", "timings.jsonl", ".lock", "tuning"
    }  # fmt: skip
    manifest = Store(folder).manifest()
    assert {(run.agent, run.tuned) for run in manifest.runs} == {
        ("sw-psrl", "window, on 3 seeds from 2 to 4"), ("random", ""), ("as set", "")
    }  # fmt: skip
    assert {run.seed for run in manifest.runs} == {0, 1}
    first = wd.load_results(folder / "tuning")
    assert set(first["seed"]) == {2, 3, 4}
    assert set(first["agent"]) == {f"sw-psrl, window {w}" for w in WINDOWS}
    assert done.tuning.folder == folder / "tuning"
    report = make_report(folder)
    assert report.page.setup_words[-1].endswith(
        "on seeds that are not shown: sw-psrl: window, on 3 seeds from 2 to 4."
    )
    assert not any("best of" in said for said in report.page.remarks)
    assert any("best of 3 settings" in said for said in make_report(folder / "tuning").page.remarks)
    asked = tuned(horizon=[300, 500])
    again = asked.run(folder, workers=1)
    assert (again.made, again.tuning.made, again.hash) == (0, 0, done.hash)
    before, after = asked.preview(), asked.preview(folder)
    assert (before.tuning.runs, before.tuning.done, before.runs, before.done) == (36, 0, 24, 0)
    assert (after.done, after.runs, after.steps) == (done.runs, done.runs, 0)
    assert repr(asked).endswith("24 runs, after 36 tuning runs)")


def test_other_sweeps_stay_sweeps(tmp_path):
    table = {"id": "sw-ucrl", "window": [50, 200], "delta": [0.05, 0.3]}
    asked = wd.Study(WORLDS[:1], [table], horizon=200, seeds=1, tune=OVER | {"seeds": [7, 5]})
    done = asked.run(tmp_path / "results", workers=1)
    shown = wd.load_results(tmp_path / "results")
    assert shown["agent"].to_list() == ["sw-ucrl, delta 0.05", "sw-ucrl, delta 0.3"]
    assert shown["delta"].to_list() == [0.05, 0.3]
    assert done.tuning.runs == 8
    manifest = Store(tmp_path / "results").manifest()
    assert manifest.runs[0].tuned == "window, on 2 seeds from 5 to 7"


def test_a_study_that_names_its_comparisons_has_another_hash(tmp_path):
    agents = [{"id": "random"}, {"id": "ucrl2"}]
    hashes = set()
    for k, plan in enumerate(({}, {"baseline": "ucrl2"}, {"compare": [("random", "ucrl2")]})):
        asked = wd.Study(WORLDS[:1], agents, horizon=50, seeds=1, **plan)
        folder = tmp_path / f"{k}"
        asked.run(folder, workers=1)
        hashes.add(Store(folder).manifest().hash)
    assert len(hashes) == 3
    with pytest.warns(wd.ParameterWarning, match="planned comparisons changed after there were"):
        wd.Study(WORLDS[:1], agents, horizon=50, seeds=1).run(folder, workers=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wd.Study(WORLDS[:1], agents, horizon=50, seeds=1).run(folder, workers=1)


def test_a_setting_that_failed_is_not_picked_and_without_any_nothing_goes_on(tmp_path):
    some = {"id": f"{OWN}:Plain", "fails_at": [3, 0]}
    asked = study(some, {"id": "random"}, seeds=2, tune={"over": "fails_at", "seeds": 2})
    done = asked.run(tmp_path / "some", workers=1)
    assert len(done.tuning.failures) == 2
    assert done.failures == ()
    chosen = wd.load_results(tmp_path / "some").filter(agent=f"{OWN}:Plain")
    assert chosen["variant"].to_list() == ["fails_at 0", "fails_at 0"]
    none = {"id": f"{OWN}:Plain", "fails_at": 3, "action": [0, 1]}
    with pytest.raises(StateError, match=r"agents\[0\]: none of its 2 settings has a run on ever"):
        study(none, seeds=2, tune={"over": ["action"], "seeds": 2}).run(tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tune": {"over": "widow", "seeds": 2}},
         r"tune.over: no agent has several values of 'widow'. Fix: one of: window"),
        ({"tune": {"over": "window", "seeds": [4, 1]}},
         r"tune.seeds\[1\]: 1 is a seed of the study too"),
        ({"tune": {"over": "window", "seeds": 0}}, "tune.seeds: 0 seeds"),
        ({"tune": {"over": "window", "seeds": []}}, "tune.seeds: an empty list"),
        ({"tune": {"over": "window", "seeds": [3, 3]}}, r"tune.seeds\[1\]: 3 is there twice"),
        ({"tune": {"over": "window"}}, "tune.seeds: is missing"),
        ({"tune": {"over": "window", "seed": 3}}, "tune.seed: no such key; did you mean seeds?"),
        ({"tune": {"over": 3, "seeds": 3}}, "tune.over: 3 is of the wrong type"),
        ({"tune": 3}, "tune: 3 is no table"),
        ({"baseline": "sw-psrl, window 20"}, "baseline: no such choice: 'sw-psrl, window 20'"),
        ({"baseline": 3}, "baseline: 3 is of the wrong type. Fix: write a label in quotes"),
        ({"compare": [("random", "as sett")]}, r"compare\[0\]\[1\]: .* did you mean 'as set'"),
        ({"compare": ["random"]}, "compare"),
        ({"compare": [("oracle", "random")]}, r"compare\[0\]\[0\]: no such choice: 'oracle'"),
        ({"baseline": "random", "compare": [("random", "as set")]}, "baseline: stands beside"),
    ],
)  # fmt: skip
def test_refused(options, why):
    with pytest.raises(InputError, match=why):
        tuned(horizon=50, agents=[{"id": "oracle"}], **options)


def test_a_file_says_the_same(tmp_path):
    text = """
    name = "tuned"
    horizon = 50
    seeds = 2
    baseline = "random"
    tune = { over = ["window"], seeds = 3 }
    [[environments]]
    id = "riverswim"
    [[agents]]
    id = "sw-psrl"
    window = [20, 80]
    [[agents]]
    id = "random"
    """
    (tmp_path / "study.toml").write_text(text)
    asked = wd.Study.load(tmp_path / "study.toml")
    assert asked.spec.tuning.seeds == (2, 3, 4)
    assert [entry.label for entry in asked.spec.tuning.agents] == [
        "sw-psrl, window 20", "sw-psrl, window 80"
    ]  # fmt: skip
    assert asked.spec.plan.baseline == "random"
    (tmp_path / "study.toml").write_text(text.replace('baseline = "random"', 'baseline = "rnd"'))
    with pytest.raises(InputError, match=r"study.toml: baseline: no such choice: 'rnd'"):
        wd.Study.load(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text(text + 'tune = "window"\n')
    with pytest.raises(InputError, match=r"agents\[1\].tune: is given by the study itself"):
        wd.Study.load(tmp_path / "study.toml")
