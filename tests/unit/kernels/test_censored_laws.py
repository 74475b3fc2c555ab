"""Laws fitted to intervals, against the likelihood maximised by brute force.

With pseudo-counts the fit is the mode of likelihood times prod q^(mu/O); with next to none, the
nonparametric maximum-likelihood estimate (Turnbull 1976). The kernel gets there by expectation and
maximisation; here a general optimiser does, which knows nothing of that.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import windage as wd
from windage.kernels.structured import _fit_windows, believe
from windage.structure import Exogenous, Structure

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # whole numbers wrap
SIZE = 5
MU = 0.5


def known_demand(size=SIZE):
    """Stock of which nothing is left over: what is sold tells of demand up to the order."""
    space = wd.StateActions([size])
    demand = Exogenous("demand", range(size), seen="interval")
    return Structure(
        space,
        [demand],
        next_state=lambda s, a, d: 0,
        reward=lambda s, a, d: np.minimum(a, d) - a / 3,
    )


def objective(q, samples, mu):
    return -sum(n * np.log(q[a : b + 1].sum()) for (a, b), n in samples.items()) - (
        mu / q.size * np.log(q).sum()
    )


def brute_force(samples, mu, size=SIZE):
    """The mode, from many starts, over softmax coordinates; and how likely it makes the samples."""
    best = None
    for start in range(6):
        x0 = np.random.default_rng(start).normal(size=size)
        found = optimize.minimize(
            lambda x: objective(np.exp(x - np.logaddexp.reduce(x)), samples, mu), x0,
            method="BFGS", options={"gtol": 1e-10, "maxiter": 5000},
        )  # fmt: skip
        if best is None or found.fun < best.fun:
            best = found
    return np.exp(best.x - np.logaddexp.reduce(best.x)), best.fun


def counted(steps):
    samples = {}
    for one in steps:
        samples[one] = samples.get(one, 0) + 1
    return samples


CASES = {
    "right-censored": [(0, 0)] * 3 + [(1, 1)] * 5 + [(2, 4)] * 7 + [(3, 3)] * 2 + [(4, 4)],
    "both sides": [(0, 2)] * 6 + [(2, 2)] * 3 + [(1, 3)] * 5 + [(3, 4)] * 4 + [(0, 0)] * 2,
    "hardly anything": [(1, 4)] * 9 + [(0, 0)],
    "seen exactly": [(0, 0)] * 4 + [(3, 3)] * 6,
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES)
def test_the_law_that_is_planned_with_is_the_mode(steps):
    """Twenty rounds a plan, warm: after some plans nothing is left to gain."""
    known = known_demand()
    agent = wd.CertaintyEquivalent(known.space, horizon=1000, structure=known, window=999)
    for low, high in steps:
        agent._by_law.look_back(0, 0.5, 0, np.array([[low, high]]))
    agent.act(0)
    for _ in range(200):
        believe(agent._by_law.estimate)
    q = agent._by_law.estimate.q
    mode, least = brute_force(counted(steps), MU)
    assert objective(q, counted(steps), MU) == pytest.approx(least, abs=1e-7)
    np.testing.assert_allclose(q, mode, atol=2e-4)


def test_kaplan_and_meier():
    """Right-censored samples, hardly any pseudo-counts: hazards multiply."""
    steps = [(0, 0)] * 3 + [(1, 1)] * 5 + [(2, 4)] * 7 + [(3, 3)] * 2 + [(4, 4)] + [(2, 2)] * 2
    # at risk of d: exact samples from d on, and those known to be beyond it
    survival = [1.0]
    for d in range(SIZE):
        at_risk = sum(high >= d and (low == high or low > d) for low, high in steps)
        exact = sum(one == (d, d) for one in steps)
        survival.append(survival[-1] * (1 - exact / at_risk))
    expected = -np.diff(survival)
    q, _ = brute_force(counted(steps), 1e-9)
    np.testing.assert_allclose(q, expected, atol=1e-4)
    known = known_demand()
    agent = wd.PSRL(known.space, horizon=1000, structure=known, prior=1e-9)
    for low, high in steps:
        agent._by_law.look_back(0, 0.5, 0, np.array([[low, high]]))
    for _ in range(100):
        believe(agent._by_law.estimate)
    np.testing.assert_allclose(agent._by_law.estimate.q, expected, atol=1e-6)


def test_windows_are_scored_by_the_probability_of_the_interval():
    """One step of weights by hand: fits by brute force, chances by sums.

    The short window has seen demand fall, the long one remembers more. Their weights after one more
    interval are in the ratio of what each gave to all of it; to score its lowest outcome alone, or
    its width, gives others.
    """
    known = known_demand()
    agent = wd.MultiScale(known.space, horizon=40, structure=known)
    steps = [(4, 4), (3, 4), (3, 3)] * 5 + [(0, 0), (1, 2), (0, 2), (1, 1)] * 2
    for low, high in steps:
        agent._by_law.look_back(0, 0.5, 0, np.array([[low, high]]))
    learner = agent._by_law
    for _ in range(300):  # as if it had rested here: each fit takes two rounds
        _fit_windows(learner.estimate, 0)
    windows = list(agent.windows)
    assert windows == [8, 16, 32, 40]
    chances = {"interval": [], "lowest": []}
    for W in windows:
        seen = steps[-W:] if W < 40 else steps
        q, _ = brute_force(counted(seen), 1.0)
        chances["interval"].append(q[1:5].sum())
        chances["lowest"].append(q[1])
    before = learner.experts.kernel.of_laws.own[0].copy()
    learner.look_back(0, 0.5, 0, np.array([[1, 4]]))
    after = learner.experts.kernel.of_laws.own[0]

    def expected(x):
        new = before * x / (before @ np.array(x))
        return (1 - 2e-3) * new + 2e-3 / 4

    np.testing.assert_allclose(after, expected(np.array(chances["interval"])), atol=1e-4)
    assert np.abs(after - expected(np.array(chances["lowest"]))).max() > 0.01


def test_sales_taken_for_demand_are_not_the_law():
    """Demand is 0 or 4, half and half; with 2 on the shelf two are sold or none."""
    known = known_demand()
    told, naive = (wd.CertaintyEquivalent(known.space, horizon=400, structure=known, window=400)
                   for _ in range(2))  # fmt: skip
    rng = np.random.default_rng(3)
    for d in rng.choice([0, 4], 300).tolist():
        order = 2 if rng.random() < 0.8 else 4
        reward = min(order, d) - order / 3
        told.preload(0, order, reward, 0, seen={"demand": d if d < order else (order, 4)})
        naive.preload(0, order, reward, 0, seen={"demand": min(d, order)})
    laws = []
    for agent in (told, naive):
        agent.act(0)
        for _ in range(30):
            agent.explain(0)
        laws.append(agent.explain(0).laws[0])
    assert laws[0].mean == pytest.approx(2.0, abs=0.25)
    assert laws[1].mean < 1.4
