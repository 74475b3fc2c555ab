"""IMED-RL (Pesquerel, Maillard 2022): in each step the action of the least index.

`windage.kernels.imed_rl` has the algorithm itself, line by line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import KernelAgent
from windage.agents.configuration import AgentOptions
from windage.agents.exclusive import exclusive
from windage.agents.optimistic.ucrl2 import BudgetWindowed
from windage.confidence.window import Window
from windage.errors import InputError, ParameterWarning, warn
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import as_choice, require_memory

if TYPE_CHECKING:
    from windage.kernels.imed_rl import IndexLearner

__all__ = ["IMEDRL", "SWIMEDRL"]


class IMEDRL(KernelAgent):
    """IMED-RL with all history, for models that are ergodic and do not change.

    In state s it plays the action of the least index H(a) = N(s, a) K(a) + ln N(s, a), one never
    tried first. With phi the bias of the best policy of the empirical model among actions with
    N(s, a) >= ln(max_b N(s, b))^2, and gamma(a) = r_hat(s, a) + p_hat(s, a).phi, K(a) is the least
    KL divergence from the empirical law of X = R + phi(S') to a law on X <= 1 + max phi with a mean
    of at least max gamma; 0 for the best action. R and S' are taken as independent.

    As in the authors' code each pair has one sample more, reward 1/2 and a uniform next state: the
    empirical model is ergodic, and phi exists. Means are exact; K counts rewards by the nearest
    multiple of 1/64, which is exact for rewards 0 and 1.

    It plans in every step, S^3 / 3 operations and more: made for small models.

    Parameters
    ----------
    ties
        Which of the actions with the least index is played: "random" or "lowest".
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. If
        not given, rewards outside [0, 1] are clipped.

    Notes
    -----
    Proven (Theorem 2): on models that are ergodic under every policy and do not change, regret is
    ln T times the least constant that any consistent algorithm can have, if K(a) is the least
    divergence to a *product* of a law of R and one of S', Equation (8). Proposition 2, by which the
    authors compute K, and so does this agent, takes all laws of X: that is at most as much, so bad
    actions may be played more often than the constant says. Equation (19) of that proposition is
    printed with ln(omega - x (X - gamma*)), omega = 1 + max phi, and their code has it too: it adds
    ln omega to each K. Here it is ln(1 - x (X - gamma*)) with x <= 1 / (omega - gamma*).

    Not proven: models that only communicate, such as RiverSwim, models that drift, a bound for
    finite T, and the sample more. Equations are numbered as in the version submitted to review.

    References
    ----------
    F. Pesquerel, O.-A. Maillard, "IMED-RL: Regret optimal learning of ergodic Markov decision
    processes", NeurIPS 2022. J. Honda, A. Takemura, "Non-asymptotic analysis of a new bandit
    algorithm for semi-bounded rewards", JMLR 16, 2015.

    Examples
    --------
    >>> import windage as wd
    >>> still = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(6), horizon=3000)
    >>> agent = wd.IMEDRL(still.space, horizon=3000)
    >>> run = wd.run(still, agent, seed=1)
    >>> int(agent.index(5).argmin())
    1
    """

    id: ClassVar[str] = "imed-rl"
    off_policy: ClassVar[bool] = True
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "least constant times log T for the exact K, ergodic, no drift"
    source: ClassVar[str] = "Pesquerel, Maillard 2022"
    counts_in_loop: ClassVar[bool] = True

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        ties: str = "random",
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
        self.ties = as_choice(ties, "ties", ("lowest", "random"))
        width = self._keeps()
        self._window = Window(self.space, width if width and width < self.horizon else None)
        if self._window.is_hashed:
            raise InputError(
                f"{self.id} plans in every step, and {self.space.n_states:,} states with "
                f"{self.space.n_pairs:,} pairs are too many for that",
                field="space",
                fix="use fewer states, or another agent",
            )
        self._learner = self._fresh()
        self._warned = False

    def _keeps(self) -> int | None:
        """Return how many samples count; None: all."""
        return None

    def _fresh(self) -> IndexLearner:
        from windage.kernels.imed_rl import BINS, IndexLearner

        S, pairs, most = self.space.n_states, self.space.n_pairs, int(self.space.counts.max())
        require_memory(
            (4 * BINS + 8 * S) * pairs + (8 * S + 16 * BINS) * S, "space", fix="use fewer states"
        )
        return IndexLearner(
            offsets=np.ascontiguousarray(self.space.offsets),
            states=np.ascontiguousarray(self.space.state_of, np.int64),
            window=self._window.kernel,
            law=np.zeros((pairs, BINS), np.int32),
            rewards=np.full(pairs, 0.5),
            transitions=np.full((pairs, S), 1.0 / S),
            skeleton=np.ones(pairs, np.bool_),
            policy=self.space.offsets[:-1].copy(),
            gain=np.full(1, 0.5),
            bias=np.zeros(S),
            indices=np.zeros(most),
            values=np.zeros(most),
            ratios=np.zeros(BINS * S),
            weights=np.zeros(BINS * S),
            matrix=np.zeros((S, S)),
            work=np.zeros((4, S)),
            order=np.zeros(S, np.int64),
            key=key(self.seed, f"agents.{self.id}"),
            random_ties=self.ties == "random",
            low=self._scale.low,
            width=self._scale.width,
        )

    @property
    def _kernel(self) -> IndexLearner:
        return self._learner

    @property
    def gain(self) -> float:
        """Gain of the best policy of the empirical model, in units of the rewards."""
        return float(self._scale.low + self._scale.width * self._learner.gain[0])

    @property
    def bias(self) -> NDArray[np.float64]:
        """phi, the bias of that policy, in units of the rewards; its least entry is 0."""
        return np.asarray(self._scale.width * self._learner.bias)

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair the agent remembers now."""
        return self._window.contents

    @exclusive
    def index(self, s: int) -> NDArray[np.float64]:
        """Return H of every action of a state; minus infinity for those never tried."""
        from windage.kernels.imed_rl import fill_index

        state = self.space.check_state(s)
        fill_index(self._learner, state, True)
        return self._learner.indices[: self.space.counts[state]].copy()

    def _look_back(self, rewards: NDArray[np.float64]) -> None:
        if self._warned or self.reward_range is not None or not rewards.size:
            return
        least, most = float(rewards.min()), float(rewards.max())
        if not -0.5 <= least <= most <= 1.5:
            self._warned = True
            warn(
                f"a reward of {most if most > 1.5 else least:g} lies outside [0, 1] and was "
                "clipped: declare a reward_range",
                ParameterWarning,
            )

    def _reached(self) -> tuple[int, int | None]:
        clock, ring = self._learner.window.clock[0], self._learner.window.ring
        taken = int(clock["taken"])
        return taken + 1, int(ring["after"][clock["slot"] - 1]) if taken > 0 else None

    def _survivors(self) -> dict[str, NDArray[Any]]:
        return {"policy": self._learner.policy, "law": self._learner.law}

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        return values, arrays | {f"window.{n}": array for n, array in self._window.saved().items()}

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        from windage.kernels.imed_rl import rebuild

        self._window.restore({name.removeprefix("window."): a for name, a in arrays.items()})
        super()._restored(values, arrays)
        rebuild(self._learner)

    def _check_restored(self, values: dict[str, Any]) -> None:
        kernel, offsets = self._learner, self.space.offsets
        clock, counts = kernel.window.clock[0], kernel.window.counts
        law = kernel.law
        checks = {
            "clock": clock["taken"] == clock["counted"] == self.t - 1,
            "sums": bool(np.isfinite(counts["sum"] + counts["lost"]).all()),
            "policy": bool(((offsets[:-1] <= kernel.policy) & (kernel.policy < offsets[1:])).all()),
            "law": bool((law >= 0).all() and (law.sum(axis=1) == counts["visits"]).all())
            and (self._window.width is None or np.array_equal(law, self._recounted())),
        }
        wrong = ", ".join(name for name, holds in checks.items() if not holds)
        if wrong:
            raise ValueError(wrong)

    def _recounted(self) -> NDArray[np.int32]:
        """Return the reward laws as the samples in the window have them."""
        window, law = self._learner.window, np.zeros_like(self._learner.law)
        clock = window.clock[0]
        kept = window.ring[np.arange(clock["dropped"], clock["taken"]) % window.ring.size]
        bins = (kept["reward"] * (law.shape[1] - 1) + 0.5).astype(np.int64)
        np.add.at(law, (kept["pair"], bins), 1)
        return law


class SWIMEDRL(BudgetWindowed, IMEDRL):
    """IMED-RL over the last W samples: no theorem.

    Means, rows, reward laws and N are those of the window, recounted as samples leave it. An action
    whose last sample has left is tried again: that is how it explores.

    Parameters
    ----------
    window
        W. With budgets, that of Theorem 1 for SWUCRL2-CW; without, the oblivious one.

    The other parameters are those of `IMEDRL`.

    Examples
    --------
    >>> import windage as wd
    >>> river = wd.envs.make("riverswim", horizon=2000)
    >>> agent = wd.agents.make("sw-imed-rl", river.space, horizon=2000, budgets=river.budgets())
    >>> run = wd.run(river, agent, seed=1)
    >>> agent.window, int(agent.in_memory.sum())
    (309, 309)
    """

    id: ClassVar[str] = "sw-imed-rl"
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "IMED-RL over a window"
