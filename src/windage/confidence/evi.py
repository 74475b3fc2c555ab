"""EVI: the optimistic policy of a confidence region, with its certificate (section 4, Eq. (6)).

Stops when span(Tu - u) <= epsilon and then returns rho~ = max(Tu - u) and gamma~ = u - min u, for
which the corrected Properties 1 and 2 of the paper hold exactly:

1. rho~ + gamma~(s) >= r~(s, a) + max_q q.gamma~ for every pair (E11: the maximum of the sum);
2. r~(s, pi~) >= rho~ + gamma~(s) - p~.gamma~ - epsilon for every state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.confidence.confidence import ConfidenceRegion
from windage.errors import InputError, ModelError, NotConverged
from windage.rng import key
from windage.validation import as_choice, as_floats, as_integer, as_real, as_seed

__all__ = ["OptimisticModel", "evi", "not_converged"]

SWEEPS = 100_000
"""EVI gives up after as many full sweeps."""


@dataclass(frozen=True, eq=False)
class OptimisticModel:
    """What EVI found.

    Attributes
    ----------
    policy
        pi~, the action of each state.
    gain
        rho~, the optimistic gain.
    bias
        gamma~ = u - min u, of the vector that was swept last.
    span
        max gamma~.
    gap
        span(Tu - u), at most epsilon.
    sweeps
        Full sweeps it took.
    action_values
        r~ + max q.u of every pair in the last sweep.
    tied
        Whether the pair is within the slack of its state's best.
    """

    region: ConfidenceRegion
    policy: NDArray[np.int64]
    gain: float
    bias: NDArray[np.float64]
    span: float
    gap: float
    sweeps: int
    action_values: NDArray[np.float64]
    tied: NDArray[np.bool_]

    @cached_property
    def transitions(self) -> NDArray[np.float64]:
        """p~(. | s, pi~(s)) of every state: the plausible kernels the policy counts on."""
        pairs = self.region.space.offsets[:-1] + self.policy
        return np.stack([self.region.best_row(int(pair), self.bias) for pair in pairs])


def evi(
    region: ConfidenceRegion,
    epsilon: float = 1e-3,
    warm_start: ArrayLike | None = None,
    ties: str = "lowest",
    slack: float = 0.0,
    *,
    method: str = "auto",
    seed: int = 0,
    max_sweeps: int = SWEEPS,
) -> OptimisticModel:
    """Return the optimistic policy, gain and bias of a confidence region.

    Parameters
    ----------
    region
        Plausible rewards and kernels.
    epsilon
        How far the gain may be off: it stops when span(Tu - u) is at most this.
    warm_start
        Any vector over states to start from, such as the last bias; None starts from 0.
    ties
        Which of the actions within `slack` of the best to play: the "lowest", or a "random" one
        drawn with `seed`.
    slack
        How much worse than the best an action may be and still count as tied.
    method
        "auto" evaluates the greedy policy between full sweeps if there is a warm start; "plain" is
        the paper's iteration and nothing else. Both end with a full sweep that passes the test.

    Raises
    ------
    NotConverged
        When the span stops falling or `max_sweeps` full sweeps were not enough: plausible kernels
        that do not communicate. Sets of positive width always do.

    Examples
    --------
    >>> import windage as wd
    >>> space = wd.StateActions([1, 1])
    >>> region = wd.ConfidenceRegion(space, [1, 0], [[0, 1], [1, 0]], [0, 0], [True, True], 0.5)
    >>> model = wd.evi(region, epsilon=1e-9)
    >>> round(model.gain, 6)
    0.571429
    """
    from windage.kernels import evi as kernel
    from windage.kernels.random import uniform

    if not isinstance(region, ConfidenceRegion):
        raise InputError(f"{region!r} is no region", field="region", fix="pass a ConfidenceRegion")
    epsilon = as_real(epsilon, "epsilon", low=0.0, open_low=True)
    slack = as_real(slack, "slack", low=0.0)
    ties = as_choice(ties, "ties", ("lowest", "random"))
    quick = as_choice(method, "method", ("auto", "plain")) == "auto"
    most = as_integer(max_sweeps, "max_sweeps", low=1)
    seed_key = key(as_seed(seed), "evi.ties")
    space = region.space
    plan = region.as_plan(_start(warm_start, space.n_states))
    if isinstance(plan, kernel.Balls):
        kernel.arrange(plan, plan.rows.size)
    if not kernel.solve(plan, epsilon, quick, most):
        raise not_converged(plan.answer[0], epsilon)
    values = plan.pairs["value"].copy()
    bars = np.array([kernel.tie_bar(best, slack) for best in plan.states["swept"]])
    tied = values >= bars[space.state_of]
    policy = np.empty(space.n_states, np.int64)
    for s in range(space.n_states):
        choices = np.flatnonzero(tied[space.offsets[s] : space.offsets[s + 1]])
        skip = int(uniform(seed_key, 0, s) * choices.size) if ties == "random" else 0
        policy[s] = choices[skip]
    gain, span, gap, sweeps = plan.answer[0].item()[:4]
    return OptimisticModel(
        region, policy, float(gain), plan.u, float(span), float(gap), int(sweeps), values, tied
    )


def not_converged(answer: Any, epsilon: float) -> NotConverged:
    """Return the error that says how far EVI came."""
    return NotConverged(
        f"after {answer['sweeps']} sweeps span(Tu - u) is {answer['gap']:.3g}, "
        f"wanted {epsilon:.3g}",
        field="evi",
        fix="use a positive radius or widening, so that the plausible kernels communicate",
    )


def _start(warm_start: ArrayLike | None, states: int) -> NDArray[np.float64]:
    if warm_start is None:
        return np.zeros(states)
    fix = f"pass {states} finite numbers"
    try:
        u = as_floats(warm_start, "warm_start")
    except ModelError as err:
        raise InputError(err.problem, field="warm_start", fix=fix) from None
    if u.shape != (states,) or not np.isfinite(u).all():
        raise InputError(
            f"has shape {u.shape}" if u.shape != (states,) else "holds NaN or infinity",
            field="warm_start",
            fix=fix,
        )
    u -= u.min()  # a common offset would cost the gain its digits
    return u
