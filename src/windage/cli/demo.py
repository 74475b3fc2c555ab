"""`windage demo`: the paper's learners and the baselines on two drifting environments."""

from __future__ import annotations

import time
import warnings
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.options import require_writable
from windage.cli.terminal import Progress, print_text, say

if TYPE_CHECKING:
    from windage.study.study import StudyStatus

__all__ = ["demo"]

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
) -> None:
    """Compare SWUCRL2-CW, BORL and the baselines on two environments, and write the report."""
    page = output / "report.html"
    require_writable(page)
    import windage as wd
    from windage.atomic_io import write_whole
    from windage.report.page import write_report

    study_file = output / "study.toml"
    text = (files("windage.cli") / "demo.toml").read_bytes()
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
