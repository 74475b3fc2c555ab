"""DriftingMDP: a model that changes with t, built from knots, blends, arrays or functions.

Its `Budgets` say how much it moves from step to step (paper, Eq. 1-2): B_{r,t} = max over pairs of
abs(r_{t+1} - r_t), B_{p,t} = max over pairs of the L1 norm of p_{t+1} - p_t, for t = 1..T-1; B_r
and B_p are their sums, T - 1 terms each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.models import builders
from windage.models.blend import Blend, edges, rising
from windage.models.mdp import MDP, Noise, Transitions
from windage.models.source import KEPT_STEPS, Source
from windage.schedules import Steps
from windage.spaces import StateActions
from windage.validation import as_flag, as_horizon, as_integer, as_name, require_memory

if TYPE_CHECKING:
    from windage.models.diameters import DiameterBound
    from windage.models.gains import GainCurve
    from windage.oracle.finite_horizon import FiniteHorizon
    from windage.structure import Structure
    from windage.structure.laws import Laws, Moving, Tabulated

__all__ = ["Budgets", "Disconnection", "DriftingMDP"]

Reals = NDArray[np.float64]


CHUNK = 1 << 16
"""So many times are looked at together."""


class DriftingMDP:
    """A Markov decision process whose rewards and transitions depend on time t = 1..T.

    The constructor takes knots; `blend`, `from_arrays`, `from_function` and `stationary` are the
    other ways in.

    Parameters
    ----------
    space
        States and actions.
    knots
        Rising times; the first is 1, none is above T.
    rewards
        `rewards[k, pair]`, the mean rewards at knot k.
    transitions
        `transitions[k, pair, s']`, or a list of sparse matrices, one a knot.
    horizon
        T, the number of steps.
    interpolation
        "linear" between knots, or "step": a knot's model holds until the next knot. After the last
        knot the model stays.
    noise
        The law of rewards around their mean: a `Noise` or its bare name.

    Examples
    --------
    Two states, one action, rewards that trade places between t = 1 and t = 5:

    >>> space = StateActions.uniform(states=2, actions=1)
    >>> swap = [[0.0, 1.0], [1.0, 0.0]]
    >>> model = DriftingMDP(space, [1, 5], [[0.0, 1.0], [1.0, 0.0]], [swap, swap], horizon=6)
    >>> model.at(2).rewards
    array([0.25, 0.75])
    >>> model.budgets()
    Budgets(reward=1, transition=0, first=1, last=6)
    """

    __slots__ = (
        "__weakref__",
        "_fingerprint",
        "_horizon",
        "_laws",
        "_learned",
        "_name",
        "_noise",
        "_source",
    )

    def __init__(
        self,
        space: StateActions,
        knots: ArrayLike,
        rewards: ArrayLike,
        transitions: ArrayLike | Sequence[Transitions],
        *,
        horizon: int,
        interpolation: str = "linear",
        noise: Noise | str = "bernoulli",
    ) -> None:
        T = as_horizon(horizon)
        source = builders.from_knots(space, knots, rewards, transitions, interpolation, T)
        self._set(T, noise, source)

    def _set(
        self,
        horizon: int,
        noise: Noise | str,
        source: Source,
        laws: Laws | None = None,
        learned: Moving | Tabulated | None = None,
    ) -> None:
        self._horizon = horizon
        self._noise = Noise.of(noise)
        if (self._noise.kind == "outcomes") != (laws is not None and learned is None):
            raise InputError(
                "is the noise of a model with a structure, and of no other",
                field="noise",
                fix="pass bernoulli, beta, gaussian or none",
            )
        self._laws = laws
        self._learned = learned
        self._source = source
        self._name: str | None = None
        self._fingerprint: str | None = None

    @classmethod
    def _of(
        cls,
        horizon: int,
        noise: Noise | str,
        source: Source,
        laws: Laws | None = None,
        learned: Moving | Tabulated | None = None,
    ) -> DriftingMDP:
        model = cls.__new__(cls)
        model._set(horizon, noise, source, laws, learned)
        return model

    @classmethod
    def blend(
        cls,
        models: Sequence[MDP],
        schedule: object,
        reward_schedule: object = None,
        *,
        horizon: int,
        noise: Noise | str = "bernoulli",
    ) -> DriftingMDP:
        """Return the blend of base models with weights that change with t.

        Parameters
        ----------
        models
            Base models on one space.
        schedule
            One of `windage.schedules`, or any object with `weights(t, T)`.
        reward_schedule
            The weights of the rewards, if they follow a schedule of their own.
        horizon
            T, the number of steps.
        noise
            The law of rewards around their mean.

        Examples
        --------
        >>> import windage as wd
        >>> quiet, busy = wd.envs.riverswim_mdp(3), wd.envs.riverswim_mdp(3, up=0.6)
        >>> wd.DriftingMDP.blend([quiet, busy], wd.schedules.Cosine(cycles=2), horizon=100)
        DriftingMDP(StateActions.uniform(states=3, actions=2), horizon=100, noise=Noise.bernoulli())
        """
        T = as_horizon(horizon)
        return cls._of(T, noise, builders.from_models(models, schedule, reward_schedule, T))

    @classmethod
    def stationary(
        cls, model: MDP, *, horizon: int, noise: Noise | str = "bernoulli"
    ) -> DriftingMDP:
        """Return a model that does not drift at all."""
        builders.as_model(model, "model")
        return cls.blend([model, model], Steps(), horizon=horizon, noise=noise)

    @classmethod
    def from_arrays(
        cls,
        rewards: ArrayLike,
        transitions: ArrayLike,
        space: StateActions | None = None,
        *,
        noise: Noise | str = "bernoulli",
        normalize: bool = False,
    ) -> DriftingMDP:
        """Return the model of `r[t, s, a]` and `p[t, s, a, s']`, row 0 being t = 1.

        Cells outside A_s are ignored. The horizon is the number of rows.
        """
        rescale = as_flag(normalize, "normalize")
        source = builders.from_arrays(rewards, transitions, space, normalize=rescale)
        return cls._of(as_horizon(len(source.rewards), "r"), noise, source)

    @classmethod
    def from_function(
        cls,
        function: Callable[[int], tuple[ArrayLike, ArrayLike | Transitions]],
        *,
        space: StateActions,
        horizon: int,
        noise: Noise | str = "bernoulli",
    ) -> DriftingMDP:
        """Return the model `function(t) -> (rewards, transitions)`, both over pairs, t = 1..T.

        The function must give the same answer whenever it is asked for the same t. A model that is
        sent to another process takes its function along, which must then be one of a module.
        """
        T = as_horizon(horizon)
        return cls._of(T, noise, builders.from_function(function, space))

    @property
    def space(self) -> StateActions:
        """States and actions."""
        return self._source.space

    @property
    def horizon(self) -> int:
        """T, the number of steps."""
        return self._horizon

    @property
    def noise(self) -> Noise:
        """The law of rewards around their mean."""
        return self._noise

    @property
    def source(self) -> Source:
        """What the models are made of: a `Blend` or a `Stream`."""
        return self._source

    @property
    def name(self) -> str | None:
        """The versioned id of an environment of the library, such as "riverswim-v0", or None.

        A label, no part of the model: it alone may be set.
        """
        return self._name

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = None if name is None else as_name(name, "name")

    @property
    def structure(self) -> Structure | None:
        """The structure whose variables a run draws; None of a model that has none."""
        return None if self._laws is None else self._laws.structure

    @property
    def reward_range(self) -> tuple[float, float]:
        """The (lowest, highest) reward: (0, 1), or that of the structure.

        Mean rewards, gains, regret and B_r are in the same units.
        """
        return (0.0, 1.0) if self._laws is None else self._laws.structure.reward_range

    @property
    def reward_scale(self) -> float:
        """The largest absolute reward: what tolerances of gains are relative to. 1 for [0, 1]."""
        return max(map(abs, self.reward_range)) or 1.0

    def laws(self, t: int) -> dict[str, Any]:
        """Return the laws of the variables at time t, as `Structure.model` takes them."""
        time = as_integer(t, "t", low=1, high=self.horizon)
        if self._laws is None:
            raise InputError(
                "the model has no structure, so it has no laws",
                field="laws",
                fix="build it with Structure.drifting",
            )
        return self._laws.named(time)

    def at(self, t: int) -> MDP:
        """Return the stationary model that acts at time t."""
        time = as_integer(t, "t", low=1, high=self.horizon)
        return MDP.trusted(self.space, *self.source.at(time))

    def budgets(self, first: int = 1, last: int | None = None) -> Budgets:
        """Return the variation between the times `first` and `last`, the whole horizon if not said.

        The steps t -> t + 1 with first <= t < last are summed: T - 1 of them for the horizon.
        """
        start, end = self._interval(first, last)
        return Budgets(self.source, start, end, self._laws)

    def optimal_gains(self, tol: float = 1e-6) -> GainCurve:
        """Return rho*_t, the optimal gain of every frozen model M_t, certified to `tol`.

        With a structure, gains are in the units of its rewards, and `tol` is a share of the largest
        of them.

        For knots and blends with one weight the cost does not grow with T; with schedules of their
        own for rewards and transitions it does, up to one model a time: see
        `windage.models.gains`.

        >>> import windage as wd
        >>> wd.envs.make("peril").optimal_gains().sum()
        1000.0
        """
        from windage.models.gains import gain_curve

        return gain_curve(self, tol)

    def diameters(self, times: ArrayLike, tol: float = 1e-3) -> Reals:
        """Return the diameter D(p_t) at the given times; inf where p_t does not communicate.

        Each distinct kernel is solved once; one that rounding leaves in doubt by more than `tol`
        times its size raises `NotConverged`.

        >>> import windage as wd
        >>> wd.envs.make("two-state-cosine", horizon=8).diameters([2, 3, 4]).round(4)
        array([2.    , 1.2774, 1.1111])
        """
        from windage.models.diameters import diameters

        return diameters(self, times, tol)

    def max_diameter(self, tol: float = 1e-3) -> DiameterBound:
        """Return the largest D(p_t) over t = 1..T, in a bracket of width tol times max(1, D).

        The cost does not grow with T for knots and blends: see `windage.models.diameters`.

        >>> import windage as wd
        >>> found = wd.envs.make("riverswim", horizon=10**8).max_diameter()
        >>> round(found.lower, 4), found.t, found.upper < 1.001 * found.lower
        (14.7223, 50000000, True)
        """
        from windage.models.diameters import max_diameter

        return max_diameter(self, tol)

    def finite_horizon(self, policy: bool = False) -> FiniteHorizon:
        """Return the most that any policy can expect from all T steps, by dynamic programming.

        With `policy` the optimal action of every time and state is kept.

        >>> import windage as wd
        >>> best = wd.envs.make("peril", tau=5).finite_horizon()
        >>> best.values, best.horizon
        (array([ 99., 100.]), 100)
        """
        from windage.oracle.finite_horizon import finite_horizon

        return finite_horizon(self.space, self.source.at, self.horizon, policy=policy)

    def disconnections(self, first: int = 1, last: int | None = None) -> list[Disconnection]:
        """Return where the model does not communicate: stretches of time and two states each.

        Only which moves are possible matters, so each distinct set of possible moves is tested
        once.
        """
        return disconnections(self, *self._interval(first, last))

    def save(self, path: str | Path) -> None:
        """Write the model to an `.npz` file that `windage.load` reads; the file appears whole."""
        from windage.models.files import save

        save(self, path)

    def _interval(self, first: int, last: int | None) -> tuple[int, int]:
        start = as_integer(first, "first", low=1, high=self.horizon)
        end = self.horizon if last is None else as_integer(last, "last", low=1, high=self.horizon)
        if end < start:
            raise InputError(
                f"{end} is before first = {start}", field="last", fix="pass a later time"
            )
        return start, end

    def __repr__(self) -> str:
        return f"DriftingMDP({self.space!r}, horizon={self.horizon}, noise={self.noise!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes without tables and what else can be made again."""
        own = self.horizon, self.noise, self.source, self._laws, self._learned
        return _rebuilt, (type(self), self.name, *own)


class Budgets:
    """The variation of a drifting model between the times `first` and `last`.

    `reward` and `transition` are the sums of the steps t -> t + 1 with first <= t < last. Per-step
    series are built when asked for.

    Attributes
    ----------
    reward, transition
        B_r and B_p of the interval.

    With a structure, `law` is B_q, the sum of B_{q,t} = max over laws of the L1 norm of
    q_{t+1} - q_t. Where every pair involves one law, B_p <= B_q, and B_r <= B_q / 2 times the width
    of the range of rewards.
    """

    def __init__(self, source: Source, first: int, last: int, laws: Laws | None = None) -> None:
        self.first = first
        self.last = last
        self._source = source
        self._laws = laws
        self.reward, self.transition = source.totals(first, last)

    @functools.cached_property
    def _series(self) -> tuple[Reals, Reals]:
        require_memory(
            16 * (self.last - self.first), "budget series", fix="ask for a shorter interval"
        )
        r, p = self._source.variations(self.first, self.last)
        r.flags.writeable = p.flags.writeable = False
        return r, p

    @property
    def reward_steps(self) -> Reals:
        """B_{r,t} for t = first..last-1."""
        return self._series[0]

    @property
    def transition_steps(self) -> Reals:
        """B_{p,t} for t = first..last-1."""
        return self._series[1]

    @functools.cached_property
    def law(self) -> float:
        """B_q of the interval."""
        return self._known_laws.total(self.first, self.last)

    @functools.cached_property
    def law_steps(self) -> Reals:
        """B_{q,t} for t = first..last-1."""
        require_memory(8 * (self.last - self.first), "B_q", fix="ask for a shorter interval")
        steps = self._known_laws.largest_variations(self.first, self.last)
        steps.flags.writeable = False
        return steps

    def law_of(self, variable: str) -> float:
        """Return B_q of one variable: only its laws are compared."""
        return self._known_laws.total_of(variable, self.first, self.last)

    @property
    def _known_laws(self) -> Laws:
        if self._laws is None:
            raise InputError(
                "the model has no structure, so it has no laws",
                field="budgets.law",
                fix="build it with Structure.drifting",
            )
        return self._laws

    @property
    def changes(self) -> int:
        """The number of times t in the interval at which M_{t+1} differs from M_t."""
        return self._summary[0]

    @property
    def change_times(self) -> NDArray[np.int64]:
        """The times t in the interval, after its first, at which M_t differs from M_{t-1}."""
        found, t = [], self.first + 1
        for r, p in self._chunks():
            found.append(t + np.flatnonzero((r > 0) | (p > 0)))
            t += r.size
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def between(self, first: int, last: int) -> Budgets:
        """Return the budgets of a part of the interval."""
        start = as_integer(first, "first", low=self.first, high=self.last)
        end = as_integer(last, "last", low=start, high=self.last)
        return Budgets(self._source, start, end, self._laws)

    @property
    def largest_steps(self) -> tuple[float, float]:
        """The largest B_{r,t} and the largest B_{p,t}."""
        return self._summary[1:]

    @functools.cached_property
    def _summary(self) -> tuple[int, float, float]:
        """Changes and largest steps: one pass for both."""
        changes, reward, transition = 0, 0.0, 0.0
        for r, p in self._chunks():
            changes += int(np.count_nonzero((r > 0) | (p > 0)))
            reward = max(reward, float(r.max(initial=0.0)))
            transition = max(transition, float(p.max(initial=0.0)))
        return changes, reward, transition

    def windows(self, length: int) -> tuple[Reals, Reals]:
        """Return the budgets of every `length` consecutive steps: what a window of W sees drift.

        Entry i is the sum of the steps first + i .. first + i + length - 1.
        """
        n = as_integer(length, "length", low=1)
        steps = self.last - self.first
        if n > steps:
            raise InputError(
                f"{n} steps do not fit into the {steps} steps of the interval",
                field="length",
                fix=f"pass an integer from 1 to {steps}",
            )
        sums = [np.concatenate([[0.0], np.cumsum(series)]) for series in self._series]
        r, p = (total[n:] - total[:-n] for total in sums)
        return r, p

    def _chunks(self) -> Iterator[tuple[Reals, Reals]]:
        if "_series" in self.__dict__:
            yield self._series
            return
        for first in range(self.first, self.last, CHUNK):
            yield self._source.variations(first, min(first + CHUNK, self.last))

    def __repr__(self) -> str:
        law = "" if self._laws is None else f"law={self.law:.6g}, "
        return (
            f"Budgets(reward={self.reward:.6g}, transition={self.transition:.6g}, {law}"
            f"first={self.first}, last={self.last})"
        )


CHUNK = 1 << 16
"""So many times of a blend without known stops are looked at together."""


class Disconnection(NamedTuple):
    """A stretch of time in which no policy leads from state `origin` to state `target`."""

    first: int
    last: int
    origin: int
    target: int


def disconnections(model: DriftingMDP, start: int, end: int) -> list[Disconnection]:
    """Return where a model does not communicate between two times.

    Each distinct set of possible moves is tested once.
    """
    found: list[Disconnection] = []
    for times, last in _looks(model, start, end):
        numbers = model.source.supports(times)
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        firsts = times[np.concatenate([[0], cuts])]
        lasts = np.append(firsts[1:] - 1, last)
        answers: dict[int, tuple[int, int] | None] = {}
        for number, begin, stop in zip(numbers[np.append(0, cuts)], firsts, lasts, strict=True):
            if number not in answers:
                answers[number] = model.at(int(begin)).unreachable()
            hole = answers[number]
            if hole is None:
                continue
            if found and found[-1][1:] == (begin - 1, *hole):
                found[-1] = found[-1]._replace(last=int(stop))
            else:
                found.append(Disconnection(int(begin), int(stop), *hole))
    return found


def _looks(model: DriftingMDP, start: int, end: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield times to look at, each of which stands for those up to the next, and the last of all.

    A blend is looked at where its kernel starts or stops to move, anything else everywhere.
    """
    source = model.source
    stops = source.kernels.schedule.stops(model.horizon) if isinstance(source, Blend) else None
    if isinstance(source, Blend) and stops is not None:
        near = edges(source.kernels, stops)
        times = rising(np.array([start]), near, near + 1)
        yield times[(times >= start) & (times <= end)], end
        return
    size = CHUNK if isinstance(source, Blend) else KEPT_STEPS  # what a stream finds stays
    for first in range(start, end + 1, size):
        last = min(first + size - 1, end)
        yield np.arange(first, last + 1), last


def _rebuilt(cls: type[DriftingMDP], name: str | None, *own: Any) -> DriftingMDP:
    model = cls._of(*own)
    model.name = name
    return model
