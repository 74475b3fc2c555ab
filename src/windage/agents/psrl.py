"""Posterior sampling: play the best policy of a model drawn from what is remembered (PSRL).

Transitions have Dirichlet posteriors with `prior` pseudo-counts a row, spread over all states; mean
rewards have Beta posteriors on rewards rounded to 0 or 1 at random, which keeps their mean and
makes the Beta law the right one. A thousandth of each drawn row is spread evenly, so that the drawn
model communicates. Episodes are those of TSDE (Ouyang and others 2017): they end when the visits of
a pair have doubled, or when they have grown one step longer than the one before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Unpack

from windage.agents.configuration import AgentOptions
from windage.agents.optimistic.episodic import EpisodicAgent, Pace
from windage.agents.optimistic.ucrl2 import BudgetWindowed, Restarted
from windage.confidence.confidence import blank_plan
from windage.spaces import StateActions
from windage.validation import as_choice, as_real

__all__ = ["PSRL", "SWPSRL", "RestartedPSRL"]


class PSRL(EpisodicAgent):
    """PSRL with all history, for models that stay as they are.

    Parameters
    ----------
    prior
        Pseudo-counts of a row of transitions, spread evenly over the states.
    episodes
        "tsde", or "doubling": only when the visits of a pair have doubled.

    The other parameters are those of `SWUCRL2CW`.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=1000)
    >>> run = wd.run(model, PSRL(model.space, horizon=1000), seed=1)
    >>> sorted(set(run.episodes.reason[:-1].tolist()))
    ['length', 'visits']
    """

    id: ClassVar[str] = "psrl"
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "D S sqrt(A T) in expectation over the prior, no drift"
    source: ClassVar[str] = "Ouyang, Gagrani, Nayyar, Jain 2017, bound recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        prior: float = 1.0,
        episodes: str = "tsde",
        **options: Unpack[AgentOptions],
    ) -> None:
        self.prior = as_real(prior, "prior", low=1e-100)
        self.episodes = as_choice(episodes, "episodes", ("tsde", "doubling"))
        super().__init__(space, horizon=horizon, **options)

    def _pace(self) -> Pace:
        return replace(super()._pace(), grows=self.episodes == "tsde")

    def _rules(self) -> dict[str, Any]:
        return {"posterior": self.prior, "rounded": True}

    def _blank_plan(self, boxes: bool) -> Any:
        return blank_plan(self.space, self._all_cells("space", "use fewer states"), boxes=boxes)


class SWPSRL(BudgetWindowed, PSRL):
    """PSRL over the last W samples: no theorem, and hard to beat.

    Parameters
    ----------
    window
        W. With budgets, that of Theorem 1 for SWUCRL2-CW; without, the oblivious one.

    The other parameters are those of `PSRL`.
    """

    id: ClassVar[str] = "sw-psrl"
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "PSRL over a window"


class RestartedPSRL(Restarted, PSRL):
    """PSRL that forgets everything at given times: no theorem.

    Parameters
    ----------
    restarts
        As in `RestartedUCRL2`.

    The other parameters are those of `PSRL`.
    """

    id: ClassVar[str] = "restarted-psrl"
    requires: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "PSRL with the restarts of UCRL2"
