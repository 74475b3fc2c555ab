"""The conformance suite finds what is broken: every promise has a model that breaks it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import windage as wd
from tests.models import random_mdp
from windage import simulators
from windage.errors import InputError
from windage.models import FunctionStream
from windage.testing import check_drifting_mdp

SPACE = wd.StateActions([2, 1, 3])
MODELS = [random_mdp(SPACE, seed) for seed in range(2)]
T = 40


def drifting(t):
    return MODELS[t % 2].rewards, MODELS[t % 2].transitions


class Broken(FunctionStream):
    """A source that keeps every promise; the classes below break one each."""

    def __init__(self):
        super().__init__(SPACE, drifting)

    def model(self):
        return wd.DriftingMDP._of(T, "bernoulli", self)


class WrongRow(Broken):
    def at(self, t):
        r, p = super().at(t)
        return r, p * 0.98 if t == 11 else p


class WrongReward(Broken):
    def at(self, t):
        r, p = super().at(t)
        return (r + 1 if t == 11 else r), p


class Writable(Broken):
    """The arrays are frozen when the model is made, and thawed afterwards."""

    def __init__(self, sparse, side):
        super().__init__()
        self.sparse, self.side = sparse, side

    def model(self):
        source = self

        class Thawed(wd.DriftingMDP):
            __slots__ = ()

            def at(self, t):
                r, p = source.at(t)
                mdp = wd.MDP.trusted(SPACE, np.array(r), csr_array(p) if source.sparse else p + 0)
                array = mdp.rewards
                if source.side == "transitions":
                    array = mdp.transitions.data if source.sparse else mdp.transitions
                array.flags.writeable = True
                return mdp

        return Thawed._of(T, "bernoulli", self)


class Moody(Broken):
    """Another answer whenever it is asked again."""

    def __init__(self, side):
        super().__init__()
        self.side, self.asked = side, 0

    def at(self, t):
        r, p = super().at(t)
        self.asked += 1
        share = 1e-6 / self.asked
        if self.side == "rewards":
            return (1 - share) * r, p
        return r, (1 - share) * p + share / 3


class Remembering(Broken):
    """The answer hangs on what was asked before; asked twice in a row, it is the same."""

    def __init__(self):
        super().__init__()
        self.last = (0, 0)

    def at(self, t):
        if self.last[0] != t:
            self.last = (t, self.last[0])
        return super().at(t + (self.last[1] > t))


class WrongTotals(Broken):
    def __init__(self, side, only_long):
        super().__init__()
        self.side, self.only_long = side, only_long

    def totals(self, first, last):
        sums = list(super().totals(first, last))
        if last - first > 1 or not self.only_long:
            sums[self.side] *= 1 + 1e-6
        return tuple(sums)


class WrongSeries(Broken):
    def __init__(self, side):
        super().__init__()
        self.side = side

    def variations(self, first, last):
        series = [np.array(x) for x in super().variations(first, last)]
        series[self.side] *= 1 + 1e-6
        return tuple(series)

    def totals(self, first, last):
        r, p = super().variations(first, last)
        return float(r.sum()), float(p.sum())


class WrongHalves(Broken):
    """The total of all steps forgets one."""

    def __init__(self, side):
        super().__init__()
        self.side = side

    def totals(self, first, last):
        sums = list(super().totals(first, last))
        if (first, last) == (1, T):
            sums[self.side] -= 0.01
        return tuple(sums)


class Uncounted(Broken):
    def variations(self, first, last):
        r, p = super().variations(first, last)
        still = np.zeros_like(r)
        return (r, p) if last == first + 1 else (still, still)

    def totals(self, first, last):
        r, p = super().variations(first, last)
        return float(r.sum()), float(p.sum())


class Impossible(Broken):
    """What is played has moves that the model at t does not have."""

    def __init__(self):
        super().__init__()
        self.played = False

    def at(self, t):
        r, _ = super().at(t)
        target = np.zeros((SPACE.n_pairs, 3))
        target[np.arange(6), (SPACE.state_of + (2 if self.played else 1)) % 3] = 1
        return r, target

    def tables(self, first, last):
        self.played = True
        found = super().tables(first, last)
        self.played = False
        return found


class OtherMeans(Broken):
    def tables(self, first, last):
        found = super().tables(first, last)
        return found._replace(rewards=found.rewards * (1 - 1e-6))


class Stuck(Broken):
    def at(self, t):
        return super().at(t)[0], np.eye(3)[SPACE.state_of]


CASES = [
    (WrongRow(), r"t=11: transitions at s=0, a=0: row sums to 0\.98"),
    (WrongReward(), r"t=11: rewards at s=0, a=0: mean reward 1\.\d+ is not in \[0, 1\]"),
    (Writable(False, "rewards"), "t=1: the model can be written to"),
    (Writable(False, "transitions"), "t=1: the model can be written to"),
    (Writable(True, "transitions"), "t=1: the model can be written to"),
    (Moody("rewards"), "t=40: asked twice, the model is not the same"),
    (Moody("transitions"), "t=40: asked twice, the model is not the same"),
    (Remembering(), "asked twice, the model is not the same"),
    (WrongTotals(0, False), r"t=1: B_r,t is"),
    (WrongTotals(1, False), r"t=1: B_p,t is"),
    (WrongTotals(0, True), r"t=20..40: B_r is"),
    (WrongTotals(1, True), r"t=20..40: B_p is"),
    (WrongSeries(0), r"t=1: B_r,t of the series is"),
    (WrongSeries(1), r"t=1: B_p,t of the series is"),
    (WrongHalves(0), r"B_r of two halves is"),
    (WrongHalves(1), r"B_p of two halves is"),
    (Uncounted(), r"t=20..40: changes 20 times, not 0"),
    (Impossible(), "t=1: an impossible move was drawn"),
    (OtherMeans(), "t=1: the mean reward of a step is"),
    (Stuck(), r"does not communicate: Disconnection\(first=1, last=40"),
]


def test_a_source_that_breaks_nothing_passes():
    check_drifting_mdp(Broken().model())


@pytest.mark.parametrize(("source", "finding"), CASES, ids=lambda x: type(x).__name__)
def test_a_broken_promise_is_found(source, finding):
    with pytest.raises(AssertionError, match=finding):
        check_drifting_mdp(source.model())


class Splitting(Broken):
    """From one start the next state is drawn from another model with the same possible moves."""

    def __init__(self, start, applies=lambda steps: True):
        super().__init__()
        self.start, self.applies = start, applies
        self.shift = 1

    def at(self, t):
        rows = np.full((SPACE.n_pairs, 3), 0.001)
        rows[np.arange(SPACE.n_pairs), (SPACE.state_of + self.shift) % 3] = 0.998
        return MODELS[0].rewards, rows

    def tables(self, first, last):
        wrong = first == self.start and self.applies(last - first + 1)
        self.shift = 2 if wrong else 1
        found = super().tables(first, last)
        self.shift = 1
        return found


@pytest.mark.parametrize("start", [2, 14, 40])
def test_a_run_that_depends_on_where_it_is_split_is_found(start):
    """A run of 40 steps is cut after 1, 13 and 39; in one piece it never starts there."""
    with pytest.raises(AssertionError, match=f"split after t={start - 1} goes on differently"):
        check_drifting_mdp(Splitting(start).model())


@pytest.mark.parametrize("applies", [lambda n: n == 1, lambda n: n > 1], ids=["steps", "loops"])
def test_single_steps_and_compiled_loops_are_both_split(applies):
    """Step by step, a run goes on with one step; a compiled one with all that are left."""
    with pytest.raises(AssertionError, match="split after t=13 goes on differently"):
        check_drifting_mdp(Splitting(14, applies).model())


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_short_horizons_pass_and_still_fail(horizon):
    check_drifting_mdp(wd.DriftingMDP._of(horizon, "bernoulli", Broken()))
    with pytest.raises(AssertionError, match="asked twice"):
        check_drifting_mdp(wd.DriftingMDP._of(horizon, "bernoulli", Moody("rewards")))


def test_a_function_is_really_asked_again():
    asked = []

    def function(t):
        asked.append(t)
        return drifting(t)

    model = wd.DriftingMDP.from_function(function, space=SPACE, horizon=3)
    asked.clear()
    check_drifting_mdp(model, times=3, steps=1)
    assert asked[:6] == [1, 2, 3, 3, 2, 1]


def test_the_suite_does_not_vanish_when_asserts_do():
    code = (
        "import windage as wd\n"
        "from tests.unit.testing.test_models import WrongRow\n"
        "try:\n    wd.testing.check_drifting_mdp(WrongRow().model())\n"
        "except AssertionError as err:\n    print('found', err)\n"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("found t=11")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": MODELS[0]}, "model: MDP is not a DriftingMDP"),
        ({"times": 0}, "times: 0 is not an integer from 1 on"),
        ({"steps": 2.5}, "steps: 2.5"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {"model": Broken().model()} | arguments
    with pytest.raises(InputError, match=message):
        check_drifting_mdp(given.pop("model"), **given)


# Models with a structure


def counter():
    """A counter with a law of service for each speed, which differ, and arrivals that drift."""
    known = wd.Structure(
        wd.StateActions([2, 2, 2]),
        [
            wd.Exogenous("arrival", [0, 1]),
            wd.Exogenous("service", ["no", "yes"], lambda s, a: ("slow", "fast")[a], "involved"),
        ],
        next_state=lambda s, a, x, served: min(max(s - (served == "yes"), 0) + x, 2),
        reward=lambda s, a, x, served: x - s - 0.5 * a,
    )
    service = {"slow": [0.8, 0.2], "fast": [0.2, 0.8]}
    season = ([[0.8, 0.2], [0.3, 0.7]], wd.schedules.Linear())
    return known.drifting({"arrival": season, "service": service}, horizon=200)


def shelf(seen, T=200):
    known = wd.Structure(
        wd.StateActions([4, 3, 2, 1]),
        [wd.Exogenous("demand", range(5), seen=seen)],
        next_state=lambda s, a, d: max(s + a - d, 0),
        reward=lambda s, a, d: s + a - d if seen == "inferred" else min(s + a, d) - 0.5 * a,
    )
    return known.drifting({"demand": [0.1, 0.2, 0.3, 0.2, 0.2]}, horizon=T)


@pytest.mark.parametrize("seen", ["always", "involved", "interval", "inferred"])
@pytest.mark.parametrize("horizon", [1, 2, 200])
def test_models_with_a_structure_pass(seen, horizon):
    check_drifting_mdp(shelf(seen, horizon))
    check_drifting_mdp(counter())


def swapped(laws):
    """The laws of two labels, one for the other."""
    found = laws.copy()
    found[laws == 1], found[laws == 2] = 2, 1
    return found


PLAYED = {  # what a simulation does wrong, and what is said of it
    "the law of another label acts": (
        counter, lambda w: {"law_of": swapped(w.law_of), "drawn": swapped(w.drawn)},
        "the mean reward|not distributed by the law of service at '(slow|fast)'",
    ),
    "the law of another label is drawn": (
        counter, lambda w: {"drawn": swapped(w.drawn)},
        "not distributed by the law of service at '(slow|fast)'",
    ),
    "another pair's next state": (
        counter, lambda w: {"next_state": np.roll(w.next_state, 4)},
        r"\{'arrival': \d, 'service': '\w+'\} does not lead to|impossible move",
    ),
    "another outcome's next state": (
        lambda: shelf("always"),
        lambda w: {"next_state": w.next_state.reshape(-1, 5)[:, ::-1].ravel()},
        r"\{'demand': \d\} does not lead to",
    ),
    "another outcome's reward": (
        lambda: shelf("always"),
        lambda w: {"noise": w.noise._replace(rewards=w.noise.rewards[::-1].copy())},
        "does not lead to reward|the mean reward of a step",
    ),
    "what is seen is not shown": (
        lambda: shelf("always"), lambda w: {"exact": np.array([False])}, "demand is not shown",
    ),
    "what is inferred is shown": (
        lambda: shelf("inferred"), lambda w: {"exact": np.array([True])},
        r"\['demand'\] should not be shown",
    ),
    "sales shown as demand": (
        lambda: shelf("interval"), lambda w: {"exact": np.array([True])},
        r"demand is shown as \d, \(\d, 4\) are possible",
    ),
    "an interval that is too wide": (
        lambda: shelf("interval"), lambda w: {"spans": np.zeros_like(w.spans) + np.int32([0, 4])},
        r"demand is shown as \(0, 4\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", PLAYED)
def test_a_simulation_that_is_not_that_of_the_structure_is_found(bug, monkeypatch):
    make, change, finding = PLAYED[bug]
    exogenous = simulators._exogenous

    def wrong(*args):
        world = exogenous(*args)
        return world._replace(**change(world))

    monkeypatch.setattr(simulators, "_exogenous", wrong)
    with pytest.raises(AssertionError, match=finding):
        check_drifting_mdp(make())


def other_rows(model):
    """Land and label swapped: rows follow from the law of another label."""
    push = model.structure.push_forward
    entries = push.entries[1]
    entries[:] = np.where(entries < 4, entries + 2, entries - 2)
    return model.structure.drifting(model.laws(1), horizon=200)


def other_means(model):
    push = model.structure.push_forward
    push.above[:] = push.above[::-1].copy()
    return model.structure.drifting(model.laws(1), horizon=200)


def other_group(model):
    variable = model.structure.variables[1]
    variable.__dict__["group"] = lambda s, a: ("fast", "slow")[a]
    return model


def other_budget(model):
    model._laws.__dict__["total"] = lambda first, last: 0.1
    return model


def forgetful_budget(model):
    """The total of all steps forgets one."""
    total = model._laws.total
    model._laws.__dict__["total"] = lambda first, last: (
        total(first, last) - 0.01 * (last - first == 199)
    )
    return model


@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        (other_rows, "t=1: at s=1, a=0 the row does not follow from the laws"),
        (other_means, "the mean reward does not follow from the laws|the mean reward of a step"),
        (other_group, "service: group at s=0, a=0 answers 'fast' now"),
        (other_budget, "t=1: B_q,t is"),
        (forgetful_budget, "B_q of two halves is"),
    ],
)
def test_a_model_that_does_not_follow_from_its_laws_is_found(wrong, finding):
    with pytest.raises(AssertionError, match=finding):
        check_drifting_mdp(wrong(counter()))
