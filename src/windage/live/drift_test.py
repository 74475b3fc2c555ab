"""Drift test: recent outcomes of each state-action pair against those before them.

For each pair the last W samples of the history are set against the W before them: the mean reward,
and the share of each next state. Two coins against one: the evidence is the logarithm of

    KT(x of n) KT(y of m) / max_p p^(x + y) (1 - p)^(n + m - x - y)

where KT is the probability of the outcomes under a coin drawn from Beta(1/2, 1/2). If both segments
have the same coin, the ratio is at most a martingale of mean 1, however the agent's choices depend
on the past, so it exceeds 1 / delta with probability at most delta; this holds for rewards in
[0, 1] too, by convexity. Delta is divided among all tests: one test of a stationary environment
gives a false alarm with probability at most delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

from windage.agents import Agent, Doubling
from windage.live.history import History
from windage.live.types import Units
from windage.spaces import StateActions

__all__ = ["DELTA", "Alarm", "drift_alarms", "recent_samples"]

DELTA = 0.01


@dataclass(frozen=True)
class Alarm:
    """One pair whose outcomes have changed.

    Attributes
    ----------
    pair, state, action
        The pair, by number and by names.
    what
        "reward", "cost" where rewards are costs, or the name of the next state whose share has
        changed.
    before, now
        Its mean reward or cost, in the user's units, or its share of next states.
    size
        The change of the reward or cost, or the L1 distance of the two rows.
    samples
        How many there were before, and now.
    """

    pair: int
    state: str
    action: str
    what: str
    before: float
    now: float
    size: float
    samples: tuple[int, int]

    def __str__(self) -> str:
        n, m = self.samples
        if self.what in ("reward", "cost"):
            change = f"the mean {self.what} went from {self.before:.4g} to {self.now:.4g}"
        else:
            change = f"it leads to {self.what} in {self.before:.0%}, now in {self.now:.0%}"
        return (
            f"{self.action} in {self.state}: {change} (size {self.size:.3g}, {n} and {m} samples)"
        )


def recent_samples(agent: Agent, samples: int) -> int:
    """Return how many samples count as recent: the agent's window, at most half of all."""
    acting = agent.runner if isinstance(agent, Doubling) and agent.runner else agent
    window = getattr(acting, "window", None)
    return min(window, samples // 2) if isinstance(window, int) else samples // 2


def drift_alarms(past: History, space: StateActions, units: Units, recent: int) -> list[Alarm]:
    """Return the pairs whose last outcomes differ from those before by more than chance."""
    learned = past.select(past.learned)
    pairs = space.offsets[learned.states] + learned.actions
    low, high = units.agent_range
    rewards = (units.to_agent(learned.rewards) - low) / (high - low)
    bounded = bool(((rewards >= 0.0) & (rewards <= 1.0)).all())  # else the test is not valid
    start, middle = max(pairs.size - 2 * recent, 0), pairs.size - recent
    threshold = math.log(space.n_pairs * (space.n_states + 1) / DELTA)

    alarms = []
    for pair in np.unique(pairs[middle:]).tolist():
        visits = pairs == pair
        old = np.flatnonzero(visits[start:middle]) + start
        new = np.flatnonzero(visits[middle:]) + middle
        if old.size == 0:
            continue
        s, a = int(space.state_of[pair]), int(space.action_of[pair])
        names = space.state_name(s), space.action_name(s, a)
        samples = (int(old.size), int(new.size))
        sums = np.array([[rewards[old].sum()], [rewards[new].sum()]])
        if bounded and (_evidence(sums, old.size, new.size) > threshold).any():
            before, now = float(learned.rewards[old].mean()), float(learned.rewards[new].mean())
            size = abs(now - before)
            alarms.append(Alarm(pair, *names, units.word, before, now, size, samples))
        counts = np.stack(
            [np.bincount(learned.next_states[i], minlength=space.n_states) for i in (old, new)]
        ).astype(np.float64)
        evidence = _evidence(counts, old.size, new.size)
        if (evidence > threshold).any():
            rows = counts / [[old.size], [new.size]]
            s_next = int(np.argmax(evidence))
            before, now = float(rows[0][s_next]), float(rows[1][s_next])
            size = float(np.abs(rows[0] - rows[1]).sum())
            alarms.append(Alarm(pair, *names, space.state_name(s_next), before, now, size, samples))
    return sorted(alarms, key=lambda alarm: -alarm.size)


def _evidence(sums: NDArray[np.float64], old: int, new: int) -> NDArray[np.float64]:
    """Return the evidence, column by column, that two segments are not of the same coin.

    >>> np.exp(_evidence(np.array([[1.0], [1.0]]), 1, 1)).round(9).tolist()  # 1/2 * 1/2 / 1
    [0.25]
    """
    total, n = sums.sum(axis=0), old + new
    share = total / n
    one_coin = xlogy(total, share) + xlog1py(n - total, -share)
    return np.asarray(_kt(sums[0], old) + _kt(sums[1], new) - one_coin)


def _kt(sums: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the log-probability of outcomes under a coin drawn from Beta(1/2, 1/2)."""
    return np.asarray(betaln(0.5 + sums, 0.5 + n - sums) - betaln(0.5, 0.5))
