"""The applied environments against their definitions, written out outcome by outcome."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

import windage as wd


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


def day_cost(s, a, x, fixed):
    left, lost = max(s + a - x, 0), max(x - s - a, 0)
    return fixed * (a > 0) + 1 * a + 0.6 * left + 4 * lost


@pytest.mark.parametrize("version", [0, 1])
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
def test_inventory_rows(t, mix, version):
    most, fixed = 9, (4, 6)[version]
    laws = demand_laws(most, 0.02)
    expected_costs = [
        sum(q[x] * day_cost(s, a, x, fixed) for x in range(most + 1))
        for q in laws
        for s in range(most + 1)
        for a in range(most + 1 - s)
    ]
    days = [
        4 * x - day_cost(s, a, x, fixed)  # of a day: every piece wanted is worth 4, if it is sold
        for s in range(most + 1)
        for a in range(most + 1 - s)
        for x in range(most + 1)
    ]
    paid = {
        0: lambda cost, _: 1 - cost / max(expected_costs),
        1: lambda cost, x: (4 * x - cost - min(days)) / (max(days) - min(days)),
    }[version]
    law = [sum(w * q[x] for w, q in zip(mix, laws, strict=True)) for x in range(most + 1)]

    def outcomes(s, action):
        a = int(action.removeprefix("order "))
        return [
            (law[x], max(s + a - x, 0), paid(day_cost(s, a, x, fixed), x)) for x in range(most + 1)
        ]

    model = wd.envs.make(f"inventory-v{version}", horizon=1001)
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
            earned = 1 - 0.6 * (s / 6) ** 2
            return [(theta, s + 1, earned), (1 - theta, s, earned)]
        if action == "repair":
            return [(0.7, s - 1, 0.2), (0.3, s, 0.2)]
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


# Wireless


@pytest.mark.parametrize(
    ("t", "near"), [(200, 1.0), (100, 0.0), (50, 0.5), (125, 0.5 - 0.125**0.5)]
)
def test_wireless_rows(t, near):
    """`near` is (1 + cos(2 pi 1 t / 200)) / 2 with one cycle."""
    model, most = wd.envs.make("wireless", horizon=200, capacity=4, cycles=1), 4
    names = ["poor", "fair", "good"]
    chain = {
        "poor": [(0.3, 0.9), (0.5, 0.08), (0.2, 0.02)],
        "fair": [(0.1, 0.6), (0.4, 0.3), (0.5, 0.1)],
        "good": [(0.05, 0.3), (0.15, 0.5), (0.8, 0.2)],
    }
    energy = {"poor": 0.9, "fair": 0.4, "good": 0.1}

    def slot(s, action):
        waiting, channel = int(model.space.state_name(s)[0]), model.space.state_name(s).split()[2]
        sent = int(action.removeprefix("send "))
        assert sent <= min(waiting, 1 + names.index(channel))
        for (comes, p), (c, (here, far)) in itertools.product(
            enumerate([0.4, 0.35, 0.25]), enumerate(chain[channel])
        ):
            kept = min(waiting - sent + comes, most)
            lost = waiting - sent + comes - kept
            cost = energy[channel] * sent + 0.3 * waiting / most + 0.5 * lost
            yield p * (near * here + (1 - near) * far), kept * 3 + c, 1 - cost / 1.7

    rows_of(model, t, slot)
    assert model.space.n_pairs == sum(
        min(waiting, c) + 1 for waiting in range(5) for c in (1, 2, 3)
    )


# Assortment


@pytest.mark.parametrize(("t", "winter"), [(200, 1.0), (100, 0.0), (50, 0.5)])
def test_assortment_rows(t, winter):
    model = wd.envs.make("assortment", horizon=200, case_cost=0.5, last=0.2, cycles=1)
    weights = {"A": (1.2, 0.1), "B": (0.1, 1.2), "C": (1.0, 0.1), "D": (0.1, 1.0), "E": (0.4, 0.4)}
    prices = {"A": 1.0, "B": 0.9, "C": 0.8, "D": 0.7, "E": 0.5}
    names = list(model.space.state_names)

    def on_the_shelf(s):
        return set(names[s].split(" and ")) - {"nothing"}

    def slot(s, action):
        shelf = on_the_shelf(s)
        if action != "keep":
            new, _, old = action.partition(" for ")
            assert new not in shelf
            assert (old in shelf) == (len(shelf) == 2)
            shelf = shelf - {old} | {new}
        place = {frozenset(on_the_shelf(s)): s for s in range(len(names))}
        cost = 0.5 * (action != "keep")
        chances = [[(1 if p is None else weights[p][k]) for p in (None, *shelf)] for k in range(2)]
        for i, product in enumerate((None, *shelf)):
            bought = sum(
                share * chances[k][i] / sum(chances[k])
                for k, share in enumerate((winter, 1 - winter))
            )
            price = prices.get(product, 0.0)
            yield bought * 0.8, place[frozenset(shelf)], (price - cost + 0.5) / 1.5
            yield bought * 0.2, place[frozenset(shelf - {product})], (price - cost + 0.5) / 1.5

    rows_of(model, t, slot)
    assert model.space.counts.tolist() == [6] + [5] * 5 + [7] * 10


# Treatment


@pytest.mark.parametrize(("t", "resists"), [(200, 0.0), (100, 1.0), (50, 0.5)])
@pytest.mark.parametrize("levels", [1, 5])
def test_treatment_rows(t, resists, levels):
    model = wd.envs.make("treatment", horizon=200, levels=levels, cycles=1)

    def slot(s, action):
        if action == "wait":
            yield 0.3, 0, 1
            for severity in range(1, levels + 1):
                yield 0.7 / levels, severity, 1
            return
        better, worse, harm = {
            "observe": (0.15, 0.35, 0.0),
            "first drug": (0.6 - 0.45 * resists, 0.1 + 0.25 * resists, 0.1),
            "second drug": (0.5, 0.1, 0.15),
        }[action]
        for chance, move in ((better, -1), (1 - better - worse, 0), (worse, 1)):
            then = min(s + move, levels)
            yield chance, then, 1 - 0.8 * then / levels - harm

    rows_of(model, t, slot)
