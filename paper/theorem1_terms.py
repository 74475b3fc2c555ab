"""Theorem 1's proof, term by term: spade, club, diamond and heart measured beside the regret."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from paper.cases import CASES, LONGEST
from paper.claims import Check, Sides, check, worst
from paper.episodes import most_episodes
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, GREY, canvas, label
from windage.proof import Hindsight, hindsight
from windage.regret_decomposition import RegretTerms, regret_terms

__all__ = ["Lemmas", "Measured", "compute", "judge", "lemmas", "per_block"]

SUITS = {"spade": "\u2660", "club": "\u2663", "diamond": "\u2666", "heart": "\u2665"}
_ROUNDING = 1e-5  # of the certified gains, summed over an episode's worst step

LEAST = Least(2 * LONGEST, f"a run must be twice as long as its window, which has {LONGEST} steps")

ABOUT = """
The proof splits the regret of a run of SWUCRL2-CW into four terms and bounds each by a lemma.
Here each is measured on real runs: what bad episodes lost (spade), changes of policy and EVI's
tolerance (club), drift and the widening (diamond), too few samples (heart). Bad episodes are
those of Q~_T: they start within W after one whose sets do not hold the model. `wd.regret_terms`
does it for any run. As printed, D is multiplied by 4, 2 and 4 in the last two terms; the proof
gives 1, 1/2 and 1 (C9), and both are shown.

Each lemma is checked in the form that holds (E16, E17, E18 corrected): C3, card Q_T <= B_p / eta;
C4, the steps of Q~_T are at most 2 W card Q_T; C5, the variations sum to at most (2W - 1) B; C8,
rho~ is at least rho*_t less var_r and (D/2) var_p; C9, the per-step inequality of Proposition 2;
C10, a block's sum of 1/sqrt(N+) is at most (sqrt2 + 1) sqrt(SAW); C11, the four terms add up to
at least the regret. C8 and C9 speak of episodes outside Q~_T, on the events E_r and E_p.
"""


class Lemmas(NamedTuple):
    """Both sides of what the proof says of a run, by name; the left must not exceed the right."""

    c3: tuple[float, float]
    c4: tuple[float, float]
    c5_r: tuple[float, float]
    c5_p: tuple[float, float]
    c10: tuple[float, float]
    c2: tuple[float, float]


def lemmas(again: Hindsight, terms: RegretTerms) -> Lemmas:
    """Return both sides of C2, C3, C4, C5 and C10 for a run."""
    model, W = again.model, again.window
    budgets, SA = model.budgets(), model.space.n_pairs
    eta, taken = terms.widening, int(terms.separated.sum())
    return Lemmas(
        c3=(taken, budgets.transition / eta if eta > 0 else math.inf),
        c4=(float(terms.lengths[terms.bad].sum()), 2.0 * W * taken),
        c5_r=(float(again.variation_r.sum()), (2 * W - 1) * budgets.reward),
        c5_p=(float(again.variation_p.sum()), (2 * W - 1) * budgets.transition),
        c10=(float(per_block(again).max()), (math.sqrt(2) + 1) * math.sqrt(SA * W)),
        c2=(len(again.run.episodes), most_episodes(SA, W, again.run.steps)),
    )


def per_block(again: Hindsight) -> Any:
    """Return the sum of 1 / sqrt(N+_tau(m)(s_t, a_t)) over the steps of every block."""
    terms = np.empty(again.pairs.size)
    for episode in again.episodes(biases=False):
        here = slice(episode.start - 1, episode.last)
        terms[here] = 1 / np.sqrt(np.maximum(episode.visits[again.pairs[here]], 1))
    return np.bincount(again.blocks, weights=terms)


class Measured(NamedTuple):
    """A run with its terms and the lemmas' sides."""

    case: str
    terms: RegretTerms
    lemmas: Lemmas
    T: int

    @property
    def slack(self) -> tuple[float, float]:
        """The least slack of C8 and C9 outside Q~_T, with the least constants."""
        t = self.terms
        if t.bad.all():
            return math.nan, math.nan
        return float(np.nanmin(t.gain_slack["sharp"])), float(np.nanmin(t.step_slack["sharp"]))

    @property
    def elsewhere(self) -> tuple[float, float]:
        """What was lost outside Q~_T, and what club, diamond and heart allow for it."""
        t = self.terms
        return t.regret.total - t.sharp.spade, t.sharp.total - t.sharp.spade


def compute(effort: Effort) -> Result:
    """Measure the four terms on the runs of the suite."""
    found = []
    for case in CASES:
        effort.say(f"splitting the regret: {case.name}")
        model = case.model(effort)
        run = case.play(model, seed=0)
        terms = regret_terms(run, model)
        found.append(Measured(case.name, terms, lemmas(hindsight(run, model), terms), run.steps))
    return Result(
        name="regret",
        title="The proof of Theorem 1, term by term",
        about=ABOUT,
        checks=judge(found),
        remarks=_remarks(found),
        tables=[_terms_table(found), _lemma_table(found)],
        figure=_draw(found),
        is_quick=effort.is_quick,
    )


def judge(found: list[Measured]) -> list[Check]:
    """Judge every lemma: those that need the events where these held, the others everywhere."""
    promised = [one for one in found if one.terms.is_promised]

    def of(runs: list[Measured], name: str) -> list[Sides]:
        pairs: list[tuple[float, float]] = [getattr(one.lemmas, name) for one in runs]
        return [Sides(*pair, where=one.case) for pair, one in zip(pairs, runs, strict=True)]

    def slack(which: int) -> list[Sides]:
        seen = [Sides(one.slack[which], -_ROUNDING, one.case) for one in promised]
        return [one for one in seen if not math.isnan(one.left)]

    held = "where E_r and E_p held"
    return [
        worst("C2", "M(T) is at most its bound", of(found, "c2")),
        worst("C3", f"card Q_T <= B_p / eta, {held}", of(promised, "c3")),
        check("Q_T", f"Q_T is not empty on some run, {held}",
              max((one.lemmas.c3[0] for one in promised), default=0), ">", 0),
        worst("C4", "the steps of Q~_T are at most 2 W card Q_T", of(found, "c4")),
        worst("C5, r", "the sum of var_r is at most (2W - 1) B_r", of(found, "c5_r")),
        worst("C5, p", "the sum of var_p is at most (2W - 1) B_p", of(found, "c5_p")),
        worst("C8", f"rho~ + var_r + (D/2) var_p - rho*_t is never below 0, {held}",
              slack(0), ">="),
        worst("C9", f"the per-step inequality has a slack that is never below 0, {held}",
              slack(1), ">="),
        worst("C10", "a block's sum of 1/sqrt(N+) is at most (sqrt2 + 1) sqrt(SAW)",
              of(found, "c10")),
        worst("C11", f"the regret is at most the sum of the four terms, {held}",
              [Sides(one.terms.regret.total - one.terms.regret.error, one.terms.sharp.total,
                     one.case) for one in promised]),
    ]  # fmt: skip


def _remarks(found: list[Measured]) -> str:
    promised = [one for one in found if one.terms.is_promised]
    largest = [one.terms.sharp.largest for one in promised]
    counts = {suit: largest.count(suit) for suit in SUITS if suit in largest}
    beyond = [one for one in found if one not in promised and one.lemmas.c3[0] > one.lemmas.c3[1]]
    said = f"The events held on {len(promised)} of {len(found)} runs"
    if counts:
        said += "; there the largest term is " + ", ".join(f"{s} on {n}" for s, n in counts.items())
    told = [one for one in promised if one.elsewhere[1] > 0]
    if told:
        nearest = max(told, key=lambda one: one.elsewhere[0] / one.elsewhere[1])
        lost, allowed = nearest.elsewhere
        said += (
            f". Spade is what was lost in Q~_T, on both sides; without it the regret comes nearest "
            f"to its bound on {nearest.case!r}, {lost:,.0f} of {allowed:,.0f}"
        )
    return (
        said
        + "."
        + "".join(
            f" On {one.case!r}, where they did not, C3 fails: {one.lemmas.c3[0]:.0f} > "
            f"{one.lemmas.c3[1]:.3g}."
            for one in beyond
        )
    )


def _terms_table(found: list[Measured]) -> Table:
    rows = []
    for one in found:
        t = one.terms
        rows.append(
            [
                one.case, f"{t.regret.total:,.0f}",
                *(f"{value:,.0f}" for value in t.sharp.suits.values()),
                f"{t.sharp.total:,.0f}", "yes" if t.is_promised else "no",
                f"{t.printed.total:,.0f}", f"{t.regret.total / t.sharp.total:.1%}",
                f"{one.T:,}", f"{t.window:,}", f"{t.widening:.2g}", f"{t.diameter:.3g}",
            ]
        )  # fmt: skip
    return Table(
        "Regret of one run and the four terms, with the least constants",
        ("case", "regret", *SUITS, "sum", "E_r, E_p", "sum as printed", "regret / sum", "T", "W",
         "eta", "D"),
        rows,
    )  # fmt: skip


def _lemma_table(found: list[Measured]) -> Table:
    def sides(pair: tuple[float, float]) -> str:
        left, right = pair
        if not math.isfinite(right):
            return f"{left:,.4g}, eta = 0"
        return f"{left:,.4g} {'<=' if left <= right * (1 + 1e-9) else '>'} {right:,.4g}"

    return Table(
        "Both sides of the lemmas; slack of C8 and C9 at the worst step outside Q~_T",
        ("case", "C2, M(T)", "C3, card Q_T", "C4, steps of Q~_T", "C5, sum var_r",
         "C5, sum var_p", "C10, a block", "C8 slack", "C9 slack"),
        [
            [
                one.case, sides(one.lemmas.c2), sides(one.lemmas.c3), sides(one.lemmas.c4),
                sides(one.lemmas.c5_r), sides(one.lemmas.c5_p), sides(one.lemmas.c10),
                *("-" if math.isnan(value) else f"{value:.3g}" for value in one.slack),
            ]
            for one in found
        ],
    )  # fmt: skip


def _draw(found: list[Measured]) -> Any:
    figure, (left, right) = canvas("What the proof allows, and what was lost", height=5.6)
    x = np.arange(len(found))
    for i, suit in enumerate(SUITS):
        values = [max(one.terms.sharp.suits[suit] / one.T, 1e-6) for one in found]
        left.bar(x + (i - 1.5) * 0.2, values, 0.2, color=(GREY, *COLOURS)[i], label=suit)
    left.plot(x, [one.terms.regret.total / one.T for one in found], "k_", markersize=22,
              markeredgewidth=2.5, label="regret")  # fmt: skip
    left.axhline(1.0, color="#707070", linestyle="--", linewidth=1)
    label(left, "A step's share of each term, least constants; above the dashed line the bound "
          "says nothing", "", "a step", logs="y")  # fmt: skip
    left.set_ylim(1e-5, None)
    below = np.zeros(len(found))
    parts = {
        "bad": "spade: bad episodes", "switching": "club: switching", "planning": "club: EVI's eps",
        "reward_drift": "diamond: 2 var_r", "transition_drift": "diamond: D var_p",
        "widening": "diamond: D eta / 2", "reward_radii": "heart: 2 rad_r",
        "transition_radii": "heart: D rad_p",
    }  # fmt: skip
    shades = (
        "#505050",
        "#0072B2",
        "#56B4E9",
        "#F0B090",
        "#D55E00",
        "#8F3F00",
        "#7FCFB5",
        "#009E73",
    )
    for (part, name), shade in zip(parts.items(), shades, strict=True):
        parts_here = np.array([max(getattr(one.terms.sharp, part), 0.0) for one in found])
        shares = parts_here / np.array(
            [sum(max(getattr(one.terms.sharp, p), 0.0) for p in parts) for one in found]
        )
        right.bar(x, shares, 0.7, bottom=below, color=shade, label=name)
        below += shares
    label(right, "Which part of the bound dominates where", "", "share of the sum")
    for panel in (left, right):
        names = [one.case + ("" if one.terms.is_promised else " (no event)") for one in found]
        panel.set_xticks(x, names, rotation=35, ha="right", fontsize=8.5)
    left.legend(fontsize=8.5, frameon=False, ncols=5, loc="lower left", bbox_to_anchor=(-0.02, 1.1))
    right.legend(fontsize=8, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(-0.02, 1.06))
    return figure
