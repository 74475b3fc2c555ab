"""Posterior sampling: play the best policy of a model drawn from what is remembered (PSRL).

Transitions have Dirichlet posteriors with `prior` pseudo-counts a row, spread over all states; mean
rewards have Beta posteriors on rewards rounded to 0 or 1 at random, which keeps their mean and
makes the Beta law the right one. A thousandth of each drawn row is spread evenly, so that the drawn
model communicates. Episodes are those of TSDE (Ouyang and others 2017): they end when the visits of
a pair have doubled, or when they have grown one step longer than the one before.

Where a structure is known, laws are drawn instead of rows, from Dirichlet posteriors with `prior`
pseudo-counts spread over the outcomes (a thousandth of each is spread evenly, too), and an episode
ends when the uses of a law have doubled. Rewards are known, or drawn as above but not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from windage.agents.configuration import AgentOptions
from windage.agents.multiscale.agent import ALONE, OneWindow
from windage.agents.multiscale.learner import Constants, MultiScaleState
from windage.agents.multiscale.structured import StructuredState, as_structure
from windage.agents.optimistic.episodic import EpisodicAgent, Pace
from windage.agents.optimistic.ucrl2 import BudgetWindowed, Restarted
from windage.confidence import tuning
from windage.confidence.confidence import blank_plan
from windage.confidence.tuning import Budgets, Tuning
from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.structure import Structure
from windage.validation import LAST_TIME, as_choice, as_horizon, as_integer, as_real

__all__ = ["PSRL", "SWPSRL", "LawPSRL", "LawSWPSRL", "RestartedPSRL"]

_EPISODES = ("tsde", "doubling")


class PSRL(EpisodicAgent):
    """PSRL with all history, for models that stay as they are.

    Parameters
    ----------
    structure
        What is known of next states and rewards: then only laws are drawn, and every step says, as
        `seen`, which outcomes its variables had. The agent is a `LawPSRL`.
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

    def __new__(cls, *positional: Any, **given: Any) -> Self:
        """Make an agent that learns rows, or laws if it is given a structure."""
        if given.get("structure") is not None and cls in (PSRL, SWPSRL):
            by_law: Any = LawSWPSRL if cls is SWPSRL else LawPSRL
            return by_law(*positional, **given)  # type: ignore[no-any-return]
        return super().__new__(cls, *positional, **given)

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        structure: Structure | Mapping[str, Any] | None = None,
        prior: float = 1.0,
        episodes: str = "tsde",
        **options: Unpack[AgentOptions],
    ) -> None:
        assert structure is None, "left to LawPSRL"
        self.structure = structure
        self.prior = as_real(prior, "prior", low=1e-100)
        self.episodes = as_choice(episodes, "episodes", _EPISODES)
        super().__init__(space, horizon=horizon, **options)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        found = super().configuration()
        found.pop("structure", None)  # there is none
        return found

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
        W. With budgets, that of Theorem 1 for SWUCRL2-CW; without, the oblivious one. Where laws
        are learned, sqrt(O L) stands in the place of S^(2/3) A^(1/2) for each variable, with O
        outcomes and L laws: W = K (T / (B_r + B_p + 1))^(1/2), K being their sum.

    The other parameters are those of `PSRL`.
    """

    id: ClassVar[str] = "sw-psrl"
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "PSRL over a window"

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; `window` may be "tuned" or "oblivious"."""
        known, word = as_structure(options.get("structure"), as_space(space)), options.get("window")
        if known is not None and (word is None or isinstance(word, str)):
            best = tuning.chosen(word, "window", _law_tunings(known, horizon, budgets))
            options["window"] = tuning.as_window(best.window, horizon)
        return super().configured(space, horizon=horizon, budgets=budgets, **options)


def _law_tunings(known: Structure, horizon: int, budgets: Budgets | None) -> dict[str, Tuning]:
    """Return the window for laws under each word that has a meaning here."""
    T, owner = as_horizon(horizon, error=InputError), [v for v, _ in known.laws]
    K = sum(
        math.sqrt(len(variable.outcomes) * owner.count(v))
        for v, variable in enumerate(known.variables)
    )
    best = {"oblivious": Tuning(K * math.sqrt(T), 0.0)}
    if budgets is not None:
        B = budgets.reward + budgets.transition
        best["tuned"] = Tuning(K * math.sqrt(T / (B + 1.0)), 0.0)
    return best


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
    fixed: ClassVar[tuple[str, ...]] = ("structure",)
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "PSRL with the restarts of UCRL2"


class DrawnState(StructuredState):
    """Laws, and learned mean rewards, as the episode has drawn them."""

    draws: ClassVar[bool] = True

    def _fresh(
        self,
        horizon: int,
        constants: Constants,
        named: NDArray[np.uint64],
        reward_range: tuple[float, float],
    ) -> Any:
        from windage.kernels.posterior import Drawn

        learner = super()._fresh(horizon, constants, named, reward_range)
        estimate: Any = learner.estimate
        return learner._replace(estimate=estimate._replace(belief=Drawn(named)))

    def survivors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, beside those of the windows, that must survive a restart."""
        kept, pairs = super().survivors(), self.estimate.pairs
        if self.structure.reward is None:
            kept |= {f"pair.{name}": pairs[name] for name in ("mean", "plays", "limit")}
        return kept


class LawPSRL(OneWindow):
    """PSRL over the laws of a structure, with all history: `PSRL(..., structure=known)`.

    The parameters are those of `PSRL`; `reward_range` defaults to that of the structure.

    Examples
    --------
    >>> import windage as wd
    >>> demand = wd.Exogenous("demand", range(3))
    >>> known = wd.Structure(
    ...     wd.StateActions([3, 2, 1]),
    ...     [demand],
    ...     next_state=lambda s, a, d: max(s + a - d, 0),
    ...     reward=lambda s, a, d: 5 * min(s + a, d) - 2 * a,
    ... )
    >>> agent = wd.SWPSRL(known.space, horizon=100, structure=known, window=30)
    >>> for _ in range(50):
    ...     s = agent.last_state or 0
    ...     a = agent.act(s)
    ...     agent.observe(s, a, 5 * min(s + a, 1) - 2 * a, max(s + a - 1, 0), seen={"demand": 1})
    >>> a, agent.in_memory.max()
    (1, np.int64(30))
    """

    id: ClassVar[str] = "psrl"
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "PSRL over the laws of a structure"
    _state_by_law: ClassVar[type[StructuredState]] = DrawnState
    window: int | None = None

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        structure: Structure | Mapping[str, Any],
        prior: float = 1.0,
        episodes: str = "tsde",
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        self.prior = as_real(prior, "prior", low=1e-100)
        self.episodes = as_choice(episodes, "episodes", _EPISODES)
        known = as_structure(structure, as_space(space))
        assert known is not None
        super().__init__(
            space,
            horizon=horizon,
            structure=known,
            reward_range=known.reward_range if reward_range is None else reward_range,
            seed=seed,
        )

    def _blank_state(self) -> MultiScaleState:
        found = super()._blank_state()
        found.kernel = found.kernel._replace(grows=self.episodes == "tsde")
        return found

    @property
    def constants(self) -> Constants:  # type: ignore[override]
        """No hope, and one plan an episode."""
        return Constants(
            unseen=self.prior, exploration=0.0, spread=0.0, pace=LAST_TIME, weighing=ALONE
        )


class LawSWPSRL(LawPSRL):
    """PSRL over the laws of a structure, from the last W steps: `SWPSRL(..., structure=known)`.

    The parameters are those of `SWPSRL`.
    """

    id: ClassVar[str] = "sw-psrl"
    covers_drift: ClassVar[bool | None] = None
    source: ClassVar[str] = "PSRL over a window of the laws of a structure"

    def __init__(self, space: StateActions, *, horizon: int, window: int, **options: Any) -> None:
        self.window = as_integer(window, "window", low=1, high=LAST_TIME)
        super().__init__(space, horizon=horizon, **options)
