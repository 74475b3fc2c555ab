"""E12: how large the bias of a dual feasible pair can be; and E28: D(s, s) = 0."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp

SWAP = wd.StateActions.uniform(2, 2)
MOVES = [[1, 0], [0, 1], [0, 1], [1, 0]]  # stay or change, in both states


def feasible(mdp: wd.MDP, rho: float, gamma: np.ndarray) -> bool:
    """The dual of spec 1.5: rho + gamma(s) >= r(s, a) + sum p gamma."""
    left = rho + gamma[mdp.space.state_of]
    return bool((left >= mdp.rewards + mdp.transitions @ gamma - 1e-9).all())


def test_the_printed_lemma_is_false():
    """Printed: span <= 2 D for any dual feasible pair. Here D = 1 and the span is 9."""
    mdp = wd.MDP(SWAP, [0.0] * 4, MOVES)
    gamma = np.array([0.0, 9.0])
    assert mdp.diameter() == 1
    assert feasible(mdp, 10.0, gamma)
    assert np.ptp(gamma) > 2 * mdp.diameter()
    assert np.ptp(gamma) <= mdp.diameter() * (10.0 - mdp.rewards.min())  # ours


@pytest.mark.parametrize("seed", range(40))
def test_the_bias_of_a_dual_feasible_pair_is_at_most_d_times_rho_less_the_least_reward(seed):
    """Ours, on the optimal pairs of the linear program and of policy iteration."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(wd.StateActions(rng.integers(1, 4, size=rng.integers(2, 6))), seed, 0.6)
    if not mdp.is_communicating():
        mdp = random_mdp(mdp.space, seed)
    D, least = mdp.diameter(), mdp.rewards.min()
    program, solution = wd.gain_lp(mdp), mdp.solve()
    for rho, gamma in ((program.dual, program.bias), (solution.upper, solution.bias)):
        assert feasible(mdp, rho, gamma)
        assert np.ptp(gamma) <= D * (rho - least) + 1e-6
        assert np.ptp(gamma) <= D + 1e-6  # rewards in [0, 1]: the factor is D, not 2 D


def test_the_bound_is_attained():
    """Leaving takes D = 3 steps on average; the bias of the far state is D (rho - min r)."""
    space = wd.StateActions([1, 1])
    mdp = wd.MDP(space, [0.0, 1.0], [[2 / 3, 1 / 3], [0.0, 1.0]])
    solution = mdp.solve()
    assert solution.gain == pytest.approx(1.0)
    assert np.ptp(solution.bias) == pytest.approx(3.0, abs=1e-9)


def test_e28_one_state_has_diameter_zero():
    """E28: the least time to where one already is is 0, so S = 1 has D = 0 as the remark says.

    Were t = 0 not allowed, as printed, the way back to s would count: 1 here, and 2 in a cycle of
    two states, whose diameter is 1.
    """
    assert wd.MDP.from_arrays([[0.3, 0.7]], [[[1.0], [1.0]]]).diameter() == 0.0
    cycle = np.array([[0.0, 1.0], [1.0, 0.0]])
    two = wd.MDP(wd.StateActions([1, 1]), [0.0, 1.0], cycle)
    back = min(n for n in range(1, 5) if np.linalg.matrix_power(cycle, n)[0, 0] == 1.0)
    assert two.diameter() == pytest.approx(1.0)
    assert two.diameter() < back
