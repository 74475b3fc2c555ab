"""`windage paper`: the results of the paper, computed, each with a table and a picture."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from windage.cli.terminal import Progress, print_table, print_text, require_writable, say

_ALL = "all"
_CHECKOUT = Path(__file__).parents[3]  # in an installed package: where Python's libraries are
_NOT_AS_EXPECTED = 1  # with --strict only: an honest no is a result, not a command that failed


def paper(
    result: Annotated[
        str | None,
        typer.Argument(metavar="[RESULT]", help="One result, or `all`; none lists them."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder for pages and pictures.")
    ] = Path("out/paper"),
    horizon: Annotated[
        int | None,
        typer.Option(
            "-T",
            "--horizon",
            help="Steps of each run, or of the longest; too few are refused.",
            min=1,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Number of seeds; those of the documentation if not given.", min=1),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller form, and marked as one.")
    ] = False,
    kind: Annotated[str, typer.Option(help="Kind of picture: svg, png or pdf.")] = "svg",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if an expectation does not hold.")
    ] = False,
) -> None:
    """Compute results of the paper: tables, a picture, what was expected and what was seen.

    Each expectation is judged from its numbers, and what does not hold is said; that is a result
    and no failure.
    """
    from windage.report.figures.style import picture_kind
    from windage.validation import as_choice

    results = _results()
    if result is None:
        print_table(["result", "what"], [list(row) for row in results.SUMMARIES.items()])
        print_text("`windage paper RESULT` computes one, `windage paper all` all of them.")
        return
    as_choice(result, "result", [*results.names(), _ALL])
    chosen = results.names() if result == _ALL else [result]
    for name in chosen:
        picture_kind(output / f"{name}.{kind}")
        require_writable(output / f"{name}.{kind}")
    results.require(chosen, results.Effort(horizon))
    found = []
    for name in chosen:
        with Progress() as progress:
            effort = results.Effort(horizon, seeds, quick, progress)
            one = results.compute(name, effort)
        _show(one, _written(one, output, kind))
        found.append(one)
    if result == _ALL:
        _write_index(found, output)
        print_text(_counted(found))
        print_text(f"All pages are in {output}, the first is {output / 'index.md'}.")
    if strict and not all(one.holds for one in found):
        raise typer.Exit(_NOT_AS_EXPECTED)


def _results() -> Any:
    """Import the folder `paper` of the checkout, which is not part of the installed package."""
    from windage import __version__
    from windage.errors import InputError

    if not (_CHECKOUT / "paper" / "result.py").is_file():
        raise InputError(
            "the results of the paper are not part of the installed package",
            field="paper",
            fix=f"unpack the source distribution of windage {__version__} (python -m pip download "
            "--no-binary windage windage), run python -m pip install -e . in it, and try again",
        )
    if str(_CHECKOUT) not in sys.path:
        sys.path.insert(0, str(_CHECKOUT))
    return importlib.import_module("paper")


def _written(result: Any, folder: Path, kind: str) -> Path:
    """Write the page and the picture of a result; return where the picture is."""
    from windage.report.figures.style import save_figure

    picture = folder / f"{result.name}.{kind}"
    save_figure(result.figure, picture)
    _write_text(folder / f"{result.name}.md", result.markdown(picture.name))
    for name, text in result.extras.items():
        _write_text(folder / name, text)
    return picture


def _write_text(path: Path, text: str) -> None:
    from windage.atomic_io import write_whole

    data = text.encode()
    write_whole(path, lambda file: file.write(data), make_folder=True)


def _show(result: Any, picture: Path) -> None:
    say(f"{result.title}\n")
    for table in result.tables:
        say(table.title)
        print_table(table.headers, table.rows)
        say()
    print_text(result.verdict())
    print_text(f"The picture is {picture}, the page {picture.with_suffix('.md')}.")
    say()


def _broken(result: Any) -> str:
    """Return the names of the expectations that do not hold."""
    return ", ".join(check.name for check in result.checks if not check.holds)


def _counted(found: list[Any]) -> str:
    """Say how many results are as expected, and what of the others does not hold."""
    others = [f"{one.name} ({_broken(one)})" for one in found if not one.holds]
    said = f"{len(found) - len(others)} of {len(found)} results are as expected."
    return f"{said} What does not hold: {'; '.join(others)}." if others else said


def _write_index(found: list[Any], folder: Path) -> None:
    """Write the page that leads to all others."""
    results = _results()
    starred = importlib.import_module("paper.result").starred
    lines = ["# The paper, checked", "", _INTRODUCTION, "", "| result | what | as expected |"]
    lines += ["|---|---|---|"]
    for one in found:
        held = "yes" if one.holds else f"no: {_broken(one)}"
        what = starred(results.SUMMARIES[one.name])
        lines.append(f"| [{one.name}]({one.name}.md) | {what} | {starred(held)} |")
    _write_text(folder / "index.md", "\n".join([*lines, ""]))


_INTRODUCTION = """\
What the paper claims and can be computed is computed here. Each page begins with what was
expected, what was seen, both sides in numbers, and whether it holds; the picture and the tables it
comes from follow. The last column names what does not hold. `windage paper all -o
docs/paper/results` makes all of them again, `windage paper RESULT` one, with `-T`, `--seeds` and
`--quick` for other sizes. Where the printed form of a claim is false, the [errata](../errata.md)
say why and which form is checked."""
