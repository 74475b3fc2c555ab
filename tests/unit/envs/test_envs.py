from __future__ import annotations

import math
import zlib

import numpy as np
import pytest

import windage as wd
from tests.models import literal_budgets
from windage.envs.registry import REGISTERED
from windage.errors import InputError, ModelError

STRUCTURED = ["bidding", "inventory", "queue", "replacement", "ride"]  # since v1
BASIC = ["two-state-cosine", "peril", "riverswim", "random-drift"]


def test_ids_have_versions():
    assert set(BASIC) <= set(wd.envs.names())
    for name in wd.envs.names():
        newest = 1 if name in STRUCTURED else 0
        model = wd.envs.make(name)
        assert model.name == f"{name}-v{newest}"
        assert wd.envs.make(f"{name}-v0", horizon=50).horizon == 50


DRAWS = {  # never edited, only added to
    "assortment-v0": 2272270986,
    "bandit-v0": 3398088598,
    "bidding-v0": 359078406,
    "bidding-v1": 1074966697,
    "epidemic-v0": 1146659483,
    "inventory-v0": 3485511755,
    "inventory-v1": 4207392827,
    "peril-v0": 3675228676,
    "queue-v0": 1779372297,
    "queue-v1": 581414208,
    "random-drift-v0": 2830242102,
    "replacement-v0": 2990276801,
    "replacement-v1": 766763610,
    "ride-v0": 428273459,
    "ride-v1": 654109465,
    "riverswim-v0": 3486575344,
    "treatment-v0": 1267391099,
    "two-state-cosine-v0": 2418232726,
    "wireless-v0": 1566146577,
}


@pytest.mark.parametrize("name", REGISTERED)
def test_the_numbers_of_an_id_stay(name):
    model = wd.envs.make(name, horizon=400)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=400, seed=1), seed=2)
    numbers = run.states.tobytes() + np.round(1e6 * run.rewards).astype(np.int64).tobytes()
    assert zlib.crc32(numbers) == DRAWS[name]


def test_docstrings_have_their_sections():
    sections = ["States", "Actions", "Drift", "B_r", "B_p", "D", "Why communicating"]
    for name, entry in REGISTERED.items():
        lines = [line.strip() for line in entry.build.__doc__.splitlines()]
        found = [line for line in lines if line in [*sections, "Structure", "Version history"]]
        known = ["Structure"] if entry.build(horizon=200).structure is not None else []
        assert found == [*sections[:2], *known, *sections[2:], "Version history"], name
        assert entry.summary.endswith(".")


@pytest.mark.parametrize("name", wd.envs.names())
@pytest.mark.parametrize("horizon", [None, 1, 2, 3, 97, 1000])
def test_every_environment_keeps_the_promises(name, horizon):
    if (name, horizon) in {("random-drift", n) for n in (1, 2, 3)}:
        with pytest.raises(InputError, match="budget: 1.0 is more than"):
            wd.envs.make(name, horizon=horizon)
        options = {"horizon": horizon, "reward_budget": 0, "transition_budget": 0}
    else:
        options = {} if horizon is None else {"horizon": horizon}
    wd.testing.check_drifting_mdp(wd.envs.make(name, **options), times=20, steps=200)


@pytest.mark.parametrize("name", wd.envs.names())
@pytest.mark.parametrize("horizon", [400, 4000, 401])
def test_closed_forms_equal_what_is_computed(name, horizon):
    model, facts = wd.envs.make(name, horizon=horizon), wd.envs.facts(name, horizon=horizon)
    budgets = model.budgets()
    if facts.reward_budget is not None:
        assert budgets.reward == pytest.approx(facts.reward_budget, rel=1e-12, abs=1e-12)
    if facts.transition_budget is not None:
        assert budgets.transition == pytest.approx(facts.transition_budget, rel=1e-12, abs=1e-12)


def test_two_state_cosine_is_the_printed_model():
    T = 5000
    model = wd.envs.make("two-state-cosine", horizon=T)
    for t in (1, 17, 1250, 2500, 5000):
        c, e = math.cos(4 * math.pi * t / T), 0.5 + 0.4 * math.cos(2 * math.pi * t / T)
        mdp = model.at(t)
        assert mdp.rewards == pytest.approx([0.5 + 0.4 * c, 0.3, 0.5 - 0.4 * c, 0.3], abs=1e-12)
        rows = [[e, 1 - e], [1 - e, e], [1 - e, e], [e, 1 - e]]
        assert mdp.transitions == pytest.approx(np.array(rows), abs=1e-12)
    budgets = model.budgets()
    assert budgets.reward == pytest.approx(3.1999987, abs=5e-8)
    assert budgets.transition == pytest.approx(3.2, abs=1e-5)


def test_riverswim_is_the_printed_model():
    T = 20_000
    model = wd.envs.make("riverswim", horizon=T)
    assert (model.space.n_states, model.space.n_pairs) == (6, 12)
    for t in (1, 4999, 5001, 10_000, 15_001, T):
        k = (1 + math.cos(2 * math.pi * t / T)) / 2
        mdp, space = model.at(t), model.space
        right = mdp.transitions[space.pair(3, 1)]
        assert right[4] == pytest.approx(0.35 + 0.25 * k, abs=1e-12)
        assert right[2] == pytest.approx(0.05, abs=1e-12)
        assert mdp.transitions[space.pair(3, 0), 2] == 1
        assert mdp.transitions[space.pair(0, 0), 0] == 1
        assert mdp.transitions[space.pair(0, 1), :2] == pytest.approx([0.4, 0.6], abs=1e-12)
        assert mdp.transitions[space.pair(5, 1), 4:] == pytest.approx([0.4, 0.6], abs=1e-12)
        swapped = (t - 1) * 4 // T % 2
        assert mdp.rewards[0] == (0.6 if swapped else 0.05)
        assert mdp.rewards[11] == (0.3 if swapped else 1.0)
        assert np.count_nonzero(mdp.rewards) == 2
    assert model.budgets().reward == pytest.approx(2.1, abs=1e-12)
    assert model.budgets().transition == pytest.approx(1.0, abs=1e-7)
    assert wd.envs.facts("riverswim").diameter_bound == pytest.approx(14.72, abs=0.01)


def test_the_still_river():
    mdp = wd.envs.riverswim_mdp(4)
    assert mdp.rewards.tolist() == [0.005, 0, 0, 0, 0, 0, 0, 1.0]
    expected = [
        [1, 0, 0, 0], [0.4, 0.6, 0, 0], [1, 0, 0, 0], [0.05, 0.6, 0.35, 0],
        [0, 1, 0, 0], [0, 0.05, 0.6, 0.35], [0, 0, 1, 0], [0, 0, 0.4, 0.6],
    ]  # fmt: skip
    assert mdp.transitions == pytest.approx(np.array(expected), abs=1e-15)
    large = wd.envs.riverswim_mdp(600)
    assert not isinstance(large.transitions, np.ndarray)
    assert np.array_equal(
        large.transitions.toarray()[2:8, :4], wd.envs.riverswim_mdp(499).transitions[2:8, :4]
    )
    assert wd.envs.riverswim_mdp(2).is_communicating()


@pytest.mark.parametrize("shape", ["cosine", "linear", "jumps", "walk", "burst"])
@pytest.mark.parametrize(("B_r", "B_p"), [(0, 0), (0.3, 0), (0, 2.5), (1, 1), (7.7, 12.3)])
def test_random_drift_hits_the_budgets_exactly(shape, B_r, B_p):
    model = wd.envs.make(
        "random-drift", horizon=500, shape=shape, reward_budget=B_r, transition_budget=B_p
    )
    r, p = literal_budgets(model, 1, 500)
    assert math.fsum(r) == pytest.approx(B_r, rel=1e-10, abs=1e-12)
    assert math.fsum(p) == pytest.approx(B_p, rel=1e-10, abs=1e-12)


def drawn_kernels(seed, states, actions):
    """The two Dirichlet kernels a model is made from, before anything is mixed in."""
    rng = wd.rng.stream(seed, "envs.random_drift")
    return [rng.dirichlet(np.ones(states), size=states * actions) for _ in range(2)]


@pytest.mark.parametrize("kappa", [0.1, 0.4, 1.0])
def test_random_drift_mixes_kappa_parts_of_uniform_into_action_zero(kappa):
    S, A, T = 4, 2, 300
    model = wd.envs.make(
        "random-drift", states=S, actions=A, mixing=kappa, horizon=T, transition_budget=0.7, seed=3
    )
    first, second = drawn_kernels(3, S, A)
    for kernel in (first, second):
        for s in range(S):
            kernel[A * s] = [(1 - kappa) * q + kappa / S for q in kernel[A * s]]
    # The cosine is back at the first model at t = T and half-way between at t = T / 2.
    assert model.at(T).transitions == pytest.approx(first, abs=1e-15)
    change = model.at(T // 2).transitions - first
    apart = np.abs(second - first).sum(axis=1).max()
    pull = np.abs(change).sum(axis=1).max() / apart
    assert 0 < pull <= 1
    assert change == pytest.approx(pull * (second - first), abs=1e-14)
    for t in (1, 77, 150, 299):
        rows = model.at(t).transitions
        assert rows.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
        assert rows.min() >= 0
        assert rows[model.space.action_of == 0].min() >= kappa / S - 1e-15
    bound = wd.envs.facts("random-drift", states=S, mixing=kappa).diameter_bound
    assert bound == pytest.approx(S / kappa)
    assert model.max_diameter().upper <= bound * 1.001


def test_two_state_cosine_takes_two_steps_at_the_most():
    """From one state to the other takes 1 / max(e, 1 - e) with the better of the two actions."""
    T = 40
    model, bound = wd.envs.make("two-state-cosine", horizon=T), wd.envs.facts("two-state-cosine")
    times = np.arange(1, T + 1)
    e = [0.5 + 0.4 * math.cos(2 * math.pi * t / T) for t in times]
    expected = np.array([1 / max(x, 1 - x) for x in e])
    assert model.diameters(times) == pytest.approx(expected, rel=1e-9)
    assert bound.diameter_bound == pytest.approx(expected.max(), rel=1e-12)  # e = 1/2 at t = T / 4
    found = model.max_diameter(tol=1e-6)
    assert found.lower <= bound.diameter_bound * (1 + 1e-9)
    assert found.upper == pytest.approx(bound.diameter_bound, rel=1e-5)
    for cycles in (0, 1, 3, 7):
        other = wd.envs.make("two-state-cosine", horizon=97, transition_cycles=cycles)
        assert max(other.diameters(np.arange(1, 98))) <= bound.diameter_bound


def test_random_drift_is_a_function_of_its_seed():
    a, b, c = (wd.envs.make("random-drift", seed=s).at(7) for s in (1, 1, 2))
    assert a == b
    assert a != c


def test_random_drift_with_one_state_is_a_bandit():
    model = wd.envs.make("random-drift", states=1, actions=4, transition_budget=0)
    assert model.budgets().transition == 0
    assert model.budgets().reward == pytest.approx(1)


@pytest.mark.parametrize(
    ("id", "options", "message"),
    [
        (
            "riverswmi",
            {},
            "environment: no such choice: 'riverswmi'. Fix: did you mean 'riverswim'",
        ),
        (
            "riverswim",
            {"stats": 5},
            r"riverswim.stats: no such parameter; did you mean states\? Fix: one of: ",
        ),
        ("riverswim", {"states": 1}, "states: 1 is not"),
        ("riverswim", {"horizon": 0}, "horizon: 0 is not"),
        ("two-state-cosine", {"reward_cycles": 1.5}, "reward_cycles"),
        ("peril", {"tau": 0}, "tau"),
        ("random-drift", {"transition_budget": -1}, "transition_budget: -1.0 is not"),
        ("random-drift", {"reward_budget": math.nan}, "reward_budget: nan"),
        ("random-drift", {"shape": "square"}, "shape: no such choice"),
        ("random-drift", {"mixing": 0}, "mixing"),
        ("random-drift", {"horizon": 20, "transition_budget": 30}, "30.0 is more than 20 steps"),
    ],
)
def test_impossible_environments(id, options, message):
    with pytest.raises(wd.WindageError, match=message):
        wd.envs.make(id, **options)


def test_environments_too_large_for_the_machine_are_refused_first():
    with pytest.raises(ModelError, match="states: would need about"):
        wd.envs.make("random-drift", states=200_000, actions=10)


@pytest.mark.parametrize("shape", ["walk", "jumps"])
def test_rewards_and_kernels_drift_on_walks_of_their_own(shape):
    budgets = wd.envs.make("random-drift", horizon=500, shape=shape).budgets()
    moves = budgets.reward_steps > 0, budgets.transition_steps > 0
    steps = budgets.reward_steps, budgets.transition_steps
    assert moves[0].tolist() != moves[1].tolist() or abs(np.corrcoef(*steps)[0, 1]) < 0.9
