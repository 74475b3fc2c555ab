"""Agents whose whole life is one compiled loop over one small table: bandits, and Q-learning."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.scale import LARGEST

if TYPE_CHECKING:
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["LoopAgent"]


class LoopAgent(Agent):
    """What they share: kernels that choose, learn and play, and a clock inside their table.

    A table is a NamedTuple of arrays and constants; its array `now` starts with the steps that were
    learned from and the state the last one led to. Kernels stop before a reward outside its fields
    `least` and `most`.
    """

    _table: Any

    @staticmethod
    @abstractmethod
    def _kernels() -> tuple[Any, Any, Any]:
        """Return the kernels that choose, learn and play."""

    @property
    def _largest(self) -> float:
        return LARGEST

    def _choose(self, state: int) -> int:
        choose, _, _ = self._kernels()
        return int(self.space.action_of[choose(self._table, self.t, state)])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        _, learn, _ = self._kernels()
        learn(self._table, state, self.space.pair(state, action), reward, s_next)
        self._look_back()

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        _, _, play = self._kernels()
        after, n = play(self._table, world, state, self.t, *block.columns)
        self._look_back()
        if n < block.states.size:
            raise self._scale.refusal(float(block.rewards[n]), self.t + n)
        return int(after)

    def _look_back(self) -> None:
        """Say what is to be said of the steps that were just learned from."""

    def _reached(self) -> tuple[int, int | None]:
        steps, state = self._table.now[:2].tolist()
        return steps + 1, state if steps > 0 else None

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._table.now[:2] = self.t - 1, self.last_state or 0
