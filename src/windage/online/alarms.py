"""Where the world has drifted: recent outcomes of a pair against those before them.

For each pair the last W samples of the history are set against the W before them: the mean reward,
and the share of each next state. Two shares p and q of n and m outcomes differ by more than chance
if n kl(p, z) + m kl(q, z), z the share in all of them, exceeds what holds at all times at once with
probability 1 - delta: log(1 / delta) + log(e (1 + n)) for each of the two (the mixture bound for
Bernoulli samples, which covers rewards in [0, 1]), delta divided among all tests and all places a
stretch may start at. So a journal of a world that stands still shows a false alarm with probability
at most delta, however often it is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windage.agents import Agent, Doubling
from windage.online.history import History
from windage.online.units import Units
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
        "reward", or the name of the next state whose share has changed.
    before, now
        Its mean reward, in the user's units, or its share of next states.
    size
        How much: of the reward, or the L1 distance of the two rows.
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
        if self.what == "reward":
            change = f"the mean reward went from {self.before:.4g} to {self.now:.4g}"
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
    found = []
    for pair in np.unique(pairs[middle:]).tolist():
        mine = pairs == pair
        old = np.flatnonzero(mine[start:middle]) + start
        new = np.flatnonzero(mine[middle:]) + middle
        if old.size == 0:
            continue
        skipped = int(mine[:start].sum())
        bar = _bar(skipped, old.size, new.size, space.n_pairs * (space.n_states + 1))
        means = np.array([[rewards[old].mean()], [rewards[new].mean()]])
        if bounded and (_evidence(means, old.size, new.size) > bar).any():
            before, now = lived.rewards[old].mean(), lived.rewards[new].mean()
            found.append(_alarm(space, pair, "reward", before, now, abs(now - before), old, new))
        rows = np.stack(
            [np.bincount(lived.afters[part], minlength=space.n_states) / part.size
             for part in (old, new)]
        )  # fmt: skip
        evidence = _evidence(rows, old.size, new.size)
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


def _bar(skipped: int, old: int, new: int, tests: int) -> float:
    """Return what the evidence of drift must exceed; `skipped` visits came before the first."""
    bar = 0.0
    for first, n in ((skipped, old), (skipped + old, new)):
        places = (first + 1.0) * (first + 2.0)  # 1 / places sums to 1 over all starts
        bar += math.log(2.0 * tests * places / DELTA) + 1.0 + math.log1p(n)
    return bar


def _evidence(shares: NDArray[np.float64], old: int, new: int) -> NDArray[np.float64]:
    """Return n kl(p, z) + m kl(q, z) of each column."""
    pooled = (old * shares[0] + new * shares[1]) / (old + new)
    return old * _kl(shares[0], pooled) + new * _kl(shares[1], pooled)


def _kl(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the relative entropy of a coin p to a coin q; q is 0 or 1 only where p is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0.0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
    found: NDArray[np.float64] = np.maximum(heads + tails, 0.0)
    return found
