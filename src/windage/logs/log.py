"""`Log`: the steps somebody took in the past, as states, actions, rewards and next states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.logs.recoding import recoded, sorted_labels
from windage.validation import as_integer, as_range, as_real

if TYPE_CHECKING:
    from windage.logs.inspection import Inspection
    from windage.logs.reading import Rows
    from windage.logs.times import Gap
    from windage.models import DriftingMDP

__all__ = ["Log", "read_log"]


class Log:
    """Steps of the past in their order, in states and actions that occur.

    `read_log` makes one from a file, `Log.from_arrays` from columns. The time of a step is its
    number, from 1 on; lines that cannot be used have none.

    Attributes
    ----------
    space
        The states somebody acted in, each with the actions that were taken in it, by their names.
    pairs, rewards, nexts
        One entry a step: the pair of `space` that was played, the reward, the state it led to.
    reward_range
        The least and the largest reward, or as declared; a fitted model calls them 0 and 1. If all
        rewards are one number of [0, 1], it is [0, 1].
    lines, unusable, unusable_count
        How many lines were read; the first of those that could not be used, and how many.
    left_out
        Steps that lead to a state nobody ever acted in: nothing is known of what follows.
    notes
        What had to be assumed.
    """

    def __init__(self, rows: Rows, reward_range: tuple[float, float] | None) -> None:
        self.lines, self.unusable, self.notes = rows.lines, rows.unusable, list(rows.notes)
        self.unusable_count = rows.unusable_count
        self._clock = rows.clock
        found = recoded(rows)
        self.space, self.pairs, self.nexts, self.rewards, self._rows = found[:5]
        self.state_labels: list[int | str] = found.state_labels
        """What each state is called in the log."""
        self.action_labels = rows.action_labels
        """What actions are called in the log."""
        self.left_out = rows.states.size - self.pairs.size
        self.reward_range = _range(self.rewards, reward_range)

    @classmethod
    def from_arrays(
        cls,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        *,
        reward_range: tuple[float, float] | None = None,
    ) -> Log:
        """Return the log of columns of integers or words, and of rewards, in the order of time.

        >>> log = Log.from_arrays([0, 1, 0], ["buy", "wait", "wait"], [0.0, 1.0, 0.5], [1, 0, 1])
        >>> log.space.n_pairs, log.steps
        (3, 3)
        """
        from windage.logs.columnar import rows_of

        return cls(rows_of(states, actions, rewards, next_states), reward_range)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.pairs.size

    def when(self, step: int) -> str:
        """Return the time of a step, from 1 on, as the log writes it."""
        place = as_integer(step, "step", low=1, high=self.steps) - 1
        row = place if self._rows is None else int(self._rows[place])
        return self._clock.text(int(self._clock.at(np.array([row]))[0]))

    def gaps(self) -> list[Gap]:
        """Return where time is missing between two lines."""
        return self._clock.gaps()

    def breaks(self) -> int:
        """Return how often a step does not begin in the state the one before it led to."""
        states = self.space.state_of[self.pairs[1:]] if self.steps > 1 else np.empty(0)
        return int((states != self.nexts[:-1]).sum())

    def unseen(self) -> list[tuple[int, int | str]]:
        """Return states and actions that occur, but never together."""
        taken: dict[int, set[str]] = {}
        for pair in range(self.space.n_pairs):
            s, a = int(self.space.state_of[pair]), int(self.space.action_of[pair])
            taken.setdefault(s, set()).add(self.space.action_name(s, a))
        known = sorted_labels(self.action_labels)
        return [
            (s, label)
            for s in range(self.space.n_states)
            for label in known
            if str(label) not in taken[s]
        ]

    def scaled(self) -> NDArray[np.float64]:
        """Return the rewards with the range made [0, 1]."""
        low, high = self.reward_range
        return np.asarray((self.rewards - low) / (high - low))

    def fit(self, blocks: int | None = None) -> DriftingMDP:
        """Return a drifting model of the log: one model a stretch of time, blended between them.

        How many stretches is decided by which of 1, 2, 4, ... predicts best the half of the steps
        that it was not made from, unless it is given as `blocks`. The horizon is the number of
        steps.
        """
        from windage.logs.fitting import fit

        return fit(self, blocks).model

    def inspect(
        self, *, seed: int = 0, draws: int = 200, progress: Callable[[str], None] | None = None
    ) -> Inspection:
        """Return what can be said of the log: where it drifted and by how much.

        Parameters
        ----------
        seed
            Of the draws that show what a log of a world that stands still looks like.
        draws
            How many there are.
        progress
            Called with what is about to be done.
        """
        from windage.logs.inspection import inspect

        return inspect(self, seed, draws, progress)

    def preload(self, agent: Any, *, last: int | None = None, scale: bool = False) -> int:
        """Let an agent learn from the log before it starts; return how many steps it was given.

        States and actions are matched by name, and integers by number.

        Parameters
        ----------
        agent
            One that has `preload`, such as `windage.SWUCRL2CW`, and has not started to act.
        last
            How many of the last steps; all if not given.
        scale
            Whether to give rewards with `reward_range` made [0, 1], not as they stand in the log.
        """
        from windage.logs.warm import preload

        return preload(self, agent, last, scale)

    def __repr__(self) -> str:
        return f"Log({self.space!r}, steps={self.steps})"


def read_log(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    separator: str | None = None,
    reward_range: tuple[float, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Log:
    """Return the log in a CSV or Parquet file.

    Parameters
    ----------
    path
        A file that ends in `.parquet`, else it is read as CSV in UTF-8 with a header.
    columns
        Which column holds what, for those of t, state, action, reward and next_state that have
        other names: `{"reward": "profit"}`.
    separator
        What stands between cells; found out if not given.
    reward_range
        The least and the largest possible reward; those that occur if not given. It must be given
        for a log in which all rewards are one number outside of [0, 1].
    progress
        Called now and then with the lines read and the lines there are.
    """
    from windage.logs.reading import read_rows

    return Log(read_rows(Path(path), columns, separator, progress), reward_range)


def _range(rewards: NDArray[np.float64], given: tuple[float, float] | None) -> tuple[float, float]:
    low, high = float(rewards.min()), float(rewards.max())
    if given is None:
        return (low, high) if low < high else _range_of_one(low, rewards.size)
    declared = as_range(given, "reward_range")
    if low < declared[0] or high > declared[1]:
        as_real(
            low if low < declared[0] else high, "reward_range", low=declared[0], high=declared[1]
        )
    return declared


def _range_of_one(reward: float, count: int) -> tuple[float, float]:
    """Return the range of a log in which all rewards are the same."""
    if 0.0 <= reward <= 1.0:
        return 0.0, 1.0
    raise InputError(
        f"all {count:,} rewards are {reward:g}, which does not tell what else is possible",
        field="reward_range",
        fix="declare the least and the largest possible reward: reward_range=(low, high), or "
        "--range LOW,HIGH on the command line",
    )
