"""BORL and what it cannot use: arms, options, rewards, and saved states that cannot be."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.agents.blob import Blob, pack, unpack
from windage.agents.borl import BORL
from windage.errors import CallOrderError, HorizonReached, InputError, ModelError, StateError

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

SPACE = wd.StateActions([2, 3, 1])
T, H = 300, 40
FEW = [(15, 0.1), (70, 0.0), (500, 0.5)]


def drifting(noise="bernoulli"):
    ends = [random_mdp(SPACE, seed, density=0.7) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=T, noise=noise)


MODEL = drifting()


def make(**options):
    given = {"horizon": T, "arms": FEW, "block_length": H, "seed": 5} | options
    return BORL(SPACE, **given)


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
    with pytest.raises(ModelError, match="^horizon: "):
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
    """The grid never has fewer than four arms; a single block holds all of T."""
    for space in (wd.StateActions([1]), SPACE):
        with pytest.warns(wd.GuaranteeWarning, match=f"one block of {T} steps"):
            agent = BORL(space, horizon=T)
        assert len(agent.arms) >= 4
        assert {W for W, _ in agent.arms} <= set(range(1, T + 1))
        for _ in range(T):
            agent.observe(0, agent.act(0), 1.0, 0)
        assert BORL.from_state(agent.state()).state() == agent.state()
        with pytest.raises(HorizonReached):
            agent.act(0)


def test_arms_as_people_pass_them():
    """Arrays of integers, generators, lists of lists, widenings that are whole numbers."""
    for arms in ([[15, 1], [70, 0]], np.array([[15, 1], [70, 0]]), iter([(15, 1), (70, 0)])):
        agent = make(arms=arms)
        assert agent.arms == [(15, 1.0), (70, 0.0)]
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


# --- warnings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {"block_length": 200}, {"block_length": T}, {"arms": None, "block_length": None},
    {"block_length": 100, "master": "exp3-s"},
])  # fmt: skip
def test_warnings_are_given(options):
    with pytest.warns(wd.GuaranteeWarning, match="gamma = .*1|one block"):
        make(**options)


def test_warnings_are_not_given_again_when_restored():
    agent = make(block_length=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BORL.from_state(agent.state()).state() == agent.state()


def said(**options):
    with pytest.warns(wd.GuaranteeWarning) as caught:
        make(**options)
    assert len(caught) == 1
    return str(caught[0].message)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "arms of one's own"),
        (
            {"arms": None, "block_length": None, "horizon": 10**8, "master": "exp3"},
            "the master 'exp3'",
        ),
        ({"arms": None, "horizon": 10**4, "block_length": 10}, "blocks of 10 steps"),
        ({"arms": None, "block_length": None, "carry_window": True}, "windows carried from block"),
    ],
)
def test_what_theorem_2_does_not_speak_of_is_said(options, words):
    assert f"Theorem 2 does not speak of {words}" in said(**options)
    for other in ("arms of", "the master", "blocks of", "windows carried"):
        mine = other in words or (other == "blocks of" and options == {})
        assert (f"Theorem 2 does not speak of {other}" in said(**options)) == mine, other


def test_when_it_would_learn_is_said_as_it_is():
    """The paper's grid grows with T: what fixed arms would need says nothing. Own arms stay."""
    plan = wd.plan(SPACE, horizon=T, reward_budget=1, transition_budget=1)
    text = said(arms=None, block_length=None, horizon=5000)
    assert f"gamma is at most 1 from T = {plan.borl.adapts_from} on" in text
    enough = math.ceil(1.05**2 * 3 * math.log(3))
    assert f"with these 3 arms it takes {enough} blocks" in said(block_length=100)
    assert "its bound says that" in said()
    assert "it takes" not in said(master="tsallis-inf")


def test_no_warning_where_the_theorem_speaks():
    """With so many steps gamma is small, and the bound of EXP3.P below what there is to lose."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BORL(wd.StateActions([2, 2]), horizon=10**11)


@pytest.mark.parametrize("noisy", [False, True])
def test_rewards_of_blocks_that_are_cut_are_said_once(noisy):
    """Without a range the master may hear of less than there was; within [0, 1] nothing is cut."""
    agent = make(reward_range=None, radii={"kind": "paper", "scale": 1.0})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(T):
            agent.observe(0, agent.act(0), 1.3 if noisy else 0.9, 0)
        again = BORL.from_state(agent.state())
    cut = [w for w in caught if "is cut to [0, 1] before the master" in str(w.message)]
    assert len(cut) == noisy
    assert again.blocks.reward[:-1].tolist() == pytest.approx([1.0 if noisy else 0.9] * 7)


@pytest.mark.parametrize("options", [{"radii": {"kind": "paper", "scale": 0.1}},
                                     {"arms": [(10, 0.0), (20, 0.0)]}])  # fmt: skip
def test_what_the_theorem_does_not_cover_is_said(options):
    with pytest.warns(wd.GuaranteeWarning, match="radii do not cover|positive widening"):
        make(**options)


def test_rewards_outside_the_unit_interval_are_noticed_once():
    agent = make(reward_range=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(T):
            agent.observe(0, agent.act(0), 7.0, 0)
    assert len([w for w in caught if "outside [0, 1]" in str(w.message)]) == 1
    assert set(agent.blocks.reward[:-1].tolist()) == {1.0}


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


# --- saved states that cannot be -----------------------------------------------------------------


def saved(steps=130, **options):
    agent = make(carry_window=True, **options)
    wd.run(MODEL, agent, seed=1, steps=steps)
    agent.act(agent.last_state)
    good = unpack(agent.state())
    assert pack(good) == agent.state()
    return good


def refused(good, values=None, arrays=None, configuration=None):
    bad = Blob(
        good.agent,
        good.configuration | (configuration or {}),
        good.values | (values or {}),
        good.arrays | (arrays or {}),
    )
    with pytest.raises(StateError) as caught:
        BORL.from_state(pack(bad))
    assert caught.value.fix


def test_impossible_values():
    good = saved()
    for name in ("t", "block", "since", "until", "earned", "episodes", "overridden"):
        for wrong in ("x", None, -1, 0.5, [], {}, "1"):
            refused(good, {name: wrong})
    for name, wrong in (
        ("t", 130), ("t", 132), ("t", 301), ("block", 2), ("block", 4), ("block", 8), ("since", 81),
        ("since", 120), ("since", 122), ("episodes", 10**6), ("pending", None), ("pending", [9, 9]),
        ("earned", [1.0, 2.0, 3.0]), ("earned", [math.nan, 0.0]), ("overridden", 10**6),
        ("last_state", 3),
    ):  # fmt: skip
        refused(good, {name: wrong})
    for values in ({"since": 81, "until": 121}, {"block": 2, "since": 81}):
        refused(good, values)


def test_impossible_arrays():
    good = saved()
    for name, array in good.arrays.items():
        refused(good, arrays={name: array[:-1]})
        refused(good, arrays={name: np.concatenate([array, array])})
        if name != "runner":  # bytes have no shape
            refused(good, arrays={name: array.reshape(1, *array.shape)})
        missing = {key: value for key, value in good.arrays.items() if key != name}
        with pytest.raises(StateError):
            BORL.from_state(pack(Blob(good.agent, good.configuration, good.values, missing)))
        if array.dtype == np.int64:
            refused(good, arrays={name: array.astype(np.float64)})
            for wrong in (-1, 10**6):
                refused(good, arrays={name: changed(array, wrong)})
    for wrong in (math.nan, math.inf):
        refused(good, arrays={"recent.reward": changed(good.arrays["recent.reward"], wrong)})
    for wrong in (math.nan, math.inf, -0.1, 1.1):
        refused(good, arrays={"blocks.reward": changed(good.arrays["blocks.reward"], wrong)})
    for place in (0, 20, 500, -1):
        damaged = good.arrays["runner"].copy()
        damaged[place] ^= 1
        refused(good, arrays={"runner": damaged})
    other = wd.agents.RandomAgent(SPACE, horizon=T).state()
    refused(good, arrays={"runner": np.frombuffer(other, np.uint8)})


def changed(array, value, place=0):
    new = array.copy()
    new.flat[place] = value
    return new


@pytest.mark.parametrize(
    "configuration",
    [
        {"arms": [[15, 0.1]]}, {"arms": None}, {"arms": []}, {"arms": [[15, 0.1], [60, 0], [5, 9]]},
        {"block_length": 41}, {"block_length": 39}, {"block_length": 0}, {"block_length": "40"},
        {"master": "exp4"}, {"carry_window": 0}, {"horizon": 120}, {"horizon": "300"}, {"delta": 2},
        {"radii": "x"}, {"ties": "x"}, {"seed": -1}, {"reward_range": [1, 0]}, {"more": 1},
        {"space": {"actions": [2, 3]}}, {"space": 3},
    ],
)  # fmt: skip
def test_impossible_configurations(configuration):
    refused(saved(), configuration=configuration)


INCONSISTENT = {
    "a block of another length": {"values": {"until": 162}},
    "a block without an end": {"values": {"until": 10**6}},
    "one number of what was earned": {"values": {"earned": [1.0]}},
    "more earned than there is": {"values": {"earned": [1e9, 0.0]}},
    "no episodes before": {"values": {"episodes": 0}},
    "an arm that was not played": {"arrays": {"blocks.arm": "other"}},
    "a reward outside [0, 1]": {"arrays": {"blocks.reward": 1.5}},
    "a block that ended without a reward": {"arrays": {"blocks.reward": math.nan}},
    "a sample outside the range": {"arrays": {"recent.reward": 5.0}},
    "another seed": {"runner": {"seed": 1}},
    "another widening": {"runner": {"widening": 0.3}},
    "another horizon": {"runner": {"horizon": 400}},
    "another range": {"runner": {"reward_range": None}},
    "other ties": {"runner": {"ties": "lowest"}},
    "other radii": {"runner": {"radii": "laplace"}},
    "another delta": {"runner": {"delta": 0.1}},
    "no carried window": {"configuration": {"carry_window": False}},
    "other actions": {"configuration": {"space": {"actions": [2, 3, 2]}}},
    "another seed of the whole": {"configuration": {"seed": 6}},
}


@pytest.mark.parametrize("name", INCONSISTENT)
def test_parts_that_contradict_each_other(name):
    """Each part is possible, together they are not: nobody who saved this can have been here."""
    good, damage = saved(), INCONSISTENT[name]
    arrays = {}
    for key, value in damage.get("arrays", {}).items():
        new = (good.arrays[key][0] + 1) % 3 if value == "other" else value
        arrays[key] = changed(good.arrays[key], new)
        assert arrays[key].tobytes() != good.arrays[key].tobytes()
    if "runner" in damage:
        runner = unpack(good.arrays["runner"].tobytes())
        configuration = runner.configuration | damage["runner"]
        bad = pack(Blob(runner.agent, configuration, runner.values, runner.arrays))
        arrays["runner"] = np.frombuffer(bad, np.uint8)
    refused(good, damage.get("values"), arrays, damage.get("configuration"))
