"""The figure of how fast a world forgets, as a multi-scale learner has found out."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, PercentFormatter
from numpy.typing import NDArray

from windage.agents.multiscale.explanation import Forgetting
from windage.errors import InputError
from windage.report.panels import COLOURS, GREY, describe, number, page, plain, steps, time_axis

__all__ = ["forgetting_figure"]

_KINDS = {"rewards": COLOURS[1], "transitions": COLOURS[0]}


def forgetting_figure(told: Forgetting, horizon: int, title: str | None = None) -> Figure:
    """Return the picture of the weights over windows through time.

    Above, how many of the last steps count, for rewards and for transitions. Below, what each
    window has counted for each of the two: dark is short memory, light is long.

    Parameters
    ----------
    told
        What `agent.forgetting()` returned.
    horizon
        T, the end of the time axis.
    title
        What to call the world.

    Examples
    --------
    >>> import windage as wd
    >>> world = wd.envs.make("riverswim", horizon=2000)
    >>> agent = wd.MultiScale(world.space, horizon=2000)
    >>> run = wd.run(world, agent, seed=0)
    >>> figure = forgetting_figure(agent.forgetting(), 2000, "riverswim")
    >>> [axes.get_title(loc="left") for axes in figure.axes][:2]
    ['How many of the last steps count', 'Weight of each window: rewards']
    """
    if told.times.size == 0:
        raise InputError(
            "the agent has not acted yet", field="told", fix="run it before looking back"
        )
    figure, panels = page([2.6, 2.0, 2.0])
    _memory(panels[0], told, horizon)
    for panel, kind in zip(panels[1:], _KINDS, strict=True):
        _weights(panel, told, kind, horizon)
    time_axis(panels, horizon)
    for panel in panels[1:]:
        panel.grid(visible=False)
    head = [plain(title or "forgetting", longest=50), f"T = {number(horizon)}"]
    figure.suptitle("    ".join(head), fontsize=15)
    return figure


def _memory(panel: Axes, told: Forgetting, horizon: int) -> None:
    handles = []
    for kind, colour in _KINDS.items():
        times, memory = steps(told.times, told.mean(kind), horizon)
        panel.plot(times, memory, color=colour, drawstyle="steps-post", linewidth=1.8)
        handles.append(Line2D([], [], color=colour, label=kind))
    course = np.linspace(1.0, horizon, 400)
    panel.plot(course, course, color=GREY, linestyle=":", linewidth=1.2)
    handles.append(Line2D([], [], color=GREY, linestyle=":", label="all so far"))
    panel.set_yscale("log")
    panel.set_ylim(bottom=max(1.0, 0.5 * told.windows[0]), top=1.3 * horizon)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    describe(panel, "How many of the last steps count", "steps", handles)


def _weights(panel: Axes, told: Forgetting, kind: str, horizon: int) -> None:
    weights: NDArray[np.float64] = getattr(told, kind)
    K = len(told.windows)
    shades = mpl.colormaps["cividis"](np.linspace(0.0, 1.0, K))
    times = np.repeat(np.append(told.times, horizon + 1), 2)[1:-1]  # each holds until the next
    panel.stackplot(times, np.repeat(weights, 2, axis=0).T, colors=shades, linewidth=0)
    panel.set_ylim(0.0, 1.0)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    ends = sorted({0, K // 2, K - 1}, reverse=True)
    names = [f"W = {told.windows[k]:,}" + (", all" if k == K - 1 else "") for k in ends]
    patches = [Patch(color=shades[k], label=name) for k, name in zip(ends, names, strict=True)]
    describe(panel, f"Weight of each window: {kind}", "share", patches)
