"""Properties 1 and 2 of EVI (C7), on every call of whole runs; the printed Property 1 (E11)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.paper.checker import best_values, printed_values
from windage.paper.drawing import COLOURS, canvas, label, legend
from windage.paper.judging import Check, Sides, worst
from windage.paper.result import Effort, Least, Result, Table
from windage.paper.suite import CASES, LONGEST, Case
from windage.proof import Hindsight, Look, hindsight

__all__ = ["Checked", "check", "compute", "judge"]

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


class Checked(NamedTuple):
    """All calls of a run."""

    first: NDArray[np.float64]  # how far Property 1 is exceeded by the worst pair; <= 0 is kept
    second: NDArray[np.float64]  # how far Property 2 is missed in the worst state visited
    printed: NDArray[np.float64]  # how far the printed Property 1 is exceeded
    states: int


def check(again: Hindsight) -> Checked:
    """Check both properties at every episode of a run."""
    rows = [_check(again, look) for look in again.looks()]
    first, second, printed = np.array(rows).T
    return Checked(first, second, printed, again.model.space.n_states)


def _check(again: Hindsight, look: Look) -> tuple[float, float, float]:
    space = again.model.space
    level = look.gain + look.bias
    values = best_values(look, look.bias)
    here = slice(look.start - 1, look.last)
    played = np.unique(again.pairs[here])
    missed = level[space.state_of[played]] - look.epsilon - values[played]
    return (
        float((values - level[space.state_of]).max()),
        float(missed.max()),
        float((printed_values(look, look.bias) - level[space.state_of]).max()),
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
