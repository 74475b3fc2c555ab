"""What is computed some thousands of steps at a time: the borders of the pieces leave no trace.

Pieces are made as short as 7 steps and everything is compared with a literal walk over all times;
one test of each kind crosses a border of the real size.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import windage as wd
from tests.drifting import BUILDERS, MODELS, SPACE, T
from tests.models import literal_budgets, random_mdp
from windage.models import blend, drifting, gains, source

REAL = 1 << 16


@pytest.fixture(params=[2, 7, 59, 60, 61])
def piece(request, monkeypatch):
    for module, name in (
        (blend, "STEPS_A_CHUNK"), (drifting, "CHUNK"), (gains, "CHUNK"),
        (source, "KEPT_STEPS"), (drifting, "KEPT_STEPS"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, request.param)
    monkeypatch.setattr(blend, "_CELLS_A_PIECE", 7 * SPACE.n_pairs * 3)
    monkeypatch.setattr(source, "_CELLS_A_CHUNK", 7 * SPACE.n_pairs * 3)
    return request.param


class Trio:
    """Three weights that all move, standing still now and then."""

    def weights(self, t, horizon):
        t -= t % 5 == 0
        w = np.array([1 + np.cos(t), 1 + np.sin(t), 0.5])
        return w / w.sum()


class Halves:
    """Weights of a user's own that only two models share."""

    def weights(self, t, horizon):
        return [0.5 + 0.4 * math.sin(t), 0.5 - 0.4 * math.sin(t)]


class Thirds:
    def weights(self, t, horizon):
        return [0.25, 0.75] if t % 3 else [0.75, 0.25]


MADE = BUILDERS | {
    "trio": lambda: wd.DriftingMDP.blend(MODELS, Trio(), horizon=T),
    "halves": lambda: wd.DriftingMDP.blend(MODELS[:2], Halves(), Thirds(), horizon=T),
    "sparse trio": lambda: wd.DriftingMDP.blend(_sparse(MODELS), Trio(), horizon=T),
    "many jumps": lambda: wd.DriftingMDP.blend(
        MODELS, wd.schedules.Steps(range(2, T, 2), order=[k % 3 for k in range(30)]), horizon=T
    ),
    "walk": lambda: wd.DriftingMDP.blend(
        MODELS[:2], wd.schedules.RandomWalk(1, moves=25, size=0.3), horizon=T
    ),
}


def _sparse(models):
    return [wd.MDP(SPACE, mdp.rewards, csr_array(mdp.transitions)) for mdp in models]


@pytest.mark.parametrize("name", MADE)
def test_budgets_do_not_depend_on_the_pieces(name, piece):
    model = MADE[name]()
    for first, last in ((1, T), (3, 47), (7, 8), (14, 14)):
        r, p = literal_budgets(model, first, last)
        found = model.budgets(first, last)
        assert found.reward == pytest.approx(math.fsum(r), abs=1e-12)
        assert found.transition == pytest.approx(math.fsum(p), abs=1e-12)
        assert found.changes == sum(x > 0 or y > 0 for x, y in zip(r, p, strict=True))
        assert found.largest_steps == pytest.approx(
            (max(r, default=0), max(p, default=0)), abs=1e-14
        )
        assert found.reward_steps == pytest.approx(np.array(r), abs=1e-14)
        assert found.transition_steps == pytest.approx(np.array(p), abs=1e-14)
        assert found.changes == model.budgets(first, last).changes  # now from the series


def trap():
    rows = np.array(MODELS[0].transitions)
    rows[SPACE.state_of == 2] = [0, 0, 1]
    return wd.MDP(SPACE, MODELS[0].rewards, rows)


class Trapping:
    """A user's own schedule: at the given times model 1 alone, elsewhere both."""

    def __init__(self, *stretches):
        self.times = {t for first, last in stretches for t in range(first, last + 1)}

    def weights(self, t, horizon):
        return [0.0, 1.0] if t in self.times else [0.5, 0.5]


def trapped(kind, *stretches):
    """State 2 cannot be left in the given stretches."""
    times, models = Trapping(*stretches).times, (MODELS[0], trap())
    if kind == "own weights":
        return wd.DriftingMDP.blend(models, Trapping(*stretches), horizon=T)
    if kind == "function":
        return wd.DriftingMDP.from_function(
            lambda t: (models[0].rewards, models[t in times].transitions), space=SPACE, horizon=T
        )
    r, p = np.zeros((T, 3, 3)), np.zeros((T, 3, 3, 3))
    where = (slice(None), SPACE.state_of, SPACE.action_of)
    r[where] = MODELS[0].rewards
    p[where] = [models[t in times].transitions for t in range(1, T + 1)]
    return wd.DriftingMDP.from_arrays(r, p, SPACE)


@pytest.mark.parametrize("kind", ["own weights", "function", "arrays"])
@pytest.mark.parametrize(
    "stretches",
    [[(5, 30)], [(7, 7)], [(8, 14), (16, 21)], [(1, T)], [(6, 8), (10, 10), (59, 60)], []],
)
def test_a_hole_across_a_border_is_one_hole(kind, stretches, piece):
    model = trapped(kind, *stretches)
    literal = [t for t in range(1, T + 1) if not model.at(t).is_communicating()]
    assert literal == sorted(Trapping(*stretches).times)
    assert [tuple(hole[:2]) for hole in model.disconnections()] == stretches
    assert all(hole.origin == 2 for hole in model.disconnections())
    inside = [(max(a, 4), min(b, 20)) for a, b in stretches if a <= 20 and b >= 4]
    assert [tuple(hole[:2]) for hole in model.disconnections(4, 20)] == inside


@pytest.mark.parametrize("kind", ["own weights", "function", "arrays"])
def test_two_different_holes_next_to_each_other_stay_two(kind, piece):
    """State 2 cannot be left up to t = 14, state 0 from then on: a border at 7 x 2."""
    other = np.array(MODELS[0].transitions)
    other[SPACE.state_of == 0] = [1, 0, 0]
    models = (trap(), wd.MDP(SPACE, MODELS[0].rewards, other))

    class Turn:
        def weights(self, t, horizon):
            return [1.0, 0.0] if t <= 14 else [0.0, 1.0]

    model = wd.DriftingMDP.blend(models, Turn(), horizon=T)
    if kind != "own weights":
        model = wd.DriftingMDP.from_function(
            lambda t: (models[0].rewards, models[t > 14].transitions), space=SPACE, horizon=T
        )
    found = [hole[:3] for hole in model.disconnections()]
    assert found == [(1, 14, 2), (15, T, 0)]


@pytest.mark.parametrize("name", ["cosine", "function", "arrays", "two schedules"])
def test_gains_do_not_depend_on_the_pieces(name, piece):
    curve = MADE[name]().optimal_gains()
    literal = np.array([curve.at(t) for t in range(1, T + 1)])
    assert np.array_equal(curve.values, literal)
    assert curve.sum(3, 50) == pytest.approx(math.fsum(literal[2:50]), abs=1e-12)


TWO = wd.StateActions([1, 1])
ENDS = [wd.MDP(TWO, [0, 1], [[0.5, 0.5], [0.5, 0.5]]), wd.MDP(TWO, [1, 0], [[1, 0], [0.5, 0.5]])]


class Blinking:
    """Model 0, but for five times around the real border, and one far away."""

    times = np.array([REAL - 1, REAL, REAL + 1, REAL + 2, REAL + 5, 2 * REAL])

    def weights_many(self, times, horizon):
        there = np.isin(times, self.times).astype(float)
        return np.stack([1 - there, there], axis=1)

    def weights(self, t, horizon):
        return self.weights_many(np.array([t]), horizon)[0]


def blinking(kind):
    horizon = 2 * REAL + 9
    if kind == "own weights":
        return wd.DriftingMDP.blend(ENDS, Blinking(), horizon=horizon)
    there = np.isin(np.arange(1, horizon + 1), Blinking.times).astype(int)
    r = np.stack([mdp.rewards for mdp in ENDS])[there][:, :, None]
    p = np.stack([mdp.transitions for mdp in ENDS])[there][:, :, None]
    return wd.DriftingMDP.from_arrays(r, p)


@pytest.mark.parametrize("kind", ["own weights", "arrays"])
def test_a_real_border_is_crossed(kind):
    """Jumps at REAL - 2, REAL + 2, REAL + 4, REAL + 5, 2 REAL - 1 and 2 REAL: six of size one."""
    model = blinking(kind)
    found = model.budgets()
    assert (found.reward, found.transition, found.changes) == (6.0, 6.0, 6)
    assert found.largest_steps == (1.0, 1.0)
    steps = np.flatnonzero(found.reward_steps) + 1
    assert steps.tolist() == [
        REAL - 2, REAL + 2, REAL + 4, REAL + 5, 2 * REAL - 1, 2 * REAL,
    ]  # fmt: skip
    assert [tuple(hole[:2]) for hole in model.disconnections()] == [
        (REAL - 1, REAL + 2), (REAL + 5, REAL + 5), (2 * REAL, 2 * REAL),
    ]  # fmt: skip
    assert model.budgets(REAL, REAL + 1).reward == 0
    assert model.budgets(REAL + 2, REAL + 3).reward == 1


def test_more_jumps_than_a_piece_holds():
    """70,000 jumps, 140,000 stops: three real pieces."""
    horizon = 140_001
    schedule = wd.schedules.Steps(range(2, horizon, 2))
    model = wd.DriftingMDP.blend(ENDS, schedule, horizon=horizon)
    found = model.budgets()
    assert (found.reward, found.transition, found.changes) == (70_000.0, 70_000.0, 70_000)
    assert model.budgets(2, 100_000).reward == 49_999.0
    assert model.budgets(REAL, REAL + 1).reward == 0.0
    assert model.budgets(REAL - 1, REAL).reward == 1.0


class Some(wd.schedules.Schedule):
    """Three of twelve models in play at a time, no stops known."""

    n_models = 12

    def __init__(self, seed, each=3):
        rng = np.random.default_rng(seed)
        self.models = np.array([rng.choice(12, each, replace=False) for _ in range(T)], np.int32)
        self.shares = rng.dirichlet(np.ones(each), T)

    def active(self, times, horizon):
        return self.models[times - 1], self.shares[times - 1]

    def stops(self, horizon):
        return None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [False, True])
def test_of_many_models_only_those_in_play_are_looked_at(seed, sparse, monkeypatch):
    """Step by step, so that six at the most of the twelve are in play at a time."""
    monkeypatch.setattr(blend, "_CELLS_A_PIECE", 1)
    models = [random_mdp(SPACE, k) for k in range(12)]
    if sparse:
        models = _sparse(models)
    model = wd.DriftingMDP.blend(models, Some(seed), horizon=T)
    r, p = literal_budgets(model, 1, T)
    assert model.budgets().reward_steps == pytest.approx(np.array(r), abs=1e-14)
    assert model.budgets().transition_steps == pytest.approx(np.array(p), abs=1e-14)
    assert model.budgets().transition == pytest.approx(math.fsum(p), abs=1e-12)
