"""StateActions: which actions each state offers, and the flat layout over pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError, ModelError
from windage.inputs import as_integer, as_integers, as_name, require_memory

__all__ = ["StateActions"]


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
        "_counts",
        "_hash",
        "_offsets",
        "_state_names",
        "action_of",
        "state_of",
    )  # fmt: skip

    def __init__(
        self,
        actions: Iterable[int] | NDArray[np.integer],
        state_names: Sequence[str] | None = None,
        action_names: Sequence[Sequence[str]] | Sequence[str] | None = None,
    ) -> None:
        counts = as_integers(actions, "actions", low=1, error=ModelError)
        if counts.size == 0:
            raise ModelError("there are no states", field="actions", fix="name at least one state")
        self._counts = _frozen(counts)
        self._offsets = _frozen(np.concatenate([[0], np.cumsum(counts)]))
        self.state_of = _frozen(np.repeat(np.arange(counts.size), counts))
        self.action_of = _frozen(np.arange(self.n_pairs) - self._offsets[self.state_of])
        self._state_names = _state_names(state_names, counts.size)
        self._action_names = _action_names(action_names, counts)
        self._hash = hash((counts.tobytes(), self._state_names, self._action_names))

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
        n = as_integer(states, "states", low=1, error=ModelError)
        each = as_integer(actions, "actions", low=1, error=ModelError)
        require_memory(8.0 * n * (2 + 3 * each), "states", fix="use fewer states or actions")
        return cls(np.full(n, each), state_names=state_names, action_names=action_names)

    @property
    def n_states(self) -> int:
        """S."""
        return self._counts.size

    @property
    def n_pairs(self) -> int:
        """SA, the number of state-action pairs."""
        return int(self._offsets[-1])

    @property
    def mean_actions(self) -> float:
        """A = SA / S, the paper's mean number of actions; may be fractional (E32)."""
        return self.n_pairs / self.n_states

    @property
    def counts(self) -> NDArray[np.int64]:
        """A_s, the number of actions of each state."""
        return self._counts

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the pairs of each state start; S + 1 numbers, the last is the number of pairs."""
        return self._offsets

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
        return int(self._offsets[state]) + self.check_action(state, a)

    def check_state(self, s: object, field: str = "state") -> int:
        """Return `s` as an int if it is a state, else raise."""
        return as_integer(s, field, low=0, high=self.n_states - 1)

    def check_action(self, s: int, a: object, field: str = "action") -> int:
        """Return `a` as an int if state `s` offers it, else raise."""
        try:
            return as_integer(a, field, low=0, high=int(self._counts[s]) - 1)
        except InputError as err:
            raise InputError(
                f"{err.problem}: {self.describe_state(s)} offers {self._counts[s]} action(s)",
                field=field,
                fix=err.fix,
            ) from None

    def describe_state(self, s: int) -> str:
        """Return how a message calls state `s`."""
        return f"s={s}" + (f" ({self._state_names[s]!r})" if self._state_names else "")

    def describe(self, pair: int) -> str:
        """Return how a message calls a pair."""
        s, a = int(self.state_of[pair]), int(self.action_of[pair])
        name = f" ({self._action_names[s][a]!r})" if self._action_names else ""
        return f"{self.describe_state(s)}, a={a}{name}"

    def state_name(self, s: int) -> str:
        """Return the name of state `s`, its number if it has none."""
        return self._state_names[s] if self._state_names else str(s)

    def action_name(self, s: int, a: int) -> str:
        """Return the name of action `a` in state `s`, its number if it has none."""
        return self._action_names[s][a] if self._action_names else str(a)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StateActions)
            and np.array_equal(self._counts, other._counts)
            and self._state_names == other._state_names
            and self._action_names == other._action_names
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.n_pairs == self.n_states * int(self._counts[0]) and np.ptp(self._counts) == 0:
            return f"StateActions.uniform(states={self.n_states}, actions={self._counts[0]})"
        shown = ", ".join(map(str, self._counts[:8])) + (", ..." if self.n_states > 8 else "")
        return f"StateActions([{shown}])"


def _frozen(array: NDArray[np.int64]) -> NDArray[np.int64]:
    array.flags.writeable = False
    return array


def _state_names(names: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    found = tuple(as_name(name, f"state_names[{i}]") for i, name in enumerate(names))
    if len(found) != n:
        raise ModelError(
            f"{len(found)} names for {n} states", field="state_names", fix="give one name a state"
        )
    return found


def _action_names(
    names: Sequence[Sequence[str]] | Sequence[str] | None, counts: NDArray[np.int64]
) -> tuple[tuple[str, ...], ...] | None:
    if names is None:
        return None
    if all(isinstance(name, str) for name in names):
        names = [list(map(str, names))] * counts.size
    if len(names) != counts.size:
        raise ModelError(
            f"{len(names)} lists for {counts.size} states",
            field="action_names",
            fix="give one list of names a state, or one list for all",
        )
    found = []
    for s, (of_state, count) in enumerate(zip(names, counts, strict=True)):
        if len(of_state) != count:
            raise ModelError(
                f"{len(of_state)} names for {count} actions",
                field=f"action_names[{s}]",
                fix="give one name an action",
            )
        found.append(
            tuple(as_name(name, f"action_names[{s}][{a}]") for a, name in enumerate(of_state))
        )
    return tuple(found)
