"""The sliding window: the last W samples, and the counts and sums over them (Eq. (3)).

Samples are numbered in the order they came and kept in a ring. They are counted late, in one go
(`commit`), at the start of an episode or when the ring would overflow: the counts an episode was
planned with stay as they are while it lasts, and the hot path only writes into the ring. With
W = 0 nothing leaves the window and the ring holds only what is not counted yet. At the times of a
restart schedule everything that came before is forgotten, window or not.

Transition counts live in one of two tables. A `DenseWindow` has a cell for every (pair, state) and
each pair's non-zero cells in a list; a `HashedWindow`, for large models, has a hash table of the
non-zero counts, never more than the samples remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.random import mix

NEVER = np.int64(1) << np.int64(62)  # a time that does not come

CLOCK = np.dtype(
    [
        ("taken", np.int64),  # samples so far ...
        ("counted", np.int64),  # ... of which the first so many are in the counts
        ("dropped", np.int64),  # ... and the first so many are not any more
        ("slot", np.int64),  # of the ring: where the next sample goes
        ("changed", np.int64),  # pairs that changed since `settle`
        ("cells", np.int64),  # non-zero counts
        ("ahead", np.int64),  # samples of the time before t = 1
        ("restarts", np.int64),  # how many have been
        ("kept", np.int64),  # 1 + cells in `planned`; 0 if the table is what it was
        ("window", np.int64),  # W; 0: all history
        ("squared", np.bool_),  # whether squares of rewards are summed too
    ],
    align=True,
)
SAMPLE = np.dtype([("reward", np.float64), ("pair", np.int32), ("after", np.int32)], align=True)
COUNT = np.dtype(
    [
        ("visits", np.int64),
        ("sum", np.float64),  # of rewards ...
        ("lost", np.float64),  # ... and what rounding took from it
        ("squares", np.float64),  # the same of their squares, if they are kept
        ("squares_lost", np.float64),
        ("distinct", np.int32),  # next states seen
        ("changed", np.int32),  # whether anything changed since `settle`
    ],
    align=True,
)
# Dense: the count of (pair, state) stands at pair * S + state, so that counting on touches nothing
# else; the k-th state of a pair's list at pair * S + k; the mark of (pair, state) is 1 + k, 0 if it
# is on no list. Hashed: pair and state of a slot; the mark is 1 + pair, 0 if the slot is free.
CELL = np.dtype([("count", np.int64), ("state", np.int32), ("mark", np.int32)], align=True)
KEPT = np.dtype([("key", np.int64), ("count", np.int64)], align=True)  # key: pair * S + state


class DenseWindow(NamedTuple):
    """Ring of samples, counts and sums; `windage.confidence.window` makes one."""

    clock: NDArray[np.void]  # [1]
    ring: NDArray[np.void]
    counts: NDArray[np.void]  # [pairs]
    changed: NDArray[np.int32]  # [pairs] which pairs changed since `settle`
    sources: NDArray[np.int64]  # [S] how many pairs have led to the state
    cells: NDArray[np.void]  # [pairs * S], or the slots of a hash table, a power of two
    restarts: NDArray[np.int64]  # rising times at which all earlier samples are forgotten
    planned: NDArray[np.void]  # cells of the episode's plan, once samples are counted in it


class HashedWindow(NamedTuple):
    """The same with a hash table of the non-zero counts."""

    clock: NDArray[np.void]
    ring: NDArray[np.void]
    counts: NDArray[np.void]
    changed: NDArray[np.int32]
    sources: NDArray[np.int64]
    cells: NDArray[np.void]
    restarts: NDArray[np.int64]
    planned: NDArray[np.void]


Window = DenseWindow | HashedWindow


@variants
def count_cell(window, pair, state, by):
    """Add to the count of (pair, state), and keep track of which are not zero."""


@variants
def key_of(window, i):
    """Return pair * S + state of a cell in use."""


@variants
def enter(window, pair, state, count):
    """Enter a count into a table that does not have the cell."""


@inlined
def take(window, pair, reward, after):
    """Remember one more sample; count when another would overwrite one that is still needed."""
    clock = window.clock[0]
    slot = clock["slot"]  # `taken` modulo the size of the ring, without a division
    sample = window.ring[np.uint64(slot)]
    sample["reward"] = reward
    sample["pair"] = pair
    sample["after"] = after
    clock["slot"] = slot + 1 if slot + 1 < window.ring.size else 0
    clock["taken"] += 1
    if clock["taken"] - clock["dropped"] >= window.ring.size:
        _commit_early(window)


@compiled
def _commit_early(window):
    """Count while an episode lasts; the first time, keep the cells it was planned with."""
    clock = window.clock[0]
    if clock["changed"] == 0 and window.planned.size > 0:  # nothing counted since `settle`
        n = 0
        for i in range(window.cells.size):
            if window.cells[i]["mark"] > 0:
                window.planned[n]["key"] = key_of(window, i)
                window.planned[n]["count"] = window.cells[i]["count"]
                n += 1
        clock["kept"] = 1 + n
    commit(window)


@compiled
def commit(window):
    """Count the samples taken since the last time and forget those older than the window."""
    clock = window.clock[0]
    taken = clock["taken"]
    while next_restart(window) + clock["ahead"] <= taken + 1:  # the next sample's time has come
        first = next_restart(window) + clock["ahead"] - 1
        clock["restarts"] += 1
        _forget(window)
        clock["counted"] = first
        clock["dropped"] = first
    _count_all(window, clock["counted"], taken, 1)
    clock["counted"] = taken
    if clock["window"] == 0:
        clock["dropped"] = taken  # counted for good: the ring may be used again
    elif taken - clock["window"] > clock["dropped"]:
        _count_all(window, clock["dropped"], taken - clock["window"], -1)
        clock["dropped"] = taken - clock["window"]


@inlined
def _count_all(window, first, last, by):
    squared, slot = window.clock[0]["squared"], first % window.ring.size
    while first < last:  # twice where the ring begins anew
        end = min(slot + last - first, window.ring.size)
        for k in range(np.uint64(slot), np.uint64(end)):
            _count(window, window.ring[k], by, squared)
        first += end - slot
        slot = 0


@inlined
def _count(window, sample, by, squared):
    pair, reward = np.uint64(sample["pair"]), sample["reward"]
    count = window.counts[pair]
    count["visits"] += by
    count["sum"], lost = _added(count["sum"], by * reward)
    if lost != 0.0:  # never where rewards are 0 or 1: one sum less that waits for itself
        count["lost"] += lost
    if squared:
        count["squares"], lost = _added(count["squares"], by * reward * reward)
        count["squares_lost"] += lost
    if count["visits"] == 0:
        count["sum"] = count["lost"] = count["squares"] = count["squares_lost"] = 0.0
    if count["changed"] == 0:
        count["changed"] = 1
        window.changed[window.clock[0]["changed"]] = pair
        window.clock[0]["changed"] += 1
    count_cell(window, pair, sample["after"], by)


@inlined
def _added(old, x):
    """Return old + x and what rounding took from it, exactly, so that nothing drifts."""
    new = old + x
    back = new - old
    return new, (old - (new - back)) + (x - back)


@count_cell.register(DenseWindow, forceinline=True)
def _count_dense(window, pair, state, by):
    row = pair * np.uint64(window.sources.size)
    cell, count = window.cells[row + np.uint64(state)], window.counts[pair]
    cell["count"] += by
    if by > 0 and cell["count"] == 1:
        window.cells[row + np.uint64(count["distinct"])]["state"] = state
        count["distinct"] += 1
        cell["mark"] = count["distinct"]
        window.sources[np.uint64(state)] += 1
        window.clock[0]["cells"] += 1
    elif cell["count"] == 0:  # the last of the list takes its place
        count["distinct"] -= 1
        last = window.cells[row + np.uint64(count["distinct"])]["state"]
        window.cells[row + np.uint64(cell["mark"] - 1)]["state"] = last
        window.cells[row + np.uint64(last)]["mark"] = cell["mark"]
        cell["mark"] = 0
        window.sources[np.uint64(state)] -= 1
        window.clock[0]["cells"] -= 1


@key_of.register(DenseWindow, forceinline=True)
def _key_dense(_window, i):
    return i


@enter.register(DenseWindow)
def _enter_dense(window, pair, state, count):
    row, distinct = pair * window.sources.size, window.counts[pair]["distinct"]
    window.cells[row + distinct]["state"] = state
    window.cells[row + state]["mark"] = distinct + 1
    window.cells[row + state]["count"] = count


@count_cell.register(HashedWindow)
def _count_hashed(window, pair, state, by):
    cells, clock = window.cells, window.clock[0]
    mask = np.uint64(cells.size - 1)
    mark = np.int32(pair + np.uint64(1))
    slot = _home(window, mark, state)
    while cells[slot]["mark"] != mark or cells[slot]["state"] != state:
        if cells[slot]["mark"] == 0:
            cells[slot]["mark"] = mark
            cells[slot]["state"] = state
            window.counts[pair]["distinct"] += 1
            window.sources[state] += 1
            clock["cells"] += 1
            break
        slot = (slot + np.uint64(1)) & mask
    cells[slot]["count"] += by
    if cells[slot]["count"] != 0:
        return
    window.counts[pair]["distinct"] -= 1
    window.sources[state] -= 1
    clock["cells"] -= 1
    gap = slot  # close the gap: move back whatever was pushed past it
    while True:
        slot = (slot + np.uint64(1)) & mask
        if cells[slot]["mark"] == 0:
            break
        home = _home(window, cells[slot]["mark"], cells[slot]["state"])
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            for_gap = cells[gap]
            for_gap["mark"], for_gap["state"] = cells[slot]["mark"], cells[slot]["state"]
            for_gap["count"] = cells[slot]["count"]
            gap = slot
    cells[gap]["mark"] = 0
    cells[gap]["count"] = 0


@inlined
def _home(window, mark, state):
    key = np.uint64(mark) * np.uint64(window.sources.size) + np.uint64(state)
    return mix(key) & np.uint64(window.cells.size - 1)


@key_of.register(HashedWindow)
def _key_hashed(window, i):
    cell = window.cells[i]
    return (np.int64(cell["mark"]) - 1) * window.sources.size + cell["state"]


@enter.register(HashedWindow)
def _enter_hashed(window, pair, state, count):
    mask = np.uint64(window.cells.size - 1)
    slot = _home(window, pair + 1, state)
    while window.cells[slot]["mark"] != 0:
        slot = (slot + np.uint64(1)) & mask
    window.cells[slot]["mark"] = pair + 1
    window.cells[slot]["state"] = state
    window.cells[slot]["count"] = count


@compiled
def refill(window, pairs, states, counts):
    """Put counts into the empty table, one cell each."""
    for i in range(pairs.size):
        enter(window, pairs[i], states[i], counts[i])
        window.counts[pairs[i]]["distinct"] += 1
        window.sources[states[i]] += 1
    window.clock[0]["cells"] = pairs.size


@compiled
def contents(window, counts):
    """Write how many samples of every pair are remembered now, counted already or not."""
    clock = window.clock[0]
    taken, counted, dropped = clock["taken"], clock["counted"], clock["dropped"]
    for p in range(counts.size):
        counts[p] = window.counts[p]["visits"]
    for i in range(clock["restarts"], window.restarts.size):
        first = window.restarts[i] + clock["ahead"] - 1
        if first > taken:
            break
        for p in range(counts.size):
            counts[p] = 0  # all before it is forgotten, though it was not counted since
        counted = first
        dropped = first
    for k in range(counted, taken):
        counts[window.ring[k % window.ring.size]["pair"]] += 1
    if clock["window"] > 0:
        for k in range(dropped, taken - clock["window"]):
            counts[window.ring[k % window.ring.size]["pair"]] -= 1


@inlined
def next_restart(window):
    """Return the time at which everything will be forgotten next."""
    i = window.clock[0]["restarts"]
    return window.restarts[i] if i < window.restarts.size else NEVER


@inlined
def origin(window):
    """Return the time before the first that is remembered at all: a restarted clock's 0."""
    i = window.clock[0]["restarts"]
    return window.restarts[i - 1] - 1 if i > 0 else np.int64(0)


@compiled
def _forget(window):
    """Empty the table; every pair has changed."""
    for p in range(window.counts.size):
        count = window.counts[p]
        count["visits"] = 0
        count["sum"] = count["lost"] = count["squares"] = count["squares_lost"] = 0.0
        count["distinct"] = 0
        count["changed"] = 1
        window.changed[p] = p
    window.clock[0]["changed"] = window.counts.size
    window.clock[0]["cells"] = 0
    for s in range(window.sources.size):
        window.sources[s] = 0
    for i in range(window.cells.size):
        window.cells[i]["mark"] = 0
        window.cells[i]["count"] = 0


@inlined
def settle(window):
    """Forget which pairs changed: from here on the table is that of a new plan."""
    clock = window.clock[0]
    clock["kept"] = 0
    for i in range(clock["changed"]):
        window.counts[window.changed[i]]["changed"] = 0
    clock["changed"] = 0


@inlined
def r_hat(count):
    """Return the mean reward of a pair's samples, 0 without any (Eq. (3))."""
    return (count["sum"] + count["lost"]) / count["visits"] if count["visits"] > 0 else 0.0


@inlined
def variance(count):
    """Return the variance of a pair's rewards; rounding may not make it negative."""
    if count["visits"] == 0:
        return 0.0
    square = (count["squares"] + count["squares_lost"]) / count["visits"]
    mean = r_hat(count)
    spread = square - mean * mean
    return spread if spread > 0.0 else 0.0
