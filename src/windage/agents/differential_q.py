"""Differential Q-learning (Wan, Naik, Sutton 2021) with constant steps: it learns, and forgets."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import ProgressAgent
from windage.agents.configuration import AgentOptions
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import as_real

__all__ = ["DifferentialQ"]


class DifferentialQ(ProgressAgent):
    """Model-free and cheap: a table of values relative to the gain, both tracked as they drift.

    Parameters
    ----------
    rate
        alpha, how far a value moves towards what was seen.
    gain_rate
        eta: the gain moves by eta alpha times the same difference.
    exploration
        How often any action is played instead of the best one.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1].

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine", horizon=1000)
    >>> agent = DifferentialQ(model.space, horizon=1000)
    >>> run = wd.run(model, agent, seed=1)
    >>> 0.0 < agent.gain < 1.0
    True
    """

    id: ClassVar[str] = "diff-q"
    off_policy: ClassVar[bool] = True
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none; without drift and with falling steps it converges"
    source: ClassVar[str] = "Wan, Naik, Sutton 2021"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        rate: float = 0.1,
        gain_rate: float = 0.1,
        exploration: float = 0.1,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
        self.rate = as_real(rate, "rate", low=0.0, high=1.0, open_low=True)
        self.gain_rate = as_real(gain_rate, "gain_rate", low=0.0, high=1.0)
        self.exploration = as_real(exploration, "exploration", low=0.0, high=1.0)
        from windage.kernels.differential_q import Critic
        from windage.kernels.rollout import PROGRESS

        self._table = Critic(
            values=np.zeros(space.n_pairs),
            gain=np.zeros(1),
            offsets=np.ascontiguousarray(space.offsets),
            key=key(self.seed, "agents.diff-q"),
            rate=self.rate,
            gain_rate=self.gain_rate,
            exploration=self.exploration,
            progress=np.zeros(1, PROGRESS),
            low=self._scale.low,
            width=self._scale.width,
        )

    @property
    def gain(self) -> float:
        """The estimated gain, in units of the rewards."""
        return float(self._table.low + self._table.width * self._table.gain[0])

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of every pair relative to the gain, in units of the rewards."""
        return np.asarray(self._table.width * self._table.values)

    def _survivors(self) -> dict[str, NDArray[Any]]:
        return {"values": self._table.values, "gain": self._table.gain}
