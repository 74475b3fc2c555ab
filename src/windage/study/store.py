"""The folder of a study: a manifest, one file a result, and times apart from them.

    manifest.json          the study, versions, and the results it asks for, in order
    runs/<key>.parquet     one run
    oracles/<key>.parquet  the optimal gains of one environment
    timings.jsonl          when, where and how long: nothing else holds that
    .lock                  held while somebody writes

Files appear whole or not at all, and are named by what determines their content. So it does not
matter who wrote them, in which order, or how often somebody was killed over it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TextIO

import msgspec
import polars as pl

from windage.errors import InputError, StateError
from windage.study.kinds import FORMAT, Player, World
from windage.study.play import Outcome
from windage.study.tables import ORACLE, RUN, read
from windage.writing import as_path, make_folder, target_of, unreadable, unwritable, write_whole

__all__ = [
    "Asked",
    "Kind",
    "Manifest",
    "OtherFormatError",
    "Store",
    "version_changes",
]

Kind = Literal["runs", "oracles"]
"""Of a result: the name of the folder it is in."""

_MANIFEST = "manifest.json"
_KNOWN = (_MANIFEST, "runs", "oracles", "timings.jsonl", ".lock")
_RESULT = re.compile(r"[0-9a-f]{32}\.parquet")


class Asked(msgspec.Struct, frozen=True):
    """One run of a study: the key of its result, and what it is called here.

    Attributes
    ----------
    key
        Its file is `runs/<key>.parquet`.
    environment, agent
        Their labels.
    world, player
        Their places in the lists of the manifest, where all their parameters are.
    oracle
        The key of the oracle it is measured by; None: it is measured by its reward only.
    """

    key: str
    environment: str
    agent: str
    horizon: int
    seed: int
    world: int
    player: int
    oracle: str | None


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a folder of results is about.

    Attributes
    ----------
    windage_study
        The format.
    name
        Of the study.
    hash
        Of all that is asked for, labels included.
    study
        The study as it was written.
    worlds, players
        Environments and agents with every parameter, as runs are made from them.
    versions
        Of what made the results, and the commit if it is known.
    before
        Versions of those who ran parts of it earlier, if they had others.
    runs
        The runs that are asked for, in order.
    checksum
        Of all the rest; empty if it was written before there were any.
    """

    windage_study: int
    name: str
    hash: str
    study: dict[str, Any]
    worlds: list[World]
    players: list[Player]
    versions: dict[str, str]
    before: list[dict[str, str]]
    runs: list[Asked]
    checksum: str = ""

    def run_keys(self) -> list[str]:
        """Return the keys of the runs in order; one that two labels share is there once."""
        return list(dict.fromkeys(one.key for one in self.runs))

    def oracle_keys(self) -> list[str]:
        """Return the keys of the oracles that runs are measured by, in order."""
        return list(dict.fromkeys(one.oracle for one in self.runs if one.oracle is not None))


class Store:
    """A folder of results; `opened` makes one, `found` looks at one that is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def found(cls, folder: str | Path) -> Store:
        """Return the store of a folder that holds a study."""
        store = cls(as_path(folder, "folder"))
        if not store.has_manifest():
            why = "holds no study" if store.folder.is_dir() else "is no folder of results"
            raise StateError(
                why, field=str(folder), fix="name the folder that `windage run -o` wrote"
            )
        return store

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: str | Path) -> Iterator[Store]:
        """Make the folder if there is none, and keep others from writing while it is in use."""
        store = cls(as_path(folder, "folder"))
        store._require_own()
        for name in ("runs", "oracles"):
            make_folder(store.folder / name)
        try:
            lock = (store.folder / ".lock").open("a")
        except OSError as err:
            raise unwritable(store.folder, err) from None
        with lock, _taken(lock, store.folder):
            for left in store._left_behind():
                _take_away(left)
            yield store

    def has_manifest(self) -> bool:
        """Return whether there is a manifest, whatever it says."""
        return (self.folder / _MANIFEST).is_file()

    def manifest(self) -> Manifest:
        """Return the manifest, or refuse one that cannot be read."""
        path = self.folder / _MANIFEST
        try:
            data = path.read_bytes()
            version = msgspec.json.decode(data, type=_Version).windage_study
            if version != FORMAT:
                raise OtherFormatError(
                    f"has the format {version}, this version reads {FORMAT}",
                    field=str(path),
                    fix="use the version of windage that wrote it, or run the study again",
                )
            found = msgspec.json.decode(data, type=Manifest)
            if found.checksum not in ("", _checksum(found)):
                raise msgspec.DecodeError("its checksum is wrong")
            return found
        except OSError as err:
            if not isinstance(err, FileNotFoundError):
                raise unreadable(path, err) from None
            raise StateError("is missing", field=str(path), fix="run the study again") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as err:
            raise StateError(
                f"cannot be read ({err})",
                field=str(path),
                fix="run the study again: results that are there are kept",
            ) from None

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, unless it is there already."""
        whole = msgspec.structs.replace(manifest, checksum=_checksum(manifest))
        data = msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"
        path = self.folder / _MANIFEST
        if not path.is_file() or path.read_bytes() != data:
            write_whole(path, lambda file: file.write(data))

    def run(self, key: str) -> pl.DataFrame | None:
        """Return a run; None if it is not there."""
        return read(self.path("runs", key), RUN)

    def oracle(self, key: str) -> pl.DataFrame | None:
        """Return the oracle of an environment; None if it is not there."""
        return read(self.path("oracles", key), ORACLE)

    def path(self, kind: Kind, key: str) -> Path:
        """Return where a result is, or would be."""
        return self.folder / kind / f"{key}.parquet"

    def hash_of(self, manifest: Manifest) -> str:
        """Return a hash of all result files a study asks for, in its order."""
        digest = hashlib.sha256()
        paths = [self.path("oracles", key) for key in manifest.oracle_keys()]
        for path in (*paths, *(self.path("runs", key) for key in manifest.run_keys())):
            digest.update(path.stem.encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:32]

    def keep(self, kind: Kind, key: str, outcome: Outcome, now: str) -> None:
        """Write a result, and then when and where it was made."""
        write_whole(self.path(kind, key), lambda file: file.write(outcome.data))
        self.note(
            {
                "kind": kind.removesuffix("s"),
                "key": key,
                "finished": now,
                "seconds": round(outcome.seconds, 6),
                "cpu": round(outcome.cpu, 6),
                "host": outcome.host,
                "pid": outcome.pid,
            }
        )

    def note(self, entry: dict[str, Any]) -> None:
        """Add a line to `timings.jsonl`; a line that was cut short is left as it is."""
        path = self.folder / "timings.jsonl"
        try:
            with path.open("ab+") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - 1))
                torn = file.read(1) not in (b"", b"\n")
                file.write((b"\n" if torn else b"") + json.dumps(entry).encode() + b"\n")
        except OSError as err:
            raise unwritable(path, err) from None

    def remove(self, kind: Kind, key: str) -> None:
        """Take away a damaged file."""
        _take_away(self.path(kind, key))

    def present(self, kind: Kind) -> set[str]:
        """Return the keys of the files that are there."""
        return {path.stem for path in (self.folder / kind).glob("*.parquet")}

    def _left_behind(self) -> Iterator[Path]:
        """Yield what somebody who was killed had begun to write, and no file of the user's."""
        for path in self.folder.glob("*.tmp"):
            if target_of(path) == _MANIFEST:
                yield path
        for kind in ("runs", "oracles"):
            for path in (self.folder / kind).glob("*.tmp"):
                if _RESULT.fullmatch(target_of(path) or ""):
                    yield path

    def _require_own(self) -> None:
        """Refuse a folder that holds something else: nothing of it could be told from results."""
        folder = self.folder
        try:
            if folder.exists() and not folder.is_dir():
                raise InputError("is a file", field=str(folder), fix="name a folder")
            names = sorted(folder.iterdir()) if folder.is_dir() else []
        except OSError as err:
            raise unreadable(folder, err) from None
        strange = [
            path.name for path in names if path.name not in _KNOWN and target_of(path) != _MANIFEST
        ]
        if strange and not (folder / _MANIFEST).is_file():
            raise InputError(
                f"holds other things ({', '.join(strange[:3])}) and no study",
                field=str(folder),
                fix="name a new folder",
            )


def version_changes(
    first: Mapping[str, str], second: Mapping[str, str]
) -> tuple[tuple[str, str, str], ...]:
    """Return the versions that differ: name, first, second; a dash where one is not known.

    >>> version_changes({"numpy": "2.0"}, {"numpy": "2.1", "commit": "1f3a"})
    (('commit', '-', '1f3a'), ('numpy', '2.0', '2.1'))
    """
    return tuple(
        (name, first.get(name, "-"), second.get(name, "-"))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    )


class OtherFormatError(StateError):
    """The results were written by a version of windage that writes them otherwise."""


class _Version(msgspec.Struct):
    windage_study: int


def _checksum(manifest: Manifest) -> str:
    """Return a hash of all a manifest says but this: a flipped bit in a label is still a label."""
    bare = msgspec.structs.replace(manifest, checksum="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()[:32]


def _take_away(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as err:
        raise unwritable(path, err) from None


@contextlib.contextmanager
def _taken(lock: TextIO, folder: Path) -> Iterator[None]:
    """Lock the folder for this process; the system takes the lock back when it dies."""
    try:
        import fcntl
    except ImportError:  # no such locks here: two at once would do work twice, and lose nothing
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            "another process is running a study in it",
            field=str(folder),
            fix="wait for it, or name another folder",
        ) from None
    try:
        yield
    finally:  # closing is not enough: forked workers of an executor that stays open hold it too
        fcntl.flock(lock, fcntl.LOCK_UN)
