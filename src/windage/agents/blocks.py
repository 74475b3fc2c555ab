"""The blocks of BORL, in columns: which arm, what it earned, and how likely each arm was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arm", "Block", "Blocks", "BorlExplanation"]


@dataclass(frozen=True)
class Block:
    """One block: the arm that was drawn and what came of it.

    Attributes
    ----------
    start, length
        The time of its first step, and the steps it was meant to have.
    arm, window, widening
        Which arm, and its W and eta.
    probability
        How likely the master made that arm.
    reward
        What the master was told, its mean reward scaled to [0, 1]; NaN while it lasts, and of the
        last block for good: no choice follows it.
    """

    start: int
    length: int
    arm: int
    window: int
    widening: float
    probability: float
    reward: float


class Blocks:
    """The blocks that have started, one array a column; indexing gives a `Block`."""

    def __init__(
        self,
        length: int,
        arms: list[tuple[int, float]],
        arm: NDArray[np.int64],
        reward: NDArray[np.float64],
        probabilities: NDArray[np.float64],
    ) -> None:
        self.length = length
        self._arms = arms
        self.arm = arm
        """Which arm each played."""
        self.reward = reward
        """What the master was told of each; NaN of the current one, and of the last for good."""
        self.probabilities = probabilities
        """[block, arm] how likely each arm was."""

    @property
    def start(self) -> NDArray[np.int64]:
        """Times of the first steps."""
        return 1 + self.length * np.arange(len(self))

    def __len__(self) -> int:
        return int(self.arm.size)

    def __getitem__(self, index: int) -> Block:
        i = range(len(self))[index]
        arm = int(self.arm[i])
        window, widening = self._arms[arm]
        return Block(
            start=int(self.start[i]),
            length=self.length,
            arm=arm,
            window=window,
            widening=widening,
            probability=float(self.probabilities[i, arm]),
            reward=float(self.reward[i]),
        )

    def __iter__(self) -> Iterator[Block]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Blocks({len(self)} of {self.length} steps)"


@dataclass(frozen=True)
class Arm:
    """One arm, as the master sees it now."""

    window: int
    widening: float
    probability: float
    at_first: float
    played: int
    mean_reward: float


@dataclass(frozen=True)
class BorlExplanation:
    """Why BORL plays the window and widening it does.

    Attributes
    ----------
    block, of
        The number of the current block, and of all.
    arm
        The arm it plays.
    arms
        All arms: how likely each is now and was at first, how often it was played, what it earned.
    gamma
        The master's share of blind choice as its formula has it; above 1 it is cut at 1.
    learner
        What the learner of this block says of the state that was asked about.
    """

    block: int
    of: int
    arm: int
    arms: tuple[Arm, ...]
    gamma: float
    learner: object

    def __str__(self) -> str:
        lines = [f"block {self.block} of {self.of}, arm {self.arm}"]
        if self.gamma > 1.0:
            lines.append(
                f"gamma = {self.gamma:.3g} is above 1 and cut at 1: {self.of} blocks are too few "
                f"for {len(self.arms)} arms, all are played alike, and nothing is learned about "
                "them. Fewer arms or more steps would help"
            )
        lines.append("arm      W     eta  probability  at first  played  mean reward")
        for i, arm in enumerate(self.arms):
            mark = "*" if i == self.arm else " "
            earned = f"{arm.mean_reward:11.4f}" if arm.played else "          -"
            lines.append(
                f"{i:3}{mark}{arm.window:7} {arm.widening:7.4f} {arm.probability:12.4f} "
                f"{arm.at_first:9.4f} {arm.played:7} {earned}"
            )
        return "\n".join([*lines, str(self.learner)])
