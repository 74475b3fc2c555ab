"""Functions of state, action and outcomes as tables over the joint outcomes of every pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError, ModelError
from windage.spaces import StateActions
from windage.structure.variables import (
    ALWAYS,
    INFERRED,
    INTERVAL,
    Exogenous,
    Law,
    Outcome,
)
from windage.validation import as_range, freeze, require_memory, shown

__all__ = ["Joint", "as_reward", "as_state", "check_seen", "check_uses", "products", "range_of"]

Ints: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-12  # of the range: 1 - .8 - .2 is meant to be 0
_CHECKED = 1 << 14  # so many answers to arrays are all compared with answers to plain outcomes


class Joint:
    """The joint outcomes of every pair, and the functions tabulated over them."""

    def __init__(
        self, space: StateActions, variables: tuple[Exogenous, ...], law_of: NDArray[np.int32]
    ) -> None:
        self.space = space
        self.variables = variables
        self.law_of = law_of
        sizes = np.array([len(v.outcomes) for v in variables], dtype=np.float64)
        counts = np.where(law_of >= 0, sizes, 1.0).prod(axis=1)
        require_memory(64.0 * float(counts.sum()), "variables", fix="use fewer outcomes or pairs")
        self.first = np.concatenate([[0], np.cumsum(counts.astype(np.int64))])
        self._grids: dict[bytes, list[NDArray[Any] | None]] = {}

    def grid(self, pair: int) -> list[NDArray[Any] | None]:
        """Return the joint outcomes of a pair, an array a variable."""
        involved = self.law_of[pair] >= 0
        known = involved.tobytes()
        if known not in self._grids:
            which = np.flatnonzero(involved)
            axes = [np.array(self.variables[f].outcomes) for f in which]
            grid: list[NDArray[Any] | None] = [None] * involved.size
            for f, axis in zip(which, np.meshgrid(*axes, indexing="ij"), strict=True):
                grid[f] = axis.ravel()
                freeze(grid[f])
            self._grids[known] = grid
        return self._grids[known]

    def place(self, joint: int) -> str:
        """Return how a message calls a joint outcome: its state, action and outcomes."""
        pair = int(np.searchsorted(self.first, joint, side="right")) - 1
        outcomes = self._outcomes(pair, joint - int(self.first[pair]))
        words = [
            f"{v.name}={outcome!r}"
            for v, outcome in zip(self.variables, outcomes, strict=True)
            if outcome is not None
        ]
        return ", ".join([self.space.describe(pair), *words])

    def _outcomes(self, pair: int, number: int) -> tuple[Outcome | None, ...]:
        return next(itertools.islice(products(self.variables, self.law_of[pair]), number, None))

    def tabulate(
        self, function: object, field: str, check: Callable[[object], int | float]
    ) -> NDArray[Any]:
        """Return the answers of a function to all joint outcomes, asked twice.

        A function is asked with arrays of outcomes if it answers to them what it answers to plain
        ones. Pairs are asked about forwards, then backwards.
        """
        if not callable(function):
            raise ModelError(
                f"{shown(function)} cannot be called",
                field=field,
                fix=f"pass a function {field}(s, a, *outcomes)",
            )
        found = self._many_at_once(function, check)
        if found is None:
            found = np.empty(self.first[-1], dtype=np.float64)
            for joint, answer in self._one_by_one(
                function, field, check, range(self.space.n_pairs)
            ):
                found[joint] = answer
            for joint, answer in self._one_by_one(
                function, field, check, reversed(range(self.space.n_pairs))
            ):
                if found[joint] != answer:
                    raise ModelError(
                        f"answered {found[joint]:g}, and asked again {answer:g}",
                        field=field,
                        where=self.place(joint),
                        fix="let it depend on state, action and outcomes alone",
                    )
        return found

    def _many_at_once(
        self, function: Callable[..., Any], check: Callable[[object], int | float]
    ) -> Reals | None:
        """Return the answers to arrays; None if the function does not take them.

        An array that holds what is no answer is not judged here: asked with plain outcomes, the
        function says which one it is.
        """
        space, found = self.space, np.empty(self.first[-1], dtype=np.float64)
        whole = check is not as_reward
        every = found.size <= _CHECKED
        try:
            for pair in range(space.n_pairs):
                s, a = int(space.state_of[pair]), int(space.action_of[pair])
                with np.errstate(all="ignore"):
                    answer = np.asarray(function(s, a, *self.grid(pair)))
                count = self.first[pair + 1] - self.first[pair]
                if answer.dtype.kind not in ("iu" if whole else "iuf") or answer.shape not in (
                    (),
                    (count,),
                ):
                    return None
                found[self.first[pair] : self.first[pair + 1]] = answer
            for worst in (found.min(), found.max()):  # NaN if there is one
                check(int(worst) if whole else worst)
            for pair in reversed(range(space.n_pairs)):
                s, a = int(space.state_of[pair]), int(space.action_of[pair])
                start, end = int(self.first[pair]), int(self.first[pair + 1])
                few = range(end - start) if every else (pair * 7919 % (end - start),)
                for number, outcomes in zip(few, self._some(pair, few), strict=True):
                    plain = check(function(s, a, *outcomes))
                    if not math.isclose(plain, found[start + number], rel_tol=1e-12):
                        return None
        except Exception:
            return None
        return found

    def _some(self, pair: int, numbers: Sequence[int]) -> Iterator[tuple[Outcome | None, ...]]:
        if len(numbers) == 1:
            return iter([self._outcomes(pair, numbers[0])])
        return products(self.variables, self.law_of[pair])

    def _one_by_one(
        self,
        function: Callable[..., Any],
        field: str,
        check: Callable[[object], int | float],
        pairs: range | Iterator[int],
    ) -> Iterator[tuple[int, int | float]]:
        """Yield (joint outcome, answer) over pairs, asked with plain outcomes."""
        for pair in pairs:
            s, a = int(self.space.state_of[pair]), int(self.space.action_of[pair])
            for number, outcomes in enumerate(products(self.variables, self.law_of[pair])):
                joint = int(self.first[pair]) + number
                try:
                    answer = function(s, a, *outcomes)
                except Exception as err:
                    absent = [
                        v.name for v, o in zip(self.variables, outcomes, strict=True) if o is None
                    ]
                    hint = f" ({', '.join(absent)}: None, not involved)" if absent else ""
                    raise ModelError(
                        f"raised {type(err).__name__}: {err}",
                        field=field,
                        where=self.place(joint) + hint,
                        fix="let it answer to every state, action and outcome",
                    ) from err
                try:
                    yield joint, check(answer)
                except InputError as err:
                    raise ModelError(
                        err.problem, field=field, where=self.place(joint), fix=err.fix
                    ) from None


def products(
    variables: tuple[Exogenous, ...], laws: NDArray[np.int32]
) -> Iterator[tuple[Outcome | None, ...]]:
    """Return all joint outcomes of a pair, given its laws; None for what it does not involve."""
    axes = [v.outcomes if law >= 0 else (None,) for v, law in zip(variables, laws, strict=True)]
    return itertools.product(*axes)


def as_state(n: int) -> Callable[[object], int]:
    """Return the check of what `next_state` answers in a space of n states."""

    def check(value: object) -> int:
        plain = _plain(value)
        if isinstance(plain, bool) or not isinstance(plain, int):
            raise InputError(
                f"{shown(value)} ({type(plain).__name__}) is no state",
                fix=f"return an integer from 0 to {n - 1}",
            )
        if not 0 <= plain < n:
            raise InputError(f"{plain} is off the space", fix=f"return a state from 0 to {n - 1}")
        return plain

    return check


def as_reward(value: object) -> float:
    """Return what `reward` answers as a finite number."""
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        raise InputError(
            f"{shown(value)} ({type(plain).__name__}) is no reward", fix="return a finite number"
        )
    number = float(plain) if abs(plain) < 1e300 else math.inf  # sums and squares stay finite
    if not math.isfinite(number):
        raise InputError(f"{shown(value)} is not finite", fix="return a number below 1e300")
    return number


def _plain(value: object) -> object:
    scalar = isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0
    return value.item() if scalar else value  # type: ignore[attr-defined]


def range_of(joint: Joint, rewards: Reals | None, stated: object) -> tuple[float, float]:
    """Return the range of rewards in natural units.

    A stated one must hold the table, which is moved into it where rounding took it out.
    """
    if rewards is None:
        return (0.0, 1.0) if stated is None else as_range(stated, "reward_range")
    low, high = float(rewards.min()), float(rewards.max())
    if stated is None:
        return (low, high) if low < high else (low, low + max(1.0, abs(low)))
    least, most = as_range(stated, "reward_range")
    slack = _ROUNDING * (most - least)
    if low < least - slack or high > most + slack:
        worst = int(rewards.argmin() if low < least else rewards.argmax())
        raise ModelError(
            f"the reward {rewards[worst]:g} is not in [{least:g}, {most:g}]",
            field="reward_range",
            where=joint.place(worst),
            fix=f"declare ({min(low, least):g}, {max(high, most):g}), or none",
        )
    np.clip(rewards, least, most, out=rewards)
    return least, most


def check_uses(joint: Joint, states: NDArray[np.int32], rewards: Reals | None) -> None:
    """Refuse a variable whose outcomes change nothing at any pair."""
    left = set(range(len(joint.variables)))
    for pair in range(joint.space.n_pairs):
        if not left:
            return
        for f in [f for f in left if joint.law_of[pair, f] >= 0]:
            tables = [
                _table(joint, table, pair) for table in (states, rewards) if table is not None
            ]
            axis = int((joint.law_of[pair, :f] >= 0).sum())
            if any((table != table.take([0], axis=axis)).any() for table in tables):
                left.discard(f)
    if left:
        name = joint.variables[min(left)].name
        raise ModelError(
            "no pair uses its outcomes: next state and reward are the same whatever it is",
            field=name,
            fix="let next_state or reward depend on it, or leave the variable out",
        )


def _table(joint: Joint, table: NDArray[Any], pair: int) -> NDArray[Any]:
    """Return the part of a table that belongs to a pair, an axis a variable it involves."""
    shape = [
        len(v.outcomes)
        for v, law in zip(joint.variables, joint.law_of[pair], strict=True)
        if law >= 0
    ]
    return table[joint.first[pair] : joint.first[pair + 1]].reshape(shape)


def check_seen(
    joint: Joint,
    laws: tuple[Law, ...],
    codes: NDArray[np.int8],
    states: NDArray[np.int32],
    rewards: Reals | None,
) -> None:
    """Refuse what a step cannot show.

    What a step shows leaves a set of joint outcomes open: those with the same outcomes of variables
    that are shown, the same next state and the same reward. It must be a box: an interval of every
    interval variable, a single outcome of every inferred one.
    """
    for f, variable in enumerate(joint.variables):
        outside = np.flatnonzero(joint.law_of[:, f] < 0)
        if codes[f] == ALWAYS and outside.size and sum(v == f for v, _ in laws) > 1:
            raise ModelError(
                "is seen at every step and has several laws, but a pair involves none of them",
                field=variable.name,
                where=joint.space.describe(int(outside[0])),
                fix='pass seen="involved", or group it by one label',
            )
    if codes.max() < INTERVAL:
        return
    for pair in range(joint.space.n_pairs):
        involved = np.flatnonzero(joint.law_of[pair] >= 0)
        if not (codes[involved] >= INTERVAL).any():
            continue
        grid = np.indices([len(joint.variables[f].outcomes) for f in involved])
        index = grid.reshape(involved.size, -1)
        here = slice(joint.first[pair], joint.first[pair + 1])
        told = [index[k] for k, f in enumerate(involved) if codes[f] < INTERVAL]
        told.append(states[here])
        if rewards is not None:
            told.append(np.unique(rewards[here], return_inverse=True)[1])
        group = np.unique(np.stack(told), axis=1, return_inverse=True)[1].ravel()
        _check_boxes(joint, pair, involved, codes, index, group)


def _check_boxes(
    joint: Joint,
    pair: int,
    involved: Ints,
    codes: NDArray[np.int8],
    index: Ints,
    group: Ints,
) -> None:
    """Refuse a group of joint outcomes that is no product of intervals."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff([*starts, group.size])
    volume = np.ones(starts.size, dtype=np.int64)
    for k, f in enumerate(involved):
        inside = index[k][order]
        low, high = np.minimum.reduceat(inside, starts), np.maximum.reduceat(inside, starts)
        volume *= high - low + 1
        if codes[f] == INFERRED and (low < high).any():
            worst = int(np.argmax(low < high))
            members = order[starts[worst] : starts[worst] + sizes[worst]]
            one, other = members[index[k][members].argmin()], members[index[k][members].argmax()]
            outcomes = joint.variables[f].outcomes
            raise ModelError(
                f"{outcomes[index[k][one]]!r} and {outcomes[index[k][other]]!r} "
                "lead to the same next state and reward: it cannot be inferred",
                field=joint.variables[f].name,
                where=f"{joint.place(int(joint.first[pair] + one))} and "
                f"{joint.place(int(joint.first[pair] + other))}",
                fix='show it: pass seen="always", "involved" or "interval"',
            )
    if (volume != sizes).any():
        worst = int(np.argmax(volume != sizes))
        name = next(joint.variables[f].name for f in involved if codes[f] == INTERVAL)
        raise ModelError(
            "what next state and reward leave possible is no interval of it",
            field=name,
            where=joint.place(int(joint.first[pair] + order[starts[worst]])),
            fix='order its outcomes so that it is, or pass seen="always" or "involved"',
        )
