"""E8, E9 and E40: sets that are empty, or no sets, as printed; and a widening of 0."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import windage as wd

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

PAIRS = wd.StateActions([2, 2])
T = 5_000


def usual_inner_maximum(p, d, u):
    """The L1 maximum as it is usually written: it takes p for a distribution."""
    order = sorted(range(len(u)), key=lambda s: u[s])
    q, best = list(p), order[-1]
    q[best] = min(1.0, p[best] + d / 2)
    for s in order:
        if sum(q) <= 1:
            break
        q[s] = max(0.0, q[s] - (sum(q) - 1))
    return q


def knows_half(scale, widening=0.0, **options):
    """An agent that has played action 0 of both states four times, and action 1 never."""
    agent = wd.SWUCRL2CW(
        PAIRS, horizon=T, window=100, widening=widening, radii=wd.Radii.paper().scaled(scale),
        ties="lowest", **options,
    )  # fmt: skip
    for _ in range(2):
        for s in (0, 1):
            agent.preload(s, 0, 0.5, s)
            agent.preload(s, 0, 0.5, 1 - s)
    return agent


def test_e8_the_printed_row_of_a_pair_never_visited_is_no_distribution():
    """p_hat = counts / N+ = 0. With the printed radius all is well; times 0.05 the mass is .36."""
    here = {"space": PAIRS, "horizon": T, "delta": 0.05}
    wide, tight = (wd.Radii.paper().scaled(c).transition(0, **here) for c in (1.0, 0.05))
    u = [0.0, 1.0]
    assert wide > 2
    assert sum(usual_inner_maximum([0, 0], wide, u)) == 1.0
    assert sum(usual_inner_maximum([0, 0], tight, u)) == pytest.approx(0.36, abs=0.005)
    agent = knows_half(0.05)
    agent.act(0)
    region = agent.region()
    assert region.visited.tolist() == [True, False, True, False]
    for pair in range(4):
        assert region.best_row(pair, np.array(u)).sum() == pytest.approx(1.0, abs=1e-15)
    assert region.best_row(1, np.array(u)).tolist() == [0.0, 1.0]  # the whole simplex
    assert region.reward_upper[[1, 3]].tolist() == [1.0, 1.0]


def test_e8_as_printed_the_unknown_is_never_tried():
    """Scale .01: with p_hat = 0 and r_hat = 0 the unknown action looks worth .10, the known .54.

    Ours: it may pay 1 and lead anywhere, so it is what an optimist plays.
    """
    L = math.log(4 * T / 0.05)
    rad_r = 0.01 * 2 * math.sqrt(2 * L)
    printed = {"known": 0.5 + rad_r / 2, "unknown": min(1.0, 0.0 + rad_r)}
    assert printed["unknown"] < printed["known"] < 1
    assert knows_half(0.01).act(0) == 1


@pytest.mark.filterwarnings("ignore:a mean reward of:windage.errors.ParameterWarning")
@pytest.mark.parametrize(("reward", "hope"), [(50.0, 1.0), (1.5, 1.0), (-50.0, 0.0), (-0.5, 0.0)])
def test_e9_rewards_beyond_the_unit_interval_empty_the_printed_set(reward, hope):
    """[0, 1] and [r_hat - rad, r_hat + rad] do not meet; the optimistic reward is clipped."""
    scale, n = 0.01, 9
    agent = wd.SWUCRL2CW(
        PAIRS, horizon=T, window=100, widening=0.1, radii=wd.Radii.paper().scaled(scale)
    )
    for _ in range(n):
        agent.preload(0, 0, reward, 0)
    agent.act(0)
    rad = scale * 2 * math.sqrt(2 * math.log(4 * T / 0.05) / n)
    low, high = max(0.0, reward - rad), min(1.0, reward + rad)
    assert low > high  # H_r as printed
    assert agent.region().reward_upper[0] == hope
    assert agent.explain(0).actions[0].mean_reward == pytest.approx(reward)


def test_e9_it_happens_with_the_noise_of_the_paper():
    """Rewards of mean .9 with unit normal noise, and tight radii: a mean above 1 + rad is common.

    Ours goes on: optimistic rewards stay in [0, 1], and so do the gains.
    """
    mdp = wd.MDP(PAIRS, [0.9] * 4, [[0.5, 0.5]] * 4)
    model = wd.DriftingMDP.stationary(mdp, horizon=400, noise=wd.Noise.gaussian(1.0))
    agent = wd.SWUCRL2CW(
        PAIRS, horizon=400, window=50, widening=0.1, radii=wd.Radii.paper().scaled(0.02),
        warm_start=False,
    )  # fmt: skip
    run = wd.run(model, agent, seed=3)
    L = math.log(4 * 400 / 0.05)
    empty = 0
    for tau in run.episodes.start:
        past = slice(max(0, tau - 1 - 50), tau - 1)
        for pair in range(4):
            s, a = divmod(pair, 2)
            mine = run.rewards[past][(run.states[past] == s) & (run.actions[past] == a)]
            if mine.size:
                rad = 0.02 * 2 * math.sqrt(2 * L / mine.size)
                empty += not -rad <= mine.mean() <= 1 + rad
    print(f"E9: {empty} printed reward sets of {4 * len(run.episodes)} are empty")
    assert empty > 0
    assert run.episodes.gain.max() <= 1.0
    assert run.episodes.gain.min() >= 0.0


@pytest.mark.filterwarnings("default::windage.errors.GuaranteeWarning")
def test_e40_no_widening_is_legal_and_said_to_be_outside_the_theorem():
    """Theorem 1 has B_p W / eta: nothing for eta = 0. The algorithm does not mind."""
    with pytest.warns(wd.GuaranteeWarning, match="positive widening"):
        naive = wd.SWUCRL2CW(PAIRS, horizon=T, window=100, widening=0.0, ties="lowest")
    model = wd.envs.make("two-state-cosine", horizon=T)
    run = wd.run(model, naive, seed=1)
    named = wd.agents.SWUCRL2(PAIRS, horizon=T, window=100, ties="lowest")
    again = wd.run(model, named, seed=1)
    assert run.steps == T
    assert run.actions.tolist() == again.actions.tolist()
    assert run.episodes.start.tolist() == again.episodes.start.tolist()
    assert (naive.region().widening == 0.0).all()


def test_e40_one_state_is_legal():
    """S = 1: the theorem's remark. EVI is the argmax of the optimistic rewards, in one sweep."""
    space = wd.StateActions([3])
    agent = wd.SWUCRL2CW(
        space, horizon=300, window=60, widening=0.0, ties="lowest",
        radii=wd.Radii.paper().scaled(0.1),
    )  # fmt: skip
    mdp = wd.MDP(space, [0.2, 0.8, 0.4], np.ones((3, 1)))
    run = wd.run(wd.DriftingMDP.stationary(mdp, horizon=300), agent, seed=2)
    L = math.log(3 * 300 / 0.05)
    for tau, gain, span in zip(
        run.episodes.start, run.episodes.gain, run.episodes.span, strict=True
    ):
        past = slice(max(0, tau - 61), tau - 1)
        hopes = []
        for a in range(3):
            mine = run.rewards[past][run.actions[past] == a]
            radius = 0.1 * 2 * math.sqrt(2 * L / max(1, mine.size))
            hopes.append(min(1.0, mine.mean() + radius) if mine.size else 1.0)
        assert gain == pytest.approx(max(hopes), abs=1e-12)
        assert run.actions[tau - 1] in [a for a in range(3) if hopes[a] >= max(hopes) - 1e-12]
        assert span == 0.0
    assert run.episodes.sweeps.max() == 1


def test_sets_are_the_whole_simplex_from_width_two_on_not_one():
    """The L1 diameter of the simplex is 2; in total variation it would be 1.

    Action 0 of state 0 was seen to stay, action 1 to lead to state 1, which pays 1/2. A width of
    1.5 moves 3/4 of the mass, so that action 1 is better, by (1 - 3/4) / 2; with 2 they are tied.
    """
    for widening, vacuous, action in ((1.5, 0.0, 1), (2.0, 1.0, 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wd.ParameterWarning)  # eta = 2: myopic (E7)
            agent = wd.SWUCRL2CW(
                wd.StateActions([2, 1]), horizon=100, window=100, widening=widening,
                radii=wd.Radii.paper().scaled(0.0), ties="lowest",
            )  # fmt: skip
        for s, a, reward, after in ((0, 0, 0.0, 0), (0, 1, 0.0, 1), (1, 0, 0.5, 1)):
            agent.preload(s, a, reward, after)
        for t in range(1, 9):  # visits of state 1 double: episodes at 1, 2, 4 and 8
            agent.act(1)
            agent.observe(1, 0, 0.5, 1 if t < 8 else 0)
        assert agent.act(0) == action
        assert (agent.episode.start, agent.episode.vacuous) == (8, vacuous)
        assert agent.episode.gain == pytest.approx(0.5, abs=1e-12)
