"""The optimal gain as a linear program and its dual, each solved on its own (HiGHS).

The primal P(r, p) of the paper is over occupancies x of pairs, the dual D(r, p) over a gain rho and
a bias gamma; their common value is the largest gain over start states. They share no code with
policy iteration and are slower by orders of magnitude: the second opinion, not the solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, hstack, vstack

from windage.errors import NotConverged
from windage.oracle.certificate import Transitions, checked
from windage.spaces import StateActions

__all__ = ["LpSolution", "gain_lp"]

PRECISION = 1e-10
"""How far constraints may be violated; HiGHS does not go lower."""

TINY = 1e-9
"""HiGHS takes smaller coefficients for zero."""


@dataclass(frozen=True, slots=True, eq=False)
class LpSolution:
    """The two optimal values and where they are attained.

    Attributes
    ----------
    primal, dual
        The optimal values of the two programs, equal up to the solver's precision.
    occupancy
        `occupancy[pair]`, how often an optimal policy takes each pair; sums to 1.
    bias
        gamma of the dual, its least entry 0.
    """

    primal: float
    dual: float
    occupancy: NDArray[np.float64]
    bias: NDArray[np.float64]


def gain_lp(
    space: StateActions, rewards: ArrayLike, transitions: ArrayLike | Transitions
) -> LpSolution:
    """Solve both programs.

    Primal: maximise sum r x over x >= 0 with sum x = 1 and, for every state s, as much flow out
    (the sum of x over the actions of s) as in (the sum of p(s | pair) x(pair) over all pairs).

    Dual: minimise rho over free rho and gamma with, for every pair (s, a),
    rho + gamma(s) >= r(s, a) + sum over s' of p(s' | s, a) gamma(s').

    The dual is solved with gamma >= 0, which costs nothing since only differences count.
    Probabilities below 1e-9 are left out, which HiGHS would do anyway, and their rows rescaled: a
    chain as slow as that needs `solve`.

    Examples
    --------
    >>> space = StateActions([1, 2])
    >>> found = gain_lp(space, [0.0, 1.0, 0.2], [[0, 1], [1, 0], [0, 1]])
    >>> round(found.primal, 9), round(found.dual, 9), found.occupancy.round(9).tolist()
    (0.5, 0.5, [0.5, 0.5, 0.0])
    """
    _, r, rows = checked(space, rewards, transitions)
    rows.data[rows.data < TINY] = 0.0
    rows.data /= np.repeat(np.asarray(rows.sum(axis=1)).ravel(), np.diff(rows.indptr))
    pairs, states = space.n_pairs, space.n_states
    here = csr_array((np.ones(pairs), (np.arange(pairs), space.state_of)), shape=rows.shape)
    flow = here - rows  # row (s, a): 1 at s, minus p(. | s, a)
    ones = csr_array(np.ones((pairs, 1)))
    primal = _solve(
        "primal",
        c=-r,
        A_eq=vstack([flow.T, ones.T], format="csc"),
        b_eq=np.append(np.zeros(states), 1.0),
        bounds=(0.0, None),
    )
    dual = _solve(
        "dual",
        c=np.append(np.zeros(states), 1.0),
        A_ub=-hstack([flow, ones], format="csc"),
        b_ub=-r,
        bounds=[*[(0.0, None)] * states, (None, None)],
    )
    bias = dual.x[:-1] - dual.x[:-1].min()
    return LpSolution(float(-primal.fun), float(dual.fun), primal.x, bias)


def _solve(name: str, **program: Any) -> Any:
    from scipy.optimize import linprog

    options = {
        "primal_feasibility_tolerance": PRECISION,
        "dual_feasibility_tolerance": PRECISION,
    }
    found = linprog(method="highs", options=options, **program)
    if found.status != 0:
        raise NotConverged(
            f"the {name} program ended with status {found.status}: {found.message}",
            field="gain_lp",
            fix="take solve, which needs no linear program",
        )
    return found
