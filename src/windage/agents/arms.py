"""The arms of BORL, pairs (W, eta): as people pass them, and what is odd about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windage.errors import InputError
from windage.validation import LAST_TIME, as_integer, as_real

__all__ = ["as_arms", "odd_arms"]


def as_arms(value: Any) -> list[tuple[int, float]]:
    """Return own arms, or say which of them is impossible."""
    fix = "pass pairs (W, eta), such as [(100, 0.0), (1000, 0.1)]"
    try:
        pairs = [tuple(arm) for arm in value]
    except TypeError:
        raise InputError(f"{value!r} are no arms", field="arms", fix=fix) from None
    if not pairs:
        raise InputError("there are none", field="arms", fix=fix)
    found = []
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            raise InputError(f"{pair!r} is no arm", field=f"arms[{i}]", fix=fix)
        W = as_integer(pair[0], f"arms[{i}]: window", low=1, high=LAST_TIME)
        found.append((W, as_real(pair[1], f"arms[{i}]: widening", low=0.0, high=2.0)))
    return found


def odd_arms(arms: Sequence[tuple[int, float]], horizon: int, *, given: bool) -> list[str]:
    """Return what is hardly meant; the paper's own grid is cut at a widening of 2.

    >>> odd_arms([(10, 0.1), (200, 2.0)], 100, given=True)[1]
    'arms[1]: a widening of 2 makes every kernel plausible (E7)'
    """
    odd = [
        f"arms[{i}]: a window of {W} samples is longer than the horizon {horizon}"
        for i, (W, _) in enumerate(arms)
        if horizon < W
    ]
    if given:
        odd += [
            f"arms[{i}]: a widening of 2 makes every kernel plausible (E7)"
            for i, (_, eta) in enumerate(arms)
            if eta == 2.0
        ]
    return odd
