"""A recorded history, taken in by an agent as if it had lived through it.

Learners that have a compiled loop replay in one as well, a hundred times faster than by act and
observe and to the same bit; any other agent is called step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.meta.delegating import Relay
from windage.agents.optimistic.episodic import EpisodicAgent

__all__ = ["Steps", "replay"]


class Steps(NamedTuple):
    """Steps in the order they were decided; rewards in the agent's units.

    A step that was never learned from was decided and withdrawn; its outcome is not looked at.
    `seen` has what `Agent.observe` is told of each step, None if it is told nothing of any.
    """

    states: NDArray[np.int64]
    learned: NDArray[np.bool_]
    pairs: NDArray[np.int64]
    rewards: NDArray[np.float64]
    afters: NDArray[np.int64]
    seen: Sequence[Mapping[str, Any] | None] | None = None

    def part(self, first: int, last: int | None = None) -> Steps:
        """Return the steps from `first` up to before `last`, sharing memory."""
        here = slice(first, last)
        return Steps(
            self.states[here],
            self.learned[here],
            self.pairs[here],
            self.rewards[here],
            self.afters[here],
            None if self.seen is None else self.seen[here],
        )


def replay(agent: Agent, steps: Steps) -> NDArray[np.int64]:
    """Let an agent live through recorded steps; returns what it would have played, as pairs.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=500)
    >>> agent = wd.UCRL2(model.space, horizon=500)
    >>> run = wd.run(model, agent, seed=1)
    >>> pairs = model.space.offsets[run.states[:-1]] + run.actions
    >>> lived = Steps(run.states[:-1], np.full(500, True), pairs, run.rewards, run.states[1:])
    >>> twin = wd.UCRL2(model.space, horizon=500)
    >>> bool((replay(twin, lived) == pairs).all()), twin.state() == agent.state()
    (True, True)
    """
    if not agent.has_loop():
        return _step_by_step(agent, steps)
    if isinstance(agent, EpisodicAgent) and agent.replays:
        return _compiled(agent, steps)
    if isinstance(agent, Relay):
        return _in_turn(agent, steps)
    return _step_by_step(agent, steps)


def _step_by_step(agent: Agent, steps: Steps) -> NDArray[np.int64]:
    space = agent.space
    advised = np.zeros(steps.states.size, np.int64)
    actions = space.action_of[steps.pairs].tolist()
    columns = (steps.states, steps.learned, steps.rewards, steps.afters)
    for i, (s, learned, reward, after) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        advised[i] = space.pair(s, agent.act(s))
        if learned:
            told = None if steps.seen is None else steps.seen[i]
            agent.observe(s, actions[i], reward, after, *(() if told is None else (told,)))
        else:
            agent.withdraw()
    return advised


def _compiled(agent: EpisodicAgent, steps: Steps) -> NDArray[np.int64]:
    from windage.kernels.rollout import replay as run

    advised = np.zeros(steps.states.size, np.int64)
    agent._make_room_to_remember(int(steps.learned.sum()))
    agent._make_room_to_log(steps.states.size)
    columns = map(np.ascontiguousarray, steps[:5])
    nothing = np.zeros((steps.states.size, 0, 2), np.int64)
    with agent.in_step():
        t, done = run(agent._learner, agent.t, *columns, nothing, advised)
        _advance(agent, steps.part(0, done), advised)
        assert agent.t == t
    if done < steps.states.size:
        raise agent._not_converged()
    return advised


def _in_turn(agent: Relay, steps: Steps) -> NDArray[np.int64]:
    """Let each runner of a relay replay its own steps."""
    advised = np.zeros(steps.states.size, np.int64)
    done = 0
    while done < steps.states.size:
        runner = agent._ready()
        ends = np.cumsum(steps.learned[done:]) == agent._until - agent.t
        last = done + int(np.argmax(ends)) + 1 if ends.any() else steps.states.size
        part = steps.part(done, last)
        advised[done:last] = replay(runner, part)
        lived = part.learned
        if lived.any():
            rewards = np.ascontiguousarray(part.rewards[lived])
            agent._enter(part.pairs[lived], rewards, part.afters[lived])
        _advance(agent, part, advised[done:last])
        done = last
    return advised


def _advance(agent: Agent, steps: Steps, advised: NDArray[np.int64]) -> None:
    """Set the clock and the counts every agent has after so many steps."""
    lived = np.flatnonzero(steps.learned)
    agent.t += lived.size
    agent.overridden += int((steps.pairs[lived] != advised[: steps.states.size][lived]).sum())
    if lived.size:
        agent.last_state = int(steps.afters[lived[-1]])
