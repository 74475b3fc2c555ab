"""What is expected of a result, both sides in numbers: sentences and verdicts come from them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Check", "Sides", "check", "spoken", "worst"]

ROUNDING = 1e-9
"""What a side may be beyond the other by rounding alone, in the scale of the right one."""

_RELATIONS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "<=": (operator.le, ">"),
    ">=": (operator.ge, "<"),
    "<": (operator.lt, ">="),
    ">": (operator.gt, "<="),
}


class Sides(NamedTuple):
    """Both sides of one instance of a claim, and where it was met."""

    left: float
    right: float
    where: str = ""


@dataclass(frozen=True)
class Check:
    """A claim, the instance that comes nearest to breaking it, and how many were looked at.

    Attributes
    ----------
    name
        What a sentence calls it: "C2".
    claim
        What is expected, in words.
    relation
        How left and right must stand: "<=", ">=", "<" or ">". The first two forgive rounding.
    sides
        Both sides of the nearest or worst instance; None if there was nothing to look at.
    of, broken
        How many instances were looked at, and how many break the claim.
    unit
        What instances are called: "runs".
    is_judged
        Whether it counts: quick forms have too little of some things.
    """

    name: str
    claim: str
    relation: str
    sides: Sides | None
    of: int
    broken: int
    unit: str
    is_judged: bool = True

    @property
    def holds(self) -> bool:
        """Whether the claim holds wherever it was looked at, and it was looked at somewhere."""
        return not self.is_judged or (self.of > 0 and self.broken == 0)

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        if not self.is_judged:
            return "not judged"
        return "holds" if self.holds else "does not hold"

    @property
    def numbers(self) -> str:
        """Both sides and where, as a table has them."""
        if self.sides is None:
            return "nothing to look at"
        left, right, where = self.sides
        sign = self.relation if _keeps(self.sides, self.relation) else _RELATIONS[self.relation][1]
        said = f"{spoken(left)} {sign} {spoken(right)}"
        if where:
            said += f" ({where})"
        if self.of == 1:
            return said
        if self.broken:
            return f"broken in {self.broken:,} of {self.of:,} {self.unit}, at the worst {said}"
        return f"{said}, the nearest of {self.of:,} {self.unit}"

    def sentence(self) -> str:
        """Return what was seen of it."""
        return f"{self.name}: {self.word}, {self.numbers}"


def check(
    name: str, claim: str, left: float, relation: str, right: float, where: str = "",
    *, is_judged: bool = True,
) -> Check:  # fmt: skip
    """Return the check of a claim with one instance.

    >>> check("slope", "at most 3/4", 0.786, "<=", 0.75).sentence()
    'slope: does not hold, 0.786 > 0.75'
    """
    return worst(name, claim, [Sides(left, right, where)], relation, is_judged=is_judged)


def worst(
    name: str, claim: str, sides: Iterable[Sides], relation: str = "<=", unit: str = "runs",
    *, is_judged: bool = True,
) -> Check:  # fmt: skip
    """Return the check of a claim that speaks of many instances.

    >>> found = [Sides(3, 10, "river"), Sides(9, 10, "peril")]
    >>> worst("C2", "few episodes", found).sentence()
    'C2: holds, 9 <= 10 (peril), the nearest of 2 runs'
    >>> worst("C2", "few episodes", [*found, Sides(11, 10, "ride")]).sentence()
    'C2: does not hold, broken in 1 of 3 runs, at the worst 11 > 10 (ride)'
    """
    found = list(sides)
    broken = sum(not _keeps(one, relation) for one in found)
    shown = max(found, key=lambda one: _beyond(one, relation), default=None)
    return Check(name, claim, relation, shown, len(found), broken, unit, is_judged)


def spoken(value: float) -> str:
    """Return a number as a sentence has it.

    >>> spoken(12_345), spoken(0.78612), spoken(2017.94)
    ('12,345', '0.7861', '2,017.9')
    """
    if not math.isfinite(value):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def _keeps(one: Sides, relation: str) -> bool:
    left, right, _ = one
    if math.isnan(left) or math.isnan(right):
        return False
    spare = ROUNDING * abs(right) if math.isfinite(right) else 0.0
    if relation == "<=":
        return left <= right + spare
    if relation == ">=":
        return left >= right - spare
    return _RELATIONS[relation][0](left, right)


def _beyond(one: Sides, relation: str) -> float:
    """How far left is on the wrong side of right, in the scale of right."""
    left, right, _ = one
    if math.isnan(left) or math.isnan(right):
        return math.inf
    if relation == "<=" and left == right == 0:
        return -math.inf  # nothing within nothing: any other instance says more
    if math.isinf(right):
        return math.inf if not _keeps(one, relation) else -math.inf
    over = left - right if relation in ("<=", "<") else right - left
    return over / max(abs(right), 1e-12)
