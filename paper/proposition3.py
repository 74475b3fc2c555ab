"""Proposition 3: every model has diameter 1, their average in a window has diameter tau + 1.

First the window that the trajectory of the proof leaves, and what its sets lead to; then the same
drift, played for real; and the page for a lecture, with sliders for tau and eta and no files beside
it. That page computes with formulas of its own, so that sliders answer at once; the dots on its
chart are computed here, along the trajectory, to show that both agree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import windage as wd
from paper.cases import learner
from paper.claims import Check, Sides, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, GREY, MARKERS, canvas, label, legend
from windage.confidence.confidence import ConfidenceRegion
from windage.confidence.radii import Radii
from windage.envs.proposition3 import Replay, peril_replay
from windage.models.mdp import MDP
from windage.spaces import StateActions

__all__ = [
    "ETAS", "KINDS", "SPACE", "Lived", "Sets", "best_diameter", "cap", "compute", "computed_points",
    "empirical_diameter", "judge", "lecture_page", "over_order", "poisoned", "replayed",
    "span_if_one_state_pays",
]  # fmt: skip

SPACE = StateActions([2, 2], ["1", "2"], [["a1", "a2"], ["b1", "b2"]])
DELTA = 0.05
ETAS = (0.0, 0.1, 0.5)
KINDS = {"printed": Radii.paper(), "proof": Radii.proof(), "Laplace": Radii.laplace()}

TAUS = (10, 30, 100, 300, 1000, 3000, 10_000)
LIVE_TAU = 1000
LIVE = (
    ("printed", Radii.paper()),
    ("Laplace", Radii.laplace()),
    ("Laplace x0.03", Radii.laplace().scaled(0.03)),
)
LIVE_ETAS = (0.0, 0.05, 0.3)

_LECTURE_TAUS = (10, 100, 1000, 10_000)
_LECTURE_ETAS = (0.0, 0.1, 0.25, 0.5, 1.0)
_DATA = "/*DATA*/[]"

LEAST = Least(800, "tau = T / 40 would be below 20")

ABOUT = """
*Replay.* The trajectory of the proof is followed step by step: W = 4 tau steps, of which the
kernel p1 acts in the first and third quarter and p2, its actions exchanged, in the others. What
the window then holds is turned into sets with T = W and delta = 0.05. The diameter of p-hat is
computed by the oracle. The best diameter inside H_p(eta) lets every row move as much mass as its
set allows to the other state and asks the oracle again. The span is that of EVI's bias where
state 2 pays 1 and state 1 nothing; by C6 it is at most max(1, 2/eta).

*Live.* The same drift goes on for ever, the state that pays changes every 2 tau steps, rho* = 1
and D = 1 always. SWUCRL2-CW plays in it with W = tau and with W = 4 tau.

For a lecture there is [one page](lecture.html) with sliders for tau and eta.
"""


class Sets(NamedTuple):
    """What a poisoned window leads to."""

    diameter: float  # the best inside H_p(eta)
    span: float  # of gamma~ where one state pays


def poisoned(replay: Replay, radii: Radii | None, eta: float) -> ConfidenceRegion:
    """Return the sets after the replay; state 2 pays 1, state 1 nothing, and that is known.

    Without radii they are p-hat and what the widening adds.
    """
    W = int(replay.counts.sum())
    radius = (
        np.zeros(4)
        if radii is None
        else np.asarray(radii.transition(replay.counts, space=SPACE, horizon=W, delta=DELTA))
    )
    return ConfidenceRegion(SPACE, [0.0, 0.0, 1.0, 1.0], replay.p_hat, radius, [True] * 4, eta)


def empirical_diameter(replay: Replay) -> float:
    """Return the diameter of p-hat."""
    return MDP(SPACE, np.zeros(4), replay.p_hat).diameter()


def best_diameter(region: ConfidenceRegion) -> float:
    """Return the least diameter of a kernel in the sets of two states: each row changes its most.

    One kernel makes both ways as short as they can be, for the rows of a state only matter on the
    way out of it.
    """
    rows = np.stack([region.best_row(p, np.eye(2)[1 - SPACE.state_of[p]]) for p in range(4)])
    return MDP(SPACE, np.zeros(4), rows).diameter()


def span_if_one_state_pays(region: ConfidenceRegion) -> float:
    """Return span(gamma~) of EVI to high precision."""
    return wd.evi(region, epsilon=1e-6, max_sweeps=1_000_000).span


def replayed(taus: Iterable[int]) -> dict[tuple[int, str, float], Sets]:
    """Return what the sets lead to for each tau, kind of radii ("none": no radius) and eta."""
    found = {}
    for tau in taus:
        replay = peril_replay(tau)
        for name, radii in (KINDS | {"none": None}).items():
            for eta in ETAS:
                region = poisoned(replay, radii, eta)
                found[tau, name, eta] = Sets(best_diameter(region), span_if_one_state_pays(region))
    return found


def cap(eta: float) -> float:
    """Return max(1, 2 / eta), which no span exceeds; inf without widening."""
    return max(1.0, 2.0 / eta) if eta > 0 else math.inf


class Lived(NamedTuple):
    """Runs of one setting in the drift that goes on."""

    window: int
    radii: str
    eta: float
    regret: float  # a step
    error: float
    worst_span: float
    worst_share: float  # of (1 + eps) max(1, 2 / eta), that a span uses


def _live(effort: Effort, tau: int, T: int, seeds: int) -> list[Lived]:
    model = wd.envs.make("peril", horizon=T, tau=tau)

    def play(task: tuple[int, str, Radii, float]) -> Lived:
        W, name, radii, eta = task
        lost, spans, shares = [], [], []
        for seed in range(seeds):
            made = learner(model, seed, window=W, widening=eta, radii=radii)
            run = wd.run(model, made, seed=seed)
            lost.append(1.0 - run.total_mean_reward / T)  # rho* = 1 at every t
            spans.append(float(run.episodes.span.max()))
            warm = 1.0 + 1.0 / np.sqrt(run.episodes.start)
            shares.append(float((run.episodes.span / (warm * cap(eta))).max()))
        error = float(np.std(lost, ddof=1)) / np.sqrt(seeds)
        return Lived(W, name, eta, float(np.mean(lost)), error, max(spans), max(shares))

    tasks = [
        (W, name, radii, eta) for W in (tau, 4 * tau) for name, radii in LIVE for eta in LIVE_ETAS
    ]
    return effort.each(play, tasks)


def compute(effort: Effort) -> Result:
    """Replay the proof for growing tau, and let the drift go on."""
    T = effort.steps(40 * LIVE_TAU, quick=4 * LIVE_TAU)
    tau = T // 40
    seeds = effort.runs(20, quick=4)
    taus = TAUS[: 3 if effort.is_quick else None]
    effort.say("replaying the proof of Proposition 3")
    sets = replayed(taus)
    empirical = {t: empirical_diameter(peril_replay(t)) for t in taus}
    effort.say("playing in the perilous drift")
    lived = _live(effort, tau, T, seeds)
    return Result(
        name="perils",
        title="The perils of drift (Proposition 3)",
        about=ABOUT,
        checks=judge(empirical, sets, lived, is_judged=not effort.is_quick),
        remarks=_remarks(sets, lived),
        tables=[
            _diameters(taus, empirical, sets),
            _spans(taus, sets),
            _lived_table(lived, tau, T, seeds),
        ],
        figure=_draw(taus, empirical, sets, lived, tau),
        is_quick=effort.is_quick,
        extras={"lecture.html": lecture_page()},
    )


def over_order(sets: dict[tuple[int, str, float], Sets], tau: int, kind: str) -> float:
    """Return the best diameter without widening over sqrt(W / ln W), W = 4 tau."""
    return sets[tau, kind, 0.0].diameter / math.sqrt(4 * tau / math.log(4 * tau))


def judge(
    empirical: dict[int, float],
    sets: dict[tuple[int, str, float], Sets],
    lived: list[Lived],
    *,
    is_judged: bool = True,
) -> list[Check]:
    """Judge diameters and spans of the replay, and the spans of the runs."""
    *_, before, last = sorted(empirical)
    kinds = [(kind, over_order(sets, last, kind), over_order(sets, before, kind)) for kind in KINDS]
    return [
        worst(
            "p-hat",
            "its diameter is tau + 1 though every model has 1: off by a millionth at most",
            [Sides(abs(D - (t + 1)) / (t + 1), 1e-6, f"tau = {t:,}")
             for t, D in empirical.items()],
            unit="tau",
        ),
        worst(
            "order",
            "without widening every kernel in the sets has a diameter of order sqrt(W / ln W) at "
            f"least: the ratio to it falls by a tenth at most from tau = {before:,} to {last:,}",
            [Sides(late, 0.9 * early, kind) for kind, late, early in kinds],
            ">=", unit="kinds of radii", is_judged=is_judged,
        ),
        worst(
            "cap",
            "a widening keeps the span of the bias at max(1, 2/eta) at most",
            [Sides(one.span, cap(eta) * (1 + 1e-6), f"tau = {tau:,}, radii: {kind}, eta = {eta:g}")
             for (tau, kind, eta), one in sets.items() if eta > 0],
            unit="settings",
        ),
        worst(
            "cap, live",
            "and so in runs, where a warm start may add the factor 1 + eps: shares of that are at "
            "most 1",
            [Sides(one.worst_share, 1.0, f"W = {one.window:,}, {one.radii}, eta = {one.eta:g}")
             for one in lived if one.eta > 0],
            unit="settings",
        ),
    ]  # fmt: skip


def _remarks(sets: dict[tuple[int, str, float], Sets], lived: list[Lived]) -> str:
    """Say the ratios to the order, and what widening and a shorter window change in runs."""
    last = max(tau for tau, _, _ in sets)
    ratios = ", ".join(f"{over_order(sets, last, kind):.2f} ({kind})" for kind in KINDS)
    tight = {(one.window, one.eta): one for one in lived if one.radii == LIVE[-1][0]}
    short, long = sorted({W for W, _ in tight})
    widest = {eta: max(one.worst_span for one in lived if one.eta == eta) for eta in LIVE_ETAS}
    none, most = LIVE_ETAS[0], LIVE_ETAS[-1]
    said = [
        f"At tau = {last:,} the best diameter in the sets is sqrt(W / ln W) times {ratios}.",
        f"Live, spans reach {widest[none]:.3g} without widening and {widest[most]:.3g} with eta = "
        f"{most:g}.",
    ]
    for W in (short, long):
        bare, wide = tight[W, none], tight[W, most]
        said.append(
            f"With {bare.radii} radii and W = {W:,} the regret a step is {bare.regret:.2f} without "
            f"and {wide.regret:.2f} with it: widening {_turn(wide, bare)}."
        )
    said.append(
        f"Without widening, W = {short:,} in place of {long:,} "
        f"{_turn(tight[short, none], tight[long, none])}."
    )
    return " ".join(said)


def _turn(one: Lived, other: Lived) -> str:
    """Whether the first loses less than the second, beyond two standard errors."""
    apart = other.regret - one.regret
    if abs(apart) <= 2 * math.hypot(one.error, other.error):
        return "changes nothing that can be told from noise"
    return f"{'saves' if apart > 0 else 'costs'} {abs(apart):.3f} a step"


def _diameters(
    taus: tuple[int, ...],
    empirical: dict[int, float],
    sets: dict[tuple[int, str, float], Sets],
) -> Table:
    columns = [(name, eta) for name in KINDS for eta in ETAS]
    return Table(
        "Diameter of p-hat, and the best one inside H_p(eta)",
        ("tau", "W", "p-hat", *(f"{name}, eta {eta:g}" for name, eta in columns)),
        [
            [f"{t:,}", f"{4 * t:,}", f"{empirical[t]:,.6g}"]
            + [f"{sets[t, name, eta].diameter:.3g}" for name, eta in columns]
            for t in taus
        ],
    )


def _spans(taus: tuple[int, ...], sets: dict[tuple[int, str, float], Sets]) -> Table:
    return Table(
        "Span of the bias of EVI if state 2 pays: no radius at all, and the three kinds",
        (
            "tau",
            *(f"none, eta {eta:g}" for eta in ETAS),
            *(f"{name}, eta {eta:g}" for name in KINDS for eta in (0.0, 0.5)),
        ),
        [
            [f"{t:,}"]
            + [f"{sets[t, 'none', eta].span:,.5g}" for eta in ETAS]
            + [f"{sets[t, name, eta].span:.3g}" for name in KINDS for eta in (0.0, 0.5)]
            for t in taus
        ],
    )


def _lived_table(lived: list[Lived], tau: int, T: int, seeds: int) -> Table:
    return Table(
        f"Live: tau = {tau:,}, T = {T:,}, {seeds} seeds, ties at random",
        ("W", "radii", "eta", "regret a step", "largest span", "max(1, 2/eta)"),
        [
            [
                f"{one.window:,}",
                one.radii,
                f"{one.eta:g}",
                f"{one.regret:.3f} ± {2 * one.error:.3f}",
                f"{one.worst_span:.3g}",
                "none" if one.eta == 0 else f"{cap(one.eta):.3g}",
            ]
            for one in lived
        ],
    )


def _draw(
    taus: tuple[int, ...],
    empirical: dict[int, float],
    sets: dict[tuple[int, str, float], Sets],
    lived: list[Lived],
    tau: int,
) -> Any:
    figure, (left, middle, right) = canvas("Every model has diameter 1", columns=3, height=5.4)
    x = np.array(taus)
    left.plot(x, list(empirical.values()), "k-o", label="p-hat: tau + 1")
    for (name, _), colour in zip(KINDS.items(), COLOURS, strict=False):
        for eta, style in zip(ETAS, ("-", "--", ":"), strict=True):
            left.plot(
                x, [sets[t, name, eta].diameter for t in taus], style, color=colour,
                label=f"{name}, eta = {eta:g}",
            )  # fmt: skip
    left.axhline(1, color=GREY, linewidth=1)
    label(left, "Diameter: p-hat, and the best inside H_p(eta)", "tau", "diameter", logs="xy")
    legend(left)
    for eta, colour, marker in zip(ETAS, COLOURS, MARKERS, strict=False):
        middle.plot(
            x, [sets[t, "none", eta].span for t in taus], f"-{marker}", color=colour,
            label="no widening" if eta == 0 else f"eta = {eta:g}, at most {2 / eta:g}",
        )  # fmt: skip
        if eta:
            middle.axhline(2 / eta, color=colour, linestyle="--", linewidth=1)
    label(middle, "Span of the bias, no radius, one state pays", "tau", "span", logs="xy")
    legend(middle)
    for i, (name, _) in enumerate(LIVE):
        for W, face in ((tau, "full"), (4 * tau, "none")):
            mine = [one for one in lived if one.radii == name and one.window == W]
            right.errorbar(
                [one.eta for one in mine], [one.regret for one in mine],
                [2 * one.error for one in mine], color=COLOURS[i], marker=MARKERS[i],
                fillstyle=face, linestyle="-" if face == "full" else "--", capsize=3,
                label=f"{name}, W = {W:,}",
            )  # fmt: skip
    right.set_ylim(0, 0.68)
    label(right, f"Live, tau = {tau:,}: regret a step", "eta", "rho* - mean reward")
    legend(right)
    return figure


def computed_points() -> list[dict[str, float | str]]:
    """Return diameters by the library for some tau, eta and kinds of radii."""
    found: list[dict[str, float | str]] = []
    for tau in _LECTURE_TAUS:
        replay = peril_replay(tau)
        average = empirical_diameter(replay)
        for kind in ("none", "paper", "proof", "laplace"):
            radii = None if kind == "none" else Radii(kind)
            for eta in _LECTURE_ETAS:
                region = poisoned(replay, radii, eta)
                best = best_diameter(region)
                point = {"tau": tau, "eta": eta, "radii": kind, "average": average, "best": best}
                found.append(point)
    return found


def lecture_page() -> str:
    """Return the page as HTML."""
    template = Path(__file__).with_name("lecture.html").read_text("utf-8")
    before, found, after = template.partition(_DATA)
    assert found, "the template has lost its place for data"
    return before + json.dumps(computed_points()) + after
