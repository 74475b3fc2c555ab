"""The planner's parts: the inner maximum against two other ways, order, columns, pruning."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from windage.confidence.confidence import ConfidenceRegion
from windage.kernels import evi as kernel
from windage.spaces import StateActions

EXACT = 1e-12


def solved_exactly(rows, right):
    """Return the point where as many equations as unknowns meet, None if they do not."""
    a = [[*row, b] for row, b in zip(rows, right, strict=True)]
    n = len(a)
    for i in range(n):
        pivot = next((k for k in range(i, n) if a[k][i] != 0), None)
        if pivot is None:
            return None
        a[i], a[pivot] = a[pivot], a[i]
        for k in range(n):
            if k != i and a[k][i] != 0:
                factor = a[k][i] / a[i][i]
                a[k] = [x - factor * y for x, y in zip(a[k], a[i], strict=True)]
    return [a[i][n] / a[i][i] for i in range(n)]


def by_vertices(p, width, u):
    """max q.u over the corners of {q >= 0, sum q = 1, |q - p|_1 <= width}, in whole fractions.

    The ball is the 2^S inequalities signs.(q - p) <= width; p as given is scaled to sum to 1.
    """
    S = len(p)
    total = sum(Fraction(x) for x in p)
    p, u, width = [Fraction(x) / total for x in p], [Fraction(x) for x in u], Fraction(width)
    planes = [([Fraction(i == s) for i in range(S)], Fraction(0)) for s in range(S)]
    balls = [
        (list(map(Fraction, signs)), width + sum(a * b for a, b in zip(signs, p, strict=True)))
        for signs in product((-1, 1), repeat=S)
    ]
    best = None
    for tight in combinations(planes + balls, S - 1):
        q = solved_exactly(
            [[Fraction(1)] * S, *(row for row, _ in tight)], [Fraction(1), *(b for _, b in tight)]
        )
        if q is None or min(q) < 0:
            continue
        if sum(abs(a - b) for a, b in zip(q, p, strict=True)) <= width:
            value = sum(a * b for a, b in zip(q, u, strict=True))
            best = value if best is None else max(best, value)
    return float(best)


def by_program(p, width, u):
    """The same by linear programming: q and d with -d <= q - p <= d, sum d <= width."""
    S = len(p)
    eye = np.eye(S)
    found = linprog(
        np.concatenate([-np.asarray(u, float), np.zeros(S)]),
        A_ub=np.vstack(
            [np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.repeat([0.0, 1.0], S)[None]]
        ),
        b_ub=np.concatenate([p, -np.asarray(p), [width]]),
        A_eq=np.repeat([1.0, 0.0], S)[None],
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return -found.fun


def in_columns(plan):
    """The same plan without room for a grid, ready to be swept."""
    plan = plan._replace(grid=np.empty((0, plan.pairs.size)))
    kernel.arrange(plan, plan.rows.size)
    assert plan.answer["lanes"][0] == -1
    return plan


def in_a_grid(plan):
    """The same plan with room for a grid, filled with what must not matter, ready to be swept."""
    S, P = plan.u.size, plan.pairs.size
    plan = plan._replace(grid=np.random.default_rng(S).random((S + 2, P)))
    kernel.arrange(plan, P * S)  # as if nothing were zero
    assert plan.answer["lanes"][0] == (plan.pairs["kind"] == kernel.BOUND).sum()
    return plan


def one_pair(p, width, u, reward=0.0, visited=True):
    """A plan in which state 0 has the pair in question and every other state one that is free."""
    S = len(u)
    space = StateActions([1] * S)
    rows = np.zeros((S, S))
    rows[0] = p
    region = ConfidenceRegion(
        space,
        [reward, *[0.0] * (S - 1)],
        rows,
        [width, *[0.0] * (S - 1)],
        [visited, *[False] * (S - 1)],
    )
    plan = region.as_plan(np.asarray(u, float))
    plan.states["order"] = np.arange(S)
    return region, plan


def row_value(plan, p, best):
    """The value of a pair by its row, as policy evaluation finds it."""
    kernel._cut(plan, plan.pairs[p], best)
    return kernel._kept(plan, plan.pairs[p], plan.u[best])


def all_ways(p, width, u, reward=0.0, visited=True):
    """The pair's value by columns, by the grid, by its row, and by the row shown to people."""
    region, plan = one_pair(p, width, u, reward, visited)
    lines = in_a_grid(one_pair(p, width, u, reward, visited)[1])
    plan = in_columns(plan)
    for one in (plan, lines):
        kernel.sweep(one)
    best = max(range(len(u)), key=lambda s: (u[s], s))
    shown = region.best_row(0, np.asarray(u, float))
    assert shown.min() >= 0.0
    assert shown.sum() == pytest.approx(1.0, abs=EXACT)
    if visited:
        assert np.abs(shown - p).sum() <= width + EXACT
    return (
        plan.pairs[0]["value"],
        lines.pairs[0]["value"],
        row_value(plan, 0, best),
        reward + float(shown @ u),
    )


CASES = [
    # p, width, u
    ([1.0], 0.0, [3.0]),  # S = 1
    ([1.0], 0.5, [0.0]),
    ([1.0], 2.0, [2.0]),
    ([0.5, 0.5], 0.0, [0.0, 1.0]),  # radius 0
    ([0.25, 0.75], 0.0, [1.0, 1.0]),
    ([0.5, 0.25, 0.25], 0.0, [4.0, 0.0, 1.0]),
    ([0.5, 0.5], 2.0, [0.0, 1.0]),  # the whole simplex
    ([1.0, 0.0], 2.0, [0.0, 1.0]),
    ([0.5, 0.25, 0.25], 3.5, [4.0, 0.0, 1.0]),
    ([1.0, 0.0], 0.5, [0.0, 1.0]),  # one-point rows
    ([1.0, 0.0, 0.0], 0.5, [0.0, 1.0, 2.0]),
    ([0.0, 0.0, 1.0, 0.0], 1.5, [3.0, 2.0, 0.0, 1.0]),
    ([0.0, 1.0], 0.5, [0.0, 1.0]),  # p_hat(best) = 1: nothing to move
    ([0.0, 1.0, 0.0], 1.0, [0.0, 5.0, 4.0]),
    ([0.25, 0.75], 1.0, [0.0, 1.0]),  # less to move than allowed
    ([0.125, 0.125, 0.75], 0.5, [0.0, 1.0, 2.0]),  # the worst is used up exactly
    ([0.125, 0.25, 0.625], 0.5, [0.0, 1.0, 2.0]),  # the second worst in part
    ([0.5, 0.5, 0.0, 0.0], 0.5, [1.0, 1.0, 1.0, 1.0]),  # all u tied
    ([0.25, 0.25, 0.25, 0.25], 0.5, [1.0, 0.0, 1.0, 0.0]),  # two best, two worst
    ([0.25, 0.25, 0.5, 0.0], 0.75, [2.0, 2.0, 0.0, 0.0]),
    ([0.0, 0.5, 0.0, 0.5], 1.25, [8.0, 1.0, 0.0, 2.0]),  # best state never seen
    ([0.5, 0.5], 1.9990234375, [0.0, 1.0]),  # just below the whole simplex
]


@pytest.mark.parametrize(("p", "width", "u"), CASES)
def test_inner_maximum_of_hand_made_cases(p, width, u):
    """Numbers that doubles hold exactly, so that the program's corners are exact as well."""
    corner, program = by_vertices(p, width, u), by_program(p, width, u)
    assert corner == pytest.approx(program, abs=EXACT)
    for value in all_ways(p, width, u):
        assert value == pytest.approx(corner, abs=EXACT)
    for value in all_ways(p, width, u, reward=0.75):
        assert value == pytest.approx(0.75 + corner, abs=EXACT)


def test_inner_maximum_of_random_rows():
    rng = np.random.default_rng(0)
    for case in range(60):
        S = 4 if case % 12 == 0 else int(rng.integers(2, 4))
        counts = rng.integers(0, 5, S)
        counts[rng.integers(S)] += 1
        p, width = counts / counts.sum(), float(rng.choice([0.01, 0.3, 0.9, 1.7, 1.99]))
        u = rng.choice([0.0, 1.0, 2.5], S) if case % 2 else 10 * rng.random(S)
        corner = by_vertices(p, width, u)
        assert by_program(p, width, u) == pytest.approx(corner, abs=1e-9)
        for value in all_ways(p, width, u):
            assert value == pytest.approx(corner, abs=EXACT)


@pytest.mark.parametrize("u", [[0.0, 1.0], [2.0, 1.0], [0.0, 0.0]])
def test_a_pair_never_visited_may_do_anything(u):
    """E8: whatever stands in its row of p_hat, and also where the radius is small."""
    for p, width in (([0.0, 0.0], 0.1), ([0.9, 0.1], 0.0), ([np.nan, 7.0], 0.0)):
        for value in all_ways(p, width, u, reward=1.0, visited=False):
            assert value == 1.0 + max(u)
        # the usual inner maximum of the zero row is sub-stochastic: what is not meant
    assert by_vertices([0.5, 0.5], 2.0, u) == max(u)


@pytest.mark.parametrize("width", [0.6000000000000001, 0.9, 1.9, 2.0])
@pytest.mark.parametrize("u", [[0.0, 0.1], [0.3, 0.7], [0.2, 1 / 3]])
def test_sets_that_reach_the_best_state_surely_tie_with_the_whole_simplex(width, u):
    """Not within rounding but exactly: ties between such pairs decide what is played."""
    for p in ([0.3, 0.7], [0.1, 0.9], [0.0, 1.0]):
        columns, grid, row, _ = all_ways(p, width, u, reward=0.1)
        assert columns == grid == row == 0.1 + max(u)


def random_region(rng, states, most_actions=4, density=0.3, exact=False):
    space = StateActions(rng.integers(1, most_actions + 1, states))
    pairs = space.n_pairs
    weights = rng.integers(1, 9, (pairs, states)) * (rng.random((pairs, states)) < density)
    weights[np.arange(pairs), rng.integers(states, size=pairs)] += 1
    reward = rng.integers(0, 9, pairs) / 8 if exact else rng.random(pairs)
    return ConfidenceRegion(
        space,
        reward,
        weights / weights.sum(axis=1, keepdims=True),
        rng.choice([0.0, 0.1, 0.4, 1.1, 2.5], pairs),
        rng.random(pairs) < 0.9,
        widening=rng.choice([0.0, 0.25], pairs),
    )


def test_a_sweep_is_the_maximum_of_its_rows():
    """Column sweep and rows agree, and Tu, policy, min and max follow from the values."""
    rng = np.random.default_rng(1)
    for states in (1, 2, 3, 7, 30):
        for _ in range(4):
            region = random_region(rng, states)
            space = region.space
            u = rng.random(states) if rng.random() < 0.7 else rng.integers(0, 3, states) * 1.0
            plan = region.as_plan(u)
            plan.states["order"] = np.arange(states)
            plan = in_columns(plan)
            low, high = kernel.sweep(plan)
            value, swept = plan.pairs["value"], plan.states["swept"]
            best = max(range(states), key=lambda s: (u[s], s))
            for pair in range(space.n_pairs):
                assert row_value(plan, pair, best) == pytest.approx(value[pair], abs=EXACT)
                found = region.reward_upper[pair] + region.best_row(pair, u) @ u
                assert found == pytest.approx(value[pair], abs=EXACT)
            own = [value[space.offsets[s] : space.offsets[s + 1]] for s in range(states)]
            assert swept.tolist() == [max(values) for values in own]
            assert plan.states["greedy"].tolist() == [
                space.offsets[s] + int(np.argmax(values)) for s, values in enumerate(own)
            ]
            assert low == min(swept - u)
            assert high == max(swept - u)


def test_columns_are_the_rows_turned():
    rng = np.random.default_rng(2)
    region = random_region(rng, 12)
    plan = region.as_plan(np.zeros(12))
    plan = in_columns(plan)
    by_row = {
        (p, int(entry["index"])): entry["probability"]
        for p, pair in enumerate(plan.pairs)
        for entry in plan.rows[pair["row"] : pair["row"] + pair["entries"]]
    }
    by_column = {
        (int(entry["index"]), s): entry["probability"]
        for s, state in enumerate(plan.states)
        for entry in plan.columns[state["column"] : state["column"] + state["entries"]]
    }
    assert len(by_row) == plan.pairs["entries"].sum() == plan.states["entries"].sum()
    assert by_column == by_row
    bound = np.flatnonzero(region.width < 2.0)
    assert {pair for pair, _ in by_row} == set(bound.tolist())


@pytest.mark.parametrize("states", [1, 2, 3, 33, 34, 40, 200])
def test_states_are_sorted_by_value_then_index(states):
    """Backwards and shuffled orders of more than 33 states run out of cheap moves: Shell sort."""
    rng = np.random.default_rng(3)
    values = [
        rng.random(states),
        -np.arange(states) * 1.0,
        np.zeros(states),
        rng.integers(0, 3, states) * 1.0,
        -(np.arange(states) // 2) * 1.0,
    ]
    for u in values:
        for start in (np.arange(states), np.arange(states)[::-1], rng.permutation(states)):
            expected = sorted(range(states), key=lambda s: (u[s], s))
            found = np.zeros(states, kernel.STATE)
            found["order"] = start
            kernel._sort(u, found)
            assert found["order"].tolist() == expected


@pytest.mark.parametrize("states", [100, 1000, 5000])
@pytest.mark.parametrize("values", [2, 30, 10**6])
def test_large_models_are_sorted_as_numpy_sorts(states, values):
    """With many ties, few, and none; from any order, the right one, and one nearly right."""
    rng = np.random.default_rng([states, values])
    u = rng.integers(0, values, states) / values
    u[rng.random(states) < 0.05] = -0.0  # a tie with 0
    expected = np.lexsort((np.arange(states), u))
    nearly = expected.copy()
    nearly[:2] = nearly[1::-1]
    for start in (
        rng.permutation(states),
        np.arange(states)[::-1],
        expected[::-1],
        expected,
        nearly,
    ):
        found = np.zeros(states, kernel.STATE)
        found["order"] = start
        kernel._sort(u, found)
        assert found["order"].tolist() == expected.tolist()


def test_a_sweep_from_an_order_that_needs_long_strides():
    rng = np.random.default_rng(4)
    region = random_region(rng, 60, most_actions=2, density=0.1)
    u = -np.arange(60) / 60
    found = []
    for start in (np.arange(60), np.arange(60)[::-1]):
        plan = region.as_plan(u)
        plan.states["order"] = start
        plan = in_columns(plan)
        found.append((*kernel.sweep(plan), plan.pairs["value"].tolist()))
        assert plan.states["order"].tolist() == list(range(59, -1, -1))
    assert found[0] == found[1]


def planned(region, slack, pruned, quick=True, epsilon=1e-9):
    plan = region.as_plan(np.zeros(region.space.n_states))
    if pruned:
        kernel.prune(plan, slack)
        plan.pairs["entries"][plan.pairs["kind"] == kernel.LEFT_OUT] = 0
    plan = in_columns(plan)
    assert kernel.solve(plan, epsilon, quick, 5000)
    tied = plan.pairs["value"] >= plan.states["swept"][region.space.state_of] - slack
    return plan, tied


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("slack", [0.0, 0.125, 0.25, 0.1875])
def test_pruning_changes_neither_gain_nor_ties(slack, quick):
    """Rewards and slacks in sixteenths: a pair is left out by far, or by nothing at all."""
    rng = np.random.default_rng(5)
    left_out = on_the_edge = ties = 0
    for _ in range(12):
        region = random_region(rng, int(rng.integers(1, 6)), exact=True)
        width = np.maximum(region.width, 0.1)  # so that all communicate
        region = ConfidenceRegion(
            region.space, region.reward_upper, region.p_hat, width, region.visited
        )
        full, tied = planned(region, slack, False, quick)
        less, still_tied = planned(region, slack, True, quick)
        assert less.answer.tolist() == full.answer.tolist()
        assert less.u.tolist() == full.u.tolist()
        assert still_tied.tolist() == tied.tolist()
        gone = less.pairs["kind"] == kernel.LEFT_OUT
        assert np.isneginf(less.pairs["value"][gone]).all()
        assert less.pairs["value"][~gone].tolist() == full.pairs["value"][~gone].tolist()
        left_out += gone.sum()
        ties += tied.sum() - region.space.n_states
        free = region.width >= 2.0
        for s in range(region.space.n_states):
            own = slice(region.space.offsets[s], region.space.offsets[s + 1])
            r, f, kept = region.reward_upper[own], free[own], ~gone[own]
            top = max(r[f], default=-np.inf)
            assert kept.tolist() == [x >= top - slack for x in r]  # equal ones are the ties
            on_the_edge += sum(x == top - slack for x in r)
    assert left_out > 0
    assert ties > 0
    assert on_the_edge > 0 or slack % 0.125  # rewards are eighths


def test_solve_stops_at_the_first_sweep_that_passes():
    """The paper's iteration from u = 0, literally: same number of sweeps, gain, bias and values."""
    rng = np.random.default_rng(6)
    for _ in range(6):
        region = random_region(rng, int(rng.integers(2, 5)))
        space = region.space
        region = ConfidenceRegion(
            space, region.reward_upper, region.p_hat, np.maximum(region.radius, 0.2), region.visited
        )
        for epsilon in (0.3, 1e-2, 1e-5):
            u, sweeps = np.zeros(space.n_states), 0
            while True:
                values = [
                    region.reward_upper[pair] + region.best_row(pair, u) @ u
                    for pair in range(space.n_pairs)
                ]
                new = np.array([max(np.array(values)[space.state_of == s]) for s in range(u.size)])
                sweeps += 1
                if np.ptp(new - u) <= epsilon:
                    break
                u = new - new.min()
            plan = region.as_plan(np.zeros(space.n_states))
            plan = in_columns(plan)
            assert kernel.solve(plan, epsilon, False, 10_000)
            assert plan.answer["sweeps"][0] == sweeps
            assert plan.answer["gain"][0] == pytest.approx(max(new - u), abs=1e-12)
            assert plan.answer["span"][0] == pytest.approx(max(u), abs=1e-11)
            assert plan.answer["gap"][0] == pytest.approx(np.ptp(new - u), abs=1e-12)
            assert plan.u == pytest.approx(u, abs=1e-11)
            assert plan.pairs["value"] == pytest.approx(values, abs=1e-11)
