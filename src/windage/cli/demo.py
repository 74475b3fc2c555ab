"""`windage demo`: a river that drifts, in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from windage.drift import DriftingMDP
    from windage.simulate import Run

_T = 20_000


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path(
        "out/demo"
    ),
) -> None:
    """Draw a drifting RiverSwim and a path through it, and say what the picture shows."""
    _say(f"Building a river of 6 states that drifts for {_T:,} steps ...")
    import windage as wd

    river = wd.envs.make("riverswim", horizon=_T)
    _say("Swimming at random (the first run on a machine compiles for some seconds) ...")
    agent = wd.agents.make("random", river.space, horizon=_T)
    run = wd.run(river, agent)
    _say("Drawing ...")
    from windage.report import drift_figure, save_figure

    target = output / "riverswim.png"
    save_figure(drift_figure(river, run, agent="random"), target)
    print(f"\nThe picture is {target}.\n")
    for sentence in _sentences(river, run):
        print(sentence)


def _sentences(river: DriftingMDP, run: Run) -> list[str]:
    """Return what the picture shows, in numbers of this very run."""
    import numpy as np

    budgets = river.budgets()
    swaps = [f"{t + 2:,}" for t in np.flatnonzero(budgets.reward_steps)]  # step t - 1 -> t
    up = [river.at(t).transitions[river.space.pair(1, 1), 2] for t in (1, _T // 2, _T)]
    pays = np.array([river.at(t).rewards[-1] for t in range(1, _T + 1)])
    upstream = pays == pays.max()
    low = np.mean(run.states[:-1] <= 1)
    return [
        f"The prizes at the two ends of the river trade places at t = {', '.join(swaps[:-1])} and "
        f"{swaps[-1]}, so B_r grows in {len(swaps)} jumps to {budgets.reward:.2f}.",
        f"The current turns with the season: a stroke up from state 1 succeeds with probability "
        f"{up[0]:.2f} at t = 1, {up[1]:.2f} at t = {_T // 2:,} and {up[2]:.2f} at t = {_T:,}, so "
        f"B_p creeps up to {budgets.transition:.2f}.",
        f"An agent that acts at random spends {low:.0%} of its time in the two lowest states and "
        f"collects {run.total_reward / _T:.3f} a step: {run.rewards[upstream].mean():.3f} while "
        f"the great prize is up the river, {run.rewards[~upstream].mean():.3f} while it is at the "
        "mouth.",
    ]


def _say(line: str) -> None:
    print(line, flush=True)
