"""EXP3.P: the master of BORL (paper, Algorithm 3), with a bound that holds in high probability.

    u_k = (1 - gamma) softmax(alpha q)_k + gamma / K                  # line 6
    q_k += (beta + 1{k played} x) / u_k, for every arm k              # line 14

With few rounds gamma exceeds 1, and as printed some u_k are then negative: it is cut at 1 (E4).
"""

from __future__ import annotations

import math
from typing import ClassVar

from windage.adversarial.base import Master

__all__ = ["Exp3P"]


class Exp3P(Master):
    """EXP3.P (Auer et al. 2002, with the constants of Bubeck and Cesa-Bianchi 2012).

    Parameters
    ----------
    n_arms, n_rounds, quiet
        As for every `Master`.

    Examples
    --------
    >>> master = Exp3P(n_arms=2, n_rounds=1000)
    >>> arm = master.choose(0.7)
    >>> master.update(arm, reward=1.0)
    >>> master.probabilities.round(3)
    array([0.492, 0.508])
    """

    id: ClassVar[str] = "exp3p"
    source: ClassVar[str] = "Bubeck, Cesa-Bianchi 2012, constants recalled"

    def __init__(self, n_arms: int, n_rounds: int, *, quiet: bool = False) -> None:
        from windage.kernels.masters import GAINS

        super().__init__(n_arms, n_rounds)
        K, n = self.n_arms, self.n_rounds
        self.beta = math.sqrt(math.log(K) / (K * n))
        self.alpha = 0.95 * self.beta
        self._mix(lambda n: 1.05 * math.sqrt(K * math.log(K) / n), quiet)
        self._weigh(quiet)
        self._start(GAINS)

    def _weigh(self, quiet: bool) -> None:
        """Say so if the bound on the regret is no less than all there is to lose."""
        n, bound = self.n_rounds, self.regret_bound
        if bound >= n and not self.said:
            words = (
                f"{self.id}: its bound says that {n} rounds lose {bound:.3g} at most, and they can "
                f"lose no more than {n} anyway"
            )
            self._say(words, lambda n: 0.0 if self._bound(n) < n else math.inf, quiet)

    @property
    def regret_bound(self) -> float:
        """What it can lose in n rounds to the best arm, in expectation; 0 for a single arm."""
        return self._bound(self.n_rounds)

    def _bound(self, n: int) -> float:
        K = self.n_arms
        if K == 1:
            return 0.0
        return 5.15 * math.sqrt(n * K * math.log(K)) + math.sqrt(n * K / math.log(K))
