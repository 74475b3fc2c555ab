"""What all masters share: probabilities over arms, a choice, an update, and a state to save.

A master chooses among arms whose rewards an adversary may have set. The arithmetic is in
`windage.kernels.exp3`; a subclass gives it the constants of one algorithm.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.confidence.tuning import first_integer
from windage.errors import (
    GuaranteeWarning,
    HorizonReached,
    InputError,
    NotConverged,
    StateError,
    warn,
)
from windage.validation import (
    LAST_TIME,
    as_choice,
    as_integer,
    as_integers,
    as_real,
    require_memory,
)

if TYPE_CHECKING:
    from windage.kernels.exp3 import Bank

__all__ = [
    "Exp3",
    "Exp3IX",
    "Exp3P",
    "Exp3S",
    "Master",
    "TsallisINF",
    "make",
    "make_bank",
    "mixing",
    "names",
    "shared_mixing",
    "too_mixed",
]

_LEAST = 1e-200  # what is divided by less would not stay finite
_SAVED = ("scores", "lost", "rounds")


class Master(ABC):
    """A bandit algorithm for rewards in [0, 1] that need not follow any law.

    Parameters
    ----------
    n_arms
        K.
    n_rounds
        n, how often it will choose; its constants are tuned to it.
    quiet
        Whether to be silent about a guarantee that says nothing here: for callers that tell it
        in their own words.
    """

    id: ClassVar[str]
    _tiers: ClassVar[dict[str, Any]] = {}  # by kernel: all masters have the same types
    anytime: ClassVar[bool] = False
    """Whether it may go on after n rounds."""
    source: ClassVar[str] = ""

    said: str = ""
    """What there is to say of its guarantee: that gamma was cut at 1, or that it promises nothing.
    """
    enough: int = 1
    """From how many rounds on there would be nothing to say, with as many arms."""
    form: ClassVar[str]
    """The rule of `windage.kernels.exp3` by which its probabilities follow from its scores."""
    alpha: float
    """The learning rate."""
    beta: float = 0.0
    """What is added for all arms (EXP3.P) or to the probabilities (EXP3-IX)."""
    gamma: float = 0.0
    """How much of the probability is spread over all arms."""
    raw_gamma: float = 0.0
    """gamma as its formula gives it, before it is cut at 1."""
    share: float = 0.0
    """What part of all weight every arm is given each round (EXP3.S)."""

    def __init__(self, n_arms: int, n_rounds: int, *, quiet: bool = False) -> None:
        from windage.kernels import exp3

        self.n_arms = as_integer(n_arms, "n_arms", low=1, high=LAST_TIME)
        self.n_rounds = as_integer(n_rounds, "n_rounds", low=1, high=LAST_TIME)
        require_memory(32.0 * self.n_arms, "n_arms", fix="choose among fewer arms")
        self._quiet = quiet
        self._tune(self.n_arms, self.n_rounds)
        self._bank = make_bank(
            getattr(exp3, self.form),
            [self.n_arms],
            alpha=self.alpha,
            beta=self.beta,
            gamma=self.gamma,
            share=self.share,
        )

    @abstractmethod
    def _tune(self, K: int, n: int) -> None:
        """Find the constants for K arms and n rounds."""

    def _mix(self, raw: Callable[[int], float]) -> None:
        """Take gamma from a formula that falls with n, and say so if it is cut at 1 (E4)."""
        self.raw_gamma = raw(self.n_rounds)
        self.gamma = min(1.0, self.raw_gamma)
        if self.raw_gamma > 1.0:
            self._say(too_mixed(self.id, self.n_arms, self.n_rounds, self.raw_gamma), raw)

    def _say(self, words: str, raw: Callable[[int], float]) -> None:
        """Say that a guarantee is lost as long as a number that falls with n is above 1."""
        self.said, self.enough = words, first_integer(lambda n: raw(n) <= 1.0)
        if not self._quiet:
            warn(f"{words}. With as many arms it takes {self.enough} rounds", GuaranteeWarning)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each arm is to be chosen now."""
        return self._bank.probabilities.copy()

    @property
    def rounds(self) -> int:
        """How many rewards it has learned from."""
        return int(self._bank.rounds[0])

    def choose(self, u: float) -> int:
        """Return the arm whose part of [0, 1) holds `u`: a uniform draw makes a random choice."""
        return int(self._call("pick", as_real(u, "u", low=0.0, high=1.0, open_high=True)))

    def update(self, arm: int, reward: float) -> None:
        """Learn that `arm` was played and gave `reward`, in [0, 1]."""
        k = as_integer(arm, "arm", low=0, high=self.n_arms - 1)
        x = as_real(reward, "reward", low=0.0, high=1.0)
        if not self.anytime and self.rounds >= self.n_rounds:
            raise HorizonReached(
                f"all {self.n_rounds} rounds have been played",
                field="update",
                fix="make a master for more rounds",
            )
        if self._bank.probabilities[k] + self.beta < _LEAST:
            raise InputError(
                f"has probability {self._bank.probabilities[k]:g}: nobody can have drawn it",
                field="arm",
                where=str(k),
                fix="pass the arm that choose returned",
            )
        self._require(self._call("update", k, x))

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a kernel of `windage.kernels.exp3`, interpreted while that is cheaper."""
        from windage.kernels import exp3
        from windage.kernels.jit import Tier

        if name not in self._tiers:
            self._tiers[name] = Tier(getattr(exp3, name), (self._bank, 0, *arguments))
        return self._tiers[name](self._bank, 0, *arguments)

    def _require(self, solved: bool) -> None:
        if not solved:
            raise NotConverged(
                f"no probabilities found for {self.n_arms} arms in round {self.rounds}: they sum "
                f"to {self._bank.probabilities.sum()!r}",
                field=self.id,
                fix="report the scores: " + repr(self._bank.scores[:8].tolist()),
            )

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return all that must survive, as arrays."""
        return {name: getattr(self._bank, name).copy() for name in _SAVED}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `saved` gave, from a master made with the same arguments."""
        from windage.kernels.exp3 import SHARED

        new = {}
        for name in _SAVED:
            mine, found = getattr(self._bank, name), arrays.get(name)
            like = isinstance(found, np.ndarray) and found.dtype == mine.dtype
            if found is None or not like or found.shape != mine.shape:
                raise _damaged(f"no array {name!r} of {mine.dtype} {mine.shape}")
            if not np.isfinite(found).all():
                raise _damaged(f"{name!r} is not finite")
            new[name] = found
        if not 0 <= new["rounds"][0] <= (LAST_TIME if self.anytime else self.n_rounds):
            raise _damaged(f"it holds {new['rounds'][0]} rounds of {self.n_rounds}")
        if self._bank.form == SHARED and not (new["scores"] > 0.0).all():
            raise _damaged("a weight is not positive")
        for name, found in new.items():
            getattr(self._bank, name)[:] = found
        self._require(self._call("refresh"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_arms={self.n_arms}, n_rounds={self.n_rounds})"


def make_bank(
    form: int,
    arms: ArrayLike,
    *,
    alpha: ArrayLike,
    beta: ArrayLike = 0.0,
    gamma: ArrayLike = 0.0,
    share: ArrayLike = 0.0,
) -> Bank:
    """Return bandits side by side, with so many arms and such constants each."""
    from windage.kernels import exp3
    from windage.kernels.exp3 import Bank, reset
    from windage.kernels.jit import call

    counts = as_integers(arms, "arms", low=1, high=LAST_TIME)
    as_integer(form, "form", low=0, high=exp3.TSALLIS)
    require_memory(32.0 * float(counts.sum(dtype=np.float64)), "arms", fix="pass fewer arms")
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    bank = Bank(
        form=form,
        offsets=offsets,
        alpha=np.full(counts.size, alpha, np.float64),
        beta=np.full(counts.size, beta, np.float64),
        gamma=np.full(counts.size, gamma, np.float64),
        share=np.full(counts.size, share, np.float64),
        rounds=np.zeros(counts.size, np.int64),
        scores=np.zeros(offsets[-1]),
        lost=np.zeros(offsets[-1]),
        probabilities=np.zeros(offsets[-1]),
    )
    for i in range(counts.size):
        call(reset, bank, i, seconds=1e-5 * int(counts[i]))
    return bank


def too_mixed(name: str, n_arms: int, n_rounds: int, gamma: float) -> str:
    """Return what to say of a gamma above 1 (E4)."""
    return (
        f"{name}: gamma = {gamma:.3g} > 1 with {n_arms} arms and {n_rounds} rounds; it is taken as "
        "1, which plays all arms alike and learns nothing, and the bound says nothing"
    )


def _damaged(problem: str) -> StateError:
    return StateError(problem, field="master", fix="restore it from another copy")


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

    form: ClassVar[str] = "GAINS"

    def _tune(self, K: int, n: int) -> None:
        del n
        self._mix(lambda n: mixing(K, n))
        self.alpha = self.gamma / K


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

    form: ClassVar[str] = "SHARED"

    def __init__(
        self, n_arms: int, n_rounds: int, *, changes: int = 1, quiet: bool = False
    ) -> None:
        self.changes = as_integer(changes, "changes", low=0, high=LAST_TIME)
        super().__init__(n_arms, n_rounds, quiet=quiet)

    def _tune(self, K: int, n: int) -> None:
        self._mix(lambda n: shared_mixing(K, n, self.changes))
        self.alpha, self.share = self.gamma / K, math.e / (K * n)


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

    form: ClassVar[str] = "GAINS"

    def _tune(self, K: int, n: int) -> None:
        self.beta = math.sqrt(math.log(K) / (K * n))
        self.alpha = 0.95 * self.beta
        self._mix(lambda n: 1.05 * math.sqrt(K * math.log(K) / n))
        bound = self.regret_bound
        if bound >= n and not self.said:
            words = (
                f"{self.id}: its bound says that {n} rounds lose {bound:.3g} at most, and they can "
                f"lose no more than {n} anyway"
            )
            self._say(words, lambda n: 0.0 if self._bound(n) < n else math.inf)

    @property
    def regret_bound(self) -> float:
        """What it can lose in n rounds to the best arm, in expectation; 0 for a single arm."""
        return self._bound(self.n_rounds)

    def _bound(self, n: int) -> float:
        K = self.n_arms
        if K == 1:
            return 0.0
        return 5.15 * math.sqrt(n * K * math.log(K)) + math.sqrt(n * K / math.log(K))


class Exp3IX(Master):
    """EXP3-IX: implicit exploration, p = softmax(-eta L) with L_k += loss / (p_k + eta / 2).

    Parameters
    ----------
    n_arms, n_rounds, quiet
        As for every `Master`.

    Examples
    --------
    >>> master = Exp3IX(n_arms=2, n_rounds=1000)
    >>> master.update(master.choose(0.7), reward=0.0)
    >>> master.probabilities.round(3)
    array([0.513, 0.487])
    """

    id: ClassVar[str] = "exp3-ix"
    source: ClassVar[str] = "Neu 2015, constants recalled"
    form: ClassVar[str] = "LOSSES"

    def _tune(self, K: int, n: int) -> None:
        self.alpha = math.sqrt(2.0 * math.log(K) / (K * n))
        self.beta = self.alpha / 2.0


class TsallisINF(Master):
    """Tsallis-INF: the regulariser -4 sum sqrt(p_k), good with and without an adversary.

    p_k = 4 / (eta_t (L_k - x))^2 with the x for which they sum to 1, found by Newton's method,
    eta_t = 2 / sqrt(t), and L_k += loss / p_k for the arm played. It does not depend on n and may
    go on for ever.

    Parameters
    ----------
    n_arms, n_rounds, quiet
        As for every `Master`.

    Examples
    --------
    >>> master = TsallisINF(n_arms=2, n_rounds=1000)
    >>> master.update(master.choose(0.7), reward=0.0)
    >>> master.probabilities.round(3)
    array([0.841, 0.159])
    """

    id: ClassVar[str] = "tsallis-inf"
    anytime: ClassVar[bool] = True
    source: ClassVar[str] = "Zimmert, Seldin 2021, constants recalled"

    form: ClassVar[str] = "TSALLIS"

    def _tune(self, K: int, n: int) -> None:
        del K, n
        self.alpha = 2.0


_BY_ID: dict[str, type[Any]] = {kind.id: kind for kind in (Exp3P, Exp3, Exp3S, Exp3IX, TsallisINF)}


def names() -> list[str]:
    """Return the ids of all masters.

    >>> names()
    ['exp3', 'exp3-ix', 'exp3-s', 'exp3p', 'tsallis-inf']
    """
    return sorted(_BY_ID)


def make(
    id: str,  # noqa: A002
    n_arms: int,
    n_rounds: int,
    *,
    quiet: bool = False,
    changes: int | None = None,
) -> Master:
    """Return the master with this id; only "exp3-s" takes a number of `changes`.

    >>> make("tsallis-inf", 3, 100)
    TsallisINF(n_arms=3, n_rounds=100)
    """
    kind = _BY_ID[as_choice(id, "master", names())]
    more = {}
    if changes is not None:
        if kind is not Exp3S:
            raise InputError(
                f"{id!r} does not take it", field="changes", fix="leave it out, or use 'exp3-s'"
            )
        more["changes"] = changes
    made: Master = kind(n_arms, n_rounds, quiet=quiet, **more)
    return made
