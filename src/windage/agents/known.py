"""What agents may be told of a model: its budgets; and which numbers are found from them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Budgets", "KnownBudgets", "is_left_open"]


class Budgets(Protocol):
    """How much a model changes in all: B_r and B_p, as `drifting.budgets()` returns them."""

    @property
    def reward(self) -> float:
        """B_r."""
        ...

    @property
    def transition(self) -> float:
        """B_p."""
        ...


class KnownBudgets(NamedTuple):
    """B_r and B_p as two numbers."""

    reward: float
    transition: float


def is_left_open(value: object) -> bool:
    """Whether a parameter is to be found from what is known: it is not given, or "tuned".

    >>> is_left_open(None), is_left_open("tuned"), is_left_open("oblivious"), is_left_open(200)
    (True, True, False, False)
    """
    return value is None or (isinstance(value, str) and value == "tuned")
