"""Bandits against literal twins, written from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.unit.agents.bandit_worlds import SPACE
from windage.agents import BOB, DUCB, EXP3S, REXP3, SWUCB, UCB1
from windage.rng import key, stream

# what they say with several states has a test of its own in test_bandits.py
pytestmark = pytest.mark.filterwarnings("ignore:.* is a bandit:windage.errors.GuaranteeWarning")


def drawn(seed, purpose, t):
    """The uniform number at an address, in Python's own integers."""
    low, high = (int(word) for word in key(seed, purpose))

    def mixed(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    return (mixed((mixed((t + low) % 2**64) + high) % 2**64) >> 11) / 2**53


class Bound:
    """One bandit: the whole history, and an index from its definition."""

    def __init__(self, K, xi, *, window=None, discount=1.0, scale=1.0):
        self.K, self.xi, self.window, self.discount, self.scale = K, xi, window, discount, scale
        self.history = []

    def indices(self):
        t = len(self.history) + 1
        found = []
        old = 1 if self.window is None else max(1, t - self.window)
        N, X = np.zeros(self.K), np.zeros(self.K)
        for arm in range(self.K):
            mine = [
                (self.discount ** (t - 1 - s), x)
                for s, (a, x) in enumerate(self.history, 1)
                if a == arm and s >= old
            ]
            N[arm] = math.fsum(w for w, _ in mine)
            X[arm] = math.fsum(w * x for w, x in mine)
        total = N.sum() if self.window is None else min(t, self.window)
        for arm in range(self.K):
            if N[arm] == 0:
                return [float(a == arm) for a in range(self.K)]
            found.append(
                X[arm] / N[arm] + self.scale * math.sqrt(self.xi * math.log(total) / N[arm])
            )
        return found

    def learn(self, arm, x):
        self.history.append((arm, x))


def world(space, T, seed, low=0.0, high=1.0):
    """Rewards of any size and states of any order: what an agent may meet."""
    rng = stream(seed, "bandit tests")
    rewards = low + (high - low) * rng.random(T)
    rewards[::3] = np.where(rng.random(rewards[::3].size) < 0.5, low, high)  # ties too
    return rng.integers(space.n_states, size=T + 1).tolist(), rewards.tolist()


BOUNDS = [
    (UCB1, {}, {"xi": 2.0}),
    (UCB1, {"exploration": 0.3}, {"xi": 0.3}),
    (SWUCB, {"window": 17}, {"xi": 0.6, "window": 17}),
    (SWUCB, {"window": 1}, {"xi": 0.6, "window": 1}),
    (SWUCB, {"window": 60, "exploration": 0.1}, {"xi": 0.1, "window": 60}),
    (SWUCB, {"window": 10**6}, {"xi": 0.6, "window": 10**6}),
    (DUCB, {"discount": 0.93}, {"xi": 0.6, "discount": 0.93, "scale": 2.0}),
    (DUCB, {"discount": 0.5}, {"xi": 0.6, "discount": 0.5, "scale": 2.0}),
    (DUCB, {"changes": 0}, {"xi": 0.6, "scale": 2.0}),
]


@pytest.mark.parametrize(("kind", "options", "literal"), BOUNDS)
@pytest.mark.parametrize("reward_range", [None, (-2.0, 3.0)])
def test_bounds_are_their_definitions(kind, options, literal, reward_range):
    """The action has the largest index."""
    T, (low, high) = 400, reward_range or (0.0, 1.0)
    agent = kind(SPACE, horizon=T, reward_range=reward_range, **options)
    twins = [Bound(K, **literal) for K in SPACE.counts]
    states, rewards = world(SPACE, T, 1, low, high)
    contested = 0
    for t in range(T):
        s = states[t]
        a, indices = agent.act(s), twins[s].indices()
        best = max(indices)
        assert indices[a] >= best - 1e-10, t
        contested += len(set(indices)) > 1
        agent.observe(s, a, rewards[t], states[t + 1])
        twins[s].learn(a, (rewards[t] - low) / (high - low))
    assert contested > 50


@pytest.mark.parametrize(("kind", "options", "literal"), BOUNDS[:6])
def test_the_first_of_equally_good_arms_is_played(kind, options, literal):
    """With rewards 0 and 1 the twins agree to the last bit, ties included."""
    T = 300
    agent, twin = kind(wd.StateActions([4]), horizon=T, **options), Bound(4, **literal)
    rewards, tied = stream(9, "coins").integers(2, size=T).tolist(), 0
    for reward in rewards:
        a, indices = agent.act(0), twin.indices()
        assert a == indices.index(max(indices))
        tied += indices.count(max(indices)) > 1
        agent.observe(0, a, reward, 0)
        twin.learn(a, reward)
    assert tied > 0 or options.get("window") == 1


class Exponential:
    """One bandit by exponential weights: EXP3 in batches, or with shared weights."""

    def __init__(self, K, gamma, *, batch=math.inf, share=0.0):
        self.K, self.gamma, self.batch, self.share = K, gamma, batch, share
        self.w, self.n = np.ones(K), 0

    def probabilities(self):
        return (1 - self.gamma) * self.w / self.w.sum() + self.gamma / self.K

    def learn(self, arm, x):
        grown = np.ones(self.K)
        grown[arm] = math.exp(self.gamma / self.K * x / self.probabilities()[arm])
        self.w = self.w * grown + self.share * self.w.sum()
        self.n += 1
        if self.n == self.batch:
            self.w, self.n = np.ones(self.K), 0


def gamma_exp3(K, n):
    return min(1.0, math.sqrt(K * math.log(K) / ((math.e - 1) * n)))


def gamma_shared(K, T, changes):
    if K == 1:
        return 0.0
    pieces = changes + 1
    return min(1.0, math.sqrt(K * (pieces * math.log(K * T) + math.e) / ((math.e - 1) * T)))


def rexp3(T, V):
    def made(K):
        batch = T
        if V > 0:
            batch = min(T, max(1, math.ceil((K * math.log(K)) ** (1 / 3) * (T / V) ** (2 / 3))))
        return Exponential(K, gamma_exp3(K, batch), batch=batch)

    return made


def exp3s(T, changes):
    def made(K):
        return Exponential(K, gamma_shared(K, T, changes), share=math.e / (K * T))

    return made


T_LITERAL = 1200
WEIGHTS = [
    (REXP3, {"variation": 2.5}, rexp3(T_LITERAL, 2.5)),
    (REXP3, {"variation": 60.0}, rexp3(T_LITERAL, 60.0)),
    (REXP3, {"variation": 0.0}, rexp3(T_LITERAL, 0.0)),
    (REXP3, {"batch": [5, 7, 9]}, lambda K: Exponential(
        K, gamma_exp3(K, {3: 5, 1: 7, 2: 9}[K]), batch={3: 5, 1: 7, 2: 9}[K])),
    (EXP3S, {"changes": 2}, exp3s(T_LITERAL, 2)),
    (EXP3S, {"changes": 0}, exp3s(T_LITERAL, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "make"), WEIGHTS)
@pytest.mark.parametrize("reward_range", [None, (-2.0, 3.0)])
def test_weights_are_their_definitions(kind, options, make, reward_range):
    """Probabilities to 1e-12 in every state, and the arm whose interval holds the draw."""
    T, (low, high) = T_LITERAL, reward_range or (0.0, 1.0)
    if "variation" in options:  # in units of the rewards
        options = {"variation": options["variation"] * (high - low)}
    agent = kind(SPACE, horizon=T, reward_range=reward_range, seed=7, **options)
    twins = [make(int(K)) for K in SPACE.counts]
    states, rewards = world(SPACE, T, 2, low, high)
    for t in range(1, T + 1):
        s, p = states[t - 1], agent.probabilities
        for state, twin in enumerate(twins):
            first, last = SPACE.offsets[state : state + 2]
            assert p[first:last] == pytest.approx(twin.probabilities(), abs=1e-12)
        a, u = agent.act(s), drawn(7, f"agents.{kind.id}", t)
        edges = np.concatenate([[0.0], np.cumsum(twins[s].probabilities())])
        assert edges[a] - 1e-12 <= u <= edges[a + 1] + 1e-12
        agent.observe(s, a, rewards[t - 1], states[t])
        twins[s].learn(a, (rewards[t - 1] - low) / (high - low))


@pytest.mark.parametrize("reward_range", [None, (-2.0, 3.0)])
@pytest.mark.parametrize("T", [1, 2, 70, 900])
def test_bob_is_its_definition(T, reward_range):
    """Blocks of ceil(sqrt(T)) steps, a fresh SW-UCB in each, EXP3 over its windows."""
    low, high = reward_range or (0.0, 1.0)
    agent = BOB(SPACE, horizon=T, reward_range=reward_range, seed=3)
    H = next(n for n in range(1, T + 1) if n * n >= T)
    m = math.ceil(math.log(H))
    windows = [max(w for w in range(1, H + 1) if w**m <= H**j) for j in range(m + 1)]
    master = Exponential(m + 1, gamma_exp3(m + 1, math.ceil(T / H)))
    assert (agent.block_length, list(agent.windows)) == (H, windows)
    states, rewards = world(SPACE, T, 4, low, high)
    total, seen = 0.0, set()
    for t in range(1, T + 1):
        s, a = states[t - 1], agent.act(states[t - 1])
        if (t - 1) % H == 0:
            if t > 1:
                x = 0.5 + total / (2 * H + 4 * math.sqrt(H * math.log(T / math.sqrt(H))))
                assert 0 <= x <= 1
                master.learn(arm, x)  # noqa: F821 - of the block before
            p, u = master.probabilities(), drawn(3, "agents.bob", t)
            assert agent.probabilities == pytest.approx(p, abs=1e-12)
            arm = int(np.searchsorted(np.cumsum(p), u, side="right"))
            seen.add(arm)
            assert agent.arm == arm
            total = 0.0
            twins = [Bound(K, 0.6, window=windows[arm]) for K in SPACE.counts]
        indices = twins[s].indices()
        assert indices[a] >= max(indices) - 1e-10
        agent.observe(s, a, rewards[t - 1], states[t])
        twins[s].learn(a, (rewards[t - 1] - low) / (high - low))
        total += (rewards[t - 1] - low) / (high - low)
    assert T < 900 or len(seen) >= 4
