"""Agents by id: `windage.agents.make("random", space, horizon=T)`.

An id is one of the library's, one that an installed package offers, or `module:Class`. Those of the
library stand in `__init__.pyi`; the module of an agent is loaded when it is first asked for.

A package offers agents by entry points of the group `windage.agents`; any class can be named as
`module:Class`, its module being found as Python finds it or in the current folder. The class needs
`act(s)` and `observe(s, a, reward, s_next)`; what its constructor takes of `space`, `horizon`,
`seed`, `budgets`, `diameter` and `problem` it is given by these names.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from windage._stub import public_ids
from windage.agents import configuration
from windage.agents.base import Agent, missing_horizon
from windage.agents.state import unpack
from windage.confidence.tuning import Budgets, is_left_open
from windage.errors import InputError, ParameterWarning, StateError, WindageError, warn
from windage.spaces import StateActions
from windage.structure import Structure
from windage.validation import as_choice, require_parameter, shown

__all__ = [
    "GIVEN",
    "OF_ENVIRONMENT",
    "build",
    "facts",
    "get",
    "imported",
    "in_words",
    "is_own",
    "make",
    "names",
    "parameters",
    "require_option",
    "requires",
    "resolve",
    "restore",
    "told",
    "with_structure",
]

_AGENTS = public_ids(str(Path(__file__).with_name("__init__.py")))
_WRAPPERS = {  # saved as agents are, and made from one
    "binned": "windage.agents.binned:Binned",
    "doubling": "windage.agents.meta.doubling:Doubling",
}
GIVEN = ("space", "horizon", "seed", "budgets", "diameter", "problem")
"""What a constructor is given if it asks for it by name."""

OF_ENVIRONMENT = "environment"
"""The word for the structure of the environment an agent is made for: `structure="environment"`."""


def names() -> list[str]:
    """Return the ids of all agents, those of installed packages included.

    >>> "random" in names()
    True
    """
    return sorted({*_AGENTS, *installed()})


def make(
    id: str | type[Any],  # noqa: A002
    space: StateActions,
    *,
    horizon: int | None = None,
    budgets: Budgets | None = None,
    diameter: float | None = None,
    **options: Any,
) -> Agent:
    """Return the agent with this id, or of this class.

    Agents that can be tuned take `budgets=drifting.budgets()`, some of them also a bound on the
    diameter; one that is left without budgets warns of what it fell back to. Agents that see the
    model take it as `problem=`. `facts` finds all of these. A class that is no
    `windage.agents.Agent` is made with what its constructor asks for.

    >>> make("ucrl2", StateActions([2, 2]), horizon=100)
    UCRL2(StateActions.uniform(states=2, actions=2), horizon=100, t=1)
    """
    kind = resolve(id)
    if horizon is None:
        raise missing_horizon(name_of(kind))
    for name in ("reward", "transition"):
        if budgets is not None and not hasattr(budgets, name):
            raise InputError(
                f"{budgets!r} has no {name!r}", field="budgets", fix="pass drifting.budgets()"
            )
    known = parameters(kind)
    for option in options:
        if not (option == "seed" and is_own(kind)):
            require_option(option, kind, name_of(kind), known)
    if is_own(kind):
        given = {"space": space, "horizon": horizon, "seed": options.pop("seed", 0)}
        known_of_it = {"budgets": budgets, "diameter": diameter}
        given |= {name: value for name, value in known_of_it.items() if value is not None}
        found: Agent = build(kind, given, options)
        return found
    if "D" in kind.requires:
        options["diameter"] = diameter
    agent: Agent = kind.configured(space, horizon=horizon, budgets=budgets, **options)
    if budgets is None and {"B_r", "B_p"} <= set(kind.requires):
        _say_what_was_found(agent, kind, options)
    return agent


def _say_what_was_found(agent: Agent, kind: type[Agent], options: Mapping[str, Any]) -> None:
    """Warn of parameters that were found without the budgets that their tuning requires."""
    found = [name for name in kind.auto_tuned if options.get(name) is None]
    if found:
        numbers = " and ".join(f"{name} = {_number(getattr(agent, name))}" for name in found)
        words = ", ".join(f'{name}="oblivious"' for name in found)
        warn(
            f"{name_of(kind)} requires B_r and B_p, and there are no budgets: {numbers} "
            f"for unknown ones; pass budgets=model.budgets(), or say {words}",
            ParameterWarning,
        )


def _number(value: Any) -> str:
    low, high = np.min(value), np.max(value)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


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
    if is_own(kind):
        needs |= {"B_r"} if "budgets" in parameters_of(kind) else set()
        needs |= {"D"} if "diameter" in parameters_of(kind) else set()
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
    known = ("the structure",) if options.get("structure") is not None else ()
    if not is_own(kind):
        return (*kind.requires_with(options, budgets), *known)
    declared = getattr(kind, "requires", None)
    if isinstance(declared, (tuple, list)):
        return (*declared, *known)
    asks = parameters_of(kind)
    found: tuple[str, ...] = ("B_r", "B_p") if "budgets" in asks and budgets is not None else ()
    found += ("D",) if "diameter" in asks and diameter is not None else ()
    return found + (("the model",) if "problem" in asks else ()) + known


def with_structure(
    id: str | type[Any],  # noqa: A002
    options: dict[str, Any],
    problem: Any,
) -> dict[str, Any]:
    """Return options with the structure of a problem in place of the word "environment".

    >>> import windage as wd
    >>> queue = wd.envs.make("queue-v1")
    >>> with_structure("psrl", {"structure": "environment"}, queue)["structure"] is queue.structure
    True
    """
    asked = options.get("structure")
    if asked is not None:
        kind = resolve(id)
        require_option("structure", kind, name_of(kind), parameters(kind))
    if asked is None or isinstance(asked, (Structure, Mapping)):
        return options
    if asked != OF_ENVIRONMENT:
        raise InputError(
            f"{shown(asked)} names no structure",
            field="structure",
            fix=f'write "{OF_ENVIRONMENT}" for that of the environment',
        )
    known = getattr(problem, "structure", None)
    if known is None:
        raise InputError(
            f"the environment{_called(problem)} has no structure",
            field="structure",
            fix="leave it out, or take an environment that has one: `windage envs` says which",
        )
    return options | {"structure": known}


def _called(problem: Any) -> str:
    name = getattr(problem, "name", None)
    return f" {name}" if name else ""


def require_option(name: str, kind: type[Any], owner: str, known: Iterable[str]) -> None:
    """Refuse a parameter that an agent does not take."""
    if name == "structure" and name not in known:
        able = [one for one in sorted(_AGENTS) if name in parameters(get(one))]
        raise InputError(
            f"{name_of(kind)} learns no laws, and has no use for what is known of them",
            field=f"{owner}.{name}",
            fix=f"leave it out, or take one of: {', '.join(able)}",
        )
    require_parameter(name, known, owner)


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
        return require_player(id)
    given: Any = id
    if isinstance(given, str) and ":" in given:
        return load(given)
    if isinstance(given, str) and given in _AGENTS:
        return get(given)  # without a look at all installed packages
    name = as_choice(given, "agent", names())
    return get(name) if name in _AGENTS else load(installed()[name])


def parameters(kind: type[Any] | str) -> dict[str, inspect.Parameter]:
    """Return the keyword arguments an agent can be made with, besides space and horizon."""
    if isinstance(kind, str):
        kind = resolve(kind)
    if is_own(kind):
        known = parameters_of(kind)
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


def installed() -> dict[str, str]:
    """Return the agents that installed packages offer: where each id's class is."""
    return {
        point.name: point.value for point in importlib.metadata.entry_points(group="windage.agents")
    }


def load(place: str) -> type[Any]:
    """Return the class at `module:Class`, or say what is wrong with it."""
    found = imported(place)
    if not isinstance(found, type):
        raise InputError(
            f"{place.partition(':')[2]!r} is a {type(found).__name__}, not a class",
            field=place,
            fix="name a class with act(s) and observe(s, a, reward, s_next)",
        )
    return require_player(found)


def imported(place: str) -> Any:
    """Return what stands at `module:name`, which may be anything, or say why nothing does."""
    module_name, _, path = place.partition(":")
    if not module_name or not path:
        raise InputError(f"{shown(place)} names no class", field="agent", fix="write module:Class")
    found: Any = _module(module_name, place)
    for name in path.split("."):
        if not hasattr(found, name):
            known = [one for one, value in vars(found).items() if _plays(value)]
            raise InputError(
                f"{module_name!r} has no {name!r}",
                field=place,
                fix="one of: " + ", ".join(known) if known else "name a class of that module",
            )
        found = getattr(found, name)
    return found


def require_player(kind: type[Any]) -> type[Any]:
    """Return a class if it can act and observe."""
    for method in ("act", "observe"):
        if not callable(getattr(kind, method, None)):
            raise InputError(
                f"{kind.__name__!r} has no method {method!r}",
                field=name_of(kind),
                fix="give it act(s) and observe(s, a, reward, s_next)",
            )
    return kind


def name_of(kind: type[Any]) -> str:
    """Return how messages call a class: by its id, else by where it is."""
    return str(getattr(kind, "id", f"{kind.__module__}:{kind.__qualname__}"))


def _module(name: str, place: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)  # a command is started somewhere else than in the current folder
    importlib.invalidate_caches()  # the file may be younger than what Python remembers
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as err:
        if err.name is None or not (name == err.name or name.startswith(f"{err.name}.")):
            raise _unusable(name, place, err) from err  # it is there, and needs another one
        raise InputError(
            f"there is no module {name!r}",
            field=place,
            fix=f"install it, or go to the folder that holds {name.partition('.')[0]}.py",
        ) from None
    except (Exception, SystemExit) as err:
        raise _unusable(name, place, err) from err


def _unusable(name: str, place: str, err: BaseException) -> InputError:
    line = ""
    if isinstance(err, SyntaxError):
        line = f"line {err.lineno}"
    elif err.__traceback__ is not None:
        trace = err.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        line = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return InputError(
        f"module {name!r} cannot be imported, {type(err).__name__}: {shown(str(err))[1:-1]}",
        field=place,
        where=line,
        fix='put what is to run only as a script under if __name__ == "__main__":'
        if isinstance(err, SystemExit)
        else f"make `python -c 'import {name}'` work",
    )


def _plays(value: object) -> bool:
    return isinstance(value, type) and hasattr(value, "act") and hasattr(value, "observe")


def parameters_of(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments a class can be made with, those it is given included."""
    if kind.__init__ is object.__init__:
        return {}
    return {
        name: parameter
        for name, parameter in list(inspect.signature(kind.__init__).parameters.items())[1:]
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def build(kind: type[Any], given: dict[str, Any], options: dict[str, Any]) -> Any:
    """Return an agent of somebody's own class, made with what it asks for and with options."""
    known, place = parameters_of(kind), name_of(kind)
    wanted = {name: value for name, value in given.items() if name in known} | options
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in wanted:
            asked = f"for {name!r}" if name not in GIVEN else f"to be told {name!r}"
            raise InputError(
                f"its constructor asks {asked}, which is not given",
                field=place,
                fix=f"pass {name}=..., give it a default, or take " + ", ".join(GIVEN[:3]),
            )
    unnamed = [n for n, p in known.items() if p.kind is p.POSITIONAL_ONLY and n in wanted]
    first = [wanted.pop(name) for name in unnamed]
    try:
        return kind(*first, **wanted)
    except WindageError:
        raise
    except Exception as err:
        raise InputError(
            f"making it raised {in_words(err)}",
            field=place,
            fix="mend its constructor",
        ) from err


def is_own(kind: type[Any]) -> bool:
    """Return whether a class is none of the library's way: not a subclass of its `Agent`."""
    return not issubclass(kind, Agent)


_HOME = Path(__file__).parents[1]
_MOST_SAID = 500  # characters of what somebody's own code raised


def in_words(err: BaseException) -> str:
    """Return what was raised, and the last line of code on the way there that is not ours.

    >>> in_words(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    kind, said, line = type(err).__name__, _message(err), _last_line(err)
    return kind + (f": {said}" if said else "") + (f" ({line})" if line else "")


def _message(err: BaseException) -> str:
    try:
        said = " ".join(str(err).split())
        return said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]}..."
    except Exception:
        return "it does not say why"


def _last_line(err: BaseException) -> str:
    lines = [
        f"{Path(frame.filename).name}:{frame.lineno}, in {frame.name}"
        for frame in traceback.extract_tb(err.__traceback__)
        if _HOME not in Path(frame.filename).parents
    ]
    return lines[-1] if lines else ""
