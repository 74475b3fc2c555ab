"""What not knowing the budgets costs: BORL and others against the best (W, eta) in hindsight.

    python -m benchmarks.parameter_free [hindsight] [bandits] [master]

writes tables and pictures of docs/studies/parameter-free.md: regret of parameter-free agents over
that of the best fixed arm of BORL's own grid, chosen in hindsight on the same seeds; the drifting
bandit's regret against t and T; how often MASTER's tests fire. Named parts are done again, the
others stay as they are; without a name, all are.
"""

from __future__ import annotations

import json
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import windage as wd
from benchmarks.family import halfwidth, write
from windage.confidence import tuning
from windage.report.figures.style import save_figure

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "studies" / "parameter-free.md"
SEEDS = range(30)
T = 20_000

ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "two-state": ("two-state-cosine", {"horizon": 5000}),
    "river": ("riverswim", {"horizon": T}),
    "inventory": ("inventory", {"horizon": T}),
    "random": ("random-drift", {"horizon": T}),
}
BANDITS = ("ucb1", "sw-ucb", "sw-ucb by B_r", "d-ucb", "rexp3", "exp3-s", "bob", "swucrl2-cw")
SHAPES = ("waves", "breaks")
HORIZONS = (2_000, 5_000, 12_500, 31_250, 78_125)
MOMENTS = 200


def small_grid(model: wd.DriftingMDP) -> dict[str, Any]:
    """Return the options of BORL with few arms: I8 of the specification."""
    start = tuning.oblivious(model.space, model.horizon)
    windows = [start.window / 4, start.window, 4 * start.window, model.horizon]
    whole = [tuning.as_window(W, model.horizon) for W in windows]
    return {
        "arms": [(W, eta) for W in whole for eta in (0.0, tuning.as_widening(start.widening))],
        "master": "tsallis-inf",
        "block_length": int(np.ceil(np.sqrt(model.horizon))),
        "carry_window": True,
    }


def agents_for(model: wd.DriftingMDP) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return all rows: parameter-free agents, the tuned one, and every fixed arm."""
    found: dict[str, tuple[str, dict[str, Any]]] = {
        "borl": ("borl", {}),
        "borl, small grid, carried": ("borl", small_grid(model)),
        "borl, small grid, carried, radii x0.1": (
            "borl",
            small_grid(model) | {"radii": {"kind": "paper", "scale": 0.1}},
        ),
        "swucrl2-cw at W*, eta*": ("swucrl2-cw", {"budgets": model.budgets()}),
        "random": ("random", {}),
    }
    grid = tuning.borl_grid(model.space, model.horizon)
    for W in sorted(set(grid.windows)):
        for eta in sorted(set(grid.widenings)):
            for scale in (1.0, 0.1):
                options = {"window": W, "widening": eta, "radii": {"kind": "paper", "scale": scale}}
                found[f"fixed W {W}, eta {eta:.3g}, x{scale:g}"] = ("swucrl2-cw", options)
    return found


def regrets(task: tuple[str, str]) -> tuple[str, str, list[float]]:
    """Return the regret of one agent in one environment, seed by seed."""
    environment, agent = task
    warnings.simplefilter("ignore", wd.GuaranteeWarning)
    warnings.simplefilter("ignore", wd.ParameterWarning)
    name, parameters = ENVIRONMENTS[environment]
    model = wd.envs.make(f"{name}-v0", **parameters)
    best = model.optimal_gains().sum(1, model.horizon)
    kind, options = agents_for(model)[agent]
    found = []
    for seed in SEEDS:
        made = wd.agents.make(kind, model.space, horizon=model.horizon, seed=seed, **options)
        run = wd.run(model, made, seed=seed, record="totals")
        found.append(best - run.total_mean_reward)
    return environment, agent, found


def bandit_curves(task: tuple[str, str, int]) -> tuple[list[float], list[float]]:
    """Return the mean regret of a bandit over t, and the final regret of every seed."""
    shape, agent, horizon = task
    warnings.simplefilter("ignore", wd.GuaranteeWarning)
    warnings.simplefilter("ignore", wd.ParameterWarning)
    model = wd.envs.make("bandit", horizon=horizon, shape=shape)
    kind, told = agent.removesuffix(" by B_r"), {}
    if kind != agent:  # the window of the remark on bandits, instead of one for l changes
        best_window = tuning.bandit(model.space, horizon, model.budgets().reward).window
        told["window"] = tuning.as_window(best_window, horizon)
    told |= wd.agents.facts(kind, model, **told)
    best = np.cumsum(model.optimal_gains().values)
    places = np.linspace(0, horizon - 1, MOMENTS).astype(int)
    curves = []
    for seed in SEEDS:
        made = wd.agents.make(kind, model.space, horizon=horizon, seed=seed, **told)
        run = wd.run(model, made, seed=seed)
        curves.append((best - np.cumsum(run.mean_rewards))[places])
    return np.mean(curves, axis=0).tolist(), [float(c[-1]) for c in curves]


def ratio(mine: NDArray[np.float64], best: NDArray[np.float64]) -> str:
    """Return the ratio of mean regrets with a 95 % interval, from paired bootstrap draws."""
    rng = np.random.default_rng(0)
    picks = rng.integers(mine.size, size=(4000, mine.size))
    low, high = np.quantile(mine[picks].mean(axis=1) / best[picks].mean(axis=1), [0.025, 0.975])
    return f"{mine.mean() / best.mean():.2f} ({low:.2f} to {high:.2f})"


def slope(finals: dict[int, NDArray[np.float64]]) -> str:
    """Return the slope of log regret in log T with a 95 % interval over seeds, if it rises."""
    means = [float(values.mean()) for values in finals.values()]
    if means != sorted(means):
        return "-"
    rng = np.random.default_rng(0)
    x = np.log(list(finals))
    values = np.array(list(finals.values()))
    picks = rng.integers(values.shape[1], size=(2000, values.shape[1]))
    fits = [np.polyfit(x, np.log(values[:, pick].mean(axis=1)), 1)[0] for pick in picks]
    low, high = np.quantile(fits, [0.025, 0.975])
    return f"{np.polyfit(x, np.log(values.mean(axis=1)), 1)[0]:.2f} ({low:.2f} to {high:.2f})"


def hindsight(pool: ProcessPoolExecutor, record: dict[str, Any]) -> str:
    """Return the table of regrets against the best fixed arm."""
    tasks = []
    for environment, (name, parameters) in ENVIRONMENTS.items():
        model = wd.envs.make(f"{name}-v0", **parameters)
        tasks += [(environment, agent) for agent in agents_for(model)]
    found: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in ENVIRONMENTS}
    for done, (environment, agent, values) in enumerate(pool.map(regrets, tasks, chunksize=4), 1):
        found[environment][agent] = np.array(values)
        if done % 40 == 0:
            print(f"{done}/{len(tasks)}", file=sys.stderr, flush=True)
    record["regrets"] = {e: {a: v.tolist() for a, v in rows.items()} for e, rows in found.items()}
    lines = [f"| agent | {' | '.join(ENVIRONMENTS)} |", "|---" * (len(ENVIRONMENTS) + 1) + "|"]
    rows = [agent for agent in found["river"] if not agent.startswith("fixed")]
    for radii, mark in (("the paper's radii", "x1"), ("a tenth of them", "x0.1")):
        winners = {
            e: min((a for a in r if a.endswith(f", {mark}")), key=lambda a, r=r: float(r[a].mean()))
            for e, r in found.items()
        }
        for agent in rows:
            if ("x0.1" in agent) == (mark == "x0.1"):
                cells = [ratio(found[e][agent], found[e][winners[e]]) for e in ENVIRONMENTS]
                lines.append(f"| {agent} | {' | '.join(cells)} |")
        cells = []
        for e in ENVIRONMENTS:
            values, arm = found[e][winners[e]], winners[e].removeprefix("fixed ")
            shown = arm.removesuffix(f", {mark}")
            cells.append(f"{values.mean():,.0f} ± {halfwidth(values):,.0f} ({shown})")
        lines.append(f"| *best fixed arm, {radii}* | {' | '.join(cells)} |")
    return "\n".join(lines)


def bandits(pool: ProcessPoolExecutor, record: dict[str, Any]) -> str:
    """Return the table of the bandit row, and draw its curves."""
    tasks = [(shape, agent, T) for shape in SHAPES for agent in BANDITS for T in HORIZONS]
    found = dict(zip(tasks, pool.map(bandit_curves, tasks), strict=True))
    record["bandits"] = {" / ".join(map(str, task)): last for task, (_, last) in found.items()}
    draw_bandits(found)
    shown = HORIZONS[-2]
    heads = [f"{shape}: regret at T = {shown:,} | {shape}: slope (2/3)" for shape in SHAPES]
    lines = [f"| agent | {' | '.join(heads)} |", "|---" * (1 + 2 * len(SHAPES)) + "|"]
    for agent in BANDITS:
        cells = []
        for shape in SHAPES:
            finals = {T: np.array(found[shape, agent, T][1]) for T in HORIZONS}
            values = finals[shown]
            cells += [f"{values.mean():,.0f} ± {halfwidth(values):,.0f}", slope(finals)]
        lines.append(f"| `{agent}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_bandits(found: dict[tuple[str, str, int], tuple[list[float], list[float]]]) -> None:
    """Draw regret against t and T, one row of panels a shape of drift."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    panels = figure.subplots(len(SHAPES), 2)
    shown = HORIZONS[-2]
    times = np.linspace(1, shown, MOMENTS)
    for (left, right), shape in zip(panels, SHAPES, strict=True):
        for i, agent in enumerate(BANDITS):
            width = 2.4 if agent == "swucrl2-cw" else 1.2
            left.plot(times, found[shape, agent, shown][0], f"C{i}", linewidth=width, label=agent)
            finals = [np.array(found[shape, agent, T][1]) for T in HORIZONS]
            means, errors = [v.mean() for v in finals], [halfwidth(v) for v in finals]
            right.errorbar(HORIZONS, means, errors, color=f"C{i}", linewidth=width, marker="o",
                           markersize=3)  # fmt: skip
        scale = np.mean(found[shape, "sw-ucb by B_r", HORIZONS[0]][1]) / HORIZONS[0] ** (2 / 3)
        right.plot(HORIZONS, [scale * T ** (2 / 3) for T in HORIZONS], "k:", linewidth=1)
        right.annotate("T^(2/3)", (HORIZONS[-1], scale * HORIZONS[-1] ** (2 / 3)), fontsize=8)
        left.set(xlabel="t", ylabel="regret", title=f"{shape}, T = {shown:,}")
        right.set(xscale="log", yscale="log", xlabel="T", ylabel="regret", title=f"{shape}: final")
        right.set_xticks(HORIZONS, [f"{T:,}" for T in HORIZONS], minor=False)
        right.minorticks_off()
    panels[0][0].legend(fontsize=8)
    save_figure(figure, PAGE.with_name("bandits.svg"))


def master_run(task: tuple[str, int]) -> tuple[dict[int, int], float]:
    """Return how often each test fired in one run, and its share of the optimum."""
    name, seed = task
    model = wd.envs.make(f"{name}-v0", horizon=5000)
    best = model.optimal_gains().sum(1, model.horizon)
    told = wd.agents.facts("master", model)
    made = wd.agents.make("master", model.space, horizon=5000, seed=seed, **told)
    run = wd.run(model, made, seed=seed)
    return made.fired, 100 * run.total_mean_reward / best


def master(pool: ProcessPoolExecutor, record: dict[str, Any]) -> str:
    """Return how often MASTER's tests fired, and its share of the optimum."""
    lines = [
        "| environment | T | test 1 | test 2 | share of the optimum |",
        "|---|---|---|---|---|",
    ]
    for name in ("two-state-cosine", "riverswim"):
        runs = list(pool.map(master_run, [(name, seed) for seed in range(10)]))
        fired = {test: sum(one[test] for one, _ in runs) for test in (1, 2)}
        shares = [share for _, share in runs]
        record.setdefault("master", {})[name] = {"fired": fired, "shares": shares}
        share = f"{np.mean(shares):.1f} ± {halfwidth(np.array(shares)):.1f} %"
        lines.append(f"| `{name}` | 5,000 | {fired[1]} | {fired[2]} | {share} |")
    return "\n".join(lines)


def main() -> None:
    makers = {"hindsight": hindsight, "bandits": bandits, "master": master}
    names = sys.argv[1:] or list(makers)
    if not set(names) <= set(makers):
        raise SystemExit(f"pass some of: {', '.join(makers)}")
    kept = HERE / "parameter_free.json"
    record: dict[str, Any] = json.loads(kept.read_text())
    for name in names:  # each is written when it is done
        with ProcessPoolExecutor(2) as pool:
            write({name: makers[name](pool, record)}, PAGE)
        kept.write_text(json.dumps(record) + "\n")
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
