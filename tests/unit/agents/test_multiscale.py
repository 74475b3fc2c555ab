"""MultiScale against a slow literal twin, and what its parts promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import windage as wd
from tests.models import random_mdp
from tests.unit.agents.multiscale_twin import Twin
from windage.agents.multiscale.windows import Weighing, windows_for

SPACE = wd.StateActions([2, 3, 1])
GRAIN = 2.0**26


def world(horizon, space=SPACE, noise="bernoulli"):
    ends = [random_mdp(space, seed) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon, noise=noise)


def exact(reward):
    return np.floor(reward * GRAIN + 0.5) / GRAIN


CASES = {
    "ragged": (SPACE, "bernoulli", 260),
    "real rewards": (SPACE, wd.Noise.beta(3.0), 200),
    "bandit": (wd.StateActions([3]), "bernoulli", 150),
    "one window": (SPACE, "bernoulli", 12),
    "wider": (wd.StateActions.uniform(5, 3), "bernoulli", 180),
}


class TestTwin:
    @pytest.mark.parametrize("case", CASES)
    def test_every_step_is_the_twins(self, case):
        """Weights, believed model, bias and plan at every step, on the agent's own path."""
        space, noise, T = CASES[case]
        for seed in range(3):
            agent = wd.MultiScale(space, horizon=T, seed=seed)
            twin, steps = Twin(space, T, seed), wd.simulate.Simulator(world(T, space, noise), seed)
            for t in range(T):
                s = steps.state
                pair = space.pair(s, agent.act(s))
                assert pair == twin.act(s), t
                self.compare(agent, twin, planned=twin.planned == twin.t)
                reward, after = steps.step(int(space.action_of[pair]))
                agent.observe(s, int(space.action_of[pair]), reward, after)
                twin.observe(pair, exact(reward), after)

    def compare(self, agent, twin, planned):
        kernel = agent._learner_state.kernel
        estimate = kernel.estimate
        experts = estimate.experts
        close = {"rtol": 1e-9, "atol": 1e-11}
        laws, rewards = experts.of_laws, experts.of_rewards
        np.testing.assert_allclose([laws.overall, rewards.overall], [twin.gp, twin.gr], **close)
        np.testing.assert_allclose([laws.own, rewards.own], [twin.wp, twin.wr], **close)
        np.testing.assert_allclose([laws.past[0], rewards.past[0]], [twin.lp, twin.lr], **close)
        np.testing.assert_allclose([laws.own_past, rewards.own_past], [twin.lps, twin.lrs], **close)
        assert agent.windows == tuple(twin.windows)
        if planned:
            np.testing.assert_allclose(estimate.u, twin.u, **close)
            np.testing.assert_allclose(estimate.pairs["mean"], twin.q, **close)
            np.testing.assert_allclose(estimate.pairs["reward"], twin.reward, **close)
            np.testing.assert_allclose(estimate.pairs["limit"], twin.limit, **close)
            even = twin.mu / (twin.S * estimate.pairs["p_mass"])
            rows = np.repeat(even[:, None], twin.S, axis=1)
            for p, pair in enumerate(estimate.pairs):
                for entry in estimate.rows[pair["row"] : pair["row"] + pair["entries"]]:
                    rows[p, entry["index"]] += entry["probability"]
            np.testing.assert_allclose(rows, twin.P, **close)
            assert kernel.policy.tolist() == twin.policy.tolist()

    def test_samples_of_the_past_count(self):
        T, past = 80, [(0, 1, 1.0, 2), (1, 2, 0.0, 0), (0, 1, 0.5, 1)] * 7
        agent, twin = wd.MultiScale(SPACE, horizon=T, seed=4), Twin(SPACE, T, 4)
        for s, a, reward, after in past:
            agent.preload(s, a, reward, after)
            twin.observe(SPACE.pair(s, a), reward, after)
        twin.past, twin.nu[:] = len(past), 0
        assert agent.preloaded == 21
        steps = wd.simulate.Simulator(world(T), 4)
        for _ in range(T):
            s = steps.state
            a = agent.act(s)
            assert SPACE.pair(s, a) == twin.act(s)
            reward, after = steps.step(a)
            agent.observe(s, a, reward, after)
            twin.observe(SPACE.pair(s, a), reward, after)

    def test_epochs_end_for_both_reasons(self):
        run = wd.run(world(2000), wd.MultiScale(SPACE, horizon=2000), seed=1)
        assert set(run.episodes.reason[:-1]) == {"visits", "length"}
        assert run.episodes.length.sum() == 2000
        assert (np.diff(run.episodes.length)[run.episodes.reason[1:] == "length"] == 1).all()


class TestWindows:
    @pytest.mark.parametrize("horizon", [1, 11, 12, 13, 100, 4096, 4097, 100_000])
    def test_powers_of_two_then_everything(self, horizon):
        found = windows_for(SPACE, horizon)
        assert found[-1] == horizon
        assert found[:-1] == [2**i for i in range(40) if 12 <= 2**i < horizon]

    def test_counts_are_those_of_the_history(self):
        T = 700
        model = world(T, noise=wd.Noise.beta(2.0))
        agent = wd.MultiScale(SPACE, horizon=T, seed=2)
        run = wd.run(model, agent, seed=2)
        pairs = SPACE.offsets[run.states[:-1]] + run.actions
        experts = agent._learner_state.experts
        for k, W in enumerate(agent.windows):
            here = slice(max(0, T - W), T)
            visits = np.bincount(pairs[here], minlength=SPACE.n_pairs)
            assert experts.visits[:, k].tolist() == visits.tolist()
            sums = np.zeros(SPACE.n_pairs)
            np.add.at(sums, pairs[here], exact(run.rewards[here]))
            assert experts.rewards[:, k].tolist() == sums.tolist()  # to the last bit
            for p in range(SPACE.n_pairs):
                states, counts = experts.transitions(p)
                mine = run.states[1:][here][pairs[here] == p]
                table = np.bincount(mine, minlength=SPACE.n_states)
                assert counts[:, k].tolist() == table[states].tolist()
                assert table.sum() == counts[:, k].sum()


class TestLargeModels:
    def test_ten_thousand_states(self):
        """Counts are sparse: as many cells as were met, not as many as there could be."""
        S = 10_000
        space = wd.StateActions.uniform(S, 2)
        s = np.arange(S)
        rows = np.stack([(s + 1) % S, (s * 7 + 3) % S], axis=1).ravel()
        kernel = scipy.sparse.csr_array(
            (np.ones(2 * S), (np.arange(2 * S), rows)), shape=(2 * S, S)
        )
        mdp = wd.MDP(space, (np.arange(2 * S) % 7) / 7, kernel)
        T = 60_000
        model = wd.DriftingMDP.stationary(mdp, horizon=T)
        agent = wd.MultiScale(space, horizon=T)
        run = wd.run(model, agent, seed=0, steps=20_000)
        pairs = space.offsets[run.states[:-1]] + run.actions
        experts = agent._learner_state.experts
        assert experts.visits[:, -1].tolist() == np.bincount(pairs, minlength=2 * S).tolist()
        assert experts.kernel.cells.hashed
        assert int(experts.kernel.cells.met[0]) == np.unique(pairs).size
        again = wd.MultiScale.from_state(agent.state())
        one, two = (wd.run(model, a, seed=0, steps=50) for a in (agent, again))
        assert one.actions.tolist() == two.actions.tolist()

    def test_growing_changes_nothing(self, monkeypatch):
        from windage.agents.multiscale import windows

        model = world(600)
        whole = wd.run(model, wd.MultiScale(SPACE, horizon=600), seed=3)
        monkeypatch.setattr(windows, "_ROOM", 2)
        monkeypatch.setattr(windows, "_TABLE", 1)
        agent = wd.MultiScale(SPACE, horizon=600)
        steps = wd.simulate.Simulator(model, 3)
        for t in range(600):
            s = steps.state
            a = agent.act(s)
            assert (s, a) == (whole.states[t], whole.actions[t])
            agent.observe(s, a, *steps.step(a))
        assert agent._learner_state.experts.kernel.cells.hashed


def test_nothing_overflows_where_a_state_cannot_be_reached():
    """What is hoped for of a state that never comes grows, but stays finite."""
    space = wd.StateActions([2, 2, 2])
    rows = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    model = wd.DriftingMDP.stationary(wd.MDP(space, [0.1, 0, 0.9, 0, 0, 0], rows), horizon=20_000)
    agent = wd.MultiScale(space, horizon=20_000)
    run = wd.run(model, agent, seed=0)
    assert np.isfinite(agent._learner_state.kernel.estimate.u).all()
    assert run.mean_rewards[-5000:].mean() > 0.8


class TestInput:
    def test_rewards_outside_the_range_are_refused(self):
        agent = wd.MultiScale(SPACE, horizon=10)
        a = agent.act(0)
        with pytest.raises(wd.InputError, match=r"reward.*declare a wider reward_range"):
            agent.observe(0, a, 1.5, 1)
        with pytest.raises(wd.InputError, match=r"reward_range: None is no range"):
            wd.MultiScale(SPACE, horizon=10, reward_range=None)
        agent.observe(0, a, 1.0, 1)
        assert agent.t == 2

    def test_a_run_stops_before_such_a_reward(self):
        model = world(300, noise=wd.Noise.gaussian(1.0))
        agent = wd.MultiScale(SPACE, horizon=300)
        with pytest.raises(wd.InputError, match=r"reward at t=\d+: .*declare a wider reward_range"):
            wd.run(model, agent, seed=1)
        assert agent.t == agent._learner_state.t
        wide = wd.MultiScale(SPACE, horizon=300, reward_range=(-9, 9))
        assert wd.run(model, wide, seed=1).steps == 300

    def test_a_declared_range_changes_units_only(self):
        model = world(400)
        plain = wd.MultiScale(SPACE, horizon=400)
        wd.run(model, plain, seed=1)
        scaled = wd.MultiScale(SPACE, horizon=400, reward_range=(-2, 2))
        steps = wd.simulate.Simulator(model, 1)
        other = wd.MultiScale(SPACE, horizon=400)
        for _ in range(400):
            s = steps.state
            a = scaled.act(s)
            assert a == other.act(s)
            reward, after = steps.step(a)
            scaled.observe(s, a, 4 * reward - 2, after)
            other.observe(s, a, reward, after)
        for mine, theirs in zip(scaled.explain(1).actions, plain.explain(1).actions, strict=True):
            assert mine.value == pytest.approx(4 * theirs.value - 2, abs=1e-9)
            assert mine.mean_reward == pytest.approx(4 * theirs.mean_reward - 2)

    def test_preload_comes_first(self):
        agent = wd.MultiScale(SPACE, horizon=10)
        agent.act(0)
        with pytest.raises(wd.CallOrderError, match="has started to act"):
            agent.preload(0, 0, 0.5, 1)

    def test_a_horizon_that_does_not_fit(self):
        with pytest.raises(wd.ModelError, match=r"horizon: .*smaller horizon"):
            wd.MultiScale(SPACE, horizon=2**40 - 1)


class TestTelling:
    def test_an_explanation_adds_up(self):
        model = wd.envs.make("queue", horizon=3000)
        agent = wd.MultiScale(model.space, horizon=3000)
        with pytest.raises(wd.CallOrderError, match="nothing has been planned"):
            agent.explain(0)
        wd.run(model, agent, seed=1, steps=1500)
        before = agent.state()
        for s in range(model.space.n_states):
            told = agent.explain(s)
            assert sum(a.chosen for a in told.actions) == 1
            for a in told.actions:
                assert a.value == pytest.approx(a.mean_reward + a.hope + a.expected)
                assert 0 <= a.reward_samples <= a.visits + 1e-9
                assert 0 <= a.transition_samples <= a.visits + 1e-9
                assert a.hope >= 0
            assert told.reason in str(told)
        assert agent.state() == before

    def test_weights_through_time(self):
        model = wd.envs.make("random-drift", horizon=20_000, transition_budget=0.0, shape="jumps",
                             reward_budget=6.0, seed=5)  # fmt: skip
        agent = wd.MultiScale(model.space, horizon=20_000)
        wd.run(model, agent, seed=1)
        told = agent.forgetting()
        assert told.times[0] == 1
        assert 150 < told.times.size <= 200
        assert (np.diff(told.times) >= 100).all()
        for weights in (told.transitions, told.rewards):
            assert np.allclose(weights.sum(axis=1), 1.0)
        assert told.mean("rewards")[-1] < 0.5 * told.mean("transitions")[-1]
        assert agent.memory().shape == (2, model.space.n_pairs)
        told_of = [a for s in range(5) for a in agent.explain(s).actions]
        experts = agent._learner_state.experts
        kinds = experts.kernel.of_laws, experts.kernel.of_rewards
        for p, action in enumerate(told_of):
            memories = action.transition_memory, action.reward_memory
            for of, mine in zip(kinds, memories, strict=True):
                weights = of.overall * of.own[p]
                assert mine == pytest.approx(weights @ agent.windows / weights.sum())
            counted = [
                (of.overall * of.own[p]) @ experts.visits[p] / (of.overall @ of.own[p])
                for of in kinds
            ]
            assert agent.in_memory[p] == round(sum(counted) / 2)
        again = wd.MultiScale.from_state(agent.state()).forgetting()
        assert np.array_equal(again.rewards, told.rewards)
        with pytest.raises(wd.InputError, match="kind"):
            told.mean("both")


class TestState:
    @pytest.mark.parametrize("name", [
        "u", "policy", "epoch.number", "epoch.start", "epoch.before", "epoch.planned",
        "epoch.n_samples", "epoch.sample_due", "times", "samples", "plays", "limit", "factor",
        "allowed", "experts.clock", "experts.overall", "experts.cell_count", "experts.ring_cell",
        "experts.ring_reward", "experts.sums", "experts.pairs", "experts.discarded",
    ])  # fmt: skip
    def test_damage_is_refused(self, name):
        from windage.agents.state import pack, unpack

        agent = wd.MultiScale(SPACE, horizon=300)
        wd.run(world(300), agent, seed=1, steps=200)
        blob = unpack(agent.state())
        assert wd.MultiScale.from_state(pack(blob)).state() == agent.state()
        blob.arrays[name][...] = blob.arrays[name] * 0 - 3
        with pytest.raises(wd.StateError):
            wd.MultiScale.from_state(pack(blob))

    @pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")
    @pytest.mark.parametrize("kind", [wd.MultiScale, wd.MultiScaleGuarded])
    def test_a_state_with_other_constants_is_refused(self, kind):
        """Weights earned under one share mean something else under another."""
        earlier = replace(kind.constants, exploration=0.6, weighing=Weighing(share=1e-3))
        older = type("Older", (kind,), {"constants": earlier})
        agent = older(SPACE, horizon=300)
        wd.run(world(300), agent, seed=1, steps=200)
        assert older.from_state(agent.state()).state() == agent.state()
        with pytest.raises(
            wd.StateError,
            match=r"exploration = 0\.6, here 0\.65; share = 0\.001, here 0\.002\. Fix: use the ver",
        ):
            kind.from_state(agent.state())

    def test_a_state_that_does_not_say_its_constants_is_refused(self):
        from windage.agents.state import pack, unpack

        agent = wd.MultiScale(SPACE, horizon=300)
        wd.run(world(300), agent, seed=1, steps=200)
        blob = unpack(agent.state())
        del blob.values["constants"]
        with pytest.raises(wd.StateError, match="saved by an earlier version of multi-scale"):
            wd.agents.restore(pack(blob))

    def test_a_journal_of_earlier_constants_goes_on_by_todays(self, tmp_path, monkeypatch):
        """Its snapshots are refused, so all that happened is learned again."""
        from windage.live import history

        monkeypatch.setattr(history, "SNAPSHOT_STEPS", 50)
        earlier = replace(wd.MultiScale.constants, exploration=0.1)
        older = type("Older", (wd.MultiScale,), {"constants": earlier})
        steps, path = wd.simulate.Simulator(world(300), 1), tmp_path / "a.journal"
        twin = wd.MultiScale(SPACE, horizon=300)
        with wd.live.open(path, older(SPACE, horizon=300)) as live:
            for _ in range(200):
                s = steps.state
                decision = live.decide(s)
                reward, after = steps.step(decision.action)
                live.observe(decision.id, reward, after)
                twin.act(s)
                twin.observe(s, decision.action, reward, after)
        assert twin.overridden > 0
        with wd.live.open(path, wd.MultiScale(SPACE, horizon=300)) as live:
            assert live.agent.state() == twin.state()

    def test_an_interrupted_loop_keeps_its_clock(self):
        agent = wd.MultiScale(SPACE, horizon=300)
        model = world(300)

        def stop(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            wd.run(model, agent, seed=1, steps=120, progress=stop)
        assert agent.t == agent._learner_state.t == 121
        rest = wd.run(model, agent, seed=1)
        whole = wd.run(model, wd.MultiScale(SPACE, horizon=300), seed=1)
        assert rest.actions.tolist() == whole.actions[120:].tolist()
