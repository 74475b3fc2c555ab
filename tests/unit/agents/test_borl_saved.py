"""Saved states of BORL that cannot be: parts that are impossible, or contradict each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.unit.agents.borl_worlds import MODEL, SPACE, T, make
from windage.agents.meta.borl import BORL
from windage.agents.state import Blob, pack, unpack
from windage.errors import StateError

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]


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
