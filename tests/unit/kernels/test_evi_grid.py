"""A grid gives what columns give, to the last bit, and the learner uses it when it should."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.kernels.test_evi import in_a_grid, in_columns, random_region
from windage.confidence.confidence import ConfidenceRegion, blank_plan, has_grid
from windage.kernels import evi
from windage.spaces import StateActions


def both(region, u):
    """The same region on columns and on a grid."""
    columns, lines = in_columns(region.as_plan(u)), in_a_grid(region.as_plan(u))
    for plan in (columns, lines):
        plan.states["order"] = np.arange(u.size)
    assert lines.answer["lanes"][0] == (region.width < 2.0).sum()
    return columns, lines


def rows_of(plan):
    return [
        sorted(
            (int(entry["index"]), float(entry["probability"]))
            for entry in plan.rows[pair["row"] : pair["row"] + pair["entries"]]
        )
        for pair in plan.pairs
    ]


@pytest.mark.parametrize("states", [1, 2, 3, 7, 30])
def test_sweeps_are_equal_to_the_last_bit(states):
    rng = np.random.default_rng(states)
    for _ in range(8):
        region = random_region(rng, states, density=0.6)
        u = rng.random(states) if rng.random() < 0.7 else rng.integers(0, 3, states) * 1.0
        columns, lines = both(region, u - u.min())
        assert evi.sweep(columns) == evi.sweep(lines)
        assert columns.pairs["value"].tolist() == lines.pairs["value"].tolist()
        assert columns.states["greedy"].tolist() == lines.states["greedy"].tolist()


@pytest.mark.parametrize("quick", [False, True])
def test_solutions_are_equal_to_the_last_bit(quick):
    rng = np.random.default_rng(17)
    most = 0
    for _ in range(8):
        region = random_region(rng, 12, most_actions=2, density=0.2)
        width = np.where(region.visited, 0.02, 2.0)
        width[:-3] = np.minimum(width[:-3], 0.02)  # few are free: values travel slowly
        seen = width < 2.0
        rows = region.p_hat.toarray()
        rows[seen & ~region.visited, 0] = 1.0
        region = ConfidenceRegion(region.space, region.reward_upper / 8, rows, width, seen)
        columns, lines = both(region, rng.random(12))
        for plan in (columns, lines):
            assert evi.solve(plan, 1e-9, quick, 5000)
        assert columns.answer[0].item()[:4] == lines.answer[0].item()[:4]
        assert columns.u.tolist() == lines.u.tolist()
        assert columns.pairs["value"].tolist() == lines.pairs["value"].tolist()
        most = max(most, int(lines.answer["sweeps"][0]))
    assert most > evi.PLAIN_SWEEPS  # policies were evaluated, by rows


def test_sets_that_just_reach_the_best_state_put_all_mass_there():
    for p, half in ((0.7, 0.30000000000000004), (0.9, 0.09999999999999998), (0.75, 0.25)):
        for u in ([0.0, 0.1], [0.3, 0.7], [0.2, 1 / 3]):
            plan = blank_plan(StateActions([1, 1]), 4)
            plan.pairs["kind"], plan.pairs["half"], plan.pairs["reward"] = evi.BOUND, half, 0.1
            plan.u[:], plan.states["order"] = u, [0, 1]
            plan.answer["lanes"] = 2
            plan.pairs["lane"] = [0, 1]
            plan.grid[:2] = [[1 - p] * 2, [p] * 2]
            evi.sweep(plan)
            assert plan.pairs["value"].tolist() == [0.1 + max(u)] * 2


@pytest.mark.parametrize("density", [0.2, 0.6, 0.9])
def test_the_grid_holds_the_rows_and_nothing_of_before(density):
    """A lane for every pair whose set is a ball, in their order; the rows stay as they are."""
    region = random_region(np.random.default_rng(4), 9, density=density)
    before = rows_of(region.as_plan(np.zeros(9)))
    lines = in_a_grid(region.as_plan(np.zeros(9)))
    assert rows_of(lines) == before
    n = int(lines.answer["lanes"][0])
    lanes = lines.pairs["lane"][:n].tolist()
    assert lanes == np.flatnonzero(region.width < 2.0).tolist()
    assert n < region.space.n_pairs
    held = [[(s, float(x)) for s, x in enumerate(lines.grid[:9, k]) if x != 0.0] for k in range(n)]
    assert held == [before[p] for p in lanes]
    evi.sweep(lines)
    evi.evaluate(lines, True)
    assert rows_of(lines) == before


def test_rows_come_back_from_grid_and_columns():
    """Policies are evaluated by rows; a plan may have been gathered into one of the others."""
    region = random_region(np.random.default_rng(3), 9, density=0.6)
    for plan in both(region, np.zeros(9)):
        before = rows_of(plan)
        plan.rows["index"] = plan.rows["probability"] = -1
        evi._fill_rows(plan)
        assert rows_of(plan) == before


def test_a_grid_is_for_rows_with_few_zeros():
    space = StateActions.uniform(16, 2)
    for entries, used in ((64, True), (63, False)):
        plan = blank_plan(space, entries)
        evi.arrange(plan, entries)
        assert (plan.grid.size > 0) == (plan.answer["lanes"][0] >= 0) == used
        assert has_grid(16 * 32, entries) == used
    plan = blank_plan(space, 64)  # with room for a grid, and not enough to put there
    evi.arrange(plan, 63)
    assert plan.answer["lanes"][0] == -1
    assert not hasattr(blank_plan(space, 512, boxes=True), "grid")
    large = StateActions.uniform(1025, 1)  # over a million cells
    assert blank_plan(large, 1025 * 1025 // 4).grid.size == 0
