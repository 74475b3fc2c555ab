"""Agents by id: `windage.agents.make("random", space, horizon=T)`.

An id is one of the library's, one that an installed package offers, or `module:Class`. Those of the
library stand in `__init__.pyi`; the module of an agent is loaded when it is first asked for.
"""

from __future__ import annotations

import inspect
import pkgutil
import warnings
from pathlib import Path
from typing import Any

from windage._stub import public_ids
from windage.agents import configuration, plugins
from windage.agents.base import Agent
from windage.agents.state import unpack
from windage.agents.tuning import Budgets, is_left_open
from windage.errors import InputError, StateError
from windage.spaces import StateActions
from windage.validation import as_choice, require_parameter

__all__ = [
    "facts",
    "get",
    "make",
    "names",
    "parameters",
    "requires",
    "resolve",
    "restore",
    "told",
]

_AGENTS = public_ids(str(Path(__file__).with_name("__init__.py")))
_WRAPPERS = {  # saved as agents are, and made from one
    "binned": "windage.agents.binned:Binned",
    "doubling": "windage.agents.meta.doubling:Doubling",
}


def names() -> list[str]:
    """Return the ids of all agents, those of installed packages included.

    >>> "random" in names()
    True
    """
    return sorted({*_AGENTS, *plugins.installed()})


def make(
    id: str | type[Any],  # noqa: A002
    space: StateActions,
    *,
    horizon: int,
    budgets: Budgets | None = None,
    diameter: float | None = None,
    **options: Any,
) -> Agent:
    """Return the agent with this id, or of this class.

    Agents that can be tuned take `budgets=drifting.budgets()`, some of them also a bound on the
    diameter; agents that see the model take it as `problem=`. `facts` finds all of these. A class
    that is no `windage.agents.Agent` is made with what its constructor asks for.

    >>> make("ucrl2", StateActions([2, 2]), horizon=100)
    UCRL2(StateActions.uniform(states=2, actions=2), horizon=100, t=1)
    """
    kind = resolve(id)
    for name in ("reward", "transition"):
        if budgets is not None and not hasattr(budgets, name):
            raise InputError(
                f"{budgets!r} has no {name!r}", field="budgets", fix="pass drifting.budgets()"
            )
    known = parameters(kind)
    for option in options:
        if not (option == "seed" and plugins.is_own(kind)):
            require_parameter(option, known, plugins.name_of(kind))
    if plugins.is_own(kind):
        given = {"space": space, "horizon": horizon, "seed": options.pop("seed", 0)}
        known_of_it = {"budgets": budgets, "diameter": diameter}
        given |= {name: value for name, value in known_of_it.items() if value is not None}
        found: Agent = plugins.build(kind, given, options)
        return found
    if "D" in kind.requires:
        options["diameter"] = diameter
    return kind.configured(space, horizon=horizon, budgets=budgets, **options)  # type: ignore[no-any-return]


def facts(id: str | type[Any], model: Any, **options: Any) -> dict[str, Any]:  # noqa: A002
    """Return what an agent must be told of a model, and no more, as arguments of `make`.

    A bound on the diameter is only computed for an agent that has no `window` among its options.

    >>> import windage as wd
    >>> sorted(facts("swucrl2-cw", wd.envs.make("two-state-cosine")))
    ['budgets']
    """
    kind = resolve(id)
    asks, needs = parameters(kind), set(getattr(kind, "requires", ()))
    given: dict[str, Any] = {}
    if "problem" in asks:
        given["problem"] = model
    if plugins.is_own(kind):
        needs |= {"B_r"} if "budgets" in plugins.parameters_of(kind) else set()
        needs |= {"D"} if "diameter" in plugins.parameters_of(kind) else set()
    if {"B_r", "B_p", "l"} & needs:
        given["budgets"] = model.budgets()
    if "D" in needs and is_left_open(options.get("window")):
        given["diameter"] = model.max_diameter().upper
    return given


def requires(
    id: str | type[Any],  # noqa: A002
    *,
    budgets: Budgets | None = None,
    diameter: float | None = None,
    **options: Any,
) -> tuple[str, ...]:
    """Return what the agent that `make` makes of the same arguments must be told of the problem.

    An agent whose window was chosen by hand, or without budgets, requires nothing.

    >>> import windage as wd
    >>> budgets = wd.envs.make("two-state-cosine").budgets()
    >>> requires("swucrl2-cw", budgets=budgets)
    ('B_r', 'B_p')
    >>> requires("swucrl2-cw", budgets=budgets, window=200, widening=0.1)
    ()
    """
    kind = resolve(id)
    if not plugins.is_own(kind):
        return kind.requires_with(options, budgets)  # type: ignore[no-any-return]
    declared = getattr(kind, "requires", None)
    if isinstance(declared, (tuple, list)):
        return tuple(declared)
    asks = plugins.parameters_of(kind)
    found: tuple[str, ...] = ("B_r", "B_p") if "budgets" in asks and budgets is not None else ()
    found += ("D",) if "diameter" in asks and diameter is not None else ()
    return found + (("the model",) if "problem" in asks else ())


def told(id: str | type[Any], **options: Any) -> tuple[str, ...]:  # noqa: A002
    """Return what `requires` returns: its name before 0.1."""
    warnings.warn(
        "windage.agents.told is now windage.agents.requires", DeprecationWarning, stacklevel=2
    )
    return requires(id, **options)


def get(id: str | type[Agent]) -> type[Agent]:  # noqa: A002
    """Return the class of one of the library's agents; a class of its kind is returned as it is.

    >>> get("ucrl2").__name__
    'UCRL2'
    """
    if isinstance(id, type) and issubclass(id, Agent):
        return id
    found: type[Agent] = pkgutil.resolve_name(_AGENTS[as_choice(id, "agent", sorted(_AGENTS))])
    return found


def resolve(id: str | type[Any]) -> type[Any]:  # noqa: A002
    """Return the class an id stands for: the library's, a package's, or that at `module:Class`.

    The current folder is searched for modules too. A class that is not there, or that cannot act
    and observe, is refused. A class is returned as it is.

    >>> resolve("windage.agents.baselines:RandomAgent").__name__
    'RandomAgent'
    """
    if isinstance(id, type):
        return plugins.require_player(id)
    if isinstance(id, str) and ":" in id:
        return plugins.load(id)
    if isinstance(id, str) and id in _AGENTS:
        return get(id)  # without a look at all installed packages
    name = as_choice(id, "agent", names())
    return get(name) if name in _AGENTS else plugins.load(plugins.installed()[name])


def parameters(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the keyword arguments an agent can be made with, besides space and horizon."""
    if plugins.is_own(kind):
        known = plugins.parameters_of(kind)
        return {
            n: p for n, p in known.items() if n not in ("space", "horizon", "budgets", "diameter")
        }
    known = configuration.parameters(kind)
    return {name: known[name] for name in known if name != "horizon"}


def restore(state: bytes, **given: Any) -> Any:
    """Return the agent that `agent.state()` saved, whatever its kind.

    An agent that sees the model needs it again: `restore(state, problem=model)`.
    """
    blob = unpack(state)
    homes = _AGENTS | _WRAPPERS
    if blob.agent not in homes:
        raise StateError(
            f"it holds a {blob.agent!r} agent, which this version does not know",
            field="state",
            fix="pass it to from_state of the class that wrote it, or use that version of windage",
        )
    return pkgutil.resolve_name(homes[blob.agent]).from_state(state, **given)
