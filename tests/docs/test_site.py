"""Pages that are made: the reference from docstrings, benchmark figures, notation that exists."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from benchmarks import page as benchmarks_page

import windage as wd
from windage import paper

ROOT = Path(__file__).parents[2]


def api():
    spec = importlib.util.spec_from_file_location("api", ROOT / "docs" / "api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_public_name_and_says_something_of_it():
    text = api().page()
    sections = dict(re.findall(r"^## wd\.(\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert sections.keys() == set(wd.__all__)
    for name, section in sections.items():
        prose = re.sub(r"```.*?```", "", section, flags=re.DOTALL)
        assert len(prose.split()) > 3, name
    assert "wd.SWUCRL2CW(space, *, horizon, window, widening, delta=0.05" in text
    assert "| `.tuned(*, " not in text  # the first argument of a class method is not the class
    assert re.search(r"\| `\.tuned\(space, \*, horizon, reward_budget", text)
    assert "`run`: A full record" in sections["regret_terms"]


def test_the_page_of_benchmarks_has_the_figures_that_are_kept():
    results = json.loads(benchmarks_page.RESULTS.read_text())
    assert benchmarks_page.PAGE.read_text() == benchmarks_page.text(results), (
        "run python -m benchmarks.page"
    )
    text = benchmarks_page.PAGE.read_text()
    for group in results.values():
        assert all(what in text for what in group["figures"])


def rows_of_notation():
    page = (ROOT / "docs/paper/notation.md").read_text()
    for line in page.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        files = re.findall(r"`((?:src|tests)/[^`]+)`", line)
        if len(cells) == 4 and files:
            yield pytest.param(cells[2], files, id=cells[0])


@pytest.mark.parametrize(("names", "files"), list(rows_of_notation()))
def test_names_of_the_notation_are_in_the_files_it_sends_to(names, files):
    """Some word of the column "name in the code" is a word of one of the files."""
    words = {word for code in re.findall(r"`([^`]+)`", names) for word in re.findall(r"\w+", code)}
    texts = "\n".join((ROOT / path).read_text() for path in files)
    known = set(re.findall(r"\w+", texts))
    generic = {"wd", "model", "agent", "run", "space", "s", "a", "t", "m", "i", "k", "pair", "T"}
    assert (words - generic) & known or not words - generic, (names, files)


def test_every_result_has_a_page_a_picture_and_a_line_in_the_map():
    notation = (ROOT / "docs/paper/notation.md").read_text()
    nav = (ROOT / "mkdocs.yml").read_text()
    for name in paper.names():
        page = (ROOT / f"docs/paper/results/{name}.md").read_text()
        assert "--quick" not in page, "the documentation has the full form"
        assert "**Seen.**" in page, "not as expected"
        assert (ROOT / f"docs/paper/results/{name}.svg").exists()
        assert f"results/{name}.md" in notation
        assert f"paper/results/{name}.md" in nav


def test_the_map_has_every_claim_and_every_numbered_statement():
    page = (ROOT / "docs/paper/notation.md").read_text()
    for wanted in (
        *(f"C{i}" for i in range(1, 13)), *(f"({i})" for i in range(1, 11)),
        "Algorithm 1", "Algorithm 2", "Algorithm 3", "Theorem 1", "Theorem 2", "Proposition 1",
        "Proposition 2", "Proposition 3", "Properties 1, 2", "Assumption 1", "Definition 1",
        "figures 1 to 4", "Remark on bandits", "Remark on unknown budgets",
    ):  # fmt: skip
        assert wanted in page, wanted
    labels = ("mc", "dev_r_p", "dev_rho", "cross_p_error", "Q_size", "Q_tilde", "Q_error",
              "number_episode", "episode_errror", "adv_error", "sto_error")  # fmt: skip
    assert all(name in page for name in labels)


def test_every_claim_has_a_test_of_its_name():
    tests = "\n".join(path.read_text() for path in (ROOT / "tests/paper").glob("*.py"))
    for i in range(1, 13):
        assert re.search(rf"def test_c{i}_|def test_\w*_c{i}_", tests), f"C{i}"


def test_every_erratum_that_can_be_run_has_a_test():
    page = (ROOT / "docs/paper/errata.md").read_text()
    sections = re.split(r"^### (E\d+)\n", page, flags=re.MULTILINE)[1:]
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        if name == "E37":  # clashes of symbols
            assert "Reading only" in text
        else:
            assert re.search(r"`tests/[^`]+::\w+`", text), name
