"""How the suite for agents plays with one, and how it says what it found."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from windage.simulators import Simulator
from windage.spaces import StateActions

__all__ = ["NotOffered", "Path", "asked", "play", "require", "saved"]

Path = list[tuple[int, int, float]]


class NotOffered(Exception):  # noqa: N818 - it is no error
    """A promise is about something the agent does not have, and need not have."""


def require(kept: object, finding: str, fix: str) -> None:
    """Raise what was found, and what to do about it, unless a promise was kept."""
    if not kept:
        raise AssertionError(f"{finding}. Fix: {fix}.")


def play(agent: Any, world: Simulator, steps: int) -> Path:
    """Let an agent act and observe; its actions must exist."""
    path = []
    for _ in range(steps):
        s, t = world.state, world.t
        a = asked(agent, world.space, s, t)
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        path.append((s, a, reward))
    return path


def asked(agent: Any, space: StateActions, s: int, t: int) -> int:
    """Return what the agent plays in a state; it must be one of the state's actions."""
    answer = agent.act(s)
    fix = f"return an integer from 0 to {space.counts[s] - 1}, an index into the actions of s={s}"
    require(
        not isinstance(answer, (bool, np.bool_)) and hasattr(answer, "__index__"),
        f"t={t}: act({s}) returned {answer!r}, which is no action",
        fix,
    )
    action = operator.index(answer)
    exists = 0 <= action < space.counts[s]
    require(exists, f"t={t}: act({s}) returned {action}, which s={s} does not offer", fix)
    return action


def saved(agent: Any) -> bytes | None:
    """Return the saved state of an agent that can be saved."""
    return agent.state() if callable(getattr(agent, "state", None)) else None
