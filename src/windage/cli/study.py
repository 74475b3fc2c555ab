"""`windage run`: the runs of a study file, as far as they are not there yet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.tables import print_table, print_text

if TYPE_CHECKING:
    import polars as pl

    from windage.study.runner import Status, Summary

__all__ = ["find_own_classes", "run"]

_FAILED = 1
_SHOWN = 10  # failures that are printed; all are in timings.jsonl


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
) -> None:
    """Make the runs a study asks for; started again, it goes on where it was stopped."""
    import windage as wd

    find_own_classes(study.parent)
    asked = wd.Study.load(study)
    with _Display() as display:
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


def find_own_classes(folder: Path) -> None:
    """Let `module:Class` be found where one stands, and in a folder."""
    for place in (Path.cwd(), folder.absolute()):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))


def _report(name: str, folder: Path, done: Summary) -> None:
    """Say what was done, what was found, and what went wrong."""
    import windage as wd

    for what in done.repaired:
        print(f"windage: {what}; it was computed anew", file=sys.stderr)
    for failure in done.failures[:_SHOWN]:
        print(f"windage: failed: {failure.what}: {failure.why}", file=sys.stderr)
    if len(done.failures) > _SHOWN:
        print(f"windage: and {len(done.failures) - _SHOWN:,} more failed", file=sys.stderr)
    results = wd.load_results(folder, unfinished=True)
    if results.height:
        _print_means(results)
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
    """Print the mean of every agent, with its interval."""
    from windage.study.compare import measure, summaries

    by = measure(results)
    rows = [
        [
            cell.environment,
            f"{cell.horizon:,}",
            cell.agent,
            f"{cell.n:,}",
            f"{cell.mean.estimate:,.1f}",
            f"{cell.mean.low:,.1f} to {cell.mean.high:,.1f}",
        ]
        for cell in summaries(results)
    ]
    name = by.replace("_", " ")
    print_table(["environment", "T", "agent", "seeds", f"mean {name}", "95 % interval"], rows)


class _Display:
    """Bars on a terminal; silence where nobody looks."""

    def __init__(self) -> None:
        from windage.study.runner import Status

        self.status = Status()
        self._seen = sys.stderr.isatty()
        if self._seen:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                TextColumn("{task.fields[stage]:<9}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[speed]}"),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[running]}", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self._row = self._bar.add_task("", total=None, stage="planning", speed="", running="")

    def __enter__(self) -> _Display:
        if self._seen:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away."""
        if self._seen:
            self._bar.stop()

    def __call__(self, status: Status) -> None:
        """Show how far it is."""
        self.status = status
        if not self._seen:
            return
        running = ", ".join(status.running[:2])
        more = f" and {len(status.running) - 2} more" if len(status.running) > 2 else ""
        failed = f"{status.failed} failed, " if status.failed else ""
        elapsed = self._bar.tasks[0].elapsed or 0.0
        speed = f"{status.steps / elapsed / 1e6:.2f} M steps/s" if status.steps else ""
        self._bar.update(
            self._row,
            stage=status.stage,
            total=status.total or None,
            completed=status.kept + status.made + status.failed,
            speed=speed,
            running=f"{failed}{running}{more}",
        )
