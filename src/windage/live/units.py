"""Rewards as the user counts them, costs or profits, and as the agent is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError
from windage.validation import as_choice, as_real

__all__ = ["DIRECTIONS", "Units", "as_units"]

DIRECTIONS = ("profit", "cost")

Number = TypeVar("Number", float, NDArray[np.float64])


@dataclass(frozen=True)
class Units:
    """A range of rewards, whether more of them is better, and the range the agent expects.

    Without a range, rewards are passed on as they are.

    Examples
    --------
    >>> costs = Units((0.0, 50.0), "cost", (0.0, 1.0))
    >>> costs.inward(12.5), costs.outward(0.75)
    (0.75, 12.5)
    """

    reward_range: tuple[float, float] | None
    direction: str
    inside: tuple[float, float]

    def check(self, reward: object) -> float:
        """Return a reward in the user's units, or say what is wrong with it."""
        if self.reward_range is None:
            value = as_real(reward, "reward")
        else:
            value = as_real(reward, "reward", low=self.reward_range[0], high=self.reward_range[1])
        return value + 0.0  # SQLite keeps no minus zero

    def inward(self, reward: Number) -> Number:
        """Return a reward, or an array of them, as the agent is told it."""
        if self.reward_range is None:
            return reward
        (low, high), (least, most) = self.reward_range, self.inside
        share = (reward - low) / (high - low)
        if self.direction == "cost":
            share = 1.0 - share
        return least + share * (most - least)

    def outward(self, value: Number) -> Number:
        """Return what the agent calls `value` in the user's units."""
        if self.reward_range is None:
            return value
        (low, high), (least, most) = self.reward_range, self.inside
        share = (value - least) / (most - least)
        if self.direction == "cost":
            share = 1.0 - share
        return low + share * (high - low)

    def hoped(self, gain: float) -> float:
        """Return an optimistic gain in the user's units; planning may overshoot the range a bit."""
        found = self.outward(gain)
        if self.reward_range is None:
            return found
        return min(max(found, self.reward_range[0]), self.reward_range[1])

    @property
    def scale(self) -> float:
        """How large the agent's 1 is in the user's units."""
        if self.reward_range is None:
            return 1.0
        (low, high), (least, most) = self.reward_range, self.inside
        return (high - low) / (most - least)


def as_units(
    reward_range: Any, direction: object, agent_range: tuple[float, float] | None
) -> Units:
    """Return the units of a journal for an agent with its own range of rewards, or none."""
    way = as_choice(direction, "direction", DIRECTIONS)
    inside = agent_range or (0.0, 1.0)
    if reward_range is None:
        if way == "cost":
            raise InputError(
                "costs need a range, so that the largest becomes the worst",
                field="reward_range",
                fix="pass reward_range=(lowest, highest) in your own units",
            )
        return Units(None, way, inside)
    try:
        low, high = reward_range
    except (TypeError, ValueError):
        raise InputError(
            f"{reward_range!r} is not a range", field="reward_range", fix="pass (lowest, highest)"
        ) from None
    low = as_real(low, "reward_range[0]")
    high = as_real(high, "reward_range[1]", low=low, open_low=True)
    as_real(high - low, "reward_range")
    return Units((low, high), way, inside)
