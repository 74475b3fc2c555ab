"""Laws over time: what people pass for the laws of a structure, checked, and what they are at t.

A law is a row of probabilities over the outcomes of a variable. It stays, or it is given for every
t, or it is a blend of base laws whose weights follow a schedule. All laws of a structure at one
time are one vector: law l has the entries `offsets[l]` up to before `offsets[l + 1]`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windage.errors import ModelError
from windage.models.blend import Mixture
from windage.schedules import Knots, Schedule, as_schedule, check_knots
from windage.structure.variables import ALWAYS, INVOLVED, listed
from windage.validation import as_choice, as_floats, freeze, require_memory, shown

if TYPE_CHECKING:
    from windage.structure.structure import Structure

__all__ = ["Laws", "Moving", "Tabulated", "as_moving", "law_vector", "laws_over_time", "offsets_of"]

Ints: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]

_TOLERANCE = 1e-9
_CHUNK = 1 << 21  # entries of laws that are looked at together: 16 MB


class Moving(NamedTuple):
    """Numbers that are a blend of bases, and which entries of the whole they are."""

    columns: Ints
    side: Mixture

    def between(self, first: int, last: int) -> Reals:
        """Return the entries at the times first..last, a row a time.

        Written as a step away from one base, so that what is the same in all bases stays the same;
        a row is the same number by number, whichever times are asked for together.
        """
        bases = np.stack(self.side.parts)
        models, weight = self.side.active(first, last)
        here = bases[models[:, -1]]
        found = here.copy()
        for j in range(models.shape[1] - 1):
            found += weight[:, j, None] * (bases[models[:, j]] - here)
        for j in range(models.shape[1]):
            alone = weight[:, j] == 1.0
            found[alone] = bases[models[alone, j]]
        return found


class Tabulated(NamedTuple):
    """Numbers that are given for every t."""

    columns: Ints
    rows: Reals  # [T, entries]

    def between(self, first: int, last: int) -> Reals:
        """Return the entries at the times first..last, a row a time."""
        return self.rows[first - 1 : last]


class Laws:
    """The laws of a structure at every t = 1..T.

    Attributes
    ----------
    structure
        Whose laws they are.
    horizon
        T.
    offsets
        [L + 1] where the entries of each law start.
    constant
        The entries of laws that stay; those of the others have no meaning.
    moving
        The others, those on one schedule together.
    """

    def __init__(
        self,
        structure: Structure,
        horizon: int,
        constant: Reals,
        moving: tuple[Moving | Tabulated, ...],
    ) -> None:
        freeze(constant)
        self.structure = structure
        self.horizon = horizon
        self.offsets = offsets_of(structure)
        self.constant = constant
        self.moving = moving

    def at(self, t: int) -> Reals:
        """Return all laws at time t, one after another."""
        row: Reals = self.between(t, t)[0]
        return row

    def between(self, first: int, last: int) -> Reals:
        """Return all laws at the times first..last, a row a time."""
        found: Reals = np.tile(self.constant, (last - first + 1, 1))
        for part in self.moving:
            found[:, part.columns] = part.between(first, last).clip(min=0.0)
        return found

    def named(self, t: int) -> dict[str, Any]:
        """Return the laws at time t by name, and by label where the variable is grouped."""
        return by_name(self.structure, self.at(t))

    @functools.cached_property
    def drifts(self) -> NDArray[np.bool_]:
        """[L] whether a law may change with t."""
        columns = np.zeros(self.offsets[-1], np.bool_)
        for part in self.moving:
            columns[part.columns] = True
        return columns[self.offsets[:-1]]

    @functools.cached_property
    def drawn(self) -> Drawn:
        """What a simulation needs of the laws, made once."""
        return Drawn(self)

    def variations(self, first: int, last: int) -> Reals:
        """Return [t, law] the L1 distance of the laws at t and t + 1, for t = first..last-1."""
        moved = np.zeros((last - first, self.offsets.size - 1))
        for part in self.moving:
            laws = np.flatnonzero(np.isin(self.offsets[:-1], part.columns))
            starts = np.searchsorted(part.columns, self.offsets[laws])
            change = np.abs(np.diff(part.between(first, last), axis=0))
            if change.size:
                moved[:, laws] = np.add.reduceat(change, starts, axis=1)
        return moved

    def largest_variations(self, first: int, last: int) -> Reals:
        """Return B_{q,t}, the largest such distance, for t = first..last-1."""
        return np.concatenate(
            [self.variations(a, b).max(axis=1, initial=0.0) for a, b in self._pieces(first, last)]
            or [np.zeros(0)]
        )

    def total(self, first: int, last: int) -> float:
        """Return B_q, the sum of the largest distances."""
        if not self.moving:
            return 0.0
        if len(self.moving) == 1 and isinstance(self.moving[0], Moving):
            return self.moving[0].side.total(first, last)  # it telescopes
        return math.fsum(
            float(x)
            for a, b in self._pieces(first, last)
            for x in self.variations(a, b).max(axis=1, initial=0.0)
        )

    def total_of(self, name: str, first: int, last: int) -> float:
        """Return B_q of one variable."""
        names = [variable.name for variable in self.structure.variables]
        f = names.index(as_choice(name, "variable", names))
        mine = np.array([v == f for v, _ in self.structure.laws])
        return math.fsum(
            float(x)
            for a, b in self._pieces(first, last)
            for x in self.variations(a, b)[:, mine].max(axis=1, initial=0.0)
        )

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield stretches that are looked at together, each starting where the last one ended."""
        step = max(1, _CHUNK // int(self.offsets[-1]))
        for begin in range(first, last, step):
            yield begin, min(begin + step, last)

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes without what was kept."""
        return type(self), (self.structure, self.horizon, self.constant, self.moving)


class Drawn:
    """Laws as `kernels.exogenous` draws from them.

    Attributes
    ----------
    names
        [L] what the draws of each law are addressed by.
    law_of, drawn, exact, spans
        As in `ExogenousDynamics`.
    width
        How many probabilities change from one time to the next.
    most
        The largest number of joint outcomes of a pair.
    """

    def __init__(self, laws: Laws) -> None:
        from windage.structure.worlds import shown_intervals

        self._laws = laws
        structure = laws.structure
        variables = structure.variables
        self.names = [
            variables[v].name if label is None else f"{variables[v].name}.{label!r}"
            for v, label in structure.laws
        ]
        self.law_of = structure.law_of
        self.drawn = structure.law_of.copy()
        for f in np.flatnonzero(structure.seen == ALWAYS).tolist():
            outside = self.drawn[:, f] < 0
            if outside.any():  # then it has one law
                self.drawn[outside, f] = [v for v, _ in structure.laws].index(f)
        self.exact = structure.seen <= INVOLVED
        self.spans = shown_intervals(structure)
        self.most = int(np.diff(structure.first).max())
        sizes = structure.law_sizes
        still, moves = np.where(laws.drifts, 0, sizes), np.where(laws.drifts, sizes, 0)
        self.width = int(moves.sum())
        self.place = np.where(
            laws.drifts, still.sum() + np.cumsum(moves) - moves, np.cumsum(still) - still
        )
        self.stride = np.where(laws.drifts, self.width, 0)
        self._still = np.repeat(~laws.drifts, sizes)

    def cumulative(self, first: int, last: int) -> Reals:
        """Return the cumulative probabilities: of laws that stay, then of the others at each t."""
        laws = self._laws
        still: Reals = _cumulated(laws.constant[None], laws.offsets)[0, self._still]
        if not self.width:
            return still
        rows = _cumulated(laws.between(first, last), laws.offsets)[:, ~self._still]
        return np.concatenate([still, rows.ravel()])


def _cumulated(rows: Reals, offsets: Ints) -> Reals:
    """Return cumulative probabilities law by law; they end with one, from the last positive on."""
    found = np.empty_like(rows)
    for start, end in itertools.pairwise(offsets.tolist()):
        sums = np.cumsum(rows[:, start:end], axis=1)
        sums[sums >= sums[:, -1:]] = 1.0
        found[:, start:end] = sums
    return found


def offsets_of(structure: Structure) -> Ints:
    """Return where the entries of each law start in the vector of all."""
    return np.concatenate([[0], np.cumsum(structure.law_sizes)]).astype(np.int64)


def by_name(structure: Structure, vector: Reals) -> dict[str, Any]:
    """Return the vector of all laws as `Structure.model` takes them."""
    ends = offsets_of(structure)
    found: dict[str, Any] = {}
    for law, (f, label) in enumerate(structure.laws):
        name, row = structure.variables[f].name, vector[ends[law] : ends[law + 1]].copy()
        if label is None:
            found[name] = row
        else:
            found.setdefault(name, {})[label] = row
    return found


def law_vector(structure: Structure, laws: object) -> Reals:
    """Return laws that stay as one vector."""
    offsets = offsets_of(structure)
    vector = np.empty(offsets[-1])
    for law, (field, value) in enumerate(_listed_laws(structure, laws)):
        row = _array(value, field)
        if row.ndim != 1:
            raise ModelError(
                f"has shape {row.shape}, one law is needed",
                field=field,
                fix="pass one probability an outcome; drifting(laws, horizon=T) takes one row a t",
            )
        vector[offsets[law] : offsets[law + 1]] = _rows(structure, law, row[None], field, None)[0]
    return vector


def laws_over_time(structure: Structure, laws: object, horizon: int) -> Laws:
    """Return the laws that were given, each as a row, as a row a time, or as a blend."""
    offsets = offsets_of(structure)
    constant = np.zeros(offsets[-1])
    blends: dict[int, list[tuple[Schedule, list[int], list[Reals]]]] = {}
    tables: list[tuple[int, Reals]] = []
    for law, (field, value) in enumerate(_listed_laws(structure, laws)):
        if _is_blend(value):
            schedule, bases = _blend(value, field, horizon)
            bases = _rows(structure, law, bases, field, "base law")
            known = blends.setdefault(len(bases), [])
            group = next((g for g in known if g[0] == schedule), None)
            if group is None:
                group = schedule, [], []
                known.append(group)
            group[1].append(law)
            group[2].append(bases)
            continue
        rows = _array(value, field)
        if rows.ndim == 1:
            constant[offsets[law] : offsets[law + 1]] = _rows(
                structure, law, rows[None], field, None
            )[0]
        elif rows.ndim == 2:
            if len(rows) != horizon:
                raise ModelError(
                    f"{len(rows)} rows for a horizon of {horizon}",
                    field=field,
                    fix="pass one row a t, or (base laws, schedule)",
                )
            tables.append((law, _rows(structure, law, rows, field, "t")))
        else:
            raise ModelError(
                f"has shape {rows.shape}",
                field=field,
                fix="pass laws[outcome], laws[t, outcome], or (base laws, schedule)",
            )
    moving: list[Moving | Tabulated] = []
    for schedule, members, parts in (group for of_size in blends.values() for group in of_size):
        columns = _columns(offsets, members)
        starts = np.searchsorted(columns, offsets[members])
        distance = functools.partial(_largest_law, starts)
        bases = np.concatenate(parts, axis=1)
        moving.append(Moving(columns, Mixture(list(bases), schedule, horizon, distance)))
    if tables:
        require_memory(
            8.0 * sum(rows.size for _, rows in tables), "laws", fix="pass (base laws, schedule)"
        )
        rows = np.concatenate([rows for _, rows in tables], axis=1)
        freeze(rows)
        moving.append(Tabulated(_columns(offsets, [law for law, _ in tables]), rows))
    return Laws(structure, horizon, constant, tuple(moving))


def as_moving(
    value: Any, field: str, horizon: int, size: int
) -> tuple[Schedule | None, list[Reals] | Reals]:
    """Return (None, rows) of numbers given for every t, else (schedule, bases) of a blend."""
    if _is_blend(value):
        schedule, bases = _blend(value, field, horizon)
        rows: list[Reals] | Reals = list(bases)
    else:
        schedule, bases = None, _array(value, field)
        rows = bases
        if bases.ndim == 1:
            schedule, rows, bases = Knots((1,)), [bases], bases[None]
        elif bases.ndim == 2 and len(bases) != horizon:
            raise ModelError(
                f"{len(bases)} rows for a horizon of {horizon}",
                field=field,
                fix="pass one row a t, or (bases, schedule)",
            )
    if bases.ndim != 2 or bases.shape[1] != size:
        raise ModelError(
            f"has shape {bases.shape}, the space has {size} pairs",
            field=field,
            fix=f"pass shape ({size},), one row of {size} a t, or (bases, schedule)",
        )
    return schedule, rows


def _listed_laws(structure: Structure, laws: object) -> list[tuple[str, object]]:
    """Return what was given for each law, and how messages call it."""
    names = [variable.name for variable in structure.variables]
    if not isinstance(laws, Mapping):
        raise ModelError(
            f"{shown(laws)} does not say whose laws these are",
            field="laws",
            fix=f"name the variables: {{{names[0]!r}: ...}}",
        )
    for name in laws:
        as_choice(name, "laws", names)
    given: list[tuple[str, object]] = []
    for f, name in enumerate(names):
        field = f"laws[{name!r}]"
        if name not in laws:
            raise ModelError("is missing", field=field, fix="pass the law of every variable")
        labels = [label for v, label in structure.laws if v == f]
        value = laws[name]
        if labels == [None]:
            if isinstance(value, Mapping):
                raise ModelError(
                    f"has labels ({listed(list(value))}), and the variable has one law",
                    field=field,
                    fix="pass the law itself, or group the variable",
                )
            given.append((field, value))
            continue
        if not isinstance(value, Mapping):
            raise ModelError(
                f"is one law, and the variable has {len(labels)} ({listed(labels)})",
                field=field,
                fix="pass {label: law}",
            )
        for label in value:
            if label not in labels:
                raise ModelError(
                    f"there is no law {label!r}", field=field, fix=f"pass {listed(labels)}"
                )
        for label in labels:
            if label not in value:
                raise ModelError(
                    f"the law {label!r} is missing", field=field, fix="pass the law of every label"
                )
            given.append((f"{field}[{label!r}]", value[label]))
    return given


def _is_blend(value: object) -> bool:
    """Return whether a value is (bases, schedule) or (bases, times of knots)."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    if hasattr(value[1], "weights") or hasattr(value[1], "weights_many"):
        return True
    try:
        return np.ndim(value[0]) == 2
    except ValueError:
        return False


def _blend(value: Any, field: str, horizon: int) -> tuple[Schedule, Reals]:
    bases, given = value
    if isinstance(given, (list, tuple, np.ndarray)):
        schedule: Schedule = Knots(check_knots(given, horizon))
    else:
        schedule = as_schedule(given, horizon, f"{field}: schedule")
    found = _array(bases, field)
    if found.ndim != 2:
        raise ModelError(
            f"base laws of shape {found.shape}",
            field=field,
            fix="pass (base laws, schedule), one row a base law",
        )
    if schedule.n_models > len(found):
        raise ModelError(
            f"the schedule speaks of {schedule.n_models} base laws, there are {len(found)}",
            field=field,
            fix="pass as many base laws as the schedule has weights",
        )
    return schedule, found


def _array(value: Any, field: str) -> Reals:
    return as_floats(value, field)


def _rows(structure: Structure, law: int, rows: Reals, field: str, kind: str | None) -> Reals:
    """Return laws as given, rescaled by their own rounding, or say which one is none."""
    f, _ = structure.laws[law]
    outcomes = structure.variables[f].outcomes

    def where(i: int) -> str:
        return {None: "", "t": f"t={i + 1}"}.get(kind, f"{kind} {i}")

    if rows.ndim != 2 or rows.shape[1] != len(outcomes):
        raise ModelError(
            f"{rows.shape[-1]} probabilities for {len(outcomes)} outcomes",
            field=field,
            where=where(0) if kind != "t" else "",
            fix="pass one probability an outcome, in their order",
        )
    wrong = ~(np.isfinite(rows) & (rows >= -_TOLERANCE))
    if wrong.any():
        i, o = (int(x) for x in np.argwhere(wrong)[0])
        raise ModelError(
            f"probability {rows[i, o]} of {outcomes[o]!r} is not in [0, 1]",
            field=field,
            where=where(i),
            fix="pass non-negative finite numbers",
        )
    found = rows.clip(min=0.0)
    sums = found.sum(axis=1)
    off = np.abs(sums - 1.0) > _TOLERANCE
    if off.any():
        i = int(np.argmax(off))
        raise ModelError(
            f"sums to {sums[i]:.12g}, not 1",
            field=field,
            where=where(i),
            fix="mend the law, for instance divide it by its sum",
        )
    rounding = np.abs(sums - 1.0) <= max(4, len(outcomes)) * 2.0**-52
    found[~rounding] /= sums[~rounding, None]
    return found


def _columns(offsets: Ints, laws: list[int]) -> Ints:
    return np.concatenate([np.arange(offsets[law], offsets[law + 1]) for law in laws])


def _largest_law(starts: Ints, difference: Reals) -> Any:
    """Return the largest L1 norm of a law, or one for each of many differences."""
    return np.add.reduceat(np.abs(difference), starts, axis=-1).max(axis=-1)
