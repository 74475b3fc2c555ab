"""`Binner`: measurements as states, by the bin each of them falls into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.spaces import StateActions
from windage.validation import as_integer, as_name, shown

__all__ = ["Binner"]

Reals = NDArray[np.float64]

_MOST = 10_000_000  # states: more than any agent here can learn, and no memory is lost on them


class Binner:
    """Turns measurements, one or several at once, into a state number.

    A measurement with the edges e_1 < ... < e_k falls into one of k + 1 bins: below e_1, from e_1
    up to but not including e_2, ..., from e_k on. Several measurements are combined: the last
    one's bin changes fastest.

    Parameters
    ----------
    edges
        One list of rising edges a measurement; a single flat list for a single measurement.
    names
        What each measurement is called in the names of states.

    Examples
    --------
    >>> temperature = Binner([5.0, 15.0, 25.0], names=["temperature"])
    >>> temperature(17.2), temperature.n_states
    (2, 4)
    >>> temperature.state_names[2]
    'temperature 15..25'
    >>> both = Binner([[0.0], [10.0, 20.0]])
    >>> both([-1.0, 25.0]), both.n_states
    (2, 6)
    """

    def __init__(
        self,
        edges: Sequence[float] | Sequence[Sequence[float]] | Reals,
        names: Sequence[str] | None = None,
    ) -> None:
        self.edges: tuple[tuple[float, ...], ...] = _edges(edges)
        """The edges of each measurement."""
        self.bins: tuple[int, ...] = tuple(len(one) + 1 for one in self.edges)
        """How many bins each measurement has."""
        self.names: tuple[str, ...] | None = _names(names, len(self.edges))
        """What each measurement is called, if it is."""
        self.n_states = math.prod(self.bins)
        """The number of states."""
        if self.n_states > _MOST:
            raise InputError(
                f"{' x '.join(map(str, self.bins))} bins are {self.n_states:,} states",
                field="edges",
                fix=f"use fewer edges or measurements, at most {_MOST:,} states",
            )
        self._arrays = [np.array(one) for one in self.edges]

    @classmethod
    def uniform(
        cls,
        low: ArrayLike,
        high: ArrayLike,
        bins: int | Sequence[int],
        names: Sequence[str] | None = None,
    ) -> Binner:
        """Return bins of one width between `low` and `high`; what lies beyond joins the outer ones.

        >>> Binner.uniform([0.0, -1.0], [1.0, 1.0], bins=[2, 4]).edges
        ((0.5,), (-0.5, 0.0, 0.5))
        """
        lows, highs = _numbers(low, "low"), _numbers(high, "high")
        if lows.shape != highs.shape:
            raise InputError(
                f"{lows.size} low and {highs.size} high ends", field="high", fix="pass as many"
            )
        if not (lows < highs).all():
            place = int(np.argmin(lows < highs))
            raise InputError(
                f"{highs[place]:g} is not above low = {lows[place]:g}",
                field=f"high[{place}]",
                fix="pass low < high",
            )
        counts = _counts(bins, lows.size)
        ends = zip(lows, highs, counts, strict=True)
        return cls([np.linspace(a, b, n + 1)[1:-1].tolist() for a, b, n in ends], names)

    @classmethod
    def quantiles(
        cls, samples: ArrayLike, bins: int | Sequence[int], names: Sequence[str] | None = None
    ) -> Binner:
        """Return bins that each hold as many of the samples, as near as ties allow.

        `samples[i]` is one observation, or `samples[i, k]` its k-th measurement. Where many samples
        are equal, edges coincide and there are fewer bins.

        >>> Binner.quantiles([1.0, 2.0, 3.0, 4.0, 100.0, 200.0], bins=3).edges
        ((3.0, 100.0),)
        """
        table = _numbers(samples, "samples", most=2)
        if table.ndim < 2:
            table = table.reshape(-1, 1)
        counts, edges = _counts(bins, table.shape[1]), []
        for column, n in zip(table.T, counts, strict=True):
            ordered = np.sort(column)
            cuts = ordered[np.arange(1, n) * ordered.size // n]
            edges.append(np.unique(cuts[cuts > ordered[0]]).tolist())
        return cls(edges, names)

    def __call__(self, observation: Any) -> int:
        """Return the state of an observation: a number, or as many numbers as there are edges."""
        values = np.asarray(observation)
        if values.dtype.kind not in "biuf" or values.size != len(self.edges):
            raise InputError(
                f"{shown(observation)} is not {len(self.edges)} number(s)",
                field="observation",
                fix=f"pass {len(self.edges)} number(s), one a list of edges",
            )
        state = 0
        for place, (value, cuts) in enumerate(zip(values.flat, self._arrays, strict=True)):
            if math.isnan(value):
                raise InputError(
                    f"{shown(observation)} holds a NaN",
                    field=f"observation[{place}]",
                    fix="decide what stands for a missing measurement",
                )
            state = state * (cuts.size + 1) + int(np.searchsorted(cuts, value, side="right"))
        return state

    @property
    def state_names(self) -> list[str]:
        """What each state is called: the range of every measurement."""
        names = self.names or tuple(f"x{k}" for k in range(len(self.edges)))
        found = [""]
        for name, cuts in zip(names, self.edges, strict=True):
            parts = [f"{name} {part}" for part in _ranges(cuts)]
            found = [f"{before}, {part}" if before else part for before in found for part in parts]
        return found

    def space(self, actions: int, action_names: Sequence[str] | None = None) -> StateActions:
        """Return the space with these states, each of them with as many actions.

        >>> Binner([0.5], names=["load"]).space(2).describe(0)
        "s=0 ('load <0.5'), a=0"
        """
        return StateActions.uniform(self.n_states, actions, self.state_names, action_names)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this was made with, as plain data."""
        return {
            "edges": [list(one) for one in self.edges],
            "names": None if self.names is None else list(self.names),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Binner) and self.edges == other.edges and self.names == other.names

    def __hash__(self) -> int:
        return hash((self.edges, self.names))

    def __repr__(self) -> str:
        return f"Binner({' x '.join(map(str, self.bins))} bins)"


def _edges(edges: Any) -> tuple[tuple[float, ...], ...]:
    if isinstance(edges, (str, bytes, dict)) or not hasattr(edges, "__len__"):
        raise InputError(
            f"{shown(edges)} is not a list of edges", field="edges", fix="pass rising numbers"
        )
    listed = [edges] if all(np.ndim(one) == 0 for one in edges) else list(edges)
    if not listed or (len(listed) == 1 and len(listed[0]) == 0 and listed[0] is edges):
        raise InputError("there are no edges", field="edges", fix="pass at least one number")
    found = []
    for k, one in enumerate(listed):
        cuts = _numbers(one, f"edges[{k}]", empty=True)
        if (np.diff(cuts) <= 0).any():
            place = int(np.argmax(np.diff(cuts) <= 0)) + 1
            raise InputError(
                f"{cuts[place]:g} is not above {cuts[place - 1]:g}",
                field=f"edges[{k}][{place}]",
                fix="pass rising numbers",
            )
        found.append(tuple(cuts.tolist()))
    return tuple(found)


def _numbers(values: Any, field: str, *, most: int = 1, empty: bool = False) -> Reals:
    try:
        found = np.atleast_1d(np.asarray(values))
    except ValueError:
        raise InputError(f"{shown(values)} has uneven rows", field=field, fix="mend it") from None
    if found.size == 0 and empty:
        return np.empty(0)
    if found.dtype.kind not in "iuf" or found.ndim > most or found.size == 0:
        raise InputError(
            f"{shown(values)} is no list of numbers", field=field, fix="pass real numbers"
        )
    numbers = found.astype(np.float64)
    if not np.isfinite(numbers).all():
        place = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise InputError(
            f"{numbers[tuple(place)]} is not finite",
            field=f"{field}{place}",
            fix="leave out what is missing or infinite",
        )
    return numbers


def _counts(bins: Any, measurements: int) -> list[int]:
    if not isinstance(bins, (list, tuple, np.ndarray)):
        return [as_integer(bins, "bins", low=1, high=_MOST)] * measurements
    if len(bins) != measurements:
        raise InputError(
            f"{len(bins)} numbers for {measurements} measurements",
            field="bins",
            fix="pass one number, or one a measurement",
        )
    return [as_integer(n, f"bins[{k}]", low=1, high=_MOST) for k, n in enumerate(bins)]


def _names(names: Any, measurements: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or len(names) != measurements:
        raise InputError(
            f"{shown(names)} names {measurements} measurement(s)",
            field="names",
            fix="pass a list with one name a measurement",
        )
    return tuple(as_name(name, f"names[{k}]") for k, name in enumerate(names))


def _ranges(cuts: tuple[float, ...]) -> list[str]:
    if not cuts:
        return ["any"]
    inner = [f"{a:g}..{b:g}" for a, b in pairwise(cuts)]
    return [f"<{cuts[0]:g}", *inner, f">={cuts[-1]:g}"]
