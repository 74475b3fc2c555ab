"""A folder of its own for every command, and pictures that are looked at but not painted."""

import contextlib
import sys
from pathlib import Path

import pytest

import windage.report
from tests.e2e import studies
from tests.e2e.browser import Visit
from tests.e2e.chrome import MISSING, find_chrome
from tests.e2e.terminal import Terminal


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unpainted(monkeypatch):
    """What would have been drawn, by the name of its file; for tests of what a command says."""
    pictures = {}

    def drift_figure(model, run, title, *, agent):
        return {"model": model, "runs": {agent: run}, "title": title}

    def oracle_figure(model, truth, runs, title):
        return {"model": model, "runs": dict(runs), "title": title, "truth": truth}

    def save_figure(figure, path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        pictures[str(path)] = figure

    for stand_in in (drift_figure, oracle_figure, save_figure):
        monkeypatch.setattr(windage.report, stand_in.__name__, stand_in)
    return pictures


@pytest.fixture(scope="session")
def rich_study(tmp_path_factory):
    return studies.rich(tmp_path_factory.mktemp("rich") / "results")


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests of a worker; a machine without one fails, and is told why."""
    from playwright.sync_api import sync_playwright

    path = find_chrome()
    if path is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Open pages that are closed after the test."""
    with _visits(chromium) as opened:
        yield opened


@pytest.fixture(scope="module")
def visit_once(chromium):
    """Open pages that several tests look at, and none changes."""
    with _visits(chromium) as opened:
        yield opened


@contextlib.contextmanager
def _visits(chromium):
    """Open a page at a width, in light or dark, with the network off."""
    contexts = []

    def open_page(path, width=1280, scheme="light", *, offline=True, touch=False):
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            offline=offline,
            has_touch=touch,
            accept_downloads=True,
        )
        contexts.append(context)
        return Visit(context.new_page()).open(path)

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def terminal(monkeypatch):
    """Stands in for standard error once it is called: capturing would undo that before the test."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")

    def opened():
        made = Terminal()
        monkeypatch.setattr(sys, "stderr", made)
        return made

    return opened
