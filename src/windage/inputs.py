"""Arguments as people pass them, checked once at the door.

Each function returns the value in the type the library uses or raises a typed error that names the
argument, the value and what would be accepted.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError, ModelError, WindageError

__all__ = [
    "LAST_TIME",
    "as_choice",
    "as_horizon",
    "as_integer",
    "as_integers",
    "as_name",
    "as_real",
    "as_seed",
    "bytes_in_words",
    "require_memory",
]

LAST_TIME = 2**40 - 1
"""The largest time t: a draw's address keeps 40 bits for t (see `kernels.random`)."""


def as_integer(
    value: object,
    field: str,
    *,
    low: int | None = None,
    high: int | None = None,
    error: type[WindageError] = InputError,
) -> int:
    """Return `value` as an int between `low` and `high`, both included.

    Booleans and floats are refused: a state that is `True` or `2.0` is a bug at the caller's.
    """
    wanted = _interval("an integer", low, high)
    if isinstance(value, (bool, np.bool_)):
        raise error(f"{value!r} is a boolean, not {wanted}", field=field, fix="pass an int")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise error(
            f"{value!r} ({type(value).__name__}) is not {wanted}", field=field, fix="pass an int"
        ) from None
    if (low is not None and number < low) or (high is not None and number > high):
        raise error(f"{number} is not {wanted}", field=field, fix=f"pass {wanted}")
    return number


def as_integers(
    values: Iterable[object] | NDArray[np.generic],
    field: str,
    *,
    low: int | None = None,
    high: int | None = None,
    error: type[WindageError] = InputError,
) -> NDArray[np.int64]:
    """Return `values` as a flat int64 array, each entry between `low` and `high`."""
    array = values if isinstance(values, np.ndarray) else np.asarray(list(values))
    wanted = _interval("integers", low, high)
    if array.ndim != 1:
        raise error(f"has {array.ndim} dimensions", field=field, fix=f"pass a list of {wanted}")
    if array.size and array.dtype.kind not in "iu":
        raise error(
            f"holds {array.dtype} values ({array.flat[0]!s}, ...)",
            field=field,
            fix=f"pass a list of {wanted}",
        )
    numbers = array.astype(np.int64)
    wrong = np.zeros(numbers.size, dtype=bool)
    if low is not None:
        wrong |= numbers < low
    if high is not None:
        wrong |= numbers > high
    if wrong.any():
        place = int(np.argmax(wrong))
        raise error(
            f"{numbers[place]} is out of range",
            field=f"{field}[{place}]",
            fix=f"pass {wanted}",
        )
    return numbers


def as_real(
    value: object,
    field: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    error: type[WindageError] = InputError,
) -> float:
    """Return `value` as a finite float inside the interval; open ends are excluded."""
    wanted = (
        f"a number in {'(' if open_low or low == -math.inf else '['}{low:g}, "
        f"{high:g}{')' if open_high or high == math.inf else ']'}"
    )
    try:
        if isinstance(value, (bool, np.bool_, str, bytes)):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise error(f"{value!r} is not a number", field=field, fix=f"pass {wanted}") from None
    below = number <= low if open_low else number < low
    above = number >= high if open_high else number > high
    if not math.isfinite(number) or below or above:
        raise error(f"{number!r} is not {wanted}", field=field, fix=f"pass {wanted}")
    return number


def as_horizon(value: object, field: str = "horizon") -> int:
    """Return the horizon T: an integer from 1 on."""
    return as_integer(value, field, low=1, high=LAST_TIME, error=ModelError)


def as_seed(value: object, field: str = "seed") -> int:
    """Return a seed: any integer from 0 on."""
    return as_integer(value, field, low=0)


def as_choice(value: object, field: str, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`; the error suggests the nearest one."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    near = difflib.get_close_matches(value, known, n=1) if isinstance(value, str) else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(
        f"no such choice: {value!r}", field=field, fix=hint + "one of: " + ", ".join(known)
    )


def as_name(value: object, field: str) -> str:
    """Return a name people will read: a non-empty string on one line."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise InputError(
            f"{value!r} is not a name", field=field, fix="pass a non-empty string on one line"
        )
    return value


def bytes_in_words(size: float) -> str:
    """Return a size as people say it.

    >>> bytes_in_words(3 * 2**30)
    '3.0 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def require_memory(size: float, field: str, *, fix: str) -> None:
    """Refuse, before anything is allocated, what this machine's free memory cannot hold."""
    free = _free_memory()
    if size > free:
        raise ModelError(
            f"would need about {bytes_in_words(size)} of memory, {bytes_in_words(free)} are free",
            field=field,
            fix=fix,
        )


def _free_memory() -> float:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return math.inf  # no way to know: let the allocation itself decide


def _interval(noun: str, low: int | None, high: int | None) -> str:
    if low is not None and high is not None:
        return f"{noun} from {low} to {high}"
    if low is not None:
        return f"{noun} from {low} on"
    return noun if high is None else f"{noun} up to {high}"
