"""Agents by id: `windage.agents.make("random", space, horizon=T)`.

An id is one of the library's, one that an installed package offers, or `module:Class`.
"""

from __future__ import annotations

import inspect
from typing import Any

from windage.agents import plugins
from windage.agents.bandits import DUCB, EXP3S, REXP3, SWUCB, UCB1
from windage.agents.base import Agent
from windage.agents.baselines import FiniteHorizonAgent, MyopicAgent, OracleAgent, RandomAgent
from windage.agents.binned import Binned
from windage.agents.differential_q import DifferentialQ
from windage.agents.meta.bob import BOB
from windage.agents.meta.borl import BORL
from windage.agents.meta.doubling import Doubling
from windage.agents.meta.master import MASTER
from windage.agents.multiscale.guarded import MultiScaleGuarded
from windage.agents.multiscale.multiscale import MultiScale
from windage.agents.optimistic.swucrl2cw import SWUCRL2, SWUCRL2CW, PracticalSWUCRL2CW
from windage.agents.optimistic.ucrl2 import (
    SWUCRL,
    UCRL2,
    UCRL2B,
    RestartedUCRL2,
    VariationAwareUCRL,
)
from windage.agents.psrl import PSRL, SWPSRL, RestartedPSRL
from windage.agents.state import unpack
from windage.agents.tuning import Budgets, is_left_open
from windage.errors import InputError, StateError
from windage.spaces import StateActions
from windage.validation import as_choice, require_parameter

__all__ = [
    "BOB",
    "BORL",
    "DUCB",
    "EXP3S",
    "MASTER",
    "PSRL",
    "REXP3",
    "SWPSRL",
    "SWUCB",
    "SWUCRL",
    "SWUCRL2",
    "SWUCRL2CW",
    "UCB1",
    "UCRL2",
    "UCRL2B",
    "Agent",
    "Binned",
    "DifferentialQ",
    "Doubling",
    "FiniteHorizonAgent",
    "MultiScale",
    "MultiScaleGuarded",
    "MyopicAgent",
    "OracleAgent",
    "PracticalSWUCRL2CW",
    "RandomAgent",
    "RestartedPSRL",
    "RestartedUCRL2",
    "VariationAwareUCRL",
    "facts",
    "get",
    "make",
    "names",
    "parameters",
    "resolve",
    "restore",
    "told",
]

_AGENTS = (
    SWUCRL2CW, PracticalSWUCRL2CW, SWUCRL2, BORL, UCRL2, RestartedUCRL2, SWUCRL,
    VariationAwareUCRL, UCRL2B, PSRL, SWPSRL, RestartedPSRL, DifferentialQ, MASTER, MultiScale,
    MultiScaleGuarded, RandomAgent, OracleAgent, FiniteHorizonAgent, MyopicAgent, UCB1, SWUCB, DUCB,
    REXP3, EXP3S, BOB,
)  # fmt: skip
_BY_ID: dict[str, type[Agent]] = {agent.id: agent for agent in _AGENTS}


def names() -> list[str]:
    """Return the ids of all agents, those of installed packages included.

    >>> "random" in names()
    True
    """
    return sorted({*_BY_ID, *plugins.installed()})


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
    if "D" in kind.told:
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
    asks, needs = parameters(kind), set(getattr(kind, "told", ()))
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


def told(
    id: str | type[Any],  # noqa: A002
    *,
    budgets: Budgets | None = None,
    diameter: float | None = None,
    **options: Any,
) -> tuple[str, ...]:
    """Return what an agent is told of the problem that `make` makes of the same arguments.

    An agent whose window was chosen by hand, or without budgets, is not told them.

    >>> import windage as wd
    >>> budgets = wd.envs.make("two-state-cosine").budgets()
    >>> told("swucrl2-cw", budgets=budgets)
    ('B_r', 'B_p')
    >>> told("swucrl2-cw", budgets=budgets, window=200, widening=0.1)
    ()
    """
    kind = resolve(id)
    if not plugins.is_own(kind):
        return kind.told_with(options, budgets)  # type: ignore[no-any-return]
    declared = getattr(kind, "told", None)
    if isinstance(declared, (tuple, list)):
        return tuple(declared)
    asks = plugins.parameters_of(kind)
    found: tuple[str, ...] = ("B_r", "B_p") if "budgets" in asks and budgets is not None else ()
    found += ("D",) if "diameter" in asks and diameter is not None else ()
    return found + (("the model",) if "problem" in asks else ())


def get(id: str | type[Agent]) -> type[Agent]:  # noqa: A002
    """Return the class of one of the library's agents; a class of its kind is returned as it is.

    >>> get("ucrl2").__name__
    'UCRL2'
    """
    if isinstance(id, type) and issubclass(id, Agent):
        return id
    return _BY_ID[as_choice(id, "agent", sorted(_BY_ID))]


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
    if isinstance(id, str) and id in _BY_ID:
        return _BY_ID[id]  # without a look at all installed packages
    name = as_choice(id, "agent", names())
    return _BY_ID[name] if name in _BY_ID else plugins.load(plugins.installed()[name])


def parameters(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the keyword arguments an agent can be made with, besides space and horizon."""
    if plugins.is_own(kind):
        known = plugins.parameters_of(kind)
        return {
            n: p for n, p in known.items() if n not in ("space", "horizon", "budgets", "diameter")
        }
    known = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        found = inspect.signature(vars(base)["__init__"]).parameters.values()
        known |= {p.name: p for p in found if p.kind is p.KEYWORD_ONLY and p.name not in known}
        if not any(p.kind is p.VAR_KEYWORD for p in found):
            break  # what the class above takes, this one decides
    return {name: p for name, p in known.items() if name not in ("horizon", *kind.fixed)}


def restore(state: bytes, **given: Any) -> Any:
    """Return the agent that `agent.state()` saved, whatever its kind.

    An agent that sees the model needs it again: `restore(state, problem=model)`.
    """
    blob = unpack(state)
    if blob.agent == Doubling.id:
        return Doubling.from_state(state, **given)
    if blob.agent == Binned.id:
        return Binned.from_state(state, **given)
    if blob.agent not in _BY_ID:
        raise StateError(
            f"it holds a {blob.agent!r} agent, which this version does not know",
            field="state",
            fix="use the version of windage that wrote it",
        )
    return _BY_ID[blob.agent].from_state(state, **given)
