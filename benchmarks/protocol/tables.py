"""The tables of docs/studies/multi-scale.md, from the runs that are there."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks.family import write
from benchmarks.protocol.configurations import FEW_SEEDS, RIVALS
from benchmarks.protocol.problems import SETS, Problem
from benchmarks.protocol.runs import ROUNDS, Regrets, horizons, load
from benchmarks.protocol.variants import VARIANTS
from benchmarks.protocol.versions import GUARDED, NEWEST, VERSIONS

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "multi-scale.md"
WSTAR = "sw-psrl at W*"
_DRAWS = 4000


def is_fixed(name: str) -> bool:
    """Whether a configuration has one window throughout, chosen by nobody."""
    return name.startswith(("psrl ", "optimism "))


def best_fixed(found: dict[str, list[float]]) -> str:
    """Return the configuration with the smallest mean regret on these very seeds."""
    seeds = max(len(regret) for name, regret in found.items() if is_fixed(name))
    finalists = [name for name in found if is_fixed(name) and len(found[name]) == seeds]
    return min(finalists, key=lambda name: float(np.mean(found[name])))


def ratio(mine: list[float], other: list[float]) -> tuple[float, float, float]:
    """Return mean over mean, and its 95 % interval over paired resamples of the seeds."""
    n = min(len(mine), len(other))
    a, b = np.array(mine[:n]), np.array(other[:n])
    drawn = np.random.default_rng(0).integers(n, size=(_DRAWS, n))
    many = a[drawn].mean(axis=1) / b[drawn].mean(axis=1)
    low, high = np.quantile(many, (0.025, 0.975))
    return float(a.mean() / b.mean()), float(low), float(high)


def geometric(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(float(np.mean(np.log(values))))


def _cell(found: tuple[float, float, float]) -> str:
    return f"{found[0]:.2f} ({found[1]:.2f}-{found[2]:.2f})"


def _against(found: Regrets, problems: list[Problem], name: str, other: str | None) -> list[float]:
    """Return ratios of regret, problem by problem, to another's or to the best fixed one's."""
    return [
        ratio(found[p.name][name], found[p.name][other or best_fixed(found[p.name])])[0]
        for p in problems
    ]


def _resampled(
    found: Regrets, problems: list[Problem], name: str, other: str | None
) -> tuple[float, float, float]:
    """Return the geometric mean of the ratios, and its interval over resamples of the seeds."""
    logs = np.zeros(_DRAWS)
    for p in problems:
        a, b = (np.array(found[p.name][x or best_fixed(found[p.name])]) for x in (name, other))
        drawn = np.random.default_rng(0).integers(a.size, size=(_DRAWS, a.size))
        logs += np.log(a[drawn].mean(axis=1) / b[drawn].mean(axis=1))
    low, high = np.exp(np.quantile(logs / len(problems), (0.025, 0.975)))
    return geometric(_against(found, problems, name, other)), float(low), float(high)


def _losses(found: Regrets, problems: list[Problem]) -> str:
    lines = [
        "| problem | T | against | ratio of regret | regret | of |",
        "|---|---|---|---|---|---|",
    ]
    for p in problems:
        mine, best = found[p.name], best_fixed(found[p.name])
        for other, limit in ((best, 1.1), (WSTAR, 1.0)):
            for name in (NEWEST, GUARDED):
                r = ratio(mine[name], mine[other])
                if r[0] > limit:
                    lines.append(
                        f"| {p.name} | {_steps(p)} | {other}, by `{name.split()[0]}` | {_cell(r)} "
                        f"| {np.mean(mine[name]):.0f} | {_best(p):,.0f} |"
                    )
    return "\n".join(lines) if len(lines) > 2 else "None."


def _steps(p: Problem) -> str:
    return f"{horizons()[p.name][0]:,}"


def _best(p: Problem) -> float:
    return horizons()[p.name][1]


def _summary(found: Regrets, problems: list[Problem]) -> str:
    lines = [
        "| learner | told | ratio to the best fixed, geometric mean | worst | of PSRL at W* | "
        "worst | mean share of the oracle | `multi-scale` over it | worst |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in (NEWEST, GUARDED, *(name for name in RIVALS if name not in FEW_SEEDS)):
        both = [_against(found, problems, name, other) for other in (None, WSTAR)]
        share = np.mean([1 - np.mean(found[p.name][name]) / _best(p) for p in problems])
        told = "nothing" if name in (NEWEST, GUARDED) else _told(name)
        cells = [f"{geometric(x):.2f} | {max(x):.2f}" for x in both]
        cells.append(f"{100 * share:.1f} %")
        if name == NEWEST:
            cells += ["-", "-"]
        else:
            cells.append(_cell(_resampled(found, problems, NEWEST, name)))
            cells.append(f"{max(_against(found, problems, NEWEST, name)):.2f}")
        lines.append(f"| `{name}` | {told} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _told(name: str) -> str:
    if "W*" in name or name.startswith("swucrl2-cw"):
        return "B_r, B_p"
    return "nothing"


def _each(found: Regrets, problems: list[Problem]) -> str:
    lines = [
        "| problem | drift | T | best fixed in hindsight | its share of the oracle | "
        "`multi-scale` over it | guarded over it | `multi-scale` over PSRL at W* |",
        "|---" * 8 + "|",
    ]
    for p in problems:
        mine, best = found[p.name], best_fixed(found[p.name])
        share = 1 - np.mean(mine[best]) / _best(p)
        cells = [
            _cell(ratio(mine[NEWEST], mine[best])),
            _cell(ratio(mine[GUARDED], mine[best])),
            _cell(ratio(mine[NEWEST], mine[WSTAR])),
        ]
        lines.append(
            f"| {p.name} | {p.drift} | {_steps(p)} | {best} | {100 * share:.2f} % | "
            f"{' | '.join(cells)} |"
        )
    return "\n".join(lines)


def _rivals(found: Regrets, problems: list[Problem]) -> str:
    lines = [f"| problem | {' | '.join(RIVALS)} |", "|---" * (len(RIVALS) + 1) + "|"]
    for p in problems:
        mine = found[p.name]
        cells = [_cell(ratio(mine[NEWEST], mine[name])) if name in mine else "-" for name in RIVALS]
        lines.append(f"| {p.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _versions(found: Regrets, problems: list[Problem]) -> str:
    lines = [
        "| version | geometric mean | worst | problems above 1.10 | of PSRL at W* | worst | "
        "of v1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in VERSIONS:
        x, y = (_against(found, problems, name, other) for other in (None, WSTAR))
        above = sum(r > 1.1 for r in x)
        lines.append(
            f"| {name} | {_cell(_resampled(found, problems, name, None))} | {max(x):.2f} | "
            f"{above} of {len(x)} | {geometric(y):.2f} | {max(y):.2f} | "
            f"{_cell(_resampled(found, problems, name, 'multi-scale v1'))} |"
        )
    return "\n".join(lines)


def _ablations(found: Regrets, problems: list[Problem]) -> str:
    lines = ["| change | geometric mean | worst, and where |", "|---|---|---|"]
    for name in VARIANTS:
        x = _against(found, problems, name, None)
        worst = int(np.argmax(x))
        lines.append(f"| {name} | {geometric(x):.2f} | {x[worst]:.2f}, {problems[worst].name} |")
    return "\n".join(lines)


def is_complete(found: dict[str, list[float]], seeds: range) -> bool:
    """Whether all of a problem has been run: the learner, its rivals, and the best on all seeds."""
    rivals = [name for name in RIVALS if name not in FEW_SEEDS]
    played = all(len(found.get(name, [])) == len(seeds) for name in (*VERSIONS, *rivals))
    finalists = [n for n, regret in found.items() if is_fixed(n) and len(regret) == len(seeds)]
    return played and len(finalists) >= 4 * ROUNDS[-1][0]


def main() -> None:
    tuning, (problems, seeds) = SETS["tuning"][0], SETS["test"]
    found = merged("test", "test-learner")
    tuned = merged("tuning", "tuning-learner")
    test = [p for p in problems if is_complete(found.get(p.name, {}), seeds)]
    done = f"{len(test)} of the {len(problems)} problems of the test set have been run."
    write(
        {
            "progress": done,
            "losses": _losses(found, test),
            "summary": _summary(found, test),
            "problems": _each(found, test),
            "rivals": _rivals(found, test),
            "versions": _versions(found, test),
            "ablations": _ablations(tuned, tuning),
        },
        PAGE,
    )


def merged(*files: str) -> Regrets:
    """Return the runs of several files, together."""
    together: Regrets = {}
    for file in files:
        for problem, runs in load(file).items():
            together.setdefault(problem, {}).update(runs)
    return together
