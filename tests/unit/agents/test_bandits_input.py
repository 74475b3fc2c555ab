"""Bandits and what they cannot use: options, rewards, saved values; and Ctrl-C."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import windage as wd
from tests.unit.agents.bandit_worlds import KINDS, SPACE, quiet, small
from windage.agents import BOB, DUCB, EXP3S, REXP3, SWUCB, UCB1

# what they say with several states has a test of its own in test_bandits.py
pytestmark = pytest.mark.filterwarnings("ignore:.* is a bandit:windage.errors.GuaranteeWarning")


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (UCB1, {"exploration": -1}, "exploration: -1"),
        (UCB1, {"exploration": math.nan}, "exploration: nan"),
        (UCB1, {"reward_range": (1, 0)}, "reward_range"),
        (SWUCB, {"window": 0}, "window: 0"),
        (SWUCB, {"window": 2.5}, "window: 2.5"),
        (SWUCB, {"changes": -1}, "changes: -1"),
        (SWUCB, {"changes": 1.0}, "changes: 1.0"),
        (DUCB, {"discount": 0.0}, "discount: 0.0"),
        (DUCB, {"discount": 1.1}, "discount: 1.1"),
        (REXP3, {"batch": 0}, "batch: 0"),
        (REXP3, {"batch": [1, 2]}, "batch: has 2 numbers for 3 states"),
        (REXP3, {"batch": [1, 2, 2.5]}, "batch: 2.5"),
        (REXP3, {"variation": -1.0}, "variation: -1.0"),
        (REXP3, {"variation": math.inf}, "variation: inf"),
        (EXP3S, {"changes": True}, "changes: True"),
        (BOB, {"exploration": "much"}, "exploration: 'much'"),
    ],
)
def test_impossible_bandits(kind, options, message):
    with pytest.raises(wd.InputError, match=message):
        kind(SPACE, horizon=100, **options)


def test_impossible_spaces_and_horizons():
    for kind in KINDS:
        with pytest.raises(wd.ModelError, match="space"):
            kind(3, horizon=100)
        with pytest.raises(wd.InputError, match="^horizon"):
            kind(SPACE, horizon=0)
        assert wd.run(small(1), quiet(kind, 1, None), seed=1).steps == 1
    huge = wd.StateActions.uniform(1000, 1)
    with pytest.raises(wd.ModelError, match="window: would need about"):
        SWUCB(huge, horizon=10**12, window=10**11)


def test_a_mixing_above_one_is_said_once():
    with pytest.warns(wd.GuaranteeWarning, match=r"exp3-s: gamma = .* 3 arms and 100 rounds"):
        agent = EXP3S(SPACE, horizon=100, changes=50)
    with pytest.warns(wd.GuaranteeWarning, match=r"rexp3: gamma = .* 3 arms and 1 rounds"):
        REXP3(SPACE, horizon=100, batch=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = EXP3S.from_state(agent.state())
        wd.run(small(100, "bernoulli"), again, seed=1)
    assert again.probabilities == pytest.approx([1 / 3] * 3 + [1.0] + [0.5] * 2)


def test_rewards_outside_the_unit_interval_are_clipped_and_it_is_said():
    agent, twin = (EXP3S(SPACE, horizon=100, seed=1, changes=1) for _ in range(2))
    for t, reward in enumerate((1.0, 7.0, -3.0, 0.5)):
        a = agent.act(0)
        assert twin.act(0) == a
        twin.observe(0, a, min(1.0, max(0.0, reward)), 0)
        if t == 1:
            with pytest.warns(wd.ParameterWarning, match=r"exp3-s: a reward outside \[0, 1\] was"):
                agent.observe(0, a, reward, 0)
        else:
            agent.observe(0, a, reward, 0)
    assert (agent.probabilities == twin.probabilities).all()
    again = EXP3S.from_state(agent.state())
    again.observe(0, again.act(0), 9.0, 0)  # it has warned already


@pytest.mark.parametrize("kind", KINDS)
def test_a_reward_outside_the_declared_range_stops_a_run_where_it_is(kind):
    T = 2000
    model = small(T, wd.Noise.gaussian(0.3))
    agent, twin = (quiet(kind, T, (-0.25, 1.25)) for _ in range(2))
    with pytest.raises(wd.InputError, match=r"reward at t=\d+: .* not in the declared range"):
        wd.run(model, agent, seed=1)
    assert 1 < agent.t < T
    wd.run(model, twin, seed=1, steps=agent.t - 1)
    if kind is not BOB:  # a relay does not keep what an interrupted block has earned
        assert agent.state() == twin.state()
    assert kind.from_state(agent.state()).t == agent.t


class Stop(BaseException):
    pass


@pytest.mark.parametrize("kind", [UCB1, SWUCB, DUCB, REXP3, EXP3S])
def test_an_interrupt_between_learning_and_clock_is_made_good(kind, monkeypatch):
    T = 12_000
    model = small(T)
    whole, agent = quiet(kind, T, None), quiet(kind, T, None)
    wd.run(model, whole, seed=1, record="totals")
    real = kind.play

    def cut_short(self, world, state, block):
        after = real(self, world, state, block)
        if self.t > 4_000:
            raise Stop
        return after

    with monkeypatch.context() as patch:
        patch.setattr(wd.simulate, "_BLOCK", 1 << 12)
        patch.setattr(kind, "play", cut_short)
        with pytest.raises(Stop):
            wd.run(model, agent, seed=1, record="totals")
    assert 4_000 < agent.t < T
    wd.run(model, agent, seed=1, record="totals")
    assert agent.state() == whole.state()


@pytest.mark.parametrize("kind", KINDS)
def test_impossible_saved_values_are_refused(kind):
    from windage.agents.state import Blob, pack, unpack

    T = 300
    agent = quiet(kind, T, None)
    wd.run(small(T), agent, seed=1, steps=200)
    blob = unpack(agent.state())
    for name, array in blob.arrays.items():
        if name == "runner" or array.size == 0:
            continue
        broken = [array[:-1], np.zeros(array.shape, bool)]
        if array.dtype == np.float64:
            broken.append(np.full(array.shape, math.nan))
        if array.dtype == np.int32:
            broken += [np.full_like(array, 99), np.full_like(array, -1)]
        if array.dtype == np.int64:
            broken += [array - 1000, array + 1000]
        for wrong in broken:
            arrays = blob.arrays | {name: wrong}
            data = pack(Blob(blob.agent, blob.configuration, blob.values, arrays))
            with pytest.raises(wd.StateError):
                kind.from_state(data)


def test_another_action_than_the_advised_one_teaches_too():
    for kind in KINDS:
        agent = quiet(kind, 200, None)
        for _ in range(200):
            agent.observe(0, (agent.act(0) + 1) % 3, 0.5, 0)
        assert agent.overridden == 200
