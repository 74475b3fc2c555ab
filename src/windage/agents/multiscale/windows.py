"""Many windows over one stream of samples, and how well each has predicted it.

Window k is the last W_k steps; the longest is all history. They share one ring of steps and one
table of the outcomes each law had, so that K windows cost K counts a cell and a
step of order K. `kernels.window_experts` says how they are weighed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError, StateError
from windage.spaces import StateActions, as_space
from windage.structure import INTERVAL, Structure
from windage.validation import (
    LAST_TIME,
    as_integer,
    as_integers,
    as_real,
    as_size,
    require_memory,
    shown,
)

if TYPE_CHECKING:
    from windage.kernels.window_experts import Cells, Experts, Weights

__all__ = ["Weighing", "WindowExperts", "symbols_of", "windows_for"]

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

    Without a structure every pair has a law of its own, whose outcomes are the next states.

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
        self,
        space: StateActions,
        windows: list[int],
        weighing: Weighing | None = None,
        structure: Structure | None = None,
        prior: NDArray[np.float64] | None = None,
    ) -> None:
        self.space = as_space(space)
        self.windows = as_integers(windows, "windows", low=1, high=LAST_TIME).tolist()
        if not self.windows or self.windows != sorted(set(self.windows)):
            raise InputError(
                f"{shown(windows)} do not rise", field="windows", fix="pass rising lengths"
            )
        windows = self.windows
        self._prior = prior  # in the place of that of `tilt`
        self._weighing = weighing or Weighing()
        self._sizes = np.full(space.n_pairs, space.n_states, np.int64)
        self._samples = 0  # of laws that a step may bring; 0: always one, its pair's
        self._learned = space.n_pairs  # mean rewards that are
        symbols = self._sizes
        if structure is not None:
            self._sizes, self._samples = structure.law_sizes, len(structure.variables)
            self._learned = space.n_pairs if structure.reward is None else 0
            symbols = symbols_of(structure)
        self._symbols = symbols
        self._stride = int(symbols.max())
        self._all_cells = symbols.size * self._stride
        room = min(self._all_cells, _ROOM)
        ring = 1 << (windows[-2] - 1).bit_length() if len(windows) > 1 else 1
        require_memory(
            (16.0 + 4.0 * self._samples) * ring
            + 24.0 * (symbols.size + self._learned) * len(windows)
            + self._bytes(room),
            "horizon",
            fix="make an agent with a smaller horizon, or one with a window",
        )
        self.kernel = self._empty(ring, room)

    def _bytes(self, room: int) -> float:
        """Return how much memory so many cells take."""
        table = self._all_cells if self._all_cells <= _TABLE else 4 * room
        return 4.0 * table + 4.0 * room * (3 + len(self.windows))

    def _empty(self, ring: int, room: int) -> Experts:
        from windage.kernels.window_experts import CLOCK, NONE, SAMPLE, Experts, Weights

        n, K, rule = self._sizes.size, len(self.windows), self._weighing
        prior = self._prior
        if prior is None:
            prior = np.exp(rule.tilt * (np.arange(K) - K + 1.0))
        prior = prior / prior.sum()
        visits, m = np.zeros((n, K)), self._learned

        def even(n: int) -> Weights:
            own = np.full((n, K), 1.0 / K)
            return Weights(prior.copy(), own, np.full(1, 0.5), np.full(n, 0.5))

        of_laws = even(n)
        return Experts(
            windows=np.array(self.windows, np.int64),
            prior=prior,
            share=rule.share,
            strength=rule.strength,
            by_overall=rule.by_overall,
            by_law=rule.by_pair,
            apart=rule.apart,
            clock=np.zeros(1, CLOCK),
            ring=np.zeros(ring, SAMPLE),
            shown=np.full((ring if self._samples else 0, self._samples), NONE, np.int32),
            cells=self._blank_cells(room),
            even=1.0 / self._sizes,
            visits=visits,
            tried=np.zeros((m, K)) if self._samples else visits,
            sums=np.zeros((m, K)),
            of_laws=of_laws,
            # what is known needs no memory of its own
            of_rewards=even(m) if m else even(0)._replace(overall=of_laws.overall),
            chances=np.zeros((2, K)),
        )

    def _blank_cells(self, room: int) -> Cells:
        from windage.kernels.window_experts import NONE, Cells

        hashed = self._all_cells > _TABLE
        places = 1 << max(4, (2 * room - 1).bit_length()) if hashed else self._all_cells
        return Cells(
            stride=self._stride,
            hashed=hashed,
            met=np.zeros(1, np.int64),
            table=np.zeros(places, np.int32),
            law=np.zeros(room, np.int32),
            outcome=np.zeros(room, np.int32),
            older=np.zeros(room, np.int32),
            newest=np.full(self._sizes.size, NONE, np.int32),
            counts=np.zeros((room, len(self.windows)), np.int32),
        )

    @property
    def room(self) -> int:
        """How many cells there is room for."""
        return self.kernel.cells.law.size

    def make_room(self, steps: int) -> None:
        """See to it that so many more steps fit; `kernel` may be another one afterwards."""
        from windage.kernels.window_experts import enter

        old = self.kernel.cells
        n = int(old.met[0])
        needed = min(n + steps * max(1, self._samples), self._all_cells)
        if needed <= self.room:
            return
        room = min(2 * needed, self._all_cells)
        require_memory(self._bytes(room), "horizon", fix="use an agent with a window")
        cells = self._blank_cells(room)
        enter(cells, old.law[:n], old.outcome[:n])
        cells.counts[:n] = old.counts[:n]
        self.kernel = self.kernel._replace(cells=cells)

    def add(self, pair: int, reward: float, after: int) -> None:
        """Learn from one more step without a structure, its reward in [0, 1]."""
        from windage.kernels.window_experts import take_all

        p = as_integer(pair, "pair", low=0, high=self.space.n_pairs - 1)
        state = self.space.check_state(after, "after")
        x = as_real(reward, "reward", low=0.0, high=1.0)
        self.make_room(1)
        take_all(self.kernel, np.array([p]), np.array([x]), np.array([state]))

    @property
    def taken(self) -> int:
        """How many steps there were."""
        return int(self.kernel.clock["taken"][0])

    @property
    def ahead(self) -> int:
        """How many of them were of the time before t = 1."""
        return int(self.kernel.clock["ahead"][0])

    @ahead.setter
    def ahead(self, steps: int) -> None:
        self.kernel.clock["ahead"] = as_size(steps, "ahead", low=0)

    @property
    def visits(self) -> NDArray[np.int64]:
        """[law, window] N."""
        return self.kernel.visits.astype(np.int64)

    @property
    def rewards(self) -> NDArray[np.float64]:
        """[pair, window] sums of rewards."""
        return self.kernel.sums.copy()

    @property
    def weights(self) -> NDArray[np.float64]:
        """[2, window] overall: of laws, of rewards."""
        return np.stack([self.kernel.of_laws.overall, self.kernel.of_rewards.overall])

    def _by_law(self, weights: Weights) -> NDArray[np.float64]:
        """[law or pair, window] both weights together."""
        both = weights.overall * weights.own
        return np.asarray(both / both.sum(axis=1, keepdims=True))

    def memory(self) -> NDArray[np.float64]:
        """[2, pair] how many of the last steps count for it, on average over the windows."""
        return np.stack([self.reach(self.kernel.of_laws), self.reach(self.kernel.of_rewards)])

    def reach(self, weights: Weights) -> NDArray[np.float64]:
        """[law or pair] how many of the last steps count for it."""
        reach = np.minimum(self.kernel.windows, max(1, self.taken)).astype(np.float64)
        return np.asarray(self._by_law(weights) @ reach)

    @property
    def contents(self) -> NDArray[np.int64]:
        """How many samples of every pair count, rounded: the mean of rewards and transitions."""
        both = np.stack([self._by_law(self.kernel.of_laws), self._by_law(self.kernel.of_rewards)])
        counted = (both * self.kernel.visits).sum(axis=2).mean(axis=0)
        return np.asarray(np.rint(counted), np.int64)

    def transitions(self, pair: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the states seen after a pair, rising, and [state, window] how often."""
        cells, n = self.kernel.cells, int(self.kernel.cells.met[0])
        mine = np.flatnonzero(cells.law[:n] == pair)
        mine = mine[np.argsort(cells.outcome[mine])]
        return cells.outcome[mine].astype(np.int64), cells.counts[mine].astype(np.int64)

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must survive: the ring, all counts of all history, the weights."""
        k, n = self.kernel, int(self.kernel.cells.met[0])
        slots = np.arange(max(0, self.taken - k.ring.size), self.taken) % k.ring.size
        kept = k.ring[slots]
        laws, rewards = k.of_laws, k.of_rewards
        past = np.concatenate([laws.past, laws.own_past]), rewards.past, rewards.own_past
        arrays = {
            "clock": np.array(k.clock[0].item()),
            "ring_cell": k.shown[slots] if self._samples else kept["cell"].copy(),
            "ring_reward": kept["reward"].copy(),
            "cell_pair": k.cells.law[:n].copy(),
            "cell_state": k.cells.outcome[:n].copy(),
            "cell_count": k.cells.counts[:n, -1].copy(),
            "sums": k.sums[:, -1].copy(),
            "overall": self.weights,
        }
        if not self._samples:
            return arrays | {
                "pairs": np.stack([laws.own, rewards.own]),
                "discarded": np.stack([past[0], np.concatenate(past[1:])]),
            }
        return arrays | {
            "ring_pair": kept["pair"].copy(),
            "tried": k.tried[:, -1].copy(),
            "laws": laws.own.copy(),
            "rewards": rewards.own.copy(),
            "discarded": np.concatenate(past),
        }

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Take back what `saved` gave, into an empty object with the same windows."""
        from windage.kernels.window_experts import enter

        law, outcome, count = (saved[f"cell_{name}"] for name in ("pair", "state", "count"))
        taken, ahead, last = (int(x) for x in _shaped(saved, "clock", np.zeros(3, np.int64)))
        k, samples = self.kernel, self._samples
        kept = min(taken, k.ring.size)
        ring, rewards = saved["ring_cell"], saved["ring_reward"]
        keys = law.astype(np.int64) * self._stride + outcome
        _require(0 <= ahead <= taken and 0 <= last < self.space.n_states, "clock")
        _require(law.shape == outcome.shape == count.shape == (law.size,), "cell_pair")
        _require(_inside(law, self._sizes.size) and _inside(outcome, self._stride), "cell_pair")
        _require(np.unique(keys).size == keys.size, "cell_pair")
        _require(bool((outcome < self._symbols[law]).all()), "cell_state")
        _require(count.dtype == np.int32 and bool((count > 0).all()), "cell_count")
        total = int(count.sum(dtype=np.int64))
        _require(total <= taken * samples if samples else total == taken, "cell_count")
        _require(ring.shape == ((kept, samples) if samples else (kept,)), "ring_cell")
        _require(_inside(ring, law.size, -1 if samples else 0), "ring_cell")
        _require(rewards.dtype == np.float64 and rewards.shape == (kept,), "ring_reward")
        _require(bool(((rewards >= 0.0) & (rewards <= 1.0)).all()), "ring_reward")
        self.make_room(law.size)
        k = self.kernel
        enter(k.cells, law, outcome)
        pairs = saved["ring_pair"] if samples else law[ring]
        _require(pairs.shape == (kept,) and _inside(pairs, self.space.n_pairs), "ring_pair")
        for i, W in enumerate(self.windows[:-1]):
            here = slice(max(0, kept - W), kept)
            cells = ring[here][ring[here] >= 0]
            np.add.at(k.cells.counts[:, i], cells, 1)
            np.add.at(k.visits[:, i], law[cells], 1.0)
            if self._learned:
                np.add.at(k.sums[:, i], pairs[here], rewards[here])
            if self._learned and samples:
                np.add.at(k.tried[:, i], pairs[here], 1.0)
        k.cells.counts[: law.size, -1] = count
        np.add.at(k.visits[:, -1], law, count.astype(np.float64))
        if samples:
            k.tried[:, -1] = _shaped(saved, "tried", k.tried[:, -1])
            _require(not self._learned or k.tried[:, -1].sum() == taken, "tried")
        k.sums[:, -1] = _shaped(saved, "sums", k.sums[:, -1])
        _require(bool((k.cells.counts[: law.size, :-1] <= count[:, None]).all()), "cell_count")
        _require(bool(((k.sums[:, -1] >= 0) & (k.sums <= k.tried).T).all()), "sums")
        slots = np.arange(taken - kept, taken) % k.ring.size
        k.ring["pair"][slots], k.ring["reward"][slots] = pairs, rewards
        if samples:
            k.shown[slots] = ring
        else:
            k.ring["cell"][slots] = ring
        self._restore_weights(saved)
        k.clock[0] = taken, ahead, last

    def _restore_weights(self, saved: dict[str, NDArray[Any]]) -> None:
        k = self.kernel
        laws, rewards = k.of_laws, k.of_rewards
        if self._samples:
            mine = {"laws": laws.own, "rewards": rewards.own}
            past = np.empty(2 + laws.own_past.size + rewards.own_past.size)
        else:
            mine = {"pairs": np.stack([laws.own, rewards.own])}
            past = np.empty((2, 1 + laws.own_past.size))
        found = {
            name: _shaped(saved, name, like)
            for name, like in ({"overall": self.weights} | mine | {"discarded": past}).items()
        }
        for name in ("overall", *mine):
            whole = np.abs(found[name].sum(axis=-1) - 1.0) < 1e-9
            fine = found[name] > 0.0 if self._prior is None else found[name] >= 0.0
            _require(bool(fine.all() and whole.all()), name)
        past = found["discarded"].ravel()
        _require(bool(((past > 0.0) & (past < 1.0)).all()), "discarded")
        laws.overall[:], rewards.overall[:] = found["overall"]
        laws.own[:] = found["laws"] if self._samples else found["pairs"][0]
        rewards.own[:] = found["rewards"] if self._samples else found["pairs"][1]
        n = 1 + laws.own_past.size
        laws.past[:], laws.own_past[:] = past[0], past[1:n]
        rewards.past[:], rewards.own_past[:] = past[n], past[n + 1 :]


def symbols_of(structure: Structure) -> NDArray[np.int64]:
    """Return how many different things a step may show of each law: outcomes, or intervals."""
    sizes = structure.law_sizes
    seen = structure.seen[[variable for variable, _ in structure.laws]]
    return np.where(seen == INTERVAL, sizes * (sizes + 1) // 2, sizes)


def _shaped(saved: dict[str, NDArray[Any]], name: str, like: NDArray[Any]) -> NDArray[Any]:
    _require(saved[name].shape == like.shape and saved[name].dtype == like.dtype, name)
    return saved[name]


def _inside(numbers: NDArray[Any], below: int, least: int = 0) -> bool:
    return numbers.dtype == np.int32 and bool(((numbers >= least) & (numbers < below)).all())


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise StateError(
            f"array {name!r} is impossible", field="state", fix="restore another copy of it"
        )
