"""Figures of a live agent: rewards and optimistic gains over time, and the parts of a value."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from windage.live.explain import Reason
from windage.live.views import AgentStatus, Performance
from windage.report.figures.style import COLOURS, GREY, describe, literal, page, plain, time_axis

__all__ = ["performance_figure", "reason_figure"]

_POINTS = 2000


def performance_figure(past: Performance, agent: AgentStatus) -> Figure:
    """Return the figure of rewards against optimistic gains, and of the share of vacuous pairs."""
    figure, panels = page([3.6, 1.8])
    above, below = panels
    steps = past.rewards.size
    width = max(agent.recent, 1)
    shown = np.unique(np.linspace(0, max(steps - 1, 0), _POINTS).astype(np.int64))
    blue, red, green = COLOURS[0], COLOURS[1], COLOURS[2]
    if steps:
        above.plot(shown + 1, past.smoothed(width)[shown], color=blue)
        above.plot(shown + 1, past.smoothed(steps)[shown], color=GREY)
    if past.starts.size:
        ends = np.append(past.starts, max(steps, 1) + 1)
        above.step(ends, np.append(past.gains, past.gains[-1]), where="post", color=red)
        below.step(ends, np.append(past.vacuous, past.vacuous[-1]), where="post", color=green)
    word = "cost" if past.direction == "cost" else "reward"
    gain = "optimistic gain" if past.direction == "profit" else "optimistic cost"
    lines = [
        Line2D([], [], color=blue, label=f"mean of the last {width:,}"),
        Line2D([], [], color=GREY, label="mean so far"),
        Line2D([], [], color=red, label=gain),
    ]
    if past.since > 1:
        for panel in panels:
            panel.axvline(past.since, color="black", linewidth=0.8, linestyle=":")
        lines.append(Line2D([], [], color="black", linestyle=":", label="switched"))
    describe(above, f"{word.capitalize()} per step", "in your units", lines)
    vacuous = Line2D([], [], color=green, label="share of pairs")
    describe(below, "Pairs of whose transitions nothing is known", "", [vacuous])
    below.set_ylim(-0.03, 1.03)
    below.yaxis.set_major_formatter(PercentFormatter(1.0))
    time_axis(panels, max(steps, 1))
    panels[-1].set_xlabel("steps learned from")
    figure.suptitle(f"{plain(agent.name, 40)}: {agent.agent}", fontsize=15)
    return figure


def reason_figure(reason: Reason) -> Figure:
    """Return the figure of a decision: the optimistic value of each action, and its parts."""
    figure, (panel,) = page([0.6 * max(len(reason.parts), 2) + 0.8])
    colours = (COLOURS[0], COLOURS[5], COLOURS[2], COLOURS[4])
    for row, part in enumerate(reason.parts):
        left = 0.0
        for size, colour in zip(part.sizes, colours, strict=True):
            panel.barh(row, size, left=left, color=colour, height=0.6)
            left += size
    names = [
        f"{literal(part.action)} (advised)"
        if part.action == reason.action
        else literal(part.action)
        for part in reason.parts
    ]
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    labels = ("mean reward", "optimism about rewards", "optimism about transitions",
              "of it due to eta")  # fmt: skip
    patches = [Patch(color=c, label=text) for c, text in zip(colours, labels, strict=True)]
    describe(panel, f"Optimistic value of each action in {plain(reason.state, 40)}", "",
             patches)  # fmt: skip
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlabel("per step, in the agent's units: more is better")
    figure.suptitle(f"Decision {reason.id}: {plain(reason.action, 40)}", fontsize=15)
    return figure
