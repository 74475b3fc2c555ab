"""Models of a structure: rows and mean rewards that follow from laws, at one time and at every t.

The row of a pair is the push-forward of the product of its laws, its mean reward their mean. Where
every pair involves at most one law that drifts, and all that drift follow one schedule, rows are
linear in its weights: the model is a blend of one model a base law, and all that is known in closed
form of blends holds of it. Elsewhere products of laws are no blend, and models are asked for t by
t.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.errors import InputError, ModelError
from windage.models.blend import Blend, Mixture, alike
from windage.models.drifting import DriftingMDP
from windage.models.mdp import MDP, TOLERANCE, Noise, Transitions
from windage.models.source import Stream, largest, largest_row
from windage.schedules import Knots, Schedule, Steps
from windage.structure.laws import (
    Laws,
    Moving,
    Tabulated,
    as_moving,
    law_vector,
    laws_over_time,
    offsets_of,
)
from windage.structure.variables import INTERVAL, INVOLVED
from windage.validation import as_horizon, freeze

if TYPE_CHECKING:
    from windage.structure.structure import Structure

__all__ = ["LawStream", "PushForward", "drifting", "drifting_of", "model", "shown_intervals"]

Ints: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]

_DENSE = 1 << 22  # entries of rows that are stored as they are: 32 MB
_STANDS = Knots((1,))


class PushForward:
    """Laws as rows and mean rewards: where joint outcomes lead, and with which probability."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        offsets = offsets_of(structure)
        pairs = np.repeat(np.arange(structure.space.n_pairs), np.diff(structure.first))
        self.entries = [  # [variable][joint] the entry of the vector of laws; the last one is 1
            np.where(
                structure.law_of[pairs, f] >= 0,
                offsets[structure.law_of[pairs, f]] + index,
                offsets[-1],
            )
            for f, index in enumerate(_indices(structure))
        ]
        if structure.reward is not None:  # a reward that no outcome changes stays itself
            self.base = structure.reward[structure.first[:-1]]
            self.above = structure.reward - self.base[pairs]
        S = structure.space.n_states
        cells = pairs * S + structure.next_state
        self.dense = structure.space.n_pairs * S <= _DENSE
        self.cells = cells
        if not self.dense:
            targets, self.cells = np.unique(cells, return_inverse=True)
            self.targets = (targets % S).astype(np.int32)
            self.rows = np.searchsorted(targets, np.arange(structure.space.n_pairs + 1) * S)

    def __call__(self, laws: Reals) -> tuple[Reals | None, Transitions]:
        """Return mean rewards, None if they do not follow from laws, and rows."""
        structure, space = self.structure, self.structure.space
        padded = np.append(laws, 1.0)
        chances = padded[self.entries[0]]
        for entries in self.entries[1:]:
            chances *= padded[entries]
        rewards = None
        if structure.reward is not None:
            rewards = self.base + np.add.reduceat(chances * self.above, structure.first[:-1])
        shape = space.n_pairs, space.n_states
        if self.dense:
            rows = np.bincount(self.cells, chances, shape[0] * shape[1]).reshape(shape)
            return rewards, rows
        sums = np.bincount(self.cells.ravel(), chances, self.targets.size)
        found = csr_array((sums, self.targets, self.rows), shape=shape, copy=True)
        found.eliminate_zeros()  # in place: other laws have other zeros
        return rewards, found


class LawStream(Stream):
    """The models of laws that are no blend, one for every t."""

    def __init__(self, laws: Laws, rewards: Moving | Tabulated | None) -> None:
        self._push = laws.structure.push_forward
        super().__init__(laws.structure.space, self._push.cells.size)
        self.laws = laws
        self.rewards = rewards

    def at(self, t: int) -> tuple[Reals, Transitions]:
        """Return rewards and transitions at time t."""
        rewards, rows = self._push(self.laws.at(t))
        if rewards is None:
            assert self.rewards is not None
            rewards = self.rewards.between(t, t)[0]
        freeze(rewards, rows)
        return rewards, rows

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes without what was kept."""
        return type(self), (self.laws, self.rewards)


def model(structure: Structure, laws: object, rewards: object = None) -> MDP:
    """Return the model of laws that stay."""
    vector = law_vector(structure, laws)
    means = _rewards(structure, rewards, None)
    found, rows = structure.push_forward(vector)
    if found is None:
        assert means is not None
        found = means.between(1, 1)[0].copy()
    return MDP.trusted(structure.space, found, rows)


def drifting(
    structure: Structure,
    laws: object,
    horizon: int,
    rewards: object = None,
    noise: Noise | str | None = None,
) -> DriftingMDP:
    """Return the model of laws over time."""
    T = as_horizon(horizon)
    if structure.reward is not None and noise is not None:
        raise InputError(
            "rewards fall as the outcomes do: there is no other noise",
            field="noise",
            fix="leave it out",
        )
    given = laws_over_time(structure, laws, T)
    return drifting_of(given, _rewards(structure, rewards, T), noise or "bernoulli")


def drifting_of(laws: Laws, rewards: Moving | Tabulated | None, noise: Noise | str) -> DriftingMDP:
    """Return the model of checked laws and, if they are learned, mean rewards."""
    blended = _blended(laws, rewards)
    source = blended if blended is not None else LawStream(laws, rewards)
    law = noise if laws.structure.reward is None else Noise.outcomes()
    return DriftingMDP._of(laws.horizon, law, source, laws, rewards)


def _rewards(structure: Structure, given: object, horizon: int | None) -> Moving | Tabulated | None:
    """Return mean rewards that are learned, checked; None where they follow from the outcomes."""
    if structure.reward is not None:
        if given is not None:
            raise InputError(
                "the structure knows its rewards", field="rewards", fix="leave them out"
            )
        return None
    n = structure.space.n_pairs
    if given is None:
        raise ModelError(
            "the structure has no reward: it does not say what is earned",
            field="rewards",
            fix=f"pass the mean rewards of the {n} state-action pairs",
        )
    schedule, rows = as_moving(given, "rewards", horizon or 1, n)
    low, high = structure.reward_range
    slack = TOLERANCE * (high - low)
    for k, row in enumerate(rows):
        wrong = ~((row >= low - slack) & (row <= high + slack))
        if wrong.any():
            pair = int(np.argmax(wrong))
            raise ModelError(
                f"mean reward {row[pair]!s} is not in the range [{low:g}, {high:g}]",
                field="rewards",
                where=f"{f't={k + 1}' if schedule is None else f'base {k}'}, "
                f"{structure.space.describe(pair)}",
                fix="pass a reward_range to the structure that holds all rewards",
            )
    columns = np.arange(n)
    table = np.clip(np.asarray(rows), low, high)
    freeze(table)
    if schedule is None:
        return Tabulated(columns, table)
    return Moving(columns, Mixture(list(table), schedule, horizon or 1, largest))


def _blended(laws: Laws, rewards: Moving | Tabulated | None) -> Blend | None:
    """Return the blend that laws and rewards are, or None if they are none."""
    if len(laws.moving) > 1 or isinstance(rewards, Tabulated):
        return None
    structure = laws.structure
    schedule: Schedule = _STANDS
    vectors = [laws.constant]
    if laws.moving:
        part = laws.moving[0]
        if not isinstance(part, Moving):
            return None
        schedule = part.side.schedule
        involved = structure.law_of >= 0
        drifting_laws = (involved & laws.drifts[structure.law_of]).sum(axis=1)
        if int(drifting_laws.max()) > 1 and not _jumps(schedule):
            return None
        vectors = []
        for base in part.side.parts:
            vector = laws.constant.copy()
            vector[part.columns] = base
            vectors.append(vector)
    found = [structure.push_forward(vector) for vector in vectors]
    kernels = Mixture(alike([rows for _, rows in found]), schedule, laws.horizon, largest_row)
    if rewards is not None:
        return Blend(structure.space, rewards.side, kernels)
    means = [mean for mean, _ in found if mean is not None]
    return Blend(structure.space, Mixture(means, schedule, laws.horizon, largest), kernels)


def _jumps(schedule: Schedule) -> bool:
    """Return whether a schedule is at a base at every time: products of laws are blends then."""
    return isinstance(schedule, Steps) or (
        isinstance(schedule, Knots) and schedule.interpolation == "step"
    )


def _indices(structure: Structure) -> list[Ints]:
    """Return [variable][joint] the number of the outcome, 0 where the pair does not involve it."""
    law_of, first = structure.law_of, structure.first
    sizes = np.where(law_of >= 0, structure.law_sizes[law_of], 1)
    pairs = np.repeat(np.arange(len(law_of)), np.diff(first))
    rest = np.arange(first[-1]) - first[pairs]
    found: list[Any] = [None] * law_of.shape[1]
    for f in reversed(range(law_of.shape[1])):
        found[f] = rest % sizes[pairs, f]
        rest //= sizes[pairs, f]
    return found


def shown_intervals(structure: Structure) -> NDArray[np.int32]:
    """Return [joint, variable, 2] the interval that next state and reward leave possible.

    (0, -1) where none is shown. Empty if no variable is seen as an interval.
    """
    n_joint, F = structure.next_state.size, structure.law_of.shape[1]
    if not (structure.seen == INTERVAL).any():
        return np.zeros((0, F, 2), np.int32)
    pairs = np.repeat(np.arange(structure.space.n_pairs), np.diff(structure.first))
    index = _indices(structure)
    keys: list[NDArray[Any]] = [index[f] for f in range(F) if structure.seen[f] <= INVOLVED]
    keys += [structure.next_state, pairs]
    if structure.reward is not None:
        keys.insert(0, structure.reward)
    order = np.lexsort(keys)
    new = np.zeros(n_joint, np.bool_)
    new[0] = True
    for key in keys:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    starts, group = np.flatnonzero(new), np.cumsum(new) - 1
    found = np.tile(np.array([0, -1], np.int32), (n_joint, F, 1))
    for f in np.flatnonzero(structure.seen == INTERVAL):
        inside = index[f][order]
        found[order, f, 0] = np.minimum.reduceat(inside, starts)[group]
        found[order, f, 1] = np.maximum.reduceat(inside, starts)[group]
        found[structure.law_of[pairs, f] < 0, f] = 0, -1
    return found
