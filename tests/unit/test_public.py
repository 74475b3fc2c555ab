"""The front door: names, lazy loading, one source for what is public."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import windage as wd


def test_all_is_complete_and_importable():
    assert len(wd.__all__) == len(set(wd.__all__))  # ruff keeps them sorted
    for name in wd.__all__:
        assert getattr(wd, name) is not None
    assert set(wd.__all__) <= set(dir(wd))


@pytest.mark.parametrize("package", [wd, wd.envs])
def test_a_stub_has_the_public_names_and_type_checkers_see_them(package):
    """Each line re-exports one name, so that mypy --strict knows it from outside."""
    stub = Path(package.__file__).with_suffix(".pyi").read_text()
    lines = re.findall(r"^from ([\w.]+) import (\w+) as (\w+)$", stub, re.MULTILINE)
    assert len(lines) == sum(line.startswith("from ") for line in stub.splitlines())
    assert sorted(name for _, name, _ in lines) == sorted(package.__all__)
    for module, name, public in lines:
        assert name == public
        home = importlib.import_module(module)
        assert getattr(home, name) is getattr(package, name)
        assert package is home or name in home.__all__


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


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import windage.online as old, windage.live as new; assert old is new", "windage.live"),
        ("from windage.masters import Exp3P", "windage.adversarial"),
        ("import windage.streams; windage.streams.stream(0, 'mine')", "windage.rng"),
        ("import windage as wd; wd.masters.Exp3P", "windage.adversarial"),
        ("import windage as wd; wd.streams.stream", "windage.rng"),
        ("import windage as wd; wd.schedules.Walk", "RandomWalk"),
        ("import windage as wd; wd.agents.told('sw-psrl')", "requires"),
    ],
)
def test_old_names_work_and_say_the_new_ones(code, said):
    command = [sys.executable, "-W", "default", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "DeprecationWarning" in done.stderr
    assert said in done.stderr


def test_a_class_of_before_still_says_what_it_is_told():
    with pytest.warns(DeprecationWarning, match=r"Old\.told is now requires"):

        class Old(wd.agents.Agent):
            told = ("the model",)

    assert Old.requires == ("the model",)
