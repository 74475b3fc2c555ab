"""Environments with a structure: laws, next states and rewards make the arrays of v0."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.unit.envs.test_envs import STRUCTURED

BORN = ["assortment", "treatment", "wireless"]  # with a structure


def same_optimum(one, other):
    """Whether two rewards differ by a positive factor and a constant."""
    x, y = one - one.mean(), other - other.mean()
    factor = (x @ y) / (x @ x)
    return factor > 0 and np.allclose(factor * x, y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("horizon", [1, 2, 5, 365, 20_000])
def test_the_structure_is_that_of_the_arrays(name, horizon):
    given = {"order_cost": 6.0} if name == "inventory" else {}
    plain = wd.envs.make(f"{name}-v0", horizon=horizon, **given)
    model = wd.envs.make(name, horizon=horizon)
    assert plain.structure is None
    assert model.reward_range == (0.0, 1.0)
    assert plain.space == model.space
    assert plain.space.state_names == model.space.state_names
    for t in np.unique(np.linspace(1, horizon, 9).astype(np.int64)).tolist():
        known = model.structure.model(model.laws(t))
        now, before = model.at(t), plain.at(t)
        for rows in (known.transitions, now.transitions):
            np.testing.assert_allclose(rows, before.transitions, rtol=0, atol=1e-12)
        np.testing.assert_allclose(known.rewards, now.rewards, rtol=0, atol=1e-12)
        if name == "inventory":  # profit instead of cost: what is wanted is worth its price
            assert same_optimum(before.rewards, now.rewards)
        else:
            np.testing.assert_allclose(now.rewards, before.rewards, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [*STRUCTURED, *BORN])
def test_rewards_are_in_their_range_and_fall_as_outcomes_do(name):
    model = wd.envs.make(name, horizon=2000)
    agent = wd.agents.make("random", model.space, horizon=2000)
    run = wd.run(model, agent, seed=1)
    table = model.structure.reward
    assert 0 <= table.min() <= run.rewards.min() <= run.rewards.max() <= table.max() <= 1
    assert np.isin(run.rewards, table).all()


@pytest.mark.parametrize("name", [*STRUCTURED, *BORN])
def test_laws_are_learned_faster_than_rows(name):
    model = wd.envs.make(name, horizon=1000)
    regrets = {}
    for known in (model.structure, None):
        agent = wd.MultiScale(model.space, horizon=1000, structure=known)
        regrets[known is None] = wd.dynamic_regret(wd.run(model, agent, seed=2), model).total
    print(name, regrets)
    share = {"ride": 1.2, "assortment": 0.9}.get(name, 0.6)  # many laws, each of a few pairs
    assert regrets[False] < share * regrets[True]


@pytest.mark.parametrize("seen", ["demand", "sales"])
def test_sales_are_all_that_is_seen_of_demand(seen):
    model = wd.envs.make("inventory", horizon=300, seen=seen)
    simulator, met = wd.simulate.Simulator(model, seed=1), 0
    for t in range(300):
        s = simulator.state
        a = t % int(model.space.counts[s])
        _, after = simulator.step(a)
        found = simulator.seen["demand"]
        if seen == "sales" and after == 0 and s + a < 9:
            assert found == (s + a, 9)
            met += 1
        else:
            assert after == max(s + a - found, 0)
    assert (met > 20) == (seen == "sales")


def test_budgets_of_laws_are_those_of_rows():
    for name in ("inventory", "replacement", "queue", "wireless", "treatment"):
        budgets = wd.envs.make(name).budgets()
        assert budgets.law == pytest.approx(budgets.transition, rel=1e-12)
    kiosk = wd.envs.make("assortment", last=0.4).budgets()
    assert 0.4 * kiosk.law == pytest.approx(kiosk.transition, rel=1e-12)
    counter = wd.envs.make("queue").budgets()
    assert counter.law_of("arrival") == pytest.approx(counter.law)
    assert counter.law_of("service") == 0
