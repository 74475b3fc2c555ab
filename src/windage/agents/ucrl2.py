"""UCRL2 and its relatives without restarts: the same learner, other memory or other sets.

UCRL2 (Jaksch, Ortner, Auer 2010) remembers everything and assumes that the model does not change;
on one that drifts it is the baseline that forgets nothing. SW-UCRL (Gajane, Ortner, Auer 2018) has
the same radii over a window, UCRL2B (Fruit, Pirotta, Lazaric 2020) tighter sets. Episodes end by
the doubling rule alone.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from windage.agents.fixed import fixed
from windage.agents.known import Budgets, is_left_open
from windage.agents.memories import Windowed
from windage.agents.optimistic import OptimisticAgent
from windage.agents.pace import Pace
from windage.confidence import tuning
from windage.confidence.radii import Radii
from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.validation import as_horizon, as_integer, as_real, shown

__all__ = ["SWUCRL", "UCRL2", "UCRL2B", "AdaptiveUCRL"]


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
        delta: float = 0.05,
        radii: Radii | str | dict[str, Any] | None = None,
        clip: bool = False,
        ties: str = "random",
        slack: float = 0.0,
        reward_range: tuple[float, float] | None = None,
        warm_start: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(
            space,
            horizon=horizon,
            pace=self._pace(),
            delta=delta,
            radii=self.default_radii if radii is None else radii,
            widening=0.0,
            clip=clip,
            ties=ties,
            slack=slack,
            warm_start=warm_start,
            seed=seed,
            reward_range=reward_range,
        )

    def _pace(self) -> Pace:
        """Return what is forgotten: nothing."""
        return Pace()

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"clip": self.clip}


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
    told: ClassVar[tuple[str, ...]] = ("l", "D")
    found: ClassVar[tuple[str, ...]] = ("window",)
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
        self, space: StateActions, *, horizon: int, clip: bool = True, **options: Any
    ) -> None:
        super().__init__(space, horizon=horizon, clip=clip, **options)


@fixed("diameter", "ladder")
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
    told: ClassVar[tuple[str, ...]] = ("D",)
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
        **options: Any,
    ) -> None:
        self.diameter = as_real(diameter, "diameter", low=0.0)
        steps = ladder if isinstance(ladder, (tuple, list)) else ()
        self.ladder = tuple(as_real(eta, "ladder", low=0.0) for eta in steps)
        if not self.ladder or list(self.ladder) != sorted(set(self.ladder)):
            raise InputError(
                f"{shown(ladder)} does not rise", field="ladder", fix="pass a list of widenings"
            )
        super().__init__(space, horizon=horizon, clip=clip, **options)

    def _more_rules(self) -> dict[str, Any]:
        return {"ladder": np.array(self.ladder), "most_span": 2.0 * self.diameter}

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"diameter": self.diameter, "ladder": list(self.ladder)}
