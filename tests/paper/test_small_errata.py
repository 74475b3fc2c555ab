"""E15, E27, E30, E31 and E34: small slips, each with an example; the remarks; Theorem 2."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from paper import borl, proposition3
from windage.confidence.radii import Radii
from windage.envs.proposition3 import peril_replay
from windage.errors import listening
from windage.oracle.finite_horizon import finite_horizon
from windage.proof import hindsight


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
    for episode in again.episodes():
        var = again.variation_r[episode.start - 1]
        apart = np.abs(episode.rewards - episode.true_reward)
        failed += int((apart[~episode.seen] > var + 1e-12).sum())
        visited += int(episode.seen.sum())
        assert (apart[episode.seen] <= var + 1e-12).all()  # for visited pairs the lemma holds
        hope = episode.mean_reward + episode.reward_radius
        assert (
            episode.rewards[~episode.seen] <= 1
        ).all()  # and r~ = 1 holds the truth of the others
        assert (hope[episode.seen] >= episode.true_reward[episode.seen] - 1e-12).all()
    assert failed > 0
    assert visited > 0


def test_e15_lags_that_were_not_visited_do_not_count():
    """Arm 0 pays nothing at t = 1 and 1 ever after; it is tried at t = 1 only, for arm 1 pays.

    The proof averages abs(r_tau - r_{tau-w}) over all lags, as if the arm had been played at each.
    """
    T, W = 11, 10  # at t = 11 the window is 1..10: one step less or later, and the visit is lost
    rewards = np.ones((T, 2)) * [1.0, 0.95]
    rewards[0, 0] = 0.0
    model = wd.DriftingMDP(
        wd.StateActions([2]), range(1, T + 1), rewards, [np.ones((2, 1))] * T, horizon=T,
        noise="none",
    )  # fmt: skip
    with listening():
        agent = wd.SWUCRL2CW(model.space, horizon=T, window=W, widening=0.0, ties="lowest",
                             boundary="end", radii=Radii.paper().scaled(0.001))  # fmt: skip
    again = hindsight(wd.run(model, agent), model)
    assert again.pairs.tolist() == [0] + [1] * (T - 1)
    *_, episode = again.episodes()  # of the episode that starts at t = W + 1
    assert (episode.start, episode.visits[0]) == (W + 1, 1)
    apart = abs(episode.rewards[0] - episode.true_reward[0])
    over_lags = np.abs(episode.rewards[0] - rewards[: episode.start - 1, 0]).mean()
    assert apart > over_lags  # the step of the proof fails
    assert apart <= again.variation_r[episode.start - 1]  # its conclusion does not


def test_e27_the_delta_of_an_expected_regret_is_legal_and_costs_little():
    """delta = 1/T reaches the radii, which grow by less than sqrt2 over those of 0.05."""
    model = wd.envs.make("two-state-cosine", horizon=2000)
    used = {}
    for delta in (1 / 2000, 0.05):
        agent = wd.SWUCRL2CW(model.space, horizon=2000, window=400, widening=0.1, delta=delta,
                             ties="lowest")  # fmt: skip
        wd.run(model, agent, seed=1, steps=999)
        for s in range(2):
            for a, one in enumerate(agent.explain(s).actions):
                L = math.log(4 * 2000 / delta)
                n = max(1, one.visits)
                assert one.reward_radius == pytest.approx(2 * math.sqrt(2 * L / n), rel=1e-12)
                used.setdefault((s, a, n), []).append(one.reward_radius)
    pairs = [radii for radii in used.values() if len(radii) == 2]
    assert pairs
    assert all(usual < wide < math.sqrt(2) * usual for wide, usual in pairs)


def test_e30_without_drift_the_rate_of_the_introduction_is_nothing():
    """(B_r + B_p)^(1/4) = 0 there, and so would be the bound; something is lost all the same."""
    T = 3000
    model = wd.DriftingMDP.stationary(wd.envs.make("riverswim", horizon=T).at(1), horizon=T)
    B = model.budgets()
    assert (B.reward, B.transition) == (0, 0)
    D, space = model.max_diameter().upper, model.space
    S, A = space.n_states, space.mean_actions

    def rate(budget):
        return D * budget**0.25 * S ** (2 / 3) * A**0.5 * T**0.75

    with listening():
        agent = wd.SWUCRL2CW.tuned(space, horizon=T, reward_budget=0.0, transition_budget=0.0)
    lost = wd.dynamic_regret(wd.run(model, agent, seed=1), model).total
    print(f"E30: lost {lost:.0f}, as in the introduction {rate(0.0):.0f}, ours {rate(1.0):.0f}")
    assert rate(B.reward + B.transition) < lost  # as printed, whatever the constant
    assert lost <= rate(B.reward + B.transition + 1)
    assert wd.optimal_window(space, T, 0, 0) == pytest.approx(3 * S ** (2 / 3) * (A * T) ** 0.5)
    assert 0 < wd.optimal_widening(space, T, 0, 0) < 2


def test_e31_claim_2_of_proposition_3_needs_delta_not_too_small():
    """With delta = 1 / poly(W) diameters are of order sqrt(W / log W); with e^-W they are 1."""
    ratios = []
    for tau in (100, 1000, 10_000):
        replay, W = peril_replay(tau), 4 * tau
        best = proposition3.best_diameter(proposition3.poisoned(replay, Radii.paper(), 0.0))
        ratios.append(best / math.sqrt(W / math.log(W)))
        radius = Radii.paper().transition(
            replay.counts, space=proposition3.SPACE, horizon=W, delta=max(math.exp(-W), 1e-300)
        )
        if tau == 100:
            assert (np.asarray(radius) >= 2).all()  # every kernel is plausible: diameter 1
    assert max(ratios) / min(ratios) < 1.2
    region = proposition3.poisoned(peril_replay(1000), Radii.paper(), 0.0)
    for pair in range(4):  # an L1 radius moves half its size in mass
        other = 1 - int(proposition3.SPACE.state_of[pair])
        moved = region.best_row(pair, np.eye(2)[other])[other] - region.p_hat.toarray()[pair, other]
        assert moved == pytest.approx(region.radius[pair] / 2)


def blocks_of_proposition_1(T, W, last):
    """The sums of its proof: from t = 1, W + 1, ... to last(t, W), cut at T."""
    return [range(t, min(last(t, W), T) + 1) for t in range(1, T + 1, W)]


@pytest.mark.parametrize("W", [3, 10, 40])
def test_e34_the_blocks_of_proposition_1_add_up_only_as_we_read_them(W):
    """Sums to t - W + 1, as printed, are empty; those to t + W - 1 make up the whole horizon.

    And the bound of a block, which the proof sums, holds for each of ours.
    """
    model = wd.envs.make("two-state-cosine", horizon=100)
    gains, D = model.optimal_gains().values, model.max_diameter().upper
    ours = blocks_of_proposition_1(100, W, lambda t, W: t + W - 1)
    printed = blocks_of_proposition_1(100, W, lambda t, W: t - W + 1)
    assert sum(gains[t - 1] for block in ours for t in block) == pytest.approx(gains.sum())
    assert sum(gains[t - 1] for block in printed for t in block) < gains.sum() / 2
    for block in ours:
        first, last = block[0], block[-1]
        most = finite_horizon(model.space, model.source.at, last, first).values.max()
        B = model.budgets(first, last)
        drift = 2 * W * (B.reward + D * B.transition / 2)
        assert most <= gains[first - 1 : last].sum() + D + drift + 1e-9


def test_remark_with_one_state_widening_changes_nothing_and_evi_is_an_argmax():
    model = wd.envs.make("bandit", horizon=3000)
    made = []
    for eta in (0.0, 1.5):
        agent = wd.SWUCRL2CW.bandit(model.space, horizon=3000, reward_budget=3.0, widening=eta,
                                    radii=Radii.laplace())  # fmt: skip
        made.append(wd.run(model, agent, seed=1))
        for episode in hindsight(made[-1], model).episodes():
            hopes = np.where(
                episode.seen, np.clip(episode.mean_reward + episode.reward_radius, 0, 1), 1.0
            )
            played = made[-1].actions[episode.start - 1]
            assert hopes[played] == pytest.approx(hopes.max(), abs=1e-12)
            assert episode.gain == pytest.approx(hopes.max(), abs=1e-12)
    assert (made[0].actions == made[1].actions).all()


def test_theorem_2_regret_is_that_of_a_fixed_arm_and_the_masters():
    """Every block played again from BORL's state: its own arm earns what BORL earned.

    Another arm does not, so this is no identity; with it the two terms add up for every arm.
    """
    model = wd.envs.make("riverswim", horizon=3000)
    with listening():
        agent = wd.BORL(model.space, horizon=3000, seed=2, radii=Radii.laplace().scaled(0.1))
    run = wd.run(model, agent, seed=2)
    arms = borl.counterfactual(model, agent, run)
    starts, blocks = agent.blocks.start - 1, np.arange(len(agent.blocks))
    own = np.add.reduceat(run.mean_rewards, starts)
    assert arms[blocks, agent.blocks.arm] == pytest.approx(own, abs=1e-9)
    apart = np.abs(arms - own[:, None]).max(axis=0)
    assert (apart > 1.0).all()  # no fixed arm has BORL's rewards
    optimal = np.add.reduceat(model.optimal_gains().values, starts)
    fixed = (optimal[:, None] - arms).sum(axis=0)
    master = (arms - own[:, None]).sum(axis=0)
    regret = wd.dynamic_regret(run, model).total
    assert fixed + master == pytest.approx(regret, abs=1e-6 * 3000)


def test_theorem_2_the_masters_part_is_within_its_bound_where_it_says_something():
    """Two arms, one of which forgets at once, and blocks enough: choosing at random would fail.

    Rewards are exact and there is one state, so that an arm earns the same in every block.
    """
    space, H, n = wd.StateActions([2]), 20, 4000
    stay = np.ones((2, 1))
    model = wd.DriftingMDP.stationary(wd.MDP(space, [0.95, 0.05], stay), horizon=n * H,
                                      noise="none")  # fmt: skip
    options = {"horizon": n * H, "block_length": H, "radii": Radii.laplace().scaled(0.03)}
    arms = [(1, 0.0), (H, 0.0)]

    def earned(arms, blocks):
        with listening():
            agent = wd.BORL(space, arms=arms, seed=3, **options)
        return float(wd.run(model, agent, seed=3, steps=blocks * H).total_mean_reward) / H

    forgets, keeps = (earned([arm, arm], 50) / 50 for arm in arms)
    mixed = earned(arms, n)
    bound = 5.15 * math.sqrt(n * 2 * math.log(2)) + math.sqrt(n * 2 / math.log(2))
    print(f"Theorem 2: {n * keeps - mixed:.0f} <= {bound:.0f} < {n * (keeps - forgets) / 2:.0f}")
    assert n * keeps - mixed <= bound
    assert n * (keeps - forgets) / 2 > bound  # a master that draws at random
