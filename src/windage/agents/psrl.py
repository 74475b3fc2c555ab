"""Posterior sampling: play the best policy of a model drawn from what is remembered (PSRL).

Transitions have Dirichlet posteriors with `prior` pseudo-counts a row, spread over all states; mean
rewards have Beta posteriors on rewards rounded to 0 or 1 at random, which keeps their mean and
makes the Beta law the right one. A thousandth of each drawn row is spread evenly, so that the drawn
model communicates. Episodes are those of TSDE (Ouyang and others 2017): they end when the visits of
a pair have doubled, or when they have grown one step longer than the one before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from windage.agents.fixed import fixed
from windage.agents.optimistic.episodic import EpisodicAgent, Pace
from windage.agents.optimistic.ucrl2 import Restarted, Windowed
from windage.agents.tuning import Budgets, chosen, tunings
from windage.confidence import tuning
from windage.confidence.confidence import blank_plan
from windage.spaces import StateActions, as_space
from windage.validation import as_choice, as_real

__all__ = ["PSRL", "SWPSRL", "RestartedPSRL"]


@fixed("prior", "episodes")
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
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        self.prior = as_real(prior, "prior", low=1e-100)
        self.episodes = as_choice(episodes, "episodes", ("tsde", "doubling"))
        super().__init__(
            space,
            horizon=horizon,
            seed=seed,
            reward_range=reward_range,
            pace=replace(self._pace(), grows=episodes == "tsde"),
            rules={"posterior": self.prior, "rounded": True},
            eta=np.zeros(as_space(space).n_pairs),
        )

    def _pace(self) -> Pace:
        """Return what is forgotten: nothing."""
        return Pace()

    def _blank_plan(self, boxes: bool) -> Any:
        return blank_plan(self.space, self._all_cells("space", "use fewer states"), boxes=boxes)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"prior": self.prior, "episodes": self.episodes}


class SWPSRL(Windowed, PSRL):
    """PSRL over the last W samples: no theorem, and hard to beat.

    Parameters
    ----------
    window
        W. With budgets, that of Theorem 1 for SWUCRL2-CW; without, the oblivious one.

    The other parameters are those of `PSRL`.
    """

    id: ClassVar[str] = "sw-psrl"
    told: ClassVar[tuple[str, ...]] = ("B_r", "B_p")
    found: ClassVar[tuple[str, ...]] = ("window",)
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "PSRL over a window"

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; `window` may be "tuned" or "oblivious"."""
        word = options.get("window")
        if word is None or isinstance(word, str):
            best = chosen(word, "window", tunings(space, horizon, budgets))
            options["window"] = tuning.as_window(best.window, horizon)
        return cls(space, horizon=horizon, **options)


class RestartedPSRL(Restarted, PSRL):
    """PSRL that forgets everything at given times: no theorem.

    Parameters
    ----------
    restarts
        As in `RestartedUCRL2`.

    The other parameters are those of `PSRL`.
    """

    id: ClassVar[str] = "restarted-psrl"
    told: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "PSRL with the restarts of UCRL2"
