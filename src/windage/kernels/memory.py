"""What a learner remembers: its last W samples, and the counts and sums over them.

Samples are numbered in the order they came and kept in a ring. They are counted late, in one go
(`commit`), at the start of an episode or when the ring would overflow: the counts an episode was
planned with stay as they are while it lasts, and the hot path only writes into the ring. With
W = 0 nothing is ever forgotten and the ring holds only what is not counted yet.

Transition counts live in one of two tables. Small models have a cell for every (pair, state) and
each pair's non-zero counts in a list; large ones have a hash table of the non-zero counts, never
more than the samples remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.compiled import compiled, inlined
from windage.kernels.evi import BOUND
from windage.kernels.random import mix

TAKEN, COUNTED, DROPPED, CHANGED, CELLS, SLOT = 0, 1, 2, 3, 4, 5  # places in Memory.clock

SAMPLE = np.dtype([("reward", np.float64), ("pair", np.int32), ("after", np.int32)], align=True)
COUNT = np.dtype(
    [
        ("visits", np.int64),
        ("sum", np.float64),  # of rewards ...
        ("lost", np.float64),  # ... and what rounding took from it
        ("distinct", np.int32),  # next states seen
        ("changed", np.int32),  # whether anything changed since `settle`
    ],
    align=True,
)


class Memory(NamedTuple):
    """Ring of samples, counts and sums; `windage.learn.window` makes one."""

    window: int  # W, 0: all history
    n_states: int
    hashed: bool
    clock: NDArray[np.int64]  # samples taken, counted, dropped; changed pairs, cells; next slot
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
        commit(memory)


@compiled
def add(memory, pair, reward, after):
    """`take`, for callers outside a loop."""
    take(memory, pair, reward, after)


@compiled
def commit(memory):
    """Count the samples taken since the last time and forget those older than the window."""
    clock = memory.clock
    taken = clock[TAKEN]
    _count(memory, clock[COUNTED], taken, 1)
    clock[COUNTED] = taken
    if memory.window == 0:
        clock[DROPPED] = taken  # counted for good: the ring may be used again
    elif taken - memory.window > clock[DROPPED]:
        _count(memory, clock[DROPPED], taken - memory.window, -1)
        clock[DROPPED] = taken - memory.window


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
    old, x = count["sum"], by * reward
    new = old + x
    back = new - old
    count["visits"] += by
    count["sum"] = new
    count["lost"] += (old - (new - back)) + (x - back)  # exact, so that nothing drifts
    if count["visits"] == 0:
        count["sum"] = 0.0
        count["lost"] = 0.0
    if count["changed"] == 0:
        count["changed"] = 1
        memory.changed[memory.clock[CHANGED]] = pair
        memory.clock[CHANGED] += 1


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
    """Forget which pairs changed."""
    for i in range(memory.clock[CHANGED]):
        memory.counts[memory.changed[i]]["changed"] = 0
    memory.clock[CHANGED] = 0


@inlined
def mean(memory, pair):
    """Return r_hat = sum R / N+ of a pair."""
    count = memory.counts[pair]
    return (count["sum"] + count["lost"]) / count["visits"] if count["visits"] > 0 else 0.0


@compiled
def gather(memory, plan):
    """Write p_hat of every pair whose set is a ball into the columns of a plan."""
    n = 0
    for s in range(plan.states.size):  # room for all pairs that led there, needed or not
        plan.states[s]["column"] = n
        plan.states[s]["entries"] = 0
        n += memory.sources[s]
    if memory.hashed:
        for i in range(memory.cell_mark.size):
            if memory.cell_mark[i] > 0:
                p = memory.cell_mark[i] - 1
                share = 1.0 / max(1, memory.counts[p]["visits"])
                _gather(plan, p, memory.cell_state[i], memory.cell_count[i] * share)
    else:
        for p in range(plan.pairs.size):
            if plan.pairs[p]["kind"] == BOUND:
                row = np.uint64(p * memory.n_states)
                share = 1.0 / max(1, memory.counts[p]["visits"])
                for i in range(row, row + np.uint64(memory.counts[p]["distinct"])):
                    after = np.uint64(memory.cell_state[i])
                    _gather(plan, p, after, memory.cell_count[row + after] * share)


@inlined
def _gather(plan, p, s, probability):
    if plan.pairs[p]["kind"] == BOUND:
        state = plan.states[np.uint64(s)]
        entry = plan.columns[np.uint64(state["column"] + state["entries"])]
        entry["index"] = p
        entry["probability"] = probability
        state["entries"] += 1
