"""What MASTER keeps and shows: copies of a learner, the episodes of all of them, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.alarms import Reach, Restart, Tally
from windage.agents.episodes import REASONS, Episode, Episodes, no_rows
from windage.validation import as_integer, as_real

if TYPE_CHECKING:
    from windage.agents.ucrl2 import AdaptiveUCRL

__all__ = ["Copy", "LiveCopy", "MasterExplanation", "Planned", "is_drawn", "starts"]

_EPISODES_KEPT = (1 << 14) + 8  # more than a run plays between two looks at them


@dataclass
class Copy:
    """A learner of its own for the 2^order steps from `start` on; it sleeps while a shorter lives.

    `episodes` and `gain` are those of its learner when it last acted.
    """

    order: int
    start: int
    learner: AdaptiveUCRL
    episodes: int = 0
    gain: float = math.nan

    def is_live(self, t: int, since: int) -> bool:
        """Whether it was scheduled for time t, in the block that began at `since`."""
        return since <= self.start <= t < self.start + (1 << self.order)

    def seen(self, horizon: int) -> LiveCopy:
        """Return it as one may look at it."""
        end = min(self.start + (1 << self.order) - 1, horizon)
        return LiveCopy(self.order, self.start, end, acted=self.learner.t - 1)

    def room(self) -> float:
        """Return how many bytes its learner may come to need."""
        parts = self.learner._learner
        arrays = [*parts.memory, *parts.plan, *parts.drawn, parts.log]
        return float(sum(a.nbytes for a in arrays if isinstance(a, np.ndarray)))


def starts(key: NDArray[np.uint64], t: int, tally: Tally) -> list[int]:
    """Return the orders of the copies that start at t."""
    tau = t - tally.start
    longest = tally.order if tau == 0 else (tau & -tau).bit_length() - 1
    return [order for order in range(longest + 1) if is_drawn(key, t, order, tally)]


def is_drawn(key: NDArray[np.uint64], t: int, order: int, tally: Tally) -> bool:
    """Whether a copy is scheduled at t, in the current block: rho(2^n) / rho(2^m) of the time.

    The constant of rho(t) = c / sqrt(t) cancels.
    """
    from windage.kernels.random import uniform

    lower = tally.order - order
    return lower == 0 or float(uniform(key, t, order)) < 2.0 ** (-0.5 * lower)


@dataclass(frozen=True)
class LiveCopy:
    """A copy as one may look at it: when it lives, both ends included, and the steps it acted."""

    order: int
    start: int
    end: int
    acted: int


class Planned:
    """The last episodes of all copies in the order they were planned: number m in row m % size."""

    def __init__(self, horizon: int) -> None:
        self._rows = np.zeros(min(_EPISODES_KEPT, horizon + 8), no_rows().dtype)
        self._since = 1  # rows before this one were not saved
        self.total = 0
        """How many there have been."""

    def add(self, row: NDArray[np.void], t: int, reason: int) -> None:
        """List an episode planned at t; the one listed before ends here, for this reason.

        At one time one is planned at most: to list it again changes nothing.
        """
        last = self._rows[self.total % self._rows.size]
        if self.total > 0 and last["start"] == t:
            return
        if self.total > 0:
            last["length"], last["reason"] = t - last["start"], reason
        place = (self.total + 1) % self._rows.size
        self._rows[place] = row
        self._rows[place]["start"] = t
        self.total += 1

    def rows(self, first: int) -> NDArray[np.void]:
        """Return those from number `first` on that are kept; the last has no length yet."""
        oldest = max(1, self._since, self.total - self._rows.size + 1)
        return self._rows[np.arange(max(first, oldest), self.total + 1) % self._rows.size]

    def current(self, t: int) -> Episode | None:
        """Return the one planned last, as it stands before step t."""
        rows = self.rows(self.total)
        rows["length"] = t - rows["start"]
        return Episodes(rows)[0] if rows.size else None

    def saved(self) -> dict[str, Any]:
        """Return how many there were, and the last."""
        return {"episodes": self.total, "episode": [row.item() for row in self.rows(self.total)]}

    def restore(self, saved: dict[str, Any], t: int) -> None:
        """Take back what was saved before step t + 1."""
        self.total = as_integer(saved["episodes"], "episodes", low=0)
        self._since = max(1, self.total)
        if len(saved["episode"]) != min(self.total, 1):
            raise ValueError("episode")
        for start, length, reason, sweeps, ties, *rest in saved["episode"]:
            integers = [
                as_integer(start, "start", low=1, high=t),
                as_integer(length, "length", low=0, high=0),
                as_integer(reason, "reason", low=0, high=len(REASONS) - 1),
                as_integer(sweeps, "sweeps", low=0),
                as_integer(ties, "ties", low=0),
            ]
            gain, span, vacuous = (as_real(value, "episode") for value in rest)
            self._rows[self.total % self._rows.size] = (*integers, gain, span, vacuous)


@dataclass(frozen=True)
class MasterExplanation:
    """What MASTER does now, and why.

    Attributes
    ----------
    t, order, start
        The time of the next or waiting decision, and the block it lies in: 2^order steps.
    copies, acting
        The copies that live now, and the order of the one that acts: the shortest.
    lowest_gain
        U_t, the least optimistic gain of the block so far; infinite before its first step.
    missed, threshold
        Test 2 so far: mean of optimistic gain minus reward, and what would be too much.
    fired, restarts
        How often each test has fired, and the last restarts.
    reach
        Whether the tests can fire before the horizon.
    learner
        What the copy that acts says of the state that was asked about.
    """

    t: int
    order: int
    start: int
    copies: tuple[LiveCopy, ...]
    acting: int
    lowest_gain: float
    missed: float
    threshold: float
    fired: dict[int, int]
    restarts: tuple[Restart, ...]
    reach: tuple[Reach, Reach]
    learner: object

    def __str__(self) -> str:
        steps = self.t - self.start
        lines = [f"t = {self.t}, block of 2^{self.order} steps since t = {self.start}"]
        lines.append("order      start        end  acted")
        for copy in self.copies:
            mark = "*" if copy.order == self.acting else " "
            lines.append(f"{copy.order:5}{mark} {copy.start:10} {copy.end:10} {copy.acted:6}")
        lines.append("* acts, being the shortest; the others sleep")
        if steps > 0:
            lines.append(
                f"in {steps} steps the least optimistic gain was {self.lowest_gain:.4g}; gains "
                f"exceeded rewards by {self.missed:.4g} on average, {self.threshold:.4g} would be "
                "too much"
            )
        lines.append(f"test 1 has fired {self.fired[1]} times, test 2 {self.fired[2]} times")
        if self.restarts:
            last = self.restarts[-1]
            lines.append(
                f"last restart: after t = {last.t} by test {last.test}, {last.value:.4g} >= "
                f"{last.threshold:.4g}"
            )
        lines += [*map(str, self.reach), "the copy that acts counts its own steps only:"]
        return "\n".join([*lines, str(self.learner)])
