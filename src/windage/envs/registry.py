"""Environments by id. An id names numbers: when the numbers change, the version does."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from windage.errors import InputError
from windage.models import DriftingMDP
from windage.validation import require_parameter

__all__ = ["Environment", "Facts", "register"]


class Facts(NamedTuple):
    """What is known in closed form; None where nothing is."""

    reward_budget: float | None = None
    transition_budget: float | None = None
    diameter_bound: float | None = None


@dataclass(frozen=True)
class Environment:
    """One problem: how to build it and what is known of it.

    Attributes
    ----------
    id
        The name with its version, as results store it.
    build
        Makes the model; its keyword arguments are the environment's parameters.
    facts
        Takes the same arguments; returns the closed forms.
    """

    id: str
    build: Callable[..., DriftingMDP]
    facts: Callable[..., Facts]

    @property
    def name(self) -> str:
        """The id without its version."""
        return self.id.rpartition("-v")[0]

    @property
    def version(self) -> int:
        """The number after the name."""
        return int(self.id.rpartition("-v")[2])

    @property
    def summary(self) -> str:
        """One line on what it is."""
        return (self.build.__doc__ or "").strip().splitlines()[0]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters and their defaults."""
        return {p.name: p.default for p in inspect.signature(self.build).parameters.values()}

    def check(self, options: dict[str, Any]) -> None:
        """Refuse a parameter the environment does not have, with a suggestion."""
        for option in options:
            require_parameter(option, self.parameters, self.name)


REGISTERED: dict[str, Environment] = {}


def register(
    id: str,  # noqa: A002
    facts: Callable[..., Facts],
) -> Callable[[Callable[..., DriftingMDP]], Callable[..., DriftingMDP]]:
    """Register the function below as the environment with this id, a name and `-v` and a number."""
    if not re.fullmatch(r"[a-z0-9-]+-v\d+", id):
        raise InputError(f"{id!r} has no version", field="id", fix="end it with -v0")

    def keep(build: Callable[..., DriftingMDP]) -> Callable[..., DriftingMDP]:
        REGISTERED[id] = Environment(id, build, facts)
        return build

    return keep
