"""The largest gain of a model in exact rationals: every policy, every closed class of its chain."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np


def best_gain(space, rewards, transitions):
    """Return the largest gain of any policy on any closed class; rows are rescaled exactly."""
    rows = [[Fraction(x) for x in row] for row in np.asarray(transitions).tolist()]
    rows = [[x / sum(row) for x in row] for row in rows]
    paid = [Fraction(x) for x in np.asarray(rewards).tolist()]
    choices = itertools.product(*map(range, space.offsets[:-1], space.offsets[1:]))
    return max(
        sum(share * paid[pairs[s]] for s, share in occupied.items())
        for pairs in choices
        for occupied in stationary([rows[pair] for pair in pairs])
    )


def stationary(chain):
    """Yield the stationary distribution of each closed class of a chain, as {state: share}."""
    states = range(len(chain))
    reach = [{s} for s in states]
    for _ in states:
        for s in states:
            reach[s] = reach[s].union(*(reach[j] for j in states if chain[s][j] > 0))
    for s in states:
        inside = sorted(reach[s])
        if s != inside[0] or any(s not in reach[j] for j in inside):
            continue
        n = len(inside)  # balance at all states but one, and shares that sum to one
        system = [[chain[i][j] - (i == j) for i in inside] + [Fraction(0)] for j in inside[1:]]
        system.append([Fraction(1)] * (n + 1))
        for k in range(n):
            pivot = next(row for row in range(k, n) if system[row][k] != 0)
            system[k], system[pivot] = system[pivot], system[k]
            for row in set(range(n)) - {k}:
                factor = system[row][k] / system[k][k]
                system[row] = [a - factor * b for a, b in zip(system[row], system[k], strict=True)]
        yield {state: system[k][n] / system[k][k] for k, state in enumerate(inside)}
