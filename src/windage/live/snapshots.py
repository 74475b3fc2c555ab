"""When an agent is kept as it is, so that opening its journal again is quick.

A snapshot is a cache: without it, or with a damaged one, the same agent comes out of the history.
"""

from __future__ import annotations

import math

from windage.agents import Agent
from windage.live.history import reach
from windage.live.writer import Writer

__all__ = ["Snapshots"]

STEPS = 1000  # between two of them: replayed in a few milliseconds
BYTES = 100  # a step: large agents are kept less often
KEPT = 4  # of an agent that forgets nothing


class Snapshots:
    """Counts the steps of one agent until the next snapshot is due."""

    def __init__(self) -> None:
        self._due = STEPS

    def pass_by(self, steps: int) -> None:
        """Count steps at whose end the agent is not kept."""
        self._due -= steps

    def keep(self, journal: Writer, number: int, agent: Agent, step: int, steps: int = 1) -> None:
        """Count steps of agent `number`, the last of them `step`, and keep it if it is time to.

        Old snapshots are dropped, but for those a late reward may need.
        """
        self._due -= steps
        if self._due > 0:
            return
        state = agent.state()
        self._due = max(STEPS, len(state) // BYTES)
        journal.keep(number, step, state)
        kept = [s for (s,) in journal.all(
            "SELECT step FROM snapshots WHERE agent = ? ORDER BY step DESC", number
        )]  # fmt: skip
        far = reach(agent)
        needed = int(far / self._due) + 2 if far < math.inf else KEPT
        if len(kept) > needed:
            journal.drop(number, "< ?", kept[needed - 1])
