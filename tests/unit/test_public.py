"""The front door: names, lazy loading, one source for what is public."""

from __future__ import annotations

import subprocess
import sys

import pytest

import windage as wd


def test_all_is_complete_and_importable():
    assert len(wd.__all__) == len(set(wd.__all__))  # ruff keeps them sorted
    assert set(wd.__all__) == set(wd._HOME) | set(wd._ROOMS)
    for name in wd.__all__:
        assert getattr(wd, name) is not None
    assert set(wd.__all__) <= set(dir(wd))


def test_names_that_do_not_exist_say_so():
    with pytest.raises(AttributeError, match="nothing"):
        wd.nothing  # noqa: B018


def test_importing_and_building_models_loads_neither_numba_nor_plots():
    code = """
import sys, windage as wd
space = wd.StateActions.uniform(2, 1)
model = wd.DriftingMDP(space, [1], [[0, 1]], [[[0, 1], [1, 0]]], horizon=5)
model.budgets(), model.at(3), wd.MDP, wd.schedules.Cosine, wd.envs.names(), wd.agents.names()
heavy = {"numba", "matplotlib", "typer", "rich"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_uses_the_global_generators():
    code = """
import random, numpy as np, windage as wd
random.seed(1); np.random.seed(1)
before = random.getstate(), np.random.get_state()[1].tolist()
world = wd.envs.make("random-drift", horizon=200, shape="walk")
wd.run(world, wd.agents.make("random", world.space, horizon=200), seed=2)
assert before == (random.getstate(), np.random.get_state()[1].tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
