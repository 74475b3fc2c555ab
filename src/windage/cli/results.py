"""`windage verify` and `windage diff`: whether results hold, and how two studies differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.progress import Progress
from windage.cli.study import find_own_classes
from windage.cli.tables import print_table, print_text

if TYPE_CHECKING:
    from windage.study.diff import Diff
    from windage.study.pairs import Paired
    from windage.study.partners import Place

__all__ = ["diff", "verify"]

_DIFFERENT = 1


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `windage run -o` wrote.")],
    sample: Annotated[
        int, typer.Option("-n", "--sample", metavar="N", help="How many runs to compute again.")
    ] = 5,
    everything: Annotated[bool, typer.Option("--all", help="Compute all runs again.")] = False,
    seed: Annotated[int, typer.Option(help="Names the sample.")] = 0,
) -> None:
    """Read all results to the last bit, compute some of them again, and compare."""
    from windage.study.verify import verify

    find_own_classes(folder)
    with Progress() as progress:
        found = verify(folder, sample=None if everything else sample, seed=seed, progress=progress)
    for name in found.damaged:
        print(f"windage: {name}", file=sys.stderr)
    for one in found.different:
        columns = ", ".join(one.columns)
        print(f"windage: {one.what} came out differently: {columns}", file=sys.stderr)
    for failure in found.failed:
        print(f"windage: {failure.what} cannot be computed again: {failure.why}", file=sys.stderr)
    for name, then, now in found.versions:
        print_text(f"{name} was {then}, now {now}")
    if found.missing:
        print(
            f"windage: missing results: {found.missing:,}; `windage run` goes on with them",
            file=sys.stderr,
        )
    more = ((found.missing, "missing"), (len(found.failed), "that cannot be computed any more"))
    print_text(
        f"{found.files:,} files read, {found.recomputed:,} results computed again: "
        f"{len(found.damaged):,} damaged, {len(found.different):,} different"
        + "".join(f", {n:,} {what}" for n, what in more if n)
    )
    if not found.holds:
        raise typer.Exit(_DIFFERENT)


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="The results of one study.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Those of another.")],
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="What to compare: regret if it is known, else total_reward."
        ),
    ] = None,
) -> None:
    """Compare two studies seed by seed: agents and environments that both have."""
    from windage.study.diff import diff

    found = diff(first, second, column=measure)
    for name, one, other in found.versions:
        print_text(f"{name}: {one} in A, {other} in B")
    name = found.measure.replace("_", " ")
    rows = [
        [
            change.partners.first.environment,
            f"{change.partners.first.horizon:,}",
            change.partners.first.agent,
            str(change.paired.n),
            _short(change.before),
            _short(change.paired.difference.estimate, "+"),
            _interval(change.paired),
            f"{change.adjusted:.2g}",
            str(change.same),
        ]
        for change in found.changes
    ]
    headers = ["environment", "T", "agent", "seeds", f"{name} in A", "B - A", "95 % interval",
               "p (Holm)", "same"]  # fmt: skip
    print_table(headers, rows)
    for line in _remarks(found):
        print_text(line)
    same = sum(change.same for change in found.changes)
    runs = sum(change.paired.n for change in found.changes)
    print_text(
        f"{same:,} of {runs:,} runs are the same to the last bit; {found.only_first:,} are only "
        f"in A, {found.only_second:,} only in B"
    )


def _interval(found: Paired) -> str:
    """Return an interval; one seed has none."""
    low, high = found.difference.low, found.difference.high
    return f"{_short(low, '+')} to {_short(high, '+')}" if found.n > 1 else "-"


def _short(value: float, sign: str = "") -> str:
    """Return four digits of a number, or all before the point: regrets may be large.

    >>> _short(18873.11), _short(0.91935, "+")
    ('18,873', '+0.9194')
    """
    return f"{value:{sign},.4g}" if abs(value) < 9999.5 else f"{value:{sign},.0f}"


def _remarks(found: Diff) -> Iterator[str]:
    """Yield what the table does not show, one line for all places of which it is true."""
    places: dict[tuple[str, str], list[Place]] = {}
    for partners in (change.partners for change in found.changes):
        first, second = partners.first, partners.second
        if first.agent != second.agent:
            text = f"is called {second.agent} in B"
            places.setdefault((first.agent, text), []).append(first)
        if first.environment != second.environment:
            text = f"{first.environment} is called {second.environment} in B"
            places.setdefault(("", text), []).append(first)
        for one in partners.differences:
            text = f"{one.name} is {one.first} in A, {one.second} in B"
            places.setdefault((first.agent, text), []).append(first)
    for partners in found.apart:
        name = found.measure.replace("_", " ")
        text = f"in both, but no seed of which both know the {name}"
        places.setdefault((partners.first.agent, text), []).append(partners.first)
    for side, alone in (("A", found.alone_first), ("B", found.alone_second)):
        for place in alone:
            places.setdefault((place.agent, f"only in {side}"), []).append(place)
    for (agent, text), where in places.items():
        yield f"{agent}: {text} ({_where(where)})" if agent else text


def _where(places: list[Place]) -> str:
    """Return where an agent is, such as "river, T = 500, 1,000; queue, T = 500"."""
    horizons: dict[str, list[str]] = {}
    for place in places:
        horizons.setdefault(place.environment, []).append(f"{place.horizon:,}")
    return "; ".join(f"{name}, T = {', '.join(T)}" for name, T in horizons.items())
