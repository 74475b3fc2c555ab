"""The doubling trick: agents for T, 2T, 4T, ... steps, one after another, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.agents.state import Blob, pack, unpack
from windage.errors import InputError, StateError

SPACE = wd.StateActions([2, 3, 1])
FIRST, T = 8, 8 * 31  # five agents: 8 + 16 + 32 + 64 + 128 steps


def drifting(horizon=T):
    ends = [random_mdp(SPACE, seed) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon)


class Alternating(wd.agents.Agent):
    """An agent of the user's own: it has no compiled loop and no episodes."""

    id = "alternating"

    def __init__(self, space, *, horizon, seed=0, reward_range=None):
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self.good = 0

    def _choose(self, state):
        return (self.good + self.t) % int(self.space.counts[state])

    def _learn(self, state, action, reward, s_next):
        self.good += reward > 0.5

    def _saved(self):
        return {"good": self.good}, {}

    def _restored(self, values, arrays):
        self.good = values["good"]


MAKERS = {
    "swucrl2-cw": lambda T: wd.SWUCRL2CW.oblivious(SPACE, horizon=T, seed=3, radii="laplace"),
    "ucrl2": lambda T: wd.UCRL2(SPACE, horizon=T, seed=3, radii=wd.Radii.ucrl2().scaled(0.1)),
    "sw-psrl": lambda T: wd.SWPSRL(SPACE, horizon=T, window=1 + T // 3, seed=3),
    "restarted-psrl": lambda T: wd.RestartedPSRL(SPACE, horizon=T, restarts=7, seed=3),
    "diff-q": lambda T: wd.DifferentialQ(SPACE, horizon=T, exploration=0.3, seed=3),
    "random": lambda T: wd.agents.RandomAgent(SPACE, horizon=T, seed=3),
    "of the user's": lambda T: Alternating(SPACE, horizon=T, seed=3),
}
PHASES = [(1, 8), (9, 16), (25, 32), (57, 64), (121, 128)]  # first time, steps


def pieced_together(make, model, seed):
    """New agents by hand, the next one started where the last one stood."""
    world = wd.simulate.Simulator(model, seed)
    steps, episodes = [], []
    for first, length in PHASES:
        agent, rows = make(length), []
        for t in range(first, first + length):
            s = world.state
            a = agent.act(s)
            if getattr(agent, "n_episodes", 0) > len(rows):
                now = agent.episode
                rows.append((t, now.gain, now.span, now.sweeps, now.ties, now.vacuous))
            reward, after = world.step(a)
            agent.observe(s, a, reward, after)
            steps.append((s, a, reward))
        episodes += rows
    return steps, episodes


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_agents_one_after_another(name):
    """Compiled and step by step; episodes are numbered and dated by the whole run."""
    make, model = MAKERS[name], drifting()
    steps, episodes = pieced_together(make, model, 4)
    agent = wd.Doubling(make, first=FIRST)
    run = wd.run(model, agent, seed=4)
    found = [run.states[:-1].tolist(), run.actions.tolist(), run.rewards.tolist()]
    assert list(zip(*found, strict=True)) == steps
    assert agent.has_loop() == (name != "of the user's")

    online, world = wd.Doubling(make, first=FIRST), wd.simulate.Simulator(model, 4)
    numbers = []
    for t in range(1, T + 1):
        a = online.act(world.state)
        phase = sum(t >= first for first, _ in PHASES)
        assert (online.phase, online.runner.horizon) == (phase, PHASES[phase - 1][1])
        assert (world.state, a) == steps[t - 1][:2]
        numbers.append(online.n_episodes)
        if episodes:
            assert online.episode.start == max(row[0] for row in episodes if row[0] <= t)
        s = world.state
        online.observe(s, a, *world.step(a))
    assert online.state() == agent.state()
    starts = [row[0] for row in episodes]
    assert numbers == [
        sum(start <= t for start in starts) if starts else 0 for t in range(1, T + 1)
    ]
    assert agent.n_episodes == len(episodes)
    if not episodes:
        return
    mine = run.episodes
    columns = mine.start, mine.gain, mine.span, mine.sweeps, mine.ties, mine.vacuous
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == episodes
    assert mine.length.tolist() == np.diff([*starts, T + 1]).tolist()
    borders = {first - 1 for first, _ in PHASES[1:]}
    for end, reason in zip(mine.start + mine.length - 1, mine.reason, strict=True):
        assert reason == "restart" or end not in borders
    assert online.episode_rows(1)["start"].tolist() == starts
    assert online.episode_rows(len(starts))["start"].tolist() == starts[-1:]
    assert online.episode_rows(7)["start"].tolist() == starts[6:]


@pytest.mark.parametrize("name", MAKERS)
def test_split_anywhere_is_the_same_run(name):
    """Also at the step at which another agent takes over, with a decision pending, and saved."""
    make, model = MAKERS[name], drifting()
    agent = wd.Doubling(make, first=FIRST)
    whole = wd.run(model, agent, seed=4)
    for cut in (1, 7, 8, 9, 23, 24, 25, 100, T - 1):
        for saved in (False, True):
            twin = wd.Doubling(make, first=FIRST)
            head = wd.run(model, twin, seed=4, steps=cut)
            if saved:
                decision = twin.act(twin.last_state)
                blob = twin.state()
                twin = wd.Doubling.from_state(blob, make_agent=make)
                assert twin.state() == blob
                assert twin.act(twin.last_state) == decision
                twin.withdraw()
            tail = wd.run(model, twin, seed=4)
            assert [*head.actions, *tail.actions] == whole.actions.tolist()
            assert twin.state() == agent.state()


def test_any_kind_of_agent_is_restored():
    agent = wd.Doubling(MAKERS["ucrl2"], first=FIRST)
    fresh = wd.agents.restore(agent.state(), make_agent=MAKERS["ucrl2"])
    assert (fresh.t, fresh.runner, fresh.phase, fresh.first) == (1, None, 0, FIRST)
    wd.run(drifting(), agent, seed=1, steps=50)
    again = wd.agents.restore(agent.state(), make_agent=MAKERS["ucrl2"])
    assert type(again) is wd.Doubling
    assert again.n_episodes == agent.n_episodes
    assert again.episode == agent.episode
    again.act(again.last_state)
    assert again.state() != agent.state()


def test_a_state_needs_its_function_again():
    agent = wd.Doubling(MAKERS["ucrl2"], first=FIRST)
    wd.run(drifting(), agent, seed=1, steps=50)
    blob = agent.state()
    for restore in (wd.Doubling.from_state, wd.agents.restore):
        with pytest.raises(InputError, match="make_agent: a saved state holds no functions. Fix"):
            restore(blob)
        with pytest.raises(StateError, match="make_agent: it was saved with other 'ucrl2' agents"):
            restore(blob, make_agent=MAKERS["diff-q"])
        with pytest.raises(InputError, match="make_agent: 3 makes no agents"):
            restore(blob, make_agent=3)
    with pytest.raises(StateError, match="state: this is a saved 'ucrl2' agent"):
        wd.Doubling.from_state(MAKERS["ucrl2"](5).state(), make_agent=MAKERS["ucrl2"])


def test_another_function_of_the_same_agents_is_refused():
    """Also one that differs for the horizon of the agent that acts, and not for the first."""
    agent = wd.Doubling(MAKERS["ucrl2"], first=FIRST)
    wd.run(drifting(), agent, seed=1, steps=50)
    for seed in (lambda _: 4, lambda T: 3 if T == FIRST else 4):
        with pytest.raises(StateError, match=r"make_agent: .*other.* Fix: pass the function"):
            wd.Doubling.from_state(
                agent.state(),
                make_agent=lambda T, seed=seed: wd.UCRL2(
                    SPACE, horizon=T, seed=seed(T), radii=wd.Radii.ucrl2().scaled(0.1)
                ),
            )


def test_a_function_for_other_states_is_refused():
    agent = wd.Doubling(MAKERS["ucrl2"], first=FIRST)
    wd.run(drifting(), agent, seed=1, steps=50)
    for other in ([2, 3], [2, 3, 2], [2, 3, 1, 1]):
        with pytest.raises(StateError, match="make_agent"):
            wd.Doubling.from_state(
                agent.state(), make_agent=lambda T, n=other: wd.UCRL2(wd.StateActions(n), horizon=T)
            )


def test_impossible_states_are_refused():
    agent = wd.Doubling(MAKERS["diff-q"], first=FIRST)
    wd.run(drifting(), agent, seed=1, steps=50)
    agent.act(agent.last_state)
    good = unpack(agent.state())

    def refused(values=None, arrays=None):
        arrays = good.arrays if arrays is None else arrays
        bad = Blob(good.agent, good.configuration, good.values | (values or {}), arrays)
        with pytest.raises(StateError) as caught:
            wd.agents.restore(pack(bad), make_agent=MAKERS["diff-q"])
        assert caught.value.fix

    for name in ("t", "since", "until", "earned", "episodes"):
        for wrong in ("x", None, -1, 0.5):
            refused({name: wrong})
    for values in ({"since": 24}, {"t": 49}, {"pending": None}, {"until": 10}):
        refused(values)
    refused(arrays={})
    damaged = good.arrays["runner"].copy()
    damaged[40] ^= 1
    refused(arrays={"runner": damaged})


class TestAgentsItIsGiven:
    @pytest.mark.parametrize("make", [None, 3, "ucrl2"])
    def test_what_makes_no_agents(self, make):
        with pytest.raises(InputError, match=r"make_agent: .* makes no agents. Fix: pass a functi"):
            wd.Doubling(make)

    @pytest.mark.parametrize("first", [0, -1, 2.0, True, None, 2**40])
    def test_impossible_first_horizons(self, first):
        with pytest.raises(InputError, match="first: "):
            wd.Doubling(MAKERS["ucrl2"], first=first)

    @pytest.mark.parametrize(
        "make",
        [lambda T: None, lambda T: "ucrl2", lambda T: wd.UCRL2(SPACE, horizon=max(1, T - 1))],
    )
    def test_what_is_no_agent_for_the_horizon(self, make):
        with pytest.raises(InputError, match="make_agent at horizon 8: returned .*. Fix: return"):
            wd.Doubling(make, first=8)

    def test_one_that_has_acted_before(self):
        used = MAKERS["ucrl2"](10**6)
        wd.run(drifting(), used, seed=1, steps=3)
        with pytest.raises(InputError, match=r"make_agent at horizon 8: returned UCRL2\(.*t=4"):
            wd.Doubling(lambda T: used, first=8)

    def half(self, later):
        """Makes good agents for 8 steps, and then something else."""
        agent = wd.Doubling(lambda T: MAKERS["ucrl2"](T) if T <= 8 else later(T), first=8)
        wd.run(drifting(), agent, seed=1, steps=8)
        return agent

    def test_a_function_that_fails_later_changes_nothing(self):
        agent = self.half(lambda T: None)
        before, n = agent.state(), agent.n_episodes
        for _ in range(3):
            with pytest.raises(InputError, match="make_agent at horizon 16: returned None"):
                agent.act(agent.last_state)
            assert agent.n_episodes == n
            assert agent.state() == before
        with pytest.raises(InputError, match="make_agent at horizon 16"):
            wd.run(drifting(), agent, seed=1)
        assert agent.state() == before

    def test_a_function_that_fails_in_the_middle_of_a_run(self):
        """The steps before it were played, and the agent can be run on from where it stands."""
        whole = wd.run(drifting(), wd.Doubling(MAKERS["ucrl2"], first=8), seed=1)
        broken = [True]

        def make(T):
            if T > 8 and broken[0]:
                raise RuntimeError("not now")
            return MAKERS["ucrl2"](T)

        agent = wd.Doubling(make, first=8)
        with pytest.raises(RuntimeError, match="not now"):
            wd.run(drifting(), agent, seed=1)
        assert (agent.t, agent.last_state) == (9, whole.states[8])
        broken[0] = False
        assert wd.run(drifting(), agent, seed=1).actions.tolist() == whole.actions[8:].tolist()

    def test_agents_for_other_states_later(self):
        agent = self.half(lambda T: wd.UCRL2(wd.StateActions([2, 3]), horizon=T))
        with pytest.raises(InputError, match="make_agent at horizon 16"):
            agent.act(0)


def test_what_it_keeps_does_not_grow():
    """W = 1 makes an episode of every step: what is kept of them ends, and so do saved bytes."""
    model = wd.DriftingMDP.stationary(random_mdp(SPACE, 1), horizon=90_000)
    agent = wd.Doubling(lambda T: wd.SWUCRL2CW(SPACE, horizon=T, window=1, widening=0.5), first=1)
    sizes, kept = [], []
    for steps in (1000, 29_000, 60_000):
        run = wd.run(model, agent, seed=1, steps=steps, record="totals")
        assert run.episodes.total == steps
        sizes.append(len(agent.state()))
        kept.append(agent.episode_rows(1).size)
    assert agent.n_episodes == 90_000
    assert agent.phase == 17
    assert max(sizes) - min(sizes) < 100
    assert kept[2] <= 2 * kept[1]
    assert kept[2] < 60_000
    row = agent.episode_rows(90_000)
    assert row["start"].tolist() == [90_000]


def test_what_is_declared_and_counted_holds_for_the_whole():
    """A reward range is that of the agents it makes; overridden actions count in both."""
    agent = wd.Doubling(lambda T: wd.UCRL2(SPACE, horizon=T, reward_range=(0, 2)), first=2)
    assert agent.reward_range == (0.0, 2.0)
    for t in range(1, 8):
        advised = agent.act(1)
        before = agent.state()
        with pytest.raises(InputError, match=r"reward: 2\.5 is not a number in \[0, 2\]"):
            agent.observe(1, advised, 2.5, 1)
        assert agent.state() == before
        agent.observe(1, (advised + 1) % 3, 1.5, 1)
        assert (agent.overridden, agent.t) == (t, t + 1)
    assert agent.runner.overridden == 1
    assert agent.runner.t == 2


def test_what_was_earned_before_a_refused_reward_stays():
    """The steps before it were played: a relay that learns from its runners needs their sum."""
    mdp = wd.MDP(SPACE, [0.5] * 6, random_mdp(SPACE, 1).transitions)
    loud = wd.DriftingMDP.stationary(mdp, horizon=400, noise=wd.Noise.gaussian(0.2))

    def make(T):
        return wd.UCRL2(SPACE, horizon=T, reward_range=(0, 1))

    agent, twin = wd.Doubling(make, first=400), wd.Doubling(make, first=400)
    with pytest.raises(InputError, match="reward at t="):
        wd.run(loud, agent, seed=5)
    assert agent.t > 2
    run = wd.run(loud, twin, seed=5, steps=agent.t - 1)
    earned = [sum(unpack(a.state()).values["earned"]) for a in (agent, twin)]
    assert earned == pytest.approx([run.rewards.sum()] * 2, abs=1e-12)
