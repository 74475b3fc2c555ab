"""The formulas of all radii, as the rows (a, b, c) that `kernels.confidence` reads.

With L = ln(SAT/delta), M = ln(2 SA T^2/delta), N = max(1, n), and A the mean number of actions:

             rewards                                       transitions, L1
    paper    2 sqrt(2 L / N)                               2 sqrt(2 S L / N)
    proof    2 sqrt(M / N)                                 2 sqrt((S ln 2 + M) / N)
    laplace  sqrt(2 (1 + 1/N) (ln 2 + L + l) / N)          sqrt(2 (1 + 1/N) (S ln 2 + L + l) / N)
    ucrl2    sqrt(7 ln(2 SA t/delta) / (2 N))              sqrt(14 S ln(2 A t/delta) / N)
    varying  sqrt(8 ln(8 SA t^3/delta) / N)                sqrt(8 S ln(8 SA t^3/delta) / N)
    bernstein  2 sqrt(v b / N) + 6 b / N                   the same for every entry, v = p (1 - p)

where l = ln(N + 1) / 2 and b = ln(6 SA N/delta). The first is the text of the paper. The second is
what its proof needs (E13), the third a bound that holds at all N at once: both serve the same lemma
and theorem. The others belong to UCRL2, to variation-aware UCRL (Ortner, Gajane, Auer 2019) and to
UCRL2B, whose lemmas are about models that do not drift or whose drift is added to the radii; the
constants of the last two are recalled, not copied from their papers. Rewards are 1-sub-Gaussian
(E14); for rewards in [0, 1] the reward radii of `proof` and `laplace` are half as wide (`bounded`).
"""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext

__all__ = ["formula"]

_DIGITS = 60  # the logarithms are rounded once, when the rule is stored


@functools.lru_cache(256)  # sixty digits take their time, and agents are made again and again
def formula(
    kind: str, bounded: bool, S: int, pairs: int, T: int, delta: Decimal
) -> tuple[tuple[Decimal, ...], tuple[Decimal, ...]]:
    """Return (a, b, c) of rewards and of transitions; logarithms, for 2^S may be no float."""
    zero, one = Decimal(0), Decimal(1)
    with localcontext() as context:
        context.prec = _DIGITS
        ln2 = Decimal(2).ln()
        if kind == "paper":
            L = (pairs * T / delta).ln()
            return (8 * L, zero, zero), (8 * S * L, zero, zero)
        if kind == "proof":
            M = (2 * pairs * T * T / delta).ln()
            return (M if bounded else 4 * M, zero, zero), (4 * (S * ln2 + M), zero, zero)
        if kind == "laplace":
            L = (pairs * T / delta).ln()
            share = one / 4 if bounded else one  # variance of rewards, over that of unit noise
            return (2 * share * (ln2 + L), share, zero), (2 * (S * ln2 + L), one, zero)
        if kind == "varying":
            V = 8 * (8 * pairs / delta).ln()
            return (V, zero, 24 * one), (S * V, zero, 24 * S * one)
        if kind == "bernstein":
            b = (6 * pairs / delta).ln()
            return (b, zero, zero), (b, zero, zero)
        of_reward, of_transition = (2 * pairs / delta).ln(), (2 * pairs / (S * delta)).ln()
        half = Decimal(7) / 2
        return (half * of_reward, zero, half), (14 * S * of_transition, zero, 14 * S * one)
