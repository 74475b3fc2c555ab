"""StateActions: which actions each state offers, and the flat layout over pairs."""

from __future__ import annotations

import collections
import hashlib
import itertools
import json
import keyword
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError, ModelError
from windage.validation import (
    as_floats,
    as_integer,
    as_integers,
    as_name,
    as_size,
    require_memory,
    shown,
)

__all__ = ["Factors", "StateActions", "as_space", "rectangular", "require_rectangular"]


class StateActions:
    """The states 0..S-1 and the actions 0..A_s - 1 that each of them offers.

    Action sets differ by state, so every array over state-action pairs is flat: the pairs of state
    0 first, then those of state 1, and so on. An action is always an index within its state.

    Parameters
    ----------
    actions
        The number of actions in each state.
    state_names
        One name a state, or nothing.
    action_names
        One list of names a state; or, if all states have as many actions, one list for all.

    Examples
    --------
    >>> space = StateActions([2, 3, 1], state_names=["low", "mid", "high"])
    >>> space.n_states, space.n_pairs, space.mean_actions
    (3, 6, 2.0)
    >>> space.pair(1, 2), space.describe(4)
    (4, "s=1 ('mid'), a=2")
    """

    __slots__ = (
        "_action_names",
        "_hash",
        "_state_names",
        "action_of",
        "counts",
        "offsets",
        "state_of",
    )

    counts: NDArray[np.int64]
    """A_s, the number of actions of each state."""
    offsets: NDArray[np.int64]
    """Where the pairs of each state start; S + 1 numbers, the last is the number of pairs."""
    state_of: NDArray[np.int64]
    """The state of each pair."""
    action_of: NDArray[np.int64]
    """The action of each pair, an index within its state."""

    _state_names: tuple[str, ...] | None
    _action_names: tuple[tuple[str, ...], ...] | None
    _hash: int

    def __init__(
        self,
        actions: Iterable[int] | NDArray[np.integer],
        state_names: Sequence[str] | None = None,
        action_names: Sequence[Sequence[str]] | Sequence[str] | None = None,
    ) -> None:
        counts = as_integers(actions, "actions", low=1, error=ModelError)
        if counts.size == 0:
            raise ModelError("there are no states", field="actions", fix="name at least one state")
        _require_room(counts.size, float(counts.sum(dtype=np.float64)), "actions")
        offsets = np.concatenate([[0], np.cumsum(counts)])
        state_of = np.repeat(np.arange(counts.size), counts)
        found = {
            "counts": counts,
            "offsets": offsets,
            "state_of": state_of,
            "action_of": np.arange(state_of.size) - offsets[state_of],
        }
        for name, array in found.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        names = _state_names(state_names, counts.size), _action_names(action_names, counts)
        object.__setattr__(self, "_state_names", names[0])
        object.__setattr__(self, "_action_names", names[1])
        # Not Python's hash of strings: that one differs from process to process.
        digest = hashlib.blake2b(json.dumps(names).encode() + counts.tobytes(), digest_size=7)
        object.__setattr__(self, "_hash", int.from_bytes(digest.digest(), "little"))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a StateActions cannot be changed: {name} is fixed; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a StateActions cannot be changed: {name} is fixed")

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes by value."""
        return type(self), (self.counts, self._state_names, self._action_names)

    @classmethod
    def uniform(
        cls,
        states: int,
        actions: int,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> StateActions:
        """Return the space in which every state offers the same number of actions.

        >>> StateActions.uniform(states=6, actions=2).n_pairs
        12
        """
        n = as_size(states, "states", error=ModelError)
        each = as_size(actions, "actions", error=ModelError)
        _require_room(n, float(n * each), "states")
        return cls(np.full(n, each), state_names=state_names, action_names=action_names)

    @property
    def n_states(self) -> int:
        """S."""
        return self.counts.size

    @property
    def n_pairs(self) -> int:
        """SA, the number of state-action pairs."""
        return int(self.offsets[-1])

    @property
    def mean_actions(self) -> float:
        """A = SA / S, the paper's mean number of actions; may be fractional (E32)."""
        return self.n_pairs / self.n_states

    @property
    def state_names(self) -> tuple[str, ...] | None:
        """The names given to the states."""
        return self._state_names

    @property
    def action_names(self) -> tuple[tuple[str, ...], ...] | None:
        """The names given to the actions, a tuple a state."""
        return self._action_names

    def pair(self, s: int, a: int) -> int:
        """Return the pair index of action `a` in state `s`."""
        state = self.check_state(s)
        return int(self.offsets[state]) + self.check_action(state, a)

    def check_state(self, s: object, field: str = "state") -> int:
        """Return `s` as an int if it is a state, else raise."""
        if type(s) is int and 0 <= s < self.counts.size:
            return s  # several times in every step of an agent
        return as_integer(s, field, low=0, high=self.n_states - 1)

    def check_action(self, s: int, a: object, field: str = "action") -> int:
        """Return `a` as an int if state `s` offers it, else raise."""
        state = s if type(s) is int and 0 <= s < self.counts.size else self.check_state(s)
        count = int(self.counts[state])
        try:
            return as_integer(a, field, low=0, high=count - 1)
        except InputError as err:
            raise InputError(
                f"{err.problem}: {self.describe_state(state)} offers {count} action(s)",
                field=field,
                fix=err.fix,
            ) from None

    def describe_state(self, s: int) -> str:
        """Return how a message calls state `s`."""
        state = self.check_state(s)
        return f"s={state}" + (f" ({self._state_names[state]!r})" if self._state_names else "")

    def describe(self, pair: int) -> str:
        """Return how a message calls a pair."""
        place = as_integer(pair, "pair", low=0, high=self.n_pairs - 1)
        s, a = int(self.state_of[place]), int(self.action_of[place])
        name = f" ({self._action_names[s][a]!r})" if self._action_names else ""
        return f"{self.describe_state(s)}, a={a}{name}"

    def state_name(self, s: int) -> str:
        """Return the name of state `s`, its number if it has none."""
        state = self.check_state(s)
        return self._state_names[state] if self._state_names else str(state)

    def action_name(self, s: int, a: int) -> str:
        """Return the name of action `a` in state `s`, its number if it has none."""
        state = self.check_state(s)
        action = self.check_action(state, a)
        return self._action_names[state][action] if self._action_names else str(action)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StateActions)
            and np.array_equal(self.counts, other.counts)
            and self._state_names == other._state_names
            and self._action_names == other._action_names
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.n_pairs == self.n_states * int(self.counts[0]) and np.ptp(self.counts) == 0:
            return f"StateActions.uniform(states={self.n_states}, actions={self.counts[0]})"
        shown = ", ".join(map(str, self.counts[:8])) + (", ..." if self.n_states > 8 else "")
        return f"StateActions([{shown}])"


class Factors:
    """States that are combinations of factors, such as stock and weekday, numbered from 0.

    Parameters
    ----------
    factors
        The values of each factor, numbers or words, by its name. The last one changes fastest.

    Examples
    --------
    >>> states = Factors(stock=range(3), day=["weekday", "weekend"])
    >>> len(states), states[3]
    (6, State(stock=1, day='weekend'))
    >>> states.index(stock=2, day="weekday")
    4
    >>> space = states.space(lambda stock, day: 3 - stock)
    >>> space.describe_state(4), space.counts
    ("s=4 ('stock 2, weekday')", array([3, 3, 2, 2, 1, 1]))
    """

    def __init__(self, **factors: Iterable[int | float | str]) -> None:
        if not factors:
            raise ModelError(
                "there are no factors",
                field="factors",
                fix="name them, such as Factors(stock=range(11), day=DAYS)",
            )
        self.values: dict[str, tuple[Any, ...]] = {
            name: _factor(name, values) for name, values in factors.items()
        }
        """The values of each factor."""
        size = np.prod([float(len(values)) for values in self.values.values()])
        require_memory(200.0 * float(size), "factors", fix="use fewer values")
        self._place = {
            name: {value: i for i, value in enumerate(values)}
            for name, values in self.values.items()
        }
        kind = collections.namedtuple("State", self.values)  # type: ignore[misc]
        self._states: list[Any] = [
            kind(*found) for found in itertools.product(*self.values.values())
        ]

    def __len__(self) -> int:
        """S."""
        return len(self._states)

    def __getitem__(self, s: int) -> Any:
        """Return the values of a state, a named tuple."""
        return self._states[as_integer(s, "state", low=0, high=len(self) - 1)]

    def index(self, *values: Any, **named: Any) -> int:
        """Return the state with these values: one a factor, in their order or by name."""
        given = dict(zip(self.values, values, strict=False)) | named
        if len(given) != len(values) + len(named) or given.keys() != self.values.keys():
            raise InputError(
                f"{len(values)} values and {list(named)} are not one for each factor",
                field="index",
                fix=f"pass {', '.join(self.values)}",
            )
        state = 0
        for name, place in self._place.items():
            value = given[name]
            plain = value.item() if isinstance(value, np.generic) else value
            known = isinstance(plain, (int, float, str)) and not isinstance(plain, bool)
            if not known or plain not in place:
                raise InputError(
                    f"{shown(value)} is no value of this factor",
                    field=name,
                    fix=f"pass {_ends(self.values[name])}",
                )
            state = state * len(place) + place[plain]
        return state

    @property
    def state_names(self) -> list[str]:
        """What each state is called: its words, and its numbers with the name of their factor."""
        return [
            ", ".join(
                value if isinstance(value, str) else f"{name} {value}"
                for name, value in zip(self.values, state, strict=True)
            )
            for state in self._states
        ]

    def space(self, actions: Callable[..., int | Sequence[str]]) -> StateActions:
        """Return the space of these states with `actions(*values)`: how many, or their names."""
        if not callable(actions):
            raise ModelError(
                f"{shown(actions)} cannot be called",
                field="actions",
                fix=f"pass a function of ({', '.join(self.values)})",
            )
        offered = [actions(*state) for state in self._states]
        named = [isinstance(found, (list, tuple)) for found in offered]
        if not any(named):
            return StateActions(offered, self.state_names)  # type: ignore[arg-type]
        if not all(named):
            s = named.index(False)
            raise ModelError(
                f"{shown(offered[s])} in {self[s]}, names elsewhere",
                field="actions",
                fix="return names in every state, or how many actions there are",
            )
        return StateActions([len(found) for found in offered], self.state_names, offered)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factors) and list(self.values.items()) == list(
            other.values.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self.values.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes by value."""
        return _factors, (self.values,)

    def __repr__(self) -> str:
        sizes = " x ".join(f"{name} {len(values)}" for name, values in self.values.items())
        return f"Factors({sizes})"


def _factors(values: dict[str, Any]) -> Factors:
    return Factors(**values)


def _factor(name: str, values: Any) -> tuple[int | float | str, ...]:
    """Return the values of a factor as plain numbers or words, each once."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ModelError(
            f"{shown(name)} cannot name a field", field="factors", fix="use a word of letters"
        )
    if not isinstance(values, (list, tuple, range, np.ndarray)) or not len(values):
        raise ModelError(
            f"{shown(values)} is not a list of values",
            field=name,
            fix="pass numbers or words, such as range(11)",
        )
    require_memory(200.0 * len(values), name, fix="use fewer values")
    found: list[Any] = [v.item() if isinstance(v, np.generic) else v for v in values]
    for i, value in enumerate(found):
        if isinstance(value, str):
            as_name(value, f"{name}[{i}]")
        elif (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not math.isfinite(value)
        ):
            raise ModelError(
                f"{shown(value)} is neither a finite number nor a word",
                field=f"{name}[{i}]",
                fix="pass numbers or words",
            )
    if len(set(found)) < len(found):
        twice = next(v for i, v in enumerate(found) if v in found[:i])
        raise ModelError(f"{twice!r} is there twice", field=name, fix="pass every value once")
    return tuple(found)


def _ends(values: tuple[Any, ...]) -> str:
    """Return values as a message names them: all if they are few."""
    few = values if len(values) <= 8 else (*values[:3], "...", values[-1])
    return "one of " + ", ".join(value if value == "..." else repr(value) for value in few)


def as_space(space: object, field: str = "space") -> StateActions:
    """Return `space` if it is one, else raise."""
    if isinstance(space, StateActions):
        return space
    raise ModelError(
        f"is of type {type(space).__name__}, not StateActions",
        field=field,
        fix="pass wd.StateActions([...]), the number of actions in each state",
    )


def rectangular(
    rewards: ArrayLike, transitions: ArrayLike, space: StateActions | None, *, leading: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], StateActions]:
    """Return `r[..., s, a]` and `p[..., s, a, s']` over pairs, and the space they live on."""
    r, p = as_floats(rewards, "r"), as_floats(transitions, "p")
    require_rectangular(r.shape, p.shape, leading=leading)
    states, actions = r.shape[leading:]
    if space is None:
        space = StateActions.uniform(states=states, actions=actions)
    if as_space(space).n_states != states or space.counts.max() > actions:
        raise ModelError(
            f"arrays of {states} states and {actions} actions do not hold {space!r}",
            field="space",
            fix="pass as many states as the space has and as many actions as its largest A_s",
        )
    where = (..., space.state_of, space.action_of)
    return r[where], p[(*where, slice(None))], space


def require_rectangular(r: tuple[int, ...], p: tuple[int, ...], *, leading: int) -> None:
    """Refuse shapes that are not those of `r[..., s, a]` and `p[..., s, a, s']`."""
    dims = "t, " * leading
    if len(r) != leading + 2 or len(p) != leading + 3 or p[:-1] != r:
        raise ModelError(
            f"shapes {r} and {p} do not fit",
            field="r and p",
            fix=f"pass r[{dims}s, a] and p[{dims}s, a, s'] with the same leading shape",
        )
    if p[-1] != r[leading]:
        raise ModelError(
            f"{p[-1]} next states for {r[leading]} states",
            field="p",
            fix=f"pass p[{dims}s, a, s'] with as many s' as s",
        )


def _require_room(states: int, pairs: float, field: str) -> None:
    require_memory(8.0 * (3 * states + 4 * pairs), field, fix="use fewer states or actions")


def _state_names(names: object, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    found = _names(names, "state_names")
    if len(found) != n:
        raise ModelError(
            f"{len(found)} names for {n} states", field="state_names", fix="give one name a state"
        )
    return found


def _action_names(names: object, counts: NDArray[np.int64]) -> tuple[tuple[str, ...], ...] | None:
    if names is None:
        return None
    lists = _listed(names, "action_names")
    if lists and all(isinstance(name, str) for name in lists):
        lists = (_names(lists, "action_names"),) * counts.size
    if len(lists) != counts.size:
        raise ModelError(
            f"{len(lists)} lists for {counts.size} states",
            field="action_names",
            fix="give one list of names a state, or one list for all",
        )
    known: dict[int, tuple[str, ...]] = {}  # many states may share one list
    found = []
    for s, (of_state, count) in enumerate(zip(lists, counts.tolist(), strict=True)):
        if id(of_state) not in known:
            known[id(of_state)] = _names(of_state, f"action_names[{s}]")
        of_state = known[id(of_state)]
        if len(of_state) != count:
            raise ModelError(
                f"{len(of_state)} names for {count} actions",
                field=f"action_names[{s}]",
                fix="give one name an action",
            )
        found.append(of_state)
    return tuple(found)


def _names(names: object, field: str) -> tuple[str, ...]:
    """Return names that are all different: whoever reads one must know which is meant."""
    first: dict[str, int] = {}
    for i, given in enumerate(_listed(names, field)):
        name = as_name(given, f"{field}[{i}]")
        if first.setdefault(name, i) != i:
            raise ModelError(
                f"{shown(name)} is the name of {field}[{first[name]}] too",
                field=f"{field}[{i}]",
                fix="give each a name of its own",
            )
    return tuple(first)


def _listed(names: object, field: str) -> tuple[Any, ...]:
    """Return a list as a tuple; a string is no list of names, though Python can go through it."""
    if isinstance(names, (list, tuple, np.ndarray)):
        return tuple(names)
    raise ModelError(
        f"{shown(names)} is not a list of names", field=field, fix="pass a list of strings"
    )
