"""`windage try`: one run of one agent in one environment."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli import models
from windage.cli.agents import listed, summary_of
from windage.cli.options import parse_settings, require_writable
from windage.cli.terminal import Progress, print_table, print_text, say
from windage.errors import InputError

if TYPE_CHECKING:
    from windage.agents import Agent
    from windage.agents.episodes import Episodes
    from windage.models import DriftingMDP
    from windage.regret import Regret
    from windage.simulate import Run

_STEPS = 100_000
_RECORDED = 100_000  # steps that are kept of a run: a picture shows no more
_GIVEN = ("space", "horizon", "problem", "budgets", "diameter")  # no option of `try` sets these
_LABELS = (
    "radii", "ties", "slack", "window", "widening", "master", "block_length", "prior",
)  # fmt: skip


def try_(
    env: Annotated[str, typer.Argument(help="An environment, or the path of a .npz model.")],
    agent: Annotated[
        str, typer.Argument(help="An agent (`windage agents` lists them), or module:Class.")
    ],
    horizon: Annotated[
        int | None,
        typer.Option("-T", "--horizon", metavar="N", help=f"How many steps; default: {_STEPS:,}."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the noise, and of the agent's own draws.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the agent."),
    ] = None,
    env_settings: Annotated[
        list[str] | None,
        typer.Option("--env-set", metavar="NAME=VALUE", help="A parameter of the environment."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Run one agent in one environment, and print its regret."""
    import windage as wd
    from windage.report import picture_kind, regret_figure, save_figure

    options = parse_settings(settings or [], "--set")
    if output is not None:
        picture_kind(output)  # better now than after the work
        require_writable(output)
    model, summary, title = _find(env, horizon, parse_settings(env_settings or [], "--env-set"))
    learner, prior_knowledge = _make(agent, model, seed, options)
    target = output or Path("out") / f"{title}-{agent.rpartition(':')[2]}.png"
    require_writable(target)
    every = -(-model.horizon // _RECORDED)
    with Progress() as progress:
        progress("whether it communicates at every t")
        holes = model.disconnections()
        progress("the optimal gain of every t")
        gains = model.optimal_gains()
        pace = _Pace(progress)
        run = wd.run(model, learner, seed, record="full" if every == 1 else every, progress=pace)
        speed = pace.speed()
        progress("the regret")
        regret = wd.dynamic_regret(run, model, gains=gains)
        progress("drawing")
        labels = _labels(learner)
        details = ", ".join(f"{name} {value}" for name, value in labels.items())
        figure = regret_figure(run, regret, title, agent=agent, details=details)
        save_figure(figure, target)
        memory = _draw_memory(learner, title, target)
    print_text(f"{title}: {summary}" if summary else title)
    print_text(f"{agent}: {summary_of(type(learner))}")
    table = [
        *_result(run, regret),
        *_alarms(learner),
        *([name, value] for name, value in labels.items()),
    ]
    if prior_knowledge or getattr(learner, "requires", ()):
        table.append(["given", listed(prior_knowledge)])
    print_table(["", f"T = {run.steps:,}, seed {seed}"], [*table, ["steps per second", speed]])
    if regret.total < 0:
        print_text(regret.explain())
    if holes:
        print_text(f"{title} {models.apart(holes, model.space)}: {models.NO_GUARANTEE}")
    say(f"picture: {target}")
    if memory is not None:
        say(f"effective memory: {memory}")


def _draw_memory(learner: Any, title: str, target: Path) -> Path | None:
    """Draw the effective memory of a learner that has one; returns the path of the picture."""
    from windage.report import forgetting_figure, save_figure

    if not hasattr(learner, "forgetting"):
        return None
    place = target.with_stem(f"{target.stem}-memory")
    save_figure(forgetting_figure(learner.forgetting(), learner.horizon, title), place)
    return place


class _Pace:
    """The speed of a run; its first block is not timed, since compiled loops are loaded in it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._start = (0, time.perf_counter())
        self._first: tuple[int, float] | None = None
        self._now = self._start

    def __call__(self, done: int, steps: int) -> None:
        """Take in how many steps are done."""
        self._now = (done, time.perf_counter())
        self._first = self._first or self._now
        self._progress.count("playing", done, steps, steps=True)

    def speed(self) -> str:
        """Return the steps per second, in three digits."""
        since, remark = self._first or self._start, ""
        if since == self._now:
            since, remark = self._start, " (with the time to load)"
        steps, seconds = self._now[0] - since[0], self._now[1] - since[1]
        return f"{float(f'{steps / max(seconds, 1e-9):.3g}'):,.0f}{remark}"


def _result(run: Run, regret: Regret) -> list[list[str]]:
    """Return rewards and regret, in rows."""
    from windage.report.figures.style import upwards

    error = upwards(regret.error)
    share = f"{regret.share:.1%}, noise apart"
    found = [
        ["total reward", _sum(run.total_reward)],
        ["optimal gain", f"{_sum(regret.total_optimal)} +- {error}"],
        ["share of it", share if regret.total_optimal > 0 else "nothing is to be earned"],
        ["pseudo-regret", f"{_sum(regret.total)} +- {error}"],
        ["observed regret", _sum(regret.total_observed)],
    ]
    if len(run.episodes):
        found.append(["episodes", _episodes(run.episodes)])
    return found


def _alarms(learner: Any) -> list[list[str]]:
    """Return how often each change test of a learner fired, one row per test."""
    fired = getattr(learner, "fired", None)
    if not isinstance(fired, dict) or not hasattr(learner, "reach"):
        return []
    rows = []
    for reach in learner.reach():
        n = fired[reach.test]
        never = "" if n or reach.can_fire else ", and cannot at this T"
        rows.append([f"test {reach.test} fired", f"{n:,} times{never}"])
    return rows


def _episodes(episodes: Episodes) -> str:
    """Return the number of episodes, and why they ended."""
    import numpy as np

    total = episodes.total
    ends, counts = np.unique(episodes.reason, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    reasons = ", ".join(f"{ends[k]} {counts[k]:,}" for k in order)
    some = f"of the last {len(episodes):,}: " if total > len(episodes) else ""
    return f"{total:,} ({some}{reasons})"


def _find(
    env: str, horizon: int | None, parameters: dict[str, Any]
) -> tuple[DriftingMDP, str, str]:
    """Return a model, its summary, and its name."""
    import windage as wd

    file = models.file_named(env)
    if file is not None:
        if parameters or horizon is not None:
            raise InputError(
                "a file has its own horizon and no parameters",
                field=env,
                fix="leave out -T and --env-set, or name an environment",
            )
        return models.load(file), "", file.stem
    if "horizon" in parameters:
        raise InputError("the horizon is set with -T", field="--env-set", fix="write -T N")
    length = _STEPS if horizon is None else horizon
    model = wd.envs.make(env, horizon=length, **parameters)
    return model, wd.envs.get(env).summary, str(model.name)


def _make(
    name: str, model: DriftingMDP, seed: int, options: dict[str, Any]
) -> tuple[Agent, tuple[str, ...]]:
    """Return an agent for a model, and its prior knowledge: what it requires, no more."""
    import windage as wd

    for option in options:
        if option in _GIVEN:
            raise InputError(
                f"{option!r} is given by the environment", field="--set", fix="leave it out"
            )
    given = {"seed": seed} | wd.agents.facts(name, model, **options) | options
    learner = wd.agents.make(name, model.space, horizon=model.horizon, **given)
    return learner, wd.agents.requires(name, **given)


def _labels(agent: Agent) -> dict[str, str]:
    """Return the labels that a result of this agent must carry, as far as the agent has them."""
    found: dict[str, str] = {}
    for name in _LABELS:
        value = getattr(agent, name, None)
        value = getattr(value, "label", value)
        if name == "slack" and not value:
            continue
        if isinstance(value, str):
            found[name] = value
        elif isinstance(value, (int, float)):
            found[name] = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        elif value is not None:  # one a pair
            found[name] = f"{value.min():.4g} to {value.max():.4g}"
    return found


def _sum(value: float) -> str:
    """Return a sum of rewards.

    >>> _sum(12345.678), _sum(-3.14159), _sum(500.0)
    ('12,345.68', '-3.142', '500')
    """
    return f"{value:.4g}" if abs(value) < 100 else f"{value:,.2f}".rstrip("0").rstrip(".")
