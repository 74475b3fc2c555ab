"""The span of the optimistic bias (C6): at most a diameter inside the sets, and max(1, 2/eta)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paper.cases import CASES, LONGEST, Case
from paper.claims import Check, Sides, worst
from paper.evi_properties import reach
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, canvas, label, legend
from windage.proof import hindsight

__all__ = ["Spans", "compute", "judge"]

Reals = NDArray[np.float64]

_ASKED = 120  # episodes of a run whose D is computed, evenly spread: it takes its time

LEAST = Least(2 * LONGEST, f"a run must be twice as long as its window, which has {LONGEST} steps")

ABOUT = """
gamma~ is the bias that EVI returns for an episode. If some kernel in H_p(eta) has diameter D, its
span is at most D; the paper has 2D, and has it for any dual feasible pair, for which it is false
(E12). Without any premise, the span is at most 1/beta, where beta is the mass that in every state
some action may move to any one state; a widening makes beta at least eta/2, so the span is at
most max(1, 2/eta) even in bad episodes. EVI from a warm start may exceed these by a factor 1 +
eps, eps = 1/sqrt(tau(m)), and ratios below are taken with it.

Spans are those of the runs; D is the diameter of the model at tau(m), where it lies in H_p(eta),
computed for about 120 episodes of each run, evenly spread. The other two bounds are looked at in
every episode.
"""


class Spans(NamedTuple):
    """The spans of a run, and the shares of their bounds that they use."""

    span: Reals
    by_reach: Reals  # span over (1 + eps) / beta
    by_widening: Reals  # over (1 + eps) max(1, 2 / eta)
    span_d: Reals  # of the episodes whose D was computed
    diameter: Reals
    by_diameter: Reals
    held: int
    episodes: int


def _measure(case: Case, effort: Effort) -> Spans:
    model = case.model(effort)
    again = hindsight(case.play(model, seed=0), model)
    rows, asked = [], []
    stride = max(1, len(again.run.episodes) // _ASKED)
    held = 0
    for episode in again.episodes():
        warm = 1.0 + again.agent.warm_start * episode.epsilon
        span, eta = float(np.ptp(episode.bias)), float(episode.widening.min())
        beta = reach(episode, model.space.offsets)
        cap = max(1.0, 2.0 / eta) if eta > 0 else np.inf
        rows.append((span, span * beta / warm, span / (warm * cap)))
        held += episode.holds_the_model
        if episode.holds_the_model and episode.number % stride == 0:
            here = float(model.diameters([episode.start])[0])
            asked.append((span, here, span / (warm * here)))
    table, some = np.array(rows), np.array(asked).reshape(-1, 3)
    (span, by_reach, by_widening), (span_d, D, by_diameter) = table.T, some.T
    return Spans(span, by_reach, by_widening, span_d, D, by_diameter, held, len(rows))


def compute(effort: Effort) -> Result:
    """Measure every span of the runs against the three bounds."""
    found = {}
    for case in CASES:
        effort.say(f"measuring spans: {case.name}")
        found[case.name] = _measure(case, effort)
    largest = max(found, key=lambda name: float(found[name].span.max()))
    return Result(
        name="span",
        title="The span of the optimistic bias",
        about=ABOUT,
        checks=judge(found),
        remarks=f"The largest span is {found[largest].span.max():.3g} ({largest}).",
        tables=[_table(found)],
        figure=_draw(found),
        is_quick=effort.is_quick,
    )


def judge(found: dict[str, Spans]) -> list[Check]:
    """Judge the share of each bound that was used: never more than all of it."""
    bounds = {
        "by D": ("span(gamma~) is at most D of the model, where the sets hold it", "by_diameter"),
        "by 1/beta": ("span(gamma~) is at most 1/beta", "by_reach"),
        "by eta": ("span(gamma~) is at most max(1, 2/eta)", "by_widening"),
    }
    return [
        worst(
            name,
            f"{claim}: its share of the bound is at most 1",
            [Sides(float(x), 1.0, run) for run, one in found.items() for x in getattr(one, column)],
            unit="episodes",
        )
        for name, (claim, column) in bounds.items()
    ]


def _table(found: dict[str, Spans]) -> Table:
    return Table(
        "Largest span of each run, and the largest share of each bound",
        ("case", "episodes", "p_tau in H_p", "largest span", "of D", "of 1/beta",
         "of max(1, 2/eta)"),
        [
            [
                name, f"{one.episodes:,}", f"{one.held:,}", f"{one.span.max():.3g}",
                f"{one.by_diameter.max():.3f}" if one.diameter.size else "-",
                f"{one.by_reach.max():.3f}", f"{one.by_widening.max():.3f}",
            ]
            for name, one in found.items()
        ],
    )  # fmt: skip


def _draw(found: dict[str, Spans]) -> Any:
    figure, (left, right) = canvas("Spans of whole runs against their bounds", height=5.2)
    for i, (name, one) in enumerate(found.items()):
        colour = COLOURS[i % len(COLOURS)]
        if one.held:
            left.plot(one.diameter, np.maximum(one.span_d, 1e-3), "o" if i < 7 else "^",
                      color=colour, markersize=4, alpha=0.6, label=name)  # fmt: skip
        order = np.linspace(0, 1, one.by_reach.size)
        right.plot(order, np.sort(one.by_reach), color=colour, linestyle="-" if i < 7 else "--",
                   label=name)  # fmt: skip
    ends = np.array([0.8, 40.0])
    left.plot(ends, ends, "k--", linewidth=1, label="span = D")
    label(left, "Span and diameter of the model at tau(m), where it is in H_p (spans "
          "below 0.001 are drawn there)", "D", "span",
          logs="xy")  # fmt: skip
    legend(left, columns=3)
    right.axhline(1.0, color="#000000", linestyle="--", linewidth=1)
    label(right, "Share of 1/beta that spans use, sorted", "share of the episodes", "span beta")
    legend(right, columns=3)
    return figure
