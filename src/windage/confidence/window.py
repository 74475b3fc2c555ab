"""What counts: the last W samples, and N, r_hat and p_hat over them (section 4, Eq. (3)).

At the start of episode m the paper counts the samples of the times max(1, tau(m) - W) to
tau(m) - 1: the last W at most. `Window` keeps just these. Without a width it keeps everything,
which is the memory of UCRL2; with a restart schedule it starts anew at given times, which is that
of the learners that restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError, StateError
from windage.spaces import StateActions, as_space
from windage.validation import as_flag, as_integer, as_real, as_size, require_memory, shown

if TYPE_CHECKING:
    from windage.kernels.window import Window as Kernel

__all__ = ["Window", "as_restarts"]

_CELLS = 1 << 20  # up to as many (pair, state) cells are kept in a table, beyond in a hash table
_BATCH = 1 << 16  # samples that may wait to be counted
_CLOCK = ("taken", "counted", "dropped", "ahead", "restarts")
_SUMS = ("sum", "lost", "squares", "squares_lost")


class Window:
    """Samples and counts of one learner.

    Parameters
    ----------
    space
        States and actions.
    width
        W, the number of samples remembered; None: all of them.
    restarts
        Rising times, from 2 on, at which everything older is forgotten: the first sample to be
        added is that of time 1.
    squares
        Whether sums of squared rewards are kept too.
    longest
        How many steps an episode may last that can be asked what it was planned with. If samples
        must be counted before it ends, the table as it was is kept apart; 0: nobody asks.

    Examples
    --------
    >>> window = Window(StateActions([1, 1]), width=2)
    >>> for state in (0, 1, 0):
    ...     window.add(pair=state, reward=0.5, after=1 - state)
    >>> window.commit()
    >>> window.visits.tolist()
    [1, 1]
    """

    def __init__(
        self,
        space: StateActions,
        width: int | None = None,
        *,
        restarts: ArrayLike = (),
        squares: bool = False,
        longest: int = 0,
    ) -> None:
        self.space = as_space(space)
        self.width = None if width is None else as_integer(width, "window", low=1)
        self.restarts = as_restarts(restarts)
        self.squares = as_flag(squares, "squares")
        longest = as_integer(longest, "longest", low=0)
        batch = _BATCH if self.width is None else min(self.width, _BATCH)
        ring = batch if self.width is None else self.width + batch + 1  # W steps fit an episode
        self.keeps_plan = longest >= ring - (self.width or 0)
        cells = space.n_pairs * space.n_states
        self.is_hashed = cells > _CELLS
        self.most_cells = min(cells, ring) if self.is_hashed else cells
        slots = _slots(self.most_cells) if self.is_hashed else cells
        kept = self.most_cells if self.keeps_plan else 0
        require_memory(
            16 * (ring + slots + kept) + 56 * space.n_pairs,
            "window",
            fix="choose a smaller window",
        )
        self.kernel = self._empty(ring, slots)

    def _empty(self, ring: int, slots: int) -> Kernel:
        from windage.kernels.window import (
            CELL,
            CLOCK,
            COUNT,
            KEPT,
            SAMPLE,
            DenseWindow,
            HashedWindow,
        )

        kernel = (HashedWindow if self.is_hashed else DenseWindow)(
            clock=np.zeros(1, CLOCK),
            ring=np.zeros(ring, SAMPLE),
            counts=np.zeros(self.space.n_pairs, COUNT),
            changed=np.zeros(self.space.n_pairs, np.int32),
            sources=np.zeros(self.space.n_states, np.int64),
            cells=np.zeros(slots, CELL),
            restarts=self.restarts,
            planned=np.zeros(self.most_cells if self.keeps_plan else 0, KEPT),
        )
        kernel.clock["window"] = self.width or 0
        kernel.clock["squared"] = self.squares
        return kernel

    def add(self, pair: int, reward: float, after: int) -> None:
        """Remember one more sample."""
        from windage.kernels.window import take

        p = as_integer(pair, "pair", low=0, high=self.space.n_pairs - 1)
        state = self.space.check_state(after, "after")
        x = as_real(reward, "reward")
        self.make_room(1)
        take(self.kernel, p, x, state)

    def make_room(self, samples: int) -> bool:
        """See to it that so many more samples fit; returns whether `kernel` was replaced.

        Only a hash table of all history ever grows.
        """
        if not self.is_hashed or self.width is not None:
            return False
        samples = as_size(samples, "samples", low=0)
        from windage.kernels.window import CELL, KEPT, refill

        clock = self.kernel.clock[0]
        all_cells = self.space.n_pairs * self.space.n_states
        cells = int(clock["cells"] + clock["taken"] - clock["counted"]) + samples
        cells = min(cells, all_cells)
        if cells <= self.most_cells:
            return False
        most_cells = min(2 * cells, all_cells)
        slots = _slots(most_cells)
        kept = most_cells if self.keeps_plan else 0
        require_memory(16 * (slots + kept), "window", fix="use an agent with a window")
        planned = np.zeros(kept, KEPT)
        there = max(int(clock["kept"]) - 1, 0)
        planned[:there] = self.kernel.planned[:there]
        keys, numbers = self._cells()
        larger = self.kernel._replace(
            counts=self.kernel.counts.copy(),
            sources=np.zeros_like(self.kernel.sources),
            cells=np.zeros(slots, CELL),
            planned=planned,
        )
        larger.counts["distinct"] = 0
        refill(larger, *np.divmod(keys, self.space.n_states), numbers)
        self.kernel = larger  # whole: an interrupt leaves the old one or the new one
        self.most_cells = most_cells
        return True

    @property
    def ahead(self) -> int:
        """How many samples were added of the time before t = 1; nothing else may have been."""
        return int(self.kernel.clock["ahead"][0])

    @ahead.setter
    def ahead(self, samples: int) -> None:
        self.kernel.clock["ahead"] = as_size(samples, "ahead", low=0)

    def clear(self) -> None:
        """Forget everything."""
        kernel = self.kernel
        window, squared = kernel.clock[0]["window"], kernel.clock[0]["squared"]
        for array in (kernel.clock, kernel.counts, kernel.sources, kernel.cells):
            array[:] = np.zeros(1, array.dtype)
        kernel.clock["window"], kernel.clock["squared"] = window, squared

    def commit(self) -> None:
        """Count what was added since the last time; forget what is older than the window."""
        from windage.kernels.window import commit

        commit(self.kernel)

    @property
    def visits(self) -> NDArray[np.int64]:
        """N of every pair, as counted by the last `commit`."""
        return self.kernel.counts["visits"].copy()

    @property
    def contents(self) -> NDArray[np.int64]:
        """How many samples of every pair are remembered now, counted already or not."""
        from windage.kernels.window import contents

        found = np.empty(self.space.n_pairs, np.int64)
        contents(self.kernel, found)
        return found

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Sum of the rewards of every pair."""
        return np.asarray(self.kernel.counts["sum"] + self.kernel.counts["lost"])

    @property
    def transitions(self) -> scipy.sparse.csr_array:
        """How often each pair led to each state, as counted by the last `commit`."""
        return self._table(*self._cells())

    @property
    def planned(self) -> scipy.sparse.csr_array:
        """The same, when the current episode was planned: samples may have been counted since."""
        return self._table(*(self._planned_cells() or self._cells()))

    def _table(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> scipy.sparse.csr_array:
        shape = (self.space.n_pairs, self.space.n_states)
        return scipy.sparse.csr_array((counts, np.divmod(keys, shape[1])), shape=shape)

    def _cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the non-zero cells as pair * S + state, in rising order, and their counts."""
        m = self.kernel
        used = np.flatnonzero(m.cells["mark"])
        counts = m.cells["count"][used]
        keys = used
        if self.is_hashed:
            keys = (m.cells["mark"][used].astype(np.int64) - 1) * self.space.n_states
            keys += m.cells["state"][used]
        order = np.argsort(keys)
        return keys[order], counts[order]

    def _planned_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the cells that were kept for the current episode, None if the table has them."""
        kept = int(self.kernel.clock["kept"][0])
        if kept == 0:
            return None
        cells = np.sort(self.kernel.planned[: kept - 1], order="key")
        return cells["key"].copy(), cells["count"].copy()

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must survive: the samples not yet forgotten, counts, sums, changed pairs."""
        m, clock = self.kernel, self.kernel.clock[0]
        kept = m.ring[np.arange(clock["dropped"], clock["taken"]) % m.ring.size]
        keys, counts = self._cells()
        planned = self._planned_cells()
        aside = {} if planned is None else {"planned_key": planned[0], "planned_count": planned[1]}
        return aside | {
            "clock": np.array([clock[name] for name in _CLOCK]),
            "ring_pair": kept["pair"].copy(),
            "ring_after": kept["after"].copy(),
            "ring_reward": kept["reward"].copy(),
            "sums": np.stack([m.counts[name] for name in _SUMS[: 4 if self.squares else 2]]),
            "cell_key": keys,
            "cell_count": counts,
            "changed": m.changed[: clock["changed"]].copy(),
        }

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Take back what `saved` gave, into an empty window of the same width and schedule."""
        from windage.kernels.window import refill

        clock = _part(saved, "clock", 5)
        taken, counted, dropped, ahead, restarts = (int(n) for n in clock)
        pairs, states = self.space.n_pairs, self.space.n_states
        _require(0 <= ahead <= taken and 0 <= restarts <= self.restarts.size, "clock")
        start = ahead + int(self.restarts[restarts - 1]) - 1 if restarts > 0 else 0
        coming = self.restarts[restarts : restarts + 1]
        _require(not bool((coming + ahead <= counted + 1).any()), "clock")
        kept = taken - dropped
        first = max(start, counted - self.width) if self.width is not None else counted
        _require(0 <= dropped <= counted <= taken and dropped == first >= start, "clock")
        _require(kept < self.kernel.ring.size, "clock")  # a full ring is counted at once
        keys, counts = saved["cell_key"], saved["cell_count"]
        _require(keys.dtype == counts.dtype == np.int64 and keys.ndim == 1, "cell_key")
        _require(keys.shape == counts.shape and bool((np.diff(keys) > 0).all()), "cell_key")
        _require(_inside(keys, pairs * states) and bool((counts > 0).all()), "cell_key")
        since = start if self.width is None else dropped
        _require(int(counts.sum()) == counted - since, "clock")
        planned = saved["planned_key"].size if "planned_key" in saved else 0
        self.make_room(max(keys.size, planned) + taken - counted)
        m = self.kernel
        slots = np.arange(dropped, taken) % m.ring.size
        m.ring["pair"][slots] = _part(saved, "ring_pair", kept, below=pairs)
        m.ring["after"][slots] = _part(saved, "ring_after", kept, below=states)
        m.ring["reward"][slots] = _part(saved, "ring_reward", kept)
        if self.width is not None:  # what the window will take back must have been counted
            done = slice(counted - dropped)
            cells = saved["ring_pair"][done].astype(np.int64) * states + saved["ring_after"][done]
            seen, times = np.unique(cells, return_counts=True)
            _require(np.array_equal(keys, seen) and np.array_equal(counts, times), "cell_count")
        _require(saved["sums"].shape == (4 if self.squares else 2, pairs), "sums")
        for name, sums in zip(_SUMS, saved["sums"], strict=False):
            m.counts[name] = sums
        rows, columns = np.divmod(keys, states)
        np.add.at(m.counts["visits"], rows, counts)
        refill(m, rows, columns, counts)
        changed = _part(saved, "changed", saved["changed"].size, below=pairs)
        _require(np.unique(changed).size == changed.size, "changed")
        m.changed[: changed.size] = changed
        m.counts["changed"][changed] = 1
        for name, value in zip(_CLOCK, clock, strict=True):
            m.clock[name] = value
        m.clock["changed"], m.clock["slot"] = changed.size, taken % m.ring.size
        if "planned_key" in saved:
            self._restore_planned(saved, taken)

    def _restore_planned(self, saved: dict[str, NDArray[Any]], taken: int) -> None:
        m, cells = self.kernel, self.space.n_pairs * self.space.n_states
        size = saved["planned_key"].size
        _require(self.keeps_plan and size <= m.planned.size, "planned_key")
        keys = _part(saved, "planned_key", size, below=cells)
        counts = _part(saved, "planned_count", size)
        _require(bool((np.diff(keys) > 0).all()), "planned_key")
        _require(bool((counts > 0).all()) and int(counts.sum()) <= taken, "planned_count")
        m.planned["key"][:size], m.planned["count"][:size] = keys, counts
        m.clock["kept"] = 1 + size


def as_restarts(value: ArrayLike, field: str = "restarts") -> NDArray[np.int64]:
    """Return the times of a restart schedule, or say which one is impossible."""
    fix = "pass rising integer times from 2 on"
    try:
        given = np.asarray(value)
    except ValueError:
        given = np.array(None)  # uneven rows: no times either
    if given.ndim != 1 or (given.size > 0 and given.dtype.kind not in "iu"):
        raise InputError(f"{shown(value)} are no times", field=field, fix=fix)
    times = given.astype(np.int64)
    wrong = np.diff(times, prepend=1) <= 0
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InputError(
            f"{times[place]} comes too early", field=field, where=f"[{place}]", fix=fix
        )
    times.flags.writeable = False
    return times


def _slots(cells: int) -> int:
    """Return how large a hash table for so many cells is: a power of two, at most half full."""
    return 1 << max(4, (2 * cells - 1).bit_length())


def _part(
    saved: dict[str, NDArray[Any]], name: str, size: int, *, below: int | None = None
) -> NDArray[Any]:
    array = saved[name]
    _require(array.dtype.kind == ("f" if name == "ring_reward" else "i"), name)
    _require(array.shape == (size,) and (below is None or _inside(array, below)), name)
    return array


def _inside(numbers: NDArray[Any], below: int) -> bool:
    return bool(((numbers >= 0) & (numbers < below)).all())


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise StateError(
            f"array {name!r} is impossible", field="state", fix="restore another copy of it"
        )
