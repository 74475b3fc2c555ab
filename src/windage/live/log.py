"""The log of a journal without SQLite: which of its frames were committed, and which may not be.

The layout is that of SQLite's write-ahead log: a head of 32 bytes, then frames, each a head of 24
bytes and a page. A frame belongs to the log if it carries the two salts of the log's head and a
checksum over all frames up to it; what SQLite takes ends at the last such frame that marks a
commit. A frame after a damaged one may have been committed, or be left over from a transaction
that was taken back: the log alone cannot tell.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from windage.live.head import beside

__all__ = ["Frame", "Log", "read_log"]

_HEAD, _FRAME_HEAD = 32, 24
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # the order of bytes in the sums

Sums = tuple[int, int]


class Frame(NamedTuple):
    """A page of the journal as the log has it."""

    number: int
    page: bytes


class Log(NamedTuple):
    """The frames of a log, in their order; those of a transaction that never ended are left out."""

    committed: list[Frame]
    doubtful: list[Frame]


def read_log(journal: Path, page_size: int) -> Log:
    """Return the frames of the log beside a journal; none if there is no log."""
    log = beside(journal, "-wal")
    data = log.read_bytes() if log.is_file() else b""
    size = _FRAME_HEAD + page_size
    heads = [
        (place, struct.unpack(">4I", data[place : place + 16]))
        for place in range(_HEAD, len(data) - _FRAME_HEAD + 1, size)
    ]
    frames = [
        Frame(head[0], data[place + _FRAME_HEAD : place + size])
        for place, head in heads
    ]  # fmt: skip
    if len(data) < _HEAD:
        return Log([], [])
    order = _MAGIC.get(struct.unpack(">I", data[:4])[0])
    sums = _summed(data[:24], (0, 0), order or ">")
    if order is None or sums != struct.unpack(">2I", data[24:32]):
        return Log([], frames)
    salts = struct.unpack(">2I", data[16:24])
    committed = whole = 0
    for place, (_, pages, *theirs) in heads:
        sums = _summed(data[place : place + 8], sums, order)
        sums = _summed(frames[whole].page, sums, order)
        if tuple(theirs) != salts or sums != struct.unpack(">2I", data[place + 16 : place + 24]):
            break
        whole += 1
        if pages:
            committed = whole
    return Log(frames[:committed], frames[whole:])


def _summed(data: bytes, sums: Sums, order: str) -> Sums:
    """Return SQLite's checksum of some bytes that follow others."""
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data[: len(data) // 4 * 4])
    for first, second in zip(words[::2], words[1::2], strict=False):
        one = one + first + two & 0xFFFFFFFF
        two = two + second + one & 0xFFFFFFFF
    return one, two
