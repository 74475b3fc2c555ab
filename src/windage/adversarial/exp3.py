"""EXP3, the plain one, and EXP3.S, which shares weight so that it can follow a best arm that moves.

EXP3 (Auer et al. 2002): p = (1 - gamma) softmax(gamma q / K) + gamma / K, and q_k += x / p_k for
the arm played. EXP3.S gives every arm e / (n K) of all weight after each round; its gamma counts
the pieces between l changes, l + 1 of them (recalled from section 8 of the paper, where the
hardness of a sequence is one more than its changes).
"""

from __future__ import annotations

import math
from typing import ClassVar

from windage.adversarial.base import Master
from windage.validation import LAST_TIME, as_integer

__all__ = ["Exp3", "Exp3S", "mixing", "shared_mixing"]


def mixing(K: int, n: int) -> float:
    """Return gamma of EXP3 before it is cut at 1: sqrt(K ln K / ((e - 1) n)).

    >>> print(f"{mixing(2, 100):.4f}")
    0.0898
    """
    return math.sqrt(K * math.log(K) / ((math.e - 1.0) * n))


def shared_mixing(K: int, n: int, changes: int) -> float:
    """Return gamma of EXP3.S before it is cut at 1: sqrt(K ((l + 1) ln(K n) + e) / ((e - 1) n)).

    >>> print(f"{shared_mixing(2, 1000, 1):.4f}")
    0.1444
    """
    if K == 1:
        return 0.0
    pieces = changes + 1
    return math.sqrt(K * (pieces * math.log(K * n) + math.e) / ((math.e - 1.0) * n))


class Exp3(Master):
    """EXP3, against the best arm of all rounds.

    Parameters
    ----------
    n_arms, n_rounds, quiet
        As for every `Master`.

    Examples
    --------
    >>> master = Exp3(n_arms=2, n_rounds=1000)
    >>> master.update(master.choose(0.7), reward=1.0)
    >>> master.probabilities.round(3)
    array([0.493, 0.507])
    """

    id: ClassVar[str] = "exp3"
    source: ClassVar[str] = "Auer, Cesa-Bianchi, Freund, Schapire 2002, constants recalled"

    def __init__(self, n_arms: int, n_rounds: int, *, quiet: bool = False) -> None:
        from windage.kernels.masters import GAINS

        super().__init__(n_arms, n_rounds)
        self._mix(lambda n: mixing(self.n_arms, n), quiet)
        self.alpha, self.beta = self.gamma / self.n_arms, 0.0
        self._start(GAINS)


class Exp3S(Master):
    """EXP3.S, against the best sequence of arms that changes l times.

    Parameters
    ----------
    changes
        l.
    n_arms, n_rounds, quiet
        As for every `Master`.

    Examples
    --------
    >>> master = Exp3S(n_arms=2, n_rounds=1000, changes=3)
    >>> master.update(master.choose(0.7), reward=1.0)
    >>> master.probabilities.round(3)
    array([0.461, 0.539])
    """

    id: ClassVar[str] = "exp3-s"
    source: ClassVar[str] = "Auer, Cesa-Bianchi, Freund, Schapire 2002, constants recalled"

    def __init__(
        self, n_arms: int, n_rounds: int, *, changes: int = 1, quiet: bool = False
    ) -> None:
        from windage.kernels.masters import SHARED

        super().__init__(n_arms, n_rounds)
        self.changes = as_integer(changes, "changes", low=0, high=LAST_TIME)
        self._mix(lambda n: shared_mixing(self.n_arms, n, self.changes), quiet)
        self.alpha, self.beta = self.gamma / self.n_arms, 0.0
        self.share = math.e / (self.n_arms * self.n_rounds)
        self._start(SHARED, share=self.share)
