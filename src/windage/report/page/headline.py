"""The one sentence at the top of a page: true of every environment, and no more than tests say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from windage.report.page.comparison import Comparison
from windage.report.page.looks import Look
from windage.report.page.verdict import MOST_NAMED, Words, listed, named

__all__ = ["headline"]


def headline(
    comparisons: Sequence[Comparison], looks: Mapping[str, Look], missing: Sequence[str] = ()
) -> Words:
    """Return the one sentence at the top.

    Parameters
    ----------
    comparisons
        One for each environment.
    looks
        How agents look, by their labels.
    missing
        The agents that the study asks for and that have no finished run.
    """
    if not comparisons:
        return ["Nothing has been run yet."]
    judged = [c for c in comparisons if c.learners]
    if not judged:
        if missing:
            return ["No learner has a finished run yet: still missing ", *named(missing), "."]
        return ["No learner took part: these are yardsticks only."]
    if all(c.seeds < 2 for c in judged):
        return ["One seed each: the numbers below are single runs, and no difference is proved."]
    only = {one.label for c in judged for one in c.learners}
    if len(only) == 1:
        return [
            looks[only.pop()],
            " is the only learner here: nothing to compare it with but yardsticks.",
        ]
    if not any(c.decidable for c in judged):
        return _undecided(judged, looks, len(judged) == len(comparisons))
    if all(c.decidable and len(c.learners) > 1 for c in judged):
        if all(_equal([one.label for one in c.learners], c) for c in judged):
            return ["No learner is significantly better than any other."]
        if len(judged) > 1 and len(judged) == len(comparisons):
            found = _everywhere(judged, looks)
            if found:
                return found
    return _one_by_one(judged, looks)


def _everywhere(comparisons: Sequence[Comparison], looks: Mapping[str, Look]) -> Words:
    """Return what holds in every environment alike; nothing where they differ."""
    groups = [_leaders(c) for c in comparisons]
    first = groups[0]
    alike = all(set(group) == set(first) for group in groups)
    if alike and len(first) <= MOST_NAMED and all(_equal(first, c) for c in comparisons):
        if len(first) == 1:
            return [looks[first[0]], " leads in every environment."]
        end = " lead in every environment, and no test tells them apart."
        return [*listed(looks[name] for name in first), end]
    if any(group[0] != first[0] for group in groups):
        return []
    words: Words = [looks[first[0]], " has the best mean in every environment, but no test tells "]
    tied = [c for c, group in zip(comparisons, groups, strict=True) if len(group) > 1]
    for place, comparison in enumerate(tied):
        names = named(_leaders(comparison)[1:], looks)
        where = f" from it on {comparison.setting.environment}"
        words += ["; nor " if place else "", *names, where]
    return [*words, "."]


def _one_by_one(comparisons: Sequence[Comparison], looks: Mapping[str, Look]) -> Words:
    """Return who leads, environment by environment."""
    groups = [set(_leaders(c)) for c in comparisons]
    several = len(groups) > 1
    differs = all(c.decidable for c in comparisons) and not set.intersection(*groups)
    words: Words = ["The best learner depends on the world: "] if several and differs else []
    for place, comparison in enumerate(comparisons):
        words += ["; " if place else "", *_phrase(comparison, looks, several=several)]
    return [*words, "."]


def _phrase(comparison: Comparison, looks: Mapping[str, Look], *, several: bool) -> Words:
    """Return who leads in one environment."""
    names = _leaders(comparison)
    best, where = looks[names[0]], f" on {comparison.setting.environment}"
    if len(comparison.learners) == 1:
        return [best, f" is the only learner{where}"]
    if not comparison.decidable:
        return [best, f" has the best mean{where}, on too few seeds for a test"]
    if len(names) == 1:
        return [best, f" leads{where}"]
    if len(names) <= MOST_NAMED and _equal(names, comparison):
        tail = "" if several else ", and no test tells them apart"
        return [*listed(looks[name] for name in names), f" lead{where}{tail}"]
    tied = named(names[1:], looks)
    return [best, f" has the best mean{where}, but no test tells ", *tied, " from it"]


def _undecided(
    comparisons: Sequence[Comparison], looks: Mapping[str, Look], everywhere: bool
) -> Words:
    """Return who has the best mean where seeds are too few for any test."""
    best = {c.setting.environment: c.learners[0].label for c in comparisons}
    seeds = min(c.paired_seeds for c in comparisons)
    few = f"but {seeds} seed{' is' if seeds == 1 else 's are'} too few to prove it."
    if len(set(best.values())) == 1 and (everywhere or len(best) == 1):
        where = " in every environment" if len(best) > 1 else f" on {next(iter(best))}"
        return [looks[next(iter(best.values()))], f" has the best mean{where}, {few}"]
    words: Words = []
    for place, (environment, label) in enumerate(best.items()):
        words += ["; " if place else "", looks[label], f" has the best mean on {environment}"]
    return [*words, f", {few}"]


def _leaders(comparison: Comparison) -> list[str]:
    """Return the best learner and those that no test tells from it."""
    best, *others = (one.label for one in comparison.learners)
    return [best, *(label for label in others if not comparison.apart(best, label))]


def _equal(labels: Sequence[str], comparison: Comparison) -> bool:
    """Whether no test tells any of these from any other."""
    return not any(itertools.starmap(comparison.apart, itertools.combinations(labels, 2)))
