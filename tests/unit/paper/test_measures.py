"""What results measure before they judge it, each against a count of its own."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from paper import Effort, bandit, borl, compute, proposition1, tuning
from paper.cases import learner, make
from paper.inventory import averaged_diameters


def test_the_best_fixed_arm_has_the_least_regret_of_all():
    model = wd.envs.make("two-state-cosine", horizon=2000)
    gains = model.optimal_gains()
    split = borl._split(model, gains, 3)
    agent = make("borl", model, 3)
    run = wd.run(model, agent, seed=3)
    fixed = gains.sum() - borl.counterfactual(model, agent, run).sum(axis=0)
    assert split.fixed == pytest.approx(fixed.min(), abs=1e-6)
    assert np.ptp(fixed) > 1  # so that it matters which
    assert split.arm == agent.arms[int(fixed.argmin())]


def test_the_slack_of_c12_is_that_of_the_starts():
    """Attained in quick runs of two states: one more, and nothing would touch the bound."""
    found = compute("episodes", Effort(is_quick=True))
    (c12,) = [one for one in found.checks if one.name == "C12"]
    assert c12.sides.left == 0


@pytest.mark.parametrize("B", [3.0, 24.0])
def test_bandits_have_the_window_of_their_budget(B):
    model = bandit.batches(20_000, B)
    W = round(2 ** (1 / 3) * (20_000 / B) ** (2 / 3))
    agent = learner(model, 1, window=W, widening=0.0, radii="laplace")
    run = wd.run(model, agent, seed=1, record="totals")
    lost = model.optimal_gains().sum() - run.total_mean_reward
    found = bandit._regrets(model, B, "Laplace radii", 2, Effort())
    assert found[1] == pytest.approx(lost, abs=1e-6)


def test_the_cross_of_a_map_is_played_with_its_own_eta():
    model = wd.envs.make("two-state-cosine", horizon=10_000)
    radii = wd.Radii.laplace().scaled(0.1)
    found = tuning._map(Effort(), model, radii, [300, 1000], (500, 1.5), 1)
    lost = {}
    for eta in (0.0, 1.5):
        run = wd.run(model, learner(model, window=500, widening=eta, radii=radii), seed=0)
        lost[eta] = wd.dynamic_regret(run, model).total / 10_000
    assert found.at_tuned == pytest.approx(lost[1.5], abs=1e-6)
    assert abs(lost[0.0] - lost[1.5]) > 1e-4


def test_averaged_models_are_those_of_the_truth_and_not_of_what_was_seen():
    """Diameters of the true rows at the visits of every window, averaged here step by step."""
    model = wd.envs.make("inventory", horizon=400)
    options = {"window": 100, "widening": 0.0, "radii": "laplace"}
    found = averaged_diameters(model, **options)
    run = wd.run(model, learner(model, **options), seed=0)
    space = model.space
    pairs = space.offsets[run.states[:-1]] + run.actions
    starts = run.episodes.start[1:]
    for k in range(0, starts.size, 9):
        tau = int(starts[k])
        rows = model.at(tau).transitions.copy()
        times = np.arange(max(1, tau - 100), tau)
        for pair in np.unique(pairs[times - 1]):
            mine = times[pairs[times - 1] == pair]
            rows[pair] = np.mean([model.at(int(q)).transitions[pair] for q in mine], axis=0)
        D = wd.MDP(space, np.zeros(space.n_pairs), rows, normalize=True).diameter()
        assert found[k] == pytest.approx(D, rel=1e-6)


def test_the_best_of_t_steps_starts_in_the_best_state():
    model = wd.envs.make("riverswim", horizon=60)
    values = model.finite_horizon().values
    assert values.max() > values[0] + 1
    assert proposition1._gap(model).optimum == pytest.approx(values.max())
