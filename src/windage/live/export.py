"""A journal as a table: one row a decision, for whatever tool one likes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windage.atomic_io import write_whole
from windage.live.events import DECIDED, EXPIRED, OBSERVED
from windage.live.history import Base, bases, of_name
from windage.live.journal import Journal

if TYPE_CHECKING:
    import polars as pl

__all__ = ["export", "to_frame"]


def export(path: str | Path, target: str | Path, name: str | None = None) -> int:
    """Write the decisions of a journal to a Parquet file; returns how many."""
    frame = to_frame(path, name)
    write_whole(target, frame.write_parquet, make_folder=True)
    return frame.height


def to_frame(path: str | Path, name: str | None = None) -> pl.DataFrame:
    """Return the decisions of a journal, of all its agents or of one, as a data frame.

    `outcome` is learned, late, unused, given up or pending; rewards are in the user's units.
    """
    import polars as pl

    journal = Journal(path)
    try:
        journal.require_chain(1)
        known = bases(journal)
        if name is not None:
            known = {name: of_name(known, name)}
        rows = [row for base in known.values() for row in _rows(journal, base)]
    finally:
        journal.close()
    schema: dict[str, Any] = {
        "agent": pl.String, "id": pl.Int64, "key": pl.String,
        "decided_at": pl.Datetime("us", "UTC"), "state": pl.Int64,
        "state_name": pl.String, "advised": pl.Int64, "advised_name": pl.String,
        "played": pl.Int64, "played_name": pl.String, "reward": pl.Float64,
        "next_state": pl.Int64, "next_state_name": pl.String,
        "observed_at": pl.Datetime("us", "UTC"), "outcome": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row").sort("id")


def _rows(journal: Journal, base: Base) -> list[list[Any]]:
    space = base.space()
    rows: list[list[Any]] = []
    for event in journal.events(
        "agent = ? AND kind IN (?, ?, ?) ORDER BY step, n", base.agent, DECIDED, OBSERVED, EXPIRED
    ):
        if event.kind == DECIDED:
            state, advised = event.state or 0, event.action or 0
            rows.append([
                base.created.name, event.n, event.key, _time(event.at), state,
                space.state_name(state), advised, space.action_name(state, advised),
                None, None, None, None, None, None, "pending",
            ])  # fmt: skip
        elif event.kind == EXPIRED:
            rows[-1][-1] = "given up"
        else:
            state, after, played = rows[-1][4], event.state or 0, event.action or 0
            how = (
                "unused" if not event.used else "late" if rows[-1][-1] == "given up" else "learned"
            )
            rows[-1][8:] = [
                played, space.action_name(state, played), event.reward, after,
                space.state_name(after), _time(event.at), how,
            ]  # fmt: skip
    return rows


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1e6, UTC)
