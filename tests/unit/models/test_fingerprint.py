"""Fingerprints: the same for the same content, another for any other."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

import windage as wd
from tests.drifting import BUILDERS, MODELS, SPACE, T
from windage.models import files as module
from windage.models.files import fingerprint


@pytest.mark.parametrize("name", BUILDERS)
def test_a_model_its_twin_its_copy_and_its_file_have_one(name, tmp_path):
    model = BUILDERS[name]()
    model.save(tmp_path / "model.npz")
    others = (BUILDERS[name](), copy.deepcopy(model), wd.load(tmp_path / "model.npz"))
    assert {fingerprint(other) for other in others} == {fingerprint(model)}
    assert len(fingerprint(model)) == 32


TWICE = wd.schedules.Cosine(2)


def blend(
    models=MODELS[:2],
    schedule=TWICE,
    rewards=None,
    horizon=10**6,
    noise="bernoulli",
):
    return wd.DriftingMDP.blend(models, schedule, rewards, horizon=horizon, noise=noise)


def nudged(mdp, side):
    """The next floating-point number in one place."""
    r, p = np.array(mdp.rewards), np.array(mdp.transitions)
    if side == "rewards":
        r[3] = np.nextafter(r[3], 1)
    else:
        p[2, 1] = np.nextafter(p[2, 1], 1)
    return wd.MDP(SPACE, r, p)


def knots(times, interpolation="linear"):
    return wd.DriftingMDP(
        SPACE, times, [MODELS[0].rewards] * 2 + [MODELS[1].rewards],
        [MODELS[0].transitions] * 2 + [MODELS[1].transitions],
        horizon=10**6, interpolation=interpolation,
    )  # fmt: skip


OTHERS = {
    "as it is": blend(),
    "order": blend(MODELS[1::-1]),
    "one more model": blend(MODELS),
    "a reward": blend([nudged(MODELS[0], "rewards"), MODELS[1]]),
    "a probability": blend([MODELS[0], nudged(MODELS[1], "transitions")]),
    "schedule": blend(schedule=wd.schedules.Cosine(2.0000001)),
    "kind of schedule": blend(schedule=wd.schedules.Linear(2)),
    "seed": blend(schedule=wd.schedules.RandomWalk(1)),
    "another seed": blend(schedule=wd.schedules.RandomWalk(2)),
    "rewards' schedule": blend(rewards=wd.schedules.Linear()),
    "sides swapped": blend(schedule=wd.schedules.Linear(), rewards=wd.schedules.Cosine(2)),
    "horizon": blend(horizon=10**6 + 1),
    "noise": blend(noise="none"),
    "spread": blend(noise=wd.Noise.gaussian(0.1)),
    "another spread": blend(noise=wd.Noise.gaussian(0.2)),
    "knots": knots([1, 7, 500_000]),
    "other knots": knots([1, 8, 500_000]),  # seen at 64 evenly spaced times they are one
    "step": knots([1, 7, 500_000], "step"),
    "other steps": knots([1, 8, 500_000], "step"),
    "jump": blend(schedule=wd.schedules.Steps([500_000, 500_001])),
    "no jump": blend(schedule=wd.schedules.Steps()),
}


def test_any_other_content_has_another():
    for (a, one), (b, other) in itertools.combinations(OTHERS.items(), 2):
        assert fingerprint(one) != fingerprint(other), (a, b)


def test_action_sets_of_other_shapes_have_another():
    """The same numbers over four pairs, shared out differently."""
    rows, rewards = [[0.5, 0.5]] * 4, [0.1, 0.2, 0.3, 0.4]
    spaces = [wd.StateActions(counts) for counts in ([2, 2], [1, 3], [3, 1])]
    models = [wd.MDP(space, rewards, rows) for space in spaces]
    found = {fingerprint(wd.DriftingMDP.stationary(mdp, horizon=5)) for mdp in models}
    assert len(found) == 3


@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_probabilities_elsewhere_have_another(sparse):
    """Ones that lead to other states, and rows that share out the same numbers differently."""
    three = wd.StateActions([1, 1, 1])
    kernels = [np.roll(np.eye(3), k, axis=1) for k in range(3)]
    kernels += [np.array(rows) / 4 for rows in (
        [[4, 0, 0], [2, 2, 0], [1, 1, 2]], [[2, 2, 0], [4, 0, 0], [1, 1, 2]],
        [[0, 4, 0], [2, 2, 0], [1, 1, 2]],
    )]  # fmt: skip
    made = [wd.MDP(three, [0, 0, 0], csr_array(rows) if sparse else rows) for rows in kernels]
    found = {fingerprint(wd.DriftingMDP.stationary(mdp, horizon=5)) for mdp in made}
    assert len(found) == len(kernels)


def test_what_is_no_content_does_not_count():
    sparse = [wd.MDP(SPACE, mdp.rewards, csr_array(mdp.transitions)) for mdp in MODELS[:2]]
    assert fingerprint(blend(sparse)) == fingerprint(blend())
    assert fingerprint(blend(schedule=wd.schedules.Cosine(2.0))) == fingerprint(blend())
    assert fingerprint(blend(schedule=wd.schedules.Cosine(np.float64(2)))) == fingerprint(blend())
    named = wd.StateActions(SPACE.counts, state_names=["a", "b", "c"])
    renamed = [wd.MDP(named, mdp.rewards, mdp.transitions) for mdp in MODELS[:2]]
    assert fingerprint(blend(renamed)) == fingerprint(blend())
    labelled = blend()
    labelled.name = "mine-v0"
    assert fingerprint(labelled) == fingerprint(blend())
    minus = wd.MDP.trusted(SPACE, np.full(6, -0.0), MODELS[0].transitions)
    zero = wd.MDP(SPACE, np.zeros(6), MODELS[0].transitions)
    assert fingerprint(blend([minus, MODELS[1]])) == fingerprint(blend([zero, MODELS[1]]))


def stepping(jump, asked=None):
    def function(t):
        if asked is not None:
            asked.append(t)
        model = MODELS[int(t == jump)]
        return model.rewards, model.transitions

    return function


def test_functions_are_asked_everywhere_or_at_many_times(monkeypatch):
    monkeypatch.setattr(module, "ASKED", 20)

    def made(jump, horizon, asked=None):
        function = stepping(jump, asked)
        return wd.DriftingMDP.from_function(function, space=SPACE, horizon=horizon)

    found = {fingerprint(made(jump, 20)) for jump in range(1, 21)}
    assert len(found) == 20
    asked = []
    model = made(0, 39, asked)
    asked.clear()
    first = fingerprint(model)
    assert asked == sorted(set(asked))
    assert (len(asked), asked[0], asked[-1]) == (20, 1, 39)
    assert fingerprint(model) == first
    assert len(asked) == 20  # not asked again
    assert fingerprint(made(2, 39)) == first  # 2 is not looked at: as the docstring says
    assert fingerprint(made(3, 39)) != first


def test_arrays_are_read_to_the_last_row(monkeypatch):
    monkeypatch.setattr(module, "ASKED", 4)
    r, p = np.zeros((T, 2, 1)), np.full((T, 2, 1, 2), 0.5)
    found = set()
    for t in range(T):
        r[:] = 0
        r[t] = 0.5
        found.add(fingerprint(wd.DriftingMDP.from_arrays(r, p)))
    assert len(found) == T
