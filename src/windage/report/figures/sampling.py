"""How the entries of a drifting model move over time, thinned to what a picture can show.

A long horizon is sampled on a grid, and besides wherever the drift turns or jumps, so that no jump
is missed. Entries that follow the same course, such as the interior states of a river, are one
curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.models import Blend, DriftingMDP, Mixture

__all__ = [
    "BINS",
    "Curves",
    "accumulated",
    "envelope",
    "is_crowded",
    "kernel_curves",
    "reward_curves",
    "sample_times",
]

Times = NDArray[np.int64]
Reals = NDArray[np.float64]

BINS = 1000
"""Time bins of a picture: about one a pixel."""

_STOPS_A_BIN = 64  # more turns than that between two pixels make a solid block anyway
_JUMPS = 250  # the largest steps a model without known stops is looked at around
_CHUNK = 1 << 20
_STEPS_A_SUM = 200  # to sum up an interval of a blend costs as much as to look at so many steps
_STILL = 1e-12  # a range below this is rounding
_SAME = 1e-9  # curves that differ by less look like one


class Curves(NamedTuple):
    """Courses over time, the one that moves most first.

    Attributes
    ----------
    entries
        The first entry of every curve: a pair, or pair * S + next state.
    alike
        How many entries follow it.
    values
        `values[time, curve]`.
    moving
        How many curves move; they come first.
    total
        How many entries there are, with those that no curve stands for.
    """

    entries: Times
    alike: Times
    values: Reals
    moving: int
    total: int


def sample_times(model: DriftingMDP, bins: int = BINS, most: int = _STOPS_A_BIN) -> Times:
    """Return rising times from 1 to T at which to look at a model: all, if there are few.

    Of the times at which the drift turns or jumps, a bin holds at most `most`.
    """
    T = model.horizon
    if 2 * bins >= T:
        return np.arange(1, T + 1)
    grid = np.linspace(1, T, bins).astype(np.int64)
    known, complete = _stops(model)
    if not complete:
        known.append(_largest_steps(model))
    turns = np.unique(np.concatenate(known))
    place = np.searchsorted(grid, turns)
    rank = np.arange(turns.size) - np.searchsorted(place, place)
    return np.union1d(grid, turns[rank < most])


def reward_curves(model: DriftingMDP, times: Times, most: int) -> Curves:
    """Return the courses of mean rewards, at most `most` of them."""
    source = model.source
    entries = np.arange(model.space.n_pairs)
    if isinstance(source, Blend):
        return _of_mixture(source.rewards, entries, times, most)
    return _of_stream(model, 0, entries, times, most)


def kernel_curves(model: DriftingMDP, times: Times, most: int) -> Curves:
    """Return the courses of the transition probabilities of possible moves."""
    source = model.source
    if isinstance(source, Blend):
        return _of_mixture(source.kernels, _possible(source.kernels.parts), times, most)
    entries = _possible(model.source.at(int(t))[1] for t in times)
    return _of_stream(model, 1, entries, times, most)


def accumulated(model: DriftingMDP, times: Times) -> tuple[Reals, Reals]:
    """Return what B_r and B_p have grown to by each time: the sums of the steps before it."""
    known, complete = _stops(model)
    stops = sum(part.size for part in known)
    if complete and times.size * (stops + _STEPS_A_SUM) < model.horizon:
        return _telescoped(model, times)
    found = np.zeros((2, times.size))
    so_far = np.zeros(2)
    for first, *steps in _steps(model):
        here = (times > first) & (times <= first + steps[0].size)
        for k in (0, 1):
            sums = so_far[k] + np.cumsum(steps[k])
            found[k, here] = sums[times[here] - first - 1]
            so_far[k] = sums[-1]
    return found[0], found[1]


def _telescoped(model: DriftingMDP, times: Times) -> tuple[Reals, Reals]:
    """Add up the budgets from one time to the next: each is read off the few stops between."""
    sizes = np.zeros((2, times.size))
    first = 1
    for k, t in enumerate(times.tolist()):
        if t > first:
            piece = model.budgets(first, t)
            sizes[:, k] = piece.reward, piece.transition
            first = t
    reward, transition = np.cumsum(sizes, axis=1)
    return reward, transition


def envelope(times: Times, values: Reals, bins: int = BINS) -> tuple[Times, Reals]:
    """Return the lowest and the highest value of each time bin, where there are too many times.

    >>> wave = np.array([[0.0], [1.0], [0.5], [0.0], [1.0], [5.0], [2.0], [1.0]])
    >>> envelope(np.arange(1, 9), wave, bins=2)[1].ravel()
    array([0., 1., 1., 5.])
    """
    if not is_crowded(times, bins):
        return times, values
    edges = np.linspace(times[0], times[-1] + 1, bins + 1)[:-1]
    starts = np.unique(np.searchsorted(times, edges))
    both = np.stack([np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)], 1)
    return np.repeat(times[starts], 2), both.reshape(-1, values.shape[1])


def is_crowded(times: Times, bins: int = BINS) -> bool:
    """Return whether there are more sampled times than a picture can show one by one."""
    return times.size > 3 * bins


def _of_mixture(mixture: Mixture, entries: Times, times: Times, most: int) -> Curves:
    models, weight = mixture.schedule.active(times, mixture.horizon)
    used = np.unique(models[weight > 0])
    parts = [mixture.parts[k] for k in used]
    place = np.minimum(np.searchsorted(used, models), used.size - 1)
    shares = np.zeros(used.size)
    np.add.at(shares, place, weight * _marks(times)[:, None])
    chosen, alike = _shortlist(entries, parts, shares, most)
    table = np.stack([_values(part, chosen) for part in parts])
    values = np.zeros((times.size, chosen.size))
    for share, row in zip(weight.T, place.T, strict=True):
        values += share[:, None] * table[row]
    return _merged(chosen, alike, values, entries.size)


def _of_stream(model: DriftingMDP, which: int, entries: Times, times: Times, most: int) -> Curves:
    def arrays() -> Iterator[Any]:
        return (model.source.at(int(t))[which] for t in times)

    chosen, alike = _shortlist(entries, arrays(), _marks(times), most)
    values = np.stack([_values(array, chosen) for array in arrays()])
    return _merged(chosen, alike, values, entries.size)


def _shortlist(
    entries: Times, arrays: Iterable[Any], shares: Reals, most: int
) -> tuple[Times, Times]:
    """Return the entries that move most, one for all that move alike, and how many those are.

    Two entries move alike if their range and a weighted sum over time, with weights that no real
    drift repeats, agree.
    """
    low, high = np.full(entries.size, np.inf), np.full(entries.size, -np.inf)
    mark = np.zeros(entries.size)
    for array, share in zip(arrays, shares, strict=True):
        values = _values(array, entries)
        np.minimum(low, values, out=low)
        np.maximum(high, values, out=high)
        mark += share * values
    looks = np.round(np.stack([mark, low, low - high]) / _SAME)
    order = np.lexsort(looks)  # by falling range; entries that look the same side by side
    new = np.concatenate([[True], (np.diff(looks[:, order], axis=1) != 0).any(axis=0)])
    starts = np.flatnonzero(new)
    alike = np.diff([*starts, order.size])
    return entries[order[starts[:most]]], alike[:most]


def _merged(entries: Times, alike: Times, values: Reals, total: int) -> Curves:
    """Return the curves with the equal ones joined, the one with the largest range first."""
    ranges = np.ptp(values, axis=0)
    kept: list[int] = []
    alike = alike.copy()
    for curve in np.lexsort((entries, np.round(-ranges / _SAME))):
        twins = [k for k in kept if np.abs(values[:, k] - values[:, curve]).max() < _SAME]
        if twins:
            alike[twins[0]] += alike[curve]
        else:
            kept.append(int(curve))
    moving = int((ranges[kept] > _STILL).sum())
    return Curves(entries[kept], alike[kept], values[:, kept], moving, total)


def _possible(kernels: Iterable[Any]) -> Times:
    """Return the cells of moves that some kernel allows, as pair * S + next state."""
    union: Any = None
    for kernel in kernels:
        allowed = kernel > 0
        if union is None:
            union = allowed
        else:
            union = union | allowed if isinstance(union, np.ndarray) else union + allowed
    rows, columns = union.nonzero()
    return np.sort(rows.astype(np.int64) * union.shape[1] + columns)


def _values(array: Any, entries: Times) -> Reals:
    if isinstance(array, np.ndarray):
        return array.ravel()[entries]
    return np.asarray(array[np.divmod(entries, array.shape[1])]).ravel()


def _marks(times: Times) -> Reals:
    marks: Reals = np.cos(np.arange(times.size) ** 1.5)
    return marks


def _stops(model: DriftingMDP) -> tuple[list[Times], bool]:
    """Return the known times at which rewards and kernels turn or jump, and whether all are."""
    source = model.source
    if not isinstance(source, Blend):
        return [], False
    both = (source.rewards.schedule, source.kernels.schedule)
    found = (schedule.stops(model.horizon) for schedule in both)
    known = [times for times in found if times is not None]
    return known, len(known) == len(both)


def _steps(model: DriftingMDP) -> Iterator[tuple[int, Reals, Reals]]:
    """Return B_{r,t} and B_{p,t} from t = 1 on, an interval at a time."""
    for first in range(1, model.horizon, _CHUNK):
        budgets = model.budgets(first, min(first + _CHUNK, model.horizon))
        yield first, budgets.reward_steps, budgets.transition_steps


def _largest_steps(model: DriftingMDP) -> Times:
    """Return the times on both sides of the largest steps of rewards and of transitions."""
    found = [np.empty((2, 0))] * 2
    for first, *steps in _steps(model):
        for k, sizes in enumerate(steps):
            moved = np.flatnonzero(sizes > 0)
            both = np.concatenate([found[k], [first + moved, sizes[moved]]], axis=1)
            found[k] = both[:, np.argsort(-both[1], kind="stable")[:_JUMPS]]
    times = np.concatenate([one[0] for one in found]).astype(np.int64)
    return np.union1d(times, times + 1)
