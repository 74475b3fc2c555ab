"""The parts of `windage try` and `windage agents`: settings, labels, the bar, what agents say."""

import json
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import windage as wd
from windage.agents import RandomAgent, registry
from windage.cli import main, show
from windage.cli.terminal import parse_settings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2", -2),
        ("0.25", 0.25),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("[0, 1]", [0, 1]),
        ('{"kind": "laplace", "scale": 0.3}', {"kind": "laplace", "scale": 0.3}),
        ("laplace", "laplace"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_settings_are_read_as_they_look(text, value):
    found = parse_settings([f"name={text}"], "--set")
    assert found == {"name": value}
    assert type(found["name"]) is type(value)


@pytest.mark.parametrize("settings", [["window"], ["=3"], ["a=1", "a=2"]])
def test_settings_that_set_nothing_are_refused(settings):
    with pytest.raises(wd.InputError) as caught:
        parse_settings(settings, "--env-set")
    assert caught.value.field == "--env-set"
    assert caught.value.fix


def test_labels_say_what_made_the_numbers():
    learner = SimpleNamespace(
        radii=SimpleNamespace(label="laplace x0.3"), ties="random", slack=0.0, window=2558,
        widening=0.31923,
    )  # fmt: skip
    assert show._labels(learner) == {
        "radii": "laplace x0.3", "ties": "random", "window": "2,558", "widening": "0.3192"
    }  # fmt: skip
    each = SimpleNamespace(slack=0.25, widening=np.array([0.5, 0.125]))
    assert show._labels(each) == {"slack": "0.25", "widening": "0.125 to 0.5"}
    assert show._labels(object()) == {}


class Shown:
    def __init__(self):
        self.shown = []

    def count(self, what, done, total, *, steps):
        self.shown.append((what, done, total, steps))


def test_the_bar_moves_and_the_first_block_is_not_timed(monkeypatch):
    clock = iter([100.0, 108.0, 109.0, 110.0])
    monkeypatch.setattr(show.time, "perf_counter", lambda: next(clock))
    progress = Shown()
    pace = show._Pace(progress)
    for done in (250, 500, 1000):
        pace(done, 1000)
    assert pace.speed() == "375"  # 750 steps in the two seconds after the first block
    assert progress.shown == [("playing", done, 1000, True) for done in (250, 500, 1000)]


def test_one_block_is_timed_with_a_remark(monkeypatch):
    clock = iter([100.0, 104.0])
    monkeypatch.setattr(show.time, "perf_counter", lambda: next(clock))
    pace = show._Pace(Shown())
    pace(1000, 1000)
    assert pace.speed() == "250 (with the time to load)"


def test_episodes_are_counted_by_how_they_ended():
    class Some(SimpleNamespace):
        def __len__(self):
            return len(self.reason)

    some = Some(reason=np.array(["visits", "open", "visits"]), total=3)
    assert show._episodes(some) == "3 (visits 2, open 1)"
    last = Some(reason=np.array(["boundary", "visits", "visits"]), total=12_345)
    assert show._episodes(last) == "12,345 (of the last 3: visits 2, boundary 1)"


class Sworn(RandomAgent):
    """Swears that drift does no harm.

    And says more of it here.
    """

    id: ClassVar[str] = "sworn"
    requires: ClassVar[tuple[str, ...]] = ("B_r", "D")
    covers_drift: ClassVar[bool] = True
    bound: ClassVar[str] = "half a sigh"
    source: ClassVar[str] = "hearsay"

    def __init__(self, space, *, patience, haste: float = 0.5, **options):
        super().__init__(space, **options)


@pytest.fixture
def sworn(monkeypatch):
    monkeypatch.setitem(registry._AGENTS, "sworn", f"{__name__}:Sworn")


def test_facts_come_from_the_class(sworn, capsys):
    assert main(["agents", "sworn", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry == {
        "id": "sworn",
        "summary": "Swears that drift does no harm.",
        "told": ["B_r", "D"],
        "covers_drift": True,
        "bound": "half a sigh",
        "source": "hearsay",
        "parameters": {
            "patience": "tuned to B_r and D", "haste": "0.5", "seed": "0", "reward_range": "None"
        },
    }  # fmt: skip
    assert main(["agents", "sworn"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:4] == [
        "sworn: Swears that drift does no harm.",
        "Requires: B_r, D.",
        "Regret: half a sigh (hearsay).",
        "Its guarantee covers models that drift.",
    ]
    assert [line.split() for line in out[5:9]] == [
        ["patience", "tuned", "to", "B_r", "and", "D"], ["haste", "0.5"], ["seed", "0"],
        ["reward_range", "None"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("covers", "cell", "sentence"),
    [
        (True, "yes", "Its guarantee covers models that drift."),
        (False, "no", "Its guarantee does not cover models that drift."),
        (None, "-", "No guarantee is stated."),
    ],
)
def test_whether_a_guarantee_covers_drift(sworn, monkeypatch, capsys, covers, cell, sentence):
    monkeypatch.setattr(Sworn, "covers_drift", covers)
    assert main(["agents", "sworn"]) == 0
    assert capsys.readouterr().out.splitlines()[3] == sentence
    assert main(["agents"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("sworn"))
    cells = [part.strip() for part in row.split("  ") if part.strip()]
    assert cells == ["sworn", "B_r, D", cell, "half a sigh (hearsay)"]


def test_only_agents_that_are_told_budgets_get_them(sworn, monkeypatch):
    model = wd.envs.make("two-state-cosine", horizon=100)
    seen = {}

    def make(name, space, *, horizon, budgets=None, **options):
        seen[name] = (budgets, options)
        return

    monkeypatch.setattr(wd.agents, "make", make)
    for name in ("random", "oracle", "sworn"):
        show._make(name, model, 7, {"haste": 1})
    assert seen["random"] == (None, {"seed": 7, "haste": 1})
    assert seen["oracle"] == (None, {"seed": 7, "haste": 1, "problem": model})
    budgets, options = seen["sworn"]
    assert options == {"seed": 7, "haste": 1, "diameter": model.max_diameter().upper}
    assert (budgets.reward, budgets.transition) == (
        model.budgets().reward,
        model.budgets().transition,
    )
