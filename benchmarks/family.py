"""The family compared: share of the oracle's reward of every agent, on paired seeds.

    python -m benchmarks.family [shares] [longer] [speeds]

writes the tables and the picture of docs/studies/family.md; parts that are not named stay as they
are. Speeds are measured one after the other, with nothing else running. Seeds 0 to 29 are those of
the table; what was chosen by looking, the constant before the slack of `swucrl2-cw-practical`, was
chosen on the seeds 1000 to 1009, at these horizons and at longer ones. The share is sum
r_t(s_t, a_t) over sum rho*_t: the noise of rewards is left out, so 30 paths say more.
Intervals are Student's, at 95 %.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

import windage as wd
from windage.report.figures.style import save_figure

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "studies" / "family.md"
PICTURE = PAGE.with_suffix(".svg")
SEEDS = range(30)
T = 20_000

ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "two-state": ("two-state-cosine", {"horizon": 5000}),
    "river": ("riverswim", {"horizon": T}),
    "inventory": ("inventory", {"horizon": T}),
    "queue": ("queue", {"horizon": T}),
    "random, still": (
        "random-drift",
        {"horizon": T, "states": 10, "reward_budget": 0.0, "transition_budget": 0.0},
    ),
    "random, cosine": ("random-drift", {"horizon": T, "states": 10}),
    "random, jumps": ("random-drift", {"horizon": T, "states": 10, "shape": "jumps"}),
}
BANDITS = ("bob", "d-ucb", "exp3-s", "rexp3", "sw-ucb", "ucb1")  # they have a study of their own
AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, {}) for name in wd.agents.names() if name not in (*BANDITS, "master")
} | {  # with a period that does not hang on the number of changes
    "ucrl2-restarts, every W*": ("ucrl2-restarts", {"restarts": "W*"}),
    "restarted-psrl, every W*": ("restarted-psrl", {"restarts": "W*"}),
}
LONG = (100_000, 1_000_000)
LONG_SEEDS = range(10)


def model_of(environment: str) -> wd.DriftingMDP:
    """Return the model of a column."""
    name, parameters = ENVIRONMENTS[environment]
    return wd.envs.make(f"{name}-v0", **parameters)


def shares(task: tuple[str, str], seeds: Iterable[int] = SEEDS) -> tuple[list[float], float]:
    """Return the shares of one agent in one environment, seed by seed, and steps a second."""
    environment, agent = task
    warnings.simplefilter("ignore", wd.GuaranteeWarning)
    warnings.simplefilter("ignore", wd.ParameterWarning)
    model = model_of(environment)
    best = model.optimal_gains().sum(1, model.horizon)
    name, options = AGENTS[agent]
    options = dict(options)
    if options.get("restarts") == "W*":
        B = model.budgets()
        best_window = wd.optimal_window(model.space, model.horizon, B.reward, B.transition)
        options["restarts"] = min(model.horizon, round(best_window))
    told = wd.agents.facts(name, model, **options)
    found, seconds = [], []
    for seed in seeds:
        made = wd.agents.make(
            name, model.space, horizon=model.horizon, seed=seed, **(told | options)
        )
        start = time.process_time()
        run = wd.run(model, made, seed=seed, record="totals")
        seconds.append(time.process_time() - start)
        found.append(run.total_mean_reward / best)
    return found, model.horizon / float(np.median(seconds))


def long_share(task: tuple[str, int, str]) -> list[float]:
    """Return the shares of one agent at a longer horizon, in percent."""
    name, horizon, agent = task
    warnings.simplefilter("ignore", wd.GuaranteeWarning)
    model = wd.envs.make(f"{name}-v0", horizon=horizon)
    best = model.optimal_gains().sum(1, horizon)
    told = wd.agents.facts(agent, model)
    found = []
    for seed in LONG_SEEDS:
        made = wd.agents.make(agent, model.space, horizon=horizon, seed=seed, **told)
        run = wd.run(model, made, seed=seed, record="totals")
        found.append(100 * run.total_mean_reward / best)
    return found


def longer(pool: ProcessPoolExecutor, record: dict[str, Any]) -> str:
    """Return the table of longer horizons, where the slack begins to bind."""
    agents, models = ("sw-psrl", "swucrl2-cw-practical"), ("two-state-cosine", "riverswim")
    tasks = [(name, T, agent) for name in models for T in LONG for agent in agents]
    found = dict(zip(tasks, pool.map(long_share, tasks), strict=True))
    record["longer"] = {" / ".join(map(str, task)): values for task, values in found.items()}
    lines = [f"| environment | T | {' | '.join(f'`{a}`' for a in agents)} |", "|---|---|---|---|"]
    for name in models:
        for T in LONG:
            values = [np.array(found[name, T, agent]) for agent in agents]
            cells = [f"{v.mean():.1f} ± {halfwidth(v):.1f}" for v in values]
            lines.append(f"| {name} | {T:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def halfwidth(values: NDArray[np.float64]) -> float:
    """Return half the width of Student's 95 % interval of the mean."""
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    return float(scipy.stats.t.ppf(0.975, values.size - 1)) * error


def table(found: dict[str, dict[str, list[float]]], speeds: dict[str, float]) -> str:
    """Return the table of the page."""
    lines = [
        f"| agent | told | {' | '.join(ENVIRONMENTS)} | speed |",
        "|---" * (len(ENVIRONMENTS) + 3) + "|",
    ]
    for agent in AGENTS:
        told = ", ".join(wd.agents.get(AGENTS[agent][0]).requires) or "-"
        told += " of every phase" if agent == "va-ucrl" else ""
        told = "B_r, B_p" if agent.endswith("W*") else told
        cells = []
        for environment in ENVIRONMENTS:
            values = 100 * np.array(found[environment][agent])
            cells.append(f"{values.mean():.1f} ± {halfwidth(values):.1f}")
        speed = speeds.get(agent, np.nan) / speeds["swucrl2-cw"]
        lines.append(f"| `{agent}` | {told} | {' | '.join(cells)} | {speed:.1g} |")
    return "\n".join(lines)


def paired(found: dict[str, dict[str, list[float]]]) -> str:
    """Return the table of paired differences between the practical variant and window PSRL."""
    lines = ["| environment | practical less `sw-psrl`, points |", "|---|---|"]
    for environment in ENVIRONMENTS:
        mine, other = (
            100 * np.array(found[environment][agent])
            for agent in ("swucrl2-cw-practical", "sw-psrl")
        )
        difference = mine - other
        lines.append(f"| {environment} | {difference.mean():+.2f} ± {halfwidth(difference):.2f} |")
    return "\n".join(lines)


def draw(found: dict[str, dict[str, list[float]]]) -> None:
    """Draw the shares of all agents, one panel an environment."""
    from matplotlib.figure import Figure

    order = sorted(
        AGENTS, key=lambda a: float(np.mean([np.mean(found[e][a]) for e in ENVIRONMENTS]))
    )
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    axes = figure.subplots(1, len(ENVIRONMENTS), sharey=True)
    for axis, environment in zip(axes, ENVIRONMENTS, strict=True):
        means = [100 * float(np.mean(found[environment][agent])) for agent in order]
        errors = [halfwidth(100 * np.array(found[environment][agent])) for agent in order]
        colours = ["#c44e52" if a.startswith("swucrl2-cw") else "#4c72b0" for a in order]
        for place, (mean, error, colour) in enumerate(zip(means, errors, colours, strict=True)):
            axis.errorbar(mean, place, xerr=error, fmt="o", markersize=4, color=colour)
        axis.set_yticks(range(len(order)), order)
        axis.set_title(environment, fontsize=10)
        axis.set_xlim(0, 104)
        axis.axvline(100, color="0.5", linewidth=0.8)
        axis.grid(axis="y", color="0.92")
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("mean reward as % of the sum of rho*, 30 seeds, 95 % intervals", fontsize=9)
    save_figure(figure, PICTURE)


def write(parts: dict[str, str], page: Path = PAGE) -> None:
    """Put each part between its marks in the page."""
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(start)
        text = f"{before}{start}\n{part}\n{end}{rest.split(end)[1]}"
    page.write_text(text, encoding="utf-8")


def main() -> None:
    names = sys.argv[1:] or ["shares", "longer", "speeds"]
    if not set(names) <= {"shares", "longer", "speeds"}:
        raise SystemExit("pass some of: shares, longer, speeds")
    kept = HERE / "family.json"
    record: dict[str, Any] = json.loads(kept.read_text())
    if "speeds" in names:  # first, and alone
        record["speeds"] = {agent: shares(("river", agent), range(5))[1] for agent in AGENTS}
    with ProcessPoolExecutor(2) as pool:
        if "shares" in names:
            tasks = [(environment, agent) for agent in AGENTS for environment in ENVIRONMENTS]
            record["shares"] = {name: {} for name in ENVIRONMENTS}
            for task, (values, _) in zip(tasks, pool.map(shares, tasks), strict=True):
                environment, agent = task
                record["shares"][environment][agent] = values
                shown = f"{agent} on {environment}: {100 * np.mean(values):.1f}"
                print(shown, file=sys.stderr, flush=True)
        parts = {"longer": longer(pool, record)} if "longer" in names else {}
    kept.write_text(json.dumps(record) + "\n")
    parts["shares"] = table(record["shares"], record["speeds"])
    parts["paired"] = paired(record["shares"])
    draw(record["shares"])
    write(parts)
    print(f"written to {PAGE}, {PICTURE.name} and {kept}")


if __name__ == "__main__":
    main()
