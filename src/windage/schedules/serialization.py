"""Schedules as plain data, for files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windage.errors import ModelError
from windage.schedules.base import Schedule
from windage.schedules.smooth import Burst, Cosine, Linear, RandomWalk
from windage.schedules.steps import Knots, Steps

__all__ = ["from_spec", "is_plain", "to_spec"]


def is_plain(schedule: Schedule) -> bool:
    """Return whether a schedule is one of the library's own and can be written as data."""
    return type(schedule) in _KINDS.values()


def to_spec(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as plain data for a file."""
    if not is_plain(schedule):
        raise ModelError(
            f"a schedule of type {type(schedule).__name__} cannot be written to a file",
            field="schedule",
            fix="use one of windage.schedules, or save the model as arrays",
        )
    kind = next(kind for kind, its_type in _KINDS.items() if its_type is type(schedule))
    return {"kind": kind} | {name: getattr(schedule, name) for name in _SAVED[kind]}


def from_spec(spec: dict[str, Any]) -> Schedule:
    """Return the schedule that `to_spec` wrote."""
    fields = dict(spec) if isinstance(spec, dict) else {}
    kind = fields.pop("kind", None)
    known = isinstance(kind, str) and kind in _SAVED
    if not known or set(fields) != set(_SAVED[kind]):
        raise ModelError(
            f"{spec!r} is no known schedule",
            field="schedule",
            fix=f"give a kind, one of {', '.join(_SAVED)}, and its parameters",
        )
    return _KINDS[kind](**fields)


_SAVED = {
    "Cosine": ("cycles",),
    "Linear": ("legs",),
    "Burst": ("start", "end", "cycles"),
    "Walk": ("seed", "moves", "size"),
    "Knots": ("times", "interpolation"),
    "Steps": ("times", "order"),
}

_KINDS: dict[str, Callable[..., Schedule]] = {
    "Cosine": Cosine,
    "Linear": Linear,
    "Burst": Burst,
    "Walk": RandomWalk,  # its name in files, which fingerprints depend on
    "Knots": Knots,
    "Steps": Steps,
}
