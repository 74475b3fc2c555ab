"""`name=value` options, as every command that makes something reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from windage.errors import InputError

__all__ = ["parse_settings"]


def parse_settings(settings: list[str], option: str = "--set") -> dict[str, Any]:
    """Return what `name=value` options say.

    >>> parse_settings(["states=3", "radii=laplace"])
    {'states': 3, 'radii': 'laplace'}
    """
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise InputError(
                f"{setting!r} sets nothing", field=option, fix=f"write {option} name=value"
            )
        if name in found:
            raise InputError(f"{name!r} is given twice", field=option, fix="give it once")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    """Return a value as it reads: a number, what JSON knows, or the words as they are.

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
