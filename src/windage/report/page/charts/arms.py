"""BORL's arms: how likely each window and widening is, block after block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.report.page.chart import (
    DIVERGING,
    SEQUENTIAL,
    Chart,
    Table,
    View,
    axis,
    colorbar,
    rounded,
)
from windage.report.page.data import AgentRuns, Material, Setting

__all__ = ["arms_chart"]

_MOST_BLOCKS = 240  # columns; more are thinner than pixels
_CHOICE = 1.25  # times an equal share
_UNIFORM = 0.02  # ratios that far from 1 are no choice


def arms_chart(material: Material, setting: Setting) -> Chart | None:
    """Return the probabilities of the arms over blocks, for every agent that has arms."""
    cells = [cell for cell in material.results.cells(setting) if cell.has("block_probabilities")]
    if not cells:
        return None
    views, rows, sentences = [], [], []
    for cell in cells:
        likely, windows, widenings = _probabilities(cell)
        views.append(_view(cell, likely, windows, widenings))
        sentences.append(_sentence(cell, likely, windows, widenings))
        rows += [
            [cell.agent.label, int(windows[k]), float(widenings[k]), float(likely[0, k]),
             float(likely[-1, k]), float(likely[:, k].mean())]
            for k in range(windows.size)
        ]  # fmt: skip
    headers = ["agent", "W", "eta", "probability at first", "at the end", "mean"]
    return Chart(
        id="",
        title="BORL's choice of window and widening",
        sentence=" ".join(sentences),
        views=views,
        table=Table(f"Probabilities of arms, means over seeds, {setting.title}", headers, rows),
    )


def _probabilities(
    cell: AgentRuns,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Return probabilities [block, arm], means over seeds, and the arms."""
    runs = [run.to_list() for run in cell.frame["block_probabilities"] if len(run)]
    blocks = min(map(len, runs))
    likely = np.mean([np.array(run[:blocks], dtype=np.float64) for run in runs], axis=0)
    first = cell.frame.filter(cell.frame["arm_window"].list.len() > 0).row(0, named=True)
    return likely, np.array(first["arm_window"]), np.array(first["arm_widening"], dtype=float)


def _view(
    cell: AgentRuns,
    likely: NDArray[np.float64],
    windows: NDArray[np.int64],
    widenings: NDArray[np.float64],
) -> View:
    blocks, arms = likely.shape
    kept = np.unique(np.linspace(0, blocks - 1, _MOST_BLOCKS).round().astype(int))
    ratio = np.log2(np.maximum(likely[kept] * arms, 2.0**-6))
    limit = max(1.0, float(np.abs(ratio).max()))
    starts = [int(k) for k in range(arms) if k == 0 or windows[k] != windows[k - 1]]
    steps = [tick for tick in (-6, -4, -2, -1, 0, 1, 2, 4, 6) if abs(tick) <= limit]
    first = _first_run(cell)
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap", "x": (kept + 1).tolist(), "y": list(range(arms)),
            "z": [rounded(row) for row in ratio.T], "zmin": -limit, "zmax": limit,
            "colorscale": DIVERGING,
            "customdata": [
                [f"W = {windows[k]:,}, η = {widenings[k]:.3g}: {likely[b, k]:.3f}" for b in kept]
                for k in range(arms)
            ],
            "hovertemplate": "block %{x}, %{customdata}<extra></extra>",
            "showscale": not _is_uniform(likely),
            "colorbar": colorbar(
                "times an equal share", tickmode="array", tickvals=steps,
                ticktext=[_times(step) for step in steps],
            ),
        },
        *_draws(np.array(first["block_arm"]), np.array(first["block_reward"], dtype=float), first),
    ]  # fmt: skip
    layout = {
        "height": 80 + max(180, min(7 * arms, 420)),
        "margin": {"l": 70, "r": 16, "t": 14, "b": 52},
        "xaxis": axis("block", range=[0.5, blocks + 0.5], showgrid=False, **_ticks(blocks)),
        "yaxis": axis(
            "window W (within each, η rises)", tickmode="array", tickvals=starts,
            ticktext=[f"{windows[k]:,}" for k in starts], range=[-0.7, arms - 0.3],
            showgrid=False,
        ),
        "showlegend": False,
        "hovermode": "closest",
    }  # fmt: skip
    return View(data, layout, {"margin": {"l": 48, "r": 4, "t": 14, "b": 52}}, cell.agent.label)


def _first_run(cell: AgentRuns) -> dict[str, Any]:
    """Return the run whose draws are shown."""
    return cell.frame.filter(cell.frame["block_arm"].list.len() > 0).row(0, named=True)


def _ticks(blocks: int) -> dict[str, Any]:
    """Return ticks at whole blocks."""
    return {"nticks": 10} if blocks > 10 else {"tick0": 1, "dtick": 1}


def _draws(
    drawn: NDArray[np.int64], paid: NDArray[np.float64], run: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return what one run drew: stronger where the block earned more, a cross if it did not end."""
    ended = np.isfinite(paid)
    blocks = np.arange(drawn.size) + 1
    style: dict[str, Any] = {"size": 11, "line": {"width": 1.3, "color": "@ink"}}
    found = []
    for here, more in (
        (ended, {"color": rounded(paid[ended]), "colorscale": SEQUENTIAL}),
        (~ended, {"color": "@ink", "symbol": "x-thin", "line": {"width": 2.2, "color": "@ink"}}),
    ):
        if here.any():
            found.append(
                {
                    "type": "scatter", "mode": "markers", "name": "drawn",
                    "x": blocks[here].tolist(), "y": drawn[here].tolist(),
                    "marker": style | more, "customdata": [_paid(value) for value in paid[here]],
                    "hovertemplate": f"seed {run['seed']} drew this arm in block "
                    "%{x}%{customdata}<extra></extra>",
                }
            )  # fmt: skip
    return found


def _is_uniform(likely: NDArray[np.float64]) -> bool:
    return bool(np.abs(likely * likely.shape[1] - 1.0).max() < _UNIFORM)


def _paid(value: float) -> str:
    return "; it was not over at T" if np.isnan(value) else f"; it earned {value:.3f} per step"


def _times(step: int) -> str:
    return f"×{2**step}" if step >= 0 else f"÷{2**-step}"


def _sentence(
    cell: AgentRuns,
    likely: NDArray[np.float64],
    windows: NDArray[np.int64],
    widenings: NDArray[np.float64],
) -> str:
    blocks, arms = likely.shape
    label = cell.agent.label
    circles = "Circles are what the first seed drew, stronger where the block earned more."
    if not np.isfinite(np.array(_first_run(cell)["block_reward"], dtype=float)).all():
        circles += " A cross is a block that was not over at T."
    if _is_uniform(likely):
        return (
            f"{label} never leaves equal shares: {blocks} blocks are too few for {arms} arms, so "
            f"which window it plays is luck. {circles}"
        )
    top = int(likely[-1].argmax())
    if likely[-1, top] * arms < _CHOICE:
        return (
            f"{label} hardly prefers any of its {arms} arms after {blocks} blocks: the best has "
            f"{likely[-1, top] * arms:.2f} times an equal share. {circles}"
        )
    return (
        f"{label} ends with W = {windows[top]:,} and η = {widenings[top]:.3g} most likely, "
        f"{likely[-1, top] * arms:.1f} times an equal share of {arms} arms after {blocks} blocks "
        f"(mean over seeds). {circles}"
    )
