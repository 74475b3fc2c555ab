"""Short bursts of sweeps: right where they answer, silent where they cannot know."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.oracle import gain


@pytest.mark.parametrize("seed", range(5))
def test_models_that_forget_quickly_are_solved_by_sweeps(seed):
    mdp = random_mdp(wd.StateActions.uniform(80, 3), seed)
    found = gain.quick(mdp.space, mdp.rewards, mdp.transitions, 1e-9)
    program = wd.gain_lp(mdp).primal
    assert found.upper - found.lower <= 1e-9
    assert found.lower - 1e-9 <= program <= found.upper + 1e-9
    assert mdp.solve().method == "value-iteration"
    exact = mdp.solve(method="policy-iteration")
    assert found.gain == pytest.approx(exact.gain, abs=1e-9)
    assert found.policy.tolist() == exact.policy.tolist()
    certified = gain.certify(mdp.space, mdp.rewards, mdp.transitions, found.bias, found.policy)
    assert certified.upper - certified.lower <= 1e-9


def test_slow_and_periodic_models_are_left_to_others():
    ring = np.roll(np.eye(70), 1, axis=1)
    space = wd.StateActions.uniform(70, 1)
    rewards = np.arange(70) / 70
    assert gain.quick(space, rewards, ring, 1e-9) is None
    assert gain.swept(space, rewards, ring) is None
    assert wd.MDP(space, rewards, ring).solve().gain == pytest.approx(rewards.mean(), abs=1e-12)
    river = wd.envs.riverswim_mdp(100)
    assert gain.quick(river.space, river.rewards, river.transitions, 1e-9) is None
    assert river.solve().gain == pytest.approx(3 / 7, abs=1e-10)


def test_several_classes_are_left_to_others():
    space = wd.StateActions.uniform(64, 1)
    rewards = np.linspace(0, 1, 64)
    assert gain.quick(space, rewards, np.eye(64), 1e-9) is None
    assert wd.MDP(space, rewards, np.eye(64)).solve().gain == 1.0


def test_what_is_no_model_is_left_to_those_who_say_so():
    mdp = random_mdp(wd.StateActions.uniform(64, 2), 0)
    for rows in (mdp.transitions * 0.98, mdp.transitions - 0.5, mdp.transitions * np.nan):
        assert gain.quick(mdp.space, mdp.rewards, rows, 1e-9) is None
        with pytest.raises(wd.ModelError, match="transitions"):
            gain.solve(mdp.space, mdp.rewards, rows)
    with pytest.raises(wd.ModelError, match="rewards"):
        gain.solve(mdp.space, mdp.rewards[:3], mdp.transitions)


def test_rows_that_sum_to_one_only_nearly_widen_the_bracket():
    mdp = random_mdp(wd.StateActions.uniform(64, 2), 1)
    rows = mdp.transitions * (1 + 5e-10)
    found = gain.quick(mdp.space, mdp.rewards, rows, 1e-6)
    exact = mdp.solve(method="policy-iteration").gain
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower >= 1e-9
    assert gain.quick(mdp.space, mdp.rewards, rows, 1e-10) is None


def test_swept_policies_are_the_first_best_pairs():
    mdp = random_mdp(wd.StateActions([3, 1, 2, 3]), 4)
    pairs = gain.swept(mdp.space, mdp.rewards, mdp.transitions)
    assert (mdp.space.state_of[pairs] == np.arange(4)).all()
    assert (pairs - mdp.space.offsets[:-1]).tolist() == mdp.solve().policy.tolist()


def test_the_first_sweep_may_be_the_last():
    """All pairs pay the same, so nothing is left to sweep; rounding is allowed for even then."""
    mdp = random_mdp(wd.StateActions.uniform(64, 2), 4)
    found = gain.quick(mdp.space, np.full(128, 0.3), mdp.transitions, 1e-9)
    assert (found.gain, found.iterations) == (0.3, 1)
    assert found.upper - found.lower >= 2 * 68 * 2.0**-52
    assert found.lower < 0.3 < found.upper
