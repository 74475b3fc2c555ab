"""Multi-scale windows: no window to choose, all of them compete in predicting the next step.

    windows W_1 < ... < W_K: powers of two from 2 SA on, then all of T
    for t = 1, 2, ..., T
        every few steps: average the windows' counts by their weights   (kernels.multiscale)
                         add a bonus for what would be worth finding out
                         plan with it, from where the last plan left off
        play the plan, observe R_t and s_{t+1}
        weigh every window by how likely it held them; count; forget    (kernels.window_experts)

Windows are compared by prediction, not by reward as BORL's arms are: every step scores all of them,
and trying one out costs nothing. Rewards and transitions have weights of their own, and so has each
pair: prices may change by the hour where the road network stays for years. The constants are fixed
once, for all problems; docs/studies/multi-scale.md says on which problems they were chosen and how
the learner did on others. No theorem bounds its regret; `MultiScaleGuarded` plays within one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import KernelAgent, Scale
from windage.agents.episodes import Episode
from windage.agents.exclusive import exclusive
from windage.agents.multiscale.explanation import (
    Forgetting,
    MultiScaleExplanation,
    StructuredExplanation,
    explained,
    explained_by_law,
)
from windage.agents.multiscale.learner import Constants, MultiScaleState
from windage.agents.multiscale.structured import (
    StructuredState,
    as_structure,
    law_windows,
    outcomes_shown,
)
from windage.agents.multiscale.windows import windows_for
from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.structure import Structure
from windage.validation import as_range, as_real

if TYPE_CHECKING:
    from windage.kernels.exogenous import ExogenousDynamics
    from windage.kernels.multiscale import MultiScaleLearner
    from windage.kernels.rollout import Block
    from windage.kernels.simulator import Dynamics

__all__ = ["MultiScale", "declared", "undeclared"]


class MultiScale(KernelAgent):
    """A learner without parameters for worlds that drift, or may: what to try first.

    Parameters
    ----------
    space
        States and actions.
    horizon
        T; if it is not known, `windage.Doubling`.
    structure
        What is known of next states and rewards: then only the laws of its variables are learned,
        and every step says, as `seen`, which outcomes they had.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. It
        must be declared if it is not [0, 1]: windows are compared by the likelihood of rewards.
        With a structure it is that of the structure, if it is not given.
    seed
        Of the agent's own draws.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=20_000)
    >>> agent = MultiScale(model.space, horizon=model.horizon)
    >>> run = wd.run(model, agent, seed=1)
    >>> agent.windows[:3], agent.windows[-1]
    ((32, 64, 128), 20000)
    >>> memory = agent.forgetting()
    >>> bool(memory.mean("rewards")[-1] < memory.mean("transitions")[-1])  # rewards jump, p creeps
    True
    """

    id: ClassVar[str] = "multi-scale"
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "windage, docs/studies/multi-scale.md"
    constants: ClassVar[Constants] = Constants()

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        structure: Structure | Mapping[str, Any] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        known = as_structure(structure, as_space(space))
        if known is not None and "reward_range" not in self._given:
            reward_range = known.reward_range
        super().__init__(space, horizon=horizon, seed=seed, reward_range=declared(reward_range))
        self.structure = known
        self._learner_state = self._blank_state()

    def _blank_state(self) -> MultiScaleState:
        """Return the learner before it has learned anything."""
        assert self.reward_range is not None
        given = (
            self.space,
            self.horizon,
            self._windows(),
            self.constants,
            self.seed,
            f"agents.{self.id}",
            self.reward_range,
            self._prior(),
        )
        if self.structure is None:
            return MultiScaleState(*given)
        return StructuredState(self.structure, *given)

    def _windows(self) -> list[int]:
        """Return the windows to compare."""
        if self.structure is None:
            return windows_for(self.space, self.horizon, self.constants.base)
        return law_windows(self.horizon, self.constants.base)

    def _prior(self) -> NDArray[np.float64] | None:
        """Return the windows' weights before anything is seen; even if None."""
        return None

    @property
    def _by_law(self) -> StructuredState | None:
        """The learner, if it counts by law."""
        found = self._learner_state
        return found if isinstance(found, StructuredState) else None

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        found = super().configuration()
        if self.structure is None:
            del found["structure"]
        return found

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows that are compared; the last one is all history."""
        return tuple(self._learner_state.experts.windows)

    @property
    def preloaded(self) -> int:
        """How many samples of the past the agent was given before its first decision."""
        return self._learner_state.experts.ahead

    @property
    def _kernel(self) -> MultiScaleLearner:
        return self._learner_state.kernel

    def _make_room(self, steps: int) -> None:
        self._learner_state.make_room(steps)

    def _reached(self) -> tuple[int, int | None]:
        t = self._learner_state.t
        state = int(self._learner_state.experts.kernel.clock["state"][0])
        return t, state if t > 1 else None

    def _refusal(self, reward: float) -> InputError:
        return undeclared(reward, self._scale, self.t)

    def _check_reward(self, reward: object) -> float:
        value = as_real(reward, "reward")
        if self.structure is not None and self.structure.reward is not None:
            # a sum of costs may be off its table by a rounding
            slack = 1e-9 * self._scale.width
            if self._scale.least - slack <= value <= self._scale.most + slack:
                value = min(max(value, self._scale.least), self._scale.most)
        if not self._scale.least <= value <= self._scale.most:
            raise undeclared(value, self._scale, self.t)
        return value

    @exclusive
    def preload(
        self,
        s: int,
        a: int,
        reward: float,
        s_next: int,
        seen: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn from a step somebody took before t = 1; older ones first.

        Samples of the past age like all others; only the longest window remembers them for good.
        """
        started = self.n_episodes > 0
        step = self._past_step(s, a, reward, s_next, seen, started=started)
        if self._by_law is not None:
            self._by_law.look_back(*step, self._seen)
        else:
            self._learner_state.preload(*step)

    def _check_seen(
        self, pair: int, reward: float, after: int, seen: Mapping[str, Any] | None
    ) -> NDArray[np.int64]:
        nothing = super()._check_seen(pair, reward, after, seen)
        if self.structure is None or self._by_law is None:
            return nothing
        known, unit = self._by_law.estimate.known, self._scale.unit(reward)
        return outcomes_shown(self.structure, known, pair, unit, after, seen or {})

    def play(self, model: Dynamics | ExogenousDynamics, state: int, block: Block) -> int:
        """Play a whole block in one loop; returns the state it ends in."""
        if self.structure is not None and model.seen.shape != (len(self.structure.variables), 2):
            raise InputError(
                "does not show the variables of the structure",
                field="problem",
                fix="play in structure.drifting(...), or observe by hand with seen=",
            )
        return super().play(model, state, block)

    def forgetting(self) -> Forgetting:
        """Return how much each window has counted in the world as a whole, through time."""
        return self._learner_state.forgetting()

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count for each pair, on average.

        The first row is for its transitions, the second for its rewards. With a structure: of the
        law of it that has the shortest memory.
        """
        return self._learner_state.memory()

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair count now, as the windows are weighted.

        With a structure: of the law of it that has the fewest.
        """
        return self._learner_state.contents

    @exclusive
    def explain(self, s: int) -> MultiScaleExplanation | StructuredExplanation:
        """Say what is believed of each action of a state, from how far back, and hoped for.

        With a structure, what is believed of the variables on which the state depends.
        """
        state = self.space.check_state(s)
        if self._by_law is not None:
            return explained_by_law(self._by_law, state, self.episode)
        return explained(
            self._learner_state.kernel, self._learner_state.experts, state, self.episode
        )

    @property
    def n_episodes(self) -> int:
        """How many epochs have started."""
        return self._learner_state.epochs

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the epochs from number `first` (from 1 on) to the current one, as rows."""
        return self._learner_state.rows(first)

    @property
    def episode(self) -> Episode | None:
        """The current epoch; None before the first decision."""
        return self._learner_state.epoch(self.t)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return self._learner_state.saved()

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._learner_state.restore(values, arrays)
        if self._learner_state.t != self.t:
            raise ValueError("t")


def undeclared(reward: float, scale: Scale, t: int) -> InputError:
    """Return what to raise if a reward at time t is outside the declared range."""
    return InputError(
        f"{reward} is not in the declared range [{scale.least:g}, {scale.most:g}]",
        field="reward",
        where=f"t={t}",
        fix="declare a wider reward_range: windows are compared by the likelihood of rewards",
    )


def declared(reward_range: Any) -> tuple[float, float]:
    """Return a declared range of rewards, or say that one is needed."""
    if reward_range is None:
        raise InputError(
            "None is no range",
            field="reward_range",
            fix="declare (lowest, highest) reward: windows are compared by their likelihood",
        )
    return as_range(reward_range, "reward_range")
