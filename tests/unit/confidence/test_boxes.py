"""Boxes of kernels: the best row and the planner's value against programs and enumeration.

Nothing here takes its right side from the code under test: bounds are written out again from the
definition, maxima come from a linear program, from all vertices of the set, or from its dual.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd
from windage.confidence import window as storage
from windage.confidence.confidence import BoxRegion, ConfidenceRegion, blank_plan
from windage.confidence.window import Window
from windage.errors import InputError
from windage.kernels import evi as kernel

EXACT = 1e-12
TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def bounds(region):
    """Lower and upper bound of every entry: p_hat -+ (radius + eta / 2), within [0, 1] (3.5)."""
    p = region.p_hat.toarray()
    lower, upper = np.zeros(p.shape), np.ones(p.shape)
    for pair, state in itertools.product(*map(range, p.shape)):
        if region.visited[pair]:
            off = region.radius[pair, state] + region.widening[pair] / 2
            lower[pair, state] = max(0.0, p[pair, state] - off)
            upper[pair, state] = min(1.0, p[pair, state] + off)
    return lower, upper


def by_program(lower, upper, u):
    found = linprog(
        -u, A_eq=np.ones((1, u.size)), b_eq=[1.0], bounds=np.c_[lower, upper], options=TOLERANCES
    )
    assert found.status == 0, found.message
    return -found.fun


def by_enumeration(lower, upper, u):
    """At a vertex of the set all entries but one are at a bound."""
    values = []
    for loose in range(u.size):
        others = [s for s in range(u.size) if s != loose]
        for ends in itertools.product((lower, upper), repeat=len(others)):
            q = np.zeros(u.size)
            for s, end in zip(others, ends, strict=True):
                q[s] = end[s]
            q[loose] = 1.0 - math.fsum(q)
            if lower[loose] - 1e-14 <= q[loose] <= upper[loose] + 1e-14:
                values.append(math.fsum(q * u))
    return max(values)


def by_duality(lower, upper, u):
    """The least of c + sum upper (u - c)+ - lower (c - u)+; convex, with corners at u."""
    return min(
        c + math.fsum(upper * np.maximum(u - c, 0.0) - lower * np.maximum(c - u, 0.0)) for c in u
    )


def sweep_values(region, u):
    """r~ + max q.u of every pair, as the compiled planner sees them in one sweep."""
    plan = region.as_plan(u)
    plan.states["order"] = np.arange(u.size)
    kernel.sweep(plan)
    return plan.pairs["value"].copy()


def spread_rows(rng, pairs, states):
    """Rows of counts over visits: sure ones, sparse ones and full ones."""
    weights = rng.integers(0, 9, (pairs, states)) * (rng.random((pairs, states)) < 0.7)
    weights[np.arange(pairs), rng.integers(states, size=pairs)] += 1
    sure = rng.random(pairs) < 0.2
    weights[sure] = np.eye(states, dtype=int)[rng.integers(states, size=sure.sum())]
    return weights / weights.sum(axis=1, keepdims=True)


def random_boxes(seed, most_states=7, radius=None, widening=None):
    """Ragged action sets; radii that vary by entry, are 0 in some rows and 1 or more in others."""
    rng = np.random.default_rng(seed)
    space = wd.StateActions(rng.integers(1, 4, rng.integers(1, most_states + 1)))
    pairs, states = space.n_pairs, space.n_states
    wide = rng.choice([0.0, 0.03, 0.2, 0.6, 1.5], (pairs, 1)) * rng.random((pairs, states))
    wide[rng.random(pairs) < 0.15] = 0.0
    eta = rng.choice([0.0, 0.1, 0.5, 2.5]) if rng.random() < 0.5 else rng.uniform(0, 0.4, pairs)
    return ConfidenceRegion.box(
        space,
        rng.integers(0, 9, pairs) / 8,
        spread_rows(rng, pairs, states),
        wide if radius is None else np.full((pairs, states), radius),
        rng.random(pairs) < 0.85,
        eta if widening is None else widening,
    )


def directions(rng, states):
    """Vectors with ties, without, all equal, and far from 0."""
    yield np.zeros(states)
    yield rng.integers(0, 3, states).astype(float)
    yield np.round(rng.random(states) * 5, 3)
    yield 1e3 + rng.permutation(states)


def assert_best(region, rng):
    lower, upper = bounds(region)
    S = region.space.n_states
    for u in directions(rng, S):
        values, size = sweep_values(region, u), max(1.0, np.abs(u).max())
        for pair in range(region.space.n_pairs):
            set_ = lower[pair], upper[pair]
            best = by_program(*set_, u)
            assert by_duality(*set_, u) == pytest.approx(best, abs=EXACT * size)
            if S <= 4:
                assert by_enumeration(*set_, u) == pytest.approx(best, abs=EXACT * size)
            row = region.best_row(pair, u)
            assert (row >= set_[0] - EXACT).all()
            assert (row <= set_[1] + EXACT).all()
            assert row.sum() == pytest.approx(1.0, abs=EXACT)
            assert row @ u == pytest.approx(best, abs=EXACT * size)
            hoped = region.reward_upper[pair] + best
            assert values[pair] == pytest.approx(hoped, abs=EXACT * size)


@pytest.mark.parametrize("seed", range(16))
def test_the_inner_maximum_is_that_of_program_vertices_and_dual(seed):
    assert_best(random_boxes(seed), np.random.default_rng(seed))


@pytest.mark.parametrize("radius", [0.0, 1e-4, 1.0, 7.0])
@pytest.mark.parametrize("widening", [0.0, 0.25, 3.0])
def test_the_inner_maximum_of_boxes_that_are_points_or_everything(radius, widening):
    for seed in range(2):
        region = random_boxes(100 + seed, 4, radius, widening)
        assert_best(region, np.random.default_rng(seed))
        everything = radius + widening / 2 >= 1.0
        assert (region.is_free == (everything | ~region.visited)).all()


def test_one_state_has_one_kernel():
    space = wd.StateActions([3])
    region = ConfidenceRegion.box(
        space, [0.1, 0.2, 0.3], [[1.0]] * 3, [[0.0], [0.4], [2.0]], [True, True, False], 0.1
    )
    for pair in range(3):
        assert region.best_row(pair, np.array([5.0])).tolist() == [1.0]
    assert sweep_values(region, np.array([5.0])).tolist() == [5.1, 5.2, 5.3]
    model = wd.evi(region, 1e-9)
    assert (model.gain, model.policy.tolist(), model.sweeps) == (0.3, [2], 1)


def test_a_row_by_hand():
    """Lower ends (.1, .3, 0), upper ends (.3, .7, .4): .6 is left and goes to the best first."""
    region = ConfidenceRegion.box(
        wd.StateActions([1, 1, 1]), [0.0] * 3, [[0.2, 0.5, 0.3], [0, 1, 0], [0, 0, 0]],
        [[0.1, 0.2, 0.1]] * 3, [True, True, False], [0.0, 0.2, 0.0],
    )  # fmt: skip
    best, worst = np.array([2.0, 1.0, 0.0]), np.array([0.0, 1.0, 2.0])
    assert region.best_row(0, best) == pytest.approx([0.3, 0.5, 0.2])
    assert region.best_row(0, worst) == pytest.approx([0.1, 0.5, 0.4])
    assert region.best_row(1, best) == pytest.approx([0.2, 0.8, 0.0])  # radius + eta / 2
    assert region.best_row(2, best).tolist() == [1.0, 0.0, 0.0]
    assert region.best_row(2, worst).tolist() == [0.0, 0.0, 1.0]


def test_ends_are_those_of_the_definition():
    for seed in range(20):
        region = random_boxes(seed)
        lower, upper = bounds(region)
        assert region.lower == pytest.approx(lower, abs=1e-16)
        assert region.upper == pytest.approx(upper, abs=1e-16)
        tight = region.without_widening()
        assert isinstance(tight, BoxRegion)
        assert (tight.widening == 0.0).all()
        lower, upper = bounds(tight)
        assert tight.lower == pytest.approx(lower, abs=1e-16)
        assert tight.upper == pytest.approx(upper, abs=1e-16)


# --- boxes made from counts ------------------------------------------------------------------


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_boxes_gathered_from_counts(hashed, seed, monkeypatch):
    """Next states never seen are no entries of a row, yet they have bounds: those of p_hat = 0."""
    monkeypatch.setattr(storage, "_CELLS", 0 if hashed else 10**9)
    rng = np.random.default_rng(seed)
    space = wd.StateActions(rng.integers(1, 4, rng.integers(1, 6)))
    P, S = space.n_pairs, space.n_states
    window, counts = Window(space, None), np.zeros((P, S), int)
    for _ in range(int(rng.integers(1, 40))):
        pair, after = int(rng.integers(P)), int(min(rng.geometric(0.5) - 1, S - 1))
        window.add(pair, 0.5, after)
        counts[pair, after] += 1
    window.commit()
    visits = counts.sum(axis=1)
    plan = blank_plan(space, window.most_cells, boxes=True)
    root, rest = rng.uniform(0, 0.5, P), rng.choice([0.0, 0.02, 0.3], P)
    eta, reward = rng.choice([0.0, 0.2], P), rng.random(P)
    plan.pairs["root"], plan.pairs["rest"], plan.pairs["half"] = root, rest, eta / 2
    plan.pairs["reward"] = reward
    plan.pairs["kind"] = np.where(visits > 0, kernel.BOUND, kernel.VACUOUS)
    for u in directions(rng, S):
        kernel.estimate(plan, window.kernel)
        plan.states["order"] = np.arange(S)
        plan.u[:] = u
        for _ in range(2):  # the second time rows are in order already
            kernel.sweep(plan)
            for pair in range(P):
                p = counts[pair] / max(1, visits[pair])
                off = root[pair] * np.sqrt(p * (1 - p)) + rest[pair] + eta[pair] / 2
                lower, upper = np.maximum(p - off, 0), np.minimum(p + off, 1)
                if visits[pair] == 0:
                    lower, upper = np.zeros(S), np.ones(S)
                best = reward[pair] + by_program(lower, upper, u)
                size = max(1.0, np.abs(u).max())
                assert plan.pairs["value"][pair] == pytest.approx(best, abs=EXACT * size)


# --- what is refused -------------------------------------------------------------------------

SPACE = wd.StateActions([2, 1], state_names=["low", "high"], action_names=[["wait", "go"], ["go"]])
GOOD = {
    "reward_upper": [0.5, 1.0, 0.25],
    "p_hat": [[0.5, 0.5], [0.0, 1.0], [0.25, 0.75]],
    "radius": [[0.5, 0.25], [0.0, 0.0], [0.1, 0.2]],
    "visited": [True, True, True],
}
BAD = [
    ("radius", [0.5, 0.25, 0.0], "", "shape (3,)"),
    ("radius", 0.5, "", "shape ()"),
    ("radius", np.zeros((2, 3)), "", "shape (2, 3)"),
    ("radius", [["a", "b"]] * 3, "", "not an array of numbers"),
    ("radius", [[0.5, 0.25], [0.0], [0.1, 0.2]], "", "not an array of numbers"),
    ("radius", [[0.5, 0.25], [0.0, -0.1], [0.1, 0.2]], "a=1 ('go'), next state 1", "-0.1"),
    ("radius", [[0.5, 0.25], [0.0, 0.0], [np.nan, 0.2]], "s=1 ('high'), a=0", "nan"),
    ("radius", [[0.5, np.inf], [0.0, 0.0], [0.1, 0.2]], "s=0 ('low'), a=0", "inf"),
    ("p_hat", [[0.5, 0.5], [0.0, 0.9], [0.25, 0.75]], "a=1 ('go')", "0.9"),
    ("visited", [1, 1, 0], "", "int64"),
    ("widening", [0.0, -0.1, 0.0], "a=1 ('go')", "-0.1"),
]


@pytest.mark.parametrize(("field", "value", "where", "says"), BAD)
def test_what_is_no_box_is_refused(field, value, where, says):
    ConfidenceRegion.box(SPACE, **GOOD)
    with pytest.raises(InputError) as caught:
        ConfidenceRegion.box(SPACE, **(GOOD | {field: value}))
    assert caught.value.field == field
    assert where in (caught.value.where or "")
    assert says in str(caught.value)
    assert caught.value.fix


def test_a_box_keeps_what_it_was_given_and_cannot_be_changed():
    given = {name: np.array(value) for name, value in GOOD.items()}
    region = ConfidenceRegion.box(SPACE, **given)
    given["radius"][0, 0] = 9.0
    assert region.radius.tolist() == GOOD["radius"]
    assert region.widening.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        region.radius[0, 0] = 0.0
    with pytest.raises(AttributeError):
        region.radius = region.lower
    assert not region.is_free.any()
