"""Models drawn from the posterior: their law against closed forms, their policy against a solver.

A mean of n numbers in [0, 1] with variance v is off by more than `allowed(v, n, level)` with
probability at most `level` (Bernstein, for every n): the false-alarm rates below are proved, not
read off a normal curve. Each check shows a broken variant that it rejects.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import windage as wd
from windage.confidence import window as module
from windage.confidence.confidence import blank_plan
from windage.confidence.window import Window
from windage.kernels import evi, posterior
from windage.kernels.window import HashedWindow, commit, take
from windage.rng import key

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # whole numbers wrap

SPACE = wd.StateActions([2, 1, 1])
S = SPACE.n_states
COUNTS = np.array([[8, 3, 0], [0, 0, 0], [0, 2, 5], [1, 0, 1]])
SUMS = np.array([7.5, 0.0, 1.0, 2.0])  # of rewards in [0, 1]
PRIOR = 1.0
DRAWS = 1000
FALSE_ALARM = 1e-6  # of a whole test


def remembered():
    window = Window(SPACE, 100).kernel
    for pair, row in enumerate(COUNTS):
        for s, n in enumerate(row):
            for _ in range(n):
                take(window, pair, SUMS[pair] / row.sum(), s)
    commit(window)
    return window


def drawn(window, t, seed=3, left_out=()):
    plan = blank_plan(SPACE, SPACE.n_pairs * S)
    plan.pairs["kind"] = evi.VACUOUS
    plan.pairs["kind"][list(left_out)] = evi.LEFT_OUT
    posterior.draw_policy(window, plan, key(seed, "test"), t, t, PRIOR)
    rows = np.full((SPACE.n_pairs, S), np.nan)
    for p, pair in enumerate(plan.pairs):
        for entry in plan.rows[pair["row"] : pair["row"] + pair["entries"]]:
            rows[p, entry["index"]] = entry["probability"]
    return plan, plan.pairs["reward"].copy(), rows


def allowed(variance, n, level):
    share = math.log(2 / level) / n
    return share / 3 + math.sqrt((share / 3) ** 2 + 2 * variance * share)


def dirichlet_moment(a, powers):
    """E prod x_i^k_i = prod (a_i)_k_i / (a_0)_k, rising factorials."""
    up, k = 1.0, 0
    for a_i, power in zip(a, powers, strict=True):
        for j in range(power):
            up *= a_i + j
    for k in range(sum(powers)):
        up /= sum(a) + k
    return up


def monomials(size):
    """All powers of degree one and two."""
    one = np.eye(size, dtype=int)
    return [*one, *(one[i] + one[j] for i in range(size) for j in range(i, size))]


def laws():
    """Dirichlet parameters of every row, then of every reward as (good, bad)."""
    visits = COUNTS.sum(axis=1)
    rows = [COUNTS[pair] + PRIOR / S for pair in range(SPACE.n_pairs)]
    return rows + [np.array([1 + g, 1 + n - g]) for g, n in zip(SUMS, visits, strict=True)]


def violations(shares):
    """How many moments of the draws are further from closed form than chance allows.

    `shares[law]` are draws [n, size]; products of different laws are checked as well, since rows
    and rewards are independent.
    """
    found, known = [], []
    for a, x in zip(laws(), shares, strict=True):
        for powers in monomials(len(a)):
            found.append(np.prod(x**powers, axis=1))
            first = dirichlet_moment(a, powers)
            known.append((first, dirichlet_moment(a, 2 * powers) - first**2))
    for i in range(len(shares)):
        for j in range(i):
            a, b = laws()[i], laws()[j]
            found.append(shares[i][:, 0] * shares[j][:, 0])
            first = a[0] / sum(a) * b[0] / sum(b)
            square = [dirichlet_moment(c, [2] + [0] * (len(c) - 1)) for c in (a, b)]
            known.append((first, square[0] * square[1] - first**2))
    level = FALSE_ALARM / len(found)
    return sum(
        abs(values.mean() - mean) > allowed(variance, len(values), level)
        for values, (mean, variance) in zip(found, known, strict=True)
    )


@pytest.fixture(scope="module")
def shares():
    """Many draws as shares of each law: the even spread over a row is taken off again."""
    with np.errstate(over="ignore"):
        window = remembered()
        all_drawn = [drawn(window, t)[1:] for t in range(1, DRAWS + 1)]
    rewards = np.array([r for r, _ in all_drawn])
    rows = (np.array([p for _, p in all_drawn]) - posterior.SPREAD / S) / (1 - posterior.SPREAD)
    return [rows[:, pair].clip(0.0) for pair in range(SPACE.n_pairs)] + [
        np.stack([rewards[:, pair], 1 - rewards[:, pair]], axis=1) for pair in range(SPACE.n_pairs)
    ]


def test_rows_and_rewards_have_the_moments_of_the_posterior(shares):
    """False alarm at most 1e-6, all moments of degree one and two together."""
    assert violations(shares) == 0


def variants():
    """Draws as wrong code would make them; at least 999 of 1,000 such are rejected."""
    rng = np.random.default_rng(7)

    def draw(parameters):
        return [rng.dirichlet(a, DRAWS) for a in parameters]

    flat = [a / max(1, COUNTS[i].sum()) for i, a in enumerate(laws()[:4])]
    yield "parameters divided by N", draw(flat + laws()[4:])
    yield "a whole prior for every state", draw([a + 1 - 1 / S for a in laws()[:4]] + laws()[4:])
    yield "wins and losses changed round", draw(laws()[:4] + [a[::-1] for a in laws()[4:]])
    yield "no losses counted", draw(laws()[:4] + [np.array([a[0], 1.0]) for a in laws()[4:]])
    yield "rows of the pair before", draw(laws()[3:4] + laws()[:3] + laws()[4:])
    same = draw(laws())
    same[4:] = [np.sort(x[:, :1], axis=0) * [1, 0] + (1 - np.sort(x[:, :1], axis=0)) * [0, 1]
                for x in same[4:]]  # fmt: skip
    yield "one stream for all rewards", same


@pytest.mark.parametrize("name", [name for name, _ in variants()])
def test_broken_draws_are_rejected(name):
    assert violations(dict(variants())[name]) > 0


def test_a_right_draw_of_another_generator_passes():
    rng = np.random.default_rng(8)
    assert violations([rng.dirichlet(a, DRAWS) for a in laws()]) == 0


def test_single_probabilities_have_the_law_of_beta(shares):
    """Kolmogorov-Smirnov at 1e-6 for all together; the second witness beside the moments."""
    tests = [(a, i, x[:, i]) for a, x in zip(laws(), shares, strict=True) for i in range(len(a))]
    for a, i, x in tests:
        law = stats.beta(a[i], sum(a) - a[i])
        assert stats.kstest(x, law.cdf).pvalue > FALSE_ALARM / len(tests)


def test_rows_are_distributions_with_every_state_possible():
    window = remembered()
    for t in range(1, 100):
        _, rewards, rows = drawn(window, t)
        assert rows.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-12)
        assert (rows >= posterior.SPREAD / S).all()
        assert ((rewards >= 0) & (rewards <= 1)).all()


def test_rewards_outside_the_unit_interval_count_as_its_ends():
    window = remembered()
    for reward in (9.0, 9.0, -40.0):
        take(window, 1, reward, 0)
    commit(window)
    drawn_means = [drawn(window, t)[1][1] for t in range(1, 201)]
    law = stats.beta(1, 4)  # three visits, mean below 0: no success
    assert stats.kstest(drawn_means, law.cdf).pvalue > FALSE_ALARM


def test_draws_are_addressed(monkeypatch):
    """By seed, t and pair: not by how counts are stored, nor by which other pairs take part."""
    window = remembered()
    _, rewards, rows = drawn(window, 5)
    again = drawn(window, 5)
    assert rewards.tolist() == again[1].tolist()
    assert rows.tolist() == again[2].tolist()
    for other in (drawn(window, 6), drawn(window, 5, seed=4)):
        assert not np.intersect1d(other[1], rewards).size
        assert not np.intersect1d(other[2], rows).size
    monkeypatch.setattr(module, "_CELLS", 0)
    hashed = remembered()
    assert isinstance(hashed, HashedWindow)
    assert drawn(hashed, 5)[2].tolist() == rows.tolist()
    _, fewer_rewards, fewer = drawn(hashed, 5, left_out=[0])
    assert fewer[1:].tolist() == rows[1:].tolist()
    assert fewer_rewards[1:].tolist() == rewards[1:].tolist()
    assert np.isnan(fewer[0]).all()


@pytest.mark.parametrize("left_out", [(), (0,), (1,)])
def test_the_policy_is_the_best_of_the_drawn_model(left_out):
    """Within eps = 1/sqrt(t), among the pairs that take part; not every policy would be."""
    window = remembered()
    clear = 0
    for t in range(10**10, 10**10 + 25):
        plan, rewards, rows = drawn(window, t, left_out=left_out)
        policy = plan.states["greedy"]
        kept = [pair for pair in range(SPACE.n_pairs) if pair not in left_out]
        space = wd.StateActions(np.bincount(SPACE.state_of[kept]))
        best = wd.MDP(space, rewards[kept], rows[kept]).solve().gain
        assert plan.answer["gain"][0] == pytest.approx(best, abs=1e-5 + 1e-9)
        assert SPACE.state_of[policy].tolist() == [0, 1, 2]
        assert not set(policy.tolist()) & set(left_out)
        one = wd.StateActions([1] * S)
        own = wd.MDP(one, rewards[policy], rows[policy]).solve().gain
        assert own >= best - 1e-5 - 1e-9
        if left_out:
            continue
        other = np.array([1 - policy[0], 2, 3])
        clear += wd.MDP(one, rewards[other], rows[other]).solve().gain < best - 1e-3
    assert left_out or clear > 0
