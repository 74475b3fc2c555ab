"""Properties 1 and 2 of EVI (C7), on every episode of whole runs; E11: the printed Property 1.

The right sides come from `best_values`, which knows nothing of sweeps, orders or policies, and is
itself compared with linear programs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd
from tests.paper.runs import SUITE, best_values, played, printed_values

EXACT = 1e-9


def by_program(p, width, u):
    """max q.u: q and d with -d <= q - p <= d and sum d <= width."""
    S, eye = len(p), np.eye(len(p))
    found = linprog(
        np.concatenate([-u, np.zeros(S)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, S)), np.ones((1, S))]]),
        b_ub=np.concatenate([p, -p, [width]]),
        A_eq=np.repeat([1.0, 0.0], S)[None],
        b_eq=[1.0],
    )
    assert found.status == 0
    return -found.fun


def random_region(seed):
    rng = np.random.default_rng(seed)
    space = wd.StateActions(rng.integers(1, 4, size=rng.integers(2, 6)))
    p = rng.dirichlet(np.full(space.n_states, 0.5), size=space.n_pairs)
    return wd.ConfidenceRegion(
        space,
        rng.random(space.n_pairs),
        p,
        rng.choice([0.05, 0.3, 1.0], space.n_pairs),
        rng.random(space.n_pairs) < 0.9,
        widening=rng.choice([0.0, 0.2]),
    )


def test_the_checker_agrees_with_linear_programs():
    for seed in range(12):
        region = random_region(seed)
        u = np.random.default_rng(seed).random(region.space.n_states) * 5
        values = best_values(region, u)
        for pair in range(region.space.n_pairs):
            wide = region.width[pair] if region.visited[pair] else 2.0
            row = region.p_hat.toarray()[pair] if region.visited[pair] else np.eye(u.size)[0]
            best = by_program(row, wide, u)
            assert values[pair] == pytest.approx(region.reward_upper[pair] + best, abs=1e-7)


def violation_of_1(values, space, gain, bias):
    """By how much the pair that is worst off breaks Property 1."""
    return float((values - gain - bias[space.state_of]).max())


def test_e11_the_printed_property_1_is_violated_and_ours_is_not():
    """300 random regions. The spec counted 228 violations of the printed form in 300 of its own."""
    printed = ours = 0
    for seed in range(300):
        region = random_region(seed)
        model = wd.evi(region, epsilon=1e-3)
        there = region.space, model.gain, model.bias
        printed += violation_of_1(printed_values(region, model.bias), *there) > EXACT
        ours += violation_of_1(best_values(region, model.bias), *there) > EXACT
    print(f"Property 1 of 300 models: printed violated {printed} times, ours {ours} times")
    assert ours == 0
    assert printed > 150


@pytest.mark.parametrize("name", SUITE)
def test_c7_properties_1_and_2_hold_at_every_episode(name):
    run = played(name)
    space = run.model.space
    spans, broken = [], 0
    for m, start in enumerate(run.starts):
        epsilon = 1 / math.sqrt(start.tau)
        cold = wd.evi(start.region, epsilon=epsilon, method="plain")
        if not start.warm:
            assert start.gain == pytest.approx(cold.gain, abs=1e-12)
            assert start.bias == pytest.approx(cold.bias, abs=1e-12)
        for gain, bias in ((start.gain, start.bias), (cold.gain, cold.bias)):
            assert bias.min() == 0.0
            values = best_values(start.region, bias)
            best = np.maximum.reduceat(values, space.offsets[:-1])
            # Property 1, and rho~ is the least number that has it
            assert violation_of_1(values, space, gain, bias) == pytest.approx(0.0, abs=EXACT)
            # Property 2 for the best action of every state
            assert (best >= gain + bias - epsilon - EXACT).all()
        # Property 2 for the actions that were played
        mine = np.unique(run.pairs[run.number == m])
        values = best_values(start.region, start.bias)
        hopes = start.gain + start.bias[space.state_of] - epsilon
        assert (values[mine] >= hopes[mine] - EXACT).all()
        spans.append(np.ptp(start.bias))
        printed = printed_values(start.region, start.bias)
        broken += violation_of_1(printed, space, start.gain, start.bias) > EXACT
    print(f"{name}: {len(spans)} episodes, {np.count_nonzero(spans)} with a bias, largest span "
          f"{max(spans):.3f}; the printed Property 1 fails in {broken}")  # fmt: skip
    assert np.count_nonzero(spans) > 0
    assert broken > 0 or space.n_states == 2  # one bias is 0: with two states both readings agree


@pytest.mark.parametrize("name", SUITE)
def test_the_sets_of_every_episode_are_those_of_its_window(name):
    """Eqs. (3) to (5), recounted: what the properties above were checked in."""
    run = played(name)
    space, eta = run.model.space, SUITE[name][1]["widening"]
    radii = SUITE[name][1].get("radii", wd.Radii.paper())
    L = math.log(space.n_pairs * run.model.horizon / 0.05)
    for start in run.starts:
        region, N = start.region, np.maximum(start.N, 1)
        first = max(1, start.tau - run.W)
        counts = np.zeros((space.n_pairs, space.n_states))
        np.add.at(
            counts,
            (run.pairs[first - 1 : start.tau - 1], run.states[first : start.tau]),
            1,
        )
        assert (region.visited == (start.N > 0)).all()
        assert region.p_hat.toarray() == pytest.approx(counts / N[:, None], abs=1e-15)
        wide = radii.transition_scale * 2 * np.sqrt(2 * space.n_states * L / N)
        seen = region.visited
        assert region.radius[seen] == pytest.approx(wide[seen], rel=1e-12)
        assert (region.widening == eta).all()
        assert (region.reward_upper[~seen] == 1.0).all()
