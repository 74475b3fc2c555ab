"""A loop that is interpreted, compiled, or first the one and then the other: the same bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.agents import base
from windage.kernels import jit, rollout

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

T = 300
SPACE = wd.StateActions([2, 3, 1])
MODELS = {
    "drift": wd.DriftingMDP.blend(
        [random_mdp(SPACE, seed, density=0.7) for seed in (1, 2)], wd.schedules.Cosine(1), horizon=T
    ),
    "river": wd.envs.make("riverswim", horizon=T, states=4),
}
OPTIONS = {
    "borl, carried": {"arms": [(20, 0.1), (60, 0.5)], "block_length": 50, "carry_window": True},
    "swucrl2-cw, sampled": {"window": 60, "widening": 0.1, "ties": "sampled", "slack": 0.05},
    "swucrl2-cw, tight": {"window": 90, "widening": 0.0, "radii": wd.Radii.paper().scaled(0.05)},
    "restarted-psrl": {"restarts": [77, 150]},
    "ucrl2-restarts": {"restarts": [77, 150]},
}
NAMES = [*wd.agents.names(), *(name for name in OPTIONS if "," in name)]


def as_it_is_told(monkeypatch, patience):
    """Let loops be interpreted for so many seconds, whatever is in the cache; counts the calls."""
    calls = []
    interpreted = jit.interpreted

    def counted(kernel):
        calls.append(kernel)
        return interpreted(kernel)

    monkeypatch.setattr(jit, "PATIENCE", patience)
    monkeypatch.setattr(jit.Tier, "_spent", {})
    monkeypatch.setattr(jit.Tier, "_is_compiled", lambda *_: False)
    monkeypatch.setattr(jit, "interpreted", counted)
    return calls


HOW = {"compiled": -1.0, "interpreted": math.inf, "first interpreted": 0.0}


def played(name, model, monkeypatch, patience, **given):
    calls = as_it_is_told(monkeypatch, patience)
    id_, options = name.partition(",")[0], OPTIONS.get(name, {})
    told = wd.agents.facts(id_, model, **options)
    agent = wd.agents.make(id_, model.space, horizon=T, seed=5, **told | options)
    run = wd.run(model, agent, seed=2, **given)
    monkeypatch.undo()
    return agent, run, calls


@pytest.mark.parametrize("world", MODELS)
@pytest.mark.parametrize("name", NAMES)
def test_every_agent_plays_the_same(name, world, monkeypatch):
    """Trajectory, episodes and all that is saved, draws of gamma numbers among it."""
    found = {how: played(name, MODELS[world], monkeypatch, HOW[how]) for how in HOW}
    agent, run, calls = found["compiled"]
    assert not calls
    assert run.steps == T
    for how in ("interpreted", "first interpreted"):
        other, same, calls = found[how]
        for column in ("states", "actions", "rewards", "mean_rewards"):
            mine, theirs = getattr(same, column), getattr(run, column)
            assert mine.tobytes() == theirs.tobytes(), (how, column)
        assert other.state() == agent.state()
        if hasattr(run, "episodes"):
            assert same.episodes.gain.tobytes() == run.episodes.gain.tobytes()
        if isinstance(agent, base.KernelAgent):
            chunks = -(-T // base._CHUNK)
            loops = [kernel for kernel in calls if kernel is rollout.play]
            assert len(loops) >= chunks if how == "interpreted" else len(loops) == 1


def test_what_is_remembered_is_counted_alike(monkeypatch):
    model = MODELS["drift"]
    name = "swucrl2-cw, tight"
    counted = [
        played(name, model, monkeypatch, patience, census=7)[1].census
        for patience in HOW.values()
    ]
    assert counted[0].counts[-1].sum() == 90
    assert counted[0].times.size == T // 7 + 1
    for census in counted[1:]:
        assert np.array_equal(census.counts, counted[0].counts)


def test_noise_is_drawn_alike(monkeypatch):
    """Gamma numbers of the world's own: rewards of a beta law."""
    model = wd.DriftingMDP.stationary(random_mdp(SPACE), horizon=T, noise=wd.Noise.beta(3.0))
    runs = [played("random", model, monkeypatch, patience)[1] for patience in HOW.values()]
    assert len(np.unique(runs[0].rewards)) > T // 2
    assert len({run.rewards.tobytes() for run in runs}) == 1


def test_a_run_of_small_blocks_keeps_to_its_patience(monkeypatch):
    """How fast the last steps were says whether the rest is worth compiling."""
    calls = as_it_is_told(monkeypatch, 1.0)

    class Clock:
        now = 0.0

        def perf_counter(self):
            self.now += 0.1  # two looks at it a chunk: the loop's own, and that of the tier
            return self.now

    clock = Clock()
    monkeypatch.setattr(jit, "time", clock)
    monkeypatch.setattr(base, "time", clock)
    model = MODELS["drift"]
    agent = wd.agents.make("random", SPACE, horizon=T, seed=5)
    wd.run(model, agent, seed=2)
    assert len([kernel for kernel in calls if kernel is rollout.play]) == 1
