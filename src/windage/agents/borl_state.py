"""What a saved BORL cannot be: blocks that its master, or its learner, would not have had."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windage.agents.borl import BORL

__all__ = ["require_same_master", "require_same_runner"]


def require_same_master(agent: BORL) -> None:
    """Let another master hear of the same blocks: it must have come to the same scores."""
    other, n = agent._new_master(), agent._block + 1
    for i in range(n):
        same = np.array_equal(agent._likely[i], other.probabilities)
        if not same or agent._arm[i] != other.choose(agent._draw(i)):
            raise ValueError(f"block {i}")
        if i + 1 < n or not math.isnan(agent._reward[i]):
            other.update(int(agent._arm[i]), float(agent._reward[i]))
    mine, theirs = agent._master.saved(), other.saved()
    if any(not np.array_equal(mine[name], theirs[name]) for name in mine):
        raise ValueError("master")
    if n and not math.isnan(agent._reward[n - 1]) and agent.t <= n * agent.block_length:
        raise ValueError("blocks.reward")


def require_same_runner(agent: BORL) -> None:
    """The learner of a block is the one that its arm asks for."""
    due = agent._learner(int(agent._arm[agent._block]), agent._block)
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
