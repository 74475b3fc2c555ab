"""How learners forget: a window over the last samples, or restarts at given times.

Each can be combined with any way to plan: `class SWPSRL(Windowed, PSRL)`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.agents.episodic import EpisodicAgent
from windage.agents.fixed import fixed
from windage.agents.hearing import warn
from windage.agents.known import Budgets
from windage.agents.pace import Pace
from windage.confidence.window import as_restarts
from windage.errors import InputError, ParameterWarning
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_horizon, as_integer, require_memory

__all__ = ["Restarted", "Windowed", "cubic_restarts", "restart_times"]


@fixed("window")
class Windowed(EpisodicAgent):
    """A learner that remembers the last `window` samples."""

    def __init__(self, space: StateActions, *, horizon: int, window: int, **options: Any) -> None:
        self.window = as_integer(window, "window", low=1, high=LAST_TIME)
        super().__init__(space, horizon=horizon, **options)

    def _pace(self) -> Pace:
        return Pace(width=self.window)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"window": self.window}


@fixed("restarts")
class Restarted(EpisodicAgent):
    """A learner that forgets everything at the times `restarts`."""

    found: ClassVar[tuple[str, ...]] = ("restarts",)

    def __init__(
        self, space: StateActions, *, horizon: int, restarts: ArrayLike | int, **options: Any
    ) -> None:
        self.restarts = restart_times(restarts, horizon)
        super().__init__(space, horizon=horizon, **options)
        self._warn_of_haste()

    def _pace(self) -> Pace:
        return Pace(restarts=self.restarts)

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; `restarts` may be "tuned" or "changes".

        "tuned" needs the number of changes, "changes" restarts at each of them: both take budgets.
        """
        word = options.pop("restarts", None)
        times = configured_restarts("tuned" if word is None else word, horizon, budgets)
        return cls(space, horizon=horizon, restarts=times, **options)

    @classmethod
    def told_with(cls, options: dict[str, Any], budgets: Budgets | None) -> tuple[str, ...]:
        """Return what an agent is told: how often the model changes, when, or nothing."""
        word = options.get("restarts", "tuned")
        if isinstance(word, str) and word == "changes":
            return ("the times of the changes",)
        return super().told_with(options, budgets)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"restarts": self.restarts.tolist()}

    def _warn_of_haste(self) -> None:
        """Say that an agent restarts too often to learn anything."""
        if self.restarts.size * self.space.n_pairs > self.horizon:
            warn(
                f"{self.restarts.size} restarts in {self.horizon} steps leave less than a step for "
                "each pair: nothing can be learned in between",
                ParameterWarning,
                stacklevel=3,
            )


def cubic_restarts(changes: int, horizon: int) -> NDArray[np.int64]:
    """Return the times ceil(i^3 / l^2) after 1, for l changes: phases that slowly grow.

    >>> cubic_restarts(2, 20).tolist()
    [2, 7, 16]
    """
    T = as_horizon(horizon, error=InputError)
    l = as_integer(changes, "changes", low=0, high=T)  # noqa: E741 - the paper's letter
    if l == 0:
        return np.empty(0, np.int64)
    last = int((T * l * l) ** (1 / 3)) + 2
    require_memory(64 * last, "restarts", fix="restart at a fixed period")
    i = np.arange(1, last + 1)
    # i^3 / l^2 in whole numbers below 2^63: i^2 = (a l + b) l + c, and so on
    rows, rest = np.divmod(i * i, l * l)
    a, b = np.divmod(rest, l)
    whole, more = np.divmod(i * a, l)
    carried, left = np.divmod(i * b, l)
    extra, over = np.divmod(more + carried, l)
    times = i * rows + whole + extra + ((over > 0) | (left > 0))
    return times[(np.diff(times, prepend=1) > 0) & (times <= T)]  # they rise, some stand still


def restart_times(value: ArrayLike | int, horizon: int) -> NDArray[np.int64]:
    """Return the times of restarts: those given, or all multiples of a period plus 1."""
    T = as_horizon(horizon, error=InputError)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        period = as_integer(value, "restarts", low=1)
        require_memory(8 * (T // period), "restarts", fix="choose a longer period")
        return np.arange(1 + period, T + 1, period)
    return as_restarts(value)


def configured_restarts(
    word: ArrayLike | str, horizon: int, budgets: Budgets | None
) -> ArrayLike | int:
    """Return the times that a word such as "tuned" or "changes" stands for."""
    if not isinstance(word, str):
        return word
    if word not in ("tuned", "changes"):
        raise InputError(
            f"{word!r} is unknown",
            field="restarts",
            fix='pass times, a period, "tuned" or "changes"',
        )
    found: Any = getattr(budgets, "change_times" if word == "changes" else "changes", None)
    if found is None:  # asked once: it takes a pass over the model
        raise InputError(
            f'is "{word}", and it is not known how often the model changes',
            field="restarts",
            fix="pass budgets=model.budgets(), or restarts=[times]",
        )
    times: ArrayLike | int = found if word == "changes" else cubic_restarts(found, horizon)
    return times
