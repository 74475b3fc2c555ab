"""Tests for drift in a log: half-window tests, change points, estimates of variation budgets.

*Half-window tests.* A window of 2h steps is slid over the log. The outcomes of every pair that was
played in both halves are compared; the statistics are summed over pairs and give one p-value for
rewards and one for transitions. In a stationary environment the outcomes of a pair are exchangeable
over time, and both statistics are scaled to have the mean of their chi-square law under exchange.
All p-values, of all places and of windows of three widths, are corrected together by Holm's rule.

*Budgets.* Estimates of neighbouring blocks of time are compared as the variation budgets compare
models of neighbouring times: the largest difference over pairs, summed over time. Estimates differ
even if nothing changes, so the same sum is made of many stationary logs with the same visits: the
null.

*Change points.* Of all ways to cut at the ends of blocks the one is chosen under which the outcomes
are most likely. Within a segment every pair has one row and one mean reward, which are not known:
the likelihood is averaged over a prior around the pair's mean in the whole log. So a segment pays
for each number that describes it, and few visits prove little. Priors worth 1, 10 and 50 visits are
tried: changes may be large and rare, or small and many. A cut pays for its place, and the part of a
reward that the next state explains is not counted a second time. A drift without jumps comes out as
steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import chi2

from windage.logs.counts import BlockCounts, StationaryNull
from windage.rng import stream
from windage.study.stats import holm

__all__ = [
    "ALPHA",
    "LEAST_STEPS",
    "Drift",
    "Estimate",
    "HalfTests",
    "Segmentation",
    "budgets",
    "finest",
    "half_tests",
    "segment",
]

Reals = NDArray[np.float64]

_SHORTEST = 64  # a segment is at least this fraction of the log
_WORK = 1 << 20  # numbers looked at, all segments together
_NULLS = 19  # one stationary log in twenty is cut
_WORTH = (1.0, 10.0, 50.0)  # visits
_SMALLEST = 1e-4  # variance of a reward in [0, 1]: constant rewards must not explain everything


class Segmentation(NamedTuple):
    """Where the log is cut: the first step of each segment but the first, from 1 on."""

    cuts: list[int]
    gain: float
    """How much better this explains the log than one segment does, in natural logarithms."""


def segment(blocks: BlockCounts, seed: int = 0) -> Segmentation:
    """Return the best way to cut the log into segments, none if nothing needs a cut.

    Some way to cut always explains a log a little better. Cuts are kept only if they do so by more
    than in each of 19 stationary logs drawn with the seed. Gains under each prior are compared in
    standard deviations of all 20 logs, and the log's largest with theirs: small and many changes
    gain most under another prior than large and rare ones, where chance gains another amount.
    """
    count, width = blocks.count, blocks.cell_pair.size + blocks.visits.shape[1]
    while count > 1 and count * count * width > _WORK:
        count //= 2
    coarse = blocks.merged(count)
    own, null = _best(coarse), StationaryNull(coarse)
    drawn = [_best(null.drawn(stream(seed, "logs.cuts", k))) for k in range(_NULLS)]
    gains = np.array([[best.gain for best in one] for one in (own, *drawn)])
    apart = (gains - gains.mean(axis=0)) / np.maximum(gains.std(axis=0), 1e-12)
    if apart[0].max() <= apart[1:].max():
        return Segmentation([], 0.0)
    return own[int(np.argmax(apart[0]))]


def _best(blocks: BlockCounts) -> list[Segmentation]:
    """Return the best way to cut under each prior."""
    variance = blocks.variances(_SMALLEST)
    found = []
    for worth in _WORTH:
        costs = _costs(blocks, variance, worth)
        cost, cuts = _cut(blocks, costs)
        found.append(Segmentation(cuts, float(costs[0, blocks.count] - cost)))
    return found


def _cut(blocks: BlockCounts, costs: Reals) -> tuple[float, list[int]]:
    """Return the cheapest way to cut and what it costs, by dynamic programming."""
    count = blocks.count
    least = max(1, count // _SHORTEST)
    best = np.full(count + 1, np.inf)
    came = np.zeros(count + 1, dtype=np.int64)
    best[0], entry = 0.0, math.log(max(count // least, 2))
    for end in range(least, count + 1):
        begins = np.arange(end - least + 1)
        options = best[begins] + costs[begins, end] + entry * (begins > 0)
        came[end] = int(np.argmin(options))
        best[end] = options[came[end]]
    cuts, end = [], count
    while end > 0:
        end = int(came[end])
        if end:
            cuts.append(int(blocks.ends[end - 1]) + 1)
    return float(best[count]), cuts[::-1]


def _costs(blocks: BlockCounts, variance: Reals, worth: float) -> Reals:
    """Return minus the log-likelihood of each segment: `costs[start, end]` in blocks.

    A row has a Dirichlet prior around the row of the whole log, a mean reward a normal one around
    the mean of the whole log, both worth so many visits.
    """
    total, count, pair = blocks.running(), blocks.count, blocks.cell_pair
    left = 1.0 - blocks.explained
    visited = np.maximum(total.visits[-1], 1)
    prior = worth * np.maximum(total.moves[-1] / visited[pair], 1e-12)
    mean = total.sums[-1] / visited
    costs = np.full((count, count + 1), np.inf)
    for start in range(count):
        visits, sums, squares, moves = (table[start + 1 :] - table[start] for table in total.tables)
        rows = (gammaln(moves + prior) - gammaln(prior)).sum(axis=1)
        rows -= (gammaln(visits + worth) - gammaln(worth)).sum(axis=1)
        n = np.maximum(visits, 1)
        apart = visits * worth / (visits + worth) * (sums / n - mean) ** 2
        spread = (squares - sums**2 / n + apart) / variance
        rewards = (left * (np.log1p(visits / worth) + spread)).sum(axis=1)
        costs[start, start + 1 :] = 0.5 * rewards - rows
    return costs


ALPHA = 0.05
"""The probability of any false alarm in a log, at most."""

_SHARES = (4, 8, 16)  # half windows are this fraction of the log
_STEPS = 4  # places a half window
_LEAST = 5  # visits of a pair in either half, and counts of a next state
LEAST_STEPS = _SHARES[0] * _LEAST
"""With fewer, in some halves no pair can be met often enough, however few pairs there are."""

_LEAST_BOTH = 30  # visits of a pair in both blocks: the largest difference is the noisiest

_KINDS = ("reward", "transition")


class Drift(NamedTuple):
    """An interval of time in which tests find a change."""

    kind: str
    step: int
    """The last step before the change, as the narrowest windows that find it see it best."""
    first: int
    last: int
    p_value: float
    """The smallest of the interval, corrected by Holm's rule."""
    pair: int
    """The pair with the largest part in it."""


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
        """Return the intervals in which something changed, in the order of time.

        Significant windows whose middles are closer than a half belong together.
        """
        drifts = []
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
                drifts.append(Drift(name, step, first, last, p_value, int(self.pair[best])))
        return sorted(drifts, key=lambda drift: drift.step)


def half_tests(blocks: BlockCounts) -> HalfTests:
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
            for kind, (p_value, pair) in (
                (0, _rewards(before, after)),
                (0, _mean_score(before[:3], after[:3])),
                (1, _moves(blocks, before, after)),
                (1, _mean_score(*(_scores(blocks, side) for side in (before, after)))),
            ):
                rows.append((kind, block, half, p_value, pair))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    kinds, places, halves, pairs = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 2, 4))
    p_values = np.array(columns[3], dtype=np.float64)
    return HalfTests(kinds, places, halves, p_values, holm(p_values), pairs)


def _rewards(before: list[Reals], after: list[Reals]) -> tuple[float, int]:
    """Return the p-value of a change of mean rewards, and the pair with the largest part in it."""
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


def _moves(blocks: BlockCounts, before: list[Reals], after: list[Reals]) -> tuple[float, int]:
    """Return the p-value of a change of transitions, and the pair with the largest part in it."""
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


def _scores(blocks: BlockCounts, side: list[Reals]) -> list[Reals]:
    """Return visits of the pairs, and sums and squares of the numbers of their next states."""
    number = blocks.cell_next / max(int(blocks.cell_next.max()), 1)
    return [side[0], *(blocks.per_pair(side[3] * number**k) for k in (1, 2))]


def _mean_score(before: Sequence[Reals], after: Sequence[Reals]) -> tuple[float, int]:
    """Return the p-value of a common shift of all pairs, and the pair with the largest part in it.

    The mean-score test of Cochran, Mantel and Haenszel: a pair counts from two visits on.
    """
    n, m = before[0], after[0]
    if min(n.sum(), m.sum()) < _LEAST:
        return 1.0, -1
    total = np.maximum(n + m, 1)
    spread = before[2] + after[2] - (before[1] + after[1]) ** 2 / total
    variance = n * m / total * np.maximum(spread, 0.0) / np.maximum(total - 1, 1)
    if variance.sum() <= 1e-12:
        return 1.0, -1
    shift = (after[1] * n - before[1] * m) / total
    pair = int(np.argmax(shift * np.sign(shift.sum())))
    return float(chi2.sf(shift.sum() ** 2 / variance.sum(), 1)), pair


def _add(
    stat: Reals, cells: Reals, pair: NDArray[np.int64], left: Reals,
    right: Reals, n: Reals, m: Reals,
) -> None:  # fmt: skip
    """Add the chi-square terms of two halves, cell by cell, to those of their pairs."""
    both = np.maximum(left + right, 1)
    terms = (left * m[pair] - right * n[pair]) ** 2 / (n[pair] * m[pair] * both)
    stat += np.bincount(pair, terms, minlength=stat.size)
    cells += np.bincount(pair, left + right > 0, minlength=stat.size)


class Estimate(NamedTuple):
    """One budget, and its null."""

    value: float
    null: Reals
    """The same sum in stationary logs, rising."""
    blocks: int
    """In how many blocks of time it was made."""
    covered: float
    """The share of all steps in pairs that are met often enough to be compared."""

    @property
    def null_mean(self) -> float:
        """The mean of the null."""
        return float(self.null.mean())

    @property
    def null_high(self) -> float:
        """The 95 % quantile of the null."""
        return float(np.quantile(self.null, 0.95))

    @property
    def p_value(self) -> float:
        """The share of stationary logs that show as much, this one counted among them."""
        return float((1 + (self.null >= self.value).sum()) / (1 + self.null.size))

    @property
    def beyond_noise(self) -> float:
        """The value less the mean of the null, at least 0."""
        return max(0.0, self.value - self.null_mean)


def finest(blocks: BlockCounts, wanted: int) -> int:
    """Return the largest number of blocks, up to `wanted`, in which half of all steps count."""
    count = min(wanted, blocks.count)
    while count > 2 and _covered(blocks.merged(count)) < 0.5:
        count //= 2
    return count


def _covered(blocks: BlockCounts) -> float:
    """Return the share of steps in pairs that are met often enough in two neighbouring blocks."""
    often = blocks.visits >= _LEAST_BOTH
    used = np.zeros_like(often)
    used[1:] |= often[1:] & often[:-1]
    used[:-1] |= often[1:] & often[:-1]
    return float(blocks.visits[used].sum() / max(blocks.visits.sum(), 1))


def budgets(blocks: BlockCounts, seed: int, draws: int) -> tuple[Estimate, Estimate]:
    """Return the estimates of B_r and B_p, in blocks as given."""
    both = (blocks.visits[1:] >= _LEAST_BOTH) & (blocks.visits[:-1] >= _LEAST_BOTH)
    observed, stationary = _sums(blocks, both), StationaryNull(blocks)
    null = np.empty((2, draws))
    for k in range(draws):
        null[:, k] = _sums(stationary.drawn(stream(seed, "logs.null", k)), both)
    null.sort(axis=1)
    facts = blocks.count, _covered(blocks)
    return Estimate(observed[0], null[0], *facts), Estimate(observed[1], null[1], *facts)


def _sums(blocks: BlockCounts, both: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the two sums over time of the largest difference over pairs."""
    visits = np.maximum(blocks.visits, 1)
    rewards = np.abs(np.diff(blocks.sums / visits, axis=0))
    moves = np.diff(blocks.moves / visits[:, blocks.cell_pair], axis=0)
    rows = blocks.per_pair(np.abs(moves))
    largest = (np.where(both, table, 0.0).max(axis=1, initial=0.0) for table in (rewards, rows))
    r, p = (float(each.sum()) for each in largest)
    return r, p
