"""Episodes of a learner, in columns: T of them are eight arrays, not T objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "REASONS",
    "RECENT",
    "Episode",
    "Episodes",
    "Planner",
    "larger_ring",
    "no_rows",
    "put_rows",
    "rows_of",
]

REASONS = ("open", "first", "boundary", "visits", "restart", "length")
"""Why an episode ended, by the codes of `kernels.swucrl2cw`; "first" never ends one."""

RECENT = 64
"""Episodes an agent remembers when it is played by hand; who wants all must look that often."""


@runtime_checkable
class Planner(Protocol):
    """An agent that acts in episodes."""

    @property
    def n_episodes(self) -> int:
        """How many have started."""
        ...

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the episodes from number `first` to the current one, as rows."""
        ...


@dataclass(frozen=True)
class Episode:
    """One episode: what it was planned with, and how long it lasted.

    Attributes
    ----------
    start
        tau(m), the time of its first step.
    length
        Steps played in it so far.
    reason
        Why it ended: "visits" (the doubling rule), "boundary" (a multiple of W), "restart" (all was
        forgotten), "length" (it would have outgrown the one before), or "open".
    gain, span
        rho~ and span(gamma~) of EVI, in units of the rewards.
    sweeps
        Full sweeps of EVI.
    vacuous
        Share of pairs whose transitions may be anything: their set is the whole simplex.
    ties
        States in which several actions were within the slack of the best.
    """

    start: int
    length: int
    reason: str
    gain: float
    span: float
    sweeps: int
    vacuous: float
    ties: int


class Episodes:
    """The episodes that started during a run, one array a column; indexing gives an `Episode`.

    A run that records every step keeps all of them, any other the last ten thousand; `total` counts
    them all.
    """

    def __init__(self, rows: NDArray[np.void], total: int | None = None) -> None:
        self._rows = rows
        self.total = rows.size if total is None else total

    start = property(lambda self: self._rows["start"], doc="Times of the first steps.")
    length = property(lambda self: self._rows["length"], doc="Steps played in each.")
    gain = property(lambda self: self._rows["gain"], doc="Optimistic gains.")
    span = property(lambda self: self._rows["span"], doc="Spans of the optimistic biases.")
    sweeps = property(lambda self: self._rows["sweeps"], doc="Full sweeps of EVI.")
    vacuous = property(lambda self: self._rows["vacuous"], doc="Shares of vacuous sets.")
    ties = property(lambda self: self._rows["ties"], doc="States with ties.")

    @property
    def reason(self) -> NDArray[np.str_]:
        """Why each ended: "visits", "boundary", "restart", "length" or "open"."""
        names: NDArray[np.str_] = np.array(REASONS)
        return np.take(names, self._rows["reason"])

    def __len__(self) -> int:
        return int(self._rows.size)

    def __getitem__(self, index: int) -> Episode:
        row = self._rows[index]
        return Episode(
            start=int(row["start"]),
            length=int(row["length"]),
            reason=REASONS[row["reason"]],
            gain=float(row["gain"]),
            span=float(row["span"]),
            sweeps=int(row["sweeps"]),
            vacuous=float(row["vacuous"]),
            ties=int(row["ties"]),
        )

    def __iter__(self) -> Iterator[Episode]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Episodes({self.total})"


def rows_of(ring: NDArray[np.void], first: int, last: int) -> NDArray[np.void]:
    """Return a copy of the rows of episodes `first` to `last`; m stands at m % size of the ring.

    As bytes, in two pieces: records are copied one field at a time, and a run may have as many
    episodes as steps.
    """
    rows = np.empty(max(0, last - first + 1), ring.dtype)
    place, out, raw = first % ring.size, _bytes(rows), _bytes(ring)
    head = min(rows.size, ring.size - place)
    out[:head] = raw[place : place + head]
    out[head:] = raw[: rows.size - head]
    return rows


def put_rows(ring: NDArray[np.void], last: int, rows: NDArray[np.void]) -> None:
    """Write rows into a ring as those of the episodes up to number `last`."""
    place, given, raw = (last - rows.size + 1) % ring.size, _bytes(rows), _bytes(ring)
    head = min(rows.size, ring.size - place)
    raw[place : place + head] = given[:head]
    raw[: rows.size - head] = given[head:]


def larger_ring(ring: NDArray[np.void], last: int, size: int) -> NDArray[np.void]:
    """Return a ring of another size with the rows of the episodes up to number `last`."""
    larger = np.zeros(size, ring.dtype)
    put_rows(larger, last, rows_of(ring, max(last - ring.size + 1, 0), last))
    return larger


def _bytes(rows: NDArray[np.void]) -> NDArray[np.uint8]:
    return rows.view(np.uint8).reshape(rows.size, rows.itemsize)


def no_rows() -> NDArray[np.void]:
    """Return the episodes of an agent that has none."""
    from windage.kernels.swucrl2cw import LOG

    return np.empty(0, LOG)
