"""Bandits that draw an arm by weights, against an adversary: REXP3 and EXP3.S."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.adversarial.base import make_bank, too_mixed
from windage.adversarial.exp3 import mixing, shared_mixing
from windage.agents.bandits import BanditAgent, needed, warn_of_states
from windage.agents.blob import array_like
from windage.agents.fixed import fixed
from windage.agents.hearing import warn
from windage.errors import GuaranteeWarning, InputError
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_integer, as_real

if TYPE_CHECKING:
    from windage.kernels.bandits import Weights

__all__ = ["EXP3S", "REXP3"]


class WeightsAgent(BanditAgent):
    """Draws arms by exponential weights; rewards outside [0, 1] are clipped unless scaled."""

    def _weights(self, form: int, raw: list[float], batch: ArrayLike, **bank: Any) -> Weights:
        from windage.kernels.bandits import Weights

        gamma = np.minimum(1.0, raw)
        return Weights(
            bank=make_bank(
                form, self.space.counts, alpha=gamma / self.space.counts, gamma=gamma, **bank
            ),
            batch=np.full(self.space.n_states, batch, np.int64),
            now=np.zeros(3, np.int64),
            key=key(self.seed, f"agents.{self.id}"),
            **self._scale._asdict(),
        )

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each pair is to be played when its state comes next."""
        return np.array(self._table.bank.probabilities)

    @staticmethod
    def _kernels() -> tuple[Any, Any, Any]:
        from windage.kernels.bandits import drawn, play_weights, weigh

        return drawn, weigh, play_weights

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from windage.kernels.bandits import CLIPPED

        arrays = {name: getattr(self._table.bank, name).copy() for name in _SCORES}
        return {"clipped": int(self._table.now[CLIPPED])}, arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        from windage.kernels.bandits import CLIPPED
        from windage.kernels.masters import SHARED, refresh

        super()._restored(values, arrays)
        bank = self._table.bank
        for name in _SCORES:
            mine = getattr(bank, name)
            mine[:] = array_like(mine, arrays, name)
            if not np.isfinite(mine).all():
                raise ValueError(name)
        known = (bank.rounds >= 0) & (bank.rounds <= np.minimum(self._table.batch, self.t - 1))
        if not known.all() or (bank.form == SHARED and not (bank.scores > 0.0).all()):
            raise ValueError("rounds or scores")
        clipped = as_integer(values["clipped"], "clipped", low=0, high=self.t - 1)
        self._table.now[CLIPPED], self._warned = clipped, clipped > 0
        for s in range(self.space.n_states):
            refresh(bank, s)


_SCORES = ("scores", "lost", "rounds")


@fixed("batch", "variation")
class REXP3(WeightsAgent):
    """REXP3: EXP3, started anew after every batch, for a known variation V of the rewards.

    Parameters
    ----------
    batch
        How many visits of a state a batch lasts; a number, or one for each state. If not given,
        ceil((K ln K)^(1/3) (T / V)^(2/3)) for K actions, at most T.
    variation
        V, in units of the rewards, needed without a batch; with 0 there is one batch, and nothing
        is forgotten.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. If
        not given, rewards outside [0, 1] are clipped.

    Examples
    --------
    >>> REXP3(StateActions([3]), horizon=10_000, variation=1.0).batch.tolist()
    [691]
    """

    id: ClassVar[str] = "rexp3"
    tunes: ClassVar[tuple[str, str]] = ("batch", "variation")
    told: ClassVar[tuple[str, ...]] = ("B_r",)
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "(K log K B_r)^(1/3) T^(2/3), one state"
    source: ClassVar[str] = "Besbes, Gur, Zeevi 2014, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        batch: ArrayLike | None = None,
        variation: float | None = None,
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        from windage.kernels.masters import GAINS

        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self.variation = None if variation is None else as_real(variation, "variation", low=0.0)
        counts = self.space.counts.tolist()
        if batch is None:
            V = needed(self.variation, "variation", "batch") / self._scale.width
            batch = [_batch(K, self.horizon, V) for K in counts]
        self.batch = _batches(batch, self.space)
        raw = [mixing(K, n) for K, n in zip(counts, self.batch.tolist(), strict=True)]
        self._table = self._weights(GAINS, raw, self.batch)
        s = int(np.argmax(raw))
        if raw[s] > 1.0:
            text = too_mixed(self.id, counts[s], int(self.batch[s]), raw[s])
            warn(text, GuaranteeWarning, stacklevel=2)
        warn_of_states(self)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"batch": self.batch.tolist(), "variation": self.variation}


@fixed("changes")
class EXP3S(WeightsAgent):
    """EXP3.S: EXP3 that gives every arm e / (K T) of all weight each time, for l known changes.

    Its gamma counts the pieces between them, l + 1.

    Parameters
    ----------
    changes
        l.
    reward_range
        As for `REXP3`.

    Examples
    --------
    >>> agent = EXP3S(StateActions([3]), horizon=10_000, changes=2)
    >>> agent.probabilities.round(3)
    array([0.333, 0.333, 0.333])
    """

    id: ClassVar[str] = "exp3-s"
    tunes: ClassVar[tuple[str, str]] = ("changes", "changes")
    told: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "sqrt((l + 1) K T log(K T)), one state, l changes"
    source: ClassVar[str] = "Auer, Cesa-Bianchi, Freund, Schapire 2002, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        changes: int | None = None,
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        from windage.kernels.masters import SHARED

        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        known = needed(changes, "changes", "changes")
        self.changes = l = as_integer(known, "changes", low=0, high=LAST_TIME)  # noqa: E741
        T, counts = self.horizon, self.space.counts
        raw = [shared_mixing(K, T, l) for K in counts.tolist()]
        self._table = self._weights(SHARED, raw, LAST_TIME, share=math.e / (counts * T))
        if max(raw) > 1.0:
            text = too_mixed(self.id, int(counts[np.argmax(raw)]), T, max(raw))
            warn(text, GuaranteeWarning, stacklevel=2)
        warn_of_states(self)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"changes": self.changes}


def _batch(K: int, T: int, V: float) -> int:
    """Return the length of a batch for K arms that vary by V in T steps."""
    if T * V <= 0.0:
        return T
    return max(1, math.ceil(min(T, math.cbrt(K * math.log(K)) * math.cbrt(T / V) ** 2)))


def _batches(value: ArrayLike, space: StateActions) -> NDArray[np.int64]:
    parts = np.atleast_1d(np.asarray(value, object)).ravel().tolist()
    if len(parts) not in (1, space.n_states):
        raise InputError(
            f"has {len(parts)} numbers for {space.n_states} states",
            field="batch",
            fix="pass one number, or one for each state",
        )
    found = [as_integer(part, "batch", low=1, high=LAST_TIME) for part in parts]
    return np.full(space.n_states, found, np.int64)
