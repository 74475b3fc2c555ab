"""When a drifting model falls apart: stretches of time in which some state cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.models import tabulated
from windage.models.blend import Blend
from windage.models.segments import edges, rising

if TYPE_CHECKING:
    from windage.models.drifting import DriftingMDP

__all__ = ["Disconnection", "disconnections"]

CHUNK = 1 << 16
"""So many times of a blend without known stops are looked at together."""


class Disconnection(NamedTuple):
    """A stretch of time in which no policy leads from state `origin` to state `target`."""

    first: int
    last: int
    origin: int
    target: int


def disconnections(model: DriftingMDP, start: int, end: int) -> list[Disconnection]:
    """Return where a model does not communicate between two times.

    Each distinct set of possible moves is tested once.
    """
    found: list[Disconnection] = []
    for times, last in _looks(model, start, end):
        numbers = model.source.supports(times)
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        firsts = times[np.concatenate([[0], cuts])]
        lasts = np.append(firsts[1:] - 1, last)
        answers: dict[int, tuple[int, int] | None] = {}
        for number, begin, stop in zip(numbers[np.append(0, cuts)], firsts, lasts, strict=True):
            if number not in answers:
                answers[number] = model.at(int(begin)).unreachable()
            hole = answers[number]
            if hole is None:
                continue
            if found and found[-1][1:] == (begin - 1, *hole):
                found[-1] = found[-1]._replace(last=int(stop))
            else:
                found.append(Disconnection(int(begin), int(stop), *hole))
    return found


def _looks(model: DriftingMDP, start: int, end: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield times to look at, each of which stands for those up to the next, and the last of all.

    A blend is looked at where its kernel starts or stops to move, anything else everywhere.
    """
    source = model.source
    stops = source.kernels.schedule.stops(model.horizon) if isinstance(source, Blend) else None
    if isinstance(source, Blend) and stops is not None:
        near = edges(source.kernels, stops)
        times = rising(np.array([start]), near, near + 1)
        yield times[(times >= start) & (times <= end)], end
        return
    size = CHUNK if isinstance(source, Blend) else tabulated.KEPT_STEPS  # what a stream finds stays
    for first in range(start, end + 1, size):
        last = min(first + size - 1, end)
        yield np.arange(first, last + 1), last
