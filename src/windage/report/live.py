"""Pictures of a live agent: what it hoped for and got over time, and why it did what it did."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from windage.live.course import Course
from windage.live.reasons import Reason
from windage.live.status import AgentStatus
from windage.report.panels import COLOURS, GREY, describe, literal, page, plain, time_axis

__all__ = ["course_figure", "reason_figure"]

_POINTS = 2000


def course_figure(course: Course, state: AgentStatus) -> Figure:
    """Return the picture of an agent's course: rewards against hopes, and what it did not know."""
    figure, panels = page([3.6, 1.8])
    above, below = panels
    steps = course.rewards.size
    width = max(state.recent, 1)
    shown = np.unique(np.linspace(0, max(steps - 1, 0), _POINTS).astype(np.int64))
    blue, red, green = COLOURS[0], COLOURS[1], COLOURS[2]
    if steps:
        above.plot(shown + 1, course.smoothed(width)[shown], color=blue)
        above.plot(shown + 1, course.smoothed(steps)[shown], color=GREY)
    if course.starts.size:
        ends = np.append(course.starts, max(steps, 1) + 1)
        above.step(ends, np.append(course.gains, course.gains[-1]), where="post", color=red)
        below.step(ends, np.append(course.vacuous, course.vacuous[-1]), where="post", color=green)
    word = "cost" if course.direction == "cost" else "reward"
    hoped = "hoped for: optimistic gain" if course.direction == "profit" else "hoped for"
    lines = [
        Line2D([], [], color=blue, label=f"mean of the last {width:,}"),
        Line2D([], [], color=GREY, label="mean so far"),
        Line2D([], [], color=red, label=hoped),
    ]
    if course.since > 1:
        for panel in panels:
            panel.axvline(course.since, color="black", linewidth=0.8, linestyle=":")
        lines.append(Line2D([], [], color="black", linestyle=":", label="switched"))
    describe(above, f"{word.capitalize()} a step", "in your units", lines)
    vacuous = Line2D([], [], color=green, label="share of pairs")
    describe(below, "Pairs of whose transitions nothing is known", "", [vacuous])
    below.set_ylim(-0.03, 1.03)
    below.yaxis.set_major_formatter(PercentFormatter(1.0))
    time_axis(panels, max(steps, 1))
    panels[-1].set_xlabel("steps learned from")
    figure.suptitle(f"{plain(state.name, 40)}: {state.agent}", fontsize=15)
    return figure


def reason_figure(reason: Reason) -> Figure:
    """Return the picture of a decision: the value of each action and what it is made of."""
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
    describe(panel, f"What is known and hoped of each action in {plain(reason.state, 40)}", "",
             patches)  # fmt: skip
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlabel("a step, as the agent counts: more is better")
    figure.suptitle(f"Decision {reason.id}: {plain(reason.action, 40)}", fontsize=15)
    return figure
