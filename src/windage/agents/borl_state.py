"""What a saved BORL cannot be: a block, or a learner, that its clock and arms would not have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windage.agents.borl import BORL

__all__ = ["require_possible_blocks", "require_same_runner"]


def require_possible_blocks(agent: BORL, block: object) -> None:
    """The block that goes on is the one of the clock, or the one before if nobody has asked yet."""
    n, H = agent._block + 1, agent.block_length
    asked, waits = -(-agent.t // H), -(-(agent.t - 1) // H)  # a decision may have been withdrawn
    if block != agent._block or (n != asked and (n != waits or agent._pending is not None)):
        raise ValueError("block")
    if agent._since != 1 + max(0, agent._block) * H:
        raise ValueError("since")


def require_same_runner(agent: BORL) -> None:
    """The learner of a block is the one that its arm asks for."""
    due = agent._learner(agent._choices.arm(agent._block), agent._block)
    carried = min(due.window, agent._since - 1) if agent.carry_window else 0
    if (
        agent._runner.configuration() != due.configuration()
        or agent._runner.preloaded != carried
        or agent._until != agent._since + agent.block_length
        or agent._past_episodes < agent._block
    ):
        raise ValueError("runner")
    low, high = agent.reward_range or (-math.inf, math.inf)
    steps, earned = agent.t - agent._since, float(agent._sum.sum())
    slip = 1e-9 * steps * max(abs(low), abs(high)) if agent.reward_range else 0.0
    if steps and not low * steps - slip <= earned <= high * steps + slip:
        raise ValueError("earned")
    if agent._recent is not None:
        rewards = agent._recent.last(agent._recent.capacity)[1]
        if rewards.size and not low <= rewards.min() <= rewards.max() <= high:
            raise ValueError("recent.reward")
