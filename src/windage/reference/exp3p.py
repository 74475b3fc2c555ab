"""EXP3.P, the master of BORL (paper, appendix on BORL, equations (69) to (71)).

Reading: gamma is at most 1 (E4). By its formula it is larger for all practical T, and then (70)
has negative entries; cut at 1, all arms are played alike.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from windage.validation import as_integer

__all__ = ["Exp3P"]


class Exp3P:
    """A bandit with K arms for n rounds against an adversary that may adapt.

    >>> master = Exp3P(n_arms=2, n_rounds=1000)
    >>> master.choose(0.7)
    1
    >>> master.update(1, reward=1.0)
    >>> master.probabilities.round(3)
    array([0.492, 0.508])
    """

    def __init__(self, n_arms: int, n_rounds: int) -> None:
        K, n = n_arms, n_rounds  # Delta and ceil(T / H)
        self.alpha = 0.95 * math.sqrt(math.log(K) / (K * n))  # (69)
        self.beta = math.sqrt(math.log(K) / (K * n))
        self.raw_gamma = 1.05 * math.sqrt(K * math.log(K) / n)
        self.gamma = min(1.0, self.raw_gamma)  # E4
        self.q = np.zeros(K)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """u, how likely each arm is; equation (70)."""
        weights = np.exp(self.alpha * (self.q - self.q.max()))  # only differences matter
        u: NDArray[np.float64] = (1 - self.gamma) * weights / weights.sum()
        return u + self.gamma / self.q.size

    def choose(self, point: float) -> int:
        """Return the arm whose part of [0, 1) holds the point."""
        ends = np.cumsum(self.probabilities)
        return min(int(np.searchsorted(ends, point, side="right")), self.q.size - 1)

    def update(self, arm: int, reward: float) -> None:
        """Learn what the chosen arm has earned, in [0, 1]; every arm is given beta (71)."""
        earned = np.zeros(self.q.size)
        earned[as_integer(arm, "arm", low=0, high=self.q.size - 1)] = reward
        self.q += (self.beta + earned) / self.probabilities
