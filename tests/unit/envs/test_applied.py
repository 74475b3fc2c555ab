"""What the applied environments promise: budgets, diameters, files, short and long horizons.

Second witnesses: budgets by a sum over all t, diameters by linear programs.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd

ALL = [
    "inventory", "queue", "bidding", "ride", "epidemic", "replacement", "wireless", "assortment",
    "treatment", "bandit",
]  # fmt: skip

VARIANTS = [(name, {}) for name in ALL] + [
    ("inventory", {"seasons": 1, "capacity": 1}),
    ("inventory", {"seasons": 3, "capacity": 4, "zeta": 0.1, "holding_cost": 0.1}),
    ("queue", {"capacity": 1, "cycles": 1.5}),
    ("queue", {"capacity": 3, "cycles": 0}),
    ("bidding", {"budget": 1, "refill": 0.9, "cycles": 1}),
    ("bidding", {"budget": 2, "refill": 0.1, "cycles": 3}),
    ("ride", {"zones": 5, "days": 2}),
    ("ride", {"zones": 12}),
    ("epidemic", {"population": 2, "cycles": 1, "variant": 2.5, "importation": 0.1}),
    ("replacement", {"wear": 1}),
    ("replacement", {"wear": 3}),
    ("wireless", {"capacity": 1, "cycles": 1}),
    ("wireless", {"capacity": 3}),
    ("assortment", {"case_cost": 0.0, "last": 1.0}),
    ("assortment", {"last": 0.1, "cycles": 1.5}),
    ("treatment", {"levels": 1}),
    ("treatment", {"levels": 2, "cycles": 0.5}),
    ("bandit", {"shape": "breaks"}),
    ("bandit", {"cycles": 0.7}),
]


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
@pytest.mark.parametrize("horizon", [200, 97])
def test_budgets_are_the_sums_over_all_steps(name, parameters, horizon):
    model = wd.envs.make(name, horizon=horizon, **parameters)
    r, p = 0.0, 0.0
    for t in range(1, horizon):
        now, after = model.at(t), model.at(t + 1)
        r += np.abs(after.rewards - now.rewards).max()
        p += np.abs(after.transitions - now.transitions).sum(axis=1).max()
    facts, budgets = wd.envs.facts(name, horizon=horizon, **parameters), model.budgets()
    assert budgets.reward == pytest.approx(r, abs=1e-9)
    assert budgets.transition == pytest.approx(p, abs=1e-9)
    if facts.reward_budget is not None:
        assert facts.reward_budget == pytest.approx(r, abs=1e-9)
    if facts.transition_budget is not None:
        assert facts.transition_budget == pytest.approx(p, abs=1e-9)


def test_which_budgets_are_known():
    known = {name: wd.envs.facts(name, horizon=1000) for name in ALL}
    assert [name for name in ALL if known[name].reward_budget is None] == ["ride"]
    assert [name for name in ALL if known[name].transition_budget is None] == ["ride", "epidemic"]
    assert [name for name in ALL if known[name].diameter_bound is None] == [
        "bidding", "epidemic", "wireless", "assortment", "treatment",
    ]  # fmt: skip
    assert wd.envs.facts("queue", horizon=20_000).transition_budget == pytest.approx(4.8, abs=1e-6)
    assert wd.envs.facts("replacement").transition_budget == pytest.approx(1.4)
    assert wd.envs.facts("inventory", horizon=3).reward_budget is None
    assert wd.envs.facts("replacement", horizon=2).transition_budget is None


def diameter(mdp):
    """The largest least expected hitting time, by one linear program a target."""
    n, worst = mdp.space.n_states, 0.0
    walk = np.eye(n)[mdp.space.state_of] - mdp.transitions
    for target in range(n):
        others, leaving = np.arange(n) != target, mdp.space.state_of != target
        if others.any():
            hit = linprog(
                -np.ones(n - 1),
                A_ub=walk[np.ix_(leaving, others)],
                b_ub=np.ones(leaving.sum()),
                bounds=(0, None),
            )
            worst = max(worst, hit.x.max())
    return worst


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_diameters_stay_below_their_bound(name, parameters):
    bound = wd.envs.facts(name, horizon=200, **parameters).diameter_bound
    bound = 1e6 if bound is None else bound
    model = wd.envs.make(name, horizon=200, **parameters)
    found = [diameter(model.at(t)) for t in (1, 50, 100, 150, 200)]
    assert max(found) <= bound * (1 + 1e-9)
    if name == "replacement" or (name == "queue" and not parameters):
        assert max(found) == pytest.approx(bound, rel=1e-8)


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_they_keep_the_promises_of_a_drifting_model(name, parameters):
    wd.testing.check_drifting_mdp(
        wd.envs.make(name, horizon=800, **parameters), times=20, steps=200
    )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 13, 26])
def test_short_horizons(name, horizon):
    wd.testing.check_drifting_mdp(wd.envs.make(name, horizon=horizon), times=5)
    wd.envs.facts(name, horizon=horizon)


@pytest.mark.parametrize("name", ALL)
def test_long_horizons_cost_nothing(name):
    model = wd.envs.make(name, horizon=10**9)
    assert model.at(10**9).is_communicating()
    assert model.budgets().reward <= 10


@pytest.mark.parametrize("name", ALL)
def test_saved_and_loaded(name, tmp_path):
    noisy = {"noise": "beta"} if "noise" in wd.envs.get(name).parameters else {}
    model = wd.envs.make(name, horizon=300, **noisy)
    model.save(tmp_path / "model.npz")
    again = wd.load(tmp_path / "model.npz")
    assert again.name == wd.envs.get(name).id
    assert again.noise == model.noise
    assert again.space == model.space
    assert again.space.action_names is not None
    assert all(again.at(t) == model.at(t) for t in (1, 77, 150, 151, 300))


@pytest.mark.parametrize("name", ALL)
def test_registered(name):
    entry = wd.envs.get(name)
    assert name in wd.envs.names()
    assert inspect.signature(entry.facts).parameters == inspect.signature(entry.build).parameters
    sections = ("States", "Actions", "Drift", "B_r", "B_p", "D", "Why communicating")
    headings = [line.strip() for line in entry.build.__doc__.splitlines() if line[:8].strip()]
    assert [h for h in headings[1:] if h != "Structure"] == [*sections, "Version history"]
