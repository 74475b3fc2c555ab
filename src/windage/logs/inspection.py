"""Findings of a log: drift, change points, budgets and a model, in words and as plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from windage.errors import InputError
from windage.logs.counts import BlockCounts, count_blocks
from windage.logs.drift_tests import (
    ALPHA,
    LEAST_STEPS,
    Drift,
    Estimate,
    HalfTests,
    Segmentation,
    budgets,
    finest,
    half_tests,
    segment,
)
from windage.logs.fitting import Fit, fit
from windage.logs.log import Log
from windage.models import DriftingMDP
from windage.validation import as_integer, as_seed

__all__ = ["NO_REGRET", "Inspection", "inspect"]

NO_REGRET = (
    "No regret is printed. A log tells what followed the actions that were taken. What other "
    "actions would have led to, from then on and in all the states they would have led through, is "
    "not in it, and least of all where the environment drifts and a pair was last played long ago. "
    "The fitted model can be simulated and has optimal gains; they are those of the model, not of "
    "the environment the log comes from."
)

_COARSE = 8  # blocks in which budgets are estimated at least: one block cannot differ from itself
_SHOWN = 10
_THIN = 0.9  # share of steps below which an estimate of a budget carries a remark


@dataclass(frozen=True, eq=False)
class Inspection:
    """Findings of a log.

    Attributes
    ----------
    log
        The log.
    blocks
        Its counts in blocks of time, as fine as they were made.
    tests, drifts
        All half-window tests, and the intervals of time in which they find a change.
    segmentation
        The change points.
    fitted
        The fitted drifting model and how fine it is in time.
    reward_budget, transition_budget
        Estimates of B_r and B_p with the null of a stationary log.
    """

    log: Log
    blocks: BlockCounts
    tests: HalfTests
    drifts: list[Drift]
    segmentation: Segmentation
    fitted: Fit
    reward_budget: Estimate
    transition_budget: Estimate

    @property
    def model(self) -> DriftingMDP:
        """The fitted model."""
        return self.fitted.model

    def regret(self) -> NoReturn:
        """Refuse: a log does not hold what other actions would have led to."""
        raise InputError(
            "a log has no regret: what other actions would have led to is not in it",
            field="log",
            fix="simulate agents in inspection.model, and call what they lose the model's",
        )

    def words(self) -> list[str]:
        """Return the findings as paragraphs."""
        return [
            *self._lines(),
            *self._coverage(),
            *self._drift(),
            *self._budgets(),
            self._model_words(),
            NO_REGRET,
        ]

    def data(self) -> dict[str, Any]:
        """Return the findings as plain data, for programs."""
        log, space = self.log, self.log.space
        return {
            "lines": log.lines,
            "steps": log.steps,
            "unusable": log.unusable_count,
            "unusable_lines": [one._asdict() for one in log.unusable],
            "unusable_reasons": [
                {"lines": one.lines, "first": one.first._asdict()} for one in log.reasons
            ],
            "left_out": log.left_out,
            "gaps": [gap._asdict() for gap in log.gaps()[:1000]],
            "breaks": log.breaks(),
            "states": list(log.state_labels),
            "pairs": space.n_pairs,
            "unseen": [[log.state_labels[s], a] for s, a in log.unseen()[:1000]],
            "rewards_seen": [float(log.rewards.min()), float(log.rewards.max())],
            "reward_range": list(log.reward_range),
            "drifts": [
                drift._asdict() | {"at": log.when(drift.step), "of": space.describe(drift.pair)}
                for drift in self.drifts
            ],
            "tests": int(self.tests.p_value.size),
            "change_points": [{"step": cut, "at": log.when(cut)} for cut in self.segmentation.cuts],
            "budgets": {
                name: {
                    "estimate": one.value,
                    "null_mean": one.null_mean,
                    "null_95": one.null_high,
                    "p_value": one.p_value,
                    "beyond_noise": one.beyond_noise,
                    "blocks": one.blocks,
                    "covered": one.covered,
                }
                for name, one in (("B_r", self.reward_budget), ("B_p", self.transition_budget))
            },
            "model_blocks": {
                "rewards": self.fitted.reward.blocks,
                "transitions": self.fitted.transition.blocks,
            },
            "notes": log.notes,
            "regret": None,
        }

    def save(self, path: str | Path) -> None:
        """Write the page: one HTML file that opens offline, whole or not at all."""
        from windage.logs.page import save_page

        save_page(self, path)

    def _lines(self) -> list[str]:
        log = self.log
        first, last = log.when(1), log.when(log.steps)
        found = [
            f"{log.steps:,} of {log.lines:,} lines can be used, from {first} to {last}: "
            f"{log.space.n_states} states, {log.space.n_pairs} pairs of state and action, "
            f"{self._rewards()}."
        ]
        if log.unusable_count:
            why = "; ".join(map(str, log.reasons))
            found.append(f"{log.unusable_count:,} lines cannot be used: {why}.")
        if log.left_out:
            found.append(
                f"{log.left_out:,} steps are left out: they lead to states without an action in "
                "the log."
            )
        return [*found, *log.notes]

    def _rewards(self) -> str:
        seen, span = (self.log.rewards.min(), self.log.rewards.max()), self.log.reward_range
        words = f"rewards from {seen[0]:g} to {seen[1]:g}"
        if seen[0] == seen[1]:
            words = f"all rewards {seen[0]:g}"
        return words if seen == span else f"{words} in a range from {span[0]:g} to {span[1]:g}"

    def _coverage(self) -> list[str]:
        log, found = self.log, []
        if gaps := log.gaps():
            some = [f"{g.missing:,.6g} step(s) between {g.after} and {g.before}" for g in gaps]
            more = f", and {len(gaps) - _SHOWN:,} more" if len(gaps) > _SHOWN else ""
            found.append(f"Time is missing: {'; '.join(some[:_SHOWN])}{more}.")
        if broken := log.breaks():
            found.append(
                f"{broken:,} times a step begins in another state than the one before led to."
            )
        if unseen := log.unseen():
            names = [f"{label!r} in {log.state_labels[s]!r}" for s, label in unseen[:_SHOWN]]
            more = f", and {len(unseen) - _SHOWN:,} more" if len(unseen) > _SHOWN else ""
            found.append(
                f"{len(unseen):,} pairs were never played: {', '.join(names)}{more}. The model "
                "does not offer them."
            )
        return found

    def _drift(self) -> list[str]:
        log, found = self.log, []
        tests = f"{self.tests.p_value.size} half-window tests, Holm-corrected at {ALPHA:g}"
        if not self.drifts:
            found.append(f"No drift is found ({tests}).")
        for drift in self.drifts:
            what = "mean rewards" if drift.kind == "reward" else "transitions"
            span = f"from {log.when(drift.first)} to {log.when(drift.last)}, " * (
                drift.first != drift.last
            )
            found.append(
                f"Drift of {what}: {span}most clearly at {log.when(drift.step)} (step "
                f"{drift.step:,}), p = {drift.p_value:.2g} ({tests}); most of it in "
                f"{log.space.describe(drift.pair)}."
            )
        cuts = self.segmentation.cuts
        if cuts:
            places = ", ".join(log.when(cut) for cut in cuts[:_SHOWN])
            more = f", and {len(cuts) - _SHOWN} more" if len(cuts) > _SHOWN else ""
            found.append(
                f"{len(cuts) + 1} stationary segments fit best; a new one begins at {places}{more}."
            )
        else:
            found.append("A single stationary segment fits best.")
        return found

    def _budgets(self) -> list[str]:
        found = []
        for name, one in (("B_r", self.reward_budget), ("B_p", self.transition_budget)):
            thin = (
                f" Only {one.covered:.0%} of the steps belong to pairs that are met often enough "
                "to be compared: drift that is faster than these blocks is not in it."
            )
            found.append(
                f"{name}, estimated in {one.blocks} blocks of time: {one.value:.3g}. A "
                f"stationary environment would show {one.null_mean:.3g} on average and "
                f"{one.null_high:.3g} one time in twenty (p = {one.p_value:.2g}); beyond noise: "
                f"{one.beyond_noise:.3g}.{thin if one.covered < _THIN else ''}"
            )
        return found

    def _model_words(self) -> str:
        K, log = self.fitted.blocks, self.log
        budget = self.model.budgets()
        holes = self.model.disconnections()
        reach = (
            " It does not communicate: no policy leads from "
            f"{log.space.describe_state(holes[0].origin)} to "
            f"{log.space.describe_state(holes[0].target)}."
            if holes
            else ""
        )
        if K == 1:
            return (
                "The fitted model is stationary: finer models predict held-out steps no "
                f"better.{reach}"
            )
        blocks = [
            f"{name} drift through {one.blocks} blocks of time" if one.blocks > 1 else
            f"{name} are stationary"
            for name, one in (
                ("rewards", self.fitted.reward), ("transitions", self.fitted.transition)
            )
        ]  # fmt: skip
        return (
            f"In the fitted model {' and '.join(blocks)}, which predicts held-out steps best; "
            f"its own B_r is {budget.reward:.3g} and its B_p {budget.transition:.3g}, "
            f"estimation noise included.{reach}"
        )


def inspect(
    log: Log, seed: int, draws: int, progress: Callable[[str], None] | None = None
) -> Inspection:
    """Return the findings of a log."""
    as_seed(seed)
    count = as_integer(draws, "draws", low=1, high=1_000_000)
    if log.steps < LEAST_STEPS:
        raise InputError(
            f"{log.steps} step(s) can be used, too few to compare the two halves of a window",
            field="log",
            fix=f"pass at least {LEAST_STEPS} steps; some hundred for every pair of state and "
            "action tell more",
        )
    tell = progress or (lambda _: None)
    tell("counting")
    blocks = count_blocks(log)
    tell("testing halves of windows")
    tests = half_tests(blocks)
    tell("cutting into segments")
    segmentation = segment(blocks, seed)
    tell("fitting a model")
    fitted = fit(log, counted=blocks)
    tell("drawing stationary logs")
    fine = [
        finest(blocks, max(choice.blocks, _COARSE)) for choice in (fitted.reward, fitted.transition)
    ]
    reward = budgets(blocks.merged(fine[0]), seed, count)[0]
    transition = budgets(blocks.merged(fine[1]), seed, count)[1]
    return Inspection(
        log=log,
        blocks=blocks,
        tests=tests,
        drifts=tests.drifts(blocks.ends),
        segmentation=segmentation,
        fitted=fitted,
        reward_budget=reward,
        transition_budget=transition,
    )
