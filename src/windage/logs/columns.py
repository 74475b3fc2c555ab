"""Which column of a file holds what, and whether it is there once."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windage.errors import InputError
from windage.validation import as_choice, as_name, shown

__all__ = ["NEEDED", "ROLES", "Columns", "find_columns", "split_header"]

ROLES = ("t", "state", "action", "reward", "next_state")
NEEDED = ("state", "action", "reward")

_SEPARATORS = ",;\t|"


class Columns(NamedTuple):
    """Where each role is found, by place; and what could not be found and is made up for."""

    names: tuple[str, ...]
    place: dict[str, int]
    separator: str

    def name(self, role: str) -> str:
        """Return the name of the column of a role."""
        return self.names[self.place[role]]


def split_header(header: bytes, path: str, separator: str | None) -> tuple[list[str], str]:
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


def find_columns(
    names: Sequence[str], path: str, separator: str, mapping: Mapping[str, str] | None
) -> Columns:
    """Return where the columns of a log are, or say which one is missing or there twice."""
    wanted = {role: role for role in ROLES}
    for role, name in (mapping or {}).items():
        wanted[as_choice(role, "columns", ROLES)] = as_name(name, f"columns[{role!r}]")
    place: dict[str, int] = {}
    for role, name in wanted.items():
        found = [k for k, one in enumerate(names) if one == name]
        if len(found) > 1:
            raise InputError(
                f"the column {name!r} stands there {len(found)} times, as columns "
                f"{' and '.join(str(k + 1) for k in found)}",
                field=path,
                where="line 1",
                fix="rename one of them",
            )
        if found:
            place[role] = found[0]
        elif role in NEEDED or role in (mapping or {}):
            raise _missing(role, name, names, path, separator)
    if len({place[role] for role in place}) < len(place):
        raise InputError(
            f"{shown(mapping)} names one column twice", field="columns", fix="name each once"
        )
    return Columns(tuple(names), place, separator)


def _missing(role: str, name: str, names: Sequence[str], path: str, separator: str) -> InputError:
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
