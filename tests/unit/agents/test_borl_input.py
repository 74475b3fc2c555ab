"""BORL and what it cannot use: arms, options, rewards, calls."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import windage as wd
from tests.unit.agents.borl_worlds import MODEL, SPACE, T, drifting, make
from windage.agents.meta.borl import BORL
from windage.errors import CallOrderError, HorizonReached, InputError, ModelError

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

# --- arguments -----------------------------------------------------------------------------------

BAD = [
    ({"arms": []}, r"^arms: there are none\. Fix: pass pairs \(W, eta\)"),
    ({"arms": ()}, "^arms: there are none"),
    ({"arms": 5}, "^arms: 5 are no arms"),
    ({"arms": [5]}, r"^arms: \[5\] are no arms"),
    ({"arms": [(10, 0.1), (5,)]}, r"^arms\[1\]: \(5,\) is no arm"),
    ({"arms": [(5, 0.1, 0.2)]}, r"^arms\[0\]: \(5, 0.1, 0.2\) is no arm"),
    ({"arms": [(0, 0.1)]}, r"^arms\[0\]: window: 0 is not an integer from 1"),
    ({"arms": [(10, 0.1), (-3, 0.1)]}, r"^arms\[1\]: window: -3"),
    ({"arms": [(10.0, 0.1)]}, r"^arms\[0\]: window: 10\.0 \(float\) is not an integer"),
    ({"arms": [(True, 0.1)]}, r"^arms\[0\]: window: True is a boolean"),
    ({"arms": [("10", 0.1)]}, r"^arms\[0\]: window: '10'"),
    ({"arms": [(2**40, 0.1)]}, r"^arms\[0\]: window: "),
    ({"arms": np.array([[10.0, 0.1]])}, r"^arms\[0\]: window: "),
    ({"arms": [(10, -0.1)]}, r"^arms\[0\]: widening: -0\.1 is not a number in \[0, 2\]"),
    ({"arms": [(10, 2.001)]}, r"^arms\[0\]: widening: 2\.001"),
    ({"arms": [(10, math.nan)]}, r"^arms\[0\]: widening: nan"),
    ({"arms": [(10, math.inf)]}, r"^arms\[0\]: widening: inf"),
    ({"arms": [(10, "0.1")]}, r"^arms\[0\]: widening: '0\.1' is not a number"),
    ({"arms": [(10, None)]}, r"^arms\[0\]: widening: None is not a number"),
    ({"arms": [(10, [0.1] * 6)]}, r"^arms\[0\]: widening: "),
    ({"master": "exp3-p"}, r"^master: no such choice: 'exp3-p'\. Fix: did you mean 'exp3p'\?"),
    ({"master": None}, "^master: no such choice: None"),
    ({"master": ["exp3p"]}, "^master: no such choice"),
    ({"block_length": 0}, "^block_length: 0 is not an integer from 1"),
    ({"block_length": -5}, "^block_length: -5"),
    ({"block_length": 40.0}, r"^block_length: 40\.0"),
    ({"block_length": True}, "^block_length: True is a boolean"),
    ({"carry_window": 1}, "^carry_window: 1 is no yes or no"),
    ({"carry_window": None}, "^carry_window: None is no yes or no"),
    ({"reward_range": (1.0, 0.0)}, r"^reward_range: \(1\.0, 0\.0\) is empty"),
    ({"reward_range": (1.0, 1.0)}, "^reward_range: "),
    ({"reward_range": 1.0}, "^reward_range: 1.0 is not a range"),
    ({"delta": 0.0}, "^delta: "),
    ({"delta": 1.0}, "^delta: "),
    ({"ties": "best"}, "^ties: no such choice: 'best'"),
    ({"slack": -0.1}, "^slack: "),
    ({"radii": "papers"}, "radii"),
    ({"seed": -1}, "^seed: -1"),
    ({"seed": 0.5}, "^seed: 0.5"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[str(options) for options, _ in BAD])
def test_impossible_options(options, message):
    with pytest.raises(InputError, match=message) as caught:
        make(**options)
    assert caught.value.fix


@pytest.mark.parametrize("T", [0, -1, 2.0, None, True, 2**40])
def test_impossible_horizons(T):
    with pytest.raises(InputError, match="^horizon: "):
        make(horizon=T)
    with pytest.raises(ModelError, match="^space: "):
        BORL("space", horizon=10)


def test_blocks_that_would_not_fit_in_memory():
    with pytest.raises(ModelError, match="Fix: pass fewer arms or longer blocks"):
        make(horizon=2**39, block_length=1)


def test_a_window_that_would_not_fit_in_memory():
    """Said when the agent is made, not in the block that draws it."""
    arms = [(10, 0.1), (2**38, 0.1)]
    with pytest.raises(ModelError, match="window: would need about .* of memory"):
        make(horizon=2**39, block_length=2**35, arms=arms)


@pytest.mark.parametrize("steps", [0, 80])
def test_a_learner_that_could_not_be_made_is_made_later(steps, monkeypatch):
    agent, twin = make(), make()
    for one in (agent, twin):
        wd.run(MODEL, one, seed=1, steps=steps) if steps else None

    def short_of_memory(*_, **__):
        raise ModelError("would need more", field="window", fix="wait")

    with monkeypatch.context() as patch:
        patch.setattr(BORL, "_learner", short_of_memory)
        for _ in range(3):
            with pytest.raises(ModelError, match="window: would need more"):
                agent.act(1)
    assert agent.act(1) == twin.act(1)
    assert agent.state() == twin.state()


@pytest.mark.parametrize("T", [1, 2, 3])
def test_the_smallest_horizons_have_a_grid_too(T):
    """Two windows with one widening at T = 1, two from then on; a single block holds all of T."""
    for space in (wd.StateActions([1]), SPACE):
        with pytest.warns(wd.GuaranteeWarning, match=f"one block of {T} steps"):
            agent = BORL(space, horizon=T)
        assert len({W for W, _ in agent.arms}) >= 2
        assert len({eta for _, eta in agent.arms}) == (1 if T == 1 else 2)
        for _ in range(T):
            agent.observe(0, agent.act(0), 1.0, 0)
        assert BORL.from_state(agent.state()).state() == agent.state()
        with pytest.raises(HorizonReached):
            agent.act(0)


def test_arms_as_people_pass_them():
    """Arrays of integers, generators, lists of lists, widenings that are whole numbers."""
    for arms in ([[15, 1], [70, 0]], np.array([[15, 1], [70, 0]]), iter([(15, 1), (70, 0)])):
        agent = make(arms=arms)
        assert agent.arms == ((15, 1.0), (70, 0.0))
        assert [type(x) for x in agent.arms[0]] == [int, float]
        assert BORL.from_state(agent.state()).arms == agent.arms


@pytest.mark.parametrize(
    "options",
    [
        {"seed": np.int64(3)},
        {"reward_range": np.array([0.0, 2.0])},
        {"radii": wd.Radii.laplace().scaled(0.5)},
        {"block_length": np.int64(40)},
        {"delta": np.float32(0.25)},
        {"delta": Fraction(1, 4)},
        {"slack": np.float32(0.5)},
    ],
)
def test_what_numpy_makes_can_be_saved_too(options):
    agent = make(**options)
    wd.run(MODEL, agent, seed=1, steps=50)
    assert BORL.from_state(agent.state()).state() == agent.state()


def test_the_largest_seeds_are_refused_in_words():
    """Its learners' seeds are drawn from its own and no larger for it."""
    make(seed=2**4096 - 1).act(0)
    with pytest.raises(InputError, match="^seed: has 4097 bits. Fix: pass at most 4096 bits"):
        make(seed=2**4096)


# --- rewards and calls ---------------------------------------------------------------------------


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 39, 40, 100])
def test_calls_that_are_refused_change_nothing(carry, steps):
    agent, twin = (make(carry_window=carry, reward_range=(-1.0, 2.0)) for _ in range(2))
    if steps:
        wd.run(MODEL, agent, seed=1, steps=steps)
        wd.run(MODEL, twin, seed=1, steps=steps)
    with pytest.raises(CallOrderError):
        agent.observe(1, 0, 0.5, 1)
    action = agent.act(1)
    before = agent.state()
    for reward in (-1.001, 2.5, math.nan, math.inf, "1", None, True):
        with pytest.raises(InputError, match="^reward: "):
            agent.observe(1, action, reward, 1)
    for s, a, after in ((1, 3, 0), (1, -1, 0), (1, 0, 3), (3, 0, 0), (1, 0.0, 0)):
        with pytest.raises(InputError):
            agent.observe(s, a, 0.5, after)
    with pytest.raises(CallOrderError):
        agent.act(0)
    assert agent.state() == before
    twin.act(1)
    for one in (agent, twin):
        one.observe(1, action, 2.0, 2)
        one.act(2)
    assert agent.state() == twin.state()


def test_rewards_too_large_to_add_up():
    agent = make(reward_range=None, carry_window=True)
    agent.act(0)
    before = agent.state()
    with pytest.raises(InputError, match="^reward: "):
        agent.observe(0, 0, 1e300, 0)
    assert agent.state() == before


@pytest.mark.parametrize("unit", [(0.0, 1.0), (-1.0, 3.0), (2.0, 2.5)])
def test_rewards_of_blocks_are_scaled_from_their_range(unit):
    low, high = unit
    agent = make(reward_range=unit, block_length=20)
    rewards = np.random.default_rng(2).uniform(low, high, T)
    for reward in rewards:
        agent.observe(0, agent.act(0), float(reward), 0)
    means = (rewards.reshape(-1, 20).mean(axis=1) - low) / (high - low)
    assert agent.blocks.reward[:-1].tolist() == pytest.approx(means[:-1].tolist(), abs=1e-12)
    assert agent.runner.reward_range == unit


@pytest.mark.parametrize("carry", [False, True])
def test_a_reward_that_is_refused_in_a_run(carry):
    """The same agent as step by step, and it can be saved."""
    model = drifting(wd.Noise.gaussian(0.3))
    options = {"reward_range": (-0.7, 1.4), "carry_window": carry}
    agent, twin = make(**options), make(**options)
    with pytest.raises(wd.InputError, match="is not in the declared range"):
        wd.run(model, agent, seed=7)
    assert agent.t == 105
    world = wd.simulate.Simulator(model, 7)
    for _ in range(agent.t - 1):
        s = world.state
        a = twin.act(s)
        twin.observe(s, a, *world.step(a))
    twin.act(twin.last_state)
    twin.withdraw()
    assert agent.state() == twin.state()
    assert BORL.from_state(agent.state()).state() == agent.state()
