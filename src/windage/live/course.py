"""How a live agent has done over time: what came in, and what it hoped for when it planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windage.agents.episodes import Planner
from windage.agents.replay import replay
from windage.live.history import bases, history, of_name, started
from windage.live.journal import Journal

__all__ = ["Course", "course"]


@dataclass(frozen=True)
class Course:
    """Rewards learned from, in the user's units and in the order of their steps.

    Attributes
    ----------
    rewards
        One a step.
    since
        The step from which the present configuration acts.
    starts, gains, vacuous
        Of each episode since then: its first step, the gain it hoped for, and the share of pairs of
        whose transitions it knew nothing. Empty for agents that do not plan.
    direction
        "profit" or "cost".
    """

    rewards: NDArray[np.float64]
    since: int
    starts: NDArray[np.int64]
    gains: NDArray[np.float64]
    vacuous: NDArray[np.float64]
    direction: str

    def smoothed(self, width: int) -> NDArray[np.float64]:
        """Return the mean of the last `width` rewards at every step, of all while there are fewer.

        >>> none = np.empty(0)
        >>> Course(np.array([4.0, 0, 2]), 1, none, none, none, "cost").smoothed(2).tolist()
        [4.0, 2.0, 1.0]
        """
        sums = np.concatenate([[0.0], np.cumsum(self.rewards)])
        ends = np.arange(1, self.rewards.size + 1)
        first = np.maximum(ends - width, 0)
        return np.asarray((sums[ends] - sums[first]) / (ends - first))


def course(path: str | Path, name: str | None = None) -> Course:
    """Return how an agent of a journal has done so far."""
    journal = Journal(path)
    try:
        base = of_name(bases(journal), name)
        past = history(journal, base.agent, 0, journal.n)
        agent = started(journal, base)
        units = base.created.units(agent)
        recent = past.part(past.ids > base.n)
        ended = int(recent.ended.sum())
        replay(agent, recent.steps(agent.space, units).part(0, ended))
        since = int(past.learned[past.ids <= base.n].sum()) + 1
        rows = agent.episode_rows(1) if isinstance(agent, Planner) else None
    finally:
        journal.close()
    nothing: NDArray[np.float64] = np.empty(0)
    return Course(
        past.rewards[past.learned],
        since,
        rows["start"] + since - 1 if rows is not None else nothing.astype(np.int64),
        np.asarray(units.outward(rows["gain"])) if rows is not None else nothing,
        rows["vacuous"] if rows is not None else nothing,
        base.created.direction,
    )
