"""`windage run`, `verify`, `diff` and `demo`: studies, run, checked and compared."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.terminal import (
    Progress,
    complain,
    find_own_classes,
    print_table,
    print_text,
    require_writable,
    say,
)

if TYPE_CHECKING:
    import polars as pl

    from windage.study.diff import Condition, Diff
    from windage.study.expand import Preview
    from windage.study.stats import Paired
    from windage.study.study import Study, StudyStatus, StudySummary

__all__ = ["demo", "diff", "run", "verify"]

_FAILED = 1
_DIFFERENT = 1
_SHOWN = 10  # failures, and damaged files, that are printed; failures are in timings.jsonl


def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the results.")],
    workers: Annotated[
        int | None,
        typer.Option("-w", "--workers", metavar="N", help="Runs at a time; default: all cores."),
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
    """Make the runs of a study; started again, it goes on where it was stopped."""
    import windage as wd

    find_own_classes(study.parent)
    loaded = wd.Study.load(study)
    if dry_run:
        _print_preview(loaded, output)
        return
    last: StudyStatus | None = None

    def follow(status: StudyStatus) -> None:
        nonlocal last
        last = status
        progress.study(status)

    with Progress() as progress, _ending_at_the_second():
        try:
            summary = loaded.run(
                output, workers=workers, executor=executor, scheduler=scheduler, progress=follow
            )
        except KeyboardInterrupt:
            progress.stop()
            _print_stopped(last)
            raise
    _print_summary(loaded.name, output, summary)


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `windage run -o` wrote.")],
    sample: Annotated[
        int, typer.Option("-n", "--sample", metavar="N", help="How many runs to recompute.")
    ] = 5,
    everything: Annotated[bool, typer.Option("--all", help="Recompute all runs.")] = False,
    seed: Annotated[int, typer.Option(help="Names the sample.")] = 0,
) -> None:
    """Read all results to the last bit, recompute some of them, and compare."""
    from windage.study.verify import verify

    find_own_classes(folder)
    with Progress() as progress:
        found = verify(folder, sample=None if everything else sample, seed=seed, progress=progress)
    for damage in found.damaged:
        complain(f"{damage}")
    for mismatch in found.different:
        columns = ", ".join(mismatch.columns)
        complain(f"{mismatch.what} came out differently: {columns}")
    for failure in found.failed:
        complain(f"{failure.what} cannot be computed again: {failure.why}")
    for name, then, now in found.versions:
        print_text(f"{name} was {then}, now {now}")
    if found.missing:
        complain(f"missing results: {found.missing:,}; `windage run` goes on with them")
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
    for name, in_first, in_second in found.versions:
        print_text(f"{name}: {in_first} in A, {in_second} in B")
    name = found.measure.replace("_", " ")
    rows = [
        [
            change.match.first.environment,
            f"{change.match.first.horizon:,}",
            change.match.first.agent,
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


def _print_preview(study: Study, folder: Path) -> None:
    """Print what would be run: sweeps multiply, and hours may depend on it."""
    preview = study.preview(folder)
    if preview.tuning is not None:
        _print_places(preview.tuning, folder / "tuning", "first", " of tuning")
    _print_places(preview, folder, study.name, "; nothing was run")


def _print_places(preview: Preview, folder: Path, name: str, tail: str) -> None:
    rows = [
        [row.environment, f"{row.horizon:,}", row.agent, f"{row.seeds:,}", f"{row.done:,}"]
        for row in preview.places
    ]
    print_table(["environment", "T", "agent", "seeds", "done"], rows)
    print_text(
        f"{name}: {preview.done:,} of {preview.runs:,} runs in {folder}, "
        f"{preview.runs - preview.done:,} to make, {preview.steps:,} steps{tail}"
    )


def _print_stopped(status: StudyStatus | None) -> None:
    """Print how far a study is that was interrupted."""
    done = "nothing was run"
    if status is not None and status.total:
        done = f"{status.kept + status.made:,} of {status.total:,} runs are done"
    complain(f"stopped; {done}. The same command goes on from here.")


@contextlib.contextmanager
def _ending_at_the_second() -> Iterator[None]:
    """Let a second Ctrl-C end the program at once: the first waits for agents, as threads do.

    Finished runs are on the disk, so nothing is lost. A program that ignores Ctrl-C, as in the
    background of a script, goes on to ignore it.
    """

    def first(number: int, frame: FrameType | None) -> None:
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


def _print_summary(name: str, folder: Path, summary: StudySummary) -> None:
    """Print the means, the counts, and what went wrong."""
    import windage as wd

    parts = [summary] if summary.tuning is None else [summary.tuning, summary]
    repaired = [what for part in parts for what in part.repaired]
    failures = [failure for part in parts for failure in part.failures]
    for what in repaired[:_SHOWN]:
        complain(f"{what}; it was computed anew")
    if len(repaired) > _SHOWN:
        complain(f"and {len(repaired) - _SHOWN:,} more likewise")
    for failure in failures[:_SHOWN]:
        complain(f"failed: {failure.what}: {failure.why}")
    if len(failures) > _SHOWN:
        complain(f"and {len(failures) - _SHOWN:,} more failed")
    results = wd.load_results(folder, unfinished=True)
    unknown = results["regret"].is_null()
    for part in (results.filter(~unknown), results.filter(unknown)):
        if part.height:
            _print_means(part)
    if summary.tuning is not None:
        _print_counts("tuning", summary.tuning)
    _print_counts(name, summary)
    if summary.spare:
        print_text(
            f"{summary.spare:,} files in {folder / 'runs'} are of runs not asked for any more"
        )
    if summary.hash:
        say(f"hash of the results: {summary.hash}")
    if failures:
        print_text("what failed is tried again by the same command")
        raise typer.Exit(_FAILED)


def _print_counts(name: str, summary: StudySummary) -> None:
    made = f"{summary.made:,} made now, {summary.kept:,} kept"
    there = summary.kept + summary.made
    print_text(f"{name}: {there:,} of {summary.runs:,} runs in {summary.folder} ({made})")


def _print_means(results: pl.DataFrame) -> None:
    """Print the mean regret of every agent with its interval; the reward if it is not known."""
    from windage.study.compare import measure, summaries

    by = measure(results)
    rows = [
        [
            row.environment,
            f"{row.horizon:,}",
            row.agent,
            f"{row.n:,}",
            f"{row.mean.estimate:,.1f}",
            f"{row.mean.low:,.1f} to {row.mean.high:,.1f}" if row.n > 1 else "-",
        ]
        for row in summaries(results)
    ]
    name = by.replace("_", " ")
    print_table(["environment", "T", "agent", "seeds", f"mean {name}", "95 % interval"], rows)


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
    """Yield what the table does not show, one line for all conditions of which it is true."""
    where: dict[tuple[str, str], list[Condition]] = {}
    for match in (change.match for change in found.changes):
        first, second = match.first, match.second
        if first.agent != second.agent:
            text = f"is called {second.agent} in B"
            where.setdefault((first.agent, text), []).append(first)
        if first.environment != second.environment:
            text = f"{first.environment} is called {second.environment} in B"
            where.setdefault(("", text), []).append(first)
        for setting in match.differences:
            text = f"{setting.name} is {setting.first} in A, {setting.second} in B"
            where.setdefault((first.agent, text), []).append(first)
    for match in found.apart:
        name = found.measure.replace("_", " ")
        text = f"in both, but no seed of which both know the {name}"
        where.setdefault((match.first.agent, text), []).append(match.first)
    for side, alone in (("A", found.alone_first), ("B", found.alone_second)):
        for condition in alone:
            where.setdefault((condition.agent, f"only in {side}"), []).append(condition)
    for (agent, text), conditions in where.items():
        yield f"{agent}: {text} ({_horizons(conditions)})" if agent else text


def _horizons(conditions: list[Condition]) -> str:
    """Return environments with their horizons, such as "river, T = 500, 1,000; queue, T = 500"."""
    horizons: dict[str, list[str]] = {}
    for condition in conditions:
        horizons.setdefault(condition.environment, []).append(f"{condition.horizon:,}")
    return "; ".join(f"{name}, T = {', '.join(T)}" for name, T in horizons.items())


_STAGES = {
    "planning": "planning",
    "reading": "planning",
    "compiling": "compiling",
    "oracles": "running",
    "runs": "running",
}
"""What the time of each stage is counted as."""


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path(
        "out/demo"
    ),
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds; 2 for a quick look.")] = 20,
) -> None:
    """Compare SWUCRL2-CW, BORL and the baselines on two environments, and write the report."""
    from windage.validation import as_integer

    as_integer(seeds, "--seeds", low=2)  # one has no spread
    page = output / "report.html"
    require_writable(page)
    import windage as wd
    from windage.atomic_io import write_whole
    from windage.report.page import write_report

    study_file = output / "study.toml"
    text = (files("windage.cli") / "demo.toml").read_bytes()
    text = text.replace(b"seeds = 20\n", b"seeds = %d\n" % seeds)
    write_whole(study_file, lambda file: file.write(text), make_folder=True)
    study = wd.Study.load(study_file)
    say(repr(study))
    clock = _Clock()
    with Progress() as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)  # the page says so, with the numbers

        def follow(status: StudyStatus) -> None:
            if clock.enter(_STAGES[status.stage]):
                _announce(status.stage, progress)
            if status.stage == "runs":
                progress(f"{status.kept + status.made:,} of {status.total:,} runs")

        summary = study.run(output / "results", progress=follow)
        clock.enter("reporting")
        progress("writing the report")
        report = write_report(output / "results", page, progress=progress)
        clock.enter("")
    say()
    for sentence in report.verdict:
        print_text(sentence)
    say()
    kept = f", {summary.kept:,} kept from before" if summary.kept else ""
    print_text(f"{summary.made:,} runs made{kept}; {clock.spent()}.")
    print_text(f"The study is {study_file}: change it, and `windage run` it again.")
    print_text("`windage show riverswim` draws the river itself: its drift, and what is optimal.")
    say(f"The report is {page} ({page.stat().st_size / 1e6:.1f} MB): open it in a browser.")


def _announce(stage: str, progress: Progress) -> None:
    """Show the stages that take long."""
    if stage == "compiling":
        progress("compiling, once per installation")
    elif stage in ("oracles", "runs"):
        progress("computing the optimal gain at every t")


class _Clock:
    """The time each part took, in order."""

    def __init__(self) -> None:
        self._parts: dict[str, float] = {}
        self._now = ""
        self._since = time.perf_counter()

    def enter(self, part: str) -> bool:
        """Go on to a part; return whether it is another than before."""
        if part == self._now:
            return False
        now = time.perf_counter()
        if self._now:
            self._parts[self._now] = self._parts.get(self._now, 0.0) + now - self._since
        self._now, self._since = part, now
        return True

    def spent(self) -> str:
        """Return the parts that took noticeable time."""
        return ", ".join(f"{part} {spent:.1f} s" for part, spent in self._parts.items())
