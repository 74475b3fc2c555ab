"""The tables of a journal, as SQLite keeps them."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from windage.live.events import FORMAT

__all__ = ["INSERT", "MARK", "PAGE", "make_tables"]

MARK = 0x77696E64  # "wind", in the header of the file
PAGE = 4096
INSERT = f"INSERT INTO events VALUES ({', '.join('?' * 12)})"  # noqa: S608 - no input in it
_TABLES = """
CREATE TABLE events (
    n INTEGER PRIMARY KEY, agent INTEGER NOT NULL, kind TEXT NOT NULL, step INTEGER NOT NULL,
    state INTEGER, action INTEGER, reward REAL, used INTEGER, key TEXT, body TEXT,
    at INTEGER NOT NULL, chain BLOB NOT NULL
);
CREATE UNIQUE INDEX history ON events (agent, step, n);
CREATE UNIQUE INDEX keys ON events (agent, key) WHERE key IS NOT NULL;
CREATE INDEX told ON events (agent, n) WHERE body IS NOT NULL;
CREATE TABLE snapshots (
    agent INTEGER NOT NULL, step INTEGER NOT NULL, n INTEGER NOT NULL, chain BLOB NOT NULL,
    state BLOB NOT NULL, PRIMARY KEY (agent, step)
);
CREATE TABLE rejected (
    id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, at INTEGER NOT NULL, what TEXT NOT NULL,
    problem TEXT NOT NULL
);
"""


def make_tables(con: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new journal, all of them or none."""
    for statement in [
        "BEGIN IMMEDIATE",
        f"PRAGMA application_id = {MARK}",
        f"PRAGMA user_version = {FORMAT}",
        *(one.strip() for one in _TABLES.split(";") if one.strip()),
        "COMMIT",
    ]:
        con.execute(statement)
    _sync_folder(path)


def _sync_folder(path: Path) -> None:
    """Make a new file's name as durable as its content."""
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
