"""Half-window tests: whether rewards or moves differ between two halves of a stretch of time.

A window of 2h steps is slid over the log. Of every pair that was played in both of its halves the
outcomes are compared; what they say is added up over pairs and gives one p-value for rewards and
one for moves. In a world that stands still outcomes of a pair could trade places in time, and both
statistics are scaled to have the mean of their chi-square law when they do. All p-values, of all
places and of windows of three widths, are corrected together by Holm's rule.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from windage.logs.blocks import Blocks
from windage.study.stats import holm

__all__ = ["ALPHA", "LEAST_STEPS", "Drift", "HalfTests", "half_tests"]

ALPHA = 0.05
"""The probability of any false alarm in a log, at most."""

_SHARES = (4, 8, 16)  # half windows are this fraction of the log
_STEPS = 4  # places a half window
_LEAST = 5  # visits of a pair in either half, and counts of a next state
LEAST_STEPS = _SHARES[0] * _LEAST
"""With fewer, in some halves no pair can be met often enough, however few pairs there are."""

_KINDS = ("reward", "transition")

Reals = NDArray[np.float64]


class Drift(NamedTuple):
    """A stretch of time in which tests find a change."""

    kind: str
    step: int
    """The last step before the change, as the narrowest windows that find it see it best."""
    first: int
    last: int
    p_value: float
    """The smallest of the stretch, corrected by Holm's rule."""
    pair: int
    """The pair that says most of it."""


class HalfTests(NamedTuple):
    """All tests, one entry each."""

    kind: NDArray[np.int64]
    """0: rewards, 1: transitions."""
    block: NDArray[np.int64]
    """The number of blocks before the middle of the window."""
    half: NDArray[np.int64]
    """The width of a half, in blocks."""
    p_value: Reals
    corrected: Reals
    pair: NDArray[np.int64]

    def drifts(self, ends: NDArray[np.int64]) -> list[Drift]:
        """Return the stretches in which something changed, in the order of time.

        Significant windows whose middles are closer than a half belong together.
        """
        found = []
        for kind, name in enumerate(_KINDS):
            hits = np.flatnonzero((self.kind == kind) & (self.corrected <= ALPHA))
            hits = hits[np.argsort(self.block[hits], kind="stable")]
            groups: list[list[int]] = []
            for k in hits.tolist():
                near = groups and self.block[k] - self.block[groups[-1][-1]] <= max(
                    self.half[k], self.half[groups[-1][-1]]
                )
                if near:
                    groups[-1].append(k)
                else:
                    groups.append([k])
            for group in groups:
                best = min(group, key=lambda k: (self.half[k], self.p_value[k]))  # narrow: sharp
                begin = min(int(self.block[k]) for k in group)
                end = max(int(self.block[k]) for k in group)
                step, first, last = (int(ends[k - 1]) for k in (self.block[best], begin, end))
                p_value = float(self.corrected[group].min())
                found.append(Drift(name, step, first, last, p_value, int(self.pair[best])))
        return sorted(found, key=lambda drift: drift.step)


def half_tests(blocks: Blocks) -> HalfTests:
    """Test for a change in the middle of every window."""
    total = blocks.running()
    rows: list[tuple[int, int, int, float, int]] = []
    for share in _SHARES:
        half = blocks.count // share
        if half < 1:
            continue
        for block in range(half, blocks.count - half + 1, max(1, half // _STEPS)):
            before, after = (
                [table[end] - table[start] for table in total.tables]
                for start, end in ((block - half, block), (block, block + half))
            )
            for kind, (p_value, pair) in enumerate(
                (_rewards(before, after), _moves(blocks, before, after))
            ):
                rows.append((kind, block, half, p_value, pair))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    kinds, places, halves, pairs = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 2, 4))
    p_values = np.array(columns[3], dtype=np.float64)
    return HalfTests(kinds, places, halves, p_values, holm(p_values), pairs)


def _rewards(before: list[Reals], after: list[Reals]) -> tuple[float, int]:
    """Return the p-value of a change of mean rewards, and the pair that says most of it."""
    n, m = before[0], after[0]
    seen = np.flatnonzero((n >= _LEAST) & (m >= _LEAST))
    if not seen.size:
        return 1.0, -1
    n, m = n[seen], m[seen]
    s, u = before[1][seen], after[1][seen]
    squares = before[2][seen] + after[2][seen]
    variance = (squares - (s + u) ** 2 / (n + m)) / (n + m - 1)
    varies = variance > 1e-12
    if not varies.any():
        return 1.0, -1
    apart = (s / n - u / m)[varies]
    z2 = apart**2 / (variance * (1 / n + 1 / m))[varies]
    pair = int(seen[varies][np.argmax(z2)])
    return float(chi2.sf(z2.sum(), z2.size)), pair


def _moves(blocks: Blocks, before: list[Reals], after: list[Reals]) -> tuple[float, int]:
    """Return the p-value of a change of transitions, and the pair that says most of it."""
    n, m = before[0], after[0]
    seen = (n >= _LEAST) & (m >= _LEAST)
    here = seen[blocks.cell_pair]
    if not here.any():
        return 1.0, -1
    pair, left, right = blocks.cell_pair[here], before[3][here], after[3][here]
    rare = left + right < _LEAST
    stat, cells = np.zeros(n.size), np.zeros(n.size)
    _add(stat, cells, pair[~rare], left[~rare], right[~rare], n, m)
    rest = [
        np.bincount(pair[rare], x[rare], minlength=n.size).astype(np.float64) for x in (left, right)
    ]
    some = np.flatnonzero(rest[0] + rest[1])
    _add(stat, cells, some, rest[0][some], rest[1][some], n, m)
    freedom = np.maximum(cells - 1, 0)
    stat *= np.where(freedom > 0, (n + m - 1) / np.maximum(n + m, 1), 0.0)
    if not freedom.sum():
        return 1.0, -1
    return float(chi2.sf(stat.sum(), freedom.sum())), int(np.argmax(stat - freedom))


def _add(
    stat: Reals, cells: Reals, pair: NDArray[np.int64], left: Reals,
    right: Reals, n: Reals, m: Reals,
) -> None:  # fmt: skip
    """Add the chi-square terms of two halves, cell by cell, to those of their pairs."""
    both = np.maximum(left + right, 1)
    terms = (left * m[pair] - right * n[pair]) ** 2 / (n[pair] * m[pair] * both)
    stat += np.bincount(pair, terms, minlength=stat.size)
    cells += np.bincount(pair, left + right > 0, minlength=stat.size)
