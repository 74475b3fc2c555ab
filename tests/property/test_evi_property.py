"""What must hold of EVI on any confidence region, hypothesis-generated.

The second opinion is one linear program over z(s, a, s') that knows neither sweeps nor inner
maxima: the largest average reward of any policy and any kernel in the sets.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

from tests.unit.confidence.test_evi_certificate import assert_certified
from windage.confidence.confidence import ConfidenceRegion, evi
from windage.errors import NotConverged
from windage.spaces import StateActions

EPSILON = 1e-6
CLOSE = EPSILON + 1e-7
METHODS = st.sampled_from(["auto", "plain"])


def gain_by_program(region):
    """Maximise sum r x, x(s,a) = sum_s' z(s,a,s'): flow balances, sum |z - p_hat x| <= width x.

    The absolute values are split into d >= |z - p_hat x|, one for each z.
    """
    space, S = region.space, region.space.n_states
    n = space.n_pairs * S
    rows = region.p_hat.toarray()
    equal, below = [], []  # (row, column, coefficient)
    for i in range(n):
        pair, after = divmod(i, S)
        equal += [(int(space.state_of[pair]), i, 1.0), (after, i, -1.0), (S, i, 1.0)]
    row = 0
    for pair in range(space.n_pairs):
        own = range(pair * S, pair * S + S)
        if not region.visited[pair] or region.radius[pair] + region.widening[pair] >= 2.0:
            continue  # any kernel will do
        for after in range(S):
            for sign in (1.0, -1.0):
                below.append((row, n + own[after], -1.0))
                below.append((row, own[after], sign))
                below += [(row, i, -sign * rows[pair, after]) for i in own]
                row += 1
        below += [(row, n + i, 1.0) for i in own]
        below += [(row, i, -region.radius[pair] - region.widening[pair]) for i in own]
        row += 1

    def matrix(entries, height):
        at = np.array([(i, j) for i, j, _ in entries], dtype=int).reshape(-1, 2).T
        return coo_array(([c for _, _, c in entries], (at[0], at[1])), (height, 2 * n)).tocsr()

    found = linprog(
        -np.concatenate([np.repeat(region.reward_upper, S), np.zeros(n)]),
        A_ub=matrix(below, row) if row else None,
        b_ub=np.zeros(row) if row else None,
        A_eq=matrix(equal, S + 1),
        b_eq=np.append(np.zeros(S), 1.0),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return -found.fun


@st.composite
def regions(draw, most_states=4, most_actions=3, widths=(0, 1, 2, 5, 10, 16, 25), least=1):
    """Ragged action sets; rows sure, periodic or spread; pairs never visited; eta by pair or one.

    With `least` > 0 every state has an action of positive width, so that all communicate.
    """
    counts = draw(st.lists(st.integers(1, most_actions), min_size=1, max_size=most_states))
    space = StateActions(counts)
    S, n = space.n_states, space.n_pairs
    weights = st.lists(st.integers(0, 3), min_size=S, max_size=S).filter(any)
    rows = np.array(draw(st.lists(weights, min_size=n, max_size=n)), dtype=float)
    rewards = draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))
    radius = np.array(draw(st.lists(st.sampled_from(widths), min_size=n, max_size=n))) / 10
    visited = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    eta = draw(
        st.one_of(
            st.sampled_from([0.0, 0.1, 0.25, 1.0]),
            st.lists(st.sampled_from([0.0, 0.05, 0.3]), min_size=n, max_size=n),
        )
    )
    width = radius + np.asarray(eta)
    if least:
        for s in range(S):
            own = slice(space.offsets[s], space.offsets[s + 1])
            if not width[own].any():
                radius[space.offsets[s]] = 0.1
    return ConfidenceRegion(
        space, np.array(rewards) / 8, rows / rows.sum(axis=1, keepdims=True), radius,
        np.array(visited) > 0, eta,
    )  # fmt: skip


def changed(region, **fields):
    """The same region with other fields."""
    names = ("space", "reward_upper", "p_hat", "radius", "visited", "widening")
    return ConfidenceRegion(**({name: getattr(region, name) for name in names} | fields))


@given(regions(), METHODS)
def test_the_gain_is_that_of_the_program(region, method):
    expected = gain_by_program(region)
    for epsilon in (EPSILON, 0.03):
        model = evi(region, epsilon, method=method)
        assert abs(model.gain - expected) <= epsilon + 1e-7
        assert model.gain >= expected - 1e-7  # rho~ is the upper end
        assert_certified(region, model, epsilon)


@given(regions(), METHODS, st.data())
def test_any_start_any_slack_and_any_tie_rule_have_that_gain(region, method, data):
    expected = gain_by_program(region)
    numbers = st.floats(-50, 50)
    start = [data.draw(numbers) for _ in range(region.space.n_states)]
    slack = data.draw(st.sampled_from([0.0, 0.125, 0.5]))
    ties = data.draw(st.sampled_from(["lowest", "random"]))
    seed = data.draw(st.integers(0, 5))
    model = evi(region, EPSILON, start, ties, slack, method=method, seed=seed)
    assert abs(model.gain - expected) <= CLOSE
    assert_certified(region, model, EPSILON, slack)


@given(regions(widths=(0, 0, 0, 1), least=0), METHODS)
def test_it_is_solved_or_said_not_to_be(region, method):
    """Sets of radius 0 may be periodic or fall apart: never a wrong gain, never an endless loop."""
    region = changed(region, widening=0.0)
    try:
        model = evi(region, EPSILON, method=method)
    except NotConverged:
        assert (region.width == 0).any()
    else:
        assert abs(model.gain - gain_by_program(region)) <= CLOSE
        assert_certified(region, model, EPSILON)


@given(regions(), st.randoms(use_true_random=False), METHODS)
def test_names_of_states_and_actions_do_not_matter(region, random, method):
    space = region.space
    states = random.sample(range(space.n_states), space.n_states)  # new i is the old states[i]
    pairs = []
    for s in states:
        own = list(range(space.offsets[s], space.offsets[s + 1]))
        pairs += random.sample(own, len(own))
    renamed = ConfidenceRegion(
        StateActions(space.counts[states]), region.reward_upper[pairs],
        region.p_hat.toarray()[pairs][:, states], region.radius[pairs], region.visited[pairs],
        region.widening[pairs],
    )  # fmt: skip
    before, after = (evi(r, EPSILON, method=method) for r in (region, renamed))
    assert after.gain == pytest.approx(before.gain, abs=2 * CLOSE)
    plain = [evi(r, 0.01, method="plain") for r in (region, renamed)]
    same = plain[0].sweeps == plain[1].sweeps
    assert same or max(model.gap for model in plain) > 0.01 - 1e-9  # rounding decided
    if same:
        assert plain[1].bias == pytest.approx(plain[0].bias[states], abs=1e-9)
        assert plain[1].action_values == pytest.approx(plain[0].action_values[pairs], abs=1e-9)


@given(regions(), st.data())
def test_a_copied_action_leaves_the_gain(region, data):
    space = region.space
    state = data.draw(st.integers(0, space.n_states - 1))
    copied = data.draw(st.integers(space.offsets[state], space.offsets[state + 1] - 1))
    pairs = np.insert(np.arange(space.n_pairs), space.offsets[state + 1], copied)
    wider = StateActions(space.counts + (np.arange(space.n_states) == state))
    more = ConfidenceRegion(
        wider, region.reward_upper[pairs], region.p_hat.toarray()[pairs], region.radius[pairs],
        region.visited[pairs], region.widening[pairs],
    )  # fmt: skip
    before, after = evi(region, EPSILON), evi(more, EPSILON)
    assert after.gain == before.gain
    assert after.bias.tolist() == before.bias.tolist()
    assert after.policy.tolist() == before.policy.tolist()
    new = space.offsets[state + 1]
    assert after.tied[new] == after.tied[copied]
    assert after.action_values[new] == after.action_values[copied]


@given(regions(), st.floats(-5, 5), st.floats(0.05, 20), METHODS)
def test_rewards_shifted_and_scaled(region, shift, scale, method):
    moved = changed(region, reward_upper=shift + scale * region.reward_upper)
    before = evi(region, EPSILON, method=method)
    after = evi(moved, scale * EPSILON, method=method)
    assert after.gain == pytest.approx(shift + scale * before.gain, abs=2 * scale * CLOSE)
    assert_certified(moved, after, scale * EPSILON)


@given(regions(), st.data())
def test_wider_sets_and_larger_rewards_never_lower_the_gain(region, data):
    """eta, one radius, one reward, one pair forgotten: each keeps every plausible model."""
    pair = data.draw(st.integers(0, region.space.n_pairs - 1))
    by = data.draw(st.floats(0, 2))
    one = by * (np.arange(region.space.n_pairs) == pair)
    before = evi(region, EPSILON).gain
    for wider in (
        changed(region, widening=region.widening + by),
        changed(region, widening=region.widening + one),
        changed(region, radius=region.radius + one),
        changed(region, reward_upper=region.reward_upper + one),
        changed(region, visited=region.visited & (one == 0)),
    ):
        assert evi(wider, EPSILON).gain >= before - 2 * EPSILON


@given(regions(widths=(0, 1, 3, 7)), st.sampled_from([0.2, 0.6, 1.1]))
def test_widening_is_not_dropped(region, eta):
    """radius + eta is the width: moving eta into the radius changes nothing."""
    all_seen = changed(region, visited=region.visited | True, p_hat=visible(region))
    as_radius = changed(all_seen, radius=all_seen.radius + eta, widening=0.0)
    as_widening = changed(all_seen, widening=eta)
    assert evi(as_radius, EPSILON).gain == pytest.approx(
        evi(as_widening, EPSILON).gain, abs=2 * EPSILON
    )
    assert abs(evi(as_widening, EPSILON).gain - gain_by_program(as_widening)) <= CLOSE


def visible(region):
    rows = region.p_hat.toarray()
    rows[~region.visited] = np.eye(region.space.n_states)[0]
    return rows


@given(regions(), st.floats(2, 10))
def test_a_widening_of_two_is_the_largest_reward(region, eta):
    free = changed(region, widening=eta)
    model = evi(free, EPSILON)
    assert model.gain == pytest.approx(region.reward_upper.max(), abs=CLOSE)
    assert gain_by_program(free) == pytest.approx(region.reward_upper.max(), abs=1e-7)


@given(regions(most_states=1, most_actions=6))
def test_one_state_is_a_bandit(region):
    assume(region.space.n_states == 1)
    model = evi(region, EPSILON)
    assert model.gain == region.reward_upper.max()
    assert model.policy.tolist() == [int(np.argmax(region.reward_upper))]
    assert gain_by_program(region) == pytest.approx(model.gain, abs=1e-7)
