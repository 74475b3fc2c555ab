"""Drawing seeds anew: the bootstrap that every interval of a study comes from.

Which seeds a draw holds depends on how many there are and on nothing else. So the same numbers in
the same order give the same interval, always, and two agents on the same seeds are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.rng import stream
from windage.validation import as_real, shown

__all__ = [
    "RESAMPLES",
    "Interval",
    "counts",
    "interval",
    "mean",
    "picks",
    "reals",
    "same_length",
    "strata",
    "table",
    "tails",
    "values",
]

Reals = NDArray[np.float64]

RESAMPLES = 10_000
"""How often seeds are drawn anew for an interval."""


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


def picks(n: int, stratum: int = 0) -> NDArray[np.int64]:
    """Return which seeds each resample draws: the same for the same n, so pairs stay pairs."""
    rng = stream(n, f"study.bootstrap/{stratum}")
    return rng.integers(0, n, size=(RESAMPLES, n))


def counts(n: int, stratum: int = 0) -> Reals:
    """Return how often each resample draws each seed."""
    places = picks(n, stratum) + n * np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=n * RESAMPLES).reshape(RESAMPLES, n).astype(float)


def interval(estimate: float, draws: Reals, level: float) -> Interval:
    """Return the percentile interval of the draws of an estimate."""
    low, high = np.quantile(draws, tails(level))
    return Interval(estimate, float(low), float(high), level)


def mean(given: ArrayLike, level: float = 0.95) -> Interval:
    """Return the mean over seeds.

    >>> print(mean([1.0, 2.0, 3.0, 4.0]))
    2.5 (1.5 to 3.5)
    """
    x = values(given, "values")
    return interval(float(x.mean()), x[picks(x.size)].mean(axis=1), level)


def tails(level: float) -> list[float]:
    """Return the quantiles at which an interval of this level ends."""
    tail = (1 - as_real(level, "level", low=0, high=1, open_low=True, open_high=True)) / 2
    return [tail, 1 - tail]


def values(given: ArrayLike, field: str) -> Reals:
    """Return one finite number a seed."""
    x = reals(given)
    if x.ndim != 1 or x.size == 0 or not np.isfinite(x).all():
        raise InputError(
            f"{shown(given)} is not a list of numbers, one a seed",
            field=field,
            fix="pass finite numbers; leave out seeds that have none",
        )
    return x


def table(given: ArrayLike, what: str, columns: int | None = None) -> Reals:
    """Return one row a seed of finite numbers, one a time or a horizon."""
    x = reals(given)
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


def reals(given: ArrayLike) -> Reals:
    """Return numbers as an array; a NaN for what are none, so that its owner refuses it."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full(1, math.nan)


def same_length(x: Reals, y: Reals) -> None:
    """Refuse two sides that have not the same seeds."""
    if x.size != y.size:
        raise InputError(
            f"{x.size} seeds on one side and {y.size} on the other",
            field="second",
            fix="pass the seeds that both have, in the same order",
        )


def strata(
    scores: Mapping[str, ArrayLike], field: str, *, same_seeds: bool
) -> list[tuple[Reals, int]]:
    """Return the scores of every environment, one a seed, and which draws of seeds are its own.

    Environments with the same seeds share their draws: what one seed names is the same noise in all
    of them, and runs that meet the same noise are not independent.
    """
    if not scores:
        raise InputError("there are no environments", field=field, fix="pass at least one")
    found = [values(given, f"{field}[{name!r}]") for name, given in scores.items()]
    if same_seeds and len({x.size for x in found}) > 1:
        raise InputError(
            f"{', '.join(f'{x.size}' for x in found)} seeds are not the same ones",
            field=field,
            fix="pass the seeds that all environments have, or same_seeds=False",
        )
    return [(x, 0 if same_seeds else k) for k, x in enumerate(found)]
