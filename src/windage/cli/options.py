"""Options that several verbs have: settings, files to write, classes of the user's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windage.errors import InputError

__all__ = ["find_own_classes", "parse_settings", "require_writable"]


def find_own_classes(folder: Path) -> None:
    """Let `module:Class` be found in the current folder, and in another one."""
    for place in (Path.cwd(), folder.absolute()):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))


def parse_settings(settings: list[str], option: str = "--set") -> dict[str, Any]:
    """Return the values of `name=value` options.

    >>> parse_settings(["states=3", "radii=laplace"])
    {'states': 3, 'radii': 'laplace'}
    """
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise InputError(
                f"{setting!r} sets nothing", field=option, fix=f"write {option} name=value"
            )
        if name in values:
            raise InputError(f"{name!r} is given twice", field=option, fix="give it once")
        values[name] = _value(value)
    return values


def require_writable(target: Path) -> None:
    """Refuse a file that could not be written: better before the work than after it.

    A missing folder is made, but not at the root of the file system.
    """
    folders = target.absolute().parents
    folder = next(one for one in folders if one.exists())
    why = (
        "it is a folder" if target.is_dir()
        else "its folder is a file" if not folder.is_dir()
        else "its folder is read-only" if not os.access(folder, os.W_OK)
        else f"there is no folder {folders[-2]}" if len(folders) > 1 and folder == folders[-1]
        else ""
    )  # fmt: skip
    if why:
        raise InputError(
            f"cannot be written ({why})",
            field=str(target),
            fix="name a file in a folder you may write to",
        )


def _value(text: str) -> Any:
    """Return a number, a value in JSON, or else the text itself.

    >>> _value("3"), _value("0.5"), _value("true"), _value("[0, 1]"), _value("laplace")
    (3, 0.5, True, [0, 1], 'laplace')
    """
    kinds: tuple[Callable[[str], Any], ...] = (int, float, json.loads)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return text
