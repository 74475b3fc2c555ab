"""`diff`: two studies beside each other, seed by seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from windage.errors import InputError
from windage.study import stats
from windage.study.compare import measure
from windage.study.results import load_results
from windage.study.stats import Paired
from windage.study.store import Store

__all__ = ["Change", "Diff", "diff"]

_BY = ["environment", "horizon", "agent", "seed"]


@dataclass(frozen=True)
class Change:
    """One agent in one environment, in the second study against the first.

    Attributes
    ----------
    before
        Its mean in the first study.
    paired
        Mean of (second - first) over the seeds of both, with its interval.
    adjusted
        The p-value corrected for all rows of the table, by Holm's rule.
    same
        On how many seeds both have the same result to the last bit.
    """

    environment: str
    horizon: int
    agent: str
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
        Agents and environments that both have, by their labels.
    only_first, only_second
        Runs that the other one has not.
    versions
        Versions that differ: name, first, second.
    """

    measure: str
    changes: tuple[Change, ...]
    only_first: int
    only_second: int
    versions: tuple[tuple[str, str, str], ...]


def diff(
    first: str | Path, second: str | Path, *, column: str | None = None, level: float = 0.95
) -> Diff:
    """Compare two studies on the runs that have the same labels, horizon and seed in both."""
    one, other = (load_results(folder, unfinished=True) for folder in (first, second))
    both = pl.concat([one, other])
    by = measure(both, column)
    columns = [*_BY, by, "content"]
    mine = _with_content(one, first).select(columns)
    theirs = _with_content(other, second).select(columns)
    joined = mine.join(theirs, on=_BY, how="inner", suffix="_second", maintain_order="left")
    if joined.height == 0:
        raise InputError(
            "no run has the same environment, horizon, agent and seed in both",
            field=f"{first}, {second}",
            fix="compare studies that share labels; `label` in a study file sets them",
        )
    joined = joined.drop_nulls([by, f"{by}_second"])
    rows = []
    for (environment, horizon, agent), group in joined.group_by(_BY[:3], maintain_order=True):
        pair = stats.paired(group[f"{by}_second"].to_numpy(), group[by].to_numpy(), level)
        same = int((group["content"] == group["content_second"]).sum())
        before = float(group[by].to_numpy().mean())
        rows.append((str(environment), int(str(horizon)), str(agent), before, pair, same))
    adjusted = stats.holm([row[4].p_value for row in rows]).tolist()
    versions = [Store.found(folder).manifest().versions for folder in (first, second)]
    return Diff(
        measure=by,
        changes=tuple(Change(*row[:5], p, row[5]) for row, p in zip(rows, adjusted, strict=True)),
        only_first=one.height - joined.height,
        only_second=other.height - joined.height,
        versions=tuple(
            (name, *(found.get(name, "-") for found in versions))  # type: ignore[misc]
            for name in sorted(versions[0].keys() | versions[1].keys())
            if versions[0].get(name) != versions[1].get(name)
        ),
    )


def _with_content(results: pl.DataFrame, folder: str | Path) -> pl.DataFrame:
    """Return the results, each with a hash of its file."""
    runs = Path(folder) / "runs"
    files = [(runs / f"{key}.parquet").read_bytes() for key in results["key"]]
    texts = [hashlib.sha256(data).hexdigest() for data in files]
    return results.with_columns(pl.Series("content", texts, dtype=pl.String))
