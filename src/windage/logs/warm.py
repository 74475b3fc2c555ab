"""A warm start: the steps of a log, given to an agent before its first decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from windage.agents.optimistic.episodic import EpisodicAgent
from windage.errors import InputError
from windage.spaces import StateActions
from windage.validation import as_integer, shown

if TYPE_CHECKING:
    from windage.logs.log import Log

__all__ = ["preload"]


def preload(log: Log, agent: Any, last: int | None, scale: bool) -> int:
    """Let an agent learn from the last steps of a log; returns how many it was given.

    A learner that plans by episodes takes them in one compiled call, any other one by one.
    """
    if not callable(getattr(agent, "preload", None)):
        raise InputError(
            f"{type(agent).__name__} cannot be preloaded",
            field="agent",
            fix="pass an agent with preload(s, a, reward, s_next), such as wd.SWUCRL2CW",
        )
    count = log.steps if last is None else as_integer(last, "last", low=0, high=log.steps)
    states, actions = _matched(log, agent.space)
    low, high = log.reward_range if scale else (0.0, 1.0)
    taken = slice(log.steps - count, log.steps)
    rewards = (log.rewards[taken] - low) / (high - low)
    befores = states[log.space.state_of[log.pairs[taken]]]
    played, afters = actions[log.pairs[taken]], states[log.nexts[taken]]
    if getattr(type(agent), "preload", None) is EpisodicAgent.preload:
        agent.preload_all(agent.space.offsets[befores] + played, rewards, afters)
        return count
    columns = (befores, played, rewards, afters)
    for s, a, reward, after in zip(*(column.tolist() for column in columns), strict=True):
        agent.preload(s, a, reward, after)
    return count


def _matched(log: Log, space: StateActions) -> tuple[np.ndarray, np.ndarray]:
    """Return each state, and the action of each pair, as another space numbers them."""
    states = [
        _place(label, "state", space.state_names, space.n_states) for label in log.state_labels
    ]
    actions = []
    for pair in range(log.space.n_pairs):
        s = int(log.space.state_of[pair])
        name = log.space.action_name(s, int(log.space.action_of[pair]))
        there = states[s]
        names = None if space.action_names is None else space.action_names[there]
        label: int | str = int(name) if isinstance(log.action_labels[0], int) else name
        what = f"action of {space.describe_state(there)}"
        actions.append(_place(label, what, names, int(space.counts[there])))
    return np.array(states, np.int64), np.array(actions, np.int64)


def _place(label: int | str, what: str, names: Sequence[str] | None, count: int) -> int:
    if names is not None and str(label) in names:
        return list(names).index(str(label))
    if isinstance(label, int) and 0 <= label < count:
        return label
    raise InputError(
        f"{shown(label)} of the log is no {what}",
        field="agent.space",
        fix="make the agent with log.space, or name its states and actions as the log does",
    )
