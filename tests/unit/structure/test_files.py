"""Structured models as files, their fingerprints, and B_q."""

from __future__ import annotations

import json

import numpy as np
import pytest

import windage as wd
from tests.unit.structure.problems import counter, shelf
from tests.unit.structure.test_worlds import COSINE, SEASON, drawn, told
from windage.errors import InputError, StateError
from windage.models.files import fingerprint


class Halves:
    """A schedule of one's own."""

    def weights(self, t, T):
        return [1.0, 0.0] if t <= T / 2 else [0.25, 0.75]


def learned(T=60):
    known = wd.Structure(
        wd.StateActions([2, 2]), [wd.Exogenous("wind", ["no", "yes"])],
        next_state=lambda s, a, w: int(s ^ ((w == "yes") & a)), reward_range=(0.0, 2.0),
    )  # fmt: skip
    rewards = (drawn(2, 4), COSINE)
    return known.drifting({"wind": drawn(T, 2)}, horizon=T, rewards=rewards, noise="beta")


T = 60
MODELS = {
    "blend": lambda: shelf().drifting({"demand": (SEASON, COSINE)}, horizon=T),
    "rows": lambda: shelf("interval").drifting({"demand": drawn(T, 5)}, horizon=T),
    "own": lambda: shelf().drifting({"demand": (SEASON, Halves())}, horizon=T),
    "still": lambda: shelf().drifting({"demand": SEASON[1]}, horizon=T),
    "mixed": lambda: counter().drifting(
        {"arrivals": (drawn(3, 3), [1, 20, T]), "service": {0: (drawn(2, 2), COSINE), 1: [0, 1]}},
        horizon=T,
    ),
    "learned": learned,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_file_is_the_model(make, tmp_path):
    model = make()
    model.name = "a shop of mine"
    model.save(tmp_path / "model.npz")
    again = wd.load(tmp_path / "model.npz")
    assert again.name == model.name
    assert again.noise == model.noise
    assert again.structure.same(model.structure)
    assert told(again, seed=3)[0] == told(model, seed=3)[0]
    exact = make is not MODELS["own"]  # which becomes rows, and is no blend any more
    for t in (1, 30, 31, T):
        for one, other in zip(model.source.at(t), again.source.at(t), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=0 if exact else 1e-14)
    assert again.budgets().law == pytest.approx(model.budgets().law, abs=1e-12)
    if exact:
        assert fingerprint(again) == fingerprint(model)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert json.loads(file["header"].tobytes())["windage_model"] == 2


def test_fingerprints_tell_laws_structures_and_what_is_seen_apart():
    def one(seen="always", season=SEASON, T=T):
        model = shelf(seen).drifting({"demand": (season, COSINE)}, horizon=T)
        model.name = f"{seen} {T}"
        return fingerprint(model)

    assert one() == one()
    others = {one(), one("interval"), one(season=SEASON[::-1]), one(T=T + 1)}
    assert len(others) == 4


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("constant", lambda x: x[:-1]),
        ("part_0", lambda x: x * 0.9),
        ("part_0", lambda x: x.astype(np.float32)),
        ("part_0", lambda x: x[0]),
        ("structure", lambda x: x[:-5]),
    ],
)
def test_a_damaged_file_is_refused(name, change, tmp_path):
    path = tmp_path / "model.npz"
    MODELS["blend"]().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {name: change(arrays[name])})
    with pytest.raises(StateError, match=r"model\.npz"):
        wd.load(path)
    np.savez(path, **arrays, more=np.zeros(3))
    with pytest.raises(StateError, match="unknown arrays"):
        wd.load(path)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_budget_of_laws_is_the_sum_of_the_largest_changes(make):
    model = make()
    steps, by_name = [], {}
    for t in range(1, T):
        moved = {}
        now, after = model.laws(t), model.laws(t + 1)
        for name, law in now.items():
            rows = [(law, after[name])]
            if isinstance(law, dict):
                rows = [(law[label], after[name][label]) for label in law]
            moved[name] = max(np.abs(x - y).sum() for x, y in rows)
        steps.append(max(moved.values()))
        for name, size in moved.items():
            by_name[name] = by_name.get(name, 0) + size
    budgets = model.budgets()
    assert budgets.law == pytest.approx(sum(steps), abs=1e-12)
    np.testing.assert_allclose(budgets.law_steps, steps, atol=1e-13)
    assert budgets.between(5, 9).law == pytest.approx(sum(steps[4:8]), abs=1e-12)
    assert f"law={budgets.law:.6g}" in repr(budgets)
    for name, total in by_name.items():
        assert budgets.law_of(name) == pytest.approx(total, abs=1e-12)
    assert budgets.transition <= sum(by_name.values()) + 1e-9  # Lemma A, and for products
    if len(by_name) == 1 and model.structure.reward is not None:
        low, high = model.reward_range
        assert budgets.reward <= budgets.law / 2 * (high - low) + 1e-9


def test_a_long_horizon_telescopes():
    model = shelf().drifting({"demand": (SEASON, COSINE)}, horizon=10**9)
    apart = np.abs(SEASON[1] - SEASON[0]).sum()
    assert model.budgets().law == pytest.approx(apart * COSINE.variation(10**9), rel=1e-12)


def test_a_model_without_structure_has_none():
    budgets = wd.envs.make("riverswim", horizon=50).budgets()
    assert "law" not in repr(budgets)
    with pytest.raises(InputError, match="has no structure"):
        _ = budgets.law
    with pytest.raises(InputError, match="did you mean"):
        MODELS["blend"]().budgets().law_of("demnd")
