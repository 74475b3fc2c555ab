"""UCRL3: runs against the literal twin, intervals against 50 digits, rows against programs."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd
from tests.models import draw_model, draw_window, random_mdp
from tests.twins import ucrl3
from tests.twins.optimistic import replay
from windage.agents.state import Blob, pack, unpack
from windage.confidence import window as storage
from windage.errors import InputError, StateError
from windage.kernels import jit
from windage.kernels.evi import BOUND, estimate, solve, sweep
from windage.kernels.ucrl3 import deviation, fill_intervals
from windage.testing import check_agent

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning")

FORMS = {
    "all": lambda space, T, _window, **o: wd.UCRL3(space, horizon=T, **o),
    "window": lambda space, T, window, **o: wd.SWUCRL3(space, horizon=T, window=window, **o),
}
SPACE = wd.StateActions([2, 3, 1, 2])
T = 600


def world(seed=3, horizon=T):
    ends = [random_mdp(SPACE, k) for k in (seed, seed + 1)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(1), horizon=horizon)


def sparse_world(states, seed, horizon, actions=2):
    """Three next states a pair, all of them near: most of the other states are worth little."""
    rng = np.random.default_rng(seed)
    space = wd.StateActions([actions] * states)
    rows = np.zeros((space.n_pairs, states))
    for pair, s in enumerate(space.state_of):
        for after in ((s + 1) % states, s, (s + rng.integers(states)) % states):
            rows[pair, after] += 0.1 + rng.random()
    rows /= rows.sum(axis=1, keepdims=True)
    rewards = np.where(space.state_of == states // 2, 0.9, 0.1 * rng.random(space.n_pairs))
    return wd.DriftingMDP.stationary(wd.MDP(space, rewards, rows), horizon=horizon)


def pair_of(form, model, window=100, *, delta=0.05, seed=0):
    """An agent as the twin is, and the twin."""
    drift = form == "window"
    agent = FORMS[form](
        model.space, model.horizon, window, delta=delta, ties="lowest", warm_start=False, seed=seed
    )
    twin = ucrl3.UCRL3(
        model.space, horizon=model.horizon, window=window if drift else None, drift=drift,
        delta=delta, clip=True, ties="lowest",
    )  # fmt: skip
    return agent, twin


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_small_runs_are_those_of_the_twin(form):
    """Action by action, episode by episode, sweep by sweep; ragged action sets, W = 1 and W > T."""
    planned, forgot = 0, 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        model = draw_model(rng, 500 + seed)
        W, delta = draw_window(rng, model.horizon), rng.uniform(0.01, 0.9)
        agent, twin = pair_of(form, model, W, delta=delta)
        run = wd.run(model, agent, seed=seed)
        assert replay(twin, run) <= {"visits"}
        planned += (run.episodes.span > 0).any()
        forgot += any(tau > W + 1 for tau, *_ in twin.episodes)
    assert planned > (2 if form == "window" else 5)
    assert form == "all" or forgot > 20


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", [1, 7])
def test_short_windows(form, window):
    model = world(horizon=200)
    agent, twin = pair_of(form, model, window)
    replay(twin, wd.run(model, agent, seed=1))


def test_a_river_is_the_twins():
    """Intervals are narrow enough for supports to be chosen."""
    model = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(6), horizon=3000)
    agent, twin = pair_of("all", model)
    run = wd.run(model, agent, seed=3)
    replay(twin, run)
    smaller = grown = 0
    for lower, inside in zip(twin.lower, twin.supports, strict=True):
        smaller += inside.sum() < 6
        grown += inside.sum() > max(1, (lower > 0).sum())
    assert smaller > 3
    assert grown > 3
    assert run.episodes.span[-1] > 0.1


def test_a_drifting_river_is_the_twins():
    model = wd.envs.make("riverswim", horizon=3000)
    agent, twin = pair_of("window", model, 400)
    assert replay(twin, wd.run(model, agent, seed=3)) == {"visits"}


def test_a_model_of_many_states_is_the_twins():
    model = sparse_world(12, 1, 6000)
    agent, twin = pair_of("all", model)
    run = wd.run(model, agent, seed=2)
    replay(twin, run)
    assert (agent._learner.plan.inside.sum(axis=1) < 12).any()
    assert (agent._learner.plan.inside == twin.supports).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_warm_start_gives_nearly_optimistic_plans_as_well(form):
    """Properties 1 and 2 on the supports the plan ended with, whatever it started from."""
    model = world(horizon=4000)
    agent = FORMS[form](SPACE, model.horizon, 900, delta=0.9, seed=4)
    checked = 0
    while agent.t <= 4000:
        wd.run(model, agent, seed=7, steps=50)
        episode, region = agent.episode, agent.region()
        if episode.span == 0.0:
            continue
        epsilon, bias = 1 / math.sqrt(episode.start), agent.bias
        inner = [region.best_row(p, bias) @ bias for p in range(SPACE.n_pairs)]
        values = region.reward_upper + np.array(inner)
        best = np.maximum.reduceat(values, SPACE.offsets[:-1])
        assert (values <= episode.gain + bias[SPACE.state_of] + 1e-9).all()
        assert (best >= episode.gain + bias - epsilon - 1e-9).all()
        checked += 1
    assert checked > 5


# --- intervals ------------------------------------------------------------------------------------


def plan_of(form, space=SPACE, horizon=T, delta=0.05, window=100):
    return FORMS[form](space, horizon, window, delta=delta)._learner.plan


def ends_of(plan, hits, visits):
    hits, visits = np.asarray(hits, np.int64), np.asarray(visits, np.int64)
    lower, upper = np.empty(hits.size), np.empty(hits.size)
    fill_intervals(plan, hits, visits, lower, upper)
    return lower, upper


def level_of(form, delta=0.05):
    S, SA = SPACE.n_states, SPACE.n_pairs
    return delta / (2 * SA * T * 4 * S) if form == "window" else delta / (3 * SA * (1 + S))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("delta", [0.01, 0.9])
def test_intervals_are_those_of_the_twin(form, delta):
    visits = np.repeat([1, 2, 3, 10, 57, 400, 10_000], 5)
    hits = np.minimum(visits, np.tile([0, 1, 1, 2, 7], 7) * visits // np.tile([1, 1, 3, 2, 7], 7))
    kind = ucrl3.deviation_under_drift if form == "window" else ucrl3.deviation
    wanted = ucrl3.bounds(hits / visits, visits, level_of(form, delta), kind)
    lower, upper = ends_of(plan_of(form, delta=delta), hits, visits)
    assert lower == pytest.approx(wanted[0], abs=1e-12)
    assert upper == pytest.approx(wanted[1], abs=1e-12)
    assert ((lower <= hits / visits) & (hits / visits <= upper)).all()


def exact_ends(form, hits, n):
    """Both ends with 50 digits, by bisection on the conditions as the paper writes them."""
    with mpmath.workdps(50):
        p, n, eta = mpmath.mpf(hits) / n, mpmath.mpf(n), mpmath.mpf(ucrl3.ETA)
        S, SA, delta = SPACE.n_states, SPACE.n_pairs, mpmath.mpf(0.05)
        if form == "window":
            level = delta / (2 * SA * T * 4 * S)
            slices = 1 + max(0, mpmath.ceil(mpmath.log(n / 4) / mpmath.log(eta)))
            l = eta * mpmath.log(slices * (slices + 1) / level)  # noqa: E741 - the paper's letter
            L, floor = l, 1 / n
        else:
            level = delta / (3 * SA * (1 + S))
            grid = mpmath.log(eta * n) * mpmath.log(eta**2 * n) / mpmath.log(eta) ** 2
            l, floor = eta * mpmath.log(grid / level), mpmath.mpf(0)  # noqa: E741
            L = (1 + 1 / n) * mpmath.log(2 * mpmath.sqrt(n + 1) / level)

        def plausible(q):
            g = mpmath.mpf(1) / 4
            if q in (0, 1):
                g = mpmath.mpf(0)
            elif q != mpmath.mpf(1) / 2:
                g = (mpmath.mpf(1) / 2 - q) / mpmath.log(1 / q - 1)
            if q >= p and q >= mpmath.mpf(1) / 2:
                g = q * (1 - q)
            bernstein = mpmath.sqrt(2 * max(q * (1 - q), floor) * l / n) + l / (3 * n)
            return abs(q - p) <= min(bernstein, mpmath.sqrt(2 * max(g, floor) * L / n))

        found = []
        for end in (mpmath.mpf(0), mpmath.mpf(1)):
            inside, outside = p, end
            if plausible(end):
                inside = end
            for _ in range(160 if inside != end else 0):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if plausible(middle) else (inside, middle)
            found.append(inside)
        return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("hits", "n"), [(0, 1), (1, 1), (0, 9), (4, 9), (9, 9), (300, 1000), (999, 1000), (0, 10**6)]
)
def test_intervals_have_many_digits(form, hits, n):
    (lower,), (upper,) = ends_of(plan_of(form), [hits], [n])
    least, most = exact_ends(form, hits, n)
    assert lower == pytest.approx(float(least), rel=1e-11, abs=1e-15)
    assert upper == pytest.approx(float(most), rel=1e-11)


def test_what_is_remembered_of_intervals_changes_nothing():
    """The table has fewer places than there are counts: later ones drive others out."""
    plan = plan_of("all")
    visits, hits = (x.ravel() for x in np.meshgrid(np.arange(1, 60), np.arange(60)))
    keep = hits <= visits
    assert keep.sum() > 4 * plan.known.size
    first = ends_of(plan, hits[keep], visits[keep])
    again = ends_of(plan, hits[keep][::-1], visits[keep][::-1])
    for one, other in zip(first, again, strict=True):
        assert (one == other[::-1]).all()


@pytest.mark.parametrize("form", FORMS)
def test_intervals_in_plain_python_have_the_same_bits(form):
    for q in (0.0, 1e-9, 0.2, 0.5, 0.7, 1.0):
        for above in (False, True):
            given = (q, 0.01, 0.3, 0.4, above)
            assert deviation(*given) == jit.interpreted(deviation)(*given)
    plan, plain = plan_of(form), np.empty((2, 4))
    hits, visits = np.array([0, 1, 7, 20]), np.array([1, 3, 20, 20])
    compiled = ends_of(plan, hits, visits)
    plan.known[:] = 0
    jit.interpreted(fill_intervals)(plan, hits, visits, *plain)
    assert (plain == compiled).all()


@pytest.mark.parametrize("form", FORMS)
def test_plans_in_plain_python_have_the_same_bits(form, monkeypatch):
    """Other than in the short runs of `test_interpreted`, there is something to plan."""
    model = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(4), horizon=2000)
    runs, agents = [], []
    monkeypatch.setattr(jit.Tier, "_is_compiled", lambda *_: False)
    for patience in (math.inf, -1.0):
        monkeypatch.setattr(jit, "PATIENCE", patience)
        monkeypatch.setattr(jit.Tier, "_spent", {})
        agents.append(FORMS[form](model.space, 2000, 1500, delta=0.9, seed=1))
        runs.append(wd.run(model, agents[-1], seed=2))
    assert runs[0].actions.tolist() == runs[1].actions.tolist()
    assert runs[0].episodes.gain.tolist() == runs[1].episodes.gain.tolist()
    assert agents[0].state() == agents[1].state()
    assert (runs[0].episodes.span > 0).sum() > 5
    assert runs[0].episodes.sweeps.max() > 1


# --- inner maximum --------------------------------------------------------------------------------


def by_program(f, lower, upper, inside):
    """max q.f over the intervals and the simplex, with q = 0 outside the support."""
    bounds = [(a, b) if i else (0, 0) for a, b, i in zip(lower, upper, inside, strict=True)]
    best = linprog(-f, A_eq=[np.ones(f.size)], b_eq=[1.0], bounds=bounds)
    assert best.status == 0
    return -best.fun


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_optimal_on_their_supports_and_nearly_optimal_on_all_states(form):
    rng, narrower, grown = np.random.default_rng(6), 0, 0
    for seed in range(25):
        model = sparse_world(int(rng.integers(3, 9)), seed, 3000)
        agent = FORMS[form](model.space, 3000, 2500, delta=0.9, seed=seed)
        wd.run(model, agent, seed=seed, steps=int(rng.integers(50, 2500)))
        learner, S = agent._learner, model.space.n_states
        plan = learner.plan
        plan.pairs["kind"] = np.where(learner.window.counts["visits"] > 0, BOUND, 1)
        estimate(plan, learner.window)
        n = learner.window.counts["visits"]
        seen = plan.inside.astype(bool).copy()
        plan.u[:] = np.round(rng.random(S) ** 3, 3)
        plan.u[:] -= plan.u.min()
        plan.states["order"] = np.arange(S)
        sweep(plan)
        counts = agent._window.transitions.toarray()
        for p in np.flatnonzero(plan.pairs["kind"] == BOUND):
            lower, upper = ends_of(plan, counts[p], np.full(S, n[p]))
            inside, f = plan.inside[p].astype(bool), plan.u
            value = plan.pairs["value"][p] - plan.pairs["reward"][p]
            assert (seen[p] <= inside).all()
            assert value == pytest.approx(by_program(f, lower, upper, inside), abs=1e-9)
            kappa = 10 * np.ptp(f) * seen[p].sum() / n.max() ** (2 / 3)
            full = by_program(f, lower, upper, np.ones(S, bool))
            assert value - 1e-9 <= full <= value + kappa + 1e-9
            twin, chosen = ucrl3.near_optimistic_row(f, lower, upper, seen[p], kappa)
            assert (inside == chosen).all()
            assert value == pytest.approx(twin @ f, abs=1e-12)
            narrower += inside.sum() < S
            grown += (inside & ~seen[p]).sum()
    assert narrower > 50
    assert grown > 50


def test_supports_only_grow_while_an_evi_lasts_and_start_anew():
    model = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(6), horizon=4000)
    agent = wd.UCRL3(model.space, horizon=4000, ties="lowest")
    wd.run(model, agent, seed=3, steps=3000)
    plan, window = agent._learner.plan, agent._learner.window
    plan.pairs["kind"] = BOUND
    estimate(plan, window)
    start = plan.inside.copy()
    assert (start == (agent._window.transitions.toarray() > 0)).all()
    rng, before = np.random.default_rng(1), start.copy()
    for _ in range(20):
        plan.u[:] = rng.random(6)
        plan.u[:] -= plan.u.min()
        plan.states["order"] = np.arange(6)
        sweep(plan)
        assert (plan.inside >= before).all()
        before = plan.inside.copy()
    assert before.sum() > start.sum()
    estimate(plan, window)
    assert (plan.inside == start).all()
    plan.u[:] = 0.0
    assert solve(plan, 1e-6, False, 100_000)


def sweeps_until_it_stops(region, epsilon, *, growing):
    """EVI with NOSS in NumPy; None once it has come back to where it was before."""
    S = region.space.n_states
    u, been, seen = np.zeros(S), set(), region.p_hat.toarray() > 0
    supports = seen.copy()
    while True:
        rows = np.zeros((region.space.n_pairs, S))
        for p in range(region.space.n_pairs):
            sets = (region.lower[p], region.upper[p], supports[p], region.kappa[p] * np.ptp(u))
            rows[p], chosen = ucrl3.near_optimistic_row(u, *sets)
            supports[p] = chosen if growing else seen[p]
        values = region.reward_upper + rows @ u
        rise = np.maximum.reduceat(values, region.space.offsets[:-1]) - u
        been.add(u.tobytes())
        if np.ptp(rise) <= epsilon:
            return len(been)
        u = u + rise - (u + rise).min()
        if not growing and u.tobytes() in been:
            return None


def test_supports_chosen_anew_in_every_sweep_may_go_round_in_circles():
    """As printed, on sets that a run on RiverSwim led to: u comes back to the last bit."""
    model = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(6), horizon=10_000)
    agent = wd.UCRL3(model.space, horizon=10_000, seed=4)
    wd.run(model, agent, seed=4, steps=1000)
    region, epsilon = agent.region(), 1 / math.sqrt(agent.episode.start)
    assert sweeps_until_it_stops(region, epsilon, growing=False) is None
    assert sweeps_until_it_stops(region, epsilon, growing=True) < 50


# --- the same whatever the way --------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_step_by_step_is_the_fused_run(form):
    model = world()
    fused, agent = (FORMS[form](SPACE, T, 80, delta=0.5, seed=5) for _ in range(2))
    run = wd.run(model, fused, seed=6)
    simulator, played = wd.simulate.Simulator(model, seed=6), []
    for _ in range(T):
        s = simulator.state
        played.append(agent.act(s))
        reward, after = simulator.step(played[-1])
        agent.observe(s, played[-1], reward, after)
    assert played == run.actions.tolist()
    assert agent.state() == fused.state()


@pytest.mark.parametrize("form", FORMS)
def test_a_restored_agent_goes_on_as_if_nothing_had_been(form):
    model = world()
    agent = FORMS[form](SPACE, T, 80, delta=0.5, seed=5)
    wd.run(model, agent, seed=6, steps=300)
    twin = wd.agents.restore(agent.state())
    assert type(twin) is type(agent)
    assert twin.config == agent.config
    assert (twin._learner.plan.inside == agent._learner.plan.inside).all()
    assert [twin.explain(s) for s in range(4)] == [agent.explain(s) for s in range(4)]
    runs = [wd.run(model, each, seed=6) for each in (agent, twin)]
    assert runs[0].episodes.gain.tolist() == runs[1].episodes.gain.tolist()
    assert runs[0].actions.tolist() == runs[1].actions.tolist()
    assert agent.state() == twin.state()


@pytest.mark.parametrize(
    "wrong", [[-1], [2, 2], [3, 1], [SPACE.n_pairs * 4], [0.5], [[1, 2]]], ids=str
)
def test_damaged_supports_are_refused(wrong):
    agent = wd.UCRL3(SPACE, horizon=T)
    wd.run(world(), agent, seed=6, steps=300)
    blob = unpack(agent.state())
    arrays = blob.arrays | {"plan.inside": np.array(wrong)}
    damaged = pack(Blob(blob.agent, blob.configuration, blob.values, arrays))
    with pytest.raises(StateError):
        wd.agents.restore(damaged)


@pytest.mark.parametrize("form", FORMS)
def test_hashed_counts_are_as_good_as_listed_ones(form, monkeypatch):
    model, runs = world(), []
    for cells in (10**9, 0):
        monkeypatch.setattr(storage, "_CELLS", cells)
        agent = FORMS[form](SPACE, T, 80, delta=0.5, seed=5)
        runs.append(wd.run(model, agent, seed=6))
        assert agent._window.is_hashed == (cells == 0)
    assert runs[0].actions.tolist() == runs[1].actions.tolist()
    assert runs[0].episodes.gain == pytest.approx(runs[1].episodes.gain, abs=1e-12)
    assert runs[0].episodes.sweeps.tolist() == runs[1].episodes.sweeps.tolist()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reward_range", [None, (-1.0, 3.0)])
def test_explanations_add_up(form, reward_range):
    low, high = reward_range or (0.0, 1.0)
    model = world(horizon=3000)
    agent = FORMS[form](SPACE, 3000, 800, delta=0.9, reward_range=reward_range, seed=2)
    looked = 0
    for _ in range(30):
        wd.run(model, agent, seed=6, steps=100)
        region, planned = agent.region(), agent._learner.episode["planned"][0]
        kind = agent._learner.plan.pairs["kind"]
        for s in range(SPACE.n_states):
            told = agent.explain(s)
            assert told.radii == agent.id
            for report in told.actions:
                p = SPACE.pair(s, report.action)
                if report.visits > 0:
                    reach = min(report.mean_reward + report.reward_radius, high)
                    assert report.optimistic_reward == pytest.approx(reach, abs=1e-12)
                else:
                    assert report.optimistic_reward == high
                assert report.widening == report.bonus_from_widening == 0.0
                if planned and kind[p] == BOUND:
                    value = low + (high - low) * agent._learner.plan.pairs["value"][p]
                    assert report.value == pytest.approx(value, abs=1e-9)
                    looked += 1
        assert (region.lower <= region.p_hat.toarray() + 1e-15).all()
        assert (region.upper >= region.p_hat.toarray()).all()
    assert looked > 20


@pytest.mark.parametrize("id", ["ucrl3", "sw-ucrl3"])
def test_the_contract(id):
    check_agent(id, horizon=400)


# --- what it is -----------------------------------------------------------------------------------


def test_what_it_is():
    agent = wd.agents.make("ucrl3", SPACE, horizon=100)
    assert isinstance(agent, wd.UCRL3)
    assert (agent.requires, agent.clip, agent.covers_drift) == ((), True, False)
    assert "radii" not in wd.agents.parameters(wd.UCRL3)
    assert not hasattr(agent.config, "radii")
    with pytest.raises(InputError, match="delta"):
        wd.UCRL3(SPACE, horizon=100, delta=1.0)
    with pytest.raises(TypeError, match="radii"):
        wd.UCRL3(SPACE, horizon=100, radii="paper")


def test_the_window_is_found_like_that_of_window_psrl():
    model = wd.envs.make("riverswim", horizon=20_000)
    given = wd.agents.facts("sw-ucrl3", model)
    assert list(given) == ["budgets"]
    for options in (given, {}, {"window": "oblivious"}, {"window": 30}):
        agents = [
            wd.agents.make(name, model.space, horizon=20_000, **options)
            for name in ("sw-ucrl3", "sw-psrl")
        ]
        assert agents[0].window == agents[1].window
    assert wd.agents.requires("sw-ucrl3", **given) == ("B_r", "B_p")


@pytest.mark.parametrize("form", FORMS)
def test_what_was_never_seen_may_be_anything(form):
    agent = FORMS[form](wd.StateActions([1, 1]), 500, 400)
    for _ in range(20):
        agent.preload(0, 0, 0.5, 0)
    agent.act(0)
    region = agent.region()
    assert region.visited.tolist() == [True, False]
    assert region.is_free.tolist() == [False, True]
    assert region.reward_upper[1] == 1.0
    assert [a.vacuous for s in (0, 1) for a in agent.explain(s).actions] == [False, True]


def test_under_drift_a_few_visits_say_nothing_and_are_said_to():
    """Every q is plausible as long as sqrt(2 l_n / n) >= 1: its variance may be taken as 1 / n."""
    space = wd.StateActions([1, 1])
    told = {}
    for n in (1, 2, 3, 5, 10, 20):
        agent = wd.SWUCRL3(space, horizon=500, window=400)
        for _ in range(n):
            agent.preload(0, 0, 0.5, 0)
        agent.act(0)
        slices = 1 + max(0, math.ceil(math.log(n / 4) / math.log(1.12)))
        rate = 1.12 * math.log(slices * (slices + 1) * 2 * 2 * 500 * 4 * 2 / 0.05) / n
        told[n] = agent.explain(0).actions[0].vacuous
        assert told[n] == (min(math.sqrt(2 * rate / n) + rate / 3, math.sqrt(2 * rate / n)) >= 1)
        assert told[n] == agent.region().is_free[0]
    assert set(told.values()) == {True, False}
