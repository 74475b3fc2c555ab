"""Adversarial bandits by id: `windage.adversarial.make("exp3p", n_arms, n_rounds)`."""

from __future__ import annotations

from typing import Any

from windage.adversarial.base import Master
from windage.adversarial.exp3 import Exp3, Exp3S
from windage.adversarial.exp3p import Exp3P
from windage.adversarial.losses import Exp3IX, TsallisINF
from windage.errors import InputError
from windage.validation import as_choice

__all__ = ["Exp3", "Exp3IX", "Exp3P", "Exp3S", "Master", "TsallisINF", "make", "names"]

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
    more: dict[str, Any] = {"quiet": quiet} if kind.mixes else {}
    if changes is not None:
        if kind is not Exp3S:
            raise InputError(
                f"{id!r} does not take it", field="changes", fix="leave it out, or use 'exp3-s'"
            )
        more["changes"] = changes
    made: Master = kind(n_arms, n_rounds, **more)
    return made
