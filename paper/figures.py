"""The paper's four figures, drawn from computed data: its source has none of them."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Circle, FancyArrowPatch, Patch
from numpy.typing import NDArray

import windage as wd
from paper.cases import learner, make
from paper.claims import Check, Sides, check, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, GREY
from windage.agents.meta.borl import BORL
from windage.envs.proposition3 import peril_replay
from windage.models.mdp import MDP
from windage.recording import Run
from windage.regret_decomposition import RegretTerms, regret_terms

__all__ = ["compute", "judge"]

TAU = 10
QT_TAU, QT_W, QT_ETA = 120, 60, 0.5

LEAST = Least(48, "BORL would have one block (E5)")

ABOUT = """
The source of the paper has no pictures. All four are drawn here from what the code computes: the
blocks of a run of BORL with the arms that were drawn and the rewards the master was told; the two
kernels of Proposition 3; the trajectory of its proof with policies, kernels and states; and, on a
run of SWUCRL2-CW in that drift, which episodes belong to Q_T and Q~_T.
"""


def compute(effort: Effort) -> Result:
    """Draw the four figures."""
    T = effort.steps(5000, quick=2000)
    effort.say("a run of BORL")
    model = wd.envs.make("two-state-cosine", horizon=T)
    agent: BORL = make("borl", model)
    wd.run(model, agent, seed=0)
    effort.say("the trajectory of Proposition 3")
    replay = peril_replay(TAU)
    drift = wd.envs.make("peril", tau=TAU, repeats=1)
    effort.say("bad episodes of a run")
    run, terms = _bad_episodes()
    figure = Figure(figsize=(12, 13.5), dpi=100,
                    layout=ConstrainedLayoutEngine(h_pad=0.15, w_pad=0.1, hspace=0.06))  # fmt: skip
    panels = figure.subplot_mosaic(
        [["borl", "borl"], ["p1", "p2"], ["line", "line"], ["bad", "bad"]],
        height_ratios=[3.0, 3.0, 2.6, 2.2],
    )
    _borl(panels["borl"], agent)
    _kernel(panels["p1"], drift.at(1), "Kernel p1")
    _kernel(panels["p2"], drift.at(TAU + 1), "Kernel p2: the actions of a state exchanged")
    _timeline(panels["line"], replay.states, replay.actions)
    _bad(panels["bad"], run, terms)
    figure.suptitle("The paper's figures, from computed data", fontsize=15)
    return Result(
        name="figures",
        title="The paper's figures",
        about=ABOUT,
        checks=judge(replay.counts, replay.p_hat, terms),
        remarks=(
            f"Of the {terms.starts.size} episodes of the last picture the sets of "
            f"{int((~terms.holds_the_model).sum())} do not hold the model; "
            f"{int(terms.separated.sum())} are in Q_T, {int(terms.bad.sum())} in Q~_T."
        ),
        tables=[_table(agent)],
        figure=figure,
        is_quick=effort.is_quick,
    )


def judge(counts: NDArray[np.int64], p_hat: NDArray[np.float64], terms: RegretTerms) -> list[Check]:
    """Judge the visits of the trajectory and what they show, and that no bad episode is missed."""
    names = ("a1", "a2", "b1", "b2")
    visits = np.array([TAU + 1, TAU - 1, TAU + 1, TAU - 1])
    away = counts * p_hat[range(4), [1, 1, 0, 0]]
    outside = ~terms.holds_the_model & ~terms.bad
    return [
        worst(
            "visits",
            f"a1 and b1 are visited tau + 1 = {TAU + 1} times, a2 and b2 tau - 1 = {TAU - 1} "
            "times: no count is off by anything",
            [Sides(abs(int(n - m)), 0, name)
             for name, n, m in zip(names, counts, visits, strict=True)],
            unit="pairs",
        ),
        worst(
            "ways out",
            "a1 and b1 lead away once, a2 and b2 never: no count is off by anything",
            [Sides(abs(float(n - m)), 1e-9, name)
             for name, n, m in zip(names, away, (1, 0, 1, 0), strict=True)],
            unit="pairs",
        ),
        check(
            "Q~_T",
            "no episode whose sets do not hold the model lies outside Q~_T",
            int(outside.sum()), "<=", 0,
        ),
        check(
            "Q_T", "there is such an episode", int((~terms.holds_the_model).sum()), ">", 0,
        ),
    ]  # fmt: skip


def _bad_episodes() -> tuple[Run, RegretTerms]:
    """Play in a slow perilous drift with a window that mostly sees one kernel."""
    model = wd.envs.make("peril", tau=QT_TAU, repeats=2)
    made = learner(model, 1, window=QT_W, widening=QT_ETA, radii={"kind": "laplace", "scale": 0.03})
    run = wd.run(model, made, seed=1)
    return run, regret_terms(run, model)


def _table(agent: BORL) -> Table:
    return Table(
        "The blocks of BORL's run",
        ("block", "start", "W", "eta", "probability", "reward told"),
        [
            [
                str(i + 1), f"{block.start:,}", f"{block.window:,}", f"{block.widening:.3g}",
                f"{block.probability:.4f}",
                f"{block.reward:.3f}" if block.told else "-",
            ]
            for i, block in enumerate(agent.blocks)
        ],
    )  # fmt: skip


def _bare(panel: Axes, title: str) -> None:
    panel.set_title(title, loc="left", fontsize=11)
    panel.spines[:].set_visible(False)
    panel.set_yticks([])


def _borl(panel: Axes, agent: BORL) -> None:
    """Draw the master above, a fresh learner in every block, and what each tells the other."""
    T, blocks = agent.horizon, agent.blocks
    _bare(panel, f"Structure of BORL: {len(blocks)} blocks of H = {blocks.block_length} steps, "
          f"{len(agent.arms)} arms")  # fmt: skip
    panel.broken_barh([(1, T)], (2.0, 0.55), color=COLOURS[0], alpha=0.85)
    panel.text(T / 2, 2.275, "EXP3.P: one arm (W, eta) for each block", ha="center", va="center",
               color="#FFFFFF", fontsize=11)  # fmt: skip
    for i in range(len(blocks)):
        block = blocks[i]
        width = block.length
        panel.broken_barh([(block.start, width * 0.94)], (0.3, 0.8),
                          color=COLOURS[4], alpha=0.35 + 0.6 * block.window / blocks.block_length
                          if block.window <= blocks.block_length else 0.95)  # fmt: skip
        middle = block.start + width / 2
        panel.text(middle, 0.7, f"W = {block.window:,}\neta = {block.widening:.2g}", ha="center",
                   va="center", fontsize=8.5 if width == blocks.block_length else 6.0)  # fmt: skip
        panel.annotate("", (middle - width / 7, 1.12), (middle - width / 7, 1.98),
                       arrowprops={"arrowstyle": "-|>", "color": "#404040"})  # fmt: skip
        if block.told:
            panel.annotate("", (middle + width / 7, 1.98), (middle + width / 7, 1.12),
                           arrowprops={"arrowstyle": "-|>", "color": COLOURS[1]})  # fmt: skip
            panel.text(middle + width / 6, 1.55, f"{block.reward:.2f}", fontsize=8.5,
                       color=COLOURS[1], va="center")  # fmt: skip
    panel.set_xlim(0, T * 1.02)
    panel.set_ylim(0.2, 2.7)
    panel.set_xlabel("t; down: the arm that was drawn, up: the block's reward over H")


def _kernel(panel: Axes, model: MDP, title: str) -> None:
    """Draw the states of a deterministic model and where each action leads."""
    _bare(panel, title)
    panel.set_xticks([])
    panel.set_xlim(-1.7, 3.7)
    panel.set_ylim(-1.25, 1.25)
    panel.set_aspect("equal")
    space, places = model.space, np.array([[0.0, 0.0], [2.0, 0.0]])
    for s, (x, y) in enumerate(places):
        panel.add_patch(Circle((x, y), 0.3, facecolor="#FFFFFF", edgecolor="#000000", zorder=3))
        panel.text(x, y, str(space.state_name(s)), ha="center", va="center", fontsize=13, zorder=4)
    rows = np.asarray(model.transitions)
    for pair in range(space.n_pairs):
        s, a = int(space.state_of[pair]), int(space.action_of[pair])
        after, colour = int(rows[pair].argmax()), COLOURS[a]
        side = -1.0 if s == 0 else 1.0
        name = space.action_name(s, a)
        if after == s:
            x = places[s, 0] + 0.27 * side
            loop = FancyArrowPatch((x, 0.18), (x, -0.18), color=colour, arrowstyle="-|>",
                                   connectionstyle=f"arc3,rad={-2.2 * side}", mutation_scale=16,
                                   linewidth=1.8)  # fmt: skip
            panel.add_patch(loop)
            panel.text(x + 0.75 * side, 0.0, name, color=colour, ha="center", va="center",
                       fontsize=13)  # fmt: skip
        else:
            panel.add_patch(FancyArrowPatch(
                (places[s, 0] - 0.26 * side, -0.2 * side), (places[after, 0] + 0.26 * side,
                -0.2 * side), color=colour, arrowstyle="-|>", connectionstyle="arc3,rad=-0.25",
                mutation_scale=16, linewidth=1.8,
            ))  # fmt: skip
            panel.text(1.0, 0.68 * -side, name, color=colour, ha="center", va="center", fontsize=13)


def _timeline(panel: Axes, states: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
    """Draw policies, kernels, actions and states of the proof, step by step."""
    W = actions.size
    _bare(panel, f"The trajectory of Proposition 3's proof, tau = {W // 4}, W = 4 tau")
    names = (("a1", "a2"), ("b1", "b2"))
    played = [names[s][a] for s, a in zip(states, actions, strict=False)]
    rows = {
        "policy": ["pi1" if t <= W // 2 else "pi2" for t in range(1, W + 1)],
        "kernel": ["p1" if (t - 1) // (W // 4) % 2 == 0 else "p2" for t in range(1, W + 1)],
        "action": played,
        "state": [str(s + 1) for s in states[:W]],
    }
    for height, (row, words) in zip((3, 2, 1, 0), rows.items(), strict=True):
        starts = [0] + [t for t in range(1, W) if words[t] != words[t - 1]] + [W]
        shades = {word: COLOURS[i] for i, word in enumerate(sorted(set(words)))}
        for first, last in itertools.pairwise(starts):
            panel.broken_barh([(first + 1, last - first)], (height + 0.1, 0.75),
                              color=shades[words[first]], alpha=0.4)  # fmt: skip
            panel.text(first + 1 + (last - first) / 2, height + 0.47, words[first], ha="center",
                       va="center", fontsize=10)  # fmt: skip
        panel.text(0.4, height + 0.47, row, ha="right", va="center", fontsize=10)
    quarter = W // 4
    marks = [1, quarter + 1, quarter + 2, 2 * quarter + 1, 3 * quarter + 1, 3 * quarter + 2, W + 1]
    words = ["1", "", "tau + 2", "2 tau + 1", "", "3 tau + 2", "W + 1"]
    panel.set_xticks(marks, words, fontsize=9)
    panel.set_xlim(-2.5, W + 1.5)
    panel.set_ylim(0, 4)


def _bad(panel: Axes, run: Run, terms: RegretTerms) -> None:
    """Draw the episodes of a run by what the proof does with them."""
    _bare(panel, f"Episodes of a run in the perilous drift, tau = {QT_TAU}, W = {QT_W}, eta = "
          f"{QT_ETA:g}: the proof gives up those of Q~_T")  # fmt: skip
    kinds = {
        "in Q_T: p_tau not in H_p, more than W after the last": (terms.separated, COLOURS[1]),
        "in Q~_T only: within W after one of Q_T": (terms.bad & ~terms.separated, COLOURS[4]),
        "in neither: p_tau in H_p": (~terms.bad, COLOURS[2]),
    }
    for flags, colour in kinds.values():
        spans = [(int(terms.starts[m]), int(terms.lengths[m]) * 0.97 + 0.0)
                 for m in np.flatnonzero(flags)]  # fmt: skip
        panel.broken_barh(spans, (1.0, 0.7), color=colour)
    first_steps = terms.starts[terms.separated]
    panel.plot(first_steps, np.full(first_steps.size, 1.8), "v", color=COLOURS[1], markersize=9)
    T = run.steps
    for first in range(1, T + 1, QT_TAU):
        name = "p1" if (first - 1) // QT_TAU % 2 == 0 else "p2"
        panel.broken_barh([(first, QT_TAU)], (0.2, 0.6), color=GREY if name == "p1" else "#E8E8E8")
        panel.text(first + QT_TAU / 2, 0.5, name, ha="center", va="center", fontsize=10)
    panel.set_xlim(0, T + 1)
    panel.set_ylim(0.1, 1.9)
    panel.set_xlabel("t")
    handles = [Patch(color=colour, label=name) for name, (_, colour) in kinds.items()]
    panel.legend(handles=handles, fontsize=9, frameon=False, ncols=3, loc="upper left",
                 bbox_to_anchor=(0.0, -0.3))  # fmt: skip
