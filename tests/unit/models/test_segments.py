"""When a side of a blend rests at a base and when it moves: against a look at every time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import windage as wd
from tests.drifting import MODELS, SHAPES
from tests.models import random_mdp
from windage.models.blend import places, points_and_lines


@pytest.mark.parametrize("T", [1, 2, 3, 7, 400])
@pytest.mark.parametrize("name", SHAPES)
def test_stretches_hold_exactly_the_moving_times(name, T):
    schedule = SHAPES[name] if T > 200 or "knots" not in name else wd.schedules.Knots((1,))
    space = wd.StateActions([2, 1])
    models = [random_mdp(space, k) for k in range(4)]
    side = wd.DriftingMDP.blend(models, schedule, horizon=T).source.kernels
    points, lines = points_and_lines(side, schedule.stops(T))
    rests, moves = {}, {}
    for t in range(1, T + 1):
        weights = schedule.weights(t, T)
        if weights.max() == 1.0:
            rests.setdefault(int(weights.argmax()), t)
        else:
            i, j = np.flatnonzero(weights)
            moves.setdefault((int(i), int(j)), {})[t] = float(weights[j])
    assert points == rests
    assert [(line.i, line.j) for line in lines] == sorted(moves)
    for line in lines:
        inside = moves[line.i, line.j]
        held = [t for a, b in zip(line.first, line.last, strict=True) for t in range(a, b + 1)]
        assert sorted(set(held)) == sorted(inside)
        assert line.lowest()[0] == min(inside.values())
        assert line.highest()[0] == max(inside.values())
        for x, t in (line.lowest(), line.highest()):
            assert inside[t] == x
        levels = sorted({0.0, 1.0, *list(inside.values())[:: 1 + len(inside) // 12]})
        for low, high in itertools.combinations(levels, 2):
            between = [x for x in inside.values() if low < x < high]
            found = line.between(low, high)
            assert (found is None) == (not between)
            if found is not None:
                nearest = min(abs(x - (low + high) / 2) for x in between)
                assert abs(found[0] - (low + high) / 2) == pytest.approx(nearest, abs=1e-15)
                assert inside[found[1]] == found[0]


def test_many_stretches_are_asked_a_thousand_at_a_time():
    schedule = wd.schedules.RandomWalk(2, moves=5000, size=0.3)
    side = wd.DriftingMDP.blend(MODELS[:2], schedule, horizon=10_001).source.kernels
    _, (line,) = points_and_lines(side, schedule.stops(10_001))
    x = np.sort(places(side, np.arange(1, 10_002)).x)
    rng = np.random.default_rng(7)
    for _ in range(30):
        low = rng.random()
        high = low + rng.choice([0.1, 1e-4, 1e-5])
        found = line.between(low, high)
        assert (found is None) == (not ((x > low) & (x < high)).any())
        assert found is None or low < found[0] < high
    assert line.first.size > 3000


@pytest.mark.parametrize("T", [10**8, 10**9, 10**11])
def test_weights_that_round_to_a_base_for_a_while_hide_no_family(T):
    """Near its turning points a slow cosine is 0 or 1 to the last bit for many steps."""
    space = wd.StateActions([2, 2])
    kernels = ([[1, 0], [0, 1], [0, 1], [1, 0]], [[0, 1], [1, 0], [1, 0], [0, 1]])  # spec 1.12
    models = [wd.MDP(space, np.zeros(4), p) for p in kernels]
    model = wd.DriftingMDP.blend(models, wd.schedules.Cosine(1), horizon=T)
    side = model.source.kernels
    _, (line,) = points_and_lines(side, side.schedule.stops(T))
    assert (line.i, line.j) == (0, 1)
    for edge in (line.first, line.last):
        assert ((places(side, edge).x > 0) & (places(side, edge).x < 1)).all()
    assert (places(side, line.first[1:] - 1).x == 0).all()
    found = model.max_diameter(1e-9)
    assert found.lower == pytest.approx(2, rel=1e-7)
    assert abs(found.t - T / 4) < 1e-7 * T or abs(found.t - 3 * T / 4) < 1e-7 * T
    drifting = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(1), horizon=T)
    t = T // 3
    best = wd.gain_lp(drifting.at(t)).dual
    assert drifting.optimal_gains().at(t) == pytest.approx(best, abs=2e-6)
