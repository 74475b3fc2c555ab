"""Every tutorial is a notebook with the code of the page, which tests/docs/test_docs.py runs."""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import os
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest

import windage as wd
from tests.conftest import RELIABILITY
from tests.docs.blocks import blocks
from tests.docs.notebooks import EXERCISES, TUTORIALS, notebook, write


def run(cells, folder):
    """Run code cells in order in one namespace, as a kernel does; `!` lines in a shell."""
    namespace = {"__name__": "__main__"}
    bin_folder = str(Path(sys.executable).parent)
    path = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    for number, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        if cell.source.startswith("!"):
            for line in cell.source.splitlines():
                subprocess.run(
                    line[1:], shell=True, cwd=folder, env=path, check=True, capture_output=True,
                    timeout=120,
                )  # fmt: skip
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(cell.source, f"cell {number}", "exec"), namespace)


def code_of(page):
    """What a page has run, in order: the Python of each block, or its commands and exit codes."""
    found = []
    for block in blocks(page.read_text()):
        if block.language == "python":
            examples = doctest.DocTestParser().get_examples(block.text)
            kept = "".join(one.source for one in examples if one.exc_msg is None)
            found.append((kept if examples else block.text).strip())
        elif block.language == "console":
            lines = ["", *block.text.splitlines()]
            found.append(
                "\n".join(
                    f"!{line[2:]}" + (" || true" if before.startswith("# exits") else "")
                    for before, line in itertools.pairwise(lines)
                    if line.startswith("$ ")
                )
            )
    return found


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_is_a_notebook_with_the_code_of_the_page(page):
    found = notebook(page)
    nbformat.validate(found)
    code = [cell.source for cell in found.cells if cell.cell_type == "code"]
    assert len(code) >= 5
    assert not any(">>>" in cell for cell in code)
    assert code == code_of(page)
    for cell in code:
        if not cell.startswith("!"):
            compile(cell, page.name, "exec")


@pytest.mark.parametrize(
    "page", TUTORIALS if RELIABILITY else TUTORIALS[:1], ids=lambda page: page.stem
)
def test_a_tutorial_runs_as_a_notebook(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(notebook(page).cells, tmp_path)


def test_the_exercise_is_a_notebook_with_blanks_and_its_solution_runs_as_one(tmp_path):
    blank, solution = (notebook(page) for page in EXERCISES)
    nbformat.validate(blank)
    assert sum("your turn" in cell.source for cell in blank.cells) == 4
    assert sum("<solution>" in cell.source for cell in solution.cells) == 4
    with pytest.warns(wd.GuaranteeWarning):
        run(solution.cells, tmp_path)


def test_notebooks_are_written_and_the_same_every_time(tmp_path):
    once, again = (write(tmp_path / name) for name in ("a", "b"))
    assert [path.name for path in once] == [
        f"{page.stem}.ipynb" for page in (*TUTORIALS, *EXERCISES)
    ]
    for one, other in zip(once, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert jupytext.read(one).cells[0].cell_type == "markdown"
