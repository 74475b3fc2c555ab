"""`windage show` and `windage try`: a model, its drift and what is optimal; one run in it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.agents import listed, summary_of
from windage.cli.models import (
    NO_GUARANTEE,
    apart,
    communication,
    file_named,
    load,
    print_model,
    reason_to_skip_steps,
    sizes,
    variation,
)
from windage.cli.terminal import (
    Progress,
    number,
    parse_settings,
    print_table,
    print_text,
    require_writable,
    say,
)
from windage.errors import InputError, NotConverged

if TYPE_CHECKING:
    from windage.agents import Agent
    from windage.agents.episodes import Episodes
    from windage.envs import Facts
    from windage.models import DriftingMDP
    from windage.regret import Regret
    from windage.report import Truth
    from windage.simulate import Run

_MOST_STATES = 200  # up to here models are solved in compiled loops
_MOST_STEPS = 1_000_000
_MOST_WORK = 120_000  # (S + 8) T of drift that is no blend: some 20 seconds
_MOST_MYOPIC_STEPS = 100_000  # it looks at the model of every t
_RECORDED = 1_000_000  # steps of a path that a picture is made of
_DIAMETERS = ("diameter", "max_diameter")  # the fields of errors that speak of these
_MORE_TOLERANCE = "in Python, model.max_diameter(tol) takes a larger tol"
_FORCE = "pass --oracle to have it all the same"
_IN_PYTHON = "in Python, model.budgets() has them"


def show(
    env: Annotated[str, typer.Argument(help="An environment, or the path of a .npz model.")],
    horizon: Annotated[
        int | None, typer.Option("-T", "--horizon", metavar="N", help="The number of steps, T.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the environment; may be given several times.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The picture: .png, .svg or .pdf; default: a .png in the folder out.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Names the noise of the sampled paths.")] = 0,
    oracle: Annotated[
        bool | None,
        typer.Option(
            "--oracle/--no-oracle",
            help="Optimal gains, diameters and policies: in any case, or not at all. By default "
            "they are left out where they would take long.",
        ),
    ] = None,
) -> None:
    """Print the sizes and budgets of a model, and draw its drift and what is optimal when."""
    from windage.report import drift_figure, oracle_figure, picture_kind, save_figure
    from windage.validation import as_seed

    given = [] if horizon is None else [f"horizon={horizon}"]
    parameters = parse_settings([*given, *(settings or [])])
    as_seed(seed)
    if output is not None:
        picture_kind(output)
        require_writable(output)
    with Progress() as progress:
        progress("the model")
        model, facts, title, summary = _find(env, parameters, "--set")
        target = output or Path("out") / f"{Path(title).stem if facts is None else title}.png"
        if output is None:
            require_writable(target)
        T = f"{model.horizon:,}"
        agents, remarks = _agents(model, oracle)
        progress(f"the variation budgets of {T} steps")
        each_step = reason_to_skip_steps(model)
        if each_step:
            remarks.insert(0, f"changes and largest steps: left out, {each_step}; {_IN_PYTHON}")
        table = sizes(model) + variation(model.budgets(), facts, each_step=not each_step)
        progress("whether it communicates at every t")
        table.append(["communicates", communication(model), ""])
        progress(f"{T} steps of the random agent")
        runs = {"random": run_agent("random", model, seed)}
        progress("the picture of the drift")
        save_figure(drift_figure(model, runs["random"], title, agent="random"), target)
        pictures = [target]
        if agents is not None:
            truth = ask(model, progress, remarks)
            for name in agents:
                progress(f"{T} steps of the {name} agent")
                runs[name] = run_agent(name, model, seed)
            progress("the picture of the oracle")
            pictures.append(oracle_target(target))
            save_figure(oracle_figure(model, truth, runs, title), pictures[-1])
            table += oracle_rows(truth, runs)
    if summary:
        say(f"{title}: {summary}")
    print_model(table, closed_forms=facts is not None)
    for line in [*remarks, *(f"picture: {picture}" for picture in pictures)]:
        say(line)


def _find(
    env: str, parameters: dict[str, Any], option: str
) -> tuple[DriftingMDP, Facts | None, str, str]:
    """Return a model, its closed forms, what to call it, and a line on what it is."""
    import windage as wd

    file = file_named(env)
    if file is not None:
        if parameters:
            raise InputError(
                "a file has its own horizon and no parameters, "
                f"{', '.join(parameters)} cannot be set",
                field=env,
                fix=f"leave out -T and {option}, or name an environment",
            )
        return load(file), None, file.name, ""
    model = wd.envs.make(env, **parameters)
    return model, wd.envs.facts(env, **parameters), str(model.name), wd.envs.get(env).summary


def _agents(model: DriftingMDP, wanted: bool | None) -> tuple[list[str] | None, list[str]]:
    """Return the agents to set beside the oracle and the random one, and what is left out.

    None if the oracle is not to be asked.
    """
    if wanted is False:
        return None, []
    why = reason_to_skip(model)
    if why and not wanted:
        return None, [f"oracle: left out, {why}; {_FORCE}"]
    why = reason_to_skip_myopic(model)
    if why and not wanted:
        return [], [f"myopic agent: left out, {why}; {_FORCE}"]
    return ["myopic"], []


# --- the oracle ----------------------------------------------------------------------------------


def reason_to_skip(model: DriftingMDP) -> str:
    """Return why the oracle would take long; empty if it would not."""
    S, T = model.space.n_states, model.horizon
    if S > _MOST_STATES:
        return f"{S:,} states are more than {_MOST_STATES}"
    if T > _MOST_STEPS:
        return f"{T:,} steps are more than {_MOST_STEPS:,}"
    if not _is_blend(model) and (S + 8) * T > _MOST_WORK:
        return f"this drift is no blend, all {T:,} models would be solved one by one"
    return ""


def reason_to_skip_myopic(model: DriftingMDP) -> str:
    """Return why the myopic agent would take long; empty if it would not."""
    if model.horizon <= _MOST_MYOPIC_STEPS:
        return ""
    return f"{model.horizon:,} steps are more than {_MOST_MYOPIC_STEPS:,}"


def run_agent(name: str, model: DriftingMDP, seed: int) -> Run:
    """Let an agent act in a model, recorded finely enough for a picture."""
    import windage as wd

    given: dict[str, Any] = {"problem": model} if name == "myopic" else {}
    agent = wd.agents.make(name, model.space, horizon=model.horizon, seed=seed, **given)
    every = -(-model.horizon // _RECORDED)
    return wd.run(model, agent, seed=seed, record="full" if every == 1 else every)


def ask(
    model: DriftingMDP, progress: Callable[[str], None], remarks: list[str] | None = None
) -> Truth:
    """Return the oracle's quantities; an error says how to go on without them.

    With `remarks` to add to, diameters too long for floating point do not keep back the rest.
    """
    from windage.report import truth_of

    try:
        return truth_of(model, progress=progress)
    except NotConverged as err:
        if remarks is not None and err.field in _DIAMETERS:
            remarks.append(f"D: left out, {err.problem}; {_MORE_TOLERANCE}")
            return _without_diameters(model, progress)
        fix = f"{err.fix}, or leave the oracle out with --no-oracle"
        raise NotConverged(err.problem, field=err.field, where=err.where, fix=fix) from None


def _without_diameters(model: DriftingMDP, progress: Callable[[str], None]) -> Truth:
    """Return the oracle's quantities without diameters, which are not known."""
    import numpy as np

    from windage.models.diameters import DiameterBound
    from windage.report import Truth
    from windage.report.truth import policy_course

    progress("the optimal gain of every t, without diameters")
    gains = model.optimal_gains()
    none, unknown = np.empty(0), DiameterBound(math.nan, math.inf, 1, 0)
    times = none.astype(np.int64)
    return Truth(gains, gains.sum(), times, none, unknown, [], policy_course(model))


def oracle_rows(truth: Truth, runs: dict[str, Run]) -> list[list[str]]:
    """Return the rows of optimal gains, diameters, policies and agents."""
    from windage.report import share
    from windage.report.figures.style import upwards

    largest = truth.largest
    low, high = number(largest.lower), number(largest.upper)
    bracket = f"{low if low == high else f'{low} to {high}'} at t={largest.t:,}"
    rows = [
        ["mean rho*", f"{number(truth.mean_gain)} +- {upwards(truth.gains.error)}", ""],
        ["D max", bracket if largest.lower == largest.lower else "not known", ""],
        ["policy changes", f"{truth.policies.changes:,} seen", ""],
    ]
    for name, run in runs.items():
        part = share(run, truth)
        earned = f"{part:.1%} of the optimal gain" if part == part else "nothing is to be earned"
        rows.append([f"{name} earns", earned, ""])
    return rows


def oracle_target(target: Path) -> Path:
    """Return the path of the oracle's picture, beside the other.

    >>> oracle_target(Path("out/river.png")).as_posix()
    'out/river-oracle.png'
    """
    return target.with_name(f"{target.stem}-oracle{target.suffix}")


def _is_blend(model: DriftingMDP) -> bool:
    """Return whether the oracle needs fewer solves than one a time, as a rule."""
    from windage.models import Blend

    source = model.source
    if not isinstance(source, Blend):
        return False
    schedules = (source.rewards.schedule, source.kernels.schedule)
    return all(schedule.stops(model.horizon) is not None for schedule in schedules)


_STEPS = 100_000
_KEPT = 100_000  # steps that are kept of a run: a picture shows no more
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
    from windage.study.task import failing_in_words

    options = parse_settings(settings or [], "--set")
    if output is not None:
        picture_kind(output)  # better now than after the work
        require_writable(output)
    parameters = parse_settings(env_settings or [], "--env-set")
    if "horizon" in parameters:
        raise InputError("the horizon is set with -T", field="--env-set", fix="write -T N")
    if horizon is not None or file_named(env) is None:
        parameters["horizon"] = _STEPS if horizon is None else horizon
    model, facts, title, summary = _find(env, parameters, "--env-set")
    title = title if facts else Path(title).stem
    learner, prior_knowledge = _make(agent, model, seed, options)
    target = output or Path("out") / f"{title}-{agent.rpartition(':')[2]}.png"
    require_writable(target)
    every = -(-model.horizon // _KEPT)
    with Progress() as progress:
        progress("whether it communicates at every t")
        holes = model.disconnections()
        progress("the optimal gain of every t")
        gains = model.optimal_gains()
        pace = _Pace(progress)
        record: Any = "full" if every == 1 else every
        with failing_in_words() if ":" in agent else nullcontext():
            run = wd.run(model, learner, seed, record=record, progress=pace)
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
        print_text(f"{title} {apart(holes, model.space)}: {NO_GUARANTEE}")
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


def _make(
    name: str, model: DriftingMDP, seed: int, options: dict[str, Any]
) -> tuple[Agent, tuple[str, ...]]:
    """Return an agent for a model, and its prior knowledge: what it requires, no more."""
    import windage as wd
    from windage.agents import registry

    for option in options:
        if option in _GIVEN:
            raise InputError(
                f"{option!r} is given by the environment", field="--set", fix="leave it out"
            )
    options = registry.with_structure(name, options, model)
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
