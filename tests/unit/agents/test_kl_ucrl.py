"""KL-UCRL: actions beside a literal twin, the best row of a ball by other solvers, extremes."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import rel_entr

import windage as wd
from tests.models import draw_model, draw_window, random_mdp
from tests.twins.kl_ucrl import KLUCRL, kl_maximum, widened
from tests.twins.optimistic import replay, value_iteration
from windage.agents.optimistic.kl_ucrl import (
    KLRegion,
    blank_plan,
    drift_constant,
    stationary_constants,
)
from windage.confidence import window as storage
from windage.errors import InputError
from windage.kernels import evi, jit, kl

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning")

SPACE = wd.StateActions([2, 3, 1, 2])
T = 600
AGENTS = {
    "all": lambda **o: wd.KLUCRL(SPACE, horizon=T, **o),
    "window": lambda **o: wd.SWKLUCRL(SPACE, horizon=T, window=150, **o),
    "stationary window": lambda **o: wd.SWKLUCRL(SPACE, horizon=T, window=80, drift=False, **o),
    "widened": lambda **o: wd.SWKLUCRL(SPACE, horizon=T, window=150, widening=0.1, **o),
}
TIGHT = 0.02  # nothing would be planned with the true constants and so few samples


def world():
    ends = [random_mdp(SPACE, seed, density=0.7) for seed in (3, 4)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(1), horizon=T)


# --- beside the twin -----------------------------------------------------------------------------


class Widened(KLUCRL):
    """The twin, with a widening that a user asked for."""

    def __init__(self, space, *, widening, **options):
        super().__init__(space, **options)
        self.wider = widening

    def best_rows(self, u):
        return widened(super().best_rows(u), u, self.wider)


@pytest.mark.parametrize("windowed", [False, True])
def test_actions_are_those_of_the_literal_twin(windowed):
    """Lowest ties, cold EVI; ragged models, windows from 1 to beyond T, all constants."""
    swept = forgot = 0
    for seed in range(120):
        rng = np.random.default_rng([seed, 12])
        model = draw_model(rng, 7000 + seed)
        space, horizon = model.space, model.horizon
        options = {
            "horizon": horizon,
            "delta": rng.uniform(0.01, 0.5),
            "scale": float(rng.choice([1.0, 0.1, 0.02, 0.003])),
            "clip": bool(rng.random() < 0.5),
            "drift": bool(rng.random() < 0.5),
            "widening": float(rng.choice([0.0, 0.2])),
            "ties": "lowest",
        }
        if windowed:
            options["window"] = 1 if seed % 12 == 0 else draw_window(rng, horizon)
        kind = wd.SWKLUCRL if windowed else wd.KLUCRL
        run = wd.run(model, kind(space, warm_start=False, **options), seed=seed)
        twin = Widened(space, **options)
        assert replay(twin, run) <= {"visits"}
        swept += int((run.episodes.sweeps > 1).sum())
        forgot += windowed and any(tau > twin.window + 1 for tau, *_ in twin.episodes)
    assert swept > 300
    assert (forgot > 30) == windowed


def test_the_default_of_a_window_are_the_sets_that_hold_under_drift():
    model = wd.envs.make("riverswim", horizon=1500)
    for drift in (None, False):
        given = {} if drift is None else {"drift": drift}
        agent = wd.SWKLUCRL(
            model.space, horizon=1500, window=300, ties="lowest", warm_start=False, scale=0.1,
            **given,
        )  # fmt: skip
        twin = KLUCRL(
            model.space, horizon=1500, window=300, ties="lowest", scale=0.1, drift=drift is None
        )
        replay(twin, wd.run(model, agent, seed=4))


def test_constants_with_fifty_digits():
    for counts, horizon, window, delta in [
        ([2, 2], 5000, 300, 0.05), ([2] * 6, 10**5, 10**5, 0.05), ([4] * 20, 10**5, 8000, 0.01),
        ([1], 2, 1, 0.5), ([3, 1], 1, 1, 1e-300), ([1, 4, 2], 10**12, 10**9, 0.999),
    ]:  # fmt: skip
        space = wd.StateActions(counts)
        with mpmath.workdps(50):
            S, SA, W, t = space.n_states, space.n_pairs, mpmath.mpf(window), mpmath.mpf(horizon)
            log_t, level = mpmath.log(max(2, horizon)), mpmath.mpf(delta)
            B = mpmath.log(2 * mpmath.e * S * SA * log_t / level)
            inside = B + 1 / log_t
            C_P = S * (B + mpmath.log(inside) * (1 + 1 / inside))
            C_R = mpmath.sqrt(mpmath.log(4 * SA * log_t / level) / mpmath.mpf("1.99"))
            G = mpmath.sqrt(W) * mpmath.log(8 * W * t * S) + 1
            drift = mpmath.log(2 * SA * t / level) + S * mpmath.log(G) + mpmath.mpf("1.5")
            expected = [float(x) for x in (C_R, C_P, drift)]
        found = [
            *stationary_constants(space, horizon, delta),
            drift_constant(space, horizon, delta, window),
        ]
        assert found == pytest.approx(expected, rel=1e-14)
        assert drift_constant(space, horizon, delta, 10 * horizon) == drift_constant(
            space, horizon, delta, horizon
        )


# --- the best row of a ball ----------------------------------------------------------------------


def ball(p, radius, u, eta=0.0):
    """A plan of one pair."""
    after = np.flatnonzero(p)
    plan = blank_plan(wd.StateActions([1]), after.size)._replace(u=np.array(u, float))
    plan.pairs["kind"], plan.pairs["entries"] = evi.BOUND, after.size
    plan.pairs["rest"], plan.pairs["half"] = radius, eta / 2
    plan.rows["index"], plan.rows["probability"] = after, p[after]
    return plan


def best_value(p, radius, u, maximum=kl.maximum):
    return maximum(ball(p, radius, u), 0, float(np.max(u)))[0]


def best_row(p, radius, u, eta=0.0):
    n = len(p)
    space = wd.StateActions([1] * n)
    rows = np.vstack([p, np.eye(n)[1:]])
    region = KLRegion(space, np.ones(n), rows, [radius] * n, [True] * n, eta)
    return region.best_row(0, np.array(u, float))


def exact(p, radius, u):
    """The least D(nu) with 60 digits, by bisection for the zero of its derivative."""
    with mpmath.workdps(60):
        e, top = mpmath.mpf(float(radius)), mpmath.mpf(float(max(u)))
        on = [i for i in range(len(p)) if p[i] > 0]
        total = sum(mpmath.mpf(float(p[i])) for i in on)
        weights = [mpmath.mpf(float(p[i])) / total for i in on]
        gaps = [top - mpmath.mpf(float(u[i])) for i in on]  # to max u, on the support or not

        def bound(x):
            return top + x - mpmath.exp(mean_log(x) - e)

        def mean_log(x):
            return sum(w * mpmath.log(g + x) for w, g in zip(weights, gaps, strict=True))

        def rises(x):
            return mpmath.exp(mean_log(x) - e) * sum(
                w / (g + x) for w, g in zip(weights, gaps, strict=True)
            ) < 1  # fmt: skip

        if max(gaps) == 0:
            return top
        low, high = mpmath.mpf(-20_000), mpmath.log(max(gaps)) - mpmath.log(e) + 1
        if min(gaps) > 0 and (min(gaps) == max(gaps) or rises(mpmath.mpf(0))):
            return bound(mpmath.mpf(0))
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (low, middle) if rises(mpmath.exp(middle)) else (middle, high)
        return bound(mpmath.exp(high))


def drawn(rng):
    S, n = int(rng.integers(1, 9)), int(rng.choice([1, 3, 20, 200, 10**7]))
    counts = rng.multinomial(n, rng.dirichlet(np.full(S, rng.choice([0.1, 0.5, 2.0]))))
    u = rng.random(S) * 10.0 ** rng.integers(-6, 4)
    u = [u, u.round(1), u**20][int(rng.integers(3))]
    return counts / counts.sum(), u


def test_values_are_right_to_rounding():
    """Radii over 37 orders of magnitude, against 60 digits."""
    rng = np.random.default_rng(1)
    for radius in (0.0, 1e-25, 1e-18, 1e-12, 1e-9, 1e-6, 1e-3, 0.05, 0.5, 3.0, 10.0, 36.0):
        for _ in range(25):
            p, u = drawn(rng)
            expected = exact(p, max(radius, kl.SMALLEST), u)
            found = best_value(p, radius, u)
            assert abs(found - expected) <= 2e-14 * (np.ptp(u) + u.max() * 0.05)


def test_the_twin_finds_the_same_rows():
    rng = np.random.default_rng(2)
    for _ in range(300):
        p, u = drawn(rng)
        radius = float(rng.choice([1e-3, 0.05, 0.5, 3.0, 30.0]))
        if np.ptp(u) == 0.0:
            continue
        (q,) = kl_maximum(p[None], np.array([radius]), u)
        row = best_row(p, radius, u)
        assert row.sum() == pytest.approx(1.0, abs=1e-12)
        assert row.min() >= 0.0
        assert row @ u == pytest.approx(best_value(p, radius, u), abs=1e-11 * u.max())
        assert row @ u == pytest.approx(q @ u, abs=1e-11 * u.max())
        if np.diff(np.sort(u)).min(initial=1.0) > 1e-9 * u.max():  # the optimum is unique
            assert row == pytest.approx(q, abs=1e-5)
        assert rel_entr(p, row).sum() <= radius * (1 + 1e-6) + 1e-9


def test_no_solver_and_no_row_of_a_grid_finds_more():
    """SLSQP finds as much, a grid nothing more, and the row is inside."""
    rng = np.random.default_rng(3)
    side = np.linspace(0, 1, 101)
    grid = np.array([(a, b, 1 - a - b) for a in side for b in side if a + b <= 1 + 1e-12])
    for _ in range(40):
        counts = rng.multinomial(rng.integers(1, 30), rng.dirichlet(np.full(3, 0.5)))
        p, u, radius = counts / counts.sum(), rng.random(3), float(rng.choice([0.02, 0.3, 2.0]))
        value = best_value(p, radius, u)
        plausible = rel_entr(p, np.maximum(grid, 0)).sum(axis=1) <= radius
        assert (grid[plausible] @ u).max(initial=-1.0) <= value + 1e-12
        on = p > 0
        found = minimize(
            lambda q, u=u: -q @ u,
            0.5 * p + 0.5 / 3 if radius > 1 else 0.98 * p + 0.02 / 3,
            bounds=[(1e-9, 1.0)] * 3,
            constraints=[
                {"type": "eq", "fun": lambda q: q.sum() - 1.0},
                {
                    "type": "ineq",
                    "fun": lambda q, p=p, on=on, e=radius: e - rel_entr(p[on], q[on]).sum(),
                },
            ],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-13},
        )
        if found.success:
            assert -found.fun == pytest.approx(value, abs=1e-5)


def test_any_start_leads_to_the_same_value():
    rng = np.random.default_rng(4)
    for _ in range(200):
        p, u = drawn(rng)
        plan = ball(p, float(rng.choice([1e-6, 0.05, 3.0, 36.0])), u)
        first = kl.maximum(plan, 0, u.max())[0]
        here = float(plan.log_gap[0])
        near = (here - 1e-3, here - 1e-8, here + 1e-8, here + 1e-3)
        for start in (*near, -750.0, -30.0, -1.0, 0.0, 1.0, 30.0, 800.0, np.inf):
            plan.log_gap[0] = start
            value = kl.maximum(plan, 0, u.max())[0]
            assert value == pytest.approx(first, abs=2e-14 * u.max())


def test_hand_made_cases():
    u = [0.0, 1.0]
    # all mass on the worst state: the best one gets 1 - exp(-radius)
    assert best_value(np.array([1.0, 0.0]), 0.5, u) == pytest.approx(1 - math.exp(-0.5), rel=1e-15)
    assert best_row(np.array([1.0, 0.0]), 0.5, u) == pytest.approx(
        [math.exp(-0.5), 1 - math.exp(-0.5)]
    )
    # two states seen equally often: KL((1/2, 1/2), q) = -ln(4 q (1 - q)) / 2
    half = np.array([0.5, 0.5])
    assert best_value(half, 0.2, u) == pytest.approx((1 + math.sqrt(1 - math.exp(-0.4))) / 2)
    # u is flat on the support and highest there: nothing to gain, exactly
    assert best_value(np.array([0.3, 0.7, 0.0]), 0.2, [1.0, 1.0, 0.0]) == 1.0
    # flat on the support, higher elsewhere
    value = best_value(np.array([0.3, 0.7, 0.0]), 0.2, [1.0, 1.0, 3.0])
    assert value == pytest.approx(1.0 + 2.0 * (1 - math.exp(-0.2)), rel=1e-15)
    # one state, or all states alike
    assert best_value(np.array([1.0]), 3.0, [0.7]) == 0.7
    assert best_value(half, 3.0, [0.7, 0.7]) == 0.7
    # the second highest state is a hair below the best, which was never seen
    hair = np.nextafter(1.0, 0.0)
    assert best_value(np.array([0.5, 0.5, 0.0]), 0.1, [0.0, hair, 1.0]) == pytest.approx(
        best_value(half, 0.1, u), abs=1e-12
    )


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e90])
def test_values_of_any_size(size):
    p, u = np.array([0.2, 0.5, 0.3, 0.0]), np.array([0.0, 1.0, 2.5, 3.0])
    for radius in (1e-6, 0.3, 36.0):
        value = best_value(p, radius, size * u)
        assert value / size == pytest.approx(best_value(p, radius, u), rel=1e-12)


def test_a_huge_radius_is_as_good_as_the_simplex_and_a_tiny_one_as_good_as_none():
    rng = np.random.default_rng(5)
    for _ in range(100):
        p, u = drawn(rng)
        assert best_value(p, 36.0, u) == pytest.approx(u.max(), rel=1e-12)
        assert best_value(p, 1e4, u) == pytest.approx(u.max(), rel=1e-12)
        assert best_value(p, 0.0, u) == pytest.approx(p @ u, abs=1e-12 * u.max())


@pytest.mark.parametrize("eta", [1e-4, 0.1, 0.7, 1.9])
def test_a_widening_is_worth_half_of_it_times_the_span_and_max_u_at_most(eta):
    """As much as any row within eta of the ball, or more; and a row attains it."""
    rng = np.random.default_rng(6)
    for _ in range(60):
        p, u = drawn(rng)
        radius = float(rng.choice([0.01, 0.5, 20.0]))
        inside = best_row(p, radius, u)
        (wanted,) = widened(inside[None], u, eta) if np.ptp(u) else (inside,)
        row = best_row(p, radius, u, eta)
        assert row.sum() == pytest.approx(1.0, abs=1e-12)
        assert row.min() >= 0.0
        assert row @ u == pytest.approx(wanted @ u, abs=1e-12 * u.max())
        half, left = eta / 2, inside.copy()  # the L1 ball around the best row of the ball
        for s in np.argsort(u, kind="stable")[:-1]:
            taken = min(half, left[s])
            left[s] -= taken
            left[int(u.argmax())] += taken
            half -= taken
        assert row @ u >= left @ u - 1e-12 * u.max()


def test_a_search_is_short(monkeypatch):
    """Fifteen evaluations of f do, from a start that knows nothing."""
    rng, slow = np.random.default_rng(10), jit.interpreted(kl.maximum)
    monkeypatch.setitem(slow.__wrapped__.__globals__, "STEPS", 15)
    for _ in range(1500):
        p, u = drawn(rng)
        radius = float(10 ** rng.uniform(-9, 1.56))
        assert best_value(p, radius, u, slow) == best_value(p, radius, u)


def test_compiled_and_interpreted_kernels_agree_to_the_last_bit():
    rng = np.random.default_rng(7)
    slow = jit.interpreted(kl.maximum)
    for _ in range(300):
        p, u = drawn(rng)
        radius = float(rng.choice([0.0, 1e-12, 1e-3, 0.5, 20.0]))
        assert best_value(p, radius, u, slow) == best_value(p, radius, u)


# --- planning in them ----------------------------------------------------------------------------


def drawn_region(rng, eta=0.0):
    space = wd.StateActions(rng.integers(1, 4, size=rng.integers(1, 6)).tolist())
    S, n = space.n_states, space.n_pairs
    visits = rng.integers(0, 30, size=n)
    counts = np.array([rng.multinomial(v, rng.dirichlet(np.full(S, 0.4))) for v in visits])
    return KLRegion(
        space, rng.random(n), counts / np.maximum(visits, 1)[:, None],
        rng.choice([0.05, 0.4, 3.0, 50.0], size=n), visits > 0, eta,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["plain", "auto"])
@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_plans_are_certified_and_have_the_gain_of_literal_iteration(method, eta):
    """Properties 1 and 2 with rows of the twin, from any start; "auto" evaluates policies."""
    rng, epsilon = np.random.default_rng(8), 1e-6
    for _ in range(40):
        region = drawn_region(rng, eta)
        space, (n, S) = region.space, region.p_hat.shape

        def best_rows(u, region=region, n=n, S=S):
            free, p = region.is_free, region.p_hat.toarray()
            rows = np.zeros((n, S))
            rows[free, np.flatnonzero(u == u.max())[-1]] = 1.0
            rows[~free] = p[~free]
            if np.ptp(u) > 0 and not free.all():
                rows[~free] = kl_maximum(p[~free], region.radius[~free], u)
            return widened(rows, u, eta) if np.ptp(u) > 0 else rows

        literal = value_iteration(space, region.reward_upper, best_rows, epsilon)
        model = wd.evi(region, epsilon, warm_start=rng.random(S), method=method)
        assert abs(model.gain - literal.gain) <= 2 * epsilon
        values = region.reward_upper + best_rows(model.bias) @ model.bias
        best = np.maximum.reduceat(values, space.offsets[:-1])
        assert (values <= model.gain + model.bias[space.state_of] + 1e-9).all()
        assert (best >= model.gain + model.bias - epsilon - 1e-9).all()
        chosen = space.offsets[:-1] + model.policy
        hoped = region.reward_upper[chosen] + model.transitions @ model.bias
        assert hoped == pytest.approx(model.action_values[chosen], abs=1e-9)
        assert model.transitions.sum(axis=1) == pytest.approx(np.ones(S), abs=1e-12)


def test_evaluating_policies_saves_sweeps_and_interpreted_planning_is_the_same():
    """A long chain: values travel slowly, evaluations carry them."""
    S = 30
    space = wd.StateActions([2] * S)
    rows = np.zeros((2 * S, S))
    for s in range(S):
        rows[2 * s, max(s - 1, 0)] = 1.0
        ends = [max(s - 1, 0), s, min(s + 1, S - 1)]
        np.add.at(rows[2 * s + 1], ends, (0.05, 0.6, 0.35))
    rewards = np.zeros(2 * S)
    rewards[-1], rewards[0] = 1.0, 0.005
    region = KLRegion(space, rewards, rows, [0.01] * (2 * S), [True] * (2 * S))
    start = np.linspace(0, 1, S)
    plain, quick = (wd.evi(region, 1e-6, start, method=way) for way in ("plain", "auto"))
    assert quick.gain == pytest.approx(plain.gain, abs=2e-6)
    assert quick.sweeps < plain.sweeps / 2
    plan = region.as_plan(start.copy())
    assert jit.interpreted(evi.solve)(plan, 1e-6, True, 100_000)
    assert plan.answer["gain"][0] == quick.gain
    assert (plan.u == quick.bias).all()


def test_an_evaluation_is_that_of_the_rows_shown():
    """Twenty steps u -> r~ + q.u with the best rows of the greedy pairs, also of those unseen."""
    rng, unseen = np.random.default_rng(11), 0
    for _ in range(60):
        region = drawn_region(rng, float(rng.choice([0.0, 0.3])))
        u = rng.random(region.space.n_states)
        u -= u.min()
        plan = region.as_plan(u)
        plan.states["order"] = np.arange(u.size)
        evi.sweep(plan)
        pairs = plan.states["greedy"].copy()
        rows = np.array([region.best_row(int(pair), u) for pair in pairs])
        unseen += int(region.is_free[pairs].sum())
        expected = u.copy()
        for _ in range(evi.EVALUATIONS):
            expected = region.reward_upper[pairs] + rows @ expected
            expected -= expected.min()
        evi.evaluate(plan, True)
        assert plan.u == pytest.approx(expected, abs=1e-9)
    assert unseen > 20


def test_widths_hold_the_balls():
    """Pinsker: no row of a ball is further from p_hat in L1."""
    rng = np.random.default_rng(9)
    for _ in range(100):
        region = drawn_region(rng)
        u = rng.random(region.space.n_states)
        for pair in np.flatnonzero(~region.is_free):
            off = np.abs(region.best_row(int(pair), u) - region.p_hat.toarray()[pair]).sum()
            assert off <= region.width[pair] + 1e-12
        assert (region.width[region.is_free] == 2.0).all()
        assert (region.is_free == (~region.visited | (region.radius > 36.8))).all()


# --- the agents ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_step_by_step_is_the_fused_run_and_so_is_a_restored_one(name):
    model = world()
    fused = AGENTS[name](scale=TIGHT, seed=5)
    run = wd.run(model, fused, seed=6)
    assert (run.episodes.sweeps > 1).sum() > 5
    agent, simulator = AGENTS[name](scale=TIGHT, seed=5), wd.simulate.Simulator(model, seed=6)
    actions, gains = [], {}
    for t in range(T):
        if t in (1, 77, 300, 444):
            agent = wd.agents.restore(agent.state())
        s = simulator.state
        a = agent.act(s)
        gains[agent.n_episodes] = agent.episode.gain
        reward, after = simulator.step(a)
        agent.observe(s, a, reward, after)
        actions.append(a)
    assert actions == run.actions.tolist()
    assert list(gains.values()) == run.episodes.gain.tolist()
    assert agent.state() == fused.state()


@pytest.mark.parametrize("name", AGENTS)
def test_hashed_counts_are_as_good_as_listed_ones(name, monkeypatch):
    model, runs = world(), []
    for cells in (10**9, 0):
        monkeypatch.setattr(storage, "_CELLS", cells)
        agent = AGENTS[name](scale=TIGHT, seed=5)
        run = wd.run(model, agent, seed=6)
        assert agent._window.is_hashed == (cells == 0)
        runs.append((run, agent.region()))
    (listed, region), (hashed, twin) = runs
    assert hashed.actions.tolist() == listed.actions.tolist()
    assert hashed.episodes.gain.tolist() == listed.episodes.gain.tolist()
    assert hashed.episodes.span.tolist() == listed.episodes.span.tolist()
    assert (twin.radius == region.radius).all()


@pytest.mark.parametrize("name", AGENTS)
def test_interpreted_runs_are_compiled_ones(name, monkeypatch):
    model, runs = world(), []
    for patience in (math.inf, 0.0):
        monkeypatch.setattr(jit, "PATIENCE", patience)
        monkeypatch.setattr(jit.Tier, "_spent", {})
        runs.append(wd.run(model, AGENTS[name](scale=TIGHT, seed=5), seed=6, steps=250))
    assert runs[0].actions.tolist() == runs[1].actions.tolist()
    assert runs[0].episodes.gain.tolist() == runs[1].episodes.gain.tolist()


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("reward_range", [None, (-1.0, 3.0)])
def test_the_region_and_explanations_from_the_history(name, reward_range):
    low, high = reward_range or (0.0, 1.0)
    width = high - low
    agent = AGENTS[name](scale=TIGHT, clip=True, reward_range=reward_range, seed=2)
    model, looked, widenings = world(), 0, 0
    simulator, history, started = wd.simulate.Simulator(model, seed=6), [], 0
    for t in range(1, T + 1):
        s = simulator.state
        a = agent.act(s)
        is_new, started = agent.n_episodes > started, agent.n_episodes
        if is_new and t > 40:
            W = agent._pace().width
            rows = history[-W:] if W else history
            region = agent.region()
            eta = agent.widening + (2 / T if agent.drift else 0.0)
            assert region.widening == pytest.approx(np.full(SPACE.n_pairs, eta), rel=1e-15)
            for state in range(SPACE.n_states):
                told = agent.explain(state)
                assert told.radii == f"kl x{TIGHT:g}"
                for report in told.actions:
                    pair = SPACE.pair(state, report.action)
                    mine = [(x, y) for q, x, y in rows if q == pair]
                    n = len(mine)
                    assert (report.visits, report.vacuous) == (n, bool(region.is_free[pair]))
                    if n == 0:
                        continue
                    p = np.bincount([y for _, y in mine], minlength=SPACE.n_states) / n
                    e = TIGHT * agent.divergence / n
                    assert region.radius[pair] == pytest.approx(e, rel=1e-14)
                    assert report.transition_radius == region.radius[pair]
                    assert report.reward_radius == pytest.approx(
                        width * TIGHT * reward_radius(agent, n), rel=1e-12
                    )
                    mean = math.fsum(x for x, _ in mine) / n
                    hope = low + width * min(
                        1.0, (mean - low) / width + report.reward_radius / width
                    )
                    assert report.optimistic_reward == pytest.approx(hope, abs=1e-12)
                    u = agent.bias / width
                    inner = u @ p if np.ptp(u) == 0 else best_row(p, e, u) @ u
                    inner = min(u.max(), inner + eta / 2 * np.ptp(u))
                    assert report.value == pytest.approx(hope + width * inner, abs=1e-9)
                    parts = report.optimistic_reward + report.expected + report.bonus
                    assert report.value == pytest.approx(parts, abs=1e-12)
                    widenings += report.bonus_from_widening > 1e-4
                    looked += 1
        reward, after = simulator.step(a)
        agent.observe(s, a, reward, after)
        history.append((SPACE.pair(s, a), reward, after))
    assert looked > 40
    assert (widenings > 5) == (name in ("window", "widened"))


def reward_radius(agent, n):
    if not agent.drift:
        return stationary_constants(SPACE, T, agent.delta)[0] / math.sqrt(n)
    log = math.log(2 * math.sqrt(n + 1) * SPACE.n_pairs * T / agent.delta)
    return math.sqrt((1 + 1 / n) * log / (2 * n))


def test_what_was_seen_once_and_what_was_never_seen():
    """After one visit 1 - exp(-C_P) of all mass may move: all of it, but for rounding."""
    space = wd.StateActions([1, 1])
    for scale, vacuous in ((2.0, 1.0), (1.0, 0.5)):
        agent = wd.KLUCRL(space, horizon=500, scale=scale)
        agent.preload(0, 0, 0.5, 0)
        agent.act(0)
        assert agent.episode.vacuous == vacuous
        assert agent.region().is_free.tolist() == [vacuous == 1.0, True]
    assert wd.KLUCRL(wd.StateActions([1]), horizon=1, drift=True).act(0) == 0


def test_one_state_and_huge_and_tiny_scales():
    mdp = wd.MDP(wd.StateActions([2]), [0.2, 0.8], [[1.0], [1.0]])
    one = wd.DriftingMDP.stationary(mdp, horizon=300)
    learned = wd.run(one, wd.KLUCRL(one.space, horizon=300, scale=0.1), seed=1)
    assert learned.total_mean_reward > 0.7 * 300
    model = world()
    huge = wd.run(model, AGENTS["all"](scale=1e100, clip=True), seed=1)
    assert (huge.episodes.vacuous == 1.0).all()
    tiny = wd.run(model, AGENTS["widened"](scale=1e-100, clip=True), seed=1)
    assert tiny.episodes.vacuous[-1] == 0.0


@pytest.mark.parametrize("ties", ["random", "previous", "sampled"])
def test_other_rules_for_ties(ties):
    run = wd.run(world(), AGENTS["window"](scale=TIGHT, ties=ties, slack=0.05, seed=3), seed=2)
    assert run.steps == T


def test_it_explores_less_than_ucrl2():
    mdp = wd.envs.riverswim_mdp(6)
    model = wd.DriftingMDP.stationary(mdp, horizon=20_000)
    totals = [
        [wd.run(model, kind(mdp.space, horizon=20_000, seed=i), seed=i, record="totals")
         .total_mean_reward for i in range(5)]
        for kind in (wd.UCRL2, wd.KLUCRL)
    ]  # fmt: skip
    assert np.mean(totals[1]) > 2 * np.mean(totals[0])


def test_how_they_are_made():
    model = wd.envs.make("riverswim", horizon=20_000)
    agent = wd.agents.make("kl-ucrl", model.space, horizon=20_000, budgets=model.budgets())
    assert (agent.requires, agent.drift, agent.clip, agent.scale) == ((), False, False, 1.0)
    for id, options in [
        ("kl-ucrl", {"scale": 0.5, "drift": True, "widening": 0.1, "clip": True, "delta": 0.1}),
        ("sw-kl-ucrl", {"window": 77, "drift": False, "ties": "previous", "slack": 0.1}),
    ]:
        made = wd.agents.make(id, model.space, horizon=100, **options)
        configuration = made.configuration()
        assert "radii" not in configuration
        assert configuration.items() >= options.items()
        again = wd.agents.restore(made.state())
        assert (again.configuration(), again.state()) == (configuration, made.state())
    budgets = model.budgets()
    tuned, oblivious = (
        wd.agents.make("sw-kl-ucrl", model.space, horizon=20_000, budgets=given)
        for given in (budgets, None)
    )
    assert tuned.window == 978
    assert oblivious.window == 660
    assert wd.agents.requires("sw-kl-ucrl", budgets=budgets) == ("B_r", "B_p")
    assert wd.agents.requires("sw-kl-ucrl", budgets=budgets, window=5) == ()
    assert wd.agents.get("kl-ucrl").covers_drift is False
    assert wd.agents.get("sw-kl-ucrl").covers_drift is None


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("scale", -0.1), ("scale", "x"), ("scale", math.inf), ("scale", 1e101), ("drift", 1),
     ("widening", -1), ("widening", [0.1]), ("delta", 0), ("delta", 1), ("clip", None),
     ("ties", "best"), ("slack", -1), ("horizon", 0), ("radii", "paper")],
)  # fmt: skip
def test_bad_arguments(name, wrong):
    with pytest.raises(InputError, match=name):
        wd.agents.make("kl-ucrl", SPACE, **{"horizon": T} | {name: wrong})


def test_what_was_set_stays_set():
    agent = AGENTS["window"]()
    for name in ("scale", "drift", "widening", "window"):
        with pytest.raises(AttributeError, match="fixed"):
            setattr(agent, name, 1)


@pytest.mark.filterwarnings("default::windage.errors.ParameterWarning")
def test_a_widening_that_leaves_nothing_to_learn_is_said_to_be():
    with pytest.warns(wd.ParameterWarning, match="every kernel plausible"):
        AGENTS["all"](widening=2.0)
