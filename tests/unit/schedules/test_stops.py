"""Where drifts turn: few times for slow ones, never more than there are for fast ones."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from windage import schedules
from windage.schedules import Burst, Cosine, Linear, RandomWalk, Steps, as_schedule, in_pieces

FAST = [
    Cosine(2e7), Cosine(123.4), Cosine(499), Cosine(500), Cosine(777.7), Cosine(250), Cosine(249.9),
    Linear(2e7), Linear(998), Linear(499.5), Burst(0.2, 0.7, 10**6), Burst(0.3, 0.4, 25),
    Burst(0.0, 1.0, 249), RandomWalk(1, moves=5000), RandomWalk(2, moves=499),
    RandomWalk(2, moves=498),
]  # fmt: skip


@pytest.mark.parametrize("schedule", FAST, ids=repr)
@pytest.mark.parametrize("horizon", [1, 2, 3, 999, 1000])
def test_fast_drifts_have_no_more_stops_than_times(schedule, horizon):
    stops = schedule.stops(horizon)
    assert stops[0] == 1
    assert stops[-1] == horizon
    assert (np.diff(stops) > 0).all()
    position = schedule.position(np.arange(1, horizon + 1), horizon)
    literal = math.fsum(abs(b - a) for a, b in zip(position[:-1], position[1:], strict=True))
    assert schedule.variation(horizon) == pytest.approx(literal, rel=1e-12, abs=1e-11)
    for first, last in zip(stops[:-1], stops[1:], strict=True):
        steps = np.diff(position[first - 1 : last])
        assert (steps >= -1e-12).all() or (steps <= 1e-12).all()


def test_quiet_times_around_a_fast_burst_are_not_gone_through():
    stops = Burst(0.5, 0.501, 10**6).stops(100_000)
    assert stops.size < 110
    assert stops[[0, -1]].tolist() == [1, 100_000]
    assert set(range(50_000, 50_101)) <= set(stops.tolist())


@pytest.mark.parametrize("piece", [1, 7, 64])
@pytest.mark.parametrize(
    "schedule", [*FAST[::2], Cosine(), Cosine(0), Linear(0.3), Steps([3, 7])], ids=repr
)
@pytest.mark.parametrize("horizon", [1, 2, 300])
def test_stretches_are_the_stops_piece_by_piece(schedule, piece, horizon, monkeypatch):
    whole, variation = schedule.stops(horizon), schedule.variation(horizon)
    monkeypatch.setattr(schedules, "PIECE", piece)
    pieces = list(schedule.stretches(horizon))
    for before, after in zip(pieces[:-1], pieces[1:], strict=True):
        assert before[-1] == after[0]
        assert after.size > 1
    joined = np.concatenate([pieces[0], *(more[1:] for more in pieces[1:])])
    assert joined.tolist() == whole.tolist()
    assert isinstance(schedule, Steps) or max(map(len, pieces)) <= 2 * piece + 3
    assert schedule.variation(horizon) == pytest.approx(variation, rel=1e-12, abs=1e-12)


def test_own_schedules_are_gone_through_in_pieces(monkeypatch):
    class Ramp:
        def weights(self, t, T):
            return [1 - t / T, t / T]

    monkeypatch.setattr(schedules, "PIECE", 10)
    schedule = as_schedule(Ramp(), 95)
    assert [piece.size for piece in schedule.stretches(95)] == [11] * 9 + [5]
    assert schedule.variation(95) == pytest.approx(94 / 95, abs=1e-13)
    assert [piece.tolist() for piece in in_pieces(1, 1)] == [[1]]


def test_memory_does_not_grow_with_the_number_of_cycles():
    """Forty million turning points in five thousand steps; the last horizon has 400,000 stops."""
    tracemalloc.start()
    try:
        assert Cosine(2e7).stops(5000).size == 5000
        assert tracemalloc.get_traced_memory()[1] < 2**21
        tracemalloc.reset_peak()
        assert Cosine(1e5).variation(10**8) == pytest.approx(2e5, rel=1e-6)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def test_stops_that_would_fill_the_memory_are_refused():
    with pytest.raises(ValueError, match="stops: would need about .* of memory") as error:
        Cosine(1e11).stops(2**40 - 1)
    assert error.value.fix
    first = next(Cosine(1e11).stretches(2**40 - 1))  # piece by piece they are no trouble
    assert first[0] == 1
    assert first.size < 2**18


def folded(y):
    """Reflect a free path at the walls 0 and 1, one wall after the other."""
    while not 0 <= y <= 1:
        y = -y if y < 0 else 2 - y
    return y


def jumps_of(seed, moves):
    from windage.rng import stream

    return stream(seed, "schedules.Walk").standard_normal(moves)


@pytest.mark.parametrize("size", [0.05, 0.4, 3.0])
def test_walks_are_reflected_at_both_walls(size):
    moves = 400
    nodes = RandomWalk(seed=5, moves=moves, size=size).position(np.arange(1, moves + 2), moves + 1)
    free = 0.5
    walls = set()
    for k, jump in enumerate(jumps_of(5, moves)):
        assert nodes[k] == pytest.approx(folded(free), abs=1e-12)
        free += size * jump
        walls |= {free < 0, 10 + (free > 1)}
    assert nodes[moves] == pytest.approx(folded(free), abs=1e-12)
    assert walls == {False, True, 10, 11}  # both walls were met


@pytest.mark.parametrize("seed", range(5))
def test_walks_never_leap_across(seed):
    """A walk that wraps at a wall, instead of turning back, leaps by nearly one."""
    moves, size = 3000, 0.05
    nodes = RandomWalk(seed, moves=moves, size=size).position(np.arange(1, moves + 2), moves + 1)
    steps, jumps = np.abs(np.diff(nodes)), size * np.abs(jumps_of(seed, moves))
    assert (steps <= jumps + 1e-12).all()
    assert nodes.min() < 0.02
    assert nodes.max() > 0.98


def test_walks_have_the_step_size_they_were_given():
    """The spread of 20,000 normal steps is known to 0.5 %; five of these are a chance of 6e-7."""
    moves = 20_000
    nodes = RandomWalk(seed=1, moves=moves, size=1e-4).position(np.arange(1, moves + 2), moves + 1)
    assert 0 < nodes.min() < nodes.max() < 1  # far from the walls
    assert np.diff(nodes).std() == pytest.approx(1e-4, rel=0.025)


def test_walks_are_straight_between_their_moves():
    walk = RandomWalk(seed=3, moves=10, size=0.2)
    fine = walk.position(np.arange(1, 102), 101)
    for k in range(10):
        line = np.linspace(fine[10 * k], fine[10 * k + 10], 11)
        assert fine[10 * k : 10 * k + 11] == pytest.approx(line, abs=1e-12)
