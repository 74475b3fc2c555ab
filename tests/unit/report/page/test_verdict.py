"""Who leads, by how much: every number again by hand, and every kind of answer."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.unit.report.page.frames import asked, material, row, scores
from windage.report.page.verdict import evidence, headline, plain_words, verdict
from windage.study.compare import Plan

LOW = [0.30, 0.31, 0.29, 0.33, 0.30, 0.28, 0.32, 0.30, 0.31, 0.29]
HIGH = [0.80, 0.82, 0.79, 0.83, 0.81, 0.78, 0.80, 0.84, 0.80, 0.81]
NEAR = [0.81, 0.80, 0.80, 0.82, 0.82, 0.77, 0.81, 0.83, 0.79, 0.82]


def flipped(differences):
    """The two-sided p-value over all signs, one by one."""
    seen = abs(sum(differences))
    signs = itertools.product([-1, 1], repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(sign, differences, strict=True))) for sign in signs]
    return sum(total >= seen - 1e-9 for total in sums) / len(sums)


def stepped_down(p_values):
    """Holm's rule, as its paper words it."""
    order = sorted(range(len(p_values)), key=lambda k: p_values[k])
    adjusted, least = {}, 0.0
    for place, k in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[k]))
        adjusted[k] = least
    return [adjusted[k] for k in range(len(p_values))]


def told(rows, plan=None):
    found = material(rows, asked=asked(plan=plan))
    (comparison,) = found.judged
    top = plain_words(headline([comparison], found.styles))
    return top, [plain_words(words) for words in verdict(comparison, found.styles)], comparison


def test_differences_and_corrected_tests_by_hand():
    agents = {"best": HIGH, "near": NEAR, "low": LOW}
    _, _, comparison = told(scores(**agents, oracle=[1.0] * 10, random=[0.2] * 10))
    judged = {**agents, "random": [0.2] * 10}
    pairs = list(itertools.combinations(judged, 2))
    p = [flipped([a - b for a, b in zip(judged[x], judged[y], strict=True)]) for x, y in pairs]
    by_hand = dict(zip(pairs, stepped_down(p), strict=True))
    assert comparison.tests == 6
    assert [c.other.label for c in comparison.contrasts] == ["near", "low", "random"]
    for contrast in comparison.contrasts:
        other = contrast.other.label
        gap = sum(a - b for a, b in zip(HIGH, judged[other], strict=True)) / 10
        assert contrast.found.difference.estimate == pytest.approx(100 * gap)
        assert contrast.found.n == 10
        assert contrast.corrected == pytest.approx(by_hand["best", other])
        wins = sum(a > b for a, b in zip(HIGH, judged[other], strict=True))
        assert contrast.found.wins == wins
    table = evidence(comparison)
    assert [line[-1] for line in table.rows] == ["no", "yes", "yes"]


def test_a_clear_winner():
    top, said, _ = told(scores(good=HIGH, poor=LOW))
    assert top == "good leads on world."
    assert said[0].startswith("good earns 80.8 % of the optimal gain (95 % interval ")
    assert said[0].endswith(", 10 seeds), the most of all learners.")
    assert re.match(r"It beats poor by 50\.5 points \(\d.*; 10 paired seeds; p = 0\.002\)", said[1])


def test_a_tie_is_called_one():
    top, said, _ = told(scores(one=HIGH, other=NEAR, poor=LOW))
    assert top == "one and other lead on world, and no test tells them apart."
    assert said[1].startswith("Its lead over other is not significant: 0.1 points")
    assert said[2].startswith("It beats poor by ")


def test_nothing_is_significant():
    top, said, _ = told(scores(one=HIGH, other=NEAR))
    assert top == "No learner is significantly better than any other."
    assert "not significant" in said[1]


def test_the_best_learner_depends_on_the_world():
    rows = scores(a=HIGH, b=LOW)
    rows += [one | {"environment": "elsewhere"} for one in scores(a=LOW, b=HIGH)]
    found = material(rows)
    top = plain_words(headline(found.judged, found.styles))
    assert (
        top
        == "The best learner depends on the environment: a leads on world; b leads on elsewhere."
    )


def test_learners_below_the_floor_are_named():
    _, said, _ = told(scores(good=HIGH, poor=[0.1] * 10, random=[0.2] * 10))
    assert "good is 60.8 points above random, which learns nothing." in said
    assert "poor earns significantly less than random." in said


def test_a_mean_near_the_floor_is_no_finding():
    """A mean a hair below acting at random, which no test tells from it."""
    near = [0.199, 0.201] * 5
    _, said, _ = told(scores(good=HIGH, poor=near, random=[0.2005, 0.1996] * 5))
    assert "No test tells poor from random." in said
    assert not any("less than random" in words for words in said)
    _, said, comparison = told(scores(good=HIGH[:3], poor=[0.1] * 3, random=[0.2] * 3))
    assert not comparison.decidable
    assert "poor has a mean no higher than random." in said


def worlds(**environments):
    """Material of several environments, each with the shares of its agents."""
    return material(
        [
            one | {"environment": environment}
            for environment, agents in environments.items()
            for one in scores(**agents)
        ]
    )


def top_of(found, missing=()):
    return plain_words(headline(found.judged, found.styles, missing))


def test_who_is_tied_somewhere_does_not_lead_everywhere():
    best_there = [x + 0.003 for x in NEAR]
    found = worlds(
        river={"a": HIGH, "b": LOW, "c": LOW}, shop={"a": HIGH, "b": best_there, "c": LOW}
    )
    assert found.judged[1].learners[0].label == "b"
    assert top_of(found) == "a leads on river; b and a lead on shop."
    found = worlds(river={"a": HIGH, "b": LOW, "c": LOW}, shop={"a": HIGH, "b": NEAR, "c": LOW})
    assert top_of(found) == (
        "a has the best mean in every environment, but no test tells b from it on shop."
    )
    found = worlds(river={"a": HIGH, "b": LOW}, shop={"a": NEAR, "b": LOW})
    assert top_of(found) == "a leads in every environment."


def test_equals_are_called_so_only_if_no_test_tells_any_two_apart():
    """The best is noisy and tied with both; the second is better than the third for sure."""
    noisy = [1.0, 0.2] * 5
    second, third = [0.55 + 0.001 * k for k in range(10)], [0.50 + 0.001 * k for k in range(10)]
    top, said, comparison = told(scores(a=noisy, b=second, c=third))
    assert comparison.apart("b", "c")
    assert not comparison.apart("a", "b")
    assert top == "a has the best mean on world, but no test tells b and c from it."
    top, _, _ = told(scores(a=noisy, b=second, c=third, d=[-5.0 + x for x in LOW]))
    assert top == "a has the best mean on world, but no test tells b and c from it."
    assert said[1].startswith("Its lead over b is not significant")


def test_learners_that_have_not_finished_are_named():
    found = worlds(river={"random": LOW})
    assert top_of(found) == "No learner took part: these are yardsticks only."
    assert top_of(found, ["a", "b"]) == (
        "No learner has a finished run yet: still missing a and b."
    )
    (comparison,) = found.judged
    said = [plain_words(words) for words in verdict(comparison, found.styles, ["a", "b"])]
    assert said == ["a and b have no finished run here."]
    found = worlds(river={"a": HIGH, "b": LOW}, shop={"random": LOW})
    assert top_of(found) == "a leads on river."


def test_one_shared_seed_has_no_interval_and_no_test():
    found = worlds(river={"a": HIGH[:1], "b": LOW[:1]})
    (line,) = evidence(found.judged[0]).rows
    assert line[2:4] == [None, None]
    assert line[-2:] == [None, "not tested"]


def test_a_floor_above_every_learner():
    top, said, comparison = told(scores(a=LOW, b=[x - 0.1 for x in LOW], random=HIGH))
    assert top == "a leads on world."
    assert "a is 50.5 points below random, which learns nothing." in said
    assert comparison.contrasts[0].found.difference.estimate == pytest.approx(-50.5)


@pytest.mark.parametrize(("n", "pairs"), [(3, 1), (5, 1), (6, 1), (8, 6), (9, 6), (7, 3)])
def test_how_many_seeds_a_test_takes(n, pairs):
    """With n seeds the smallest p-value is 2 / 2^n, and Holm multiplies it by all pairs."""
    agents = {1: 2, 3: 3, 6: 4}[pairs]
    names = [f"agent{k}" for k in range(agents)]
    rows = [row(name, s, 0.9 - 0.2 * k) for k, name in enumerate(names) for s in range(n)]
    top, said, comparison = told(rows)
    possible = pairs * 2 / 2**n < 0.05
    assert comparison.decidable == possible
    assert comparison.contrasts[0].significant == possible
    assert ("too few to prove it" in top) == (not possible)
    least = next(k for k in range(1, 99) if pairs * 2 / 2**k < 0.05)
    assert comparison.needed_seeds == least
    if not possible:
        assert any(f"takes {least} seeds at least" in words for words in said)


def test_agents_are_compared_on_the_seeds_that_both_have():
    rows = scores(a=HIGH, b=LOW)
    rows = [one for one in rows if not (one["agent"] == "b" and one["seed"] < 3)]
    _, said, comparison = told(rows)
    (contrast,) = comparison.contrasts
    assert contrast.found.n == 7
    gap = sum(a - b for a, b in zip(HIGH[3:], LOW[3:], strict=True)) / 7
    assert contrast.found.difference.estimate == pytest.approx(100 * gap)
    assert "7 paired seeds" in said[1]


def test_without_an_oracle_rewards_are_compared():
    rows = [
        row(name, seed, None, total_reward=reward, total_mean_reward=None)
        for name, reward in (("a", 60.0), ("b", 30.0))
        for seed in range(8)
    ]
    top, said, comparison = told(rows)
    assert top == "a leads on world."
    assert said[0].startswith("a earns 0.6000 per step")
    assert "This environment has no oracle" in said[-1]
    assert comparison.ranking[0].score.estimate == pytest.approx(0.6)


def test_nothing_at_all():
    found = material([])
    assert plain_words(headline(found.judged, found.styles)) == "Nothing has been run yet."


@pytest.mark.parametrize("planned", [Plan(baseline="low"), Plan((("near", "best"),))])
def test_planned_comparisons_are_tested_and_told_and_no_others(planned):
    agents = {"best": HIGH, "near": NEAR, "low": LOW, "random": [0.2] * 10}
    top, said, comparison = told(scores(**agents, oracle=[1.0] * 10), planned)
    pairs = planned.pairs or [(agent, "low") for agent in ("best", "near", "random")]
    gaps = [[a - b for a, b in zip(agents[x], agents[y], strict=True)] for x, y in pairs]
    corrected = stepped_down([flipped(gap) for gap in gaps])
    by_hand = {frozenset(pair): p for pair, p in zip(pairs, corrected, strict=True)}
    assert dict(comparison.corrected) == pytest.approx(by_hand)
    assert comparison.tests == len(pairs)
    estimates = {(c.better.label, c.other.label): c.found.difference.estimate
                 for c in comparison.contrasts}  # fmt: skip
    means = {pair: 10 * sum(gap) for pair, gap in zip(pairs, gaps, strict=True)}
    assert estimates == pytest.approx(means)
    if planned.baseline:
        assert top == "Of 3 planned comparisons with low, 3 are significant."
        assert said[1].startswith(f"best beats low by {means['best', 'low']:.1f} points (")
        assert said[2].startswith("near beats low by ")
        assert said[3].startswith(f"low beats random by {-means['random', 'low']:.1f} points (")
    else:
        assert top == "Of 1 planned comparisons, 0 are significant."
        assert said[1].startswith("No test tells near from best: \u22120.1 points (")
    assert evidence(comparison).caption == "Planned comparisons, world, T = 100"
    assert not any("of all pairs" in one or "learns nothing" in one for one in said)


def test_planned_comparisons_need_fewer_seeds_than_all_pairs():
    """With 7 seeds the least p-value is 2/128: enough for 3 tests at 5 %, too few for 6."""
    agents = {"best": HIGH[:7], "near": NEAR[:7], "low": LOW[:7], "random": [0.2] * 7}
    _, said, every = told(scores(**agents))
    assert not every.decidable
    assert any("to test 6 pairs at 5 % takes 8 seeds at least" in one for one in said)
    top, _, planned = told(scores(**agents), Plan(baseline="low"))
    assert planned.decidable
    assert top == "Of 3 planned comparisons with low, 3 are significant."
    few = {name: x[:3] for name, x in agents.items()}
    top, said, _ = told(scores(**few), Plan(baseline="low"))
    assert top == "The planned comparisons with low cannot be decided with 3 seeds."
    assert said[1].startswith("best is above low by ")
    assert said[-1].startswith("3 seeds cannot show more: to test 3 pairs at 5 %")
