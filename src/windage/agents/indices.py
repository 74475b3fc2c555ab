"""Bandits that play the arm with the largest upper bound: UCB1, SW-UCB, D-UCB."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.bandits import BanditAgent, needed, warn_of_states
from windage.agents.blob import array_like
from windage.agents.fixed import fixed
from windage.confidence import tuning
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_integer, as_real, require_memory

if TYPE_CHECKING:
    from windage.kernels.bandits import Bounds

__all__ = ["DUCB", "SWUCB", "UCB1"]


@fixed("exploration")
class UCB1(BanditAgent):
    """Plays the arm with the largest mean + sqrt(2 ln n / N), n samples in all and N of the arm.

    Arms not seen are played first, and the first of equally good ones. It forgets nothing: the
    baseline for models that do not change.

    Parameters
    ----------
    exploration
        xi, the 2 under the root.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. If
        not given, any finite reward is taken as it is.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("bandit", horizon=1000, shape="breaks")
    >>> run = wd.run(model, UCB1(model.space, horizon=1000), seed=1)
    >>> run.actions[:4].tolist()
    [0, 1, 2, 0]
    """

    id: ClassVar[str] = "ucb1"
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "sqrt(K T log T), one state, no drift"
    source: ClassVar[str] = "Auer, Cesa-Bianchi, Fischer 2002, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        exploration: float = 2.0,
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self.exploration = as_real(exploration, "exploration", low=0.0)
        self._table: Bounds = self._bounds()
        warn_of_states(self)

    def _bounds(self) -> Bounds:
        return self._blank()

    def _blank(self, *, window: int = 0, discount: float = 1.0, scale: float = 1.0) -> Bounds:
        from windage.kernels.bandits import Bounds

        S, pairs = self.space.n_states, self.space.n_pairs
        size = window if window < self.horizon else 0  # else nothing ever leaves it
        require_memory(12.0 * S * size, "window", fix="choose a shorter window")
        return Bounds(
            offsets=np.ascontiguousarray(self.space.offsets),
            visits=np.zeros(pairs),
            sums=np.zeros(pairs),
            lost=np.zeros(pairs),
            clock=np.zeros(S, np.int64),
            ring_pair=np.zeros((S, size), np.int32),
            ring_reward=np.zeros((S, size)),
            now=np.zeros(3, np.int64),
            window=window,
            discount=discount,
            scale=scale,
            xi=self.exploration,
            **self._scale._asdict(),
        )

    @staticmethod
    def _kernels() -> tuple[Any, Any, Any]:
        from windage.kernels.bandits import best_bound, count, play_bounds

        return best_bound, count, play_bounds

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"exploration": self.exploration}

    def _held(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return state and slot of every sample in a window, state by state."""
        clock, size = self._table.clock, self._table.ring_pair.shape[1]
        kept = np.minimum(clock, size)
        states = np.repeat(np.arange(clock.size), kept)
        return states, np.arange(states.size) - np.repeat(np.cumsum(kept) - kept, kept)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        held = self._held()
        arrays = {name: getattr(self._table, name).copy() for name in _COUNTS}
        arrays |= {name: getattr(self._table, name)[held] for name in _RINGS}
        return {}, arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restored(values, arrays)
        for name in _COUNTS:
            mine = getattr(self._table, name)
            mine[:] = array_like(mine, arrays, name)
        clock, visits = self._table.clock, self._table.visits
        if clock.min() < 0 or clock.sum() != self.t - 1 or not (visits >= 0.0).all():
            raise ValueError("clock or visits")
        held = self._held()
        for name in _RINGS:
            ring = getattr(self._table, name)
            ring[held] = array_like(ring[held], arrays, name)
        pairs = self._table.ring_pair[held]
        first, last = self.space.offsets[held[0]], self.space.offsets[held[0] + 1]
        if not ((first <= pairs) & (pairs < last)).all():
            raise ValueError("ring_pair")
        for name in ("visits", "sums", "lost", "ring_reward"):
            if not np.isfinite(getattr(self._table, name)).all():
                raise ValueError(name)


_COUNTS = ("visits", "sums", "lost", "clock")
_RINGS = ("ring_pair", "ring_reward")


@fixed("changes")
class ForgettingUCB(UCB1):
    """What SW-UCB and D-UCB share: a number that is tuned to l known changes."""

    told: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = True
    source: ClassVar[str] = "Garivier, Moulines 2011, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        changes: int | None = None,
        exploration: float = 0.6,
        **options: Any,
    ) -> None:
        if changes is not None:
            changes = as_integer(changes, "changes", low=0, high=LAST_TIME)
        self.changes = changes
        super().__init__(space, horizon=horizon, exploration=exploration, **options)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        number = self.tunes[0]
        return super().configuration() | {number: getattr(self, number), "changes": self.changes}


@fixed("window")
class SWUCB(ForgettingUCB):
    """SW-UCB: the mean of the last samples + sqrt(xi ln(min(t, W)) / N), for l known changes.

    Parameters
    ----------
    window
        W, how many of the last samples count; if not given, 2 sqrt(T ln T / l).
    changes
        l, needed without a window; with 0 that is T, and nothing is forgotten.
    exploration
        xi.
    reward_range
        As for `UCB1`; the bound B on rewards is 1 after scaling.

    Examples
    --------
    >>> SWUCB(StateActions([3]), horizon=10_000, changes=2).window
    429
    """

    id: ClassVar[str] = "sw-ucb"
    tunes: ClassVar[tuple[str, str]] = ("window", "changes")
    bound: ClassVar[str] = "K sqrt(l T log T), one state, l changes"

    def __init__(
        self, space: StateActions, *, horizon: int, window: int | None = None, **options: Any
    ) -> None:
        self._given = window
        super().__init__(space, horizon=horizon, **options)

    def _bounds(self) -> Bounds:
        T, window = self.horizon, self._given
        if window is None:
            l = needed(self.changes, "changes", "window")  # noqa: E741 - the paper's letter
            window = tuning.as_window(2.0 * math.sqrt(T * math.log(T) / l) if l > 0 else T, T)
        self.window = as_integer(window, "window", low=1, high=LAST_TIME)
        return self._blank(window=self.window)


@fixed("discount")
class DUCB(ForgettingUCB):
    """D-UCB: discounted means + 2 sqrt(xi ln n / N), n and N discounted too, for l known changes.

    Parameters
    ----------
    discount
        gamma, the weight of a sample relative to the one after it; if not given,
        1 - sqrt(l / T) / 4.
    changes
        l, needed without a discount; with 0 nothing is forgotten.
    exploration
        xi.
    reward_range
        As for `UCB1`; the bound B on rewards is 1 after scaling.

    Examples
    --------
    >>> DUCB(StateActions([3]), horizon=10_000, changes=4).discount
    0.995
    """

    id: ClassVar[str] = "d-ucb"
    tunes: ClassVar[tuple[str, str]] = ("discount", "changes")
    bound: ClassVar[str] = "K sqrt(l T) log T, one state, l changes"

    def __init__(
        self, space: StateActions, *, horizon: int, discount: float | None = None, **options: Any
    ) -> None:
        self._given = discount
        super().__init__(space, horizon=horizon, **options)

    def _bounds(self) -> Bounds:
        discount = self._given
        if discount is None:
            l = needed(self.changes, "changes", "discount")  # noqa: E741 - the paper's letter
            discount = 1.0 - math.sqrt(min(1.0, l / self.horizon)) / 4.0
        self.discount = as_real(discount, "discount", low=0.0, high=1.0, open_low=True)
        return self._blank(discount=self.discount, scale=2.0)
