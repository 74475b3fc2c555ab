"""MASTER against a slow literal twin: the schedule, who acts, both tests; and what it says."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.stats import binomtest

import windage as wd
from tests.unit.agents.master_worlds import FIRING, OFF, SPACE, TIGHT, drifting, made
from windage.agents.meta import master
from windage.agents.meta.master import MASTER
from windage.agents.optimistic.ucrl2 import AdaptiveUCRL
from windage.errors import CallOrderError, InputError, ParameterWarning
from windage.kernels.random import uniform
from windage.rng import key


class Twin:
    """The definition, literally: the whole history is kept and every mean is taken anew."""

    def __init__(self, horizon, seed, factor, c, test_1, test_2, diameter=4.0, radii=TIGHT):
        self.T, self.seed, self.factor, self.c = horizon, seed, factor, c
        self.factors = {1: test_1, 2: test_2}
        self.options = {"diameter": diameter, "radii": radii}
        self.draws = key(seed, "agents.master")
        self.t, self.rewards, self.gains, self.restarts = 0, [], [], []
        self.episodes = []
        self.open_block(0)

    def rho(self, t):
        return self.c * math.sqrt(t) / t

    def open_block(self, n):
        """Draw the whole schedule of the block that starts after step t."""
        self.n, self.start = n, self.t + 1
        self.learners = {}
        self.lives = []  # (order, first, last)
        for tau in range(2**n):
            for m in range(n, -1, -1):
                if tau % 2**m == 0:
                    first = self.start + tau
                    p = self.rho(2**n) / self.rho(2**m)
                    if m == n or uniform(self.draws, first, m) < p:
                        self.lives.append((m, first, first + 2**m - 1))

    def live(self, t):
        return sorted((m, -a, b) for m, a, b in self.lives if a <= t <= b)

    def act(self, s):
        m, minus, _ = self.live(self.t + 1)[0]
        if (m, -minus) not in self.learners:
            high, low = key(self.seed, f"agents.master/{-minus}/{m}")
            seed = int(high) * 2**64 + int(low)
            self.learners[m, -minus] = AdaptiveUCRL(
                SPACE, horizon=self.T, seed=seed, **self.options
            )
        self.learner = self.learners[m, -minus]
        before = self.learner.n_episodes
        a = self.learner.act(s)
        if self.learner.n_episodes > before:
            fresh = self.learner.n_episodes == 1
            self.episodes.append((self.t + 1, self.learner.episode.gain, fresh))
        return a

    def observe(self, s, a, reward, after):
        self.gains.append(self.learner.episode.gain)
        self.learner.observe(s, a, reward, after)
        self.rewards.append(reward)
        self.t += 1
        t, block = self.t, slice(self.start - 1, self.t)
        rho_hat = lambda steps: self.factor * self.rho(steps)  # noqa: E731
        lowest = min(self.gains[block])
        found = []
        for m, first, last in sorted(self.lives):
            if last == t:
                value = math.fsum(self.rewards[first - 1 : last]) / 2**m
                found.append((1, m, value, lowest + self.factors[1] * rho_hat(2**m)))
        gaps = [g - r for g, r in zip(self.gains[block], self.rewards[block], strict=True)]
        bar = self.factors[2] * rho_hat(len(gaps))
        found.append((2, self.n, math.fsum(gaps) / len(gaps), bar))
        fired = [one for one in found if one[2] >= one[3]]
        if fired:
            self.restarts.append((t, *fired[0]))
            self.open_block(0)
        elif t == self.start + 2**self.n - 1:
            self.open_block(self.n + 1)


CONSTANTS = {  # log_factor, c, test_1, test_2
    "both": (0.5, 2.0, 0.2, 4.0),
    "test 1 alone": (0.1, 5.0, 0.9, OFF),
    "test 2 alone": (2.0, 0.5, OFF, 2.0),
    "no test": (1.0, 1.0, OFF, OFF),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_it_is_its_definition(name):
    """Schedule, who acts, who learns, actions, episodes and both tests, step by step."""
    factor, c, test_1, test_2 = CONSTANTS[name]
    T, counts, largest = 260, {1: 0, 2: 0}, {1: 0, 2: 0}
    for seed in range(4):
        given = {"log_factor": factor, "regret_constant": c, "test_1": test_1, "test_2": test_2}
        agent = made(T, seed, **given)
        twin = Twin(T, seed, factor, c, test_1, test_2)
        world = wd.simulate.Simulator(drifting(T), seed)
        for t in range(1, T + 1):
            s = world.state
            a = agent.act(s)
            assert a == twin.act(s)
            assert agent.order == twin.n
            live = [(m, -minus, min(b, T)) for m, minus, b in twin.live(t)]
            assert [(one.order, one.start, one.end) for one in agent.copies] == live
            before = [one.acted for one in agent.copies]
            clocks = [
                twin.learners[m, a].t - 1 if (m, a) in twin.learners else 0 for m, a, _ in live
            ]
            assert before == clocks
            reward, after = world.step(a)
            agent.observe(s, a, reward, after)
            twin.observe(s, a, reward, after)
        found = [(r.t, r.test, r.order) for r in agent.restarts]
        assert found == [r[:3] for r in twin.restarts]
        for one, other in zip(agent.restarts, twin.restarts, strict=True):
            assert (one.value, one.threshold) == pytest.approx(other[3:], rel=1e-11)
            largest[one.test] = max(largest[one.test], one.order)
        for test in (1, 2):
            counts[test] += agent.fired[test]
            assert agent.fired[test] == sum(r[1] == test for r in twin.restarts)
        rows = agent.episode_rows(1)
        assert [(r["start"], r["gain"]) for r in rows] == [e[:2] for e in twin.episodes]
        reasons = [wd.agents.episodes.REASONS[r["reason"]] for r in rows[:-1]]
        assert reasons == ["restart" if e[2] else "visits" for e in twin.episodes[1:]]
        assert rows["length"][:-1].tolist() == np.diff(rows["start"]).tolist()
    assert (counts[1] > 0) == (name in ("both", "test 1 alone"))
    assert (counts[2] > 0) == (name in ("both", "test 2 alone"))
    for test in (1, 2):  # not only in blocks of one step
        assert counts[test] == 0 or largest[test] > 1


def test_how_often_copies_are_scheduled():
    """An order-m copy with probability 2^((m - n) / 2); false alarms 1e-6, 2^(m - n) rejected."""
    T, hits, trials = 1023, {}, {}
    for seed in (5, 6, 7):
        agent = MASTER(wd.StateActions([1]), horizon=T, diameter=1.0, seed=seed)
        for t in range(1, T + 1):
            agent.act(0)
            n, tau = agent.order, t - 2**agent.order
            started = {one.order for one in agent.copies if one.start == t}
            assert 0 <= tau < 2**n
            assert all(tau % 2**m == 0 for m in started)
            for m in range(n + 1):
                if tau % 2**m == 0:
                    trials[n - m] = trials.get(n - m, 0) + 1
                    hits[n - m] = hits.get(n - m, 0) + (m in started)
            agent.observe(0, 0, 0.5, 0)
    assert hits[0] == trials[0] > 20
    for lag in range(1, 8):
        p = 2 ** (-lag / 2)
        assert binomtest(hits[lag], trials[lag], p).pvalue > 1e-6 / 7
    rejected = [lag for lag in hits if binomtest(hits[lag], trials[lag], 2.0**-lag).pvalue < 1e-7]
    assert len(rejected) >= 5


def test_only_the_shortest_copy_learns():
    agent, seen = made(200, seed=3), set()
    world = wd.simulate.Simulator(drifting(200), 1)
    for _ in range(200):
        s = world.state
        a = agent.act(s)
        learners = [(one.order, one.learner, one.learner.state()) for one in agent._live()]
        assert learners[0][0] == min(order for order, *_ in learners)
        agent.observe(s, a, *world.step(a))
        changed = [order for order, learner, state in learners if learner.state() != state]
        assert changed == [learners[0][0]]
        seen.add(len(learners))
    assert len(seen) > 2


@pytest.mark.parametrize("env", ["two-state-cosine", "riverswim"])
def test_with_the_constants_of_the_paper_no_test_fires(env):
    T = 20_000
    model = wd.envs.make(env, horizon=T)
    D = model.max_diameter().upper
    agent = MASTER(model.space, horizon=T, diameter=D, seed=1)
    S, A = model.space.n_states, model.space.mean_actions
    logs = math.log(T / 0.05)
    assert agent.log_factor == pytest.approx(6 * (math.log2(T) + 1) * logs, rel=1e-14)
    assert agent.regret_constant == pytest.approx(D * S * math.sqrt(A * logs), rel=1e-14)
    rho_hat = agent.log_factor * agent.regret_constant / math.sqrt(T)
    assert 3 * rho_hat > 1  # already more than a mean over all of T can be
    wd.run(model, agent, seed=1, steps=2500)
    assert agent.fired == {1: 0, 2: 0}
    assert agent.order == 11
    assert [one.can_fire for one in agent.reach()] == [False, False]


def longest_means(T):
    """Blocks of 1, 2, 4, ... steps until T: the longest that ends, and the longest stretch."""
    t, n, ends, stretch = 0, 0, [], 0
    while t < T:
        steps = min(2**n, T - t)
        stretch = max(stretch, steps)
        if steps == 2**n:
            ends.append(2**n)
        t, n = t + steps, n + 1
    return max(ends), stretch


@pytest.mark.parametrize("T", [1, 2, 3, 4, 10, 63, 64, 96, 1000])
def test_what_the_tests_can_reach(T):
    agent = made(T, log_factor=2.0, regret_constant=3.0, test_1=5.0, test_2=4.0)
    one, two = agent.reach()
    longest, stretch = longest_means(T)
    assert one.least == pytest.approx(5.0 * 6.0 / math.sqrt(longest))
    assert two.least == pytest.approx(4.0 * 6.0 / math.sqrt(stretch))
    assert (one.horizon, two.horizon) == (2047, 2047)  # sqrt(1024) = 32 >= 30 > 24 > sqrt(512)
    assert one.can_fire is False
    assert made(2047, log_factor=2.0, regret_constant=3.0, test_1=5.0).reach()[0].can_fire


def test_from_which_horizon_on_the_tests_could_fire():
    agent = made(1000)
    scale = 4.0 * 3 * math.sqrt(2.0)  # D S sqrt(A)

    def least(test, k):
        T = 2**k - 1
        logs = math.log(T / 0.05)
        return test * 6 * (math.log2(T) + 1) * logs * scale * math.sqrt(logs) / 2 ** ((k - 1) / 2)

    for reach, test in zip(agent.reach(), (9.0, 3.0), strict=True):
        k = (reach.horizon + 1).bit_length() - 1
        assert least(test, k) <= 1 < least(test, k - 1)
    assert made(5, test_1=1e300).reach()[0].horizon is None
    assert "at no horizon" in str(made(5, test_1=1e300).reach()[0])


def test_thresholds_follow_the_range_of_the_rewards():
    """Rewards moved and stretched: the same actions and restarts, values moved alike."""
    low, width, T = -3.0, 8.0, 150  # a power of two, so that nothing is rounded
    one, other = (
        made(T, 1, reward_range=(0, 1), **FIRING),
        made(T, 1, reward_range=(-3, 5), **FIRING),
    )
    world = wd.simulate.Simulator(drifting(T), 1)
    for _ in range(T):
        s = world.state
        a = one.act(s)
        assert other.act(s) == a
        reward, after = world.step(a)
        one.observe(s, a, reward, after)
        other.observe(s, a, low + width * reward, after)
    assert len(one.restarts) > 2
    for plain, moved in zip(one.restarts, other.restarts, strict=True):
        shift = low if plain.test == 1 else 0.0
        assert (moved.t, moved.test, moved.order) == (plain.t, plain.test, plain.order)
        assert moved.value == pytest.approx(shift + width * plain.value)
        assert moved.threshold == pytest.approx(shift + width * plain.threshold)


def test_overridden_actions_are_learned_and_counted():
    agent = made(20)
    for _ in range(20):
        a = agent.act(1)
        agent.observe(1, (a + 1) % 3, 0.5, 1)
    assert agent.overridden == 20


def test_it_warns_once_of_rewards_out_of_scale():
    agent = made(200)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(200):
            agent.observe(2, agent.act(2), 7.0, 2)
    assert [one.category for one in given] == [ParameterWarning]


def test_one_state_has_diameter_0():
    model = wd.envs.make("bandit", horizon=300)
    agent = MASTER.configured(model.space, horizon=300, diameter=model.max_diameter().upper)
    wd.run(model, agent, seed=1)
    assert agent.regret_constant == pytest.approx(
        math.sqrt(model.space.mean_actions * math.log(300 / 0.05))
    )
    assert agent.fired == {1: 0, 2: 0}


def test_explain():
    agent = made(300, 2, **FIRING)
    with pytest.raises(CallOrderError, match="planned"):
        agent.explain(0)
    model = drifting(300)
    wd.run(model, agent, seed=4, steps=230)
    agent.act(agent.last_state)
    said = agent.explain(agent.last_state)
    assert said.copies == agent.copies
    assert said.acting == agent.copies[0].order
    assert said.restarts == agent.restarts
    assert said.fired == agent.fired
    assert said.missed <= said.threshold
    text = str(said)
    assert f"block of 2^{agent.order} steps" in text
    assert (
        f"last restart: after t = {agent.restarts[-1].t} by test {agent.restarts[-1].test}" in text
    )
    assert "test 2 can fire" in text
    assert "optimistic gain" in text
    before = agent.state()
    agent.explain(0)
    assert agent.state() == before
    plain = MASTER(SPACE, horizon=1000, diameter=4.0)
    plain.act(0)
    text = str(plain.explain(0))
    assert "test 1 cannot fire at this horizon: its least threshold is" in text
    assert "test 2 cannot fire at this horizon" in text
    assert "could from about T = " in text


def test_the_last_restarts_are_kept(monkeypatch):
    """Ten thousand of them; here three."""
    model, whole = drifting(130), made(130, 2, **FIRING)
    wd.run(model, whole, seed=4)
    assert master._RESTARTS_KEPT == 10_000
    monkeypatch.setattr(master, "_RESTARTS_KEPT", 3)
    agent = made(130, 2, **FIRING)
    wd.run(model, agent, seed=4)
    total = sum(agent.fired.values())
    assert total == sum(whole.fired.values()) == len(whole.restarts) > 3
    assert agent.restarts == whole.restarts[-3:]
    assert wd.agents.restore(agent.state()).restarts == agent.restarts


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"diameter": -1.0}, "diameter"),
        ({"diameter": math.nan}, "diameter"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"test_1": -1.0}, "test_1"),
        ({"test_2": "3"}, "test_2"),
        ({"log_factor": math.inf}, "log_factor"),
        ({"regret_constant": -0.1}, "regret_constant"),
        ({"ladder": (0.5, 0.1)}, "ladder"),
        ({"ladder": ()}, "ladder"),
        ({"ties": "coin"}, "ties"),
        ({"slack": -1.0}, "slack"),
        ({"reward_range": (1, 0)}, "reward_range"),
        ({"seed": -1}, "seed"),
        ({"radii": "tiny"}, "radii"),
    ],
)
def test_bad_options(options, field):
    with pytest.raises(InputError) as caught:
        made(100, **options)
    assert field in str(caught.value.field)


def test_the_diameter_must_be_known():
    with pytest.raises(InputError, match=r"diameter=model.max_diameter\(\).upper"):
        MASTER.configured(SPACE, horizon=100)
    agent = MASTER.configured(SPACE, horizon=100, diameter=3.0, test_1=2.0, seed=4)
    again = MASTER.configured(**{"space": SPACE, "diameter": 3.0} | _arguments(agent))
    assert again.configuration() == agent.configuration()
    assert (agent.requires, agent.covers_drift) == (("D",), True)


def _arguments(agent):
    return {name: value for name, value in agent.configuration().items() if name != "space"}


def test_bad_calls_change_nothing():
    agent = made(100, reward_range=(0, 1))
    world = wd.simulate.Simulator(drifting(100), 1)
    for _ in range(30):
        s = world.state
        agent.observe(s, agent.act(s), *world.step(agent.act(s)))
    before = agent.state()
    with pytest.raises(CallOrderError):
        agent.observe(0, 0, 0.5, 0)
    with pytest.raises(InputError):
        agent.act(3)
    assert agent.state() == before
    s = world.state
    a = agent.act(s)
    before = agent.state()
    for bad in ((s, a, 1.5, 0), (s, a, math.nan, 0), (s, 9, 0.5, 0), (s, a, 0.5, 3)):
        with pytest.raises(InputError):
            agent.observe(*bad)
        assert agent.state() == before
    with pytest.raises(CallOrderError):
        agent.act((s + 1) % 3)
    assert agent.state() == before
