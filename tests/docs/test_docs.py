"""The words of the project are run: code on every page, links, names and paths.

On a page, ```python blocks run in order in one namespace and one temporary folder. A block with
`>>>` prompts is a doctest. In ```console blocks the lines `$ windage ...` are run and must exit
with 0, or with the code that a line `# exits N` above them names. What is shown below a command,
and an ```output block below a script, is compared with what was printed; `...` stands for anything.
A ```toml block that starts with the comment `# name.toml` is written to a file of that name.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.metadata
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import windage as wd
from tests.docs.blocks import Block, blocks
from tests.in_process import windage_here
from windage.envs.registry import REGISTERED

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LANGUAGES = {"python", "console", "output", "text", "toml"}
PROGRAMS = {
    ("README.md", "show"),
    ("docs/tutorial/2-your-first-regret-curve.md", "try"),
    ("docs/howto/your-own-agent.md", "check-agent"),
    ("docs/howto/bad-input.md", "check"),
    ("docs/reference/command-line.md", "agents"),
}
"""Page and verb of commands that run in a process of their own; the others run in this one."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(page: str, name: str, folder: Path) -> int:
    """Run all that a page shows; return how many blocks ran."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    count = 0
    for block in blocks(page):
        place = f"{name}:{block.line}"
        assert block.language in LANGUAGES, f"{place}: {block.language!r} is not {LANGUAGES}"
        if block.language == "output":
            assert printed is not None, f"{place}: there is no script above"
            assert_prints(block.text, printed, place)
        elif block.language == "toml" and (named := re.match(r"# ([\w-]+\.toml)\n", block.text)):
            (folder / named[1]).write_text(block.text)
        elif block.language == "console":
            run_console(block, place, folder)
        elif block.language == "python":
            printed = run_python(block, place, namespace)
        count += block.language in ("python", "console", "output")
    return count


def run_python(block: Block, place: str, namespace: dict[str, object]) -> str | None:
    """Run a script and return what it printed, or compare a doctest."""
    if not re.search(r"^\s*>>>", block.text, re.MULTILINE):
        tree = ast.parse(block.text, place)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(tree, place, "exec"), namespace)
        return out.getvalue()
    test = doctest.DocTestParser().get_doctest(block.text, {}, place, place, block.line - 1)
    test.globs = namespace
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=report.write, clear_globs=False)
    assert runner.failures == 0, report.getvalue()
    return None


def run_console(block: Block, place: str, folder: Path) -> None:
    """Run the `$ windage` lines of a block; other commands are for the reader."""
    commands: list[tuple[list[str], int, list[str]]] = []
    code = 0
    for line in block.text.splitlines():
        if marked := re.fullmatch(r"# exits (\d+)", line):
            code = int(marked[1])
        elif line.startswith("$ "):
            commands.append((shlex.split(line[2:]), code, []))
            code = 0
        else:
            assert commands, f"{place}: there is no command above {line!r}"
            commands[-1][2].append(line)
    for command, wanted, shown in commands:
        if command[0] == "windage":
            run_command(command, wanted, "\n".join(shown), place, folder)


def run_command(command: list[str], code: int, shown: str, place: str, folder: Path) -> None:
    """Run a command of a page: here, or the way the reader does, if it is one of `PROGRAMS`."""
    page, verb = place.rpartition(":")[0], command[1]
    plain = {"MPLBACKEND": "Agg", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}
    if (page, verb) in PROGRAMS:
        script = Path(sys.executable).with_name("windage")
        done = subprocess.run(
            [str(script), *command[1:]],
            cwd=folder, env=os.environ | plain, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    else:
        done = windage_here(command[1:], folder, plain)
    said = done.stdout + done.stderr
    assert done.returncode == code, f"{place}: {command} exits {done.returncode}\n{said}"
    if shown.strip():
        assert_prints(shown, said, place)


def assert_prints(wanted: str, printed: str, place: str) -> None:
    checker = doctest.OutputChecker()
    same = checker.check_output(wanted.strip() + "\n", printed.strip() + "\n", FLAGS)
    assert same, f"{place}: the page shows\n{wanted}\nbut this is printed\n{printed}"


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^\s*```.*?^\s*```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """Return the anchor of a heading as the site generator makes it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(autouse=True)
def same_environments() -> Iterator[None]:
    """A page may register an environment; the other tests must not meet it."""
    before = dict(REGISTERED)
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(), name_of(page), tmp_path)


def test_the_tutorial_and_the_readme_show_something() -> None:
    languages = {
        page: [block.language for block in blocks((ROOT / page).read_text())]
        for page in ("README.md", "docs/tutorial/1-a-world-that-drifts.md")
    }
    for page, found in languages.items():
        assert "python" in found, page
        assert "console" in found, page


@pytest.mark.parametrize(
    "broken",
    [
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nif True print(1)\n```\n",
        "```python\n>>> if True print(1)\n```\n",
        "```python\nassert False\n```\n",
        "```python\nprint(2)\n```\n\n```output\n3\n```\n",
        "```output\n3\n```\n",
        "```python\n1\n",
        "```\nno language\n```\n",
        "```console\n$ windage no-such-verb\n```\n",
        "```console\n# exits 2\n$ windage --version\n```\n",
        "```console\n$ windage --version\nwindage 99\n```\n",
        "```console\n# exits 2\n$ windage no-such-verb\n$ windage no-such-verb\n```\n",
        "```console\nwindage 0.1.0\n$ windage --version\n```\n",
    ],
)
def test_a_broken_page_fails(broken: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, SyntaxError)):
        run_page(broken, "broken.md", tmp_path)


def test_a_page_is_one_namespace(tmp_path: Path) -> None:
    page = "```python\nx = 2\n```\n```python\n>>> x + 1\n3\n>>> y = 5\n```\n"
    page += "```python\nprint(x, y)\n```\n```output\n2 ...\n```\n"
    assert run_page(page, "page.md", tmp_path) == 4


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        assert "://" not in target, f"{name_of(page)}: {target} leaves the project"
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), f"{name_of(page)}: {target} does not exist"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", prose(aim), re.MULTILINE)
            assert anchor in map(slug, headings), f"{name_of(page)}: {target} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_named_in_the_text_exist(page: Path) -> None:
    for named in re.findall(r"`((?:src|tests|docs|benchmarks|paper)/[^`\s]+)`", prose(page)):
        path, *names = named.split("::")
        assert (ROOT / path).exists(), f"{name_of(page)}: there is no {path}"
        body = ast.parse((ROOT / path).read_text()).body if names else []
        for name in names:  # a method needs its class, or pytest does not find it
            found = [node for node in body if getattr(node, "name", None) == name]
            assert found, f"{name_of(page)}: there is no {named}"
            body = getattr(found[-1], "body", [])


def test_every_public_name_is_in_the_reference() -> None:
    reference = "\n".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    missing = [name for name in wd.__all__ if not re.search(rf"\b{name}\b", reference)]
    assert not missing


def test_every_environment_is_described_with_its_parameters() -> None:
    page = (ROOT / "docs/reference/environments.md").read_text()
    sections = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    sections |= dict(re.findall(r"^\| `([\w-]+)` \|(.*)$", page, re.MULTILINE))
    assert sections.keys() == set(wd.envs.names())
    for name, text in sections.items():
        for parameter in wd.envs.get(name).parameters:
            assert f"`{parameter}`" in text, f"{name}: {parameter}"


def test_every_room_is_in_the_architecture() -> None:
    source = ROOT / "src/windage"
    rooms = {path.stem for path in source.iterdir() if path.stem[0] not in "_."} - {"py"}
    rooms -= set(wd._RENAMED)
    page = (ROOT / "docs/architecture.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert set(listed) == rooms
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = ["paper", *(f"windage.{room}" for room in listed)]
    drawn = [room for layer in linted["contracts"][0]["layers"] for room in layer.split(" : ")]
    assert layers == drawn
    drawn = re.findall(r">(\w+)</text>", (ROOT / "docs/architecture.svg").read_text())
    inside = {path.stem for path in (source / "models").glob("[a-z]*.py")}
    assert len(inside) >= 8
    assert rooms | inside <= set(drawn), (rooms | inside) - set(drawn)


def test_every_erratum_is_listed_once() -> None:
    page = (ROOT / "docs/paper/errata.md").read_text()
    assert re.findall(r"^### (E\d+)", page, re.MULTILINE) == [f"E{i}" for i in range(1, 41)]
    sections = re.split(r"^### E\d+.*$", page, flags=re.MULTILINE)[1:]
    assert all("**Reading.**" in section and "**Shown by.**" in section for section in sections)


def test_the_commit_hooks_are_what_make_check_runs() -> None:
    recipe = (ROOT / "Makefile").read_text().split("\ncheck:")[1].split("\n\n")[0]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"entry: \.venv/bin/(.+)", hooks) == re.findall(r"\$\(BIN\)/(.+)", recipe)


def test_the_version_is_the_same_everywhere() -> None:
    version = importlib.metadata.version("windage")
    assert wd.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert version in (ROOT / "CHANGELOG.md").read_text()
