"""Random structures and laws: what is played, saved and computed follows from them."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from windage.errors import ModelError
from windage.structure import worlds

SCHEDULES = [
    wd.schedules.Cosine(cycles=1), wd.schedules.Linear(), wd.schedules.RandomWalk(0),
    wd.schedules.Steps([4, 9]),
]  # fmt: skip


def structure(rng):
    """Up to three variables with groups of their own, and tables of next states and rewards."""
    space = wd.StateActions(rng.integers(1, 4, size=rng.integers(1, 6)))
    variables = []
    for f in range(rng.integers(1, 4)):
        labels = rng.integers(-(rng.random() < 0.5), 3, size=(space.n_states, 3))
        group = None
        if rng.random() < 0.6:
            group = lambda s, a, labels=labels: None if labels[s, a] < 0 else int(labels[s, a])  # noqa: E731
        outcomes = ["low", "mid", "high"][: rng.integers(2, 4)]
        seen = rng.choice(["always", "involved", "interval", "inferred"], p=[0.4, 0.4, 0.1, 0.1])
        variables.append(wd.Exogenous(f"x{f}", outcomes, group, str(seen)))
    known = {}

    def answer(s, a, *outcomes):
        key = s, a, outcomes
        if key not in known:
            known[key] = int(rng.integers(space.n_states)), float(rng.integers(-3, 9))
        return known[key]

    return wd.Structure(
        space, variables,
        next_state=lambda *key: answer(*key)[0], reward=lambda *key: answer(*key)[1],
    )  # fmt: skip


def laws(rng, known, T):
    """Laws that stay, drift on schedules, or are given for every t, many with zeros."""

    def rows(n, size):
        found = rng.dirichlet(np.ones(size), size=n)
        zero = (rng.random((n, size)) < 0.3) & (found < found.max(axis=1, keepdims=True))
        found[zero] = 0.0
        return found / found.sum(axis=1, keepdims=True)

    given = {}
    one = SCHEDULES[rng.integers(4)] if rng.random() < 0.5 else None
    for (f, label), size in zip(known.laws, known.law_sizes, strict=True):
        kind = rng.random()
        law = rows(2, size), one or SCHEDULES[rng.integers(4)]
        if kind < 0.3:
            law = rows(1, size)[0]
        elif kind < 0.5 and one is None:
            law = rows(T, size)
        name = known.variables[f].name
        given |= {name: law if label is None else given.get(name, {}) | {label: law}}
    return given


@pytest.mark.parametrize("dense", [True, False])
def test_random_structures_keep_what_models_promise(dense, monkeypatch, tmp_path):
    if not dense:
        monkeypatch.setattr(worlds, "_DENSE", 0)
    kept, T = 0, 12
    for seed in range(30):
        rng = np.random.default_rng(seed)
        try:
            known = structure(rng)
        except ModelError:  # what cannot be shown as its variables want it
            continue
        model = known.drifting(laws(rng, known, T), horizon=T)
        wd.testing.check_drifting_mdp(model, communicating=False, times=T, steps=T)
        model.save(tmp_path / "model.npz")
        runs = [
            wd.run(one, wd.agents.make("random", one.space, horizon=T, seed=1), seed=seed)
            for one in (model, wd.load(tmp_path / "model.npz"))
        ]
        assert runs[0].rewards.tobytes() == runs[1].rewards.tobytes()
        assert runs[0].states.tobytes() == runs[1].states.tobytes()
        kept += 1
    assert kept >= 12
