"""Agents that learn nothing: the floor every learner must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from windage.agents.base import Agent
from windage.rng import key
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["RandomAgent"]


class RandomAgent(Agent):
    """Plays every action of a state with equal probability.

    Examples
    --------
    >>> agent = RandomAgent(StateActions([2, 3]), horizon=10, seed=1)
    >>> action = agent.act(1)
    >>> agent.observe(1, action, reward=0.5, s_next=0)
    >>> agent.t
    2
    """

    id: ClassVar[str] = "random"

    def __init__(self, space: StateActions, **options: Any) -> None:
        super().__init__(space, **options)
        self._key = key(self.seed, "agents.random")

    def _choose(self, state: int) -> int:
        from windage.kernels.play import uniform_action

        return int(uniform_action(self._key, self.t, self.space.counts[state]))

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels.play import play_uniform

        return int(
            play_uniform(
                world,
                self.space.offsets,
                self.space.counts,
                self._key,
                state,
                self.t,
                *block.columns,
            )
        )
