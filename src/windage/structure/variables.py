"""Exogenous variables: outcomes, the groups that share a law, and what a step shows of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError, ModelError
from windage.spaces import StateActions
from windage.validation import as_choice, as_name, require_memory, shown

__all__ = [
    "ALWAYS",
    "INFERRED",
    "INTERVAL",
    "INVOLVED",
    "SEEN",
    "Exogenous",
    "Label",
    "Law",
    "Outcome",
    "as_variables",
    "ends",
    "group_pairs",
    "is_label",
    "listed",
    "many",
]

Label: TypeAlias = Hashable
Outcome: TypeAlias = int | float | str
Law: TypeAlias = tuple[int, Label | None]
"""The index of a variable and a label, None where all pairs share the law."""

ALWAYS, INVOLVED, INTERVAL, INFERRED = range(4)
SEEN = ("always", "involved", "interval", "inferred")


class Exogenous:
    """A variable that no action influences, whose law is unknown and may drift.

    Parameters
    ----------
    name
        What `seen` calls it.
    outcomes
        Its possible values: numbers or words, each once.
    group
        `group(s, a)`, the label of the law that acts at a state-action pair, or None where the pair
        does not involve the variable. A label is a word, a number or a tuple of these. One law for
        all pairs if there is no group.
    seen
        What a step shows of it: "always" the outcome; the outcome where the pair "involved" it; an
        "interval" of outcomes, all that next state and reward leave possible (censored demand); or
        nothing, and it is "inferred" from next state and reward.

    Examples
    --------
    >>> Exogenous("demand", range(26))
    Exogenous('demand', 26 outcomes 0..25, seen='always')
    """

    name: str
    outcomes: tuple[Outcome, ...]
    group: Callable[[int, int], Label | None] | None
    seen: str

    def __init__(
        self,
        name: str,
        outcomes: Sequence[Outcome] | range | NDArray[Any],
        group: Callable[[int, int], Label | None] | None = None,
        seen: str = "always",
    ) -> None:
        called = as_name(name, "name")
        shows = as_choice(seen, f"{called}: seen", SEEN)
        if group is not None and not callable(group):
            raise InputError(
                f"{shown(group)} cannot be called",
                field=f"{called}: group",
                fix="pass a function of (s, a) that returns a label or None, or leave it out",
            )
        values = _outcomes(outcomes, f"{called}: outcomes")
        if shows == "interval" and not isinstance(values[0], str):
            for lower, upper in itertools.pairwise(values):
                if lower > upper:  # type: ignore[operator]
                    raise ModelError(
                        f"{upper} comes after {lower}",
                        field=f"{called}: outcomes",
                        fix="list the outcomes in rising order: an interval is between two of them",
                    )
        self.__dict__.update(
            name=called,
            outcomes=values,
            group=group,
            seen=shows,
            _place={value: i for i, value in enumerate(values)},
        )

    def index(self, outcome: object, field: str = "seen") -> int:
        """Return the index of an outcome, or say that there is no such outcome.

        >>> Exogenous("weather", ["dry", "wet"]).index("wet")
        1
        """
        plain = outcome.item() if isinstance(outcome, np.generic) else outcome
        known = not isinstance(plain, bool) and isinstance(plain, (int, float, str))
        place = self.__dict__["_place"].get(plain) if known else None
        if place is None:
            raise InputError(
                f"{shown(outcome)} is no outcome of {self.name!r}",
                field=field,
                fix=f"pass {listed(self.outcomes)}, or declare it among the outcomes",
            )
        return int(place)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an Exogenous cannot be changed: {name} is fixed; make a new one")

    def __repr__(self) -> str:
        grouped = ", grouped" if self.group is not None else ""
        return (
            f"Exogenous({self.name!r}, {len(self.outcomes)} outcomes {ends(self.outcomes)}"
            f"{grouped}, seen={self.seen!r})"
        )


def as_variables(variables: object) -> tuple[Exogenous, ...]:
    """Return variables with names of their own."""
    if not isinstance(variables, (list, tuple)) or not variables:
        raise ModelError(
            f"{shown(variables)} is not a list of variables",
            field="variables",
            fix='pass a list such as [wd.Exogenous("demand", range(26))]',
        )
    for i, variable in enumerate(variables):
        if not isinstance(variable, Exogenous):
            raise ModelError(
                f"{shown(variable)} is not an Exogenous",
                field=f"variables[{i}]",
                fix='pass variables such as wd.Exogenous("demand", range(26))',
            )
        if variable.name in [other.name for other in variables[:i]]:
            raise ModelError(
                f"{variable.name!r} is the name of another variable too",
                field=f"variables[{i}]",
                fix="give each a name of its own",
            )
    return tuple(variables)


def group_pairs(
    space: StateActions, variables: tuple[Exogenous, ...]
) -> tuple[tuple[Law, ...], NDArray[np.int32]]:
    """Return the laws and, for every pair and variable, which of them acts."""
    laws: list[Law] = []
    require_memory(4.0 * space.n_pairs * len(variables), "variables", fix="use fewer variables")
    law_of = np.full((space.n_pairs, len(variables)), -1, dtype=np.int32)
    for f, variable in enumerate(variables):
        if variable.group is None:
            law_of[:, f] = len(laws)
            laws.append((f, None))
            continue
        numbers: dict[Label, int] = {}
        for pair in range(space.n_pairs):
            label = _label(space, variable, pair)
            if label is not None:
                law_of[pair, f] = numbers.setdefault(label, len(laws) + len(numbers))
        labels = list(numbers)
        for pair in reversed(range(space.n_pairs)):
            label, law = _label(space, variable, pair), law_of[pair, f]
            before = labels[law - len(laws)] if law >= 0 else None
            if label != before:
                raise ModelError(
                    f"answered {before!r}, and asked again {label!r}",
                    field=f"{variable.name}: group",
                    where=space.describe(pair),
                    fix="let it depend on state and action alone",
                )
        if not numbers:
            raise ModelError(
                "is None at every state-action pair: nothing involves the variable",
                field=f"{variable.name}: group",
                fix="return a label at some pair, or leave the variable out",
            )
        laws += [(f, label) for label in numbers]
    return tuple(laws), law_of


def _label(space: StateActions, variable: Exogenous, pair: int) -> Label | None:
    """Return the label of a pair as plain data."""
    s, a = int(space.state_of[pair]), int(space.action_of[pair])
    place = {"field": f"{variable.name}: group", "where": space.describe(pair)}
    assert variable.group is not None
    try:
        label = variable.group(s, a)
    except Exception as err:
        raise ModelError(
            f"raised {type(err).__name__}: {err}",
            **place,
            fix="let it return a label or None for every state and action",
        ) from err
    found = label.item() if isinstance(label, np.generic) else label
    if found is not None and not is_label(found):
        raise ModelError(
            f"{shown(label)} ({type(label).__name__}) is no label",
            **place,
            fix="return a word, a number, a tuple of these, or None",
        )
    return found


def is_label(value: object) -> bool:
    """Return whether a value can name a law: a word, a number, a tuple of these."""
    if isinstance(value, tuple):
        return all(is_label(part) for part in value)
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def _outcomes(outcomes: object, field: str) -> tuple[Outcome, ...]:
    """Return outcomes as plain numbers or words, each once and at least two."""
    fix = "pass a list of at least two numbers or words"
    if isinstance(outcomes, range):
        require_memory(200.0 * len(outcomes), field, fix="use fewer outcomes")
    if not isinstance(outcomes, (list, tuple, range, np.ndarray)):
        raise ModelError(f"{shown(outcomes)} is not a list of outcomes", field=field, fix=fix)
    found: list[Outcome] = []
    for i, value in enumerate(outcomes):
        plain = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
        place = f"{field}[{i}]"
        if isinstance(plain, str):
            as_name(plain, place)
        elif isinstance(plain, bool) or not isinstance(plain, (int, float)):
            raise ModelError(
                f"{shown(value)} is neither a number nor a word",
                field=place,
                fix="pass numbers or words, such as 0 and 1 for no and yes",
            )
        elif abs(plain) > 2**53 or not math.isfinite(plain):
            raise ModelError(
                f"{shown(value)} is too large or not finite",
                field=place,
                fix="pass numbers up to 2**53",
            )
        found.append(plain)
    if len({isinstance(value, str) for value in found}) > 1:
        raise ModelError("holds numbers and words", field=field, fix="pass all of one kind")
    if len(set(found)) < len(found):
        twice = next(v for i, v in enumerate(found) if v in found[:i])
        raise ModelError(f"{twice!r} is there twice", field=field, fix="pass every outcome once")
    if len(found) < 2:
        raise ModelError(
            f"{many(len(found), 'outcome')} leave nothing to learn", field=field, fix=fix
        )
    return tuple(found)


def ends(outcomes: tuple[Outcome, ...]) -> str:
    """Return outcomes as a line on a variable calls them: words, or the first and the last."""
    if len(outcomes) == 2 or isinstance(outcomes[0], str):
        return f"({listed(outcomes)})"
    return f"{outcomes[0]}..{outcomes[-1]}"


def listed(values: Sequence[object]) -> str:
    """Return the first few of some values."""
    parts = [repr(value) for value in values[:6]]
    return ", ".join(parts) + (", ..." if len(values) > 6 else "")


def many(count: int, noun: str) -> str:
    """Return a count with its noun: 1 law, 2 laws."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
