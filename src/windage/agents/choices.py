"""What a master chose, block by block, and what it was told of it: the log of BORL and of BOB.

The master's own count of rounds says which blocks it has been told of. Everything else follows from
the draws, the arms and the rewards, so that a call that is cut short can be made again, and a saved
log holds arms and rewards only: a master that hears of them again comes to the same probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.adversarial import Master
from windage.agents.blob import array_like
from windage.agents.hearing import warn
from windage.errors import ParameterWarning
from windage.validation import require_memory

__all__ = ["Choices"]

_ROUNDING = 1e-9  # another machine may compute probabilities that differ in the last digits


class Choices:
    """A master, the arms it drew and the rewards it was told.

    Parameters
    ----------
    master
        One that has been told nothing yet, made for as many rounds as there are blocks.
    draw
        A function of the number of a block, from 0 on, that returns its uniform draw.
    """

    def __init__(self, master: Master, draw: Callable[[int], float]) -> None:
        n, K = master.n_rounds, master.n_arms
        require_memory(8.0 * n * (K + 2), "arms", fix="pass fewer arms or longer blocks")
        self.master = master
        self._draw = draw
        self._arm = np.zeros(n, np.int64)
        self._reward = np.full(n, math.nan)
        self._likely = np.zeros((n, K))
        self._has_cut = False

    @property
    def told(self) -> int:
        """How many blocks the master has been told of."""
        return self.master.rounds

    def choose(self) -> int:
        """Return the arm of the block after those the master was told of."""
        i = self.told
        self._likely[i] = self.master.probabilities
        self._arm[i] = self.master.choose(self._draw(i))
        return int(self._arm[i])

    def arm(self, block: int) -> int:
        """Return the arm that was drawn for a block."""
        return int(self._arm[block])

    def tell(self, block: int, reward: float) -> None:
        """Tell the master what a block has earned; to tell it again changes nothing.

        It hears of rewards in [0, 1]: others are cut (E9), and the first time that is said.
        """
        if self.told == block:
            self._reward[block] = heard = min(1.0, max(0.0, reward))
            self.master.update(self.arm(block), heard)
            if abs(reward - heard) > _ROUNDING and not self._has_cut:
                self._has_cut = True
                warn(
                    f"the reward of a block, {reward:.4g} in units of the range, is cut to [0, 1] "
                    "before the master hears of it, as others will be: declare a reward_range",
                    ParameterWarning,
                    stacklevel=6,
                )

    def columns(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return arms, rewards and probabilities of the first n blocks; no reward yet is NaN."""
        rewards = self._reward[:n].copy()
        rewards[self.told :] = math.nan
        return self._arm[:n].copy(), rewards, self._likely[:n].copy()

    def saved(self, n: int) -> dict[str, NDArray[Any]]:
        """Return what must survive of the first n blocks."""
        arms, rewards, _ = self.columns(n)
        return {"blocks.arm": arms, "blocks.reward": rewards}

    def restore(self, arrays: dict[str, NDArray[Any]], n: int, ended: int) -> None:
        """Let a new master hear of n blocks that were saved, of which so many have ended.

        It need not have been told of the last one yet.
        """
        arms = array_like(self._arm[:n], arrays, "blocks.arm")
        rewards = array_like(self._reward[:n], arrays, "blocks.reward")
        told = int((~np.isnan(rewards)).sum())
        if not max(0, n - 1) <= told <= ended or not ((rewards >= 0) & (rewards <= 1))[:told].all():
            raise ValueError("blocks.reward")
        for i in range(n):
            self._likely[i] = self.master.probabilities
            if not 0 <= arms[i] < self.master.n_arms or not self._can_be(i, int(arms[i])):
                raise ValueError(f"the arm of block {i}")
            self._arm[i] = arms[i]
            if i < told:
                self.tell(i, float(rewards[i]))
        self._has_cut = bool(np.isin(rewards, (0.0, 1.0)).any())  # it may have been said

    def _can_be(self, block: int, arm: int) -> bool:
        """Whether the draw of a block falls on an arm, give or take a rounding error."""
        below = float(self._likely[block, :arm].sum())
        u, share = self._draw(block), float(self._likely[block, arm])
        return share > 0.0 and below - _ROUNDING <= u <= below + share + _ROUNDING
