"""The diameter against enumeration of policies, exact fractions, LPs and closed forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import windage as wd
from windage.errors import InputError, ModelError, NotConverged
from windage.kernels import diameter as kernel
from windage.oracle import diameter as module
from windage.oracle.diameter import diameter, hitting_times, search_of, solve_diameter
from windage.spaces import StateActions

TAUS = [10, 30, 100, 300, 1000, 3000, 10_000]


def policy_times(chain: np.ndarray, target: int) -> np.ndarray:
    """Expected times to `target` in a Markov chain, from the definition; inf where not sure."""
    S = len(chain)
    chain = chain.copy()
    chain[target] = np.eye(S)[target]
    onward = np.eye(S, dtype=bool)
    for _ in range(S):
        onward = onward | ((chain > 0).astype(int) @ onward > 0)
    sure = [s for s in range(S) if all(onward[j, target] for j in range(S) if onward[s, j])]
    times = np.full(S, math.inf)
    times[target] = 0.0
    rest = [s for s in sure if s != target]
    if rest:
        block = chain[np.ix_(rest, rest)]
        times[rest] = np.linalg.solve(np.eye(len(rest)) - block, np.ones(len(rest)))
    return times


def least_times(space: StateActions, p: np.ndarray) -> np.ndarray:
    """least[s, g] over all deterministic policies."""
    S = space.n_states
    least = np.full((S, S), math.inf)
    for choice in itertools.product(*(range(n) for n in space.counts)):
        chain = np.stack([p[space.pair(s, a)] for s, a in enumerate(choice)])
        for g in range(S):
            least[:, g] = np.minimum(least[:, g], policy_times(chain, g))
    return least


def random_model(rng: np.random.Generator, most: int = 4) -> tuple[StateActions, np.ndarray]:
    """Ragged action sets, rows of few or many moves; often not communicating."""
    S = int(rng.integers(1, most + 1))
    space = StateActions(rng.integers(1, 4, size=S))
    p = np.zeros((space.n_pairs, S))
    for row in p:
        where = rng.choice(S, size=int(rng.integers(1, S + 1)), replace=False)
        row[where] = rng.dirichlet(np.ones(where.size)) * 0.99 + 0.01 / where.size
    return space, p


def riverswim(S: int) -> tuple[StateActions, np.ndarray]:
    p = np.zeros((2 * S, S))
    for s in range(S):
        p[2 * s, max(s - 1, 0)] = 1.0
        right = p[2 * s + 1]
        if s == 0:
            right[[0, 1]] = 0.4, 0.6
        elif s == S - 1:
            right[[s - 1, s]] = 0.4, 0.6
        else:
            right[[s - 1, s, s + 1]] = 0.05, 0.6, 0.35
    return StateActions.uniform(states=S, actions=2), p


def riverswim_diameter(S: int) -> Fraction:
    """Swim right all the way: u_i, the time from i to i + 1, is (1 + down u_{i-1}) / up."""
    up, down = Fraction(7, 20), Fraction(1, 20)
    steps = [Fraction(5, 3)]
    for _ in range(S - 2):
        steps.append((1 + down * steps[-1]) / up)
    return sum(steps)


def lp_times(space: StateActions, p: np.ndarray, target: int) -> np.ndarray:
    """The largest h with h(s) <= 1 + sum p(.|s,a) h for every pair, h(target) = 0."""
    rows = [s for s in range(space.n_pairs) if space.state_of[s] != target]
    lhs = np.eye(space.n_states)[space.state_of[rows]] - p[rows]
    bounds = [(0, 0) if s == target else (0, None) for s in range(space.n_states)]
    found = linprog(-np.ones(space.n_states), lhs, np.ones(len(rows)), bounds=bounds)
    assert found.status == 0
    return np.asarray(found.x)


@pytest.fixture(params=["dense", "sparse"])
def form(request, monkeypatch):
    """Run small models through the dense and through the sparse path."""
    if request.param == "sparse":
        monkeypatch.setattr(module, "_SPARSE_STATES", 1)
        monkeypatch.setattr(module, "_SPARSE_FILL", 1.0)
        return csr_array
    return np.asarray


def test_equals_the_best_of_all_deterministic_policies(form):
    rng = np.random.default_rng(1)
    finite = infinite = 0
    for _ in range(120):
        space, p = random_model(rng)
        expected = least_times(space, p)
        solution = solve_diameter(space, form(p))
        for g in range(space.n_states):
            np.testing.assert_allclose(
                hitting_times(space, form(p), g), expected[:, g], rtol=1e-10, atol=0
            )
        if math.isinf(expected.max()):
            infinite += 1
            assert solution.value == math.inf
            assert expected[solution.source, solution.target] == math.inf
        else:
            finite += 1
            D = float(expected.max())
            assert solution.value == pytest.approx(D, rel=1e-10)
            assert solution.lower <= D * (1 + 1e-12)
            assert solution.upper >= D * (1 - 1e-12)
            assert solution.upper - solution.lower <= 1e-10 * D
            assert expected[solution.source, solution.target] == pytest.approx(D, rel=1e-10)
    assert finite > 30
    assert infinite > 10


def test_equals_the_linear_program():
    rng = np.random.default_rng(2)
    for S, A in [(8, 3), (20, 2), (30, 4)]:
        space = StateActions.uniform(states=S, actions=A)
        p = rng.dirichlet(np.full(S, 0.3), size=space.n_pairs)
        lp = np.stack([lp_times(space, p, g) for g in range(S)], axis=1)
        for g in range(0, S, 5):
            np.testing.assert_allclose(hitting_times(space, p, g), lp[:, g], rtol=1e-8, atol=1e-8)
        assert diameter(space, p) == pytest.approx(lp.max(), rel=1e-8)


def test_swapping_kernels_have_diameter_one_and_their_blend_two(form):
    space = StateActions([2, 2])  # spec 1.12
    one = np.array([[1, 0], [0, 1], [0, 1], [1, 0]], dtype=float)
    two = np.array([[0, 1], [1, 0], [1, 0], [0, 1]], dtype=float)
    assert diameter(space, form(one)) == pytest.approx(1.0, rel=1e-14)
    assert diameter(space, form(two)) == pytest.approx(1.0, rel=1e-14)
    assert diameter(space, form((one + two) / 2)) == pytest.approx(2.0, rel=1e-14)


@pytest.mark.parametrize("tau", TAUS)
def test_empirical_kernel_of_the_peril_has_diameter_tau_plus_one(form, tau):
    leave = 1.0 / (tau + 1)
    p = np.array([[1 - leave, leave], [1, 0], [leave, 1 - leave], [0, 1]])
    solution = solve_diameter(StateActions([2, 2]), form(p))
    assert solution.value == pytest.approx(tau + 1, rel=4e-16)
    assert solution.upper - solution.lower <= 1e-13 * tau


@pytest.mark.parametrize("S", [6, 40])
def test_riverswim_is_a_birth_death_chain(form, S):
    space, p = riverswim(S)
    exact = riverswim_diameter(S)
    solution = solve_diameter(space, form(p))
    assert solution.value == pytest.approx(float(exact), rel=1e-13)
    assert solution.lower <= exact <= solution.upper
    assert (solution.source, solution.target) == (0, S - 1)
    np.testing.assert_allclose(hitting_times(space, form(p), 0), np.arange(S), rtol=1e-13)


def test_riverswim_against_all_policies():
    space, p = riverswim(6)
    assert least_times(space, p).max() == pytest.approx(float(riverswim_diameter(6)), rel=1e-12)


def test_large_sparse_riverswim_stays_sparse():
    space, p = riverswim(1000)
    solution = solve_diameter(space, csr_array(p))
    assert module.Drops(space, csr_array(p)).sparse
    assert solution.value == pytest.approx(float(riverswim_diameter(1000)), rel=1e-12)
    assert solution.lower <= riverswim_diameter(1000) <= solution.upper


def test_deterministic_ring(form):
    for S in (2, 3, 7, 30):
        ring = np.roll(np.eye(S), 1, axis=1)
        assert diameter(StateActions([1] * S), form(ring)) == pytest.approx(S - 1, rel=1e-13)


def test_one_state_has_diameter_zero():
    solution = solve_diameter(StateActions([3]), np.ones((3, 1)))  # E28
    assert (solution.value, solution.lower, solution.upper) == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(hitting_times(StateActions([3]), np.ones((3, 1)), 0), [0.0])


def test_one_way_street_is_infinite_and_named():
    space = StateActions([1, 1, 2])
    p = np.array([[0.5, 0.5, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1.0]])
    solution = solve_diameter(space, p)
    assert solution.value == math.inf
    assert solution.target == 0
    assert solution.source in (1, 2)
    # the only way out of 0 is sure; back to 0 there is none
    np.testing.assert_allclose(hitting_times(space, p, 1), [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(hitting_times(space, p, 0), [0.0, math.inf, math.inf])


def test_a_gamble_that_may_fail_for_ever_is_no_way(form):
    # from 0 the risky action reaches 2 at once or 3 for ever; the slow one goes by 1
    space = StateActions([2, 1, 1, 1])
    p = np.zeros((5, 4))
    p[0, [2, 3]] = 0.99, 0.01
    p[1, [0, 1]] = 0.75, 0.25
    p[2, 2] = p[3, 2] = p[4, 3] = 1.0
    times = hitting_times(space, form(p), 2)
    np.testing.assert_allclose(times, [5.0, 1.0, 0.0, math.inf])
    assert diameter(space, form(p)) == math.inf


def test_lazy_chains_of_any_slowness():
    for leave in (1e-3, 1e-6, 1e-9, 1e-12, 1e-290):
        p = np.array([[1 - leave, leave], [1.0, 0.0]])
        solution = solve_diameter(StateActions([1, 1]), p)
        assert solution.value == pytest.approx(1 / leave, rel=1e-14)
        assert solution.upper / solution.lower - 1 < 1e-13


def test_times_beyond_floating_point_are_refused_with_numbers():
    S = 25  # against the stream: about 7^24 steps
    p = np.zeros((S, S))
    for s in range(S):
        p[s, max(s - 1, 0)] += 0.35
        p[s, min(s + 1, S - 1)] += 0.05
        p[s, s] += 0.6
    space = StateActions([1] * S)
    with pytest.raises(NotConverged, match=r"longest time to s=24 lies between .* and .* after"):
        diameter(space, p)
    # with a tol that admits it a shorter one is still answered
    short = StateActions([1] * 12)
    q = p[:12, :12].copy()
    q[11, 11] += 0.05
    with pytest.raises(NotConverged):
        solve_diameter(short, q, tol=1e-12)
    solution = solve_diameter(short, q, tol=1e-3)
    exact = against_the_stream(12)
    assert solution.lower <= exact <= solution.upper
    assert solution.value == pytest.approx(float(exact), rel=1e-12)


def against_the_stream(S: int) -> Fraction:
    up, down = Fraction(0.05), Fraction(0.35)
    steps = [1 / up]
    for _ in range(S - 2):
        steps.append((1 + down * steps[-1]) / up)
    return sum(steps)


def test_most_targets_need_no_elimination():
    rng = np.random.default_rng(5)
    space = StateActions.uniform(states=100, actions=4)
    solution = solve_diameter(space, rng.dirichlet(np.ones(100), size=400))
    assert solution.solves <= 3  # full policy iteration needs two to four a target
    assert solution.sweeps <= 8


@pytest.mark.parametrize("seed", [0, 4, 5, 6])
def test_sweeps_find_the_level_of_the_times(seed):
    rng = np.random.default_rng(seed)
    space = StateActions.uniform(states=120, actions=2)
    p = np.zeros((240, 120))
    for row in p:
        row[rng.choice(120, size=4, replace=False)] = rng.dirichlet(np.ones(4))
    assert solve_diameter(space, p).sweeps <= 15  # plain value iteration: 27 to 30, the limit


def test_targets_in_blocks_give_the_same(monkeypatch):
    rng = np.random.default_rng(6)
    space = StateActions.uniform(states=70, actions=2)
    p = np.zeros((140, 70))
    for row in p:
        row[rng.choice(70, size=4, replace=False)] = rng.dirichlet(np.ones(4))
    whole = solve_diameter(space, p)
    monkeypatch.setattr(module, "_CELLS_A_BLOCK", 1)
    pieces = solve_diameter(space, p)
    assert pieces.value == pytest.approx(whole.value, rel=1e-12)
    assert pieces.sweeps > whole.sweeps
    worst = max(hitting_times(space, p, g).max() for g in range(70))
    assert whole.value == pytest.approx(worst, rel=1e-12)


def test_few_non_zeros_take_the_sparse_path_and_equal_the_linear_program():
    rng = np.random.default_rng(7)
    space = StateActions.uniform(states=300, actions=2)
    p = np.zeros((600, 300))
    for row in p:
        row[rng.choice(300, size=5, replace=False)] = rng.dirichlet(np.ones(5))
    sparse = solve_diameter(space, csr_array(p))
    assert module.Drops(space, p).sparse  # few non-zeros decide, not the type
    np.testing.assert_allclose(
        hitting_times(space, csr_array(p), sparse.target),
        lp_times(space, p, sparse.target),
        rtol=1e-7,
    )
    for g in rng.choice(300, size=4, replace=False):
        assert lp_times(space, p, int(g)).max() <= sparse.upper * (1 + 1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_any_h_brackets_the_least_times(seed):
    rng = np.random.default_rng(seed)
    space = StateActions([2, 3, 1, 2])
    p = rng.dirichlet(np.full(4, 0.5), size=8)
    exact = least_times(space, p)
    model = module.Drops(space, p)
    targets = np.arange(4)
    finite = 0
    for _ in range(200):
        h = exact * rng.uniform(0.5, 2.0, size=(4, 1)) ** rng.uniform(0, 1)
        best = np.maximum.reduceat(model.drops(h), space.offsets[:-1], axis=0)
        lower, upper = model.bracket(targets, h, best - model.slack(h), best + model.slack(h))
        assert (lower <= exact.max(axis=0) * (1 + 1e-12)).all()
        assert (upper >= exact.max(axis=0) * (1 - 1e-12)).all()
        finite += int(np.isfinite(upper).sum())
    assert finite > 100


def test_brackets_allow_for_rounding():
    rng = np.random.default_rng(8)
    S = 12
    space = StateActions.uniform(states=S, actions=2)
    model = module.Drops(space, rng.dirichlet(np.ones(S), size=2 * S))
    moves = [[Fraction(x) for x in row] for row in model.moves]
    for _ in range(60):
        # drops of about one among times of 10^9: seven of sixteen digits are left
        h = 1e9 + rng.uniform(0.0, 2.0, size=S) + 30.0 * np.arange(S)
        h[0] = 0.0
        exact = [
            max(
                sum(p * (Fraction(h[s]) - Fraction(x)) for p, x in zip(row, h, strict=True))
                for row in moves[2 * s : 2 * s + 2]
            )
            for s in range(1, S)
        ]
        best = np.maximum.reduceat(model.drops(h[:, None]), space.offsets[:-1], axis=0)
        slack = model.slack(h[:, None])
        lower, upper = model.bracket(np.array([0]), h[:, None], best - slack, best + slack)
        assert Fraction(lower[0]) <= Fraction(h.max()) / max(exact)
        assert min(exact) <= 0 or Fraction(upper[0]) >= Fraction(h.max()) / min(exact)


def test_roads_cost_the_expected_attempts(form):
    rng = np.random.default_rng(9)
    for _ in range(10):
        space, p = random_model(rng, most=6)
        S = space.n_states
        if S == 1:
            continue
        roads = np.where(np.eye(S) > 0, 0.0, math.inf)
        for _ in range(S):  # Bellman and Ford: one more move each time
            for pair, s in enumerate(space.state_of):
                for j in range(S):
                    if p[pair, j] > 0:
                        roads[s] = np.minimum(roads[s], 1 / p[pair, j] + roads[j])
        found = module.Drops(space, form(p)).roads(np.arange(S))
        np.testing.assert_allclose(found, roads, rtol=1e-14)


@pytest.mark.parametrize("run", [kernel.hitting_times, kernel.hitting_times.py_func])
def test_elimination_keeps_every_digit_of_slow_chains(run):
    # RiverSwim-40 under coin flips: 3^40 steps, where a factorisation has no digit left
    _, p = riverswim(40)
    chain = (p[0::2] + p[1::2]) / 2
    up, down = (chain[1, 2], chain[1, 0])
    steps = [1 / Fraction(chain[0, 1])]
    for _ in range(38):
        steps.append((1 + Fraction(down) * steps[-1]) / Fraction(up))
    exact = [float(sum(steps[s:])) for s in range(39)] + [0.0]
    moves = chain.copy()
    np.fill_diagonal(moves, 0.0)
    times = np.empty(40)
    assert run(moves, np.arange(40), 39, np.empty((40, 40)), np.empty(40), times) == -1
    assert exact[0] > 1e17
    np.testing.assert_allclose(times, exact, rtol=1e-14)


@pytest.mark.parametrize("run", [kernel.hitting_times, kernel.hitting_times.py_func])
def test_elimination_says_where_a_policy_is_stuck(run):
    moves = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    times = np.empty(3)
    assert run(moves, np.arange(3), 2, np.empty((3, 3)), np.empty(3), times) == 0


@pytest.mark.parametrize("run", [kernel.all_roads, kernel.all_roads.py_func])
def test_cheapest_roads(run):
    inf = math.inf
    costs = np.array([[0.0, 1.0, 9.0], [inf, 0.0, 2.0], [4.0, inf, 0.0]])
    run(costs)
    np.testing.assert_array_equal(costs, [[0, 1, 3], [6, 0, 2], [4, 5, 0]])


def test_a_move_of_almost_no_probability_is_possible_but_not_taken():
    # the direct move would take 1e290 steps, the detour two
    p = np.array([[1.0, 0, 1e-290], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert diameter(StateActions([2, 1, 1]), p) == pytest.approx(2.0, rel=1e-14)


def test_rows_off_by_rounding_count_as_staying():
    p = np.array([[0.5, 0.5 - 1e-10], [1.0, 0.0]])
    assert diameter(StateActions([1, 1]), p) == pytest.approx(1 / (0.5 - 1e-10), rel=1e-15)


def test_the_model_is_left_as_it_was():
    space, p = riverswim(6)
    for given in (p.copy(), csr_array(p)):
        diameter(space, given)
        hitting_times(space, given, 3)
        np.testing.assert_array_equal(
            given if isinstance(given, np.ndarray) else given.toarray(), p
        )
    p.flags.writeable = False
    assert diameter(space, p) == pytest.approx(float(riverswim_diameter(6)))


def test_errors_say_what_to_do():
    space, p = riverswim(6)
    with pytest.raises(ModelError, match=r"transitions: has shape \(12, 5\)"):
        diameter(space, p[:, :5])
    with pytest.raises(InputError, match="target: 6"):
        hitting_times(space, p, 6)
    with pytest.raises(InputError, match="tol"):
        diameter(space, p, tol=0.0)


def exact_bounds(space, transitions, h, target):
    """Bounds of the longest least time to a target, from drops of h in fractions: no rounding."""
    times = [Fraction(x) for x in h]
    best = []
    for s in range(space.n_states):
        if s != target:
            drops = [
                sum(Fraction(p) * (times[s] - times[j]) for j, p in enumerate(transitions[pair]))
                for pair in range(space.offsets[s], space.offsets[s + 1])
            ]
            best.append(max(drops))
    return max(times) / max(best), max(times) / min(best)


def test_times_of_eleven_digits_keep_five_of_them():
    """To fill a queue of 60 takes 7.6e10 steps; a bound by the times themselves would not do."""
    mdp = wd.envs.make("queue", capacity=60).at(5000)
    found = solve_diameter(mdp.space, mdp.transitions, tol=1e-3)
    assert found.upper <= found.lower * (1 + 2.5e-4)
    h = hitting_times(mdp.space, mdp.transitions, found.target, tol=1e-3)
    lower, upper = exact_bounds(mdp.space, mdp.transitions, h, found.target)
    assert Fraction(found.lower) <= lower <= upper <= Fraction(found.upper)
    assert mdp.diameter(tol=1e-3) == found.value
    with pytest.raises(NotConverged, match="pass a larger tol"):
        mdp.diameter()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_drops_from_differences_against_fractions(form):
    rng = np.random.default_rng(8)
    space = StateActions([2, 1, 3, 1])
    rows = rng.dirichlet(np.ones(4), size=7) * (rng.random((7, 4)) < 0.8)
    rows[np.arange(7), (space.state_of + 1) % 4] += 0.1
    rows /= rows.sum(axis=1, keepdims=True)
    model = search_of(space, form(rows), 1e-6).model
    h = 1e12 + rng.random((4, 3)) * [[1.0, 1e3, 1e9]]
    drops, noise = model.precise_drops(h)
    for pair, s in enumerate(space.state_of):
        for c in range(3):
            exact = sum(
                Fraction(p) * (Fraction(h[s, c]) - Fraction(h[j, c]))
                for j, p in enumerate(rows[pair])
            )
            assert abs(Fraction(drops[pair, c]) - exact) <= Fraction(noise[pair, c])
            assert noise[pair, c] <= 1e-14 * np.ptp(h[:, c])
