"""The best kernel of one pair, by its row: in an L1 ball, or in a box.

Rows are kept in rising order of u by insertion: they hardly change between two sweeps. In a box
every state gets its lower bound, and what is left goes to the best states up to their upper bounds.
"""

from __future__ import annotations

import math

import numpy as np

from windage.kernels.jit import compiled, inlined
from windage.kernels.order import before
from windage.kernels.plan import BOUND, WHOLE


@inlined
def put_in_order(plan, p):
    """Put the row of a pair in rising order of u, by insertion."""
    u, rows, rooms = plan.u, plan.rows, plan.rooms
    first = plan.pairs[p]["row"]
    for i in range(first + 1, first + plan.pairs[p]["entries"]):
        s, probability = rows[i]["index"], rows[i]["probability"]
        room = rooms[i] if rooms.size > 0 else 0.0
        j = i
        while j > first and before(u, s, rows[j - 1]["index"]):
            rows[j]["index"] = rows[j - 1]["index"]
            rows[j]["probability"] = rows[j - 1]["probability"]
            if rooms.size > 0:
                rooms[j] = rooms[j - 1]
            j -= 1
        rows[j]["index"] = s
        rows[j]["probability"] = probability
        if rooms.size > 0:
            rooms[j] = room


@compiled
def row_value(plan, p, best):
    """Return r~ + max q.u of one pair: put its row in order of u and find where q begins."""
    rows, pair = plan.rows, plan.pairs[p]
    pair["cut"] = WHOLE
    first, last = pair["row"], pair["row"] + pair["entries"]
    put_in_order(plan, p)
    on_best = 0.0
    if last > first and rows[last - 1]["index"] == best:
        on_best = rows[last - 1]["probability"]
    if pair["kind"] == BOUND and pair["half"] < 1.0 - on_best:
        left, cut = pair["half"], first
        while cut < last - 1 and left >= rows[cut]["probability"]:
            left -= rows[cut]["probability"]
            cut += 1
        pair["cut"] = cut
        pair["left"] = left  # what the first entry that stays loses
    return kept_value(plan, p, best)


@inlined
def kept_value(plan, p, best):
    """Return r~ + q.u for the kernel q that `row_value` found."""
    u, rows, pair = plan.u, plan.rows, plan.pairs[p]
    if pair["cut"] == WHOLE:
        return pair["reward"] + u[best]
    cut = np.uint64(pair["cut"])
    total = pair["reward"] + pair["half"] * u[best]
    total -= pair["left"] * u[np.uint64(rows[cut]["index"])]
    for i in range(cut, np.uint64(pair["row"] + pair["entries"])):
        total += rows[i]["probability"] * u[np.uint64(rows[i]["index"])]
    return total


@inlined
def put_in_box(plan, p, place, probability):
    """Write the bounds of one entry of a pair from its estimate."""
    pair = plan.pairs[p]
    off = pair["root"] * math.sqrt(probability * (1.0 - probability)) + pair["rest"] + pair["half"]
    lower = max(0.0, probability - off)
    plan.rows[place]["probability"] = lower
    plan.rooms[place] = min(1.0, probability + off) - lower


@compiled
def box_value(plan, p):
    """Return max q.u over a box; states that are no entry of the row have the bounds of p_hat = 0.

    Rows are kept in order of u, so one walk down the states meets their entries in turn.
    """
    u, rows, pair = plan.u, plan.rows, plan.pairs[p]
    put_in_order(plan, p)
    first, entry = pair["row"], pair["row"] + pair["entries"] - 1
    left, total = 1.0, 0.0
    for i in range(first, entry + 1):
        left -= rows[i]["probability"]
        total += rows[i]["probability"] * u[rows[i]["index"]]
    unseen = min(1.0, pair["rest"] + pair["half"])
    for rank in range(u.size - 1, -1, -1):
        s, room = plan.states[rank]["order"], unseen
        if entry >= first and rows[entry]["index"] == s:
            room = plan.rooms[entry]
            entry -= 1
        given = min(left, room)
        total += given * u[s]
        left -= given
        if left <= 0.0:
            break
    return total
