"""Tuning: the window and the widening that the paper's theorem and remarks ask for.

All functions return real numbers; `as_window` and `as_widening` make of them what an agent can use
(E6, E7). S is the number of states, A = SA / S the mean number of actions (E32), B = B_r + B_p.

BORL's blocks, arms and gamma, and the horizon from which it can adapt.

EXP3.P mixes its choice of an arm with a uniform one: gamma = 1.05 (K ln K / n)^(1/2) of it is
uniform, for K arms and n blocks. Where gamma >= 1 all of it is, and BORL learns nothing (E4).

The number of arms is constant between the T at which floor(ln H) or floor(ln 1/Phi) changes, so
gamma <= 1 asks there for a least number of blocks m. With blocks of h steps there are m of them
from T = (m - 1) h + 1 on. As h = ceil(c T^(1/2)) grows with T, only a handful of h near (m - 1) c^2
decide; they are looked at one by one. So the answers are exact though gamma is not monotone in T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple, Protocol

from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.validation import as_choice, as_horizon, as_real

__all__ = [
    "Blocks",
    "Budgets",
    "Grid",
    "KnownBudgets",
    "Tuning",
    "as_widening",
    "as_window",
    "bandit",
    "borl_blocks",
    "borl_grid",
    "checked",
    "chosen",
    "exploration",
    "first_integer",
    "horizons_to_adapt",
    "is_left_open",
    "knowing_diameter",
    "oblivious",
    "optimal_widening",
    "optimal_window",
    "sharper",
    "tunings",
    "window_of",
]

_MOST_WIDENING = 2.0  # the L1 diameter of the simplex
_ROUNDING = 1 + 1e-9  # sums of T steps are rounded


class Tuning(NamedTuple):
    """A window and a widening, before rounding and capping.

    Attributes
    ----------
    window, widening
        W and eta as real numbers.
    in_force
        Whether T is large enough for the bound that the tuning is named for.
    """

    window: float
    widening: float
    in_force: bool = True


class Grid(NamedTuple):
    """What BORL chooses from (paper, section 5 and its appendix; E2, E3, E5).

    Attributes
    ----------
    length
        H, a real number.
    block_length, blocks
        The steps of a block and the number of blocks.
    windows, widenings
        The two sides of the grid; an arm is a pair of them.
    """

    length: float
    block_length: int
    blocks: int
    windows: tuple[int, ...]
    widenings: tuple[float, ...]

    @property
    def arms(self) -> int:
        """The number of arms, duplicates included."""
        return len(self.windows) * len(self.widenings)


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


def optimal_window(space: StateActions, T: int, Br: float, Bp: float) -> float:
    """Return W* of Theorem 1, 3 S^(2/3) A^(1/2) T^(1/2) / (B + 1)^(1/2): may exceed T (E6).

    >>> space = StateActions.uniform(states=10, actions=4)
    >>> print(f"{optimal_window(space, 100_000, 1.0, 1.0):.3f}")
    5084.606
    """
    S, A, T, Br, Bp = checked(space, T, Br, Bp)
    return window_of(S, A, T, Br + Bp)


def optimal_widening(space: StateActions, T: int, Br: float, Bp: float) -> float:
    """Return eta* of Theorem 1, ((B_p + 1) W* / T)^(1/2) with the real W*: may exceed 2 (E7).

    >>> space = StateActions.uniform(states=10, actions=4)
    >>> print(f"{optimal_widening(space, 100_000, 1.0, 1.0):.4f}")
    0.3189
    """
    S, A, T, Br, Bp = checked(space, T, Br, Bp)
    return math.sqrt((Bp + 1) * window_of(S, A, T, Br + Bp) / T)


def oblivious(space: StateActions, T: int) -> Tuning:
    """Return the tuning without budgets (remark after Theorem 1): W, and eta = (W / T)^(1/2) (E19).

    >>> print(f"{oblivious(StateActions.uniform(states=6, actions=2), 100_000).widening:.4f}")
    0.1215
    """
    S, A, T, _, _ = checked(space, T, 0.0, 0.0)
    window = math.cbrt(S) ** 2 * math.sqrt(A * T)
    return Tuning(window, math.sqrt(window / T))


def slack(space: StateActions, T: int, Br: float = 0.0, Bp: float = 0.0) -> float:
    """Return how much worse than the best an action may be without a larger order of regret (I2).

    That is S^(2/3) A^(1/2) ((B + 1) / T)^(1/4); for one state the larger of (A B_r / T)^(1/3) and
    (A / T)^(1/2).

    >>> print(f"{slack(StateActions.uniform(states=2, actions=2), 5000, 3.2, 3.2):.3f}")
    0.440
    """
    S, A, T, Br, Bp = checked(space, T, Br, Bp)
    if S == 1:
        return max(math.cbrt(A * Br / T), math.sqrt(A / T))
    return math.cbrt(S) ** 2 * math.sqrt(A) * math.sqrt(math.sqrt((Br + Bp + 1) / T))


def bandit(space: StateActions, T: int, Br: float) -> Tuning:
    """Return the tuning for one state, W = A^(1/3) T^(2/3) B_r^(-2/3); T without drift.

    There is nothing to widen, so eta = 0. The bound matches the lower one for B_r in [1/A, T/A].

    >>> bandit(StateActions([8]), 1000, 1.0).window
    200.0
    """
    S, A, T, Br, _ = checked(space, T, Br, 0.0)
    if S > 1:
        raise InputError(
            f"a bandit has one state, this space has {S}",
            field="space",
            fix="use optimal_window and optimal_widening",
        )
    window = float(T) if Br == 0 else math.cbrt(A) * math.cbrt(T / Br) ** 2
    return Tuning(window, 0.0, 1 / A <= Br <= T / A)


def sharper(space: StateActions, T: int, Br: float, Bp: float) -> Tuning:
    """Return W = S (A T / (B + 1))^(1/2) and its eta: S^(1/2) for S^(2/3) if T >= S^2 A B."""
    S, A, T, Br, Bp = checked(space, T, Br, Bp)
    window = S * math.sqrt(A * T / (Br + Bp + 1))
    return Tuning(window, math.sqrt((Bp + 1) * window / T), S * S * A * (Br + Bp) <= T)


def knowing_diameter(space: StateActions, T: int, Br: float, Bp: float, diameter: float) -> Tuning:
    """Return the tuning for a known D: D^(3/4) for D if T >= D^3 S^2 A (B_p + 1).

    W = S (A D T / (B_p + 1))^(1/2), eta = ((B_p + 1) W / (D T))^(1/2). The drift of rewards must
    not dominate either: B_r W is at most the term D S A^(1/2) T / W^(1/2).
    """
    S, A, T, Br, Bp = checked(space, T, Br, Bp)
    D = as_real(diameter, "diameter", low=0, open_low=True)
    window = S * math.sqrt(A * D * T / (Bp + 1))
    widening = math.sqrt((Bp + 1) * window / (D * T))
    long = D**3 * S * S * A * (Bp + 1) <= T
    return Tuning(
        window, widening, long and Br * window <= D * S * math.sqrt(A) * T / math.sqrt(window)
    )


def borl_grid(space: StateActions, T: int) -> Grid:
    """Return BORL's blocks and arms: windows from the real H, widenings without a floor (E2, E3).

    Windows may exceed T, as printed. At T = 1 floor(ln 1/Phi) is 0: there is one widening (E5).

    >>> grid = borl_grid(StateActions.uniform(states=10, actions=4), 100_000)
    >>> grid.block_length, grid.blocks, grid.arms
    (8807, 12, 70)
    >>> [round(eta, 2) for eta in grid.widenings]
    [2.0, 1.04, 0.35, 0.12, 0.04, 0.01, 0.0]
    """
    S, A, T, _, _ = checked(space, T, 0.0, 0.0)
    H = window_of(S, A, T, 0.0)
    low = 1 / (2 * math.sqrt(T))  # Phi
    steps, falls = (math.floor(math.log(x)) for x in (H, 1 / low))
    length = min(T, math.ceil(H))
    top = math.cbrt(S) * math.sqrt(math.sqrt(A))
    return Grid(
        H,
        length,
        -(-T // length),
        tuple(math.floor(H ** (j / steps)) for j in range(steps + 1)),
        tuple(as_widening(top * low ** (k / max(1, falls))) for k in range(falls + 1)),
    )


def window_of(S: float, A: float, T: float, B: float) -> float:
    """Return the formula of W* for any numbers, also a T that no run can have."""
    return 3.0 * math.cbrt(S) ** 2 * math.sqrt(A * T / (B + 1))


def as_window(real: float, horizon: int) -> int:
    """Return the window an agent can use: the nearest integer from 1 to T (E6).

    >>> as_window(20439.1, horizon=10_000), as_window(0.2, horizon=10_000)
    (10000, 1)
    """
    T = as_horizon(horizon, error=InputError)
    return min(T, max(1, round(as_real(real, "window", low=0))))


def as_widening(real: float) -> float:
    """Return the widening an agent can use: at most 2, where the set is the whole simplex (E7)."""
    return min(_MOST_WIDENING, as_real(real, "widening", low=0))


def checked(
    space: StateActions, T: object, Br: object, Bp: object
) -> tuple[int, float, int, float, float]:
    """Return S, A, T, B_r, B_p, or say which of them is wrong."""
    as_space(space)
    steps = as_horizon(T, error=InputError)
    return (
        space.n_states,
        space.mean_actions,
        steps,
        _budget(Br, "reward_budget", steps - 1, steps),
        _budget(Bp, "transition_budget", 2 * (steps - 1), steps),
    )


def _budget(value: object, field: str, most: int, T: int) -> float:
    """Return a budget that a model can use up: a step moves rewards by 1, rows by 2 at the most."""
    budget = as_real(value, field, low=0)
    if budget > most * _ROUNDING:
        raise InputError(
            f"{budget:g}: no model drifts that much in T = {T:,} steps",
            field=field,
            fix=f"pass a number from 0 to {most:,}, or a longer horizon",
        )
    return budget


def is_left_open(value: object) -> bool:
    """Whether a parameter is to be found from what is known: it is not given, or "tuned".

    >>> is_left_open(None), is_left_open("tuned"), is_left_open("oblivious"), is_left_open(200)
    (True, True, False, False)
    """
    return value is None or (isinstance(value, str) and value == "tuned")


def tunings(space: StateActions, horizon: int, budgets: Budgets | None) -> dict[str, Tuning]:
    """Return W and eta under each word that has a meaning here."""
    best = {"oblivious": oblivious(as_space(space), horizon)}
    if budgets is not None:
        given = space, horizon, budgets.reward, budgets.transition
        best["tuned"] = Tuning(optimal_window(*given), optimal_widening(*given))
        if space.n_states == 1:  # the theorem does not speak of bandits, a remark does
            best["tuned"] = bandit(space, horizon, budgets.reward)
    return best


def chosen(word: str | None, field: str, best: dict[str, Tuning]) -> Tuning:
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


_LARGEST = 1 << 900  # formulas that take a larger number overflow


def first_integer(is_enough: Callable[[int], bool]) -> int:
    """Return the least integer from 1 on that is enough, if all after it are.

    >>> first_integer(lambda n: n * n > 50)
    8
    """
    high = 1
    while not is_enough(high):
        high *= 2
        if high > _LARGEST:
            raise InputError(
                "no number that can be computed with is large enough",
                field="plan",
                fix="pass smaller budgets, a smaller diameter, or a larger delta",
            )
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high


class Blocks(NamedTuple):
    """What BORL makes of a horizon.

    Attributes
    ----------
    block_length, blocks, arms
        Steps a block, their number, and the number of (window, widening) pairs.
    gamma
        The share of uniform choices that EXP3.P asks for; used is min(1, gamma).
    adapts_first, adapts_from
        The first T at which gamma <= 1, and the T from which that holds for good.
    """

    block_length: int
    blocks: int
    arms: int
    gamma: float
    adapts_first: int
    adapts_from: int


def borl_blocks(space: StateActions, horizon: int) -> Blocks:
    """Return BORL's numbers at this horizon.

    >>> found = borl_blocks(StateActions.uniform(states=10, actions=4), 100_000)
    >>> found.blocks, found.arms, round(found.gamma, 2), found.adapts_from
    (12, 70, 5.23, 566981281)
    """
    grid = borl_grid(space, horizon)
    first, always = horizons_to_adapt(space.n_states, space.mean_actions)
    return Blocks(
        grid.block_length,
        grid.blocks,
        grid.arms,
        exploration(grid.arms, grid.blocks),
        first,
        always,
    )


def exploration(arms: int, rounds: int) -> float:
    """Return the gamma of EXP3.P before it is capped at 1."""
    return 1.05 * math.sqrt(arms * math.log(arms) / rounds)


@cache
def horizons_to_adapt(S: int, A: float, gamma: float = 1.0) -> tuple[int, int]:
    """Return the first T at which EXP3.P's gamma is at most this (1 or less), and for good.

    >>> horizons_to_adapt(2, 2)
    (9022581, 11385226)
    """
    first: int | None = None
    last_miss = 1  # two arms and one block: gamma is 1.2
    for piece in _pieces(S, A):
        enough = math.ceil(1.05**2 * piece.arms * math.log(piece.arms) / gamma**2)
        reached, missed = _crossing(S, A, piece, enough)
        first = reached if first is None else first
        last_miss = max(last_miss, missed or 0)
        # While T grows by e^2, blocks grow by about e and arms by (6/5)^2 at most from here on: a
        # whole such stretch without a miss is followed by others.
        if first is not None and piece.least_side >= 4 and piece.start > 9 * last_miss:
            return first, last_miss + 1
    raise AssertionError("unreachable")


class _Piece(NamedTuple):
    """A stretch of T with one number of arms."""

    start: int
    end: int
    arms: int
    least_side: int


def _pieces(S: int, A: float) -> Iterator[_Piece]:
    """Yield the stretches one after another."""

    def sides(T: int) -> tuple[int, int]:
        H = window_of(S, A, T, 0.0)
        return math.floor(math.log(H)), math.floor(math.log(2 * math.sqrt(T)))

    start = 1
    while True:
        steps = first_integer(partial(_differs, sides, start))
        here = sides(start)
        yield _Piece(start, start + steps - 1, (here[0] + 1) * (here[1] + 1), min(here))
        start += steps


def _differs(sides: Callable[[int], tuple[int, int]], start: int, steps: int) -> bool:
    return sides(start + steps) != sides(start)


def _crossing(S: int, A: float, piece: _Piece, m: int) -> tuple[int | None, int | None]:
    """Return the first T of a piece with m blocks or more, and the last with fewer."""

    def length(T: int) -> int:
        return math.ceil(window_of(S, A, T, 0.0))

    def opening(h: int) -> int:
        return first_integer(lambda T: length(T) >= h)

    low, high = length(piece.start), length(piece.end)
    about = math.floor((m - 1) * window_of(S, A, 1.0, 0.0) ** 2)
    if high < about - 2:
        return None, piece.end
    if low > about + 6:
        return piece.start, None
    reached: int | None = None
    missed: int | None = None
    for h in range(max(low, about - 2), min(high, about + 6) + 1):
        opens = piece.start if h == low else opening(h)
        closes = piece.end if h == high else opening(h + 1) - 1
        last_short = (m - 1) * h
        if reached is None and max(opens, last_short + 1) <= closes:
            reached = max(opens, last_short + 1)
        if opens <= min(closes, last_short):
            missed = min(closes, last_short)
    return reached, missed
