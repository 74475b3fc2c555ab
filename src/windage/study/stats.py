"""Statistics of a study: seeds are the unit, and every estimate comes with an interval.

Runs on one seed meet the same noise, so two agents are compared seed by seed. Intervals are
percentile intervals of the bootstrap over seeds. A seed names the same noise in all environments,
so it is drawn for all of them together; environments with seeds of their own are strata, in each of
which seeds are drawn anew. Tests flip the signs of paired differences, exactly up to thirty seeds;
many tests are corrected by Holm's step-down rule. Nothing here depends on a generator that somebody
else uses: the same numbers in the same order give the same interval, always. Tables of a study pass
them by seed, whatever the order in which the study names its seeds.

The aggregates are those of Agarwal et al. (2021), *Deep Reinforcement Learning at the Edge of the
Statistical Precipice*: interquartile mean, probability of improvement, performance profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.study import resampling
from windage.study.pairs import Paired, holm, paired, sign_flip_test
from windage.study.resampling import Interval, mean
from windage.validation import as_choice, shown

__all__ = [
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
    "sign_flip_test",
    "slope",
]

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Profile:
    """How large a share of runs is above each threshold, with a band at every threshold."""

    thresholds: Reals
    share: Reals
    low: Reals
    high: Reals
    level: float = 0.95


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
    x = resampling.table(values, "time")
    draws = x.T @ resampling.counts(x.shape[0]).T / x.shape[0]  # [time, resample]
    low, high = np.quantile(draws, resampling.tails(level), axis=1)
    return x.mean(axis=0), low, high


def ratio(first: ArrayLike, second: ArrayLike, level: float = 0.95) -> Interval:
    """Return the ratio of two means on the same seeds, which are drawn together.

    >>> print(ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]))
    2 (2 to 2)
    """
    x, y = resampling.values(first, "first"), resampling.values(second, "second")
    resampling.same_length(x, y)
    picks = resampling.picks(x.size)
    below = y[picks].mean(axis=1)
    if not below.min() > 0 or not y.mean() > 0:
        raise InputError(
            "the mean of the second is not clearly positive",
            field="second",
            fix="compare differences instead of ratios, or run more seeds",
        )
    return resampling.interval(float(x.mean() / y.mean()), x[picks].mean(axis=1) / below, level)


def iqm(values: ArrayLike) -> float:
    """Return the interquartile mean: a quarter, rounded down, is left out at either end.

    >>> iqm([1.0, 2.0, 3.0, 100.0])
    2.5
    """
    return float(_iqm(resampling.values(values, "values")))


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
    strata = resampling.strata(scores, "scores", same_seeds=same_seeds)
    pooled = _STATISTICS[as_choice(statistic, "statistic", _STATISTICS)]
    draws = np.concatenate([x[resampling.picks(x.size, k)] for x, k in strata], axis=1)
    estimate = float(pooled(np.concatenate([x for x, _ in strata])))
    return resampling.interval(estimate, pooled(draws), level)


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
    strata = resampling.strata(first, "first", same_seeds=same_seeds)
    if first.keys() != second.keys():
        raise InputError(
            f"{sorted(first)} and {sorted(second)} are not the same environments",
            field="second",
            fix="pass the same environments for both",
        )
    estimates, draws = [], []
    for (x, k), name in zip(strata, first, strict=True):
        y = resampling.values(second[name], f"second[{name!r}]")
        resampling.same_length(x, y)
        wins = (x[:, None] > y) + 0.5 * (x[:, None] == y)
        # a seed drawn c times is counted c times on both sides: the mean is a quadratic form
        counts = resampling.counts(x.size, k) / x.size
        estimates.append(float(wins.mean()))
        draws.append(np.einsum("bi,ij,bj->b", counts, wins, counts, optimize=True))
    return resampling.interval(float(np.mean(estimates)), np.mean(draws, axis=0), level)


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
    tau = resampling.reals(thresholds)
    if tau.ndim != 1 or np.isnan(tau).any():
        raise InputError(
            f"{shown(thresholds)} is not a list of numbers",
            field="thresholds",
            fix="pass numbers; nothing is above or below NaN",
        )
    strata = resampling.strata(scores, "scores", same_seeds=same_seeds)
    above = [(x[:, None] > tau).astype(np.float64) for x, _ in strata]
    share = np.mean([a.mean(axis=0) for a in above], axis=0)
    draws = [
        resampling.counts(x.size, k) @ a / x.size for a, (x, k) in zip(above, strata, strict=True)
    ]
    low, high = np.quantile(np.mean(draws, axis=0), resampling.tails(level), axis=0)
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
    T = resampling.values(horizons, "horizons")
    y = resampling.table(values, "horizon", T.size)
    if np.unique(T).size < 2 or T.min() <= 0:
        raise InputError(
            f"{shown(horizons)} is no range of T", field="horizons", fix="pass two or more"
        )
    x = np.log(T) - np.log(T).mean()
    weights = x / (x @ x)
    means = resampling.counts(y.shape[0]) @ y / y.shape[0]
    for k in range(T.size):
        if not y[:, k].mean() > 0 or not means[:, k].min() > 0:
            raise InputError(
                f"the mean at T = {T[k]:,.0f} is not clearly positive and has no logarithm",
                field="values",
                fix="leave out this horizon, or run more seeds",
            )
    return resampling.interval(
        float(np.log(y.mean(axis=0)) @ weights), np.log(means) @ weights, level
    )


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
