"""AdaptiveUCRL, the base learner of MASTER: the least widening whose optimistic bias is flat."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage import reference
from windage.agents.base import quietly
from windage.agents.optimistic.ucrl2 import AdaptiveUCRL
from windage.errors import InputError, NotConverged, StateError

T = 3000
RIVER = wd.envs.make("riverswim", horizon=T)
SPACE = wd.StateActions([2, 3, 1])
DRIFTING = wd.DriftingMDP.blend(
    [random_mdp(SPACE, seed, density=0.4) for seed in (1, 2)],
    wd.schedules.Cosine(3),
    horizon=T,
)
RADII = wd.Radii.ucrl2().scaled(0.15)


def made(model, diameter, **options):
    given = {"radii": RADII, "warm_start": False, "seed": 3, **options}
    return AdaptiveUCRL(model.space, horizon=T, diameter=diameter, **given)


def literal_sets(space, history, t, scale=0.15, delta=0.05):
    """N, r~, p_hat and the radius of p_hat of UCRL2, from the steps so far."""
    pairs, S, A = space.n_pairs, space.n_states, space.mean_actions
    N, total, moves = np.zeros(pairs), np.zeros(pairs), np.zeros((pairs, S))
    for pair, reward, after in history:
        N[pair] += 1
        total[pair] += reward
        moves[pair, after] += 1
    some = np.maximum(N, 1)
    rad_r = scale * np.sqrt(7 * math.log(2 * S * A * t / delta) / (2 * some))
    rad_p = scale * np.sqrt(14 * S * math.log(2 * A * t / delta) / some)
    hoped = np.where(N > 0, np.clip(total / some + rad_r, 0, 1), 1.0)
    return N, hoped, moves / some[:, None], rad_p


def gain_and_span(space, hoped, p_hat, width, epsilon):
    """The reference's EVI; no gain and an endless span where it does not converge."""
    try:
        plan = reference.evi(space, hoped, p_hat, width, epsilon, max_sweeps=20_000)
    except NotConverged:
        return math.nan, math.inf
    return plan.gain, plan.bias.max()


def planned_episodes(agent, model, steps):
    """Play, and yield the history up to each new episode that had to be planned."""
    world, history, seen = wd.simulate.Simulator(model, 1), [], 0
    for t in range(1, steps + 1):
        s = world.state
        a = agent.act(s)
        if agent.n_episodes > seen:
            seen = agent.n_episodes
            yield t, history, bool(agent._learner.episode["planned"][0])
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        history.append((model.space.pair(s, a), reward, after))


@pytest.mark.parametrize(
    ("model", "diameter"), [(RIVER, 0.5), (RIVER, 0.8), (DRIFTING, 0.05), (DRIFTING, 0.2)]
)
def test_the_widening_is_the_least_that_flattens_the_bias(model, diameter):
    """Counts, sets and value iteration anew at each episode, by hand and by `wd.evi`."""
    agent, space = made(model, diameter), model.space
    rungs, planned = set(), 0
    for t, history, is_planned in planned_episodes(agent, model, T):
        epsilon = 1 / math.sqrt(t)
        most = 2 * diameter * (1 + epsilon)
        N, hoped, p_hat, radius = literal_sets(space, history, t)
        if not is_planned:
            assert (agent.episode.gain, agent.episode.span) == (1.0, 0.0)
            assert all(hoped[space.state_of == s].max() == 1.0 for s in range(space.n_states))
            continue
        planned += 1
        region = agent.region()
        assert region.visited.tolist() == (N > 0).tolist()
        assert region.reward_upper == pytest.approx(hoped, abs=1e-12)
        assert region.radius[N > 0] == pytest.approx(radius[N > 0], rel=1e-11)
        assert np.abs(region.p_hat.toarray() - p_hat)[N > 0].max() <= 1e-12
        (eta,) = set(region.widening)
        rung = agent.ladder.index(eta)
        rungs.add(rung)
        for i, widening in enumerate(agent.ladder[: rung + 1]):
            width = np.where(N > 0, radius + widening, 2.0)
            gain, span = gain_and_span(space, hoped, p_hat, width, epsilon)
            again = wd.evi(
                wd.ConfidenceRegion(space, hoped, p_hat, radius, N > 0, widening),
                epsilon=epsilon,
                method="plain",
            )
            assert again.span == pytest.approx(span, abs=1e-9)
            assert again.gain == pytest.approx(gain, abs=1e-9)
            if i < rung:
                assert span > most  # the steps below were not flat enough
        assert span <= most or rung == len(agent.ladder) - 1
        assert (agent.episode.gain, agent.episode.span) == pytest.approx((gain, span), abs=1e-9)
    assert planned > 10
    assert len(rungs) > 1


def test_a_large_diameter_asks_for_no_widening():
    agent = made(RIVER, 1e6)
    plain = wd.UCRL2(
        RIVER.space, horizon=T, radii=RADII, clip=True, warm_start=False, ties="lowest"
    )
    again = made(RIVER, 1e6, ties="lowest")
    one, other = wd.run(RIVER, plain, seed=1), wd.run(RIVER, again, seed=1)
    assert (one.actions == other.actions).all()
    assert (one.episodes.span == other.episodes.span).all()
    wd.run(RIVER, agent, seed=1)
    assert set(agent.region().widening) == {0.0}


@pytest.mark.parametrize("eta", [0.0, 0.25])
def test_a_ladder_of_one_step_is_a_fixed_widening(eta):
    """It is taken whatever its span: then the agent is a UCRL2 with that widening."""
    agent = made(DRIFTING, 0.01, ladder=(eta,), ties="lowest")
    same = {"widening": eta, "radii": RADII, "warm_start": False, "ties": "lowest"}
    fixed = quietly(wd.SWUCRL2CW, SPACE, {"horizon": T, "window": 10 * T, **same})
    one, other = wd.run(DRIFTING, agent, seed=1), wd.run(DRIFTING, fixed, seed=1)
    assert (one.actions == other.actions).all()
    assert (one.episodes.gain == other.episodes.gain).all()
    assert one.episodes.span.max() > 2 * 0.01 * 2
    assert set(agent.region().widening) == {eta}


def test_the_top_of_the_ladder_is_myopic():
    agent = made(RIVER, 0.0)
    episodes = wd.run(RIVER, agent, seed=1).episodes
    assert (episodes.span <= 1.0).all()
    late = episodes.span > 0
    assert late.any()
    assert set(agent.region().widening) == {2.0}


@pytest.mark.parametrize("warm", [False, True])
def test_a_warm_start_keeps_the_bound(warm):
    agent = made(RIVER, 0.5, warm_start=warm)
    for t, _, is_planned in planned_episodes(agent, RIVER, T):
        if is_planned and agent.region().widening.max() < 2.0:
            assert agent.episode.span <= 2 * 0.5 * (1 + 1 / math.sqrt(t))


@pytest.mark.parametrize("cut", [1, 7, 500, 1700])
def test_saved_in_the_middle_it_goes_on(cut):
    for warm in (False, True):
        whole, agent = (made(RIVER, 0.5, warm_start=warm) for _ in range(2))
        wd.run(RIVER, whole, seed=1)
        wd.run(RIVER, agent, seed=1, steps=cut)
        agent = AdaptiveUCRL.from_state(agent.state())
        assert agent.ladder == whole.ladder
        wd.run(RIVER, agent, seed=1)
        assert agent.state() == whole.state()


def test_a_compiled_run_is_step_by_step():
    one, other = made(RIVER, 0.5), made(RIVER, 0.5)
    run = wd.run(RIVER, one, seed=1)
    starts = [t for t, *_ in planned_episodes(other, RIVER, T)]
    assert run.episodes.start.tolist() == starts
    assert one.state() == other.state()


def test_region_and_explanation_add_up():
    agent = made(RIVER, 0.5)
    wd.run(RIVER, agent, seed=1, steps=2000)
    agent.act(agent.last_state)
    assert agent.region().widening.max() > 0
    for s in range(RIVER.space.n_states):
        said = agent.explain(s)
        assert said.gain == agent.episode.gain
        assert said.span == agent.episode.span
        region, bias = agent.region(), agent._learner.plan.u
        tight = region.without_widening()
        for a in said.actions:
            pair = RIVER.space.pair(s, a.action)
            assert a.widening == region.widening[pair]
            assert a.value == pytest.approx(a.optimistic_reward + a.expected + a.bonus, abs=1e-12)
            gained = (region.best_row(pair, bias) - tight.best_row(pair, bias)) @ bias
            assert a.bonus_from_widening == pytest.approx(gained, abs=1e-12)
            assert -1e-12 <= a.bonus_from_widening <= a.bonus + 1e-12
        best = max(a.value for a in said.actions)
        assert agent.episode.gain + bias[s] >= best - 1e-9  # Property 1 (E11)
        assert best >= agent.episode.gain + bias[s] - 1 / math.sqrt(agent.episode.start) - 1e-9


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"ladder": ()}, "ladder"),
        ({"ladder": (0.1, 0.1)}, "ladder"),
        ({"ladder": (0.2, 0.1)}, "ladder"),
        ({"ladder": (-0.1, 0.1)}, "ladder"),
        ({"ladder": (0.0, math.nan)}, "ladder"),
        ({"diameter": -1.0}, "diameter"),
        ({"diameter": math.inf}, "diameter"),
        ({"diameter": "2"}, "diameter"),
    ],
)
def test_bad_options(options, field):
    given = {"horizon": 10, "diameter": 2.0, **options}
    with pytest.raises(InputError) as caught:
        AdaptiveUCRL(SPACE, **given)
    assert caught.value.field == field


def test_a_state_of_another_agent_is_refused():
    with pytest.raises(StateError):
        AdaptiveUCRL.from_state(wd.UCRL2(SPACE, horizon=10).state())
