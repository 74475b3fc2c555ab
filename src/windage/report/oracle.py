"""The figure of what is true of a drifting model: optimal gains, diameters, optimal policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from windage.models import DriftingMDP
from windage.report.bands import bands_of, draw_bands, label_bands
from windage.report.panels import (
    COLOURS,
    describe,
    frame,
    note,
    number,
    page,
    plain,
    steps,
    upwards,
)
from windage.report.traces import envelope, sample_times
from windage.report.truth import Truth, truth_of

if TYPE_CHECKING:
    from windage.simulate import Run

__all__ = ["bin_means", "oracle_figure", "share"]

Reals = NDArray[np.float64]

_BINS = 60
_VISIBLE = 2e-3  # of the height of the panel: less than half a pixel
_DECADES = 30.0  # a larger ratio of diameters asks for a logarithmic scale
_RUNS = (("#E69F00", "-"), ("#000000", "--"), ("#009E73", "-."), ("#CC79A7", ":"))


def oracle_figure(
    model: DriftingMDP,
    truth: Truth | None = None,
    runs: Mapping[str, Run] | None = None,
    title: str | None = None,
) -> Figure:
    """Return the picture of what is true of a model, and what agents get of it.

    Parameters
    ----------
    model
        What drifts.
    truth
        What `truth_of(model)` returns; computed if not given.
    runs
        Runs in that model by the names of their agents: adds what they earn.
    title
        What to call the model; its id if not given.

    Examples
    --------
    >>> import windage as wd
    >>> figure = oracle_figure(wd.envs.make("riverswim", horizon=400))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Optimal gain', 'Diameter', 'Optimal policy: 3 changes seen']
    """
    known = truth or truth_of(model)
    bands = bands_of(model, known.policies)
    figure, panels = page([2.8, 1.8, bands.height])
    gains, diameters, policies = panels
    _gain_panel(gains, model, known, runs or {})
    _diameter_panel(diameters, model, known)
    draw_bands(policies, model, known.policies, bands)
    facts = {
        r"mean $\rho^*_t$": number(known.mean_gain),
        "$D_{max}$": _diameter(known.largest.lower),
    }
    frame(figure, panels, model, title, facts, filled=policies)
    label_bands(figure, policies, model, known.policies, bands)
    return figure


def share(run: Run, truth: Truth) -> float:
    """Return what share of the sum of rho*_t a run over the whole horizon earned, noise apart.

    NaN if there is nothing to earn.
    """
    return run.total_mean_reward / truth.gain_sum if truth.gain_sum > 0 else float("nan")


def bin_means(run: Run, bins: int = _BINS) -> tuple[Reals, Reals]:
    """Return the edges of stretches of time and the mean reward of each, noise apart.

    The edges are recorded times, so that the means are exact however coarse the record is.
    """
    times = np.concatenate([[run.first - 1], run.times])
    sums = np.concatenate([[0.0], run.cumulative_mean_reward])
    if times[-1] < run.last:
        times, sums = np.append(times, run.last), np.append(sums, run.total_mean_reward)
    kept = np.unique(np.linspace(0, times.size - 1, bins + 1).astype(np.int64))
    return times[kept] + 1.0, np.diff(sums[kept]) / np.diff(times[kept])


def _gain_panel(panel: Axes, model: DriftingMDP, truth: Truth, runs: Mapping[str, Run]) -> None:
    times = sample_times(model)
    values, errors = truth.gains.evaluate(times)
    at, seen = envelope(times, np.stack([values, values - errors, values + errors], axis=1))
    lines: list[Line2D | Patch] = []
    top, low = float(values.max()), min(0.0, float(values.min()))
    for (name, run), (colour, style) in zip(runs.items(), _RUNS, strict=False):
        edges, means = bin_means(run)
        label = f"{plain(name)} agent: {_share(run, truth)}"
        lines += panel.plot(
            edges, np.append(means, means[-1]), drawstyle="steps-post", color=colour,
            linestyle=style, linewidth=1.4, zorder=3, label=label,
        )  # fmt: skip
        top, low = max(top, float(means.max())), min(low, float(means.min()))
    x, y = steps(at, seen[:, 0], model.horizon)
    curve = panel.plot(
        x, y, drawstyle="steps-post", color=COLOURS[0], linewidth=2.2,
        label=rf"$\rho^*_t$, certified to ±{upwards(truth.gains.error)}",
    )  # fmt: skip
    band: list[Patch] = []
    height = 1.08 * (top - low) or 1.0
    if errors.max() > _VISIBLE * height:
        low_side = steps(at, seen[:, 1], model.horizon)[1]
        high_side = steps(at, seen[:, 2], model.horizon)[1]
        panel.fill_between(
            x, low_side, high_side, step="post", color=COLOURS[5], alpha=0.4, linewidth=0
        )
        band = [Patch(color=COLOURS[5], alpha=0.4, label="certified bracket")]
    panel.set_ylim(low, low + height)
    each = f" (means of {model.horizon / _BINS:,.0f} steps)" if model.horizon >= 2 * _BINS else ""
    heading = f"Optimal gain, and what agents get of it{each}" if runs else "Optimal gain"
    describe(panel, heading, "reward a step", [*curve, *band, *lines])


def _diameter_panel(panel: Axes, model: DriftingMDP, truth: Truth) -> None:
    largest = truth.largest
    lines: list[Line2D | Patch] = []
    if model.space.n_states == 1:
        panel.set_ylim(-0.05, 1)
        panel.set_yticks([0])
        note(panel, "one state: D = 0")
    elif np.isfinite(truth.diameters).any():
        drawn = np.where(np.isfinite(truth.diameters), truth.diameters, np.nan)
        everywhere = truth.times.size == model.horizon
        x, y = steps(truth.times, drawn, model.horizon)
        lines += panel.plot(
            x, y, drawstyle="steps-post" if everywhere else "default", color=COLOURS[0],
            linewidth=1.8, label="$D_t$",
        )  # fmt: skip
        low, top = float(np.nanmin(drawn)), float(np.nanmax(drawn))
        if np.isfinite(largest.lower):
            where = f"largest: {number(largest.lower)} at t = {largest.t:,}"
            lines += panel.plot(
                [largest.t], [largest.lower], linestyle="none", marker="o", color=COLOURS[1],
                clip_on=False, zorder=4, label=where,
            )  # fmt: skip
            top = max(top, largest.lower)
        _diameter_scale(panel, low, top)
    else:
        panel.set_yticks([])
        if np.isnan(largest.lower):
            note(panel, "too long for floating point")
    if truth.holes:
        lines.append(_mark_holes(panel, model, truth))
    describe(panel, "Diameter", "steps", lines)


def _diameter_scale(panel: Axes, low: float, top: float) -> None:
    if top > _DECADES * low:
        panel.set_yscale("log")
        panel.set_ylim(0.7 * low, 1.5 * top)
        if top < 1000 * low:  # powers of ten alone would be too few numbers
            panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.set_ylim(0.0, 1.12 * top)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda size, _: number(size)))


def _mark_holes(panel: Axes, model: DriftingMDP, truth: Truth) -> Patch:
    """Mark the times at which the model does not communicate; a single step must show, too."""
    look: dict[str, Any] = {"facecolor": "#E8E8E8", "edgecolor": "#808080", "hatch": "////"}
    for hole in truth.holes:
        panel.axvspan(hole.first, hole.last + 1, linewidth=0.8, **look)
    lost = sum(hole.last - hole.first + 1 for hole in truth.holes)
    words = "at every t" if lost == model.horizon else f"at {lost:,} of {model.horizon:,} t"
    return Patch(label=rf"$D = \infty$ {words}", linewidth=0.8, **look)


def _share(run: Run, truth: Truth) -> str:
    found = share(run, truth)
    return "nothing to earn" if np.isnan(found) else rf"{found:.1%} of $\sum\rho^*_t$"


def _diameter(value: float) -> str:
    if np.isnan(value):
        return "not known"
    return r"$\infty$" if np.isinf(value) else number(value)
