"""Multi-scale windows: no window to choose, all of them compete in predicting the next step.

    windows W_1 < ... < W_K: powers of two from 2 SA on, then all of T
    for t = 1, 2, ..., T
        every few steps: believe the windows' counts, averaged by their weights   (kernels.belief)
                         hope for what would be worth finding out
                         plan with it, from where the last plan left off          (kernels.replan)
        play the plan, observe R_t and s_{t+1}
        weigh every window by how likely it held them; count; forget              (kernels.scales)

Windows are compared by prediction, not by reward as BORL's arms are: every step scores all of them,
and trying one out costs nothing. Rewards and transitions have weights of their own, and so has each
pair: prices may change by the hour where the road network stays for years. The constants are fixed
once, for all problems; docs/studies/multi-scale.md says on which problems they were chosen and how
the learner did on others. No theorem bounds its regret; `MultiScaleGuarded` plays within one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.episodes import Episode
from windage.agents.forgetting import Forgetting, MultiScaleExplanation, explained
from windage.agents.scale import Scale
from windage.agents.thinker import Constants, Thinker
from windage.confidence.scales import windows_for
from windage.errors import InputError
from windage.spaces import StateActions
from windage.validation import as_real

if TYPE_CHECKING:
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["MultiScale", "declared", "undeclared"]


class MultiScale(Agent):
    """A learner without parameters for worlds that drift, or may: what to try first.

    Parameters
    ----------
    space
        States and actions.
    horizon
        T; if it is not known, `windage.Doubling`.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. It
        must be declared if it is not [0, 1]: windows are compared by the likelihood of rewards.
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
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=declared(reward_range))
        assert self.reward_range is not None
        self._thinker = Thinker(
            self.space,
            self.horizon,
            windows_for(self.space, self.horizon, self.constants.base),
            self.constants,
            self.seed,
            f"agents.{self.id}",
            self.reward_range,
        )

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows that are compared; the last one is all history."""
        return tuple(self._thinker.scales.windows)

    @property
    def preloaded(self) -> int:
        """How many samples of the past the agent was given before its first decision."""
        return self._thinker.scales.ahead

    def _choose(self, state: int) -> int:
        from windage.kernels import multiscale

        self._thinker.make_room(1)
        pair = multiscale.act(self._thinker.kernel, self.t, state)
        return int(self.space.action_of[pair])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        from windage.kernels import multiscale

        self._thinker.make_room(1)
        pair = self.space.pair(state, action)
        multiscale.observe(self._thinker.kernel, pair, reward, s_next)

    def _reached(self) -> tuple[int, int | None]:
        t = self._thinker.t
        return t, int(self._thinker.scales.kernel.clock[2]) if t > 1 else None

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels import multiscale

        self._thinker.make_room(block.states.size)
        state, n = multiscale.play(self._thinker.kernel, world, state, self.t, *block.columns)
        if n < block.states.size:
            raise undeclared(float(block.rewards[n]), self._scale, self.t + n)
        return int(state)

    def _check_reward(self, reward: object) -> float:
        value = as_real(reward, "reward")
        if not self._scale.least <= value <= self._scale.most:
            raise undeclared(value, self._scale, self.t)
        return value

    def preload(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn from a step somebody took before t = 1; older ones first.

        Samples of the past age like all others; only the longest window remembers them for good.
        """
        started = self.n_episodes > 0
        self._thinker.preload(*self._past_step(s, a, reward, s_next, started=started))

    def forgetting(self) -> Forgetting:
        """Return how much each window has counted in the world as a whole, through time."""
        return self._thinker.forgetting()

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count for each pair, on average.

        The first row is for its transitions, the second for its rewards.
        """
        return self._thinker.scales.memory()

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair count now, as the windows are weighted."""
        return self._thinker.scales.contents

    def explain(self, s: int) -> MultiScaleExplanation:
        """Say what is believed of each action of a state, from how far back, and hoped for."""
        state = self.space.check_state(s)
        return explained(self._thinker.kernel, self._thinker.scales, state, self.episode)

    @property
    def n_episodes(self) -> int:
        """How many epochs have started."""
        return self._thinker.epochs

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the epochs from number `first` (from 1 on) to the current one, as rows."""
        return self._thinker.rows(first)

    @property
    def episode(self) -> Episode | None:
        """The current epoch; None before the first decision."""
        return self._thinker.epoch(self.t)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return self._thinker.saved()

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._thinker.restore(values, arrays)
        if self._thinker.t != self.t:
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
    return reward_range  # type: ignore[no-any-return]  # checked by the agent
