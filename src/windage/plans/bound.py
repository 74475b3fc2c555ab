"""Theorem 1's bound, term by term, and the horizon from which it is below T.

The theorem is an order: constants and logarithms are left out here, every constant is 1. So the
numbers say which term rules and how T, S and the budgets act, not what will be lost. `noise_from`
is the exception: its one term has the constants and the logarithm of the proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from windage.confidence.search import first_integer
from windage.confidence.tuning import window_of

__all__ = ["Bound", "regret_bound", "theorem_1_terms"]

FORMULAS = {
    "bad_windows": "B_p W / eta",
    "reward_drift": "B_r W",
    "reward_noise": "(SA)^(1/2) T / W^(1/2)",
    "transition_drift": "D B_p W",
    "transition_noise": "D S A^(1/2) T / W^(1/2)",
    "widening": "D T eta",
    "episodes": "D SA T / W",
    "chance": "D T^(1/2)",
}


class Bound(NamedTuple):
    """Theorem 1 at one horizon.

    Attributes
    ----------
    terms
        The eight terms, constants 1, logarithms left out.
    total
        Their sum.
    diameter
        The D in it.
    below_from
        The T from which the sum at (W*, eta*) is below T, the budgets staying as they are.
    noise_from
        The T from which the noise of transitions alone, 4 D rad_p summed over all steps with the
        constants and the logarithm of the proof, is below T; None for one state.
    """

    terms: dict[str, float]
    total: float
    diameter: float
    below_from: int
    noise_from: int | None


class Setting(NamedTuple):
    """What the bound depends on besides T, W and eta."""

    S: int
    A: float
    Br: float
    Bp: float
    D: float


def theorem_1_terms(setting: Setting, T: float, W: float, eta: float) -> dict[str, float]:
    """Return the terms of Theorem 1; eta = 0 is for models whose transitions do not drift.

    >>> terms = theorem_1_terms(Setting(1, 4, 1, 0, 0), T=1000, W=100, eta=0)
    >>> terms["reward_drift"], terms["reward_noise"], terms["transition_noise"]
    (100.0, 200.0, 0.0)
    """
    S, A, Br, Bp, D = map(float, setting)
    return {
        "bad_windows": Bp * W / eta if Bp > 0 else 0.0,
        "reward_drift": Br * W,
        "reward_noise": math.sqrt(S * A / W) * T,
        "transition_drift": D * Bp * W,
        "transition_noise": D * S * math.sqrt(A / W) * T,
        "widening": D * T * eta,
        "episodes": D * S * A * T / W,
        "chance": D * math.sqrt(T),
    }


def regret_bound(setting: Setting, T: int, W: int, eta: float, delta: float) -> Bound:
    """Return the bound at this T, W and eta, and where it starts to say something."""
    terms = theorem_1_terms(setting, T, W, eta)
    noise = None if setting.S == 1 else first_integer(lambda n: _noise(setting, n, delta) < n)
    return Bound(
        terms,
        math.fsum(terms.values()),
        setting.D,
        first_integer(lambda n: _tuned(setting, n) < n),
        noise,
    )


def _tuned(setting: Setting, T: int) -> float:
    """Return the sum at the tuning of this T, which falls below T once and for all."""
    S, A, Br, Bp, _ = setting
    if S == 1:
        W, eta = (math.cbrt(A) * math.cbrt(T / Br) ** 2 if Br > 0 else float(T)), 0.0
    else:
        W = window_of(S, A, T, Br + Bp)
        eta = math.sqrt((Bp + 1) * W / T)
    return math.fsum(theorem_1_terms(setting, T, W, eta).values())


def _noise(setting: Setting, T: int, delta: float) -> float:
    """Return 4 D sum rad_p, by sum over a block of N^(-1/2) <= (2^(1/2) + 2) (SAW)^(1/2)."""
    S, A, Br, Bp, D = setting
    W = window_of(S, A, T, Br + Bp)
    visits = (math.sqrt(2) + 2) * math.sqrt(S * A * W) * (T / W + 1)
    return 4 * D * 2 * math.sqrt(2 * S * (math.log(S * A * T) - math.log(delta))) * visits
