"""Dynamic regret: what a run lost against the optimal gain of the model at every t.

Regret compares a run with sum_t rho*_t, where rho*_t is the optimal gain of the frozen model M_t.
Three numbers belong together: the regret of the path, with the mean rewards r_t(s_t, a_t), which is
what Theorem 1 bounds; the observed one, with the rewards as they were drawn; and the mean of the
first over many seeds, which is the definition.

Sums are compensated. Gains are read an interval at a time, so a run that kept its totals only
needs no memory for its T gains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError
from windage.kernels.jit import call
from windage.kernels.sums import accumulate
from windage.models import DriftingMDP
from windage.models.files import fingerprint
from windage.models.gains import GainCurve
from windage.recording import Run

__all__ = ["Regret", "dynamic_regret", "gain_sums", "rounding"]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]

_INTERVAL = 1 << 13  # gains looked at together: their temporaries stay in the cache
_LOOKS = 64  # recorded steps that are compared with the model
_SAME = 1e-9  # mean rewards that differ by less differ by rounding
_EVERY = {"full": 1, "totals": 0}  # the recorded times are the multiples of this; 0: none
_ROUNDING = 8 * 2.0**-52  # of the sums that a total is the difference of


@dataclass(frozen=True, eq=False)
class Regret:
    """What a run from `first` to `last` lost against the optimal gains.

    Nothing is clipped: regret can fall, and can be negative. rho*_t is what the best policy of M_t
    earns per step in the long run, not the most that a step can earn: a run that stands in a better
    state than it could stay in collects a transient gain, up to the span of a bias at the start and
    again whenever the optimum moves. One path may also be lucky in its transitions; a mean over
    seeds is not. `explain` says so with the numbers.

    Attributes
    ----------
    first, last
        The times of the first and the last step.
    times
        The recorded times: all, every k-th, or none if the run kept its totals only.
    per_step
        rho*_t - r_t(s_t, a_t) at those times.
    cumulative
        The sum of all steps from `first` to each of those times, recorded or not.
    observed
        The same sum with the rewards as they were drawn.
    optimal
        The sum of rho*_t up to each of those times.
    total, total_observed, total_optimal
        The three sums over all steps.
    error
        `total`, like `total_observed` and `total_optimal`, is no further from the truth than this:
        the certified errors of all gains, summed, and what rounding can do.
    """

    first: int
    last: int
    times: Times
    per_step: Reals
    cumulative: Reals
    observed: Reals
    optimal: Reals
    total: float
    total_observed: float
    total_optimal: float
    error: float

    @property
    def share(self) -> float:
        """The share of sum_t rho*_t that the run earned, noise apart; NaN if nothing is there."""
        earned = self.total_optimal - self.total
        return earned / self.total_optimal if self.total_optimal > 0 else float("nan")

    def explain(self) -> str:
        """Return in one sentence what the numbers say, and why they are negative if they are.

        Examples
        --------
        >>> import windage as wd
        >>> world = wd.envs.make("peril", tau=25)
        >>> best = wd.agents.make("oracle", world.space, horizon=world.horizon, problem=world)
        >>> print(wd.dynamic_regret(wd.run(world, best), world).explain())
        The run from t = 1 to 500 earned 490 where the optimal gains add up to 500: a regret of 10,
        and of 10 with the rewards as they were drawn.
        """
        earned = self.total_optimal - self.total
        sums = (
            f"The run from t = {self.first:,} to {self.last:,} earned {_amount(earned)} where the "
            f"optimal gains add up to {_amount(self.total_optimal)}"
        )
        drawn = f"{_amount(self.total_observed)} with the rewards as they were drawn"
        if abs(self.total) <= self.error:
            return f"{sums}: a regret that cannot be distinguished from zero, and {drawn}."
        if self.total < 0:
            return (
                f"{sums}: a regret of {_amount(self.total)}, and of {drawn}; it is negative "
                "because rho*_t is what the best policy of the frozen model earns per step in the "
                "long run: a transient gain, of a run that starts in a good state or is in one "
                "when the model changes, comes on top of that, and so does a lucky path."
            )
        said = f"{sums}: a regret of {_amount(self.total)}, and of {drawn}"
        if self.total_observed < 0:
            said += ", which is negative by the luck of the draws"
        elif self.cumulative.size and self.cumulative.min() < 0:
            place = int(self.cumulative.argmin())
            said += (
                f"; by t = {self.times[place]:,} it was {_amount(float(self.cumulative[place]))}, "
                "below zero by a transient gain or a lucky path"
            )
        return said + "."

    def __repr__(self) -> str:
        return (
            f"Regret(t={self.first}..{self.last}, total={self.total:.6g}, "
            f"total_observed={self.total_observed:.6g}, error={self.error:.2g})"
        )


def dynamic_regret(
    run: Run, drifting: DriftingMDP, tol: float = 1e-6, *, gains: GainCurve | None = None
) -> Regret:
    """Return what a run lost against the optimal gain of the model at every t.

    Parameters
    ----------
    run
        A run in the model, from any time on. A full record gives every step, record=k the recorded
        times, record="totals" the totals only.
    drifting
        The model: the one the run was made in, or one with the same content. Any other is refused,
        and so are recorded steps that are none of its steps.
    tol
        How far a gain may be from the truth.
    gains
        `drifting.optimal_gains(tol)` if it is at hand, as it is for the second of many runs; `tol`
        is then not used.

    Raises
    ------
    InputError
        The run or the gains are those of another model, or the environment of the run does not give
        its mean rewards.
    NotConverged
        The gains cannot be certified to `tol`.

    Examples
    --------
    >>> import windage as wd
    >>> world = wd.envs.make("riverswim", horizon=20_000)
    >>> agent = wd.agents.make("random", world.space, horizon=20_000)
    >>> regret = wd.dynamic_regret(wd.run(world, agent, seed=0), world)
    >>> regret.cumulative.shape, regret.cumulative[-1] == regret.total
    ((20000,), np.True_)
    >>> 0.8 < regret.total / regret.total_optimal < 0.9, regret.error < 0.03
    (True, True)
    """
    _check(run, drifting)
    curve = drifting.optimal_gains(tol) if gains is None else _checked_gains(gains, drifting)
    every = _EVERY[run.record] if isinstance(run.record, str) else run.record
    optimal, total_optimal, error = gain_sums(curve, run.first, run.last, every)
    rho = curve.evaluate(run.times)[0] if run.times.size else np.empty(0)
    earned = max(abs(run.total_mean_reward), abs(run.total_reward))
    return Regret(
        first=run.first,
        last=run.last,
        times=run.times,
        per_step=rho - run.mean_rewards,
        cumulative=optimal - run.cumulative_mean_reward,
        observed=optimal - run.cumulative_reward,
        optimal=optimal,
        total=total_optimal - run.total_mean_reward,
        total_observed=total_optimal - run.total_reward,
        total_optimal=total_optimal,
        error=error + rounding(total_optimal + earned),
    )


def gain_sums(curve: GainCurve, first: int, last: int, every: int) -> tuple[Reals, float, float]:
    """Return the sums of gains up to each multiple of `every`, of all, and of their errors."""
    sums = np.empty(last // every - (first - 1) // every if every else 0)
    total, place, error = np.zeros(2), 0, 0.0
    for t in range(first, last + 1, _INTERVAL):
        values, errors = curve.evaluate(np.arange(t, min(t + _INTERVAL, last + 1)))
        given = values, total, t, every, sums[place:]
        place += int(call(accumulate, *given, seconds=1e-6 * values.size))
        error += float(errors.sum())
    return sums, float(total.sum()), error


def rounding(size: float) -> float:
    """Return what rounding can do to a difference of sums of this size."""
    return _ROUNDING * size


def _check(run: Run, drifting: DriftingMDP) -> None:
    if not isinstance(run, Run):
        raise InputError(f"{run!r} is not a Run", field="run", fix="pass what wd.run returned")
    if not isinstance(drifting, DriftingMDP):
        raise InputError(
            f"{type(drifting).__name__} has no optimal gains",
            field="drifting",
            fix="pass the DriftingMDP that the run was made in",
        )
    if run.last > drifting.horizon:
        raise InputError(
            f"goes on to t = {run.last:,}, the model ends at T = {drifting.horizon:,}",
            field="run",
            fix="pass the model that the run was made in",
        )
    if not np.isfinite(run.total_mean_reward):
        raise InputError(
            "the mean rewards are not known: the environment does not give them",
            field="run",
            fix="run the agent in a DriftingMDP; regret is made of r_t(s_t, a_t)",
        )
    _check_steps(run, drifting)
    if run.model is not None and not _same(run.model, drifting):
        raise InputError(
            f"was made in another model, {run.model!r}: this one has other content",
            field="run",
            fix="pass the model that the run was made in",
        )


def _same(one: DriftingMDP, other: DriftingMDP) -> bool:
    """Return whether two models are one, or equal in content; a function's content costs time."""
    return one is other or (one.horizon == other.horizon and fingerprint(one) == fingerprint(other))


def _check_steps(run: Run, drifting: DriftingMDP) -> None:
    """Refuse a run whose recorded steps are not steps of this model."""
    space, n = drifting.space, run.times.size
    states, actions = run.states[:n], run.actions
    strange = (states < 0) | (states >= space.n_states)
    strange |= (actions < 0) | (actions >= space.counts[np.where(strange, 0, states)])
    if strange.any():
        i = int(strange.argmax())
        raise _another_model(run, i, f"has no action {actions[i]} in a state {states[i]}")
    for i in np.unique(np.linspace(0, n - 1, _LOOKS).astype(np.int64)) if n else ():
        rewards = drifting.source.at(int(run.times[i]))[0]
        mean = float(rewards[space.offsets[states[i]] + actions[i]])
        if abs(mean - run.mean_rewards[i]) > _SAME * drifting.reward_scale:
            place = f"action {actions[i]} in state {states[i]}"
            found = f"pays {mean:.9g} for {place}, the run was paid {run.mean_rewards[i]:.9g}"
            raise _another_model(run, i, found)


def _another_model(run: Run, i: int, found: str) -> InputError:
    return InputError(
        f"was made in another model: this one {found}",
        field="run",
        where=f"t={run.times[i]}",
        fix="pass the model that the run was made in",
    )


def _checked_gains(gains: object, drifting: DriftingMDP) -> GainCurve:
    if not isinstance(gains, GainCurve) or not _same(gains.model, drifting):
        raise InputError(
            f"{gains!r} is not the curve of this model, {drifting!r}",
            field="gains",
            fix="pass drifting.optimal_gains()",
        )
    return gains


def _amount(value: float) -> str:
    """Return a sum of rewards as people say it.

    >>> _amount(12345.678), _amount(-3.14159), _amount(500.0)
    ('12,345.7', '-3.142', '500')
    """
    if abs(value) < 100:
        return f"{value:.4g}"
    return f"{value:,.1f}".removesuffix(".0")
