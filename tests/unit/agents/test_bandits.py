"""Bandits: tuning, the contract, bytes, forgetting."""

from __future__ import annotations

import math
import re
import warnings
from functools import partial

import numpy as np
import pytest

import windage as wd
from tests.unit.agents.bandit_worlds import KINDS, SPACE, TOLD, small
from windage.agents import BOB, DUCB, EXP3S, REXP3, SWUCB, UCB1
from windage.testing import check_agent

# what they say with several states has a test of its own in test_bandits.py
pytestmark = pytest.mark.filterwarnings("ignore:.* is a bandit:windage.errors.GuaranteeWarning")

# --- tuning --------------------------------------------------------------------------------------


class Known:
    reward, transition, changes = 2.0, 0.0, 5


def test_what_they_are_tuned_to():
    T, space = 10_000, wd.StateActions([3, 1])
    made = {kind: kind.configured(space, horizon=T, budgets=Known()) for kind in KINDS}
    assert made[SWUCB].window == round(2 * math.sqrt(T * math.log(T) / 5))
    assert made[DUCB].discount == pytest.approx(1 - math.sqrt(5 / T) / 4, rel=1e-15)
    assert made[REXP3].batch.tolist() == [math.ceil((3 * math.log(3) * (T / 2) ** 2) ** (1 / 3)), 1]
    assert made[EXP3S].changes == 5
    told = {kind: kind.requires for kind in KINDS}
    assert told == {
        UCB1: (), SWUCB: ("l",), DUCB: ("l",), REXP3: ("B_r",), EXP3S: ("l",), BOB: (),
    }  # fmt: skip


def test_a_fact_is_told_or_asked_for_but_never_made_up():
    T, space = 10_000, wd.StateActions([3])
    for kind, name, value in (
        (SWUCB, "window", round(2 * math.sqrt(T * math.log(T)))),
        (DUCB, "discount", 1 - 1 / 400),
        (EXP3S, "changes", 1),
        (REXP3, "batch", [math.ceil((3 * math.log(3)) ** (1 / 3) * T ** (2 / 3))]),
    ):
        fact, ((told, _),) = kind.tunes[1], TOLD[kind].items()
        assert fact == told
        for make in (kind, kind.configured, partial(wd.agents.make, kind.id)):
            with pytest.raises(wd.InputError, match=f"^{name}: is tuned to the {fact} of") as error:
                make(space, horizon=T)
            assert {f"{name}=", f"{fact}="} <= set(re.findall(r"\w+=", error.value.fix))
            agent = make(space, horizon=T, **TOLD[kind])
            assert np.array_equal(getattr(agent, name), value), kind
        assert kind.from_state(agent.state()).state() == agent.state()
        given = kind.configured(space, horizon=T, budgets=Known(), **{name: value})
        assert np.array_equal(getattr(given, name), value)  # what is given is taken
        tuned = kind.configured(space, horizon=T, budgets=Known(), **{name: "tuned"})
        assert not np.array_equal(getattr(tuned, name), value)
        with pytest.raises(wd.InputError, match=f"{name}: is tuned to the {fact} of the model"):
            kind.configured(space, horizon=T, **{name: "tuned"})
        if name != fact:
            given = kind.configured(space, horizon=T, **{name: "tuned"}, **TOLD[kind])
            assert np.array_equal(getattr(given, name), value)
        with pytest.raises(wd.InputError, match=f"{name}: "):
            kind.configured(space, horizon=T, **{name: "oblivious"})


@pytest.mark.parametrize("kind", KINDS)
def test_with_several_states_the_bound_says_nothing(kind):
    """Once an agent, also for BOB, which makes a SW-UCB for every block; one state: no word."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        kind(wd.StateActions([3]), horizon=300, **TOLD.get(kind, {}))
        assert not heard
        agent = kind(SPACE, horizon=300, **TOLD.get(kind, {}))
        wd.run(small(300, "bernoulli"), agent, seed=1)
        kind.from_state(agent.state())
    (said,) = (one for one in heard if "is a bandit" in str(one.message))
    assert issubclass(said.category, wd.GuaranteeWarning)
    assert f"{kind.id} is a bandit: with 3 states it plays one in each" in str(said.message)


def test_a_model_that_does_not_change_is_not_forgotten():
    T, space = 500, wd.StateActions([3, 2])
    still = wd.DriftingMDP.stationary(
        wd.MDP(space, [0.1, 0.5, 0.9, 0.2, 0.4], np.full((5, 2), 0.5)), horizon=T
    )
    made = {kind: kind.configured(space, horizon=T, budgets=still.budgets()) for kind in KINDS}
    assert made[SWUCB].window == T
    assert made[SWUCB]._table.ring_pair.size == 0
    assert made[DUCB].discount == 1.0
    assert made[REXP3].batch.tolist() == [T, T]
    assert made[EXP3S].changes == 0
    with pytest.warns(wd.GuaranteeWarning, match="3 arms and 1 rounds"):
        assert REXP3(space, horizon=T, variation=1e9).batch.tolist() == [1, 1]


def test_budgets_that_do_not_tell_the_changes():
    class Two:
        reward, transition = 1.0, 1.0

    with pytest.raises(wd.InputError, match="changes: .* does not tell it"):
        SWUCB.configured(SPACE, horizon=100, budgets=Two())


# --- the contract --------------------------------------------------------------------------------


def quietly(kind):
    def make(space, horizon, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wd.GuaranteeWarning)
            return kind.configured(space, horizon=horizon, seed=seed, budgets=Known())

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_they_keep_the_contract(kind):
    check_agent(quietly(kind), horizon=400)

    def make(space, horizon, seed):
        return kind(space, horizon=horizon, seed=seed, **TOLD.get(kind, {}))

    check_agent(make, horizon=200, problem=wd.envs.make("bandit", horizon=200, shape="breaks"))
    one = wd.StateActions([1])
    still = wd.DriftingMDP.stationary(wd.MDP(one, [0.5], [[1.0]]), horizon=50)
    check_agent(make, horizon=50, problem=still)


@pytest.mark.parametrize("kind", KINDS)
def test_split_anywhere_the_bytes_are_the_same(kind):
    T = 1500
    model, make = small(T), quietly(kind)
    whole = make(SPACE, T, 5)
    run = wd.run(model, whole, seed=2)
    for cuts in ([1], [37, 38, 700], [250, 1499]):
        agent, parts = make(SPACE, T, 5), []
        for steps in np.diff([0, *cuts, T]).tolist():
            agent = type(agent).from_state(agent.state())
            parts.append(wd.run(model, agent, seed=2, steps=steps))
        assert np.concatenate([part.actions for part in parts]).tolist() == run.actions.tolist()
        assert agent.state() == whole.state()
    live, s = make(SPACE, T, 5), 0
    for t in range(T):
        a = live.act(s)
        assert a == run.actions[t]
        live.observe(s, a, run.rewards[t], int(run.states[t + 1]))
        s = int(run.states[t + 1])
    assert live.state() == whole.state()


def test_seeds_name_the_draws():
    T = 300
    model = small(T)
    for kind in (REXP3, EXP3S, BOB):
        made = [kind(SPACE, horizon=T, seed=i, **TOLD.get(kind, {})) for i in (1, 1, 2)]
        paths = [wd.run(model, agent, seed=1).actions for agent in made]
        assert (paths[0] == paths[1]).all()
        assert (paths[0] != paths[2]).any()


def test_a_window_bounds_the_memory():
    T, space = 4000, wd.StateActions([2])
    model = wd.envs.make("bandit", horizon=T)
    agent = SWUCB(space, horizon=T, window=50)
    assert agent._table.ring_pair.shape == (1, 50)
    sizes = []
    for _ in range(4):
        wd.run(model, agent, seed=1, steps=1000)
        sizes.append(len(agent.state()))
    assert max(sizes) - min(sizes) < 16
    assert agent._table.visits.sum() == 50


# --- forgetting ----------------------------------------------------------------------------------

T_BREAKS = 20_000
LATE = slice(4 * T_BREAKS // 10, T_BREAKS // 2)  # the second half of the third arm's moment
AFTER = slice(3 * T_BREAKS // 4, T_BREAKS)


def shares(make):
    """How often the third arm is played late in its great moment, and long after it."""
    model = wd.envs.make("bandit", horizon=T_BREAKS, shape="breaks")
    late, after, regret = [], [], []
    for seed in range(5):
        run = wd.run(model, make(model.space, seed), seed=seed)
        late.append((run.actions[LATE] == 2).mean())
        after.append((run.actions[AFTER] == 2).mean())
        regret.append(wd.dynamic_regret(run, model).total)
    return np.mean(late), np.mean(after), np.mean(regret)


@pytest.mark.parametrize(
    ("kind", "told", "blind"),
    [
        (EXP3S, {"changes": 2}, {"variation": 0.0}),  # that is REXP3: EXP3.S always shares
        (REXP3, {"variation": 1.0}, {"variation": 0.0}),
        (SWUCB, {"changes": 2}, {"changes": 0}),
        (DUCB, {"changes": 2}, {"changes": 0}),
    ],
)
def test_forgetting_follows_the_breaks(kind, told, blind):
    """Five fixed seeds; the same learner that forgets nothing does not pass."""
    found = {}
    for name, options in (("told", told), ("blind", blind)):
        made = REXP3 if "variation" in options else kind
        found[name] = shares(
            lambda space, seed: made(space, horizon=T_BREAKS, seed=seed, **options)  # noqa: B023
        )
    print(kind.id, found)
    came_back = {name: late - after for name, (late, after, _) in found.items()}
    assert came_back["told"] > 0.4
    assert came_back["blind"] < 0.3
    if kind is not DUCB:  # which pays more for its wide bounds than it gains here
        assert found["told"][2] < found["blind"][2]
