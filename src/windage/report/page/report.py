"""`write_report`: from the folder of a study to the page that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from windage.atomic_io import write_whole
from windage.errors import StateError
from windage.report.page.compose import compose
from windage.report.page.html import Page, render
from windage.report.page.material import Material, gather
from windage.report.page.provenance import provenance, study_text
from windage.report.page.verdict import plain_words
from windage.study.manifest import Manifest
from windage.study.results import load_oracles, load_results
from windage.study.store import Store

__all__ = ["Report", "make_report", "write_report"]


@dataclass(frozen=True, eq=False)
class Report:
    """A page, and what it is made of.

    Attributes
    ----------
    page
        Its words, charts and tables.
    material
        The runs behind it.
    manifest
        The study they belong to.
    """

    page: Page
    material: Material
    manifest: Manifest

    @property
    def done(self) -> int:
        """How many runs are in."""
        return self.material.results.frame.height

    @property
    def wanted(self) -> int:
        """How many runs the study asks for."""
        return len(self.manifest.runs)

    @property
    def verdict(self) -> list[str]:
        """The headline, and then the sentences of every environment."""
        cards = [
            f"{card.title}: {' '.join(plain_words(words) for words in card.sentences)}"
            for card in self.page.cards
        ]
        return [plain_words(self.page.headline), *cards]

    def html(self) -> str:
        """Return the page as one HTML document."""
        return render(self.page)


def make_report(
    folder: str | Path,
    *,
    live: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Gather what a folder of results says.

    Parameters
    ----------
    folder
        What `windage run -o` wrote; runs may be missing, and the page says how many.
    live
        Whether the page is to follow the study, as `windage watch` serves it.
    progress
        Called with what is about to be done.

    Raises
    ------
    StateError
        The folder holds no study, or a damaged file, or no run yet.
    """
    say = progress or _quiet
    say("reading the results")
    store = Store.found(folder)
    manifest = store.manifest()
    frame = load_results(folder, unfinished=True)
    if frame.height == 0 and not live:
        raise StateError(
            "no run is in it yet",
            field=str(folder),
            fix="let `windage run` finish some runs, or follow it with `windage watch`",
        )
    say("comparing the agents")
    material = gather(frame, load_oracles(folder))
    wanted = len(manifest.runs)
    page = compose(
        material,
        title=manifest.name,
        provenance=provenance(store, manifest, complete=frame.height == wanted),
        study_file=study_text(manifest.study),
        asked=[(run.environment, run.agent) for run in manifest.runs],
        live=live,
        progress=progress,
    )
    return Report(page, material, manifest)


def write_report(
    folder: str | Path, target: str | Path, *, progress: Callable[[str], None] | None = None
) -> Report:
    """Write the page of a study to one HTML file, whole or not at all; returns what it says.

    Examples
    --------
    >>> import tempfile, windage as wd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = wd.Study([{"id": "bandit"}], [{"id": "random"}], horizon=100, seeds=2)
    ...     done = study.run(f"{folder}/results", workers=1)
    ...     report = write_report(f"{folder}/results", f"{folder}/report.html")
    >>> report.verdict[0]
    'No learner took part: these are yardsticks only.'
    """
    report = make_report(folder, progress=progress)
    (progress or _quiet)("writing the page")
    data = report.html().encode()
    write_whole(target, lambda file: file.write(data), make_folder=True)
    return report


def _quiet(stage: str) -> None:
    del stage
