"""Multi-scale windows over the laws of a structure: what is kept, and what a step shows.

The learner is that of `windage.agents.multiscale.learner`; what it counts are outcomes of laws
and not next states of pairs (`kernels.structured`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.multiscale.learner import Constants, MultiScaleState
from windage.agents.multiscale.windows import Weighing, WindowExperts, symbols_of
from windage.errors import InputError
from windage.spaces import StateActions
from windage.structure import ALWAYS, INTERVAL, Structure
from windage.validation import as_choice, require_memory, shown

if TYPE_CHECKING:
    from windage.kernels.exogenous import ExogenousDynamics
    from windage.kernels.simulator import Dynamics
    from windage.kernels.structured import Known, StructuredEstimate

__all__ = [
    "StructuredState",
    "as_structure",
    "law_windows",
    "outcomes_shown",
    "pace_of",
    "require_same_world",
]

_SHORTEST = 8  # the shortest window: a law needs fewer samples than a pair for each of its rows
_LASTS = 4  # steps a plan lasts: planning every step costs more and is no better
_JOINT = 1 << 15  # joint outcomes that may be gone through in a step, on average


def as_structure(value: object, space: StateActions) -> Structure | None:
    """Return a structure, or the plain data of one, if it is one of this space."""
    if value is None:
        return None
    structure = Structure.from_dict(value) if isinstance(value, Mapping) else value
    if not isinstance(structure, Structure):
        raise InputError(
            f"{shown(value)} is no Structure", field="structure", fix="pass a wd.Structure"
        )
    if not np.array_equal(structure.space.counts, space.counts):
        raise InputError(
            f"it is of {structure.space!r}, the agent of {space!r}",
            field="structure",
            fix="make the agent with structure.space",
        )
    return structure


def law_windows(horizon: int, base: int = 2) -> list[int]:
    """Return the windows that are compared: powers of two from 8 on, then all of T.

    >>> law_windows(100)
    [8, 16, 32, 64, 100]
    """
    step = base.bit_length() - 1
    powers = [1 << i for i in range(3, horizon.bit_length() + 1, step) if 1 << i < horizon]
    return [*powers, horizon]


def pace_of(structure: Structure, least: int) -> int:
    """Return how many steps a plan lasts, so that it costs a step no more than it should."""
    return max(least, structure.next_state.size // _JOINT)


class StructuredState(MultiScaleState):
    """The learner as one compiled structure, counting by law.

    Parameters
    ----------
    structure
        What is known.

    The other parameters are those of `MultiScaleState`.
    """

    draws: ClassVar[bool] = False
    """Whether it plans with drawn laws."""

    def __init__(self, structure: Structure, *given: Any) -> None:
        self.structure = structure
        super().__init__(*given)

    def _blank_experts(
        self, windows: list[int], weighing: Weighing, prior: NDArray[np.float64] | None
    ) -> WindowExperts:
        return WindowExperts(self.space, windows, weighing, self.structure, prior)

    def _blank_estimate(
        self, horizon: int, constants: Constants, reward_range: tuple[float, float]
    ) -> StructuredEstimate:
        from windage.kernels.evi import ENTRY
        from windage.kernels.multiscale import PAIR
        from windage.kernels.structured import LAW, Average, StructuredEstimate

        space, K = self.space, len(self.experts.windows)
        known = known_of(self.structure, reward_range)
        row, sizes = known.row, np.diff(known.outcomes)
        width, F = int(sizes.max()), known.law_of.shape[1]
        estimate = StructuredEstimate(
            experts=self.experts.kernel,
            known=known,
            belief=Average(0),
            horizon=horizon,
            unseen=0.0,
            prior=float(constants.unseen),
            exploration=float(constants.exploration),
            payback=float(constants.payback),
            offsets=np.ascontiguousarray(space.offsets, np.int64),
            pairs=np.zeros(space.n_pairs, PAIR),
            rows=np.zeros(int(row[-1]), ENTRY),
            u=np.zeros(space.n_states),
            laws=np.zeros(sizes.size, LAW),
            q=np.repeat(1.0 / sizes, sizes),
            fits=np.tile(np.repeat(1.0 / sizes, sizes), (K if known.intervals.any() else 0, 1)),
            omega=np.zeros(K),
            counted=np.zeros(int(symbols_of(self.structure).max()), ENTRY),
            joint=np.zeros(int(np.diff(known.first).max())),
            worth=np.zeros(width),
            sums=np.zeros((3, width + 1)),
            told=np.zeros((F, 2), np.int64),
            cells=np.zeros(F, np.int32),
        )
        estimate.pairs["row"], estimate.pairs["entries"] = row[:-1], np.diff(row)
        estimate.pairs["p_mass"] = 1.0
        estimate.pairs["r_mass"] = 2.0
        states = np.zeros(int(row[-1]), np.int64)
        pairs = np.repeat(np.arange(space.n_pairs), np.diff(known.first))
        states[row[pairs] + known.entry] = known.next_state
        estimate.rows["index"] = states
        return estimate

    def _pace(self, horizon: int) -> int:
        """Return how many steps a plan lasts, if the constants do not say."""
        del horizon
        return pace_of(self.structure, _LASTS)

    def _use_experts(self) -> None:
        estimate = self.kernel.estimate._replace(experts=self.experts.kernel)
        self.kernel = self.kernel._replace(estimate=estimate)

    def look_back(self, pair: int, reward: float, after: int, seen: NDArray[np.int64]) -> None:
        """Learn from a step of the time before t = 1."""
        from windage.kernels.structured import take_past

        low, high = self.kernel.low, self.kernel.high
        self.make_room(1)
        estimate = self.estimate
        try:
            take_past(estimate, pair, (reward - low) / (high - low), after, seen)
        finally:  # whether or not it was cut short before
            self.experts.ahead = self.experts.taken

    @property
    def estimate(self) -> StructuredEstimate:
        """The model, as compiled code has it."""
        found: Any = self.kernel.estimate
        assert isinstance(found.known, tuple)
        return found  # type: ignore[no-any-return]

    def survivors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, beside those of the windows, that must survive a restart."""
        estimate = self.estimate
        kept = super().survivors()
        del kept["limit"], kept["plays"]
        return {
            **kept,
            "law.plays": estimate.laws["plays"],
            "law.limit": estimate.laws["limit"],
            "law": estimate.q,
            "fits": estimate.fits,
        }

    def _checks(self) -> dict[str, bool]:
        estimate = self.estimate
        laws, firsts = estimate.laws, estimate.known.outcomes[:-1]
        sums = np.add.reduceat(np.vstack([estimate.q, estimate.fits]), firsts, axis=1)
        positive = bool((estimate.q > 0.0).all() and (estimate.fits > 0.0).all())
        return {
            "law.plays": bool((laws["plays"] >= 0.0).all() and (laws["plays"] <= self.t).all()),
            "law.limit": self.epochs == 0 or bool((laws["limit"] >= 1.0).all()),
            "law": positive and bool((np.abs(sums - 1.0) < 1e-6).all()),
        }

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count, for transitions and for rewards."""
        kernel, taken = self.experts.kernel, max(1, self.experts.taken)
        of_laws = self.by_pair(self.experts.reach(kernel.of_laws), taken)
        learned = self.structure.reward is None
        return np.stack([of_laws, self.experts.reach(kernel.of_rewards) if learned else of_laws])

    @property
    def contents(self) -> NDArray[np.int64]:
        """How many samples of every pair count."""
        return np.asarray(np.rint(self.by_pair(self.samples(), self.experts.taken)), np.int64)

    def samples(self) -> NDArray[np.float64]:
        """[law] how many samples of it count."""
        from windage.kernels.structured import weigh_laws

        masses = np.zeros(self.structure.law_sizes.size)
        weigh_laws(self.estimate, masses)
        return masses

    def by_pair(self, of_laws: NDArray[np.float64], without: float) -> NDArray[np.float64]:
        """[pair] the least of what its laws have; `without` if it has none."""
        known = self.estimate.known
        return np.asarray(
            np.where(known.law_of >= 0, of_laws[known.law_of], np.inf)
            .min(axis=1, initial=np.inf)
            .clip(max=without)
        )


def known_of(structure: Structure, reward_range: tuple[float, float]) -> Known:
    """Return a structure as compiled code has it, rewards taken from their range to [0, 1]."""
    from windage.kernels.structured import Known

    space, laws = structure.space, structure.laws
    law_of = np.array(structure.law_of, np.int32, order="C")
    shows = law_of.copy()
    hoped = np.zeros(law_of.shape, np.bool_)
    for f, code in enumerate(structure.seen):
        if code == ALWAYS and (shows[:, f] < 0).any():
            shows[shows[:, f] < 0, f] = [i for i, (v, _) in enumerate(laws) if v == f]
        offsets = space.offsets[:-1]
        least = np.minimum.reduceat(shows[:, f], offsets)
        most = np.maximum.reduceat(shows[:, f], offsets)
        hoped[:, f] = (law_of[:, f] >= 0) & (least != most)[space.state_of]
    sizes = structure.law_sizes
    intervals = structure.seen[[v for v, _ in laws]] == INTERVAL
    widest = int(sizes[intervals].max(initial=0))
    n_joint, n_spans = structure.next_state.size, widest * (widest + 1) // 2
    require_memory(
        60.0 * n_joint + 50.0 * n_spans,
        "structure",
        fix="use fewer outcomes, states or actions",
    )
    top = np.repeat(np.arange(widest), np.arange(1, widest + 1))
    bottom = np.arange(n_spans) - top * (top + 1) // 2
    pairs = np.repeat(np.arange(space.n_pairs), np.diff(structure.first))
    targets, entry = np.unique(pairs * space.n_states + structure.next_state, return_inverse=True)
    row = np.searchsorted(targets, np.arange(space.n_pairs + 1) * space.n_states)
    low, high = reward_range
    reward = np.zeros(0) if structure.reward is None else structure.reward
    return Known(
        law_of=law_of,
        shows=shows,
        hoped=hoped,
        hopes=bool(hoped.any()),
        outcomes=np.concatenate([[0], np.cumsum(sizes)]),
        intervals=intervals,
        spans=np.stack([bottom, top], axis=1).astype(np.int32),
        first=np.array(structure.first, np.int64),
        next_state=np.array(structure.next_state, np.int32),
        reward=(reward - low) / (high - low),
        row=row.astype(np.int64),
        entry=(entry.ravel() - row[pairs]).astype(np.int32),
    )


def require_same_world(structure: Structure, model: Dynamics | ExogenousDynamics) -> None:
    """Refuse a compiled world in which an outcome, by its number, means something else.

    Laws may be grouped otherwise: that is for the agent to find out.
    """
    from windage.kernels.exogenous import ExogenousDynamics

    shape = len(structure.variables), 2
    if not isinstance(model, ExogenousDynamics) or model.seen.shape != shape:
        raise InputError(
            "does not show the variables of the structure",
            field="problem",
            fix="play in structure.drifting(...), or observe by hand with seen=",
        )
    if model.next_state is structure.next_state:
        return
    mine = np.where(structure.law_of >= 0, structure.law_sizes[structure.law_of], 0)
    theirs = np.where(model.law_of >= 0, model.sizes[model.law_of], 0)
    same = np.array_equal(mine, theirs)
    if not same or not np.array_equal(structure.next_state, model.next_state):
        raise InputError(
            "has another structure than the agent",
            field="problem",
            fix="make the agent with problem.structure, or observe by hand with seen=",
        )


def outcomes_shown(
    structure: Structure,
    known: Known,
    pair: int,
    reward: float,
    after: int,
    seen: Mapping[str, Any],
) -> NDArray[np.int64]:
    """Return what a step shows of each variable, the lowest and the highest outcome by number.

    What is left out is inferred from the next state and the reward in [0, 1], where they leave one
    outcome, or an interval of those that are seen as intervals. (0, -1) says that nothing is shown.

    Raises
    ------
    InputError
        There is no such variable or outcome, it contradicts the next state, or is not there.
    """
    from windage.kernels.structured import SAME, complete

    names = [variable.name for variable in structure.variables]
    ends = [(0, -1)] * len(names)
    for name, value in seen.items():
        f = names.index(name if name in names else as_choice(name, "seen", names))
        ends[f] = _ends(structure, f, value)
        if known.shows[pair, f] < 0:
            raise InputError(
                f"{shown(value)} is said of a variable that is not involved here",
                field=f"seen[{name!r}]",
                where=structure.space.describe(pair),
                fix="leave it out where the structure has no law for it",
            )
    given = np.array(ends, np.int64)
    if _is_plain(structure, known, pair, after, ends):
        return given
    _require_consistent(structure, pair, after, given)
    told, paid = np.empty_like(given), True
    for same in (SAME, np.inf):  # by the reward too, if it is the one that is known
        fits = bool(complete(known, pair, reward, after, same, given, told))
        if fits and not _open(structure, known, pair, told):
            return told
        paid = paid and fits
    missing = _open(structure, known, pair, told)
    name = names[missing[0] if missing else 0]
    tell = "the next state and the reward do not tell"
    if not paid:
        tell = "no outcome that leads to the next state pays this reward"
    raise InputError(
        f"it was not said which outcome it had, and {tell}",
        field=f"seen[{name!r}]",
        where=structure.space.describe(pair),
        fix=f"observe(s, a, reward, s_next, seen={{{name!r}: ...}})"
        + ("" if paid else ", or correct reward of the structure"),
    )


def _is_plain(
    structure: Structure, known: Known, pair: int, after: int, ends: list[tuple[int, int]]
) -> bool:
    """Return whether each outcome is said, and they lead to the next state; most steps are such."""
    joint = 0
    for f, (low, high) in enumerate(ends):
        law = known.law_of[pair, f]
        if law >= 0 and low == high:
            joint = joint * len(structure.variables[f].outcomes) + low
        elif law >= 0 or (high < low and known.shows[pair, f] >= 0):
            return False
    return bool(structure.next_state[structure.first[pair] + joint] == after)


def _open(structure: Structure, known: Known, pair: int, told: NDArray[np.int64]) -> list[int]:
    """Return the variables of which more than one outcome is possible, or none is said."""
    unclear = (told[:, 1] > told[:, 0]) & (structure.seen != INTERVAL)
    unclear |= told[:, 1] < told[:, 0]
    return np.flatnonzero((known.shows[pair] >= 0) & unclear).tolist()


def _ends(structure: Structure, f: int, value: Any) -> tuple[int, int]:
    """Return the numbers of the lowest and the highest outcome a variable may have had."""
    variable = structure.variables[f]
    field = f"seen[{variable.name!r}]"
    if not isinstance(value, (list, tuple)):
        place = variable.index(value, field)
        return place, place
    if structure.seen[f] != INTERVAL:
        raise InputError(
            f"{shown(value)} is no outcome of {variable.name!r}, which is seen exactly",
            field=field,
            fix='pass the outcome, or declare the variable with seen="interval"',
        )
    if len(value) != 2:
        raise InputError(
            f"{shown(value)} is no interval", field=field, fix="pass (lowest, highest) outcome"
        )
    low, high = (variable.index(end, field) for end in value)
    if high < low:
        raise InputError(
            f"{shown(value)} is an empty interval: {value[0]!r} comes after {value[1]!r}",
            field=field,
            fix="pass (lowest, highest) outcome, ends included",
        )
    return low, high


def _require_consistent(
    structure: Structure, pair: int, after: int, given: NDArray[np.int64]
) -> None:
    """Refuse outcomes after which the structure has another next state."""
    space, involved = structure.space, np.flatnonzero(structure.law_of[pair] >= 0)
    sizes = structure.law_sizes[structure.law_of[pair, involved]]
    here = slice(int(structure.first[pair]), int(structure.first[pair + 1]))
    states, possible = structure.next_state[here], np.ones(here.stop - here.start, np.bool_)
    places = np.unravel_index(np.arange(states.size), sizes) if involved.size else ()
    for f, place in zip(involved, places, strict=True):
        if given[f, 1] >= given[f, 0]:
            possible &= (given[f, 0] <= place) & (place <= given[f, 1])
    if (states[possible] == after).any():
        return
    told = [
        f"{structure.variables[f].name} = {_said(structure, int(f), given[f])}"
        for f in involved
        if given[f, 1] >= given[f, 0]
    ]
    leads = sorted({space.describe_state(int(s)) for s in states[possible]})
    raise InputError(
        f"{' and '.join(told) or 'every outcome'} leads to {' or '.join(leads[:4])}"
        f"{' or ...' if len(leads) > 4 else ''}, and s_next is {space.describe_state(after)}",
        field="seen",
        where=space.describe(pair),
        fix="pass what happened in this step, or correct next_state of the structure",
    )


def _said(structure: Structure, f: int, ends: NDArray[np.int64]) -> str:
    outcomes = structure.variables[f].outcomes
    low, high = outcomes[ends[0]], outcomes[ends[1]]
    return repr(low) if low == high else f"({low!r}, {high!r})"
