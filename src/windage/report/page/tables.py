"""What was run, with the labels that honest numbers carry, and all numbers of all runs."""

from __future__ import annotations

import json
from typing import Any

from windage.report.page.chart import Table, shortened
from windage.report.page.data import REWARD, SHARE, AgentRuns, Material, settings_of, values_of
from windage.study import stats
from windage.study.stats import Interval

__all__ = [
    "agents_table",
    "environments_table",
    "numbers_table",
    "runs_table",
    "setup_words",
]

_MOST_NAMED = 6
_FACTS = {"l": "the number of changes"}


def agents_table(material: Material) -> Table:
    """Return the settings of each agent: radii, ties, variant, and the facts it is given."""
    results = material.results
    rows: list[list[Any]] = []
    for agent in results.agents:
        cells = results.cells_of(agent.label)
        rows.append(
            [
                agent.label,
                agent.id,
                ", ".join(agent.told) or "nothing",
                *(_joined(values_of(cells, name)) for name in ("radii", "ties")),
                *(_span(values_of(cells, name)) for name in ("window", "widening", "delta")),
                " or ".join(settings_of(cells)) or "–",
            ]
        )
    headers = [
        "agent", "id", "is given", "radii", "ties", "window", "widening", "delta",
        "other settings",
    ]  # fmt: skip
    return Table("Agents", headers, rows)


def setup_words(material: Material) -> list[str]:
    """Return in words the facts given to agents, and their radii, ties and variants."""
    results = material.results
    given: dict[str, list[str]] = {}
    labels: dict[str, dict[str, list[str]]] = {"radii": {}, "ties": {}}
    variants = []
    for agent in results.agents:
        cells = results.cells_of(agent.label)
        facts = [_FACTS.get(fact, fact) for fact in agent.told]
        given.setdefault(" and ".join(facts) or "nothing", []).append(agent.label)
        for name, groups in labels.items():
            for value in values_of(cells, name):
                groups.setdefault(str(value), []).append(agent.label)
        chosen = settings_of(cells)
        if chosen:
            variants.append(f"{shortened(agent.label, 40)}: {' or '.join(chosen)}")
    found = [" ".join(f"Given {what}: {_names(who)}." for what, who in given.items())]
    for name, title in (("radii", "Radii"), ("ties", "Ties")):
        if labels[name]:
            parts = [f"{value} for {_names(who)}" for value, who in labels[name].items()]
            found.append(f"{title}: {'; '.join(parts)}.")
    if material.tuned:
        parts = [f"{shortened(label, 40)}: {what}" for label, what in material.tuned.items()]
        found.append(f"Picked in each environment on seeds that are not shown: {'; '.join(parts)}.")
    if variants:
        more = f"; and {len(variants) - _MOST_NAMED} more" if len(variants) > _MOST_NAMED else ""
        found.append(f"Other settings: {'; '.join(variants[:_MOST_NAMED])}{more}.")
    return found


def environments_table(material: Material) -> Table:
    """Return the settings, and what is known of each."""
    rows: list[list[Any]] = []
    for setting in material.results.settings:
        cells = material.results.cells(setting)
        oracle = material.oracle(setting)
        comparison = material.comparisons[setting]
        rewards = [cell.column("oracle_reward")[0] for cell in cells[:1]]
        rows.append(
            [
                setting.environment,
                setting.environment_id,
                setting.horizon,
                _seeds(cells),
                sum(cell.n for cell in cells),
                float(rewards[0]) / setting.horizon if comparison.measure is SHARE else None,
                f"{oracle.gains.min():.4f} to {oracle.gains.max():.4f}" if oracle else "no oracle",
                _parameters(setting.parameters),
            ]
        )
    headers = [
        "environment", "id", "T", "seeds", "runs", "mean of ρ*", "range of ρ*", "parameters",
    ]  # fmt: skip
    return Table("Environments", headers, rows)


def numbers_table(material: Material) -> Table:
    """Return one row an agent and setting."""
    rows: list[list[Any]] = []
    for setting in material.results.settings:
        comparison = material.comparisons[setting]
        share = comparison.measure is SHARE
        for one in comparison.ranking:
            cell = one.cell
            regret = stats.mean(cell.column("regret")) if share else None
            score = one.score if share else None
            reward = stats.mean(cell.values(REWARD))
            rows.append(
                [
                    setting.environment, setting.horizon, one.label, cell.n,
                    *_between(score, cell.n),
                    stats.iqm(cell.values(SHARE)) if share else None,
                    *_between(regret, cell.n),
                    reward.estimate, _mean(cell, "episodes"),
                ]
            )  # fmt: skip
    headers = [
        "environment", "T", "agent", "seeds", "share (%)", "95 % from", "to", "IQM (%)",
        "regret", "95 % from", "to", "reward per step", "episodes",
    ]  # fmt: skip
    return Table("All agents in all settings, means over seeds", headers, rows)


def runs_table(material: Material) -> Table:
    """Return one row a run."""
    names = [
        "environment", "horizon", "agent", "seed", "share", "regret", "observed_regret",
        "total_reward", "total_mean_reward", "oracle_reward", "episodes", "window", "widening",
        "radii", "ties", "key",
    ]  # fmt: skip
    frame = material.results.frame.select(names)
    return Table("Every run", names, [list(row) for row in frame.iter_rows()])


def _between(found: Interval | None, n: int) -> tuple[float | None, float | None, float | None]:
    """Return a mean and its interval; one run has none."""
    if found is None:
        return None, None, None
    return (found.estimate, found.low, found.high) if n > 1 else (found.estimate, None, None)


def _names(labels: list[str]) -> str:
    """Return a few names, or how many there are.

    >>> _names(["a", "b", "c"])
    'a · b · c'
    """
    if len(labels) > _MOST_NAMED:
        return f"{len(labels)} agents"
    return " · ".join(shortened(label, 40) for label in labels)  # labels have commas of their own


def _joined(values: list[Any]) -> str:
    return ", ".join(map(str, values)) or "–"


def _span(values: list[Any]) -> str:
    """Return a value, or the range of several.

    >>> _span([800, 400]), _span([0.05]), _span([])
    ('400 to 800', '0.05', '–')
    """
    if not values:
        return "–"
    low, high = min(values), max(values)
    few = f"{low:,}" if isinstance(low, int) else f"{low:.4g}"
    many = f"{high:,}" if isinstance(high, int) else f"{high:.4g}"
    return few if few == many else f"{few} to {many}"


def _parameters(text: str) -> str:
    """Return parameters without the horizon, which has a column of its own.

    >>> _parameters('{"horizon": 10, "states": 6, "zeta": null}')
    'states=6'
    """
    found = json.loads(text)
    shown = (f"{k}={v}" for k, v in found.items() if k != "horizon" and v is not None)
    return ", ".join(shown) or "–"


def _seeds(cells: list[AgentRuns]) -> str:
    seeds = sorted({int(seed) for cell in cells for seed in cell.seeds})
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    shown = ", ".join(map(str, seeds[:12]))
    return shown + (f" and {len(seeds) - 12} more" if len(seeds) > 12 else "")


def _mean(cell: AgentRuns, name: str) -> float | None:
    values = cell.column(name)
    return float(values.mean()) if values.any() else None
