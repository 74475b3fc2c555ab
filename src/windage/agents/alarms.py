"""The two tests of MASTER: what they know, when they fire, and whether they can fire at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.validation import as_integer, as_real

__all__ = ["Alarms", "Following", "Reach", "Restart", "Restarts", "Tally"]

_RESTARTS_KEPT = 10_000
_LONGEST = 1000  # horizons of 2^1000 and more are not looked at


@dataclass(frozen=True)
class Tally:
    """What the tests know of a block: one value a step, so that no step is ever half counted.

    Attributes
    ----------
    t
        The last step that is counted, 0 before the first.
    order, start
        n, and the time of the first step of the block that goes on or begins after t.
    lowest
        U_t, the least optimistic gain of the block; infinite before its first step.
    missed
        Sum of optimistic gain minus reward over the block.
    earned
        Sum of all rewards in the life of the copy of each order.
    fired
        How often test 1 and test 2 have led to a restart.
    """

    t: int
    order: int
    start: int
    lowest: float
    missed: float
    earned: tuple[float, ...]
    fired: tuple[int, int]

    def opened(self, order: int, fired: tuple[int, int]) -> Tally:
        """Return the tally of a new block of 2^order steps, from the next step on."""
        earned = (0.0,) * len(self.earned)
        return Tally(self.t, order, self.t + 1, math.inf, 0.0, earned, fired)

    def saved(self) -> dict[str, Any]:
        """Return all of it but the time, as plain data."""
        return {
            "order": self.order,
            "start": self.start,
            "lowest": self.lowest if self.lowest < math.inf else None,
            "missed": self.missed,
            "earned": self.earned,
            "fired": self.fired,
        }

    @classmethod
    def restored(cls, values: dict[str, Any], t: int, orders: int) -> Tally:
        """Return what was saved before step t, of an agent with so many orders of copies."""
        start = as_integer(values["start"], "start", low=1, high=t)
        order = as_integer(values["order"], "order", low=0, high=start.bit_length() - 1)
        lowest = math.inf if t == start else as_real(values["lowest"], "lowest")
        missed = as_real(values["missed"], "missed")
        earned = tuple(as_real(x, "earned") for x in values["earned"])
        ones, twos = (as_integer(n, "fired", low=0, high=t) for n in values["fired"])
        if len(earned) != orders:
            raise ValueError("earned")
        return cls(t - 1, order, start, lowest, missed, earned, (ones, twos))


@dataclass(frozen=True)
class Restart:
    """A test that fired after step t: `value` had reached `threshold`, in units of the rewards.

    `order` is that of the copy that ended (test 1) or of the block (test 2).
    """

    t: int
    test: int
    order: int
    value: float
    threshold: float


class Restarts:
    """The last restarts, ten thousand at most: number m, from 0 on, in row m % size."""

    def __init__(self, horizon: int) -> None:
        self._size = min(_RESTARTS_KEPT, horizon)
        self._numbers = np.zeros((self._size, 3), np.int64)  # t, test, order
        self._reals = np.zeros((self._size, 2))  # value, threshold
        self.total = 0
        """How many there have been."""

    def add(self, restart: Restart) -> None:
        """Keep one more."""
        row = self.total % self._size
        self._numbers[row] = restart.t, restart.test, restart.order
        self._reals[row] = restart.value, restart.threshold
        self.total += 1

    def listed(self) -> tuple[Restart, ...]:
        """Return those that are kept, the oldest first."""
        numbers, reals = self.saved().values()
        rows = zip(numbers.tolist(), reals.tolist(), strict=True)
        return tuple(Restart(*some, *others) for some, others in rows)

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return those that are kept as arrays, the oldest first."""
        rows = np.arange(max(0, self.total - self._size), self.total) % self._size
        return {"numbers": self._numbers[rows], "reals": self._reals[rows]}

    def restore(self, saved: dict[str, NDArray[Any]], total: int, t: int) -> None:
        """Take back what was saved before step t."""
        numbers, reals, n = saved["numbers"], saved["reals"], min(total, self._size)
        shapes = numbers.shape == (n, 3) and reals.shape == (n, 2)
        if not shapes or numbers.dtype != np.int64 or not np.isfinite(reals).all():
            raise ValueError("restarts")
        times = np.append(numbers[:, 0], t)
        if (np.diff(times, prepend=0) < 1).any() or not np.isin(numbers[:, 1], (1, 2)).all():
            raise ValueError("restarts")
        rows = np.arange(total - n, total) % self._size
        self._numbers[rows], self._reals[rows], self.total = numbers, reals, total


class Following(NamedTuple):
    """What a step leads to, once the copy that acts has learned from it."""

    tally: Tally
    restart: Restart | None
    clock: int  # of that copy, then


@dataclass(frozen=True)
class Reach:
    """Whether one test can fire at all before the horizon.

    Attributes
    ----------
    test
        1 or 2.
    least
        The smallest threshold it ever has, in units of the width of the rewards: above 1 no
        rewards within their range can reach it, up to the precision of the plans.
    horizon
        A horizon from which on it could, of the form 2^k - 1; None: there is none.
    """

    test: int
    least: float
    horizon: int | None

    @property
    def can_fire(self) -> bool:
        """Whether the smallest threshold is within reach."""
        return self.least <= 1.0

    def __str__(self) -> str:
        if self.can_fire:
            return f"test {self.test} can fire: its least threshold is {self.least:.3g} of 1"
        far = "at no horizon"
        if self.horizon is not None:
            far = f"from about T = {float(self.horizon):.2g} on"
        return (
            f"test {self.test} cannot fire at this horizon: its least threshold is "
            f"{self.least:.3g}, and means of rewards in [0, 1] differ by 1 at most; it could {far}"
        )


@dataclass(frozen=True)
class Alarms:
    """The thresholds of the two tests; the constants are recalled from the paper.

    Attributes
    ----------
    horizon, delta
        T and delta.
    size
        D S sqrt(A).
    width
        The width of the range of rewards, 1 for [0, 1].
    test_1, test_2
        Factors of the tests, 9 and 3 in the paper.
    factor, constant
        rho^ / rho and c if they were given; None: those of the paper.
    """

    horizon: int
    delta: float
    size: float
    width: float
    test_1: float
    test_2: float
    factor: float | None
    constant: float | None

    def constants(self, T: int) -> tuple[float, float]:
        """Return rho^ / rho and c, as they would be at horizon T."""
        logs = math.log(T) - math.log(self.delta)
        factor = 6.0 * (math.log2(T) + 1.0) * logs if self.factor is None else self.factor
        c = self.size * math.sqrt(logs) if self.constant is None else self.constant
        return factor, c

    def rho_hat(self, steps: int) -> float:
        """Return rho^ of so many steps, in units of the rewards."""
        return self.width * self._rho_hat(steps, self.horizon)

    def bar_2(self, steps: int) -> float:
        """Return the threshold of test 2 after so many steps of a block."""
        return self.test_2 * self.rho_hat(steps) if steps > 0 else math.inf

    def _rho_hat(self, steps: int, T: int) -> float:
        return math.prod(self.constants(T)) / math.sqrt(steps)

    def after(
        self, tally: Tally, reward: float, gain: float, live: Sequence[tuple[int, int]]
    ) -> tuple[Tally, Restart | None]:
        """Return the tally one step later, and the restart that step leads to, if any.

        `live` are the orders and starts of the copies that live in the step, the shortest first.
        """
        t = tally.t + 1
        earned = [0.0] * len(tally.earned)
        for order, start in live:
            earned[order] = (tally.earned[order] if start < t else 0.0) + reward
        now = replace(
            tally,
            t=t,
            lowest=min(tally.lowest, gain),
            missed=tally.missed + (gain - reward),
            earned=tuple(earned),
        )
        restart = self._tested(now, [m for m, start in live if start + (1 << m) == t + 1])
        if restart is not None:
            ones, twos = tally.fired
            return now.opened(0, (ones + (restart.test == 1), twos + (restart.test == 2))), restart
        over = t - tally.start + 1 == 1 << tally.order
        return now.opened(tally.order + 1, tally.fired) if over else now, None

    def _tested(self, now: Tally, ended: Sequence[int]) -> Restart | None:
        """Return the first test that fires: test 1 from the shortest copy on, then test 2."""
        for order in ended:
            value = now.earned[order] / (1 << order)
            bar = now.lowest + self.test_1 * self.rho_hat(1 << order)
            if value >= bar:
                return Restart(now.t, 1, order, value, bar)
        steps = now.t - now.start + 1
        value, bar = now.missed / steps, self.bar_2(steps)
        return Restart(now.t, 2, now.order, value, bar) if value >= bar else None

    def reach(self) -> tuple[Reach, Reach]:
        """Say of both tests whether they can fire before the horizon, and from which on if not."""
        T = self.horizon
        longest = 1 << ((T + 1).bit_length() - 2)  # of the copies that can end
        block = 1 << (T.bit_length() - 1)  # start and steps of the last block; it may be cut short
        stretch = max(block // 2, T - block + 1)
        return self._reach(1, self.test_1, longest), self._reach(2, self.test_2, stretch)

    def _reach(self, test: int, factor: float, steps: int) -> Reach:
        # a horizon of 2^k - 1 ends with a whole block of 2^(k - 1) steps
        far = [
            k
            for k in range(1, _LONGEST)
            if factor * self._rho_hat(1 << (k - 1), (1 << k) - 1) > 1.0
        ]
        first = far[-1] + 1 if far else 1
        horizon = (1 << first) - 1 if first < _LONGEST else None
        return Reach(test, factor * self._rho_hat(steps, self.horizon), horizon)
