"""The linear programs against literal feasibility, closed forms and textbook numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.unit.oracle.exact import best_gain
from tests.unit.oracle.literal import best_of_all_policies, ring, river, tiny
from windage.errors import ModelError, NotConverged
from windage.oracle import lp
from windage.oracle.lp import gain_lp
from windage.spaces import StateActions


def assert_feasible(space, rewards, transitions, found, slack=1e-8):
    """Both programs of the paper, word for word: values, constraints, normalisations."""
    x, gamma, rho = found.occupancy, found.bias, found.dual
    assert x.shape == (space.n_pairs,)
    assert gamma.shape == (space.n_states,)
    assert (x >= -slack).all()
    assert sum(x) == pytest.approx(1.0, abs=slack)
    for s in range(space.n_states):
        out = sum(x[space.pair(s, a)] for a in range(space.counts[s]))
        into = sum(transitions[pair][s] * x[pair] for pair in range(space.n_pairs))
        assert out == pytest.approx(into, abs=slack)
        for a in range(space.counts[s]):
            pair = space.pair(s, a)
            ahead = sum(p * g for p, g in zip(transitions[pair], gamma, strict=True))
            assert rho + gamma[s] >= rewards[pair] + ahead - slack
    assert sum(r * y for r, y in zip(rewards, x, strict=True)) == pytest.approx(
        found.primal, abs=slack
    )
    assert gamma.min() == 0.0


def test_two_states_of_puterman():
    space = StateActions([2, 1])
    rewards, rows = [5.0, 10.0, -1.0], [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]]
    found = gain_lp(space, rewards, rows)
    assert found.primal == pytest.approx(-1.0, abs=1e-9)
    assert found.dual == pytest.approx(-1.0, abs=1e-9)
    assert found.occupancy == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
    assert found.bias[0] >= 12.0 - 1e-9  # any such bias will do, the least one is 12
    assert_feasible(space, rewards, rows, found)


def test_a_sure_ring_is_everywhere_equally_often():
    space, rewards, rows = ring(7)
    found = gain_lp(space, rewards, rows)
    assert found.primal == pytest.approx(1 / 7, abs=1e-10)
    assert found.dual == pytest.approx(1 / 7, abs=1e-10)
    assert found.occupancy == pytest.approx(np.full(7, 1 / 7), abs=1e-10)
    assert_feasible(space, rewards, rows, found)


def test_the_occupancy_of_a_river_has_a_closed_form():
    """All right: detailed balance between neighbours."""
    space, rewards, transitions = river(6)
    found = gain_lp(space, rewards, transitions)
    up, down = [0.6, 0.35, 0.35, 0.35, 0.35], [0.05, 0.05, 0.05, 0.05, 0.4]
    weights = [Fraction(1)]
    for p, q in zip(up, down, strict=True):
        weights.append(weights[-1] * Fraction(str(p)) / Fraction(str(q)))
    expected = [float(w / sum(weights)) for w in weights]
    assert found.occupancy[1::2] == pytest.approx(expected, abs=1e-10)
    assert found.occupancy[::2] == pytest.approx(np.zeros(6), abs=1e-10)
    assert found.primal == pytest.approx(expected[-1], abs=1e-10)
    assert_feasible(space, rewards, transitions.toarray(), found)


@pytest.mark.parametrize("states", [50, 200, 1000])
def test_slow_rivers_have_gain_three_sevenths(states):
    found = gain_lp(*river(states))
    assert found.primal == pytest.approx(3 / 7, abs=1e-8)
    assert found.dual == pytest.approx(3 / 7, abs=1e-8)


@pytest.mark.parametrize("kind", ["sure", "sparse", "full"])
def test_the_value_is_the_largest_gain_over_start_states(kind):
    rng = np.random.default_rng(["sure", "sparse", "full"].index(kind))
    several = 0
    for _ in range(30):
        space, rewards, rows = tiny(rng, kind)
        gains = best_of_all_policies(space, rewards, rows)
        several += np.ptp(gains) > 1e-3
        found = gain_lp(space, rewards, csr_array(rows) if rng.random() < 0.5 else rows)
        assert found.primal == pytest.approx(gains.max(), abs=1e-8)
        assert found.dual == pytest.approx(gains.max(), abs=1e-8)
        assert_feasible(space, rewards, rows, found)
    assert several > {"sure": 2, "sparse": 0, "full": -1}[kind]


def test_probabilities_that_the_solver_cannot_see():
    """Entries far below 1e-9 used to make the dual unbounded: gamma moved without a cost."""
    rng = np.random.default_rng(2)
    unseen = 0
    for _ in range(10):
        space = StateActions.uniform(12, 6)
        rows = np.repeat(rng.dirichlet(np.ones(12) / 4, size=24), 3, axis=0)
        unseen += rows.min() < 1e-9
        rewards = rng.integers(0, 2, size=72).astype(float)
        found = gain_lp(space, rewards, rows)
        assert found.primal == pytest.approx(found.dual, abs=1e-9)
        assert_feasible(space, rewards, rows, found)
    assert unseen > 5


def test_inputs_are_left_alone_and_named_when_wrong():
    space, rewards, transitions = river(5)
    before = transitions.toarray()
    gain_lp(space, rewards, transitions)
    assert (transitions.toarray() == before).all()
    before[4] *= 2
    with pytest.raises(ModelError, match="s=2, a=0: .* sums to 2"):
        gain_lp(space, rewards, before)


def test_a_program_that_is_not_solved_says_so():
    with pytest.raises(NotConverged, match=r"gain_lp: the primal program ended with status 2"):
        lp._solve("primal", c=[1.0], A_eq=[[1.0]], b_eq=[-1.0], bounds=(0.0, None))


def test_gains_below_the_resolution_are_refused():
    """HiGHS sees two absorbing states here, and both programs agree on 1; the truth is 0.3."""
    space, rewards = StateActions([1, 1]), [0.0, 1.0]
    rows = [[1 - 3e-13, 3e-13], [7e-13, 1 - 7e-13]]
    assert float(best_gain(space, rewards, rows)) == pytest.approx(0.3, abs=1e-3)
    with pytest.raises(NotConverged, match="gain_lp: the programs say 1 and 1, but"):
        gain_lp(space, rewards, rows)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_returned_is_the_gain_of_chains_however_slow(seed):
    """Exact rationals are the witness; at every scale of the exits some gains are returned."""
    rng = np.random.default_rng(seed)
    returned = {}
    for case in range(60):
        scale = 10.0 ** -(case % 15)
        space = StateActions(rng.integers(1, 3, size=rng.integers(2, 4)))
        S, pairs = space.n_states, space.n_pairs
        rows = np.eye(S)[rng.integers(S, size=pairs)]
        rows += scale * rng.random((pairs, S)) * (rng.random((pairs, S)) < 0.7)
        rows /= rows.sum(axis=1, keepdims=True)
        rewards = rng.random(pairs)
        truth = float(best_gain(space, rewards, rows))
        try:
            found = gain_lp(space, rewards, rows)
        except NotConverged:
            continue
        returned[case % 15] = returned.get(case % 15, 0) + 1
        assert found.primal == pytest.approx(truth, abs=1.1e-6), (case, scale)
        assert found.dual == pytest.approx(truth, abs=1.1e-6), (case, scale)
    assert {0, 1, 2, 3, 4} <= set(returned)
    assert all(returned[k] == 4 for k in range(4))
