"""`Log`: past steps as states, actions, rewards and next states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.spaces import StateActions
from windage.validation import as_integer, as_range, as_real, shown

if TYPE_CHECKING:
    from windage.logs.columns import TimeGap
    from windage.logs.inspection import Inspection
    from windage.logs.reader import Rows
    from windage.models import DriftingMDP

__all__ = ["Log", "read_log"]

_PIECE = 1 << 20  # steps that are recoded at a time


class Log:
    """Past steps in their order, over the states and actions that occur.

    `read_log` makes one from a file, `Log.from_arrays` from columns. The time of a step is its
    number, from 1 on; lines that cannot be used have none.

    Attributes
    ----------
    space
        The states with an action in the log, each with the actions taken in it, by their names.
    pairs, rewards, nexts
        One entry a step: the pair of `space` that was played, the reward, the state it led to.
    reward_range
        The least and the largest reward, or as declared; a fitted model calls them 0 and 1. If all
        rewards are one number of [0, 1], it is [0, 1].
    lines, unusable, unusable_count, reasons
        How many lines were read; the first of those that could not be used, and how many; how many
        for each reason, with the first of these.
    entities
        The entity of each step by number, in a log of several, else None.
    left_out
        Steps that lead to a state without any action in the log: what follows is unknown.
    notes
        Assumptions made while reading.
    """

    def __init__(self, rows: Rows, reward_range: tuple[float, float] | None) -> None:
        self.lines, self.unusable, self.notes = rows.lines, rows.unusable, list(rows.notes)
        self.reasons = rows.reasons
        self.unusable_count = sum(reason.lines for reason in rows.reasons)
        self._clock = rows.clock
        recoded = _recoded(rows)
        self.space, self.pairs, self.nexts, self.rewards, self._rows = recoded[:5]
        self.state_labels: list[int | str] = recoded.state_labels
        """The label of each state in the log."""
        self.action_labels = rows.action_labels
        """The labels of actions in the log."""
        kept = slice(None) if self._rows is None else self._rows
        self.entities = None if rows.entities is None else rows.entities[kept]
        self.left_out = rows.states.size - self.pairs.size
        self.reward_range = _range(self.rewards, reward_range)

    @classmethod
    def from_arrays(
        cls,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        *,
        reward_range: tuple[float, float] | None = None,
    ) -> Log:
        """Return the log of columns of integers or words, and of rewards, in the order of time.

        >>> log = Log.from_arrays([0, 1, 0], ["buy", "wait", "wait"], [0.0, 1.0, 0.5], [1, 0, 1])
        >>> log.space.n_pairs, log.steps
        (3, 3)
        """
        from windage.logs.reader import rows_of

        return cls(rows_of(states, actions, rewards, next_states), reward_range)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.pairs.size

    def when(self, step: int) -> str:
        """Return the time of a step, from 1 on, as the log writes it."""
        place = as_integer(step, "step", low=1, high=self.steps) - 1
        row = place if self._rows is None else int(self._rows[place])
        return self._clock.text(int(self._clock.at(np.array([row]))[0]))

    def gaps(self) -> list[TimeGap]:
        """Return where time is missing between two lines."""
        return self._clock.gaps()

    def breaks(self) -> int:
        """Return how often a step does not begin in the state the entity's last one led to."""
        states, nexts, same = self.space.state_of[self.pairs], self.nexts, np.True_
        if self.entities is not None:
            order = np.argsort(self.entities, kind="stable")
            states, nexts = states[order], nexts[order]
            same = np.diff(self.entities[order]) == 0
        return int(((states[1:] != nexts[:-1]) & same).sum())

    def unseen(self) -> list[tuple[int, int | str]]:
        """Return states and actions that occur, but never together."""
        taken: dict[int, set[str]] = {}
        for pair in range(self.space.n_pairs):
            s, a = int(self.space.state_of[pair]), int(self.space.action_of[pair])
            taken.setdefault(s, set()).add(self.space.action_name(s, a))
        known = _sorted_labels(self.action_labels)
        return [
            (s, label)
            for s in range(self.space.n_states)
            for label in known
            if str(label) not in taken[s]
        ]

    def scaled(self) -> NDArray[np.float64]:
        """Return the rewards with the range made [0, 1]."""
        low, high = self.reward_range
        return np.asarray((self.rewards - low) / (high - low))

    def fit(self, blocks: int | None = None) -> DriftingMDP:
        """Return a drifting model of the log: one model a block of time, blended between them.

        The number of blocks is that of 1, 2, 4, ... which predicts held-out steps best, unless it
        is given as `blocks`. The horizon is the number of
        steps.
        """
        from windage.logs.fitting import fit

        return fit(self, blocks).model

    def inspect(
        self, *, seed: int = 0, draws: int = 200, progress: Callable[[str], None] | None = None
    ) -> Inspection:
        """Test the log for drift: where it drifted and by how much.

        Parameters
        ----------
        seed
            Of the stationary logs drawn for comparison.
        draws
            How many of them to draw.
        progress
            Called with what is about to be done.
        """
        from windage.logs.inspection import inspect

        return inspect(self, seed, draws, progress)

    def preload(self, agent: Any, *, last: int | None = None, scale: bool = False) -> int:
        """Let an agent learn from the log before it starts; return how many steps it was given.

        States and actions are matched by name, and integers by number.

        Parameters
        ----------
        agent
            One that has `preload`, such as `windage.SWUCRL2CW`, and has not started to act.
        last
            How many of the last steps; all if not given.
        scale
            Whether to give rewards with `reward_range` made [0, 1], not as they stand in the log.
        """
        return _preload(self, agent, last, scale)

    def __repr__(self) -> str:
        return f"Log({self.space!r}, steps={self.steps})"


def read_log(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    reward_range: tuple[float, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Log:
    """Return the log in a CSV or Parquet file.

    Parameters
    ----------
    path
        A file that ends in `.parquet`, else it is read as CSV in UTF-8 with a header.
    columns
        Which column holds what, for those of t, entity, state, action, reward and next_state that
        have other names: `{"reward": "profit"}`. With an entity, lines of many of them may be in
        one file: those of each are in order, and the log is in the order of t.
    separator
        The separator of cells; detected if not given.
    decimal
        The decimal mark of rewards, "." or ","; detected if not given.
    reward_range
        The least and the largest possible reward; those that occur if not given. It must be given
        for a log in which all rewards are one number outside of [0, 1].
    progress
        Called now and then with the lines read and the lines there are.
    """
    from windage.logs.reader import read_rows

    return Log(read_rows(Path(path), columns, separator, decimal, progress), reward_range)


def _range(rewards: NDArray[np.float64], given: tuple[float, float] | None) -> tuple[float, float]:
    low, high = float(rewards.min()), float(rewards.max())
    if given is None:
        return (low, high) if low < high else _range_of_one(low, rewards.size)
    declared = as_range(given, "reward_range")
    if low < declared[0] or high > declared[1]:
        as_real(
            low if low < declared[0] else high, "reward_range", low=declared[0], high=declared[1]
        )
    return declared


def _range_of_one(reward: float, count: int) -> tuple[float, float]:
    """Return the range of a log in which all rewards are the same."""
    if 0.0 <= reward <= 1.0:
        return 0.0, 1.0
    raise InputError(
        f"all {count:,} rewards are {reward:g}, which does not tell what else is possible",
        field="reward_range",
        fix="declare the least and the largest possible reward: reward_range=(low, high), or "
        "--range LOW,HIGH on the command line",
    )


class _Recoded(NamedTuple):
    """Steps over the pairs of a space; `rows` says which lines they are, None if all."""

    space: StateActions
    pairs: NDArray[np.int32]
    nexts: NDArray[np.uint16]
    rewards: NDArray[np.float64]
    rows: NDArray[np.int64] | None
    state_labels: list[int | str]


def _sorted_labels(labels: Sequence[int | str]) -> list[int | str]:
    """Return labels in order: numbers by size, words by the alphabet."""
    return sorted(labels, key=lambda label: (isinstance(label, str), label))


def _recoded(rows: Rows) -> _Recoded:
    """Return the space of what occurs, and the steps in its numbers."""
    S, A = len(rows.state_labels), len(rows.action_labels)
    taken = np.zeros((S, A), dtype=bool)
    taken[rows.states, rows.actions] = True
    kept = np.ones(rows.states.size, dtype=bool)
    while not (known := np.asarray(taken.any(axis=1)))[rows.nexts[kept]].all():
        kept &= known[rows.nexts]  # without an action in the state they lead to
        taken[:] = False
        taken[rows.states[kept], rows.actions[kept]] = True
        if not kept.any():
            raise InputError(
                "no step leads to a state with an action in the log",
                field="log",
                fix="check the column next_state, and that states are spelled alike",
            )
    order = [k for k in _order(rows.state_labels) if taken[k].any()]
    labels = [rows.state_labels[k] for k in order]
    action_order = _order(rows.action_labels)
    number = np.zeros(S, dtype=np.uint16)
    number[order] = np.arange(len(order))
    pair_of = np.zeros((S, A), dtype=np.int32)
    counts, names, pair = [], [], 0
    for k in order:
        here = [a for a in action_order if taken[k, a]]
        pair_of[k, here] = np.arange(pair, pair + len(here))
        counts.append(len(here))
        names.append([str(rows.action_labels[a]) for a in here])
        pair += len(here)
    plain = labels == list(range(len(order)))  # numbers need no names
    plain_actions = all(of == [str(a) for a in range(len(of))] for of in names)
    space = StateActions(
        counts,
        None if plain else [str(label) for label in labels],
        None if plain_actions else names,
    )
    everything = bool(kept.all())
    place = None if everything else np.flatnonzero(kept)
    pairs = np.empty(rows.states.size if place is None else place.size, dtype=np.int32)
    for start in range(0, pairs.size, _PIECE):
        part: Any = slice(start, start + _PIECE)
        part = part if place is None else place[part]
        pairs[start : start + _PIECE] = pair_of[rows.states[part], rows.actions[part]]
    nexts = number[rows.nexts if place is None else rows.nexts[place]]
    rewards = rows.rewards if place is None else rows.rewards[place]
    return _Recoded(space, pairs, nexts, rewards, place, labels)


def _order(labels: Sequence[int | str]) -> list[int]:
    place = {label: k for k, label in enumerate(labels)}
    return [place[label] for label in _sorted_labels(labels)]


def _preload(log: Log, agent: Any, last: int | None, scale: bool) -> int:
    """Let an agent learn from the last steps of a log; returns how many it was given.

    A learner that plans by episodes takes them in one compiled call, any other one by one.
    """
    from windage.agents.optimistic.episodic import EpisodicAgent

    if not callable(getattr(agent, "preload", None)):
        raise InputError(
            f"{type(agent).__name__} cannot be preloaded",
            field="agent",
            fix="pass an agent with preload(s, a, reward, s_next), such as wd.SWUCRL2CW",
        )
    count = log.steps if last is None else as_integer(last, "last", low=0, high=log.steps)
    states, actions = _matched(log, agent.space)
    low, high = log.reward_range if scale else (0.0, 1.0)
    taken = slice(log.steps - count, log.steps)
    rewards = (log.rewards[taken] - low) / (high - low)
    befores = states[log.space.state_of[log.pairs[taken]]]
    played, afters = actions[log.pairs[taken]], states[log.nexts[taken]]
    if getattr(type(agent), "preload", None) is EpisodicAgent.preload:
        agent.preload_all(agent.space.offsets[befores] + played, rewards, afters)
        return count
    columns = (befores, played, rewards, afters)
    for s, a, reward, after in zip(*(column.tolist() for column in columns), strict=True):
        agent.preload(s, a, reward, after)
    return count


def _matched(log: Log, space: StateActions) -> tuple[np.ndarray, np.ndarray]:
    """Return each state, and the action of each pair, as another space numbers them."""
    states = [
        _number_of(label, "state", space.state_names, space.n_states) for label in log.state_labels
    ]
    actions = []
    for pair in range(log.space.n_pairs):
        s = int(log.space.state_of[pair])
        name = log.space.action_name(s, int(log.space.action_of[pair]))
        there = states[s]
        names = None if space.action_names is None else space.action_names[there]
        label: int | str = int(name) if isinstance(log.action_labels[0], int) else name
        what = f"action of {space.describe_state(there)}"
        actions.append(_number_of(label, what, names, int(space.counts[there])))
    return np.array(states, np.int64), np.array(actions, np.int64)


def _number_of(label: int | str, what: str, names: Sequence[str] | None, count: int) -> int:
    if names is not None and str(label) in names:
        return list(names).index(str(label))
    if isinstance(label, int) and 0 <= label < count:
        return label
    raise InputError(
        f"{shown(label)} of the log is no {what}",
        field="agent.space",
        fix="make the agent with log.space, or name its states and actions as the log does",
    )
