"""States in rising order of u, ties by index: by insertion while that is cheap, else by heap."""

from __future__ import annotations

from windage.kernels.jit import compiled, inlined


@inlined
def before(u, s, other):
    """Whether state s comes before another one."""
    return u[s] < u[other] or (u[s] == u[other] and s < other)


@compiled
def sort(u, states):
    """Put states in rising order of (u, index): by insertion while that is cheap, else by heap."""
    moves = 16 * u.size
    for i in range(1, u.size):
        s = states[i]["order"]
        j = i
        while j > 0 and before(u, s, states[j - 1]["order"]):
            states[j]["order"] = states[j - 1]["order"]
            j -= 1
        states[j]["order"] = s
        moves -= i - j
        if moves < 0:
            _heapsort(u, states)
            return


@compiled
def _heapsort(u, states):
    n = u.size
    for start in range(n // 2 - 1, -1, -1):
        _sift(u, states, start, n)
    for end in range(n - 1, 0, -1):
        _swap(states, 0, end)
        _sift(u, states, 0, end)


@inlined
def _sift(u, states, start, end):
    root = start
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and before(u, states[child]["order"], states[child + 1]["order"]):
            child += 1
        if not before(u, states[root]["order"], states[child]["order"]):
            return
        _swap(states, root, child)
        root = child


@inlined
def _swap(states, i, j):
    kept = states[i]["order"]
    states[i]["order"] = states[j]["order"]
    states[j]["order"] = kept
