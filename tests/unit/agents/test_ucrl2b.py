"""UCRL2B and other learners with boxes: sets, plans and explanations from the history, by hand."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from tests.property.test_box_property import gain_by_program
from tests.unit.confidence.test_boxes import bounds, by_duality, by_program
from windage.confidence import window as storage
from windage.confidence.confidence import ConfidenceRegion
from windage.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

T, DELTA = 600, 0.1
SPACE = wd.StateActions([2, 3, 1, 2])
TIGHT = wd.Radii.bernstein().scaled(reward=0.06, transition=0.03)


def world():
    ends = [random_mdp(SPACE, seed) for seed in (3, 4)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(1), horizon=T)


class Sets(NamedTuple):
    """H_r and H_p of an episode, from the definition."""

    visits: list[int]
    mean: np.ndarray
    reward_radius: np.ndarray
    reward: np.ndarray
    p: np.ndarray
    radius: np.ndarray


def literal_sets(history, radii=TIGHT, low=0.0, width=1.0):
    """Spec 3.5 over the samples that count: every entry 2 sqrt(p (1-p) l / N+) + 6 l / N+."""
    P, S = SPACE.n_pairs, SPACE.n_states
    visits, mean, reward_radius, reward = [], np.zeros(P), np.zeros(P), np.ones(P)
    p, radius = np.zeros((P, S)), np.zeros((P, S))
    for pair in range(P):
        mine = [(x - low) / width for s, a, x, _ in history if SPACE.pair(s, a) == pair]
        after = [y for s, a, _, y in history if SPACE.pair(s, a) == pair]
        n, N = len(mine), max(1, len(mine))
        l = math.log(6 * P * N / DELTA)  # noqa: E741 - the letter of 3.5
        mean[pair] = math.fsum(mine) / N
        variance = math.fsum((x - mean[pair]) ** 2 for x in mine) / N
        rad = 2 * math.sqrt(variance * l / N) + 6 * l / N
        reward_radius[pair] = radii.reward_scale * rad
        if n:
            reward[pair] = max(0.0, min(1.0, mean[pair] + reward_radius[pair]))
        for s in range(S):
            p[pair, s] = after.count(s) / N
            rad = 2 * math.sqrt(p[pair, s] * (1 - p[pair, s]) * l / N) + 6 * l / N
            radius[pair, s] = radii.transition_scale * rad
        visits.append(n)
    return Sets(visits, mean, reward_radius, reward, p, radius)


def as_region(sets, eta):
    return ConfidenceRegion.box(
        SPACE, sets.reward, sets.p, sets.radius, np.array(sets.visits) > 0, eta
    )


def episodes(agent, model, seed=6):
    """Play the agent step by step; yields it at the start of every episode, with the history."""
    simulator, history, started = wd.simulate.Simulator(model, seed=seed), [], 0
    for _ in range(model.horizon):
        s = simulator.state
        a = agent.act(s)
        if agent.n_episodes > started:
            started = agent.n_episodes
            yield history
        reward, after = simulator.step(a)
        agent.observe(s, a, reward, after)
        history.append((s, a, reward, after))


AGENTS = {
    "ucrl2b": (lambda **o: wd.UCRL2B(SPACE, horizon=T, **o), None, 0.0),
    "window": (lambda **o: wd.SWUCRL2CW(SPACE, horizon=T, window=80, widening=0.0, **o), 80, 0.0),
    "widened": (
        lambda **o: wd.SWUCRL2CW(SPACE, horizon=T, window=150, widening=0.2, **o), 150, 0.2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("warm", [True, False])
def test_the_sets_and_the_plan_of_every_episode(name, warm):
    """Region, gain, Properties 1 and 2, each from the recounted history."""
    make, W, eta = AGENTS[name]
    agent = make(delta=DELTA, radii=TIGHT, warm_start=warm, seed=5)
    spans, free = [], 0
    for history in episodes(agent, world()):
        tau, episode = agent.t, agent.episode
        assert episode.start == tau
        sets = literal_sets(history[max(0, tau - 1 - W) :] if W else history)
        region, twin = agent.region(), as_region(sets, eta)
        assert (region.visited == (np.array(sets.visits) > 0)).all()
        assert region.reward_upper == pytest.approx(sets.reward, abs=1e-12)
        assert region.p_hat.toarray() == pytest.approx(sets.p, abs=1e-15)
        assert region.radius[twin.visited] == pytest.approx(sets.radius[twin.visited], rel=1e-12)
        assert (region.widening == eta).all()
        for mine, theirs in zip(bounds(twin), (region.lower, region.upper), strict=True):
            assert theirs == pytest.approx(mine, abs=1e-12)
        free += region.is_free.any() and not region.is_free.all()
        epsilon = 1 / math.sqrt(tau)
        bias = np.zeros(4) if episode.span == 0.0 else agent._learner.plan.u.copy()
        assert_certified_plan(twin, episode, bias, epsilon)
        spans.append(episode.span)
        if len(spans) % 3 == 0:
            assert abs(episode.gain - gain_by_program(twin)) <= epsilon + 1e-7
    assert np.count_nonzero(spans) > 8
    assert free > 0


def assert_certified_plan(region, episode, bias, epsilon):
    """Property 1 (E11) for every pair, Property 2 for the best pair of every state."""
    space, (lower, upper) = region.space, bounds(region)
    inner = [by_duality(lower[p], upper[p], bias) for p in range(space.n_pairs)]
    values = region.reward_upper + np.array(inner)
    best = np.maximum.reduceat(values, space.offsets[:-1])
    assert np.ptp(bias) == pytest.approx(episode.span, abs=1e-9)
    assert (values <= episode.gain + bias[space.state_of] + 1e-9).all()
    assert (best >= episode.gain + bias - epsilon - 1e-9).all()


@pytest.mark.parametrize("name", ["ucrl2b", "widened"])
@pytest.mark.parametrize("reward_range", [None, (-1.0, 3.0)])
def test_explanations_add_up(name, reward_range):
    """Every number again, by programs over the boxes; what the widening adds is the difference."""
    make, W, eta = AGENTS[name]
    low, high = reward_range or (0.0, 1.0)
    width = high - low
    agent = make(delta=DELTA, radii=TIGHT, reward_range=reward_range, slack=0.01, seed=2)
    widened = looked = 0
    for history in episodes(agent, world()):
        tau = agent.t
        if tau < 20 or agent.n_episodes % 2:
            continue
        kept = history[max(0, tau - 1 - W) :] if W else history
        sets = literal_sets(kept, low=low, width=width)
        (lower, upper), tight = bounds(as_region(sets, eta)), bounds(as_region(sets, 0.0))
        bias = np.zeros(4) if agent.episode.span == 0.0 else agent._learner.plan.u.copy()
        for s in range(SPACE.n_states):
            told = agent.explain(s)
            assert (told.start, told.radii) == (tau, TIGHT.label)
            for report in told.actions:
                pair = SPACE.pair(s, report.action)
                hoped = by_program(lower[pair], upper[pair], bias)
                without = by_program(tight[0][pair], tight[1][pair], bias)
                expected = float(sets.p[pair] @ bias)
                assert report.visits == sets.visits[pair]
                assert report.mean_reward == pytest.approx(low + width * sets.mean[pair], abs=1e-12)
                radius = width * sets.reward_radius[pair]
                assert report.reward_radius == pytest.approx(radius, abs=1e-12)
                hope = low + width * sets.reward[pair]
                assert report.optimistic_reward == pytest.approx(hope, abs=1e-12)
                largest = sets.radius[pair].max() if sets.visits[pair] else 2.0
                assert report.transition_radius == pytest.approx(largest, rel=1e-12)
                assert report.widening == eta
                assert report.expected == pytest.approx(width * expected, abs=1e-9)
                assert report.bonus == pytest.approx(width * (hoped - expected), abs=1e-9)
                of_eta = width * (hoped - without)
                assert report.bonus_from_widening == pytest.approx(of_eta, abs=1e-9)
                parts = report.optimistic_reward + report.expected + report.bonus
                assert report.value == pytest.approx(parts, abs=1e-12)
                assert report.value == pytest.approx(hope + width * hoped, abs=1e-9)
                widened += of_eta > 1e-3
                looked += 1
    assert looked > 40
    assert (widened > 10) == (eta > 0)


# --- the same whatever the storage, step by step or fused ----------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_hashed_counts_are_as_good_as_listed_ones(name, monkeypatch):
    make, model, runs = AGENTS[name][0], world(), []
    for cells in (10**9, 0):
        monkeypatch.setattr(storage, "_CELLS", cells)
        agent = make(delta=DELTA, radii=TIGHT, seed=5)
        run = wd.run(model, agent, seed=6)
        assert agent._window.is_hashed == (cells == 0)
        runs.append((run, agent.region()))
    (listed, region), (hashed, twin) = runs
    assert hashed.actions.tolist() == listed.actions.tolist()
    assert hashed.episodes.gain.tolist() == listed.episodes.gain.tolist()
    assert hashed.episodes.span.tolist() == listed.episodes.span.tolist()
    assert hashed.episodes.sweeps.tolist() == listed.episodes.sweeps.tolist()
    assert (twin.lower == region.lower).all()
    assert (twin.upper == region.upper).all()


@pytest.mark.parametrize("name", AGENTS)
def test_step_by_step_is_the_fused_run(name):
    make, model = AGENTS[name][0], world()
    fused = make(delta=DELTA, radii=TIGHT, seed=5)
    run = wd.run(model, fused, seed=6)
    agent = make(delta=DELTA, radii=TIGHT, seed=5)
    gains, history = [], []
    for history in episodes(agent, model):  # noqa: B007 - the list that grows
        gains.append(agent.episode.gain)
    assert [a for _, a, _, _ in history] == run.actions.tolist()
    assert gains == run.episodes.gain.tolist()
    assert agent.state() == fused.state()


def test_a_restored_agent_goes_on_as_if_nothing_had_been():
    model = world()
    agent = wd.UCRL2B(SPACE, horizon=T, delta=DELTA, radii=TIGHT, seed=5)
    wd.run(model, agent, seed=6, steps=300)
    twin = wd.agents.restore(agent.state())
    assert (twin.region().radius == agent.region().radius).all()
    runs = [wd.run(model, each, seed=6) for each in (agent, twin)]
    assert runs[0].episodes.gain.tolist() == runs[1].episodes.gain.tolist()
    assert runs[0].actions.tolist() == runs[1].actions.tolist()


# --- by hand -------------------------------------------------------------------------------------


def knows(radii, samples, widening=0.0):
    """An agent of two states, one action each, with these samples of the past."""
    agent = wd.SWUCRL2CW(
        wd.StateActions([1, 1]), horizon=500, window=400, widening=widening, radii=radii
    )
    for sample in samples:
        agent.preload(*sample)
    agent.act(0)
    return agent


def test_what_was_never_seen_may_be_anything():
    """E8: the whole simplex and the largest reward, however tight the radii."""
    agent = knows(wd.Radii.bernstein().scaled(0.001), [(0, 0, 0.5, 0)] * 20)
    region = agent.region()
    assert region.visited.tolist() == [True, False]
    assert region.is_free.tolist() == [False, True]
    assert region.reward_upper[1] == 1.0
    assert [a.vacuous for s in (0, 1) for a in agent.explain(s).actions] == [False, True]


def test_a_state_never_seen_has_room_by_the_rest_alone():
    """p = 0 has no variance: 6 l / N and eta / 2 are all there is; p = 1 likewise."""
    n, eta, scale = 20, 0.1, 0.05
    agent = knows(wd.Radii.bernstein().scaled(scale), [(0, 0, 0.5, 1)] * n, eta)
    rest = scale * 6 * math.log(6 * 2 * n / 0.05) / n
    region = agent.region()
    assert region.radius[0] == pytest.approx([rest, rest], rel=1e-12)
    assert region.upper[0] == pytest.approx([rest + eta / 2, 1.0], rel=1e-12)
    assert region.lower[0] == pytest.approx([0.0, 1 - rest - eta / 2], rel=1e-12)
    assert region.reward_upper[0] == pytest.approx(0.5 + rest, rel=1e-12)  # no variance either


@pytest.mark.parametrize("eta", [0.0, 0.2])
@pytest.mark.parametrize(("reach", "vacuous"), [(0.98, False), (1.02, True)])
def test_a_box_is_vacuous_once_a_state_never_seen_may_get_all_the_mass(eta, reach, vacuous):
    """rest + eta / 2 decides: the root belongs to entries with a variance."""
    n = 20
    whole = 6 * math.log(6 * 2 * n / 0.05) / n
    radii = wd.Radii.bernstein().scaled(reward=0.0, transition=(reach - eta / 2) / whole)
    agent = knows(radii, [(s, 0, 0.5, 1) for s in (0, 1)] * n, eta)
    assert agent.region().is_free.tolist() == [vacuous] * 2
    assert agent.episode.vacuous == (1.0 if vacuous else 0.0)
    assert [agent.explain(s).actions[0].vacuous for s in (0, 1)] == [vacuous] * 2


def test_sure_rows_have_no_variance():
    """n / n is 1 and sqrt(p (1 - p)) is 0; what rounding takes off p comes back as its root."""
    agent = knows(wd.Radii.bernstein().scaled(0.05), [(0, 0, 0.5, 1)] * 49)
    rest = 0.05 * 6 * math.log(6 * 2 * 49 / 0.05) / 49
    region = agent.region()
    assert region.p_hat.toarray()[0].tolist() == [0.0, 1.0]
    assert region.radius[0] == pytest.approx([rest, rest], rel=1e-12)


def test_the_radius_that_is_told_is_the_one_that_was_planned_with():
    """Rewards without a declared range may vary by more than those in [0, 1] can."""
    rewards = [(0, 0, x, 1) for x in (-2.0, 2.0)] * 20
    report = knows(wd.Radii.bernstein().scaled(0.05), rewards).explain(0).actions[0]
    assert report.optimistic_reward < 1.0
    hope = report.mean_reward + report.reward_radius
    assert report.optimistic_reward == pytest.approx(hope, rel=1e-12)


@pytest.mark.filterwarnings("ignore:a mean reward of:windage.errors.ParameterWarning")
def test_a_huge_reward_leaves_no_trace_when_it_has_left():
    hopes = []
    for once in (0.0, 1e200):
        agent = wd.SWUCRL2CW(
            wd.StateActions([1]), horizon=500, window=8, widening=0.1, radii=TIGHT.scaled(0.3)
        )
        for t in range(40):
            agent.act(0)
            try:
                agent.observe(0, 0, once if t == 4 else 0.6 * (t % 2), 0)
            except InputError:  # to refuse it is as good
                agent.observe(0, 0, 0.0, 0)
        agent.act(0)
        hopes.append(agent.region().reward_upper[0])
    assert hopes[1] == hopes[0] < 1.0


def test_what_it_is():
    agent = wd.agents.make("ucrl2b", SPACE, horizon=100)
    assert isinstance(agent, wd.UCRL2B)
    assert (agent.requires, agent.clip, agent.radii) == ((), True, wd.Radii.bernstein())
    assert agent.configuration()["radii"] == "bernstein"
    again = wd.agents.restore(agent.state())
    assert again.state() == agent.state()
    assert again.radii == agent.radii
    run = wd.run(world(), wd.UCRL2B(SPACE, horizon=T), seed=1)
    assert set(run.episodes.reason[:-1]) == {"visits"}
    assert (run.episodes.gain <= 1.0 + 1 / np.sqrt(run.episodes.start)).all()


def test_boxes_are_outside_the_theorem_and_said_to_be():
    with pytest.warns(wd.GuaranteeWarning, match="bernstein radii do not cover"):
        wd.SWUCRL2CW(SPACE, horizon=T, window=80, widening=0.1, radii="bernstein")
