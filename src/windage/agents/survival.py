"""What of an optimistic learner survives a restart, and what a saved one cannot be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.episodes import REASONS
from windage.confidence.evi import SWEEPS
from windage.confidence.window import Window
from windage.errors import StateError
from windage.validation import as_integer, as_real

if TYPE_CHECKING:
    from windage.kernels.rules import Learner

__all__ = ["require_possible", "survivors"]

_SETS = ("lift", "eta", "visits", "mean", "left", "saturated")
_LOOKS = ("best", "tied", "met", "pair")
_PAIRS = ("reward", "half", "root", "rest", "value")


def survivors(learner: Learner) -> dict[str, NDArray[Any]]:
    """Return the arrays, beside the window's, that must survive a restart."""
    spread = {"sets.spread": learner.sets["spread"]} if learner.rules.boxes else {}
    return spread | {
        "now": learner.now,
        "plan.u": learner.plan.u,
        **{f"pairs.{name}": learner.plan.pairs[name] for name in _PAIRS},
        **{f"sets.{name}": learner.sets[name] for name in _SETS},
        **{f"states.{name}": learner.looks[name] for name in _LOOKS},
    }


def _limits(learner: Learner, window: Window, tau: int) -> list[tuple[int, int]]:
    """Return when an episode that started at tau may have to end, and why.

    A restart may have passed in the counts and not yet in the episodes, when planning failed.
    """
    from windage.kernels.memory import NEVER
    from windage.kernels.rules import BOUNDARY, LENGTH, NEXT, RESTART

    rules, following = learner.rules, int(learner.now[NEXT])
    restarts = window.restarts[window.restarts > tau][:1].tolist() or [int(NEVER)]
    found = [(t, RESTART) for t in restarts]
    if rules.period > 0:
        found.append((tau + rules.period - (tau - rules.phase) % rules.period, BOUNDARY))
    if rules.grows and tau + 1 < following <= 2 * tau + 1:
        found.append((following, LENGTH))
    return found


def require_possible(
    learner: Learner, window: Window, t: int, samples: int, episode: tuple[Any, ...]
) -> None:
    """Refuse a restored learner that no run could have led to.

    `samples` were taken in before time t; `episode` is the row of the current one.
    """
    space, sets, looks = window.space, learner.sets, learner.looks
    number, tau, following, reason_due, planned, full, saturated, tied, cause = learner.now.tolist()
    start, length, reason, sweeps, ties, gain, span, vacuous = episode
    states = np.arange(space.n_states)
    pair = np.clip(looks["pair"], 0, space.n_pairs - 1)
    home = (looks["pair"] == pair) & (space.state_of[pair] == states)
    kept = survivors(learner) | window.saved()
    value = kept.pop("pairs.value")  # minus infinity where a pair was left out
    numbers = kept.values()
    checks = {
        "samples": int(window.memory.clock[0]) == samples,
        "episode": 0 <= number <= t and (tau > 0) == (number > 0),
        "start": 0 <= tau <= t and start == tau,
        "limit": (following, cause) in _limits(learner, window, tau) or number == 0,
        "due": 0 <= reason_due < len(REASONS) and (reason_due == 1) == (number == 0),
        "planned": planned in (0, 1),
        "full": full == (looks["best"] == 1.0).sum(),
        "saturated": saturated == sets["saturated"].sum()
        and bool(np.isin(sets["saturated"], (0, 1)).all()),
        "tied": tied == looks["tied"].sum(),
        "widening": bool((sets["lift"] >= 0.0).all() and (sets["eta"] >= 0.0).all()),
        "met": bool(((looks["met"] >= 0) & (looks["met"] <= number)).all()),
        "policy": bool(home[looks["met"] > 0].all()),
        "visits": bool(((sets["visits"] >= 0) & (sets["visits"] <= samples)).all())
        and bool((sets["left"] <= np.maximum(sets["visits"], 1)).all()),
        "numbers": all(np.isfinite(array).all() for array in numbers)
        and not bool((np.isnan(value) | (value == math.inf)).any()),
        "log": length == reason == 0
        and 0 <= as_integer(sweeps, "sweeps") <= SWEEPS
        and 0 <= as_integer(ties, "ties") <= states.size
        and 0.0 <= as_real(vacuous, "vacuous") <= 1.0
        and as_real(span, "span") >= 0.0
        and math.isfinite(as_real(gain, "gain")),
    }
    wrong = ", ".join(name for name, holds in checks.items() if not holds)
    if wrong:
        raise StateError(
            f"the saved values are impossible ({wrong})",
            field="state",
            fix="restore the agent from another copy",
        )
