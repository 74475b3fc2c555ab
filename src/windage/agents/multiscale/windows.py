"""Many windows over one stream of samples, and how well each has predicted it.

Window k is the last W_k samples; the longest is all history. They share one ring of samples and one
table of what was seen to follow, so that K windows cost K counts a cell and a
step of order K. `kernels.window_experts` says how they are weighed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.errors import StateError
from windage.spaces import StateActions
from windage.validation import require_memory

if TYPE_CHECKING:
    from windage.kernels.window_experts import Cells, Experts

__all__ = ["Weighing", "WindowExperts", "windows_for"]

_TABLE = 1 << 20  # up to as many (pair, state) have a place of their own, beyond they are hashed
_ROOM = 1 << 14  # cells there is room for at first


def windows_for(space: StateActions, horizon: int, base: int = 2) -> list[int]:
    """Return the windows a learner compares: powers of two from 2 SA on, then all of T.

    Below two samples a pair there is nothing to predict from.

    >>> windows_for(StateActions([2, 2]), 100)
    [8, 16, 32, 64, 100]
    """
    shortest = (2 * space.n_pairs - 1).bit_length()
    step = base.bit_length() - 1
    powers = [1 << i for i in range(shortest, horizon.bit_length() + 1, step) if 1 << i < horizon]
    return [*powers, horizon]


@dataclass(frozen=True)
class Weighing:
    """How windows are weighed.

    Attributes
    ----------
    share
        alpha: how much of the weights is handed out again each step.
    tilt
        beta: the next longer window has exp(beta) times the prior weight; 0: all have the same.
    by_overall, by_pair
        Whether windows are weighed overall, and for each pair.
    apart
        Whether rewards and transitions have weights of their own.
    strength
        m: for how many samples what was forgotten of a pair may count, at most; 0: for none.
    """

    share: float = 2e-3
    tilt: float = 0.0
    by_overall: bool = True
    by_pair: bool = True
    apart: bool = True
    strength: float = 32.0


class WindowExperts:
    """Samples, counts and weights of all windows.

    Examples
    --------
    >>> experts = WindowExperts(StateActions([1, 1]), [4, 100])
    >>> for t in range(60):
    ...     experts.add(t % 2, float(t < 30), 1 - t % 2)
    >>> experts.visits[:, 0].tolist(), experts.rewards[:, 0].tolist()
    ([2, 2], [0.0, 0.0])
    >>> bool(experts.weights[1][0] > 0.9)  # the shorter window saw the rewards change
    True
    """

    def __init__(
        self, space: StateActions, windows: list[int], weighing: Weighing | None = None
    ) -> None:
        self.space = space
        self.windows = windows
        self._weighing = weighing or Weighing()
        self._all_cells = space.n_pairs * space.n_states
        room = min(self._all_cells, _ROOM)
        ring = windows[-2] if len(windows) > 1 else 1
        require_memory(
            16.0 * ring + 48.0 * space.n_pairs * len(windows) + self._bytes(room),
            "horizon",
            fix="make an agent with a smaller horizon, or one with a window",
        )
        self.kernel = self._empty(ring, room)

    def _bytes(self, room: int) -> float:
        """Return how much memory so many cells take."""
        table = self._all_cells if self._all_cells <= _TABLE else 4 * room
        return 4.0 * table + 4.0 * room * (3 + len(self.windows))

    def _empty(self, ring: int, room: int) -> Experts:
        from windage.kernels.window_experts import CLOCK, SAMPLE, Discarded, Experts

        n, K = self.space.n_pairs, len(self.windows)
        prior = np.exp(self._weighing.tilt * (np.arange(K) - K + 1.0))
        prior /= prior.sum()
        return Experts(
            windows=np.array(self.windows, np.int64),
            prior=prior,
            share=self._weighing.share,
            by_overall=self._weighing.by_overall,
            by_pair=self._weighing.by_pair,
            apart=self._weighing.apart,
            clock=np.zeros(1, CLOCK),
            ring=np.zeros(ring, SAMPLE),
            cells=self._blank_cells(room),
            visits=np.zeros((n, K)),
            sums=np.zeros((n, K)),
            overall=np.tile(prior, (2, 1)),
            pairs=np.full((2, n, K), 1.0 / K),
            discarded=Discarded(self._weighing.strength, np.full(2, 0.5), np.full((2, n), 0.5)),
        )

    def _blank_cells(self, room: int) -> Cells:
        from windage.kernels.window_experts import NONE, Cells

        hashed = self._all_cells > _TABLE
        places = 1 << max(4, (2 * room - 1).bit_length()) if hashed else self._all_cells
        return Cells(
            n_states=self.space.n_states,
            hashed=hashed,
            met=np.zeros(1, np.int64),
            table=np.zeros(places, np.int32),
            pair=np.zeros(room, np.int32),
            state=np.zeros(room, np.int32),
            older=np.zeros(room, np.int32),
            newest=np.full(self.space.n_pairs, NONE, np.int32),
            counts=np.zeros((room, len(self.windows)), np.int32),
        )

    @property
    def room(self) -> int:
        """How many cells there is room for."""
        return self.kernel.cells.pair.size

    def make_room(self, samples: int) -> None:
        """See to it that so many more samples fit; `kernel` may be another one afterwards."""
        from windage.kernels.window_experts import enter

        old = self.kernel.cells
        n = int(old.met[0])
        needed = min(n + samples, self._all_cells)
        if needed <= self.room:
            return
        room = min(2 * needed, self._all_cells)
        require_memory(self._bytes(room), "horizon", fix="use an agent with a window")
        cells = self._blank_cells(room)
        enter(cells, old.pair[:n], old.state[:n])
        cells.counts[:n] = old.counts[:n]
        self.kernel = self.kernel._replace(cells=cells)

    def add(self, pair: int, reward: float, after: int) -> None:
        """Learn from one more sample, its reward in [0, 1]."""
        from windage.kernels.window_experts import take_all

        self.make_room(1)
        take_all(self.kernel, np.array([pair]), np.array([reward]), np.array([after]))

    @property
    def taken(self) -> int:
        """How many samples there were."""
        return int(self.kernel.clock["taken"][0])

    @property
    def ahead(self) -> int:
        """How many of them were of the time before t = 1."""
        return int(self.kernel.clock["ahead"][0])

    @ahead.setter
    def ahead(self, samples: int) -> None:
        self.kernel.clock["ahead"] = samples

    @property
    def visits(self) -> NDArray[np.int64]:
        """[pair, window] N."""
        return self.kernel.visits.astype(np.int64)

    @property
    def rewards(self) -> NDArray[np.float64]:
        """[pair, window] sums of rewards."""
        return self.kernel.sums.copy()

    @property
    def weights(self) -> NDArray[np.float64]:
        """[2, window] overall: for transitions, for rewards."""
        return self.kernel.overall.copy()

    def memory(self) -> NDArray[np.float64]:
        """[2, pair] how many of the last samples count for it, on average over the windows."""
        both = self.kernel.overall[:, None] * self.kernel.pairs
        both /= both.sum(axis=2, keepdims=True)
        reach = np.minimum(self.kernel.windows, max(1, self.taken)).astype(np.float64)
        return np.asarray(both @ reach)

    @property
    def contents(self) -> NDArray[np.int64]:
        """How many samples of every pair count, rounded: the mean of rewards and transitions."""
        both = self.kernel.overall[:, None] * self.kernel.pairs
        both /= both.sum(axis=2, keepdims=True)
        counted = (both * self.kernel.visits).sum(axis=2).mean(axis=0)
        return np.asarray(np.rint(counted), np.int64)

    def transitions(self, pair: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the states seen after a pair, rising, and [state, window] how often."""
        cells, n = self.kernel.cells, int(self.kernel.cells.met[0])
        mine = np.flatnonzero(cells.pair[:n] == pair)
        mine = mine[np.argsort(cells.state[mine])]
        return cells.state[mine].astype(np.int64), cells.counts[mine].astype(np.int64)

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must survive: the ring, all counts of all history, the weights."""
        k, n = self.kernel, int(self.kernel.cells.met[0])
        kept = k.ring[np.arange(max(0, self.taken - k.ring.size), self.taken) % k.ring.size]
        return {
            "clock": np.array(k.clock[0].item()),
            "ring_cell": kept["cell"].copy(),
            "ring_reward": kept["reward"].copy(),
            "cell_pair": k.cells.pair[:n].copy(),
            "cell_state": k.cells.state[:n].copy(),
            "cell_count": k.cells.counts[:n, -1].copy(),
            "sums": k.sums[:, -1].copy(),
            "overall": k.overall.copy(),
            "pairs": k.pairs.copy(),
            "discarded": np.column_stack([k.discarded.overall, k.discarded.pairs]),
        }

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Take back what `saved` gave, into an empty object with the same windows."""
        from windage.kernels.window_experts import enter

        space = self.space
        pair, state, count = (saved[f"cell_{name}"] for name in ("pair", "state", "count"))
        taken, ahead, last = (int(x) for x in _shaped(saved, "clock", np.zeros(3, np.int64)))
        kept = min(taken, self.kernel.ring.size)
        ring, rewards = saved["ring_cell"], saved["ring_reward"]
        keys = pair.astype(np.int64) * space.n_states + state
        _require(0 <= ahead <= taken and 0 <= last < space.n_states, "clock")
        _require(pair.shape == state.shape == count.shape == (pair.size,), "cell_pair")
        _require(_inside(pair, space.n_pairs) and _inside(state, space.n_states), "cell_pair")
        _require(np.unique(keys).size == keys.size, "cell_pair")
        _require(count.dtype == np.int32 and bool((count > 0).all()), "cell_count")
        _require(int(count.sum(dtype=np.int64)) == taken, "cell_count")
        _require(ring.shape == rewards.shape == (kept,) and _inside(ring, pair.size), "ring_cell")
        _require(rewards.dtype == np.float64, "ring_reward")
        _require(bool(((rewards >= 0.0) & (rewards <= 1.0)).all()), "ring_reward")
        self.make_room(pair.size)
        k = self.kernel
        enter(k.cells, pair, state)
        for i, W in enumerate(self.windows[:-1]):
            here = slice(max(0, kept - W), kept)
            np.add.at(k.cells.counts[:, i], ring[here], 1)
            np.add.at(k.visits[:, i], pair[ring[here]], 1.0)
            np.add.at(k.sums[:, i], pair[ring[here]], rewards[here])
        k.cells.counts[: pair.size, -1] = count
        np.add.at(k.visits[:, -1], pair, count.astype(np.float64))
        k.sums[:, -1] = _shaped(saved, "sums", k.sums[:, -1])
        _require(bool((k.cells.counts[: pair.size, :-1] <= count[:, None]).all()), "cell_count")
        _require(bool(((k.sums[:, -1] >= 0) & (k.sums <= k.visits).T).all()), "sums")
        slots = np.arange(taken - kept, taken) % k.ring.size
        k.ring["cell"][slots], k.ring["pair"][slots] = ring, pair[ring]
        k.ring["reward"][slots] = rewards
        for name, mine in (("overall", k.overall), ("pairs", k.pairs)):
            mine[:] = _shaped(saved, name, mine)
            whole = np.abs(mine.sum(axis=-1) - 1.0) < 1e-9
            _require(bool((mine > 0.0).all() and whole.all()), name)
        discarded = np.column_stack([k.discarded.overall, k.discarded.pairs])
        discarded[:] = _shaped(saved, "discarded", discarded)
        _require(bool(((discarded > 0.0) & (discarded < 1.0)).all()), "discarded")
        k.discarded.overall[:], k.discarded.pairs[:] = discarded[:, 0], discarded[:, 1:]
        k.clock[0] = taken, ahead, last


def _shaped(saved: dict[str, NDArray[Any]], name: str, like: NDArray[Any]) -> NDArray[Any]:
    _require(saved[name].shape == like.shape and saved[name].dtype == like.dtype, name)
    return saved[name]


def _inside(numbers: NDArray[Any], below: int) -> bool:
    return numbers.dtype == np.int32 and bool(((numbers >= 0) & (numbers < below)).all())


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise StateError(
            f"array {name!r} is impossible", field="state", fix="restore another copy of it"
        )
