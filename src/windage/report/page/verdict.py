"""The verdict on one setting in words: who leads, by how much, on how many seeds, what is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from windage.report.page.chart import Table
from windage.report.page.comparison import Comparison, Contrast, Scored
from windage.report.page.looks import Look
from windage.report.page.results import SHARE

__all__ = ["MOST_NAMED", "Words", "evidence", "listed", "named", "p_text", "plain_words", "verdict"]

Words = list[str | Look]
"""Words, with agents among them that a page shows in their colours."""

MOST_NAMED = 4
"""Agents that one sentence names; of others it says how many."""

_LEAST_P = 0.001


def verdict(
    comparison: Comparison, looks: Mapping[str, Look], missing: Sequence[str] = ()
) -> list[Words]:
    """Return the sentences of one setting, each true of its numbers.

    Parameters
    ----------
    comparison
        What the setting says.
    looks
        How agents look, by their labels.
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
    sentences: list[Words] = [_lead(comparison, looks)]
    if comparison.seeds < 2:
        sentences.append(
            ["One seed is one draw of luck: no interval and no test. Run at least six."]
        )
        return sentences + lacking
    rivals = comparison.rivals
    if not rivals:
        sentences.append(["There is no other learner to compare it with."])
    else:
        sentences += _rivalry(comparison, looks)
    floors = [c for c in comparison.contrasts if c.other.cell.agent.kind == "floor"]
    sentences += [_floor(best, contrast, comparison, looks) for contrast in floors[:1]]
    if floors:
        sentences += _near_floor(comparison, floors[0].other, looks)
    if measure is not SHARE:
        sentences.append(
            ["This world has no oracle: agents are compared by reward, and regret is not known."]
        )
    return sentences + lacking


def evidence(comparison: Comparison) -> Table:
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
    unit = "points" if measure is SHARE else "reward a step"
    headers = [
        "difference", f"mean ({unit})", "95 % from", "to", "paired seeds", "seeds won",
        "p (Holm)", "significant",
    ]  # fmt: skip
    return Table(f"The best learner less each other, {comparison.setting.title}", headers, rows)


def plain_words(words: Words) -> str:
    """Return words without colours."""
    return "".join(word if isinstance(word, str) else word.label for word in words)


def p_text(p: float) -> str:
    """Return a p-value as papers write it.

    >>> p_text(1e-9), p_text(0.0312)
    ('p < 0.001', 'p = 0.031')
    """
    return f"p < {_LEAST_P:g}" if p < _LEAST_P else f"p = {p:.2g}"


def _lead(comparison: Comparison, looks: Mapping[str, Look]) -> Words:
    best, measure = comparison.learners[0], comparison.measure
    score = best.score
    between = (
        f" (95 % interval {_range(score.low, score.high, measure.digits)}, {best.cell.n} seeds)"
        if best.cell.n > 1
        else " (one seed)"
    )
    told = best.cell.agent.told
    knows = f", told {' and '.join(told)}," if told else ""
    if measure is SHARE:
        what = f" earns {score.estimate:.{measure.digits}f} % of the oracle's reward{between}"
    else:
        what = f" earns {score.estimate:.{measure.digits}f} a step{between}"
    superlative = ", the most of all learners." if len(comparison.learners) > 1 else "."
    return [looks[best.label], knows, what, superlative]


def _rivalry(comparison: Comparison, looks: Mapping[str, Look]) -> list[Words]:
    rivals = comparison.rivals
    if not comparison.decidable:
        first = rivals[0]
        return [
            ["It is ", f"{_amount(first, comparison)} above ", looks[first.other.label], "."],
            [_too_few(comparison)],
        ]
    tied = [c for c in rivals if not c.significant]
    beaten = [c for c in rivals if c.significant]
    sentences: list[Words] = []
    if tied:
        first = tied[0]
        words: Words = [
            "Its lead over ", looks[first.other.label],
            f" is not significant: {_amount(first, comparison)}",
        ]  # fmt: skip
        if len(tied) > 1:
            others = listed(looks[c.other.label] for c in tied[1 : MOST_NAMED + 1])
            more = len(tied) - 1 - MOST_NAMED
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
                ["It beats ", looks[first.other.label], f" by {_amount(first, comparison)}."]
            )
        else:
            sentences.append(
                [f"It beats {every}; of these ", looks[first.other.label],
                 f" comes nearest, {_amount(first, comparison)} behind."]
            )  # fmt: skip
    return sentences


def _too_few(comparison: Comparison) -> str:
    """Return what a reader should know where no test could have said yes."""
    n, pairs = comparison.paired_seeds, comparison.tests
    return (
        f"{n} seed{'s' if n > 1 else ''} cannot show more: to test {pairs} pair"
        f"{'s' if pairs > 1 else ''} at 5 % takes {comparison.needed_seeds} seeds at least."
    )


def _floor(
    best: Scored, contrast: Contrast, comparison: Comparison, looks: Mapping[str, Look]
) -> Words:
    floor = looks[contrast.other.label]
    unit = "points" if comparison.measure is SHARE else "a step"
    gap = contrast.found.difference.estimate
    text = f"{abs(gap):.{comparison.measure.digits}f} {unit}"
    if comparison.decidable and not contrast.significant:
        return ["No test tells ", looks[best.label], " from ", floor, "."]
    where = "above" if gap > 0 else "below"
    return [looks[best.label], f" is {text} {where} ", floor, ", which learns nothing."]


def _near_floor(comparison: Comparison, floor: Scored, looks: Mapping[str, Look]) -> list[Words]:
    """Return which other learners do no better than acting at random, as far as tests can say."""
    others, level = comparison.learners[1:], floor.score.estimate
    if not comparison.decidable:
        below = [one.label for one in others if one.score.estimate <= level]
        verb = "has a mean" if len(below) == 1 else "have means"
        end: Words = [f" {verb} no higher than ", looks[floor.label], "."]
        return [[*named(below, looks), *end]] if below else []
    apart = [one for one in others if comparison.apart(one.label, floor.label)]
    below = [one.label for one in apart if one.score.estimate < level]
    same = [one.label for one in others if one not in apart]
    sentences: list[Words] = []
    if below:
        verb = "earns" if len(below) == 1 else "earn"
        end = [f" {verb} significantly less than ", looks[floor.label], "."]
        sentences.append([*named(below, looks), *end])
    if same:
        sentences.append(["No test tells ", *named(same, looks), " from ", looks[floor.label], "."])
    return sentences


def _amount(contrast: Contrast, comparison: Comparison) -> str:
    """Return a difference with its interval, its seeds and its test."""
    found, measure = contrast.found, comparison.measure
    unit = "points" if measure is SHARE else "a step"
    d = found.difference
    digits = measure.digits + (abs(d.estimate) < 0.5 * 10.0**-measure.digits)
    test = f"; {p_text(contrast.corrected)}" if comparison.decidable else ""
    if found.n < 2:
        return f"{d.estimate:.{digits}f} {unit} (one paired seed)"
    return (
        f"{d.estimate:.{digits}f} {unit} ({_range(d.low, d.high, digits)}; "
        f"{found.n} paired seeds{test})"
    )


def _range(low: float, high: float, digits: int) -> str:
    return f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "\u2212")


def listed(names: Iterable[str | Look]) -> Words:
    """Return names with commas and an "and"; names with commas of their own with semicolons.

    >>> listed(["a", "b, delta 0.1", "c"])
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


def named(labels: Sequence[str], looks: Mapping[str, Look] | None = None) -> Words:
    """Return a few agents, in their colours where they have some, and how many more there are.

    >>> named(["a", "b", "c", "d", "e", "f"])
    ['a', ', ', 'b', ', ', 'c', ', ', 'd', ' and ', '2 more']
    """
    few: Words = [looks[label] if looks else label for label in labels[:MOST_NAMED]]
    more = len(labels) - MOST_NAMED
    return listed([*few, f"{more} more"] if more > 0 else few)
