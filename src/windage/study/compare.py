"""Comparison of the agents of one study, seed by seed.

One rule for all tests, wherever they are shown: in each environment at each horizon all pairs of
agents that were not given the model are tested, and Holm's rule corrects for all of them. The
leader is chosen by the same data, so its own comparisons alone would be too few; and a result in
one environment does not depend on how many others were run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.errors import InputError
from windage.study import stats
from windage.study.stats import Better, Interval, Paired
from windage.validation import as_choice

__all__ = [
    "RULE",
    "AgentComparison",
    "AgentSummary",
    "better",
    "comparisons",
    "corrected",
    "informed",
    "measure",
    "summaries",
]

RULE = (
    "sign-flip tests of all pairs of agents that were not given the model, corrected by Holm's "
    "rule for all pairs in the same environment at the same horizon"
)
"""How p-values of a study are made, in the words that pages and papers use."""

MEASURES = ("regret", "observed_regret", "share", "total_reward", "total_mean_reward")
"""Columns that can be compared. Of regret less is better, of the others more."""

_LESS_IS_BETTER = ("regret", "observed_regret")

Scores = Mapping[int, float]
"""The results of one agent, by seed."""


@dataclass(frozen=True)
class AgentSummary:
    """The mean of one agent in one environment, over its seeds."""

    environment: str
    horizon: int
    agent: str
    n: int
    mean: Interval


@dataclass(frozen=True)
class AgentComparison:
    """Two agents in one environment, on the seeds that both have.

    Attributes
    ----------
    paired
        Mean of (first - second) with its interval, the p-value of no difference, and on how many
        seeds the first one is better: of regret, has less.
    adjusted
        The p-value corrected for all pairs of agents in the environment, by Holm's rule.
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


def summaries(
    results: pl.DataFrame, column: str | None = None, level: float = 0.95
) -> list[AgentSummary]:
    """Return the mean of every agent in every environment, with its interval over seeds."""
    by = measure(results, column)
    return [
        AgentSummary(environment, horizon, agent, len(scores), stats.mean(_in_order(scores), level))
        for (environment, horizon), table in _tables(results, by).items()
        for agent, scores in table.items()
    ]


def comparisons(
    results: pl.DataFrame,
    column: str | None = None,
    *,
    baseline: str | None = None,
    level: float = 0.95,
) -> list[AgentComparison]:
    """Compare agents in every environment: all pairs, or each with a baseline.

    Agents are compared on the seeds that both have; those with fewer than two are left out, and so
    are agents that were given the model. A baseline changes which comparisons are returned, and no
    number in them.
    """
    by = measure(results, column)
    told = dict(results.select("agent", "told").iter_rows())
    judged = [agent for agent in told if not informed(told[agent])]
    if baseline is not None:
        as_choice(baseline, "baseline", judged)
    compared = []
    for (environment, horizon), table in _tables(results, by).items():
        scores = {agent: table[agent] for agent in judged if agent in table}
        for pair, adjusted in corrected(scores).items():
            if baseline is None or baseline in pair:
                first, second = reversed(pair) if pair[0] == baseline else pair
                both = _shared(scores[first], scores[second])
                paired = stats.paired(*both, level, better=better(by))
                compared.append(
                    AgentComparison(environment, horizon, first, second, paired, adjusted)
                )
    return compared


def better(column: str) -> Better:
    """Return whether more of a measure is better, or less.

    >>> better("regret"), better("share")
    ('less', 'more')
    """
    return "less" if column in _LESS_IS_BETTER else "more"


def informed(told: Iterable[str]) -> bool:
    """Return whether an agent was given the model: a reference, which is left out of all tests."""
    return "the model" in told


def corrected(scores: Mapping[str, Scores]) -> dict[tuple[str, str], float]:
    """Return the p-values of all pairs of agents in one environment, corrected by Holm's rule.

    Pairs are in the order of the agents. Those that share fewer than two seeds are not tested.

    >>> river = {"a": {0: 1.0, 1: 2.0}, "b": {1: 4.0, 0: 2.0}, "c": {0: 5.0}}
    >>> corrected(river)
    {('a', 'b'): 0.5}
    """
    p_values = {}
    for first, second in itertools.combinations(scores, 2):
        x, y = _shared(scores[first], scores[second])
        if x.size > 1:
            p_values[first, second] = stats.sign_flip_test(x - y)
    return dict(zip(p_values, stats.holm(list(p_values.values())).tolist(), strict=True))


def _in_order(scores: Scores) -> list[float]:
    """Return scores in the order of their seeds, on which the draws of the bootstrap depend."""
    return [scores[seed] for seed in sorted(scores)]


def _shared(first: Scores, second: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores of two agents on the seeds that both have."""
    seeds = sorted(first.keys() & second.keys())
    return np.array([first[seed] for seed in seeds]), np.array([second[seed] for seed in seeds])


def _tables(results: pl.DataFrame, by: str) -> dict[tuple[str, int], dict[str, dict[int, float]]]:
    """Return the scores as environment and horizon -> agent -> seed -> score, in their order."""
    if results.height and results[by].null_count():
        unknown = results.filter(pl.col(by).is_null())["environment"][0]
        raise InputError(
            f"is not known in {unknown}",
            field=by,
            fix='compare by "total_reward", or give the environment an oracle',
        )
    tables: dict[tuple[str, int], dict[str, dict[int, float]]] = {}
    columns: list[Any] = ["environment", "horizon", "agent", "seed", by]
    for environment, horizon, agent, seed, score in results.select(columns).iter_rows():
        scores = tables.setdefault((environment, horizon), {}).setdefault(agent, {})
        if seed in scores:
            raise InputError(
                f"{agent} on {environment}, T = {horizon:,}, has two runs on seed {seed}",
                field="results",
                fix="compare the runs of one study; `diff` compares two",
            )
        scores[seed] = score
    return tables
