"""What every result of the paper is made into: checks, tables and a picture."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from paper.claims import Check
from windage.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Effort", "Least", "Result", "Table", "starred"]

A = TypeVar("A")
B = TypeVar("B")

_QUICK = "Quick form, with fewer seeds and shorter runs: slopes and comparisons are not judged."


@dataclass(frozen=True)
class Table:
    """A table: its title, the headers of its columns, and rows of cells."""

    title: str
    headers: tuple[str, ...]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Return it as a page has it."""
        lines = [self.headers, ("---",) * len(self.headers), *self.rows]
        cells = ["| " + " | ".join(_plain(cell) for cell in line) + " |" for line in lines]
        return "\n".join([f"**{starred(self.title)}**", "", *cells])


@dataclass(frozen=True, eq=False)
class Result:
    """One result of the paper, computed.

    Attributes
    ----------
    name, title
        What the command calls it, and its heading.
    about
        What is computed and how, in paragraphs.
    checks
        What is expected, each with both sides in numbers and a verdict.
    remarks
        What else was seen, from the same data; nothing of it is a promise.
    tables
        The numbers.
    figure
        The picture.
    is_quick
        Whether this is a smaller form.
    extras
        Files that go beside it, by name.
    """

    name: str
    title: str
    about: str
    checks: list[Check]
    remarks: str
    tables: list[Table]
    figure: Figure
    is_quick: bool = False
    extras: dict[str, str] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether everything that is judged holds."""
        return all(one.holds for one in self.checks)

    @property
    def expected(self) -> str:
        """What is expected, in a sentence."""
        return "; ".join(f"{one.claim} ({one.name})" for one in self.checks) + "."

    @property
    def seen(self) -> str:
        """What was found of it, in a sentence, and the remarks."""
        return "; ".join(one.sentence() for one in self.checks) + f". {self.remarks}".rstrip()

    def verdict(self) -> str:
        """Return what was expected and what was seen."""
        seen = "Seen" if self.holds else "Seen, not as expected"
        said = f"Expected: {self.expected} {seen}: {self.seen}"
        return f"{said} {_QUICK}" if self.is_quick else said

    def markdown(self, picture: str) -> str:
        """Return the page of the result, with a link to its picture."""
        parts = [
            f"# {self.title}",
            f"Made by `windage paper {self.name}`"
            + (f" with `--quick`. {_QUICK}" if self.is_quick else "."),
            self.about.strip(),
            self._judged().markdown(),
            *([self.remarks] if self.remarks else []),
            f"[![{self.title}]({picture})]({picture})",  # a click shows it in full
            *(table.markdown() for table in self.tables),
        ]
        return starred("\n\n".join(parts)) + "\n"

    def _judged(self) -> Table:
        """Return expectations beside what was seen."""
        broken = sum(not one.holds for one in self.checks)
        said = f"not as expected in {broken} of {len(self.checks)}" if broken else "as expected"
        rows = [[one.name, one.claim, one.numbers, one.word] for one in self.checks]
        return Table(f"Expected and seen: {said}", ("", "expected", "seen", "verdict"), rows)


class Least(NamedTuple):
    """The least T that means something to a result, and why fewer steps do not."""

    steps: int
    why: str


@dataclass(frozen=True)
class Effort:
    """How much to compute: the full form of the documentation, or less.

    Attributes
    ----------
    horizon, seeds
        Steps and number of seeds; None: as in the documentation.
    is_quick
        Whether a smaller form will do.
    say
        Told what is being computed.
    """

    horizon: int | None = None
    seeds: int | None = None
    is_quick: bool = False
    say: Callable[[str], None] = field(default=lambda stage: None, repr=False)  # noqa: ARG005

    def steps(self, full: int, *, quick: int) -> int:
        """Return T: what was asked for, or that of the full or the quick form."""
        usual = quick if self.is_quick else full
        return usual if self.horizon is None else self.horizon

    def runs(self, full: int, *, quick: int, least: int = 2) -> int:
        """Return the number of seeds."""
        n = (quick if self.is_quick else full) if self.seeds is None else self.seeds
        if n < least:
            raise InputError(
                f"{n} seeds are too few", field="seeds", fix=f"ask for {least} at the least"
            )
        return n

    def each(self, work: Callable[[A], B], tasks: Iterable[A]) -> list[B]:
        """Return what the work makes of every task, in order; compiled runs share the cores."""
        with ThreadPoolExecutor(os.cpu_count()) as crowd:
            return list(crowd.map(work, tasks))


def starred(text: str) -> str:
    r"""Return text whose stars of rho*, W* and eta* are stars on a page.

    >>> starred("W* and rho*")
    'W\\* and rho\\*'
    """
    return re.sub(r"\b(rho|W|eta)\*(?!\*)", r"\1\\*", text)


def _plain(cell: str) -> str:
    return cell.replace("|", "\\|")
