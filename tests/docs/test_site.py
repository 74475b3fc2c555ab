"""Pages that are made: the reference from docstrings, benchmark figures, notation that exists."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

import paper
import windage as wd
from benchmarks import page as benchmarks_page

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
    assert re.search(
        r"wd\.SWUCRL2CW\(space, \*, horizon, window, widening, boundary='start', delta=0\.05", text
    )
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
        files = re.findall(r"`((?:src|tests|paper)/[^`]+)`", line)
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


def said(broken):
    return "no: " + ", ".join(broken) if broken else "yes"


NOT_AS_EXPECTED = {
    "bandit": "batches",
    "piecewise": "on jumps",
    "rates": "printed, T",
    "tuning": r"(W\*, eta\*)",
}
"""What does not hold in the documentation, and is said not to: another would be news."""


def test_every_result_has_a_page_a_picture_and_a_line_in_the_map():
    notation = (ROOT / "docs/paper/notation.md").read_text()
    index = (ROOT / "docs/paper/results/index.md").read_text()
    nav = (ROOT / "mkdocs.yml").read_text()
    for name in paper.names():
        page = (ROOT / f"docs/paper/results/{name}.md").read_text()
        assert "--quick" not in page, "the documentation has the full form"
        broken = re.findall(r"^\| ([^|]+) \| .* \| does not hold \|$", page, re.MULTILINE)
        assert broken == ([NOT_AS_EXPECTED[name]] if name in NOT_AS_EXPECTED else [])
        assert re.search(rf"^\| \[{name}\].* \| {re.escape(said(broken))} \|$", index, re.MULTILINE)
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


def named_tests(text):
    """The tests that a text names, as path::function, and those of them that do not exist."""
    named = re.findall(r"`(tests/[^`\s]+::\w+)`", text)
    unknown = []
    for one in named:
        path, function = one.split("::")
        file = ROOT / path
        if not (file.exists() and re.search(rf"def {function}\(", file.read_text())):
            unknown.append(one)
    return named, unknown


def claims_without_a_test(page):
    """C1..C12 and the numbered statements whose rows name no test of tests/paper that exists."""
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    wanted = {f"C{i}": rf"\| [^|]*\bC{i}\b[^|]* \|" for i in range(1, 13)}
    statements = (
        "Proposition 1", "Proposition 2", "Proposition 3", "Theorem 2", "Remark on bandits",
        "Remark on unknown budgets", "Properties 1 and 2",
    )  # fmt: skip
    wanted |= {name: rf"\| [^|]*\b{name}\b[^|]* \|" for name in statements}
    missing = []
    for name, first in wanted.items():
        found = [named_tests(row) for row in rows if re.match(first, row)]
        kept = [one for named, unknown in found for one in named if one not in unknown]
        broken = any(unknown for _, unknown in found)
        if broken or not any(one.startswith("tests/paper/") for one in kept):
            missing.append(name)
    return missing


def errata_without_a_test(page):
    """Ids whose sections name a test that does not exist, or none in tests/paper with the id."""
    sections = re.split(r"^##+ (.+)\n", page, flags=re.MULTILINE)[1:]
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    missing = []
    for i in range(1, 41):
        named, unknown = named_tests(texts[f"E{i}"])
        if i == 37:  # clashes of symbols
            assert "Reading only" in texts["E37"]
            continue
        own = [one for one in named if re.search(rf"tests/paper/.*_e{i}(_|\b)", one)]
        if unknown or not own:
            missing.append(f"E{i}")
    return missing


def test_every_claim_and_statement_has_a_test_that_exists():
    assert claims_without_a_test((ROOT / "docs/paper/notation.md").read_text()) == []


def test_every_erratum_that_can_be_run_has_a_test_that_exists():
    assert errata_without_a_test((ROOT / "docs/paper/errata.md").read_text()) == []


@pytest.mark.parametrize(
    ("page", "check", "test", "whose"),
    [
        ("errata", errata_without_a_test, "test_e2_a_floor_leaves_one_and_zeros", "E2"),
        ("errata", errata_without_a_test, "test_e16_a_step_is_counted_2w_less_one_times", "E16"),
        ("notation", claims_without_a_test, "test_c2_the_number_of_episodes", "C2"),
        ("notation", claims_without_a_test, "test_c9_proposition_2_step_by_step", "C9"),
    ],
)  # fmt: skip
def test_a_test_that_was_renamed_is_found_out(page, check, test, whose):
    text = (ROOT / f"docs/paper/{page}.md").read_text()
    assert test in text
    assert whose in check(text.replace(test, test + "_no_more"))
    assert whose in check(re.sub(rf"`tests/[^`]+::{test}`", "nothing", text))


def test_what_the_readme_says_of_the_rates_is_in_their_table():
    readme = " ".join((ROOT / "README.md").read_text().split())
    said = re.search(
        r"from ([\d.]+) at 10,000 steps to ([\d.]+) at a million and ([\d.]+) at a hundred million",
        readme,
    )
    page = (ROOT / "docs/paper/results/rates.md").read_text()
    rows = dict(re.findall(r"^\| ([\d,]+) \| (0\.\d+) \(", page, re.MULTILINE))
    wanted = [rows[T] for T in ("10,000", "1,000,000", "100,000,000")]
    assert list(said.groups()) == [f"{float(value):.2f}" for value in wanted]
    broken = re.search(r"each expectation judged from its numbers: (\w+) do not hold", readme)
    assert {"three": 3, "four": 4}[broken[1]] == len(NOT_AS_EXPECTED)
