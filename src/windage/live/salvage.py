"""Recovery of a damaged journal: its longest beginning in which every event is sound.

A damaged page at the root of a table hides everything below it from SQLite, though the pages that
hold the events are whole. So the file and its write-ahead log are read without SQLite: every page
that reads as a leaf of a table whose rows have the columns of an event gives candidates, and the
chain decides which of them are events.

The layouts are those of SQLite. Database file: big-endian numbers, a leaf is marked 13, rows are
addressed from its header, and what does not fit into a page goes on in others. Log: a header of 32
bytes, then frames, each a header of 24 bytes and a page. A frame belongs to the log if it carries
the two salts of the log's header and a checksum over all frames up to it; what SQLite takes ends at
the last such frame that marks a commit. A frame after a damaged one may have been committed, or be
left over from a transaction that was rolled back: the log alone cannot tell.
"""

from __future__ import annotations

import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from windage.atomic_io import as_path
from windage.errors import InputError, JournalError
from windage.live.journal import Writer
from windage.live.lockfile import Head, beside, head_path, read_head
from windage.live.schema import (
    APPLICATION_ID,
    DECIDED,
    EXPIRED,
    FORMAT,
    OBSERVED,
    PAGE,
    ROOT,
    Event,
    UnwritableError,
    other_format,
)

__all__ = ["Recovery", "recover"]

_LEAF = 13
_MOST = PAGE - 35  # bytes of a row that stay in its page
_LEAST = (PAGE - 12) * 32 // 255 - 23  # ... if the rest goes elsewhere
_FILE_HEADER = 100
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)  # bytes of an integer, by its serial type
_LOG_HEADER, _FRAME_HEADER = 32, 24
_BYTE_ORDERS = {0x377F0682: "<", 0x377F0683: ">"}  # of the checksums, by the log's magic number


@dataclass(frozen=True)
class Recovery:
    """What was saved, and what is missing.

    Attributes
    ----------
    path
        The new journal.
    events
        How many events it holds: the first ones of the old.
    acknowledged
        How many the old journal's head says there were; None if no head can be read.
    seen
        Numbers of later rows that were committed and are not sound, or follow one that is not.
    doubtful
        How many later rows stand after a damaged place of the log: they may have been committed, or
        be left over from a batch that was rolled back.
    pending
        Decisions that wait for an outcome in the new journal.
    """

    path: Path
    events: int
    acknowledged: int | None
    seen: frozenset[int]
    pending: tuple[int, ...]
    doubtful: int = 0

    @property
    def missing(self) -> int | None:
        """How many events are missing at least; None if that is unknown."""
        known = [*self.seen, *([self.acknowledged] if self.acknowledged is not None else [])]
        missing = max(max(known) - self.events, 0) if known else None
        return None if missing == 0 and self.doubtful else missing


def recover(path: str | Path, target: str | Path) -> Recovery:
    """Save the longest sound beginning of a journal into a new one; the old is only read.

    Every event that is saved has the place, the content and the chain it was written with: nothing
    is guessed and nothing is put together.
    """
    source, goal = as_path(path), as_path(target, "target")
    if not source.is_file():
        raise JournalError(
            "there is no such file", field=str(source), fix="pass the path of a journal"
        )
    if goal.exists() or head_path(goal).exists():
        raise InputError("exists already", field=str(goal), fix="name a new file")
    head = read_head(source)
    events, seen, doubtful = _salvage(source, head)
    if not events:
        raise JournalError(
            "not even its first event could be saved", field=str(source), fix="go to a backup"
        )
    if head and 0 < head.n <= len(events) and events[head.n - 1].chain.hex() != head.chain:
        raise JournalError(
            f"event {head.n} is not the one that was acknowledged: its end was rewritten",
            field=str(source),
            fix="go to a backup; nothing here tells which of its events are true",
        )
    _write(goal, events)
    ended = {event.step for event in events if event.kind in (OBSERVED, EXPIRED)}
    return Recovery(
        path=goal,
        events=len(events),
        acknowledged=head.n if head else None,
        seen=frozenset(seen),
        pending=tuple(e.n for e in events if e.kind == DECIDED and e.n not in ended),
        doubtful=len(doubtful),
    )


def _write(goal: Path, events: list[Event]) -> None:
    journal = None
    try:
        journal = Writer(goal)
        with journal.writing():
            for event in events:
                journal.insert(event)
        journal.require_chain(1)
    except BaseException as err:
        if journal is None and not isinstance(err, UnwritableError):
            raise  # somebody else has made it meanwhile
        with suppress(sqlite3.Error, OSError):
            if journal is not None:
                journal.close()
        for file in (goal, head_path(goal)):
            with suppress(OSError):  # a disk that fails may not delete either
                file.unlink(missing_ok=True)
        raise
    journal.close()


# Candidates, and the chain through them.

_Candidates = dict[int, set[Event]]


class _Salvage(NamedTuple):
    """What is left of a journal."""

    sound: list[Event]
    """The longest beginning that is known to have been acknowledged, or at least committed."""
    seen: set[int]
    """Numbers of later rows that were committed, and are not sound or follow one that is not."""
    doubtful: set[int]
    """Numbers of later rows of which it is unknown whether they were committed."""


def _salvage(journal: Path, head: Head | None) -> _Salvage:
    """Return the longest sound beginning of a journal.

    What follows a damaged place of the log counts only if the head's own chain leads through it to
    the first event.
    """
    data = journal.read_bytes()
    log = _read_log(journal)
    pages = [_Frame(i // PAGE + 1, data[i : i + PAGE]) for i in range(0, len(data), PAGE)]
    _require_format(journal, [*pages[:1], *log.committed])
    committed = _candidates([*pages, *log.committed])
    every = committed
    if log.doubtful:
        every = _candidates([*pages, *log.doubtful, *log.committed], committed)
    sound = _chain_back(every, head) if head else []
    _chain_on(committed, sound)
    last = len(sound)
    seen = {n for n in committed if n > last}
    return _Salvage(sound, seen, {n for n in every if n > last} - seen)


def _chain_back(candidates: _Candidates, head: Head) -> list[Event]:
    """Return all events up to the one the head names; none if the chain does not lead back."""
    sound: list[Event] = []
    chain = bytes.fromhex(head.chain)
    for n in range(head.n, 0, -1):
        event = next((event for event in candidates.get(n, ()) if event.chain == chain), None)
        if event is None:
            return []
        earlier = {other.chain for other in candidates.get(n - 1, ())} if n > 1 else {ROOT}
        previous = next((value for value in earlier if event.chain_after(value) == chain), None)
        if previous is None:
            return []
        sound.append(event)
        chain = previous
    return sound[::-1]


def _chain_on(candidates: _Candidates, sound: list[Event]) -> None:
    """Append all events that follow in the chain."""
    chain = sound[-1].chain if sound else ROOT
    while True:
        following = candidates.get(len(sound) + 1, ())
        event = next((e for e in following if e.chain == e.chain_after(chain)), None)
        if event is None:
            return
        sound.append(event)
        chain = event.chain


# Rows of database pages.


def _require_format(journal: Path, frames: list[_Frame]) -> None:
    """Refuse what another version has written: its events may mean something else."""
    first = [frame.page for frame in frames if frame.number == 1 and len(frame.page) == PAGE]
    if not first:
        return
    form, application = (int.from_bytes(first[-1][i : i + 4], "big") for i in (60, 68))
    if application == APPLICATION_ID and (form > FORMAT or form == 1):
        raise other_format(journal, form)


def _candidates(frames: list[_Frame], known: _Candidates | None = None) -> _Candidates:
    """Return all rows of some pages that read as an event, by their number."""
    candidates: _Candidates = defaultdict(
        set, {n: set(events) for n, events in (known or {}).items()}
    )
    newest = {frame.number: frame.page for frame in frames}
    for number, page in frames:
        for event in _events_of(page, _FILE_HEADER if number == 1 else 0, newest):
            candidates[event.n].add(event)
    return candidates


def _events_of(page: bytes, start: int, newest: dict[int, bytes]) -> Iterator[Event]:
    """Give the rows of a page that read as an event."""
    if len(page) <= start + 8 or page[start] != _LEAF:
        return
    (count,) = struct.unpack(">H", page[start + 3 : start + 5])
    for i in range(count):
        pointer = start + 8 + 2 * i
        try:
            (cell,) = struct.unpack(">H", page[pointer : pointer + 2])
            event = _event_at(page, cell, newest)
        except (IndexError, KeyError, ValueError, struct.error):
            continue  # no row, or not a whole one
        if event is not None:
            yield event


def _event_at(page: bytes, offset: int, newest: dict[int, bytes]) -> Event | None:
    size, offset = _varint(page, offset)
    row_id, offset = _varint(page, offset)
    if size <= _MOST:
        record = page[offset : offset + size]
    else:
        local = _LEAST + (size - _LEAST) % (PAGE - 4)
        local = local if local <= _MOST else _LEAST
        following = int.from_bytes(page[offset + local : offset + local + 4], "big")
        record = page[offset : offset + local] + _overflow(newest, following, size - local)
    if len(record) != size:
        return None
    end, offset = _varint(record, 0)
    types = []
    while offset < end:
        serial_type, offset = _varint(record, offset)
        types.append(serial_type)
    if len(types) != len(Event._fields) or types[0] != 0:  # n is the row's id, not stored again
        return None
    values: list[Any] = []
    for serial_type in types:
        value, offset = _value(record, offset, serial_type)
        values.append(value)
    values[0] = row_id
    row = dict(zip(Event._fields, values, strict=True))
    if isinstance(row["reward"], int):  # whole numbers are stored as integers
        row["reward"] = float(row["reward"])
    return Event(**row) if isinstance(row["chain"], bytes) else None


def _overflow(newest: dict[int, bytes], number: int, size: int) -> bytes:
    """Return so many bytes from a chain of overflow pages."""
    parts: list[bytes] = []
    while size > 0:
        page = newest[number]  # a KeyError: it leads nowhere
        number = int.from_bytes(page[:4], "big")
        parts.append(page[4 : 4 + min(size, PAGE - 4)])
        size -= PAGE - 4
    return b"".join(parts)


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and where it ends."""
    number = 0
    for i in range(8):
        byte = data[offset + i]
        number = number << 7 | byte & 127
        if byte < 128:
            return number, offset + i + 1
    return number << 8 | data[offset + 8], offset + 9


def _value(record: bytes, offset: int, serial_type: int) -> tuple[Any, int]:
    """Return the value of a column, and where it ends."""
    if serial_type == 0:
        return None, offset
    if serial_type <= 6:
        end = offset + _WIDTHS[serial_type]
        return int.from_bytes(record[offset:end], "big", signed=True), end
    if serial_type == 7:
        return struct.unpack(">d", record[offset : offset + 8])[0], offset + 8
    if serial_type in (8, 9):
        return serial_type - 8, offset
    end = offset + (serial_type - 12) // 2
    data = record[offset:end]
    return (data.decode() if serial_type % 2 else data), end


# Frames of the write-ahead log.


class _Frame(NamedTuple):
    """A page of the journal as the file, or a frame of the log, has it."""

    number: int
    page: bytes


class _Log(NamedTuple):
    """The frames of a log, in their order; those of a transaction that never ended are left out."""

    committed: list[_Frame]
    doubtful: list[_Frame]


def _read_log(journal: Path) -> _Log:
    """Return the frames of the log beside a journal; none if there is no log."""
    file = beside(journal, "-wal")
    data = file.read_bytes() if file.is_file() else b""
    if len(data) < _LOG_HEADER:
        return _Log([], [])
    size = _FRAME_HEADER + PAGE
    offsets = range(_LOG_HEADER, len(data) - _FRAME_HEADER + 1, size)
    headers = [struct.unpack(">6I", data[i : i + _FRAME_HEADER]) for i in offsets]
    frames = [
        _Frame(header[0], data[i + _FRAME_HEADER : i + size])
        for i, header in zip(offsets, headers, strict=True)
    ]
    order = _BYTE_ORDERS.get(struct.unpack(">I", data[:4])[0])
    sums = _checksum(data[:24], (0, 0), order or ">")
    if order is None or sums != struct.unpack(">2I", data[24:32]):
        return _Log([], frames)
    salts = struct.unpack(">2I", data[16:24])
    committed = whole = 0
    for i, (_, pages_after_commit, *frame_salts_and_sums) in zip(offsets, headers, strict=True):
        sums = _checksum(data[i : i + 8], sums, order)
        sums = _checksum(frames[whole].page, sums, order)
        if tuple(frame_salts_and_sums) != (*salts, *sums):
            break
        whole += 1
        if pages_after_commit:
            committed = whole
    return _Log(frames[:committed], frames[whole:])


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """Return SQLite's checksum of some bytes that follow others."""
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data[: len(data) // 4 * 4])
    for even, odd in zip(words[::2], words[1::2], strict=False):
        first = first + even + second & 0xFFFFFFFF
        second = second + odd + first & 0xFFFFFFFF
    return first, second
