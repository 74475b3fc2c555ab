"""What all masters share: probabilities over arms, a choice, an update, and a state to save.

A master chooses among arms whose rewards an adversary may have set. The arithmetic is in
`windage.kernels.masters`; a subclass gives it the constants of one algorithm.
"""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.confidence.search import first_integer
from windage.errors import GuaranteeWarning, HorizonReached, InputError, NotConverged, StateError
from windage.validation import LAST_TIME, as_integer, as_real, require_memory

if TYPE_CHECKING:
    from windage.kernels.masters import Bank

__all__ = ["Master", "make_bank", "too_mixed"]

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
        in their own words. Masters without a gamma have nothing to say, and no such argument.
    """

    id: ClassVar[str]
    anytime: ClassVar[bool] = False
    """Whether it may go on after n rounds."""
    source: ClassVar[str] = ""

    mixes: ClassVar[bool] = True
    """Whether it has a gamma that few rounds can drive above 1; if not, it has nothing to say."""

    said: str = ""
    """What there is to say of its guarantee: that gamma was cut at 1, or that it promises nothing.
    """
    enough: int = 1
    """From how many rounds on there would be nothing to say, with as many arms."""
    alpha: float
    """The learning rate."""
    beta: float
    """What is added for all arms (EXP3.P) or to the probabilities (EXP3-IX)."""
    gamma: float
    """How much of the probability is spread over all arms."""
    raw_gamma: float
    """gamma as its formula gives it, before it is cut at 1."""

    def __init__(self, n_arms: int, n_rounds: int) -> None:
        self.n_arms = as_integer(n_arms, "n_arms", low=1, high=LAST_TIME)
        self.n_rounds = as_integer(n_rounds, "n_rounds", low=1, high=LAST_TIME)
        require_memory(32.0 * self.n_arms, "n_arms", fix="choose among fewer arms")

    def _start(self, form: int, *, share: float = 0.0) -> None:
        """Lay out the arrays once the constants are known."""
        self._bank = make_bank(
            form, [self.n_arms], alpha=self.alpha, beta=self.beta, gamma=self.gamma, share=share
        )

    def _mix(self, raw: Callable[[int], float], quiet: bool) -> None:
        """Take gamma from a formula that falls with n, and say so if it is cut at 1 (E4)."""
        self.raw_gamma = raw(self.n_rounds)
        self.gamma = min(1.0, self.raw_gamma)
        if self.raw_gamma > 1.0:
            self._say(too_mixed(self.id, self.n_arms, self.n_rounds, self.raw_gamma), raw, quiet)

    def _say(self, words: str, raw: Callable[[int], float], quiet: bool) -> None:
        """Say that a guarantee is lost as long as a number that falls with n is above 1."""
        self.said, self.enough = words, first_integer(lambda n: raw(n) <= 1.0)
        if not quiet:
            text = f"{words}. With as many arms it takes {self.enough} rounds"
            warnings.warn(text, GuaranteeWarning, stacklevel=4)

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
        from windage.kernels.masters import pick

        return int(pick(self._bank, 0, as_real(u, "u", low=0.0, high=1.0, open_high=True)))

    def update(self, arm: int, reward: float) -> None:
        """Learn that `arm` was played and gave `reward`, in [0, 1]."""
        from windage.kernels.masters import update

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
        self._require(update(self._bank, 0, k, x))

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
        from windage.kernels.masters import SHARED, refresh

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
        self._require(refresh(self._bank, 0))

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
    from windage.kernels.masters import Bank, reset

    counts = np.asarray(arms, np.int64)
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
        reset(bank, i)
    return bank


def too_mixed(name: str, n_arms: int, n_rounds: int, gamma: float) -> str:
    """Return what to say of a gamma above 1 (E4)."""
    return (
        f"{name}: gamma = {gamma:.3g} > 1 with {n_arms} arms and {n_rounds} rounds; it is taken as "
        "1, which plays all arms alike and learns nothing, and the bound says nothing"
    )


def _damaged(problem: str) -> StateError:
    return StateError(problem, field="master", fix="restore it from another copy")
