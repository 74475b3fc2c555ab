"""Segments of a run in one compiled loop: an agent and the environment, step by step.

There is one loop. An agent is a NamedTuple; what it does is registered for its class: `act` returns
the pair to play (or -1 if it cannot), `observe` learns from the outcome. `Agent.play` in
`windage.agents.base` calls it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, variants
from windage.kernels.random import bits, split
from windage.kernels.simulator import AHEAD, draw_noise, land

PLAYED, NOT_CONVERGED, OUT_OF_RANGE = 0, 1, 2  # how `play` ended


@variants
def act(agent, t, s):
    """Return the pair to play at time t in state s; -1 if planning failed."""


@variants
def observe(agent, t, s, pair, reward, after, seen):
    """Learn from one step; `seen` is what it showed, as `simulator.Dynamics` has it."""


@variants
def memory_counts(agent, counts):
    """Write how many samples of every pair the agent remembers."""


@compiled
def play(agent, least, most, model, state, t, states, pairs, rewards, means):
    """Act, step, observe, for as many steps as fit; returns the state, the steps, how it ended.

    For every step it fills in the state s_t, the pair played, the reward R_t and its mean. It ends
    before a reward outside [least, most], which it leaves in `rewards`.
    """
    done = 0
    while done < states.size:
        last = min(done + AHEAD, states.size)
        draw_noise(model, t, means[done:last], pairs[done:last], rewards[done:last])
        for i in range(np.uint64(done), np.uint64(last)):
            spin, u, coin = means[i], pairs[i], rewards[i]
            pair = act(agent, t, state)
            if pair < 0:
                return state, np.int64(i), NOT_CONVERGED
            states[i] = state
            pairs[i] = pair
            means[i], reward, after = land(model, t, pair, spin, u, coin)
            rewards[i] = reward
            if not least <= reward <= most:
                return state, np.int64(i), OUT_OF_RANGE
            observe(agent, t, state, pair, reward, after, model.seen)
            state = after
            t += 1
        done = last
    return state, states.size, PLAYED


@compiled
def play_counting(
    agent, least, most, model, state, t, states, pairs, rewards, means, every, before, counts
):
    """`play`, and write the memory counts whenever the model's time is a multiple of `every`."""
    done = 0
    while done < states.size:
        past = t + model.ahead + done - 1  # steps of the environment so far
        last = min(states.size, done + every - past % every)
        state, n, how = play(
            agent, least, most, model, state, t + done,
            states[done:last], pairs[done:last], rewards[done:last], means[done:last],
        )  # fmt: skip
        if how != PLAYED:
            return state, done + n, how
        if (past + n) % every == 0:
            memory_counts(agent, counts[(past + n) // every - 1 - before])
        done = last
    return state, done, PLAYED


@compiled
def decide(agent, t, s):
    """`act`, called from Python."""
    return act(agent, t, s)


@compiled
def learn(agent, t, s, pair, reward, after, seen):
    """`observe`, called from Python."""
    observe(agent, t, s, pair, reward, after, seen)


@compiled
def replay(agent, t, states, learned, pairs, rewards, afters, seen, advised):
    """Act in every recorded state; learn from the steps that had an outcome.

    What it leaves behind is what act and observe, called by hand for every step, would have left.
    Fills in what the agent would have played, as pairs; returns the next time and how many steps
    were taken in: fewer than there are if a plan did not converge.
    """
    for i in range(states.size):
        advised[i] = act(agent, t, states[i])
        if advised[i] < 0:
            return t, i
        if learned[i]:
            observe(agent, t, states[i], pairs[i], rewards[i], afters[i], seen[i])
            t += 1
    return t, states.size


PROGRESS = np.dtype(
    [
        ("taken", np.int64),  # steps learned from
        ("state", np.int64),  # the one the last of them led to
        ("clipped", np.int64),  # rewards that were clipped
    ],
    align=True,
)


class Census(NamedTuple):
    """How many samples of every pair an agent remembered, counted every so many steps of a run.

    The last time is that of the run's last step, whether it is a multiple of `every` or not.
    """

    every: int
    times: NDArray[np.int64]
    counts: NDArray[np.int64]  # [times, pairs]

    @property
    def before(self) -> int:
        """How many multiples of `every` lie before the first time."""
        return int(self.times[0] - 1) // self.every


class Block(NamedTuple):
    """Consecutive steps of a run, as a compiled loop fills them."""

    states: NDArray[np.int32]
    pairs: NDArray[np.int64]
    rewards: NDArray[np.float64]
    means: NDArray[np.float64]
    census: Census | None = None  # of the whole run, for loops that count what they remember

    @property
    def columns(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """What every loop fills."""
        return self[:4]

    @classmethod
    def empty(cls, n: int, census: Census | None = None) -> Block:
        """Return room for n steps."""
        return cls(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n), np.empty(n), census)

    def head(self, n: int) -> Block:
        """Return the first n steps, sharing memory."""
        return self.part(0, n)

    def part(self, first: int, last: int) -> Block:
        """Return the steps from `first` up to before `last`, sharing memory."""
        here = slice(first, last)
        states, pairs, rewards, means = self.columns
        return Block(states[here], pairs[here], rewards[here], means[here], self.census)


class Uniform(NamedTuple):
    """An agent that plays every action with equal probability."""

    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]  # actions of each state
    key: NDArray[np.uint64]


class Policies(NamedTuple):
    """An agent that plays a given policy at each time: policies[t - first, state] is a pair."""

    policies: NDArray[np.int64]
    first: int


@act.register(Uniform, forceinline=True)
def _any_action(agent, t, s):
    action, _ = split(bits(agent.key, t, 0), np.uint64(agent.counts[np.uint64(s)]))
    return agent.offsets[np.uint64(s)] + np.int64(action)


@act.register(Policies, forceinline=True)
def _given_action(agent, t, s):
    return agent.policies[t - agent.first, s]


@observe.register(Uniform, forceinline=True)
def _learn_nothing(_agent, _t, _s, _pair, _reward, _after, _seen):
    pass


@observe.register(Policies, forceinline=True)
def _learn_nothing_either(_agent, _t, _s, _pair, _reward, _after, _seen):
    pass
