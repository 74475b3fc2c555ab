"""Policy iteration and relative value iteration against enumeration, exact fractions and the LP."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.conftest import RELIABILITY
from tests.unit.oracle.exact import best_gain
from tests.unit.oracle.literal import best_of_all_policies, cesaro, ring, river, tiny
from windage.errors import InputError, ModelError, NotConverged
from windage.kernels import gain as kernels
from windage.oracle import gain, policy_iteration
from windage.oracle.gain import certify, solve, solve_many
from windage.oracle.lp import gain_lp
from windage.spaces import StateActions


@pytest.fixture(params=["compiled", "general"])
def way(request, monkeypatch):
    """Both ways of policy iteration: the compiled loop, and LU of sparse rows."""
    if request.param == "general":
        monkeypatch.setattr(gain, "SMALL", 0)
        monkeypatch.setattr(policy_iteration, "SMALL", 0)
    return request.param


def test_two_states_of_puterman(way):
    """Puterman 1994, section 3.1: the second state pays -1 for ever, so every gain is -1."""
    space = StateActions([2, 1])
    found = solve(space, [5.0, 10.0, -1.0], [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    assert found.gain == pytest.approx(-1.0, abs=1e-14)
    assert found.bias == pytest.approx([12.0, 0.0], abs=1e-12)  # 5 a visit, two visits, and 2 more
    assert found.policy.tolist() == [0, 0]  # the better transient, though the gain is the same


def test_a_choice_between_absorbing_states(way):
    """Odds of 0.3 for 0.8, else 0.3, are better than 0.3 for sure and worse than 0.5 for sure."""
    space = StateActions([2, 1, 1, 1])
    stay = [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    for sure, expected, action in ((0.3, 0.45, 1), (0.5, 0.5, 0)):
        rows = [[0, 0, 0, 1], [0, 0.7, 0.3, 0], *stay]
        found = solve(space, [1.0, 0.0, 0.3, 0.8, sure], rows)
        assert found.gains == pytest.approx([expected, 0.3, 0.8, sure], abs=1e-14)
        assert found.gain == pytest.approx(0.8, abs=1e-14)
        assert found.lower <= 0.8 <= found.upper <= found.lower + 1e-9
        assert found.policy.tolist() == [action, 0, 0, 0]


@pytest.mark.parametrize("p", [0.5, 1e-3, 1e-9, 1e-13, 1e-16, 1e-90])
def test_a_better_gain_that_is_all_but_out_of_reach(way, p):
    """Leaving takes 1/p steps and pays .8 for ever: no p is too small for a gain."""
    space = StateActions([2, 1, 1])
    rows = [[1, 0, 0], [1 - p, p, 0], [0, 1, 0], [0, 0, 1]]
    found = solve(space, [0.5, 0.0, 0.8, 1.0], rows)
    assert found.gains == pytest.approx([0.8, 0.8, 1.0], abs=1e-12)
    assert found.policy.tolist() == [1, 0, 0]
    assert found.lower <= 1.0 <= found.upper <= found.lower + 1e-9


@pytest.mark.parametrize("p", [1e-3, 1e-9, 1e-13, 1e-16, 1e-90])
def test_a_worse_gain_that_is_all_but_out_of_reach(way, p):
    """The pair that pays more leaks into a state that pays less; staying safe is optimal."""
    space = StateActions([2, 1, 1])
    rows = [[1, 0, 0], [1 - p, p, 0], [0, 1, 0], [0, 0, 1]]
    found = solve(space, [0.5, 0.6, 0.2, 1.0], rows)
    assert found.gains == pytest.approx([0.5, 0.2, 1.0], abs=1e-12)
    assert found.policy.tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [1e-8, 1e-12, 1e-14])
def test_slow_chains_see_small_differences(way, p, monkeypatch):
    """A bias of size 1/p hides nothing: rounding is relative to what moves, p times the bias."""
    if way == "compiled":
        monkeypatch.setattr(gain, "general", None)  # the loop needs no help
    space = StateActions([2, 2])
    rows = [[1 - p, p]] * 2 + [[p, 1 - p]] * 2
    rewards = [0.5, 0.5 + 1e-6, 0.0, 1e-7]
    found = solve(space, rewards, rows, warm=[0, 0])
    assert found.policy.tolist() == [1, 1]
    assert found.gain == pytest.approx((0.5 + 1.1e-6) / 2, abs=1e-13)
    assert found.lower <= found.gain <= found.upper <= found.lower + 1e-9


def test_periodic_chains_by_hand(way):
    space, rewards, transitions = ring(2)
    found = solve(space, rewards, transitions)
    assert found.gain == 0.5
    assert found.bias.tolist() == [0.5, 0.0]
    for states in (3, 7, 30):
        found = solve(*ring(states))
        assert found.gain == pytest.approx(1 / states, abs=1e-14)
        expected = [Fraction(s, states) for s in range(states)]  # worth less right after the pay
        expected[0] = Fraction(1)
        expected = [float(e - min(expected)) for e in expected]
        assert found.bias == pytest.approx(expected, abs=1e-12)
    assert solve(*ring(8, laps=2)).gain == pytest.approx(0.5, abs=1e-14)  # to and fro


@pytest.mark.parametrize("kind", ["sure", "sparse", "full"])
def test_every_start_state_against_all_policies(way, kind):
    rng = np.random.default_rng(["sure", "sparse", "full"].index(kind))
    several = 0
    for _ in range(50):
        space, rewards, transitions = tiny(rng, kind)
        expected = best_of_all_policies(space, rewards, transitions)
        several += np.ptp(expected) > 1e-6
        for warm in (None, rng.integers(0, space.counts)):
            found = solve(space, rewards, transitions, warm=warm)
            assert found.gains == pytest.approx(expected, abs=1e-9)
            assert found.gain == pytest.approx(expected.max(), abs=1e-9)
            assert found.lower <= found.gain <= found.upper <= found.lower + 2e-9
            pairs = space.offsets[:-1] + found.policy
            mean = cesaro(transitions[pairs]) @ rewards[pairs]
            assert mean == pytest.approx(expected, abs=1e-9)  # the policy attains it
            ahead = rewards[pairs] + transitions[pairs] @ found.bias
            assert found.gains + found.bias == pytest.approx(ahead, abs=1e-9)
            assert found.bias.min() == 0.0
    assert several > {"sure": 4, "sparse": 0, "full": -1}[kind]


WEAKLY_COMMUNICATING = {
    "one state": lambda: (StateActions([3]), np.array([0.1, 0.7, 0.3]), np.ones((3, 1))),
    "two-cycle": lambda: ring(2),
    "ring": lambda: ring(9),
    "ring both ways": lambda: ring(6, laps=2),
    "river": lambda: river(6),
    "slow river": lambda: river(40),
    "river, left pays": lambda: river(25, 0.3, 0.6),
    "single actions": lambda: _random([1, 1, 1, 1, 1], 3),
    "ragged": lambda: _random([2, 1, 4, 3, 1, 2, 5, 1], 4),
    "dense": lambda: _random([4] * 20, 5),
}


def _random(counts, seed):
    space, rng = StateActions(counts), np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(space.n_states), size=space.n_pairs)
    return space, rng.random(space.n_pairs), rows


@pytest.mark.parametrize("name", WEAKLY_COMMUNICATING)
def test_four_solvers_agree(way, name):
    space, rewards, transitions = WEAKLY_COMMUNICATING[name]()
    found = solve(space, rewards, transitions)
    swept = solve(space, rewards, transitions, method="value-iteration")
    program = gain_lp(space, rewards, transitions)
    assert (found.method, swept.method) == ("policy-iteration", "value-iteration")
    for value in (found.gain, swept.gain, program.primal, program.dual):
        assert value == pytest.approx(found.gain, abs=1e-8)
    for one in (found, swept):
        assert one.lower - 1e-9 <= program.dual <= one.upper + 1e-9
        assert one.upper - one.lower <= 1e-9
        assert one.gains == pytest.approx(np.full(space.n_states, one.gain), abs=1e-9)
        assert certify(space, rewards, transitions, one.bias, one.policy).lower >= one.lower - 1e-12


def test_river_of_six_in_fractions(way):
    """All right is optimal; its stationary distribution has a closed form."""
    p, q = Fraction(0.35), Fraction(0.05)
    weights = [Fraction(1), Fraction(0.6) / q]
    for _ in range(3):
        weights.append(weights[-1] * p / q)
    weights.append(weights[-1] * p / Fraction(0.4))
    found = solve(*river(6))
    assert found.policy.tolist() == [1] * 6
    exact = weights[-1] / sum(weights)
    assert found.gain == pytest.approx(float(exact), abs=1e-14)
    assert found.lower - 1e-15 <= exact <= found.upper + 1e-15  # rows of floats sum to one nearly


@pytest.mark.parametrize("states", [50, 200, 1000])
def test_slow_rivers_have_gain_three_sevenths(states):
    space, rewards, transitions = river(states)
    for rows in (transitions, transitions.toarray()):
        for warm in (None, np.zeros(states, dtype=int)):  # all left: a bias of 7^S on the way
            found = solve(space, rewards, rows, warm=warm)
            assert found.gain == pytest.approx(3 / 7, abs=1e-11)
            assert found.lower <= 3 / 7 <= found.upper <= found.lower + 1e-11
    swept = solve(space, rewards, transitions, tol=1e-8, method="value-iteration")
    assert swept.gain == pytest.approx(3 / 7, abs=1e-8)


def test_a_river_of_a_hundred_thousand_states():
    found = solve(*river(100_000))
    assert found.gain == pytest.approx(3 / 7, abs=1e-8)
    assert found.lower <= 3 / 7 <= found.upper <= found.lower + 1e-9
    assert (found.policy == 1).all()


@pytest.mark.parametrize("states", [30, 300, 3000])
def test_rivers_whose_best_pay_is_not_the_best_place(states):
    """Left pays 0.3, right 0.6 * 3/7: the way back must be found across a region hardly left."""
    space, rewards, transitions = river(states, 0.3, 0.6)
    shuffle = np.random.default_rng(states).permutation(states)
    pairs = (2 * shuffle[:, None] + [0, 1]).ravel()
    for r, p in ((rewards, transitions), (rewards[pairs], transitions[pairs][:, shuffle])):
        found = solve(space, r, p)
        assert found.gain == pytest.approx(0.3, abs=1e-9)
        assert found.lower <= 0.3 <= found.upper <= found.lower + 1e-9


def test_chains_that_all_but_fall_apart_keep_their_digits():
    """Elimination without subtractions, against fractions: leaving takes up to 1e12 steps."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        n = int(rng.integers(2, 6))
        chain = np.zeros((n, n))
        for s in range(n):
            chain[s, (s + 1) % n] = 10.0 ** -rng.integers(0, 13)
            chain[s, rng.integers(n)] += 10.0 ** -rng.integers(3, 13)
            chain[s, s] += max(0.0, 1.0 - chain[s].sum())
        chain /= chain.sum(axis=1, keepdims=True)
        off = chain - np.diag(np.diag(chain))
        rewards = rng.random(n)
        work, order, bias = np.zeros((4, n)), np.zeros(n, dtype=np.int64), np.zeros(n)
        work[0] = rewards
        found = kernels.evaluate(chain.copy(), work, order, bias)
        # what the kernel evaluates is the chain with the diagonal that its other entries leave
        exact = [[Fraction(float(x)) for x in row] for row in off]
        for s in range(n):
            exact[s][s] = 1 - sum(exact[s])
        expected = _gain_of_fractions(exact, rewards)
        assert abs(Fraction(found) - expected) <= Fraction(1e-13) * expected


def _gain_of_fractions(chain, rewards):
    """The mean reward under the stationary distribution, which solves x = x P, all in fractions."""
    n = len(chain)
    lines = [
        [(1 if i == j else 0) - chain[j][i] for j in range(n)] + [Fraction(0)] for i in range(n)
    ]
    lines[0] = [Fraction(1)] * n + [Fraction(1)]  # one flow equation is redundant
    for k in range(n):
        pivot = next(i for i in range(k, n) if lines[i][k] != 0)
        lines[k], lines[pivot] = lines[pivot], lines[k]
        lines[k] = [x / lines[k][k] for x in lines[k]]
        for i in range(n):
            if i != k and lines[i][k] != 0:
                lines[i] = [x - lines[i][k] * y for x, y in zip(lines[i], lines[k], strict=True)]
    return sum(lines[s][-1] * Fraction(float(rewards[s])) for s in range(n))


def test_the_order_of_elimination_keeps_expected_times_small():
    """Started from the wrong end, return times of 7^100 would swallow every digit of the bias."""
    _, rewards, transitions = river(100)
    chain = transitions.toarray()[1::2]
    for seed in range(5):
        shuffle = np.random.default_rng(seed).permutation(100)
        work, order, found = np.zeros((4, 100)), np.zeros(100, dtype=np.int64), np.zeros(100)
        work[0] = rewards[1::2][shuffle]
        value = kernels.evaluate(chain[np.ix_(shuffle, shuffle)], work, order, found)
        bias = found[np.argsort(shuffle)]
        assert value == pytest.approx(3 / 7, rel=1e-13)
        assert bias[51] - bias[50] == pytest.approx(3 / 7 / 0.3, rel=1e-11)  # 0.3 states a step
        assert bias[1] - bias[0] == pytest.approx(3 / 7 / 0.6, rel=1e-11)


def test_a_chain_with_two_closed_classes_has_no_single_gain():
    work, order, bias = np.zeros((4, 3)), np.zeros(3, dtype=np.int64), np.zeros(3)
    chain = np.array([[1.0, 0.0, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]])
    assert np.isnan(kernels.evaluate(chain, work, order, bias))


def test_value_iteration_refuses_gains_that_differ_by_start_state():
    space = StateActions([1, 2, 1])
    rows = [[1, 0, 0], [0.5, 0, 0.5], [0, 1, 0], [0, 0, 1]]
    rewards = [0.2, 0.0, 0.0, 0.9]
    assert solve(space, rewards, rows).gains == pytest.approx([0.2, 0.55, 0.9], abs=1e-14)
    with pytest.raises(NotConverged, match=r"after 2048 sweeps .* 0\.2 from s=0 and 0\.9 from s=2"):
        solve(space, rewards, rows, method="value-iteration")
    equal = solve(space, [0.9, 0.0, 0.0, 0.9], rows, method="value-iteration")
    assert equal.gain == pytest.approx(0.9, abs=1e-9)
    with pytest.raises(NotConverged, match="sweeps"):  # joined, but by a bridge of 1e-10
        solve(StateActions([1, 1]), [0, 1], [[1 - 1e-10, 1e-10], [1e-10, 1 - 1e-10]],
              method="value-iteration")  # fmt: skip


def test_several_classes_against_the_program(way):
    rng = np.random.default_rng(11)
    differ = 0
    for _ in range(25):
        states = int(rng.integers(4, 25))
        space = StateActions(rng.integers(1, 4, size=states))
        rows = np.zeros((space.n_pairs, states))
        for row in rows:
            row[rng.choice(states, size=2, replace=False)] = rng.dirichlet([1, 1])
        closed = space.state_of < 3
        rows[closed] = np.eye(states)[space.state_of[closed]]  # three absorbing states
        rewards = rng.random(space.n_pairs)
        found, program = solve(space, rewards, rows), gain_lp(space, rewards, rows)
        assert found.gain == pytest.approx(program.primal, abs=1e-8)
        assert found.gain == pytest.approx(program.dual, abs=1e-8)
        assert found.lower - 1e-9 <= program.dual <= found.upper + 1e-9
        assert (found.gains <= found.gain + 1e-9).all()
        differ += np.ptp(found.gains) > 1e-3
    assert differ > 20


def literal_bracket(space, rewards, transitions, bias, policy):
    """The two bounds of the module's docstring in fractions, classes by walking."""
    h = [Fraction(float(x)) for x in bias]
    rows = [[Fraction(float(p)) for p in row] for row in transitions]
    c = []
    for pair in range(space.n_pairs):
        s, total = int(space.state_of[pair]), sum(rows[pair])
        mean = sum(p * (x - h[s]) for p, x in zip(rows[pair], h, strict=True)) / total
        c.append(Fraction(float(rewards[pair])) + mean)
    pairs = [space.pair(s, int(a)) for s, a in enumerate(policy)]
    reach = []
    for s in range(space.n_states):
        seen, waiting = {s}, [s]
        while waiting:
            here = waiting.pop()
            news = {j for j, p in enumerate(rows[pairs[here]]) if p > 0} - seen
            seen |= news
            waiting += news
        reach.append(seen)
    closed = [reach[s] for s in range(space.n_states) if all(s in reach[j] for j in reach[s])]
    return max(min(c[pairs[s]] for s in group) for group in closed), max(c)


def test_the_bracket_is_honest_to_the_last_digit(way):
    """Fractions fall inside it, and it is not much wider: for good and for random h and policy."""
    rng = np.random.default_rng(5)
    for trial in range(40):
        space, rewards, transitions = tiny(rng, ["sparse", "full"][trial % 2])
        found = solve(space, rewards, transitions)
        scale = 10.0 ** rng.integers(-2, 9)
        guess = rng.random(space.n_states) * scale
        for bias, policy in ((found.bias, found.policy), (guess, rng.integers(0, space.counts))):
            lower, upper, rounding = certify(space, rewards, transitions, bias, policy)
            least, most = literal_bracket(space, rewards, transitions, bias, policy)
            assert lower <= least
            assert most <= upper
            assert upper - most <= 2 * rounding
            assert least - lower <= 2 * rounding
            assert rounding <= 1e-14 * (1 + np.ptp(bias))
        least, most = literal_bracket(space, rewards, transitions, found.bias, found.policy)
        assert found.lower <= least
        assert most <= found.upper


def test_an_action_too_little_better_to_switch_still_counts(way):
    space, better = StateActions([2]), 0.5 + 2.0**-50
    found = solve(space, [0.5, better], [[1.0], [1.0]], warm=[0])
    assert found.policy.tolist() == [0]
    assert found.lower <= 0.5
    assert found.upper >= better


def test_a_wrong_bias_gives_a_wide_bracket():
    space, rewards, transitions = WEAKLY_COMMUNICATING["ragged"]()
    found = solve(space, rewards, transitions)
    wrong = found.bias.copy()
    wrong[2] += 0.1
    lower, upper, _ = certify(space, rewards, transitions, wrong, found.policy)
    assert upper - lower > 0.05
    assert lower <= found.gain <= upper


def test_a_wrong_evaluation_cannot_pass(monkeypatch):
    monkeypatch.setattr(gain, "SMALL", 0)
    right = policy_iteration._evaluate

    def wrong(model, pairs, rewards=None):
        gains, bias = right(model, pairs, rewards)
        return gains, bias + np.linspace(0.0, 1e-4, bias.size)

    monkeypatch.setattr(policy_iteration, "_evaluate", wrong)
    with pytest.raises(NotConverged, match=r"policies the gain is only known to lie in \["):
        solve(*WEAKLY_COMMUNICATING["dense"]())


def test_a_model_too_slow_for_its_tolerance_says_so(way):
    """Its bias is 1e11 and differs by 1 between neighbours: 1e-9 cannot be proved, 1e-4 can."""
    space = StateActions([1, 1, 1, 3])
    rows = [[1, 0, 0, 0], [0, 0.9, 0, 0.1], [1e-10, 0, 1 - 1e-10, 0],
            [1e-11, 0, 0, 1 - 1e-11], [0, 0, 0, 1], [1e-12, 0, 0, 1 - 1e-12]]  # fmt: skip
    rewards = [2 / 3, 0, 1, 0, 1 / 3, 1 / 3]
    assert solve(space, rewards, rows, tol=1e-4).gain == pytest.approx(2 / 3, abs=1e-4)
    with pytest.raises(NotConverged, match="and 1e-16 was asked for"):
        solve(space, rewards, rows, tol=1e-16)


def test_slow_rings_against_all_policies_in_fractions(way):
    """Each state waits 10^k steps and moves on: the gain is the mean reward weighted by waits."""
    rng = np.random.default_rng(13)
    for trial in range(20):
        states = int(rng.integers(2, 5))
        space = StateActions(rng.integers(1, 4, size=states))
        digits = rng.integers(*((0, 6) if trial % 2 else (6, 11)), size=space.n_pairs)
        rewards = rng.integers(0, 17, size=space.n_pairs) / 16
        rows = np.zeros((space.n_pairs, states))
        for pair, s in enumerate(space.state_of):
            rows[pair, s] = 1 - 10.0 ** -int(digits[pair])
            rows[pair, (s + 1) % states] = 10.0 ** -int(digits[pair])
        best = Fraction(0)
        for actions in itertools.product(*map(range, space.counts)):
            pairs = [space.pair(s, a) for s, a in enumerate(actions)]
            waits = [10 ** int(digits[pair]) for pair in pairs]
            paid = sum(w * Fraction(rewards[pair]) for w, pair in zip(waits, pairs, strict=True))
            best = max(best, paid / sum(waits))
        found = solve(space, rewards, rows)
        assert found.gain == pytest.approx(float(best), abs=1e-12)
        assert found.upper - found.lower <= 1e-9


def slow_model(rng, states, digits):
    """A random model with moves of probability 10^-digits beside quick ones."""
    space = StateActions(rng.integers(1, 3, size=states))
    moves = rng.dirichlet(np.ones(states), size=space.n_pairs)
    moves *= 10.0 ** -rng.choice([0.3, digits - 1.0, digits], size=moves.shape)
    moves[np.arange(space.n_pairs), space.state_of] = 0.0
    moves[np.arange(space.n_pairs), space.state_of] = 1.0 - moves.sum(axis=1)
    return space, rng.random(space.n_pairs), moves


@pytest.mark.parametrize("digits", [8, 13, 16, 30])
def test_the_bracket_is_within_the_tolerance_and_holds_the_exact_gain(way, digits):
    """With one double a state, brackets of such models are up to 1e-8, 1e-3, 1 and 1e14 wide."""
    rng = np.random.default_rng(digits)
    trials = 500 if RELIABILITY else 60
    refused = further = 0
    for _ in range(trials):
        space, rewards, rows = slow_model(rng, int(rng.integers(2, 5)), digits)
        try:
            found = solve(space, rewards, rows)
        except NotConverged:
            refused += 1
            continue
        further += len(found.parts) > 1
        best = best_gain(space, rewards, rows)
        assert Fraction(found.lower) <= best <= Fraction(found.upper)
        assert Fraction(found.upper) - Fraction(found.lower) <= Fraction(1e-9)
        again = certify(space, rewards, rows, found.parts, found.policy)
        assert Fraction(again.lower) <= best <= Fraction(again.upper)
        assert again.upper - again.lower <= 2e-9
    assert further > 0 or digits == 30
    assert refused <= (trials // 5 if digits == 30 else 0)


def test_three_states_that_all_but_never_move(way):
    """The best pair is left once in 10^13 steps, for neighbours that move all the time."""
    space = StateActions([1, 2, 1])
    rows = [
        [1 - 2.0**-43, 2.0**-43, 0], [0.25, 0.75 - 2.0**-44, 2.0**-44], [0.5, 0.5, 0],
        [3 * 2.0**-43, 2.0**-44, 1 - 7 * 2.0**-44],
    ]  # fmt: skip
    rewards = [0.3, 0.9, 0.1, 0.7]
    best = best_gain(space, rewards, rows)
    for tol in (1e-6, 1e-9, 1e-12):
        found = solve(space, rewards, rows, tol=tol)
        assert Fraction(found.upper) - Fraction(found.lower) <= Fraction(tol)
        assert Fraction(found.lower) <= best <= Fraction(found.upper)


def test_gains_that_were_still_rising_are_not_handed_out(monkeypatch):
    """The largest gain is proved at once, but state 1 has not yet turned to it."""
    monkeypatch.setattr(policy_iteration, "ROUNDS", 1)
    monkeypatch.setattr(gain, "ROUNDS", 1)
    monkeypatch.setattr(policy_iteration, "LEAKS", ())
    space, rewards = StateActions([1, 2, 1]), [0.2, 0.0, 0.0, 0.9]
    rows = [[1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert solve(space, rewards, rows).gains == pytest.approx([0.2, 0.9, 0.9])
    with pytest.raises(NotConverged, match=r"in \[0\.9, 0\.9\]"):
        solve(space, rewards, rows, warm=[0, 0, 0])


def test_the_lower_bound_sees_every_state_of_the_class():
    rows = np.eye(5)[[1, 2, 0, 0, 4]]  # 0 -> 1 -> 2 -> 0, 3 -> 0, 4 stays
    floor = np.array([3.0, 2.0, 1.0, -5.0, -7.0])
    marks = np.zeros((2, 5), dtype=np.int64)
    lowest = kernels._lowest_on_closed_class
    for root, expected in ((0, 1.0), (1, 1.0), (4, -7.0)):
        assert lowest(rows, np.arange(5), root, floor, *marks) == expected


def test_many_models_in_a_row_are_the_same_as_each_alone(way):
    space, first, start = _random([3, 2, 4, 1], 0)
    _, last, end = _random([3, 2, 4, 1], 1)
    apart = np.eye(4)[space.state_of]  # every state stays: as many classes as states
    shares = np.linspace(0, 1, 21)
    rewards = np.array([(1 - x) * first + x * last for x in shares] + [first])
    rows = np.array([(1 - x) * start + x * end for x in shares] + [apart])
    found = solve_many(space, rewards, rows)
    assert len({tuple(one.policy) for one in found[:-1]}) > 1  # the drift changes the policy
    for one, r, p in zip(found, rewards, rows, strict=True):
        alone = solve(space, r, p)
        assert one.gains == pytest.approx(alone.gains, abs=1e-12)
        assert one.gain == pytest.approx(gain_lp(space, r, p).dual, abs=1e-8)
        assert one.upper - one.lower <= 1e-9
    best = np.maximum.reduceat(first, space.offsets[:-1])
    assert found[-1].gains == pytest.approx(best, abs=1e-14)
    sparse = solve_many(space, rewards, [csr_array(p) for p in rows])
    assert [one.gain for one in sparse] == pytest.approx([one.gain for one in found], abs=1e-12)
    assert solve_many(space, np.empty((0, 10)), np.empty((0, 10, 4))) == []


def test_a_warm_start_at_the_optimum_takes_one_round(way):
    space, rewards, transitions = WEAKLY_COMMUNICATING["dense"]()
    cold = solve(space, rewards, transitions)
    worst = [np.argmin(rewards[i:j]) for i, j in itertools.pairwise(space.offsets)]
    assert solve(space, rewards, transitions, warm=worst).iterations > 1
    assert solve(space, rewards, transitions, warm=cold.policy).iterations == 1
    for seed in range(5):
        warm = np.random.default_rng(seed).integers(0, space.counts)
        assert solve(space, rewards, transitions, warm=warm).gain == pytest.approx(cold.gain)


def test_rows_are_rescaled_within_rounding(way):
    """Rows off by 5e-10 stand for the rescaled rows; a bias of 1000 would show the difference."""
    space, rewards, transitions = river(150)
    rough = transitions.toarray() * (1 + 5e-10 * np.sin(np.arange(300)))[:, None]
    found = solve(space, rewards, rough)
    assert found.iterations == 1  # the first way settles it
    assert found.gain == pytest.approx(3 / 7, abs=1e-12)
    assert found.lower <= 3 / 7 <= found.upper <= found.lower + 1e-11


def test_inputs_are_left_alone_and_answers_are_frozen(way):
    space, rewards, transitions = WEAKLY_COMMUNICATING["ragged"]()
    before = rewards.copy(), transitions.copy()
    found = solve(space, rewards, transitions)
    several = rewards[None].copy(), transitions[None].copy()
    solve_many(space, *several)
    for array in (rewards, transitions, *several):
        assert array.flags.writeable
    assert (rewards == before[0]).all()
    assert (transitions == before[1]).all()
    for array in (found.gains, found.bias, found.policy):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_ties_do_not_make_it_cycle(way):
    """Rewards of a few values and copied rows: hundreds of equal policies."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        space = StateActions.uniform(12, 6)
        rows = np.repeat(rng.dirichlet(np.ones(12) / 4, size=24), 3, axis=0)
        rewards = rng.integers(0, 2, size=72).astype(float)
        found = solve(space, rewards, rows)
        assert found.iterations < 15
        assert found.gain == pytest.approx(gain_lp(space, rewards, rows).dual, abs=1e-8)


GOOD = (StateActions([1, 2]), [0.0, 1.0, 0.2], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"rewards": [0.0, np.nan, 1.0]}, ModelError, "rewards: is not one finite number a pair"),
        ({"rewards": [0.0, 1.0]}, ModelError, r"shape \(2,\), 3 pairs"),
        ({"rewards": ["a", 1, 2]}, ModelError, "rewards: is not an array of numbers"),
        (
            {"transitions": [[0, 1], [1, 0]]},
            ModelError,
            r"shape \(2, 2\), the space needs \(3, 2\)",
        ),
        ({"transitions": [[0, 1], [1, 0], [0, 0.98]]}, ModelError, "s=1, a=1: .* sums to 0.98"),
        ({"transitions": [[0, 1], [1.5, -0.5], [0, 1]]}, ModelError, "s=1, a=0: .* entry -0.5"),
        ({"transitions": [[0, 1], [np.nan, 1], [0, 1]]}, ModelError, "s=1, a=0"),
        ({"tol": 0.0}, InputError, "tol"),
        ({"method": "simplex"}, InputError, "method: no such choice"),
        ({"warm": [0, 2]}, InputError, "warm: is not an action of each of 2 states"),
        ({"warm": [0, -1]}, InputError, "warm"),
        ({"warm": [0]}, InputError, "warm"),
        ({"warm": [0.0, 1.0]}, InputError, "warm"),
        ({"warm": [0, 0], "method": "value-iteration"}, InputError, "does not start from a policy"),
    ],
)
def test_impossible_arguments_are_named(way, change, error, words):
    arguments = dict(zip(("space", "rewards", "transitions"), GOOD, strict=True)) | change
    with pytest.raises(error, match=words):
        solve(**arguments)
    if "warm" not in change:
        with pytest.raises(error, match=words):
            solve(**arguments, warm=[0, 1])


def test_impossible_batches_and_certificates_are_named():
    space, rewards, rows = GOOD
    with pytest.raises(ModelError, match="there are 1 transitions"):
        solve_many(space, [rewards, rewards], np.array([rows]))
    with pytest.raises(ModelError, match="the space needs"):
        solve_many(space, [rewards], np.array([rows])[:, :, :1])
    with pytest.raises(InputError, match="bias"):
        certify(space, rewards, rows, [0.0, np.inf], [0, 0])
    with pytest.raises(InputError, match="policy"):
        certify(space, rewards, rows, [0.0, 0.0], [0, 3])


def test_gains_that_were_badly_evaluated_are_not_believed(monkeypatch):
    """The bracket speaks of the largest gain only: others must solve their own equations."""
    space, rewards, rows = StateActions([1, 1]), np.array([0.3, 0.8]), np.eye(2)
    evaluate = policy_iteration._evaluate

    def badly(model, pairs, rewards=None):
        gains, bias = evaluate(model, pairs, rewards)
        return gains + np.array([0.01, 0.0]), bias

    assert solve(space, rewards, rows).gains == pytest.approx([0.3, 0.8], abs=1e-15)
    monkeypatch.setattr(policy_iteration, "_evaluate", badly)
    with pytest.raises(NotConverged, match="only known to lie in"):
        solve(space, rewards, rows)


def test_a_row_of_models_starts_where_it_is_told():
    """Ties: the policy that comes in is the one that stays."""
    space = StateActions([2, 2])
    r, p = np.full((3, 4), 0.5), np.array([np.eye(2)[[0, 1, 0, 1]]] * 3)
    for warm in ([0, 1], [1, 0], [0, 0]):
        for some in (p, [csr_array(one) for one in p]):
            found = solve_many(space, r, some, warm=warm)
            assert [one.policy.tolist() for one in found] == [warm] * 3


def test_the_lower_end_is_taken_over_the_whole_closed_class():
    rows = np.array([[0.7, 0.3, 0.0], [0.2, 0.75, 0.05], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    policy, floor = np.array([0, 1, 2]), np.array([1.0, 0.5, -1.0])
    marks = np.zeros((2, 3), dtype=np.int64)
    lowest = kernels._lowest_on_closed_class
    assert lowest(rows, policy, 0, floor, *marks) == -1.0
    apart = np.array([3, 1, 2])  # state 0 leads to 2, which leads back
    assert lowest(rows, apart, 0, floor, *marks) == -1.0
    alone = np.eye(4, 3)
    assert lowest(alone, policy, 1, floor, *marks) == 0.5


@pytest.mark.parametrize("tol", [1e-300, 1e-310, 5e-324])
def test_value_iteration_with_a_tolerance_out_of_reach(tol):
    """It says what it knows, even where it is right: no bracket is as narrow as that."""
    space = StateActions([1, 1])
    for rewards in ([0.1, 0.7], [0.5, 0.5]):
        with pytest.raises(NotConverged, match="sweeps"):
            solve(space, rewards, [[0.3, 0.7], [0.6, 0.4]], tol, method="value-iteration")


@pytest.mark.parametrize("states", [5, 250])
def test_subnormal_probabilities_do_no_harm(way, states):
    """One over them overflows, and elimination crawls: they count as none."""
    rng = np.random.default_rng(3)
    space = StateActions.uniform(states, 2)
    rows = rng.dirichlet(np.ones(states), size=2 * states)
    rewards = rng.random(2 * states)
    tiny = rows * (rng.random(rows.shape) < 0.5)
    tiny[np.arange(2 * states), rng.integers(states, size=2 * states)] += 1e-3
    tiny /= tiny.sum(axis=1, keepdims=True)
    with_specks = np.where(tiny == 0.0, 1e-310, tiny)
    found = solve(space, rewards, csr_array(with_specks), method="policy-iteration")
    expected = solve(space, rewards, csr_array(tiny), method="policy-iteration")
    assert found.gain == pytest.approx(expected.gain, abs=1e-12)
    moves = policy_iteration._moves(gain.checked(space, rewards, with_specks))
    assert np.isfinite(moves.data).all()
    system = csr_array(np.eye(states) + 1e-310)
    policy_iteration._factor(system)
    assert set(system.data.tolist()) == {0.0, 1.0}


def test_quick_states_are_taken_out_first():
    """On slow chains the order decides on digits: the other way round loses a hundredfold."""
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(300):
        S = int(rng.integers(3, 9))
        rows = rng.dirichlet(np.full(S, 0.5), size=S)
        np.fill_diagonal(rows, 0.0)
        rows *= (10.0 ** -rng.uniform(0, 15, S) / rows.sum(axis=1))[:, None]
        rows[np.arange(S), np.arange(S)] = 1 - rows.sum(axis=1)
        numbers, ends = np.empty((1, 3)), np.empty((1, 2), dtype=np.int64)
        kernels.policy_iterations(
            StateActions([1] * S).offsets, rng.random((1, S)), rows[None], 60,
            np.arange(S)[None].copy(), np.empty((1, S)), ends, numbers,
            np.empty((S, S)), np.empty((4, S)), np.empty((3, S), dtype=np.int64),
        )  # fmt: skip
        assert ends[0, 0] == kernels.SETTLED
        widths.append(numbers[0, 2] - numbers[0, 1])
    assert np.median(widths) <= 1e-7
