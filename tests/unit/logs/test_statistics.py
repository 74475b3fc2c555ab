"""What is said of a log, against literal twins and simulated logs whose truth is known."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

import windage as wd
from benchmarks.inspection import stock
from tests.conftest import RELIABILITY
from windage.logs import Log, drift_tests
from windage.logs.counts import StationaryNull, count_blocks
from windage.logs.drift_tests import LEAST_STEPS, budgets, half_tests, segment
from windage.logs.fitting import fit
from windage.logs.inspection import NO_REGRET


def simulated(model, seed=0, agent="random"):
    made = wd.agents.make(agent, model.space, horizon=model.horizon, seed=seed)
    run = wd.run(model, made, seed=seed)
    return Log.from_arrays(
        run.states[:-1], run.actions, run.rewards, run.states[1:], reward_range=(0, 1)
    )


def base(seed=0, states=4, actions=2):
    rng = np.random.default_rng(seed)
    space = wd.StateActions.uniform(states, actions)
    p = rng.dirichlet(np.ones(states), size=space.n_pairs)
    return wd.MDP(space, rng.uniform(0.2, 0.8, space.n_pairs), p)


def still(n=20_000, seed=0):
    return wd.DriftingMDP.stationary(base(seed), horizon=n)


def jump(n=20_000, at=0.5, seed=0):
    models = [base(seed), base(seed + 100)]
    return wd.DriftingMDP.blend(models, wd.schedules.Steps([int(at * n) + 1]), horizon=n)


def test_blocks_are_counted_as_one_would_by_hand():
    log = simulated(jump(3000), seed=2)
    blocks = count_blocks(log)
    S = log.space.n_states
    assert blocks.count == 256
    start = 0
    for k, end in enumerate(blocks.ends):
        for pair in range(log.space.n_pairs):
            here = [i for i in range(start, end) if log.pairs[i] == pair]
            assert blocks.visits[k, pair] == len(here)
            assert blocks.sums[k, pair] == pytest.approx(log.rewards[here].sum())
            assert blocks.squares[k, pair] == pytest.approx((log.rewards[here] ** 2).sum())
        moves = {
            (p, s): c
            for p, s, c in zip(blocks.cell_pair, blocks.cell_next, blocks.moves[k], strict=True)
        }
        for i in range(start, end):
            moves[log.pairs[i], log.nexts[i]] -= 1
        assert not any(moves.values())
        start = end
    even, odd = (blocks.every_second(first) for first in (0, 1))
    for whole, one, other in zip(blocks.tables, even.tables, odd.tables, strict=True):
        assert np.array_equal(whole, one + other)
        assert not other[::2].any()
    assert (blocks.cell_pair * S + blocks.cell_next == np.unique(log.pairs * S + log.nexts)).all()


def literal_p_values(log, middle, half):
    """The four p-values of one window, pair by pair, with SciPy's contingency tables.

    A sum over the left half is compared with its mean and variance under exchange.
    """
    left, right = slice(middle - half, middle), slice(middle, middle + half)
    z2, df_r, x2, df_p = 0.0, 0, 0.0, 0
    apart, variances = np.zeros(2), np.zeros(2)
    for pair in range(log.space.n_pairs):
        a, b = log.pairs[left] == pair, log.pairs[right] == pair
        n, m = a.sum(), b.sum()
        if min(n, m) > 0:
            for k, values in enumerate((log.rewards, log.nexts)):
                both = np.concatenate([values[left][a], values[right][b]])
                apart[k] += values[left][a].sum() - n * both.mean()
                variances[k] += n * m / (n + m) * both.var(ddof=1)
        if min(n, m) < 5:
            continue
        r, u = log.rewards[left][a], log.rewards[right][b]
        variance = np.concatenate([r, u]).var(ddof=1)
        if variance > 1e-12:
            z2 += (r.mean() - u.mean()) ** 2 / (variance * (1 / n + 1 / m))
            df_r += 1
        table = np.array(
            [
                np.bincount(log.nexts[s][k], minlength=log.space.n_states)
                for s, k in ((left, a), (right, b))
            ]
        )
        often = table.sum(axis=0) >= 5
        rest = table[:, ~often].sum(axis=1, keepdims=True)
        table = np.concatenate([table[:, often], rest[:, : int(rest.sum() > 0)]], axis=1)
        if table.shape[1] > 1:
            found = chi2_contingency(table, correction=False)
            x2 += found.statistic * (n + m - 1) / (n + m)
            df_p += found.dof
    common = chi2.sf(apart**2 / variances, 1)
    return chi2.sf(z2, df_r), common[0], chi2.sf(x2, df_p), common[1]


def test_half_window_tests_are_the_textbook_ones():
    log = simulated(jump(5120), seed=3)
    blocks = count_blocks(log)
    tests = half_tests(blocks)
    for middle, half in ((128, 64), (104, 32), (240, 16), (16, 16)):
        here = (tests.block == middle) & (tests.half == half)
        found = tests.p_value[here]
        assert tests.kind[here].tolist() == [0, 0, 1, 1]
        assert found == pytest.approx(literal_p_values(log, 20 * middle, 20 * half), rel=1e-9)
    assert (tests.corrected >= tests.p_value).all()
    assert tests.p_value.size == 364


def test_a_jump_is_found_where_it_is_and_named():
    log = simulated(jump(20_000, at=0.4), seed=1)
    found = half_tests(blocks := count_blocks(log)).drifts(blocks.ends)
    assert {drift.kind for drift in found} == {"reward", "transition"}
    for drift in found:
        assert abs(drift.step - 8000) <= 20_000 / 64
        assert drift.p_value < 1e-6
    cuts = segment(blocks).cuts
    assert len(cuts) == 1
    assert abs(cuts[0] - 8001) <= 20_000 / 128


def test_false_alarms_are_as_rare_as_promised():
    """Holm at 0.05: of 60 logs that stand still at most 12 may alarm (p < 3e-5 beyond that).

    Half of the correction left out, or p-values of half their size, give three times as many.
    """
    count = 400 if RELIABILITY else 60
    alarms = cuts = 0
    for seed in range(count):
        blocks = count_blocks(simulated(still(4000, seed), seed))
        alarms += bool(half_tests(blocks).drifts(blocks.ends))
        cuts += seed < 24 and bool(segment(blocks, seed).cuts)
    assert alarms <= 12 * count / 60
    assert cuts <= 7  # of 24, one in twenty each: p < 2e-5 beyond that


def test_drift_is_found_where_pairs_are_seldom_met():
    """Four years of daily demand with mean 5, 6, 5: some 190 pairs, most met two to ten times.

    All pairs together show it in 87 of 100 logs, one by one they would in 7.
    """
    found = [stock(seed, (5, 6, 5), capacity=20) for seed in range(20)]
    assert np.mean([log.steps / log.space.n_pairs for log in found]) < 9
    blocks = [count_blocks(log) for log in found]
    assert sum(bool(half_tests(each).drifts(each.ends)) for each in blocks) >= 9  # else P < 1e-6


def test_cuts_are_found_where_pairs_are_seldom_met():
    """Demand of 3, 7, 4, and some 300 pairs: 9 in 10 such logs are cut."""
    blocks = [count_blocks(stock(seed, (3, 7, 4))) for seed in range(6)]
    assert sum(bool(segment(each, seed).cuts) for seed, each in enumerate(blocks)) >= 2


def test_false_alarms_are_rare_where_pairs_are_seldom_met():
    """Holm at 0.05, and one cut log in twenty: of 40, 13 or more have P < 2e-8."""
    alarms = cuts = 0
    for seed in range(400 if RELIABILITY else 40):
        blocks = count_blocks(stock(seed, ((3,), (5,), (7,))[seed % 3]))
        alarms += bool(half_tests(blocks).drifts(blocks.ends))
        cuts += seed < 24 and bool(segment(blocks, seed).cuts)
    assert alarms <= (40 if RELIABILITY else 12)
    assert cuts <= 8  # of 24: P < 1e-5 beyond that; outcomes drawn from the log's rows cut all 24


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_stationary_log_exchanges_outcomes_between_visits(scale):
    """Its sums are those of the log; its moments those of drawing without replacement."""
    log = simulated(jump(3000), seed=2)
    columns = log.space.state_of[log.pairs], log.space.action_of[log.pairs]
    rewards = log.rewards * (scale if scale == 1 else np.random.default_rng(0).random(3000))
    log = Log.from_arrays(*columns, rewards, log.nexts, reward_range=(0, 1))
    blocks = count_blocks(log).merged(8)
    null, rng = StationaryNull(blocks), np.random.default_rng(1)
    drawn = [null.drawn(rng) for _ in range(400)]
    for each in drawn[:20]:
        assert (each.moves.sum(axis=0) == blocks.moves.sum(axis=0)).all()
        assert each.sums.sum(axis=0) == pytest.approx(blocks.sums.sum(axis=0))
        assert (each.per_pair(each.moves) == blocks.visits).all()
        assert (each.moves >= 0).all()
    n, N = blocks.visits, blocks.visits.sum(axis=0)
    pair = blocks.cell_pair
    share = blocks.moves.sum(axis=0) / N[pair]
    variance = np.array([rewards[log.pairs == p].var(ddof=1) for p in range(log.space.n_pairs)])
    for name, mean, spread in (
        ("moves", n[:, pair] * share,
         n[:, pair] * share * (1 - share) * (N[pair] - n[:, pair]) / (N[pair] - 1)),
        ("sums", n * blocks.sums.sum(axis=0) / N, n * variance * (N - n) / N),
    ):  # fmt: skip
        some = np.array([getattr(each, name) for each in drawn])
        assert (np.abs(some.mean(axis=0) - mean) <= 6 * np.sqrt(spread / 400) + 1e-9).all()
        wide = spread > 1
        assert (np.abs(some.var(axis=0)[wide] / spread[wide] - 1) < 0.6).all()


def literal_cost(log, blocks, variance, start, end, visits):
    """Minus the log-likelihood of a stretch, visit by visit: each predicted from those before it.

    A row is a Polya urn that starts with so many balls, in the proportions of the whole log; a mean
    reward is learned from a first guess that is worth as many visits.
    """
    rows = slice(0 if start == 0 else blocks.ends[start - 1], blocks.ends[end - 1])
    cost = 0.0
    for pair in np.unique(log.pairs[rows]):
        everywhere = log.pairs == pair
        nexts = np.bincount(log.nexts[everywhere], minlength=log.space.n_states)
        urn = visits * nexts / nexts.sum()
        guess, worth = log.rewards[everywhere].mean(), visits
        left, v = 1 - explained(log, pair), variance[pair]
        here = log.pairs[rows] == pair
        for s, r in zip(log.nexts[rows][here], log.rewards[rows][here], strict=True):
            cost -= np.log(urn[s] / urn.sum())
            urn[s] += 1
            spread = v * (1 + 1 / worth)
            cost += left * 0.5 * ((r - guess) ** 2 / spread + np.log(spread / v))
            guess, worth = (guess * worth + r) / (worth + 1), worth + 1
    return cost


def explained(log, pair):
    """The share of the variance of a pair's rewards between the states they led to, by hand."""
    r, s = log.rewards[log.pairs == pair], log.nexts[log.pairs == pair]
    between = sum((s == x).sum() * (r[s == x].mean() - r.mean()) ** 2 for x in np.unique(s))
    return between / ((r - r.mean()) ** 2).sum()


def test_what_the_next_state_explains_of_a_reward_is_not_counted_twice():
    log = simulated(jump(4000), seed=1)
    blocks = count_blocks(log)
    by_hand = [explained(log, pair) for pair in range(log.space.n_pairs)]
    assert blocks.explained == pytest.approx(by_hand, abs=1e-9)
    rng = np.random.default_rng(0)
    cuts = 0
    for _ in range(20):  # rewards that are a function of the next state, in a world that stands
        states = rng.integers(3, size=1501)
        log = Log.from_arrays(states[:-1], np.zeros(1500, int), states[1:] / 2, states[1:])
        assert count_blocks(log).explained == pytest.approx(np.ones(3))
        cuts += bool(segment(count_blocks(log)).cuts)
    assert cuts <= 6  # of 20, one in twenty each: p < 1e-4 beyond; counted twice, most are cut


def test_the_cuts_are_the_best_of_all():
    """Every way to cut eight blocks, tried one by one."""
    log = simulated(jump(400, at=0.6), seed=5)
    blocks = count_blocks(log).merged(8)
    variance = np.zeros(log.space.n_pairs)
    for pair in range(log.space.n_pairs):
        here = [log.pairs[100 * k : 100 * (k + 1)] == pair for k in range(4)]
        paid = [log.rewards[100 * k : 100 * (k + 1)][at] for k, at in enumerate(here)]
        spread = sum(((r - r.mean()) ** 2).sum() for r in paid if r.size)
        variance[pair] = spread / sum(r.size - 1 for r in paid if r.size)
    costs = {
        (a, b, worth): literal_cost(log, blocks, variance, a, b, worth)
        for worth in (1.0, 10.0, 50.0)
        for a, b in combinations(range(9), 2)
    }
    gains = {}
    for worth in (1.0, 10.0, 50.0):
        best, where = np.inf, None
        for count in range(8):
            for cuts in combinations(range(1, 8), count):
                edges = [0, *cuts, 8]
                cost = sum(costs[a, b, worth] for a, b in zip(edges, edges[1:], strict=False))
                cost += np.log(8) * count
                if cost < best:
                    best, where = cost, cuts
        gains[worth] = best, where
    wanted = [
        ([int(blocks.ends[k - 1]) + 1 for k in where], pytest.approx(costs[0, 8, worth] - best))
        for worth, (best, where) in gains.items()
    ]
    assert drift_tests._best(blocks) == wanted
    assert segment(blocks) in wanted
    assert segment(blocks).cuts


def test_budgets_are_sums_of_largest_differences():
    log = simulated(jump(8000), seed=2)
    blocks = count_blocks(log).merged(4)
    found = budgets(blocks, seed=0, draws=20)
    sums = [0.0, 0.0]
    for k in range(3):
        largest = [0.0, 0.0]
        for pair in range(log.space.n_pairs):
            two = [log.pairs[2000 * j : 2000 * (j + 1)] == pair for j in (k, k + 1)]
            if min(one.sum() for one in two) < 30:
                continue
            parts = [slice(2000 * j, 2000 * (j + 1)) for j in (k, k + 1)]
            means = [log.rewards[part][one].mean() for part, one in zip(parts, two, strict=True)]
            rows = [
                np.bincount(log.nexts[part][one], minlength=4) / one.sum()
                for part, one in zip(parts, two, strict=True)
            ]
            largest[0] = max(largest[0], abs(means[1] - means[0]))
            largest[1] = max(largest[1], np.abs(rows[1] - rows[0]).sum())
        sums = [a + b for a, b in zip(sums, largest, strict=True)]
    assert [one.value for one in found] == pytest.approx(sums)


def test_the_null_is_what_a_still_world_shows():
    """Its mean against that of the same sums over 40 simulated logs that stand still."""
    values, nulls = [], []
    for seed in range(40):
        blocks = count_blocks(simulated(still(8000), seed)).merged(8)
        both = budgets(blocks, seed, 25)
        values.append([one.value for one in both])
        nulls.append([one.null_mean for one in both])
    value, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(40)
    assert (np.abs(value - np.mean(nulls, axis=0)) < 5 * error).all()  # 5 standard errors


def test_real_rewards_have_a_null_too():
    rng = np.random.default_rng(0)
    states = rng.integers(2, size=6001)
    rewards = rng.normal(5.0, 2.0, 6000)
    log = Log.from_arrays(states[:-1], np.zeros(6000, int), rewards, states[1:])
    found = log.inspect(draws=50)
    assert found.reward_budget.p_value > 0.01
    assert found.drifts == []
    assert found.model.noise.kind == "beta"
    assert found.fitted.reward.blocks <= 2


def test_a_fitted_model_is_near_the_one_that_made_the_log():
    model = wd.envs.make("two-state-cosine", horizon=60_000)
    made = fit(simulated(model, seed=4))
    assert made.reward.blocks >= 16
    assert made.transition.blocks >= 16
    worst = 0.0
    for t in range(1, 60_001, 1500):
        truth, guess = model.at(t), made.model.at(t)
        worst = max(worst, np.abs(truth.rewards - guess.rewards).max())
        worst = max(worst, np.abs(truth.transitions - guess.transitions).max())
    assert worst < 0.12
    wd.testing.check_drifting_mdp(made.model)


def test_of_a_world_that_stands_still_the_model_does_too():
    made = fit(simulated(still(8000), seed=1))
    assert made.blocks <= 2
    truth, guess = base(), made.model.at(4000)
    assert np.abs(truth.rewards - guess.rewards).max() < 0.1
    assert np.abs(truth.transitions - guess.transitions).max() < 0.1
    assert fit(simulated(still(8000), seed=1), blocks=8).blocks == 8


def test_chance_does_not_move_the_model_of_a_short_log():
    """The best of many choices predicts a bit better than one block, by chance, in most logs."""
    moving = np.zeros(2)
    for seed in range(40):
        made = fit(simulated(still(200, seed), seed))
        moving += [made.reward.blocks > 1, made.transition.blocks > 1]
    assert (moving <= 10).all()  # P(more) < 1e-6 if one log in twenty-five moves


def test_a_jump_moves_the_model_of_a_short_log():
    """The power of the rule: in most logs of 400 steps a jump in the middle is seen."""
    seen = 0
    for seed in range(20):
        models = [wd.MDP(base().space, np.full(base().rewards.size, r), base().transitions)
                  for r in (0.2, 0.8)]  # fmt: skip
        world = wd.DriftingMDP.blend(models, wd.schedules.Steps([201], [0, 1]), horizon=400)
        seen += fit(simulated(world, seed)).reward.blocks > 1
    assert seen >= 18


def test_half_a_model_may_move_while_the_other_stands_still():
    first, second = base(), base(7)
    moving = wd.MDP(first.space, second.rewards, first.transitions)
    world = wd.DriftingMDP.blend([first, moving], wd.schedules.Steps([4001]), horizon=8000)
    made = fit(simulated(world, seed=1))
    assert made.reward.blocks >= 2
    assert made.transition.blocks == 1
    assert made.model.budgets().transition == 0
    assert made.model.budgets().reward > 0.2


def test_no_regret_is_printed_and_it_is_said_why():
    found = simulated(still(2000)).inspect(draws=10)
    assert found.words()[-1] == NO_REGRET
    assert "What other actions would have led to" in NO_REGRET
    assert found.data()["regret"] is None
    with pytest.raises(wd.InputError, match="a log has no regret"):
        found.regret()


def test_a_log_in_which_nothing_can_be_compared_is_refused():
    for n in (1, 5, LEAST_STEPS - 1):
        still = np.zeros(n, int)
        log = Log.from_arrays(still, still, np.arange(n) % 2, still)
        with pytest.raises(
            wd.InputError, match=f"too few to compare .* at least {LEAST_STEPS} steps"
        ):
            log.inspect(draws=5)


def test_the_least_log_that_is_inspected_is_the_least_that_can_be_tested_everywhere():
    for n in range(LEAST_STEPS - 4, LEAST_STEPS + 1):
        still = np.zeros(n, int)
        tests = half_tests(count_blocks(Log.from_arrays(still, still, np.arange(n) % 2, still)))
        assert (tests.pair[tests.kind == 0] == 0).all() == (n == LEAST_STEPS)
    rewards = np.arange(n) >= n // 2
    found = Log.from_arrays(still, still, rewards, still).inspect(draws=5)
    assert [drift.step for drift in found.drifts] == [n // 2]


@pytest.mark.parametrize("reward", [0.0, 0.5, 1.0])
def test_a_log_of_one_reward_is_reported_and_fitted_as_it_is(reward):
    states = np.arange(101) % 2
    log = Log.from_arrays(states[:-1], states[1:] * 0, np.full(100, reward), states[1:])
    assert log.reward_range == (0.0, 1.0)
    found = log.inspect(draws=5)
    assert f"all rewards {reward:g} in a range from 0 to 1." in found.words()[0]
    assert found.data()["rewards_seen"] == [reward, reward]
    assert np.allclose(found.model.at(50).rewards, reward, atol=0.05)
    with pytest.raises(wd.InputError, match="all 100 rewards are .*declare"):
        Log.from_arrays(states[:-1], states[1:] * 0, np.full(100, reward + 1.5), states[1:])


def test_short_logs_are_inspected_too():
    for n in (20, 23, 31):
        states = np.arange(n + 1) % 2
        log = Log.from_arrays(states[:-1], np.zeros(n, int), np.ones(n), states[1:])
        found = log.inspect(draws=5)
        assert found.drifts == []
        assert found.model.horizon == log.steps
        assert found.words()


WARM = {
    "a window": lambda space: wd.SWUCRL2CW(space, horizon=1000, window=400, widening=0.1),
    "a window longer than the horizon": lambda space: wd.SWUCRL2CW(
        space, horizon=100, window=400, widening=0.1
    ),
    "all history": lambda space: wd.UCRL2(space, horizon=1000),
    "boxes": lambda space: wd.UCRL2B(space, horizon=1000),
    "rounded rewards": lambda space: wd.PSRL(space, horizon=1000),
    "restarts": lambda space: wd.RestartedUCRL2(space, horizon=1000, restarts=[50]),
    "one by one": lambda space: wd.MultiScale(space, horizon=1000),
}


@pytest.mark.filterwarnings("ignore:a window of 400 samples is longer than the horizon")
@pytest.mark.parametrize("kind", WARM)
@pytest.mark.parametrize("in_two", [False, True])
@pytest.mark.parametrize("states", [3, 300])
def test_an_agent_is_preloaded_as_one_by_one(kind, in_two, states):
    """One call for all steps leaves the bytes that a call for each step leaves."""
    rng = np.random.default_rng(3)
    at, actions = rng.integers(states, size=601), rng.integers(2, size=600)
    at[:states] = np.arange(states)
    log = Log.from_arrays(at[:-1], actions, rng.random(600), at[1:])
    warm, by_hand = (WARM[kind](log.space) for _ in range(2))
    if in_two:
        by_hand_first = log.steps - 100
        log.preload(warm, last=100)
        steps = [*range(by_hand_first, log.steps), *range(log.steps)]
    else:
        steps = list(range(log.steps))
    assert log.preload(warm) == log.steps
    for k in steps:
        pair = int(log.pairs[k])
        s, a = int(log.space.state_of[pair]), int(log.space.action_of[pair])
        by_hand.preload(s, a, float(log.rewards[k]), int(log.nexts[k]))
    assert warm.state() == by_hand.state()
    assert warm.preloaded == len(steps)


def test_a_table_of_cells_that_grows_is_preloaded_as_one_by_one():
    rng = np.random.default_rng(3)
    space = wd.StateActions.uniform(3000, 2)
    at, actions, rewards = (
        rng.integers(3000, size=4001),
        rng.integers(2, size=4000),
        rng.random(4000),
    )
    at[-1] = at[0]
    warm, by_hand = (wd.UCRL2(space, horizon=9000) for _ in range(2))
    assert warm._window.is_hashed
    columns = (at[:-1], actions, rewards, at[1:])
    Log.from_arrays(*columns).preload(warm)
    for step in zip(*(column.tolist() for column in columns), strict=True):
        by_hand.preload(*step)
    assert warm.preloaded == by_hand.preloaded == 4000
    assert warm.state() == by_hand.state()


def test_a_log_with_an_impossible_reward_preloads_nothing():
    log = Log.from_arrays([0, 1, 0, 1], [0, 0, 0, 0], [0.5, 0.5, 7.0, 0.5], [1, 0, 1, 0])
    agent = wd.UCRL2(log.space, horizon=9, reward_range=(0, 1))
    before = agent.state()
    with pytest.raises(wd.InputError, match="7.0 is not a number in"):
        log.preload(agent)
    assert agent.state() == before
    assert log.preload(agent, scale=True) == 4


def test_a_subclass_with_a_preload_of_its_own_is_asked_step_by_step():
    class Careful(wd.UCRL2):
        seen = 0

        def preload(self, s, a, reward, s_next):
            self.seen += 1
            super().preload(s, a, reward, s_next)

    log = Log.from_arrays([0, 1, 0], [0, 0, 0], [0.5, 0.2, 0.1], [1, 0, 1])
    agent = Careful(log.space, horizon=9)
    log.preload(agent)
    assert (agent.seen, agent.preloaded) == (3, 3)


def test_names_are_matched_when_an_agent_is_preloaded():
    log = Log.from_arrays(["b", "a", "b"], ["go", "stay", "go"], [1.0, 0.0, 1.0], ["a", "b", "a"])
    space = wd.StateActions([2, 2], ["b", "a"], [["stay", "go"], ["stay", "go"]])

    class Memory:
        def __init__(self):
            self.space, self.steps = space, []

        def preload(self, *step):
            self.steps.append(step)

    agent = Memory()
    log.preload(agent)
    assert agent.steps == [(0, 1, 1.0, 1), (1, 0, 0.0, 0), (0, 1, 1.0, 1)]
    for other, said in (
        (wd.UCRL2(wd.StateActions([2, 2]), horizon=9), "is no state"),
        (wd.UCRL2(wd.StateActions([1, 1], ["a", "b"]), horizon=9), "is no action of"),
        (wd.agents.make("random", space, horizon=9), "cannot be preloaded"),
    ):
        with pytest.raises(wd.InputError, match=said):
            log.preload(other)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Log.from_arrays([0], [0, 1], [1.0], [0]), "entries"),
        (lambda: Log.from_arrays([], [], [], []), "entries"),
        (lambda: Log.from_arrays([0, None], [0, 0], [1.0, 1.0], [0, 0]), r"states\[1\]"),
        (lambda: Log.from_arrays([0, 0], [0, 0], [1.0, np.nan], [0, 0]), r"rewards\[1\]"),
        (lambda: Log.from_arrays([0, 0], [0, 0], [1.0, -1e308], [0, 0]), r"rewards\[1\]: -1e\+308"),
        (lambda: simulated(still(100)).fit(blocks=3), "3 blocks cannot be made"),
        (lambda: simulated(still(100)).inspect(draws=0), "draws"),
        (lambda: simulated(still(100)).when(101), "step"),
        (
            lambda: simulated(still(100)).preload(wd.UCRL2(base().space, horizon=9), last=101),
            "last",
        ),
    ],
)
def test_impossible_logs_and_calls_are_refused(call, said):
    with pytest.raises(wd.InputError, match=said):
        call()
