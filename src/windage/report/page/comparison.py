"""Agents of one setting compared seed by seed: who leads, who cannot be told from the leader.

Which pairs are tested, and how tests are corrected, is the rule of `windage.study.compare`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windage.report.page.results import Cell, Measure, Results, Setting
from windage.study import stats
from windage.study.compare import corrected
from windage.study.stats import Interval, Paired

__all__ = ["LEVEL", "Comparison", "Contrast", "Scored", "compare", "shared"]

LEVEL = 0.05
"""Differences with a corrected p-value below this are called significant."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A cell and its mean over seeds."""

    cell: Cell
    score: Interval

    @property
    def label(self) -> str:
        """The agent's name."""
        return self.cell.agent.label


@dataclass(frozen=True, eq=False)
class Contrast:
    """One agent less another, on the seeds both have."""

    better: Scored
    other: Scored
    found: Paired
    corrected: float

    @property
    def significant(self) -> bool:
        """Whether the difference is no accident of the seeds, many tests considered."""
        return self.corrected < LEVEL


@dataclass(frozen=True, eq=False)
class Comparison:
    """What one setting says.

    Attributes
    ----------
    setting, measure
        Where, and by what agents are compared.
    ranking
        All agents, the best mean first.
    contrasts
        The best learner less every other agent that was not told the model, in that order.
    corrected
        The p-values of all pairs that were tested, by their labels, corrected by Holm's rule.
    """

    setting: Setting
    measure: Measure
    ranking: Sequence[Scored]
    contrasts: Sequence[Contrast]
    corrected: Mapping[frozenset[str], float]

    @property
    def tests(self) -> int:
        """How many pairs were tested."""
        return len(self.corrected)

    def apart(self, one: str, other: str) -> bool:
        """Whether a test tells two agents apart, given their labels."""
        return self.corrected.get(frozenset((one, other)), 1.0) < LEVEL

    @property
    def learners(self) -> list[Scored]:
        """The learners, the best first."""
        return [one for one in self.ranking if one.cell.agent.kind == "learner"]

    @property
    def rivals(self) -> list[Contrast]:
        """The contrasts of the best learner with other learners."""
        return [one for one in self.contrasts if one.other.cell.agent.kind == "learner"]

    @property
    def seeds(self) -> int:
        """How many seeds the agents have at most."""
        return max(one.cell.n for one in self.ranking)

    @property
    def paired_seeds(self) -> int:
        """How many seeds the best learner shares with the others at least."""
        return min((contrast.found.n for contrast in self.contrasts), default=0)

    @property
    def needed_seeds(self) -> int:
        """From how many seeds on a test can say yes at all: with n the least p-value is 2^(1-n)."""
        return 1 + math.floor(1 + math.log2(max(self.tests, 1) / LEVEL))

    @property
    def decidable(self) -> bool:
        """Whether there are that many."""
        return self.paired_seeds >= self.needed_seeds


def compare(results: Results, setting: Setting) -> Comparison:
    """Return who did how well in a setting."""
    measure = results.measure(setting)
    scored = [Scored(cell, stats.mean(cell.values(measure))) for cell in results.cells(setting)]
    ranking = sorted(scored, key=lambda one: -one.score.estimate)
    judged = [one for one in ranking if one.cell.agent.kind != "informed"]
    tested = corrected({one.label: one.cell.by_seed(measure) for one in judged})
    p_values = {frozenset(pair): p for pair, p in tested.items()}
    best = next((one for one in judged if one.cell.agent.kind == "learner"), None)
    contrasts = []
    for other in judged:
        if best is None or other is best:
            continue
        first, second = shared(best.cell, other.cell, measure)
        if first.size:
            p = p_values.get(frozenset((best.label, other.label)), 1.0)
            contrasts.append(Contrast(best, other, stats.paired(first, second), p))
    return Comparison(setting, measure, ranking, contrasts, p_values)


def shared(
    one: Cell, other: Cell, measure: Measure
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what two agents achieved on the seeds that both have."""
    _, first, second = np.intersect1d(one.seeds, other.seeds, return_indices=True)
    return one.values(measure)[first], other.values(measure)[second]
