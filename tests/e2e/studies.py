"""Small studies that are really run, for the tests of what is made of them."""

from __future__ import annotations

import windage as wd

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"> %{x} <b>b</b> ${1+1} @agent-0"


def rich(folder, seeds=5):
    """Something for every chart: horizons, a sweep, blocks, windows, an oracle, a floor."""
    study = wd.Study(
        name="something of everything",
        horizon=[200, 400, 800],
        seeds=seeds,
        environments=[{"id": "two-state-cosine", "label": "two states"}],
        agents=[
            {
                "id": "swucrl2-cw",
                "window": [50, 200],
                "widening": [0.05, 0.4],
                "radii": "laplace",
            },
            {
                "id": "borl",
                "label": "BORL",
                "arms": [[[20, 0.1], [80, 0.1], [80, 0.5]]],
                "block_length": 20,
                "radii": "laplace",
            },
            {"id": "sw-psrl", "label": "window PSRL"},
            {"id": "oracle"},
            {"id": "random"},
        ],
    )
    return run(study, folder)


def hostile(folder):
    """Labels that would run scripts, end scripts, load pictures and be formulas."""
    study = wd.Study(
        name=f"name {HOSTILE}",
        horizon=150,
        seeds=3,
        environments=[{"id": "two-state-cosine", "label": f"world {HOSTILE}"}],
        agents=[
            {"id": "ucrl2", "label": f"=cmd|' /C calc'!A0 {HOSTILE}"},
            {"id": "sw-psrl", "label": f"psrl {HOSTILE}"},
            {"id": "random", "label": "x" * 300},
        ],
    )
    return run(study, folder)


def duel(folder, seeds=8, horizon=2_000, label="river"):
    """Two learners of which one is far better, and the floor."""
    study = wd.Study(
        name="a duel",
        horizon=horizon,
        seeds=seeds,
        environments=[{"id": "riverswim", "label": label}],
        agents=[{"id": "sw-psrl", "label": "PSRL"}, {"id": "ucrl2", "label": "UCRL2"}],
    )
    return run(study, folder)


def run(study, folder):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = study.run(folder)
    assert not done.failures, done.failures
    return folder
