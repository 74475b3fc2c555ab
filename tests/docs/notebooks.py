"""Tutorials and the exercise as notebooks: `python -m tests.docs.notebooks FOLDER` writes them.

A tutorial is a jupytext source: its text becomes Markdown cells, its Python blocks code cells, and
its console blocks cells that call the shell. Prompts and what they print are left out: a notebook
prints for itself.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat.v4

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs/tutorial").glob("*.md"))
EXERCISES = sorted((ROOT / "docs/exercises").glob("*.py"))

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)


def notebook(page: Path) -> Any:
    """Return a tutorial, or a script of cells, as a notebook."""
    text = page.read_text()
    if page.suffix == ".py":
        source = jupytext.reads(text, fmt="py:percent")
        return _made(source.cells, source.metadata)
    source = jupytext.reads(text, fmt="md")
    cells, metadata = [], source.metadata
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    place = 0
    for block in _FENCED.finditer(body):
        cells += _prose(body[place : block.start()])
        place = block.end()
        language, inside = block.groups()
        if language == "python":
            cells.append(nbformat.v4.new_code_cell(_code(inside)))
        elif language == "console":
            cells.append(nbformat.v4.new_code_cell(_shell(inside)))
        elif language != "output":
            cells += _prose(block.group())
    cells += _prose(body[place:])
    return _made(cells, metadata)


def write(folder: Path) -> list[Path]:
    """Write all tutorials, and the exercise with its solution, as notebooks."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in (*TUTORIALS, *EXERCISES):
        path = folder / f"{page.stem}.ipynb"
        jupytext.write(notebook(page), path)
        written.append(path)
    return written


def _made(cells: list[Any], metadata: Any) -> Any:
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not a random one: the same page, the same bytes
    metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _prose(text: str) -> list[Any]:
    return [nbformat.v4.new_markdown_cell(text.strip())] if text.strip() else []


def _code(block: str) -> str:
    if not re.search(r"^\s*>>>", block, re.MULTILINE):
        return block.rstrip()
    examples = [one for one in doctest.DocTestParser().parse(block) if not isinstance(one, str)]
    return "".join(one.source for one in examples if one.exc_msg is None).rstrip()


def _shell(block: str) -> str:
    lines = block.splitlines()
    commands = [
        line[2:] + ("" if lines[max(k - 1, 0)].startswith("# exits") is False else " || true")
        for k, line in enumerate(lines)
        if line.startswith("$ ")
    ]
    return "\n".join(f"!{command}" for command in commands)


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
