"""What structure is worth: the same learner with and without it, and against re-optimisation.

    python -m benchmarks.structure [regret] [stock]

writes the tables of docs/studies/structure.md. Every cell is kept in out/structure.jsonl as soon as
it is there: a run that was stopped goes on, and a file that is deleted is made anew.

Regret is sum of rho*_t - r_t(s_t, a_t). Seeds are paired: an environment draws the same outcomes,
and so pays the same rewards for the same actions, whoever plays. The stock problem is one that no
constant of the library was chosen on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from numpy.typing import NDArray

import windage as wd
from benchmarks.family import halfwidth, write
from benchmarks.parameter_free import ratio

KEPT = Path("out/structure.jsonl")
PAGE = Path(__file__).parent.parent / "docs" / "studies" / "structure.md"

SEEDS = range(30)
HORIZONS = (365, 1_000, 5_000, 20_000)
ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "inventory": ("inventory-v1", {}),
    "inventory, sales": ("inventory-v1", {"seen": "sales"}),
    "queue": ("queue-v1", {}),
    "bidding": ("bidding-v1", {}),
    "ride": ("ride-v1", {}),
    "replacement": ("replacement-v1", {}),
    "wireless": ("wireless-v0", {}),
    "assortment": ("assortment-v0", {}),
    "treatment": ("treatment-v0", {}),
}
FIXED = (30, 60, 120, 365, 1_000, 20_000)

Found = dict[str, NDArray[np.float64]]


def rows_of(horizon: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the agents: label, id and options; `structure` stands for the environment's."""
    found: dict[str, tuple[str, dict[str, Any]]] = {
        "structured": ("multi-scale", {"structure": True}),
        "tabular": ("multi-scale", {}),
    }
    for window in FIXED[: sum(horizon >= W for W in FIXED)]:
        for bonus in (0.0, 0.65):
            options = {"structure": True, "window": window, "bonus": bonus}
            found[f"CE {window}{' + bonus' if bonus else ''}"] = ("certainty-equivalent", options)
    return found


def regrets(task: tuple[str, int, str]) -> list[float]:
    """Return the regret of one agent in one environment, seed by seed."""
    environment, horizon, agent = task
    name, parameters = ENVIRONMENTS[environment]
    model = wd.envs.make(name, horizon=horizon, **parameters)
    best = model.optimal_gains(1e-4).sum(1, horizon)
    kind, options = rows_of(horizon)[agent]
    told = options | ({"structure": model.structure} if "structure" in options else {})
    found = []
    for seed in SEEDS:
        made = wd.agents.make(kind, model.space, horizon=horizon, seed=seed, **told)
        run = wd.run(model, made, seed=seed, record="totals")
        found.append(float(best - run.total_mean_reward))
    return found


# The stock problem. Prices and costs are those of no other problem here.

LEVELS = 16
YEAR = 365
PAST = 60  # days of demand that everybody has seen before the first decision
PRICE, UNIT, FIXED_COST, HOLDING = 4.0, 1.5, 5.0, 0.2
WEEK = np.array([0.7, 0.7, 0.8, 0.9, 1.1, 1.5, 1.3])  # demand of a weekday over that of a week
DISPERSION = 4.0  # of the negative binomial: variance m + m^2 / 4


def mean_of(day: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean demand of a day: 3, rising to 7 by midyear, then 4; 7 and 4 ever after."""
    half = YEAR / 2
    last = int(np.max(day, initial=0) // half) + 2
    knots = [3.0] + [7.0 if k % 2 else 4.0 for k in range(1, last + 1)]
    season = np.interp(day, half * np.arange(len(knots)), knots)
    return np.asarray(season * WEEK[day % 7] / WEEK.mean())


def law_of(mean: float) -> NDArray[np.float64]:
    """Return the law of demand, cut off at the capacity: what exceeds it is lost in any case."""
    law = scipy.stats.nbinom.pmf(np.arange(LEVELS), DISPERSION, DISPERSION / (DISPERSION + mean))
    law[-1] += 1 - law.sum()
    return np.asarray(law)


def profit(stock: Any, order: Any, demand: Any) -> Any:
    """Return the profit of a day."""
    sold = np.minimum(stock + order, demand)
    paid = UNIT * order + FIXED_COST * (order > 0)
    return PRICE * sold - paid - HOLDING * (stock + order - sold)


def shop(*, labels: bool, seen: str = "always") -> wd.Structure:
    """Return what the shop knows; with labels a state is a level and a weekday."""
    days = 7 if labels else 1
    space = wd.StateActions([LEVELS - s // days for s in range(LEVELS * days)])
    demand = wd.Exogenous(
        "demand", range(LEVELS), (lambda s, _: s % days) if labels else None, seen
    )

    def after(s: int, a: int, d: int) -> int:
        return max(s // days + a - d, 0) * days + (s % days + 1) % days

    return wd.Structure(
        space, [demand], next_state=after, reward=lambda s, a, d: profit(s // days, a, d)
    )


class Shop(NamedTuple):
    """One seed's demand, and how to play it."""

    demand: NDArray[np.int64]  # of the past, then of every day

    @classmethod
    def of(cls, seed: int, days: int) -> Shop:
        """Draw demand: PAST days at the first season's mean, then `days` days."""
        rng = np.random.default_rng([20261, seed])
        before = 3.0 * WEEK[np.arange(-PAST, 0) % 7] / WEEK.mean()
        means = np.concatenate([before, mean_of(np.arange(days))])
        return cls(np.array([rng.choice(LEVELS, p=law_of(m)) for m in means]))

    def past(self) -> Iterator[tuple[int, int, int, int]]:
        """Return day, stock, order and demand of what came before: ordered up to 10 below 5."""
        stock = 0
        for i in range(PAST):
            order = 10 - stock if stock < 5 else 0
            yield i - PAST, stock, order, int(self.demand[i])
            stock = max(stock + order - int(self.demand[i]), 0)

    def play(self, policy: Any, days: int) -> float:
        """Return the profit of a policy `order(day, stock)`, told of demand by `learn`."""
        stock, total = 0, 0.0
        for day in range(days):
            d = int(self.demand[PAST + day])
            order = policy.order(day, stock)
            total += float(profit(stock, order, d))
            policy.learn(day, stock, order, d)
            stock = max(stock + order - d, 0)
        return total


class Agent:
    """An agent of the library as a policy of the shop."""

    def __init__(
        self, shop_of_seed: Shop, kind: str, days: int, *, labels: bool, seen: str, **how: Any
    ):
        self.known = shop(labels=labels, seen=seen)
        self.days, self.censored = (7 if labels else 1), seen == "interval"
        self.agent = wd.agents.make(
            kind, self.known.space, horizon=days, structure=self.known, **how
        )
        for step in shop_of_seed.past():
            self.agent.preload(*self._step(*step))

    def _state(self, day: int, stock: int) -> int:
        return stock * self.days + day % self.days

    def _step(self, day: int, stock: int, order: int, d: int) -> tuple[Any, ...]:
        shown = d if not self.censored or d < stock + order else (stock + order, LEVELS - 1)
        after = self._state(day + 1, max(stock + order - d, 0))
        reward = float(profit(stock, order, d))
        return self._state(day, stock), order, reward, after, {"demand": shown}

    def order(self, day: int, stock: int) -> int:
        return int(self.agent.act(self._state(day, stock)))

    def learn(self, day: int, stock: int, order: int, d: int) -> None:
        self.agent.observe(*self._step(day, stock, order, d))


class Tabular:
    """A learner of every row, told the same steps and nothing of the balance of stock."""

    def __init__(self, shop_of_seed: Shop, days: int):
        known = shop(labels=False)
        self.agent = wd.MultiScale(known.space, horizon=days, reward_range=known.reward_range)
        for _, stock, order, d in shop_of_seed.past():
            reward = float(profit(stock, order, d))
            self.agent.preload(stock, order, reward, max(stock + order - d, 0))

    def order(self, day: int, stock: int) -> int:
        return int(self.agent.act(stock))

    def learn(self, day: int, stock: int, order: int, d: int) -> None:
        reward = float(profit(stock, order, d))
        self.agent.observe(stock, order, reward, max(stock + order - d, 0))


def best_orders(laws: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the best order by (day of the cycle, stock), by value iteration from u, in place.

    Written for this shop alone, in plain NumPy: the oracle and the practitioner of this study owe
    nothing to the library.
    """
    stock, order, d = np.ogrid[:LEVELS, :LEVELS, :LEVELS]
    pays, after = profit(stock, order, d), np.maximum(stock + order - d, 0)
    fits = np.arange(LEVELS)[:, None] + np.arange(LEVELS) < LEVELS
    best = np.empty((len(laws), LEVELS), dtype=np.int64)
    for _ in range(5000):
        ahead = u
        for k in reversed(range(len(laws))):
            q = np.where(fits, (pays + ahead[np.minimum(after, LEVELS - 1)]) @ laws[k], -np.inf)
            best[k], ahead = q.argmax(axis=1), q.max(axis=1)
        change = np.ptp(ahead - u)
        u[:] = ahead - ahead[0]
        if change < 1e-6:
            break
    return best


class Oracle:
    """Plays what is best for the laws of the season, weekdays included; no learner can."""

    def __init__(self, days: int):
        season = mean_of(np.arange(days)) / (WEEK / WEEK.mean())[np.arange(days) % 7]
        u = np.zeros(LEVELS)
        self.orders = [
            best_orders(np.array([law_of(season[day] * w / WEEK.mean()) for w in WEEK]), u)
            for day in range(0, days, 7)
        ]

    def order(self, day: int, stock: int) -> int:
        return int(self.orders[day // 7][day % 7, stock])

    def learn(self, day: int, stock: int, order: int, d: int) -> None:
        pass


class Practitioner:
    """Optimises anew every day on the demand of the last 60 days, of each weekday if labelled."""

    def __init__(self, shop_of_seed: Shop, *, labels: bool):
        self.known, self.cycle = list(shop_of_seed.demand[:PAST]), 7 if labels else 1
        self.u = np.zeros(LEVELS)

    def order(self, day: int, stock: int) -> int:
        last = np.array(self.known[-PAST:])
        weekday = (np.arange(day - PAST, day)) % self.cycle
        laws = np.array(
            [
                np.bincount(last[weekday == (day + k) % self.cycle], minlength=LEVELS)
                for k in range(self.cycle)
            ]
        )
        return int(best_orders(laws / laws.sum(axis=1, keepdims=True), self.u)[0, stock])

    def learn(self, day: int, stock: int, order: int, d: int) -> None:
        self.known.append(d)


YEARS = (1, 3, 10)
POLICIES: dict[str, Any] = {
    "re-optimise 60 days": lambda one, _: Practitioner(one, labels=False),
    "re-optimise 60 days, weekdays": lambda one, _: Practitioner(one, labels=True),
    "tabular multi-scale": lambda one, days: Tabular(one, days),
    **{
        f"{name}{', weekdays' if labels else ''}{', sales' if seen == 'interval' else ''}": (
            lambda one, days, labels=labels, seen=seen, kind=kind, how=how: Agent(
                one, kind, days, labels=labels, seen=seen, **how
            )
        )
        for name, kind, how in (
            ("structured multi-scale", "multi-scale", {}),
            ("CE 60", "certainty-equivalent", {"window": 60}),
        )
        for labels in (False, True)
        for seen in ("always", "interval")
    },
}
_ORACLES: dict[int, Oracle] = {}


def shares(task: tuple[str, int]) -> list[float]:
    """Return a policy's profit over the oracle's, in percent, seed by seed."""
    name, years = task
    days = YEAR * years
    if days not in _ORACLES:
        _ORACLES[days] = Oracle(days)
    oracle = _ORACLES[days]
    found = []
    for seed in SEEDS:
        one = Shop.of(seed, days)
        found.append(100 * one.play(POLICIES[name](one, days), days) / one.play(oracle, days))
    return found


def cells(kind: str, work: Any, tasks: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], Any]:
    """Return what `work` makes of every task; what was made before is read."""
    tasks = list(tasks)
    there = {}
    if KEPT.exists():
        for line in KEPT.read_text().splitlines():
            row = json.loads(line)
            there[row["kind"], tuple(row["task"])] = row["values"]
    missing = [task for task in tasks if (kind, task) not in there]
    KEPT.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor(2) as pool, KEPT.open("a") as file:
        for done, (task, values) in enumerate(
            zip(missing, pool.map(work, missing), strict=True), 1
        ):
            there[kind, task] = values
            file.write(json.dumps({"kind": kind, "task": task, "values": values}) + "\n")
            file.flush()
            shown = f"{done}/{len(missing)} {kind} {task}: {np.mean(values):.2f}"
            print(shown, file=sys.stderr, flush=True)
    return {task: np.array(there[kind, task]) for task in tasks}


def regret() -> dict[str, str]:
    """Return the tables of regret, and of ratios to the best fixed window."""
    tasks = [(e, T, a) for T in HORIZONS for e in ENVIRONMENTS for a in rows_of(T)]
    found = cells("regret", regrets, tasks)
    lines = [
        "| environment | T | tabular | structured | structured / tabular | best fixed window | "
        "structured / best fixed |",
        "|---" * 7 + "|",
    ]
    logs, few = [], 0
    for e in ENVIRONMENTS:
        for T in HORIZONS:
            mine, tabular = found[e, T, "structured"], found[e, T, "tabular"]
            fixed = {a: found[e, T, a] for a in rows_of(T) if a.startswith("CE")}
            winner = min(fixed, key=lambda a: float(fixed[a].mean()))
            best = fixed[winner]
            clear = all(v.mean() > halfwidth(v) for v in (mine, best))
            if clear:
                logs.append(np.log(mine.mean() / best.mean()))
            few += not clear
            lines.append(
                f"| {e} | {T:,} | {tabular.mean():.1f} ± {halfwidth(tabular):.1f} | "
                f"{mine.mean():.1f} ± {halfwidth(mine):.1f} | {ratio(mine, tabular)} | "
                f"{best.mean():.1f} ± {halfwidth(best):.1f} ({winner}) | "
                f"{ratio(mine, best) if clear else '-'} |"
            )
    mean = (
        f"Geometric mean of *structured / best fixed* over {len(logs)} rows: "
        f"**{np.exp(np.mean(logs)):.2f}**. Left out: {few} rows in which one of the two regrets is "
        "within its own 95 % interval of zero."
    )
    return {"regret": "\n".join(lines), "mean": mean}


def stock() -> dict[str, str]:
    """Return the table of the stock problem."""
    found = cells("stock", shares, [(p, y) for y in YEARS for p in POLICIES])
    heads = [f"{y} year{'s' * (y > 1)}" for y in YEARS]
    lines = [f"| policy | {' | '.join(heads)} |", "|---" * (len(YEARS) + 1) + "|"]
    for p in POLICIES:
        shown = [f"{found[p, y].mean():.1f} ± {halfwidth(found[p, y]):.1f}" for y in YEARS]
        lines.append(f"| {p} | {' | '.join(shown)} |")
    lines += ["", "Paired differences, in points of the oracle's profit:", ""]
    lines += [f"| | {' | '.join(heads)} |", "|---" * (len(YEARS) + 1) + "|"]
    for mine, other in (
        ("structured multi-scale", "re-optimise 60 days"),
        ("structured multi-scale, weekdays", "re-optimise 60 days, weekdays"),
        ("structured multi-scale, weekdays", "re-optimise 60 days"),
        ("structured multi-scale, sales", "structured multi-scale"),
        ("structured multi-scale, weekdays, sales", "structured multi-scale, weekdays"),
    ):
        gaps = [found[mine, y] - found[other, y] for y in YEARS]
        shown = [f"{gap.mean():+.2f} ± {halfwidth(gap):.2f}" for gap in gaps]
        lines.append(f"| {mine} less {other} | {' | '.join(shown)} |")
    return {"stock": "\n".join(lines)}


def main() -> None:
    makers = {"regret": regret, "stock": stock}
    names = sys.argv[1:] or list(makers)
    if not set(names) <= set(makers):
        raise SystemExit(f"pass some of: {', '.join(makers)}")
    for name in names:
        write(makers[name](), PAGE)
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
