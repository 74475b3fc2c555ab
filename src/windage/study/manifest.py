"""The manifest of a study: its configurations, its versions, and the runs it asks for.

It is JSON that people may read, with a checksum of all its content: a flipped bit in a label would
still be a label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windage.errors import StateError
from windage.study.configs import FORMAT, AgentConfig, EnvironmentConfig

__all__ = ["Manifest", "ManifestRun", "OtherFormatError", "decode", "encode", "version_changes"]


_Key = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]  # it names a file


class ManifestRun(msgspec.Struct, frozen=True):
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
    """

    key: _Key
    environment: str
    agent: str
    horizon: Annotated[int, Meta(ge=1)]
    seed: Annotated[int, Meta(ge=0)]
    environment_index: Annotated[int, Meta(ge=0)] = msgspec.field(name="world")
    agent_index: Annotated[int, Meta(ge=0)] = msgspec.field(name="player")
    oracle: _Key | None

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


def encode(manifest: Manifest) -> bytes:
    """Return a manifest as the bytes of its file, with their checksum."""
    whole = msgspec.structs.replace(manifest, checksum=_checksum(manifest))
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def decode(data: bytes, path: Path) -> Manifest:
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
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
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
