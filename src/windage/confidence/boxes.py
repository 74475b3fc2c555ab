"""Boxes of kernels: bounds for every entry of a row instead of one L1 radius (UCRL2B).

An L1 ball of radius eta inside the simplex moves at most eta / 2 of mass to or from any one state,
so a box is widened by eta / 2 at both ends of every entry: it then holds every kernel within eta of
one it held before, which is what the widening is for (docs/adr/0011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.confidence.confidence import ConfidenceRegion, blank_plan
from windage.errors import InputError, ModelError
from windage.spaces import StateActions
from windage.validation import as_floats

__all__ = ["BoxRegion"]


@dataclass(frozen=True, eq=False, init=False)
class BoxRegion(ConfidenceRegion):
    """Optimistic rewards and boxes of kernels; `ConfidenceRegion.box` makes one.

    `radius` is [pair, state]: how far each entry may be from its estimate.
    """

    @staticmethod
    def _radii(value: ArrayLike, space: StateActions) -> NDArray[np.float64]:
        fix = f"pass radius[pair, state] of shape ({space.n_pairs}, {space.n_states}), from 0 on"
        try:
            radius = as_floats(value, "radius")
        except ModelError as err:
            raise InputError(err.problem, field="radius", fix=fix) from None
        if radius.shape != (space.n_pairs, space.n_states):
            raise InputError(f"has shape {radius.shape}", field="radius", fix=fix)
        wrong = ~np.isfinite(radius) | (radius < 0.0)
        if wrong.any():
            pair, state = (int(i) for i in np.argwhere(wrong)[0])
            raise InputError(
                f"{radius[pair, state]} is not allowed",
                field="radius",
                where=f"{space.describe(pair)}, next state {state}",
                fix=fix,
            )
        return radius

    @property
    def lower(self) -> NDArray[np.float64]:
        """The least plausible probability of every entry."""
        return np.where(self.visited[:, None], np.maximum(self._estimate() - self._off(), 0.0), 0.0)

    @property
    def upper(self) -> NDArray[np.float64]:
        """The largest plausible probability of every entry."""
        return np.where(self.visited[:, None], np.minimum(self._estimate() + self._off(), 1.0), 1.0)

    def _estimate(self) -> NDArray[np.float64]:
        return np.asarray(self.p_hat.toarray())

    def _off(self) -> NDArray[np.float64]:
        return np.asarray(self.radius + self.widening[:, None] / 2.0)

    @property
    def width(self) -> NDArray[np.float64]:
        """[pair, state] how far apart the bounds of every entry are."""
        return np.asarray(self.upper - self.lower)

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Which sets are the whole simplex."""
        return np.asarray((self.lower == 0.0).all(axis=1) & (self.upper == 1.0).all(axis=1))

    def best_row(self, pair: int, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the kernel in the pair's box that makes q.u largest.

        Every state gets its lower bound; what is left goes to the best states first.
        """
        row: NDArray[np.float64] = self.lower[pair]
        upper = self.upper[pair]
        left = 1.0 - row.sum()
        for state in np.lexsort((np.arange(u.size), u))[::-1]:
            given = min(left, upper[state] - row[state])
            row[state] += given
            left -= given
        return row

    def as_plan(self, u: NDArray[np.float64]) -> Any:
        """Return sets and workspace for the compiled planner, which starts from u."""
        from windage.kernels.evi import BOUND, VACUOUS

        pairs, states, free = self.space.n_pairs, self.space.n_states, self.is_free
        plan = blank_plan(self.space, pairs * states, boxes=True)
        plan.pairs["reward"] = self.reward_upper
        plan.pairs["kind"] = np.where(free, VACUOUS, BOUND)
        plan.pairs["row"] = np.arange(pairs) * states
        plan.pairs["entries"] = np.where(free, 0, states)
        plan.rows["index"] = np.tile(np.arange(states), pairs)
        plan.rows["probability"] = self.lower.ravel()
        plan.rooms[:] = (self.upper - self.lower).ravel()
        plan.u[:] = u
        return plan
