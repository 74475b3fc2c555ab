"""The least number that is enough of something, by bisection."""

from __future__ import annotations

from collections.abc import Callable

from windage.errors import InputError

__all__ = ["first_integer"]

_LARGEST = 1 << 900  # formulas that take a larger number overflow


def first_integer(is_enough: Callable[[int], bool]) -> int:
    """Return the least integer from 1 on that is enough, if all after it are.

    >>> first_integer(lambda n: n * n > 50)
    8
    """
    high = 1
    while not is_enough(high):
        high *= 2
        if high > _LARGEST:
            raise InputError(
                "no number that can be computed with is large enough",
                field="plan",
                fix="pass smaller budgets, a smaller diameter, or a larger delta",
            )
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high
