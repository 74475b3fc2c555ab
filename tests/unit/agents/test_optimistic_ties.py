"""Which of several equally hopeful actions is played: four rules, and the slack."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import windage as wd
from tests.models import draw_model
from windage import reference

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

SPACE = wd.StateActions([3, 1, 4])
FALSE_ALARM = 1e-6


def first_actions(seed, ties="random"):
    """The actions of the first episode in every state: all are tied, nothing was seen."""
    agent = wd.SWUCRL2CW(SPACE, horizon=10, window=5, widening=0.1, ties=ties, seed=seed)
    actions = []
    for s in range(3):
        actions.append(agent.act(s))
        agent.withdraw()
    return actions


def chi_square(counts):
    """p-value of the hypothesis that all are equally likely."""
    expected = counts.sum() / counts.size
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1))


def test_random_ties_are_uniform_and_independent():
    """3,000 seeds; each test rejects a fair rule with probability 1e-6.

    A rule that shares one draw between states puts all pairs of actions on a staircase: of twelve
    cells six stay empty, and the last test rejects it with certainty. One that takes the next
    action half as often as it should has chi-square noncentrality above 100 and is rejected with
    power above 1 - 1e-9.
    """
    seen = np.array([first_actions(seed) for seed in range(3000)])
    assert chi_square(np.bincount(seen[:, 0], minlength=3)) > FALSE_ALARM
    assert (seen[:, 1] == 0).all()
    assert chi_square(np.bincount(seen[:, 2], minlength=4)) > FALSE_ALARM
    assert chi_square(np.bincount(4 * seen[:, 0] + seen[:, 2], minlength=12)) > FALSE_ALARM


def test_random_ties_are_drawn_anew_in_every_episode():
    """With W = 1 every step starts one; printed radii leave all actions tied for 400 steps."""
    model = wd.DriftingMDP.stationary(
        wd.MDP(wd.StateActions([4]), [0.5] * 4, [[1.0]] * 4), horizon=400
    )
    agent = wd.SWUCRL2CW(model.space, horizon=400, window=1, widening=0.1, seed=4)
    run = wd.run(model, agent, seed=0)
    assert chi_square(np.bincount(run.actions, minlength=4)) > FALSE_ALARM
    pairs = 4 * run.actions[:-1] + run.actions[1:]
    assert chi_square(np.bincount(pairs, minlength=16)) > FALSE_ALARM


def test_random_ties_hang_on_the_seed_alone():
    assert first_actions(7) == first_actions(7)
    model = draw_model(np.random.default_rng(3), 1)
    made = [wd.SWUCRL2CW.oblivious(model.space, horizon=model.horizon, seed=7) for _ in range(2)]
    a, b = (wd.run(model, agent, seed=1) for agent in made)
    assert a.actions.tolist() == b.actions.tolist()
    assert len({tuple(first_actions(seed)) for seed in range(50)}) > 8


def test_the_world_does_not_move_the_ties():
    """Paired: where everything is tied, the same seed plays the same in the same states."""
    a, b = (wd.SWUCRL2CW(SPACE, horizon=50, window=1, widening=2.0, seed=3) for _ in range(2))
    rng, state = np.random.default_rng(0), 0
    for _ in range(40):
        after = int(rng.integers(3))
        action = a.act(state)
        assert b.act(state) == action
        a.observe(state, action, 0.0, after)
        b.observe(state, action, 1.0, after)
        state = after


def test_lowest_is_the_first_of_the_tied():
    assert first_actions(1, "lowest") == first_actions(9, "lowest") == [0, 0, 0]


def tied_sets(agent, model, seed):
    """Play; yield action, the reference's values of all actions and the last one played there.

    Values come from the history by cold EVI at each episode start.
    """
    twin = reference.SWUCRL2CW(
        model.space, horizon=model.horizon, window=agent.window, widening=agent.widening,
        scale=agent.radii.spec()["scale"],
    )  # fmt: skip
    fresh, policy, ends = set(), {}, model.space.offsets
    run = wd.run(model, agent, seed=seed)
    starts = set(run.episodes.start.tolist())
    for i in range(run.steps):
        s, a = int(run.states[i]), int(run.actions[i])
        if i + 1 in starts:
            twin.begin_episode()
            fresh.clear()
        if s not in fresh:
            fresh.add(s)
            yield a, twin.plan.values[ends[s] : ends[s + 1]].tolist(), policy.get(s)
            policy[s] = a
        twin.observe(s, a, float(run.rewards[i]), int(run.states[i + 1]))


@pytest.mark.parametrize("ties", ["lowest", "random", "previous", "sampled"])
@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_whole_runs_stay_inside_the_slack(ties, slack):
    """Every action is within the slack of the best, and the one its rule names among those."""
    beyond = kept = switched = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model = draw_model(rng, 700 + seed)
        W, scale, eta = int(rng.integers(5, 60)), 0.15, 0.2
        agent = wd.SWUCRL2CW(
            model.space, horizon=model.horizon, window=W, widening=eta, ties=ties, slack=slack,
            radii=wd.Radii.paper().scaled(scale), warm_start=False, seed=seed,
        )  # fmt: skip
        for a, value, before in tied_sets(agent, model, seed):
            bar = max(value) - slack
            tied = [i for i, v in enumerate(value) if v >= bar - 1e-12]
            if any(1e-13 < abs(v - bar) < 1e-9 for v in value):
                continue  # on the edge of what counts as rounding
            assert a in tied
            beyond += value[a] < max(value) - 1e-9
            if ties == "lowest":
                assert a == tied[0]
            if ties == "previous" and before is not None:
                assert a == (before if before in tied else tied[0])
                kept += before in tied and before != tied[0]
                switched += before not in tied
    assert (beyond > 0) == (slack > 0)
    if ties == "previous":
        assert switched > 0
        assert kept > 0 or slack == 0


def test_a_slack_admits_exactly_the_values_within_it():
    """One state, rewards known by hand: r_hat + radius is the value, the bar is max - slack."""
    space = wd.StateActions([4])
    means = [0.5, 0.45, 0.4, 0.39]
    for slack, expected in ((0.0, [0]), (0.05, [0, 1]), (0.1, [0, 1, 2]), (0.2, [0, 1, 2, 3])):
        chosen = set()
        for seed in range(40):
            agent = wd.SWUCRL2CW(
                space, horizon=100, window=100, widening=0.0, slack=slack + 1e-9, seed=seed,
                radii=wd.Radii.paper().scaled(0.01),
            )  # fmt: skip
            for a, mean in enumerate(means):
                for _ in range(10):
                    agent.preload(0, a, mean, 0)
            chosen.add(agent.act(0))
            tied = [report.action for report in agent.explain(0).actions if report.tied]
            assert tied == expected
            assert agent.episode.ties == (len(expected) > 1)
        assert chosen == set(expected)


def test_sampled_ties_follow_the_evidence():
    """Two tied actions, one of which paid 1 and one 0 in 30 trials each: it plays the better.

    P(Beta(1, 31) > Beta(31, 1)) < 1e-15, so a single miss in 50 draws is an error.
    """
    space = wd.StateActions([2])
    for seed in range(50):
        agent = wd.SWUCRL2CW(
            space, horizon=1000, window=100, widening=0.1, ties="sampled", seed=seed
        )
        for _ in range(30):
            agent.preload(0, 0, 0.0, 0)
            agent.preload(0, 1, 1.0, 0)
        assert agent.act(0) == 1
        assert agent.episode.ties == 1
