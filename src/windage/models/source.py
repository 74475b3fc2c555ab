"""What every source of models answers, and the tables it hands to compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from windage.models.mdp import Cells, Transitions
from windage.spaces import StateActions
from windage.validation import require_memory

if TYPE_CHECKING:
    from windage.kernels.simulator import Alias

__all__ = ["Source", "Tables", "alias_table", "join_cells", "largest", "largest_row"]

Reals = NDArray[np.float64]


class Tables(NamedTuple):
    """The model from `first` to `last` as `kernels.simulator.Dynamics` wants it, noise apart."""

    first: int
    last: int
    alias: Alias
    kernel_base: NDArray[np.int32]
    kernel_weight: Reals
    rewards: Reals
    reward_base: NDArray[np.int32]
    reward_weight: Reals


class Source(Protocol):
    """What a DriftingMDP is made of."""

    space: StateActions

    def at(self, t: int) -> tuple[Reals, Transitions]:
        """Return rewards and transitions at time t."""
        ...

    def variations(self, first: int, last: int) -> tuple[Reals, Reals]:
        """Return B_{r,t} and B_{p,t} for t = first..last-1."""
        ...

    def totals(self, first: int, last: int) -> tuple[float, float]:
        """Return the sums of the two series."""
        ...

    def tables(self, first: int, last: int) -> Tables:
        """Return the tables from `first` on, up to `last` or as far as one piece should go."""
        ...

    def supports(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number a time; times with the same number have the same possible moves."""
        ...


def largest(difference: Reals) -> Any:
    """Return the max norm of a difference of rewards, or of each of many: how far they moved."""
    return np.abs(difference).max(axis=-1)


def largest_row(difference: Transitions) -> Any:
    """Return the largest L1 norm of a row, or one for each of many: how far rows moved."""
    if isinstance(difference, np.ndarray):
        return np.abs(difference).sum(axis=-1).max(axis=-1)
    return np.asarray(abs(difference).sum(axis=1)).max()


def join_cells(stack: Sequence[Cells]) -> Cells:
    """Return the rows of several models as those of one."""
    ends = np.cumsum([0] + [int(cells.rows[-1]) for cells in stack])
    require_memory(44.0 * float(ends[-1]), "alias tables", fix="use fewer or sparser base models")
    rows = [cells.rows[:-1] + end for cells, end in zip(stack, ends[:-1], strict=True)]
    return Cells(
        np.concatenate([*rows, ends[-1:]]).astype(np.int64),
        np.concatenate([cells.states for cells in stack]),
        np.concatenate([cells.probabilities for cells in stack]),
    )


def alias_table(cells: Cells) -> Alias:
    """Return the alias tables of all rows."""
    from windage.kernels.jit import call  # numba loads here, not with the package
    from windage.kernels.simulator import Alias, build

    lengths = np.diff(cells.rows)
    n, longest = cells.states.size, int(lengths.max())
    direct = np.array_equal(cells.states, np.arange(n) - np.repeat(cells.rows[:-1], lengths))
    made = Alias(
        direct, cells.rows, np.empty(n, np.uint32), cells.states,
        np.empty(n, np.uint64), np.empty(n, np.int32),
    )  # fmt: skip
    work = np.empty(longest), np.empty(longest, np.int64)
    call(build, made, cells.probabilities, *work, seconds=4e-6 * cells.probabilities.size)
    return made
