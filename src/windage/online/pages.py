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
from typing import Any

from windage.online.events import ROOT, Event, chained
from windage.online.writer import PAGE

__all__ = ["salvage"]

_LEAF = 13
_COLUMNS = len(Event._fields) + 1
_REWARD = Event._fields.index("reward")
_MOST = PAGE - 35  # bytes of a row that stay in its page
_LEAST = (PAGE - 12) * 32 // 255 - 23  # ... if the rest goes elsewhere
_FILE_HEAD, _LOG_HEAD, _FRAME_HEAD = 100, 32, 24
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)

Row = tuple[Any, ...]


def salvage(journal: Path) -> tuple[list[Row], set[int]]:
    """Return the longest sound beginning of a journal, and the numbers of other rows seen.

    A row is an event and its chain.
    """
    found: dict[int, set[Row]] = defaultdict(set)
    pages = _Pages(journal)
    for page, start in pages:
        for row in _rows(page, start, pages):
            found[row[0]].add(row)
    sound: list[Row] = []
    before = ROOT
    while True:
        n = len(sound) + 1
        fitting = [row for row in found.get(n, ()) if row[-1] == chained(before, row[:-1])]
        if not fitting:
            return sound, {other for other in found if other >= n}
        sound.append(fitting[0])
        before = fitting[0][-1]


class _Pages:
    """All pages of a journal and its log, and the newest of each number."""

    def __init__(self, journal: Path) -> None:
        data = journal.read_bytes() if journal.is_file() else b""
        log = journal.with_name(journal.name + "-wal")
        frames = log.read_bytes() if log.is_file() else b""
        self._all = [
            (data[i : i + PAGE], 0 if i else _FILE_HEAD) for i in range(0, len(data), PAGE)
        ]
        self._newest = {number: page for number, (page, _) in enumerate(self._all, 1)}
        for place in range(_LOG_HEAD, len(frames), _FRAME_HEAD + PAGE):
            page = frames[place + _FRAME_HEAD : place + _FRAME_HEAD + PAGE]
            number = int.from_bytes(frames[place : place + 4], "big")
            self._all.append((page, _FILE_HEAD if number == 1 else 0))
            self._newest[number] = page

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        return iter(self._all)

    def rest(self, number: int, size: int) -> bytes:
        """Return so many bytes from a page and those it leads to."""
        parts: list[bytes] = []
        while size > 0:
            page = self._newest[number]  # a KeyError: it leads nowhere
            number = int.from_bytes(page[:4], "big")
            parts.append(page[4 : 4 + min(size, PAGE - 4)])
            size -= PAGE - 4
        return b"".join(parts)


def _rows(page: bytes, start: int, pages: _Pages) -> Iterator[Row]:
    """Give whatever reads as an event in a page."""
    if len(page) <= start + 8 or page[start] != _LEAF:
        return
    (count,) = struct.unpack(">H", page[start + 3 : start + 5])
    for i in range(count):
        place = start + 8 + 2 * i
        try:
            (cell,) = struct.unpack(">H", page[place : place + 2])
            row = _row(page, cell, pages)
        except (IndexError, KeyError, ValueError, struct.error):
            continue  # no row, or not a whole one
        if row is not None:
            yield row


def _row(page: bytes, place: int, pages: _Pages) -> Row | None:
    size, place = _varint(page, place)
    n, place = _varint(page, place)
    if size <= _MOST:
        record = page[place : place + size]
    else:
        here = _LEAST + (size - _LEAST) % (PAGE - 4)
        here = here if here <= _MOST else _LEAST
        after = int.from_bytes(page[place + here : place + here + 4], "big")
        record = page[place : place + here] + pages.rest(after, size - here)
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
