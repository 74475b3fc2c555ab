"""`load_results`: what a study has found, one row a run."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from windage.errors import StateError
from windage.study.store import Store
from windage.study.tables import ORACLE, RUN

__all__ = ["load_oracles", "load_results"]


def load_results(folder: str | Path, *, unfinished: bool = False) -> pl.DataFrame:
    """Return the runs of a study as a table, in the order the study asks for them.

    Curves are lists in a cell: `explode` makes rows of them. Labels come from the manifest, all
    else from the files of the runs, each of which is checked to the last bit.

    Parameters
    ----------
    folder
        What `windage run -o` wrote.
    unfinished
        Whether to take a study of which some runs are missing.

    Raises
    ------
    StateError
        The folder holds no study, a file is damaged, or runs are missing.
    """
    store = Store.found(folder)
    manifest = store.manifest()
    rows = {key: store.run(key) for key in manifest.run_keys()}
    there = [(asked, row) for asked in manifest.runs if (row := rows[asked.key]) is not None]
    missing = len(manifest.runs) - len(there)
    if missing and not unfinished:
        raise StateError(
            f"{missing:,} of {len(manifest.runs):,} runs are missing",
            field=str(folder),
            fix="go on with `windage run`, or pass unfinished=True",
        )
    table = pl.concat([row for _, row in there]) if there else pl.DataFrame(schema=RUN)
    return table.with_columns(
        pl.lit(manifest.name).alias("study"),
        pl.Series("environment", [asked.environment for asked, _ in there], dtype=pl.String),
        pl.Series("agent", [asked.agent for asked, _ in there], dtype=pl.String),
    ).select(_ORDER)


def load_oracles(folder: str | Path) -> pl.DataFrame:
    """Return the optimal gains of a study's environments, one row a label and horizon."""
    store = Store.found(folder)
    manifest = store.manifest()
    asked = [(one.environment, one.oracle) for one in manifest.runs if one.oracle]
    rows = {key: store.oracle(key) for key in manifest.oracle_keys()}
    there = [(label, row) for label, key in dict.fromkeys(asked) if (row := rows[key]) is not None]
    table = pl.concat([row for _, row in there]) if there else pl.DataFrame(schema=ORACLE)
    labels = pl.Series("environment", [label for label, _ in there], dtype=pl.String)
    return table.select(labels, pl.all())


_ORDER = [
    "key", "study", "environment", "environment_id", "environment_parameters", "agent",
    *(name for name in RUN if name not in ("key", "environment_id", "environment_parameters")),
]  # fmt: skip
