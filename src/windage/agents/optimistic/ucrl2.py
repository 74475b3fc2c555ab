"""UCRL2 and its relatives without restarts: the same learner, other memory or other sets.

UCRL2 (Jaksch, Ortner, Auer 2010) remembers everything and assumes that the model does not change;
on one that drifts it is the baseline that forgets nothing. SW-UCRL (Gajane, Ortner, Auer 2018) has
the same radii over a window, UCRL2B (Fruit, Pirotta, Lazaric 2020) tighter sets. Episodes end by
the doubling rule alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.agents.base import Agent
from windage.agents.optimistic.base import OptimisticAgent, OptimisticOptions
from windage.agents.optimistic.episodic import EpisodicAgent, Pace
from windage.confidence import tuning
from windage.confidence.confidence import one_each
from windage.confidence.tuning import Budgets, chosen, is_left_open, tunings
from windage.confidence.window import as_restarts
from windage.errors import InputError, ParameterWarning, warn
from windage.spaces import StateActions, as_space
from windage.validation import (
    LAST_TIME,
    as_flag,
    as_horizon,
    as_integer,
    as_real,
    require_memory,
    shown,
)

__all__ = [
    "SWUCRL",
    "UCRL2",
    "UCRL2B",
    "AdaptiveUCRL",
    "BudgetWindowed",
    "Restarted",
    "RestartedUCRL2",
    "VariationAwareUCRL",
    "Windowed",
    "cubic_restarts",
    "restart_times",
]


class Windowed(Agent):
    """A learner that remembers the last `window` samples."""

    def __init__(self, space: StateActions, *, horizon: int, window: int, **options: Any) -> None:
        self.window = as_integer(window, "window", low=1, high=LAST_TIME)
        super().__init__(space, horizon=horizon, **options)

    def _keeps(self) -> int:
        return self.window


class BudgetWindowed(Windowed):
    """A learner over a window whose length is found from budgets: that of Theorem 1."""

    requires: ClassVar[tuple[str, ...]] = ("B_r", "B_p")
    auto_tuned: ClassVar[tuple[str, ...]] = ("window",)

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; `window` may be "tuned" or "oblivious"."""
        word = options.get("window")
        if word is None or isinstance(word, str):
            best = chosen(word, "window", tunings(space, horizon, budgets))
            options["window"] = tuning.as_window(best.window, horizon)
        return cls(space, horizon=horizon, **options)


class Restarted(EpisodicAgent):
    """A learner that forgets everything at the times `restarts`."""

    auto_tuned: ClassVar[tuple[str, ...]] = ("restarts",)

    def __init__(
        self, space: StateActions, *, horizon: int, restarts: ArrayLike | int, **options: Any
    ) -> None:
        self.restarts = restart_times(restarts, horizon)
        super().__init__(space, horizon=horizon, **options)
        if self.restarts.size * self.space.n_pairs > self.horizon:
            warn(
                f"{self.restarts.size} restarts in {self.horizon} steps leave less than a step for "
                "each pair: nothing can be learned in between",
                ParameterWarning,
            )

    def _pace(self) -> Pace:
        return replace(super()._pace(), restarts=self.restarts)

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; `restarts` may be "tuned" or "changes".

        "tuned" needs the number of changes, "changes" restarts at each of them: both take budgets.
        """
        word = options.pop("restarts", None)
        word = "tuned" if word is None else word
        options["restarts"] = configured_restarts(word, horizon, budgets)
        return cls(space, horizon=horizon, **options)

    @classmethod
    def requires_with(cls, options: dict[str, Any], budgets: Budgets | None) -> tuple[str, ...]:
        """Return what the agent requires: how often the model changes, when, or nothing."""
        word = options.get("restarts", "tuned")
        if isinstance(word, str) and word == "changes":
            return ("the times of the changes",)
        return super().requires_with(options, budgets)


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


class UCRL2(OptimisticAgent):
    """UCRL2, for models that stay as they are.

    Parameters
    ----------
    clip
        Whether optimistic rewards stop at 1. The original does not clip, and a pair with few
        visits then looks better than any reward there is.

    The other parameters are those of `SWUCRL2CW`; the radii default to UCRL2's own.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=1000)
    >>> run = wd.run(model, UCRL2(model.space, horizon=1000), seed=1)
    >>> bool((run.episodes.reason[:-1] == "visits").all())
    True
    """

    id: ClassVar[str] = "ucrl2"
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "D S sqrt(A T log T), no drift"
    source: ClassVar[str] = "Jaksch, Ortner, Auer 2010"
    default_radii: ClassVar[str] = "ucrl2"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        clip: bool = False,
        **options: Unpack[OptimisticOptions],
    ) -> None:
        self.clip = as_flag(clip, "clip")
        super().__init__(space, horizon=horizon, **options)


class SWUCRL(Windowed, UCRL2):
    """SW-UCRL: UCRL2's radii over the last W samples, for a known number of changes.

    Parameters
    ----------
    window
        W; `tuned` finds the one of its theorem, which needs the number of changes and a bound on
        the diameter (constants recalled).

    The other parameters are those of `UCRL2`.

    Examples
    --------
    >>> SWUCRL.tuned(StateActions([2, 2]), horizon=10**6, changes=10, diameter=2.0).window
    113701
    """

    id: ClassVar[str] = "sw-ucrl"
    requires: ClassVar[tuple[str, ...]] = ("l", "D")
    auto_tuned: ClassVar[tuple[str, ...]] = ("window",)
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "(l D^2 S^2 A log T)^(1/3) T^(2/3), l changes"
    source: ClassVar[str] = "Gajane, Ortner, Auer 2018, constants recalled"

    @classmethod
    def tuned(
        cls,
        space: StateActions,
        *,
        horizon: int,
        changes: int,
        diameter: float,
        delta: float = 0.05,
        **options: Any,
    ) -> Self:
        """Return the agent with W* = (16.53 T D S sqrt(A ln(T/delta)) / l)^(2/3)."""
        T = as_horizon(horizon, error=InputError)
        l = as_integer(changes, "changes", low=0)  # noqa: E741 - the paper's letter
        D = max(1.0, as_real(diameter, "diameter", low=0.0))  # one state has 0, and W* would be 0
        level = as_real(delta, "delta", low=0.0, high=1.0, open_low=True, open_high=True)
        S, A = as_space(space).n_states, space.mean_actions
        window = T
        if l > 0:
            best = (16.53 * T * D * S * math.sqrt(A * math.log(T / level)) / l) ** (2 / 3)
            window = tuning.as_window(best, T)
        return cls(space, horizon=T, window=window, delta=delta, **options)

    @classmethod
    def configured(
        cls,
        space: StateActions,
        *,
        horizon: int,
        budgets: Budgets | None = None,
        diameter: float | None = None,
        **options: Any,
    ) -> Self:
        """Return the agent for these options; a window that is not given is that of `tuned`."""
        if not is_left_open(options.get("window")):
            return cls(space, horizon=horizon, **options)
        options.pop("window", None)
        if not hasattr(budgets, "changes") or diameter is None:
            raise InputError(
                'is "tuned", and the number of changes and the diameter are not both known',
                field="window",
                fix="pass budgets=model.budgets() and diameter=model.max_diameter().upper, "
                "or a window",
            )
        changes = budgets.changes  # type: ignore[union-attr]
        return cls.tuned(space, horizon=horizon, changes=changes, diameter=diameter, **options)


class UCRL2B(UCRL2):
    """UCRL2 with boxes of empirical Bernstein bounds instead of L1 balls; rewards clipped at 1.

    The parameters are those of `UCRL2`; the constants of the bounds are recalled.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=1000)
    >>> wd.run(model, UCRL2B(model.space, horizon=1000), seed=1).steps
    1000
    """

    id: ClassVar[str] = "ucrl2b"
    bound: ClassVar[str] = "sqrt(D Gamma S A T log T), no drift; Gamma next states a pair"
    source: ClassVar[str] = "Fruit, Pirotta, Lazaric 2020, constants recalled"
    default_radii: ClassVar[str] = "bernstein"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        clip: bool = True,
        **options: Unpack[OptimisticOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, clip=clip, **options)


class AdaptiveUCRL(UCRL2):
    """UCRL whose widening adapts to a bound on the span: the base learner of MASTER.

    Each episode plans with the least widening of a ladder under which the optimistic bias has a
    span of at most twice the diameter. The largest, 2, always has one of at most 1.

    Parameters
    ----------
    diameter
        A bound on the diameter of every model.
    ladder
        Rising widenings to try; the last one is taken whatever its span.

    The other parameters are those of `UCRL2`; rewards are clipped at 1.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine", horizon=1000)
    >>> agent = AdaptiveUCRL(model.space, horizon=1000, diameter=2.0)
    >>> run = wd.run(model, agent, seed=1)
    >>> bool((run.episodes.span <= 4.0 * 2).all())
    True
    """

    id: ClassVar[str] = "ucrl-acw"
    requires: ClassVar[tuple[str, ...]] = ("D",)
    bound: ClassVar[str] = "D S sqrt(A T log T), and D times the drift"
    source: ClassVar[str] = "Wei, Luo 2021, constants recalled"

    LADDER: ClassVar[tuple[float, ...]] = (0.0, *(2.0**-k for k in range(6, -2, -1)))

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        diameter: float,
        ladder: tuple[float, ...] = LADDER,
        clip: bool = True,
        **options: Unpack[OptimisticOptions],
    ) -> None:
        self.diameter = as_real(diameter, "diameter", low=0.0)
        given: Any = ladder
        steps = given if isinstance(given, (tuple, list)) else ()
        self.ladder = tuple(as_real(eta, "ladder", low=0.0) for eta in steps)
        if not self.ladder or list(self.ladder) != sorted(set(self.ladder)):
            raise InputError(
                f"{shown(ladder)} does not rise", field="ladder", fix="pass a list of widenings"
            )
        super().__init__(space, horizon=horizon, clip=clip, **options)

    def _rules(self) -> dict[str, Any]:
        adaptive = {"ladder": np.array(self.ladder), "most_span": 2.0 * self.diameter}
        return super()._rules() | adaptive


class RestartedUCRL2(Restarted, UCRL2):
    """UCRL2 that starts anew at given times (Jaksch, Ortner, Auer 2010, section 5).

    Parameters
    ----------
    restarts
        Rising times, from 2 on, at which everything is forgotten; or a period P for the times
        1 + P, 1 + 2 P, ... `tuned` takes the times ceil(i^3 / l^2) for l known changes.

    The other parameters are those of `UCRL2`; delta is that of each phase.

    Examples
    --------
    >>> agent = RestartedUCRL2.tuned(StateActions([2, 2]), horizon=100, changes=2)
    >>> agent.restarts.tolist()
    [2, 7, 16, 32, 54, 86]
    """

    id: ClassVar[str] = "ucrl2-restarts"
    requires: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "l^(1/3) T^(2/3) D S sqrt(A log T), l changes"
    source: ClassVar[str] = "Jaksch, Ortner, Auer 2010, constants recalled"

    @classmethod
    def tuned(cls, space: StateActions, *, horizon: int, changes: int, **options: Any) -> Self:
        """Return the agent for l = `changes` known changes, that restarts at ceil(i^3 / l^2)."""
        return cls(space, horizon=horizon, restarts=cubic_restarts(changes, horizon), **options)


class VariationAwareUCRL(OptimisticAgent):
    """UCRL with restarts whose sets are as much wider as the model varies in each phase.

    It must be told B_r and B_p of every phase, the truth, so it is an informed baseline: the
    widening of SWUCRL2-CW with the exact local budget, for rewards too (Ortner, Gajane, Auer 2019).

    Parameters
    ----------
    restarts
        Times at which phases begin; the first begins at t = 1.
    reward_variation, transition_variation
        B_r and B_p of every phase, one number more than restarts. `informed` finds them.

    The other parameters are those of `SWUCRL2CW`.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine", horizon=1000)
    >>> agent = VariationAwareUCRL.informed(model.space, horizon=1000, budgets=model.budgets())
    >>> agent.restarts.tolist()[:3]
    [2, 3, 4]
    """

    id: ClassVar[str] = "va-ucrl"
    requires: ClassVar[tuple[str, ...]] = ("B_r", "B_p")
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "(B_r + B_p)^(1/3) T^(2/3) D S sqrt(A), told the budgets of every phase"
    source: ClassVar[str] = "Ortner, Gajane, Auer 2019, constants recalled"
    derived: ClassVar[tuple[str, ...]] = ("clip",)
    default_radii: ClassVar[str] = "varying"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        restarts: ArrayLike | int,
        reward_variation: ArrayLike,
        transition_variation: ArrayLike,
        **options: Unpack[OptimisticOptions],
    ) -> None:
        self.restarts = restart_times(restarts, horizon)
        phases = self.restarts.size + 1
        self.reward_variation = one_each(reward_variation, "reward_variation", phases, "phase")
        self.transition_variation = one_each(
            transition_variation, "transition_variation", phases, "phase"
        )
        self.clip = True
        super().__init__(space, horizon=horizon, **options)

    def _pace(self) -> Pace:
        return Pace(restarts=self.restarts)

    def _rules(self) -> dict[str, Any]:
        widenings = np.stack([self.reward_variation, self.transition_variation], axis=1)
        return super()._rules() | {"widenings": widenings}

    @classmethod
    def informed(
        cls, space: StateActions, *, horizon: int, budgets: Budgets, **options: Any
    ) -> Self:
        """Return the agent with phases of ceil(i^2 / V^2) steps, V = B_r + B_p of the model."""
        T = as_horizon(horizon, error=InputError)
        if not hasattr(budgets, "between"):
            raise InputError(
                f"{budgets!r} does not tell the variation of a phase",
                field="budgets",
                fix="pass drifting.budgets()",
            )
        V = as_real(budgets.reward + budgets.transition, "budgets", low=0.0)
        starts = [1]
        while V > 0.0 and starts[-1] <= T:
            starts.append(starts[-1] + math.ceil(min(len(starts) / V, float(T)) ** 2))
        starts = [t for t in starts if t <= T]
        parts = [
            budgets.between(first, last)
            for first, last in zip(starts, [*(t - 1 for t in starts[1:]), T], strict=True)
        ]
        return cls(
            as_space(space),
            horizon=T,
            restarts=starts[1:],
            reward_variation=[part.reward for part in parts],
            transition_variation=[part.transition for part in parts],
            **options,
        )

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; phases that are not given are those of `informed`."""
        phases = ("restarts", "reward_variation", "transition_variation")
        missing = [name for name in phases if name not in options]
        if not missing:
            return cls(space, horizon=horizon, **options)
        if len(missing) < len(phases):
            raise InputError(
                "is not given, though something of the phases is",
                field=missing[0],
                fix=f"pass all of {', '.join(phases)}, or none and budgets",
            )
        if budgets is None:
            raise InputError(
                "there are no budgets, and the variation of every phase must be known",
                field="budgets",
                fix="pass budgets=model.budgets()",
            )
        return cls.informed(space, horizon=horizon, budgets=budgets, **options)
