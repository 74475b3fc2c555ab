"""Statistics of a study: seeds are the unit, and every estimate comes with an interval.

Runs on one seed meet the same noise, so two agents are compared seed by seed. Intervals are
percentile intervals of the bootstrap over seeds. A seed names the same noise in all environments,
so it is drawn for all of them together; environments with seeds of their own are strata, in each of
which seeds are drawn anew. Tests flip the signs of paired differences, exactly up to thirty seeds;
many tests are corrected by Holm's step-down rule. Which seeds a draw holds depends on how
many there are and on nothing else: the same numbers in the same order give the same interval,
always. Tables of a study pass them by seed, whatever the order in which the study names its seeds.

The aggregates are those of Agarwal et al. (2021), *Deep Reinforcement Learning at the Edge of the
Statistical Precipice*: interquartile mean, probability of improvement, performance profiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.rng import stream
from windage.validation import as_choice, as_real, shown

__all__ = [
    "RESAMPLES",
    "Interval",
    "Paired",
    "Profile",
    "aggregate",
    "band",
    "holm",
    "improvement",
    "iqm",
    "mean",
    "paired",
    "profile",
    "ratio",
    "resampled_seeds",
    "seed_counts",
    "sign_flip_test",
    "slope",
]

Reals = NDArray[np.float64]

Better = Literal["more", "less"]

RESAMPLES = 10_000
"""How often seeds are drawn anew for an interval."""

_EXACT = 30  # seeds: up to here all 2^n signs are counted
_DRAWS = 99_999  # signs drawn for more seeds than that
_SAME = 1e-12  # sums of differences that are closer than this, relatively, are equal


@dataclass(frozen=True)
class Interval:
    """An estimate, and where the truth lies with this confidence, or less if seeds are few.

    The shortfall of percentile intervals is tabled in `docs/reference/studies.md`.

    >>> print(Interval(0.5, 0.25, 0.75))
    0.5 (0.25 to 0.75)
    """

    estimate: float
    low: float
    high: float
    level: float = 0.95

    def __str__(self) -> str:
        return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Paired:
    """Two agents compared seed by seed.

    Attributes
    ----------
    n
        How many seeds both have.
    difference
        Mean of (first - second), with its interval.
    wins, ties
        On how many seeds the first one is better, and on how many both are equal.
    better
        Which values are better: "more", or "less" as of regret.
    p_value
        Of the hypothesis that signs of the differences are a coin's: no difference at all.
    """

    n: int
    difference: Interval
    wins: int
    ties: int
    p_value: float
    better: Better = "more"


@dataclass(frozen=True)
class Profile:
    """How large a share of runs is above each threshold, with a band at every threshold."""

    thresholds: Reals
    share: Reals
    low: Reals
    high: Reals
    level: float = 0.95


def mean(given: ArrayLike, level: float = 0.95) -> Interval:
    """Return the mean over seeds.

    >>> print(mean([1.0, 2.0, 3.0, 4.0]))
    2.5 (1.5 to 3.5)
    """
    x = _values(given, "values")
    return _interval(float(x.mean()), x[resampled_seeds(x.size)].mean(axis=1), level)


def band(values: ArrayLike, level: float = 0.95) -> tuple[Reals, Reals, Reals]:
    """Return the mean over seeds at every time of a curve, and the ends of its intervals.

    Parameters
    ----------
    values
        values[i, k]: the curve of seed i at time k. Seeds are drawn for all times together.
    level
        Of the interval at each time.

    Examples
    --------
    >>> [part.tolist() for part in band([[1.0, 5.0], [3.0, 5.0]])]
    [[2.0, 5.0], [1.0, 5.0], [3.0, 5.0]]
    """
    x = _table(values, "time")
    draws = x.T @ seed_counts(x.shape[0]).T / x.shape[0]  # [time, resample]
    low, high = np.quantile(draws, _tails(level), axis=1)
    return x.mean(axis=0), low, high


def ratio(first: ArrayLike, second: ArrayLike, level: float = 0.95) -> Interval:
    """Return the ratio of two means on the same seeds, which are drawn together.

    >>> print(ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]))
    2 (2 to 2)
    """
    x, y = _values(first, "first"), _values(second, "second")
    _require_same_length(x, y)
    picks = resampled_seeds(x.size)
    below = y[picks].mean(axis=1)
    if not below.min() > 0 or not y.mean() > 0:
        raise InputError(
            "the mean of the second is not clearly positive",
            field="second",
            fix="compare differences instead of ratios, or run more seeds",
        )
    return _interval(float(x.mean() / y.mean()), x[picks].mean(axis=1) / below, level)


def iqm(values: ArrayLike) -> float:
    """Return the interquartile mean: a quarter, rounded down, is left out at either end.

    >>> iqm([1.0, 2.0, 3.0, 100.0])
    2.5
    """
    return float(_iqm(_values(values, "values")))


def aggregate(
    scores: Mapping[str, ArrayLike],
    statistic: str = "iqm",
    level: float = 0.95,
    *,
    same_seeds: bool = True,
) -> Interval:
    """Return one number for an agent over several environments.

    Parameters
    ----------
    scores
        The scores of each environment, one a seed; on one scale, such as the share of the oracle's
        reward.
    statistic
        "iqm", "mean" or "median", of the scores of all environments together.
    level
        Of the interval.
    same_seeds
        Whether all environments have the same seeds in the same order, as those of a study have:
        then a seed is drawn for all of them. If not, by the stratified bootstrap.

    Examples
    --------
    >>> aggregate({"river": [0.5, 0.6], "queue": [0.9, 0.9]}, "mean").estimate
    0.725
    """
    strata = _strata(scores, "scores", same_seeds=same_seeds)
    pooled = _STATISTICS[as_choice(statistic, "statistic", _STATISTICS)]
    draws = np.concatenate([x[resampled_seeds(x.size, k)] for x, k in strata], axis=1)
    estimate = float(pooled(np.concatenate([x for x, _ in strata])))
    return _interval(estimate, pooled(draws), level)


def improvement(
    first: Mapping[str, ArrayLike],
    second: Mapping[str, ArrayLike],
    level: float = 0.95,
    *,
    same_seeds: bool = True,
) -> Interval:
    """Return how likely a run of the first agent is to score above one of the second.

    Any run of one is compared with any of the other in the same environment, ties count half, and
    environments count alike. Seeds are drawn together for both agents, and for all environments
    unless these have seeds of their own.

    >>> improvement({"river": [1.0, 2.0]}, {"river": [1.0, 1.0]}).estimate
    0.75
    """
    strata = _strata(first, "first", same_seeds=same_seeds)
    if first.keys() != second.keys():
        raise InputError(
            f"{sorted(first)} and {sorted(second)} are not the same environments",
            field="second",
            fix="pass the same environments for both",
        )
    estimates, draws = [], []
    for (x, k), name in zip(strata, first, strict=True):
        y = _values(second[name], f"second[{name!r}]")
        _require_same_length(x, y)
        wins = (x[:, None] > y) + 0.5 * (x[:, None] == y)
        # a seed drawn c times is counted c times on both sides: the mean is a quadratic form
        counts = seed_counts(x.size, k) / x.size
        estimates.append(float(wins.mean()))
        draws.append(np.einsum("bi,ij,bj->b", counts, wins, counts, optimize=True))
    return _interval(float(np.mean(estimates)), np.mean(draws, axis=0), level)


def profile(
    scores: Mapping[str, ArrayLike],
    thresholds: ArrayLike,
    level: float = 0.95,
    *,
    same_seeds: bool = True,
) -> Profile:
    """Return the share of runs that score above each threshold, environments counting alike.

    Seeds are drawn for all environments together, unless these have seeds of their own.

    >>> profile({"river": [0.2, 0.8]}, [0.0, 0.5, 1.0]).share.tolist()
    [1.0, 0.5, 0.0]
    """
    tau = _reals(thresholds)
    if tau.ndim != 1 or np.isnan(tau).any():
        raise InputError(
            f"{shown(thresholds)} is not a list of numbers",
            field="thresholds",
            fix="pass numbers; nothing is above or below NaN",
        )
    strata = _strata(scores, "scores", same_seeds=same_seeds)
    above = [(x[:, None] > tau).astype(np.float64) for x, _ in strata]
    share = np.mean([a.mean(axis=0) for a in above], axis=0)
    draws = [seed_counts(x.size, k) @ a / x.size for a, (x, k) in zip(above, strata, strict=True)]
    low, high = np.quantile(np.mean(draws, axis=0), _tails(level), axis=0)
    return Profile(tau, share, low, high, level)


def slope(horizons: ArrayLike, values: ArrayLike, level: float = 0.95) -> Interval:
    """Return the slope of log mean regret against log T, by least squares.

    Parameters
    ----------
    horizons
        The horizons T, at least two.
    values
        values[i, k]: the regret of seed i at horizon k. Seeds are drawn for all horizons together.
    level
        Of the interval.

    Raises
    ------
    InputError
        A mean is not positive, or not in every draw of seeds: it has no logarithm.

    Examples
    --------
    >>> T = [100, 1000, 10_000]
    >>> print(slope(T, [[10 * t**0.75 for t in T]] * 3))
    0.75 (0.75 to 0.75)
    """
    T = _values(horizons, "horizons")
    y = _table(values, "horizon", T.size)
    if np.unique(T).size < 2 or T.min() <= 0:
        raise InputError(
            f"{shown(horizons)} is no range of T", field="horizons", fix="pass two or more"
        )
    x = np.log(T) - np.log(T).mean()
    weights = x / (x @ x)
    means = seed_counts(y.shape[0]) @ y / y.shape[0]
    for k in range(T.size):
        if not y[:, k].mean() > 0 or not means[:, k].min() > 0:
            raise InputError(
                f"the mean at T = {T[k]:,.0f} is not clearly positive and has no logarithm",
                field="values",
                fix="leave out this horizon, or run more seeds",
            )
    return _interval(float(np.log(y.mean(axis=0)) @ weights), np.log(means) @ weights, level)


def paired(
    first: ArrayLike, second: ArrayLike, level: float = 0.95, *, better: Better = "more"
) -> Paired:
    """Compare two agents on the same seeds, given in the same order.

    Of regret less is better: pass better="less", and wins are counted that way.

    >>> found = paired([3.0, 4.0, 6.0, 5.0], [1.0, 2.0, 3.0, 5.0])
    >>> print(found.difference, found.wins, found.ties, found.p_value)
    1.75 (0.5 to 2.75) 3 1 0.25
    """
    x, y = _values(first, "first"), _values(second, "second")
    _require_same_length(x, y)
    d = x - y
    sign = 1 if as_choice(better, "better", ("more", "less")) == "more" else -1
    return Paired(
        n=d.size,
        difference=mean(d, level),
        wins=int((sign * d > 0).sum()),
        ties=int((d == 0).sum()),
        p_value=sign_flip_test(d),
        better=better,
    )


def sign_flip_test(differences: ArrayLike) -> float:
    """Return the two-sided p-value of paired differences under random signs.

    All 2^n signs are counted up to thirty seeds; beyond, a fixed sample of them.

    >>> sign_flip_test([1.0, 2.0, 3.0])
    0.25
    """
    d = _values(differences, "differences")
    d = d[d != 0.0]  # a zero is a zero with either sign
    if d.size == 0:
        return 1.0
    limit = abs(float(d.sum())) - _SAME * float(np.abs(d).sum())
    if d.size <= _EXACT:
        half = d.size // 2
        left, right = _all_sums(d[:half]), np.sort(_all_sums(d[half:]))
        above = right.size - np.searchsorted(right, limit - left, side="left")
        below = np.searchsorted(right, -limit - left, side="right")
        both = above + below if limit > 0 else np.full(left.size, right.size)
        return float(min(both.sum() / 2.0**d.size, 1.0))
    rng = stream(d.size, "study.signs")
    hits = 0
    for start in range(0, _DRAWS, 10_000):
        signs = rng.integers(0, 2, size=(min(10_000, _DRAWS - start), d.size)) * 2 - 1
        hits += int((np.abs(signs @ d) >= limit).sum())
    return (hits + 1) / (_DRAWS + 1)


def holm(p_values: ArrayLike) -> Reals:
    """Return p-values corrected for how many there are, by Holm's step-down rule.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    p = _reals(p_values)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"{shown(p_values)} are no p-values", field="p_values", fix="pass a list")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


# --- drawing seeds -------------------------------------------------------------------------------


def resampled_seeds(n: int, stratum: int = 0) -> NDArray[np.int64]:
    """Return which seeds each resample draws: the same for the same n, so pairs stay pairs."""
    rng = stream(n, f"study.bootstrap/{stratum}")
    return rng.integers(0, n, size=(RESAMPLES, n))


def seed_counts(n: int, stratum: int = 0) -> Reals:
    """Return how often each resample draws each seed."""
    places = resampled_seeds(n, stratum) + n * np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=n * RESAMPLES).reshape(RESAMPLES, n).astype(float)


def _interval(estimate: float, draws: Reals, level: float) -> Interval:
    """Return the percentile interval of the draws of an estimate."""
    low, high = np.quantile(draws, _tails(level))
    return Interval(estimate, float(low), float(high), level)


def _tails(level: float) -> list[float]:
    """Return the quantiles at which an interval of this level ends."""
    tail = (1 - as_real(level, "level", low=0, high=1, open_low=True, open_high=True)) / 2
    return [tail, 1 - tail]


def _values(given: ArrayLike, field: str) -> Reals:
    """Return one finite number per seed."""
    x = _reals(given)
    if x.ndim != 1 or x.size == 0 or not np.isfinite(x).all():
        raise InputError(
            f"{shown(given)} is not a list of numbers, one a seed",
            field=field,
            fix="pass finite numbers; leave out seeds that have none",
        )
    return x


def _table(given: ArrayLike, what: str, columns: int | None = None) -> Reals:
    """Return one row per seed of finite numbers, one per time or horizon."""
    x = _reals(given)
    if (
        x.ndim != 2
        or x.size == 0
        or not np.isfinite(x).all()
        or x.shape[1] != (columns or x.shape[1])
    ):
        count = "one number" if columns is None else f"{columns} numbers, one"
        raise InputError(
            f"has the shape {x.shape}, or is not finite",
            field="values",
            fix=f"pass one row a seed, {count} a {what}",
        )
    return x


def _reals(given: ArrayLike) -> Reals:
    """Return numbers as an array; a NaN if they are none, which callers refuse."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full(1, math.nan)


def _require_same_length(x: Reals, y: Reals) -> None:
    """Refuse two sides that have not the same seeds."""
    if x.size != y.size:
        raise InputError(
            f"{x.size} seeds on one side and {y.size} on the other",
            field="second",
            fix="pass the seeds that both have, in the same order",
        )


def _strata(
    scores: Mapping[str, ArrayLike], field: str, *, same_seeds: bool
) -> list[tuple[Reals, int]]:
    """Return the scores of every environment, one a seed, and which draws of seeds are its own.

    Environments with the same seeds share their draws: a seed names the same noise in all of them,
    and runs that meet the same noise are not independent.
    """
    if not scores:
        raise InputError("there are no environments", field=field, fix="pass at least one")
    per_seed = [_values(given, f"{field}[{name!r}]") for name, given in scores.items()]
    if same_seeds and len({x.size for x in per_seed}) > 1:
        raise InputError(
            f"{', '.join(f'{x.size}' for x in per_seed)} seeds are not the same ones",
            field=field,
            fix="pass the seeds that all environments have, or same_seeds=False",
        )
    return [(x, 0 if same_seeds else k) for k, x in enumerate(per_seed)]


def _all_sums(d: Reals) -> Reals:
    """Return the sums of d with all 2^n signs."""
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _iqm(x: Reals) -> Reals:
    """Return the interquartile mean along the last axis."""
    n = x.shape[-1]
    cut = n // 4
    kept: Reals = np.sort(x, axis=-1)[..., cut : n - cut].mean(axis=-1)
    return kept


_STATISTICS: dict[str, Callable[[Reals], Reals]] = {
    "iqm": _iqm,
    "mean": lambda x: x.mean(axis=-1),
    "median": lambda x: np.median(x, axis=-1),
}
