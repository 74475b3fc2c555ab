"""What a learner remembers: its last W samples, and the counts and sums over them.

Samples are numbered in the order they came and kept in a ring. They are counted late, in one go
(`commit`), at the start of an episode or when the ring would overflow: the counts an episode was
planned with stay as they are while it lasts, and the hot path only writes into the ring. With
W = 0 nothing leaves a window and the ring holds only what is not counted yet. At the times of a
restart schedule everything that came before is forgotten, window or not.

Transition counts live in one of two tables. Small models have a cell for every (pair, state) and
each pair's non-zero counts in a list; large ones have a hash table of the non-zero counts, never
more than the samples remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined
from windage.kernels.random import mix

# places in Memory.clock
TAKEN, COUNTED, DROPPED, CHANGED, CELLS, SLOT, AHEAD, RESTARTS, KEPT = 0, 1, 2, 3, 4, 5, 6, 7, 8
NEVER = np.int64(1) << np.int64(62)  # a time that does not come

SAMPLE = np.dtype([("reward", np.float64), ("pair", np.int32), ("after", np.int32)], align=True)
COUNT = np.dtype(
    [
        ("visits", np.int64),
        ("sum", np.float64),  # of rewards ...
        ("lost", np.float64),  # ... and what rounding took from it
        ("squares", np.float64),  # the same of their squares, if the memory keeps them
        ("squares_lost", np.float64),
        ("distinct", np.int32),  # next states seen
        ("changed", np.int32),  # whether anything changed since `settle`
    ],
    align=True,
)
CELL = np.dtype([("key", np.int64), ("count", np.int64)], align=True)  # key: pair * S + state


class Memory(NamedTuple):
    """Ring of samples, counts and sums; `windage.confidence.window` makes one."""

    window: int  # W, 0: all history
    n_states: int
    hashed: bool
    squared: bool  # whether squares of rewards are summed up too
    restarts: NDArray[np.int64]  # rising times at which all samples of earlier times are forgotten
    # samples taken, counted, dropped; changed pairs, cells; next slot; samples of the time before
    # t = 1; restarts that have been; 1 + cells kept in `planned`, 0 if there was no need
    clock: NDArray[np.int64]
    ring: NDArray[np.void]
    counts: NDArray[np.void]  # [pairs]
    changed: NDArray[np.int32]  # [pairs] which pairs changed since `settle`
    sources: NDArray[np.int64]  # [S] how many pairs have led to the state
    # Cells: [pairs * S], or the slots of the hash table, a power of two. Listed: the count of
    # (pair, state) stands at pair * S + state, so that counting on touches nothing else; the k-th
    # state of a pair's list at pair * S + k, and the mark of (pair, state) is 1 + k, 0 if it is on
    # no list. Hashed: pair and state of a slot, the mark is 1 + pair, 0 if the slot is free.
    cell_count: NDArray[np.int64]
    cell_state: NDArray[np.int32]
    cell_mark: NDArray[np.int32]
    # What the cells were when the episode was planned, once samples were counted while it lasts.
    planned: NDArray[np.void]  # without room if nobody asks, or no episode lasts that long


@inlined
def take(memory, pair, reward, after):
    """Remember one more sample; count when another would overwrite one that is still needed."""
    slot = memory.clock[SLOT]  # TAKEN modulo the size of the ring, without a division
    sample = memory.ring[np.uint64(slot)]
    sample["reward"] = reward
    sample["pair"] = pair
    sample["after"] = after
    memory.clock[SLOT] = slot + 1 if slot + 1 < memory.ring.size else 0
    memory.clock[TAKEN] += 1
    if memory.clock[TAKEN] - memory.clock[DROPPED] >= memory.ring.size:
        _commit_early(memory)


@compiled
def add(memory, pair, reward, after):
    """`take`, for callers outside a loop."""
    take(memory, pair, reward, after)


@compiled
def _commit_early(memory):
    """Count while an episode lasts; the first time, keep the cells it was planned with."""
    if memory.clock[CHANGED] == 0 and memory.planned.size > 0:  # nothing counted since `settle`
        n = 0
        for i in range(memory.cell_mark.size):
            if memory.cell_mark[i] > 0:
                cell = memory.planned[n]
                cell["key"] = i
                if memory.hashed:
                    pair = np.int64(memory.cell_mark[i]) - 1
                    cell["key"] = pair * memory.n_states + memory.cell_state[i]
                cell["count"] = memory.cell_count[i]
                n += 1
        memory.clock[KEPT] = 1 + n
    commit(memory)


@compiled
def commit(memory):
    """Count the samples taken since the last time and forget those older than the window."""
    clock = memory.clock
    taken = clock[TAKEN]
    while next_restart(memory) + clock[AHEAD] <= taken + 1:  # the next sample's time has come to it
        first = next_restart(memory) + clock[AHEAD] - 1
        clock[RESTARTS] += 1
        _forget(memory)
        clock[COUNTED] = first
        clock[DROPPED] = first
    _count(memory, clock[COUNTED], taken, 1)
    clock[COUNTED] = taken
    if memory.window == 0:
        clock[DROPPED] = taken  # counted for good: the ring may be used again
    elif taken - memory.window > clock[DROPPED]:
        _count(memory, clock[DROPPED], taken - memory.window, -1)
        clock[DROPPED] = taken - memory.window


@compiled
def contents(memory, counts):
    """Write how many samples of every pair are remembered now, counted already or not."""
    taken, counted, dropped = memory.clock[TAKEN], memory.clock[COUNTED], memory.clock[DROPPED]
    for p in range(counts.size):
        counts[p] = memory.counts[p]["visits"]
    for i in range(memory.clock[RESTARTS], memory.restarts.size):
        first = memory.restarts[i] + memory.clock[AHEAD] - 1
        if first > taken:
            break
        for p in range(counts.size):
            counts[p] = 0  # all before it is forgotten, though nobody has counted since
        counted = first
        dropped = first
    for k in range(counted, taken):
        counts[memory.ring[k % memory.ring.size]["pair"]] += 1
    if memory.window > 0:
        for k in range(dropped, taken - memory.window):
            counts[memory.ring[k % memory.ring.size]["pair"]] -= 1


@inlined
def next_restart(memory):
    """Return the time at which everything will be forgotten next."""
    i = memory.clock[RESTARTS]
    return memory.restarts[i] if i < memory.restarts.size else NEVER


@inlined
def origin(memory):
    """Return the time before the first that is remembered at all: a restarted clock's 0."""
    i = memory.clock[RESTARTS]
    return memory.restarts[i - 1] - 1 if i > 0 else np.int64(0)


@compiled
def _forget(memory):
    """Empty the table; every pair has changed."""
    for p in range(memory.counts.size):
        count = memory.counts[p]
        count["visits"] = 0
        count["sum"] = 0.0
        count["lost"] = 0.0
        count["squares"] = 0.0
        count["squares_lost"] = 0.0
        count["distinct"] = 0
        count["changed"] = 1
        memory.changed[p] = p
    memory.clock[CHANGED] = memory.counts.size
    memory.clock[CELLS] = 0
    for s in range(memory.sources.size):
        memory.sources[s] = 0
    for i in range(memory.cell_mark.size):
        memory.cell_mark[i] = 0
        memory.cell_count[i] = 0


@inlined
def _count(memory, first, last, by):
    size = memory.ring.size
    slot = first % size
    for _ in range(first, last):
        sample = memory.ring[np.uint64(slot)]
        _count_sample(memory, np.uint64(sample["pair"]), sample["reward"], by)
        if memory.hashed:
            _count_hashed(memory, np.uint64(sample["pair"]), sample["after"], by)
        else:
            _count_listed(memory, np.uint64(sample["pair"]), sample["after"], by)
        slot += 1
        if slot == size:
            slot = 0


@inlined
def _count_sample(memory, pair, reward, by):
    count = memory.counts[pair]
    count["visits"] += by
    count["sum"], lost = _added(count["sum"], by * reward)
    count["lost"] += lost
    if memory.squared:
        count["squares"], lost = _added(count["squares"], by * reward * reward)
        count["squares_lost"] += lost
    if count["visits"] == 0:
        count["sum"] = 0.0
        count["lost"] = 0.0
        count["squares"] = 0.0
        count["squares_lost"] = 0.0
    if count["changed"] == 0:
        count["changed"] = 1
        memory.changed[memory.clock[CHANGED]] = pair
        memory.clock[CHANGED] += 1


@inlined
def _added(old, x):
    """Return old + x and what rounding took from it, exactly, so that nothing drifts."""
    new = old + x
    back = new - old
    return new, (old - (new - back)) + (x - back)


@inlined
def _count_listed(memory, pair, state, by):
    row = pair * np.uint64(memory.n_states)
    cell = row + np.uint64(state)
    memory.cell_count[cell] += by
    count = memory.counts[pair]
    if by > 0 and memory.cell_count[cell] == 1:
        memory.cell_state[row + np.uint64(count["distinct"])] = state
        count["distinct"] += 1
        memory.sources[np.uint64(state)] += 1
        memory.cell_mark[cell] = count["distinct"]
        memory.clock[CELLS] += 1
    elif memory.cell_count[cell] == 0:  # the last of the list takes its place
        count["distinct"] -= 1
        last = memory.cell_state[row + np.uint64(count["distinct"])]
        memory.cell_state[row + np.uint64(memory.cell_mark[cell] - 1)] = last
        memory.cell_mark[row + np.uint64(last)] = memory.cell_mark[cell]
        memory.cell_mark[cell] = 0
        memory.sources[np.uint64(state)] -= 1
        memory.clock[CELLS] -= 1


@compiled
def _count_hashed(memory, pair, state, by):
    marks, states, counts = memory.cell_mark, memory.cell_state, memory.cell_count
    mask = np.uint64(marks.size - 1)
    mark = np.int32(pair + np.uint64(1))
    slot = _home(memory, mark, state)
    while marks[slot] != mark or states[slot] != state:
        if marks[slot] == 0:
            marks[slot] = mark
            states[slot] = state
            memory.counts[pair]["distinct"] += 1
            memory.sources[state] += 1
            memory.clock[CELLS] += 1
            break
        slot = (slot + np.uint64(1)) & mask
    counts[slot] += by
    if counts[slot] != 0:
        return
    memory.counts[pair]["distinct"] -= 1
    memory.sources[state] -= 1
    memory.clock[CELLS] -= 1
    gap = slot  # close the gap: move back whatever was pushed past it
    while True:
        slot = (slot + np.uint64(1)) & mask
        if marks[slot] == 0:
            break
        home = _home(memory, marks[slot], states[slot])
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            marks[gap], states[gap], counts[gap] = marks[slot], states[slot], counts[slot]
            gap = slot
    marks[gap] = 0
    counts[gap] = 0


@inlined
def _home(memory, mark, state):
    key = np.uint64(mark) * np.uint64(memory.n_states) + np.uint64(state)
    return mix(key) & np.uint64(memory.cell_mark.size - 1)


@compiled
def refill(memory, pairs, states, counts):
    """Put counts into the empty table, one cell each."""
    mask = np.uint64(memory.cell_mark.size - 1)
    for i in range(pairs.size):
        count = memory.counts[pairs[i]]
        if memory.hashed:
            slot = _home(memory, pairs[i] + 1, states[i])
            while memory.cell_mark[slot] != 0:
                slot = (slot + np.uint64(1)) & mask
            memory.cell_mark[slot] = pairs[i] + 1
            memory.cell_state[slot] = states[i]
            memory.cell_count[slot] = counts[i]
        else:
            row = pairs[i] * memory.n_states
            memory.cell_state[row + count["distinct"]] = states[i]
            memory.cell_mark[row + states[i]] = count["distinct"] + 1
            memory.cell_count[row + states[i]] = counts[i]
        count["distinct"] += 1
        memory.sources[states[i]] += 1
    memory.clock[CELLS] = pairs.size


@inlined
def settle(memory):
    """Forget which pairs changed: from here on the table is that of a new plan."""
    memory.clock[KEPT] = 0
    for i in range(memory.clock[CHANGED]):
        memory.counts[memory.changed[i]]["changed"] = 0
    memory.clock[CHANGED] = 0


@inlined
def mean(memory, pair):
    """Return r_hat = sum R / N+ of a pair."""
    count = memory.counts[pair]
    return (count["sum"] + count["lost"]) / count["visits"] if count["visits"] > 0 else 0.0


@inlined
def variance(memory, pair):
    """Return the variance of a pair's rewards; rounding may not make it negative."""
    count = memory.counts[pair]
    if count["visits"] == 0:
        return 0.0
    square = (count["squares"] + count["squares_lost"]) / count["visits"]
    return max(0.0, square - mean(memory, pair) ** 2)
