"""The range of rewards: how they are taken to [0, 1], and which are refused."""

from __future__ import annotations

from typing import NamedTuple

from windage.errors import InputError
from windage.validation import as_real

__all__ = ["LARGEST", "Scale"]

LARGEST = 1e290
"""Rewards up to here can be summed over any horizon."""


class Scale(NamedTuple):
    """Takes rewards from [low, low + width] to [0, 1]; refuses those outside [least, most].

    Without a declared range rewards are taken as they are.

    Examples
    --------
    >>> Scale.of((-1.0, 3.0)).unit(1.0), Scale.of(None).unit(1.0)
    (0.5, 1.0)
    """

    low: float
    width: float
    least: float
    most: float

    @classmethod
    def of(cls, declared: tuple[float, float] | None, largest: float = LARGEST) -> Scale:
        """Return the scale of a declared range; `largest` is the limit if there is none."""
        low, high = declared or (0.0, 1.0)
        least, most = declared or (-largest, largest)
        return cls(low, high - low, least, most)

    def unit(self, reward: float) -> float:
        """Return a reward, or a mean of rewards, in units of the range."""
        return (reward - self.low) / self.width

    def checked(self, reward: object) -> float:
        """Return a reward, or say that it is impossible."""
        return as_real(reward, "reward", low=self.least, high=self.most)

    def refusal(self, reward: float, t: int) -> InputError:
        """Return what to raise if a reward at time t is outside."""
        declared = "declared" if self.least == self.low else "largest possible"
        return InputError(
            f"{reward} is not in the {declared} range [{self.least:g}, {self.most:g}]",
            field="reward",
            where=f"t={t}",
            fix="declare a wider reward_range, or none",
        )
