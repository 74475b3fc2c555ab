"""Algorithm 1 on ten steps that can be followed with a pencil.

State 0 has actions 0 and 1, state 1 has one; W = 4, T = 10, eta = 0.2, and the radii are scaled to
0.2 / sqrt(N+) for rewards and 0.4 / sqrt(N+) for transitions. With N = 1 half the width of a set is
0.3, with N = 2 it is 0.1 + 0.1 sqrt(2) = h below. Ties go to the lowest action.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

import windage as wd
from windage import reference

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

T, W, DELTA = 10, 4, 0.05
SPACE = wd.StateActions([2, 1])
ROOT = math.sqrt(2)
h = 0.1 + 0.1 * ROOT


def by_hand(boundary="start", T=T):
    """The agent of the example; L = ln(SAT / delta) is scaled away."""
    root_of_l = math.sqrt(math.log(SPACE.n_pairs * T / DELTA))
    factors = {"reward": 0.1 / (ROOT * root_of_l), "transition": 0.1 / root_of_l}
    return wd.SWUCRL2CW(
        SPACE, horizon=T, window=W, widening=0.2, delta=DELTA, ties="lowest", warm_start=False,
        boundary=boundary, radii=wd.Radii.paper().scaled(**factors),
    )  # fmt: skip


class Planned(NamedTuple):
    """What lines 4 to 6 come to at the start of an episode."""

    tau: int
    visits: list  # N of (0, 0), (0, 1), (1, 0) in the window {max(1, tau - W), ..., tau - 1}
    reward: list  # r~ of the three pairs
    gain: float
    bias: list
    sweeps: int
    policy: list


# s, a, R and s' of every step, and the plan where a new episode starts
STEPS = [
    # m = 1: nothing was seen, all may pay 1; u = 0 passes the test with eps = 1
    (Planned(1, [0, 0, 0], [1, 1, 1], 1.0, [0, 0], 1, [0, 0]), 0, 0, 0.4, 1),
    (None, 1, 0, 0.0, 0),  # nu(1, 0) = 0 < N+ = 1: the episode goes on
    # nu(0, 0) = 1 = N+. eps = 1 / sqrt(3): u = (1, .2) after one sweep, span .8, too much.
    # then u - min u = (.8, 0): (0, 0) reaches .6 + .3 x .8, (0, 1) 1 + .8, (1, 0) .2 + .8
    (Planned(3, [1, 0, 1], [0.6, 1, 0.2], 1.0, [0.8, 0], 2, [1, 0]), 0, 1, 0.7, 0),
    # t = 4 = W, and nu(0, 1) = 1 = N+ as well: one new episode (E38). u = (.7, 0) after the first
    # sweep; (0, 1) stays where it is: .9 + .7, (0, 0) .6 + .3 x .7, (1, 0) .2 + .7
    (Planned(4, [1, 1, 1], [0.6, 0.9, 0.2], 0.9, [0.7, 0], 2, [1, 0]), 0, 1, 0.1, 0),
    # (0, 1) has mean (.7 + .1) / 2; (.6, .2) has span .4 < 1 / sqrt(5), so u = 0 is enough
    (Planned(5, [1, 2, 1], [0.6, 0.4 + 0.1 * ROOT, 0.2], 0.6, [0, 0], 1, [0, 0]), 0, 0, 1.0, 1),
    (None, 1, 0, 0.3, 1),
    # steps 1 and 2 have left the window; (0, 0) paid 1: 1.2 is cut to 1 (H_r is in [0, 1]).
    # u = (.5, 0): (0, 0) goes to 1, of which .3 can be moved: 1 + .3 x .5; (1, 0): .5 + .3 x .5
    (Planned(7, [1, 2, 1], [1, 0.4 + 0.1 * ROOT, 0.5], 0.65, [0.5, 0], 2, [0, 0]), 1, 0, 0.1, 0),
    # t = 8 = 2 W. (1, 0) has mean .2 and went to 0 and to 1 once each; with x = .8 - .1 sqrt(2)
    # u = (x, 0), and (1, 0) reaches .2 + .1 sqrt(2) + (1/2 + h) x, which is rho~
    (
        Planned(
            8, [1, 1, 2], [1, 0.3, 0.2 + 0.1 * ROOT],
            0.2 + 0.1 * ROOT + (0.5 + h) * (0.8 - 0.1 * ROOT), [0.8 - 0.1 * ROOT, 0], 2, [0, 0],
        ),
        0, 0, 0.5, 0,
    ),
    # (0, 1) was last played at t = 4 = tau - W - 1: it is forgotten, and may do anything
    (
        Planned(
            9, [2, 0, 2], [0.75 + 0.1 * ROOT, 1, 0.2 + 0.1 * ROOT],
            1.0, [0.8 - 0.1 * ROOT, 0], 2, [1, 0],
        ),
        0, 1, 0.0, 1,
    ),
    (None, 1, 0, 1.0, 1),  # nu(1, 0) = 0 < N+ = 2
]  # fmt: skip


def check(agent, planned):
    """The agent's sets, its episode, and EVI in those sets, against the numbers by hand."""
    region = agent.region()
    N = [max(1, n) for n in planned.visits]
    assert region.visited.tolist() == [n > 0 for n in planned.visits]
    assert region.reward_upper == pytest.approx(planned.reward, abs=1e-12)
    radii = [0.4 / math.sqrt(n) if seen else 0 for n, seen in zip(N, region.visited, strict=True)]
    assert region.radius == pytest.approx(radii, abs=1e-12)
    assert region.widening.tolist() == [0.2] * 3
    model = wd.evi(region, epsilon=1 / math.sqrt(planned.tau), method="plain")
    for found in (agent.episode, model):
        assert found.gain == pytest.approx(planned.gain, abs=1e-12)
        assert found.span == pytest.approx(max(planned.bias), abs=1e-12)
        assert found.sweeps == planned.sweeps
    assert model.bias == pytest.approx(planned.bias, abs=1e-12)
    assert model.policy.tolist() == planned.policy
    for s in (0, 1):
        shown = agent.explain(s).actions
        assert [one.chosen for one in shown].index(True) == planned.policy[s]
        first = SPACE.offsets[s]
        assert [one.visits for one in shown] == planned.visits[first : first + len(shown)]


def test_algorithm_1_line_by_line():
    agent = by_hand()
    episode = 0
    for t, (planned, s, a, reward, after) in enumerate(STEPS, 1):
        assert agent.t == t
        assert agent.act(s) == a  # line 8
        if planned is not None:
            episode += 1
            assert agent.episode.start == planned.tau == t  # line 4
            check(agent, planned)  # lines 5 and 6
        assert agent.n_episodes == episode
        agent.observe(s, a, reward, after)  # lines 8 and 9
    with pytest.raises(wd.HorizonReached):  # lines 10 and 11
        agent.act(1)


def test_the_reference_line_by_line():
    root_of_l = math.sqrt(math.log(SPACE.n_pairs * T / DELTA))
    agent = reference.SWUCRL2CW(
        SPACE, horizon=T, window=W, widening=0.2, delta=DELTA, ties="lowest",
        scale=(0.1 / (ROOT * root_of_l), 0.1 / root_of_l),
    )  # fmt: skip
    episode = 0
    for t, (planned, s, a, reward, after) in enumerate(STEPS, 1):
        assert (agent.t, agent.act(s)) == (t, a)
        episode += planned is not None
        assert len(agent.episodes) == episode
        if planned is not None:
            seen = np.array(planned.visits) > 0
            widths = 0.4 / np.sqrt(np.maximum(1, planned.visits)) + 0.2
            assert (agent.tau, agent.N.tolist()) == (planned.tau, planned.visits)
            assert agent.reward_upper == pytest.approx(planned.reward, abs=1e-12)
            assert agent.width == pytest.approx(np.where(seen, widths, 2.0), abs=1e-12)
            plan = agent.plan
            assert (plan.sweeps, plan.policy.tolist()) == (planned.sweeps, planned.policy)
            assert plan.gain == pytest.approx(planned.gain, abs=1e-12)
            assert plan.bias == pytest.approx(planned.bias, abs=1e-12)
        agent.observe(s, a, reward, after)
    with pytest.raises(wd.HorizonReached):
        agent.act(1)


def test_the_example_in_a_compiled_run():
    """The same ten steps from a world that can do nothing else: same episodes, and why they end."""
    r, p = np.zeros((T, 3)), np.tile([1.0, 0.0], (T, 3, 1))
    for t, (_, s, a, reward, after) in enumerate(STEPS):
        r[t, SPACE.pair(s, a)] = reward
        p[t, SPACE.pair(s, a)] = [1.0 - after, float(after)]
    model = wd.DriftingMDP.from_function(
        lambda t: (r[t - 1], p[t - 1]), space=SPACE, horizon=T, noise="none"
    )
    run = wd.run(model, by_hand())
    assert run.states.tolist() == [0, *(after for *_, after in STEPS)]
    assert run.actions.tolist() == [a for _, _, a, _, _ in STEPS]
    assert run.episodes.start.tolist() == [1, 3, 4, 5, 7, 8, 9]
    assert run.episodes.length.tolist() == [2, 1, 1, 2, 1, 1, 2]
    why = ["visits", "boundary", "visits", "visits", "boundary", "visits", "open"]
    assert run.episodes.reason.tolist() == why
    plans = [planned for planned, *_ in STEPS if planned is not None]
    assert run.episodes.gain == pytest.approx([plan.gain for plan in plans], abs=1e-12)
    assert run.episodes.span == pytest.approx([max(plan.bias) for plan in plans], abs=1e-12)
    assert run.episodes.sweeps.tolist() == [plan.sweeps for plan in plans]
