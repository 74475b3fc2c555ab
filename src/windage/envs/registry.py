"""Environments by id. An id names numbers: when the numbers change, the version does."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec

from windage.errors import InputError
from windage.models import DriftingMDP
from windage.validation import as_choice, require_parameter

__all__ = ["Environment", "Facts", "Instance", "facts", "get", "make", "names", "register"]

P = ParamSpec("P")


class Facts(NamedTuple):
    """Closed forms of an environment; None where there is none."""

    reward_budget: float | None = None
    transition_budget: float | None = None
    diameter_bound: float | None = None


class Instance(NamedTuple):
    """An environment with its parameters checked: how to build the model, and its closed forms."""

    build: Callable[[], DriftingMDP]
    facts: Callable[[], Facts] = Facts


@dataclass(frozen=True)
class Environment:
    """Entry of the registry.

    Attributes
    ----------
    id
        The name with its version, as results store it.
    build
        Returns the model; its keyword arguments are the environment's parameters.
    facts
        Takes the same arguments; returns the closed forms.
    title
        The name in Gymnasium's spelling, such as "RandomDrift".
    """

    id: str
    build: Callable[..., DriftingMDP]
    facts: Callable[..., Facts]
    title: str = ""

    @property
    def name(self) -> str:
        """The id without its version."""
        return self.id.rpartition("-v")[0]

    @property
    def version(self) -> int:
        """The number after the name."""
        return int(self.id.rpartition("-v")[2])

    @property
    def gymnasium_id(self) -> str:
        """The id under which `windage.gym` registers the environment with Gymnasium."""
        title = self.title or "".join(word.capitalize() for word in self.name.split("-"))
        return f"windage/{title}-v{self.version}"

    @property
    def summary(self) -> str:
        """First line of the description."""
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
    *,
    title: str = "",
) -> Callable[[Callable[P, Instance]], Callable[P, DriftingMDP]]:
    """Register the function below as the environment with this id, a name and `-v` and a number.

    The function checks its parameters and returns an `Instance`. It becomes a function with the
    same parameters that builds the model. `title` is for a Gymnasium name that is not the id in
    camel case.
    """
    if not re.fullmatch(r"[a-z0-9-]+-v\d+", id):
        raise InputError(f"{id!r} has no version", field="id", fix="end it with -v0")

    def keep(declare: Callable[P, Instance]) -> Callable[P, DriftingMDP]:
        @functools.wraps(declare)
        def build(*args: P.args, **parameters: P.kwargs) -> DriftingMDP:
            return declare(*args, **parameters).build()

        @functools.wraps(declare)
        def facts(*args: P.args, **parameters: P.kwargs) -> Facts:
            return declare(*args, **parameters).facts()

        signature = inspect.signature(declare).replace(return_annotation="DriftingMDP")
        build.__signature__ = signature  # type: ignore[attr-defined]
        REGISTERED[id] = Environment(id, build, facts, title)
        return build

    return keep


def names() -> list[str]:
    """Return the bare ids of all environments.

    >>> names()[:2]
    ['assortment', 'bandit']
    """
    return sorted({environment.name for environment in REGISTERED.values()})


def get(id: str) -> Environment:  # noqa: A002
    """Return the entry of an environment; a bare id gives the newest version."""
    newest = {env.name: env for env in sorted(REGISTERED.values(), key=lambda env: env.version)}
    known = newest | REGISTERED
    return known[as_choice(id, "environment", known)]


def make(id: str, **parameters: Any) -> DriftingMDP:  # noqa: A002
    """Return the environment with this id.

    >>> make("riverswim", horizon=1000, states=4).space.n_states
    4
    """
    environment = get(id)
    environment.check(parameters)
    model = environment.build(**parameters)
    model.name = environment.id
    return model


def facts(id: str, **parameters: Any) -> Facts:  # noqa: A002
    """Return the closed forms of the environment with these parameters.

    >>> round(facts("riverswim", horizon=20_000).reward_budget, 12)
    2.1
    """
    environment = get(id)
    environment.check(parameters)
    return environment.facts(**parameters)
