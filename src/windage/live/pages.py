"""Events straight from the pages of a journal, without SQLite: what is left of a damaged one.

A damaged page at the root of a table hides everything below it from SQLite, though the pages that
hold the events are whole. So every page of the file and of its log is looked at by itself: if it
reads as a leaf of a table whose rows have the columns of an event, these are candidates. The chain
decides which of them are events.

The layout is that of the SQLite file format: big-endian numbers, a leaf is marked 13, rows are
addressed from its head, and what does not fit into a page goes on in others.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from windage.live.events import FORMAT, ROOT, Event, chained
from windage.live.failures import newer
from windage.live.head import Note
from windage.live.log import Frame, read_log
from windage.live.tables import MARK, PAGE

__all__ = ["Row", "Salvage", "salvage"]

_LEAF = 13
_COLUMNS = len(Event._fields) + 1
_REWARD = Event._fields.index("reward")
_MOST = PAGE - 35  # bytes of a row that stay in its page
_LEAST = (PAGE - 12) * 32 // 255 - 23  # ... if the rest goes elsewhere
_FILE_HEAD = 100
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)

Row = tuple[Any, ...]
Found = dict[int, set[Row]]


class Salvage(NamedTuple):
    """What is left of a journal."""

    sound: list[Row]
    """The longest beginning that is known to have been acknowledged, or at least committed."""
    seen: set[int]
    """Numbers of later rows that were committed, and are not sound or follow one that is not."""
    doubtful: set[int]
    """Numbers of later rows of which nobody knows whether they were committed."""


def salvage(journal: Path, note: Note | None) -> Salvage:
    """Return the longest sound beginning of a journal.

    What follows a damaged place of the log counts only if the head's own chain leads through it to
    the first event.
    """
    data = journal.read_bytes() if journal.is_file() else b""
    log = read_log(journal, PAGE)
    kept = [Frame(i // PAGE + 1, data[i : i + PAGE]) for i in range(0, len(data), PAGE)]
    _require_format(journal, [*kept[:1], *log.committed])
    found = _found([*kept, *log.committed])
    every = _found([*kept, *log.doubtful, *log.committed], found) if log.doubtful else found
    sound = _back(every, note) if note else []
    _forth(found, sound)
    last = len(sound)
    seen = {n for n in found if n > last}
    return Salvage(sound, seen, {n for n in every if n > last} - seen)


def _back(found: Found, note: Note) -> list[Row]:
    """Return all events up to the one the head names; none if the chain does not lead back."""
    sound: list[Row] = []
    chain = bytes.fromhex(note.chain)
    for n in range(note.n, 0, -1):
        row = next((row for row in found.get(n, ()) if row[-1] == chain), None)
        before = {row[-1] for row in found.get(n - 1, ())} if n > 1 else {ROOT}
        fitting = [one for one in before if row and chained(one, row[:-1]) == chain]
        if row is None or not fitting:
            return []
        sound.append(row)
        chain = fitting[0]
    return sound[::-1]


def _forth(found: Found, sound: list[Row]) -> None:
    """Add all events that follow."""
    before = sound[-1][-1] if sound else ROOT
    while True:
        n = len(sound) + 1
        fitting = [row for row in found.get(n, ()) if row[-1] == chained(before, row[:-1])]
        if not fitting:
            return
        sound.append(fitting[0])
        before = fitting[0][-1]


def _require_format(journal: Path, frames: list[Frame]) -> None:
    """Refuse what a newer version has written: its events may mean something else."""
    first = [frame.page for frame in frames if frame.number == 1 and len(frame.page) == PAGE]
    if not first:
        return
    form, mark = (int.from_bytes(first[-1][i : i + 4], "big") for i in (60, 68))
    if mark == MARK and form > FORMAT:
        raise newer(journal, form)


def _found(frames: list[Frame], known: Found | None = None) -> Found:
    """Return whatever reads as an event in some pages, by its number."""
    found: Found = defaultdict(set, {n: set(rows) for n, rows in (known or {}).items()})
    newest = {frame.number: frame.page for frame in frames}
    for number, page in frames:
        for row in _rows(page, _FILE_HEAD if number == 1 else 0, newest):
            found[row[0]].add(row)
    return found


def _rest(newest: dict[int, bytes], number: int, size: int) -> bytes:
    """Return so many bytes from a page and those it leads to."""
    parts: list[bytes] = []
    while size > 0:
        page = newest[number]  # a KeyError: it leads nowhere
        number = int.from_bytes(page[:4], "big")
        parts.append(page[4 : 4 + min(size, PAGE - 4)])
        size -= PAGE - 4
    return b"".join(parts)


def _rows(page: bytes, start: int, newest: dict[int, bytes]) -> Iterator[Row]:
    """Give whatever reads as an event in a page."""
    if len(page) <= start + 8 or page[start] != _LEAF:
        return
    (count,) = struct.unpack(">H", page[start + 3 : start + 5])
    for i in range(count):
        place = start + 8 + 2 * i
        try:
            (cell,) = struct.unpack(">H", page[place : place + 2])
            row = _row(page, cell, newest)
        except (IndexError, KeyError, ValueError, struct.error):
            continue  # no row, or not a whole one
        if row is not None:
            yield row


def _row(page: bytes, place: int, newest: dict[int, bytes]) -> Row | None:
    size, place = _varint(page, place)
    n, place = _varint(page, place)
    if size <= _MOST:
        record = page[place : place + size]
    else:
        here = _LEAST + (size - _LEAST) % (PAGE - 4)
        here = here if here <= _MOST else _LEAST
        after = int.from_bytes(page[place + here : place + here + 4], "big")
        record = page[place : place + here] + _rest(newest, after, size - here)
    if len(record) != size:
        return None
    end, place = _varint(record, 0)
    kinds = []
    while place < end:
        kind, place = _varint(record, place)
        kinds.append(kind)
    if len(kinds) != _COLUMNS or kinds[0] != 0:  # the number is the row's address
        return None
    values: list[Any] = []
    for kind in kinds:
        value, place = _value(record, place, kind)
        values.append(value)
    values[0] = n
    if isinstance(values[_REWARD], int):
        values[_REWARD] = float(values[_REWARD])  # whole numbers are kept short
    return tuple(values)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and where it ends."""
    number = 0
    for i in range(8):
        byte = data[place + i]
        number = number << 7 | byte & 127
        if byte < 128:
            return number, place + i + 1
    return number << 8 | data[place + 8], place + 9


def _value(record: bytes, place: int, kind: int) -> tuple[Any, int]:
    """Return the value of a column, and where it ends."""
    if kind == 0:
        return None, place
    if kind <= 6:
        end = place + _WIDTHS[kind]
        return int.from_bytes(record[place:end], "big", signed=True), end
    if kind == 7:
        return struct.unpack(">d", record[place : place + 8])[0], place + 8
    if kind in (8, 9):
        return kind - 8, place
    end = place + (kind - 12) // 2
    data = record[place:end]
    return (data.decode() if kind % 2 else data), end
