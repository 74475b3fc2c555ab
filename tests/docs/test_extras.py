"""What the pages import can be installed: it is a dependency, or in an extra that users have."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for folder in ("howto", "reference", "tutorial")
    for page in (ROOT / "docs" / folder).glob("*.md")
)
IMPORT = re.compile(r"^(?:>>> |\.\.\. )?(?:from|import) ([A-Za-z_]\w*)", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OF_THE_TUTORIALS = {"vega-datasets"}  # the logs they read; they say so themselves


def installable():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    for name, packages in extras.items():
        if name not in ("dev", "docs"):
            wanted += packages
    return {re.match(r"[\w-]+", package)[0].lower().replace("_", "-") for package in wanted}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_what_a_page_imports_can_be_installed(page):
    known = packages_distributions()
    for block in BLOCK.findall(page.read_text()):
        for module in IMPORT.findall(block):
            if module in sys.stdlib_module_names or module not in known or module == "windage":
                continue  # a module that no package has is one the page itself writes
            names = {name.lower().replace("_", "-") for name in known[module]}
            assert names & (installable() | OF_THE_TUTORIALS), f"{module} of {page.name}"


def test_every_python_that_is_named_is_tested():
    """Classifiers, the workflow's matrix and the least version are one list."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    matrix = re.search(r"python: \[(.*)\]", workflow)[1]
    assert named == ["3.11", "3.12", "3.13", "3.14"] == re.findall(r"3\.\d+", matrix)
    assert project["requires-python"] == f">={named[0]}"
    assert f'python-version: "{named[0]}"' in workflow.partition("lowest:")[2]


def test_what_the_paper_cites_is_in_its_bibliography():
    text = (ROOT / "paper.md").read_text()
    entries = (ROOT / re.search(r"^bibliography: (.+)$", text, re.MULTILINE)[1]).read_text()
    known = re.findall(r"^@\w+\{(\w+),", entries, re.MULTILINE)
    cited = re.findall(r"@(\w+)", text)
    assert len(set(cited)) > 5
    assert set(cited) <= set(known)
