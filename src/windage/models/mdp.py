"""MDP: mean rewards and transition probabilities over pairs; Noise: rewards around their mean."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from windage.errors import InputError, ModelError
from windage.oracle import diameter
from windage.spaces import StateActions, as_space, rectangular
from windage.validation import (
    FrozenRows,
    as_choice,
    as_csr,
    as_flag,
    as_floats,
    as_real,
    freeze,
    shown,
)

if TYPE_CHECKING:
    from windage.oracle.gain import Solution
    from windage.oracle.lp import LpSolution

__all__ = [
    "MDP",
    "TOLERANCE",
    "Cells",
    "Noise",
    "Transitions",
    "as_floats",
    "cells_of",
    "check_rewards",
    "check_transitions",
    "freeze",
    "gain_lp",
    "rectangular",
    "same_cells",
]

TOLERANCE = 1e-9
"""How far a row may be from summing to one, or a number from its range, and still be rounding."""

_ROW_FIXES = {
    None: "mend the row, for instance divide it by its sum",
    False: "mend the row, or pass normalize=True to rescale rows",
    True: "mend the row",
}

Transitions: TypeAlias = NDArray[np.float64] | Any
"""Dense rows, or a SciPy CSR matrix."""


class Cells(NamedTuple):
    """The non-zero transition probabilities, row after row, as in CSR."""

    rows: NDArray[np.int64]
    states: NDArray[np.int32]
    probabilities: NDArray[np.float64]


class MDP:
    """A finite Markov decision process with mean rewards in [0, 1].

    That of a structure, `Structure.model`, has mean rewards in the units of the structure.

    Parameters
    ----------
    space
        States and actions.
    rewards
        `rewards[pair]`, the mean reward of every pair.
    transitions
        `transitions[pair, s']`: a dense array, or a SciPy sparse matrix for large models.
    normalize
        Rescale rows to sum to one instead of refusing those that do not.

    Examples
    --------
    >>> space = StateActions([1, 2])
    >>> mdp = MDP(space, rewards=[0.0, 1.0, 0.5], transitions=[[0, 1], [1, 0], [0, 1]])
    >>> mdp.is_communicating()
    True
    """

    space: StateActions
    rewards: NDArray[np.float64]
    transitions: Transitions

    def __init__(
        self,
        space: StateActions,
        rewards: ArrayLike,
        transitions: ArrayLike | Transitions,
        *,
        normalize: bool = False,
    ) -> None:
        r, rescale = check_rewards(space, rewards), as_flag(normalize, "normalize")
        self.__dict__.update(
            space=space,
            rewards=r,
            transitions=check_transitions(space, transitions, normalize=rescale),
        )

    @classmethod
    def from_arrays(
        cls,
        rewards: ArrayLike,
        transitions: ArrayLike,
        space: StateActions | None = None,
        *,
        normalize: bool = False,
    ) -> MDP:
        """Return the model of `r[s, a]` and `p[s, a, s']`; cells outside A_s are ignored.

        >>> MDP.from_arrays([[0.2, 0.4]], [[[1.0], [1.0]]]).rewards
        array([0.2, 0.4])
        """
        r, p, space = rectangular(rewards, transitions, space, leading=0)
        return cls(space, r, p, normalize=normalize)

    @classmethod
    def trusted(
        cls, space: StateActions, rewards: NDArray[np.float64], transitions: Transitions
    ) -> MDP:
        """Return a model of arrays that were checked before, without checking them again."""
        mdp = cls.__new__(cls)
        if not isinstance(transitions, np.ndarray):
            transitions = FrozenRows.of(transitions)
        freeze(rewards, transitions)
        mdp.__dict__.update(space=space, rewards=rewards, transitions=transitions)
        return mdp

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an MDP cannot be changed: {name} is fixed; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an MDP cannot be changed: {name} is fixed")

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes by value, and arrive read-only."""
        return type(self).trusted, (self.space, self.rewards, self.transitions)

    @functools.cached_property
    def cells(self) -> Cells:
        """The non-zero transition probabilities of every pair."""
        cells = cells_of(self.transitions)
        freeze(*cells)
        return cells

    def solve(self, tol: float = 1e-9, method: str = "auto") -> Solution:
        """Return the optimal gain, bias and policy, with a certified bracket of the gain.

        "auto" is policy iteration, which takes any model, after a few sweeps that settle larger
        dense models which forget quickly; "policy-iteration" leaves these out. "value-iteration" is
        relative value iteration, for models whose gain does not depend on the start state. What
        does not converge raises `NotConverged`. `tol` is relative to the largest mean reward, if
        that is above 1, as that of a structure may be.

        >>> space = StateActions([2])
        >>> MDP(space, [0.25, 0.75], [[1.0], [1.0]]).solve().gain
        0.75
        """
        from windage.oracle import gain

        width = as_real(tol, "tol", low=0, open_low=True)
        width *= max(1.0, float(np.abs(self.rewards).max()))
        return gain.solve(self.space, self.rewards, self.transitions, tol=width, method=method)

    def diameter(self, tol: float = 1e-6) -> float:
        """Return the diameter D; inf if the model does not communicate, 0 with one state.

        One that rounding leaves further apart than `tol` times its size raises `NotConverged`:
        from some 1e8 on a larger `tol` is needed.
        """
        return diameter.diameter(self.space, self.transitions, tol=tol)

    def is_communicating(self) -> bool:
        """Return whether every state can be reached from every other under some policy."""
        return diameter.classes(self.space, self.cells.rows, self.cells.states)[0] == 1

    def unreachable(self) -> tuple[int, int] | None:
        """Return states (s, s') such that no policy leads from s to s'; None if there are none."""
        return diameter.unreachable(self.space, self.cells.rows, self.cells.states)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MDP):
            return NotImplemented
        return (
            self.space == other.space
            and np.array_equal(self.rewards, other.rewards)
            and same_cells(self.cells, other.cells)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.transitions, np.ndarray) else "CSR"
        return f"MDP({self.space!r}, {kind})"


_KINDS = ("none", "bernoulli", "gaussian", "beta", "outcomes")
_CHOICES = _KINDS[:4]  # the last one is not chosen: it belongs to models with a structure


@dataclass(frozen=True)
class Noise:
    """The law of a reward given its mean; make one with the class methods.

    The paper asks for 1-sub-Gaussian noise: Bernoulli and Beta rewards in [0, 1] are, and Gaussian
    ones with sigma <= 1. "outcomes" is that of a model with a structure, whose rewards fall as the
    outcomes of its variables do.

    Examples
    --------
    >>> Noise.gaussian(0.1)
    Noise.gaussian(sigma=0.1)
    >>> Noise.bernoulli().bounded
    True
    """

    kind: str
    spread: float = 0.0

    def __post_init__(self) -> None:
        as_choice(self.kind, "noise", _KINDS)
        spread = as_real(self.spread, "spread", low=0, open_low=self.kind == "beta")
        if spread and self.kind not in ("gaussian", "beta"):
            raise InputError(
                f"{spread} has no meaning for {self.kind!r}", field="spread", fix="leave it out"
            )
        object.__setattr__(self, "spread", spread)

    @classmethod
    def bernoulli(cls) -> Noise:
        """Rewards are 1 with probability r_t(s, a), else 0."""
        return cls("bernoulli")

    @classmethod
    def gaussian(cls, sigma: float = 0.1) -> Noise:
        """Rewards are normal around their mean; they may leave [0, 1]."""
        return cls("gaussian", as_real(sigma, "sigma", low=0))

    @classmethod
    def beta(cls, concentration: float = 10.0) -> Noise:
        """Rewards are Beta(c m, c (1 - m)) with mean m; large c is little noise."""
        return cls("beta", as_real(concentration, "concentration", low=0, open_low=True))

    @classmethod
    def none(cls) -> Noise:
        """Rewards equal their mean."""
        return cls("none")

    @classmethod
    def outcomes(cls) -> Noise:
        """Rewards fall as the outcomes of a structure's variables do."""
        return cls("outcomes")

    @classmethod
    def of(cls, noise: Noise | str) -> Noise:
        """Return a Noise, given one or its bare name."""
        if isinstance(noise, Noise):
            return noise
        if not isinstance(noise, str):
            raise InputError(
                f"{shown(noise)} is not a noise",
                field="noise",
                fix="pass a wd.Noise or its bare name",
            )
        kind = as_choice(noise, "noise", _CHOICES)
        return {"gaussian": cls.gaussian, "beta": cls.beta}.get(kind, lambda: cls(kind))()

    @property
    def bounded(self) -> bool:
        """Whether rewards stay in [0, 1], or in the range of the structure."""
        return self.kind != "gaussian"

    @property
    def code(self) -> int:
        """The number the compiled loops know this kind by (`kernels.simulator`)."""
        return _KINDS.index(self.kind)

    def __repr__(self) -> str:
        inside = {"gaussian": f"sigma={self.spread}", "beta": f"concentration={self.spread}"}
        return f"Noise.{self.kind}({inside.get(self.kind, '')})"


def gain_lp(mdp: MDP) -> LpSolution:
    """Return the optimal gain by linear programming, primal and dual: a second witness.

    >>> space = StateActions([2])
    >>> found = gain_lp(MDP(space, [0.25, 0.75], [[1.0], [1.0]]))
    >>> found.primal, found.dual
    (0.75, 0.75)
    """
    from windage.oracle import lp

    return lp.gain_lp(mdp.space, mdp.rewards, mdp.transitions)


def check_rewards(
    space: StateActions, rewards: ArrayLike, *, field: str = "rewards", at: str = ""
) -> NDArray[np.float64]:
    """Return mean rewards over pairs as a frozen copy, or say which one is impossible."""
    as_space(space)
    found = as_floats(rewards, field)
    if found.shape != (space.n_pairs,):
        raise ModelError(
            f"has shape {found.shape}, the space has {space.n_pairs} pairs",
            field=field,
            where=at,
            fix=f"pass shape ({space.n_pairs},); MDP.from_arrays takes r[s, a]",
        )
    wrong = ~((found >= -TOLERANCE) & (found <= 1 + TOLERANCE))
    if wrong.any():
        pair = int(np.argmax(wrong))
        raise ModelError(
            f"mean reward {found[pair]!s} is not in [0, 1]",
            field=field,
            where=_place(at, space.describe(pair)),
            fix="rescale rewards to [0, 1]",
        )
    found = np.clip(found, 0.0, 1.0)
    freeze(found)
    return found


def check_transitions(
    space: StateActions,
    transitions: ArrayLike | Transitions,
    *,
    normalize: bool | None = None,
    field: str = "transitions",
    at: str = "",
    fix: str = "",
) -> Transitions:
    """Return transition rows as a frozen copy, or say which row is impossible.

    Rows that are off by more than their sum's own rounding are divided by it: what is left of an
    error would grow with T. The others are left as they are, so that a model that was saved comes
    back to the last bit.

    `normalize` is None where the caller has no such option: then nobody is told to use it. `fix`
    says what to do about a row that does not sum to one, if the caller knows better.
    """
    shape = (as_space(space).n_pairs, space.n_states)
    found: Any = transitions if issparse(transitions) else as_floats(transitions, field)
    if found.shape != shape:
        raise ModelError(
            f"has shape {found.shape}, the space needs {shape}",
            field=field,
            where=at,
            fix="pass one row a pair; MDP.from_arrays takes p[s, a, s']",
        )
    found = found if isinstance(found, np.ndarray) else as_csr(found, field)
    values = found if isinstance(found, np.ndarray) else found.data
    if not (np.isfinite(values).all() and (values >= -TOLERANCE).all()):
        pair, state, value = _first_wrong(found)
        raise ModelError(
            f"probability {value} of going to {space.describe_state(state)} is not in [0, 1]",
            field=field,
            where=_place(at, space.describe(pair)),
            fix="pass non-negative finite numbers",
        )
    np.maximum(values, 0.0, out=values)
    sums = _sums(found)
    wrong = np.abs(sums - 1.0) > TOLERANCE
    if normalize:
        wrong = ~((sums > 0) & (sums < np.inf))
    if wrong.any():
        pair = int(np.argmax(wrong))
        raise ModelError(
            f"row sums to {sums[pair]:.12g}, not 1",
            field=field,
            where=_place(at, space.describe(pair)),
            fix=fix or _ROW_FIXES[normalize],
        )
    sums[np.abs(sums - 1.0) <= max(4, space.n_states) * 2.0**-52] = 1.0
    if isinstance(found, np.ndarray):
        found /= sums[:, None]
    else:
        found.data /= np.repeat(sums, np.diff(found.indptr))
    if not isinstance(found, np.ndarray):
        return FrozenRows.of(found)
    freeze(found)
    return found


def cells_of(transitions: Transitions) -> Cells:
    """Return the non-zeros of dense rows (any leading shape) or of a CSR matrix."""
    if isinstance(transitions, np.ndarray):
        rows = transitions.reshape(-1, transitions.shape[-1])
        positive = rows > 0
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(positive, axis=1))])
        return Cells(starts, np.nonzero(positive)[1].astype(np.int32), rows[positive])
    return Cells(
        transitions.indptr.astype(np.int64), transitions.indices.astype(np.int32), transitions.data
    )


def same_cells(one: Cells, other: Cells) -> bool:
    """Return whether two models have the same transitions, to the last bit."""
    return all(np.array_equal(one[i], other[i]) for i in range(3))


def _sums(rows: Transitions) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # a sum that is infinite is refused by what it is
        return np.asarray(rows.sum(axis=1)).ravel()


def _first_wrong(found: Transitions) -> tuple[int, int, float]:
    if isinstance(found, np.ndarray):
        pair, state = np.argwhere(~(np.isfinite(found) & (found >= -TOLERANCE)))[0]
        return int(pair), int(state), float(found[pair, state])
    place = int(np.argmax(~(np.isfinite(found.data) & (found.data >= -TOLERANCE))))
    pair = int(np.searchsorted(found.indptr, place, side="right")) - 1
    return pair, int(found.indices[place]), float(found.data[place])


def _place(at: str, pair: str) -> str:
    return f"{at}, {pair}" if at else pair
