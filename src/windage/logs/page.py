"""The page of an inspected log: one HTML file, its pictures inside, nothing fetched."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

import jinja2
import matplotlib as mpl
from matplotlib.figure import Figure

from windage.atomic_io import write_whole
from windage.errors import InputError
from windage.logs import pictures
from windage.logs.inspection import NO_REGRET, Inspection

__all__ = ["page", "save_page"]

_TEMPLATE = Path(__file__).with_name("page.html.j2")
_NAMED = 200  # unusable lines in the table


def save_page(found: Inspection, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    require_html(path)
    text = page(found).encode()

    def write(file: BinaryIO) -> None:
        file.write(text)

    write_whole(path, write, make_folder=True)


def require_html(path: str | Path) -> None:
    """Refuse a name that is not a page's."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError("is not a page", field=str(path), fix="name a file that ends in .html")


def page(found: Inspection) -> str:
    """Return the page as text."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    sections = (
        ("Where it drifted: half-window tests", pictures.evidence_figure, (
            "Each dot is a test at the middle of a window; large dots are wide windows. Dots above "
            "the line are changes that chance does not explain, all tests considered together."
        )),
        ("Stretches that stand still", pictures.changes_figure, (
            "The mean reward over time, and where the change-point view begins a new stretch. The "
            "reward may also change because other actions were taken; the cuts do not mind that."
        )),
        ("How much it drifted", pictures.budgets_figure, (
            "The estimates of B_r and B_p, and the same sums over logs with the same visits whose "
            "outcomes were drawn from one law."
        )),
        ("The fitted model", pictures.pairs_figure, "What changes most in it."),
        ("What was played", pictures.visits_figure, (
            "Visits of each pair over time. Where a row is dark, the log knows nothing."
        )),
    )  # fmt: skip
    return template.render(
        found=found,
        log=found.log,
        words=[text for text in found.words() if text != NO_REGRET],
        no_regret=NO_REGRET,
        sections=[
            (title, _svg(draw(found), k), text) for k, (title, draw, text) in enumerate(sections)
        ],
        unusable=found.log.unusable[:_NAMED],
    )


def _svg(figure: Figure, number: int) -> str:
    """Return a figure as SVG to stand in a page: its names are its own, its bytes the same."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": f"windage-{number}", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]
