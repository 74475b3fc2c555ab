"""Action sets that differ by state, as Gymnasium sees them: one Discrete space and a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from windage.spaces import StateActions

__all__ = ["MaskedDiscrete", "masks"]

Mask = NDArray[np.int8]


def masks(space: StateActions) -> list[Mask]:
    """Return the mask of each state: 1 for the actions it offers. States with as many share one.

    >>> masks(StateActions([2, 1]))
    [array([1, 1], dtype=int8), array([1, 0], dtype=int8)]
    """
    most = int(space.counts.max())
    of_count = {}
    for count in np.unique(space.counts).tolist():
        mask = (np.arange(most) < count).astype(np.int8)
        mask.flags.writeable = False
        of_count[count] = mask
    return [of_count[count] for count in space.counts.tolist()]


class MaskedDiscrete(Discrete[np.int64]):
    """Discrete(largest A_s); `sample()` draws from the actions of the state the world is in.

    Which integers belong to it does not change from step to step: an action that the state at hand
    does not offer is a member, and the environment refuses it.

    Attributes
    ----------
    actions
        The states and their actions.
    mask
        1 for the actions of the state at hand; the environment keeps it up to date.
    """

    def __init__(self, actions: StateActions, seed: int | None = None) -> None:
        super().__init__(int(actions.counts.max()), seed=seed)
        self.actions = actions
        self.mask: Mask = masks(actions)[0]

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw an action the state at hand offers, or one of those a given mask allows."""
        if mask is None and probability is None:
            return np.int64(self.np_random.integers(int(self.mask.sum())))
        return super().sample(mask, probability)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MaskedDiscrete) and self.actions == other.actions

    def __hash__(self) -> int:
        return hash(self.actions)

    def __repr__(self) -> str:
        return f"MaskedDiscrete({self.actions!r})"
