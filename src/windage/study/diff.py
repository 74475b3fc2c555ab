"""`diff`: two studies beside each other, seed by seed."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from windage.errors import InputError, StateError
from windage.study import stats
from windage.study.compare import measure
from windage.study.manifest import version_changes
from windage.study.partners import Partners, Place, found_in, pair
from windage.study.results import load_results
from windage.study.stats import Paired
from windage.study.store import Store

__all__ = ["Change", "Diff", "diff"]


@dataclass(frozen=True)
class Change:
    """One agent in one environment, in the second study against the first.

    Attributes
    ----------
    partners
        What the two are called, and in what they are configured otherwise.
    before
        Its mean in the first study.
    paired
        Mean of (second - first) over the seeds of both, with its interval.
    adjusted
        The p-value corrected for all rows of the table, by Holm's rule.
    same
        On how many seeds both have the same result to the last bit.
    """

    partners: Partners
    before: float
    paired: Paired
    adjusted: float
    same: int


@dataclass(frozen=True)
class Diff:
    """What two studies have in common and how it differs.

    Attributes
    ----------
    measure
        The column that is compared.
    changes
        Agents and environments that both have.
    apart
        Those that both have, but no seed of which both know the column.
    alone_first, alone_second
        Those without a partner in the other study.
    only_first, only_second
        How many runs are not in the other study: its agent and environment, or its seed.
    versions
        Versions that differ: name, first, second.
    """

    measure: str
    changes: tuple[Change, ...]
    apart: tuple[Partners, ...]
    alone_first: tuple[Place, ...]
    alone_second: tuple[Place, ...]
    only_first: int
    only_second: int
    versions: tuple[tuple[str, str, str], ...]


def diff(
    first: str | Path, second: str | Path, *, column: str | None = None, level: float = 0.95
) -> Diff:
    """Compare two studies seed by seed, on the agents and environments that both have.

    They are known by their configuration, whatever the studies call them; what has no such partner
    is compared with its namesake, and the differences between the two are listed.
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
    mine, theirs = (_scores(*one, by) for one in zip(tables, stores, strict=True))
    places = [found_in(manifest) for manifest in manifests]
    found: list[tuple[Partners, float, Paired, int]] = []
    apart: list[Partners] = []
    shared = 0
    for partners in pair(*places):
        one, other = mine.get(partners.first, {}), theirs.get(partners.second, {})
        both = sorted(one.keys() & other.keys())
        shared += len(both)
        seeds = [seed for seed in both if one[seed].known and other[seed].known]
        if not seeds:
            apart.append(partners)
        else:
            before = [one[seed].score for seed in seeds]
            paired = stats.paired([other[seed].score for seed in seeds], before, level)
            same = sum(one[seed].content == other[seed].content for seed in seeds)
            found.append((partners, float(np.mean(before)), paired, same))
    if shared and not found:
        raise InputError(
            "is not known of any run that both have",
            field=by,
            fix='compare by "total_reward", or give the environments an oracle',
        )
    if not found:
        raise InputError(
            "no agent of one is in the other, in the same environment, at the same horizon and on "
            "the same seeds",
            field=f"{first}, {second}",
            fix="compare studies that share agents or labels; `label` in a study file sets them",
        )
    adjusted = stats.holm([paired.p_value for _, _, paired, _ in found]).tolist()
    partnered = [*(partners for partners, *_ in found), *apart]
    one_side, other_side = ({getattr(one, k) for one in partnered} for k in ("first", "second"))
    return Diff(
        measure=by,
        changes=tuple(
            Change(partners, before, paired, p, same)
            for (partners, before, paired, same), p in zip(found, adjusted, strict=True)
        ),
        apart=tuple(apart),
        alone_first=tuple(place for place in places[0] if place not in one_side),
        alone_second=tuple(place for place in places[1] if place not in other_side),
        only_first=tables[0].height - shared,
        only_second=tables[1].height - shared,
        versions=version_changes(*(one.versions for one in manifests)),
    )


class _Scored(NamedTuple):
    """What one run got, NaN if nobody knows, and a hash of its file."""

    score: float
    content: str

    @property
    def known(self) -> bool:
        return not math.isnan(self.score)


def _scores(results: pl.DataFrame, store: Store, by: str) -> dict[Place, dict[int, _Scored]]:
    """Return what every agent got, by seed."""
    found: dict[Place, dict[int, _Scored]] = {}
    columns = ["environment", "horizon", "agent", "seed", by, "key"]
    for environment, horizon, agent, seed, score, key in results.select(columns).iter_rows():
        content = hashlib.sha256(store.path("runs", key).read_bytes()).hexdigest()
        scored = _Scored(math.nan if score is None else score, content)
        found.setdefault(Place(environment, horizon, agent), {})[seed] = scored
    return found
