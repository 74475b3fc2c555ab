"""Prior knowledge of agents: variation budgets, and the parameters tuned from them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from windage.confidence import tuning
from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.validation import as_choice

__all__ = ["Budgets", "KnownBudgets", "chosen", "is_left_open", "tunings"]


class Budgets(Protocol):
    """How much a model changes in all: B_r and B_p, as `drifting.budgets()` returns them."""

    @property
    def reward(self) -> float:
        """B_r."""
        ...

    @property
    def transition(self) -> float:
        """B_p."""
        ...


class KnownBudgets(NamedTuple):
    """B_r and B_p as two numbers."""

    reward: float
    transition: float


def is_left_open(value: object) -> bool:
    """Whether a parameter is to be found from what is known: it is not given, or "tuned".

    >>> is_left_open(None), is_left_open("tuned"), is_left_open("oblivious"), is_left_open(200)
    (True, True, False, False)
    """
    return value is None or (isinstance(value, str) and value == "tuned")


def tunings(space: StateActions, horizon: int, budgets: Budgets | None) -> dict[str, tuning.Tuning]:
    """Return W and eta under each word that has a meaning here."""
    best = {"oblivious": tuning.oblivious(as_space(space), horizon)}
    if budgets is not None:
        given = space, horizon, budgets.reward, budgets.transition
        best["tuned"] = tuning.Tuning(
            tuning.optimal_window(*given), tuning.optimal_widening(*given)
        )
        if space.n_states == 1:  # the theorem does not speak of bandits, a remark does
            best["tuned"] = tuning.bandit(space, horizon, budgets.reward)
    return best


def chosen(word: str | None, field: str, best: dict[str, tuning.Tuning]) -> tuning.Tuning:
    """Return the tuning a word stands for; nothing said is "tuned" if that has a meaning."""
    if word is None:
        word = "tuned" if "tuned" in best else "oblivious"
    if word == "tuned" and "tuned" not in best:
        raise InputError(
            'is "tuned", and there are no budgets',
            field=field,
            fix='pass budgets=model.budgets(), or "oblivious"',
        )
    return best[as_choice(word, field, best)]
