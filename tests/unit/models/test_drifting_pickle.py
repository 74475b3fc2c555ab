"""Models travel to other processes by standard means: small, whole, and with the same answers."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import windage as wd
from tests.drifting import BUILDERS, MODELS, SPACE, T, knots
from windage.models import Blend
from windage.models.files import fingerprint


def turning(t):
    return MODELS[t % 3].rewards, MODELS[t % 3].transitions


MADE = {name: make for name, make in BUILDERS.items() if "function" not in name} | {
    "function": lambda: wd.DriftingMDP.from_function(turning, space=SPACE, horizon=T),
    "noise": lambda: wd.DriftingMDP.stationary(MODELS[0], horizon=T, noise=wd.Noise.beta(3.0)),
}


def used(model):
    """Ask for all that a model keeps for later."""
    model.budgets().windows(3)
    model.disconnections()
    model.at(5)
    fingerprint(model)
    wd.run(model, wd.agents.make("random", model.space, horizon=T))
    return model


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("way", [pickle.HIGHEST_PROTOCOL, 2, "copy", "deepcopy"])
def test_a_model_arrives_as_it_left(name, way):
    model = used(MADE[name]())
    model.name = "mine-v3"
    if isinstance(way, int):
        again = pickle.loads(pickle.dumps(model, protocol=way))
    else:
        again = getattr(copy, way)(model)
    assert (again.space, again.horizon, again.noise, again.name) == (
        model.space, model.horizon, model.noise, "mine-v3",
    )  # fmt: skip
    assert all(again.at(t) == model.at(t) for t in range(1, T + 1))
    assert repr(again.budgets()) == repr(model.budgets())
    assert np.array_equal(again.budgets().reward_steps, model.budgets().reward_steps)
    assert fingerprint(again) == fingerprint(model)
    runs = [
        wd.run(one, wd.agents.make("random", SPACE, horizon=T), seed=4) for one in (again, model)
    ]
    assert runs[0].rewards.tobytes() == runs[1].rewards.tobytes()
    assert runs[0].states.tobytes() == runs[1].states.tobytes()


@pytest.mark.parametrize("name", MADE)
def test_what_arrives_cannot_be_written_to(name):
    again = pickle.loads(pickle.dumps(MADE[name]()))
    if isinstance(again.source, Blend):
        for part in (*again.source.rewards.parts, *again.source.kernels.parts):
            assert not (part if isinstance(part, np.ndarray) else part.data).flags.writeable
    for t in (1, 20, 33):
        mdp = again.at(t)
        rows = mdp.transitions
        assert not mdp.rewards.flags.writeable
        assert not (rows if isinstance(rows, np.ndarray) else rows.data).flags.writeable


@pytest.mark.parametrize("name", MADE)
def test_no_tables_and_nothing_kept_is_sent(name):
    fresh = pickle.dumps(MADE[name]())
    assert len(pickle.dumps(used(MADE[name]()))) <= len(fresh) + 200  # a schedule's few numbers


def test_a_long_blend_is_as_small_as_a_short_one():
    sizes = [
        len(pickle.dumps(used_long(wd.DriftingMDP.blend(MODELS, wd.schedules.Cosine(), horizon=n))))
        for n in (10, 100_000)
    ]
    assert sizes[1] <= sizes[0] + 50


def used_long(model):
    model.source.tables(1, model.horizon)
    return model


def work(model):
    """Run in another process."""
    run = wd.run(model, wd.agents.make("random", model.space, horizon=T), seed=9)
    return run.rewards.tobytes(), model.budgets().transition, fingerprint(model)


def test_workers_find_what_this_process_finds():
    names = ("knots", "own weights", "arrays", "function")
    models = [MADE[name]() for name in names]
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as pool:
        found = list(pool.map(work, models))
    assert found == [work(model) for model in models]


def test_functions_that_cannot_travel_say_so():
    model = wd.DriftingMDP.from_function(lambda t: turning(t), space=SPACE, horizon=T)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(model)


@pytest.mark.parametrize("name", ["space", "horizon", "noise", "source", "nmae"])
def test_attributes_cannot_be_assigned(name):
    model = knots([1, 5])
    before = repr(model)
    with pytest.raises(AttributeError):
        setattr(model, name, 3)
    assert repr(model) == before
    assert isinstance(model.source.kernels.parts, tuple)


@pytest.mark.parametrize("name", ["", 3, "two\nlines"])
def test_a_label_is_a_name(name):
    model = knots([1])
    with pytest.raises(wd.InputError, match="name: "):
        model.name = name
    assert model.name is None
