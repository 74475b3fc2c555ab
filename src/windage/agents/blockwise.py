"""What BORL and BOB share: a master that draws an arm for every block and hears what it earned."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.blocks import Blocks
from windage.agents.choices import Choices
from windage.agents.relay import Relay

__all__ = ["Blockwise"]


class Blockwise(Relay):
    """A relay whose runners act for a block each, with the arm that a master draws for it."""

    block_length: int
    """H, the steps of a block."""
    _choices: Choices

    @property
    @abstractmethod
    def _pairs(self) -> Sequence[tuple[int, float]]:
        """W and eta of every arm."""

    @abstractmethod
    def _heard(self, earned: float, steps: int) -> float:
        """Return what the master hears of a block that earns as it did in so many steps."""

    @property
    def _block(self) -> int:
        """The number of the block of the learner that acts, from 0 on; -1 before the first."""
        return -1 if self._runner is None else (self._since - 1) // self.block_length

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each arm is to be drawn for the next block, as far as is known now."""
        return self._choices.master.probabilities

    @property
    def blocks(self) -> Blocks:
        """The blocks that have started."""
        self._settle()
        steps, so_far = self._leg.settled, math.nan
        if steps > 0:
            so_far = min(1.0, max(0.0, self._heard(float(self._sum.sum()), steps)))
        return Blocks(
            self.block_length,
            self._pairs,
            *self._choices.columns(self._block + 1),
            steps=steps,
            so_far=so_far,
        )

    def _finished(self, earned: float) -> None:
        self._choices.tell(self._block, self._heard(earned, self.block_length))  # over H (E24)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        return values, arrays | self._choices.saved(self._block + 1)

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restored(values, arrays)
        self._require_possible(values)
        self._choices.restore(arrays, self._block + 1, (self.t - 1) // self.block_length)

    def _require_possible(self, values: dict[str, Any]) -> None:
        """Refuse saved values that no run leads to, before the master hears of the blocks."""
