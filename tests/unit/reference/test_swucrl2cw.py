"""Algorithm 1 in NumPy against the compiled agents: the same actions, episodes and sweeps."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import draw_model, draw_window, random_mdp
from tests.twins.optimistic import UCRL2, replay
from windage import reference

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

RUNS = 1000
COLD = {"ties": "lowest", "warm_start": False}  # the tie rule and the EVI of the reference


@pytest.mark.parametrize("boundary", ["start", "end"])
def test_the_compiled_agent_is_algorithm_1(boundary):
    reasons, windows = set(), set()
    for seed in range(RUNS // 2):
        rng = np.random.default_rng([seed, boundary == "end"])
        model = draw_model(rng, seed)
        space, T = model.space, model.horizon
        W = draw_window(rng, T)
        eta = rng.choice([0.0, 0.1, 0.5, 1.9, 2.5])
        eta = eta if rng.random() < 0.7 else eta * rng.random(space.n_pairs)
        scale = 1.0 if rng.random() < 0.3 else rng.uniform(0.05, 0.3)
        given = {
            "horizon": T, "window": W, "widening": eta, "delta": rng.uniform(0.01, 0.5),
            "boundary": boundary,
        }  # fmt: skip
        agent = wd.SWUCRL2CW(space, radii=wd.Radii.paper().scaled(scale), **given, **COLD)
        run = wd.run(model, agent, seed=seed)
        twin = reference.SWUCRL2CW(space, scale=scale, ties="lowest", **given)
        reasons |= replay(twin, run)
        windows.add("1" if W == 1 else "T" if W == T else "> T" if W > T else "< T")
    assert reasons == {"boundary", "visits"}
    assert windows == {"1", "< T", "T", "> T"}


@pytest.mark.parametrize("clip", [False, True])
def test_ucrl2_is_the_same_with_all_history_and_its_own_radii(clip):
    longest = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 2 + clip])
        model = draw_model(rng, 5000 + seed)
        space, T = model.space, model.horizon
        scale = float(rng.choice([1.0, 0.3, 0.1]))
        given = {"horizon": T, "delta": rng.uniform(0.01, 0.5), "clip": clip}
        agent = wd.UCRL2(space, radii=wd.Radii.ucrl2().scaled(scale), **given, **COLD)
        run = wd.run(model, agent, seed=seed)
        assert replay(UCRL2(space, scale=scale, ties="lowest", **given), run) <= {"visits"}
        longest = max(longest, int(run.episodes.length.max()))
    assert longest > 10


def test_windows_beyond_the_horizon_are_all_history():
    """With W > T and no widening, SWUCRL2-CW is the all-history learner with the same radii."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = draw_model(rng, seed)
        space, T = model.space, model.horizon
        # an agent's draws hang on its id: a tie rule without draws is needed to compare
        options = {"radii": wd.Radii.paper().scaled(0.1), "ties": "lowest"}
        window = wd.SWUCRL2(space, horizon=T, window=T + 1, **options)
        a = wd.run(model, window, seed=seed)
        b = wd.run(model, wd.UCRL2(space, horizon=T, clip=True, **options), seed=seed)
        assert a.actions.tolist() == b.actions.tolist()
        assert a.episodes.start.tolist() == b.episodes.start.tolist()
        assert a.episodes.gain.tolist() == b.episodes.gain.tolist()


def ragged():
    space = wd.StateActions([2, 3, 1, 4])
    ends = [random_mdp(space, seed, density=0.6) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=2000)


MODELS = {
    "riverswim": lambda: wd.envs.make("riverswim", horizon=3000),
    "two-state-cosine": lambda: wd.envs.make("two-state-cosine", horizon=2000),
    "inventory": lambda: wd.envs.make("inventory", horizon=1500),
    "bandit": lambda: wd.envs.make("bandit", horizon=1000),
    "ragged": ragged,
}


@pytest.mark.parametrize("scale", [1.0, 0.1, (0.2, 0.05)])
@pytest.mark.parametrize("name", MODELS)
def test_both_play_the_same_in_a_model(name, scale):
    """Not fed with a run, but let loose in the same noise: `wd.run` takes the reference too."""
    model = MODELS[name]()
    given = {"horizon": model.horizon, "window": 170, "widening": 0.15}
    factors = np.broadcast_to(scale, 2).tolist()
    radii = wd.Radii.paper().scaled(reward=factors[0], transition=factors[1])
    twin = reference.SWUCRL2CW(model.space, scale=scale, ties="lowest", **given)
    agent = wd.SWUCRL2CW(model.space, radii=radii, **given, **COLD)
    mine, theirs = wd.run(model, twin, seed=4), wd.run(model, agent, seed=4)
    assert mine.states.tolist() == theirs.states.tolist()
    assert mine.actions.tolist() == theirs.actions.tolist()
    assert mine.rewards.tolist() == theirs.rewards.tolist()
    assert [tau for tau, *_ in twin.episodes] == theirs.episodes.start.tolist()
    assert [sweeps for *_, sweeps in twin.episodes] == theirs.episodes.sweeps.tolist()


def test_random_ties_are_uniform():
    """One state, everything tied: 4,000 episodes of one step; each cell within 6 sigma."""
    space, T = wd.StateActions([4]), 4000
    agent = reference.SWUCRL2CW(space, horizon=T, window=1, widening=0.1, seed=3)
    actions = []
    for _ in range(T):
        actions.append(agent.act(0))
        agent.observe(0, actions[-1], 0.5, 0)
    counts = np.bincount(actions, minlength=4)
    assert np.abs(counts - T / 4).max() < 6 * np.sqrt(T * 3 / 16)
    again = reference.SWUCRL2CW(space, horizon=T, window=1, widening=0.1, seed=3)
    assert again.act(0) == actions[0]


def test_asking_twice_changes_nothing_and_t_steps_are_all():
    model = ragged()
    agents = [
        reference.SWUCRL2CW(model.space, horizon=40, window=7, widening=0.1, seed=2)
        for _ in range(2)
    ]
    rng, s = np.random.default_rng(0), 0
    for _ in range(40):
        first, second = (agent.act(s) for agent in agents)
        assert agents[0].act(s) == first == second
        reward, after = float(rng.random()), int(rng.integers(4))
        for agent in agents:
            agent.observe(s, first, reward, after)
        s = after
    assert agents[0].episodes == agents[1].episodes
    with pytest.raises(wd.HorizonReached, match="all 40 steps"):
        agents[0].act(s)
