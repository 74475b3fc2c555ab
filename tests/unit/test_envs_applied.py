"""The applied environments against their definitions, written out outcome by outcome.

Second witnesses: rows and rewards by enumeration of what can happen, budgets by a sum over all t,
gains by policy iteration and by a linear program, diameters by linear programs.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd
from windage.errors import WindageError

ALL = ["inventory", "queue", "bidding", "ride", "epidemic", "replacement", "bandit"]
SEQUENTIAL = ALL[:-1]  # not the bandit: with one state the myopic policy is optimal


def rows_of(model, t, outcomes):
    """Compare the model at t with `outcomes(s, action name)`: a list of (chance, s', reward)."""
    mdp = model.at(t)
    for pair in range(model.space.n_pairs):
        s, a = int(model.space.state_of[pair]), int(model.space.action_of[pair])
        row, reward = defaultdict(float), 0.0
        for chance, then, gained in outcomes(s, model.space.action_name(s, a)):
            row[then] += chance
            reward += chance * gained
        expected = [row[then] for then in range(model.space.n_states)]
        place = f"t={t}, {model.space.describe(pair)}"
        np.testing.assert_allclose(mdp.transitions[pair], expected, atol=1e-12, err_msg=place)
        assert mdp.rewards[pair] == pytest.approx(reward, abs=1e-12), place


# Inventory


def poisson(most, mean):
    weight = [mean**x / math.factorial(x) for x in range(most + 1)]
    return [w / sum(weight) for w in weight]


def demand_laws(most, zeta):
    rare, bulk = poisson(most, 0.02 * most), poisson(most, 0.8 * most)
    lumpy = [0.75 * a + 0.25 * b for a, b in zip(rare, bulk, strict=True)]
    shapes = poisson(most, most / 5), poisson(most, most / 2), lumpy
    return [[zeta + (1 - zeta * (most + 1)) * q for q in shape] for shape in shapes]


def day_cost(s, a, x):
    left, lost = max(s + a - x, 0), max(x - s - a, 0)
    return 4 * (a > 0) + 1 * a + 0.6 * left + 4 * lost


@pytest.mark.parametrize(
    ("t", "mix"),
    [
        (1, (1, 0, 0)),
        (101, (0.6, 0.4, 0)),
        (251, (0, 1, 0)),
        (501, (1, 0, 0)),
        (502, (0, 0, 1)),
        (751, (0, 1, 0)),
        (801, (0, 0.8, 0.2)),
        (1001, (0, 0, 1)),
    ],
)
def test_inventory_rows(t, mix):
    most = 9
    laws = demand_laws(most, 0.02)
    expected_costs = [
        sum(q[x] * day_cost(s, a, x) for x in range(most + 1))
        for q in laws
        for s in range(most + 1)
        for a in range(most + 1 - s)
    ]
    scale = max(expected_costs)
    law = [sum(w * q[x] for w, q in zip(mix, laws, strict=True)) for x in range(most + 1)]

    def outcomes(s, action):
        a = int(action.removeprefix("order "))
        return [(law[x], max(s + a - x, 0), 1 - day_cost(s, a, x) / scale) for x in range(most + 1)]

    model = wd.envs.make("inventory", horizon=1001)
    assert model.space.counts.tolist() == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    rows_of(model, t, outcomes)


# Queue


@pytest.mark.parametrize(("t", "arrivals"), [(100, 0.75), (25, 0.45), (50, 0.15)])
def test_queue_rows(t, arrivals):
    speeds = {"slow": (0.2, 0.0), "medium": (0.5, 0.3), "fast": (0.8, 0.8)}

    def outcomes(s, action):
        speed, _, shut = action.partition(", ")
        rate, cost = speeds[speed]
        for served, comes in itertools.product((0, 1), (0, 1)):
            chance = (rate if served else 1 - rate) * (arrivals if comes else 1 - arrivals)
            left = s - served if s > 0 else 0
            joins = comes and not shut and left < 10
            yield chance, left + joins, (2 + 2 * joins - s / 10 - cost) / 4

    model = wd.envs.make("queue", horizon=100, cycles=1)
    assert model.space.counts.tolist() == [3] + [6] * 10
    rows_of(model, t, outcomes)


def test_queue_by_hand():
    model = wd.envs.make("queue", horizon=100, cycles=1).at(25)  # .45 arrivals a slot
    np.testing.assert_allclose(model.transitions[0, :2], [0.55, 0.45])
    assert model.rewards[0] == pytest.approx(0.725)
    full_fast = model.space.pair(10, 2)  # 2 + 2 * .45 * .8 - 1 - .8, over 4
    assert model.rewards[full_fast] == pytest.approx(0.23)
    assert model.space.action_name(10, 5) == "fast, reject"


# Bidding


@pytest.mark.parametrize(("t", "fierce"), [(200, 0.0), (50, 0.5), (100, 1.0)])
def test_bidding_rows(t, fierce):
    tame = {"cold": (0.6, 0.85, 0.95), "mild": (0.5, 0.8, 0.95), "hot": (0.4, 0.7, 0.9)}
    hard = {"cold": (0.5, 0.8, 0.95), "mild": (0.25, 0.6, 0.85), "hot": (0.05, 0.25, 0.6)}
    worth = {"cold": 0.2, "mild": 0.5, "hot": 1.0}
    moves = {
        "cold": {"cold": 0.8, "mild": 0.2},
        "mild": {"cold": 0.1, "mild": 0.8, "hot": 0.1},
        "hot": {"mild": 0.2, "hot": 0.8},
    }
    names = [f"budget {b}, {market} market" for b in range(5) for market in worth]

    def outcomes(s, action):
        b, market = s // 3, list(worth)[s % 3]
        bid = 0 if action == "pass" else int(action.removeprefix("bid "))
        win = (1 - fierce) * tame[market][bid - 1] + fierce * hard[market][bid - 1] if bid else 0.0
        for won, refilled in itertools.product((True, False), (True, False)):
            chance = (win if won else 1 - win) * (0.3 if refilled else 0.7)
            left = min(b - bid * won + refilled, 4)
            for market_then, likely in moves[market].items():
                then = names.index(f"budget {left}, {market_then} market")
                yield chance * likely, then, worth[market] * won

    model = wd.envs.make("bidding", horizon=200, cycles=1, budget=4, refill=0.3)
    assert list(model.space.state_names) == names
    assert model.space.counts.tolist() == [1] * 3 + [2] * 3 + [3] * 3 + [4] * 6
    rows_of(model, t, outcomes)


# Ride


def riders(day, zone, *, ring=7, event=False):
    if zone == ring:
        return 0.2
    if event and zone == 3:
        return 0.95
    found = 0.03
    for height, centre in ((0.75, day * ring), (0.3, (day + 0.5) * ring)):
        apart = min(abs(zone - centre + ring * turn) for turn in (-2, -1, 0, 1, 2))
        found += height * math.exp(-(apart**2) / (2 * 0.8**2))
    return found


def ride_distance(here, there, ring=7):
    if ring in (here, there):
        other = min(here, there)
        return 1 + min(other, ring - other)
    return min((here - there) % ring, (there - here) % ring)


@pytest.mark.parametrize(
    ("t", "days"),
    [(1, [0.0]), (501, [5 / 12]), (551, [5 / 12, 0.5]), (1001, [10 / 12]), (1201, [1.0])],
)
def test_ride_rows(t, days):
    def outcomes(s, action):
        if action != "wait":
            there = 7 if action == "to airport" else int(action.removeprefix("to zone "))
            assert ride_distance(s, there) == 1
            return [(0.9, there, 0.0), (0.1, s, 0.0)]
        found = []
        for day in days:  # two days: halfway between two knots
            share = 1 / len(days)
            chance = riders(day, s, event=0.75 <= day < 1)
            found.append((share * (1 - chance), s, 0.02 / 1.02))
            later = {z: riders((day + 0.5) % 1, z) for z in range(8) if z != s}
            for there, wanted in later.items():
                fare = 0.2 + 0.8 * ride_distance(s, there) / 4
                likely = chance * wanted / sum(later.values())
                found.append((share * likely, there, (0.02 + fare) / 1.02))
        return found

    model = wd.envs.make("ride", horizon=1201)
    assert model.space.counts.tolist() == [4, 3, 3, 3, 3, 3, 3, 2]
    rows_of(model, t, outcomes)


# Epidemic

SPRING = 0.4 * (1 - 0.5 * math.cos(math.pi / 6))  # beta a month after midsummer


@pytest.mark.parametrize(
    ("t", "betas"),
    [
        (1, [0.6]),
        (601, [0.2]),
        (651, [0.2, SPRING]),  # halfway between two months
        (701, [SPRING]),
        (702, [1.5 * SPRING]),  # the variant is there
        (1201, [0.9]),
    ],
)
def test_epidemic_rows(t, betas):
    people, contacts, costs = 6, {"none": 1, "mild": 0.5, "strict": 0.2}, [0, 0.1, 0.25]

    def outcomes(s, action):
        reward = 1 - 0.7 * s / people - costs[list(contacts).index(action)]
        for beta, recover in itertools.product(betas, range(s + 1)):
            well = math.comb(s, recover) * 0.1**recover * 0.9 ** (s - recover)
            caught = 1 - (1 - beta * contacts[action] / people) ** s + 0.01
            for new in range(people - s + 1):
                ill = math.comb(people - s, new)
                ill *= caught**new * (1 - caught) ** (people - s - new)
                yield well * ill / len(betas), s - recover + new, reward

    model = wd.envs.make("epidemic", horizon=1201, population=people, cycles=1)
    assert model.space.counts.tolist() == [1] + [3] * 6
    rows_of(model, t, outcomes)


# Replacement and bandit


@pytest.mark.parametrize(("t", "theta"), [(1, 0.1), (26, 0.3), (51, 0.5), (76, 0.35), (101, 0.2)])
def test_replacement_rows(t, theta):
    def outcomes(s, action):
        if action == "operate":
            return [(theta, s + 1, 1 - 0.1 * s), (1 - theta, s, 1 - 0.1 * s)]
        if action == "repair":
            return [(0.7, s - 1, 0.4), (0.3, s, 0.4)]
        return [(1.0, 0, 0.0)]

    model = wd.envs.make("replacement", horizon=101)
    assert model.space.action_names[0] == ("operate",)
    assert model.space.action_names[6] == ("repair", "replace")
    assert model.space.counts.tolist() == [1, 3, 3, 3, 3, 3, 2]
    rows_of(model, t, outcomes)


def test_bandit_means():
    waves = wd.envs.make("bandit", horizon=500)
    for t in (1, 50, 100, 333, 500):
        swing = 0.3 * math.cos(5 * math.pi * t / 500)
        np.testing.assert_allclose(waves.at(t).rewards, [0.5 + swing, 0.5 - swing], atol=1e-15)
    breaks = wd.envs.make("bandit", horizon=1000, shape="breaks")
    third = [breaks.at(t).rewards[2] for t in (1, 300, 301, 500, 501, 1000)]
    assert third == [0.4, 0.4, 0.9, 0.9, 0.4, 0.4]
    assert breaks.at(400).rewards[:2].tolist() == [0.5, 0.3]
    for horizon in range(1, 25):  # the great moment is (.3 T, .5 T], however short
        short = wd.envs.make("bandit", horizon=horizon, shape="breaks")
        for t in range(1, horizon + 1):
            moment = 3 * horizon < 10 * t <= 5 * horizon
            assert short.at(t).rewards[2] == (0.9 if moment else 0.4)


# What they are for: the optimal policy changes, and looking one step ahead is not enough


def evaluate(rewards, kernel):
    """Gain and bias of a chain, whatever its classes: g = P g and g + h = r + P h."""
    n = len(rewards)
    move = np.eye(n) - kernel
    equations = np.block([[move, np.zeros((n, n))], [np.eye(n), move]])
    answer = np.linalg.lstsq(equations, np.concatenate([np.zeros(n), rewards]))[0]
    return answer[:n], answer[n:]


def improve(mdp, policy):
    """Policy iteration from `policy`; returns the gain and the optimal pairs."""
    actions = [np.arange(*ends) for ends in itertools.pairwise(mdp.space.offsets)]
    while True:
        gain, bias = evaluate(mdp.rewards[policy], mdp.transitions[policy])
        leads, value = mdp.transitions @ gain, mdp.rewards + mdp.transitions @ bias
        better = policy.copy()
        for s, pairs in enumerate(actions):
            best = pairs[leads[pairs] >= leads[pairs].max() - 1e-9]
            if leads[best[0]] > gain[s] + 1e-9 or value[best].max() > value[policy[s]] + 1e-9:
                better[s] = best[np.argmax(value[best])]
        if np.array_equal(better, policy):
            return gain.max(), policy
        policy = better


def myopic(mdp):
    ends = itertools.pairwise(mdp.space.offsets)
    return np.array([first + np.argmax(mdp.rewards[first:last]) for first, last in ends])


def visited(kernel):
    """The recurrent states of a chain."""
    reach = np.linalg.matrix_power((kernel > 0) + np.eye(len(kernel)), len(kernel)) > 0
    return [s for s in range(len(kernel)) if reach[reach[s], s].all()]


def lp_gain(mdp):
    flow = np.eye(mdp.space.n_states)[mdp.space.state_of] - mdp.transitions
    return -linprog(
        -mdp.rewards,
        A_eq=np.vstack([flow.T, np.ones(mdp.space.n_pairs)]),
        b_eq=np.append(np.zeros(mdp.space.n_states), 1.0),
    ).fun


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_the_optimal_policy_changes_and_the_myopic_one_loses_a_tenth(name):
    model = wd.envs.make(name, horizon=240)
    optimal, oracle, greedy, changes = None, 0.0, 0.0, []
    held = None
    for t in range(1, 241):
        mdp = model.at(t)
        gain, optimal = improve(mdp, mdp.space.offsets[:-1] if optimal is None else optimal)
        if t % 60 == 1:
            assert gain == pytest.approx(lp_gain(mdp), abs=1e-8)
        oracle += gain
        choice = myopic(mdp)
        greedy += evaluate(mdp.rewards[choice], mdp.transitions[choice])[0].max()
        if held is None:
            held = optimal
        if evaluate(mdp.rewards[held], mdp.transitions[held])[0].max() < gain - 1e-3:
            there = visited(mdp.transitions[optimal])
            assert (held[there] != optimal[there]).any()
            changes.append(t)
            held = optimal
    print(
        f"{name}: {len(changes)} changes at {changes}, myopic {greedy / oracle:.3f} of the oracle"
    )
    assert len(changes) >= 2
    assert greedy <= 0.9 * oracle


class Table:
    """Plays `policy(t)`, a pair for each state."""

    def __init__(self, space, policy):
        self.space, self.policy, self.t = space, policy, 1

    def act(self, s):
        return int(self.space.action_of[self.policy(self.t)[s]])

    def observe(self, s, a, reward, s_next):
        self.t += 1


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_the_myopic_policy_loses_when_played(name):
    model = wd.envs.make(name, horizon=4000, noise="none")
    plans, gains = [], []
    for t in range(20, 4001, 40):
        mdp = model.at(t)
        gain, plan = improve(mdp, plans[-1] if plans else mdp.space.offsets[:-1])
        plans.append(plan)
        gains.append(gain)
    agents = {
        "oracle": Table(model.space, lambda t: plans[(t - 1) // 40]),
        "myopic": Table(model.space, lambda t: myopic(model.at(t))),
    }
    earned = {name: wd.run(model, agent, seed=3).rewards.sum() for name, agent in agents.items()}
    print(name, earned, 40 * sum(gains))
    assert earned["myopic"] <= 0.9 * earned["oracle"]
    assert earned["oracle"] == pytest.approx(40 * sum(gains), rel=0.05)


def test_the_best_arm_changes():
    model = wd.envs.make("bandit", horizon=240)
    best = np.array([np.argmax(model.at(t).rewards) for t in range(1, 241)])
    assert np.count_nonzero(np.diff(best)) == 5
    breaks = wd.envs.make("bandit", horizon=240, shape="breaks")
    best = np.array([np.argmax(breaks.at(t).rewards) for t in range(1, 241)])
    assert (np.flatnonzero(np.diff(best)) + 2).tolist() == [73, 121]


# Facts

VARIANTS = [(name, {}) for name in ALL] + [
    ("inventory", {"seasons": 1, "capacity": 1}),
    ("inventory", {"seasons": 3, "capacity": 4, "zeta": 0.1, "holding_cost": 0.1}),
    ("queue", {"capacity": 1, "cycles": 1.5}),
    ("queue", {"capacity": 3, "cycles": 0}),
    ("bidding", {"budget": 1, "refill": 0.9, "cycles": 1}),
    ("bidding", {"budget": 2, "refill": 0.1, "cycles": 3}),
    ("ride", {"zones": 5, "days": 2}),
    ("ride", {"zones": 12}),
    ("epidemic", {"population": 2, "cycles": 1, "variant": 2.5, "importation": 0.1}),
    ("replacement", {"wear": 1}),
    ("replacement", {"wear": 3}),
    ("bandit", {"shape": "breaks"}),
    ("bandit", {"cycles": 0.7}),
]


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
@pytest.mark.parametrize("horizon", [200, 97])
def test_budgets_are_the_sums_over_all_steps(name, parameters, horizon):
    model = wd.envs.make(name, horizon=horizon, **parameters)
    r, p = 0.0, 0.0
    for t in range(1, horizon):
        now, after = model.at(t), model.at(t + 1)
        r += np.abs(after.rewards - now.rewards).max()
        p += np.abs(after.transitions - now.transitions).sum(axis=1).max()
    facts, budgets = wd.envs.facts(name, horizon=horizon, **parameters), model.budgets()
    assert budgets.reward == pytest.approx(r, abs=1e-9)
    assert budgets.transition == pytest.approx(p, abs=1e-9)
    if facts.reward_budget is not None:
        assert facts.reward_budget == pytest.approx(r, abs=1e-9)
    if facts.transition_budget is not None:
        assert facts.transition_budget == pytest.approx(p, abs=1e-9)


def test_which_budgets_are_known():
    known = {name: wd.envs.facts(name, horizon=1000) for name in ALL}
    assert [name for name in ALL if known[name].reward_budget is None] == ["ride"]
    assert [name for name in ALL if known[name].transition_budget is None] == ["ride", "epidemic"]
    assert [name for name in ALL if known[name].diameter_bound is None] == ["bidding", "epidemic"]
    assert wd.envs.facts("queue", horizon=20_000).transition_budget == pytest.approx(4.8, abs=1e-6)
    assert wd.envs.facts("replacement").transition_budget == pytest.approx(1.4)
    assert wd.envs.facts("inventory", horizon=3).reward_budget is None
    assert wd.envs.facts("replacement", horizon=2).transition_budget is None


def diameter(mdp):
    """The largest least expected hitting time, by one linear program a target."""
    n, worst = mdp.space.n_states, 0.0
    walk = np.eye(n)[mdp.space.state_of] - mdp.transitions
    for target in range(n):
        others, leaving = np.arange(n) != target, mdp.space.state_of != target
        if others.any():
            hit = linprog(
                -np.ones(n - 1),
                A_ub=walk[np.ix_(leaving, others)],
                b_ub=np.ones(leaving.sum()),
                bounds=(0, None),
            )
            worst = max(worst, hit.x.max())
    return worst


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_diameters_stay_below_their_bound(name, parameters):
    bound = wd.envs.facts(name, horizon=200, **parameters).diameter_bound
    bound = 1e6 if bound is None else bound
    model = wd.envs.make(name, horizon=200, **parameters)
    found = [diameter(model.at(t)) for t in (1, 50, 100, 150, 200)]
    assert max(found) <= bound * (1 + 1e-9)
    if name == "replacement" or (name == "queue" and not parameters):
        assert max(found) == pytest.approx(bound, rel=1e-8)


# Conformance


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_they_keep_the_promises_of_a_drifting_model(name, parameters):
    wd.testing.check_drifting_mdp(
        wd.envs.make(name, horizon=800, **parameters), times=20, steps=200
    )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 13, 26])
def test_short_horizons(name, horizon):
    wd.testing.check_drifting_mdp(wd.envs.make(name, horizon=horizon), times=5)
    wd.envs.facts(name, horizon=horizon)


@pytest.mark.parametrize("name", ALL)
def test_long_horizons_cost_nothing(name):
    model = wd.envs.make(name, horizon=10**9)
    assert model.at(10**9).is_communicating()
    assert model.budgets().reward <= 10


@pytest.mark.parametrize("name", ALL)
def test_saved_and_loaded(name, tmp_path):
    model = wd.envs.make(name, horizon=300, noise="beta")
    model.save(tmp_path / "model.npz")
    again = wd.load(tmp_path / "model.npz")
    assert again.name == f"{name}-v0"
    assert again.space == model.space
    assert again.space.action_names is not None
    assert all(again.at(t) == model.at(t) for t in (1, 77, 150, 151, 300))


@pytest.mark.parametrize("name", ALL)
def test_registered(name):
    entry = wd.envs.get(name)
    assert name in wd.envs.names()
    assert inspect.signature(entry.facts).parameters == inspect.signature(entry.build).parameters
    sections = ("States", "Actions", "Drift", "B_r", "B_p", "D", "Why communicating")
    headings = [line.strip() for line in entry.build.__doc__.splitlines() if line[:8].strip()]
    assert headings[1:] == [*sections, "Version history"]


@pytest.mark.parametrize(
    ("name", "parameters", "field"),
    [
        *[(each, {"horizon": 0}, "horizon") for each in ALL],
        *[(each, {"noise": "loud"}, "noise") for each in ALL],
        ("inventory", {"capacity": 0}, "capacity"),
        ("inventory", {"capacity": 9.0}, "capacity"),
        ("inventory", {"capacity": 50_000}, "capacity"),
        ("inventory", {"seasons": 0}, "seasons"),
        ("inventory", {"order_cost": -1}, "order_cost"),
        ("inventory", {"unit_cost": math.nan}, "unit_cost"),
        ("inventory", {"holding_cost": -0.1}, "holding_cost"),
        ("inventory", {"shortage_cost": 0}, "shortage_cost"),
        ("inventory", {"zeta": 0}, "zeta"),
        ("inventory", {"zeta": 0.11}, "zeta"),
        ("queue", {"capacity": 0}, "capacity"),
        ("queue", {"capacity": 10**7}, "capacity"),
        ("queue", {"cycles": -1}, "cycles"),
        ("bidding", {"budget": 0}, "budget"),
        ("bidding", {"budget": 10**7}, "budget"),
        ("bidding", {"refill": 0}, "refill"),
        ("bidding", {"refill": 1}, "refill"),
        ("bidding", {"cycles": math.inf}, "cycles"),
        ("ride", {"zones": 3}, "zones"),
        ("ride", {"zones": 10**7}, "zones"),
        ("ride", {"days": 0}, "days"),
        ("epidemic", {"population": 1}, "population"),
        ("epidemic", {"population": 10**7}, "population"),
        ("epidemic", {"cycles": 1.5}, "cycles"),
        ("epidemic", {"variant": 0.9}, "variant"),
        ("epidemic", {"variant": 2.6}, "variant"),
        ("epidemic", {"importation": 0}, "importation"),
        ("replacement", {"wear": 0}, "wear"),
        ("replacement", {"wear": 10**7}, "wear"),
        ("bandit", {"shape": "wave"}, "shape"),
        ("bandit", {"cycles": -1}, "cycles"),
    ],
)
def test_bad_parameters(name, parameters, field):
    with pytest.raises(WindageError) as caught:
        wd.envs.make(name, **parameters)
    assert caught.value.field == field
    assert caught.value.fix
