"""What a drifting model is made of: the `Source` of its models at every t, and `Stream`s of them.

A `Blend` is a source (`models.blend`); drift that is no blend is a stream, a model for every t from
a function or from arrays. Both hand tables to compiled loops.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import ModelError, WindageError
from windage.models.mdp import (
    Cells,
    Transitions,
    cells_of,
    check_rewards,
    check_transitions,
    freeze,
)
from windage.spaces import StateActions
from windage.validation import require_memory

if TYPE_CHECKING:
    from windage.kernels.simulator import Alias

__all__ = [
    "KEPT_STEPS", "ArrayStream", "FunctionStream", "Scan", "Source", "Stream", "Tables",
    "alias_table", "join_cells", "largest", "largest_row",
]  # fmt: skip

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


Model = tuple[Reals, Transitions]

KEPT_STEPS = 1 << 22
"""Steps of the longest scan that is kept: 100 MB at most."""

_CELLS_A_CHUNK = 1 << 21  # what is tabulated at a time: 2M cells are about 50 MB


class Scan(NamedTuple):
    """What one pass over the models from `first` to `last` finds.

    `rewards` and `kernels` hold B_{r,t} and B_{p,t} for t = first..last-1; `moves` a number for
    each of the times first..last, the same where the same moves are possible.
    """

    first: int
    last: int
    rewards: Reals
    kernels: Reals
    moves: NDArray[np.int64]

    def between(self, first: int, last: int) -> Scan:
        """Return the part of the scan from `first` to `last`."""
        a, b = first - self.first, last - self.first
        return Scan(first, last, self.rewards[a:b], self.kernels[a:b], self.moves[a : b + 1])


class Stream(ABC):
    """A model for every t, asked for when it is needed; none is kept.

    What a pass over them finds is: the longest scan so far, so that budgets, changes and the
    stretches in which a model falls apart cost one pass together.
    """

    def __init__(self, space: StateActions, cells_a_step: int) -> None:
        self.space = space
        self._cells_a_step = cells_a_step
        self._scan: Scan | None = None

    @abstractmethod
    def at(self, t: int) -> Model:
        """Return rewards and transitions at time t."""

    def scan(self, first: int, last: int) -> Scan:
        """Return what a pass from `first` to `last` finds, made once if it is not too long."""
        kept = self._scan
        if kept is not None and kept.first <= first and last <= kept.last:
            return kept.between(first, last)
        found = self._pass(first, last)
        freeze(found.rewards, found.kernels, found.moves)
        longer = kept is None or last - first > kept.last - kept.first
        if longer and last - first < KEPT_STEPS:
            self._scan = found
        return found

    def variations(self, first: int, last: int) -> tuple[Reals, Reals]:
        """Return B_{r,t} and B_{p,t}, two models in memory at a time."""
        found = self.scan(first, last)
        return found.rewards, found.kernels

    def totals(self, first: int, last: int) -> tuple[float, float]:
        """Return the sums of both series, step by step: a stream has no closed form."""
        pieces = [
            [math.fsum(series) for series in self.variations(t, min(t + KEPT_STEPS - 1, last))]
            for t in range(first, last, KEPT_STEPS - 1)
        ]
        return math.fsum(r for r, _ in pieces), math.fsum(p for _, p in pieces)

    def tables(self, first: int, last: int) -> Tables:
        """Return tables in which every step is a base of its own."""
        piece = max(1, _CELLS_A_CHUNK // max(self._cells_a_step, 1))
        last = min(last, first + piece - 1)
        models = [self.at(t) for t in range(first, last + 1)]
        n = len(models)
        base, weight = np.arange(n, dtype=np.int32)[:, None], np.ones((n, 1))
        return Tables(
            first, last, alias_table(join_cells([cells_of(p) for _, p in models])),
            base, weight, np.stack([r for r, _ in models]), base, weight,
        )  # fmt: skip

    def supports(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for every distinct set of possible moves; times rise."""
        moves = self.scan(int(times[0]), int(times[-1])).moves
        numbers: NDArray[np.int64] = moves[times - times[0]]
        return numbers

    def _pass(self, first: int, last: int) -> Scan:
        r, p = np.zeros(last - first), np.zeros(last - first)
        moves = np.zeros(last - first + 1, dtype=np.int64)
        before = self.at(first)
        seen = {_possible(before[1]): 0}
        for i, t in enumerate(range(first + 1, last + 1)):
            after = self.at(t)
            r[i] = largest(after[0] - before[0])
            p[i] = largest_row(after[1] - before[1])
            moves[i + 1] = moves[i]
            if p[i] > 0.0:
                moves[i + 1] = seen.setdefault(_possible(after[1]), len(seen))
            before = after
        return Scan(first, last, r, p, moves)


class FunctionStream(Stream):
    """The models that a user's function answers with; every answer is checked.

    It travels between processes if the function does.
    """

    def __init__(
        self,
        space: StateActions,
        function: Callable[[int], tuple[ArrayLike, ArrayLike | Transitions]],
        cells_a_step: int = 1,
    ) -> None:
        super().__init__(space, cells_a_step)
        self.function = function

    def at(self, t: int) -> Model:
        """Return rewards and transitions at time t, or say what is wrong with the answer."""
        try:
            answer: Any = self.function(t)
        except WindageError:
            raise
        except Exception as err:
            raise ModelError(
                f"raised {type(err).__name__}: {err}",
                field="function",
                where=f"t={t}",
                fix="let it answer at every t from 1 to T",
            ) from err
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ModelError(
                f"returned {type(answer).__name__}",
                field="function",
                where=f"t={t}",
                fix="return the tuple (rewards, transitions)",
            )
        return (
            check_rewards(self.space, answer[0], at=f"t={t}"),
            check_transitions(self.space, answer[1], at=f"t={t}"),
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes without what was kept."""
        return type(self), (self.space, self.function, self._cells_a_step)


class ArrayStream(Stream):
    """The models of `rewards[t - 1]` and `transitions[t - 1]`, arrays over pairs."""

    def __init__(self, space: StateActions, rewards: Reals, transitions: Reals) -> None:
        super().__init__(space, transitions[0].size)
        freeze(rewards, transitions)
        self.rewards = rewards
        self.transitions = transitions

    def at(self, t: int) -> Model:
        """Return rewards and transitions at time t."""
        return self.rewards[t - 1], self.transitions[t - 1]

    def _pass(self, first: int, last: int) -> Scan:
        r, p = np.zeros(last - first), np.zeros(last - first)
        moves = np.zeros(last - first + 1, dtype=np.int64)
        seen = {_possible(self.transitions[first - 1]): 0}
        piece = max(1, _CELLS_A_CHUNK // self._cells_a_step)
        for begin in range(first, last, piece):
            end = min(begin + piece, last)
            some, here = slice(begin - 1, end), slice(begin - first, end - first)
            r[here] = largest(np.diff(self.rewards[some], axis=0))
            p[here] = largest_row(np.diff(self.transitions[some], axis=0))
        number = 0
        for i in range(last - first):
            if p[i] > 0.0:
                number = seen.setdefault(_possible(self.transitions[first + i]), len(seen))
            moves[i + 1] = number
        return Scan(first, last, r, p, moves)

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes without what was kept."""
        return type(self), (self.space, self.rewards, self.transitions)


def _possible(kernel: Transitions) -> bytes:
    """Return what stands for the possible moves of a kernel; sixteen bytes, however large it is."""
    if isinstance(kernel, np.ndarray):
        return blake2b(np.packbits(kernel > 0).tobytes(), digest_size=16).digest()
    return blake2b(kernel.indptr.tobytes() + kernel.indices.tobytes(), digest_size=16).digest()
