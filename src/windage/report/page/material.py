"""All that a page is made of, gathered once: results, comparisons, looks, the oracle's curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.confidence.tuning import optimal_widening, optimal_window
from windage.report.page.comparison import Comparison, compare
from windage.report.page.looks import Look, looks_of
from windage.report.page.results import Results, Setting
from windage.spaces import StateActions

__all__ = ["Material", "Oracle", "gather"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Oracle:
    """rho*_t of a setting at some times, and (W*, eta*) of Theorem 1 there."""

    times: NDArray[np.int64]
    gains: Reals
    tuning: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Material:
    """What charts and words are made of.

    Attributes
    ----------
    results
        The runs, in cells.
    comparisons
        What each setting says.
    looks
        How each agent looks, by its label.
    oracles
        What is optimal at every t, where that is known.
    """

    results: Results
    comparisons: Mapping[Setting, Comparison]
    looks: Mapping[str, Look]
    oracles: Mapping[tuple[str, int], Oracle]

    @property
    def judged(self) -> Sequence[Comparison]:
        """The comparison of the longest horizon of each environment."""
        return [self.comparisons[self.results.longest(e)] for e in self.results.environments]

    def oracle(self, setting: Setting) -> Oracle | None:
        """Return the oracle's curve of a setting."""
        return self.oracles.get((setting.environment, setting.horizon))


def gather(frame: pl.DataFrame, oracles: pl.DataFrame) -> Material:
    """Return the material of a page, from the rows of runs and of oracles."""
    results = Results(frame)
    comparisons = {setting: compare(results, setting) for setting in results.settings}
    curves = {
        (row["environment"], int(row["horizon"])): Oracle(
            np.array(row["t"]),
            np.array(row["optimal_gain"], dtype=np.float64),
            _tuning(row),
        )
        for row in oracles.iter_rows(named=True)
        if row["optimal_gain"]
    }
    return Material(results, comparisons, _looks(results, comparisons), curves)


def _tuning(row: dict[str, Any]) -> tuple[float, float]:
    """Return W* and eta*; they depend on the sizes only through S and the mean of A."""
    S, pairs = int(row["states"]), int(row["pairs"])
    space = StateActions([1] * (S - 1) + [pairs - S + 1])
    known = (space, int(row["horizon"]), row["reward_budget"], row["transition_budget"])
    return optimal_window(*known), optimal_widening(*known)


def _looks(results: Results, comparisons: Mapping[Setting, Comparison]) -> dict[str, Look]:
    """Give every agent its look; of many learners the best are coloured."""
    kinds = {
        kind: [agent.label for agent in results.agents if agent.kind == kind]
        for kind in ("learner", "informed", "floor")
    }
    found = looks_of(kinds["learner"], kinds["informed"], kinds["floor"])
    if any(not look.coloured for look in found):
        ranks: dict[str, list[int]] = {label: [] for label in kinds["learner"]}
        for comparison in comparisons.values():
            for place, one in enumerate(comparison.learners):
                ranks[one.label].append(place)
        best = sorted(kinds["learner"], key=lambda label: float(np.mean(ranks[label])))
        found = looks_of(best, kinds["informed"], kinds["floor"])
    return {look.label: look for look in found}
