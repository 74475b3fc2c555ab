"""Differential Q-learning, against the same few lines in plain Python, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp

SPACE = wd.StateActions([2, 3, 1, 4])
WORD = 2**64 - 1
FALSE_ALARM = 1e-6


def scrambled(x):
    """The finaliser of splitmix64, on whole numbers of any size."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def uniform(seed, t, draw):
    """The number in [0, 1) at the address (seed, t, draw) of this agent."""
    first, second = (int(word) for word in wd.rng.key(seed, "agents.diff-q"))
    counter = t | (draw << 40)
    word = scrambled((scrambled((counter + first) & WORD) + second) & WORD)
    return (word >> 11) / 2**53


class Twin:
    """Wan, Naik, Sutton 2021: delta = R - rbar + max q(s') - q(s, a) moves both."""

    def __init__(self, actions, rate, gain_rate, exploration, reward_range, seed):
        self.q = [[0.0] * n for n in actions]
        self.rbar, self.seed = 0.0, seed
        self.rate, self.gain_rate, self.exploration = rate, gain_rate, exploration
        self.low, self.high = reward_range or (0.0, 1.0)

    @property
    def values(self):
        return [q for row in self.q for q in row]

    def act(self, t, s):
        if uniform(self.seed, t, 0) < self.exploration:
            return math.floor(uniform(self.seed, t, 1) * len(self.q[s]))
        return self.q[s].index(max(self.q[s]))

    def observe(self, s, a, reward, after):
        R = (reward - self.low) / (self.high - self.low)
        delta = R - self.rbar + max(self.q[after]) - self.q[s][a]
        self.q[s][a] += self.rate * delta
        self.rbar += self.gain_rate * self.rate * delta


def drifting(horizon, noise="bernoulli"):
    ends = [random_mdp(SPACE, seed) for seed in (3, 4)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon, noise=noise)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rate": 1.0, "gain_rate": 1.0, "exploration": 1.0},
        {"rate": 0.37, "gain_rate": 0.0, "exploration": 0.0},
        {"rate": 0.05, "gain_rate": 0.31, "exploration": 0.5, "seed": 9},
        {"reward_range": (-3.0, 4.5), "exploration": 0.2},
    ],
)
@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_values_and_actions_are_those_of_the_twin(options, noise):
    """Online; that a compiled run does the same is in the contract of every agent."""
    T = 600
    model = drifting(T, wd.Noise.gaussian(0.1) if noise == "gaussian" else noise)
    agent = wd.DifferentialQ(SPACE, horizon=T, **options)
    given = {
        "rate": 0.1, "gain_rate": 0.1, "exploration": 0.1, "reward_range": None, "seed": 0,
    } | options  # fmt: skip
    twin = Twin(SPACE.counts.tolist(), **given)
    low, high = twin.low, twin.high
    world = wd.simulate.Simulator(model, 5)
    for t in range(1, T + 1):
        s = world.state
        a = agent.act(s)
        assert a == twin.act(t, s)
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        twin.observe(s, a, reward, after)
        assert agent._table.gain[0] == twin.rbar
        assert agent._table.values.tolist() == twin.values
    assert agent.gain == low + (high - low) * twin.rbar
    assert agent.values.tolist() == [(high - low) * q for q in twin.values]
    fused = wd.DifferentialQ(SPACE, horizon=T, **options)
    wd.run(model, fused, seed=5)
    assert fused.state() == agent.state()


def test_actions_the_user_played_instead_are_learned_from():
    agent, twin = wd.DifferentialQ(SPACE, horizon=50), Twin([2, 3, 1, 4], 0.1, 0.1, 0.1, None, 0)
    rng = np.random.default_rng(1)
    s = 0
    for _ in range(50):
        agent.act(s)
        a, reward, after = int(rng.integers(SPACE.counts[s])), rng.random(), int(rng.integers(4))
        agent.observe(s, a, reward, after)
        twin.observe(s, a, reward, after)
        s = after
    assert agent.values.tolist() == twin.values


@pytest.mark.parametrize("exploration", [0.0, 0.1, 0.5, 1.0])
def test_any_action_is_played_as_often_as_said(exploration):
    """In state 3 with four actions; a value far ahead of the others makes the best one known.

    Hoeffding at 1e-6 for all frequencies together.
    """
    n = 4000
    agent = wd.DifferentialQ(SPACE, horizon=n, exploration=exploration, seed=4)
    agent._table.values[SPACE.pair(3, 2)] = 1e6
    played = []
    for _ in range(n):
        played.append(agent.act(3))
        agent.withdraw()
        agent.t += 1  # another time, nothing learned
    shares = np.bincount(played, minlength=4) / n
    wanted = np.full(4, exploration / 4)
    wanted[2] += 1 - exploration
    off = math.sqrt(math.log(8 / FALSE_ALARM) / (2 * n))
    assert shares == pytest.approx(wanted, abs=0.0 if exploration == 0.0 else off)
    assert off < 0.05


@pytest.mark.parametrize("scale", [1.0, 2.0, 1024.0])
def test_a_declared_range_only_changes_the_units(scale):
    """Rewards, gain and values times a power of two and shifted: the same run."""
    T = 500
    plain = wd.DifferentialQ(SPACE, horizon=T, reward_range=(0.0, 1.0))
    units = wd.DifferentialQ(SPACE, horizon=T, reward_range=(-scale, 0.0))
    world = wd.simulate.Simulator(drifting(T), 2)
    for _ in range(T):
        s = world.state
        a = plain.act(s)
        assert units.act(s) == a
        reward, after = world.step(a)
        plain.observe(s, a, reward, after)
        units.observe(s, a, scale * (reward - 1.0), after)
    assert units.values.tolist() == (scale * plain.values).tolist()
    assert units.gain == pytest.approx(scale * (plain.gain - 1.0), rel=1e-12)


def test_it_learns_what_it_should():
    """On a fixed model its gain and greedy policy come close to the best (solved exactly)."""
    mdp = random_mdp(SPACE, 3)
    T = 60_000
    model = wd.DriftingMDP.stationary(mdp, horizon=T)
    agent = wd.DifferentialQ(SPACE, horizon=T, rate=0.02, gain_rate=0.1, exploration=0.1)
    run = wd.run(model, agent, seed=1)
    best = mdp.solve()
    greedy = [int(np.argmax(q)) for q in np.split(agent.values, SPACE.offsets[1:-1])]
    pairs = SPACE.offsets[:-1] + greedy
    own = wd.MDP(wd.StateActions([1] * 4), mdp.rewards[pairs], mdp.transitions[pairs]).solve()
    assert own.gain > best.gain - 0.03
    assert agent.gain == pytest.approx(run.rewards[-20_000:].mean(), abs=0.05)


def test_states_survive():
    model = drifting(300)
    agent = wd.DifferentialQ(
        SPACE, horizon=300, rate=0.3, gain_rate=0.2, exploration=0.4, reward_range=(0, 2), seed=6
    )
    wd.run(model, agent, seed=1, steps=120)
    twin = wd.agents.restore(agent.state())
    assert twin.configuration() == agent.configuration()
    assert (
        wd.run(model, twin, seed=1).actions.tolist()
        == wd.run(model, agent, seed=1).actions.tolist()
    )
    assert twin.state() == agent.state()
