"""One step of a world against the definition, draw by draw."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import Weights, random_mdp
from tests.unit.kernels.test_random import literal_uniform, literal_word
from tests.unit.kernels.test_simulator_alias import literal_draw
from windage.kernels import simulator as kernel
from windage.rng import key
from windage.simulate import world_of

SPACE = wd.StateActions([2, 1, 3])
MODELS = [random_mdp(SPACE, seed, density=0.7) for seed in range(3)]


def literal_step(model, seed, t, pair):
    """Draw the base by its weight, then the alias cell of its row, then the reward."""
    weights = model.source.kernels.schedule.weights(t, model.horizon)
    reward_weights = model.source.rewards.schedule.weights(t, model.horizon)
    models, ordered = model.source.kernels.schedule.active(np.array([t]), model.horizon)
    u, base = literal_uniform(key(seed, "world.base"), t, 0), models[0, -1]
    for k, w in zip(models[0], ordered[0], strict=True):
        if u < w:
            base = k
            break
        u -= w
    assert weights[base] > 0
    row = base * SPACE.n_pairs + pair
    u = literal_word(key(seed, "world.state"), t, 0) >> 11
    after = literal_draw(model.source._alias, row, u)
    mean = sum(w * m.rewards[pair] for w, m in zip(reward_weights, MODELS, strict=False))
    reward = float(literal_uniform(key(seed, "world.reward"), t, 0) < mean)
    return mean, reward, after


@pytest.mark.parametrize(
    ("schedule", "reward_schedule"),
    [
        (wd.schedules.Cosine(2), None),
        (wd.schedules.Steps([20, 50]), wd.schedules.Linear()),
        (Weights(0.2, 0.5, 0.3), wd.schedules.Cosine(1)),
        (Weights(0.0, 1.0, 0.0), Weights(0.5, 0.25, 0.25)),
    ],
)
def test_steps_equal_the_definition(schedule, reward_schedule):
    model = wd.DriftingMDP.blend(MODELS, schedule, reward_schedule, horizon=100)
    world = world_of(model, 9, 1, 100)
    with np.errstate(over="ignore"):
        for t in range(1, 101):
            pair = t % SPACE.n_pairs
            mean, reward, after = kernel.step(world, t, pair)
            expected = literal_step(model, 9, t, pair)
            assert mean == pytest.approx(expected[0], abs=1e-15)
            assert (reward, after) == expected[1:]


def test_noise_drawn_beforehand_is_that_of_single_steps():
    model = wd.DriftingMDP.blend(MODELS, Weights(0.2, 0.5, 0.3), horizon=1300)
    world = world_of(model, 9, 1, 1300)._replace(ahead=7)
    n = 1290
    spins, draws, coins = np.empty(n), np.empty(n, np.int64), np.empty(n)
    with np.errstate(over="ignore"):
        kernel.draw_noise(world, 3, spins, draws, coins)
        expected = [literal_word(world.state_key, 10 + i, 0) >> 11 for i in range(n)]
        assert draws.tolist() == expected
        for i in range(0, n, 13):
            landed = kernel.land(world, 3 + i, 2, spins[i], draws[i], coins[i])
            assert landed == kernel.step(world, 3 + i, 2)


@pytest.mark.parametrize("noise", ["none", "gaussian", "beta", wd.Noise.beta(0.01)])
def test_noise_keeps_the_mean_it_was_given(noise):
    model = wd.DriftingMDP.blend(MODELS, wd.schedules.Linear(), horizon=2000, noise=noise)
    world = world_of(model, 4, 1, 2000)
    with np.errstate(over="ignore"):
        drawn = np.array([kernel.reward(world.noise, t, 0.3, 0.5) for t in range(1, 2001)])
        if noise != "gaussian":  # nothing to draw where the mean is an end of [0, 1]
            assert kernel.reward(world.noise, 1, 0.0, 0.5) == 0.0
            assert kernel.reward(world.noise, 1, 1.0, 0.5) == 1.0
            assert drawn.min() >= 0
            assert drawn.max() <= 1
    assert abs(drawn.mean() - 0.3) <= 5.5 * drawn.std() / np.sqrt(drawn.size) + 1e-15
