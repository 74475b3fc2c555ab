"""UCRL3: intervals for each next state, and extended value iteration on reduced supports.

UCRL3 (Bourel, Maillard, Talebi 2020) has UCRL2's episodes and two things of its own. Bounds of each
probability hold at all times at once and follow its variance; and EVI leaves out next states that
were never seen and are worth next to nothing ("near-optimistic support selection", NOSS).
`windage.kernels.ucrl3` has the formulas.

Two readings of the paper, both named there: l_n is taken with 1.12 n in place of n, or it would
have no value at n = 1; and the support of a pair only grows while one EVI lasts. Chosen anew in
each sweep, as printed, supports depend on u by jumps, the operator is not monotone, and EVI was
seen to go round in circles for ever on RiverSwim with six states that never change. With growing
supports the operator stays the same after finitely many sweeps, EVI converges, and in its last
sweep the rule of NOSS holds all the same: what is left out of a pair is worth kappa at most.

What is proven. With all history, the regret bound of the paper, for models that do not drift. Over
a window, the sets of `SWUCRL3` hold the average of the rows in the window, and that of its mean
rewards, for all windows of the run at once with probability 1 - delta: two intervals with two sides
each, for every entry and each of the T times at which a window may start, at delta / 2 in all, and
delta / 2 for the rewards. No bound on its regret is known; nothing widens its sets by the drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from windage.agents.configuration import AgentOptions
from windage.agents.optimistic.base import Explanation, OptimisticAgent
from windage.agents.optimistic.ucrl2 import BudgetWindowed
from windage.confidence.confidence import BoxRegion
from windage.confidence.radii import Radii
from windage.errors import StateError
from windage.spaces import StateActions
from windage.validation import require_memory

if TYPE_CHECKING:
    from windage.kernels.ucrl3 import Supports

__all__ = ["SWUCRL3", "UCRL3", "SupportRegion"]

Reals = NDArray[np.float64]

_PLACES = 1 << 16  # intervals remembered at most


class UCRL3Options(AgentOptions, total=False):
    """Keyword arguments of `UCRL3`."""

    delta: float
    ties: str
    slack: float
    warm_start: bool


class UCRL3(OptimisticAgent):
    """UCRL3 with all history, for models that stay as they are.

    Rewards are taken to lie in [0, 1], or in `reward_range`.

    Parameters
    ----------
    delta
        The sets fail with at most this probability.

    The other parameters are those of `SWUCRL2CW`.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(6), horizon=4000)
    >>> agents = [kind(model.space, horizon=4000, seed=1) for kind in (wd.UCRL2, wd.UCRL3)]
    >>> ucrl2, ucrl3 = (wd.run(model, agent, seed=3).total_reward for agent in agents)
    >>> bool(ucrl3 > 3 * ucrl2)
    True

    References
    ----------
    Bourel, Maillard, Talebi: Tightening Exploration in Upper Confidence Reinforcement Learning,
    ICML 2020.
    """

    id: ClassVar[str] = "ucrl3"
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "(D + sqrt(sum_sa max(1, D_s^2 L_sa))) sqrt(T log T), no drift"
    source: ClassVar[str] = "Bourel, Maillard, Talebi 2020, constants recalled"
    fixed: ClassVar[tuple[str, ...]] = ("radii",)
    derived: ClassVar[tuple[str, ...]] = ("clip",)

    _drift: ClassVar[bool] = False
    """Whether the sets are those for the averages over a window of a model that drifts."""

    def __init__(
        self, space: StateActions, *, horizon: int, **options: Unpack[UCRL3Options]
    ) -> None:
        self.clip = True
        kind = Radii.bernstein()  # the sets are boxes, and hang on the variance
        super().__init__(space, horizon=horizon, radii=kind, **options)

    def _rules(self) -> dict[str, Any]:
        of_rewards = np.array([0.5 * self._log_level, 0.25, 0.0, 1.0])
        if self._drift:
            bounded = Radii.laplace(bounded=True)
            of_rewards = bounded.rules(self.space, self.horizon, self.delta)[0]
        return super()._rules() | {"radii": np.stack([of_rewards, np.zeros(4)])}

    @property
    def _log_level(self) -> float:
        """ln(1 / delta')."""
        S = self.space.n_states
        shares = 2 * self.horizon * 4 * S if self._drift else 3 * (1 + S)
        return math.log(self.space.n_pairs * shares / self.delta)

    def _blank_plan(self, boxes: bool) -> Supports:
        from windage.kernels.ucrl3 import INTERVAL, REST, Supports

        pairs, states = self.space.n_pairs, self.space.n_states
        require_memory(pairs * states, "space", fix="use fewer states")
        plan: Any = super()._blank_plan(boxes)
        places = 1 << min(2 * (pairs + plan.rows.size), _PLACES).bit_length()
        return Supports(
            *(plan.pairs, plan.states, plan.u, plan.rows, plan.answer, plan.rooms),
            rest=np.zeros(pairs, REST),
            inside=np.zeros((pairs, states), np.uint8),
            known=np.zeros(places, INTERVAL),
            log_level=self._log_level,
            drift=self._drift,
        )

    def _use_window(self) -> None:
        inside = self._learner.plan.inside  # type: ignore[union-attr]
        super()._use_window()
        plan: Any = self._learner.plan
        self._learner = self._learner._replace(plan=plan._replace(inside=inside))

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        plan: Any = self._learner.plan
        return values, arrays | {"plan.inside": np.flatnonzero(plan.inside)}

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restored(values, arrays)
        plan: Any = self._learner.plan
        cells = arrays["plan.inside"]
        rising = np.diff(cells, prepend=-1, append=plan.inside.size) > 0
        if cells.ndim != 1 or cells.dtype.kind != "i" or not rising.all():
            raise StateError(
                "array 'plan.inside' is impossible",
                field="state",
                fix="restore the agent from another copy",
            )
        plan.inside.ravel()[cells] = 1

    def region(self) -> SupportRegion:
        """Return the sets the current episode was planned with, rewards scaled to [0, 1]."""
        from windage.kernels.jit import call
        from windage.kernels.ucrl3 import fill_intervals

        learner, space = self._learner, self.space
        plan: Any = learner.plan
        require_memory(48 * space.n_pairs * space.n_states, "region", fix="use fewer states")
        counts = scipy.sparse.coo_array(self._window.planned)
        n = np.bincount(counts.row, counts.data, minlength=space.n_pairs).astype(np.int64)
        visited = (learner.sets["visits"] > 0) & (n > 0)
        p_hat = np.zeros((space.n_pairs, space.n_states))
        lower, upper = np.zeros_like(p_hat), np.ones_like(p_hat)
        seen = np.flatnonzero(visited)
        hits = np.concatenate([np.zeros(seen.size, np.int64), counts.data])
        visits = np.concatenate([n[seen], n[counts.row]])
        ends = np.empty((2, hits.size))
        call(fill_intervals, plan, hits, visits, ends[0], ends[1], seconds=5e-4 * hits.size)
        upper[seen] = ends[1, : seen.size, None]
        p_hat[counts.row, counts.col] = counts.data / n[counts.row]
        lower[counts.row, counts.col], upper[counts.row, counts.col] = ends[:, seen.size :]
        kappa = 10 * np.count_nonzero(p_hat, axis=1) / max(1, n.max(initial=1)) ** (2 / 3)
        return SupportRegion(
            space,
            plan.pairs["reward"],
            p_hat,
            visited,
            (lower, upper),
            (plan.inside > 0) | (p_hat > 0.0),
            kappa,
        )

    def explain(self, s: int) -> Explanation:
        """Say what the current episode knows of each action of a state, and hopes for."""
        return replace(super().explain(s), radii=self.id)


class SWUCRL3(BudgetWindowed, UCRL3):
    """UCRL3 over the last W samples, with sets that hold the averages of a drifting window.

    Parameters
    ----------
    window
        W. With budgets, that of Theorem 1 for SWUCRL2-CW; without, the oblivious one.

    The other parameters are those of `UCRL3`.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=2000)
    >>> agent = wd.agents.make("sw-ucrl3", model.space, horizon=2000, budgets=model.budgets())
    >>> run = wd.run(model, agent, seed=1)
    >>> bool((run.episodes.reason[:-1] == "visits").all())
    True
    """

    id: ClassVar[str] = "sw-ucrl3"
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "UCRL3 over a window; argument in its docstring"
    _drift: ClassVar[bool] = True


@dataclass(frozen=True, eq=False, init=False)
class SupportRegion(BoxRegion):
    """Optimistic rewards and intervals, planned with on a part of the states.

    Attributes
    ----------
    inside
        [pair, state] The states EVI looked at in its last sweep.
    kappa
        What may be left out of each pair, as a share of the span.
    """

    inside: NDArray[np.bool_]
    kappa: Reals

    def __init__(
        self,
        space: StateActions,
        reward_upper: Reals,
        p_hat: Reals,
        visited: NDArray[np.bool_],
        ends: tuple[Reals, Reals],
        inside: NDArray[np.bool_],
        kappa: Reals,
    ) -> None:
        lower, upper = ends
        super().__init__(
            space, reward_upper, p_hat, np.maximum(upper - p_hat, p_hat - lower), visited
        )
        for name, value in {"_ends": ends, "inside": inside, "kappa": kappa}.items():
            object.__setattr__(self, name, value)

    @property
    def lower(self) -> Reals:
        """The least plausible probability of every entry."""
        return self._ends[0]  # type: ignore[attr-defined,no-any-return]

    @property
    def upper(self) -> Reals:
        """The largest plausible probability of every entry."""
        return self._ends[1]  # type: ignore[attr-defined,no-any-return]

    def best_row(self, pair: int, u: Reals) -> Reals:
        """Return the kernel that EVI counts on: nearly the best for q.u in the pair's set."""
        f, inside = u - u.min(), self.inside[pair].copy()
        order = np.lexsort((np.arange(u.size), u))[::-1]
        inside[order[0]] = True
        while True:
            outside = order[~inside[order]]
            row = self._filled(pair, order[inside[order]])
            if self._filled(pair, outside) @ f <= min(self.kappa[pair] * f.max(), row @ f):
                return row
            inside[outside[0]] = True

    def _filled(self, pair: int, states: NDArray[np.int64]) -> Reals:
        """Return q on some states only, the best of them filled first; its mass is at most 1."""
        row = np.zeros(self.space.n_states)
        row[states] = self.lower[pair, states]
        left = 1.0 - row.sum()
        for state in states:
            given = min(left, self.upper[pair, state] - row[state])
            row[state] += given
            left -= given
        return row
