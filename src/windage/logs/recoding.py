"""The space of what occurs in a log, and its steps in the numbers of that space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.logs.reading import Rows

__all__ = ["Recoded", "recoded", "sorted_labels"]

_PIECE = 1 << 20  # steps that are recoded at a time


class Recoded(NamedTuple):
    """Steps over the pairs of a space; `rows` says which lines they are, None if all."""

    space: StateActions
    pairs: NDArray[np.int32]
    nexts: NDArray[np.uint16]
    rewards: NDArray[np.float64]
    rows: NDArray[np.int64] | None
    state_labels: list[int | str]


def sorted_labels(labels: Sequence[int | str]) -> list[int | str]:
    """Return labels in order: numbers by size, words by the alphabet."""
    return sorted(labels, key=lambda label: (isinstance(label, str), label))


def recoded(rows: Rows) -> Recoded:
    """Return the space of what occurs, and the steps in its numbers."""
    S, A = len(rows.state_labels), len(rows.action_labels)
    taken = np.zeros((S, A), dtype=bool)
    taken[rows.states, rows.actions] = True
    kept = np.ones(rows.states.size, dtype=bool)
    while not (known := np.asarray(taken.any(axis=1)))[rows.nexts[kept]].all():
        kept &= known[rows.nexts]  # nobody acted in the state these lead to
        taken[:] = False
        taken[rows.states[kept], rows.actions[kept]] = True
        if not kept.any():
            raise InputError(
                "no step leads to a state in which somebody acted",
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
    return Recoded(space, pairs, nexts, rewards, place, labels)


def _order(labels: Sequence[int | str]) -> list[int]:
    place = {label: k for k, label in enumerate(labels)}
    return [place[label] for label in sorted_labels(labels)]
