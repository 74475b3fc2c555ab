"""Certainty equivalence: plan as if the last W steps were the truth, as practitioners do.

The laws of a structure are estimated from the last W steps and the policy is optimised anew. It is
`MultiScale` with one window that is given, and without hope: nothing is tried to find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from windage.agents.multiscale.agent import ALONE, OneWindow
from windage.agents.multiscale.learner import Constants
from windage.agents.multiscale.multiscale import MultiScale
from windage.agents.multiscale.structured import pace_of
from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.structure import Structure
from windage.validation import as_horizon, as_integer, as_real

__all__ = ["CertaintyEquivalent"]


class CertaintyEquivalent(OneWindow, MultiScale):
    """Re-optimisation on the last W steps: the baseline to beat where a structure is known.

    Parameters
    ----------
    structure
        What is known of next states and rewards. Without one, every row and every mean reward is
        estimated from the last W steps.
    window
        W. What is older is forgotten.
    bonus
        How much is hoped for, in standard deviations, of laws that not every action shows; 0.65 is
        as much as `MultiScale` hopes for.

    The other parameters are those of `MultiScale`.

    Examples
    --------
    >>> import windage as wd
    >>> demand = wd.Exogenous("demand", range(3))
    >>> known = wd.Structure(
    ...     wd.StateActions([3, 2, 1]),
    ...     [demand],
    ...     next_state=lambda s, a, d: max(s + a - d, 0),
    ...     reward=lambda s, a, d: 5 * min(s + a, d) - 2 * a,
    ... )
    >>> agent = CertaintyEquivalent(known.space, horizon=100, structure=known, window=30)
    >>> agent.act(0)
    2
    >>> agent.observe(0, 2, 6.0, 0, seen={"demand": 2})
    """

    id: ClassVar[str] = "certainty-equivalent"
    bound: ClassVar[str] = "none"
    source: ClassVar[str] = "practice: estimate, then optimise"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        structure: Structure | Mapping[str, Any] | None = None,
        window: int = 60,
        bonus: float = 0.0,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        self.window = as_integer(window, "window", low=1)
        self.bonus = as_real(bonus, "bonus", low=0.0)
        space, T = as_space(space), as_horizon(horizon, error=InputError)
        given = {"reward_range": reward_range} if "reward_range" in self._given else {}
        super().__init__(space, horizon=T, structure=structure, seed=seed, **given)

    @property
    def constants(self) -> Constants:  # type: ignore[override]
        """Those of `MultiScale` with one window and its own bonus; it optimises every step."""
        pace = None if self.structure is None else pace_of(self.structure, 1)
        return replace(Constants(), exploration=self.bonus, pace=pace, weighing=ALONE)
