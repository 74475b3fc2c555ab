"""E15, E27, E31 and E34: small slips, each with the smallest example; the remarks; Theorem 2."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from windage.agents.base import listening
from windage.envs.peril import peril_replay
from windage.hindsight import hindsight
from windage.learn.radii import Radii
from windage.paper import borl, perils


def drifting_pair():
    """One state, two arms; the rewards rise in small steps."""
    space, T = wd.StateActions([2]), 40
    rewards = np.linspace(0.2, 0.8, T)[:, None] * np.ones(2)
    return wd.DriftingMDP(
        space, range(1, T + 1), rewards, [np.ones((2, 1))] * T, horizon=T, noise="none"
    )


def test_e15_the_average_of_a_pair_never_visited_is_far_from_its_reward():
    """r_bar = 0 there, as defined: abs(r_t - r_bar) = r_t, however little r drifts."""
    model = drifting_pair()
    with listening():
        agent = wd.SWUCRL2CW(model.space, horizon=40, window=10, widening=0.0, ties="lowest",
                             radii=Radii.paper().scaled(0.001))  # fmt: skip
    again = hindsight(wd.run(model, agent), model)
    failed = visited = 0
    for look in again.looks():
        var = again.variation_r[look.start - 1]
        apart = np.abs(look.rewards - look.true_reward)
        failed += int((apart[~look.seen] > var + 1e-12).sum())
        visited += int(look.seen.sum())
        assert (apart[look.seen] <= var + 1e-12).all()  # for visited pairs the lemma holds
        hope = look.mean_reward + look.reward_radius
        assert (look.rewards[~look.seen] <= 1).all()  # and r~ = 1 holds the truth of the others
        assert (hope[look.seen] >= look.true_reward[look.seen] - 1e-12).all()
    assert failed > 0
    assert visited > 0


def test_e15_lags_that_were_not_visited_do_not_count():
    """The proof averages abs(r_tau - r_{tau-w}) over all lags; visits may all be old ones."""
    rewards = np.array([0.0] + [1.0] * 9)  # r_1 .. r_10; tau = 11, W = 10, r_11 = 1
    r_bar = rewards[0]  # the pair was visited at t = 1 only
    over_lags = np.abs(1.0 - rewards).mean()
    var = np.abs(np.diff(np.append(rewards, 1.0))).sum()
    assert abs(1.0 - r_bar) > over_lags  # the step of the proof fails
    assert abs(1.0 - r_bar) <= var  # its conclusion does not


def test_e27_a_theorem_with_high_probability_bounds_no_mean_unless_delta_is_small():
    """Regret T on the event that fails: delta T in the mean, linear for a fixed delta, 1 at 1/T.

    The price of delta = 1/T is a factor below sqrt2 in the radii.
    """
    space = wd.StateActions.uniform(states=6, actions=2)
    for T in (10**4, 10**6, 10**8):
        rate = T**0.75  # of Theorem 1
        assert 0.05 * T > rate if T >= 10**6 else T < 10**6  # noqa: SIM300
        assert (1 / T) * T <= 1
        here = {"space": space, "horizon": T}
        for radii in (Radii.paper(), Radii.proof(), Radii.laplace()):
            for name in ("reward", "transition"):
                wide, usual = (
                    getattr(radii, name)(100, **here, delta=delta) for delta in (1 / T, 0.05)
                )
                assert usual < wide < math.sqrt(2) * usual
    assert wd.SWUCRL2CW(space, horizon=10**6, window=100, widening=0.1, delta=1e-6).delta == 1e-6


def test_e31_claim_2_of_proposition_3_needs_delta_not_too_small():
    """With delta = 1 / poly(W) diameters are of order sqrt(W / log W); with e^-W they are 1."""
    ratios = []
    for tau in (100, 1000, 10_000):
        replay, W = peril_replay(tau), 4 * tau
        best = perils.best_diameter(perils.poisoned(replay, Radii.paper(), 0.0))
        ratios.append(best / math.sqrt(W / math.log(W)))
        radius = Radii.paper().transition(
            replay.counts, space=perils.SPACE, horizon=W, delta=max(math.exp(-W), 1e-300)
        )
        if tau == 100:
            assert (np.asarray(radius) >= 2).all()  # every kernel is plausible: diameter 1
    assert max(ratios) / min(ratios) < 1.2
    region = perils.poisoned(peril_replay(1000), Radii.paper(), 0.0)
    for pair in range(4):  # an L1 radius moves half its size in mass
        other = 1 - int(perils.SPACE.state_of[pair])
        moved = region.best_row(pair, np.eye(2)[other])[other] - region.p_hat.toarray()[pair, other]
        assert moved == pytest.approx(region.radius[pair] / 2)


def test_e34_the_printed_range_of_a_block_is_empty():
    """tau = t .. t - W + 1 has no terms for W > 2; t .. t + W - 1 has W."""
    for t, W in ((1, 3), (10, 5), (7, 100)):
        assert len(range(t, t - W + 1 + 1)) == 0
        assert len(range(t, t + W - 1 + 1)) == W


def test_remark_with_one_state_widening_changes_nothing_and_evi_is_an_argmax():
    model = wd.envs.make("bandit", horizon=3000)
    made = []
    for eta in (0.0, 1.5):
        agent = wd.SWUCRL2CW.bandit(model.space, horizon=3000, reward_budget=3.0, widening=eta,
                                    radii=Radii.laplace())  # fmt: skip
        made.append(wd.run(model, agent, seed=1))
        for look in hindsight(made[-1], model).looks():
            hopes = np.where(look.seen, np.clip(look.mean_reward + look.reward_radius, 0, 1), 1.0)
            played = made[-1].actions[look.start - 1]
            assert hopes[played] == pytest.approx(hopes.max(), abs=1e-12)
            assert look.gain == pytest.approx(hopes.max(), abs=1e-12)
    assert (made[0].actions == made[1].actions).all()


def test_theorem_2_regret_is_that_of_a_fixed_arm_and_the_masters():
    """For every arm, not only the best: the two terms add up, blocks starting where BORL's did."""
    model = wd.envs.make("riverswim", horizon=3000)
    with listening():
        agent = wd.BORL(model.space, horizon=3000, seed=2)
    run = wd.run(model, agent, seed=2)
    arms = borl.counterfactual(model, agent, run)
    starts = agent.blocks.start - 1
    optimal = np.add.reduceat(model.optimal_gains().values, starts)
    chosen = arms[np.arange(len(starts)), agent.blocks.arm]
    regret = wd.dynamic_regret(run, model).total
    for k in range(len(agent.arms)):
        fixed, master = (optimal - arms[:, k]).sum(), (arms[:, k] - chosen).sum()
        assert fixed + master == pytest.approx(regret, abs=1e-6 * 3000)
