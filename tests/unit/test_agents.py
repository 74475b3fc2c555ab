"""The contract of act and observe, shown on the random agent."""

from __future__ import annotations

import hashlib
import json
import math
import struct

import numpy as np
import pytest

import windage as wd
from windage.agents.state import Blob, pack, unpack
from windage.errors import CallOrderError, HorizonReached, InputError, StateError

SPACE = wd.StateActions([2, 3], state_names=["low", "high"])


def agent(**options):
    return wd.agents.make("random", SPACE, horizon=5, **options)


def test_act_is_the_same_until_observe():
    a = agent()
    first = a.act(1)
    assert a.act(1) == first
    a.observe(1, first, 0.5, 0)
    assert (a.t, a.last_state) == (2, 0)


def test_calls_out_of_order_change_nothing():
    a = agent()
    with pytest.raises(
        CallOrderError, match=r"observe at t=1: there is no decision.*act\(s\) first"
    ):
        a.observe(0, 0, 0.5, 0)
    a.act(0)
    before = a.state()
    with pytest.raises(CallOrderError, match=r"act at t=1: a decision in s=0 \('low'\) is waiting"):
        a.act(1)
    with pytest.raises(CallOrderError, match="the decision was asked for in s=0"):
        a.observe(1, 0, 0.5, 0)
    assert a.state() == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ((2, 0, 0.5, 0), "state: 2"),
        ((True, 0, 0.5, 0), "state: True"),
        ((0, 2, 0.5, 0), r"action: 2 .*s=0 \('low'\) offers 2"),
        ((0, 1.0, 0.5, 0), "action: 1.0"),
        ((0, 0, math.nan, 0), "reward: nan"),
        ((0, 0, math.inf, 0), "reward: inf"),
        ((0, 0, "0.5", 0), "reward: '0.5'"),
        ((0, 0, None, 0), "reward: None"),
        ((0, 0, 0.5, 2), "s_next: 2"),
        ((0, 0, 0.5, 0.0), "s_next: 0.0"),
        ((0, 0, 0.5, 1, 7), "seen: 7 does not say which variable"),
    ],
)
def test_impossible_observations_change_nothing(call, message):
    a = agent()
    a.act(0)
    before = a.state()
    with pytest.raises(InputError, match=message):
        a.observe(*call)
    assert a.state() == before


def test_without_a_structure_there_is_no_use_for_what_was_seen():
    told, silent = agent(), agent()
    for one, step in ((told, (0, 0, 0.5, 1, {"demand": 3})), (silent, (0, 0, 0.5, 1))):
        one.act(0)
        one.observe(*step)
    assert told.state() == silent.state()


def test_declared_ranges_are_enforced():
    a = agent(reward_range=(0, 1))
    a.act(0)
    with pytest.raises(InputError, match=r"reward: 1\.5 is not a number in \[0, 1\]"):
        a.observe(0, 0, 1.5, 0)
    a.observe(0, 0, 1, 0)
    free = agent()
    free.act(0)
    free.observe(0, 0, -17.5, 1)


def test_another_action_than_the_advised_one_is_counted():
    a = agent()
    advised = a.act(0)
    a.observe(0, 1 - advised, 0.5, 0)
    assert a.overridden == 1
    a.observe(0, a.act(0), 0.5, 0)
    assert a.overridden == 1


def test_after_the_horizon_there_is_nothing_to_decide():
    a = agent()
    for _ in range(5):
        a.observe(0, a.act(0), 0.0, 0)
    with pytest.raises(HorizonReached, match="all 5 steps"):
        a.act(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"reward_range": 3}, "reward_range"),
        ({"reward_range": (1, 0)}, "is empty"),
        ({"reward_range": (0, math.inf)}, r"reward_range\[1\]"),
    ],
)
def test_impossible_agents(options, message):
    with pytest.raises(InputError, match=message):
        agent(**options)
    with pytest.raises(InputError, match="did you mean 'random'"):
        wd.agents.make("randm", SPACE, horizon=5)
    with pytest.raises(
        InputError,
        match=r"random.sed: no such parameter; did you mean seed\? Fix: one of: reward_range",
    ):
        wd.agents.make("random", SPACE, horizon=5, sed=1)
    with pytest.raises(InputError, match="problem: None is not a DriftingMDP"):
        wd.agents.make("oracle", SPACE, horizon=5)
    with pytest.raises(wd.ModelError, match="space: .*not StateActions"):
        wd.agents.RandomAgent(3, horizon=5)
    with pytest.raises(InputError, match="horizon"):
        wd.agents.RandomAgent(SPACE, horizon=0)
    with pytest.raises(wd.ModelError, match="horizon"):  # a model's own horizon
        wd.envs.make("riverswim", horizon=0)


def test_states_survive_with_a_pending_decision():
    a = agent(seed=3, reward_range=(0, 2))
    a.observe(0, a.act(0), 0.5, 1)
    decision = a.act(1)
    again = wd.agents.restore(a.state())
    assert type(again) is wd.agents.RandomAgent
    assert again.state() == a.state()
    assert again.act(1) == decision
    assert (again.t, again.space, again.reward_range) == (2, SPACE, (0.0, 2.0))
    for twin in (a, again):
        twin.observe(1, decision, 0.5, 0)
    assert again.act(0) == a.act(0)
    assert wd.agents.RandomAgent.from_state(again.state()).t == 3


def test_damaged_states_are_refused():
    state = agent().state()
    for wrong in (b"", b"x", state[:-1], state + b"x", state[:40] + b"\0" + state[41:], 7):
        with pytest.raises(StateError, match="state: "):
            wd.agents.restore(wrong)
    rng = np.random.default_rng(0)
    for place in rng.integers(len(state), size=200):
        damaged = bytearray(state)
        damaged[place] ^= 1 << rng.integers(8)
        with pytest.raises(StateError):
            wd.agents.restore(bytes(damaged))


def test_states_of_other_agents_are_refused():
    other = pack(Blob("somebody", {}, {}, {}))
    with pytest.raises(StateError, match="saved 'somebody' agent, not 'random'"):
        wd.agents.RandomAgent.from_state(other)
    with pytest.raises(StateError, match="holds a 'somebody' agent, which this version does not"):
        wd.agents.restore(other)


def test_blobs_carry_arrays_of_all_kinds():
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([1.5, math.nan]),
        "c": np.zeros((0, 4), dtype=np.uint64),
        "d": np.array([True, False]),
    }
    again = unpack(pack(Blob("x", {"k": 1}, {"v": None}, arrays)))
    assert (again.agent, again.configuration, again.values) == ("x", {"k": 1}, {"v": None})
    for name, array in arrays.items():
        assert again.arrays[name].dtype == array.dtype
        assert again.arrays[name].shape == array.shape
        assert again.arrays[name].tobytes() == array.tobytes()


def test_what_cannot_be_read_back_is_not_written():
    with pytest.raises(StateError, match="'a' has type float32, which cannot be saved"):
        pack(Blob("x", {}, {}, {"a": np.zeros(3, dtype=np.float32)}))


def test_what_was_overridden_survives_a_restart():
    agent = wd.agents.make("random", wd.StateActions([2, 2]), horizon=10)
    for _ in range(3):
        advised = agent.act(0)
        agent.observe(0, 1 - advised, 0.5, 0)
    assert agent.overridden == 3
    assert wd.agents.restore(agent.state()).overridden == 3


def test_a_state_of_another_format_is_named_before_its_fields_are_read():
    import hashlib
    import struct

    from windage.agents import state

    text = b'{"format": 99, "something": "new"}'
    body = state._MAGIC + struct.pack("<Q", len(text)) + text
    with pytest.raises(wd.StateError, match="format 99"):
        wd.agents.restore(body + hashlib.sha256(body).digest())


def headed(data, change):
    """A saved agent whose header is another; its checksum fits."""
    start = len(b"windage agent\n")
    (length,) = struct.unpack("<Q", data[start : start + 8])
    text = change(data[start + 8 : start + 8 + length])
    rest = data[start + 8 + length : -32]
    body = data[:start] + struct.pack("<Q", len(text)) + text + rest
    return body + hashlib.sha256(body).digest()


def arrays(*found):
    return lambda text: json.dumps(json.loads(text) | {"arrays": found}).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (arrays(["x", "<f8", [2**32, 2**32]]), r"'x' is cut short: its shape is \[4294967296, "),
        (arrays(["x", "<f8", [0, 2**62]]), "'x' is cut short"),
        (arrays(["x", "|u1", [1] * 65]), "'x' has the impossible type"),
        (arrays(["x", "<f8", [-1]]), "'x' has the impossible type"),
        (arrays(["x", "|O8", [0]]), "'x' has the impossible type"),
        (arrays(["x", "|u1", [0]], ["x", "|u1", [0]]), "'x' is there twice"),
        (arrays(["x" * 10**6, "<f8", [9]]), "'xx.*x... is cut short"),
        (lambda text: b"[" * 10**5 + b"]" * 10**5, "the header cannot be read"),
        (lambda text: text.replace(b'"values":', b'"values":{},"x":' + b"[" * 10**5), "be read"),
    ],
)
def test_headers_that_were_made_to_do_harm(change, message):
    whole = agent().state()
    assert headed(whole, lambda text: text) == whole
    with pytest.raises(StateError, match=message) as caught:
        wd.agents.restore(headed(whole, change))
    assert len(str(caught.value)) < 400


def test_an_unknown_agent_in_a_state_is_a_damaged_state():
    from windage.agents import state

    data = state.pack(state.Blob("tomorrow", {}, {}, {}))
    with pytest.raises(wd.StateError, match="tomorrow"):
        wd.agents.restore(data)


def test_a_class_of_ones_own_is_made_like_those_with_an_id():
    class Mine(wd.agents.RandomAgent):
        id = "mine"

    space = wd.StateActions([2, 2])
    assert isinstance(wd.agents.make(Mine, space, horizon=5, seed=3), Mine)
    assert wd.agents.facts(Mine, wd.envs.make("riverswim", horizon=5)) == {}
    with pytest.raises(InputError, match="mine.window: no such parameter"):
        wd.agents.make(Mine, space, horizon=5, window=3)


@pytest.mark.parametrize("id", wd.agents.names())
def test_a_missing_horizon_is_named_with_what_to_do(id):
    space = wd.StateActions([2, 2])
    for make in (lambda: wd.agents.make(id, space), lambda: wd.agents.get(id)(space)):
        with pytest.raises(wd.InputError, match=r"horizon: .*Fix: pass horizon=T; .*wd\.Doubling"):
            make()
