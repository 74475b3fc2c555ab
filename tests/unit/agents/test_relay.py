"""Relays: runners on clocks of their own, and a relay that adds up and hands over.

`Doubling` and `BORL` have tests of their own; here is what all relays share.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.agents.meta.delegating import Relay
from windage.agents.state import Blob, pack, unpack
from windage.errors import InputError, StateError

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

SPACE = wd.StateActions([2, 3, 1])
T = 260
LENGTHS = (1, 7, 30, 2, 45)  # in turn: borders at 2, 9, 39, 41, 86, 87, ...


class Turns(Relay):
    """SWUCRL2-CW for a while, then a new one; writes down what it is told."""

    id = "turns"
    fails = False

    def __init__(self, space, *, horizon, seed=0, reward_range=None):
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self.turn, self.ends, self.samples = 0, [], []

    def _next_runner(self):
        if self.fails:
            raise RuntimeError("nobody there")
        runner = wd.SWUCRL2CW(
            self.space, horizon=self.horizon, window=20, widening=0.2, seed=self.turn,
            radii={"kind": "paper", "scale": 0.1}, reward_range=self.reward_range,
        )  # fmt: skip
        self.turn += 1
        return runner, LENGTHS[(self.turn - 1) % len(LENGTHS)]

    def _saw(self, before, pairs, rewards, afters):
        new = zip(pairs.tolist(), rewards.tolist(), afters.tolist(), strict=True)
        self.samples[before:] = new

    def _finished(self, earned):
        self.ends.append((self.t, earned))

    def _saved(self):
        values, arrays = super()._saved()
        return values | {"turn": self.turn}, arrays

    def _restored(self, values, arrays):
        self.turn = values["turn"]
        super()._restored(values, arrays)

    def _restored_runner(self, data, since):
        return wd.SWUCRL2CW.from_state(data)


def drifting(horizon=T, noise="bernoulli"):
    ends = [random_mdp(SPACE, seed, density=0.7) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon, noise=noise)


BORDERS = [1]  # the first times of all runners
while BORDERS[-1] <= T:
    BORDERS.append(BORDERS[-1] + LENGTHS[(len(BORDERS) - 1) % len(LENGTHS)])
BORDERS.pop()


def online(model, steps=T, **options):
    agent, world = Turns(SPACE, horizon=model.horizon, **options), wd.simulate.Simulator(model, 4)
    for _ in range(steps):
        s = world.state
        a = agent.act(s)
        agent.observe(s, a, *world.step(a))
    return agent


@pytest.mark.parametrize("noise", ["bernoulli", wd.Noise.gaussian(0.4)])
def test_what_is_earned_and_seen(noise):
    """Sums to the last bit of the exact ones, every sample once and in order; compiled or not."""
    model = drifting(noise=noise)
    agent = Turns(SPACE, horizon=T)
    assert agent.has_loop()
    run = wd.run(model, agent, seed=4)
    pairs = SPACE.offsets[run.states[:-1]] + run.actions
    rows = zip(pairs.tolist(), run.rewards.tolist(), run.states[1:].tolist(), strict=True)
    expected = list(rows)
    ends = [
        (after, math.fsum(run.rewards[first - 1 : after - 1]))
        for first, after in zip(BORDERS, BORDERS[1:], strict=False)
    ]
    for played in (agent, online(model)):
        assert played.samples == expected
        assert [t for t, _ in played.ends] == [t for t, _ in ends]
        found = [earned for _, earned in played.ends]
        assert found == pytest.approx([earned for _, earned in ends], abs=1e-13)
    assert agent.ends == online(model).ends
    assert agent.state() == online(model).state()


def test_pieces_of_any_size_are_one_run():
    model = drifting()
    whole = Turns(SPACE, horizon=T)
    wd.run(model, whole, seed=4)
    for size in (1, 2, 13, 38, 39, 40):
        agent = Turns(SPACE, horizon=T)
        while agent.t <= T:
            wd.run(model, agent, seed=4, steps=min(size, T - agent.t + 1))
        assert agent.state() == whole.state()
        assert agent.samples == whole.samples
        assert agent.ends == whole.ends


def test_episodes_are_numbered_and_dated_by_the_whole_run():
    model = drifting()
    agent = Turns(SPACE, horizon=T)
    run = wd.run(model, agent, seed=4)
    episodes = run.episodes
    assert set(BORDERS) <= set(episodes.start.tolist())
    assert episodes.length.tolist() == np.diff([*episodes.start, T + 1]).tolist()
    for start, length, reason in zip(episodes.start, episodes.length, episodes.reason, strict=True):
        assert (reason == "restart") == (start + length in BORDERS)
    assert agent.n_episodes == len(episodes) == episodes.total
    for first in (1, 2, 17, len(episodes), len(episodes) + 1):
        rows = agent.episode_rows(first)
        assert rows["start"].tolist() == episodes.start[first - 1 :].tolist()
    assert agent.episode.start == episodes.start[-1]
    again = Turns.from_state(agent.state())
    assert (again.n_episodes, again.episode) == (agent.n_episodes, agent.episode)
    last = again.n_episodes  # older rows are not saved
    assert again.episode_rows(last).tolist() == agent.episode_rows(last).tolist()


def test_before_the_first_decision():
    agent = Turns(SPACE, horizon=T)
    assert (agent.runner, agent.episode, agent.n_episodes) == (None, None, 0)
    assert agent.episode_rows(1).size == 0
    again = Turns.from_state(agent.state())
    assert (again.runner, again.t) == (None, 1)
    agent.withdraw()
    assert agent.state() == again.state()


@pytest.mark.parametrize("steps", [0, 1, 5, 8, 38, 40, 60])
def test_a_decision_is_withdrawn_from_both(steps):
    """Also the first one of a runner, who stays; asked in another state, it answers for that."""
    model = drifting()
    agent, twin = online(model, steps), online(model, steps)
    s = agent.last_state or 0
    agent.act((s + 1) % 3)
    agent.withdraw()
    assert agent.runner._pending is None
    assert agent.act(s) == twin.act(s)
    agent.observe(s, 0, 1.0, 2)
    twin.observe(s, 0, 1.0, 2)
    assert agent.t == steps + 2
    assert agent.ends == twin.ends


def test_overridden_actions_are_learned_by_the_runner():
    agent = Turns(SPACE, horizon=T)
    for _ in range(8):
        agent.observe(1, (agent.act(1) + 1) % 3, 0.5, 1)
    assert (agent.overridden, agent.runner.overridden, agent.runner.t) == (8, 7, 8)
    assert all((reward, after) == (0.5, 1) for _, reward, after in agent.samples)


# --- when something stops a run ------------------------------------------------------------------


class Stop(BaseException):
    pass


@pytest.mark.parametrize("high", [1.2, 1.5, 1.6])
def test_a_reward_that_is_refused_ends_a_run_where_it_stands(high):
    """Compiled: the steps before it were played and count; the same agent as step by step."""
    model = drifting(noise=wd.Noise.gaussian(0.3))
    limits = {"reward_range": (-2.0, high)}
    agent = Turns(SPACE, horizon=T, **limits)
    with pytest.raises(InputError, match=r"reward at t=\d+: .* is not in the declared range") as e:
        wd.run(model, agent, seed=4)
    assert agent.t > BORDERS[1]
    twin = online(model, agent.t - 1, **limits)
    twin.act(twin.last_state)
    twin.withdraw()
    assert agent.samples == twin.samples
    assert agent.state() == twin.state()
    assert e.value.where == f"t={agent.t}"


@pytest.mark.parametrize("turn", [1, 3, 5, 8])
def test_an_interrupt_between_memory_and_clock_is_made_good(turn, monkeypatch):
    """The worst moment: a runner's loop is over, no clock has moved."""
    model = drifting()
    whole, agent = Turns(SPACE, horizon=T), Turns(SPACE, horizon=T)
    wd.run(model, whole, seed=4)
    kind = next(k for k in wd.SWUCRL2CW.__mro__ if "play" in vars(k))
    real = kind.play

    def cut_short(self, world, state, block):
        after = real(self, world, state, block)
        if agent.turn == turn:
            raise Stop
        return after

    monkeypatch.setattr(kind, "play", cut_short)
    with pytest.raises(Stop):
        wd.run(model, agent, seed=4)
    monkeypatch.undo()
    assert agent.t == BORDERS[turn]
    wd.run(model, agent, seed=4)
    assert agent.samples == whole.samples
    assert agent.ends == whole.ends
    assert agent.state() == whole.state()


def test_the_next_runner_may_fail_and_come_later():
    model = drifting()
    agent, twin = online(model, 38), online(model, 38)
    agent.fails = True
    for _ in range(2):
        with pytest.raises(RuntimeError, match="nobody there"):
            agent.act(agent.last_state)
    assert (agent.t, agent._pending) == (39, None)
    agent.fails = False
    assert agent.act(agent.last_state) == twin.act(twin.last_state)


# --- what it keeps -------------------------------------------------------------------------------


def test_what_it_keeps_does_not_grow():
    model = wd.DriftingMDP.stationary(random_mdp(SPACE, 1), horizon=60_000)

    class Short(Turns):
        def _next_runner(self):
            self.turn += 1
            options = {"window": 1, "widening": 0.5, "seed": self.turn}
            return wd.SWUCRL2CW(self.space, horizon=self.horizon, **options), 5_000

        def _saw(self, before, pairs, rewards, afters):
            pass

    agent, sizes = Short(SPACE, horizon=60_000), []
    for _ in range(4):
        wd.run(model, agent, seed=1, steps=15_000, record="totals")
        sizes.append(len(agent.state()))
    assert agent.n_episodes == 60_000
    assert agent.episode_rows(1).size < 40_000
    assert agent.episode_rows(59_990)["start"].tolist() == list(range(59_990, 60_001))
    assert max(sizes) - min(sizes) < 100


def test_impossible_states_are_refused():
    agent = online(drifting(), 50)
    agent.act(agent.last_state)
    good = unpack(agent.state())

    def refused(values=None, arrays=None):
        bad = Blob(
            good.agent, good.configuration, good.values | (values or {}),
            good.arrays if arrays is None else arrays,
        )  # fmt: skip
        with pytest.raises(StateError, match="state: ") as caught:
            Turns.from_state(pack(bad))
        assert caught.value.fix

    for name in ("t", "since", "until", "earned", "episodes"):
        for wrong in ("x", None, -1, 0.5, [], [1.0, "x"], {}):
            refused({name: wrong})
    for values in (
        {"since": good.values["since"] - 1}, {"since": good.values["since"] + 1}, {"t": 50},
        {"t": 52}, {"pending": None}, {"pending": [1, 2]}, {"episodes": 10**6},
        {"earned": [1.0, 2.0, 3.0]}, {"earned": [math.nan, 0.0]},
    ):  # fmt: skip
        refused(values)
    refused(arrays={})
    for place in (0, 40, 300, -1):
        damaged = good.arrays["runner"].copy()
        damaged[place] ^= 1
        refused(arrays={"runner": damaged})
    assert Turns.from_state(pack(good)).state() == agent.state()


def test_a_runner_is_told_what_was_seen():
    class Witness(wd.SWUCRL2CW):
        def observe(self, s, a, reward, s_next, seen=None):
            self.told = [*getattr(self, "told", []), seen]
            super().observe(s, a, reward, s_next, seen)

    class WitnessTurns(Turns):
        def _next_runner(self):
            runner, steps = super()._next_runner()
            options = {k: v for k, v in runner.configuration().items() if k != "space"}
            return Witness(self.space, **options), steps + 9

    relay = WitnessTurns(SPACE, horizon=T)
    for seen in ({"demand": 3}, None, {}):
        relay.act(0)
        relay.observe(0, 0, 0.5, 0, seen)
    assert relay.runner.told == [{"demand": 3}, None, {}]
    relay.act(0)
    with pytest.raises(InputError, match="seen: 3 does not say"):
        relay.observe(0, 0, 0.5, 0, 3)
