"""Algorithm 3 in NumPy against the compiled BORL: the same arms, actions and probabilities."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import windage as wd
from tests.models import draw_model, random_mdp
from windage import reference

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]


def both(model, seed, world_seed, scale, **options):
    """Play the compiled BORL and the reference in the same noise; return them with their runs."""
    given = {"horizon": model.horizon, "ties": "lowest", "seed": seed, **options}
    radii = wd.Radii.paper().scaled(scale)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = wd.BORL(model.space, radii=radii, warm_start=False, **given)
    twin = reference.BORL(model.space, scale=scale, **given)
    return agent, twin, wd.run(model, agent, seed=world_seed), wd.run(model, twin, seed=world_seed)


def assert_same(agent, twin, run, mine):
    assert (agent.block_length, agent.n_blocks) == (twin.block_length, len(twin.blocks))
    assert [W for W, _ in agent.arms] == [W for W, _ in twin.arms]
    assert [eta for _, eta in agent.arms] == pytest.approx([e for _, e in twin.arms], rel=1e-14)
    assert agent.blocks.arm.tolist() == [block.arm for block in twin.blocks]
    likely = [block.probabilities for block in twin.blocks]
    assert np.abs(agent.blocks.probabilities - likely).max() <= 1e-12
    assert run.states.tolist() == mine.states.tolist()
    assert run.actions.tolist() == mine.actions.tolist()


def ragged():
    space = wd.StateActions([2, 3, 1])
    ends = [random_mdp(space, seed, density=0.7) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=1100)


MODELS = {
    "riverswim": lambda: wd.envs.make("riverswim", horizon=1500),
    "two-state-cosine": lambda: wd.envs.make("two-state-cosine", horizon=1300),
    "bandit": lambda: wd.envs.make("bandit", horizon=1200),
    "ragged": ragged,
}
FEW = [(25, 0.1), (1, 0.5), (60, 0.0), (400, 0.5)]


@pytest.mark.parametrize("options", [{}, {"arms": FEW, "block_length": 37}, {"delta": 0.4}])
@pytest.mark.parametrize("scale", [1.0, 0.1])
@pytest.mark.parametrize("name", MODELS)
def test_both_play_the_same_in_a_model(name, scale, options):
    agent, twin, run, mine = both(MODELS[name](), 7, 3, scale, **options)
    assert_same(agent, twin, run, mine)
    if "arms" in options:  # with the paper's grid gamma is 1, and nothing is learned of the arms
        assert np.ptp(agent.blocks.probabilities[-1]) > 1e-3
        assert len(set(agent.blocks.arm.tolist())) > 1


def test_both_play_the_same_on_small_random_models():
    """Ragged, one block or many, with windows of 1, of T and above."""
    blocks = set()
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        model = draw_model(rng, 20_000 + seed)
        T, options = model.horizon, {}
        if rng.random() < 0.6:
            windows = (1, T, T + 5, int(rng.integers(1, T + 1)))
            options["arms"] = [(W, float(rng.choice([0.0, 0.2, 2.0]))) for W in windows]
            options["block_length"] = int(rng.integers(1, T + 1))
        agent, twin, run, mine = both(model, seed, seed + 1, 0.2, **options)
        assert_same(agent, twin, run, mine)
        blocks.add(agent.n_blocks > 1)
    assert blocks == {True, False}


@pytest.mark.parametrize("T", [*range(1, 13), 40])
def test_both_read_short_horizons_alike(T):
    """Windows of the grid exceed T, and T = 1 has one widening for each of its two windows."""
    model = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(6), horizon=T)
    for seed in range(3):
        agent, twin, run, mine = both(model, seed, seed, 1.0)
        assert_same(agent, twin, run, mine)
    H = 3.0 * 6.0 ** (2 / 3) * (2.0 * T) ** 0.5
    assert max(W for W, _ in agent.arms) == int(H) > T
    falls = int(np.log(2.0 * np.sqrt(T)))
    assert len(agent.arms) == (int(np.log(H)) + 1) * (falls + 1)
    assert (falls == 0) == (T == 1)


def test_warm_learners_play_otherwise():
    """So an agent that cannot be cold is not Algorithm 3 from u = 0."""
    model, radii, actions = MODELS["riverswim"](), wd.Radii.paper().scaled(0.1), []
    for warm in (True, False):
        agent = wd.BORL(
            model.space, horizon=1500, seed=0, radii=radii, ties="lowest", warm_start=warm
        )
        actions.append(wd.run(model, agent, seed=1).actions)
        assert agent.config.warm_start == agent.runner.warm_start == warm
        assert wd.agents.restore(agent.state()).config == agent.config
    twin = reference.BORL(model.space, horizon=1500, seed=0, scale=0.1, ties="lowest")
    assert (actions[1] == wd.run(model, twin, seed=1).actions).all()
    assert (actions[0] != actions[1]).any()


def test_draws_may_come_from_elsewhere():
    space = wd.StateActions([2, 1])
    points, asked = [0.05, 0.95, 0.6], []

    def uniform(block):
        asked.append(block)
        return points[block]

    agent = reference.BORL(
        space, horizon=30, arms=[(5, 0.1), (9, 0.2)], block_length=10, uniform=uniform
    )
    for t in range(30):
        agent.act(0)
        agent.observe(0, agent.act(0), float(t < 10), 0)
    assert asked == [0, 1, 2]
    assert [block.arm for block in agent.blocks] == [0, 1, 1]
    first = reference.Exp3P(2, 3)
    first.update(0, 1.0)
    assert agent.blocks[1].probabilities.tolist() == first.probabilities.tolist()
    assert agent.blocks[2].probabilities.tolist() != first.probabilities.tolist()
