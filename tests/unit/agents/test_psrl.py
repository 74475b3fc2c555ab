"""PSRL and its relatives: episodes, rounded rewards, and the law of the models they draw.

Draws are looked at when an episode starts. What the posterior should be is recounted from the
history; a draw put into its own distribution function is then uniform, whatever the history was.
"""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

import windage as wd
from tests.models import random_mdp
from windage.kernels.posterior import SPREAD

SPACE = wd.StateActions([2, 3, 1])
S = SPACE.n_states
T = 150
FALSE_ALARM = 1e-6
KINDS = {
    "psrl": (wd.PSRL, {}),
    "sw-psrl": (wd.SWPSRL, {"window": 30}),
    "restarted-psrl": (wd.RestartedPSRL, {"restarts": [41, 42, 100]}),
}


def world(horizon=T):
    ends = [random_mdp(SPACE, seed) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon)


def first_remembered(kind, tau):
    """The time of the oldest sample that counts at tau."""
    if kind == "sw-psrl":
        return max(1, tau - 30)
    if kind == "restarted-psrl":
        return max([1, *(t for t in (41, 42, 100) if t <= tau)])
    return 1


class TestEpisodes:
    @pytest.mark.parametrize("rule", ["tsde", "doubling"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_they_end_by_the_literal_rule(self, kind, rule):
        """nu = N+ for the action about to be played, or one step longer than the one before.

        A learner that starts anew has had an episode of one step before its first.
        """
        make, options = KINDS[kind]
        all_reasons = set()
        for seed in range(20):
            agent = make(SPACE, horizon=T, episodes=rule, seed=seed, **options)
            run = wd.run(world(), agent, seed=seed)
            pairs = (SPACE.offsets[run.states[:-1]] + run.actions).tolist()
            restarts = agent.restarts.tolist() if kind == "restarted-psrl" else []
            starts, reasons, tau, before = [], [], 0, 1
            nu, N, policy = {}, {}, {}
            for t in range(1, T + 1):
                s, pair = int(run.states[t - 1]), pairs[t - 1]
                why = ""
                mine = policy.get(s)
                if t in restarts:
                    why = "restart"
                elif rule == "tsde" and tau and t - tau == before + 1:
                    why = "length"
                elif mine is not None and nu[mine] >= max(1, N.get(mine, 0)):
                    why = "visits"
                if why or t == 1:
                    before = 1 if t in restarts or t == 1 else t - tau
                    tau, nu, policy = t, {}, {}
                    starts.append(t)
                    reasons += [why] if why else []
                    window = pairs[first_remembered(kind, t) - 1 : t - 1]
                    N = {p: window.count(p) for p in window}
                assert policy.setdefault(s, pair) == pair  # one policy an episode
                nu[pair] = nu.get(pair, 0) + 1
            assert run.episodes.start.tolist() == starts
            assert run.episodes.reason.tolist() == [*reasons, "open"]
            all_reasons |= set(reasons)
        wanted = {"visits", "length"} if rule == "tsde" else {"visits"}
        assert all_reasons == wanted | ({"restart"} if restarts else set())

    def test_lengths_grow_by_one_at_most(self):
        run = wd.run(world(), wd.PSRL(SPACE, horizon=T), seed=1)
        lengths = [1, *run.episodes.length.tolist()]
        assert all(b <= a + 1 for a, b in zip(lengths, lengths[1:], strict=False))


def rounded(seed, rewards, *, actions=0, **options):
    """What an agent remembers of the rewards it was shown, in the order they came."""
    agent = wd.SWPSRL(SPACE, horizon=len(rewards), window=len(rewards), seed=seed, **options)
    state = actions % S
    for t, reward in enumerate(rewards, start=1):
        agent.act(state)
        after = (t * actions) % S
        agent.observe(state, 0, reward, after)
        state = after
    return agent._window.kernel.ring["reward"][: len(rewards)].copy()


class TestRounding:
    @pytest.mark.parametrize(
        ("reward", "scaled", "reward_range"),
        [(0.3, 0.3, None), (0.95, 0.95, None), (0.5, 0.5, (-2.0, 3.0)), (-1.5, 0.1, (-2.0, 3.0)),
         (1.7, 1.0, None), (-0.2, 0.0, None), (1.0, 1.0, None), (0.0, 0.0, None)],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore:a reward of 1.7 lies:windage.errors.ParameterWarning")
    def test_zeros_and_ones_with_the_same_mean(self, reward, scaled, reward_range):
        """Hoeffding: off by sqrt(ln(2e6) / 2n) at most once in a million; 0.5 for 0.3 is caught."""
        n = 3000
        seen = rounded(5, [reward] * n, reward_range=reward_range)
        if reward_range == (-2.0, 3.0):
            scaled = (reward + 2.0) / 5.0
        assert set(seen.tolist()) <= {0.0, 1.0}
        off = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n)) if 0 < scaled < 1 else 0.0
        assert abs(seen.mean() - scaled) <= off
        assert off < 0.05

    def test_the_draw_hangs_on_seed_and_time_alone(self):
        low, high = rounded(1, [0.3] * 300), rounded(1, [0.6] * 300)
        assert rounded(1, [0.3] * 300, actions=2).tolist() == low.tolist()
        assert (low <= high).all()  # the same number is compared with both
        assert (low < high).any()
        mixed = rounded(1, [0.3, 0.6] * 150)
        assert mixed.tolist() == np.where(np.arange(300) % 2, high, low).tolist()
        assert rounded(2, [0.3] * 300).tolist() != low.tolist()
        assert not (low[:-1] == low[1:]).all()

    def test_samples_of_the_past_have_draws_of_their_own(self):
        agent = wd.SWPSRL(SPACE, horizon=400, window=400, seed=1)
        for _ in range(200):
            agent.preload(0, 0, 0.5, 0)
        for _ in range(200):
            agent.observe(0, (agent.act(0), 0)[1], 0.5, 0)
        past, now = np.split(agent._window.kernel.ring["reward"][:400], 2)
        assert 0.3 < np.mean(past == now) < 0.7
        assert now.tolist() == rounded(1, [0.5] * 200).tolist()


@functools.cache
def looked_at(kind, prior, runs=25):
    """Every draw of many runs: drawn rewards and rows, and the history before them."""
    make, options = KINDS[kind]
    found = []
    for seed in range(runs):
        agent = make(SPACE, horizon=T, prior=prior, seed=seed, **options)
        simulator, history = wd.simulate.Simulator(world(), seed), []
        for t in range(1, T + 1):
            s = simulator.state
            a, n = agent.act(s), agent.n_episodes
            if agent.episode.start == t:
                plan, drawn = agent._learner.plan, np.zeros((SPACE.n_pairs, S))
                for p, pair in enumerate(plan.pairs):
                    for entry in plan.rows[pair["row"] : pair["row"] + pair["entries"]]:
                        drawn[p, entry["index"]] = entry["probability"]
                found.append((t, n, plan.pairs["reward"].copy(), drawn, history.copy()))
            reward, after = simulator.step(a)
            agent.observe(s, a, reward, after)
            history.append((SPACE.pair(s, a), reward, after))
    return found


def places(kind, prior, remembered=None, shrink=False):
    """The draws in their distribution functions: of mean rewards, and of one entry of each row."""
    of_rewards, of_rows = [], []
    for tau, number, rewards, rows, history in looked_at(kind, prior):
        first = (remembered or functools.partial(first_remembered, kind))(tau)
        window = history[first - 1 :]
        for pair in range(SPACE.n_pairs):
            mine = [(x, z) for q, x, z in window if q == pair]
            n, wins = len(mine), sum(x for x, _ in mine)
            of_rewards.append((rewards[pair], 1 + wins, 1 + n - wins))
            state = (number + pair) % S
            a = prior / S + sum(z == state for _, z in mine)
            scale = max(1, n) if shrink else 1
            share = (rows[pair, state] - SPREAD / S) / (1 - SPREAD)
            of_rows.append((share, a / scale, (prior + n - a) / scale))
    return [stats.beta.cdf(*np.transpose(draws)) for draws in (of_rewards, of_rows)]


def p_values(places):
    return [stats.kstest(x, "uniform").pvalue for x in places]


class TestPosterior:
    @pytest.mark.parametrize(
        ("kind", "prior"),
        [("psrl", 1.0), ("psrl", 6.0), ("sw-psrl", 1.0), ("restarted-psrl", 1.0)],
    )
    def test_beta_and_dirichlet_of_what_is_remembered(self, kind, prior):
        """Beta(1 + wins, 1 + losses), Dirichlet(prior / S + counts); eight tests in a million."""
        assert min(p_values(places(kind, prior))) > FALSE_ALARM

    @pytest.mark.parametrize("kind", ["sw-psrl", "restarted-psrl"], ids=["window", "restarts"])
    def test_it_is_not_that_of_all_history(self, kind):
        assert max(p_values(places(kind, 1.0, remembered=lambda tau: 1))) < FALSE_ALARM

    def test_nor_that_of_a_shorter_window(self):
        late = p_values(places("sw-psrl", 1.0, remembered=lambda tau: max(1, tau - 5)))
        assert max(late) < FALSE_ALARM

    def test_parameters_are_not_divided_by_visits(self):
        """Spec 5.5: then the posterior would never concentrate."""
        assert p_values(places("psrl", 1.0, shrink=True))[1] < FALSE_ALARM
        assert p_values(places("psrl", 1.0))[1] > FALSE_ALARM

    @pytest.mark.parametrize(
        "prior",
        [1.0, 0.1, 0.01, 1e-3, 1e-6],
    )
    def test_a_small_prior_draws_rows_near_the_corners(self, prior):
        """As often as NumPy's Dirichlet law; two shares of 400 differ by 0.25 once in a million."""
        agents = [wd.PSRL(SPACE, horizon=10, prior=prior, seed=seed) for seed in range(400)]
        for agent in agents:
            agent.act(0)
        tops = [agent._learner.plan.rows["probability"][:S].max() for agent in agents]
        law = np.random.default_rng(1).dirichlet([prior / S] * S, size=400).max(axis=1)
        assert np.mean(np.array(tops) > 0.99) == pytest.approx(np.mean(law > 0.99), abs=0.25)

    def test_the_spread_shrinks_like_one_over_root_n(self):
        """Half a pair's moves and wins go one way: four times the visits, half the deviation.

        With 200 seeds a standard deviation is known to 25 % (five times its own deviation).
        """
        spreads = {}
        for n in (4, 16, 64):
            drawn = []
            for seed in range(200):
                agent = wd.PSRL(wd.StateActions([1, 1]), horizon=10, seed=seed)
                for i in range(n):
                    agent.preload(0, 0, float(i % 2), i // 2 % 2)
                agent.act(0)
                plan = agent._learner.plan
                drawn.append((plan.pairs["reward"][0], plan.rows["probability"][0]))
            spreads[n] = np.std(drawn, axis=0)
            known = [math.sqrt(0.25 / (n + 3)), (1 - SPREAD) * math.sqrt(0.25 / (n + 2))]
            assert spreads[n] == pytest.approx(known, rel=0.25)
        for few, many in ((4, 16), (16, 64)):
            assert spreads[few] / spreads[many] == pytest.approx([2.0, 2.0], rel=0.36)


@pytest.mark.filterwarnings("ignore:a drawn model was not solved")
class TestPeriodicModels:
    SPACE = wd.StateActions([2, 2])

    def cycle(self, horizon):
        """Moving from 0 to 1 pays 1, back 0, staying 0.3: the best policy goes round and round."""
        rows = [[0, 1], [1, 0], [1, 0], [0, 1]]
        mdp = wd.MDP(self.SPACE, [1.0, 0.3, 0.0, 0.3], rows)
        assert mdp.solve().gain == pytest.approx(0.5)
        return wd.DriftingMDP.stationary(mdp, horizon=horizon)

    @pytest.mark.parametrize("prior", [1.0, 1e-9])
    def test_the_best_cycle_is_found_and_kept(self, prior):
        model = self.cycle(20_000)
        agent = wd.PSRL(self.SPACE, horizon=20_000, prior=prior, seed=2)
        run = wd.run(model, agent, seed=1)
        assert run.actions[-5000:].tolist() == [0] * 5000
        assert run.rewards[-5000:].mean() == 0.5

    def test_a_round_of_three(self):
        """Its planning does not end within the sweeps of a draw; the policy is right all the same.

        State 0 pays 1 to go round, gain 1/3, or 0.2 to stay.
        """
        space = wd.StateActions([2, 1, 1])
        mdp = wd.MDP(space, [1.0, 0.2, 0.0, 0.0], np.eye(3)[[1, 0, 2, 0]])
        assert mdp.solve().gain == pytest.approx(1 / 3)
        model = wd.DriftingMDP.stationary(mdp, horizon=30_000)
        agent = wd.SWPSRL(space, horizon=30_000, window=10_000, prior=1e-6, seed=1)
        run = wd.run(model, agent, seed=1)
        late = run.actions[-9000:]
        assert (late == 0).mean() > 0.99
        assert np.isfinite(run.episodes.gain).all()

    def test_two_worlds_apart(self):
        """States that never meet in the data meet in the draw: it spreads a thousandth."""
        space = wd.StateActions([1, 1])
        agent = wd.PSRL(space, horizon=10, prior=1e-12, seed=1)
        for _ in range(1000):
            agent.preload(0, 0, 1.0, 0)
            agent.preload(1, 0, 0.0, 1)
        agent.act(0)
        rows = agent._learner.plan.rows["probability"].reshape(2, 2)
        assert (rows >= SPREAD / 2).all()
        assert rows.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-12)


def test_windows_are_those_of_theorem_1():
    """`sw-psrl` has no theorem; it borrows the window of SWUCRL2-CW, with budgets or without."""
    model = wd.envs.make("riverswim", horizon=5000)
    B = model.budgets()
    told = wd.agents.make("sw-psrl", model.space, horizon=5000, budgets=B)
    best = 3 * 6 ** (2 / 3) * math.sqrt(2 * 5000 / (B.reward + B.transition + 1))
    assert told.window == round(best)
    with pytest.warns(wd.ParameterWarning, match="there are no budgets"):
        blind = wd.agents.make("sw-psrl", model.space, horizon=5000)
    assert blind.window == round(6 ** (2 / 3) * math.sqrt(2 * 5000))
    also = wd.agents.make("sw-psrl", model.space, horizon=5000, budgets=B, window="oblivious")
    assert also.window == blind.window


def test_rewards_far_from_the_unit_interval_are_noticed_once():
    space = wd.StateActions([2, 1])
    agent = wd.PSRL(space, horizon=100)

    def live():
        for _ in range(20):
            agent.observe(0, agent.act(0), 31.0, 0)

    with pytest.warns(wd.ParameterWarning, match="a reward of 31 lies outside") as said:
        live()
    assert len(said) == 1
    mdp = wd.MDP(space, [0.5, 0.5, 0.5], [[1, 0], [0, 1], [1, 0]])
    model = wd.DriftingMDP.stationary(mdp, horizon=5000, noise=wd.Noise.gaussian(4.0))
    with pytest.warns(wd.ParameterWarning, match="is rounded to 0 or 1"):
        wd.run(model, wd.SWPSRL(space, horizon=5000, window=90))


def test_a_draw_that_is_not_solved_is_said_once():
    """Two states that hardly mix: value iteration would take longer than it is given."""
    space = wd.StateActions([1, 1])
    agent = wd.PSRL(space, horizon=10_000, seed=1)
    path = [(0, 1.0, 0)] * 4000 + [(0, 1.0, 1)] + [(1, 0.0, 1)] * 4000
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for s, reward, after in path:
            agent.observe(s, agent.act(s), reward, after)
    assert [w.category for w in caught] == [wd.GuaranteeWarning]
    assert "not solved to 1 / sqrt(t) in 2,000 sweeps" in str(caught[0].message)
