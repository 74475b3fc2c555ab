"""SWUCRL2-CW for practice: tight valid radii, and optimism as a constraint instead of the aim.

The argument, in three steps (the first two are I1 and I2 of the specification).

1. Laplace radii hold at all visit counts at once, with the confidence Lemma 1 asks for, so that
   Theorem 1 holds with them as it stands. They need far fewer visits to say anything.
2. The proof of Theorem 1 uses the policy only through Property 2: for the played pair,
   r~ >= rho~ + gamma~(s) - p~.gamma~ - eps. Let Y(s, a) = r~ + max q.gamma~ be the value of the
   sweep that passed EVI's test. Any action with Y(s, a) >= max_b Y(s, b) - xi satisfies Property 2
   with eps + xi, whatever rule picked it, be it random: gamma~ and Y are fixed when it is picked,
   before the next state is drawn. So the regret grows by at most T xi, and with

       xi = c S^(2/3) A^(1/2) ((B_r + B_p + 1) / T)^(1/4)

   that is c times the order of Theorem 1 (D >= 1 for S >= 2): the order is kept for every constant
   c. Without budgets, c S^(2/3) A^(1/2) T^(-1/4) keeps that of the oblivious tuning; for one state,
   c times the larger of (A B_r / T)^(1/3) and (A / T)^(1/2) that of the remark on bandits.

3. An episode may last only one step longer than the one before, so that the policy is drawn anew
   often. With M episodes that end for the paper's reasons, about (2 M T)^(1/2) at most end for this
   one: k of these in a row have 1 + 2 + ... + k steps or more, so the sum of all k^2 / 2 is at most
   T, and Cauchy and Schwarz do the rest. The proof pays D for each episode; with M of order
   SA T / W that is D T (SA / W)^(1/2), no more than the term D S A^(1/2) T / W^(1/2) that
   Theorem 1 has already, up to logs.

Inside the slack, the action that is best in a model drawn from the posterior of the window is
played. Where the sets say little, that is window PSRL; where they say that an action is bad, it is
not played, whatever the draw.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from windage.agents.fixed import fixed
from windage.agents.known import Budgets
from windage.agents.pace import Pace
from windage.agents.swucrl2cw import SWUCRL2CW
from windage.agents.tuned import chosen, tunings
from windage.confidence import tuning
from windage.confidence.radii import Radii
from windage.spaces import StateActions
from windage.validation import as_choice

__all__ = ["PracticalSWUCRL2CW"]

SLACK = 8.0
"""c, the constant before the order of the slack.

The proof of Theorem 1 has larger ones: its term of the radii alone is, at W*, about
4 ln(SAT/delta)^(1/2) D A^(-1/4) times the order, 16 D A^(-1/4) where the logarithm is 15. With less
than 4 the slack excludes, at a million steps, actions that window PSRL is right to play.
"""


@fixed("episodes")
class PracticalSWUCRL2CW(SWUCRL2CW):
    """SWUCRL2-CW with Laplace radii and posterior-sampled actions within a slack.

    `SWUCRL2CW.practical` makes one.

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
    found: ClassVar[tuple[str, ...]] = ("window", "widening", "slack")
    bound: ClassVar[str] = "the order of SWUCRL2-CW's"
    source: ClassVar[str] = "spec I1, I2; argument in windage.agents.practical"
    default_radii: ClassVar[str] = "laplace"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        window: int,
        widening: ArrayLike,
        slack: float,
        radii: Radii | str | dict[str, Any] | None = None,
        ties: str = "sampled",
        episodes: str = "growing",
        **options: Any,
    ) -> None:
        self.episodes = as_choice(episodes, "episodes", ("growing", "paper"))
        super().__init__(
            space,
            horizon=horizon,
            window=window,
            widening=widening,
            slack=slack,
            radii=Radii.laplace() if radii is None else radii,
            ties=ties,
            **options,
        )

    def _pace(self) -> Pace:
        return replace(super()._pace(), grows=self.episodes == "growing")

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"episodes": self.episodes}

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
