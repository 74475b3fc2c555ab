"""The manifest of a study: what a folder of results is about, and which runs it asks for.

It is JSON that people may read, with a checksum of all that it says: a flipped bit in a label would
still be a label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from windage.errors import StateError
from windage.study.kinds import FORMAT, Player, World

__all__ = ["Asked", "Manifest", "OtherFormatError", "decode", "encode", "version_changes"]


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


def encode(manifest: Manifest) -> bytes:
    """Return a manifest as the bytes of its file, with their checksum."""
    whole = msgspec.structs.replace(manifest, checksum=_checksum(manifest))
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def decode(data: bytes, path: Path) -> Manifest:
    """Return the manifest of a file, or refuse one that does not say what was written.

    Raises
    ------
    OtherFormatError
        It was written by a version whose results are others.
    StateError
        It is damaged.
    """
    try:
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
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise StateError(
            f"cannot be read ({err})",
            field=str(path),
            fix="run the study again: results that are there are kept",
        ) from None
    return found


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
    """Return a hash of all a manifest says but this."""
    bare = msgspec.structs.replace(manifest, checksum="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()[:32]
