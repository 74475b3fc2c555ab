"""Study files: TOML, or the same tables from Python, read strictly.

A list where one value would do is a sweep, several lists form the product, and a parameter that is
itself a list is written as a list of lists. Every key is checked before anything runs; an error
names the place in the file. Entries get labels that tell them apart in tables and plots.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from windage.agents import registry
from windage.atomic_io import as_path
from windage.confidence.radii import Radii
from windage.errors import InputError, WindageError
from windage.structure import Structure
from windage.study import configs
from windage.study.compare import Plan, as_plan, informed
from windage.study.configs import EnvironmentConfig, agent_class
from windage.validation import as_horizon, as_name, as_seed, require_parameter, shown

__all__ = ["Entry", "Spec", "read_spec"]

_Kind = TypeVar("_Kind", bound=msgspec.Struct)

_MOST_RUNS = 1_000_000
_AT_THE_TOP = ("name", "horizon", "seeds", "baseline", "compare", "tune")
_LISTED = 4  # values of a list that a label shows


@dataclass(frozen=True)
class Entry:
    """One environment or agent of a study, every sweep unrolled.

    Attributes
    ----------
    label
        What tables and plots call it.
    place
        Where it stands in the file, such as `agents[2]`.
    id
        Of the environment or the agent.
    parameters
        As written, one value each.
    listed, swept
        Names of those that were written as a list, and as a list of several values.
    tuned
        Names of those that are picked on tuning seeds; the first values stand in their place.
    candidates
        What is picked from: an entry of the tuning study for every combination of their values.
    """

    label: str
    place: str
    id: str
    parameters: dict[str, Any]
    listed: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    tuned: tuple[str, ...] = ()
    candidates: tuple[Entry, ...] = field(default=(), repr=False)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """What may stand in a study file."""

    environments: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    name: str = "study"
    horizon: int | list[int] | None = None
    seeds: int | list[int] = 20
    baseline: str | None = None
    compare: list[list[str]] = []
    tune: dict[str, Any] | None = None


class _Tune(msgspec.Struct, forbid_unknown_fields=True):
    """What `tune` may hold."""

    over: str | list[str]
    seeds: int | list[int]


@dataclass(frozen=True)
class Spec:
    """A study that has been read; nothing is built or tuned yet.

    Attributes
    ----------
    environments
        Environments with all parameters, beside their labels and whether their oracle is wanted.
    agents
        Agents with their parameters as written.
    plan
        Which agents are to be compared.
    tuning
        The study that is run first, to pick parameters from; None if there is nothing to tune.
    source
        The file it was read from, which errors name; empty if it comes from Python.
    """

    name: str
    seeds: tuple[int, ...]
    environments: tuple[tuple[Entry, EnvironmentConfig, bool], ...]
    agents: tuple[Entry, ...]
    data: dict[str, Any] = field(repr=False)
    plan: Plan = field(default_factory=Plan)
    tuning: Spec | None = field(default=None, repr=False)
    source: str = ""


def read_spec(source: str | Path | Mapping[str, Any]) -> Spec:
    """Return what a study file says; paths in it start from its folder."""
    if isinstance(source, Mapping):
        return _spec(dict(source), Path())
    path = as_path(source, "study")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError("there is no such file", field=str(path), fix="check the path") from None
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(f"cannot be read ({err})", field=str(path), fix="check it") from None
    except tomllib.TOMLDecodeError as err:
        raise InputError(f"is not TOML ({err})", field=str(path), fix="mend that line") from None
    except (ValueError, RecursionError) as err:  # an integer of thousands of digits; deep lists
        raise InputError(f"cannot be read ({err})", field=str(path), fix="shorten it") from None
    try:
        return replace(_spec(data, path.parent), source=str(path))
    except WindageError as err:
        place = f"{path}: {err.field}"
        raise InputError(err.problem, field=place, where=err.where, fix=err.fix) from None


def _spec(data: dict[str, Any], folder: Path) -> Spec:
    file = _typed(data, _File)
    for name in ("environments", "agents"):
        if not getattr(file, name):
            raise InputError("there are none", field=name, fix=f"add a [[{name}]] table")
    seeds = _seeds(file.seeds)
    horizons = _horizons(file.horizon)
    environments = [
        environment
        for i, table in enumerate(file.environments)
        for environment in _environments(table, f"environments[{i}]", horizons, folder)
    ]
    unrolled = [
        _unrolled(table, f"agents[{i}]", _agent_id(table, f"agents[{i}]"), ())
        for i, table in enumerate(file.agents)
    ]
    tuning = None
    if file.tune is not None:
        tuning = _tuning(file, seeds, unrolled, folder)
        unrolled = [_to_tune(entries, tuning, file.tune["over"]) for entries in unrolled]
    agents = _labelled([entry for entries in unrolled for entry in entries])
    labels = [
        entry.label
        for entry in agents
        if not informed(getattr(agent_class(entry.id), "requires", ()))
    ]
    entries = _labelled([entry for entry, _, _ in environments])
    spec = Spec(
        name=as_name(file.name, "name"),
        seeds=seeds,
        environments=tuple(
            (entry, config, oracle)
            for entry, (_, config, oracle) in zip(entries, environments, strict=True)
        ),
        agents=tuple(agents),
        data=data,
        plan=as_plan(labels, file.baseline, file.compare),
        tuning=tuning,
    )
    runs = len(spec.environments) * len(spec.agents) * len(seeds)
    if runs > _MOST_RUNS:
        raise InputError(
            f"{runs:,} runs are asked for", field="study", fix=f"ask for at most {_MOST_RUNS:,}"
        )
    return spec


def _tuning(file: _File, seeds: tuple[int, ...], unrolled: list[list[Entry]], folder: Path) -> Spec:
    """Return the study that parameters are picked from: the sweeps, on seeds of its own."""
    tune = _typed(file.tune, _Tune, "tune.")
    over = [tune.over] if isinstance(tune.over, str) else tune.over
    swept = {name for entries in unrolled for name in entries[0].swept}
    for name in over:
        if name not in swept:
            raise InputError(
                f"no agent has several values of {name!r}",
                field="tune.over",
                fix=f"one of: {', '.join(sorted(swept))}" if swept else "write lists of values",
            )
    if isinstance(tune.seeds, int):
        start = max(seeds) + 1
        fresh = [start + seed for seed in _seeds(tune.seeds, "tune.seeds")]
    else:
        fresh = list(_seeds(tune.seeds, "tune.seeds"))
    for i, seed in enumerate(fresh):
        if seed in seeds:
            raise InputError(
                f"{seed} is a seed of the study too",
                field=f"tune.seeds[{i}]",
                fix="tune on seeds that results are not shown on",
            )
    tables = {
        entries[0].place: table
        for table, entries in zip(file.agents, unrolled, strict=True)
        if set(over) & set(entries[0].swept)
    }
    data = {
        "name": f"{file.name}, tuning",
        "seeds": fresh,
        **({} if file.horizon is None else {"horizon": file.horizon}),
        "environments": file.environments,
        "agents": list(tables.values()),
    }
    spec = _spec(data, folder)
    places = {f"agents[{k}]": place for k, place in enumerate(tables)}
    placed = tuple(replace(entry, place=places[entry.place]) for entry in spec.agents)
    return replace(spec, agents=placed)


def _to_tune(entries: list[Entry], tuning: Spec, over: str | list[str]) -> list[Entry]:
    """Return the entries of a table with what is to be tuned left open."""
    names = [over] if isinstance(over, str) else over
    tuned = tuple(name for name in entries[0].swept if name in names)
    if not tuned:
        return entries
    candidates: dict[str, list[Entry]] = {}
    for entry in tuning.agents:
        if entry.place == entries[0].place:
            candidates.setdefault(_apart_from(tuned, entry), []).append(entry)
    swept = tuple(name for name in entries[0].swept if name not in tuned)
    first = {_apart_from(tuned, entry): entry for entry in reversed(entries)}
    return [
        replace(entry, swept=swept, tuned=tuned, candidates=tuple(candidates[rest]))
        for rest, entry in reversed(first.items())
    ]


def _apart_from(names: Sequence[str], entry: Entry) -> str:
    """Return the other parameters of an entry as one text."""
    return repr([(n, value) for n, value in entry.parameters.items() if n not in names])


def _typed(data: Any, kind: type[_Kind], path: str = "") -> _Kind:
    """Return tables by their keys; errors of msgspec are put into the library's words."""
    try:
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as err:
        problem, _, place = str(err).partition(" - at `$")
        below = place.rstrip("`").lstrip(".")
    known = [key.name for key in msgspec.structs.fields(kind)]
    if unknown := re.search(r"unknown field `(.+)`", problem):
        near = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"no such key{hint}", field=f"{path}{unknown[1]}", fix=f"one of: {', '.join(known)}"
        )
    if missing := re.search(r"missing required field `(.+)`", problem):
        fix = "write it" if path else f"add a [[{missing[1]}]] table"
        raise InputError("is missing", field=f"{path}{missing[1]}", fix=fix)
    value: Any = data
    for step in re.findall(r"[^.\[\]]+", below):
        value = value[int(step)] if isinstance(value, list) and step.isdigit() else value[step]
    wanted = re.search(r"Expected `(.+?)`", problem)
    raise InputError(
        f"{shown(value)} is of the wrong type",
        field=f"{path}{below}".rstrip("."),
        fix="write pairs of labels, [[..., ...]]"
        if below.startswith("compare")
        else f"write {_IN_WORDS.get(wanted[1], wanted[1]) if wanted else 'another value'}",
    )


_IN_WORDS = {
    "str | array": "a name in quotes, or a list of names",
    "str | null": "a label in quotes",
    "object | null": "a table",
    "int | array": "an integer, or a list of integers",
    "int | array | null": "an integer, or a list of integers",
    "int": "an integer",
    "str": "a text in quotes",
    "array": "tables with double brackets",
    "object": "a table",
}


def _seeds(value: int | list[int], field: str = "seeds") -> tuple[int, ...]:
    fix = "write how many, such as 20, or list them: [0, 1, 2]"
    if isinstance(value, int):
        if value < 1:
            raise InputError(f"{value} seeds", field=field, fix=fix)
        if value > _MOST_RUNS:
            raise InputError(f"{value:,} seeds are too many", field=field, fix=fix)
        return tuple(range(value))
    seeds = tuple(as_seed(one, f"{field}[{i}]") for i, one in enumerate(value))
    for i, one in enumerate(seeds):
        if one >= 2**63:
            raise InputError(
                f"{one} is too large", field=f"{field}[{i}]", fix="pass less than 2^63"
            )
    _require_once(seeds, field)
    if not seeds:
        raise InputError("an empty list", field=field, fix=fix)
    return seeds


def _horizons(value: int | list[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise InputError("an empty list", field="horizon", fix="write T, or a list of several")
    _require_once(listed, "horizon")
    named = isinstance(value, list)
    return tuple(
        as_horizon(one, f"horizon[{i}]" if named else "horizon") for i, one in enumerate(listed)
    )


def _require_once(numbers: Sequence[int], field: str) -> None:
    """Refuse a number that a list has twice."""
    seen: set[int] = set()
    for i, one in enumerate(numbers):
        if one in seen:
            raise InputError(f"{one} is there twice", field=f"{field}[{i}]", fix="leave it out")
        seen.add(one)


def _environments(
    table: dict[str, Any], place: str, horizons: tuple[int, ...], folder: Path
) -> list[tuple[Entry, EnvironmentConfig, bool]]:
    """Return the environments of one table, at all horizons."""
    oracle = table.get("oracle", True)
    if not isinstance(oracle, bool):
        raise InputError(
            f"{shown(oracle)} is no yes or no", field=f"{place}.oracle", fix="write true or false"
        )
    if "file" in table:
        return [_from_file(table, place, oracle, folder)]
    id = _id(table, place, configs.environment_parameters)  # noqa: A001
    known = configs.environment_parameters(id, f"{place}.id")
    environments = []
    for entry in _unrolled(table, place, id, ("oracle",)):
        given = dict(entry.parameters)
        lengths: Sequence[int | None] = horizons or (None,)
        if "horizon" in given or "horizon" not in known:
            lengths = (None,)
        for T in lengths:
            parameters = known | given | ({} if T is None else {"horizon": T})
            digest = ""
            if ":" in id:
                digest = configs.current_digest(configs.environment_class(id, place), place)
                given |= {} if T is None else {"horizon": T}
                parameters = configs.with_defaults(known, given)
            config = EnvironmentConfig(configs.versioned(id), parameters, digest)
            environments.append((entry, config, oracle))
    return environments


def _from_file(
    table: dict[str, Any], place: str, oracle: bool, folder: Path
) -> tuple[Entry, EnvironmentConfig, bool]:
    for name in table:
        if name not in ("file", "label", "oracle"):
            raise InputError(
                "a file has its own horizon and no parameters",
                field=f"{place}.{name}",
                fix="leave it out; file, label and oracle may stand here",
            )
    if isinstance(table["file"], list):
        raise InputError("is a list", field=f"{place}.file", fix="write one table for each file")
    path = as_path(table["file"], f"{place}.file")
    config = configs.file_environment(folder / path, f"{place}.file")
    return Entry(_label(table, path.stem, place), place, configs.FILE, {}), config, oracle


def _agent_id(table: dict[str, Any], place: str) -> str:
    return _id(table, place, configs.agent_parameters)


def _id(table: dict[str, Any], place: str, parameters: Callable[[str, str], dict[str, Any]]) -> str:
    """Return the id of a table, and refuse keys that are no parameters of it."""
    reserved = ["id", "label"] if place.startswith("agents") else ["id", "label", "oracle"]
    if "id" not in table:
        either = ["id"] if place.startswith("agents") else ["id", "file"]
        for name in table:
            if difflib.get_close_matches(name.lower(), either):
                require_parameter(name, {*reserved, *either}, place)
        raise InputError("has no id", field=place, fix=f'write {" or ".join(either)} = "..."')
    if isinstance(table["id"], list):
        raise InputError("is a list", field=f"{place}.id", fix="write one table for each id")
    id = as_name(table["id"], f"{place}.id")  # noqa: A001
    known = parameters(id, f"{place}.id")
    for name in table:
        if name in (*registry.GIVEN, *_AT_THE_TOP) and name not in known:
            raise InputError(
                "is given by the study itself",
                field=f"{place}.{name}",
                fix=f"leave it out; {', '.join(_AT_THE_TOP)} stand at the top of the file",
            )
        if place.startswith("agents"):
            registry.require_option(name, agent_class(id), place, {*known, *reserved})
        else:
            require_parameter(name, {*known, *reserved}, place)
    return id


def _unrolled(
    table: dict[str, Any],
    place: str,
    id: str,  # noqa: A002
    reserved: tuple[str, ...],
) -> list[Entry]:
    """Return one entry for every combination of the values that are lists."""
    label = _label(table, id, place)
    names = [name for name in table if name not in ("id", "label", *reserved)]
    for name in names:
        _plain(table[name], f"{place}.{name}")
    lists = [name for name in names if isinstance(table[name], list)]
    for name in lists:
        if not table[name]:
            raise InputError(
                "an empty list sweeps nothing", field=f"{place}.{name}", fix="write values into it"
            )
        for i, one in enumerate(table[name]):
            if one in table[name][:i]:
                raise InputError(
                    f"{shown(one)} is there twice", field=f"{place}.{name}[{i}]", fix="leave it out"
                )
    values = [table[name] if name in lists else [table[name]] for name in names]
    swept = tuple(name for name in lists if len(table[name]) > 1)
    return [
        Entry(label, place, id, dict(zip(names, combination, strict=True)), tuple(lists), swept)
        for combination in itertools.product(*values)
    ]


def _label(table: dict[str, Any], default: str, place: str) -> str:
    """Return the label of a table; runs of blanks, which tables do not show, make no difference."""
    return " ".join(as_name(table.get("label", default), f"{place}.label").split())


def _plain(value: Any, place: str) -> None:
    """Refuse what is no number, text, yes or no, or a list or table of these."""
    if isinstance(value, dict):
        for name, one in value.items():
            _plain(one, f"{place}.{name}")
    elif isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            _plain(one, f"{place}[{i}]")
    elif not isinstance(value, (bool, int, float, str)) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise InputError(
            f"{shown(value)} is no parameter",
            field=place,
            fix='write "environment" for that of the environment'
            if isinstance(value, Structure)
            else "write a finite number, a text, true or false",
        )


# --- labels --------------------------------------------------------------------------------------


def _labelled(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries under labels that tell them apart."""
    short = [_with_parameters(entry, entry.swept) for entry in entries]
    by_label = _by_label(short)
    labelled = [
        _with_parameters(entry, [name for name in entry.parameters if name not in entry.tuned])
        if len(by_label[candidate.label]) > 1
        else candidate
        for entry, candidate in zip(entries, short, strict=True)
    ]
    by_label = _by_label(labelled)
    for entry in reversed(labelled):
        other = by_label[entry.label][0]
        if not _same(entry, other):
            raise InputError(
                f"{entry.label!r} is also what {other.place} is called",
                field=f"{entry.place}.label",
                fix="give each a table and a label of its own, or leave one out",
            )
    return labelled


def _by_label(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the entries under each label; one that has several horizons counts once."""
    by_label: dict[str, list[Entry]] = {}
    for entry in entries:
        namesakes = by_label.setdefault(entry.label, [])
        if not any(_same(entry, other) for other in namesakes):
            namesakes.append(entry)
    return by_label


def _same(one: Entry, other: Entry) -> bool:
    return (one.place, one.parameters) == (other.place, other.parameters)


def _with_parameters(entry: Entry, names: Sequence[str]) -> Entry:
    """Return the entry with some of its parameters in its label."""
    if "radii" in names:
        Radii.from_spec(entry.parameters["radii"], f"{entry.place}.radii")
    parts = [f"{name} {_word(name, entry.parameters[name])}" for name in names]
    label = ", ".join([entry.label, *parts])
    return replace(entry, label=label)


def _word(name: str, value: Any) -> str:
    """Return a parameter as a label shows it.

    >>> _word("delta", 0.3), _word("radii", {"kind": "laplace", "scale": 0.3})
    ('0.3', 'laplace x0.3')
    """
    if name == "radii":
        return Radii.from_spec(value).label
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)) and len(value) > _LISTED:
        return f"[{value[0]}, ..., {value[-1]}]"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("'", "")
