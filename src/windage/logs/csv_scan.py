"""A CSV file, byte by byte: where its records end, and what no reader should be given.

A record is a line, or several if a quoted cell holds line ends. The file is gone through once in
pieces of a few megabytes, so that an endless cell or a quote that is never closed is found before
anything large is read into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError

__all__ = ["Scan", "lines_of", "read_header", "scan"]

_PIECE = 1 << 22
_LONGEST = 1 << 20  # characters of a cell; states, actions and numbers are shorter
_NEWLINE, _QUOTE, _NUL = 10, 34, 0
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")


class Scan(NamedTuple):
    """What a look at the bytes tells."""

    records: int
    """How many there are, the header included."""
    quoted: bool
    """Whether there is a quote anywhere: then a record may be longer than a line."""
    beyond: NDArray[np.int64]
    """The records, from 0 on, that have more cells than the header."""


class _Chunk(NamedTuple):
    ends: NDArray[np.int64]
    """Where records end in the file: the places of their newlines."""
    lines: NDArray[np.int64]
    """How many lines there are up to each of them."""
    marks: NDArray[np.int64]
    """How many separators there are in the piece up to each of them, quoted ones not counted."""
    all_marks: int
    """How many there are in all of the piece."""


def read_header(path: Path) -> bytes:
    """Return the first record of a file, without its byte order mark and line end."""
    with path.open("rb") as file:
        start = file.read(_LONGEST)
    if start.startswith(_WIDE):
        raise InputError("is UTF-16", field=str(path), where="line 1", fix="save it as UTF-8")
    if not start.strip():
        raise InputError("is empty", field=str(path), fix="name a file with a header and lines")
    inside, text = False, start.removeprefix(_BOM)
    for place, byte in enumerate(text):
        if byte == _QUOTE:
            inside = not inside
        elif byte == _NEWLINE and not inside:
            text = text[:place].rstrip(b"\r")
            break
    if b"\r" in text.replace(b"\r\n", b""):
        raise InputError(
            "its lines end in CR alone",
            field=str(path),
            where="line 1",
            fix="save it with LF or CRLF line ends",
        )
    return text


def scan(path: Path, separator: str, width: int) -> Scan:
    """Look through a CSV file whose header has `width` cells; refuse what is none."""
    records, last, quoted, carried = 0, -1, [False], 0
    beyond = []
    for piece in _records(path, quoted, ord(separator)):
        cells = np.diff(piece.marks, prepend=-carried) + 1
        beyond.append(np.flatnonzero(cells > width) + records)
        records += piece.ends.size
        if piece.ends.size:
            last, carried = int(piece.ends[-1]), piece.all_marks - int(piece.marks[-1])
        else:
            carried += piece.all_marks
    if last + 1 < path.stat().st_size:  # the last line has no end
        beyond.append(np.array([records] if carried + 1 > width else [], dtype=np.int64))
        records += 1
    return Scan(records, quoted[0], np.concatenate(beyond))


def lines_of(path: Path, wanted: NDArray[np.int64], *, quoted: bool) -> NDArray[np.int64]:
    """Return the lines, from 1 on, on which records (from 0 on, rising) begin."""
    if not quoted:
        return wanted + 1
    found = np.empty(wanted.size, dtype=np.int64)
    done, record, lines = 0, 0, 0  # records before `record` end within `lines` lines
    for piece in _records(path, [False], 0):
        if done == wanted.size:
            break
        stop = int(np.searchsorted(wanted, record + piece.ends.size, side="right"))
        above = np.concatenate([[lines], piece.lines])
        found[done:stop] = above[wanted[done:stop] - record] + 1
        done = stop
        if piece.ends.size:
            record, lines = record + piece.ends.size, int(piece.lines[-1])
    found[done:] = lines + 1
    return found


def _records(path: Path, quoted: list[bool], mark: int) -> Iterator[_Chunk]:
    """Yield where records end; `quoted[0]` becomes True at the first quote."""
    inside, opened, lines, offset, begun, begun_line = 0, 0, 0, 0, 0, 0
    with path.open("rb") as file:
        while block := file.read(_PIECE):
            piece = np.frombuffer(block, dtype=np.uint8)
            newlines = np.flatnonzero(piece == _NEWLINE)
            if (piece == _NUL).any():
                line = lines + 1 + int((newlines < int(np.argmax(piece == _NUL))).sum())
                raise InputError(
                    "holds a NUL byte, so it is no text",
                    field=str(path),
                    where=f"line {line}",
                    fix="save it as a CSV file in UTF-8",
                )
            counted = lines + 1 + np.arange(newlines.size)
            quotes = np.flatnonzero(piece == _QUOTE)
            marks = np.flatnonzero(piece == mark) if mark else newlines[:0]
            if quotes.size or inside:
                quoted[0] = True
                whole = (np.searchsorted(quotes, newlines) + inside) % 2 == 0
                marks = marks[(np.searchsorted(quotes, marks) + inside) % 2 == 0]
                if quotes.size:
                    last = int(quotes[-1])
                    opened = lines + 1 + int((newlines < last).sum())
                    inside = (inside + quotes.size) % 2
                ends, of = newlines[whole] + offset, counted[whole]
            else:
                ends, of = newlines + offset, counted
            long = _first_long(begun, ends, offset + piece.size)
            if long is not None:
                above = lines + int((newlines < long - offset).sum())
                _require_short(path, long, begun_line if long < offset else above)
            if ends.size:
                begun, begun_line = int(ends[-1]) + 1, int(of[-1])
            yield _Chunk(ends, of, np.searchsorted(marks, ends - offset), marks.size)
            lines += newlines.size
            offset += piece.size
    if inside:
        raise InputError(
            "a quote is opened and never closed",
            field=str(path),
            where=f"line {opened}",
            fix='close it, or write "" for a quote inside a quoted cell',
        )


def _first_long(begun: int, ends: NDArray[np.int64], read: int) -> int | None:
    """Return where the first record begins that is long enough to hold an enormous cell."""
    starts = np.concatenate([[begun], ends + 1])
    long = np.flatnonzero(np.concatenate([ends, [read]]) - starts > _LONGEST)
    return int(starts[long[0]]) if long.size else None


def _require_short(path: Path, begin: int, lines: int) -> None:
    """Refuse an enormous cell of the record that begins there, after so many lines."""
    with path.open("rb") as file:
        column = _enormous(file, begin)
    if column is not None:
        raise InputError(
            f"a cell, or the rest of the line, has more than {_LONGEST:,} characters",
            field=str(path),
            where=f"line {lines + 1}, column {column + 1}{_named(read_header(path), column)}",
            fix="look for a quote that is not closed, or leave that column out",
        )


def _enormous(file: BinaryIO, begin: int) -> int | None:
    """Return the column, from 0 on, of an enormous cell near the start of a record, or None."""
    file.seek(begin)
    column, length, inside = 0, 0, False
    for byte in file.read(2 * _LONGEST):
        length += 1
        if length > _LONGEST:
            return column
        if byte == _QUOTE:
            inside = not inside
        elif not inside and byte in b",;\t|":
            column, length = column + 1, 0
        elif not inside and byte == _NEWLINE:
            return None
    return column  # so many cells that something is wrong with the line


def _named(header: bytes, column: int) -> str:
    names = header.decode("utf-8", "replace").split(",")
    return f" ({names[column].strip()!r})" if column < len(names) else ""
