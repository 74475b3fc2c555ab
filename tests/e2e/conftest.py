"""A folder of its own for every command, and pictures that are looked at but not painted."""

from pathlib import Path

import pytest

import windage.report


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
