"""Where the numbers come from: the study as a file to run again, its hashes, versions and seeds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from windage.study.manifest import Manifest
from windage.study.store import Store

__all__ = ["provenance", "study_text"]


def provenance(store: Store, manifest: Manifest, *, complete: bool) -> list[tuple[str, str]]:
    """Return what it takes to make the same numbers again, and to know that they are the same."""
    seeds = list(dict.fromkeys(asked.seed for asked in manifest.runs))
    versions = dict(manifest.versions)
    commit = versions.pop("commit", "")
    found = [
        ("command", "windage run study.toml -o DIR && windage report DIR -o report.html"),
        ("check", "windage verify DIR"),
        ("seeds", ", ".join(map(str, seeds))),
        ("hash of the study", manifest.hash),
    ]
    if complete:
        found.append(("hash of the results", store.hash_of(manifest)))
    found.append(("versions", ", ".join(f"{name} {value}" for name, value in versions.items())))
    if commit:
        found.append(("commit", commit))
    for before in manifest.before:
        others = ", ".join(f"{name} {value}" for name, value in before.items())
        found.append(("parts made with", others))
    return found


def study_text(data: Mapping[str, Any]) -> str:
    """Return a study as the TOML file that asks for it.

    >>> print(study_text({"name": "a", "seeds": 2, "agents": [{"id": "borl", "delta": [0.1]}]}))
    name = "a"
    seeds = 2
    <BLANKLINE>
    [[agents]]
    id = "borl"
    delta = [0.1]
    <BLANKLINE>
    """
    plain = {name: value for name, value in data.items() if not _is_table(value)}
    lines = [f"{_key(name)} = {_value(value)}" for name, value in plain.items()]
    for name, entries in data.items():
        for entry in entries if _is_table(entries) else ():
            lines += ["", f"[[{_key(name)}]]"]
            lines += [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _text(value: str) -> str:
    """Return a basic string: what JSON must escape, TOML escapes alike."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
