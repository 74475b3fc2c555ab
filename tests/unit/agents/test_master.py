"""MASTER against a slow literal twin: the schedule, who acts, both tests; and its states."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.stats import binomtest

import windage as wd
from tests.models import random_mdp
from windage.agents.alarms import Restart, Restarts
from windage.agents.blob import Blob, pack, unpack
from windage.agents.master import MASTER
from windage.agents.ucrl2 import AdaptiveUCRL
from windage.errors import CallOrderError, HorizonReached, InputError, ParameterWarning, StateError
from windage.kernels.random import uniform
from windage.streams import key
from windage.testing import check_agent

SPACE = wd.StateActions([2, 3, 1])
TIGHT = wd.Radii.ucrl2().scaled(0.01)
OFF = 1e9  # a factor that no test reaches


def drifting(horizon):
    """Rewards near 0 at low tide and near 1 at high tide, every 32 steps."""
    one = random_mdp(SPACE, 1)
    tides = [wd.MDP(SPACE, low + 0.1 * one.rewards, one.transitions) for low in (0.0, 0.9)]
    return wd.DriftingMDP.blend(tides, wd.schedules.Cosine(horizon / 32), horizon=horizon)


def made(horizon, seed=0, **options):
    given = {"diameter": 4.0, "radii": TIGHT, **options}
    return MASTER(SPACE, horizon=horizon, seed=seed, **given)


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


FIRING = {"log_factor": 1.0, "regret_constant": 1.0, "test_1": 0.3, "test_2": 2.0}


def test_saved_and_restored_at_every_step_it_is_the_same_agent():
    """Before every decision and with it pending, sleeping copies and restarts included."""
    T = 90
    model = drifting(T)
    whole = made(T, 2, **FIRING)
    run = wd.run(model, whole, seed=4)
    agent, world = made(T, 2, **FIRING), wd.simulate.Simulator(model, 4)
    slept = 0
    for t in range(T):
        agent = MASTER.from_state(agent.state())
        state = agent.state()
        s = world.state
        a = agent.act(s)
        slept += sum(one.acted > 0 for one in agent.copies[1:])
        pending = agent.state()
        agent = MASTER.from_state(pending)
        assert agent.state() == pending != state
        assert agent.act(s) == a == run.actions[t]
        assert agent.episode.start <= t + 1
        agent.observe(s, a, *world.step(a))
    assert agent.state() == whole.state()
    assert agent.restarts == whole.restarts
    assert len(whole.restarts) > 0
    assert slept > 30


@pytest.mark.parametrize("cut", [1, 2, 31, 64, 99])
def test_a_run_may_be_split(cut):
    model = drifting(130)
    whole, agent = (made(130, 2, **FIRING) for _ in range(2))
    run = wd.run(model, whole, seed=4)
    first = wd.run(model, agent, seed=4, steps=cut)
    agent = MASTER.from_state(agent.state())
    rest = wd.run(model, agent, seed=4)
    assert agent.state() == whole.state()
    starts = np.append(first.episodes.start, rest.episodes.start)
    assert starts.tolist() == run.episodes.start.tolist()
    assert np.append(first.episodes.gain, rest.episodes.gain).tolist() == run.episodes.gain.tolist()
    assert run.episodes.length.sum() == 130
    assert set(run.episodes.reason) == {"restart", "visits", "open"}
    assert run.episodes.reason[-1] == "open"


def test_the_contract():
    check_agent(
        lambda space, horizon, seed: MASTER(space, horizon=horizon, diameter=5.0, seed=seed),
        horizon=1000,
    )


def test_the_contract_with_restarts():
    check_agent(
        lambda space, horizon, seed: MASTER(
            space, horizon=horizon, diameter=5.0, seed=seed, radii=TIGHT, reward_range=(-1, 2),
            **FIRING,
        ),
        horizon=200,
    )  # fmt: skip


class Stop(BaseException):
    pass


@pytest.mark.parametrize("place", ["learned", "kept", "settled"])
def test_an_interrupted_step_is_finished_or_not_begun(place, monkeypatch):
    T = 120
    model = drifting(T)
    whole, agent = (made(T, 2, **FIRING) for _ in range(2))
    wd.run(model, whole, seed=4)
    owner, name = {
        "learned": (AdaptiveUCRL, "observe"),
        "kept": (Restarts, "add"),
        "settled": (MASTER, "_settle"),
    }[place]
    real, calls = getattr(owner, name), []

    def interrupted(self, *given):
        real(self, *given)
        calls.append(1)
        if len(calls) == 3:
            raise Stop

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(Stop):
        wd.run(model, agent, seed=4)
    monkeypatch.undo()
    agent = MASTER.from_state(agent.state())
    assert 1 < agent.t < T
    wd.run(model, agent, seed=4)
    assert agent.state() == whole.state()


def test_a_step_that_was_not_taken_is_forgotten():
    agent, calm = made(40), made(40)
    world = wd.simulate.Simulator(drifting(40), 1)
    for _ in range(40):
        s = world.state
        agent.act(s)
        agent.withdraw()
        a = agent.act(s)
        assert a == calm.act(s)
        step = world.step(a)
        agent.observe(s, a, *step)
        calm.observe(s, a, *step)
    assert agent.state() == calm.state()
    with pytest.raises(HorizonReached):
        agent.act(0)


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


def test_the_last_ten_thousand_restarts_are_kept():
    kept = Restarts(20_000)
    for t in range(1, 10_051):
        kept.add(Restart(t, 1 + t % 2, 0, float(t), 0.5 * t))
    listed = kept.listed()
    assert len(listed) == 10_000
    assert kept.total == 10_050
    assert listed[0] == Restart(51, 2, 0, 51.0, 25.5)
    assert listed[-1] == Restart(10_050, 1, 0, 10_050.0, 5025.0)
    again = Restarts(20_000)
    again.restore(kept.saved(), kept.total, 10_051)
    assert again.listed() == listed


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
    assert (agent.told, agent.covers_drift) == (("D",), True)


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


TAMPER = {
    "order": lambda v: v | {"order": v["order"] + 1},
    "start": lambda v: v | {"start": v["start"] + 1},
    "late start": lambda v: v | {"start": 10**6},
    "lowest": lambda v: v | {"lowest": None},
    "missed": lambda v: v | {"missed": None},
    "earned": lambda v: v | {"earned": v["earned"][1:]},
    "fired": lambda v: v | {"fired": [v["fired"][0], v["fired"][1] + 1]},
    "a copy less": lambda v: v | {"copies": v["copies"][:-1]},
    "a copy twice": lambda v: v | {"copies": [*v["copies"], v["copies"][0]]},
    "a copy of another time": lambda v: v | {"copies": [[m, s + 1] for m, s in v["copies"]]},
    "a copy before the first": lambda v: v | {"copies": [[-1, 1], *v["copies"]]},
    "not scheduled": lambda v: v | {"scheduled": False},
    "no decision": lambda v: v | {"pending": None},
    "episodes": lambda v: v | {"episodes": -1},
    "no episode": lambda v: v | {"episode": []},
    "episode in the future": lambda v: v | {"episode": [[10**6, *v["episode"][0][1:]]]},
    "clock": lambda v: v | {"t": v["t"] + 50},
}


@pytest.fixture(scope="module")
def saved():
    agent = made(300, 2, **FIRING)
    wd.run(drifting(300), agent, seed=4, steps=220)
    while len(agent.copies) < 3:
        s = agent.last_state
        agent.observe(s, agent.act(s), 0.5, s)
    agent.act(agent.last_state)
    return agent.state()


@pytest.mark.parametrize("name", TAMPER)
def test_impossible_states_are_refused(saved, name):
    blob = unpack(saved)
    assert MASTER.from_state(pack(blob)).state() == saved
    wrong = Blob(blob.agent, blob.configuration, TAMPER[name](blob.values), blob.arrays)
    with pytest.raises(StateError):
        MASTER.from_state(pack(wrong))


def test_a_copy_of_another_agent_is_refused(saved):
    blob, other = unpack(saved), unpack(saved)
    name = next(name for name in blob.arrays if name.startswith("copy."))
    stranger = AdaptiveUCRL(SPACE, horizon=300, diameter=4.0, radii=TIGHT, seed=1)
    other.arrays[name] = np.frombuffer(stranger.state(), np.uint8)
    with pytest.raises(StateError):
        MASTER.from_state(pack(other))
    numbers = blob.arrays["restarts.numbers"].copy()
    numbers[0, 1] = 3
    blob.arrays["restarts.numbers"] = numbers
    with pytest.raises(StateError):
        MASTER.from_state(pack(blob))
