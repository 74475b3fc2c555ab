"""Comparison of two studies, seed by seed.

Labels are names that people give: the same agent in the same environment may have another one in a
second study, and a name may stand for another agent there. So agents and environments that are
configured alike, to the last number, are matched first, under whatever names; the rest is matched
by its names, and the differences in configuration are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from windage.errors import InputError, StateError
from windage.study import schema, stats
from windage.study.compare import better, measure
from windage.study.configs import AgentConfig, EnvironmentConfig, hash_of
from windage.study.stats import Paired
from windage.study.store import Manifest, Store, load_results, version_changes
from windage.validation import shown

__all__ = ["Change", "Condition", "ConfigDifference", "Diff", "Match", "diff", "match"]

_NONE = object()


@dataclass(frozen=True)
class Condition:
    """One agent in one environment at one horizon, by their labels in a study."""

    environment: str
    horizon: int
    agent: str

    def __str__(self) -> str:
        return f"{self.agent} on {self.environment}, T = {self.horizon:,}"


class ConditionConfig(msgspec.Struct, frozen=True):
    """All that determines the runs of a condition, the seed apart."""

    environment: EnvironmentConfig
    agent: AgentConfig

    @property
    def key(self) -> str:
        """A hash of it: conditions with the same key are configured alike."""
        agent = self.agent
        return hash_of(self.environment.key, agent.id, agent.parameters, agent.digest, agent.told)


@dataclass(frozen=True)
class ConfigDifference:
    """A setting that differs: `widening`, `environment.states`, the source of a class."""

    name: str
    first: str
    second: str


@dataclass(frozen=True)
class Match:
    """Two conditions that are compared.

    Attributes
    ----------
    first, second
        Their labels in either study.
    differences
        The settings that differ; none if they were matched by their configuration.
    """

    first: Condition
    second: Condition
    differences: tuple[ConfigDifference, ...]


@dataclass(frozen=True)
class Change:
    """One agent in one environment, in the second study against the first.

    Attributes
    ----------
    match
        Their labels, and the settings that differ.
    before
        Its mean in the first study.
    paired
        Mean of (second - first) over the seeds of both, with its interval.
    adjusted
        The p-value corrected for all rows of the table, by Holm's rule.
    same
        On how many seeds both have the same result to the last bit.
    """

    match: Match
    before: float
    paired: Paired
    adjusted: float
    same: int


@dataclass(frozen=True)
class Diff:
    """Two studies compared.

    Attributes
    ----------
    measure
        The column that is compared.
    changes
        Agents and environments that both have.
    apart
        Those that both have, but no seed of which both know the column.
    alone_first, alone_second
        Those without a match in the other study.
    only_first, only_second
        How many runs are not in the other study: its agent and environment, or its seed.
    versions
        Versions that differ: name, first, second.
    """

    measure: str
    changes: tuple[Change, ...]
    apart: tuple[Match, ...]
    alone_first: tuple[Condition, ...]
    alone_second: tuple[Condition, ...]
    only_first: int
    only_second: int
    versions: tuple[tuple[str, str, str], ...]


def diff(
    first: str | Path, second: str | Path, *, column: str | None = None, level: float = 0.95
) -> Diff:
    """Compare two studies seed by seed, on the agents and environments that both have.

    These are matched by their configuration, whatever the studies call them; the rest is compared
    with its namesake, and the differences between the two are listed.
    """
    tables = [load_results(folder, unfinished=True) for folder in (first, second)]
    stores = [Store.found(folder) for folder in (first, second)]
    manifests = [store.manifest() for store in stores]
    for folder, table in zip((first, second), tables, strict=True):
        if not table.height:
            raise StateError(
                "no run is in it yet", field=str(folder), fix="let `windage run` finish some runs"
            )
    by = measure(pl.concat(tables), column)
    mine, theirs = (_scores(table, by) for table in tables)
    conditions = [_conditions(manifest) for manifest in manifests]
    compared: list[tuple[Match, float, Paired, int]] = []
    apart: list[Match] = []
    shared = 0
    for matched in match(*conditions):
        runs, other_runs = mine.get(matched.first, {}), theirs.get(matched.second, {})
        both = sorted(runs.keys() & other_runs.keys())
        shared += len(both)
        seeds = [seed for seed in both if runs[seed].known and other_runs[seed].known]
        if not seeds:
            apart.append(matched)
        else:
            before = [runs[seed].score for seed in seeds]
            after = [other_runs[seed].score for seed in seeds]
            paired = stats.paired(after, before, level, better=better(by))
            same = sum(_same_result(stores, runs[seed].key, other_runs[seed].key) for seed in seeds)
            compared.append((matched, float(np.mean(before)), paired, same))
    if shared and not compared:
        raise InputError(
            "is not known of any run that both have",
            field=by,
            fix='compare by "total_reward", or give the environments an oracle',
        )
    if not compared:
        raise InputError(
            "no agent of one is in the other, in the same environment, at the same horizon and on "
            "the same seeds",
            field=f"{first}, {second}",
            fix="compare studies that share agents or labels; `label` in a study file sets them",
        )
    adjusted = stats.holm([paired.p_value for _, _, paired, _ in compared]).tolist()
    matches = [*(matched for matched, *_ in compared), *apart]
    matched_first = {matched.first for matched in matches}
    matched_second = {matched.second for matched in matches}
    return Diff(
        measure=by,
        changes=tuple(
            Change(matched, before, paired, p, same)
            for (matched, before, paired, same), p in zip(compared, adjusted, strict=True)
        ),
        apart=tuple(apart),
        alone_first=tuple(one for one in conditions[0] if one not in matched_first),
        alone_second=tuple(one for one in conditions[1] if one not in matched_second),
        only_first=tables[0].height - shared,
        only_second=tables[1].height - shared,
        versions=version_changes(*(manifest.versions for manifest in manifests)),
    )


def match(
    first: Mapping[Condition, ConditionConfig], second: Mapping[Condition, ConditionConfig]
) -> list[Match]:
    """Return the conditions of two studies that belong together, in the order of the first.

    Each has at most one match. Of several that are configured alike a namesake is taken first.
    """
    free: dict[str, list[Condition]] = {}
    for condition, config in second.items():
        free.setdefault(config.key, []).append(condition)
    chosen: dict[Condition, Condition] = {}
    for mine in sorted(first, key=lambda condition: condition not in second):
        alike = free.get(first[mine].key, [])
        if alike:
            chosen[mine] = mine if mine in alike else alike[0]
            alike.remove(chosen[mine])
    taken = set(chosen.values())
    for mine in first:
        if mine not in chosen and mine in second and mine not in taken:
            chosen[mine] = mine
    return [
        Match(mine, chosen[mine], tuple(_differences(first[mine], second[chosen[mine]])))
        for mine in first
        if mine in chosen
    ]


def _conditions(manifest: Manifest) -> dict[Condition, ConditionConfig]:
    """Return the conditions of a study in its order."""
    return {
        Condition(run.environment, run.horizon, run.agent): ConditionConfig(
            manifest.environments[run.environment_index], manifest.agents[run.agent_index]
        )
        for run in manifest.runs
    }


def _differences(first: ConditionConfig, second: ConditionConfig) -> Iterator[ConfigDifference]:
    """Yield the settings in which two conditions differ, the environment first."""
    for prefix, mine, theirs in (
        ("environment.", first.environment, second.environment),
        ("", first.agent, second.agent),
    ):
        if mine.id != theirs.id:
            yield ConfigDifference(f"{prefix}id", mine.id, theirs.id)
        for name in dict.fromkeys([*mine.parameters, *theirs.parameters]):
            values = [config.parameters.get(name, _NONE) for config in (mine, theirs)]
            if values[0] != values[1]:
                yield ConfigDifference(f"{prefix}{name}", *map(_text, values))
        if mine.digest != theirs.digest:
            yield ConfigDifference(f"{prefix}source", mine.digest or "-", theirs.digest or "-")
    if first.agent.told != second.agent.told:
        yield ConfigDifference("given", *(_given(config.agent) for config in (first, second)))


def _given(agent: AgentConfig) -> str:
    if agent.told is None:
        return "what its kind requires"
    return " and ".join(agent.told) or "nothing"


def _text(value: Any) -> str:
    """Return a parameter as a line of text; "-" if there is none."""
    if value is _NONE or value is None:
        return "-"
    return value if isinstance(value, str) else shown(value)


class _Score(NamedTuple):
    """The result of one run, NaN if it is not known, and the key of its file."""

    score: float
    key: str

    @property
    def known(self) -> bool:
        return not math.isnan(self.score)


def _scores(results: pl.DataFrame, by: str) -> dict[Condition, dict[int, _Score]]:
    """Return the score of every run, by condition and seed."""
    scores: dict[Condition, dict[int, _Score]] = {}
    columns = ["environment", "horizon", "agent", "seed", by, "key"]
    for environment, horizon, agent, seed, value, key in results.select(columns).iter_rows():
        score = _Score(math.nan if value is None else value, key)
        scores.setdefault(Condition(environment, horizon, agent), {})[seed] = score
    return scores


def _same_result(stores: list[Store], key: str, other_key: str) -> bool:
    """Return whether two files say the same to the last bit, in all columns that both have."""
    if key != other_key:
        return False
    path = stores[0].path("runs", key)
    before, after = (store.path("runs", key).read_bytes() for store in stores)
    return not schema.changed_columns(before, after, schema.RUN, path)
