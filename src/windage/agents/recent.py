"""The last samples of a run, kept for whoever starts to learn later."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.validation import require_memory

__all__ = ["Recent"]

_TYPES = {"pair": np.int64, "reward": np.float64, "after": np.int64}


class Recent:
    """A ring of the last `capacity` samples: pair, reward, next state.

    Examples
    --------
    >>> recent = Recent(capacity=2)
    >>> recent.add(0, np.array([5, 6, 7]), np.array([0.0, 0.5, 1.0]), np.array([1, 0, 1]))
    >>> recent.last(9)[0].tolist()
    [6, 7]
    """

    def __init__(self, capacity: int) -> None:
        require_memory(24.0 * capacity, "window", fix="choose smaller windows")
        self.capacity = capacity
        self.seen = 0
        self._rings: list[NDArray[Any]] = [np.zeros(capacity, kind) for kind in _TYPES.values()]

    def add(
        self,
        before: int,
        pairs: NDArray[np.int64],
        rewards: NDArray[np.float64],
        afters: NDArray[Any],
    ) -> None:
        """Remember samples, the oldest first, of which so many came before; twice is as once."""
        n, seen = min(pairs.size, self.capacity), before + pairs.size
        slots = np.arange(seen - n, seen) % self.capacity
        for ring, new in zip(self._rings, (pairs, rewards, afters), strict=True):
            ring[slots] = new[new.size - n :]
        self.seen = seen

    def last(self, n: int) -> tuple[NDArray[Any], ...]:
        """Return the last n samples, or as many as there are, the oldest first."""
        kept = min(n, self.seen, self.capacity)
        slots = np.arange(self.seen - kept, self.seen) % self.capacity
        return tuple(ring[slots] for ring in self._rings)

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must survive."""
        kept = dict(zip(_TYPES, self.last(self.capacity), strict=True))
        return kept | {"seen": np.array([self.seen])}

    def restore(self, arrays: dict[str, NDArray[Any]], pairs: int, states: int) -> None:
        """Take back what `saved` gave; samples are of so many pairs and states."""
        (seen,) = arrays["seen"].tolist()
        n = min(seen, self.capacity)
        for name, kind in _TYPES.items():
            if arrays[name].shape != (n,) or arrays[name].dtype != kind:
                raise ValueError(name)
        for name, most in (("pair", pairs), ("after", states)):
            if n and not 0 <= arrays[name].min() <= arrays[name].max() < most:
                raise ValueError(name)
        if not np.isfinite(arrays["reward"]).all():
            raise ValueError("reward")
        self.add(seen - n, arrays["pair"], arrays["reward"], arrays["after"])
