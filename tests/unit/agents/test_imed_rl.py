"""IMED-RL, action by action beside its literal twin, its divergence beside the primal problem."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.optimize import minimize, minimize_scalar
from scipy.special import rel_entr

import windage as wd
from tests.models import random_mdp
from tests.twins import imed_rl as literal
from windage.agents.state import pack, unpack
from windage.errors import InputError, ParameterWarning, StateError
from windage.kernels.jit import interpreted
from windage.simulate import Simulator
from windage.testing import check_agent

FALSE_ALARM = 1e-6
RAGGED = wd.StateActions([2, 3, 1, 4])


def ragged(horizon, noise="bernoulli"):
    """A drifting model; without noise rewards are multiples of 1/64, which bins count exactly."""
    ends = [random_mdp(RAGGED, seed) for seed in (3, 4)]
    if noise == "none":
        paid = np.random.default_rng(0).permutation(65)[: RAGGED.n_pairs] / 64
        ends = [wd.MDP(RAGGED, paid, end.transitions) for end in ends]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon, noise=noise)


MODELS = {
    "ragged": ragged,
    "many rewards": lambda T: ragged(T, "none"),
    "river": lambda T: wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(5), horizon=T),
    "one state": lambda T: wd.envs.make("bandit", horizon=T, shape="breaks"),
}


def agent_of(space, *, window=None, **options):
    kind = wd.IMEDRL if window is None else wd.SWIMEDRL
    return kind(space, **options | ({} if window is None else {"window": window}))


class TestBesideTheTwin:
    @pytest.mark.parametrize("window", [None, 1, 40, 150])
    @pytest.mark.parametrize("name", MODELS)
    def test_indices_and_actions(self, name, window):
        T = 400
        model = MODELS[name](T)
        space = model.space
        agent = agent_of(space, horizon=T, ties="lowest", window=window)
        twin = literal.IMEDRL(space, horizon=T, ties="lowest", window=window)
        world, compared = Simulator(model, 5), 0
        for t in range(1, T + 1):
            s = world.state
            first, last = space.offsets[s : s + 2]
            if (twin.N[first:last] > 0).all():
                compared += 1
                assert agent.index(s) == pytest.approx(twin.indices(s), rel=1e-7, abs=1e-7)
            a = agent.act(s)
            assert a == twin.act(s), t
            reward, after = world.step(a)
            agent.observe(s, a, reward, after)
            twin.observe(s, a, reward, after)
            assert agent.in_memory.tolist() == twin.N.tolist()
        assert compared > (100 if window != 1 else -1)

    def test_the_plan(self):
        """Gain and bias are those of the twin's policy iteration, the skeleton by its rule."""
        T = 500
        model = ragged(T)
        agent = wd.SWIMEDRL(RAGGED, horizon=T, window=120, reward_range=(-1.0, 3.0))
        twin, world, left_out = (
            literal.IMEDRL(RAGGED, horizon=T, window=120),
            Simulator(model, 1),
            0,
        )
        for _ in range(T):
            s = world.state
            a = agent.act(s)
            reward, after = world.step(a)
            agent.observe(s, a, 4.0 * reward - 1.0, after)
            twin.observe(s, a, reward, after)
            kept = literal.skeleton(twin.N, RAGGED.offsets)
            assert agent._kernel.skeleton.tolist() == kept.tolist()
            left_out += int((~kept & (twin.N > 0)).sum())
            gain, phi = literal.optimal_bias(*twin.estimates(), RAGGED.offsets, kept)
            assert agent.gain == pytest.approx(4.0 * gain - 1.0, abs=1e-9)
            assert agent.bias == pytest.approx(4.0 * phi, abs=1e-8)
        assert left_out > 100

    def test_all_that_was_played_is_learned_from(self):
        agent, twin = wd.IMEDRL(RAGGED, horizon=200), literal.IMEDRL(RAGGED, horizon=200)
        rng, s = np.random.default_rng(1), 0
        for _ in range(200):
            agent.act(s)
            a, after = int(rng.integers(RAGGED.counts[s])), int(rng.integers(4))
            reward = float(rng.integers(65)) / 64
            agent.observe(s, a, reward, after)
            twin.observe(s, a, reward, after)
            s = after
        for s in range(4):
            assert agent.index(s) == pytest.approx(twin.indices(s), rel=1e-7)


def divergence_of(law, row, bias, target, omega):
    """The kernel's K for a law over bins, with the sample more, a row of next states and a bias."""
    from windage.kernels.imed_rl import divergence

    space = wd.StateActions([1] * bias.size)
    kernel = wd.IMEDRL(space, horizon=10)._kernel
    kernel.law[0], kernel.transitions[0], kernel.bias[:] = law, row, bias
    kernel.window.counts["visits"][0] = law.sum()
    found = divergence(kernel, 0, target, omega, 1e-16)
    assert interpreted(divergence)(kernel, 0, target, omega, 1e-16) == found
    return found


def law_of(paid):
    """Counts over bins, and the law of rewards with the sample more of 1/2, as two arrays."""
    law = np.zeros(65, np.int32)
    for reward, count in paid.items():
        law[round(64 * reward)] = count
    mass = law.astype(float)
    mass[32] += 1
    return law, np.flatnonzero(mass) / 64, mass[mass > 0] / mass.sum()


class TestDivergence:
    def test_it_is_the_primal(self):
        """min KL(weights, q) over laws q on the values and omega with mean >= target, by SLSQP."""
        rng, solved = np.random.default_rng(0), 0
        for trial in range(60):
            S, bins = int(rng.integers(1, 4)), rng.choice(65, size=2, replace=False) / 64
            paid = {float(x): int(rng.integers(1, 30)) for x in bins}
            if trial % 3 == 0:
                paid[1.0] = int(rng.integers(1, 5))
            law, rewards, chances = law_of(paid)
            row, bias = rng.dirichlet(np.ones(S)), rng.random(S) * rng.choice([0.1, 1.0, 10.0])
            bias -= bias.min()
            omega = 1.0 + bias.max()
            p = np.append(np.outer(chances, row).ravel(), 0.0)
            points = np.append((rewards[:, None] + bias).ravel(), omega)
            target = p @ points + rng.uniform(0.05, 0.9) * (omega - p @ points)
            found = minimize(
                lambda q, p=p: rel_entr(p, np.maximum(q, 1e-300)).sum(),
                0.9 * p + 0.1 / p.size,
                jac=lambda q, p=p: -p / np.maximum(q, 1e-300),
                bounds=[(1e-12, 1)] * p.size,
                constraints=[
                    {"type": "eq", "fun": lambda q: q.sum() - 1},
                    {"type": "ineq", "fun": lambda q, x=points, t=target: q @ x - t},
                ],
                method="SLSQP",
                options={"maxiter": 1000, "ftol": 1e-15},
            )
            if found.success and found.x @ points >= target - 1e-9:
                solved += 1
                mine = divergence_of(law, row, bias, target, omega)
                assert mine == pytest.approx(found.fun, rel=1e-5, abs=1e-6)
        assert solved > 40

    def test_in_one_state_its_maximum_is_a_root_of_a_polynomial(self):
        """The slope of E ln(1 - y Z) times all (1 - y z) has degree two, or it is at the end."""
        cases = [(0, 10, 0.2), (3, 5, 0.7), (200, 300, 0.51), (5, 0, 0.97), (0, 3, 0.99)]
        for wins, losses, m in cases:
            law, rewards, chances = law_of({1.0: wins, 0.0: losses})
            Z = (rewards - m) / (1.0 - m)
            slope = Polynomial([0.0])
            for i in range(Z.size):
                others = (Polynomial([1.0, -z]) for z in np.delete(Z, i))
                slope += chances[i] * Z[i] * math.prod(others, start=Polynomial([1.0]))
            ends = [1.0] if Z.max() < 1.0 else []
            inside = [y.real for y in slope.roots() if abs(y.imag) < 1e-9 and 0 < y.real < 1]
            exact = max(chances @ np.log(1.0 - y * Z) for y in ends + inside)
            mine = divergence_of(law, np.ones(1), np.zeros(1), m, 1.0)
            assert mine == pytest.approx(exact, rel=1e-9)

    def test_it_is_at_most_that_to_product_laws(self):
        """Equation (8) asks for laws of R and S' apart: min over c of both, means c and the rest.

        The theorem speaks of that, Proposition 2 computes the other: they are not the same.
        """
        rng, ratios = np.random.default_rng(0), []
        for _ in range(40):
            law, rewards, chances = law_of({0.0: int(rng.integers(1, 9)), 1.0: 2})
            row, bias = rng.dirichlet(np.ones(3)), rng.random(3) * 3.0
            bias -= bias.min()
            mean, omega = rewards @ chances + row @ bias, 1.0 + bias.max()
            target = mean + rng.uniform(0.1, 0.6) * (omega - mean)

            def apart(c, chances=chances, rewards=rewards, row=row, bias=bias, target=target):
                of_reward = literal.divergence(rewards, chances, c, 1.0)
                return of_reward + literal.divergence(bias, row, target - c, bias.max())

            ends = max(rewards @ chances, target - bias.max() + 1e-9), min(1.0, target) - 1e-9
            least = minimize_scalar(apart, bounds=ends, method="bounded", options={"xatol": 1e-9})
            ratios.append(divergence_of(law, row, bias, target, omega) / least.fun)
        assert max(ratios) <= 1.0 + 1e-7
        assert min(ratios) < 0.95

    def test_a_law_as_good_as_the_target_is_at_no_distance(self):
        law, rewards, chances = law_of({0.0: 3, 1.0: 3})
        mean = float(rewards @ chances)
        assert divergence_of(law, np.ones(1), np.zeros(1), mean, 1.0) == 0.0
        assert 0.0 < divergence_of(law, np.ones(1), np.zeros(1), mean + 1e-3, 1.0) < 1e-5

    def test_without_the_largest_value_all_mass_may_have_to_move_to_it(self):
        """Law on {1/2}, target near 1: q gives what is missing to 1, K = -ln of what is left."""
        law, _, _ = law_of({0.5: 7})
        for target in (0.6, 0.9, 0.999):
            mine = divergence_of(law, np.ones(1), np.zeros(1), target, 1.0)
            assert mine == pytest.approx(-math.log((1.0 - target) / 0.5), rel=1e-12)


class TestActing:
    @pytest.mark.parametrize("window", [None, 60])
    def test_compiled_and_interpreted_are_the_same(self, window):
        from windage.kernels.rollout import decide, learn

        T = 150
        one, other = (agent_of(RAGGED, horizon=T, window=window, seed=4) for _ in range(2))
        world = Simulator(ragged(T), 3)
        act, observe = interpreted(decide), interpreted(learn)
        for t in range(1, T + 1):
            s = world.state
            a = one.act(s)
            pair = int(act(other._kernel, t, s))
            assert pair == RAGGED.offsets[s] + a
            reward, after = world.step(a)
            one.observe(s, a, reward, after)
            observe(other._kernel, t, s, pair, reward, after, np.zeros((0, 2), np.int64))
        for name, array in one._kernel._asdict().items():
            if name in ("law", "rewards", "transitions", "skeleton", "policy", "gain", "bias"):
                assert array.tobytes() == getattr(other._kernel, name).tobytes(), name

    @pytest.mark.parametrize("window", [None, 60])
    def test_a_run_is_act_and_observe_and_stops_anywhere(self, window):
        T = 300
        model = ragged(T)
        agents = [agent_of(RAGGED, horizon=T, window=window, seed=2) for _ in range(2)]
        whole = wd.run(model, agents[0], seed=7, census=50)
        world, actions, remembered = Simulator(model, 7), [], []
        for t in range(1, T + 1):
            s = world.state
            actions.append(agents[1].act(s))
            if t in (1, 90, 91, 250):  # with a decision in hand
                agents[1] = wd.agents.restore(agents[1].state())
            agents[1].observe(s, actions[-1], *world.step(actions[-1]))
            remembered.append(agents[1].in_memory.tolist())
        assert whole.actions.tolist() == actions
        assert agents[0].state() == agents[1].state()
        assert whole.census.counts.tolist() == remembered[49::50]

    @pytest.mark.parametrize("id", ["imed-rl", "sw-imed-rl"])
    def test_the_contract_of_every_agent(self, id):
        check_agent(id, horizon=400)

    def test_actions_never_tried_and_ties_are_drawn_evenly(self):
        """Hoeffding at 1e-6 for all frequencies together."""
        n, space = 4000, wd.StateActions([4])
        agent = wd.IMEDRL(space, horizon=n + 10, seed=3)
        off = math.sqrt(math.log(2 * 8 / FALSE_ALARM) / (2 * n))
        assert off < 0.05
        for tied in ([0, 1, 2, 3], [1, 2, 3]):
            played = []
            for _ in range(n):
                played.append(agent.act(0))
                agent.withdraw()
                agent.t += 1
            wanted = np.isin(np.arange(4), tied) / len(tied)
            assert np.bincount(played, minlength=4) / n == pytest.approx(wanted, abs=off)
            agent.t = 1
            agent.act(0)
            agent.observe(0, 0, 1.0, 0)
        assert agent.index(0).tolist()[1:] == [-math.inf] * 3
        lowest = wd.IMEDRL(space, horizon=10, ties="lowest")
        for a in range(4):
            assert lowest.act(0) == a
            lowest.observe(0, a, 1.0, 0)

    def test_what_left_the_window_is_tried_again(self):
        model = wd.envs.make("bandit", horizon=400, shape="breaks")
        agent = wd.SWIMEDRL(model.space, horizon=400, window=30)
        run = wd.run(model, agent, seed=1)
        for end in range(60, 400):
            assert set(run.actions[end - 31 - model.space.n_pairs : end]) == {0, 1, 2}
        assert agent.in_memory.tolist() == np.bincount(run.actions[-30:], minlength=3).tolist()

    @pytest.mark.parametrize("scale", [2.0, 1024.0])
    def test_a_declared_range_only_changes_the_units(self, scale):
        T = 300
        plain = wd.IMEDRL(RAGGED, horizon=T, reward_range=(0.0, 1.0))
        units = wd.IMEDRL(RAGGED, horizon=T, reward_range=(-scale, 0.0))
        world = Simulator(ragged(T), 2)
        for _ in range(T):
            s = world.state
            a = plain.act(s)
            assert units.act(s) == a
            reward, after = world.step(a)
            plain.observe(s, a, reward, after)
            units.observe(s, a, scale * (reward - 1.0), after)
        assert units.bias.tolist() == (scale * plain.bias).tolist()
        assert units.gain == pytest.approx(scale * (plain.gain - 1.0), rel=1e-12)

    def test_on_riverswim_it_loses_far_less_than_ucrl2(self):
        mdp, T = wd.envs.riverswim_mdp(6), 20_000
        model = wd.DriftingMDP.stationary(mdp, horizon=T)
        slow, quick = wd.UCRL2(mdp.space, horizon=T, clip=True), wd.IMEDRL(mdp.space, horizon=T)
        lost = [
            mdp.solve().gain * T - wd.run(model, agent, seed=3).total_mean_reward
            for agent in (slow, quick)
        ]
        assert lost[1] < 0.1 * lost[0]


class TestInput:
    def test_rewards_outside_the_unit_interval_are_clipped_and_said_once(self):
        agent, twin = wd.IMEDRL(RAGGED, horizon=50), wd.IMEDRL(RAGGED, horizon=50)

        def step(one, reward, a):
            one.act(0)
            one.observe(0, a, reward, 0)

        step(agent, -0.3, 0)  # noise around 0 is not worth a word
        with pytest.warns(ParameterWarning, match=r"a reward of 7 lies .* declare a reward_range"):
            step(agent, 7.0, 1)
        for _ in range(9):
            step(agent, -2.0, 0)
            step(agent, 7.0, 1)
        for t in range(20):
            step(twin, float(t % 2), t % 2)
        assert agent.bias.tolist() == twin.bias.tolist()

    def test_windows_and_words(self):
        for wrong in (0, -1, 2.0, True, None, "x"):
            with pytest.raises(InputError, match="window"):
                wd.SWIMEDRL(RAGGED, horizon=50, window=wrong)
        with pytest.raises(InputError, match="ties"):
            wd.IMEDRL(RAGGED, horizon=50, ties="previous")
        model = ragged(2000)
        tuned = wd.agents.make("sw-imed-rl", RAGGED, horizon=2000, budgets=model.budgets())
        best = wd.agents.make("sw-psrl", RAGGED, horizon=2000, budgets=model.budgets())
        assert tuned.window == best.window
        assert wd.agents.requires("sw-imed-rl", budgets=model.budgets()) == ("B_r", "B_p")
        assert wd.agents.requires("sw-imed-rl", window=200) == wd.agents.requires("imed-rl") == ()
        oblivious = wd.agents.make("sw-imed-rl", RAGGED, horizon=2000, window="oblivious")
        with pytest.warns(wd.ParameterWarning, match="there are no budgets"):
            assert oblivious.window == wd.agents.make("sw-imed-rl", RAGGED, horizon=2000).window

    def test_a_window_as_long_as_the_horizon_is_all_history(self):
        agents = [agent_of(RAGGED, horizon=200, window=W, ties="lowest") for W in (None, 200, 900)]
        runs = [wd.run(ragged(200), agent, seed=1).actions.tolist() for agent in agents]
        assert runs[0] == runs[1] == runs[2]

    def test_models_too_large_to_plan_in_every_step(self):
        with pytest.raises(InputError, match="space: imed-rl plans in every step"):
            wd.IMEDRL(wd.StateActions([2] * 1000), horizon=50)

    @pytest.mark.parametrize("window", [None, 40])
    def test_impossible_states_are_refused(self, window):
        agent = agent_of(RAGGED, horizon=200, window=window)
        wd.run(ragged(200), agent, seed=1, steps=90)
        assert wd.agents.restore(agent.state()).state() == agent.state()
        for name, change in {
            "policy": lambda a: a + RAGGED.n_pairs,
            "law": lambda a: a + 1,
            "law ": lambda a: -a,
            "law  ": lambda a: a[:, ::-1] if window else a[::-1],
            "window.sums": lambda a: a * np.nan,
            "window.clock": lambda a: a + np.array([1, 0, 0, 0, 0]),
        }.items():
            blob = unpack(agent.state())
            blob.arrays[name.strip()] = np.ascontiguousarray(change(blob.arrays[name.strip()]))
            with pytest.raises(StateError):
                wd.agents.restore(pack(blob))
