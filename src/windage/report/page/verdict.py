"""The verdict in words: who leads, by how much, on how many seeds, and what cannot be said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from windage.report.page.chart import Table
from windage.report.page.comparison import Comparison, Contrast, Scored
from windage.report.page.looks import Look
from windage.report.page.results import SHARE

__all__ = ["Words", "evidence", "headline", "p_text", "plain_words", "verdict"]

Words = list[str | Look]
"""Words, with agents among them that a page shows in their colours."""

_MOST_NAMED = 4
_LEAST_P = 0.001


def headline(comparisons: Sequence[Comparison], looks: Mapping[str, Look]) -> Words:
    """Return the one sentence at the top."""
    if not comparisons:
        return ["Nothing has been run yet."]
    leaders = {c.setting.environment: _leaders(c) for c in comparisons}
    if not any(leaders.values()):
        return ["No learner took part: these are yardsticks only."]
    if any(c.seeds < 2 for c in comparisons):
        return ["One seed each: the numbers below are single runs, and no difference is proved."]
    several = len(leaders) > 1
    common = [
        name
        for name in next(iter(leaders.values()))
        if all(name in few for few in leaders.values())
    ]
    if all(len(c.learners) < 2 for c in comparisons):
        only = comparisons[0].learners[0].label if comparisons[0].learners else ""
        return [
            looks[only],
            " is the only learner here: nothing to compare it with but yardsticks.",
        ]
    if not all(c.decidable for c in comparisons):
        return _undecided(comparisons, looks)
    if all(
        len(few) == len(c.learners) for few, c in zip(leaders.values(), comparisons, strict=True)
    ):
        return ["No learner is significantly better than any other."]
    if common and all(len(few) <= _MOST_NAMED for few in leaders.values()):
        where = " in every environment" if several else f" on {next(iter(leaders))}"
        verb = " leads" if len(common) == 1 else " lead"
        tied = "" if len(common) == 1 else ", and no test tells them apart"
        return [*_listed(looks[name] for name in common), f"{verb}{where}{tied}."]
    words: Words = ["The best learner depends on the world: "]
    for place, (environment, few) in enumerate(leaders.items()):
        names = [looks[name] for name in few[:_MOST_NAMED]]
        more = len(few) - len(names)
        listed = _listed([*names, f"{more} more"] if more else names)
        words += [*listed, f" on {environment}", "; " if place < len(leaders) - 1 else "."]
    return words


def _undecided(comparisons: Sequence[Comparison], looks: Mapping[str, Look]) -> Words:
    """Return who has the best mean where seeds are too few for any test."""
    best = {c.setting.environment: c.learners[0].label for c in comparisons if c.learners}
    seeds = min(c.paired_seeds for c in comparisons)
    few = f"but {seeds} seed{'s are' if seeds > 1 else ' is'} too few to prove it."
    if len(set(best.values())) == 1:
        where = " in every environment" if len(best) > 1 else f" on {next(iter(best))}"
        return [looks[next(iter(best.values()))], f" has the best mean{where}, {few}"]
    words: Words = []
    for place, (environment, label) in enumerate(best.items()):
        words += ["; " if place else "", looks[label], f" has the best mean on {environment}"]
    return [*words, f", {few}"]


def verdict(comparison: Comparison, looks: Mapping[str, Look]) -> list[Words]:
    """Return the sentences of one setting, each true of its numbers."""
    learners, measure = comparison.learners, comparison.measure
    if not learners:
        return [["No learner took part."]]
    best = learners[0]
    sentences: list[Words] = [_lead(comparison, looks)]
    if comparison.seeds < 2:
        sentences.append(
            ["One seed is one draw of luck: no interval and no test. Run at least six."]
        )
        return sentences
    rivals = comparison.rivals
    if not rivals:
        sentences.append(["There is no other learner to compare it with."])
    else:
        sentences += _rivalry(comparison, looks)
    floors = [c for c in comparison.contrasts if c.other.cell.agent.kind == "floor"]
    sentences += [_floor(best, contrast, comparison, looks) for contrast in floors[:1]]
    below = _not_above_floor(comparison)
    if below:
        names = _listed(looks[one.label] for one in below[:_MOST_NAMED])
        more = f" (and {len(below) - _MOST_NAMED} more)" if len(below) > _MOST_NAMED else ""
        verb = "earns" if len(below) == 1 else "earn"
        sentences.append([*names, f"{more} {verb} no more than acting at random."])
    if measure is not SHARE:
        sentences.append(
            ["This world has no oracle: agents are compared by reward, and regret is not known."]
        )
    return sentences


def evidence(comparison: Comparison) -> Table:
    """Return the leader less each of the others, with intervals and tests."""
    measure = comparison.measure
    rows: list[list[str | float | int | None]] = []
    for contrast in comparison.contrasts:
        found = contrast.found
        rows.append(
            [
                f"{contrast.better.label} − {contrast.other.label}",
                found.difference.estimate,
                found.difference.low,
                found.difference.high,
                found.n,
                found.wins,
                contrast.corrected,
                "yes" if contrast.significant else "no",
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


def _leaders(comparison: Comparison) -> list[str]:
    """Return the best learner and those that no test tells from it."""
    if not comparison.learners:
        return []
    tied = [c.other.label for c in comparison.rivals if not c.significant]
    return [comparison.learners[0].label, *tied]


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
            others = _listed(looks[c.other.label] for c in tied[1 : _MOST_NAMED + 1])
            more = len(tied) - 1 - _MOST_NAMED
            tail = f" and {more} more" if more > 0 else ""
            words += [". Neither is that over ", *others, tail]
        sentences.append([*words, "."])
    if beaten:
        first = beaten[0]
        every = "every other learner" if not tied else f"{len(beaten)} of {len(rivals)} others"
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


def _not_above_floor(comparison: Comparison) -> list[Scored]:
    """Return the learners whose mean is not above that of acting at random."""
    floors = [one for one in comparison.ranking if one.cell.agent.kind == "floor"]
    if not floors:
        return []
    level = max(one.score.estimate for one in floors)
    return [one for one in comparison.learners[1:] if one.score.estimate <= level]


def _amount(contrast: Contrast, comparison: Comparison) -> str:
    """Return a difference with its interval, its seeds and its test."""
    found, measure = contrast.found, comparison.measure
    unit = "points" if measure is SHARE else "a step"
    d = found.difference
    digits = measure.digits + (abs(d.estimate) < 0.5 * 10.0**-measure.digits)
    test = f"; {p_text(contrast.corrected)}" if comparison.decidable else ""
    return (
        f"{d.estimate:.{digits}f} {unit} ({_range(d.low, d.high, digits)}; "
        f"{found.n} paired seed{'s' if found.n > 1 else ''}{test})"
    )


def _range(low: float, high: float, digits: int) -> str:
    return f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "\u2212")


def _listed(names: Iterable[str | Look]) -> Words:
    """Return names with commas and an "and"."""
    found = list(names)
    words: Words = []
    for place, name in enumerate(found):
        if place:
            words.append(" and " if place == len(found) - 1 else ", ")
        words.append(name)
    return words
