"""SWUCRL2-CW: sliding-window UCRL2 with confidence widening (paper, Algorithm 1).

    for episode m = 1, 2, ...                                                  # line 3
        tau(m) <- t, nu <- 0                                                   # line 4
        H_r, H_p from the last W samples, H_p widened by eta                   # line 5, (4), (5)
        pi~ <- EVI(H_r, H_p; 1 / sqrt(tau(m)))                                 # line 6
        do: play pi~(s_t), observe R_t and s_{t+1}, nu(s_t, a_t) += 1, t += 1  # lines 8, 9
        while t is no multiple of W and nu(s_t, pi~(s_t)) < N+(s_t, pi~(s_t))  # line 7

The test of line 7 comes after the step: as printed, before it, an episode that starts at a multiple
of W would never play (E1). Which of several equally hopeful actions is played, the paper leaves
open; with its radii that decides nearly everything, so it is a parameter (`ties`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.agents.optimistic.base import (
    OptimisticAgent,
    OptimisticOptions,
    SetOptions,
    widening_of_pairs,
)
from windage.agents.optimistic.episodic import Pace
from windage.confidence import tuning
from windage.confidence.tuning import Budgets, KnownBudgets, chosen, tunings
from windage.errors import GuaranteeWarning, InputError, ParameterWarning, warn
from windage.spaces import StateActions, as_space
from windage.validation import LAST_TIME, as_choice, as_integer, as_real

__all__ = ["SWUCRL2", "SWUCRL2CW", "PracticalSWUCRL2CW"]


class WindowOptions(OptimisticOptions, total=False):
    """Keyword arguments of `SWUCRL2CW` beside window and widening."""

    boundary: str


class SWUCRL2CW(OptimisticAgent):
    """SWUCRL2-CW (Cheung, Simchi-Levi, Zhu 2020), for models that drift within known budgets.

    Parameters
    ----------
    space
        States and actions.
    horizon
        T.
    window
        W: how many of the last samples count. `tuned` finds the one of Theorem 1.
    widening
        eta: how much the L1 radii of the transition sets are widened; a number, or one for each
        pair. 0 is allowed, the theorem does not speak of it (E40); from 2 on all kernels are
        plausible (E7).
    delta
        The sets fail with at most this probability.
    radii
        A `Radii`; the paper's are the default.
    ties
        Which action within `slack` of the best to play: a "random" one, the "lowest", the
        "previous" one as long as it is among them, or the best one of a "sampled" model.
    slack
        How much worse than the best an action may be and still be a tie (spec I2), for rewards
        scaled to [0, 1].
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. If
        not given, any finite reward is taken as it is.
    warm_start
        Whether EVI may start from the last bias and take short cuts; False is the paper's
        iteration from 0, sweep by sweep.
    boundary
        "start": new episodes start at multiples of W, as the paper's proofs have it; "end": after
        them (E1).
    seed
        Of the agent's own draws.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine")
    >>> agent = SWUCRL2CW(model.space, horizon=model.horizon, window=275, widening=0.3)
    >>> run = wd.run(model, agent, seed=1)
    >>> run.episodes[0].reason
    'visits'
    """

    id: ClassVar[str] = "swucrl2-cw"
    requires: ClassVar[tuple[str, ...]] = ("B_r", "B_p")
    auto_tuned: ClassVar[tuple[str, ...]] = ("window", "widening")
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "D (B_r + B_p + 1)^(1/4) S^(2/3) A^(1/2) T^(3/4), up to logs"
    source: ClassVar[str] = "Cheung, Simchi-Levi, Zhu 2020, Theorem 1"
    derived: ClassVar[tuple[str, ...]] = ("clip",)

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        window: int,
        widening: ArrayLike,
        boundary: str = "start",
        **options: Unpack[OptimisticOptions],
    ) -> None:
        self.window = as_integer(window, "window", low=1, high=LAST_TIME)
        self.boundary = as_choice(boundary, "boundary", ("start", "end"))
        self.clip = True
        self._given_widening = widening
        super().__init__(space, horizon=horizon, **options)
        self.widening = float(self._eta[0]) if np.ptp(self._eta) == 0.0 else self._eta.copy()
        self._warn()

    def _etas(self) -> NDArray[np.float64]:
        return widening_of_pairs(self._given_widening, self.space)

    def _pace(self) -> Pace:
        """Return what is forgotten and when episodes end: all but the doubling rule of line 7."""
        phase = 0 if self.boundary == "start" else 1 % self.window
        return Pace(width=self.window, period=self.window, phase=phase)

    def _warn(self) -> None:
        if self.window > self.horizon:
            warn(
                f"a window of {self.window} samples is longer than the horizon {self.horizon}: "
                "nothing is ever forgotten",
                ParameterWarning,
            )
        missing = []
        if not self.radii.keeps_guarantee:
            missing.append(f"{self.radii.label} radii do not cover the truth as the theorem needs")
        if self.id != "swucrl2" and (self._eta == 0.0).all() and self.space.n_states > 1:
            missing.append("the theorem needs a positive widening")
        if missing:
            warn("; ".join(missing), GuaranteeWarning)

    @classmethod
    def tuned(
        cls,
        space: StateActions,
        *,
        horizon: int,
        reward_budget: float,
        transition_budget: float,
        **options: Any,
    ) -> Self:
        """Return the agent with W* and eta* of Theorem 1, for known budgets B_r and B_p.

        With one state too, where `windage.agents.make` and `windage.plan` have the window of the
        remark on bandits instead: `bandit` is that one.
        """
        budgets = as_space(space), horizon, reward_budget, transition_budget
        best = tuning.Tuning(tuning.optimal_window(*budgets), tuning.optimal_widening(*budgets))
        return cls._with(best, space, horizon, options)

    @classmethod
    def oblivious(cls, space: StateActions, *, horizon: int, **options: Any) -> Self:
        """Return the agent for unknown budgets (remark after Theorem 1)."""
        return cls._with(tuning.oblivious(as_space(space), horizon), space, horizon, options)

    @classmethod
    def bandit(
        cls, space: StateActions, *, horizon: int, reward_budget: float, **options: Any
    ) -> Self:
        """Return the agent for a single state (remark on drifting bandits)."""
        best = tuning.bandit(as_space(space), horizon, reward_budget)
        return cls._with(best, space, horizon, options)

    @classmethod
    def practical(
        cls,
        space: StateActions,
        *,
        horizon: int,
        reward_budget: float | None = None,
        transition_budget: float | None = None,
        **options: Any,
    ) -> SWUCRL2CW:
        """Return the variant for practice; `PracticalSWUCRL2CW` has the argument.

        Without budgets it is tuned like `oblivious`.
        """
        if (reward_budget is None) != (transition_budget is None):
            raise InputError(
                "one budget is given and the other is not",
                field="reward_budget" if reward_budget is None else "transition_budget",
                fix="pass both budgets, or none",
            )
        known = None
        if reward_budget is not None and transition_budget is not None:
            known = KnownBudgets(
                as_real(reward_budget, "reward_budget", low=0.0),
                as_real(transition_budget, "transition_budget", low=0.0),
            )
        return PracticalSWUCRL2CW.configured(space, horizon=horizon, budgets=known, **options)

    @classmethod
    def _with(
        cls, best: tuning.Tuning, space: StateActions, horizon: int, options: dict[str, Any]
    ) -> Self:
        return cls(space, horizon=horizon, **cls._numbers(best, horizon) | options)

    @classmethod
    def _numbers(cls, best: tuning.Tuning, horizon: int) -> dict[str, Any]:
        """Return W and eta as an agent can use them (E6, E7)."""
        return {
            "window": tuning.as_window(best.window, horizon),
            "widening": tuning.as_widening(best.widening),
        }

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; "tuned" or "oblivious" may stand for a number.

        What is left out is tuned if there are budgets, and oblivious if there are none.
        """
        best = tunings(space, horizon, budgets)
        for name in cls._numbers(best["oblivious"], horizon):
            word = options.get(name)
            if word is None or isinstance(word, str):
                options[name] = cls._numbers(chosen(word, name, best), horizon)[name]
        return cls(space, horizon=horizon, **options)


class SWUCRL2(SWUCRL2CW):
    """SWUCRL2-CW without widening: the sliding window that drift can fool (Proposition 3)."""

    id: ClassVar[str] = "swucrl2"
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "none: drift can fool it (Proposition 3)"
    source: ClassVar[str] = "Cheung, Simchi-Levi, Zhu 2020, section 5"
    auto_tuned: ClassVar[tuple[str, ...]] = ("window",)
    fixed: ClassVar[tuple[str, ...]] = ("widening",)

    def __init__(
        self, space: StateActions, *, horizon: int, window: int, **options: Unpack[WindowOptions]
    ) -> None:
        super().__init__(space, horizon=horizon, window=window, widening=0.0, **options)

    @classmethod
    def _numbers(cls, best: tuning.Tuning, horizon: int) -> dict[str, Any]:
        return {"window": tuning.as_window(best.window, horizon)}


SLACK = 8.0
"""c, the constant before the order of the slack.

The proof of Theorem 1 has larger ones: its term of the radii alone is, at W*, about
4 ln(SAT/delta)^(1/2) D A^(-1/4) times the order, 16 D A^(-1/4) where the logarithm is 15. With less
than 4 the slack excludes, at a million steps, actions that window PSRL is right to play.
"""


class _PracticalOptions(SetOptions, total=False):
    boundary: str


class PracticalSWUCRL2CW(SWUCRL2CW):
    """SWUCRL2-CW with Laplace radii and posterior-sampled actions within a slack.

    `SWUCRL2CW.practical` makes one.

    The argument, in three steps (the first two are I1 and I2 of the specification).

    1. Laplace radii hold at all visit counts at once, with the confidence Lemma 1 asks for, so that
       Theorem 1 holds with them as it stands. They need far fewer visits to say anything.

    2. The proof of Theorem 1 uses the policy only through Property 2: for the played pair, r~ >=
       rho~ + gamma~(s) - p~.gamma~ - eps. Let Y(s, a) = r~ + max q.gamma~ be the value of the sweep
       that passed EVI's test. Any action with Y(s, a) >= max_b Y(s, b) - xi satisfies Property 2
       with eps + xi, whatever rule picked it, be it random: gamma~ and Y are fixed when it is
       picked, before the next state is drawn. So the regret grows by at most T xi, and with

           xi = c S^(2/3) A^(1/2) ((B_r + B_p + 1) / T)^(1/4)

       that is c times the order of Theorem 1 (D >= 1 for S >= 2): the order is kept for every
       constant c. Without budgets, c S^(2/3) A^(1/2) T^(-1/4) keeps that of the oblivious tuning;
       for one state, c times the larger of (A B_r / T)^(1/3) and (A / T)^(1/2) that of the remark
       on bandits.

    3. An episode may last only one step longer than the one before, so that the policy is drawn
       anew often. With M episodes that end for the paper's reasons, about (2 M T)^(1/2) at most end
       for this one: k of these in a row have 1 + 2 + ... + k steps or more, so the sum of all k^2 /
       2 is at most T, and Cauchy and Schwarz do the rest. The proof pays D for each episode; with M
       of order SA T / W that is D T (SA / W)^(1/2), no more than the term D S A^(1/2) T / W^(1/2)
       that Theorem 1 has already, up to logs.

    Inside the slack, the action that is best in a model drawn from the posterior of the window is
    played. Where the sets say little, that is window PSRL; where they say that an action is bad, it
    is not played, whatever the draw.

    Parameters
    ----------
    episodes
        "growing": an episode lasts at most one step longer than the one before; "paper": it ends
        for the paper's reasons only.

    The other parameters are those of `SWUCRL2CW`.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine")
    >>> agent = wd.SWUCRL2CW.practical(
    ...     model.space, horizon=model.horizon, reward_budget=3.2, transition_budget=3.2)
    >>> agent.radii.label, agent.ties, round(agent.slack, 2)
    ('laplace', 'sampled', 3.52)
    """

    id: ClassVar[str] = "swucrl2-cw-practical"
    auto_tuned: ClassVar[tuple[str, ...]] = ("window", "widening", "slack")
    bound: ClassVar[str] = "the order of SWUCRL2-CW's"
    source: ClassVar[str] = "spec I1, I2; argument in its docstring"
    default_radii: ClassVar[str] = "laplace"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        window: int,
        widening: ArrayLike,
        slack: float,
        ties: str = "sampled",
        episodes: str = "growing",
        **options: Unpack[_PracticalOptions],
    ) -> None:
        self.episodes = as_choice(episodes, "episodes", ("growing", "paper"))
        super().__init__(
            space,
            horizon=horizon,
            window=window,
            widening=widening,
            slack=slack,
            ties=ties,
            **options,
        )

    def _pace(self) -> Pace:
        return replace(super()._pace(), grows=self.episodes == "growing")

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; "tuned" or "oblivious" may stand for a number."""
        word = options.get("slack")
        if word is None or isinstance(word, str):
            best = tunings(space, horizon, budgets)
            chosen(word, "slack", best)
            known = budgets if word != "oblivious" else None
            B = (known.reward, known.transition) if known is not None else (0.0, 0.0)
            options["slack"] = SLACK * tuning.slack(space, horizon, *B)
        return super().configured(space, horizon=horizon, budgets=budgets, **options)
