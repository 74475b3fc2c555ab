"""Properties 1 and 2 of EVI (C7), on every call of whole runs; the printed Property 1 (E11).

The right sides are computed without a planner: no sweeps, no order of states, no policy. `wd.evi`
fills the best state from the worst ones, in one pass for all pairs. Here the maximum over a set is
an integral over levels instead: two ways to one number, so that each can check the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paper.cases import CASES, LONGEST, Case
from paper.claims import Check, Sides, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, canvas, label, legend
from windage.proof import Hindsight, HindsightEpisode, hindsight

__all__ = [
    "Checked", "best_values", "check", "compute", "judge", "printed_values", "reach", "width_of",
]  # fmt: skip

Reals = NDArray[np.float64]

EXACT = 1e-9

LEAST = Least(2 * LONGEST, f"a run must be twice as long as its window, which has {LONGEST} steps")

ABOUT = """
EVI returns rho~ and gamma~ for which

1. rho~ + gamma~(s) >= r~(s, a) + max over q in H_p(s, a) of q . gamma~, for every pair, and
2. r~(s, pi~(s)) >= rho~ + gamma~(s) - p~ . gamma~ - eps, for every state.

Both are exact whatever eps is, and all that the proofs use of EVI. The right sides come from a
checker that is no planner: sets are recounted from the record of the run, and a maximum over an
L1 ball is an integral over levels. Property 2 is checked in the states that were visited, for the
action that was played, and the policy's value is the largest of the state.

The paper prints Property 1 with the maximum inside the sum over s', where no single q attains it
(E11); the last column counts the calls in which that fails. With two states one entry of gamma~
is 0 and both readings agree.
"""


def width_of(episode: HindsightEpisode) -> Reals:
    """Return radius plus widening of every pair's L1 set; 2 where it is the whole simplex (E8)."""
    return np.where(
        episode.seen, np.minimum(episode.transition_radius + episode.widening, 2.0), 2.0
    )


def reward_upper(episode: HindsightEpisode) -> Reals:
    """Return r~ of every pair: r-hat + rad_r cut to [0, 1], and 1 if it was never visited."""
    hope = np.clip(episode.mean_reward + episode.reward_radius, 0.0, 1.0)
    return np.where(episode.seen, hope, 1.0)


def best_values(episode: HindsightEpisode, u: Reals) -> Reals:
    """Return r~ + max q.u over the L1 set of every pair, level by level.

    q.u = min u + the integral over x of q(u > x), and q(u > x) <= min(1, p_hat(u > x) + width / 2);
    moving mass from the worst states to the best attains all of these at once.
    """
    order = np.argsort(u, kind="stable")
    rising = u[order]
    above = np.cumsum(episode.p_hat[:, order][:, ::-1], axis=1)[:, ::-1][:, 1:]
    most = np.minimum(1.0, above + width_of(episode)[:, None] / 2)
    most[~episode.seen] = 1.0
    values: Reals = reward_upper(episode) + rising[0] + most @ np.diff(rising)
    return values


def printed_values(episode: HindsightEpisode, u: Reals) -> Reals:
    """Return the right side of Property 1 as printed: each next state at its own largest q(s')."""
    most = np.minimum(1.0, episode.p_hat + width_of(episode)[:, None] / 2)
    most[~episode.seen] = 1.0
    values: Reals = reward_upper(episode) + most @ u
    return values


def reach(episode: HindsightEpisode, offsets: NDArray[np.int64]) -> float:
    """Return beta: from every state some action may put as much mass on any one state (spec 1.7).

    Then span(gamma~) <= 1 / beta, and with a widening beta >= min(1, eta / 2).
    """
    moved = np.minimum(1.0, width_of(episode) / 2)
    return float(np.maximum.reduceat(moved, offsets[:-1]).min())


class Checked(NamedTuple):
    """All calls of a run."""

    first: NDArray[np.float64]  # how far Property 1 is exceeded by the worst pair; <= 0 is kept
    second: NDArray[np.float64]  # how far Property 2 is missed in the worst state visited
    printed: NDArray[np.float64]  # how far the printed Property 1 is exceeded
    states: int


def check(again: Hindsight) -> Checked:
    """Check both properties at every episode of a run."""
    rows = [_check(again, episode) for episode in again.episodes()]
    first, second, printed = np.array(rows).T
    return Checked(first, second, printed, again.model.space.n_states)


def _check(again: Hindsight, episode: HindsightEpisode) -> tuple[float, float, float]:
    space = again.model.space
    level = episode.gain + episode.bias
    values = best_values(episode, episode.bias)
    here = slice(episode.start - 1, episode.last)
    played = np.unique(again.pairs[here])
    missed = level[space.state_of[played]] - episode.epsilon - values[played]
    return (
        float((values - level[space.state_of]).max()),
        float(missed.max()),
        float((printed_values(episode, episode.bias) - level[space.state_of]).max()),
    )


def _measure(case: Case, effort: Effort) -> Checked:
    model = case.model(effort)
    return check(hindsight(case.play(model, seed=0), model))


def compute(effort: Effort) -> Result:
    """Check both properties on every call of EVI of the runs."""
    found = {}
    for case in CASES:
        effort.say(f"checking every call of EVI: {case.name}")
        found[case.name] = _measure(case, effort)
    more = [one for one in found.values() if one.states > 2]
    wrong = sum(int((one.printed > EXACT).sum()) for one in more)
    return Result(
        name="evi",
        title="Properties 1 and 2 of extended value iteration",
        about=ABOUT,
        checks=judge(found),
        remarks=(
            f"Property 1 as printed fails in {wrong:,} of {sum(one.first.size for one in more):,} "
            "calls with more than two states (E11)."
        ),
        tables=[_table(found)],
        figure=_draw(found),
        is_quick=effort.is_quick,
    )


def judge(found: dict[str, Checked]) -> list[Check]:
    """Judge both properties on every call, and that the printed form is false."""
    kept = {"Property 1": "first", "Property 2": "second"}
    beyond = [Sides(float(one.printed.max()), EXACT, run) for run, one in found.items()
              if one.states > 2]  # fmt: skip
    return [
        *(
            worst(
                name,
                f"{name}, as we read it, is missed by no more than {EXACT:g}",
                [Sides(float(x), EXACT, run) for run, one in found.items()
                 for x in np.maximum(getattr(one, column), 0.0)],
                unit="calls",
            )
            for name, column in kept.items()
        ),
        worst(
            "E11",
            "Property 1 as printed is exceeded somewhere in a run with more than two states",
            [max(beyond, key=lambda sides: sides.left)] if beyond else [],
            ">",
        ),
    ]  # fmt: skip


def _table(found: dict[str, Checked]) -> Table:
    return Table(
        "By how much the worst call of each run misses (0: nowhere beyond rounding)",
        ("case", "S", "calls", "Property 1", "Property 2", "printed Property 1 fails"),
        [
            [
                name, str(one.states), f"{one.first.size:,}",
                f"{max(one.first.max(), 0.0):.1e}", f"{max(one.second.max(), 0.0):.1e}",
                f"{int((one.printed > EXACT).sum()):,}",
            ]
            for name, one in found.items()
        ],
    )  # fmt: skip


def _draw(found: dict[str, Checked]) -> Any:
    figure, (left, right) = canvas("EVI's certificate, call by call", height=5.0)
    for i, (name, one) in enumerate(found.items()):
        colour, style = COLOURS[i % len(COLOURS)], "-" if i < 7 else "--"
        order = np.linspace(0, 1, one.second.size)
        left.plot(order, np.sort(-one.second), color=colour, linestyle=style, label=name)
        if one.states > 2:
            right.plot(order, np.sort(one.printed), color=colour, linestyle=style, label=name)
    left.axhline(0.0, color="#000000", linestyle="--", linewidth=1)
    left.set_yscale("symlog", linthresh=1e-6)
    left.set_ylim(-3e-6, 1.5)
    label(left, "Slack of Property 2 at the worst state visited: below 0 it fails",
          "share of the calls", "slack")  # fmt: skip
    legend(left, columns=3)
    right.axhline(0.0, color="#000000", linestyle="--", linewidth=1)
    label(right, "Excess of the printed Property 1: above 0 it is false", "share of the calls",
          "excess")  # fmt: skip
    legend(right, columns=3)
    return figure
