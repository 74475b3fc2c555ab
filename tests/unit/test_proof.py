"""Hindsight against runs that were played step by step, with everything counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse

import windage as wd
from tests.paper.runs import SUITE, in_hindsight, played
from windage.proof import hindsight

RUNS = pytest.mark.parametrize("name", SUITE)


@RUNS
def test_episodes_are_those_played_step_by_step(name):
    """Bias, gain, visits and sets of every episode, beside act and observe called one by one."""
    witness, seen = played(name), in_hindsight(name)
    assert (seen.pairs == witness.pairs).all()
    assert (seen.number == witness.number).all()
    assert (seen.blocks == witness.block).all()
    seen_episodes = list(seen.episodes())
    assert len(seen_episodes) == len(witness.starts)
    for episode, start in zip(seen_episodes, witness.starts, strict=True):
        assert (episode.start, episode.gain) == (start.tau, start.gain)
        assert np.array_equal(episode.bias, start.bias)
        assert np.array_equal(episode.visits, start.N)
        region = start.region
        assert (episode.seen == region.visited).all()
        assert episode.p_hat[episode.seen] == pytest.approx(
            region.p_hat.toarray()[episode.seen], abs=1e-12
        )
        width = np.minimum(episode.transition_radius + episode.widening, 2.0)
        assert width[episode.seen] == pytest.approx(region.width[episode.seen], abs=1e-12)
        hope = np.where(
            episode.seen, np.clip(episode.mean_reward + episode.reward_radius, 0, 1), 1.0
        )
        assert hope == pytest.approx(region.reward_upper, abs=1e-12)


@pytest.mark.parametrize("name", ["river", "ragged", "peril"])
def test_averages_and_variations_from_their_definitions(name):
    """r_bar, p_bar, var_r and var_p by loops over the window, step by step."""
    seen = in_hindsight(name)
    model, W, T = seen.model, seen.window, seen.run.steps
    models = [model.at(t) for t in range(1, T + 1)]
    steps = [
        (np.abs(b.rewards - a.rewards).max(), np.abs(b.transitions - a.transitions).sum(1).max())
        for a, b in itertools.pairwise(models)
    ]
    for episode in seen.episodes(biases=False):
        if episode.number % 7 and episode.number > 3:
            continue
        times = range(max(1, episode.start - W), episode.start)
        for pair in range(model.space.n_pairs):
            mine = [q for q in times if seen.pairs[q - 1] == pair]
            n = max(1, len(mine))
            r_bar = sum(models[q - 1].rewards[pair] for q in mine) / n
            p_bar = sum(
                (models[q - 1].transitions[pair] for q in mine), np.zeros(episode.bias.size)
            )
            assert episode.true_reward[pair] == pytest.approx(r_bar, abs=1e-12)
            assert episode.p_bar[pair] == pytest.approx(p_bar / n, abs=1e-12)
            earned = sum(seen.run.rewards[q - 1] for q in mine) / n
            assert episode.mean_reward[pair] == pytest.approx(earned, abs=1e-12)
        t = episode.last
        var = np.sum(
            [(0.0, 0.0)] + [steps[q - 1] for q in range(max(1, episode.start - W), t)], axis=0
        )
        assert seen.variation_r[t - 1] == pytest.approx(var[0], abs=1e-9)
        assert seen.variation_p[t - 1] == pytest.approx(var[1], abs=1e-9)
        assert episode.rewards == pytest.approx(models[episode.start - 1].rewards)
        assert (episode.transitions == models[episode.start - 1].transitions).all()


def test_true_rows_of_all_kinds_of_models():
    dense = wd.envs.make("riverswim", horizon=300)
    knots = [1, 150, 300]
    kernels = [scipy.sparse.csr_array(dense.at(t).transitions) for t in knots]
    rewards = [dense.at(t).rewards for t in knots]
    for model in (
        dense,
        wd.DriftingMDP.from_function(dense.source.at, space=dense.space, horizon=300),
        wd.DriftingMDP(dense.space, knots, rewards, kernels, horizon=300),
    ):
        agent = wd.SWUCRL2CW(model.space, horizon=300, window=50, widening=0.3)
        seen = hindsight(wd.run(model, agent, seed=2), model)
        for t in range(1, 301, 13):
            kernel = model.at(t).transitions
            kernel = kernel if isinstance(kernel, np.ndarray) else kernel.toarray()
            assert seen.rows[t - 1] == pytest.approx(kernel[seen.pairs[t - 1]], abs=1e-14)
        assert all(episode.covers_transitions for episode in seen.episodes())


def a_run(**options):
    model = wd.envs.make("two-state-cosine", horizon=200)
    agent = wd.SWUCRL2CW(model.space, horizon=200, window=50, widening=0.3, **options)
    return model, agent


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m, a: "a run", "is not a Run"),
        (lambda m, a: wd.run(m, a, record="totals"), "records 'totals'"),
        (lambda m, a: (wd.run(m, a, steps=10), wd.run(m, a))[1], "starts at t = 11"),
        (lambda m, a: wd.run(m, wd.agents.make("random", m.space, horizon=200)), "that of random"),
        (lambda m, a: wd.run(m, _Own()), "an agent of your own"),
        (lambda m, a: wd.run(m, wd.SWUCRL2CW(m.space, horizon=200, window=9, widening=0.1,
                                             reward_range=(0, 2))), "rewards in [0, 1]"),
    ],
)  # fmt: skip
def test_runs_the_proof_does_not_speak_of_are_refused(make, words):
    model, agent = a_run()
    with pytest.raises(wd.InputError, match=words.replace("[", r"\[").replace("]", r"\]")) as err:
        hindsight(make(model, agent), model)
    assert "run" in str(err.value)
    assert "Fix:" in str(err.value)


class _Own:
    def act(self, s):
        return 0

    def observe(self, s, a, reward, s_next):
        pass


def test_sets_that_are_no_balls_are_refused():
    model = wd.envs.make("two-state-cosine", horizon=200)
    with pytest.warns(wd.GuaranteeWarning):
        agent = wd.SWUCRL2CW(model.space, horizon=200, window=50, widening=0.3, radii="bernstein")
    with pytest.raises(wd.InputError, match="L1 sets"):
        hindsight(wd.run(model, agent), model)


def test_an_agent_that_knew_more_is_found_out():
    """A preloaded agent plays other episodes than a new one."""
    model, agent = a_run()
    for _ in range(30):
        agent.preload(0, 0, 1.0, 1)
    run = wd.run(model, agent, seed=3)
    with pytest.raises(wd.InputError, match="takes other steps"):
        list(hindsight(run, model).episodes())


def test_a_run_says_who_made_it():
    model, agent = a_run(seed=7, ties="lowest")
    run = wd.run(model, agent, steps=5)
    assert run.agent["id"] == "swucrl2-cw"
    made = {name: run.agent[name] for name in ("window", "widening", "seed", "ties", "horizon")}
    assert made == {"window": 50, "widening": 0.3, "seed": 7, "ties": "lowest", "horizon": 200}
    assert wd.run(model, _Own(), steps=5).agent is None
