"""Where the world has drifted: recent outcomes of a pair against those before them.

For each pair the last W samples of the history are set against the W before them: the mean reward,
and the share of each next state. Two coins against one: the evidence is the logarithm of

    KT(x of n) KT(y of m) / max_p p^(x + y) (1 - p)^(n + m - x - y)

where KT is the probability of the outcomes under a coin drawn from Beta(1/2, 1/2). If both
stretches have the same coin, the ratio is at most a martingale of mean 1, however the agent's
choices depend on what it saw, so it exceeds 1 / delta with probability at most delta; this holds
for rewards in [0, 1] too, by convexity. Delta is divided among all tests: one look at a world that
stands still shows a false alarm with probability at most delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

from windage.agents import Agent, Doubling
from windage.live.history import History
from windage.live.units import Units
from windage.spaces import StateActions

__all__ = ["DELTA", "Alarm", "drift", "stretch"]

DELTA = 0.01


@dataclass(frozen=True)
class Alarm:
    """One pair whose outcomes have changed.

    Attributes
    ----------
    pair, state, action
        Which one, by number and by names.
    what
        "reward", "cost" where rewards are costs, or the name of the next state whose share has
        changed.
    before, now
        Its mean reward or cost, in the user's units, or its share of next states.
    size
        How much: of the reward or cost, or the L1 distance of the two rows.
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


def stretch(agent: Agent, samples: int) -> int:
    """Return how many samples count as recent: the agent's window, at most half of all."""
    acting = agent.runner if isinstance(agent, Doubling) and agent.runner else agent
    window = getattr(acting, "window", None)
    return min(window, samples // 2) if isinstance(window, int) else samples // 2


def drift(past: History, space: StateActions, units: Units, recent: int) -> list[Alarm]:
    """Return the pairs whose last outcomes differ from those before by more than chance."""
    lived = past.part(past.learned)
    pairs = space.offsets[lived.states] + lived.actions
    low, high = units.inside
    rewards = (units.inward(lived.rewards) - low) / (high - low)
    bounded = bool(((rewards >= 0.0) & (rewards <= 1.0)).all())  # else no bound speaks of them
    start, middle = max(pairs.size - 2 * recent, 0), pairs.size - recent
    bar = math.log(space.n_pairs * (space.n_states + 1) / DELTA)
    word = "cost" if units.direction == "cost" else "reward"
    found = []
    for pair in np.unique(pairs[middle:]).tolist():
        mine = pairs == pair
        old = np.flatnonzero(mine[start:middle]) + start
        new = np.flatnonzero(mine[middle:]) + middle
        if old.size == 0:
            continue
        earned = np.array([[rewards[old].sum()], [rewards[new].sum()]])
        if bounded and (_evidence(earned, old.size, new.size) > bar).any():
            before, now = lived.rewards[old].mean(), lived.rewards[new].mean()
            found.append(_alarm(space, pair, word, before, now, abs(now - before), old, new))
        counts = np.stack(
            [np.bincount(lived.afters[part], minlength=space.n_states) for part in (old, new)]
        ).astype(np.float64)
        evidence = _evidence(counts, old.size, new.size)
        rows = counts / [[old.size], [new.size]]
        if (evidence > bar).any():
            after = int(np.argmax(evidence))
            distance = np.abs(rows[0] - rows[1]).sum()
            name = space.state_name(after)
            found.append(
                _alarm(space, pair, name, rows[0][after], rows[1][after], distance, old, new)
            )
    return sorted(found, key=lambda alarm: -alarm.size)


def _alarm(
    space: StateActions, pair: int, what: str, before: float, now: float, size: float,
    old: NDArray[np.int64], new: NDArray[np.int64],
) -> Alarm:  # fmt: skip
    s, a = int(space.state_of[pair]), int(space.action_of[pair])
    samples = (int(old.size), int(new.size))
    return Alarm(
        pair, space.state_name(s), space.action_name(s, a), what, float(before), float(now),
        float(size), samples,
    )  # fmt: skip


def _evidence(sums: NDArray[np.float64], old: int, new: int) -> NDArray[np.float64]:
    """Return the evidence, column by column, that two stretches are not of the same coin.

    >>> np.exp(_evidence(np.array([[1.0], [1.0]]), 1, 1)).round(9).tolist()  # 1/2 * 1/2 / 1
    [0.25]
    """
    total, n = sums.sum(axis=0), old + new
    share = total / n
    one_coin = xlogy(total, share) + xlog1py(n - total, -share)
    found: NDArray[np.float64] = _kt(sums[0], old) + _kt(sums[1], new) - one_coin
    return found


def _kt(sums: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the log-probability of outcomes under a coin drawn from Beta(1/2, 1/2)."""
    return np.asarray(betaln(0.5 + sums, 0.5 + n - sums) - betaln(0.5, 0.5))
