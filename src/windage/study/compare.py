"""Comparison of the agents of one study, seed by seed.

One rule for all tests, wherever they are shown: in each environment at each horizon all pairs of
agents that were not given the model are tested, and Holm's rule corrects for all of them. The
leader is chosen by the same data, so its own comparisons alone would be too few. Where a study
planned which agents to compare, before there were results, those are tested, and corrected for, and
no others. A result in one environment does not depend on how many others were run.
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
from windage.validation import as_choice, shown

__all__ = [
    "RULE",
    "AgentComparison",
    "AgentSummary",
    "Plan",
    "as_plan",
    "better",
    "comparisons",
    "corrected",
    "informed",
    "measure",
    "summaries",
]

_FAMILY = "in the same environment at the same horizon"


@dataclass(frozen=True)
class Plan:
    """Which agents are compared: planned pairs, all with a baseline, or else all pairs.

    >>> Plan(baseline="c").pairs_of(["a", "b", "c"])
    [('a', 'c'), ('b', 'c')]
    """

    pairs: tuple[tuple[str, str], ...] = ()
    baseline: str = ""

    @classmethod
    def of(cls, study: Mapping[str, Any]) -> Plan:
        """Return the plan of a study file."""
        pairs = study.get("compare", ())
        return cls(tuple((first, second) for first, second in pairs), study.get("baseline", ""))

    def __bool__(self) -> bool:
        """Whether anything was planned."""
        return bool(self.pairs or self.baseline)

    @property
    def rule(self) -> str:
        """How p-values are made, in the words that pages and papers use."""
        if self.baseline:
            what = f"each agent with {self.baseline}, as the study plans"
        elif self.pairs:
            what = "the pairs of agents that the study plans to compare"
        else:
            what = "all pairs of agents that were not given the model"
        corrected = "all pairs" if not self else "these comparisons"
        return f"sign-flip tests of {what}, corrected by Holm's rule for {corrected} {_FAMILY}"

    def pairs_of(self, agents: Iterable[str]) -> list[tuple[str, str]]:
        """Return the pairs to be tested among these agents, none of which is given the model."""
        known = list(agents)
        if self.baseline:
            pairs = [(agent, self.baseline) for agent in known if agent != self.baseline]
        else:
            pairs = list(self.pairs or itertools.combinations(known, 2))
        return [pair for pair in pairs if {*pair} <= {*known}]


RULE = Plan().rule
"""The rule where nothing was planned."""

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
        The p-value corrected by Holm's rule for all that are compared in the environment.
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
    compare: Iterable[tuple[str, str]] = (),
    level: float = 0.95,
) -> list[AgentComparison]:
    """Compare agents in every environment: all pairs, each with a baseline, or planned pairs.

    Agents are compared on the seeds that both have; those with fewer than two are left out, and so
    are agents that were given the model. P-values are corrected for the comparisons that are asked
    for and no others, so these must have been chosen before there were results: of an agent that
    was picked as the best one, compare all pairs.
    """
    by = measure(results, column)
    told = dict(results.select("agent", "told").iter_rows())
    judged = [agent for agent in told if not informed(told[agent])]
    plan = as_plan(judged, baseline, compare)
    compared = []
    for (environment, horizon), table in _tables(results, by).items():
        scores = {agent: table[agent] for agent in judged if agent in table}
        for (first, second), adjusted in corrected(scores, plan).items():
            both = _shared(scores[first], scores[second])
            paired = stats.paired(*both, level, better=better(by))
            compared.append(AgentComparison(environment, horizon, first, second, paired, adjusted))
    return compared


def as_plan(
    agents: Iterable[str], baseline: object = None, compare: Iterable[Iterable[object]] = ()
) -> Plan:
    """Return a plan that names only these agents, each pair once."""
    known = list(agents)
    pairs: list[tuple[str, str]] = []
    for i, pair in enumerate(compare):
        place = f"compare[{i}]"
        names = [as_choice(one, f"{place}[{k}]", known) for k, one in enumerate(pair)]
        if len(set(names)) != 2 or len(names) != 2:
            raise InputError(
                f"{shown(names)} is no pair", field=place, fix="name two agents by their labels"
            )
        if {*names} in map(set, pairs):
            raise InputError(f"{shown(names)} is there twice", field=place, fix="leave it out")
        pairs.append((names[0], names[1]))
    if baseline is None:
        return Plan(tuple(pairs))
    if pairs:
        raise InputError(
            "stands beside compare", field="baseline", fix="plan pairs, or one baseline for all"
        )
    return Plan(baseline=as_choice(baseline, "baseline", known))


def better(column: str) -> Better:
    """Return whether more of a measure is better, or less.

    >>> better("regret"), better("share")
    ('less', 'more')
    """
    return "less" if column in _LESS_IS_BETTER else "more"


def informed(told: Iterable[str]) -> bool:
    """Return whether an agent was given the model: a reference, which is left out of all tests."""
    return "the model" in told


def corrected(
    scores: Mapping[str, Scores], plan: Plan | None = None
) -> dict[tuple[str, str], float]:
    """Return the p-values of planned pairs, or all, in one environment, corrected by Holm's rule.

    Pairs are in the order of the agents. Those that share fewer than two seeds are not tested.

    >>> river = {"a": {0: 1.0, 1: 2.0}, "b": {1: 4.0, 0: 2.0}, "c": {0: 5.0}}
    >>> corrected(river)
    {('a', 'b'): 0.5}
    """
    p_values = {}
    for first, second in (plan or Plan()).pairs_of(scores):
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
