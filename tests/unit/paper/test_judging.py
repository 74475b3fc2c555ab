"""Verdicts and sentences come from data: each result is fed data that keeps and that breaks it.

Of every result there are facts that hold, and for every check of it facts that break it and
nothing else; the verdict, the sentence and the page must turn.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

import windage as wd
from paper import (
    SUMMARIES,
    bandit,
    borl,
    coverage,
    episodes,
    evi_properties,
    figures,
    inventory,
    piecewise,
    proposition1,
    proposition3,
    span,
    theorem1_rates,
    theorem1_terms,
    tuning,
)  # fmt: skip
from paper.claims import Sides, check, spoken, worst
from paper.figures import _bad_episodes
from paper.result import Result
from windage.envs.proposition3 import peril_replay
from windage.study.stats import Interval


def result(checks, **more):
    return Result("x", "X", "about", checks, "Beside.", [], Figure(), **more)


# --- one check -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "relation", "right", "holds"),
    [
        (1, "<=", 1, True), (1 + 1e-12, "<=", 1, True), (1 + 1e-6, "<=", 1, False),
        (1, "<", 1, False), (1 - 1e-12, "<", 1, True), (0, ">", 0, False), (0, ">=", 0, True),
        (2e-9, "<=", 1e-9, False), (3, "<=", math.inf, True), (math.nan, "<=", 1, False),
        (1, ">=", math.nan, False), (-1e-12, ">=", 0, False),
    ],
)  # fmt: skip
def test_a_check_compares_its_sides(left, relation, right, holds):
    one = check("it", "as it should be", left, relation, right, "here")
    assert one.holds == holds
    assert one.sentence().startswith(f"it: {'holds' if holds else 'does not hold'}, ")
    assert "(here)" in one.sentence()


def test_the_sign_that_is_printed_is_the_one_that_is_true():
    assert check("it", "", 2, "<=", 3).numbers == "2 <= 3"
    assert check("it", "", 4, "<=", 3).numbers == "4 > 3"
    assert check("it", "", 2, ">=", 3).numbers == "2 < 3"
    assert check("it", "", 3, ">", 3).numbers == "3 <= 3"


def test_of_many_the_worst_is_shown_and_the_broken_are_counted():
    sides = [Sides(1, 10, "a"), Sides(12, 10, "b"), Sides(40, 20, "c"), Sides(0, 0, "d")]
    one = worst("it", "", sides, unit="cells")
    assert (one.of, one.broken, one.holds) == (4, 2, False)
    assert one.numbers == "broken in 2 of 4 cells, at the worst 40 > 20 (c)"
    assert worst("it", "", sides[::3]).numbers == "1 <= 10 (a), the nearest of 2 runs"


def test_nothing_to_look_at_does_not_hold():
    one = worst("it", "", [])
    assert not one.holds
    assert one.sentence() == "it: does not hold, nothing to look at"


def test_what_is_not_judged_does_not_count_and_says_so():
    one = check("it", "", 2, "<=", 1, is_judged=False)
    assert one.holds
    assert one.sentence() == "it: not judged, 2 > 1"


def test_numbers_in_sentences():
    assert [spoken(x) for x in (3.0, 1e-12, math.inf)] == ["3", "1e-12", "inf"]


def test_a_result_is_rendered_from_its_checks():
    good, bad = check("one", "small", 1, "<=", 2), check("two", "large", 1, ">", 2)
    kept, broken = result([good]), result([good, bad])
    assert (kept.holds, broken.holds) == (True, False)
    assert kept.verdict() == "Expected: small (one). Seen: one: holds, 1 <= 2. Beside."
    assert "Seen, not as expected: one: holds, 1 <= 2; two: does not hold" in broken.verdict()
    assert "**Expected and seen: as expected**" in kept.markdown("x.svg")
    page = broken.markdown("x.svg")
    assert "**Expected and seen: not as expected in 1 of 2**" in page
    assert "| two | large | 1 <= 2 | does not hold |" in page


# --- the fourteen --------------------------------------------------------------------------------


def interval(value):
    return Interval(value, value - 0.01, value + 0.01, 0.95)


def of_perils(shown=11.0, late=2.0, span=4.0, share=0.9):
    """tau = 10 and 20; the order is judged from one to the other."""
    sets = {}
    for tau in (10, 20):
        order = math.sqrt(4 * tau / math.log(4 * tau))
        for kind in proposition3.KINDS:
            level = late if tau == 20 and kind == "proof" else 2.0
            sets[tau, kind, 0.0] = proposition3.Sets(level * order, 100.0)
            sets[tau, kind, 0.5] = proposition3.Sets(1.0, span)
    lived = [proposition3.Lived(100, "printed", 0.5, 0.1, 0.01, 3.0, share)]
    return proposition3.judge({10: shown, 20: 21.0}, sets, lived)


def of_coverage(failures=0, power=1.0):
    found = {("river", kind): coverage.Counted(150, 0, 0, 0.1, 0.1) for kind in coverage.GUARANTEED}
    found["river", "proof"] = coverage.Counted(150, 0, failures, 0.1, 0.1)
    found["river", "Laplace x0.3"] = coverage.Counted(150, 150, 150, 9.0, 9.0)  # it may
    return coverage.judge(found, {"Laplace x0.3": power}, 16, is_full=True)


def of_episodes(most=10, slack=0):
    counted = episodes.Counted(most, 10.0, 9.0, slack, 3.0, 2.0)
    return episodes.judge({("river", 30): counted, ("river", 1): counted._replace(slack=None)})


def of_span(**more):
    one = {"by_diameter": 0.5, "by_reach": 1.0, "by_widening": 0.9} | more
    arrays = {name: np.array([0.1, value]) for name, value in one.items()}
    x = np.array([0.1, 1.0])
    return span.judge(
        {"river": span.Spans(span=x, span_d=x, diameter=x, held=2, episodes=2, **arrays)}
    )


def of_evi(first=1e-10, second=0.0, printed=0.3):
    some = [np.array([-1.0, value]) for value in (first, second, printed)]
    two = [np.array([-1.0])] * 3
    return evi_properties.judge(
        {
            "river": evi_properties.Checked(*some, states=6),
            "two": evi_properties.Checked(*two, states=2),
        }
    )


@functools.cache
def a_run():
    """A run with bad episodes on which both events hold, and what the proof says of it."""
    from windage.proof import hindsight

    model = wd.envs.make("peril", horizon=600, tau=50)
    agent = theorem1_terms.CASES[-2]
    assert agent.name == "peril"
    run = agent.play(model, seed=0)
    terms = theorem1_terms.regret_terms(run, model)
    return theorem1_terms.Measured(
        "peril", terms, theorem1_terms.lemmas(hindsight(run, model), terms), 600
    )


def of_regret(lemma=None, lost=0.0, gain=None, step=None, separated=True):
    one = a_run()
    terms = one.terms
    if lost:
        total = dataclasses.replace(terms.sharp, bad=terms.sharp.bad - lost)
        terms = dataclasses.replace(terms, sharp=total)
    for name, value in (("gain_slack", gain), ("step_slack", step)):
        if value is not None:
            slack = dict(getattr(terms, name), sharp=np.array([np.nan, value]))
            terms = dataclasses.replace(terms, **{name: slack})
    if gain is not None or step is not None:
        terms = dataclasses.replace(terms, bad=np.array([True, False]))
    sides = one.lemmas if lemma is None else one.lemmas._replace(**{lemma: (2.0, 1.0)})
    if not separated:
        sides = sides._replace(c3=(0, 5.0))
    return theorem1_terms.judge([one._replace(terms=terms, lemmas=sides)])


def of_benchmark(excess=3.0, printed=0.01):
    world = proposition1.Gap(100, 10.0, 9.0, excess, 4.0, 8.0, 0.0)
    example = proposition1.Gap(2, 1.0, 0.1, 0.9, 20.0, printed, 0.0)
    return proposition1.judge({"river": world, proposition1.EXAMPLE: example})


def of_borl(apart=0.0, regret=10.0, bound=5.0, near=1.5):
    split = borl.Split(regret, 7.0, 3.0, (10, 0.1), apart)
    world = borl.World("river", 1000, SimpleNamespace(), [split], bound, 2.0)
    return borl.judge([world], {((2, 2, 5000), (1.0, 1.0)): (1.0, near)})


def of_bandit(waves=0.6, batches=0.6, broken=1.0, level=1.0, off=0.0, changed=0):
    T = [100_000, 1_000_000, 10_000_000]

    def found(family, who, slope, scale):
        regrets = scale * np.array(T, float)[:, None] ** slope * np.ones(3)
        return bandit.Found(family, who, T, regrets, np.empty(0))

    return bandit.judge(
        [
            *(found("waves", who, waves, level) for who in bandit.RADII),
            *(found("batches", who, batches, level) for who in bandit.RADII),
            *(found("waves", who, broken, 100.0) for who in bandit.BROKEN),
            *(found("batches", who, 2 / 3, 100.0) for who in bandit.BROKEN),
        ],
        off, changed,
    )  # fmt: skip


def of_piecewise(**more):
    lost = {(shape, name): 0.1 for shape in piecewise.SHAPES for name in piecewise.AGENTS}
    lost["cosine", "random"] = 0.25
    for name in piecewise.BY_CHANGES:
        lost["cosine", name], lost["jumps", name] = 0.24, 0.05
    for (shape, number), value in more.get("cells", {}).items():
        lost[shape, list(piecewise.AGENTS)[number]] = value
    return piecewise.judge({key: np.full(4, value) for key, value in lost.items()})


def of_inventory(calm=49.0, wild=90.0, cost=-5.0):
    rng = np.random.default_rng(0)
    with_eta = 100 + rng.random(20)
    setting = inventory.Setting(
        "W*", 10, "laplace", with_eta + cost + rng.random(20), with_eta, 0.3
    )
    return inventory.judge(np.array([20.0, calm]), np.array([1.0, wild]), 50.0, [setting])


def of_rates(slope=0.76, setting="printed"):
    values = [10**6, 10**7, theorem1_rates.MOST[setting]]
    slopes = [interval(0.9), interval(slope)]
    return theorem1_rates.judge(
        [theorem1_rates.Sweep("T", setting, values, np.ones((3, 2)), slopes)]
    )


def of_tuning(longest=0.3, widest=0.3, tuned=0.2):
    """Two windows at the ends, one between; the last eta is 2."""
    regrets = np.array([[0.5, 0.5, 0.5], [0.1, 0.1, widest], [longest, 0.4, 0.4]])
    return tuning.judge({"printed radii": tuning.Map(regrets, (1, 0), tuned)})


@functools.cache
def bad_episodes():
    return _bad_episodes()[1]


def of_figures(visits=0, way=0.0, outside=False, none=False):
    replay, terms = peril_replay(figures.TAU), bad_episodes()
    counts, p_hat = replay.counts.copy(), replay.p_hat.copy()
    counts[1] += visits
    p_hat[3, 0] += way
    if outside:
        terms = dataclasses.replace(terms, bad=terms.bad & terms.holds_the_model)
    if none:
        terms = dataclasses.replace(terms, holds_the_model=np.ones_like(terms.holds_the_model))
    return figures.judge(counts, p_hat, terms)


BROKEN = {
    "perils": (of_perils, {
        "p-hat": {"shown": 11.1}, "order": {"late": 1.7}, "cap": {"span": 4.01},
        "cap, live": {"share": 1.01},
    }),
    "coverage": (of_coverage, {"C1": {"failures": 17}, "power": {"power": 0.99}}),
    "episodes": (of_episodes, {"C2": {"most": 11}, "C12": {"slack": -1}}),
    "span": (of_span, {
        "by D": {"by_diameter": 1.01}, "by 1/beta": {"by_reach": 1.01},
        "by eta": {"by_widening": 1.01},
    }),
    "evi": (of_evi, {
        "Property 1": {"first": 2e-9}, "Property 2": {"second": 2e-9}, "E11": {"printed": 0.0},
    }),
    "regret": (of_regret, {
        "C2": {"lemma": "c2"}, "C3": {"lemma": "c3"}, "Q_T": {"separated": False},
        "C4": {"lemma": "c4"}, "C5, r": {"lemma": "c5_r"}, "C5, p": {"lemma": "c5_p"},
        "C8": {"gain": -0.01, "step": 0.1}, "C9": {"step": -0.01, "gain": 0.1},
        "C10": {"lemma": "c10"}, "C11": {"lost": 1e6},
    }),
    "benchmark": (of_benchmark, {"Proposition 1": {"excess": 4.1}, "E10": {"printed": 1.0}}),
    "borl": (of_borl, {
        "replay": {"apart": 0.1}, "split": {"regret": 11.0}, "master": {"bound": 2.0},
        "grid": {"near": 3.0},
    }),
    "bandit": (of_bandit, {
        "waves": {"waves": 0.75, "level": 0.1}, "batches": {"batches": 0.75, "level": 0.1},
        "power": {"broken": 0.66}, "level": {"level": 1e4}, "B_r": {"off": 0.75},
        "eta": {"changed": 1},
    }),
    "piecewise": (of_piecewise, {
        "on jumps": {"cells": {("jumps", 0): 0.11}},
        "for changes": {"cells": {("jumps", 1): 0.099, ("cosine", 1): 0.099, ("cosine", 3): 0.09}},
        "for budgets": {"cells": {("jumps", 3): 0.08}},
        "on drift": {"cells": {("cosine", 1): 0.11, ("cosine", 2): 0.12, ("cosine", 3): 0.12,
                               ("cosine", 4): 0.12, ("jumps", 2): 0.12, ("jumps", 3): 0.12,
                               ("jumps", 4): 0.12}},
        "nothing left": {"cells": {("cosine", 0): 0.2}},
    }),
    "inventory": (of_inventory, {
        "averages": {"calm": 51.0}, "peril": {"wild": 1.5}, "eta = 0": {"cost": 5.0},
    }),
    "rates": (of_rates, {"printed, T": {"slope": 0.786}}),
    "tuning": (of_tuning, {
        "W": {"longest": 0.1, "tuned": 0.05}, "eta": {"widest": 0.1}, "(W*, eta*)": {"tuned": 0.35},
    }),
    "figures": (of_figures, {
        "visits": {"visits": 1}, "ways out": {"way": 0.2}, "Q~_T": {"outside": True},
        "Q_T": {"none": True},
    }),
}  # fmt: skip


def test_all_results_are_here():
    assert BROKEN.keys() == SUMMARIES.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_facts_that_hold(name):
    judge, breaks = BROKEN[name]
    kept = result(judge())
    assert kept.holds, kept.seen
    assert {one.name for one in kept.checks} == breaks.keys()
    assert "does not hold" not in kept.verdict()


@pytest.mark.parametrize(
    ("name", "which"), [(name, which) for name, (_, breaks) in BROKEN.items() for which in breaks]
)
def test_facts_that_break_one_check_turn_the_verdict_and_the_sentence(name, which):
    judge, breaks = BROKEN[name]
    kept, broken = result(judge()), result(judge(**breaks[which]))
    assert [one.name for one in broken.checks if not one.holds] == [which], broken.seen
    assert not broken.holds
    assert f"{which}: does not hold, " in broken.verdict()
    assert broken.seen != kept.seen
    assert "not as expected in 1 of" in broken.markdown("x.svg")


def test_slopes_are_judged_at_the_longest_horizons_only():
    one = theorem1_rates.Sweep(
        "T", "printed", [10**4, 10**5, 10**6], np.ones((3, 2)), [interval(0.9)] * 2
    )
    (early,) = theorem1_rates.judge([one])
    assert early.word == "not judged"
    assert early.holds


def test_the_slope_of_the_bound_has_its_logarithm():
    """Between those at its ends, 3/4 + 1 / (2 L)."""
    T = [10**6, 10**7, 10**8]
    low, high = (0.75 + 1 / (2 * math.log(4 * t / 0.05)) for t in (T[-1], T[0]))
    assert low < theorem1_rates.bound_slope(T) < high


def test_remarks_say_which_way_it_went():
    better, worse = (
        proposition3.Lived(100, "x", 0.0, lost, 0.01, 1.0, 1.0) for lost in (0.1, 0.3)
    )  # fmt: skip
    assert proposition3._turn(better, worse) == "saves 0.200 a step"
    assert proposition3._turn(worse, better) == "costs 0.200 a step"
    assert "noise" in proposition3._turn(better, better._replace(regret=0.11))
