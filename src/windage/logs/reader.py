"""Past data from a CSV or Parquet file, or from arrays; unusable lines are named.

Cells are read as text a few hundred thousand lines at a time and turned into numbers of 16 bits, so
a file larger than memory allows for its text still fits.

A CSV file is first scanned byte by byte: a record is a line, or several if a quoted cell holds line
ends. The file is gone through in pieces of a few megabytes, so that an endless cell or a quote that
is never closed is found before anything large is read into memory.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.logs.columns import MOST, Amounts, Clock, Labels
from windage.validation import as_choice, as_name, require_memory, shown

__all__ = [
    "Reason",
    "Rows",
    "Scan",
    "Unusable",
    "lines_of",
    "read_header",
    "read_rows",
    "require_file",
    "rows_of",
    "scan",
]

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


_LARGEST = 1e100
"""The largest reward, up to its sign: squares of differences and their sums stay finite."""

_BATCH = 1 << 18
_KEPT = 1000  # unusable lines that are named one by one
_A_ROW = 16.0  # bytes
_PARQUET = (".parquet", ".pq")

_ROLES = ("t", "entity", "state", "action", "reward", "next_state")
_NEEDED = ("state", "action", "reward")

_SEPARATORS = ",;\t|"


class Unusable(NamedTuple):
    """A line that cannot be used, and why."""

    line: int
    column: str
    why: str


class Reason(NamedTuple):
    """A reason why lines cannot be used, and the first of them."""

    lines: int
    first: Unusable

    def __str__(self) -> str:
        return f"{self.lines:,} like line {self.first.line}, {self.first.column}: {self.first.why}"


class Rows(NamedTuple):
    """The usable steps of a log, in its order, by numbers of states and actions."""

    states: NDArray[np.uint16]
    actions: NDArray[np.uint16]
    rewards: NDArray[np.float64]
    nexts: NDArray[np.uint16]
    state_labels: list[int | str]
    action_labels: list[int | str]
    clock: Clock
    lines: int
    """How many lines were read, the header not counted."""
    unusable: list[Unusable]
    """The first of the lines that could not be used."""
    reasons: list[Reason]
    """Why lines cannot be used, the most frequent reason first."""
    notes: list[str]
    entities: NDArray[np.uint16] | None = None
    """The entity of each step, if there are several; steps are in the order of time."""


def read_rows(
    path: Path,
    columns: Mapping[str, str] | None,
    separator: str | None,
    decimal: str | None,
    progress: Callable[[int, int], None] | None,
) -> Rows:
    """Return the usable rows of a file."""
    require_file(path)
    amounts = Amounts(decimal)
    if path.suffix.lower() in _PARQUET:
        return _read(path, _parquet(path, columns), amounts, progress)
    return _read(path, _csv(path, columns, separator), amounts, progress)


def rows_of(
    states: ArrayLike, actions: ArrayLike, rewards: ArrayLike, next_states: ArrayLike
) -> Rows:
    """Return four columns in memory as the steps of a log; no entry may be missing."""
    state_names, action_names = Labels("states"), Labels("actions")
    codes = [
        _encoded(states, "states", state_names),
        _encoded(actions, "actions", action_names),
        _encoded(next_states, "next_states", state_names),
    ]
    paid = np.array(rewards, dtype=np.float64)
    sizes = [*(code.size for code in codes), paid.size]
    if len(set(sizes)) > 1 or paid.ndim != 1 or not paid.size:
        raise InputError(
            f"{sizes} entries",
            field="states, actions, next_states and rewards",
            fix="pass four columns of one length, at least one entry each",
        )
    if not np.isfinite(paid).all():
        place = int(np.argmin(np.isfinite(paid)))
        raise InputError(f"{paid[place]} is not a number", field=f"rewards[{place}]", fix="mend it")
    if (np.abs(paid) > _LARGEST).any():
        place = int(np.argmax(np.abs(paid) > _LARGEST))
        raise InputError(
            f"{paid[place]:g} is beyond {_LARGEST:g}, too large to compute with",
            field=f"rewards[{place}]",
            fix="pass rewards in larger units",
        )
    clock = Clock()
    clock.add(np.arange(1, paid.size + 1))
    return Rows(
        codes[0], codes[1], paid, codes[2], state_names.names(), action_names.names(), clock,
        paid.size, [], [], [],
    )  # fmt: skip


def _encoded(values: Any, field: str, labels: Labels) -> NDArray[np.uint16]:
    cells = pl.Series(np.asarray(values).tolist(), strict=False)
    codes = labels.encode(cells)
    if (codes < 0).any():
        place = int(np.argmax(codes < 0))
        raise InputError(
            f"{shown(cells[place])} is no name, or not of the kind of the others",
            field=f"{field}[{place}]",
            fix="pass integers, or words",
        )
    return codes.astype(np.uint16)


def require_file(path: Path) -> None:
    """Raise if there is no file to read."""
    if not path.is_file():
        why = "it is a folder" if path.is_dir() else "there is no such file"
        raise InputError(
            f"cannot be read ({why})", field=str(path), fix="name a .csv or .parquet file"
        )


class _Source(NamedTuple):
    """Where cells come from."""

    frame: pl.LazyFrame
    columns: _Columns
    total: int
    quoted: bool = False
    header: int = 0
    beyond: NDArray[np.int64] = np.empty(0, dtype=np.int64)


def _read(
    path: Path, source: _Source, amounts: Amounts, progress: Callable[[int, int], None] | None
) -> Rows:
    reader = _Reader(str(path), source, amounts)
    skip = source.header
    try:
        for batch in source.frame.collect_batches(chunk_size=_BATCH, engine="streaming"):
            reader.take(batch.filter(pl.col("record") >= skip) if skip else batch)
            skip = 0
            if progress is not None:
                progress(reader.read, source.total)
    except (pl.exceptions.PolarsError, OSError) as err:
        raise _unreadable(path, err) from None
    return reader.finish(path, source.quoted)


def _csv(path: Path, columns: Mapping[str, str] | None, separator: str | None) -> _Source:
    names, mark = _split_header(read_header(path), str(path), separator)
    found = _find_columns(names, str(path), mark, columns)
    seen = scan(path, mark, len(names))
    frame = pl.scan_csv(
        path,
        has_header=False,  # the header is record 0: records are counted as the scan counts them
        schema={f"c{k}": pl.String for k in range(len(names))},
        separator=mark,
        encoding="utf8-lossy",
        truncate_ragged_lines=True,
        row_index_name="record",
        glob=False,
    )
    cells = [pl.col(f"c{k}").str.strip_chars().alias(role) for role, k in found.place.items()]
    picked = frame.select("record", *cells)
    return _Source(picked, found, seen.records - 1, seen.quoted, header=1, beyond=seen.beyond)


def _parquet(path: Path, columns: Mapping[str, str] | None) -> _Source:
    try:
        frame = pl.scan_parquet(path, glob=False)
        names = frame.collect_schema().names()
        total = int(frame.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError) as err:
        raise _unreadable(path, err) from None
    found = _find_columns(names, str(path), ",", columns)
    source = frame.select(
        **{role: pl.col(names[k]) for role, k in found.place.items()}
    ).with_row_index("record")
    kinds = source.collect_schema()
    for role in found.place:
        if not (kinds[role].is_numeric() or kinds[role].is_temporal()) and kinds[role] not in (
            pl.String, pl.Boolean, pl.Categorical,
        ):  # fmt: skip
            raise InputError(
                f"holds {kinds[role]} values",
                field=str(path),
                where=f"column {found.name(role)!r}",
                fix="store numbers, text or dates in it",
            )
    text = [
        r for r in ("state", "action", "next_state") if r in kinds and not kinds[r].is_numeric()
    ]
    source = source.with_columns(pl.col(text).cast(pl.String)) if text else source
    return _Source(source, found, total)


def _unreadable(path: str | Path, err: Exception) -> InputError:
    said = " ".join(str(err).split())
    return InputError(
        f"cannot be read ({shown(said)[1:-1]})", field=str(path), fix="write the file again"
    )


class _Reader:
    """Turns batches of cells into arrays."""

    def __init__(self, path: str, source: _Source, amounts: Amounts) -> None:
        total, place = source.total, source.columns.place
        self.many = "entity" in place
        size = _A_ROW + 10 * self.many
        require_memory(size * total, path, fix="inspect a part of the log at a time")
        self.path, self.columns, self.read, self.kept = path, source.columns, 0, 0
        self.states, self.actions = np.empty(total, np.uint16), np.empty(total, np.uint16)
        self.nexts, self.rewards = np.empty(total, np.uint16), np.empty(total)
        self.labels = {"state": Labels(f"{path}, states"), "action": Labels(f"{path}, actions")}
        self.clock, self.beyond, self.amounts = Clock(), source.beyond, amounts
        self.bad: list[tuple[int, str, str]] = []  # record, role, why
        self.reasons: dict[tuple[str, str], tuple[int, int, str]] = {}  # lines; record, why of one
        self.chained = "next_state" in place
        if self.many:
            self.labels["entity"] = Labels(f"{path}, entities")
            self.entities, self.times = np.empty(total, np.uint16), np.empty(total, np.int64)
            self.last = np.full(MOST + 1, _FLOOR)  # the time of each entity's last line

    def take(self, batch: pl.DataFrame) -> None:
        """Read a batch of cells."""
        records, n = batch["record"].to_numpy().astype(np.int64), batch.height
        self.read += n
        if not n:
            return
        fine = np.ones(n, dtype=bool)
        if self.beyond.size:
            self._drop(fine, np.isin(records, self.beyond), records, "state", None, _BEYOND)
        entities = self._label(batch, fine, records, "entity", "entity") if self.many else None
        states = self._label(batch, fine, records, "state", "state")
        actions = self._label(batch, fine, records, "action", "action")
        nexts = self._label(batch, fine, records, "next_state", "state") if self.chained else states
        cells = batch["reward"]
        rewards = self.amounts.parse(cells).fill_null(np.nan).to_numpy()
        wrong = ~np.isfinite(rewards)
        self._drop(fine, wrong, records, "reward", cells, self.amounts.wrong)
        large = f"is beyond {_LARGEST:g}, too large to compute with"
        self._drop(fine, np.abs(rewards) > _LARGEST, records, "reward", cells, large)
        times = self._times(batch, fine, records, entities)
        kept = np.flatnonzero(fine)
        here = slice(self.kept, self.kept + kept.size)
        self.states[here], self.actions[here] = states[kept], actions[kept]
        self.nexts[here], self.rewards[here] = nexts[kept], rewards[kept]
        if entities is None:
            self.clock.add(times[kept])
        else:
            self.entities[here], self.times[here] = entities[kept], times[kept]
        self.kept += kept.size

    def _label(
        self, batch: pl.DataFrame, fine: NDArray[np.bool_], records: NDArray[np.int64],
        role: str, kind: str,
    ) -> NDArray[np.int32]:  # fmt: skip
        cells = batch[role]
        if cells.dtype == pl.String:
            cells = cells.set(cells.str.contains("\ufffd", literal=True).fill_null(False), None)
        codes = self.labels[kind].encode(cells)
        self._drop(fine, codes < 0, records, role, batch[role], "is not an integer, as others are")
        return codes

    def _times(
        self, batch: pl.DataFrame, fine: NDArray[np.bool_], records: NDArray[np.int64],
        entities: NDArray[np.int32] | None,
    ) -> NDArray[np.int64]:  # fmt: skip
        cells = batch["t"] if "t" in self.columns.place else None
        if cells is None:
            times = records
        else:
            found = self.clock.parse(cells)
            missing = found.is_null().to_numpy()
            self._drop(fine, missing, records, "t", cells, "is no time, as others are")
            times = found.fill_null(0).to_numpy().astype(np.int64)
        if entities is not None:
            return self._of_entities(cells, times, fine, records, entities)
        if cells is not None:
            late = fine & ~self.clock.in_order(times, fine)
            self._drop(fine, late, records, "t", cells, "does not come after the lines before")
        return times

    def _of_entities(
        self, cells: pl.Series | None, times: NDArray[np.int64], fine: NDArray[np.bool_],
        records: NDArray[np.int64], entities: NDArray[np.int32],
    ) -> NDArray[np.int64]:  # fmt: skip
        """Return times that rise with the lines of each entity; lines are counted if none is given.

        The clock of the log is set when all are known.
        """
        here = np.where(fine, entities, MOST)
        table = pl.DataFrame({"entity": here, "fine": fine, "time": np.where(fine, times, _FLOOR)})
        if cells is None:
            counted = table.select(pl.col("fine").cum_sum().over("entity"))["fine"].to_numpy()
            times = counted + np.maximum(self.last[here], 0)
        else:
            tops = pl.col("time").cum_max().shift(1, fill_value=_FLOOR).over("entity")
            before = np.maximum(table.select(tops)["time"].to_numpy(), self.last[here])
            why = "does not come after the lines before of its entity"
            self._drop(fine, fine & (times <= before), records, "t", cells, why)
        self.clock.rows += len(records)  # the form of times is settled
        np.maximum.at(self.last, here[fine], times[fine])
        return times

    def _drop(
        self, fine: NDArray[np.bool_], wrong: NDArray[np.bool_], records: NDArray[np.int64],
        role: str, cells: pl.Series | None, why: str,
    ) -> None:  # fmt: skip
        """Leave out lines, name the first of them and count those of each reason."""
        new = np.flatnonzero(fine & wrong)
        fine[new] = False
        if not new.size:
            return
        kinds = np.zeros(new.size, dtype=np.int64)
        if cells is not None:
            some = cells.gather(new)
            kinds += some.is_null().to_numpy()
            if some.dtype == pl.String:
                kinds += (some == "").fill_null(False).to_numpy()
                kinds += 2 * some.str.contains("\ufffd", literal=True).fill_null(False).to_numpy()

        def said(k: int) -> str:
            kind = kinds[k]
            if cells is None or kind == 1:
                return why if cells is None else "it is empty"
            return f"{shown(cells[int(new[k])])} {'is not UTF-8' if kind == 2 else why}"

        for kind in np.unique(kinds).tolist():
            k = int(np.argmax(kinds == kind))
            count, record, text = self.reasons.get((role, f"{kind}{why}"), (0, -1, ""))
            first = (int(records[new[k]]), said(k)) if record < 0 else (record, text)
            self.reasons[role, f"{kind}{why}"] = (count + int((kinds == kind).sum()), *first)
        for k in range(min(new.size, max(0, _KEPT - len(self.bad)))):
            self.bad.append((int(records[new[k]]), role, said(k)))

    def finish(self, path: Path, quoted: bool) -> Rows:
        """Return what was read."""
        if not self.read:
            raise InputError(
                "holds no lines, only the names of columns",
                field=self.path,
                fix="pass a log with a line for every step",
            )
        unusable, reasons = self._named(path, quoted)
        bad = sum(reason.lines for reason in reasons)
        if self.kept == 0 or bad > self.kept:
            first = reasons[0].first
            late = first.column == self._column("t")
            raise InputError(
                f"{bad:,} of {self.read:,} lines cannot be used: {'; '.join(map(str, reasons))}",
                field=self.path,
                where=f"line {first.line}, column {first.column!r}",
                fix="mend them, or say which columns to use" + (_SORT if late else ""),
            )
        notes = [note] if (note := self.amounts.note()) else []
        if "t" not in self.columns.place:
            notes.append("There is no column t: the lines are taken to be in order, without gaps.")
        columns, entities = self._in_order(notes)
        if not columns[0].size:
            raise InputError("holds a single step", field=self.path, fix="pass a longer log")
        names = self.labels["state"].names(), self.labels["action"].names()
        return Rows(*columns, *names, self.clock, self.read, unusable, reasons, notes, entities)

    def _in_order(self, notes: list[str]) -> tuple[_Steps, NDArray[np.uint16] | None]:
        """Return states, actions, rewards and next states in the order of time, and the entities.

        Without a column of next states they are those of the entity's next line.
        """
        n, entities = self.kept, self.entities[: self.kept] if self.many else None
        states, nexts = self.states[:n], self.nexts[:n]
        if not self.chained:
            whose = "" if entities is None else " of the same entity"
            notes.append(
                f"There is no column next_state: the state of the next line{whose} is taken for "
                "it, and the last line is left out."
            )
        if entities is None:
            if not self.chained:
                nexts[:-1] = states[1:]
                n -= 1
            return (states[:n], self.actions[:n], self.rewards[:n], nexts[:n]), None
        known = self.labels["entity"].names()
        notes.append(
            f"The steps of {len(known):,} entities are put in the order of time and taken for "
            "those of one environment."
        )
        order = np.arange(n)
        if not self.chained:
            chain = np.argsort(entities, kind="stable")
            follows = entities[chain[1:]] == entities[chain[:-1]]
            nexts[chain[:-1][follows]] = states[chain[1:][follows]]
            order = np.sort(chain[:-1][follows])
        order = order[np.argsort(self.times[order], kind="stable")]
        self.clock.rows = 0
        self.clock.add(self.times[order])
        steps = states[order], self.actions[order], self.rewards[order], nexts[order]
        return steps, entities[order]

    def _named(self, path: Path, quoted: bool) -> tuple[list[Unusable], list[Reason]]:
        """Return the first unusable lines, and the reasons, the most frequent first."""
        firsts = [(record, role, why) for (role, _), (_, record, why) in self.reasons.items()]
        bad = sorted({*self.bad, *firsts})
        records = np.array([record for record, _, _ in bad], dtype=np.int64)
        lines = records + 1
        if path.suffix.lower() not in _PARQUET:
            lines = lines_of(path, records, quoted=quoted)
        named = {
            one: Unusable(int(line), self._column(one[1]), one[2])
            for line, one in zip(lines, bad, strict=True)
        }
        counts = [count for count, _, _ in self.reasons.values()]
        reasons = [Reason(n, named[one]) for n, one in zip(counts, firsts, strict=True)]
        reasons.sort(key=lambda reason: (-reason.lines, reason.first.line))
        return [named[one] for one in sorted(self.bad)], reasons

    def _column(self, role: str) -> str:
        return self.columns.name(role) if role in self.columns.place else role


_BEYOND = "there are more cells than the header names"


_SORT = (
    "; sort the lines by t or, if they belong to several entities, name their column: "
    "--column entity=NAME"
)
_FLOOR = np.iinfo(np.int64).min

_Steps = tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.float64], NDArray[np.uint16]]


class _Columns(NamedTuple):
    """The place of each role among the columns of a file."""

    names: tuple[str, ...]
    place: dict[str, int]
    separator: str

    def name(self, role: str) -> str:
        """Return the name of the column of a role."""
        return self.names[self.place[role]]


def _split_header(header: bytes, path: str, separator: str | None) -> tuple[list[str], str]:
    """Return the names in the header of a CSV file, and what separates them."""
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError as err:
        raise InputError(
            f"the header is not UTF-8 ({err.reason} at byte {err.start})",
            field=path,
            where="line 1",
            fix="save the file as UTF-8",
        ) from None
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise InputError(
            f"{separator!r} separates nothing", field="separator", fix="pass one character"
        )
    mark = separator or max(_SEPARATORS, key=text.count)
    try:
        names = next(csv.reader([" ".join(text.splitlines())], delimiter=mark), [])
    except csv.Error as err:
        raise InputError(
            f"the header cannot be read ({err})", field=path, where="line 1", fix="mend it"
        ) from None
    return [name.strip() for name in names], mark


def _find_columns(
    names: Sequence[str], path: str, separator: str, mapping: Mapping[str, str] | None
) -> _Columns:
    """Return the places of the columns of a log; raise if one is missing or there twice."""
    wanted = {role: role for role in _ROLES}
    for role, name in (mapping or {}).items():
        wanted[as_choice(role, "columns", _ROLES)] = as_name(name, f"columns[{role!r}]")
    place: dict[str, int] = {}
    for role, name in wanted.items():
        places = [k for k, other in enumerate(names) if other == name]
        if len(places) > 1:
            raise InputError(
                f"the column {name!r} is there {len(places)} times, as columns "
                f"{' and '.join(str(k + 1) for k in places)}",
                field=path,
                where="line 1",
                fix="rename one of them",
            )
        if places:
            place[role] = places[0]
        elif role in _NEEDED or role in (mapping or {}):
            raise _missing_column(role, name, names, path, separator)
    if len({place[role] for role in place}) < len(place):
        raise InputError(
            f"{shown(mapping)} names one column twice", field="columns", fix="name each once"
        )
    return _Columns(tuple(names), place, separator)


def _missing_column(
    role: str, name: str, names: Sequence[str], path: str, separator: str
) -> InputError:
    near = difflib.get_close_matches(name.lower(), [one.lower() for one in names], n=1)
    match = next((one for one in names if near and one.lower() == near[0]), None)
    listed = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    hint = f"{role}={match}" if match else f"{role}=NAME"
    marks = "" if separator == "," else f", separated by {separator!r}"
    return InputError(
        f"there is no column {name!r} among {listed or 'none'}{marks}",
        field=path,
        where="line 1",
        fix=f"say which one it is, with --column {hint} or columns={{{role!r}: ...}}",
    )
