"""The largest diameter of drifting models: policies enumerated at every t, LPs, closed forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, issparse

import windage as wd
from tests.drifting import BUILDERS, MODELS, SHAPES, SPACE
from tests.models import Weights, random_mdp
from windage.errors import InputError, NotConverged
from windage.models import diameters as module
from windage.models.diameters import Segment
from windage.oracle.diameter import solve_diameter


def dense(mdp):
    return mdp.transitions.toarray() if issparse(mdp.transitions) else mdp.transitions


def times_of_policy(chains, target):
    """Expected times to `target` in each of many chains; inf where it is not reached surely."""
    S = chains.shape[-1]
    chains = chains.copy()
    chains[..., target, :] = np.eye(S)[target]
    reach = (chains + np.eye(S) > 0).astype(int)
    for _ in range(S):
        reach = (reach @ reach > 0).astype(int)
    lost = 1 - reach[..., :, target]  # who never gets there; whoever may meet one is not sure to
    sure = (reach @ lost[..., None])[..., 0] == 0
    sure[..., target] = False
    among = chains * (sure[..., :, None] & sure[..., None, :])
    times = np.linalg.solve(np.eye(S) - among, sure[..., None].astype(float))[..., 0]
    times = np.where(sure, times, math.inf)
    times[..., target] = 0.0
    return times


def least_times(space, kernels):
    """least[..., g, s] over all deterministic policies, for each of many kernels."""
    S = space.n_states
    least = np.full((*kernels.shape[:-2], S, S), math.inf)
    for choice in itertools.product(*(range(n) for n in space.counts)):
        chains = kernels[..., [space.pair(s, a) for s, a in enumerate(choice)], :]
        for g in range(S):
            least[..., g, :] = np.minimum(least[..., g, :], times_of_policy(chains, g))
    return least


def literal(model):
    """D at every time."""
    kernels = np.stack([dense(model.at(t)) for t in range(1, model.horizon + 1)])
    return least_times(model.space, kernels).max(axis=(1, 2))


def by_lp(space, p):
    """For every target the largest h with h(s) <= 1 + sum p(.|s,a) h, h(target) = 0."""
    worst = 0.0
    for g in range(space.n_states):
        rows = np.flatnonzero(space.state_of != g)
        others = np.flatnonzero(np.arange(space.n_states) != g)
        lhs = (np.eye(space.n_states)[space.state_of[rows]] - p[rows])[:, others]
        found = linprog(-np.ones(others.size), lhs, np.ones(rows.size))
        assert found.status == 0
        worst = max(worst, float(found.x.max()))
    return worst


def check(bound, tol, D):
    """The bracket against all D(p_t): attained, above all of them, and as narrow as promised."""
    assert bound.lower == pytest.approx(D[bound.t - 1], rel=1e-10)
    assert bound.upper >= D.max() * (1 - 1e-12)
    assert bound.lower <= bound.upper <= bound.lower + tol * max(1.0, bound.lower)


def blend(kernels, schedule, horizon):
    space = wd.StateActions([len(kernels[0]) // len(kernels[0][0])] * len(kernels[0][0]))
    models = [wd.MDP(space, np.zeros(len(p)), np.array(p, dtype=float)) for p in kernels]
    return wd.DriftingMDP.blend(models, schedule, horizon=horizon)


STAY_OR_GO = [[1, 0], [0, 1], [0, 1], [1, 0]]  # spec 1.12
GO_OR_STAY = [[0, 1], [1, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_at_every_time(name):
    model = BUILDERS[name]()
    D = literal(model)
    for tol in (0.3, 1e-2, 1e-3, 1e-9):
        check(model.max_diameter(tol), tol, D)
    assert model.max_diameter(1e-9).lower == pytest.approx(D.max(), rel=1e-9)
    assert model.diameters(np.arange(1, model.horizon + 1)) == pytest.approx(D, rel=1e-10)
    t = model.max_diameter().t
    assert by_lp(model.space, dense(model.at(t))) == pytest.approx(D[t - 1], rel=1e-8)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_schedule_at_every_time(name, seed):
    space = wd.StateActions([2, 1, 3, 1])
    models = [random_mdp(space, 10 * seed + k, density=0.75) for k in range(4)]
    model = wd.DriftingMDP.blend(models, SHAPES[name], horizon=400)
    D = literal(model)
    for tol in (1e-3, 1e-9):
        check(model.max_diameter(tol), tol, D)
    assert model.max_diameter(1e-9).lower == pytest.approx(D.max(), rel=1e-9)


def test_swapped_actions_are_worst_in_the_middle():
    model = blend([STAY_OR_GO, GO_OR_STAY], wd.schedules.Linear(), 101)
    assert model.diameters([1, 51, 101]) == pytest.approx([1, 2, 1], rel=1e-14)
    weights = np.arange(101) / 100
    D = 1 / np.maximum(weights, 1 - weights)
    assert model.diameters(range(1, 102)) == pytest.approx(D, rel=1e-12)
    found = model.max_diameter(1e-12)
    assert (found.t, found.lower) == (51, pytest.approx(2, rel=1e-14))
    check(found, 1e-12, D)


@pytest.mark.parametrize(("horizon", "worst"), [(1, 1), (2, 1), (4, 1.5), (6, 5 / 3), (12, 11 / 6)])
def test_only_weights_that_occur_count(horizon, worst):
    model = blend([STAY_OR_GO, GO_OR_STAY], wd.schedules.Linear(), horizon)
    found = model.max_diameter(1e-9)
    assert found.lower == pytest.approx(worst, rel=1e-12)
    assert found.upper == pytest.approx(worst, rel=1e-8)


def swim_up(states):
    up, down = Fraction(7, 20), Fraction(1, 20)
    steps = [Fraction(5, 3)]
    for _ in range(states - 2):
        steps.append((1 + down * steps[-1]) / up)
    return float(sum(steps))


def test_closed_forms_of_the_environments():
    river = wd.envs.make("riverswim").max_diameter()
    assert river.lower == pytest.approx(swim_up(6), rel=1e-12)
    assert swim_up(6) == pytest.approx(14.7223379, abs=1e-7)
    assert river.t == 10_000
    two = wd.envs.make("two-state-cosine").max_diameter(1e-9)
    assert two.lower == pytest.approx(2.0, rel=1e-9)
    e = 0.5 + 0.4 * math.cos(2 * math.pi * two.t / 5000)
    assert e == pytest.approx(0.5, abs=1e-9)
    assert wd.envs.make("peril").max_diameter().upper == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("name", wd.envs.names())
def test_every_environment(name):
    model, fact = wd.envs.make(name), wd.envs.facts(name).diameter_bound
    found = model.max_diameter()
    assert found.upper - found.lower <= 1e-3 * max(1.0, found.lower)
    assert fact is None or found.lower <= fact * (1 + 1e-12)
    if model.space.n_states == 1:
        assert (found.lower, found.upper) == (0, 0)
        return
    worst = by_lp(model.space, dense(model.at(found.t)))
    assert found.lower == pytest.approx(worst, rel=1e-6)
    for t in np.random.default_rng(0).integers(1, model.horizon + 1, size=3):
        assert by_lp(model.space, dense(model.at(int(t)))) <= found.upper * (1 + 1e-7)


def test_many_states_are_bounded_between_the_solved_times():
    """A wild walk over two kernels of 30 states, where the best actions change all the time."""
    space = wd.StateActions.uniform(30, 3)
    models = [random_mdp(space, seed, density=0.15) for seed in (1, 2)]
    model = wd.DriftingMDP.blend(
        models, wd.schedules.RandomWalk(3, moves=60, size=0.4), horizon=3000
    )
    found = model.max_diameter()
    every = model.diameters(range(1, 3001, 7))
    assert every.max() <= found.upper
    assert every.max() > 0.99 * found.lower
    assert found.solves < 200


def test_the_cost_does_not_grow_with_the_horizon():
    short, long = (wd.envs.make("riverswim", horizon=T).max_diameter() for T in (10**4, 10**9))
    assert long.solves <= short.solves == 2
    assert long.lower == pytest.approx(short.lower, rel=1e-12)
    times = [1, 10**8 // 3, 10**8 // 2, 10**8]
    kernels = [MODELS[k % 3].transitions for k in range(4)]
    rewards = [MODELS[k % 3].rewards for k in range(4)]
    found = wd.DriftingMDP(SPACE, times, rewards, kernels, horizon=10**8).max_diameter()
    assert found.solves < 60
    slow = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(1), horizon=10**8)
    fast = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(1000), horizon=10**8)
    assert fast.max_diameter().solves <= slow.max_diameter().solves + 8


def test_the_kernel_schedule_alone_matters():
    still = wd.DriftingMDP.blend(
        [MODELS[0], wd.MDP(SPACE, MODELS[1].rewards, MODELS[0].transitions)],
        wd.schedules.Cosine(2),
        horizon=10**6,
    )
    found = still.max_diameter()
    assert (found.solves, found.t) == (1, 1)
    assert found.lower == pytest.approx(least_times(SPACE, MODELS[0].transitions).max(), rel=1e-12)


def test_long_sparse_rivers():
    model = wd.envs.make("riverswim", states=1000, horizon=10**9)
    assert issparse(model.at(1).transitions)
    found = model.max_diameter()
    assert found.lower == pytest.approx(swim_up(1000), rel=1e-10)
    assert found.upper <= found.lower * 1.001
    assert found.solves == 2


def test_sparse_kernels_bend_too():
    """The swap in every state of a ring of 300: steps take 1 / max(x, 1 - x)."""
    S = 300
    on, stay = np.roll(np.eye(S), 1, axis=1), np.eye(S)
    one, two = np.empty((2 * S, S)), np.empty((2 * S, S))
    one[0::2], one[1::2], two[0::2], two[1::2] = stay, on, on, stay
    space = wd.StateActions.uniform(S, 2)
    models = [wd.MDP(space, np.zeros(2 * S), csr_array(p)) for p in (one, two)]
    found = wd.DriftingMDP.blend(models, wd.schedules.Linear(), horizon=10**6 + 1).max_diameter()
    assert found.t == 500_001
    assert found.lower == pytest.approx(2 * (S - 1), rel=1e-12)


def test_targets_in_blocks_give_the_same(monkeypatch):
    """A ring of 40 states; only the last lies behind the swap, which 38 can also pass by."""
    S = 40
    space = wd.StateActions([1] * (S - 2) + [3, 1])
    one = np.zeros((S + 2, S))
    one[np.arange(S - 2), np.arange(1, S - 1)] = 1.0
    one[[S - 2, S - 1, S, S + 1], [S - 2, S - 1, 0, 0]] = 1.0
    two = one.copy()
    two[[S - 2, S - 1]] = one[[S - 1, S - 2]]
    models = [wd.MDP(space, np.zeros(S + 2), p) for p in (one, two)]
    model = wd.DriftingMDP.blend(models, wd.schedules.Linear(), horizon=10**6 + 1)
    assert model.diameters([1, 10**6 + 1]) == pytest.approx([39, 39])
    for cells in (module._CELLS_A_BLOCK, 1):
        monkeypatch.setattr(module, "_CELLS_A_BLOCK", cells)
        found = model.max_diameter(1e-9)
        assert (found.lower, found.t) == (pytest.approx(40, rel=1e-12), 500_001)


ISLANDS = [[1, 0], [1, 0], [0, 1], [0, 1]]
ONE_WAY = [[0.5, 0.5], [1, 0], [0, 1], [0, 1]]
OTHER_WAY = [[1, 0], [1, 0], [0.5, 0.5], [0, 1]]


@pytest.mark.parametrize(
    ("kernels", "schedule", "first"),
    [
        ([ISLANDS, STAY_OR_GO], wd.schedules.Linear(), 1),
        ([STAY_OR_GO, ISLANDS], wd.schedules.Linear(), 60),
        ([STAY_OR_GO, ISLANDS], wd.schedules.Cosine(1), 30),
        ([STAY_OR_GO, ISLANDS], wd.schedules.Cosine(0.4), None),
        ([ONE_WAY, OTHER_WAY], wd.schedules.Cosine(0.4), None),
        ([ONE_WAY, OTHER_WAY], wd.schedules.Linear(), 1),
        ([ONE_WAY, ISLANDS], wd.schedules.Cosine(1), 1),
        ([STAY_OR_GO, ISLANDS], wd.schedules.Steps([17, 20]), 17),
        ([STAY_OR_GO, ONE_WAY, ONE_WAY, STAY_OR_GO], wd.schedules.Knots((1, 9, 12, 40)), 9),
        ([STAY_OR_GO, ISLANDS], wd.schedules.Burst(0.5, 0.9, 1), 42),
    ],
)
def test_models_that_do_not_communicate(kernels, schedule, first):
    model = blend(kernels, schedule, 60)
    found, D = model.max_diameter(), literal(model)
    if first is None:
        assert not model.disconnections()
        check(found, 1e-3, D)
    else:
        assert (found.lower, found.upper, found.t) == (math.inf, math.inf, first)
        assert int(np.argmax(np.isinf(D))) + 1 == first
        assert model.disconnections()[0].first == first


def test_streams_that_stop_communicating():
    def function(t):
        return np.zeros(4), np.array(ISLANDS if 400 <= t <= 412 else STAY_OR_GO, dtype=float)

    model = wd.DriftingMDP.from_function(function, space=wd.StateActions([2, 2]), horizon=1000)
    found = model.max_diameter()
    assert (found.lower, found.upper, found.t, found.solves) == (math.inf, math.inf, 400, 2)
    assert model.diameters([399, 400, 412, 413]) == pytest.approx([1, math.inf, math.inf, 1])


def test_a_way_that_all_but_closes():
    """Leaving takes 1 / x; near x = 0 the largest D of 10^8 times is the first."""
    model = blend([ISLANDS, STAY_OR_GO], wd.schedules.Cosine(0.4), 10**5)
    x = (1 - math.cos(2 * math.pi * 0.4 / 10**5)) / 2
    found = model.max_diameter()
    assert found.t == 1
    assert found.lower == pytest.approx(1 / x, rel=1e-5)  # x itself has ten digits


def test_each_distinct_kernel_is_solved_once(monkeypatch):
    solved = []

    def counted(space, p, **options):
        solved.append(p)
        return real(space, p, **options)

    real = module.solve_diameter
    monkeypatch.setattr(module, "solve_diameter", counted)
    BUILDERS["step knots"]().diameters(range(1, 61))
    assert len(solved) == 4
    for name, distinct in (("function", 3), ("sparse function", 2), ("stationary", 1)):
        solved.clear()
        BUILDERS[name]().diameters([5, 1, 5, *range(1, 61)])
        assert len(solved) == distinct
        assert BUILDERS[name]().max_diameter().solves == distinct
    own = wd.DriftingMDP.blend(MODELS, Weights(0.2, 0.3, 0.5), horizon=60)
    assert own.max_diameter().solves == 1


def test_times_are_checked():
    model = BUILDERS["knots"]()
    assert model.diameters([]).shape == (0,)
    assert model.diameters(3) == model.diameters([3])
    for wrong in ([0], [61], [1.5], [True], "x", [[1, 2]]):
        with pytest.raises(InputError, match="times"):
            model.diameters(wrong)
    with pytest.raises(InputError, match=r"times\[1\]: 61 is out of range.*from 1 to 60"):
        model.diameters([1, 61])


@pytest.mark.parametrize("tol", [0, -1e-3, math.nan, math.inf, "x", True])
def test_tolerances_are_checked(tol):
    with pytest.raises(InputError, match="tol"):
        BUILDERS["knots"]().max_diameter(tol)


def test_what_cannot_be_bracketed_is_refused_with_the_numbers(monkeypatch):
    with pytest.raises(NotConverged, match="longest time to .* lies between"):
        BUILDERS["cosine"]().max_diameter(1e-16)
    long = wd.DriftingMDP.from_function(
        lambda t: (MODELS[0].rewards, MODELS[0].transitions), space=SPACE, horizon=2_000_001
    )
    with pytest.raises(NotConverged, match="max_diameter: .* all 2000001 kernels .* 2000000"):
        long.max_diameter()
    with pytest.raises(NotConverged, match="no blend"):
        wd.DriftingMDP.blend(MODELS, Weights(1, 0, 0), horizon=2_000_001).max_diameter()
    monkeypatch.setattr(module, "_MOST_SOLVES", 3)
    model = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(1), horizon=10**6)
    with pytest.raises(NotConverged, match=r"after 3 kernels .* between .* attained at t=.* and "):
        model.max_diameter(1e-6)


# segments of kernels


@pytest.mark.parametrize("seed", range(4))
def test_any_two_points_bound_all_kernels_between(seed):
    rng = np.random.default_rng(seed)
    space = wd.StateActions([2, 1, 3])
    first, second = (random_mdp(space, 2 * seed + k, 0.8).transitions for k in range(2))
    segment, targets = Segment(space, first, second), np.arange(3)

    def times(x):
        return least_times(space, first + x * (second - first))

    finite = 0
    for _ in range(15):
        x0, x1 = np.sort(rng.random(2))
        spread = rng.uniform(0, 0.3)
        left, right = (
            segment.point(x, times(x).T * rng.uniform(1, 1 + spread, size=(3, 3))) for x in (x0, x1)
        )
        upper = segment.uppers(targets, left, right)
        for x in np.linspace(x0, x1, 9):
            assert (upper >= times(x).max(axis=1) * (1 - 1e-12)).all()
        finite += int(np.isfinite(upper).sum())
    assert finite > 15
    # of second order where the best actions stay: half the length, a quarter of the gap
    gaps = []
    for length in (0.02, 0.01):
        ends = [segment.point(x, times(x).T) for x in (0.4, 0.4 + length)]
        worst = max(times(x).max() for x in np.linspace(0.4, 0.4 + length, 41))
        gaps.append(segment.uppers(targets, *ends).max() / worst - 1)
    assert gaps[0] < 2e-3
    assert gaps[1] < 0.5 * gaps[0] + 1e-12


def test_kernels_between_may_be_far_worse_than_both_ends():
    """The way home moves from one state to the other, and each throws back to the other."""
    first = np.array([[0, 1, 0], [0, 1 / 4, 3 / 4], [1 / 6, 0, 5 / 6]])
    second = np.array([[0, 1, 0], [2 / 9, 4 / 9, 3 / 9], [0, 5 / 6, 1 / 6]])
    space = wd.StateActions([1, 1, 1])
    segment, home = Segment(space, first, second), np.array([0])

    def times(x):
        return times_of_policy(first + x * (second - first), 0)

    assert times(0.5).max() > 1.4 * max(times(0.0).max(), times(1.0).max())
    for n in (1, 2, 4, 8, 16, 64):
        for x0, x1 in itertools.pairwise(np.linspace(0, 1, n + 1)):
            ends = [segment.point(x, times(x)[:, None]) for x in (x0, x1)]
            upper = segment.uppers(home, *ends)[0]
            worst = max(times(x).max() for x in np.linspace(x0, x1, 11))
            assert upper >= worst * (1 - 1e-12)
            assert n < 64 or upper <= 1.002 * worst


def exact_upper(rows, h, x):
    """The least of the three bounds for target 0 of a chain with one action, in fractions."""

    def drops(k, weight):
        return [
            sum(
                ((1 - weight) * p + weight * q) * (h[k][s] - h[k][j])
                for j, (p, q) in enumerate(zip(rows[0][s], rows[1][s], strict=True))
            )
            for s in range(1, len(h[0]))
        ]

    d = [[drops(k, weight) for weight in x] for k in range(2)]
    found = [max(h[k]) / min(*d[k][0], *d[k][1]) for k in range(2)]
    c = []
    for a, b, up, down in zip(d[0][0], d[1][1], d[0][1], d[1][0], strict=True):
        bend = up + down - a - b
        y = (
            min(max((1 + (b - a) / bend) / 2, Fraction(0)), Fraction(1))
            if bend < 0
            else Fraction(0)
        )
        c += [(1 - y) * a + y * b + y * (1 - y) * bend, a, b]
    return min(*found, max(*h[0], *h[1]) / min(c))


@pytest.mark.parametrize("size", [2e8, 1e9])
def test_bounds_along_segments_allow_for_rounding(size):
    """By the size of the times, and from differences where that would be too much."""
    rng = np.random.default_rng(5)
    S = 7
    space = wd.StateActions.uniform(S, 1)
    kernels = np.zeros((2, S, S))
    kernels[:, 0, 1] = 1.0
    kernels[:, 1, :2] = 0.5
    for s in range(2, S):  # towards state 1, from which half the ways lead to the target
        kernels[:, s, 1 : s + 1] = rng.dirichlet(np.ones(s), size=2)
    segment = Segment(space, *kernels)
    rows = [[[Fraction(p) for p in row] for row in kernel] for kernel in kernels]
    for _ in range(100):
        # drops of about ten among times of 10^9: eight of sixteen digits are left
        h = size + 30.0 * np.arange(S) + rng.uniform(0.0, 2.0, size=(2, S))
        h[:, 0] = 0.0
        ends = [segment.point(x, h[k][:, None]) for k, x in enumerate((0.25, 0.75))]
        upper = segment.uppers(np.array([0]), *ends)[0]
        exact = exact_upper(
            rows, [[Fraction(t) for t in row] for row in h], (Fraction(1, 4), Fraction(3, 4))
        )
        assert exact <= Fraction(upper) <= exact * (1 + Fraction(1, 10**5))


def test_bounds_along_segments_allow_for_differences_that_cancel():
    """Half a billion up and down, and a drop of ten: it has seven digits, not fifteen."""
    rng = np.random.default_rng(7)
    space = wd.StateActions.uniform(4, 1)
    for _ in range(100):
        p = rng.uniform(0.3, 0.7)
        kernel = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, p, 0, 1 - p], [0, 0, 1, 0]])
        segment = Segment(space, kernel, kernel)
        rows = [[[Fraction(x) for x in row] for row in kernel]] * 2
        h = np.array([0.0, 1e9, 1e9 * p + 3e9 * (1 - p) + rng.uniform(10.0, 11.0), 3e9])
        ends = [segment.point(x, h[:, None]) for x in (0.25, 0.75)]
        upper = segment.uppers(np.array([0]), *ends)[0]
        exact = exact_upper(rows, [[Fraction(t) for t in h]] * 2, (Fraction(1, 4), Fraction(3, 4)))
        assert exact <= Fraction(upper) <= exact * (1 + Fraction(1, 10**5))


def test_the_least_of_a_parabola():
    rng = np.random.default_rng(6)
    a, b, bend = rng.normal(size=(3, 40, 50)) * [[[1.0]], [[1.0]], [[3.0]]]
    bend[0] = 0.0
    y = np.linspace(0, 1, 2001)[:, None, None]
    grid = ((1 - y) * a + y * b + y * (1 - y) * bend).min(axis=0)
    found = module._least(a, b, bend)
    assert (found <= grid + 1e-15).all()
    np.testing.assert_allclose(found, grid, atol=1e-5)


def test_long_diameters_along_a_drift():
    """A queue of 60: its largest diameter has eleven digits, and a bracket of a thousandth."""
    model = wd.envs.make("queue", capacity=60, horizon=1000)
    found = model.max_diameter()
    assert found.lower < found.upper <= 1.001 * found.lower
    assert found.solves <= 5
    alone = solve_diameter(model.space, model.at(found.t).transitions, tol=1e-3)
    assert (found.lower, found.t) == (pytest.approx(alone.lower, rel=1e-3), 250)
    assert module.diameters(model, [1, 250]).max() == alone.value
    with pytest.raises(NotConverged, match="pass a larger tol"):
        module.diameters(model, [1, 250], tol=1e-6)
    for tol in (0, -1.0, "x"):
        with pytest.raises(InputError, match="tol"):
            module.diameters(model, [1], tol=tol)


def test_the_lower_end_is_certified_not_only_found():
    model = wd.envs.make("riverswim", horizon=2000)
    found = model.max_diameter()
    alone = solve_diameter(model.space, model.at(found.t).transitions)
    assert alone.lower < alone.value < alone.upper
    assert found.lower == alone.lower
