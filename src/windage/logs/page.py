"""The page of an inspected log: its findings and figures in one HTML file that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from windage.errors import InputError
from windage.logs.drift_tests import ALPHA, Estimate
from windage.logs.inspection import NO_REGRET, Inspection
from windage.report.figures.style import COLOURS, GREY
from windage.report.html import Section, write_page
from windage.spaces import StateActions

__all__ = ["require_html", "save_page"]

_SMALLEST = 1e-30  # p-values below are drawn there: smaller ones say nothing more
_LINES = 6
_ROWS = 40
_WIDE = (10.0, 3.2)
_UNUSABLE = 200  # unusable lines in the table
_WIDTH = 60  # rem


def save_page(found: Inspection, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    require_html(path)
    log = found.log
    sections = [
        Section("", [text for text in found.words() if text != NO_REGRET],
                warning=("Regret.", NO_REGRET)),
        Section("Where it drifted: half-window tests", [
            "Each dot is a test at the middle of a window; large dots are wide windows. Dots above "
            "the line are changes that chance does not explain, all tests considered together."
        ], figure=_evidence(found)),
        Section("Stationary segments", [
            "The mean reward over time, and where a new segment begins. The reward may also change "
            "because other actions were taken; the change points do not depend on that."
        ], figure=_changes(found)),
        Section("How much it drifted", [
            "The estimates of B_r and B_p, and the same sums over stationary logs with the same "
            "visits, whose outcomes were drawn from one law."
        ], figure=_budgets(found)),
        Section("The fitted model", ["What changes most in it."], figure=_model_figure(found)),
        Section("What was played", [
            "Visits of each pair over time. Where a row is dark, the log knows nothing."
        ], figure=_visits(found)),
    ]  # fmt: skip
    if log.unusable:
        shown = log.unusable[:_UNUSABLE]
        rest = [f"The first {len(shown)} of {log.unusable_count:,}."]
        sections.append(
            Section(
                "Lines that cannot be used",
                rest if log.unusable_count > len(shown) else [],
                columns=["line", "column", "why"],
                rows=[[str(one.line), one.column, one.why] for one in shown],
            )
        )
    sections.append(
        Section("", ["Written by windage. How the tests work, how late they notice a change and "
                     "how often they are wrong is in its documentation, under Past logs."])
    )  # fmt: skip
    write_page(path, f"A log of {log.steps:,} steps, inspected", sections, width=_WIDTH)


def require_html(path: str | Path) -> None:
    """Refuse a file name that is not that of a page."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError("is not a page", field=str(path), fix="name a file that ends in .html")


def _evidence(found: Inspection) -> Figure:
    """Return the evidence of each window for a change in its middle."""
    figure, axes = _figure(*_WIDE)
    tests, ends = found.tests, found.blocks.ends
    for kind, name in enumerate(("rewards", "transitions")):
        here = tests.kind == kind
        steps = ends[np.maximum(tests.block[here] - 1, 0)]
        strength = -np.log10(np.maximum(tests.corrected[here], _SMALLEST))
        axes.scatter(
            steps, strength, s=4 + 2 * tests.half[here], color=COLOURS[kind], label=name, alpha=0.7
        )
    axes.axhline(-np.log10(ALPHA), color="black", lw=1, ls="--", label=f"p = {ALPHA:g}")
    axes.set_ylabel("-log10 of the corrected p")
    axes.set_ylim(bottom=-0.5)
    _timed(axes, found)
    _legend(axes)
    return figure


def _changes(found: Inspection) -> Figure:
    """Return the mean reward over time, and the change points."""
    figure, axes = _figure(*_WIDE)
    blocks, (low, high) = found.blocks, found.log.reward_range
    count = min(blocks.count, 64)
    coarse = blocks.merged(count)
    mean = coarse.sums.sum(axis=1) / np.maximum(coarse.visits.sum(axis=1), 1)
    edges = np.concatenate([[0], coarse.ends])
    axes.stairs(low + (high - low) * mean, edges, color=COLOURS[0], label="reward per step", lw=1.5)
    for k, cut in enumerate(found.segmentation.cuts):
        axes.axvline(cut, color=COLOURS[1], lw=1, ls=":", label="cut" if k == 0 else None)
    axes.set_ylabel("mean reward")
    _timed(axes, found)
    _legend(axes)
    return figure


def _model_figure(found: Inspection) -> Figure:
    """Return the fitted mean rewards, and chances to stay or move, that change most."""
    figure, (left, right) = _figure(10.0, 4.2, columns=2)
    model, space = found.model, found.log.space
    times = np.unique(np.linspace(1, model.horizon, 200).astype(np.int64))
    models = [model.at(int(t)) for t in times]
    rewards = np.array([one.rewards for one in models])
    low, high = found.log.reward_range
    for k, pair in enumerate(_most(np.ptp(rewards, axis=0))):
        style = {"color": COLOURS[k % 7], "lw": 1.5, "label": _short(_named(space, int(pair)))}
        left.plot(times, low + (high - low) * rewards[:, pair], **style)
    left.set_title("mean rewards of the fitted model", loc="left", fontsize=10)
    cells = found.blocks.cell_pair, found.blocks.cell_next
    rows = np.array([_entries(one.transitions, *cells) for one in models])
    for k, cell in enumerate(_most(np.ptp(rows, axis=0))):
        name = f"{_named(space, int(cells[0][cell]))}: to {space.state_name(int(cells[1][cell]))}"
        right.plot(times, rows[:, cell], color=COLOURS[k % 7], lw=1.5, label=_short(name))
    right.set_title("transitions of the fitted model", loc="left", fontsize=10)
    for axes in (left, right):
        _timed(axes, found)
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)
    return figure


def _visits(found: Inspection) -> Figure:
    """Return how often the pairs were played, over time."""
    blocks, space = found.blocks, found.log.space
    count = min(blocks.count, 64)
    visits = blocks.merged(count).visits
    order = np.argsort(-visits.sum(axis=0), kind="stable")[:_ROWS]
    order.sort()
    figure, axes = _figure(10.0, 1.2 + 0.2 * order.size)
    image = axes.imshow(
        np.log10(1 + visits[:, order].T), aspect="auto", cmap="viridis", interpolation="nearest",
        extent=(0, found.log.steps, order.size - 0.5, -0.5),
    )  # fmt: skip
    axes.set_yticks(range(order.size), [_short(_named(space, int(p))) for p in order], fontsize=7)
    bar = figure.colorbar(image, ax=axes, pad=0.01)
    ticks = list(range(int(np.ceil(np.log10(1 + visits.max()))) + 1))
    bar.set_ticks(ticks, labels=[f"{10**k - 1:,}" for k in ticks])
    bar.set_label("visits a block")
    _timed(axes, found)
    return figure


def _budgets(found: Inspection) -> Figure:
    """Return both estimates beside their nulls."""
    figure, panels = _figure(10.0, 2.6, columns=2)
    pairs = (("B_r", found.reward_budget), ("B_p", found.transition_budget))
    for axes, (name, one) in zip(panels, pairs, strict=True):
        _null(axes, name, one)
    return figure


def _null(axes: Any, name: str, one: Estimate) -> None:
    low, high = min(one.null[0], one.value), max(one.null[-1], one.value)
    room = 0.05 * (high - low) or 0.1
    bins = np.linspace(low - room, high + room, 40).tolist()
    axes.hist(one.null, bins=bins, color=GREY, label="stationary logs")
    axes.axvline(one.value, color=COLOURS[1], lw=2, label=f"this log: {one.value:.3g}")
    axes.set_xlabel(f"{name} as estimated")
    axes.set_yticks([])
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.28), ncols=2)


def _figure(width: float, height: float, columns: int = 1) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns)
    for one in np.atleast_1d(axes):
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _timed(axes: Any, found: Inspection) -> None:
    """Put the times of the log under an axis of steps."""
    log = found.log
    axes.set_xlim(0, log.steps)
    beside = len(axes.figure.axes) > 1 and not axes.images
    steps = np.unique(np.linspace(1, log.steps, 3 if beside else 5).astype(np.int64))
    axes.set_xticks(steps, [log.when(int(step)) for step in steps], fontsize=8)
    labels = axes.get_xticklabels()
    if len(labels) > 1:  # inside the panel, so that neighbours do not meet
        labels[0].set_ha("left")
        labels[-1].set_ha("right")


def _legend(axes: Any) -> None:
    axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4)


def _most(ranges: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.argsort(-ranges, kind="stable")[:_LINES]


def _entries(
    rows: object, pairs: NDArray[np.int64], nexts: NDArray[np.int64]
) -> NDArray[np.float64]:
    return np.asarray(rows[pairs, nexts]).ravel()  # type: ignore[index]


def _named(space: StateActions, pair: int) -> str:
    """Return a pair by its names, or by its numbers if it has none."""
    if space.state_names is None and space.action_names is None:
        return space.describe(pair)
    s, a = int(space.state_of[pair]), int(space.action_of[pair])
    return f"{space.state_name(s)}; {space.action_name(s, a)}"


def _short(text: str) -> str:
    return text if len(text) <= 44 else f"{text[:41]}..."
