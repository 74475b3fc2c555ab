"""`explain`: every number again, from the history and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage import reference
from windage.confidence.window import Window
from windage.errors import CallOrderError, InputError, StateError
from windage.reference.evi import inner_maximum

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

SPACE = wd.StateActions([2, 3, 2], state_names=["low", "mid", "high"])
T, DELTA = 400, 0.1
MODEL = wd.DriftingMDP.stationary(random_mdp(SPACE, 4), horizon=T)


@pytest.mark.parametrize("scale", [1.0, 0.15])
@pytest.mark.parametrize("eta", [0.0, 0.25, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 2.5]])
@pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning")
def test_every_number_from_the_history(scale, eta):
    W, slack = 150, 0.05
    agent = wd.SWUCRL2CW(
        SPACE, horizon=T, window=W, widening=eta, delta=DELTA, slack=slack, seed=3,
        radii=wd.Radii.paper().scaled(scale), warm_start=False,
    )  # fmt: skip
    run = wd.run(MODEL, agent, seed=2, steps=390)
    before = agent.state()
    told = [agent.explain(s) for s in range(3)]
    assert agent.state() == before
    tau = agent.episode.start
    assert {e.start for e in told} == {tau}
    assert {e.episode for e in told} == {agent.n_episodes}
    seen = {}
    for i in range(max(0, tau - 1 - W), tau - 1):
        pair = SPACE.pair(int(run.states[i]), int(run.actions[i]))
        seen.setdefault(pair, []).append((float(run.rewards[i]), int(run.states[i + 1])))
    L = math.log(SPACE.n_pairs * T / DELTA)
    widths, reports = np.broadcast_to(eta, SPACE.n_pairs), []
    upper, width, rad_p = (np.zeros(SPACE.n_pairs) for _ in range(3))
    p_hat = np.zeros((SPACE.n_pairs, 3))
    for s, explanation in enumerate(told):
        assert (explanation.state, explanation.state_name) == (s, ("low", "mid", "high")[s])
        for a, report in enumerate(explanation.actions):
            pair = SPACE.pair(s, a)
            reports.append(report)
            mine = seen.get(pair, [])
            n, N = len(mine), max(1, len(mine))
            rad_r, rad = (scale * 2 * math.sqrt(2 * k * L / N) for k in (1, 3))
            r_hat = math.fsum(x for x, _ in mine) / N
            upper[pair] = min(1.0, r_hat + rad_r) if n else 1.0
            p_hat[pair] = [sum(z == y for _, z in mine) / N for y in range(3)]
            rad_p[pair] = rad if n else 2.0
            width[pair] = rad_p[pair] + widths[pair]
            assert report.action == a
            assert report.visits == n
            assert report.mean_reward == pytest.approx(r_hat, abs=1e-12)
            assert report.reward_radius == pytest.approx(rad_r, abs=1e-12)
            assert report.optimistic_reward == pytest.approx(upper[pair], abs=1e-12)
            assert report.transition_radius == pytest.approx(rad_p[pair], abs=1e-12)
            assert report.widening == widths[pair]
            assert report.vacuous == (width[pair] >= 2)
    plan = reference.evi(SPACE, upper, p_hat, width, 1 / math.sqrt(tau))
    assert (plan.bias.max() > 0) == (scale < 1)  # the paper's radii leave nothing to plan
    reached = plan.transitions @ plan.bias
    without_eta = inner_maximum(p_hat, rad_p, plan.bias) @ plan.bias
    for pair, report in enumerate(reports):
        expected = float(p_hat[pair] @ plan.bias)
        assert report.expected == pytest.approx(expected, abs=1e-9)
        assert report.bonus == pytest.approx(reached[pair] - expected, abs=1e-9)
        of_eta = reached[pair] - without_eta[pair]
        assert report.bonus_from_widening == pytest.approx(of_eta, abs=1e-9)
        assert report.value == pytest.approx(plan.values[pair], abs=1e-9)
        parts = report.optimistic_reward + report.expected + report.bonus
        assert report.value == pytest.approx(parts, abs=1e-12)
    for s, explanation in enumerate(told):
        assert explanation.gain == pytest.approx(plan.gain, abs=1e-9)
        assert explanation.span == pytest.approx(plan.bias.max(), abs=1e-9)
        values = plan.values[SPACE.offsets[s] : SPACE.offsets[s + 1]]
        tied = (values >= values.max() - slack).tolist()
        assert [report.tied for report in explanation.actions] == tied
        chosen = [report.action for report in explanation.actions if report.chosen]
        assert len(chosen) == 1
        assert tied[chosen[0]]


@pytest.mark.parametrize("ties", ["lowest", "random", "previous", "sampled"])
def test_the_chosen_action_is_the_one_that_is_played(ties):
    """Asked before `act` in an episode that goes on, and again with the decision pending."""
    agent = wd.SWUCRL2CW(
        SPACE, horizon=T, window=100, widening=0.2, radii={"kind": "paper", "scale": 0.15},
        ties=ties, slack=0.1, seed=1,
    )  # fmt: skip
    rng, state, foretold = np.random.default_rng(0), 0, 0
    for _ in range(80):
        told = agent.explain(state) if agent.t > 1 else None
        action = agent.act(state)
        if told is not None and told.start == agent.episode.start:
            assert [a.chosen for a in told.actions].index(True) == action
            foretold += 1
        assert [a.chosen for a in agent.explain(state).actions].index(True) == action
        after = int(rng.integers(3))
        agent.observe(state, action, float(rng.random()), after)
        state = after
    assert foretold > 20


def test_ucrl2_explains_with_the_radii_of_its_episode():
    agent = wd.UCRL2(SPACE, horizon=T, delta=DELTA)
    wd.run(MODEL, agent, seed=1, steps=300)
    tau = agent.episode.start
    for report in agent.explain(1).actions:
        N = max(1, report.visits)
        radius = math.sqrt(7 * math.log(2 * 7 * tau / DELTA) / (2 * N))
        assert report.reward_radius == pytest.approx(radius, rel=1e-12)
        assert report.optimistic_reward == pytest.approx(report.mean_reward + radius, rel=1e-12)
        assert report.widening == report.bonus_from_widening == 0.0


def test_explanations_can_be_read():
    agent = wd.SWUCRL2CW(SPACE, horizon=T, window=100, widening=0.2)
    with pytest.raises(CallOrderError, match=r"explain: nothing has been planned.*call act\(s\)"):
        agent.explain(0)
    agent.act(2)
    text = str(agent.explain(2))
    assert text.startswith("high: episode 1, planned at t = 1 with paper radii; optimistic gain 1")
    assert text.count(" *") == 1
    assert "ties are broken by 'random' within a slack of 0" in text
    with pytest.raises(InputError, match="state: 3"):
        agent.explain(3)


def test_a_slack_is_shown_in_units_of_the_rewards():
    agent = wd.SWUCRL2CW(
        SPACE, horizon=T, window=100, widening=0.2, slack=0.25, reward_range=(-10.0, 30.0)
    )
    agent.act(2)
    assert agent.explain(2).slack == 10.0
    assert "within a slack of 10" in str(agent.explain(2))


@pytest.mark.parametrize("cells", [1 << 20, 1], ids=["listed", "hashed"])
@pytest.mark.parametrize("kind", ["ucrl2", "ucrl2b", "ucrl3", "window", "restarts"])
def test_an_episode_that_outlasts_its_ring_is_explained_as_planned(kind, cells, monkeypatch):
    """Samples are counted while it lasts; sets, values and ties stay those of the plan."""
    monkeypatch.setattr("windage.confidence.window._BATCH", 64)
    monkeypatch.setattr("windage.confidence.window._CELLS", cells)
    steps, tight = 3000, {"kind": "laplace", "scale": 0.1}
    model = wd.DriftingMDP.stationary(random_mdp(SPACE, 4), horizon=steps)
    agent = {
        "ucrl2": lambda: wd.UCRL2(SPACE, horizon=steps, delta=DELTA),
        "ucrl2b": lambda: wd.UCRL2B(SPACE, horizon=steps, delta=DELTA),
        "ucrl3": lambda: wd.UCRL3(SPACE, horizon=steps, delta=DELTA),
        "window": lambda: wd.SWUCRL2CW(SPACE, horizon=steps, window=900, widening=0.1, radii=tight),
        "restarts": lambda: wd.RestartedUCRL2(SPACE, horizon=steps, restarts=[65, 1601]),
    }[kind]()
    told, early = {}, 0
    while agent.t <= steps:
        wd.run(model, agent, seed=1, steps=30)
        said = [agent.explain(s) for s in range(3)]
        region = agent.region()
        start, counts = told.setdefault(agent.n_episodes, (said, agent.region()))
        assert said == start
        assert (region.p_hat != counts.p_hat).nnz == 0
        again = type(agent).from_state(agent.state())
        assert [again.explain(s) for s in range(3)] == said
        assert again.state() == agent.state()
        early += (agent._window.transitions != agent._window.planned).nnz > 0
    assert early > 20  # looks at an episode whose samples have been counted


def test_a_plan_that_was_kept_apart_may_be_damaged(monkeypatch):
    monkeypatch.setattr("windage.confidence.window._BATCH", 64)
    model = wd.DriftingMDP.stationary(random_mdp(SPACE, 4), horizon=3000)
    agent = wd.UCRL2(SPACE, horizon=3000, delta=DELTA)
    wd.run(model, agent, seed=1, steps=2900)
    window, saved = agent._window, agent._window.saved()
    keys, counts = saved["planned_key"], saved["planned_count"]
    for wrong in (
        {"planned_key": keys[::-1].copy()},
        {"planned_key": keys + 1000},
        {"planned_key": keys[1:]},
        {"planned_key": keys.astype(float)},
        {"planned_count": -counts},
        {"planned_count": counts * 3000},
    ):
        empty = Window(SPACE, longest=3000)
        with pytest.raises(StateError, match="planned_"):
            empty.restore(saved | wrong)
    with pytest.raises(StateError, match="planned_key"):
        Window(SPACE).restore(saved)  # of an agent whose episodes cannot last that long
    empty = Window(SPACE, longest=3000)
    empty.restore(saved)
    assert (empty.planned != window.planned).nnz == 0


def test_regions_are_the_sets_of_the_episode():
    """EVI on `agent.region()` gives the gain the agent planned with."""
    agent = wd.SWUCRL2CW(
        SPACE, horizon=T, window=150, widening=0.2, radii={"kind": "paper", "scale": 0.05},
        warm_start=False,
    )  # fmt: skip
    planned = 0
    for steps in (60, 60, 60, 60, 60):
        wd.run(MODEL, agent, seed=2, steps=steps)
        episode = agent.episode
        model = wd.evi(agent.region(), epsilon=1 / math.sqrt(episode.start), method="plain")
        assert model.gain == pytest.approx(episode.gain, abs=1e-9)
        assert model.span == pytest.approx(episode.span, abs=1e-9)
        planned += episode.span > 0
    assert planned > 2
