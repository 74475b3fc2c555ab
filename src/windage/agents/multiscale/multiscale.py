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

from typing import ClassVar

from windage.agents.multiscale.agent import WindowsAgent
from windage.agents.multiscale.explanation import Forgetting
from windage.agents.multiscale.structured import law_windows
from windage.agents.multiscale.windows import windows_for

__all__ = ["MultiScale"]


class MultiScale(WindowsAgent):
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

    def _windows(self) -> list[int]:
        if self.structure is None:
            return windows_for(self.space, self.horizon, self.constants.base)
        return law_windows(self.horizon, self.constants.base)

    def forgetting(self) -> Forgetting:
        """Return how much each window has counted in the world as a whole, through time."""
        return self._learner_state.forgetting()
