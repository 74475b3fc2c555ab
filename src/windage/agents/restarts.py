"""Learners that forget everything now and then: UCRL2 with restarts, variation-aware UCRL.

A restart starts the learner's own clock anew, so its radii and its precision are those of a fresh
learner. Constants of the two papers are recalled, not copied from them.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from windage.agents.fixed import fixed
from windage.agents.known import Budgets
from windage.agents.memories import Restarted, cubic_restarts, restart_times
from windage.agents.optimistic import OptimisticAgent
from windage.agents.pace import Pace
from windage.agents.ucrl2 import UCRL2
from windage.confidence.confidence import one_each
from windage.confidence.radii import Radii
from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.validation import as_horizon, as_real

__all__ = ["RestartedUCRL2", "VariationAwareUCRL"]


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
    told: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "l^(1/3) T^(2/3) D S sqrt(A log T), l changes"
    source: ClassVar[str] = "Jaksch, Ortner, Auer 2010, constants recalled"

    @classmethod
    def tuned(cls, space: StateActions, *, horizon: int, changes: int, **options: Any) -> Self:
        """Return the agent for l = `changes` known changes, that restarts at ceil(i^3 / l^2)."""
        return cls(space, horizon=horizon, restarts=cubic_restarts(changes, horizon), **options)


@fixed("restarts", "reward_variation", "transition_variation")
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
    told: ClassVar[tuple[str, ...]] = ("B_r", "B_p")
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "(B_r + B_p)^(1/3) T^(2/3) D S sqrt(A), told the budgets of every phase"
    source: ClassVar[str] = "Ortner, Gajane, Auer 2019, constants recalled"
    default_radii: ClassVar[str] = "varying"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        restarts: ArrayLike | int,
        reward_variation: ArrayLike,
        transition_variation: ArrayLike,
        delta: float = 0.05,
        radii: Radii | str | dict[str, Any] | None = None,
        ties: str = "random",
        slack: float = 0.0,
        reward_range: tuple[float, float] | None = None,
        warm_start: bool = True,
        seed: int = 0,
    ) -> None:
        self.restarts = restart_times(restarts, horizon)
        phases = self.restarts.size + 1
        given = {"reward_variation": reward_variation, "transition_variation": transition_variation}
        r, p = (one_each(value, name, phases, "phase") for name, value in given.items())
        self.reward_variation, self.transition_variation = r, p
        super().__init__(
            space,
            horizon=horizon,
            pace=Pace(restarts=self.restarts),
            delta=delta,
            radii=Radii.varying() if radii is None else radii,
            widening=0.0,
            widenings=np.stack([r, p], axis=1),
            clip=True,
            ties=ties,
            slack=slack,
            warm_start=warm_start,
            seed=seed,
            reward_range=reward_range,
        )

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

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {
            "restarts": self.restarts.tolist(),
            "reward_variation": self.reward_variation.tolist(),
            "transition_variation": self.transition_variation.tolist(),
        }
