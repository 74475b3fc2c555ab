"""What must hold for the diameter of every model."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from windage.oracle.diameter import diameter, hitting_times, solve_diameter
from windage.spaces import StateActions

REL = 1e-9


@st.composite
def models(draw, least_states=1):
    """Up to six states, ragged action sets, rows of whole numbers out of 20: never tiny."""
    S = draw(st.integers(least_states, 6))
    space = StateActions(draw(st.lists(st.integers(1, 3), min_size=S, max_size=S)))
    weights = st.lists(st.integers(0, 4), min_size=S, max_size=S).filter(any)
    rows = np.array([draw(weights) for _ in range(space.n_pairs)], dtype=float)
    return space, rows / rows.sum(axis=1, keepdims=True)


def strongly_connected(space, p):
    S = space.n_states
    reach = np.eye(S, dtype=int)
    for pair in range(space.n_pairs):
        reach[space.state_of[pair]] |= p[pair] > 0
    for _ in range(S):
        reach = (reach @ reach > 0).astype(int)
    return bool(reach.all())


def close(x, y):
    return x == y or math.isclose(x, y, rel_tol=REL)


@given(models())
def test_infinite_exactly_when_not_strongly_connected(model):
    space, p = model
    assert math.isfinite(diameter(space, p)) == strongly_connected(space, p)


@given(models())
def test_the_longest_of_the_least_times_and_their_equation(model):
    space, p = model
    solution = solve_diameter(space, csr_array(p))
    worst = 0.0
    for g in range(space.n_states):
        h = hitting_times(space, p, g)
        worst = max(worst, float(h.max()))
        assert h[g] == 0.0
        for s in range(space.n_states):
            if s != g:
                pairs = range(space.offsets[s], space.offsets[s + 1])
                moves = [1.0 + sum(q * x for q, x in zip(p[i], h, strict=True) if q) for i in pairs]
                assert close(h[s], min(moves))
    assert close(solution.value, worst)
    assert solution.lower <= solution.value <= solution.upper


@given(models(), st.randoms(use_true_random=False))
def test_names_do_not_matter(model, random):
    space, p = model
    states = list(range(space.n_states))
    random.shuffle(states)  # states[new] = old
    rows = []
    for old in states:
        pairs = list(range(space.offsets[old], space.offsets[old + 1]))
        random.shuffle(pairs)
        rows += [p[pair][states] for pair in pairs]
    renamed = StateActions(space.counts[states])
    assert close(diameter(renamed, np.array(rows)), diameter(space, p))


@given(models(least_states=2), st.data())
def test_another_action_never_raises_it(model, data):
    space, p = model
    S = space.n_states
    s = data.draw(st.integers(0, S - 1))
    row = np.array(data.draw(st.lists(st.integers(0, 4), min_size=S, max_size=S).filter(any)))
    counts = space.counts + (np.arange(S) == s)
    richer = np.insert(p, space.offsets[s + 1], row / row.sum(), axis=0)
    assert diameter(StateActions(counts), richer) <= diameter(space, p) * (1 + REL)


@given(models(least_states=2), st.integers(0, 5))
def test_the_same_action_twice_changes_nothing(model, s):
    space, p = model
    s %= space.n_states
    counts = space.counts + (np.arange(space.n_states) == s)
    twice = np.insert(p, space.offsets[s], p[space.offsets[s]], axis=0)
    assert close(diameter(StateActions(counts), twice), diameter(space, p))


@given(models(), st.sampled_from([0.5, 0.1, 1e-3, 1e-6]))
def test_a_lazy_model_takes_longer_by_its_laziness(model, alpha):
    space, p = model
    lazy = alpha * p
    lazy[np.arange(space.n_pairs), space.state_of] += 1.0 - alpha
    assert close(diameter(space, lazy), diameter(space, p) / alpha)
