"""What all learners that count in windows sharing one history have in common as agents."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import KernelAgent, Scale
from windage.agents.episodes import Episode
from windage.agents.exclusive import exclusive
from windage.agents.multiscale.explanation import (
    MultiScaleExplanation,
    StructuredExplanation,
    explained,
    explained_by_law,
)
from windage.agents.multiscale.learner import Constants, MultiScaleState
from windage.agents.multiscale.structured import (
    StructuredState,
    as_structure,
    outcomes_shown,
    require_same_world,
)
from windage.agents.multiscale.windows import Weighing
from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.structure import Structure
from windage.validation import as_range, as_real

if TYPE_CHECKING:
    from windage.kernels.exogenous import ExogenousDynamics
    from windage.kernels.multiscale import MultiScaleLearner
    from windage.kernels.rollout import Block
    from windage.kernels.simulator import Dynamics

__all__ = ["ALONE", "OneWindow", "WindowsAgent", "declared", "undeclared"]


ALONE = Weighing(share=0.0, by_overall=False, by_pair=False, strength=0.0)
"""For one window, which is compared with none."""


class WindowsAgent(KernelAgent):
    """An agent that is a `MultiScaleState`: by pair, or by law where it knows a structure.

    The parameters are described at `MultiScale`.
    """

    off_policy: ClassVar[bool] = True
    constants: ClassVar[Constants] = Constants()
    _state_by_law: ClassVar[type[StructuredState]] = StructuredState

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
        if known is not None and self._given.get("reward_range") is None:
            reward_range = known.reward_range
        super().__init__(space, horizon=horizon, seed=seed, reward_range=declared(reward_range))
        if known is not None and known.reward is not None:
            require_range(known.reward, self.reward_range)
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
        return self._state_by_law(self.structure, *given)

    @abstractmethod
    def _windows(self) -> list[int]:
        """Return the windows to compare; the last one is all history."""

    def _start_with_a_past(self) -> None:
        """Get ready for steps before t = 1."""

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

    def _played(self, state: int) -> int:
        """Return the pair that is planned in a state."""
        return int(self._kernel.policy[state])

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
        if self.preloaded == 0:
            self._start_with_a_past()
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
        if self.structure is not None:
            require_same_world(self.structure, model)
        return super().play(model, state, block)

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
        if arrays["experts.clock"][1] > 0:
            self._start_with_a_past()
        self._learner_state.restore(values, arrays)
        if self._learner_state.t != self.t:
            raise ValueError("t")


class OneWindow(WindowsAgent):
    """One that counts what the last `window` steps showed, or all history, and nothing else."""

    window: int | None
    _has_a_past = False

    def _start_with_a_past(self) -> None:
        """Forget even of the past what is older than the window."""
        if self.window is not None and self.window >= self.horizon:
            self._has_a_past = True
            self._learner_state = self._blank_state()

    def _windows(self) -> list[int]:
        """The window, and all history, which does not count."""
        ever = self.horizon
        if self.window is None or (self.window >= ever and not self._has_a_past):
            return [ever]
        return [self.window, max(ever, self.window + 1)]

    @property
    def _counted(self) -> float:
        return self.window or math.inf

    def _prior(self) -> NDArray[np.float64] | None:
        return np.array([1.0, 0.0])[: len(self._windows())]


def undeclared(reward: float, scale: Scale, t: int) -> InputError:
    """Return what to raise if a reward at time t is outside the declared range."""
    return InputError(
        f"{reward} is not in the declared range [{scale.least:g}, {scale.most:g}]",
        field="reward",
        where=f"t={t}",
        fix="declare a wider reward_range: windows are compared by the likelihood of rewards",
    )


def require_range(rewards: NDArray[np.float64], stated: tuple[float, float] | None) -> None:
    """Refuse a range that does not hold the rewards of a structure."""
    least, most = float(rewards.min()), float(rewards.max())
    low, high = stated or (least, most)
    if least < low or most > high:
        raise InputError(
            f"({low:g}, {high:g}) does not hold the rewards of the structure, "
            f"{least:g} to {most:g}",
            field="reward_range",
            fix="leave it out: it is that of the structure",
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
