"""E1, E25 and E38: when episodes start and end, and what the window is inside of one."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning")  # W > T

ENDLESS = "t does not advance"


def printed_loop(T, W, states):
    """Algorithm 1 as printed, along given states with one action each; returns the starts.

    Counts of the window decide as they should; only the place of the test is the printed one.
    """
    t, starts, history = 1, [], []
    while t <= T:
        if starts[-2:] == [t, t]:
            return starts, ENDLESS
        starts.append(t)  # line 4
        window, nu = history[max(0, t - 1 - W) :], {}
        while t % W != 0 and nu.get(s := states[t - 1], 0) < max(1, window.count(s)):  # line 7
            nu[s] = nu.get(s, 0) + 1
            history.append(s)
            t += 1
            if t > T:
                break
    return starts, "done"


def world(T, seed=0):
    space = wd.StateActions([2, 1, 3])
    ends = [random_mdp(space, seed + k) for k in range(2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Linear(), horizon=T)


def run_of(T, W, boundary="start", seed=0, **options):
    model = world(T, seed)
    agent = wd.SWUCRL2CW(
        model.space, horizon=T, window=W, widening=0.3, boundary=boundary, seed=seed, **options
    )
    return wd.run(model, agent, seed=seed)


@pytest.mark.parametrize("W", [1, 2, 7, 30])
def test_e1_as_printed_no_step_is_played_at_a_multiple_of_w(W):
    """The printed loop stands still at t = W, for W = 1 before its first step; ours goes on."""
    T = 100
    run = run_of(T, W)
    starts, how = printed_loop(T, W, run.states.tolist())
    assert how == ENDLESS
    assert starts[-2:] == [W, W]
    assert run.steps == T
    assert run.episodes.length.sum() == T
    assert (run.episodes.length >= 1).all()


@pytest.mark.parametrize(("boundary", "shift"), [("start", 0), ("end", 1)])
@pytest.mark.parametrize("W", [1, 2, 7, 30, 100, 101])
def test_e1_new_episodes_start_at_multiples_or_after_them(W, boundary, shift):
    T = 100
    run = run_of(T, W, boundary=boundary)
    due = [t for t in range(2, T + 1) if t % W == shift % W]
    starts, why = run.episodes.start, run.episodes.reason
    ended = {int(t): str(reason) for t, reason in zip(starts[1:], why[:-1], strict=True)}
    assert [t for t, reason in ended.items() if reason == "boundary"] == due
    assert all(reason == "visits" for t, reason in ended.items() if t not in due)


def literal_ends(run, W, space, nested):
    """Starts by both rules, tested one after the other (nested) or as one condition."""
    starts = run.episodes.start.tolist()
    pairs = [space.pair(int(s), int(a)) for s, a in zip(run.states, run.actions, strict=False)]
    found, both = [1], 0
    for tau, after in zip(starts, starts[1:], strict=False):
        visits = pairs[max(0, tau - 1 - W) : tau - 1]
        nu = pairs[tau - 1 : after - 1]
        by_time = after % W == 0
        # whose policy at the state of `after` is known: the state was met in the episode
        here = [p for p in nu if space.state_of[p] == run.states[after - 1]]
        by_visits = bool(here) and nu.count(here[0]) >= max(1, visits.count(here[0]))
        both += by_time and by_visits
        found += [after] * (by_time + by_visits if nested else 1)
    return found, both


def test_e38_two_reasons_at_once_start_one_episode():
    coincided = 0
    for seed in range(20):
        run = run_of(120, 8, seed=seed)
        space = world(120, seed).space
        ours, both = literal_ends(run, 8, space, nested=False)
        two, _ = literal_ends(run, 8, space, nested=True)
        coincided += both
        assert run.episodes.start.tolist() == ours
        assert np.unique(ours).size == len(ours)
        assert (np.unique(two).size < len(two)) == (both > 0)  # a second one, of no steps
    assert coincided > 0


@pytest.mark.parametrize(("T", "W"), [(7, 8), (8, 8), (15, 8), (16, 8), (23, 8), (1, 1)])
def test_e38_at_the_horizon_nothing_new_starts(T, W):
    """t = T + 1 is a multiple of W for T = 7, 15, 23: the test `t > T` comes first."""
    run = run_of(T, W)
    assert run.steps == T
    assert run.episodes.start.max() <= T
    assert run.episodes.reason[-1] == "open"
    assert run.episodes.length.sum() == T


def test_e25_inside_an_episode_the_printed_window_is_longer_than_w():
    """N_t as printed counts from tau(m) - W to t - 1; the proofs count from t - W.

    The two agree at t = tau(m), which is all the algorithm uses: neither the sets nor the visits
    of the doubling rule move while an episode lasts.
    """
    T, W = 200, 30
    model = world(T)
    space = model.space
    agent = wd.SWUCRL2CW(space, horizon=T, window=W, widening=0.3, seed=1)
    simulator = wd.simulate.Simulator(model, seed=1)
    pairs, longest, differ, planned = [], 0, 0, None
    for t in range(1, T + 1):
        s = simulator.state
        a = agent.act(s)
        tau = agent.episode.start
        printed = pairs[max(1, tau - W) - 1 : t - 1]
        proofs = pairs[max(1, t - W) - 1 : t - 1]
        longest = max(longest, len(printed))
        shown = [one.visits for k in range(space.n_states) for one in agent.explain(k).actions]
        if t == tau:
            assert printed == proofs
            planned = np.bincount(np.array(printed, int), minlength=space.n_pairs).tolist()
            region = agent.region()
        differ += sorted(printed) != sorted(proofs)
        assert shown == planned  # frozen at tau(m)
        assert (agent.region().width == region.width).all()
        reward, after = simulator.step(a)
        pairs.append(space.pair(s, a))
        agent.observe(s, a, reward, after)
    assert W < longest <= 2 * W - 1
    assert differ > 0
