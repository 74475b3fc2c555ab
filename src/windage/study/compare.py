"""Agents of one study compared, seed by seed; and two studies, run by run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import polars as pl

from windage.errors import InputError
from windage.inputs import as_choice
from windage.study import stats
from windage.study.stats import Interval, Paired

__all__ = ["Cell", "Comparison", "comparisons", "measure", "summaries"]

MEASURES = ("regret", "observed_regret", "share", "total_reward", "total_mean_reward")
"""Columns that can be compared. Of regret less is better, of the others more."""


@dataclass(frozen=True)
class Cell:
    """What one agent got in one environment, over its seeds."""

    environment: str
    horizon: int
    agent: str
    n: int
    mean: Interval


@dataclass(frozen=True)
class Comparison:
    """Two agents in one environment, on the seeds that both have.

    Attributes
    ----------
    paired
        Mean of (first - second) with its interval, and the p-value of no difference.
    adjusted
        The p-value corrected for all comparisons made together, by Holm's rule.
    """

    environment: str
    horizon: int
    first: str
    second: str
    paired: Paired
    adjusted: float


def measure(results: pl.DataFrame, wanted: str | None = None) -> str:
    """Return the column to compare by: the regret where it is known, the reward where it is not."""
    if wanted is not None:
        return as_choice(wanted, "measure", MEASURES)
    known = results.height > 0 and results["regret"].null_count() == 0
    return "regret" if known else "total_reward"


def summaries(results: pl.DataFrame, column: str | None = None, level: float = 0.95) -> list[Cell]:
    """Return the mean of every agent in every environment, with its interval over seeds."""
    by = measure(results, column)
    return [
        Cell(environment, horizon, agent, len(scores), stats.mean(list(scores.values()), level))
        for (environment, horizon), table in _tables(results, by).items()
        for agent, scores in table.items()
    ]


def comparisons(
    results: pl.DataFrame,
    column: str | None = None,
    *,
    baseline: str | None = None,
    level: float = 0.95,
) -> list[Comparison]:
    """Compare agents in every environment: all pairs, or each with a baseline.

    Agents are compared on the seeds that both have; those with fewer than two are left out.
    """
    by = measure(results, column)
    if baseline is not None:
        as_choice(baseline, "baseline", results["agent"].unique(maintain_order=True).to_list())
    found: list[tuple[tuple[str, int], str, str, Paired]] = []
    for place, table in _tables(results, by).items():
        for first, second in itertools.combinations(table, 2):
            if baseline is not None and baseline not in (first, second):
                continue
            one, other = (second, first) if first == baseline else (first, second)
            pair = _paired(table[one], table[other], level)
            if pair is not None:
                found.append((place, one, other, pair))
    adjusted = stats.holm([pair.p_value for *_, pair in found]).tolist()
    return [
        Comparison(place[0], place[1], first, second, pair, p)
        for (place, first, second, pair), p in zip(found, adjusted, strict=True)
    ]


def _paired(one: dict[int, float], other: dict[int, float], level: float) -> Paired | None:
    seeds = [seed for seed in one if seed in other]
    if len(seeds) < 2:
        return None
    return stats.paired([one[seed] for seed in seeds], [other[seed] for seed in seeds], level)


def _tables(results: pl.DataFrame, by: str) -> dict[tuple[str, int], dict[str, dict[int, float]]]:
    """Return the scores as environment and horizon -> agent -> seed -> score, in their order."""
    if results.height and results[by].null_count():
        unknown = results.filter(pl.col(by).is_null())["environment"][0]
        raise InputError(
            f"is not known in {unknown}",
            field=by,
            fix='compare by "total_reward", or give the environment an oracle',
        )
    found: dict[tuple[str, int], dict[str, dict[int, float]]] = {}
    columns: list[Any] = ["environment", "horizon", "agent", "seed", by]
    for environment, horizon, agent, seed, score in results.select(columns).iter_rows():
        found.setdefault((environment, horizon), {}).setdefault(agent, {})[seed] = score
    return found
