"""SWUCRL2-CW for practice: tight valid radii, and optimism as a constraint instead of the aim.

The argument, in two steps (spec I1 and I2).

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
   c (A B_r / T)^(1/3) that of the remark on bandits.

Inside the slack, the action that is best in a model drawn from the posterior of the window is
played. Where the sets say little, that is window PSRL; where they say that an action is bad, it is
not played, whatever the draw.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from windage.agents.base import Budgets
from windage.agents.swucrl2cw import SWUCRL2CW
from windage.agents.tuned import chosen, tunings
from windage.learn import tuning
from windage.learn.radii import Radii
from windage.spaces import StateActions

__all__ = ["PracticalSWUCRL2CW"]

SLACK = 1.0
"""c, the constant before the order of the slack."""


class PracticalSWUCRL2CW(SWUCRL2CW):
    """SWUCRL2-CW with Laplace radii and posterior-sampled actions within a slack.

    `SWUCRL2CW.practical` makes one; the parameters are those of `SWUCRL2CW`.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine")
    >>> agent = wd.SWUCRL2CW.practical(
    ...     model.space, horizon=model.horizon, reward_budget=3.2, transition_budget=3.2)
    >>> agent.radii.label, agent.ties, round(agent.slack, 2)
    ('laplace', 'sampled', 0.44)
    """

    id: ClassVar[str] = "swucrl2-cw-practical"
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
        **options: Any,
    ) -> None:
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
