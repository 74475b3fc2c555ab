"""The verdict of a report in words: the headline, and the sentences of each setting.

Every sentence is true of the numbers, and claims no more than tests show.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from windage.report.page.chart import AgentStyle, Table
from windage.report.page.data import SHARE, Contrast, Scored, Standings

__all__ = ["Words", "evidence", "headline", "named", "plain_words", "verdict"]

Words = list[str | AgentStyle]
"""Words, with agents among them that a page shows in their colours."""

_MOST_NAMED = 4
"""Agents that one sentence names; of others it says how many."""

_MOST_PLANNED = 8
"""Planned comparisons of a setting that have a sentence each."""

_LEAST_P = 0.001


def verdict(
    comparison: Standings, styles: Mapping[str, AgentStyle], missing: Sequence[str] = ()
) -> list[Words]:
    """Return the sentences of one setting, each true of its numbers.

    Parameters
    ----------
    comparison
        What the setting says.
    styles
        The styles of agents, by their labels.
    missing
        The agents that the study asks for here and that have no finished run.
    """
    learners, measure = comparison.learners, comparison.measure
    lacking: list[Words] = []
    if missing:
        verb = "has" if len(missing) == 1 else "have"
        lacking = [[*named(missing), f" {verb} no finished run here."]]
    if not learners:
        return lacking or [["No learner took part."]]
    best = learners[0]
    sentences: list[Words] = [_lead(comparison, styles)]
    if comparison.seeds < 2:
        sentences.append(
            ["One seed is one draw of luck: no interval and no test. Run at least six."]
        )
        return sentences + lacking
    rivals = comparison.rivals
    if comparison.plan:
        sentences += _planned(comparison, styles)
    elif not rivals:
        sentences.append(["There is no other learner to compare it with."])
    else:
        sentences += _rivalry(comparison, styles)
    floors = [
        c
        for c in comparison.contrasts
        if c.other.cell.agent.kind == "floor" and not comparison.plan
    ]
    sentences += [_floor(best, contrast, comparison, styles) for contrast in floors[:1]]
    if floors:
        sentences += _near_floor(comparison, floors[0].other, styles)
    if measure is not SHARE:
        sentences.append(
            [
                "This environment has no oracle: agents are compared by reward, and regret is "
                "not known."
            ]
        )
    return sentences + lacking


def evidence(comparison: Standings) -> Table:
    """Return the leader less each of the others, with intervals and tests."""
    measure = comparison.measure
    rows: list[list[str | float | int | None]] = []
    for contrast in comparison.contrasts:
        found = contrast.found
        between = (found.difference.low, found.difference.high)
        tested = (contrast.corrected, "yes" if contrast.significant else "no")
        several = found.n > 1  # one seed has no interval and no test
        rows.append(
            [
                f"{contrast.better.label} − {contrast.other.label}",
                found.difference.estimate,
                *(between if several else (None, None)),
                found.n,
                found.wins,
                *(tested if several else (None, "not tested")),
            ]
        )
    unit = "points" if measure is SHARE else "reward per step"
    headers = [
        "difference", f"mean ({unit})", "95 % from", "to", "paired seeds", "seeds better",
        "p (Holm)", "significant",
    ]  # fmt: skip
    what = "Planned comparisons" if comparison.plan else "The best learner less each other"
    return Table(f"{what}, {comparison.setting.title}", headers, rows)


def plain_words(words: Words) -> str:
    """Return words without colours."""
    return "".join(word if isinstance(word, str) else word.label for word in words)


def _p_text(p: float) -> str:
    """Return a p-value as papers write it.

    >>> _p_text(1e-9), _p_text(0.0312)
    ('p < 0.001', 'p = 0.031')
    """
    return f"p < {_LEAST_P:g}" if p < _LEAST_P else f"p = {p:.2g}"


def _lead(comparison: Standings, styles: Mapping[str, AgentStyle]) -> Words:
    best, measure = comparison.learners[0], comparison.measure
    score = best.score
    between = (
        f" (95 % interval {_range(score.low, score.high, measure.digits)}, {best.cell.n} seeds)"
        if best.cell.n > 1
        else " (one seed)"
    )
    told = best.cell.agent.told
    knows = f", given {' and '.join(told)}," if told else ""
    if measure is SHARE:
        what = f" earns {score.estimate:.{measure.digits}f} % of the optimal gain{between}"
    else:
        what = f" earns {score.estimate:.{measure.digits}f} per step{between}"
    superlative = ", the most of all learners." if len(comparison.learners) > 1 else "."
    return [styles[best.label], knows, what, superlative]


def _rivalry(comparison: Standings, styles: Mapping[str, AgentStyle]) -> list[Words]:
    rivals = comparison.rivals
    if not comparison.decidable:
        first = rivals[0]
        return [
            ["It is ", f"{_amount(first, comparison)} above ", styles[first.other.label], "."],
            [_too_few(comparison)],
        ]
    tied = [c for c in rivals if not c.significant]
    beaten = [c for c in rivals if c.significant]
    sentences: list[Words] = []
    if tied:
        first = tied[0]
        words: Words = [
            "Its lead over ", styles[first.other.label],
            f" is not significant: {_amount(first, comparison)}",
        ]  # fmt: skip
        if len(tied) > 1:
            others = _listed(styles[c.other.label] for c in tied[1 : _MOST_NAMED + 1])
            more = len(tied) - 1 - _MOST_NAMED
            tail = f" and {more} more" if more > 0 else ""
            words += [". Neither is that over ", *others, tail]
        sentences.append([*words, "."])
    if beaten:
        first = beaten[0]
        all_others = len(comparison.learners) - 1
        every = (
            "every other learner"
            if len(beaten) == all_others
            else f"{len(beaten)} of {all_others} others"
        )
        if len(beaten) == 1:
            sentences.append(
                ["It beats ", styles[first.other.label], f" by {_amount(first, comparison)}."]
            )
        else:
            sentences.append(
                [f"It beats {every}; of these ", styles[first.other.label],
                 f" comes nearest, {_amount(first, comparison)} behind."]
            )  # fmt: skip
    return sentences


def _planned(comparison: Standings, styles: Mapping[str, AgentStyle]) -> list[Words]:
    """Return what was found of the comparisons that were planned, a sentence each."""
    shown = comparison.contrasts[:_MOST_PLANNED]
    if not shown:
        return [["None of the planned comparisons has runs on the same seeds."]]
    sentences: list[Words] = []
    for one in shown:
        first, second = styles[one.better.label], styles[one.other.label]
        if comparison.decidable and not one.significant:
            amount = _amount(one, comparison)
            sentences.append(["No test tells ", first, " from ", second, f": {amount}."])
            continue
        ahead = one.found.difference.estimate >= 0
        above, below = (first, second) if ahead else (second, first)
        verb = " beats " if comparison.decidable else " is above "
        amount = _amount(one, comparison, sign=1 if ahead else -1)
        sentences.append([above, verb, below, f" by {amount}."])
    more = len(comparison.contrasts) - len(shown)
    if more > 0:
        sentences.append([f"{more} more planned comparisons are in the table below."])
    return sentences if comparison.decidable else [*sentences, [_too_few(comparison)]]


def _too_few(comparison: Standings) -> str:
    """Return what a reader should know where no test could have said yes."""
    n, pairs = comparison.paired_seeds, comparison.tests
    return (
        f"{n} seed{'s' if n > 1 else ''} cannot show more: to test {pairs} pair"
        f"{'s' if pairs > 1 else ''} at 5 % takes {comparison.needed_seeds} seeds at least."
    )


def _floor(
    best: Scored, contrast: Contrast, comparison: Standings, styles: Mapping[str, AgentStyle]
) -> Words:
    floor = styles[contrast.other.label]
    unit = "points" if comparison.measure is SHARE else "per step"
    gap = contrast.found.difference.estimate
    text = f"{abs(gap):.{comparison.measure.digits}f} {unit}"
    if comparison.decidable and not contrast.significant:
        return ["No test tells ", styles[best.label], " from ", floor, "."]
    where = "above" if gap > 0 else "below"
    return [styles[best.label], f" is {text} {where} ", floor, ", which learns nothing."]


def _near_floor(
    comparison: Standings, floor: Scored, styles: Mapping[str, AgentStyle]
) -> list[Words]:
    """Return which other learners do no better than acting at random, as far as tests can say."""
    others, level = comparison.learners[1:], floor.score.estimate
    if not comparison.decidable:
        below = [one.label for one in others if one.score.estimate <= level]
        verb = "has a mean" if len(below) == 1 else "have means"
        end: Words = [f" {verb} no higher than ", styles[floor.label], "."]
        return [[*named(below, styles), *end]] if below else []
    apart = [one for one in others if comparison.apart(one.label, floor.label)]
    below = [one.label for one in apart if one.score.estimate < level]
    same = [one.label for one in others if one not in apart]
    sentences: list[Words] = []
    if below:
        verb = "earns" if len(below) == 1 else "earn"
        end = [f" {verb} significantly less than ", styles[floor.label], "."]
        sentences.append([*named(below, styles), *end])
    if same:
        sentences.append(
            ["No test tells ", *named(same, styles), " from ", styles[floor.label], "."]
        )
    return sentences


def _amount(contrast: Contrast, comparison: Standings, sign: int = 1) -> str:
    """Return a difference, or its opposite, with its interval, its seeds and its test."""
    found, measure = contrast.found, comparison.measure
    unit = "points" if measure is SHARE else "per step"
    d = found.difference
    digits = measure.digits + (abs(d.estimate) < 0.5 * 10.0**-measure.digits)
    amount = f"{sign * d.estimate:.{digits}f} {unit}".replace("-", "\u2212")
    if found.n < 2:
        return f"{amount} (one paired seed)"
    test = f"; {_p_text(contrast.corrected)}" if comparison.decidable else ""
    low, high = sorted((sign * d.low, sign * d.high))
    return f"{amount} ({_range(low, high, digits)}; {found.n} paired seeds{test})"


def _range(low: float, high: float, digits: int) -> str:
    return f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "\u2212")


def _listed(names: Iterable[str | AgentStyle]) -> Words:
    """Return names with commas and an "and"; names with commas of their own with semicolons.

    >>> _listed(["a", "b, delta 0.1", "c"])
    ['a', '; ', 'b, delta 0.1', '; and ', 'c']
    """
    found = list(names)
    commas = any("," in (name if isinstance(name, str) else name.label) for name in found)
    between, last = ("; ", "; and ") if commas and len(found) > 2 else (", ", " and ")
    words: Words = []
    for place, name in enumerate(found):
        if place:
            words.append(last if place == len(found) - 1 else between)
        words.append(name)
    return words


def named(labels: Sequence[str], styles: Mapping[str, AgentStyle] | None = None) -> Words:
    """Return a few agents, in their colours where they have some, and how many more there are.

    >>> named(["a", "b", "c", "d", "e", "f"])
    ['a', ', ', 'b', ', ', 'c', ', ', 'd', ' and ', '2 more']
    """
    few: Words = [styles[label] if styles else label for label in labels[:_MOST_NAMED]]
    more = len(labels) - _MOST_NAMED
    return _listed([*few, f"{more} more"] if more > 0 else few)


def headline(
    comparisons: Sequence[Standings], styles: Mapping[str, AgentStyle], missing: Sequence[str] = ()
) -> Words:
    """Return the one sentence at the top.

    Parameters
    ----------
    comparisons
        One for each environment.
    styles
        The styles of agents, by their labels.
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
    if judged[0].plan:
        return _plan_in_a_line(judged, styles)
    only = {one.label for c in judged for one in c.learners}
    if len(only) == 1:
        return [
            styles[only.pop()],
            " is the only learner here: nothing to compare it with but yardsticks.",
        ]
    if not any(c.decidable for c in judged):
        return _undecided(judged, styles, len(judged) == len(comparisons))
    if all(c.decidable and len(c.learners) > 1 for c in judged):
        if all(_equal([one.label for one in c.learners], c) for c in judged):
            return ["No learner is significantly better than any other."]
        if len(judged) > 1 and len(judged) == len(comparisons):
            found = _everywhere(judged, styles)
            if found:
                return found
    return _one_by_one(judged, styles)


def _plan_in_a_line(comparisons: Sequence[Standings], styles: Mapping[str, AgentStyle]) -> Words:
    """Return how many of the planned comparisons tell their agents apart."""
    tests = [(c, one) for c in comparisons for one in c.contrasts]
    yes = sum(one.significant for c, one in tests if c.decidable)
    baseline = styles.get(comparisons[0].plan.baseline)
    by: Words = [" with ", baseline] if baseline else []
    if not any(c.decidable for c, _ in tests):
        seeds = min((c.paired_seeds for c, _ in tests), default=0)
        return ["The planned comparisons", *by, f" cannot be decided with {seeds} seeds."]
    verb = "is" if yes == 1 else "are"
    return [f"Of {len(tests)} planned comparisons", *by, f", {yes} {verb} significant."]


def _everywhere(comparisons: Sequence[Standings], styles: Mapping[str, AgentStyle]) -> Words:
    """Return what holds in every environment alike; nothing where they differ."""
    groups = [_leaders(c) for c in comparisons]
    first = groups[0]
    alike = all(set(group) == set(first) for group in groups)
    if alike and len(first) <= _MOST_NAMED and all(_equal(first, c) for c in comparisons):
        if len(first) == 1:
            return [styles[first[0]], " leads in every environment."]
        end = " lead in every environment, and no test tells them apart."
        return [*_listed(styles[name] for name in first), end]
    if any(group[0] != first[0] for group in groups):
        return []
    words: Words = [styles[first[0]], " has the best mean in every environment, but no test tells "]
    tied = [c for c, group in zip(comparisons, groups, strict=True) if len(group) > 1]
    for place, comparison in enumerate(tied):
        names = named(_leaders(comparison)[1:], styles)
        where = f" from it on {comparison.setting.environment}"
        words += ["; nor " if place else "", *names, where]
    return [*words, "."]


def _one_by_one(comparisons: Sequence[Standings], styles: Mapping[str, AgentStyle]) -> Words:
    """Return who leads, environment by environment."""
    groups = [set(_leaders(c)) for c in comparisons]
    several = len(groups) > 1
    differs = all(c.decidable for c in comparisons) and not set.intersection(*groups)
    words: Words = ["The best learner depends on the environment: "] if several and differs else []
    for place, comparison in enumerate(comparisons):
        words += ["; " if place else "", *_phrase(comparison, styles, several=several)]
    return [*words, "."]


def _phrase(comparison: Standings, styles: Mapping[str, AgentStyle], *, several: bool) -> Words:
    """Return who leads in one environment."""
    names = _leaders(comparison)
    best, where = styles[names[0]], f" on {comparison.setting.environment}"
    if len(comparison.learners) == 1:
        return [best, f" is the only learner{where}"]
    if not comparison.decidable:
        return [best, f" has the best mean{where}, on too few seeds for a test"]
    if len(names) == 1:
        return [best, f" leads{where}"]
    if len(names) <= _MOST_NAMED and _equal(names, comparison):
        tail = "" if several else ", and no test tells them apart"
        return [*_listed(styles[name] for name in names), f" lead{where}{tail}"]
    tied = named(names[1:], styles)
    return [best, f" has the best mean{where}, but no test tells ", *tied, " from it"]


def _undecided(
    comparisons: Sequence[Standings], styles: Mapping[str, AgentStyle], everywhere: bool
) -> Words:
    """Return who has the best mean where seeds are too few for any test."""
    best = {c.setting.environment: c.learners[0].label for c in comparisons}
    seeds = min(c.paired_seeds for c in comparisons)
    few = f"but {seeds} seed{' is' if seeds == 1 else 's are'} too few to prove it."
    if len(set(best.values())) == 1 and (everywhere or len(best) == 1):
        where = " in every environment" if len(best) > 1 else f" on {next(iter(best))}"
        return [styles[next(iter(best.values()))], f" has the best mean{where}, {few}"]
    words: Words = []
    for place, (environment, label) in enumerate(best.items()):
        words += ["; " if place else "", styles[label], f" has the best mean on {environment}"]
    return [*words, f", {few}"]


def _leaders(comparison: Standings) -> list[str]:
    """Return the best learner and those that no test tells from it."""
    best, *others = (one.label for one in comparison.learners)
    return [best, *(label for label in others if not comparison.apart(best, label))]


def _equal(labels: Sequence[str], comparison: Standings) -> bool:
    """Whether no test tells any of these from any other."""
    return not any(itertools.starmap(comparison.apart, itertools.combinations(labels, 2)))
