"""`windage demo`: a river that drifts and its oracle, in two pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.oracle import ask, oracle_target, run_agent

if TYPE_CHECKING:
    from windage.drift import DriftingMDP
    from windage.report import Truth
    from windage.simulate import Run

_T = 20_000


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path(
        "out/demo"
    ),
) -> None:
    """Draw a drifting RiverSwim, a path through it and its optimum, and say what is to be seen."""
    _say(f"Building a river of 6 states that drifts for {_T:,} steps ...")
    import windage as wd

    river = wd.envs.make("riverswim", horizon=_T)
    _say("Swimming at random (the first run on a machine compiles for some seconds) ...")
    random = run_agent("random", river, seed=0)
    _say("Drawing ...")
    from windage.report import drift_figure, oracle_figure, save_figure

    target = output / "riverswim.png"
    save_figure(drift_figure(river, random, agent="random"), target)
    _say("Asking the oracle for the best at every t, and swimming where the next reward is ...")
    truth = ask(river, lambda stage: None)  # noqa: ARG005
    myopic = run_agent("myopic", river, seed=0)
    runs = {"random": random, "myopic": myopic}
    save_figure(oracle_figure(river, truth, runs), oracle_target(target))
    print(f"\nThe picture is {target}.\n")
    for sentence in _drift(river, random):
        print(sentence)
    print(f"\nThe oracle's picture is {oracle_target(target)}.\n")
    for sentence in _optimum(river, truth, runs):
        print(sentence)


def _drift(river: DriftingMDP, run: Run) -> list[str]:
    """Return what the first picture shows, in numbers of this very run."""
    import numpy as np

    budgets = river.budgets()
    swaps = np.flatnonzero(budgets.reward_steps) + 2  # step t - 1 -> t
    up = [river.at(t).transitions[river.space.pair(1, 1), 2] for t in (1, _T // 2, _T)]
    pays = np.array([river.at(t).rewards[-1] for t in range(1, _T + 1)])
    upstream = pays == pays.max()
    low = np.mean(run.states[:-1] <= 1)
    return [
        f"The prizes at the two ends of the river trade places at t = {_listed(swaps)}, so B_r "
        f"grows in {len(swaps)} jumps to {budgets.reward:.2f}.",
        f"The current turns with the season: a stroke up from state 1 succeeds with probability "
        f"{up[0]:.2f} at t = 1, {up[1]:.2f} at t = {_T // 2:,} and {up[2]:.2f} at t = {_T:,}, so "
        f"B_p creeps up to {budgets.transition:.2f}.",
        f"An agent that acts at random spends {low:.0%} of its time in the two lowest states and "
        f"collects {run.total_reward / _T:.3f} a step: {run.rewards[upstream].mean():.3f} while "
        f"the great prize is up the river, {run.rewards[~upstream].mean():.3f} while it is at the "
        "mouth.",
    ]


def _optimum(river: DriftingMDP, truth: Truth, runs: dict[str, Run]) -> list[str]:
    """Return what the second picture shows."""
    from windage.report import share
    from windage.report.panels import upwards

    changes = truth.policies.starts[1:]
    swims = [river.space.action_name(0, int(actions[0])) for actions in truth.policies.actions]
    least = truth.diameters.argmin()
    shares = {name: share(run, truth) for name, run in runs.items()}
    return [
        f"The best average reward of the river as it is at time t, rho*_t, is "
        f"{truth.mean_gain:.4f} on average, between {truth.gains.values.min():.4f} and "
        f"{truth.gains.values.max():.4f}, each value proved to within "
        f"{upwards(truth.gains.error)}; {truth.gains.solves} models were solved for all "
        f"{_T:,} values.",
        f"The two states furthest apart are {truth.diameters[least]:.1f} steps apart at "
        f"t = {truth.times[least]:,} and {truth.largest.lower:.1f} at t = {truth.largest.t:,}, "
        "when the current is strongest: that is the diameter D_t.",
        f"The best policy changes at t = {_listed(changes)}: from every state swim "
        f"{', then '.join(swims)}.",
        f"The random agent gets {shares['random']:.1%} of what the oracle promises. The myopic "
        "agent is told the model at every t and takes the action that pays most now: it gets "
        f"{shares['myopic']:.1%}, for it never swims up to a prize.",
    ]


def _listed(times: object) -> str:
    import numpy as np

    *most, last = (f"{t:,}" for t in np.asarray(times).tolist())
    return f"{', '.join(most)} and {last}" if most else last


def _say(line: str) -> None:
    print(line, flush=True)
