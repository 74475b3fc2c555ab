"""What optimistic agents refuse, how they say so, and that nothing has changed afterwards."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import windage as wd
from windage.agents import state as blobs
from windage.agents.state import Blob, pack, unpack
from windage.errors import (
    CallOrderError,
    GuaranteeWarning,
    HorizonReached,
    InputError,
    ModelError,
    NotConverged,
    ParameterWarning,
    StateError,
    WindageError,
)
from windage.kernels.swucrl2cw import EPISODE

SPACE = wd.StateActions([2, 3], state_names=["low", "high"])


def make(**options):
    given = {"horizon": 50, "window": 20, "widening": 0.2, "seed": 1}
    return wd.SWUCRL2CW(SPACE, **given | options)


def played(steps=30, **options):
    """An agent in the middle of things."""
    agent, state = make(**options), 0
    rng = np.random.default_rng(0)
    for _ in range(steps):
        after = int(rng.integers(2))
        agent.observe(state, agent.act(state), float(rng.random()), after)
        state = after
    return agent, state


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"window": 0}, InputError, "window: 0 is not an integer from 1 to 1099511627775. Fix"),
        ({"window": -3}, InputError, "window: -3"),
        ({"window": 20.0}, InputError, r"window: 20\.0 \(float\)"),
        ({"window": True}, InputError, "window: True is a boolean"),
        ({"window": None}, InputError, "window: None"),
        ({"window": "all"}, InputError, "window: 'all'"),
        ({"widening": -0.1}, InputError, r"widening at s=0 \('low'\), a=0: -0\.1 is not allowed"),
        ({"widening": math.nan}, InputError, "widening at .*: nan is not allowed"),
        ({"widening": math.inf}, InputError, "widening at .*: inf is not allowed"),
        ({"widening": [0.1, 0.1, 0.1, -1, 0.1]}, InputError, r"widening at s=1 \('high'\), a=1"),
        ({"widening": [0.1, 0.2]}, InputError, r"widening: has shape \(2,\). Fix: pass 5 numbers"),
        ({"widening": "wide"}, InputError, "widening: .*'wide'"),
        ({"delta": 0}, InputError, r"delta: 0\.0 is not a number in \(0, 1\)"),
        ({"delta": 1}, InputError, r"delta: 1\.0"),
        ({"delta": math.nan}, InputError, "delta: nan"),
        ({"delta": "small"}, InputError, "delta: 'small'"),
        ({"horizon": 0}, InputError, "horizon: 0 is not an integer from 1"),
        ({"horizon": -1}, InputError, "horizon: -1"),
        ({"horizon": 10.0}, InputError, r"horizon: 10\.0"),
        ({"horizon": None}, InputError, "horizon: None"),
        ({"ties": "radnom"}, InputError, "ties: no such choice: 'radnom'.*did you mean 'random'"),
        ({"ties": 1}, InputError, "ties: no such choice: 1. Fix: one of: lowest, random"),
        ({"boundary": "begin"}, InputError, "boundary: no such choice: 'begin'.*start, end"),
        ({"radii": "papr"}, InputError, "radii.kind: no such choice: 'papr'.*'paper'"),
        ({"radii": {"scale": 2}}, InputError, "radii: no kind is named"),
        ({"radii": 3}, InputError, "radii: 3 are no radii"),
        ({"slack": -0.1}, InputError, r"slack: -0\.1"),
        ({"slack": math.nan}, InputError, "slack: nan"),
        ({"warm_start": 1}, InputError, "warm_start: 1 is no yes or no"),
        ({"seed": -1}, InputError, "seed: -1"),
        ({"seed": 1.0}, InputError, r"seed: 1\.0"),
        ({"reward_range": (1, 0)}, InputError, r"reward_range: \(1\.0, 0\.0\) is empty"),
        ({"reward_range": (0, math.inf)}, InputError, r"reward_range\[1\]: inf"),
        ({"window": 2**38, "horizon": 2**39}, ModelError, "window: would need about .* TiB"),
    ],
)
def test_impossible_parameters(options, error, message):
    with pytest.raises(error, match=message) as caught:
        make(**options)
    assert caught.value.fix


@pytest.mark.parametrize("kind", [wd.SWUCRL2CW, wd.agents.SWUCRL2])
def test_impossible_spaces_and_budgets(kind):
    with pytest.raises(WindageError, match="space: .*not StateActions"):
        kind.oblivious(3, horizon=10)
    budgets = {"reward_budget": 1.0, "transition_budget": -1.0}
    with pytest.raises(InputError, match="transition_budget: -1"):
        kind.tuned(SPACE, horizon=100, **budgets)
    with pytest.raises(WindageError, match="horizon"):
        kind.oblivious(SPACE, horizon=0)


def test_words_instead_of_numbers_need_budgets():
    with pytest.raises(InputError, match='window: is "tuned", and there are no budgets'):
        wd.agents.make("swucrl2-cw", SPACE, horizon=10, window="tuned")
    with pytest.raises(InputError, match="widening: no such choice: 'tune'"):
        wd.agents.make("swucrl2-cw", SPACE, horizon=10, widening="tune")
    with pytest.raises(InputError, match="swucrl2-cw.widow: no such parameter"):
        wd.agents.make("swucrl2-cw", SPACE, horizon=10, widow=3)
    with pytest.raises(InputError, match="ucrl2.window: no such parameter"):
        wd.agents.make("ucrl2", SPACE, horizon=10, window=3)
    with pytest.raises(InputError, match="clip: 1 is no yes or no"):
        wd.UCRL2(SPACE, horizon=10, clip=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ((2, 0, 0.5, 0), "state: 2"),
        ((-1, 0, 0.5, 0), "state: -1"),
        ((True, 0, 0.5, 0), "state: True"),
        ((0.0, 0, 0.5, 0), r"state: 0\.0"),
        ((None, 0, 0.5, 0), "state: None"),
        (("s", 2, 0.5, 0), "state: 's'"),
        (("here", "missing", 0.5, 0), r"action: 3"),
        (("here", -1, 0.5, 0), "action: -1"),
        (("here", 1.0, 0.5, 0), r"action: 1\.0"),
        (("here", 0, math.nan, 0), "reward: nan"),
        (("here", 0, math.inf, 0), "reward: inf"),
        (("here", 0, -math.inf, 0), "reward: -inf"),
        (("here", 0, 1e300, 0), r"reward: 1e\+300"),
        (("here", 0, "0.5", 0), "reward: '0.5'"),
        (("here", 0, None, 0), "reward: None"),
        (("here", 0, True, 0), "reward: True"),
        (("here", 0, 0.5, 2), "s_next: 2"),
        (("here", 0, 0.5, 0.0), r"s_next: 0\.0"),
    ],
)
def test_impossible_observations_change_nothing(call, message):
    agent, _ = played()
    state = 1
    agent.act(state)
    before = agent.state()
    s, a, *rest = call
    full = (state if s == "here" else s, 3 if a == "missing" else a, *rest)
    with pytest.raises(InputError, match=message) as caught:
        agent.observe(*full)
    assert agent.state() == before
    assert caught.value.fix
    fresh = make()
    before = fresh.state()
    with pytest.raises(InputError, match=message):
        fresh.preload(*full)
    assert fresh.state() == before
    assert fresh.preloaded == 0


def test_calls_out_of_order_change_nothing():
    agent, state = played()
    before = agent.state()
    with pytest.raises(CallOrderError, match=r"observe at t=31: there is no decision"):
        agent.observe(state, 0, 0.5, 0)
    assert agent.state() == before
    agent.act(state)
    before = agent.state()
    with pytest.raises(CallOrderError, match=r"act at t=31: a decision in .* is waiting"):
        agent.act(1 - state)
    with pytest.raises(CallOrderError, match=r"preload at t=31: the agent has started"):
        agent.preload(0, 0, 0.5, 0)
    for wrong in (2, True, 1.5):
        with pytest.raises(InputError, match="state"):
            agent.act(wrong)
    assert agent.state() == before


def test_preloading_ends_with_the_first_decision_even_a_withdrawn_one():
    agent = make()
    with pytest.raises(InputError, match="seen: 7 does not say which variable"):
        agent.preload(0, 0, 0.5, 1, 7)
    agent.preload(0, 0, 0.5, 1)
    agent.act(0)
    agent.withdraw()
    with pytest.raises(CallOrderError, match="preload before the first call of act"):
        agent.preload(0, 0, 0.5, 1)


def test_after_the_horizon():
    agent, state = played(50)
    before = agent.state()
    with pytest.raises(HorizonReached, match="all 50 steps"):
        agent.act(state)
    assert agent.state() == before
    assert wd.agents.restore(before).state() == before


def test_declared_ranges_step_by_step():
    agent, state = played(reward_range=(0, 1))
    action = agent.act(state)
    before = agent.state()
    for wrong in (-0.001, 1.001):
        with pytest.raises(InputError, match=r"reward: .* is not a number in \[0, 1\]"):
            agent.observe(state, action, wrong, 0)
    assert agent.state() == before
    agent.observe(state, action, 1.0, 0)


@pytest.mark.parametrize("kind", ["swucrl2-cw", "ucrl2"])
def test_declared_ranges_in_compiled_runs(kind):
    """The agent stays where the reward came, as if it had not been asked, and can go on."""
    mdp = wd.MDP(SPACE, [0.5] * 5, [[0.5, 0.5]] * 5)
    loud = wd.DriftingMDP.stationary(mdp, horizon=400, noise=wd.Noise.gaussian(0.2))
    quiet = wd.DriftingMDP.stationary(mdp, horizon=400)
    options = {"reward_range": (0, 1), "seed": 2}
    if kind == "swucrl2-cw":
        options |= {"window": "oblivious", "widening": "oblivious"}
    agent = wd.agents.make(kind, SPACE, horizon=400, **options)
    with pytest.raises(InputError, match=r"reward at t=\d+: .* declared range \[0, 1\]") as caught:
        wd.run(loud, agent, seed=1)
    assert caught.value.where == f"t={agent.t}"
    assert 1 < agent.t < 400
    twin = wd.agents.make(kind, SPACE, horizon=400, **options)
    stop = agent.t - 1
    wd.run(loud, twin, seed=1, steps=stop)
    assert (twin.t, twin.last_state) == (agent.t, agent.last_state)
    a, b = wd.run(quiet, agent, seed=3), wd.run(quiet, twin, seed=3)
    assert a.actions.tolist() == b.actions.tolist()
    assert agent.state() == twin.state()


def test_a_boundary_at_the_offending_step_is_counted_once():
    """The episode began before the reward came; going on does not begin it again."""
    mdp = wd.MDP(SPACE, [0.5] * 5, [[0.5, 0.5]] * 5)
    loud = wd.DriftingMDP.stationary(mdp, horizon=400, noise=wd.Noise.gaussian(0.3))
    quiet = wd.DriftingMDP.stationary(mdp, horizon=400)
    for seed in range(5):
        agent = make(horizon=400, window=1, reward_range=(0, 1))
        with pytest.raises(InputError):
            wd.run(loud, agent, seed=seed)
        wd.run(quiet, agent, seed=seed)
        assert agent.n_episodes == 400


@pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("window", [90, 3], ids=["visits", "boundary"])
def test_the_old_policy_is_not_played_on_when_planning_failed(warm, window, monkeypatch):
    """Two absorbing states with different rewards and radii of 0: no gain is good for both.

    An episode that is due and cannot be planned stays due, also after a restart and in a run.
    """
    monkeypatch.setattr("windage.agents.optimistic.episodic.SWEEPS", 500)
    space = wd.StateActions([1, 1])
    agent = wd.SWUCRL2CW(
        space, horizon=100, window=window, widening=0.0, radii=wd.Radii.paper().scaled(0.0),
        warm_start=warm,
    )  # fmt: skip
    agent.observe(0, agent.act(0), 1.0, 0)
    agent.observe(1, agent.act(1), 0.25, 1)
    for _ in range(4):
        with pytest.raises(NotConverged, match=r"evi: after \d+ sweeps .* is 0\.75, wanted") as err:
            agent.act(1)
        assert "radius or widening" in err.value.fix
        current = agent.episode
        assert (current.reason, current.length) == ("open", 3 - current.start)
        agent = wd.agents.restore(agent.state())
        assert agent.episode == current
    model = wd.DriftingMDP.stationary(wd.MDP(space, [1, 0.25], np.eye(2)), horizon=100)
    for _ in range(2):
        with pytest.raises(NotConverged):
            wd.run(model, agent, seed=0)
        assert (agent.t, agent.last_state) == (3, 1)


@pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")
@pytest.mark.parametrize("warm", [False, True])
def test_no_state_is_played_with_a_plan_that_failed(warm, monkeypatch):
    """Asked in a state whose own count is not used up, the agent fails as well, always alike."""
    monkeypatch.setattr("windage.agents.optimistic.episodic.SWEEPS", 500)
    agent = wd.SWUCRL2CW(
        wd.StateActions([1, 1, 2]), horizon=100, window=90, widening=0.0,
        radii=wd.Radii.paper().scaled(0.0), warm_start=warm,
    )  # fmt: skip
    agent.observe(0, agent.act(0), 1.0, 0)
    agent.observe(1, agent.act(1), 0.25, 1)
    with pytest.raises(NotConverged):
        agent.act(1)
    failed = agent.state()
    for s in (2, 0, 1, 2):
        with pytest.raises(NotConverged):
            agent.act(s)
        assert agent.state() == failed


class TestWarnings:
    @pytest.mark.parametrize(
        ("options", "kind", "message"),
        [
            ({"widening": 2.0}, ParameterWarning, r"a widening of 2 makes every kernel .*\(E7\)"),
            ({"widening": [0, 0, 3.5, 0, 0]}, ParameterWarning, "a widening of 3.5 makes every"),
            ({"window": 51}, ParameterWarning, "a window of 51 samples is longer than the horizon"),
            ({"radii": {"kind": "paper", "scale": 0.5}}, GuaranteeWarning, r"paper x0\.5 radii"),
            ({"radii": "ucrl2"}, GuaranteeWarning, "ucrl2 radii do not cover"),
            ({"widening": 0.0}, GuaranteeWarning, "the theorem needs a positive widening"),
        ],
    )
    def test_given_once_and_not_again(self, options, kind, message):
        with pytest.warns(kind, match=message) as caught:
            agent = make(**options)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            agent.act(0)
            agent.observe(0, 0, 0.5, 1)
            again = wd.agents.restore(agent.state())
        assert again.state() == agent.state()

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"window": 50},
            {"widening": 1.99},
            {"radii": "proof"},
            {"radii": "laplace"},
            {"radii": {"kind": "paper", "scale": 2.0}},
        ],
    )
    def test_not_given_where_the_theorem_speaks(self, options):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(**options)
            wd.agents.SWUCRL2(SPACE, horizon=50, window=20)
            wd.SWUCRL2CW(wd.StateActions([3]), horizon=50, window=20, widening=0.0)

    def test_both_reasons_in_one(self):
        tight = wd.Radii.paper().scaled(0.1)
        with pytest.warns(GuaranteeWarning, match="radii do not cover.*; the theorem needs"):
            make(widening=0.0, radii=tight)


class TestBlobs:
    def test_every_damaged_byte_is_noticed(self):
        agent, _ = played(6, horizon=8, window=4)
        blob = agent.state()
        for place in range(len(blob)):
            damaged = bytearray(blob)
            damaged[place] ^= 1 << (place % 8)
            with pytest.raises(StateError):
                wd.agents.restore(bytes(damaged))
        for wrong in (b"", blob[:-1], blob[1:], blob + b"\0", None, "text"):
            with pytest.raises(StateError):
                wd.agents.restore(wrong)

    def test_other_versions_are_refused(self, monkeypatch):
        agent, _ = played()
        monkeypatch.setattr(blobs, "_FORMAT", blobs._FORMAT + 1)
        newer = agent.state()
        monkeypatch.undo()
        with pytest.raises(StateError, match="this version reads 2. Fix: use the version"):
            wd.agents.restore(newer)
        with pytest.raises(StateError, match="saved 'swucrl2-cw' agent, not 'ucrl2'"):
            wd.UCRL2.from_state(agent.state())

    @pytest.mark.parametrize("ties", ["random", "sampled"])
    def test_impossible_numbers(self, ties):
        """Every number and array of a good blob, replaced by something that cannot be."""
        agent, state = played(ties=ties)
        agent.act(state)
        good = unpack(agent.state())
        assert pack(good) == agent.state()

        def refused(values=None, arrays=None, configuration=None):
            bad = Blob(
                good.agent,
                good.configuration | (configuration or {}),
                good.values | (values or {}),
                good.arrays | (arrays or {}),
            )
            with pytest.raises(StateError, match="state: ") as caught:
                wd.agents.restore(pack(bad))
            assert caught.value.fix

        for name in good.values:
            for wrong in ("x", -1, 10**6, [1], 0.5):
                refused(values={name: wrong})
        for name in ("t", "overridden", "preloaded", "episode"):
            refused(values={name: None})
        refused(values={"t": 29}), refused(values={"preloaded": 1})
        for place, wrong in ((0, 99), (3, -1), (4, 17), (5, None), (6, -2.0), (7, 1.5)):
            row = list(good.values["episode"])
            row[place] = wrong
            refused(values={"episode": row})
        for name, array in good.arrays.items():
            refused(arrays={name: array[:-1] if array.size else np.zeros(3)})
            refused(arrays={name: array.reshape(1, *array.shape)})
            if array.dtype == np.float64 and array.size:
                bad = array.copy()
                bad.flat[0] = math.nan
                refused(arrays={name: bad})
        for name, wrong in (
            ("window.ring_pair", 5), ("window.ring_pair", -1), ("window.ring_after", 2),
            ("window.cell_key", 10), ("window.cell_count", 0), ("window.clock", -1),
            ("policy.pair", 5), ("policy.pair", -1), ("policy.episode", 10**6),
            ("policy.episode", -1), ("sets.visits", -1), ("sets.visits", 10**6),
            ("sets.visits_left", 10**6), ("episode.number", -1), ("episode.number", 10**6),
        ):  # fmt: skip
            bad = good.arrays[name].copy()
            bad[-1] = wrong
            refused(arrays={name: bad})
        counters = [name for name in EPISODE.names if name != "planned"]
        for name in counters:
            refused(arrays={f"episode.{name}": good.arrays[f"episode.{name}"] + 1000})
        refused(arrays={"episode.planned": good.arrays["episode.planned"] + np.int64(1000)})
        for name, wrong in (
            ("window", 0), ("window", "x"), ("widening", -1.0), ("widening", [1.0]),
            ("delta", 2.0), ("ties", "x"), ("radii", "x"), ("boundary", None), ("horizon", 3),
            ("space", 3), ("space", {"actions": []}), ("space", {"actions": [2, 2]}),
            ("reward_range", [3, 1]), ("unheard_of", 1), ("seed", -1),
        ):  # fmt: skip
            refused(configuration={name: wrong})
        for name in good.configuration:
            less = {key: value for key, value in good.configuration.items() if key != name}
            if name in ("space", "horizon", "window", "widening"):
                with pytest.raises(StateError):
                    wd.agents.restore(pack(Blob(good.agent, less, good.values, good.arrays)))
        for name in good.arrays:
            less = {key: value for key, value in good.arrays.items() if key != name}
            with pytest.raises(StateError):
                wd.agents.restore(pack(Blob(good.agent, good.configuration, good.values, less)))
