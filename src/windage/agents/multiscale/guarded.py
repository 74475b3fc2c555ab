"""Multi-scale windows within the optimism of BORL: `MultiScaleGuarded`.

BORL is the anchor, as it is: blocks, arms (W, eta), the master, and in each block a fresh
SWUCRL2-CW with its sets and episodes. It no longer plays: it admits, episode by episode, the
actions whose optimistic value is within xi_m of the best. Which of them is played, a multi-scale
learner decides, whose memory goes on from block to block. docs/paper/guarded.md has the argument
why the order of BORL's bound survives that, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent, KernelAgent
from windage.agents.exclusive import exclusive
from windage.agents.meta.borl import BORL
from windage.agents.multiscale.agent import declared, undeclared
from windage.agents.multiscale.explanation import Forgetting, GuardedExplanation, explained
from windage.agents.multiscale.learner import Constants, MultiScaleState
from windage.agents.multiscale.windows import windows_for
from windage.agents.optimistic.swucrl2cw import SWUCRL2CW
from windage.confidence.radii import Radii
from windage.errors import CallOrderError, InputError
from windage.spaces import StateActions, as_space
from windage.validation import as_horizon, as_seed

if TYPE_CHECKING:
    from windage.kernels.guarded import GuardedLearner

__all__ = ["MultiScaleGuarded"]

_KAPPA = 1.0
_ANY = 1.0  # a slack as large as any difference of optimistic rewards: EVI values every pair


class _Anchor(SWUCRL2CW):
    """SWUCRL2-CW in one block, which admits actions and lets a multi-scale learner choose."""

    id: ClassVar[str] = "multi-scale-anchor"
    replays: ClassVar[bool] = False
    chooser: MultiScaleState

    @property
    def rate(self) -> float:
        """The number kappa (eta + S sqrt(A L / W)); xi_m is 1 + span(gamma~_m) times as much."""
        space, eta = self.space, float(self._eta[0])
        L = math.log(space.n_pairs * self.horizon / self.delta)
        width = space.n_states * math.sqrt(space.mean_actions * L / self.window)
        return _KAPPA * (width if space.n_states == 1 else eta + width)

    @property
    def _kernel(self) -> GuardedLearner:  # type: ignore[override]
        from windage.kernels.guarded import GuardedLearner

        ahead = self.chooser.t - self.t
        return GuardedLearner(self._learner, self.chooser.kernel, self.rate, ahead)

    def _make_room(self, steps: int) -> None:
        super()._make_room(steps)
        self.chooser.make_room(steps)

    def _choose(self, state: int) -> int:
        return KernelAgent._choose(self, state)

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        KernelAgent._learn(self, state, action, reward, s_next)

    def _look_back(self, rewards: NDArray[np.float64]) -> None:
        """Warn of nothing: rewards have a declared range, and nothing is drawn."""

    def _refusal(self, reward: float) -> InputError:
        return undeclared(reward, self._scale, self.t)

    def _played(self, state: int) -> int:
        return int(self.chooser.kernel.policy[state])


class MultiScaleGuarded(BORL):
    """`MultiScale` that plays only what BORL's optimism admits, for whoever needs a bound.

    Parameters
    ----------
    delta, arms, master, radii, block_length
        Those of `BORL`, the anchor. Where the budgets are known: arms=[(W*, eta*)] and
        block_length=T.
    space, horizon, reward_range, seed
        Those of `MultiScale`.

    Examples
    --------
    >>> import warnings, windage as wd
    >>> model = wd.envs.make("two-state-cosine")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", wd.GuaranteeWarning)
    ...     agent = MultiScaleGuarded(model.space, horizon=model.horizon)
    >>> run = wd.run(model, agent, seed=1)
    >>> agent.blocks
    BlockLog(11 of 477 steps)
    >>> all(agent.explain(0).admitted)  # at this size nearly everything is
    True
    """

    id: ClassVar[str] = "multi-scale-guarded"
    bound: ClassVar[str] = "the order of BORL's, argued in docs/paper/guarded.md"
    source: ClassVar[str] = "windage, docs/paper/guarded.md"
    fixed: ClassVar[tuple[str, ...]] = ("ties", "slack", "carry_window")
    counts_in_loop: ClassVar[bool] = False
    constants: ClassVar[Constants] = Constants()
    learner_kind: ClassVar[type[SWUCRL2CW]] = _Anchor

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        delta: float = 0.05,
        arms: Any = None,
        master: str = "exp3p",
        radii: Radii | str | dict[str, Any] | None = None,
        block_length: int | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        space, horizon = as_space(space), as_horizon(horizon, error=InputError)
        self._learner_state = MultiScaleState(
            space,
            horizon,
            windows_for(space, horizon, self.constants.base),
            self.constants,
            as_seed(seed),
            "agents.multi-scale",  # the same draws: where all is admitted, the same learner
            declared(reward_range),
        )
        super().__init__(
            space,
            horizon=horizon,
            delta=delta,
            arms=arms,
            master=master,
            radii=radii,
            ties="lowest",
            slack=_ANY,
            block_length=block_length,
            reward_range=reward_range,
            seed=seed,
        )

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows that are compared; the last one is all history."""
        return tuple(self._learner_state.experts.windows)

    @property
    def xi(self) -> float:
        """xi_m of the current anchor episode, of rewards scaled to [0, 1]."""
        from windage.kernels.guarded import xi

        if self._runner is None:
            raise CallOrderError("nothing is admitted yet", field="xi", fix="call act(s) first")
        return float(xi(self._runner._kernel))

    def _learner(self, arm: int, block: int) -> SWUCRL2CW:
        return self._tied(super()._learner(arm, block))

    def _tied(self, anchor: SWUCRL2CW) -> _Anchor:
        """Tie an anchor to the learner; the log of its episodes has room for the block at once."""
        assert isinstance(anchor, _Anchor)
        anchor.chooser = self._learner_state
        anchor._make_room_to_log(min(self.block_length, self.horizon))
        return anchor

    @exclusive
    def preload(
        self,
        s: int,
        a: int,
        reward: float,
        s_next: int,
        seen: Mapping[str, Any] | None = None,
    ) -> None:
        """Let the multi-scale learner learn from a step of the time before t = 1.

        The anchor does not: its blocks start with nothing, as the theorem has them.
        """
        started = self._runner is not None
        self._learner_state.preload(*self._past_step(s, a, reward, s_next, seen, started=started))

    @property
    def preloaded(self) -> int:
        """How many samples of the past the agent was given before its first decision."""
        return self._learner_state.experts.ahead

    def forgetting(self) -> Forgetting:
        """Return how much each window has counted in the world as a whole, through time."""
        return self._learner_state.forgetting()

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count, for transitions and for rewards."""
        return self._learner_state.experts.memory()

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair count now, as the windows are weighted."""
        return self._learner_state.experts.contents

    @exclusive
    def explain(self, s: int) -> GuardedExplanation:  # type: ignore[override]
        """Say what is believed of each action, what is admitted, and what the anchor hopes for."""
        anchor = super().explain(s)
        thinker = self._learner_state
        first, last = self.space.offsets[s : s + 2]
        low, high = self.reward_range or (0.0, 1.0)
        return GuardedExplanation(
            slack=(high - low) * self.xi,
            admitted=tuple((thinker.kernel.estimate.pairs["allowed"][first:last] == 1).tolist()),
            decision=explained(thinker.kernel, thinker.experts, s, thinker.epoch(self.t)),
            anchor=anchor,
        )

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        state, its = self._learner_state.saved()
        arrays |= {f"chooser.{name}": array for name, array in its.items()}
        return values | state, arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        start = "chooser."
        mine = {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}
        self._learner_state.restore(values, mine)
        super()._restored(values, arrays)
        if self._learner_state.t != self.t:
            raise ValueError("t")

    def _restored_runner(self, data: bytes, since: int) -> Agent:
        del since
        return self._tied(_Anchor.from_state(data))
