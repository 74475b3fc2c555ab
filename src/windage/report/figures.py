"""Figures of drifting models: what moves, how much, and what an agent meets on its way.

Figures are plain `matplotlib.figure.Figure` objects: no window opens, nothing global changes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from windage.drift import DriftingMDP
from windage.errors import InputError
from windage.report.paths import literal, path_panels, short_state_names
from windage.report.traces import (
    BINS,
    Curves,
    Times,
    accumulated,
    envelope,
    is_crowded,
    kernel_curves,
    reward_curves,
    sample_times,
)

if TYPE_CHECKING:
    from windage.simulate import Run

__all__ = ["COLOURS", "drift_figure", "picture_kind", "save_figure"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours for every eye, without the yellow that white paper swallows."""

_UNDATED: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}  # what matplotlib would write the time of day into
_GREY = "#B8B8B8"
_MOST_CURVES = 60
_STYLES = ("-", "--")  # colours are not all that tells neighbours apart


def drift_figure(
    model: DriftingMDP,
    run: Run | None = None,
    title: str | None = None,
    *,
    agent: str | None = None,
) -> Figure:
    """Return the picture of a model: rewards, transitions and budgets over time, and a path.

    Parameters
    ----------
    model
        What drifts.
    run
        A run in that model: adds the time spent in each state and the reward collected.
    title
        What to call the model; its id if not given.
    agent
        Who made the run.

    Examples
    --------
    >>> import windage as wd
    >>> figure = drift_figure(wd.envs.make("riverswim", horizon=400))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Mean rewards', 'Transition probabilities', 'Variation budgets']
    """
    heights = [2.5, 2.5, 1.8] + ([2.0, 1.6] if run is not None else [])
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    figure = Figure(figsize=(12, sum(heights) + 0.8), dpi=100, layout=layout)
    panels: list[Axes] = list(
        figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    )
    times = sample_times(model)
    budgets = model.budgets()
    crowded = is_crowded(times)
    coarse = f" (their range in every {model.horizon // BINS:,} steps)" if crowded else ""
    curves = reward_curves(model, times, _MOST_CURVES)
    lines = _curve_panel(panels[0], model, times, curves, _pair_label)
    _describe(panels[0], "Mean rewards" + coarse, "mean reward", lines, "state, action")
    curves = kernel_curves(model, times, _MOST_CURVES)
    lines = _curve_panel(panels[1], model, times, curves, _move_label)
    _describe(
        panels[1], "Transition probabilities" + coarse, "probability", lines, "s -action-> s'"
    )
    _budget_panel(panels[2], model, times)
    if run is not None:
        path_panels(panels[3], panels[4], model, run, agent)
    for panel in panels:
        if not panel.collections:  # a grid would cut through the heat map
            panel.grid(axis="x", color="#E4E4E4", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    _time_axis(panels[-1], model.horizon)
    sizes = {"T": model.horizon, "$B_r$": budgets.reward, "$B_p$": budgets.transition}
    facts = [f"{name} = {_number(size)}" for name, size in sizes.items()]
    figure.suptitle(
        "    ".join([_plain(title or model.name or "model", longest=60), *facts]), fontsize=15
    )
    return figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png, .svg or .pdf: all of it or nothing, the same bytes every time.

    The folder is made if there is none.
    """
    target = Path(path)
    kind = picture_kind(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    except OSError as err:
        raise _unwritable(target, err) from None
    try:
        with os.fdopen(handle, "wb") as file, mpl.rc_context({"svg.hashsalt": "windage"}):
            figure.savefig(file, format=kind, metadata=_UNDATED[kind])
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except OSError as err:
        raise _unwritable(target, err) from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def picture_kind(path: str | Path) -> str:
    """Return "png", "svg" or "pdf" as the name of the file asks, or refuse another.

    >>> picture_kind("out/river.SVG")
    'svg'
    """
    kind = Path(path).suffix[1:].lower()
    if kind not in _UNDATED:
        raise InputError(
            f"{kind!r} is no kind of picture" if kind else "does not say what kind of picture",
            field=str(path),
            fix="name a file that ends in .png, .svg or .pdf",
        )
    return kind


def _curve_panel(
    panel: Axes,
    model: DriftingMDP,
    times: Times,
    curves: Curves,
    label: Callable[[DriftingMDP, int], str],
) -> list[Line2D]:
    """Draw the curves that move most in colour, the others in grey; return what to name."""
    lines: list[Line2D] = []
    shown = min(curves.moving, len(COLOURS))
    opacity = 0.5 if is_crowded(times) else 1.0  # blocks must not hide each other
    for curve in range(curves.entries.size):
        x, y = _steps(*envelope(times, curves.values[:, [curve]]), model.horizon)
        if curve >= shown:
            panel.plot(x, y, drawstyle="steps-post", color=_GREY, linewidth=0.8, zorder=2)
            continue
        alike = int(curves.alike[curve]) - 1
        text = label(model, int(curves.entries[curve])) + (f"  (+{alike} alike)" if alike else "")
        lines += panel.plot(
            x, y, drawstyle="steps-post", color=COLOURS[curve], linestyle=_STYLES[curve % 2],
            linewidth=1.8, zorder=3, alpha=opacity, label=text,
        )  # fmt: skip
    rest = curves.total - int(curves.alike[:shown].sum())
    if rest:
        drawn = int(curves.alike[shown:].sum())
        still = curves.moving == shown < curves.entries.size
        kind = "constant" if still else "others" if rest > 1 else "other"
        more = f", {drawn:,} drawn" if drawn < rest else ""
        lines.append(Line2D([], [], color=_GREY, linewidth=0.8, label=f"{rest:,} {kind}{more}"))
    if not curves.moving:
        panel.set_ylim(-0.05, 1.05)
        _note(panel, "no drift")
    return lines


def _budget_panel(panel: Axes, model: DriftingMDP, times: Times) -> None:
    totals = accumulated(model, times)
    names = ("$B_r$ (rewards, max norm)", "$B_p$ (transitions, L1)")
    lines = []
    for total, name, colour, style in zip(totals, names, COLOURS, _STYLES, strict=False):
        x, y = _steps(*envelope(times, total[:, None]), model.horizon)
        lines += panel.plot(
            x, y, drawstyle="steps-post", color=colour, linestyle=style, linewidth=1.8, label=name
        )
    if totals[0][-1] == totals[1][-1] == 0:
        panel.set_ylim(-0.05, 1)
        _note(panel, "no drift")
    else:
        panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda size, _: _number(size)))
    _describe(panel, "Variation budgets", "sum of steps so far", lines)


def _steps(times: Times, values: NDArray[np.float64], horizon: int) -> tuple[Any, Any]:
    """Return the course of one curve; what acts at t holds from t to t + 1."""
    return np.append(times, horizon + 1), np.append(values[:, 0], values[-1, 0])


def _time_axis(panel: Axes, horizon: int) -> None:
    panel.set_xlim(1, horizon + 1)
    panel.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda t, _: f"{t:,.0f}"))
    panel.set_xlabel("time t (steps)")


def _describe(panel: Axes, title: str, unit: str, lines: list[Line2D], key: str = "") -> None:
    panel.set_title(title, loc="left")
    panel.set_ylabel(unit)
    panel.legend(
        handles=lines, title=key or None, loc="upper left", bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0, frameon=False, fontsize=10, handlelength=2.4, alignment="left",
    )  # fmt: skip


def _note(panel: Axes, text: str) -> None:
    panel.text(
        0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", fontsize=13,
        color="#505050", bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85},
    )  # fmt: skip


def _pair_label(model: DriftingMDP, pair: int) -> str:
    s, a = int(model.space.state_of[pair]), int(model.space.action_of[pair])
    return f"{_plain(model.space.state_name(s))}, {_plain(model.space.action_name(s, a))}"


def _move_label(model: DriftingMDP, entry: int) -> str:
    pair, after = divmod(entry, model.space.n_states)
    s, a = int(model.space.state_of[pair]), int(model.space.action_of[pair])
    states = short_state_names(model.space)
    return f"{states[s]} -{_plain(model.space.action_name(s, a))}-> {states[after]}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _plain(name: str, longest: int = 22) -> str:
    return literal(name if len(name) <= longest else name[: longest - 1] + "…")


def _unwritable(target: Path, err: OSError) -> InputError:
    why = "its folder is a file" if isinstance(err, FileExistsError) else err.strerror
    return InputError(
        f"cannot be written ({why})",
        field=str(target),
        fix="name a file in a folder you may write to",
    )
