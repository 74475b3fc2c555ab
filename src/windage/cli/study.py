"""`windage run`: the runs of a study file, as far as they are not there yet."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.display import Display
from windage.cli.tables import print_table, print_text

if TYPE_CHECKING:
    import polars as pl

    from windage.study.status import Summary
    from windage.study.study import Study

__all__ = ["find_own_classes", "run"]

_FAILED = 1
_SHOWN = 10  # failures, and damaged files, that are printed; failures are in timings.jsonl


def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="What is to be run.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the results.")],
    workers: Annotated[
        int | None,
        typer.Option("-w", "--workers", metavar="N", help="Runs at a time; all cores if not said."),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            help="threads; processes, for agents written in Python; or dask.",
        ),
    ] = "threads",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of the Dask scheduler.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be run, and run nothing.")
    ] = False,
) -> None:
    """Make the runs a study asks for; started again, it goes on where it was stopped."""
    import windage as wd

    find_own_classes(study.parent)
    asked = wd.Study.load(study)
    if dry_run:
        _preview(asked, output)
        return
    with Display() as display, _ending_at_the_second(display):
        try:
            done = asked.run(
                output, workers=workers, executor=executor, scheduler=scheduler, progress=display
            )
        except KeyboardInterrupt:
            display.stop()
            status = display.status
            there = f"{status.kept + status.made:,} of {status.total:,} runs are there"
            print(
                f"windage: stopped; {there if status.total else 'nothing was run'}. "
                "The same command goes on from here.",
                file=sys.stderr,
            )
            raise
    _report(asked.name, output, done)


def _preview(study: Study, folder: Path) -> None:
    """Say what would be run: sweeps multiply, and one wants to know before hours are spent."""
    found = study.preview(folder)
    rows = [
        [one.environment, f"{one.horizon:,}", one.agent, f"{one.seeds:,}", f"{one.there:,}"]
        for one in found.places
    ]
    print_table(["environment", "T", "agent", "seeds", "there"], rows)
    print_text(
        f"{study.name}: {found.there:,} of {found.runs:,} runs in {folder}, "
        f"{found.runs - found.there:,} to make, {found.steps:,} steps; nothing was run"
    )


@contextlib.contextmanager
def _ending_at_the_second(display: Display) -> Iterator[None]:
    """Let a second Ctrl-C end the program where it is: the first waits for agents, as threads do.

    What is done is on the disk, so that loses nothing. A program that Ctrl-C is not for, as in the
    background of a script, goes on not to hear it.
    """

    def first(number: int, frame: FrameType | None) -> None:
        display.show_cursor()  # nobody could after the second
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def find_own_classes(folder: Path) -> None:
    """Let `module:Class` be found where one stands, and in a folder."""
    for place in (Path.cwd(), folder.absolute()):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))


def _report(name: str, folder: Path, done: Summary) -> None:
    """Say what was done, what was found, and what went wrong."""
    import windage as wd

    for what in done.repaired[:_SHOWN]:
        print(f"windage: {what}; it was computed anew", file=sys.stderr)
    if len(done.repaired) > _SHOWN:
        print(f"windage: and {len(done.repaired) - _SHOWN:,} more likewise", file=sys.stderr)
    for failure in done.failures[:_SHOWN]:
        print(f"windage: failed: {failure.what}: {failure.why}", file=sys.stderr)
    if len(done.failures) > _SHOWN:
        print(f"windage: and {len(done.failures) - _SHOWN:,} more failed", file=sys.stderr)
    results = wd.load_results(folder, unfinished=True)
    unknown = results["regret"].is_null()
    for part in (results.filter(~unknown), results.filter(unknown)):
        if part.height:
            _print_means(part)
    made = f"{done.made:,} made now, {done.kept:,} kept"
    print_text(f"{name}: {done.kept + done.made:,} of {done.runs:,} runs in {folder} ({made})")
    if done.spare:
        print_text(f"{done.spare:,} files in {folder / 'runs'} are of runs not asked for any more")
    if done.hash:
        print(f"hash of the results: {done.hash}")
    if done.failures:
        print_text("what failed is tried again by the same command")
        raise typer.Exit(_FAILED)


def _print_means(results: pl.DataFrame) -> None:
    """Print the mean of every agent, with its interval: of regret, or of reward if unknown."""
    from windage.study.compare import measure, summaries

    by = measure(results)
    rows = [
        [
            cell.environment,
            f"{cell.horizon:,}",
            cell.agent,
            f"{cell.n:,}",
            f"{cell.mean.estimate:,.1f}",
            f"{cell.mean.low:,.1f} to {cell.mean.high:,.1f}" if cell.n > 1 else "-",
        ]
        for cell in summaries(results)
    ]
    name = by.replace("_", " ")
    print_table(["environment", "T", "agent", "seeds", f"mean {name}", "95 % interval"], rows)
