"""A grid gives what columns give, to the last bit, and the learner uses it when it should."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.kernels.test_evi import random_region
from windage.confidence.confidence import ConfidenceRegion, blank_plan
from windage.kernels import evi, grid
from windage.kernels import plan as plans
from windage.spaces import StateActions


def both(region, u):
    """The same region on columns and on a grid."""
    found = []
    for lay in (plans.transpose, grid.lay):
        plan = region.as_plan(u)
        plan.states["order"] = np.arange(u.size)
        lay(plan)
        found.append(plan)
    assert found[0].answer[plans.GRID] == 0.0
    assert found[1].answer[plans.GRID] == 1 + (region.width < 2.0).sum()
    return found


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
        assert columns.answer[:4].tolist() == lines.answer[:4].tolist()
        assert columns.u.tolist() == lines.u.tolist()
        assert columns.pairs["value"].tolist() == lines.pairs["value"].tolist()
        most = max(most, int(lines.answer[plans.SWEEPS]))
    assert most > evi.PLAIN_SWEEPS  # policies were evaluated, by rows picked up from the grid


def test_sets_that_just_reach_the_best_state_put_all_mass_there():
    for p, half in ((0.7, 0.30000000000000004), (0.9, 0.09999999999999998), (0.75, 0.25)):
        for u in ([0.0, 0.1], [0.3, 0.7], [0.2, 1 / 3]):
            plan = blank_plan(StateActions([1, 1]), 4)
            plan.pairs["kind"], plan.pairs["half"], plan.pairs["reward"] = plans.BOUND, half, 0.1
            plan.u[:], plan.states["order"] = u, [0, 1]
            plan.answer[plans.GRID] = 3.0
            plan.pairs["lane"] = [0, 1]
            plan.grid[:2] = [[1 - p] * 2, [p] * 2]
            evi.sweep(plan)
            assert plan.pairs["value"].tolist() == [0.1 + max(u)] * 2


def test_what_was_on_the_grid_before_is_gone():
    rng = np.random.default_rng(4)
    plan = random_region(rng, 9, density=0.9).as_plan(np.zeros(9))
    plan.grid[:] = rng.random(plan.grid.shape)
    before = rows_of(plan)
    grid.lay(plan)
    grid.pick_up(plan)
    assert rows_of(plan) == before


def test_rows_come_back_from_the_grid():
    region = random_region(np.random.default_rng(3), 9, density=0.6)
    columns, lines = both(region, np.zeros(9))
    before = rows_of(lines)
    lines.rows["index"] = lines.rows["probability"] = -1
    grid.pick_up(lines)
    plans.spread(columns)
    assert rows_of(lines) == rows_of(columns) == before


def test_a_grid_is_for_rows_with_few_zeros():
    space = StateActions.uniform(16, 2)
    for entries, used in ((64, True), (63, False)):
        plan = blank_plan(space, entries)
        assert (plan.grid.size > 0) == grid.fits(plan, entries) == used
        assert not grid.fits(blank_plan(space, 64), 63)
    assert blank_plan(space, 512, boxes=True).grid.size == 0
    large = StateActions.uniform(1025, 1)  # over a million cells
    assert blank_plan(large, 1025 * 1025 // 4).grid.size == 0
