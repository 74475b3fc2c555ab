"""One result, one Parquet file with one row, and in it a checksum of every byte.

A file holds results only, so the same run gives the same bytes on any machine with the same
versions. The checksum stands in the file's own metadata, under `windage.sha256`: it is the SHA-256
of the file with 64 zeros in its place. Readers of Parquet see a column-oriented table like any
other.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import polars as pl

from windage.atomic_io import unreadable
from windage.errors import StateError

__all__ = ["ORACLE", "RUN", "Schema", "decode", "encode", "read"]

Schema = dict[str, pl.DataType | type[pl.DataType]]
"""The columns of a file and what is in them."""

_TEXTS, _INTEGERS, _REALS = pl.List(pl.String), pl.List(pl.Int64), pl.List(pl.Float64)

RUN: Schema = {
    "key": pl.String,
    "environment_id": pl.String,
    "environment_parameters": pl.String,
    "agent_id": pl.String,
    "agent_parameters": pl.String,
    "horizon": pl.Int64,
    "seed": pl.Int64,
    "radii": pl.String,
    "ties": pl.String,
    "variant": pl.String,
    "told": _TEXTS,
    "window": pl.Int64,
    "widening": pl.Float64,
    "delta": pl.Float64,
    "steps": pl.Int64,
    "total_reward": pl.Float64,
    "total_mean_reward": pl.Float64,
    "oracle_reward": pl.Float64,
    "oracle_error": pl.Float64,
    "regret": pl.Float64,
    "observed_regret": pl.Float64,
    "share": pl.Float64,
    "t": _INTEGERS,
    "cumulative_reward": _REALS,
    "cumulative_mean_reward": _REALS,
    "cumulative_regret": _REALS,
    "episodes": pl.Int64,
    "episode_start": _INTEGERS,
    "episode_length": _INTEGERS,
    "episode_reason": _TEXTS,
    "episode_gain": _REALS,
    "episode_span": _REALS,
    "episode_sweeps": _INTEGERS,
    "episode_vacuous": _REALS,
    "episode_ties": _INTEGERS,
    "block_arm": _INTEGERS,
    "block_reward": _REALS,
    "block_probabilities": pl.List(_REALS),
    "arm_window": _INTEGERS,
    "arm_widening": _REALS,
    "memory_t": _INTEGERS,
    "memory_counts": pl.List(_INTEGERS),
    "pair_names": _TEXTS,
    "forgetting_t": _INTEGERS,
    "forgetting_transitions": _REALS,
    "forgetting_rewards": _REALS,
}
"""The columns of a run's file."""

ORACLE: Schema = {
    "key": pl.String,
    "environment_id": pl.String,
    "environment_parameters": pl.String,
    "horizon": pl.Int64,
    "states": pl.Int64,
    "pairs": pl.Int64,
    "reward_budget": pl.Float64,
    "transition_budget": pl.Float64,
    "diameter_bound": pl.Float64,
    "total": pl.Float64,
    "error": pl.Float64,
    "largest_error": pl.Float64,
    "solves": pl.Int64,
    "t": _INTEGERS,
    "optimal_gain": _REALS,
    "cumulative": _REALS,
}
"""The columns of an oracle's file: rho*_t at the times of the runs' curves, and its sums."""

_NAME = "windage.sha256"
_BLANK = b"0" * 64


def encode(row: dict[str, Any], schema: Schema) -> bytes:
    """Return a row as the bytes of its file; everything that could vary is fixed."""
    frame = pl.DataFrame([[row[name] for name in schema]], schema=schema, orient="row")
    file = io.BytesIO()
    frame.write_parquet(
        file,
        compression="zstd",
        compression_level=1,
        statistics=False,
        metadata={_NAME: _BLANK.decode()},
    )
    data = file.getvalue()
    start = _place(data)
    assert data[start : start + 64] == _BLANK
    digest = hashlib.sha256(data).hexdigest().encode()
    return data[:start] + digest + data[start + 64 :]


def decode(data: bytes, schema: Schema, path: Path) -> pl.DataFrame:
    """Return the row of a file, or refuse a file that is not, to the last bit, as it was written.

    Raises
    ------
    StateError
        A bit is wrong, or the file was written with other columns.
    """
    try:
        start = _place(data)
        blank = data[:start] + _BLANK + data[start + 64 :]
        if hashlib.sha256(blank).hexdigest().encode() != data[start : start + 64]:
            raise ValueError("its checksum is wrong")
        frame = pl.read_parquet(io.BytesIO(data))
    except Exception as err:
        raise damaged(path, str(err).split("\n")[0]) from None
    if dict(frame.schema) != schema or frame.height != 1:
        raise damaged(path, "it has other columns than this version writes")
    return frame


def read(path: Path, schema: Schema) -> pl.DataFrame | None:
    """Return the row of a file; None if there is no file.

    Raises
    ------
    StateError
        It is damaged.
    InputError
        It cannot be read today, which says nothing about what it holds.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise unreadable(path, err) from None
    frame = decode(data, schema, path)
    if frame["key"][0] != path.stem:
        raise damaged(path, f"it holds the result {frame['key'][0]}")
    return frame


def damaged(path: Path, why: str) -> StateError:
    """Return the error that a result file is not what was written."""
    return StateError(
        f"is damaged ({why})",
        field=str(path),
        fix="run the study again: `windage run` computes it anew and nothing else",
    )


def _place(data: bytes) -> int:
    """Return where the checksum stands: behind its name, in the metadata at the end."""
    name = data.rfind(_NAME.encode())
    if name < 0 or data[-4:] != b"PAR1" or len(data) < name + len(_NAME) + 66:
        raise ValueError("it has no checksum, or its end is missing")
    return name + len(_NAME) + 2  # behind the type and the length of the text
