"""The finite-horizon optimum against enumeration of policies and exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from windage import validation
from windage.errors import InputError, ModelError
from windage.kernels import horizon as kernel
from windage.oracle.finite_horizon import benchmark_gap, finite_horizon, printed_benchmark_gap
from windage.spaces import StateActions


def random_sequence(rng, space, T):
    shape = (space.n_pairs, space.n_states)
    p = rng.dirichlet(np.full(space.n_states, 0.7), size=(T, space.n_pairs)).reshape(T, *shape)
    return rng.random((T, space.n_pairs)), p


def literal(space, r, p, first=1):
    """V_t(s) = max_a r_t + p_t V_{t+1}, in fractions: no rounding at all."""
    S, T = space.n_states, len(r)
    values = [Fraction(0)] * S
    for t in range(T, first - 1, -1):
        now = []
        for s in range(S):
            found = []
            for pair in range(space.offsets[s], space.offsets[s + 1]):
                row = [Fraction(x) for x in p[t - 1][pair]]
                row[-1] = 1 - sum(row[:-1])  # rows count as summing to one
                ahead = sum(x * v for x, v in zip(row, values, strict=True))
                found.append(Fraction(r[t - 1][pair]) + ahead)
            now.append(max(found))
        values = now
    return values


def expected_rewards(space, r, p, actions):
    """E sum r_t from every start state when actions[t][s] is played, by forward propagation."""
    totals = []
    for start in range(space.n_states):
        law = np.eye(space.n_states)[start]
        total = 0.0
        for t, chosen in enumerate(actions):
            pairs = [space.pair(s, int(a)) for s, a in enumerate(chosen)]
            total += float(law @ r[t][pairs])
            law = law @ p[t][pairs]
        totals.append(total)
    return np.array(totals)


@pytest.mark.parametrize("seed", range(6))
def test_best_of_all_policies_that_look_at_time_and_state(seed):
    rng = np.random.default_rng(seed)
    space = StateActions([[2, 2], [1, 3], [2, 1, 2]][seed % 3])
    T = 4 if space.n_states == 2 else 3
    r, p = random_sequence(rng, space, T)
    rules = list(itertools.product(*(range(n) for n in space.counts)))
    best = np.max(
        [expected_rewards(space, r, p, plan) for plan in itertools.product(rules, repeat=T)], axis=0
    )
    found = finite_horizon(space, lambda t: (r[t - 1], p[t - 1]), T, policy=True)
    np.testing.assert_allclose(found.values, best, rtol=1e-13)
    np.testing.assert_allclose(expected_rewards(space, r, p, found.policy), best, rtol=1e-13)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_equals_exact_fractions_within_its_error(form):
    rng = np.random.default_rng(10)
    space = StateActions([2, 3, 1, 2])
    T = 30
    r, p = random_sequence(rng, space, T)
    p[p < 0.1] = 0.0
    p /= p.sum(axis=-1, keepdims=True)
    for first in (1, 7, T):
        exact = literal(space, r, p, first)
        found = finite_horizon(space, lambda t: (r[t - 1], form(p[t - 1])), T, start=first)
        assert found.error < 1e-12
        # the twin completes each row in its last entry: one rounding of a row and step
        margin = found.error + T * 1e-15
        assert all(abs(Fraction(v) - e) <= margin for v, e in zip(found.values, exact, strict=True))
        assert (found.start, found.horizon, found.policy.shape) == (first, T, (0, 4))


def test_policy_of_a_later_start_is_the_tail_of_the_policy():
    rng = np.random.default_rng(11)
    space = StateActions.uniform(states=3, actions=3)
    r, p = random_sequence(rng, space, 20)
    whole = finite_horizon(space, lambda t: (r[t - 1], p[t - 1]), 20, policy=True)
    tail = finite_horizon(space, lambda t: (r[t - 1], p[t - 1]), 20, start=8, policy=True)
    np.testing.assert_array_equal(whole.policy[7:], tail.policy)
    assert [whole.action(t, 1) for t in range(1, 21)] == whole.policy[:, 1].tolist()
    assert tail.action(8, 2) == whole.policy[7, 2]
    np.testing.assert_array_equal(
        finite_horizon(space, lambda t: (r[t - 1], p[t - 1]), 20).values, whole.values
    )


def test_same_objects_and_equal_copies_give_the_same():
    rng = np.random.default_rng(12)
    space = StateActions([2, 1, 3])
    r, p = random_sequence(rng, space, 4)
    models = [(r[i], p[i]) for i in range(4)]
    order = [0, 0, 0, 1, 1, 0, 2, 3, 3, 3, 3, 2]  # runs of several lengths, and a return
    held = finite_horizon(space, lambda t: models[order[t - 1]], 12, policy=True)
    fresh = finite_horizon(
        space, lambda t: tuple(x.copy() for x in models[order[t - 1]]), 12, policy=True
    )
    np.testing.assert_array_equal(held.values, fresh.values)
    np.testing.assert_array_equal(held.policy, fresh.policy)
    exact = literal(space, [r[i] for i in order], [p[i] for i in order])
    np.testing.assert_allclose(held.values, [float(x) for x in exact], rtol=1e-14)


def test_rewards_may_change_under_a_kernel_that_stays():
    rng = np.random.default_rng(13)
    space = StateActions([2, 2])
    r, p = random_sequence(rng, space, 6)
    kept = p[0]
    found = finite_horizon(space, lambda t: (r[t - 1], kept), 6)
    exact = literal(space, r, [kept] * 6)
    np.testing.assert_allclose(found.values, [float(x) for x in exact], rtol=1e-14)


def test_a_hundred_thousand_steps_lose_no_digit():
    T = 100_001
    model = np.array([0.1, 0.7]), np.array([[0.0, 1.0], [1.0, 0.0]])
    found = finite_horizon(StateActions([1, 1]), lambda t: model, T)
    a, b = Fraction(0.1), Fraction(0.7)
    exact = [50_001 * a + 50_000 * b, 50_000 * a + 50_001 * b]
    for value, want in zip(found.values, exact, strict=True):
        assert abs(Fraction(value) - want) <= Fraction(math.ulp(float(want)))
        assert abs(Fraction(value) - want) <= found.error
    assert found.error < 1e-8


def test_asks_for_every_time_once_from_the_last_to_the_first():
    asked = []
    model = np.array([0.5]), np.array([[1.0]])

    def model_at(t):
        asked.append(t)
        return model

    finite_horizon(StateActions([1]), model_at, 9, start=3)
    assert asked == [9, 8, 7, 6, 5, 4, 3]


def test_ties_go_to_the_first_action():
    model = np.array([0.5, 0.5, 0.2]), np.array([[1.0, 0], [1.0, 0], [0, 1.0]])
    found = finite_horizon(StateActions([2, 1]), lambda t: model, 3, policy=True)
    assert (found.policy == 0).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_numbers_that_are_none_are_named_with_their_time(bad, form):
    good = np.array([0.5, 0.1]), form(np.array([[0.5, 0.5], [1.0, 0.0]]))
    broken = np.array([0.5, bad]), good[1]
    for place in (2, 5, 9):
        with pytest.raises(ModelError, match=rf"t={place}: rewards or transitions are not finite"):
            finite_horizon(StateActions([1, 1]), lambda t: broken if t == place else good, 9)  # noqa: B023
    wrong = np.array([[0.5, bad], [1.0, 0.0]])
    with pytest.raises(ModelError, match="t=8"):  # times zero it is no number either
        finite_horizon(
            StateActions([1, 1]), lambda t: good if t == 9 else (good[0], form(wrong)), 9
        )


def test_overflow_is_named_with_the_time_it_happens():
    model = np.array([1e308, 0.0]), np.eye(2)
    with pytest.raises(ModelError, match="t=8"):
        finite_horizon(StateActions([1, 1]), lambda t: model, 9)


def test_errors_say_what_to_do(monkeypatch):
    space = StateActions([1, 1])
    model = np.array([0.5, 0.1]), np.array([[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(ModelError, match=r"model_at at t=4: rewards have shape \(3,\)"):
        finite_horizon(space, lambda t: (np.zeros(3), model[1]), 4)
    with pytest.raises(InputError, match="start: 5"):
        finite_horizon(space, lambda t: model, 4, start=5)
    with pytest.raises(ModelError, match="horizon"):
        finite_horizon(space, lambda t: model, 0)
    found = finite_horizon(space, lambda t: model, 4)
    with pytest.raises(InputError, match=r"policy: was not kept\. Fix: ask for policy=True"):
        found.action(1, 0)
    with pytest.raises(InputError, match="t: 5"):
        finite_horizon(space, lambda t: model, 4, policy=True).action(5, 0)
    monkeypatch.setattr(validation, "_SMALL", 0)
    monkeypatch.setattr(validation, "_free_memory", lambda: 10_000.0)
    with pytest.raises(ModelError, match=r"policy: would need about 15\.6 KiB"):
        finite_horizon(space, lambda t: model, 2000, policy=True)
    finite_horizon(space, lambda t: model, 2000)


def test_kernels_compiled_or_not_give_the_same_table():
    space = StateActions([2, 1])
    r = np.array([0.25, 0.0, 0.5])
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    sparse = csr_array(p)
    cells = sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data
    # V_3 = (1/4, 1/2); V_2 = (max(1/2, 3/8), 7/8); V_1 = (max(3/4, 11/16), 19/16)
    for back, kernel_of in [(kernel.back_dense, (p,)), (kernel.back_sparse, cells)]:
        for run in (back, back.py_func):
            excess, new, level = np.zeros(2), np.empty(2), np.zeros(3)
            policy = np.full((3, 2), -1, dtype=np.int32)
            made = run(space.offsets, r, *kernel_of, 3, excess, new, level, policy, 2)
            assert made == -1
            assert (level[0] + level[1] + excess).tolist() == [0.75, 1.1875]
            assert policy.tolist() == [[0, 0], [0, 0], [0, 0]]


def exact_gap(T, D, b):
    return min(-(-T // W) * Fraction(D) + 2 * W * b for W in range(1, T + 1))


def test_benchmark_gap_is_the_least_over_all_windows():
    rng = np.random.default_rng(14)
    for T in [*range(1, 60), 97, 100, 101, 360, 1000, 5040]:
        for _ in range(4):
            D = float(rng.choice([0.0, 1.0, rng.uniform(0, 50)]))
            r, p = (float(rng.choice([0.0, rng.uniform(0, 3), 1e-8])) for _ in range(2))
            exact = exact_gap(T, D, Fraction(r) + Fraction(D) * Fraction(p) / 2)
            assert benchmark_gap(T, D, r, p) == pytest.approx(float(exact), rel=1e-14, abs=0)


def test_benchmark_gap_of_a_long_horizon():
    # close to the real minimum 2 sqrt(2 T D b) of T D / W + 2 W b
    T, D, r = 10**12, 3.0, 5.0
    real = 2 * math.sqrt(2 * T * D * r)
    found = benchmark_gap(T, D, r, 0.0)
    assert real <= found <= real + D + 2 * r
    assert benchmark_gap(T, D, 0.0, 0.0) == D
    assert benchmark_gap(T, 0.0, r, 7.0) == 2 * r
    assert benchmark_gap(T, math.inf, r, 0.0) == math.inf


def test_printed_benchmark_gap_is_as_printed():
    assert printed_benchmark_gap(50, 3.0, 1.0, 0.5) == pytest.approx(
        4 * 4 * (4 * 50) ** 0.5, rel=1e-15
    )
    assert printed_benchmark_gap(50, math.inf, 1.0, 0.5) == math.inf


@pytest.mark.parametrize("gap", [benchmark_gap, printed_benchmark_gap])
def test_gaps_refuse_impossible_numbers(gap):
    with pytest.raises(ModelError, match="horizon"):
        gap(0, 1.0, 0.0, 0.0)
    with pytest.raises(InputError, match="diameter"):
        gap(5, -1.0, 0.0, 0.0)
    with pytest.raises(InputError, match="diameter"):
        gap(5, math.nan, 0.0, 0.0)
    with pytest.raises(InputError, match="reward_budget"):
        gap(5, 1.0, -0.1, 0.0)
    with pytest.raises(InputError, match="transition_budget"):
        gap(5, 1.0, 0.0, math.nan)
