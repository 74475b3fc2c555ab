"""What must hold of the optimal gain of any model, hypothesis-generated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windage.errors import NotConverged
from windage.oracle import gain
from windage.oracle.gain import certify, solve, solve_many
from windage.oracle.lp import gain_lp
from windage.spaces import StateActions

CLOSE = 1e-9


@st.composite
def models(draw, most_states=5, most_actions=3):
    """Ragged action sets, rows of small integer weights: sure, periodic, split, slow to mix."""
    counts = draw(st.lists(st.integers(1, most_actions), min_size=1, max_size=most_states))
    space = StateActions(counts)
    weights = st.lists(st.integers(0, 3), min_size=space.n_states, max_size=space.n_states)
    rows = draw(st.lists(weights.filter(any), min_size=space.n_pairs, max_size=space.n_pairs))
    rewards = draw(st.lists(st.integers(0, 8), min_size=space.n_pairs, max_size=space.n_pairs))
    transitions = np.array(rows, dtype=float)
    return space, np.array(rewards) / 8, transitions / transitions.sum(axis=1, keepdims=True)


def general(*arguments, **options):
    """Solve with the compiled loop switched off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gain, "SMALL", 0)
        return solve(*arguments, **options)


@given(models())
def test_the_program_lies_in_the_bracket_of_both_ways(model):
    program = gain_lp(*model)
    assert program.primal == pytest.approx(program.dual, abs=1e-8)
    for found in (solve(*model), general(*model)):
        assert found.gain == pytest.approx(program.dual, abs=1e-8)
        assert found.lower - CLOSE <= program.primal <= found.upper + CLOSE
        assert found.lower <= found.gain <= found.upper <= found.lower + CLOSE + 1e-12
        lower, upper, _ = certify(*model, found.bias, found.policy)
        assert lower == pytest.approx(found.lower, abs=1e-12)
        assert upper == pytest.approx(found.upper, abs=1e-12)


@given(models())
def test_value_iteration_agrees_or_says_that_gains_differ(model):
    found = solve(*model)
    if np.ptp(found.gains) > 1e-6:
        with pytest.raises(NotConverged, match="sweeps"):
            solve(*model, method="value-iteration")
    else:
        swept = solve(*model, method="value-iteration")
        assert swept.gain == pytest.approx(found.gain, abs=CLOSE)
        assert swept.lower <= swept.gain <= swept.upper


@given(models(), st.randoms(use_true_random=False))
def test_names_of_states_and_actions_do_not_matter(model, random):
    space, rewards, transitions = model
    states = random.sample(
        range(space.n_states), space.n_states
    )  # new state i is the old states[i]
    pairs = []
    for s in states:
        own = list(range(space.offsets[s], space.offsets[s + 1]))
        pairs += random.sample(own, len(own))
    renamed = StateActions(space.counts[states])
    found = solve(renamed, rewards[pairs], transitions[pairs][:, states])
    assert found.gains == pytest.approx(solve(*model).gains[states], abs=CLOSE)


@given(models(), st.data())
def test_another_action_never_lowers_a_gain_and_a_copy_leaves_it(model, data):
    space, rewards, transitions = model
    before = solve(*model)
    state = data.draw(st.integers(0, space.n_states - 1))
    last = space.offsets[state + 1]
    wider = StateActions(space.counts + (np.arange(space.n_states) == state))
    copied = data.draw(st.integers(space.offsets[state], last - 1))
    same = solve(
        wider, np.insert(rewards, last, rewards[copied]),
        np.insert(transitions, last, transitions[copied], axis=0),
    )  # fmt: skip
    assert same.gains == pytest.approx(before.gains, abs=CLOSE)
    other = data.draw(st.integers(0, space.n_pairs - 1))
    more = solve(
        wider, np.insert(rewards, last, rewards[other]),
        np.insert(transitions, last, transitions[other], axis=0),
    )  # fmt: skip
    assert (more.gains >= before.gains - CLOSE).all()


@given(models(), st.floats(-5, 5), st.floats(0.01, 20))
def test_rewards_shifted_and_scaled(model, shift, scale):
    space, rewards, transitions = model
    before, after = solve(*model), solve(space, shift + scale * rewards, transitions)
    assert after.gains == pytest.approx(shift + scale * before.gains, abs=1e-8)
    assert after.lower - 1e-8 <= shift + scale * before.gain <= after.upper + 1e-8


@given(models(), st.data())
def test_any_start_leads_to_the_same_gains(model, data):
    space = model[0]
    warm = [data.draw(st.integers(0, int(count) - 1)) for count in space.counts]
    cold = solve(*model)
    for found in (solve(*model, warm=warm), general(*model, warm=warm)):
        assert found.gains == pytest.approx(cold.gains, abs=CLOSE)


@given(models(), st.data())
def test_any_bias_and_policy_bracket_the_gain_from_outside(model, data):
    """Above: every h bounds the gain. Below: every policy's bound is at most the optimum."""
    space = model[0]
    bias = [data.draw(st.floats(-100, 100)) for _ in range(space.n_states)]
    policy = [data.draw(st.integers(0, int(count) - 1)) for count in space.counts]
    lower, upper, _ = certify(*model, bias, policy)
    found = solve(*model)
    assert lower <= found.gain + 1e-12
    assert upper >= found.gain - 1e-12


@given(models(), models())
def test_a_row_of_models_is_each_alone(first, second):
    space, rewards, transitions = first
    r = np.resize(second[1], space.n_pairs)
    p = np.roll(transitions, 1, axis=0)
    found = solve_many(space, [rewards, r, rewards], np.array([transitions, p, transitions]))
    assert found[0].gains == pytest.approx(solve(*first).gains, abs=CLOSE)
    assert found[1].gains == pytest.approx(solve(space, r, p).gains, abs=CLOSE)
    assert found[2].gains == pytest.approx(found[0].gains, abs=CLOSE)
