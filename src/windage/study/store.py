"""The folder of a study: a manifest, one file per result, and times apart from them.

    manifest.json          the study, versions, and the results it asks for, in order
    runs/<key>.parquet     one run
    oracles/<key>.parquet  the optimal gains of one environment
    timings.jsonl          when, where and how long: nothing else holds that
    tuning/                the study that parameters were picked from, a folder like this one
    .lock                  held while a process writes

Files appear whole or not at all, and are named by what determines their content. So it does not
matter which process wrote them, in which order, or how often one was killed meanwhile. The manifest
is JSON that people may read, with a checksum of all its content: a flipped bit in a label would
still be a label.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import msgspec
import polars as pl
from msgspec import Meta

from windage.atomic_io import (
    as_path,
    make_folder,
    require_no_link,
    target_of,
    unreadable,
    unwritable,
    write_whole,
)
from windage.errors import InputError, StateError
from windage.study import schema
from windage.study.configs import FORMAT, AgentConfig, EnvironmentConfig
from windage.study.task import Outcome

__all__ = [
    "Kind",
    "Manifest",
    "ManifestRun",
    "OtherFormatError",
    "Store",
    "load_oracles",
    "load_results",
    "version_changes",
]

_Key = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]  # it names a file


class ManifestRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run of a study: the key of its result, and its labels.

    Attributes
    ----------
    key
        Its file is `runs/<key>.parquet`.
    environment, agent
        Their labels.
    environment_index, agent_index
        Their places in the lists of the manifest, where all their parameters are.
    oracle
        The key of the oracle it is measured by; None: it is measured by its reward only.
    tuned
        Which parameters were picked for it on other seeds, and on which; empty if none were.
    """

    key: _Key
    environment: str
    agent: str
    horizon: Annotated[int, Meta(ge=1)]
    seed: Annotated[int, Meta(ge=0)]
    environment_index: Annotated[int, Meta(ge=0)] = msgspec.field(name="world")
    agent_index: Annotated[int, Meta(ge=0)] = msgspec.field(name="player")
    oracle: _Key | None
    tuned: str = ""

    def __str__(self) -> str:
        return f"{self.agent} on {self.environment}, T = {self.horizon:,}, seed {self.seed}"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `manifest.json`.

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
    environments, agents
        Environments and agents with every parameter, as runs are made from them.
    versions
        Of what made the results, and the commit if it is known.
    before
        Other versions, with which parts of it were run earlier.
    runs
        The runs that are asked for, in order.
    checksum
        Of all the rest; without one a manifest is refused.
    """

    windage_study: int
    name: str
    hash: str
    study: dict[str, Any]
    environments: list[EnvironmentConfig] = msgspec.field(name="worlds")
    agents: list[AgentConfig] = msgspec.field(name="players")
    versions: dict[str, str]
    before: list[dict[str, str]]
    runs: list[ManifestRun]
    checksum: str = ""

    def run_keys(self) -> list[str]:
        """Return the keys of the runs in order; one that two labels share is there once."""
        return list(dict.fromkeys(run.key for run in self.runs))

    def oracle_keys(self) -> list[str]:
        """Return the keys of the oracles that runs are measured by, in order."""
        return list(dict.fromkeys(run.oracle for run in self.runs if run.oracle is not None))


def _encode(manifest: Manifest) -> bytes:
    """Return a manifest as the bytes of its file, with their checksum."""
    whole = msgspec.structs.replace(manifest, checksum=_checksum(manifest))
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _decode(data: bytes, path: Path) -> Manifest:
    """Return the manifest of a file, or refuse one that is not as it was written.

    Raises
    ------
    OtherFormatError
        It was written by a version whose results are others.
    StateError
        It is damaged.
    """
    try:
        version = msgspec.json.decode(data, type=_FormatOnly).windage_study
        if version != FORMAT:
            raise OtherFormatError(
                f"has the format {version}, this version reads {FORMAT}",
                field=str(path),
                fix="use the version of windage that wrote it, or run the study again",
            )
        manifest = msgspec.json.decode(data, type=Manifest)
        if manifest.checksum != _checksum(manifest):
            raise msgspec.DecodeError(
                f"its checksum is {'wrong' if manifest.checksum else 'empty'}"
            )
        for i, run in enumerate(manifest.runs):
            for name, index, known in (
                ("world", run.environment_index, manifest.environments),
                ("player", run.agent_index, manifest.agents),
            ):
                if index >= len(known):
                    raise msgspec.DecodeError(f"runs[{i}].{name} is {index:,} of {len(known):,}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise StateError(
            f"cannot be read ({err})",
            field=str(path),
            fix="run the study again: results that are there are kept",
        ) from None
    return manifest


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


class _FormatOnly(msgspec.Struct):
    windage_study: int


def _checksum(manifest: Manifest) -> str:
    """Return a hash of all other fields."""
    bare = msgspec.structs.replace(manifest, checksum="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()[:32]


Kind = Literal["runs", "oracles"]
"""Of a result: the name of the folder it is in."""

TUNING = "tuning"
"""The folder of the runs that parameters are picked from, in that of the study."""

_MANIFEST = "manifest.json"
_KNOWN = (_MANIFEST, "runs", "oracles", "timings.jsonl", ".lock", TUNING)
_RESULT = re.compile(r"[0-9a-f]{32}\.parquet")


class Store:
    """A folder of results: `opened` makes one, `found` looks at one, `at` at one to be."""

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
    def at(cls, folder: str | Path) -> Store:
        """Return the store that a folder is or may become; nothing is made yet."""
        store = cls(as_path(folder, "folder"))
        store._require_own()
        return store

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: str | Path) -> Iterator[Store]:
        """Make the folder if there is none, and keep others from writing while it is in use."""
        store = cls.at(folder)
        for name in ("runs", "oracles"):
            make_folder(store.folder / name)
        try:
            lock = (store.folder / ".lock").open("a")
        except OSError as err:
            raise unwritable(store.folder, err) from None
        with lock, _locked(lock, store.folder):
            for left in store._left_behind():
                _delete(left)
            yield store

    def has_manifest(self) -> bool:
        """Return whether there is a manifest, whatever it says."""
        return (self.folder / _MANIFEST).is_file()

    def manifest(self) -> Manifest:
        """Return the manifest, or refuse one that cannot be read."""
        path = self.folder / _MANIFEST
        try:
            return _decode(path.read_bytes(), path)
        except FileNotFoundError:
            raise StateError("is missing", field=str(path), fix="run the study again") from None
        except OSError as err:
            raise unreadable(path, err) from None

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, unless it is there already."""
        data = _encode(manifest)
        path = self.folder / _MANIFEST
        if not path.is_file() or path.read_bytes() != data:
            write_whole(path, lambda file: file.write(data), follow=False)

    def run(self, key: str) -> pl.DataFrame | None:
        """Return a run; None if it is not there."""
        return schema.read(self.path("runs", key), schema.RUN)

    def oracle(self, key: str) -> pl.DataFrame | None:
        """Return the oracle of an environment; None if it is not there."""
        return schema.read(self.path("oracles", key), schema.ORACLE)

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
        write_whole(self.path(kind, key), lambda file: file.write(outcome.data), follow=False)
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

    def failed(self) -> set[str]:
        """Return the keys of runs that failed when they were last tried."""
        try:
            lines = (self.folder / "timings.jsonl").read_bytes().splitlines()
        except OSError:
            return set()
        keys = set()
        for line in lines:
            with contextlib.suppress(
                ValueError, AttributeError, RecursionError
            ):  # a line that was cut short
                entry = json.loads(line)
                if entry.get("kind") == "failure":
                    keys.add(str(entry.get("key")))
        return keys - self.present("runs")

    def remove(self, kind: Kind, key: str) -> None:
        """Delete a damaged file."""
        _delete(self.path(kind, key))

    def present(self, kind: Kind) -> set[str]:
        """Return the keys of the files that are there."""
        return {path.stem for path in (self.folder / kind).glob("*.parquet")}

    def _left_behind(self) -> Iterator[Path]:
        """Yield files that a killed process had begun to write, and none of the user's."""
        for path in self.folder.glob("*.tmp"):
            if target_of(path) == _MANIFEST:
                yield path
        for kind in ("runs", "oracles"):
            for path in (self.folder / kind).glob("*.tmp"):
                if _RESULT.fullmatch(target_of(path) or ""):
                    yield path

    def _require_own(self) -> None:
        """Refuse a folder that holds other files, or links in the place of its own."""
        folder = self.folder
        try:
            for name in _KNOWN:
                require_no_link(folder / name)
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


def load_results(folder: str | Path, *, unfinished: bool = False) -> pl.DataFrame:
    """Return the runs of a study as a table, in the order the study asks for them.

    Curves are lists in a cell: `explode` makes rows of them. Labels come from the manifest, all
    else from the files of the runs, each of which is checked to the last bit.

    Parameters
    ----------
    folder
        What `windage run -o` wrote.
    unfinished
        Whether to take a study of which some runs are missing.

    Raises
    ------
    StateError
        The folder holds no study, a file is damaged, or runs are missing.
    """
    store = Store.found(folder)
    manifest = store.manifest()
    rows = {key: store.run(key) for key in manifest.run_keys()}
    finished = [(run, row) for run in manifest.runs if (row := rows[run.key]) is not None]
    missing = len(manifest.runs) - len(finished)
    if missing and not unfinished:
        raise StateError(
            f"{missing:,} of {len(manifest.runs):,} runs are missing",
            field=str(folder),
            fix="go on with `windage run`, or pass unfinished=True",
        )
    leading = ["key", "study", "environment", "environment_id", "environment_parameters", "agent"]
    return (
        _table([row for _, row in finished], schema.RUN)
        .select(
            pl.lit(manifest.name).alias("study"),
            pl.Series("environment", [run.environment for run, _ in finished], dtype=pl.String),
            pl.Series("agent", [run.agent for run, _ in finished], dtype=pl.String),
            pl.all(),
        )
        .select(*leading, pl.exclude(leading))
    )


def load_oracles(folder: str | Path) -> pl.DataFrame:
    """Return the optimal gains of a study's environments, one row per label and horizon."""
    store = Store.found(folder)
    manifest = store.manifest()
    wanted = dict.fromkeys((run.environment, run.oracle) for run in manifest.runs if run.oracle)
    rows = {key: store.oracle(key) for key in manifest.oracle_keys()}
    solved = [(label, row) for label, key in wanted if (row := rows[key]) is not None]
    labels = pl.Series("environment", [label for label, _ in solved], dtype=pl.String)
    return _table([row for _, row in solved], schema.ORACLE).select(labels, pl.all())


def _table(rows: list[pl.DataFrame], columns: schema.Schema) -> pl.DataFrame:
    return pl.concat(rows) if rows else pl.DataFrame(schema=columns.dtypes)


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as err:
        raise unwritable(path, err) from None


@contextlib.contextmanager
def _locked(lock: TextIO, folder: Path) -> Iterator[None]:
    """Lock the folder for this process; the system takes the lock back when it dies."""
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            "another process is running a study in it",
            field=str(folder),
            fix="wait for it, or name another folder",
        ) from None
    except (ImportError, OSError):  # no locks in this system or on this disk: two at once would
        yield  # do work twice, and lose nothing
        return
    try:
        yield
    finally:  # closing is not enough: forked workers of an executor that stays open hold it too
        fcntl.flock(lock, fcntl.LOCK_UN)
