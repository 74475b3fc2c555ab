"""What an episodic learner says once while it plays: rewards out of scale, models not solved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windage.agents.hearing import warn
from windage.errors import GuaranteeWarning, ParameterWarning

if TYPE_CHECKING:
    from windage.agents.episodic import EpisodicAgent

__all__ = ["draws", "rounding", "scale"]


def scale(agent: EpisodicAgent) -> None:
    """Warn once if mean rewards are clearly outside [0, 1], where the learner sees nothing.

    The noise of a mean over n visits is 1 / sqrt(n); five times that is no accident.
    """
    if agent.reward_range is None and not agent._warned:
        n, mean = agent._learner.sets["visits"], agent._learner.sets["mean"]
        away = np.maximum(mean - 1.0, -mean) * np.sqrt(n) > 5.0
        if away.any():
            agent._warned = True
            warn(
                f"a mean reward of {mean[np.argmax(away)]:g} lies outside [0, 1], where all "
                "rewards look alike to the learner: declare a reward_range",
                ParameterWarning,
                stacklevel=5,
            )


def draws(agent: EpisodicAgent) -> None:
    """Warn once of a drawn model that was played without being solved.

    Where a draw only breaks ties (`learner.drawn`), any policy keeps the guarantee.
    """
    from windage.kernels.plan import UNSOLVED

    if agent._learner.plan.answer[UNSOLVED] > 0.0 and not agent._warned_of_draws:
        agent._warned_of_draws = True
        warn(
            "a drawn model was not solved to 1 / sqrt(t) in 2,000 sweeps: the policy found so far "
            "is played, as it will be again",
            GuaranteeWarning,
            stacklevel=5,
        )


def rounding(agent: EpisodicAgent, least: float, most: float) -> None:
    """Warn once of rewards that are rounded to 0 or 1 though they are nowhere near."""
    if agent.reward_range is None and not agent._warned and not -0.5 <= least <= most <= 1.5:
        agent._warned = True
        warn(
            f"a reward of {most if most > 1.5 else least:g} lies outside [0, 1] and is rounded to "
            "0 or 1: declare a reward_range",
            ParameterWarning,
            stacklevel=5,
        )
