"""Algorithm 2, extended value iteration, followed with a pencil; E39: when it ends.

Three states in a row. From 0 one can only stay or step to 1; the sets allow more the fewer visits
there were. Numbers are whole multiples of 1/64, so that every sum here is exact.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from windage import reference

SPACE = wd.StateActions([2, 1, 1])
REGION = wd.ConfidenceRegion(
    SPACE,
    reward_upper=[0.25, 0.0, 0.0, 1.0],
    p_hat=[[1, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]],
    radius=[0.0, 0.25, 0.25, 0.25],
    visited=[True] * 4,
    widening=[0.0, 0.25, 0.25, 0.25],
)


def test_algorithm_2_line_by_line():
    """From u_0 = 0; a quarter of the mass may move to the best state.

    u_1 = (1/4, 0, 1).
    u_2: best is 2, worst 1, then 0.
        (0, 0)  1/4 + 1/4 = 1/2
        (0, 1)  from (1/2, 1/2, 0) to (1/2, 1/4, 1/4): 1/8 + 0 + 1/4 = 3/8
        (1, 0)  from (1/2, 0, 1/2) to (1/4, 0, 3/4): 1/16 + 3/4 = 13/16
        (2, 0)  from (0, 1/2, 1/2) to (0, 1/4, 3/4): 1 + 3/4 = 7/4
      u_2 - u_1 = (1/4, 13/16, 3/4): span 9/16.
    u_3, from u_2 - 1/2 = (0, 5/16, 5/4): worst is 0.
        (0, 0)  1/4
        (0, 1)  (1/4, 1/2, 1/4): 5/32 + 5/16 = 15/32
        (1, 0)  (1/4, 0, 3/4): 15/16
        (2, 0)  (0, 1/4, 3/4): 1 + 5/64 + 15/16 = 129/64
      u_3 - u_2 = (15/32, 5/8, 49/64): span 19/64.
    """
    by_hand = [
        # eps, sweeps, rho~, gamma~, values of the pairs, policy
        (1.0, 1, 1.0, [0, 0, 0], [1 / 4, 0, 0, 1], [0, 0, 0]),
        (9 / 16, 2, 13 / 16, [1 / 4, 0, 1], [1 / 2, 3 / 8, 13 / 16, 7 / 4], [0, 0, 0]),
        (
            19 / 64, 3, 49 / 64, [0, 5 / 16, 5 / 4],
            [1 / 4, 15 / 32, 15 / 16, 129 / 64], [1, 0, 0],
        ),
    ]  # fmt: skip
    for epsilon, sweeps, gain, bias, values, policy in by_hand:
        model = wd.evi(REGION, epsilon=epsilon, method="plain")  # span <= eps: equality ends it
        assert model.sweeps == sweeps
        assert model.gain == gain
        assert model.bias.tolist() == bias
        assert model.span == max(bias)
        assert model.policy.tolist() == policy
        assert model.action_values.tolist() == values
        just_below = wd.evi(REGION, epsilon=math.nextafter(epsilon, 0), method="plain")
        assert just_below.sweeps == sweeps + 1
        plan = reference.evi(
            SPACE, REGION.reward_upper, REGION.p_hat.toarray(), REGION.width, epsilon
        )
        assert (plan.sweeps, plan.gain, plan.bias.tolist()) == (sweeps, gain, bias)
        assert (plan.values.tolist(), plan.policy.tolist()) == (values, policy)
    rows = wd.evi(REGION, epsilon=19 / 64, method="plain").transitions  # p~ under u_2
    assert rows.tolist() == [[1 / 4, 1 / 2, 1 / 4], [1 / 4, 0, 3 / 4], [0, 1 / 4, 3 / 4]]


def literal_spans(r, p, sweeps):
    """Algorithm 2 as printed where every set is one kernel: span(u_{i+1} - u_i) of each sweep."""
    u, spans = np.zeros(len(r)), []
    for _ in range(sweeps):
        after = r + p @ u
        spans.append(np.ptp(after - u))
        u = after
    return spans


def single(r, p, width):
    S = len(r)
    return wd.ConfidenceRegion(wd.StateActions([1] * S), r, p, [width] * S, [True] * S)


def test_e39_a_communicating_kernel_is_not_enough_for_the_printed_iteration():
    """Two states in turn: the printed loop has span 1 for ever, ours finds rho = 1/2."""
    r, p = np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    assert wd.MDP(wd.StateActions([1, 1]), r, p).is_communicating()
    assert set(literal_spans(r, p, 1_000)) == {1.0}
    for method in ("plain", "auto"):
        model = wd.evi(single(r, p, 0.0), epsilon=1e-6, method=method)
        assert model.gain == pytest.approx(0.5, abs=1e-6)


def test_e39_sets_of_positive_width_always_hold_a_communicating_kernel():
    """p_hat never leaves a state. The premise as read off p_hat fails; with any width EVI ends.

    Half the width moves: state 1 stays and state 0 leaves with probability width / 2, so that the
    gain is 1, and the bias of state 1 is (1 - 0) / (width / 2).
    """
    r, p = np.array([0.0, 1.0]), np.eye(2)
    assert not wd.MDP(wd.StateActions([1, 1]), r, p).is_communicating()
    assert literal_spans(r, p, 1_000)[-1] == 1.0
    for width in (0.5, 0.125, 2.0**-8):
        model = wd.evi(single(r, p, width), epsilon=1e-6)
        assert model.gain == pytest.approx(1.0, abs=1e-6)
        assert model.span == pytest.approx(2 / width, rel=1e-3)


def test_e39_what_does_not_converge_says_so():
    """Without width there is nothing to find: a typed error with the numbers, not an endless loop.

    The two closed states earn 0 and 1 a step, whatever the start.
    """
    for method in ("plain", "auto"):
        with pytest.raises(wd.NotConverged, match=r"sweeps span\(Tu - u\) is 1, wanted 1e-06"):
            wd.evi(single([0.0, 1.0], np.eye(2), 0.0), epsilon=1e-6, method=method)
        with pytest.raises(wd.NotConverged, match="after 7 sweeps"):
            wd.evi(single([0.0, 1.0], np.eye(2), 0.0), epsilon=1e-6, method=method, max_sweeps=7)


@pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")
def test_e39_an_agent_without_width_says_so_too():
    """Radii 0 and eta 0: once both closed states were met, there is no optimistic policy."""
    radii = wd.Radii.paper().scaled(0.0)
    agent = wd.SWUCRL2CW(wd.StateActions([1, 1]), horizon=100, window=50, widening=0.0, radii=radii)
    agent.preload(0, 0, 0.0, 0)
    for _ in range(9):
        agent.preload(1, 0, 1.0, 1)
    agent.act(1)  # eps = 1 at t = 1
    agent.observe(1, 0, 1.0, 1)
    for _ in range(8):
        agent.act(1)
        agent.observe(1, 0, 1.0, 1)
    with pytest.raises(wd.NotConverged, match="span"):
        agent.act(1)
