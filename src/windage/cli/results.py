"""`windage verify` and `windage diff`: whether results hold, and how two studies differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from windage.cli.progress import Progress
from windage.cli.study import find_own_classes
from windage.cli.tables import print_table, print_text

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
    print_text(
        f"{found.files:,} files read, {found.recomputed:,} results computed again: "
        f"{len(found.damaged):,} damaged, {len(found.different):,} different"
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
            f"{change.before:,.4g}",
            f"{change.paired.difference.estimate:+,.4g}",
            f"{change.paired.difference.low:+,.4g} to {change.paired.difference.high:+,.4g}",
            f"{change.adjusted:.2g}",
            str(change.same),
        ]
        for change in found.changes
    ]
    headers = ["environment", "T", "agent", "seeds", f"{name} in A", "B - A", "95 % interval",
               "p (Holm)", "same"]  # fmt: skip
    print_table(headers, rows)
    for partners in (change.partners for change in found.changes):
        if partners.first != partners.second:
            print_text(f"{partners.first} is in B: {partners.second}")
        for set_to in partners.differences:
            values = f"{set_to.first} in A, {set_to.second} in B"
            print_text(f"{partners.first}: {set_to.name} is {values}")
    for side, alone in (("A", found.alone_first), ("B", found.alone_second)):
        for place in alone:
            print_text(f"only in {side}: {place}")
    same = sum(change.same for change in found.changes)
    runs = sum(change.paired.n for change in found.changes)
    print_text(
        f"{same:,} of {runs:,} runs are the same to the last bit; {found.only_first:,} are only "
        f"in A, {found.only_second:,} only in B"
    )
