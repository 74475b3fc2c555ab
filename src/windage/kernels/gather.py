"""From counts to estimates: the rows and columns that a plan is made with."""

from __future__ import annotations

import numpy as np

from windage.kernels.jit import compiled, inlined
from windage.kernels.plan import BOUND, BOX
from windage.kernels.rows import put_in_box


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


@compiled
def gather_boxes(memory, plan):
    """Write the bounds of every pair whose set is a box into the rows of a plan."""
    n = 0
    for p in range(plan.pairs.size):
        pair = plan.pairs[p]
        pair["row"] = n
        pair["entries"] = 0
        if pair["kind"] == BOX:
            n += memory.counts[p]["distinct"]
    if memory.hashed:
        for i in range(memory.cell_mark.size):
            if memory.cell_mark[i] > 0:
                p = memory.cell_mark[i] - 1
                _gather_box(memory, plan, p, memory.cell_state[i], memory.cell_count[i])
    else:
        for p in range(plan.pairs.size):
            row = p * memory.n_states
            for i in range(row, row + memory.counts[p]["distinct"]):
                after = memory.cell_state[i]
                _gather_box(memory, plan, p, after, memory.cell_count[row + after])


@inlined
def _gather_box(memory, plan, p, s, count):
    pair = plan.pairs[p]
    if pair["kind"] == BOX:
        place = pair["row"] + pair["entries"]
        plan.rows[place]["index"] = s
        put_in_box(plan, p, place, count / memory.counts[p]["visits"])
        pair["entries"] += 1


@inlined
def _gather(plan, p, s, probability):
    if plan.pairs[p]["kind"] == BOUND:
        state = plan.states[np.uint64(s)]
        entry = plan.columns[np.uint64(state["column"] + state["entries"])]
        entry["index"] = p
        entry["probability"] = probability
        state["entries"] += 1
