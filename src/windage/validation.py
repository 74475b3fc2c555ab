"""Arguments as people pass them, checked once at the door and read-only from then on.

Each function returns the value in the type the library uses or raises a typed error that names the
argument, the value and what would be accepted.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from windage.errors import InputError, ModelError, WindageError

__all__ = [
    "LAST_TIME",
    "FrozenRows",
    "as_choice",
    "as_csr",
    "as_flag",
    "as_floats",
    "as_horizon",
    "as_integer",
    "as_integers",
    "as_name",
    "as_range",
    "as_real",
    "as_seed",
    "as_size",
    "bytes_in_words",
    "freeze",
    "require_memory",
    "require_parameter",
    "require_parts",
    "shown",
]

LAST_TIME = 2**40 - 1
"""The largest time t: a draw's address keeps 40 bits for t (see `kernels.random`)."""

_SEED_BITS = 4096
_SHOWN = 80  # characters of a value in a message
_SMALL = 8 << 20  # bytes: up to here it is not worth asking the system how much is free


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
    if type(value) is int and (low is None or low <= value) and (high is None or value <= high):
        return value  # nearly always, and several times in every step of an agent
    wanted = _interval("an integer", low, high)
    if isinstance(value, (bool, np.bool_)):
        raise error(f"{value!r} is a boolean, not {wanted}", field=field, fix="pass an int")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise error(
            f"{shown(value)} ({type(value).__name__}) is not {wanted}",
            field=field,
            fix="pass an int",
        ) from None
    if (low is not None and number < low) or (high is not None and number > high):
        raise error(f"{shown(number)} is not {wanted}", field=field, fix=f"pass {wanted}")
    return number


def as_integers(
    values: object,
    field: str,
    *,
    low: int | None = None,
    high: int | None = None,
    error: type[WindageError] = InputError,
) -> NDArray[np.int64]:
    """Return `values` as a flat int64 array, each entry between `low` and `high`.

    A boolean among the integers of a list is refused as `as_integer` refuses it.
    """
    wanted = _interval("integers", low, high)
    array = _listed(values, field, f"pass a list of {wanted}", error)
    if array.ndim != 1:
        raise error(f"has {array.ndim} dimensions", field=field, fix=f"pass a list of {wanted}")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise error(
            f"holds {array.dtype} values ({shown(array.flat[0])}, ...)",
            field=field,
            fix=f"pass a list of {wanted}",
        )
    wrong = np.zeros(array.size, dtype=bool)
    if low is not None:
        wrong |= array < low
    if array.dtype == np.uint64 or high is not None:
        wrong |= array > (2**63 - 1 if high is None else high)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise error(
            f"{array[place]} is out of range",
            field=f"{field}[{place}]",
            fix=f"pass {wanted}",
        )
    return array.astype(np.int64)


def _listed(values: object, field: str, fix: str, error: type[WindageError]) -> NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, range):
        count = (values.stop - values.start) / values.step
        require_memory(32.0 * max(count, 0.0), field, fix="pass fewer of them")
    try:
        if isinstance(values, range):
            return np.arange(values.start, values.stop, values.step, dtype=np.int64)
        if isinstance(values, (str, bytes, bytearray, dict, set, frozenset)):
            raise TypeError  # NumPy would go through letters and keys
        entries = list(values)  # type: ignore[call-overload]
    except (TypeError, OverflowError):
        raise error(f"{shown(values)} is not a list", field=field, fix=fix) from None
    for place, entry in enumerate(entries):
        if isinstance(entry, (bool, np.bool_)):
            raise error(f"{entry!r} is a boolean", field=f"{field}[{place}]", fix=fix)
    try:
        return np.asarray(entries)
    except (ValueError, OverflowError):
        raise error(f"{shown(entries)} has uneven rows", field=field, fix=fix) from None


def as_floats(values: ArrayLike, field: str) -> NDArray[np.float64]:
    """Return a fresh float64 array of real numbers.

    What NumPy would turn into numbers without a word, such as strings, None, complex numbers and
    entries that are masked, is refused.

    >>> as_floats([[0, 1], [0.5, 0.5]], "p")
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    fix = "pass numbers in equal rows"
    try:
        found = np.asanyarray(values)
    except (TypeError, ValueError, OverflowError) as err:
        raise ModelError(f"is not an array of numbers ({err})", field=field, fix=fix) from None
    if found.dtype.kind not in "biuf":
        raise ModelError(
            f"is not an array of numbers but of {found.dtype} values ({shown(values)})",
            field=field,
            fix=fix,
        )
    if isinstance(found, np.ma.MaskedArray) and np.ma.is_masked(found):
        raise ModelError("has masked entries", field=field, fix="fill them with numbers")
    require_memory(8.0 * found.size, field, fix="pass a smaller model, or a sparse one")
    with np.errstate(over="ignore"):  # what becomes infinite is refused where it is looked at
        return np.array(found, dtype=np.float64, subok=False)


def as_csr(rows: Any, field: str) -> Any:
    """Return a fresh CSR matrix with every entry once, whatever a sparse matrix says it has.

    Its parts are checked here, before SciPy sees them: its compiled code follows them out of their
    arrays, and so would ours.
    """
    if rows.dtype.kind not in "biuf":
        raise ModelError(f"holds {rows.dtype} values", field=field, fix="pass real numbers")
    found = rows
    try:
        if "_fixed" not in getattr(rows, "__dict__", {}):
            _require_sound(rows, field)
            found = csr_array(rows, dtype=np.float64)
            require_parts(found.indptr, found.indices, found.data, found.shape, field)
        found = csr_array(found, dtype=np.float64, copy=True)
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as err:
        if isinstance(err, WindageError):
            raise
        raise ModelError(f"is no sparse matrix ({err})", field=field, fix=_BUILD_CSR) from None
    found.has_canonical_format = False
    found.sum_duplicates()
    return found


_BUILD_CSR = "build it with scipy.sparse.csr_array"


def _require_sound(rows: Any, field: str) -> None:
    """Refuse a sparse matrix whose parts do not fit together, in any of SciPy's formats."""
    if rows.ndim != 2:
        raise ModelError(f"has {rows.ndim} dimensions", field=field, fix=_BUILD_CSR)
    shape = rows.shape
    require_memory(16.0 * shape[0], field, fix="pass as many rows as there are pairs")
    if rows.format in ("csr", "csc"):
        shape = shape if rows.format == "csr" else shape[::-1]
        require_parts(rows.indptr, rows.indices, rows.data, shape, field)
    elif rows.format == "bsr":
        height, width = rows.data.shape[1:]
        blocks = shape[0] // height, shape[1] // width
        require_parts(rows.indptr, rows.indices, rows.data, blocks, field)
    elif rows.format == "lil":
        lengths = [len(one) for one in rows.rows], [len(one) for one in rows.data]
        if lengths[0] != lengths[1] or len(lengths[0]) != shape[0]:
            raise ModelError("has rows of uneven parts", field=field, fix=_BUILD_CSR)
    elif rows.format == "dia":
        if rows.offsets.shape != rows.data.shape[:1]:
            raise ModelError(
                f"has {len(rows.data)} diagonals and {len(rows.offsets)} offsets",
                field=field,
                fix=_BUILD_CSR,
            )
    else:
        cells = rows.tocoo()
        for name, numbers, size in zip(("rows", "columns"), cells.coords, shape, strict=True):
            _require_below(numbers, size, name, field)
            if numbers.shape != cells.data.shape:
                raise ModelError(
                    f"has {numbers.size} {name} and {cells.data.size} values",
                    field=field,
                    fix=_BUILD_CSR,
                )


def require_parts(indptr: Any, indices: Any, data: Any, shape: tuple[int, int], field: str) -> None:
    """Refuse parts of a CSR matrix that do not fit together.

    >>> require_parts(np.array([0, 1, -5]), np.array([0]), np.array([1.0]), (2, 2), "p")
    Traceback (most recent call last):
    windage.errors.ModelError: p at indptr[2]: falls from 1 to -5. Fix: build it with ...
    """
    lines, size = shape
    problem, place = "", ""
    parts = {"indptr": indptr, "indices": indices, "data": data}
    for name, part in parts.items():
        wanted = "biuf" if name == "data" else "i"
        if not isinstance(part, np.ndarray) or part.dtype.kind not in wanted:
            kind = part.dtype if isinstance(part, np.ndarray) else type(part).__name__
            raise ModelError(f"{name} holds {kind} values", field=field, fix=_BUILD_CSR)
    if indptr.shape != (lines + 1,):
        problem, place = f"has shape {indptr.shape}, not ({lines + 1},)", "indptr"
    elif indices.ndim != 1 or data.shape[:1] != indices.shape:
        problem, place = f"has shape {indices.shape}, data {data.shape}", "indices"
    elif indptr[0] != 0:
        problem, place = f"{indptr[0]} is not 0", "indptr[0]"
    elif (indptr[1:] < indptr[:-1]).any():
        i = int(np.argmax(indptr[1:] < indptr[:-1]))
        problem, place = f"falls from {indptr[i]} to {indptr[i + 1]}", f"indptr[{i + 1}]"
    elif indptr[-1] != indices.size:
        problem, place = f"{indptr[-1]} is not {indices.size}, the entries", f"indptr[{lines}]"
    if problem:
        raise ModelError(problem, field=field, where=place, fix=_BUILD_CSR)
    _require_below(indices, size, "indices", field)


def _require_below(numbers: NDArray[Any], size: int, name: str, field: str) -> None:
    wrong = (numbers < 0) | (numbers >= size)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ModelError(
            f"{numbers[place]} is not an integer from 0 to {size - 1}",
            field=field,
            where=f"{name}[{place}]",
            fix=_BUILD_CSR,
        )


class FrozenRows(csr_array):  # type: ignore[misc]
    """A CSR matrix that cannot be written to; what is computed from it can."""

    @classmethod
    def of(cls, rows: Any) -> Any:
        """Return the same rows, sorted, with every entry once and none zero, and read-only."""
        if "_fixed" in rows.__dict__:
            return rows
        if not rows.has_canonical_format or not rows.data.all():
            rows = rows.copy()
            rows.sum_duplicates()
            rows.eliminate_zeros()
        found = cls(rows)
        freeze(found)
        found.__dict__["_fixed"] = True
        return found

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("data", "indices", "indptr", "_shape") and "_fixed" in self.__dict__:
            raise AttributeError(f"{name} of a model's transitions is fixed; make a new model")
        super().__setattr__(name, value)


def freeze(*arrays: Any) -> None:
    """Make dense and CSR arrays read-only."""
    for array in arrays:
        dense = isinstance(array, np.ndarray)
        for part in (array,) if dense else (array.data, array.indices, array.indptr):
            part.flags.writeable = False


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
    if type(value) is float and low < value < high:
        return value  # nearly always; neither infinite nor NaN is inside any ends
    wanted = (
        f"a number in {'(' if open_low or low == -math.inf else '['}{low:g}, "
        f"{high:g}{')' if open_high or high == math.inf else ']'}"
    )
    try:
        if isinstance(value, (bool, str, bytes, bytearray)) or (
            isinstance(value, (np.generic, np.ndarray))
            and (value.ndim > 0 or value.dtype.kind not in "iuf")
        ):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise error(f"{shown(value)} is not {wanted}", field=field, fix=f"pass {wanted}") from None
    except (TypeError, ValueError):
        raise error(f"{shown(value)} is not a number", field=field, fix=f"pass {wanted}") from None
    below = number <= low if open_low else number < low
    above = number >= high if open_high else number > high
    if not math.isfinite(number) or below or above:
        raise error(f"{number!r} is not {wanted}", field=field, fix=f"pass {wanted}")
    return number


def as_range(value: object, field: str) -> tuple[float, float]:
    """Return (low, high), two finite numbers that are not the same."""
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise InputError(f"{shown(value)} is not a range", field=field, fix="pass (low, high)")
    low, high = as_real(value[0], f"{field}[0]"), as_real(value[1], f"{field}[1]")
    if not math.isfinite(high - low) or high <= low:
        raise InputError(
            f"({low}, {high}) is empty", field=field, fix="pass (low, high), low < high"
        )
    return low, high


def as_horizon(
    value: object, field: str = "horizon", *, error: type[WindageError] = ModelError
) -> int:
    """Return the horizon T, a model's unless another error is named: an integer from 1 on."""
    return as_integer(value, field, low=1, high=LAST_TIME, error=error)


def as_size(
    value: object, field: str, *, low: int = 1, error: type[WindageError] = InputError
) -> int:
    """Return a number of things, so small that its square is no trouble to compute with."""
    return as_integer(value, field, low=low, high=LAST_TIME, error=error)


def as_flag(value: object, field: str) -> bool:
    """Return a yes or no: a bool, for a string or a number may mean either."""
    if isinstance(value, bool):
        return value
    raise InputError(f"{shown(value)} is no yes or no", field=field, fix="pass True or False")


def as_seed(value: object, field: str = "seed") -> int:
    """Return a seed: any integer from 0 on that can be written down."""
    number = as_integer(value, field, low=0)
    if number.bit_length() > _SEED_BITS:
        raise InputError(
            f"has {number.bit_length()} bits", field=field, fix=f"pass at most {_SEED_BITS} bits"
        )
    return number


def as_choice(value: object, field: str, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`; the error suggests the nearest one."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    near = _nearest(value, known) if isinstance(value, str) else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(
        f"no such choice: {shown(value)}", field=field, fix=hint + "one of: " + ", ".join(known)
    )


def require_parameter(name: str, known: Iterable[str], owner: str) -> None:
    """Refuse a parameter that its owner does not have; the error suggests the nearest one."""
    listed = sorted(known)
    if name not in listed:
        near = _nearest(name, listed)
        raise InputError(
            "no such parameter" + (f"; did you mean {near[0]}?" if near else ""),
            field=f"{owner}.{name}",
            fix="one of: " + ", ".join(listed) if listed else "leave it out",
        )


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return the one of the known names that is most like this one, capitals apart, if any is.

    >>> _nearest("UCRL2", ["psrl", "ucrl2"])
    ['ucrl2']
    """
    lower = {one.lower(): one for one in known}
    return [lower[one] for one in difflib.get_close_matches(name.lower(), lower, n=1)]


def as_name(value: object, field: str) -> str:
    """Return a name people will read: a non-empty string on one line."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise InputError(
            f"{shown(value)} is not a name", field=field, fix="pass a non-empty string on one line"
        )
    return str(value)


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
    if size <= _SMALL:
        return
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


def shown(value: object) -> str:
    """Return a value as a message shows it: on one line, and cut where it is long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to write out integers of thousands of digits
        return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else "a value"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
