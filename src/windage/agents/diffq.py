"""Differential Q-learning (Wan, Naik, Sutton 2021) with constant steps: it learns, and forgets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.blob import array_like
from windage.errors import InputError
from windage.inputs import as_real
from windage.spaces import StateActions
from windage.streams import key

if TYPE_CHECKING:
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["DifferentialQ"]

_LARGEST = 1e290  # values of rewards up to here stay finite


class DifferentialQ(Agent):
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
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self.rate = as_real(rate, "rate", low=0.0, high=1.0, open_low=True)
        self.gain_rate = as_real(gain_rate, "gain_rate", low=0.0, high=1.0)
        self.exploration = as_real(exploration, "exploration", low=0.0, high=1.0)
        from windage.kernels.diffq import Critic

        low, high = self.reward_range or (0.0, 1.0)
        least, most = self.reward_range or (-math.inf, math.inf)
        self._critic = Critic(
            values=np.zeros(space.n_pairs),
            gain=np.zeros(1),
            offsets=np.ascontiguousarray(space.offsets),
            key=key(self.seed, "agents.diff-q"),
            rate=self.rate,
            gain_rate=self.gain_rate,
            exploration=self.exploration,
            low=low,
            width=high - low,
            clock=np.zeros(2, np.int64),
            least=least,
            most=most,
        )

    @property
    def gain(self) -> float:
        """The estimated gain, in units of the rewards."""
        return float(self._critic.low + self._critic.width * self._critic.gain[0])

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of every pair relative to the gain, in units of the rewards."""
        return np.asarray(self._critic.width * self._critic.values)

    def _choose(self, state: int) -> int:
        from windage.kernels.diffq import choose

        return int(self.space.action_of[choose(self._critic, self.t, state)])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        from windage.kernels.diffq import learn

        learn(self._critic, self.space.pair(state, action), reward, s_next)

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Keep the clock with what was learned whatever interrupts them."""
        try:
            yield
        except BaseException:
            steps, state = self._critic.clock.tolist()
            if steps + 1 != self.t:
                self.t, self._pending, self.last_state = steps + 1, None, state
            raise

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels.diffq import play

        state, n = play(self._critic, world, state, self.t, *block)
        if n < block.states.size:
            self.last_state = int(state)
            self.t += n
            raise InputError(
                f"{block.rewards[n]} is not in the declared range "
                f"[{self._critic.least:g}, {self._critic.most:g}]",
                field="reward",
                where=f"t={self.t}",
                fix="declare a wider reward_range, or none",
            )
        return int(state)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {
            "rate": self.rate,
            "gain_rate": self.gain_rate,
            "exploration": self.exploration,
        }

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, {"values": self._critic.values.copy(), "gain": self._critic.gain.copy()}

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        for name, mine in (("values", self._critic.values), ("gain", self._critic.gain)):
            mine[:] = array_like(mine, arrays, name)
            if not np.isfinite(mine).all():
                raise ValueError(name)
        self._critic.clock[:] = self.t - 1, self.last_state or 0

    def _check_reward(self, reward: object) -> float:
        if self.reward_range is not None:
            return super()._check_reward(reward)
        return as_real(reward, "reward", low=-_LARGEST, high=_LARGEST)
