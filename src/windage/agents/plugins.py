"""Agents that are not the library's: `module:Class`, and those of installed packages.

A package offers agents by entry points of the group `windage.agents`; any class can be named as
`module:Class`, its module being found as Python finds it or in the current folder. The class needs
`act(s)` and `observe(s, a, reward, s_next)`; what its constructor takes of `space`, `horizon`,
`seed`, `budgets`, `diameter` and `problem` it is given by these names.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import sys
import traceback
from pathlib import Path
from typing import Any

from windage.agents.base import Agent
from windage.errors import InputError, WindageError
from windage.validation import shown

__all__ = [
    "GROUP",
    "build",
    "imported",
    "in_words",
    "installed",
    "is_own",
    "load",
    "name_of",
    "parameters_of",
    "require_player",
]

GROUP = "windage.agents"
"""The group of entry points under which packages offer agents."""

GIVEN = ("space", "horizon", "seed", "budgets", "diameter", "problem")
"""What a constructor is given if it asks for it by name."""


def installed() -> dict[str, str]:
    """Return the agents that installed packages offer: where each id's class is."""
    return {point.name: point.value for point in importlib.metadata.entry_points(group=GROUP)}


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


def in_words(err: BaseException) -> str:
    """Return what was raised, and the last line of code on the way there that is not ours.

    >>> in_words(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    kind, said, line = type(err).__name__, _message(err), _last_line(err)
    return kind + (f": {said}" if said else "") + (f" ({line})" if line else "")


def _message(err: BaseException) -> str:
    try:
        return " ".join(str(err).split())
    except Exception:
        return "it does not say why"


def _last_line(err: BaseException) -> str:
    lines = [
        f"{Path(frame.filename).name}:{frame.lineno}, in {frame.name}"
        for frame in traceback.extract_tb(err.__traceback__)
        if _HOME not in Path(frame.filename).parents
    ]
    return lines[-1] if lines else ""
