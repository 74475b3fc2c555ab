"""The blocks of BORL, in columns: which arm, what it earned, and how likely each arm was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        The time of its first step, and how many it has had so far.
    arm, window, widening
        Which arm, and its W and eta.
    probability
        How likely the master made that arm.
    reward
        What the master was told, its mean reward scaled to [0, 1]. As long as it was told nothing,
        what it would hear if the whole block went like its steps so far; NaN before the first.
    told
        Whether it was: not of the block that lasts, and never of the last, no choice follows it.
    """

    start: int
    length: int
    arm: int
    window: int
    widening: float
    probability: float
    reward: float
    told: bool


class Blocks:
    """The blocks that have started, one array a column; indexing gives a `Block`."""

    def __init__(
        self,
        block_length: int,
        arms: Sequence[tuple[int, float]],
        arm: NDArray[np.int64],
        reward: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        *,
        steps: int,
        so_far: float,
    ) -> None:
        self.block_length = block_length
        """H, the steps of a block; the last one may have fewer."""
        self._arms = arms
        self.arm = arm
        """Which arm each played."""
        self.told = ~np.isnan(reward)
        """Whether the master was told of it: not yet of the current one, and never of the last."""
        self.reward = reward
        """What the master was told of each; of the current one what it would be told by now."""
        self.reward[~self.told] = so_far
        self.probabilities = probabilities
        """[block, arm] how likely each arm was."""
        self.start = 1 + block_length * np.arange(arm.size)
        """Times of the first steps."""
        self.length = np.full(arm.size, block_length)
        """How many steps each has had so far."""
        self.length[-1:] = steps

    def __len__(self) -> int:
        return int(self.arm.size)

    def __getitem__(self, index: int) -> Block:
        i = range(len(self))[index]
        arm = int(self.arm[i])
        window, widening = self._arms[arm]
        return Block(
            start=int(self.start[i]),
            length=int(self.length[i]),
            arm=arm,
            window=window,
            widening=widening,
            probability=float(self.probabilities[i, arm]),
            reward=float(self.reward[i]),
            told=bool(self.told[i]),
        )

    def __iter__(self) -> Iterator[Block]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Blocks({len(self)} of {self.block_length} steps)"


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
