"""What tables and plots call the environments and agents of a study, so that they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from windage.confidence.radii import Radii
from windage.errors import InputError

__all__ = ["Entry", "labelled"]

_LISTED = 4  # values of a list that a label shows


@dataclass(frozen=True)
class Entry:
    """One environment or agent of a study, every sweep unrolled.

    Attributes
    ----------
    label
        What tables and plots call it.
    place
        Where it stands in the file, such as `agents[2]`.
    id
        Of the environment or the agent.
    parameters
        As written, one value each.
    listed, swept
        Names of those that were written as a list, and as a list of several values.
    """

    label: str
    place: str
    id: str
    parameters: dict[str, Any]
    listed: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()


def labelled(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries under labels that tell them apart."""
    told = [_with(entry, entry.swept) for entry in entries]
    called = _called(told)
    found = [
        _with(entry, tuple(entry.parameters)) if len(called[one.label]) > 1 else one
        for entry, one in zip(entries, told, strict=True)
    ]
    called = _called(found)
    for entry in reversed(found):
        other = called[entry.label][0]
        if not _same(entry, other):
            raise InputError(
                f"{entry.label!r} is also what {other.place} is called",
                field=f"{entry.place}.label",
                fix="give each a table and a label of its own, or leave one out",
            )
    return found


def _called(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return who has each label; one that is there at several horizons is named once."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        those = found.setdefault(entry.label, [])
        if not any(_same(entry, one) for one in those):
            those.append(entry)
    return found


def _same(one: Entry, other: Entry) -> bool:
    return (one.place, one.parameters) == (other.place, other.parameters)


def _with(entry: Entry, names: Sequence[str]) -> Entry:
    """Return the entry with some of its parameters in its label."""
    if "radii" in names:
        Radii.from_spec(entry.parameters["radii"], f"{entry.place}.radii")
    parts = [f"{name} {_word(name, entry.parameters[name])}" for name in names]
    label = ", ".join([entry.label, *parts])
    return replace(entry, label=label)


def _word(name: str, value: Any) -> str:
    """Return a parameter as a label shows it.

    >>> _word("delta", 0.3), _word("radii", {"kind": "laplace", "scale": 0.3})
    ('0.3', 'laplace x0.3')
    """
    if name == "radii":
        return Radii.from_spec(value).label
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)) and len(value) > _LISTED:
        return f"[{value[0]}, ..., {value[-1]}]"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("'", "")
