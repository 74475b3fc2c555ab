"""Runs compared to the byte, and agents that are played step by step."""

from __future__ import annotations

import windage as wd


class Slow:
    """An agent of the user's own: it has neither a space nor a clock."""

    def __init__(self, inner):
        self.inner = inner

    def act(self, s):
        return self.inner.act(s)

    def observe(self, s, a, reward, s_next):
        self.inner.observe(s, a, reward, s_next)


def same(a: wd.simulate.Run, b: wd.simulate.Run) -> bool:
    return all(
        getattr(a, name).tobytes() == getattr(b, name).tobytes()
        for name in ("times", "states", "actions", "rewards", "mean_rewards", "cumulative_reward")
    )
