"""DriftingMDP: a model that changes with t, built from knots, blends, arrays or functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.drift.blend import Blend, Mixture, alike
from windage.drift.budgets import Budgets
from windage.drift.reach import Disconnection, disconnections
from windage.drift.stream import Stream
from windage.drift.tables import Source, largest, largest_row
from windage.errors import InputError, ModelError
from windage.inputs import as_choice, as_horizon, as_integer
from windage.mdp import (
    MDP,
    Transitions,
    as_floats,
    check_rewards,
    check_transitions,
    freeze,
    rectangular,
)
from windage.noise import Noise
from windage.schedules import Knots, Schedule, Steps, as_schedule
from windage.schedules.steps import check_knots
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.drift.diameters import DiameterBound
    from windage.drift.gains import GainCurve

__all__ = ["DriftingMDP"]

Reals = NDArray[np.float64]


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
        times = check_knots(knots, T)
        schedule = Knots(times, as_choice(interpolation, "interpolation", ("linear", "step")))
        at = [f"knot {k} (t={t})" for k, t in enumerate(times)]
        rows = _one_a_knot(rewards, len(times), "rewards")
        r = [check_rewards(space, row, at=place) for row, place in zip(rows, at, strict=True)]
        kernels = _one_a_knot(transitions, len(times), "transitions")
        p = [
            check_transitions(space, one, at=place) for one, place in zip(kernels, at, strict=True)
        ]
        self._set(space, T, noise, _blend(space, r, schedule, p, schedule, T))

    def _set(self, space: StateActions, horizon: int, noise: Noise | str, source: Source) -> None:
        self.space = space
        self.horizon = horizon
        self.noise = Noise.of(noise)
        self.source = source
        self.name: str | None = None
        """The versioned id of an environment of the library, such as "riverswim-v0"."""

    @classmethod
    def _of(
        cls, space: StateActions, horizon: int, noise: Noise | str, source: Source
    ) -> DriftingMDP:
        model = cls.__new__(cls)
        model._set(space, horizon, noise, source)
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
        if not models:
            raise ModelError("there are no base models", field="models", fix="pass at least one")
        space = models[0].space
        for k, model in enumerate(models):
            if model.space != space:
                raise ModelError(
                    f"{model.space!r} is not {space!r}",
                    field=f"models[{k}].space",
                    fix="build all base models on one space",
                )
        kernel_weights = as_schedule(schedule, T)
        reward_weights = (
            kernel_weights
            if reward_schedule is None
            else as_schedule(reward_schedule, T, "reward_schedule")
        )
        for weights, field in ((kernel_weights, "schedule"), (reward_weights, "reward_schedule")):
            if weights.n_models > len(models):
                raise ModelError(
                    f"speaks of {weights.n_models} models, there are {len(models)}",
                    field=field,
                    fix="pass as many base models as the schedule has weights",
                )
        r, p = [model.rewards for model in models], [model.transitions for model in models]
        return cls._of(space, T, noise, _blend(space, r, reward_weights, p, kernel_weights, T))

    @classmethod
    def stationary(
        cls, model: MDP, *, horizon: int, noise: Noise | str = "bernoulli"
    ) -> DriftingMDP:
        """Return a model that does not drift at all."""
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
        r, p, space = rectangular(rewards, transitions, space, leading=1)
        T = as_horizon(r.shape[0], "r")
        for i in _suspects(r, p):
            r[i] = check_rewards(space, r[i], field="r", at=f"t={i + 1}")
            p[i] = check_transitions(space, p[i], field="p", at=f"t={i + 1}", normalize=normalize)
        freeze(r, p)
        return cls._of(
            space, T, noise, Stream(space, lambda t: (r[t - 1], p[t - 1]), int(p[0].size))
        )

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

        The function must give the same answer whenever it is asked for the same t.
        """
        T = as_horizon(horizon)

        def model_at(t: int) -> tuple[Reals, Transitions]:
            answer = function(t)
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise ModelError(
                    f"returned {type(answer).__name__}",
                    field="function",
                    where=f"t={t}",
                    fix="return the tuple (rewards, transitions)",
                )
            return (
                check_rewards(space, answer[0], at=f"t={t}"),
                check_transitions(space, answer[1], at=f"t={t}"),
            )

        first = model_at(1)[1]
        cells = first.size if isinstance(first, np.ndarray) else first.nnz
        return cls._of(space, T, noise, Stream(space, model_at, int(cells)))

    def at(self, t: int) -> MDP:
        """Return the stationary model that acts at time t."""
        time = as_integer(t, "t", low=1, high=self.horizon)
        return MDP.trusted(self.space, *self.source.at(time))

    def budgets(self, first: int = 1, last: int | None = None) -> Budgets:
        """Return the variation between the times `first` and `last`, the whole horizon if not said.

        The steps t -> t + 1 with first <= t < last are summed: T - 1 of them for the horizon.
        """
        start, end = self._interval(first, last)
        return Budgets(self.source, start, end)

    def optimal_gains(self, tol: float = 1e-6) -> GainCurve:
        """Return rho*_t, the optimal gain of every frozen model M_t, certified to `tol`.

        The cost does not grow with T for knots and blends: see `windage.drift.gains`.

        >>> import windage as wd
        >>> wd.envs.make("peril").optimal_gains().sum()
        1000.0
        """
        from windage.drift.gains import gain_curve

        return gain_curve(self, tol)

    def diameters(self, times: ArrayLike) -> Reals:
        """Return the diameter D(p_t) at the given times; inf where p_t does not communicate.

        Each distinct kernel is solved once.

        >>> import windage as wd
        >>> wd.envs.make("two-state-cosine", horizon=8).diameters([2, 3, 4]).round(4)
        array([2.    , 1.2774, 1.1111])
        """
        from windage.drift.diameters import diameters

        return diameters(self, times)

    def max_diameter(self, tol: float = 1e-3) -> DiameterBound:
        """Return the largest D(p_t) over t = 1..T, in a bracket of width tol times max(1, D).

        The cost does not grow with T for knots and blends: see `windage.drift.diameters`.

        >>> import windage as wd
        >>> found = wd.envs.make("riverswim", horizon=10**8).max_diameter()
        >>> round(found.lower, 4), found.t, found.upper < 1.001 * found.lower
        (14.7223, 50000000, True)
        """
        from windage.drift.diameters import max_diameter

        return max_diameter(self, tol)

    def disconnections(self, first: int = 1, last: int | None = None) -> list[Disconnection]:
        """Return where the model does not communicate: stretches of time and two states each.

        Only which moves are possible matters, so each distinct set of possible moves is tested
        once.
        """
        return disconnections(self, *self._interval(first, last))

    def save(self, path: str | Path) -> None:
        """Write the model to an `.npz` file that `windage.load` reads; the file appears whole."""
        from windage.drift.files import save

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


def _blend(
    space: StateActions,
    rewards: Sequence[Reals],
    reward_schedule: Schedule,
    kernels: Sequence[Transitions],
    kernel_schedule: Schedule,
    horizon: int,
) -> Blend:
    return Blend(
        space,
        Mixture(list(rewards), reward_schedule, horizon, largest),
        Mixture(alike(kernels), kernel_schedule, horizon, largest_row),
    )


def _suspects(rewards: Reals, transitions: Reals) -> NDArray[np.int64]:
    """Return the times whose arrays are not flawless: only these need a closer look."""
    fine = ((rewards >= 0) & (rewards <= 1)).all(axis=1)
    fine &= (transitions >= 0).all(axis=(1, 2))
    fine &= (np.abs(transitions.sum(axis=2) - 1) <= 1e-15 * transitions.shape[2]).all(axis=1)
    return np.flatnonzero(~fine)


def _one_a_knot(values: Any, knots: int, field: str) -> Any:
    if isinstance(values, (list, tuple)) and any(hasattr(value, "tocsr") for value in values):
        found: Any = values
    else:
        found = as_floats(values, field)
        if found.ndim == 0:
            raise ModelError("is a single number", field=field, fix="pass one array a knot")
    if len(found) != knots:
        raise ModelError(
            f"{len(found)} entries for {knots} knots", field=field, fix="pass one array a knot"
        )
    return found
