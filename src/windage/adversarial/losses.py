"""Masters that count losses, 1 - reward, and need no exploration by force.

So none of them has a gamma that can pass 1: they learn where EXP3.P plays all arms alike.
"""

from __future__ import annotations

import math
from typing import ClassVar

from windage.adversarial.base import Master

__all__ = ["Exp3IX", "TsallisINF"]


class Exp3IX(Master):
    """EXP3-IX: implicit exploration, p = softmax(-eta L) with L_k += loss / (p_k + eta / 2).

    Parameters
    ----------
    n_arms, n_rounds
        As for every `Master`.

    Examples
    --------
    >>> master = Exp3IX(n_arms=2, n_rounds=1000)
    >>> master.update(master.choose(0.7), reward=0.0)
    >>> master.probabilities.round(3)
    array([0.513, 0.487])
    """

    id: ClassVar[str] = "exp3-ix"
    mixes: ClassVar[bool] = False
    source: ClassVar[str] = "Neu 2015, constants recalled"

    def __init__(self, n_arms: int, n_rounds: int) -> None:
        from windage.kernels.masters import LOSSES

        super().__init__(n_arms, n_rounds)
        self.alpha = math.sqrt(2.0 * math.log(self.n_arms) / (self.n_arms * self.n_rounds))
        self.beta, self.gamma, self.raw_gamma = self.alpha / 2.0, 0.0, 0.0
        self._start(LOSSES)


class TsallisINF(Master):
    """Tsallis-INF: the regulariser -4 sum sqrt(p_k), good with and without an adversary.

    p_k = 4 / (eta_t (L_k - x))^2 with the x for which they sum to 1, found by Newton's method,
    eta_t = 2 / sqrt(t), and L_k += loss / p_k for the arm played. It does not depend on n and may
    go on for ever.

    Parameters
    ----------
    n_arms, n_rounds
        As for every `Master`.

    Examples
    --------
    >>> master = TsallisINF(n_arms=2, n_rounds=1000)
    >>> master.update(master.choose(0.7), reward=0.0)
    >>> master.probabilities.round(3)
    array([0.841, 0.159])
    """

    id: ClassVar[str] = "tsallis-inf"
    mixes: ClassVar[bool] = False
    anytime: ClassVar[bool] = True
    source: ClassVar[str] = "Zimmert, Seldin 2021, constants recalled"

    def __init__(self, n_arms: int, n_rounds: int) -> None:
        from windage.kernels.masters import TSALLIS

        super().__init__(n_arms, n_rounds)
        self.alpha, self.beta, self.gamma, self.raw_gamma = 2.0, 0.0, 0.0, 0.0
        self._start(TSALLIS)
