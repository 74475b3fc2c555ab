"""SWUCRL2-CW as it is made: the paper's tunings, words for numbers, and the edges of W (E1)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import windage as wd
from windage.errors import ParameterWarning

RAGGED = wd.StateActions([1, 4, 2])  # S = 3, SA = 7: A = 7/3 (E32)


def best(S, SA, T, B_r, B_p):
    """W* and eta* of Theorem 1 as real numbers, from the definition."""
    W = 3 * S ** (2 / 3) * math.sqrt(SA / S) * math.sqrt(T) / math.sqrt(B_r + B_p + 1)
    return W, math.sqrt((B_p + 1) * W / T)


@pytest.mark.parametrize(("B_r", "B_p"), [(0, 0), (1, 1), (3.5, 0.25)])
def test_tuned(B_r, B_p):
    agent = wd.SWUCRL2CW.tuned(RAGGED, horizon=20_000, reward_budget=B_r, transition_budget=B_p)
    W, eta = best(3, 7, 20_000, B_r, B_p)
    assert agent.window == round(W)
    assert agent.widening == pytest.approx(eta, rel=1e-12)


def test_windows_are_cut_to_the_horizon_and_eta_comes_from_before_the_cut():
    """E6: W* = 20439 for S = 100, A = 10, T = 1e4."""
    space = wd.StateActions.uniform(100, 10)
    agent = wd.SWUCRL2CW.tuned(space, horizon=10_000, reward_budget=0, transition_budget=0)
    W, eta = best(100, 1000, 10_000, 0, 0)
    assert round(W) == 20439
    assert agent.window == 10_000
    assert agent.widening == pytest.approx(eta, rel=1e-12)


def test_widenings_are_cut_at_two():
    """E7: eta* = 2.98 for S = 20, A = 4, T = 5000, B_p = 200."""
    space = wd.StateActions.uniform(20, 4)
    assert best(20, 80, 5000, 0, 200)[1] == pytest.approx(2.98, abs=0.005)
    with pytest.warns(ParameterWarning, match="a widening of 2 makes every kernel plausible"):
        agent = wd.SWUCRL2CW.tuned(space, horizon=5000, reward_budget=0, transition_budget=200)
    assert agent.widening == 2.0


def test_oblivious():
    agent = wd.SWUCRL2CW.oblivious(RAGGED, horizon=20_000)
    W = 3 ** (2 / 3) * math.sqrt(7 / 3) * math.sqrt(20_000)
    assert agent.window == round(W)
    assert agent.widening == pytest.approx(math.sqrt(W / 20_000), rel=1e-12)


@pytest.mark.parametrize("B_r", [0.0, 0.5, 40.0])
def test_bandit(B_r):
    space, T = wd.StateActions([5]), 3000
    agent = wd.SWUCRL2CW.bandit(space, horizon=T, reward_budget=B_r)
    W = T if B_r == 0 else 5 ** (1 / 3) * T ** (2 / 3) * B_r ** (-2 / 3)
    assert agent.window == min(T, round(W))


def test_words_for_numbers():
    T, budgets = 20_000, SimpleNamespace(reward=1.0, transition=2.0)
    W, eta = best(3, 7, T, 1, 2)
    oblivious = wd.SWUCRL2CW.oblivious(RAGGED, horizon=T)

    def numbers(**options):
        agent = wd.agents.make("swucrl2-cw", RAGGED, horizon=T, **options)
        return agent.window, agent.widening

    assert numbers(budgets=budgets) == (round(W), pytest.approx(eta))
    with pytest.warns(wd.ParameterWarning, match="there are no budgets"):
        assert numbers() == (oblivious.window, oblivious.widening)
    assert numbers(budgets=budgets, window=7) == (7, pytest.approx(eta))
    mixed = {"window": "oblivious", "widening": "tuned"}
    assert numbers(budgets=budgets, **mixed) == (oblivious.window, pytest.approx(eta))
    naive = wd.agents.make("swucrl2", RAGGED, horizon=T, budgets=budgets)
    assert (naive.window, naive.widening) == (round(W), 0.0)


def test_arrays_of_widenings_are_kept_and_copied():
    eta = np.linspace(0.1, 0.7, 7)
    agent = wd.SWUCRL2CW(RAGGED, horizon=50, window=10, widening=eta)
    eta[:] = 0
    assert agent.widening.tolist() == np.linspace(0.1, 0.7, 7).tolist()
    again = wd.agents.restore(agent.state())
    assert again.widening.tolist() == agent.widening.tolist()
    assert wd.SWUCRL2CW(RAGGED, horizon=50, window=10, widening=[0.25] * 7).widening == 0.25


@pytest.mark.parametrize(
    ("window", "boundary", "starts"),
    [
        (1, "start", [1, 2, 3, 4, 5, 6, 7]),
        (1, "end", [1, 2, 3, 4, 5, 6, 7]),
        (3, "start", [1, 3, 6]),
        (3, "end", [1, 4, 7]),
        (7, "start", [1, 7]),
        (7, "end", [1]),
    ],
)
def test_blocks_start_at_multiples_of_w_or_after_them(window, boundary, starts):
    """E1, on a state with so many actions that none is played twice: only boundaries count."""
    space = wd.StateActions([1] * 8)
    agent = wd.SWUCRL2CW(space, horizon=7, window=window, widening=0.1, boundary=boundary)
    found = []
    for t in range(1, 8):
        agent.act(t - 1)
        if agent.episode.start == t:
            found.append(t)
        agent.observe(t - 1, 0, 0.5, t)
    assert found == starts
    with pytest.raises(wd.HorizonReached):
        agent.act(7)


def test_both_reasons_at_once_start_one_episode():
    """E38: one state and action, W = 4; visits and boundaries fall together at t = 4 and 8."""
    model = wd.DriftingMDP.stationary(wd.MDP(wd.StateActions([1]), [0.5], [[1.0]]), horizon=10)
    agent = wd.SWUCRL2CW(model.space, horizon=10, window=4, widening=0.1)
    episodes = wd.run(model, agent).episodes
    # N+ is 1, 1, 3, 4, 4, ...: doubling ends after 1, 1, then the boundary comes first
    assert episodes.start.tolist() == [1, 2, 3, 4, 7, 8]
    assert episodes.reason.tolist() == [
        "visits", "visits", "boundary", "visits", "boundary", "open",
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")
def test_the_naive_window_is_the_same_learner_without_widening():
    model = wd.envs.make("riverswim", horizon=2000)
    options = {"window": 200, "ties": "lowest", "radii": {"kind": "paper", "scale": 0.1}}
    naive = wd.agents.SWUCRL2(model.space, horizon=2000, **options)
    plain = wd.SWUCRL2CW(model.space, horizon=2000, widening=0.0, **options)
    a, b = wd.run(model, naive, seed=1), wd.run(model, plain, seed=1)
    assert a.actions.tolist() == b.actions.tolist()
    assert naive.requires == plain.requires == ("B_r", "B_p")
    assert type(wd.agents.restore(naive.state())) is wd.agents.SWUCRL2


def test_rewards_that_all_look_alike_are_noticed_once():
    """Rewards of a hundred without a declared range: every optimistic reward is 1."""
    agent = wd.SWUCRL2CW(wd.StateActions([2]), horizon=200, window=50, widening=0.1)

    def live() -> None:
        for _ in range(200):
            agent.observe(0, agent.act(0), 100.0, 0)

    with pytest.warns(wd.ParameterWarning, match="declare a reward_range") as given:
        live()
    assert len(given) == 1


def test_a_declared_range_needs_no_warning():
    agent = wd.SWUCRL2CW(
        wd.StateActions([2]), horizon=200, window=50, widening=0.1, reward_range=(0, 200)
    )
    for _ in range(200):
        agent.observe(0, agent.act(0), 100.0, 0)
    told = agent.explain(0)
    assert told.actions[0].mean_reward == pytest.approx(100.0)
    assert told.gain == pytest.approx(200.0)


def test_the_naive_window_decides_its_widening_itself():
    with pytest.raises(wd.InputError, match="no such parameter"):
        wd.agents.make("swucrl2", wd.StateActions([2, 2]), horizon=10, widening=0.1)
    assert "widening" not in wd.agents.parameters(wd.agents.get("swucrl2"))


def test_budgets_that_are_none():
    with pytest.raises(wd.InputError, match="budgets"):
        wd.agents.make("swucrl2-cw", wd.StateActions([2, 2]), horizon=10, budgets=(1, 1))
