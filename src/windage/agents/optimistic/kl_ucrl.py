"""KL-UCRL (Filippi, Cappe, Garivier 2010): UCRL2 with Kullback-Leibler balls of kernels.

    H_r = {r : |r - r_hat| <= C_R / sqrt(N)},    C_R = sqrt(ln(4 SA ln T / delta) / 1.99)
    H_p = {q : KL(p_hat, q) <= C_P / N},         C_P = S (B + ln(B + 1/ln T) (1 + 1/(B + 1/ln T))),
                                                 B = ln(2 e S SA ln T / delta)

A ball is narrow where p_hat is nearly sure, and holds no row that excludes a next state which was
seen. `windage.kernels.kl` finds the best row of a ball, and proves that none has more. Whatever the
radius, KL(p_hat, q) is finite for rows without zeros, so plausible kernels communicate; but an
optimistic row may still have zeros, and no bound on the sweeps of EVI is known (E39).

The sets above hold what is true of a stationary model. Sets for a model that drifts (`drift`): with
probability 1 - delta / 2, for all pairs and all windows of at most W samples at once, the average
row p_bar of the samples of a pair satisfies

    N KL(p_hat, (1 - 1/T) p_bar + 1/(T S)) <= ln(2 SA T / delta) + S ln G + 3/2,
    G = sqrt(W) ln(8 W T S) + 1.

Proof. For a vector x, the product over visits q of exp(x(s'_q)) / <p_q, exp(x)> is a martingale of
mean 1. By Ville's inequality its logarithm stays below ln(1/eps) at all times with probability
1 - eps, and the sum of ln <p_q, exp(x)> is at most N ln <p_bar, exp(x)>, since ln is concave: so
N (x.p_hat - ln <p_bar, exp(x)>) <= ln(1/eps). KL(p, q) is the largest x.p - ln <q, exp(x)>,
attained at x_i = ln(p_i / q_i). With the mixture for q these are below ln(T S) and, where p_hat_i
is not 0, above -ln W; where it is, x_i = -ln(8 W) costs 1/8 at most, all values times N. On a grid
of step 1/sqrt(W), of G^S points, the value is less by another 1/8 at most, and the mixture costs
-N ln(1 - 1/T), less than 1 for N < T: 3/2 in all. The T in the logarithm counts where a window may
start. So p_bar is within an L1 distance of 2/T of the ball, and the sets are widened by that.
The radii of rewards are Laplace's, for rewards in [0, 1] (`Radii.laplace(bounded=True)`).

Proven: the coverage under drift, that the value of a ball is an upper bound, and with it Properties
1 and 2 of every plan. Coverage and order of the regret on stationary models are the paper's, with
constants recalled. There is no theorem on the regret of the window form.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from windage.agents.configuration import AgentOptions
from windage.agents.optimistic.base import Explanation, OptimisticAgent, widening_of_pairs
from windage.agents.optimistic.ucrl2 import BudgetWindowed
from windage.confidence.confidence import ConfidenceRegion, plan_arrays
from windage.confidence.radii import Radii
from windage.spaces import StateActions
from windage.validation import as_flag, as_real

if TYPE_CHECKING:
    from windage.kernels.kl import KLBalls

__all__ = ["KLUCRL", "SWKLUCRL", "KLRegion", "drift_constant", "stationary_constants"]


def stationary_constants(space: StateActions, T: int, delta: float) -> tuple[float, float]:
    """Return C_R and C_P of the paper.

    >>> C_R, C_P = stationary_constants(StateActions.uniform(states=6, actions=2), 20_000, 0.05)
    >>> print(f"{C_R:.2f} {C_P:.1f}")
    2.15 83.4
    """
    S, SA, log_T = space.n_states, space.n_pairs, math.log(max(2, T))
    B = math.log(2.0 * math.e * S * SA * log_T) - math.log(delta)
    inside = B + 1.0 / log_T
    C_P = S * (B + math.log(inside) * (1.0 + 1.0 / inside))
    return math.sqrt((math.log(4.0 * SA * log_T) - math.log(delta)) / 1.99), C_P


def drift_constant(space: StateActions, T: int, delta: float, window: int) -> float:
    """Return what N KL(p_hat, .) may reach in windows of a model that drifts.

    >>> space = StateActions.uniform(states=6, actions=2)
    >>> print(f"{drift_constant(space, 20_000, 0.05, window=1000):.1f}")
    56.5
    """
    S, SA, W = space.n_states, space.n_pairs, min(window, T)
    G = math.sqrt(W) * math.log(8.0 * W * T * S) + 1.0
    return math.log(2.0 * SA * T) - math.log(delta) + S * math.log(G) + 1.5


class BallOptions(AgentOptions, total=False):
    """Keyword arguments of learners whose sets are balls of one kind."""

    delta: float
    ties: str
    slack: float
    warm_start: bool


class KLUCRLOptions(BallOptions, total=False):
    """Keyword arguments of `KLUCRL`, but for `drift`."""

    scale: float
    widening: float
    clip: bool


class KLUCRL(OptimisticAgent):
    """KL-UCRL, for models that stay as they are.

    Parameters
    ----------
    scale
        What the radius of rewards and C_P are multiplied by; below 1 nothing is proven.
    drift
        Whether the sets are those for a model that drifts. They then hold the averages of what is
        remembered.
    widening
        An L1 distance eta by which the balls are widened further.
    clip
        Whether optimistic rewards stop at 1. The original does not clip.

    The other parameters are those of `SWUCRL2CW`, without radii.

    References
    ----------
    Filippi, Cappe, Garivier: Optimism in reinforcement learning and Kullback-Leibler divergence,
    Allerton 2010.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=1000)
    >>> agent = KLUCRL(model.space, horizon=1000)
    >>> run = wd.run(model, agent, seed=1)
    >>> bool((run.episodes.reason[:-1] == "visits").all())
    True
    >>> print(f"{agent.divergence:.1f}")
    81.1
    """

    id: ClassVar[str] = "kl-ucrl"
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "D S sqrt(A T log T), no drift"
    source: ClassVar[str] = "Filippi, Cappe, Garivier 2010, constants recalled"
    fixed: ClassVar[tuple[str, ...]] = ("radii",)

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        scale: float = 1.0,
        drift: bool = False,
        widening: float = 0.0,
        clip: bool = False,
        **options: Unpack[BallOptions],
    ) -> None:
        self.scale = as_real(scale, "scale", low=0.0, high=1e100)
        self.drift = as_flag(drift, "drift")
        self.widening = as_real(widening, "widening", low=0.0)
        self.clip = as_flag(clip, "clip")
        super().__init__(space, horizon=horizon, radii=Radii.laplace(bounded=True), **options)

    @property
    def divergence(self) -> float:
        """What N KL(p_hat, q) may reach, before it is scaled."""
        if self.drift:
            window = self._pace().width or self.horizon
            return drift_constant(self.space, self.horizon, self.delta, window)
        return stationary_constants(self.space, self.horizon, self.delta)[1]

    def _rules(self) -> dict[str, Any]:
        """Return the constants in the form of all radii: a radius of rewards, and C_P."""
        if self.drift:
            of_rewards = self.radii.rules(self.space, self.horizon, self.delta)[0]
        else:
            C_R, _ = stationary_constants(self.space, self.horizon, self.delta)
            of_rewards = np.array([C_R * C_R, 0.0, 0.0, 1.0])
        of_rewards[3] = self.scale
        rows = np.stack([of_rewards, [self.divergence, 0.0, 0.0, self.scale]])
        return super()._rules() | {"radii": rows}

    def _etas(self) -> NDArray[np.float64]:
        missed = 2.0 / max(2, self.horizon) if self.drift else 0.0
        return widening_of_pairs(self.widening + missed, self.space)

    def _blank_plan(self, boxes: bool) -> Any:
        return blank_plan(self.space, self._most_entries)

    def region(self) -> KLRegion:
        """Return the sets the current episode was planned with, rewards scaled to [0, 1]."""
        balls = super().region()
        radius = np.where(balls.visited, self._learner.plan.pairs["rest"], 0.0)
        return KLRegion(
            self.space, balls.reward_upper, balls.p_hat, radius, balls.visited, balls.widening
        )

    def explain(self, s: int) -> Explanation:
        """Say what the current episode knows of each action of a state, and hopes for.

        The radius of transitions is a divergence.
        """
        label = "kl" if self.scale == 1.0 else f"kl x{self.scale:g}"
        return replace(super().explain(s), radii=label)

    def _reward_radius(self, pair: int) -> float:
        from windage.kernels.confidence import fill
        from windage.kernels.jit import call

        radius, visits = np.empty(1), self._learner.sets["visits"][pair : pair + 1].astype(float)
        call(fill, self._learner.radii[0], visits, 0.0, radius, seconds=1e-4)
        return float(radius[0])


class SWKLUCRL(BudgetWindowed, KLUCRL):
    """KL-UCRL over the last W samples, with sets that hold under drift: no theorem.

    Parameters
    ----------
    window
        W. With budgets, that of Theorem 1 for SWUCRL2-CW; without, the oblivious one.
    drift
        False: the constants of the paper, for a model that is stationary in the window.

    The other parameters are those of `KLUCRL`.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=20_000)
    >>> agent = wd.agents.make("sw-kl-ucrl", model.space, horizon=20_000, budgets=model.budgets())
    >>> print(f"{agent.window} {agent.divergence:.1f}")
    978 56.4
    """

    id: ClassVar[str] = "sw-kl-ucrl"
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known; its sets hold under drift"
    source: ClassVar[str] = "KL-UCRL over a window"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        window: int,
        drift: bool = True,
        **options: Unpack[KLUCRLOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, window=window, drift=drift, **options)


class KLRegion(ConfidenceRegion):
    """Optimistic rewards and Kullback-Leibler balls of kernels, over pairs.

    Parameters are those of `ConfidenceRegion`, but a radius bounds KL(p_hat, q). `windage.evi`
    plans in it.

    Examples
    --------
    >>> import windage as wd
    >>> space = StateActions([1, 1])
    >>> region = KLRegion(space, [1.0, 0.0], [[0, 1], [0.5, 0.5]], [0.5, 0.2], [True, True])
    >>> region.best_row(0, np.array([1.0, 0.0])).round(3).tolist()
    [0.393, 0.607]
    >>> round(wd.evi(region, epsilon=1e-9).gain, 3)
    0.565
    """

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Which sets are the whole simplex, but for less than rounding."""
        return np.asarray(
            ~self.visited | (self.widening >= 2.0) | (1.0 - np.exp(-self.radius) == 1.0)
        )

    @property
    def width(self) -> NDArray[np.float64]:
        """The radius of an L1 ball that holds the set (Pinsker); 2: it is the whole simplex."""
        ball = np.sqrt(2.0 * self.radius) + self.widening
        return np.where(self.is_free, 2.0, np.minimum(ball, 2.0))

    def best_row(self, pair: int, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a kernel of the pair that makes q.u as large as the sets allow.

        A widening moves mass of the ball's best row to the best state: that is worth as much as the
        best kernel within an L1 distance of eta could be, or more.
        """
        from windage.kernels.evi import BOUND
        from windage.kernels.jit import call
        from windage.kernels.kl import best_kernel

        best, row = u.size - 1 - int(np.argmax(u[::-1])), np.zeros(u.size)
        if self.is_free[pair]:
            row[best] = 1.0
            return row
        own = slice(*self.p_hat.indptr[pair : pair + 2])
        after = self.p_hat.indices[own]
        plan = blank_plan(StateActions([1]), after.size)._replace(u=np.array(u, np.float64))
        plan.pairs["kind"], plan.pairs["entries"] = BOUND, after.size
        plan.pairs["rest"], plan.pairs["half"] = self.radius[pair], self.widening[pair] / 2.0
        plan.rows["index"], plan.rows["probability"] = after, self.p_hat.data[own]
        call(best_kernel, plan, 0, best, float(np.ptp(u)), seconds=1e-3)
        row[after] = plan.kernel
        row[best] += plan.pairs["left"][0]
        return row

    def as_plan(self, u: NDArray[np.float64]) -> Any:
        """Return sets and workspace for the compiled planner, which starts from u."""
        from windage.kernels.evi import BOUND, VACUOUS

        entries = np.where(self.is_free, 0, np.diff(self.p_hat.indptr))
        keep = np.repeat(~self.is_free, np.diff(self.p_hat.indptr))
        plan = blank_plan(self.space, int(entries.sum()))
        plan.pairs["reward"] = self.reward_upper
        plan.pairs["rest"], plan.pairs["half"] = self.radius, self.widening / 2.0
        plan.pairs["kind"] = np.where(self.is_free, VACUOUS, BOUND)
        plan.pairs["row"], plan.pairs["entries"] = np.cumsum(entries) - entries, entries
        plan.rows["index"] = self.p_hat.indices[keep]
        plan.rows["probability"] = self.p_hat.data[keep]
        plan.u[:] = u
        return plan


def blank_plan(space: StateActions, entries: int) -> KLBalls:
    """Return an empty plan with room for so many non-zeros of p_hat."""
    from windage.kernels.kl import KLBalls

    return KLBalls(
        **plan_arrays(space, entries),
        kernel=np.zeros(entries),
        log_gap=np.full(space.n_pairs, np.inf),
    )
