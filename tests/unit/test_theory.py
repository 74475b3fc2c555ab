"""The plan's numbers: found by search here, by formulas written from the definitions there."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import windage as wd
from windage.confidence.radii import Radii
from windage.confidence.tuning import exploration, first_integer, horizons_to_adapt
from windage.theory import FORMULAS, agent_memory, plan, visits_needed

SCENE = wd.StateActions.uniform(states=10, actions=4)
RAGGED = wd.StateActions([1, 2, 3, 4, 1, 1, 1])
TABLE = [  # spec 5.1, delta = 0.05, B_r = B_p = 1
    (2, 2, 5_000, (52, 24, 9), 104, 275, 69, 1.73),
    (6, 2, 100_000, (204, 34, 13), 136, 2558, 213, 1.96),
    (20, 4, 100_000, (756, 45, 19), 152, 8071, 101, 5.47),
    (20, 4, 1_000_000, (848, 50, 20), 170, 25524, 319, 3.26),
    (50, 5, 1_000_000, (2234, 72, 31), 179, 52564, 210, 6.52),
]


def scene(**changes):
    given = {"horizon": 100_000, "reward_budget": 1, "transition_budget": 1} | changes
    return plan(given.pop("space", SCENE), **given)


def test_scene_2():
    """The figures that quality.md asks for."""
    found = scene()
    assert found.window == 5085
    assert found.widening == found.widening_real == pytest.approx(0.319, abs=5e-4)
    needed = found.visits_needed["paper"]
    assert (needed.transitions, needed.widened) == (364, 516)
    assert round(found.visits_expected) == 127
    assert found.vacuous
    assert (found.borl.blocks, found.borl.arms) == (12, 70)
    assert found.borl.gamma == pytest.approx(5.23, abs=5e-3)


@pytest.mark.parametrize(("S", "A", "T", "visits", "rewards", "W", "mean", "radius"), TABLE)
def test_the_table_of_vacuous_radii(S, A, T, visits, rewards, W, mean, radius):
    found = scene(space=wd.StateActions.uniform(S, A), horizon=T)
    kinds = ("paper", "proof", "laplace")
    assert tuple(found.visits_needed[kind].transitions for kind in kinds) == visits
    assert found.visits_needed["paper"].rewards == rewards
    assert found.window == W
    assert round(found.visits_expected) == mean
    at_mean = Radii.paper().transition(
        found.visits_expected, space=found.space, horizon=T, delta=0.05
    )
    assert at_mean == pytest.approx(radius, abs=0.01)


@pytest.mark.parametrize(("S", "A", "T", "visits"), [(2, 2, 5_000, 91), (6, 2, 10**5, 334)])
def test_the_visits_that_ucrl2_needs(S, A, T, visits):
    assert visits_needed(wd.StateActions.uniform(S, A), T, 0.05, 0.0)["ucrl2"].transitions == visits


@pytest.mark.parametrize("space", [SCENE, RAGGED, wd.StateActions([3])], ids=repr)
@pytest.mark.parametrize("eta", [0.0, 0.7, 1.9])
def test_visits_by_counting_up(space, eta):
    """Every n from 1 on is tried, with the formulas written out."""
    T, delta, S, SA = 3_000, 0.1, space.n_states, space.n_pairs
    A, L = SA / S, math.log(SA * T / delta)
    M, ln = math.log(2 * SA * T * T / delta), math.log
    n = np.arange(1, 400_000)
    mixed = L + np.log(n + 1) / 2 + ln(2)
    radii = {  # transitions, rewards, rewards in [0, 1]
        "paper": (2 * np.sqrt(2 * S * L / n), 2 * np.sqrt(2 * L / n), 2 * np.sqrt(2 * L / n)),
        "proof": (2 * np.sqrt((S * ln(2) + M) / n), 2 * np.sqrt(M / n), np.sqrt(M / n)),
        "laplace": (
            np.sqrt(2 * (1 + 1 / n) * (mixed + (S - 1) * ln(2)) / n),
            np.sqrt(2 * (1 + 1 / n) * mixed / n),
            np.sqrt((1 + 1 / n) * mixed / (2 * n)),
        ),
        "ucrl2": (np.sqrt(14 * S * ln(2 * A * T / delta) / n),)
        + (np.sqrt(3.5 * ln(2 * SA * T / delta) / n),) * 2,
    }
    found = visits_needed(space, T, delta, eta)
    assert list(found) == list(radii)
    for kind, (p, r, r_bounded) in radii.items():
        marks = ((p, 2), (p, 2 - eta), (r, 1), (r_bounded, 1))
        assert found[kind] == tuple(n[np.argmax(radius < mark)] for radius, mark in marks)
        assert p[-1] < 2 - eta


def test_no_visits_help_where_eta_is_2():
    found = scene(space=wd.StateActions.uniform(20, 4), horizon=5_000, reward_budget=0,
                  transition_budget=200)  # fmt: skip
    assert found.widening_real == pytest.approx(2.98, abs=5e-3)
    assert found.widening == 2.0
    assert {needed.widened for needed in found.visits_needed.values()} == {None}
    assert found.vacuous
    assert any("capped at 2" in text for text in found.advice)


# --- BORL ----------------------------------------------------------------------------------------


def gamma_of(S, A, T):
    """Spec 1.10 for an array of horizons."""
    H = 3 * S ** (2 / 3) * np.sqrt(A * T)
    arms = (np.floor(np.log(H)).clip(1) + 1) * (np.floor(np.log(2 * np.sqrt(T))).clip(1) + 1)
    blocks = np.ceil(T / np.minimum(T, np.ceil(H)))
    return 1.05 * np.sqrt(arms * np.log(arms) / blocks)


def scanned(S, A, gamma, last):
    first, miss = 0, 0
    for start in range(1, last, 1_000_000):
        T = np.arange(start, min(last, start + 1_000_000))
        good = gamma_of(S, A, T) <= gamma
        first = first or (int(T[good.argmax()]) if good.any() else 0)
        miss = miss if good.all() else int(T[~good][-1])
    return first, miss + 1


@pytest.mark.parametrize(
    ("S", "A", "gamma", "last"),
    [
        (1, 1, 1.0, 8_000_000),
        (1, 2, 1.0, 8_000_000),
        (2, 2, 1.0, 16_000_000),
        (2, 1.5, 0.9, 25_000_000),
    ],
)
def test_when_borl_adapts_by_scanning_every_horizon(S, A, gamma, last):
    found = horizons_to_adapt(S, A, gamma)
    assert found == scanned(S, A, gamma, last)


@pytest.mark.parametrize(
    ("S", "A", "gamma"), [(6, 2, 1.0), (20, 4, 1.0), (2, 2, 0.5), (10, 4, 1.0), (300, 7.5, 1.0)]
)
def test_when_borl_adapts_at_its_edges(S, A, gamma):
    """Exact at the two edges; between and beyond at many horizons."""
    first, always = horizons_to_adapt(S, A, gamma)
    edges = np.array([first, always - 1, always])
    assert (gamma_of(S, A, edges) <= gamma).tolist() == [True, False, True]
    before = np.unique(np.linspace(1, first - 1, 200_001).astype(np.int64))
    near = np.arange(first - 200_000, first)
    after = np.unique(np.geomspace(always, 1e4 * always, 200_001).astype(np.int64))
    close = np.arange(always, always + 200_000)
    assert (gamma_of(S, A, np.concatenate([before, near])) > gamma).all()
    assert (gamma_of(S, A, np.concatenate([close, after])) <= gamma).all()


def test_the_share_of_uniform_choices():
    assert exploration(70, 12) == pytest.approx(1.05 * math.sqrt(70 * math.log(70) / 12))
    assert scene().borl.adapts_from == horizons_to_adapt(10, 4.0)[1]


# --- the bound -----------------------------------------------------------------------------------


def theorem_1(S, A, T, Br, Bp, D, W, eta):
    first = Bp * W / eta + Br * W + math.sqrt(S * A) * T / math.sqrt(W)
    second = Bp * W + S * math.sqrt(A) * T / math.sqrt(W) + T * eta + S * A * T / W + math.sqrt(T)
    return first + D * second


def tuned(S, A, T, Br, Bp, D):
    W = 3 * S ** (2 / 3) * math.sqrt(A) * math.sqrt(T) / math.sqrt(Br + Bp + 1)
    return theorem_1(S, A, T, Br, Bp, D, W, math.sqrt((Bp + 1) * W / T))


@pytest.mark.parametrize("D", [1.0, 14.7])
@pytest.mark.parametrize(("Br", "Bp"), [(0.0, 0.0), (2.1, 1.0), (0.0, 30.0)])
def test_theorem_1(Br, Bp, D):
    T, S, A = 20_000, 7, 13 / 7
    found = plan(RAGGED, horizon=T, reward_budget=Br, transition_budget=Bp, diameter=D)
    whole = theorem_1(S, A, T, Br, Bp, D, found.window, found.widening)
    assert found.bound.total == pytest.approx(whole, rel=1e-12)
    assert math.fsum(found.bound.terms.values()) == found.bound.total
    assert found.bound.terms.keys() == FORMULAS.keys()
    edge = found.bound.below_from
    assert tuned(S, A, edge, Br, Bp, D) < edge
    assert tuned(S, A, edge - 1, Br, Bp, D) >= edge - 1
    for T in np.geomspace(1, edge - 1, 200):
        assert tuned(S, A, T, Br, Bp, D) > T * (1 - 1e-12)
    for T in np.geomspace(edge, 1e9 * edge, 200):
        assert tuned(S, A, T, Br, Bp, D) < T


def test_each_term_is_its_formula():
    """The text of the formula is evaluated, so that the table cannot mislead."""
    T, Br, Bp, D = 20_000, 2.1, 1.0, 14.7
    found = plan(RAGGED, horizon=T, reward_budget=Br, transition_budget=Bp, diameter=D)
    names = {"B_p": Bp, "B_r": Br, "W": found.window, "eta": found.widening, "D": D, "T": T}
    names |= {"S": 7, "A": 13 / 7, "SA": 13}
    for name, formula in FORMULAS.items():
        code = formula.replace("^", "**").replace(" ", "*").replace("*/*", "/")
        assert found.bound.terms[name] == pytest.approx(eval(code, dict(names)), rel=1e-12)


@pytest.mark.parametrize(("S", "D", "Br", "Bp"), [(2, 1.6, 3.2, 0.0), (6, 14.7, 2.1, 1.0)])
def test_the_noise_of_transitions_with_its_constants(S, D, Br, Bp):
    """Spec 5.1: from T about 7e10 (S = 2, D = 1.6; B_r + B_p = 3.2) and 2e16 (RiverSwim)."""
    found = plan(wd.StateActions.uniform(S, 2), horizon=20_000, reward_budget=Br,
                 transition_budget=Bp, diameter=D)  # fmt: skip

    def lost(T):
        W = 3 * S ** (2 / 3) * math.sqrt(2 * T / (Br + Bp + 1))
        roots = (math.sqrt(2) + 2) * math.sqrt(S * 2 * W) * (T / W + 1)  # C10, block by block
        return 4 * D * 2 * math.sqrt(2 * S * math.log(S * 2 * T / 0.05)) * roots  # C9, 4 D rad_p

    edge = found.bound.noise_from
    above, below = edge * (1 + 1e-9), edge * (1 - 1e-9)
    assert lost(above) < above
    assert lost(below) > below
    assert edge == pytest.approx({2: 7e10, 6: 2e16}[S], rel=0.1)


def test_one_state_is_a_bandit():
    space = wd.StateActions([4])
    found = plan(space, horizon=100_000, reward_budget=2.0, transition_budget=0)
    W = 4 ** (1 / 3) * 100_000 ** (2 / 3) * 2 ** (-2 / 3)
    assert found.window_real == pytest.approx(W, rel=1e-12)
    assert found.window == round(W)
    assert (found.widening, found.bound.diameter, found.vacuous) == (0.0, 0.0, False)
    terms = {name: value for name, value in found.bound.terms.items() if value}
    assert terms.keys() == {"reward_drift", "reward_noise"}
    assert terms["reward_drift"] == 2 * round(W)
    assert terms["reward_noise"] == pytest.approx(2 * 100_000 / round(W) ** 0.5, rel=1e-12)
    assert found.bound.below_from == pytest.approx(8 * 2 * 4, abs=1)  # 2 (B A)^(1/3) T^(2/3) < T
    assert found.bound.noise_from is None
    assert any("One state" in text for text in found.advice)
    still = plan(space, horizon=1_000, reward_budget=0, transition_budget=0)
    assert still.window == 1_000


# --- words and data ------------------------------------------------------------------------------


def test_the_advice_follows_from_the_numbers():
    words = " ".join(scene().advice)
    for figure in ("364", "516", "127", "Vacuous", "70 arms", "12 blocks", "5.23", "5.67e+08"):
        assert figure in words
    assert "Radii.proof() needs 53, Radii.laplace() needs 20" in words
    assert "No radii with a guarantee" not in words


def test_where_only_scaled_radii_would_do():
    found = scene(space=wd.StateActions.uniform(200, 10), horizon=10_000)
    words = " ".join(found.advice)
    assert "No radii with a guarantee are tight enough" in words
    c = float(words.split("with c below ")[1].split(",")[0])
    assert "and no eta" in words
    radius = Radii.laplace().transition(
        found.visits_expected, space=found.space, horizon=10_000, delta=0.05
    )
    assert found.widening > 0.2  # else it would not matter that eta is left out
    assert c * radius == pytest.approx(2.0, rel=0.05)


def test_where_sets_do_say_something():
    found = scene(space=wd.StateActions.uniform(2, 2), horizon=10**9)
    assert not found.vacuous
    assert "BORL can adapt" in " ".join(found.advice)
    assert "Vacuous" not in " ".join(found.advice)
    assert "% of T" in " ".join(found.advice)


def test_a_window_beyond_the_horizon_is_told():
    found = scene(space=wd.StateActions.uniform(100, 10), horizon=10_000, reward_budget=0,
                  transition_budget=0)  # fmt: skip
    assert (found.window, round(found.window_real)) == (10_000, 20_439)
    assert "W* = 20,439 is more than T" in " ".join(found.advice)
    both = scene(space=wd.StateActions.uniform(100, 10), horizon=1_000, reward_budget=0,
                 transition_budget=3)  # fmt: skip
    assert both.window_real > 1_000
    assert both.widening_real >= 2
    words = " ".join(both.advice)
    assert "is more than T" in words
    assert "is capped at 2" in words


def test_how_the_window_falls_with_the_budgets():
    many = scene(reward_budget=2, transition_budget=1)  # B + 1 = 4
    more = scene(reward_budget=12, transition_budget=3)  # B + 1 = 16
    assert many.window_real / more.window_real == pytest.approx(2.0, rel=1e-12)
    assert "W* falls only with the root of B_r + B_p + 1." in " ".join(many.advice)
    one = {"space": wd.StateActions([8]), "transition_budget": 0}
    few, lots = scene(**one, reward_budget=1), scene(**one, reward_budget=8)
    assert few.window_real / lots.window_real == pytest.approx(4.0, rel=1e-12)
    assert "W* falls only with B_r to the power 2/3." in " ".join(few.advice)


def test_one_block_is_one_block():
    words = " ".join(scene(horizon=5).advice)
    assert "arms in 1 block give" in words
    assert "1 blocks" not in words


@pytest.mark.parametrize("delta", [1e-300, 5e-324])
def test_the_least_delta_has_a_plan(delta):
    found = scene(delta=delta)
    assert found.bound.noise_from > scene().bound.noise_from
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_largest_budgets_and_diameter_have_a_plan():
    found = scene(reward_budget=99_999, transition_budget=199_998, diameter=1e30, delta=1e-300)
    assert math.isfinite(found.bound.total)
    assert found.bound.below_from > 1e120
    assert scene(horizon=1, reward_budget=0, transition_budget=0).window == 1


def test_plain_data():
    data = json.loads(json.dumps(scene(diameter=3).as_dict(), allow_nan=False))
    assert (data["window"], data["borl"]["arms"], data["borl"]["blocks"]) == (5085, 70, 12)
    assert data["visits_needed"]["paper"]["widened"] == 516
    assert data["bound"]["terms"]["reward_drift"] == 5085
    assert data["diameter"] == 3
    assert data["advice"]


def test_memory_is_that_of_the_window_and_not_of_the_horizon():
    T = 10**6
    assert agent_memory(SCENE, 10_000, T) - agent_memory(SCENE, 5_000, T) == 2 * 16 * 5_000
    assert agent_memory(SCENE, 10_000, T) == agent_memory(SCENE, 10_000, 10 * T)
    small = scene(horizon=1_000, reward_budget=10)
    assert small.memory == agent_memory(SCENE, small.window, 1_000)
    huge = wd.StateActions.uniform(100_000, 2)
    assert agent_memory(huge, 100_000, T) < 2**27  # never S^2 A cells
    quick, slow = small.seconds
    assert 0 < quick < slow


def held(part):
    """The bytes of all arrays in a record of records."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(map(held, part)) if isinstance(part, tuple) else 0


@pytest.mark.parametrize(
    ("states", "actions", "window", "horizon"),
    [
        (10, 4, 5_085, 100_000),
        (100, 10, 70_000, 100_000),
        (2_000, 2, 5_085, 100_000),  # too many cells for a table
        (10, 4, 100_000, 100_000),  # nothing is forgotten
    ],
)
def test_memory_is_what_an_agent_holds(states, actions, window, horizon):
    space = wd.StateActions.uniform(states, actions)
    agent = wd.agents.make("swucrl2-cw", space, horizon=horizon, window=window, widening=0.1)
    agent._make_room_to_log(horizon)  # as a run does: an agent starts with room for few episodes
    assert agent_memory(space, window, horizon) == pytest.approx(held(agent._learner), abs=400)


def test_the_first_integer_that_never_comes():
    with pytest.raises(wd.InputError, match="large enough"):
        first_integer(lambda _: False)


def test_the_first_integer():
    for edge in (1, 2, 3, 17, 1024, 1025):
        assert first_integer(lambda n, edge=edge: n >= edge) == edge


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"space": 4}, "space"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 10.0}, "horizon"),
        ({"reward_budget": -1}, "reward_budget"),
        ({"transition_budget": math.nan}, "transition_budget"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"diameter": 0.5}, "diameter"),
        ({"diameter": 1e31}, "diameter"),
        ({"reward_budget": 1e308, "transition_budget": 1e308}, "reward_budget"),
        ({"reward_budget": 100_000}, "reward_budget"),
        ({"transition_budget": 1e300}, "transition_budget"),
        ({"transition_budget": 199_999}, "transition_budget"),
        ({"horizon": 1, "transition_budget": 0}, "reward_budget"),
        ({"diameter": math.inf}, "diameter"),
        ({"space": wd.StateActions([3])}, "transition_budget"),
        ({"space": wd.StateActions([3]), "transition_budget": 0, "diameter": 2}, "diameter"),
    ],
)
def test_bad_input_is_named(changes, field):
    with pytest.raises(wd.WindageError) as caught:
        scene(**changes)
    assert caught.value.field == field
    assert caught.value.fix


def test_the_public_name_is_the_function():
    assert wd.plan is plan
