"""Properties 1 and 2 of EVI's answer, checked without the solver, and the bounds on its span.

Nothing here calls the planner's inner maximum. By duality, with h half the width of a pair's set
and M = max u, the largest q.u in the set is the least of  sum p max(u, c) + h (M - c)  over c <= M;
the function is convex and piecewise linear, so c runs over the entries of u. Every c gives an upper
bound, hence what passes as Property 1 is one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import windage as wd
from windage.confidence.confidence import ConfidenceRegion, evi
from windage.spaces import StateActions

CERTIFIED = 1e-9


def inner_maximum(region, u):
    """max q.u of every pair, by duality."""
    rows = region.p_hat.toarray()
    half = np.minimum(region.radius + region.widening, 2.0) / 2.0
    bounds = [(rows * np.maximum(u, c)).sum(axis=1) + half * (u.max() - c) for c in u]
    return np.where(region.visited & (half < 1.0), np.min(bounds, axis=0), u.max())


def assert_certified(region, model, epsilon, slack=0.0):
    """What `evi` promises of its answer, each from its definition."""
    space, rho, gamma = region.space, model.gain, model.bias
    r, state_of = region.reward_upper, space.state_of
    size = 1.0 + np.abs(r).max() + gamma.max()
    assert gamma.min() == 0.0
    assert model.span == gamma.max()
    # Property 1, E11: the maximum of the sum
    upsilon = r + inner_maximum(region, gamma)
    assert (rho + gamma[state_of] >= upsilon - CERTIFIED).all()
    # Property 2, with kernels that are in their sets
    pairs = space.offsets[:-1] + model.policy
    assert ((model.policy >= 0) & (model.policy < space.counts)).all()
    chosen = model.transitions
    assert (chosen >= 0.0).all()
    assert chosen.sum(axis=1) == pytest.approx(np.ones(space.n_states), abs=1e-12)
    for pair, row in zip(pairs, chosen, strict=True):
        if region.visited[pair]:
            distance = np.abs(row - region.p_hat.toarray()[pair]).sum()
            assert distance <= region.radius[pair] + region.widening[pair] + 1e-12
    assert (r[pairs] >= rho + gamma - chosen @ gamma - epsilon - slack - CERTIFIED).all()
    # gain, gap and values are those of the vector that was swept, and not of the next one
    swept = np.array([upsilon[state_of == s].max() for s in range(space.n_states)])
    assert rho == pytest.approx(max(swept - gamma), abs=1e-12 * size)
    assert model.gap == pytest.approx(np.ptp(swept - gamma), abs=1e-12 * size)
    assert model.gap <= epsilon
    assert model.action_values == pytest.approx(upsilon, abs=1e-12 * size)
    near = upsilon - swept[state_of] + slack
    clear = np.abs(near) > 1e-11 * size
    assert (model.tied == (near >= 0.0))[clear].all()
    assert model.tied[pairs].all()


def random_region(seed, most_width=2.2, least_width=0.05):
    """Ragged action sets, sparse rows, pairs never visited, an eta of each pair's own."""
    rng = np.random.default_rng(seed)
    space = StateActions(rng.integers(1, 5, rng.integers(1, 9)))
    pairs, states = space.n_pairs, space.n_states
    weights = rng.integers(1, 7, (pairs, states)) * (rng.random((pairs, states)) < 0.5)
    weights[np.arange(pairs), rng.integers(states, size=pairs)] += 1
    return ConfidenceRegion(
        space,
        rng.random(pairs),
        weights / weights.sum(axis=1, keepdims=True),
        rng.uniform(0.0, most_width, pairs) * rng.integers(0, 2, pairs) + least_width,
        rng.random(pairs) < 0.9,
        widening=rng.uniform(0.0, 0.3, pairs) if rng.random() < 0.5 else 0.1,
    )


@pytest.mark.parametrize("method", ["auto", "plain"])
@pytest.mark.parametrize("epsilon", [0.5, 1e-2, 1e-6])
def test_properties_of_every_answer(method, epsilon):
    for seed in range(30):
        region = random_region(seed)
        assert_certified(region, evi(region, epsilon, method=method), epsilon)


@pytest.mark.parametrize("method", ["auto", "plain"])
def test_properties_from_any_start(method):
    rng = np.random.default_rng(0)
    for seed in range(20):
        region = random_region(seed)
        for scale, offset in ((1.0, 0.0), (30.0, -1e3), (1e-3, 1e9)):
            start = scale * rng.standard_normal(region.space.n_states) + offset
            model = evi(region, 1e-4, warm_start=start, method=method)
            assert_certified(region, model, 1e-4)


@pytest.mark.parametrize("slack", [0.0, 0.05, 0.6])
@pytest.mark.parametrize("ties", ["lowest", "random"])
def test_properties_with_slack(slack, ties):
    for seed in range(20):
        region = random_region(seed)
        model = evi(region, 1e-3, ties=ties, slack=slack, seed=seed)
        assert_certified(region, model, 1e-3, slack)


def test_the_checker_sees_what_is_wrong():
    """The next sweep's bias, a wrong bias, gain or policy, rows outside their sets: refused."""

    region = random_region(3)
    model = evi(region, 1e-2, method="plain")
    assert_certified(region, model, 1e-2)
    swept = np.array(
        [model.action_values[region.space.state_of == s].max() for s in range(len(model.bias))]
    )
    nudged = model.bias.copy()
    nudged[np.argmin(nudged)] += 0.01
    wider = ConfidenceRegion(
        region.space, region.reward_upper, region.p_hat, region.radius * 1.5, region.visited
    )
    worst = np.array(
        [np.argmin(model.action_values[region.space.state_of == s]) for s in range(len(nudged))]
    )
    for wrong in (
        replace(model, bias=swept - swept.min(), span=float(np.ptp(swept))),
        replace(model, bias=nudged - nudged.min(), span=float(np.ptp(nudged))),
        replace(model, gain=model.gain - 2e-2),
        replace(model, gain=model.gain + 2e-2),
        replace(model, policy=worst),
        replace(model, region=wider),
    ):
        with pytest.raises(AssertionError):
            assert_certified(region, wrong, 1e-2)


def test_the_printed_property_is_false():
    """E11: with the maximum inside the sum, rho~ + gamma~ is exceeded on many regions."""
    broken = 0
    for seed in range(40):
        region = random_region(seed)
        model = evi(region, 1e-6)
        rows = region.p_hat.toarray()
        half = region.width[:, None] / 2.0
        inside = np.where(region.width[:, None] >= 2.0, 1.0, np.minimum(rows + half, 1.0))
        printed = region.reward_upper + inside @ model.bias
        broken += (model.gain + model.bias[region.space.state_of] < printed - 1e-6).any()
    assert broken >= 20


def reach(region):
    """beta = min_s max_a min(1, width / 2): what every state can put on the best one (1.7)."""
    half = np.where(region.visited, np.minimum(1.0, (region.radius + region.widening) / 2.0), 1.0)
    states = range(region.space.n_states)
    return min(max(half[region.space.state_of == s]) for s in states)


def test_span_from_zero_is_at_most_one_over_beta():
    tight = 0.0
    for seed in range(40):
        region = random_region(seed, most_width=0.5, least_width=0.02)
        bound = 1.0 / reach(region)
        for epsilon in (0.3, 1e-2, 1e-6):
            assert evi(region, epsilon, method="plain").span <= bound + CERTIFIED
            assert evi(region, epsilon).span <= (1 + epsilon) * bound + CERTIFIED
        warm = evi(region, 1e-3, warm_start=7.0 * np.arange(region.space.n_states))
        assert warm.span <= (1 + 1e-3) * bound + CERTIFIED
        tight = max(tight, warm.span / bound)
    assert tight > 0.05  # the bound is not idle


@pytest.mark.parametrize("eta", [0.01, 0.1, 0.5, 1.0, 2.0, 3.0])
def test_widening_alone_bounds_the_span(eta):
    """C6: two states that p_hat never leaves; the span comes within 1 % of max(1, 2 / eta)."""
    space = StateActions([1, 1])
    region = ConfidenceRegion(space, [1.0, 0.0], np.eye(2), [0.0, 0.0], [True, True], eta)
    model = evi(region, 1e-6, method="plain")
    bound = max(1.0, 2.0 / eta)
    assert 0.99 * bound <= model.span <= bound + CERTIFIED
    assert_certified(region, model, 1e-6)


def test_one_widened_action_a_state_bounds_the_span_as_well():
    """1.7: beta is a maximum over actions; the other actions may keep tight sets."""
    space = StateActions([2, 2, 2])
    rows = np.repeat(np.eye(3), 2, axis=0)
    eta = np.tile([0.2, 0.0], 3)
    region = ConfidenceRegion(
        space, [1.0, 1.0, 0.5, 0.5, 0.0, 0.0], rows, np.zeros(6), [True] * 6, eta
    )
    model = evi(region, 1e-6, method="plain")
    assert 0.9 * 10.0 <= model.span <= 10.0 + CERTIFIED
    assert_certified(region, model, 1e-6)


def test_span_is_at_most_the_diameter_of_any_plausible_kernel():
    """C6 and E12: span <= D(p) (rho~ - min r~) for p_hat and for mixtures inside the sets."""
    rng = np.random.default_rng(1)
    finite = tightest = 0.0
    for seed in range(40):
        region = random_region(seed, most_width=0.3, least_width=0.01)
        space = region.space
        if not region.visited.all():
            region = ConfidenceRegion(
                space, region.reward_upper, np.where(region.visited[:, None],
                region.p_hat.toarray(), np.eye(space.n_states)[0]), region.radius,
                np.ones(space.n_pairs, bool), region.widening,
            )  # fmt: skip
        rows = region.p_hat.toarray()
        other = rng.dirichlet(np.ones(space.n_states), space.n_pairs)
        distance = np.abs(other - rows).sum(axis=1)
        share = np.minimum(1.0, region.width / np.maximum(distance, 1e-12))[:, None] * 0.999
        plain, quick = evi(region, 1e-4, method="plain"), evi(region, 1e-4)
        for p in (rows, (1 - share) * rows + share * other):
            inside = p / p.sum(axis=1, keepdims=True)
            diameter = wd.MDP(space, np.zeros(space.n_pairs), inside).diameter()
            if not np.isfinite(diameter):
                continue
            finite += 1
            assert plain.span <= diameter + CERTIFIED
            for model in (plain, quick):
                least = region.reward_upper.min()
                assert model.span <= diameter * (model.gain - least) + CERTIFIED
            if diameter > 0:
                tightest = max(tightest, plain.span / diameter)
    assert finite >= 40
    assert tightest > 0.2
