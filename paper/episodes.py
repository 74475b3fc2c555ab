"""The number of episodes (C2, E17), and how they grow in the first block (C12, E18)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import windage as wd
from paper.cases import learner
from paper.claims import Check, Sides, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, MARKERS, canvas, label, legend

__all__ = ["Counted", "compute", "judge", "most_episodes", "printed_number"]

WORLDS = ("two-state-cosine", "riverswim", "random-drift", "inventory")
WINDOWS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)

LEAST = Least(60, "fewer than four windows, from 1 to T / 2, would be compared")

ABOUT = """
An episode ends when t is a multiple of W or when a pair has been visited as often in it as in the
window before it. The printed lemma allows SA (2 + log2 W) T / W episodes; it forgets the episodes
that boundaries start, and the block that is not whole (E17). Counting these, M(T) is at most
(floor(T/W) + 1)(SA (2 + log2 W) + 1), whatever happens: no event is needed. In the first block
nothing has been forgotten yet, so that tau(m + 1) <= 2 tau(m) - 1 + S (C12), which the sum of
1/sqrt(tau(m)) needs (E18).
"""


def printed_number(SA: int, W: int, T: int) -> float:
    """Return the bound as printed.

    >>> printed_number(4, 1000, 10) < 1
    True
    """
    return SA * (2 + math.log2(W)) * T / W


def most_episodes(SA: int, W: int, T: int) -> float:
    """Return the bound that holds for every run."""
    return (T // W + 1) * (SA * (2 + math.log2(W)) + 1)


class Counted(NamedTuple):
    """Episodes of a setting, over seeds, beside what the lemmas allow."""

    most: int  # episodes, over seeds
    bound: float
    printed: float
    slack: int | None  # of C12, the least over seeds; None where the first block is one episode
    first: float  # sum of 1 / sqrt(tau(m)) over the steps of the first block
    printed_first: float


def compute(effort: Effort) -> Result:
    """Count episodes for many windows and compare with both bounds."""
    T = effort.steps(20_000, quick=2000)
    seeds = effort.runs(10, quick=2, least=1)
    windows = [W for W in WINDOWS if 2 * W <= T]
    found: dict[tuple[str, int], Counted] = {}
    for world in WORLDS:
        effort.say(f"counting episodes: {world}")
        model = wd.envs.make(f"{world}-v0", horizon=T)
        S, SA = model.space.n_states, model.space.n_pairs
        for W in windows:
            most, first = 0, 0.0
            slack: int | None = None
            for seed in range(seeds):
                made = learner(model, seed, window=W, widening=0.3)
                episodes = wd.run(model, made, seed=seed).episodes
                most = max(most, episodes.total)
                early = episodes.start[episodes.start < W] if W > 1 else episodes.start[:1]
                after = np.append(early[1:], [])
                if early.size > 1:
                    here = int((2 * early[:-1] - 1 + S - after).min())
                    slack = here if slack is None else min(slack, here)
                steps = np.minimum(episodes.length, np.maximum(W - episodes.start, 0))
                first = max(first, float((steps / np.sqrt(episodes.start)).sum()))
            found[world, W] = Counted(
                most, most_episodes(SA, W, T), printed_number(SA, W, T), slack, first, math.sqrt(W)
            )
    beyond = sum(one.first > one.printed_first for one in found.values())
    return Result(
        name="episodes",
        title="The number of episodes (Lemma on M(T))",
        about=ABOUT,
        checks=judge(found),
        remarks=(
            f"Each setting is {seeds} runs. The printed sum over the first block, sqrt(W), was "
            f"exceeded in {beyond} of {len(found)} settings (E18)."
        ),
        tables=[_table(found, T, seeds)],
        figure=_draw(found, windows),
        is_quick=effort.is_quick,
    )


def judge(found: dict[tuple[str, int], Counted]) -> list[Check]:
    """Judge the number of episodes, and how they grow in the first block where there are two."""
    at = {key: f"{key[0]}, W = {key[1]:,}" for key in found}
    return [
        worst(
            "C2",
            "M(T) <= (floor(T/W) + 1)(SA (2 + log2 W) + 1)",
            [Sides(one.most, one.bound, at[key]) for key, one in found.items()],
            unit="settings",
        ),
        worst(
            "C12",
            "in the first block 2 tau(m) - 1 + S - tau(m + 1) is never below 0",
            [Sides(one.slack, 0, at[key]) for key, one in found.items() if one.slack is not None],
            ">=",
            unit="settings",
        ),
    ]


def _table(found: dict[tuple[str, int], Counted], T: int, seeds: int) -> Table:
    return Table(
        f"Most episodes over {seeds} seeds, T = {T:,}",
        ("world", "W", "M(T)", "our bound", "printed", "least slack of C12",
         "first block", "printed, sqrt W"),
        [
            [
                world, f"{W:,}", f"{one.most:,}", f"{one.bound:,.0f}", f"{one.printed:,.0f}",
                "-" if one.slack is None else str(one.slack),
                f"{one.first:.1f}", f"{one.printed_first:.1f}",
            ]
            for (world, W), one in found.items()
        ],
    )  # fmt: skip


def _draw(found: dict[tuple[str, int], Counted], windows: list[int]) -> Any:
    figure, (left, right) = canvas("Episodes against the window", height=4.8)
    for i, world in enumerate(WORLDS):
        mine = [found[world, W] for W in windows]
        left.plot(windows, [one.most for one in mine], f"-{MARKERS[i]}", color=COLOURS[i],
                  label=f"{world}: M(T)")  # fmt: skip
        left.plot(windows, [one.bound for one in mine], "--", color=COLOURS[i],
                  label=f"{world}: bound")  # fmt: skip
        # with W = 1 the first block has no steps
        right.plot(windows[1:], [one.first / one.printed_first for one in mine[1:]],
                   f"-{MARKERS[i]}", color=COLOURS[i], label=world)  # fmt: skip
    label(left, "M(T) and its bound", "W", "episodes", logs="xy")
    legend(left)
    right.axhline(1.0, color="#000000", linestyle="--", linewidth=1)
    label(right, "Sum of 1/sqrt(tau(m)) over the steps of the first block, over the printed "
          "sqrt(W): above 1 the printed step fails", "W", "ratio", logs="x")  # fmt: skip
    legend(right)
    return figure
