"""Boxes where the paper has L1 balls (spec 3.5): what the widening must hold, C1, C6 and C7.

A ball of radius eta in the simplex moves at most eta / 2 of mass to or from one state. So a box
widened by eta / 2 at both ends holds all kernels within eta of one it held before, and each state
can still put eta / 2 more on the best state, which is what bounds the span.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import windage as wd
from tests.unit.agents.test_ucrl2b import (
    DELTA,
    SPACE,
    TIGHT,
    as_region,
    assert_certified_plan,
    episodes,
    literal_sets,
    world,
)
from tests.unit.confidence.test_boxes import bounds, random_boxes
from windage.confidence.confidence import ConfidenceRegion

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

EXACT = 1e-12
CERTIFIED = 1e-9


# --- widening --------------------------------------------------------------------------------


def in_simplex_within(rng, p, eta):
    """A random kernel at most eta from p in L1: mass moved between entries."""
    q = p.copy()
    left = rng.random() ** 0.3 * eta / 2
    for _ in range(12):
        source, target = rng.integers(p.size, size=2)
        moved = min(left * rng.choice([0.3, 1.0]), q[source])
        q[source] -= moved
        q[target] += moved
        left -= moved
    assert np.abs(q - p).sum() <= eta + 1e-12
    return q


def in_box(rng, lower, upper):
    """A random kernel of a box: lower ends, and what is left poured in random order."""
    q = lower.copy()
    for share in (0.5, 1.0):
        for s in rng.permutation(q.size):
            q[s] += min(upper[s] - q[s], max(0.0, 1.0 - q.sum())) * (
                rng.random() if share < 1 else 1
            )
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    return q


@pytest.mark.parametrize("eta", [0.05, 0.4, 1.3])
def test_the_widened_box_holds_all_that_is_within_eta_of_the_box(eta):
    rng = np.random.default_rng(7)
    for seed in range(12):
        tight = random_boxes(seed, widening=0.0)
        wide = ConfidenceRegion.box(
            tight.space, tight.reward_upper, tight.p_hat, tight.radius, tight.visited, eta
        )
        assert wide.without_widening().radius is wide.radius
        for pair in np.flatnonzero(tight.visited):
            for _ in range(5):
                q = in_simplex_within(rng, in_box(rng, *(b[pair] for b in bounds(tight))), eta)
                assert (q >= wide.lower[pair] - EXACT).all()
                assert (q <= wide.upper[pair] + EXACT).all()


def reach(lower, upper, eta, state, sign):
    """The most or least q(state) may be, with q within eta of some kernel of the box.

    Variables q, p and d with |q - p| <= d.
    """
    S = lower.size
    eye, none = np.eye(S), np.zeros((S, S))
    cost = np.zeros(3 * S)
    cost[state] = -sign
    found = linprog(
        cost,
        A_ub=np.block(
            [[eye, -eye, -eye], [-eye, eye, -eye], [none[:1], none[:1], eye.sum(0)[None]]]
        ),
        b_ub=np.append(np.zeros(2 * S), eta),
        A_eq=np.block(
            [[eye.sum(0)[None], none[:1], none[:1]], [none[:1], eye.sum(0)[None], none[:1]]]
        ),
        b_eq=[1.0, 1.0],
        bounds=[(0, 1)] * S + list(zip(lower, upper, strict=True)) + [(0, 2)] * S,
    )
    assert found.status == 0, found.message
    return -sign * found.fun


@pytest.mark.parametrize("eta", [0.1, 0.6])
def test_no_smaller_widening_of_the_ends_would_do(eta):
    """The program reaches the widened ends exactly wherever the box's own ends are kernels."""
    attained = {-1: 0, 1: 0}
    for seed in range(8):
        region = random_boxes(seed, 4, widening=eta)
        lower, upper = bounds(region.without_widening())
        for pair, state in itertools.product(np.flatnonzero(region.visited), range(lower.shape[1])):
            low, high = lower[pair], upper[pair]
            most = reach(low, high, eta, state, 1)
            least = reach(low, high, eta, state, -1)
            assert most <= region.upper[pair, state] + CERTIFIED
            assert least >= region.lower[pair, state] - CERTIFIED
            others = np.arange(low.size) != state
            p_most = min(high[state], 1 - low[others].sum())  # the largest entry of any kernel
            p_least = max(low[state], 1 - high[others].sum())
            assert most == pytest.approx(min(1.0, p_most + eta / 2), abs=CERTIFIED)
            room = eta / 2 if others.any() else 0.0
            assert least == pytest.approx(
                max(0.0, p_least - room) if others.any() else 1.0, abs=1e-9
            )
            attained[1] += p_most == high[state] < 1 - eta
            attained[-1] += p_least == low[state] > eta
    assert min(attained.values()) >= 5


# --- runs ----------------------------------------------------------------------------------------


def test_c7_properties_with_boxes_and_restarts():
    """The clock, the counts and the squares begin anew: sets and precision of a fresh learner."""
    restarts = (2, 90, 91, 300)
    agent = wd.agents.make(
        "ucrl2-restarts", SPACE, horizon=600, restarts=restarts, delta=DELTA, radii=TIGHT,
        clip=True, seed=4,
    )  # fmt: skip
    planned, seen = 0, set()
    for history in episodes(agent, world()):
        tau, episode = agent.t, agent.episode
        last = max((r for r in restarts if r <= tau), default=1)
        sets = literal_sets(history[last - 1 :])
        twin, region = as_region(sets, 0.0), agent.region()
        assert region.reward_upper == pytest.approx(sets.reward, abs=EXACT)
        for mine, theirs in zip(bounds(twin), (region.lower, region.upper), strict=True):
            assert theirs == pytest.approx(mine, abs=EXACT)
        bias = np.zeros(4) if episode.span == 0.0 else agent._learner.plan.u.copy()
        assert_certified_plan(twin, episode, bias, 1 / math.sqrt(tau - last + 1))
        planned += episode.span > 0
        seen.add(last)
        assert (tau == last) == (tau == 1 or tau in restarts)
    assert seen == {1, *restarts}
    assert planned > 5


@pytest.mark.parametrize("tau", [10, 100, 1000])
@pytest.mark.parametrize("eta", [0.02, 0.3, 1.0])
def test_c6_a_widened_box_bounds_the_span(tau, eta):
    """What Proposition 3 leaves in the counts, one state worth 1: the way there takes tau + 1.

    Boxes of radius 0 have that span; widened, at most 2 / eta, and nearly attained.
    """
    spans = {}
    for widening in (0.0, eta):
        region = ConfidenceRegion.box(
            wd.StateActions([1, 1]), [0.0, 1.0], [[1 - 1 / (tau + 1), 1 / (tau + 1)], [0.0, 1.0]],
            np.zeros((2, 2)), [True, True], widening,
        )  # fmt: skip
        spans[widening] = wd.evi(region, epsilon=1e-9).span
    print(f"C6, tau = {tau}, eta = {eta}: {spans[0.0]:.2f} without, {spans[eta]:.3f} <= {2 / eta}")
    assert spans[0.0] == pytest.approx(tau + 1, rel=1e-4)
    assert spans[eta] == pytest.approx(1 / (1 / (tau + 1) + eta / 2), rel=1e-4)
    assert spans[eta] <= max(1.0, 2 / eta)


def is_missed(agent, model, truth, seed):
    """Whether p_bar or r_bar, averaged over the visits, left the sets in any episode of a run."""
    rewards, rows = truth
    missed = False
    for history in episodes(agent, model, seed):
        pairs = np.array([SPACE.pair(s, a) for s, a, _, _ in history], dtype=int)
        region = agent.region()
        lower, upper = region.lower, region.upper
        for pair in np.unique(pairs):
            times = np.flatnonzero(pairs == pair)
            p_bar, r_bar = rows[times, pair].mean(axis=0), rewards[times, pair].mean()
            missed |= bool((p_bar < lower[pair] - EXACT).any())
            missed |= bool((p_bar > upper[pair] + EXACT).any())
            missed |= bool(r_bar > region.reward_upper[pair] + EXACT)
    return missed


@pytest.mark.parametrize(("scale", "covers"), [(1.0, True), (0.03, False)])
def test_c1_boxes_hold_what_was_averaged_over(scale, covers):
    """30 drifting runs; more than 11 misses at delta = .05 would be a false alarm below 1e-6.

    Radii times 0.03 miss in every run, so a box far too small is rejected.
    """
    runs, most = 30, 11
    assert binom.sf(most, runs, 0.05) < 1e-6 < binom.sf(most - 3, runs, 0.05)
    model = drifting(250)
    each = [model.at(t) for t in range(1, 251)]
    truth = tuple(np.array([getattr(m, name) for m in each]) for name in ("rewards", "transitions"))
    misses = 0
    for seed in range(runs):
        agent = wd.UCRL2B(
            SPACE, horizon=250, delta=0.05, radii=wd.Radii.bernstein().scaled(scale), seed=seed
        )
        misses += is_missed(agent, model, truth, seed)
    print(f"C1, boxes x{scale}: {misses} of {runs} runs missed the truth")
    assert (misses <= most) == covers


def drifting(horizon):
    """The world of these runs, over a shorter time."""
    full = world()
    ends = [full.at(t) for t in (1, full.horizon // 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(1), horizon=horizon)
