"""The optimal gain as a linear program and its dual, each solved on its own (HiGHS).

The primal P(r, p) of the paper is over occupancies x of pairs, the dual D(r, p) over a gain rho and
a bias gamma; their common value is the largest gain over start states. They share no code with
policy iteration and are slower by orders of magnitude: the second opinion, not the solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack

from windage.errors import NotConverged
from windage.oracle.certificate import (
    Floats,
    Model,
    Transitions,
    bracket_of,
    checked,
    closed_classes,
)
from windage.spaces import StateActions

__all__ = ["LpSolution", "gain_lp"]

PRECISION = 1e-10
"""How far constraints may be violated; HiGHS does not go lower."""

TINY = 1e-9
"""HiGHS takes smaller coefficients for zero."""

RESOLUTION = 1e-6
"""What is returned is that close to the gain, relative to the largest reward if that is above 1."""


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
    Probabilities below 1e-9 are left out, which HiGHS would do anyway, and their rows rescaled. On
    a slow chain the answers may be those of another model then, and agree: so gamma and the
    policy of x are put to the rows as they were given, where they bound the gain (see
    `oracle.certificate`), and answers that the bounds do not settle to 1e-6 are not returned.

    Raises
    ------
    NotConverged
        The gain is below the resolution of the programs: take `solve`.

    Examples
    --------
    >>> space = StateActions([1, 2])
    >>> found = gain_lp(space, [0.0, 1.0, 0.2], [[0, 1], [1, 0], [0, 1]])
    >>> round(found.primal, 9), round(found.dual, 9), found.occupancy.round(9).tolist()
    (0.5, 0.5, [0.5, 0.5, 0.0])
    """
    model = checked(space, rewards, transitions)
    r, rows = model.rewards, model.rows.copy()
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
    values = float(-primal.fun), float(dual.fun)
    _require_resolved(_bounds(model, primal.x, bias), values, r)
    return LpSolution(*values, primal.x, bias)


def _bounds(model: Model, occupancy: Floats, gamma: Floats) -> tuple[float, float]:
    """Return bounds of the gain on the rows as they were given, however x and gamma were found.

    gamma bounds it from above. The policy of x bounds it from below, on the closed class where x
    lies, with a bias of its own: where x is next to nothing gamma need not fit the policy.
    """
    from scipy.sparse.linalg import splu

    at = np.add.reduceat(occupancy, model.space.offsets[:-1])
    pairs = _policy(model, occupancy, at > PRECISION)
    upper = bracket_of(model, gamma, pairs).upper
    label = closed_classes(model.rows[pairs])
    inside = np.flatnonzero(label == label[np.argmax(np.where(label >= 0, at, -1.0))])
    chain = model.rows[pairs[inside]][:, inside]
    n, here = inside.size, np.zeros(at.size)
    first = csr_array(([1.0], ([0], [0])), shape=(1, n))
    columns = hstack([eye_array(n) - chain, np.ones((n, 1))]), hstack([first, [[0.0]]])
    try:
        system = splu(vstack(columns, format="csc"))
    except RuntimeError:  # singular as far as doubles can tell
        return -np.inf, upper
    here[inside] = system.solve(np.append(model.rewards[pairs[inside]], 0.0))[:-1]
    return bracket_of(model, here, pairs).lower, upper


def _policy(model: Model, occupancy: Floats, reached: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the pairs that x takes most often; where it is next to nothing, those that lead back.

    A state is given the pair that is likeliest to go where `reached` holds, from near to far.
    """
    ends, values = list(pairwise(model.space.offsets.tolist())), occupancy
    pairs = model.space.offsets[:-1].copy()
    new = reached
    while new.any():
        for s in np.flatnonzero(new):
            a, b = ends[s]
            pairs[s] = a + int(np.argmax(values[a:b]))
        reached = reached | new
        values = model.rows @ reached.astype(np.float64)
        new = ~reached & (np.maximum.reduceat(values, model.space.offsets[:-1]) > 0.0)
    return pairs


def _require_resolved(
    found: tuple[float, float], values: tuple[float, float], rewards: Floats
) -> None:
    """Refuse values that what was found with them does not prove."""
    low, high = min(*values, *found), max(*values, *found)
    if not high - low <= RESOLUTION * max(1.0, float(np.abs(rewards).max())):
        raise NotConverged(
            f"the programs say {values[0]:.9g} and {values[1]:.9g}, but what they found bounds the "
            f"gain by {found[0]:.9g} and {found[1]:.9g}: it is below their resolution",
            field="gain_lp",
            fix="take solve, which needs no linear program",
        )


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
