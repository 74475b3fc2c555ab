"""Radii: how far the truth may be from what a window has seen (paper, Eqs. 4 and 5).

The formulas of all radii, as the rows (a, b, c) that `kernels.confidence` reads.

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
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.spaces import StateActions, as_space
from windage.validation import as_choice, as_flag, as_horizon, as_integer, as_real, shown

__all__ = ["KINDS", "Radii", "formula"]

Reals = NDArray[np.float64]

KINDS = ("paper", "proof", "laplace", "ucrl2", "varying", "bernstein")
_TIMED = ("ucrl2", "varying")
_GUARANTEED = ("paper", "proof", "laplace")
_BOUNDABLE = ("proof", "laplace")
_MOST_VISITS = 1e100
_MOST_SCALE = 1e100  # far beyond use, and far from where two-word products overflow


@dataclass(frozen=True, repr=False)
class Radii:
    """A kind of confidence radii and what they are multiplied by; make one with a class method.

    Attributes
    ----------
    kind
        "paper", "proof", "laplace", "ucrl2", "varying" or "bernstein".
    bounded
        Whether rewards are taken to lie in [0, 1].
    reward_scale, transition_scale
        What the radii are multiplied by, at most 1e100; 1 is the formula.

    Examples
    --------
    >>> space = StateActions.uniform(states=10, actions=4)
    >>> here = {"space": space, "horizon": 100_000, "delta": 0.05}
    >>> print(f"{Radii.paper().transition(364, **here):.4f}")
    1.9999
    >>> Radii.laplace().transition([0, 1, 100], **here).round(3)
    array([10.095, 10.095,  0.744])
    >>> tight = Radii.laplace().scaled(0.3)
    >>> tight.label, tight.keeps_guarantee
    ('laplace x0.3', False)
    """

    kind: str = "paper"
    bounded: bool = False
    reward_scale: float = 1.0
    transition_scale: float = 1.0

    def __post_init__(self) -> None:
        as_choice(self.kind, "radii", KINDS)
        as_flag(self.bounded, "bounded")
        if self.bounded and self.kind not in _BOUNDABLE:
            raise InputError(
                f"the {self.kind} radii have no form for rewards in [0, 1]",
                field="bounded",
                fix=f"leave it out, or take one of: {', '.join(_BOUNDABLE)}",
            )
        for field in ("reward_scale", "transition_scale"):
            object.__setattr__(self, field, _scale(getattr(self, field), field))

    @classmethod
    def paper(cls) -> Radii:
        """Return the radii of the paper's text, which its theorems speak of: the default."""
        return cls("paper")

    @classmethod
    def proof(cls, bounded: bool = False) -> Radii:
        """Return the radii that the paper's proof needs: tighter, same guarantee (E13)."""
        return cls("proof", bounded)

    @classmethod
    def laplace(cls, bounded: bool = False) -> Radii:
        """Return time-uniform radii by Laplace's method: the tightest here, same guarantee."""
        return cls("laplace", bounded)

    @classmethod
    def ucrl2(cls) -> Radii:
        """Return the radii of UCRL2, which grow with the time t of planning."""
        return cls("ucrl2")

    @classmethod
    def varying(cls) -> Radii:
        """Return the radii of variation-aware UCRL, to which the variation is added."""
        return cls("varying")

    @classmethod
    def bernstein(cls) -> Radii:
        """Return the radii of UCRL2B: for each entry of a row its own, by its variance.

        Sets are boxes, not L1 balls; `transition` gives the half-width of one entry.
        """
        return cls("bernstein")

    def scaled(
        self,
        scale: float | None = None,
        *,
        reward: float | None = None,
        transition: float | None = None,
    ) -> Radii:
        """Return these radii times `scale`, or rewards and transitions by factors of their own.

        >>> Radii.paper().scaled(0.5).scaled(reward=0.2)
        Radii.paper().scaled(reward=0.1, transition=0.5)
        """
        if (scale is None) == (reward is None and transition is None):
            raise InputError(
                "one factor for both, or factors by name",
                field="scale",
                fix="pass scaled(c), or scaled(reward=c1, transition=c2)",
            )
        of_reward = 1.0 if reward is None else _scale(reward, "reward")
        of_transition = 1.0 if transition is None else _scale(transition, "transition")
        if scale is not None:
            of_reward = of_transition = _scale(scale, "scale")
        return replace(
            self,
            reward_scale=self.reward_scale * of_reward,
            transition_scale=self.transition_scale * of_transition,
        )

    def reward(
        self,
        n: ArrayLike,
        *,
        space: StateActions,
        horizon: int,
        delta: float,
        t: int | None = None,
        variance: float = 0.25,
    ) -> Any:
        """Return the radius of the mean reward after n visits; a float, or an array for an array.

        Those of `bernstein` depend on the variance; 1/4 is the largest rewards in [0, 1] can have.
        """
        return self._radius(self.rules(space, horizon, delta)[0], n, t, variance)

    def transition(
        self,
        n: ArrayLike,
        *,
        space: StateActions,
        horizon: int,
        delta: float,
        t: int | None = None,
        variance: float = 0.25,
    ) -> Any:
        """Return the L1 radius of the row after n visits; a float, or an array for an array.

        Those of `bernstein` are the half-widths of one entry, of the given variance p (1 - p).
        """
        return self._radius(self.rules(space, horizon, delta)[1], n, t, variance)

    def rules(self, space: StateActions, horizon: int, delta: float) -> Reals:
        """Return the rows that `kernels.confidence.radius` reads: rewards, then transitions."""
        as_space(space)
        T = as_horizon(horizon, error=InputError)
        level = Decimal(as_real(delta, "delta", low=0, high=1, open_low=True, open_high=True))
        rows = formula(self.kind, self.bounded, space.n_states, space.n_pairs, T, level)
        scales = (self.reward_scale, self.transition_scale)
        return np.array(
            [[*map(float, row), scale] for row, scale in zip(rows, scales, strict=True)]
        )

    @property
    def needs_time(self) -> bool:
        """Whether the radii depend on the time t of planning."""
        return self.kind in _TIMED

    @property
    def makes_boxes(self) -> bool:
        """Whether the sets of transitions are boxes, with bounds for each entry, not L1 balls."""
        return self.kind == "bernstein"

    @property
    def keeps_guarantee(self) -> bool:
        """Whether Lemma 1 and Theorem 1 of the paper hold with these radii.

        With `bounded`, only if rewards do lie in [0, 1].
        """
        least = min(self.reward_scale, self.transition_scale)
        return self.kind in _GUARANTEED and least >= 1

    @property
    def label(self) -> str:
        """What tables and plots call these radii."""
        words = [self.kind, *(["bounded"] if self.bounded else [])]
        if self.reward_scale != self.transition_scale:
            words += [f"r x{self.reward_scale:g}", f"p x{self.transition_scale:g}"]
        elif self.reward_scale != 1:
            words.append(f"x{self.reward_scale:g}")
        return " ".join(words)

    def spec(self) -> str | dict[str, Any]:
        """Return these radii as a study file writes them.

        >>> Radii.paper().spec(), Radii.laplace().scaled(0.3).spec()
        ('paper', {'kind': 'laplace', 'scale': 0.3})
        """
        data: dict[str, Any] = {"kind": self.kind}
        if self.bounded:
            data["bounded"] = True
        if self.reward_scale != self.transition_scale:
            data |= {"reward": self.reward_scale, "transition": self.transition_scale}
        elif self.reward_scale != 1:
            data["scale"] = self.reward_scale
        return self.kind if len(data) == 1 else data

    @classmethod
    def from_spec(cls, data: Radii | str | Mapping[str, Any], field: str = "radii") -> Radii:
        """Return the radii that a study file names; `field` is where they stand in it.

        >>> Radii.from_spec({"kind": "proof", "bounded": True, "reward": 0.5})
        Radii.proof(bounded=True).scaled(reward=0.5, transition=1.0)
        """
        if isinstance(data, Radii):
            return data
        entries: Mapping[str, Any] = {"kind": data} if isinstance(data, str) else data
        if not isinstance(entries, Mapping):
            raise InputError(
                f"{data!r} are no radii", field=field, fix='pass a name or { kind = "...", ... }'
            )
        for key in entries:
            as_choice(key, f"{field}.{key}", ["kind", "bounded", "scale", "reward", "transition"])
        if "kind" not in entries:
            raise InputError("no kind is named", field=field, fix=f"one of: {', '.join(KINDS)}")
        if "scale" in entries and {"reward", "transition"} & entries.keys():
            raise InputError(
                "scale stands beside reward or transition",
                field=f"{field}.scale",
                fix="give scale alone, or reward and transition",
            )
        kind = as_choice(entries["kind"], f"{field}.kind", KINDS)
        factors = [
            _scale(entries.get(key, 1.0), f"{field}.{key}")
            for key in (("scale", "scale") if "scale" in entries else ("reward", "transition"))
        ]
        try:
            return cls(kind, entries.get("bounded", False), *factors)
        except InputError as err:  # of bounded: all else has been looked at
            raise InputError(err.problem, field=f"{field}.{err.field}", fix=err.fix) from None

    def __repr__(self) -> str:
        inside = "bounded=True" if self.bounded else ""
        if self.reward_scale != self.transition_scale:
            factors = f"reward={self.reward_scale!r}, transition={self.transition_scale!r}"
        else:
            factors = repr(self.reward_scale) if self.reward_scale != 1 else ""
        return f"Radii.{self.kind}({inside})" + (f".scaled({factors})" if factors else "")

    def _radius(self, rule: Reals, n: ArrayLike, t: int | None, variance: float) -> float | Reals:
        from windage.kernels.confidence import fill, fill_bernstein  # numba is loaded when needed

        if t is None and self.needs_time:
            raise InputError(
                f"the {self.kind} radii depend on the time", field="t", fix="pass t=, from 1 on"
            )
        log_t = 0.0 if t is None else math.log(as_integer(t, "t", low=1))
        spread = as_real(variance, "variance", low=0.0, high=0.25)
        visits = _visits(n)
        out = np.empty(visits.size)
        if self.makes_boxes:
            fill_bernstein(rule, visits.ravel(), spread, out)
        else:
            fill(rule, visits.ravel(), log_t, out)
        return out.reshape(visits.shape) if visits.ndim else float(out[0])


def _scale(value: object, field: str) -> float:
    return as_real(value, field, low=0, high=_MOST_SCALE)


def _visits(n: ArrayLike) -> Reals:
    try:
        given = np.asarray(n)
    except (TypeError, ValueError, OverflowError):
        given = np.array(None)  # uneven rows: no counts either
    if given.dtype.kind not in "iuf":
        raise InputError(
            f"{shown(n)} are no counts",
            field="n",
            fix="pass numbers of visits from 0 on, in equal rows",
        )
    visits = given.astype(np.float64)
    wrong = ~((visits >= 0) & (visits <= _MOST_VISITS))
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), visits.shape)
        raise InputError(
            f"{visits[place]!s} is no number of visits",
            field="n",
            where=f"[{', '.join(map(str, place))}]" if place else "",
            fix=f"pass numbers from 0 to {_MOST_VISITS:g}",
        )
    return visits


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
