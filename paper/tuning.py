"""The choice of W and eta: a heat map of regret, with (W*, eta*) of Theorem 1 on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from paper.cases import learner
from paper.claims import Check, Sides, worst
from paper.result import Effort, Least, Result, Table
from paper.style import canvas, label
from windage.confidence.radii import Radii
from windage.models import DriftingMDP

__all__ = ["Map", "compute", "judge"]

Reals = NDArray[np.float64]

ETAS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0)
KINDS = {
    "printed radii": Radii.paper(),
    "Laplace radii": Radii.laplace(),
    "Laplace radii x0.3": Radii.laplace().scaled(0.3),
}
GUARANTEED = ("printed radii", "Laplace radii")
COUNT = 12  # windows

LEAST = Least(
    7612, "a window of W* would hold too few visits for the printed radii to say anything"
)

ABOUT = """
Regret a step of SWUCRL2-CW on `two-state-cosine` over a grid of windows and widenings, for three
kinds of radii; the last ones keep no guarantee. The cross is (W*, eta*) of Theorem 1, the circle
the best cell. (W*, eta*) minimises a worst-case bound without its constants and logarithms and
does not know the radii, so it need not be the best cell of one world.
"""


class Map(NamedTuple):
    """Regrets a step over the grid, and at (W*, eta*)."""

    regrets: Reals  # [window, eta], a step
    best: tuple[int, int]
    at_tuned: float


def compute(effort: Effort) -> Result:
    """Compute the maps and where W* and eta* lie on them."""
    T = effort.steps(500_000, quick=10_000)
    seeds = effort.runs(4, quick=2, least=1)
    model = wd.envs.make("two-state-cosine", horizon=T)
    tuned = learner(model)
    star = tuned.window, float(np.max(tuned.widening))
    windows = sorted({round(W) for W in np.geomspace(30, T, COUNT if not effort.is_quick else 6)})
    maps = {}
    for name, radii in KINDS.items():
        effort.say(f"a map of regrets: {name}")
        maps[name] = _map(effort, model, radii, windows, star, seeds)
    return Result(
        name="tuning",
        title="Choosing W and eta",
        about=ABOUT,
        checks=judge(maps, is_judged=not effort.is_quick),
        remarks=_remarks(maps, windows, star),
        tables=[_table(name, one, windows) for name, one in maps.items()],
        figure=_draw(maps, windows, star),
        is_quick=effort.is_quick,
    )


def judge(maps: dict[str, Map], *, is_judged: bool = True) -> list[Check]:
    """Judge the shape of the maps in W and eta, and what (W*, eta*) is better than."""
    ends = {"the shortest": 0, "the longest": -1}
    return [
        worst(
            "W",
            "regret falls and rises again in W: the best cell is below the best of the shortest "
            "and of the longest window",
            [Sides(float(one.regrets.min()), float(one.regrets[end].min()), f"{name}, {which}")
             for name, one in maps.items() for which, end in ends.items()],
            "<", unit="ends", is_judged=is_judged,
        ),
        worst(
            "eta",
            "sets that hold every kernel (eta = 2) are no help: the best cell has another eta",
            [Sides(float(one.regrets.min()), float(one.regrets[:, -1].min()), name)
             for name, one in maps.items()],
            "<", unit="maps", is_judged=is_judged,
        ),
        worst(
            "(W*, eta*)",
            "with radii that keep the guarantee (W*, eta*) is better than the shortest window, and "
            "than the longest, at any eta",
            [Sides(one.at_tuned, float(one.regrets[end].min()), f"{name}, {which}")
             for name, one in maps.items() if name in GUARANTEED for which, end in ends.items()],
            "<", unit="ends", is_judged=is_judged,
        ),
    ]  # fmt: skip


def _remarks(maps: dict[str, Map], windows: list[int], star: tuple[int, float]) -> str:
    parts = []
    for name, one in maps.items():
        W, eta = windows[one.best[0]], ETAS[one.best[1]]
        parts.append(
            f"{one.at_tuned / float(one.regrets.min()):.1f} times that of the best cell with "
            f"{name} (W = {W:,}, eta = {eta:g})"
        )
    longer = sum(windows[one.best[0]] > star[0] for one in maps.values())
    return (
        f"(W*, eta*) = ({star[0]:,}, {star[1]:.3f}); its regret is {', '.join(parts)}. The best "
        f"window is longer than W* on {longer} of {len(maps)} maps."
    )


def _map(
    effort: Effort,
    model: DriftingMDP,
    radii: Radii,
    windows: list[int],
    star: tuple[int, float],
    seeds: int,
) -> Map:
    best = model.optimal_gains().sum()

    def play(task: tuple[int, float]) -> float:
        W, eta = task
        lost = 0.0
        for seed in range(seeds):
            made = learner(model, seed, window=W, widening=eta, radii=radii)
            run = wd.run(model, made, seed=seed, record="totals")
            lost += (best - float(run.total_mean_reward)) / (seeds * model.horizon)
        return lost

    cells = effort.each(play, [(W, eta) for W in windows for eta in ETAS])
    regrets = np.array(cells).reshape(len(windows), len(ETAS))
    i, j = np.unravel_index(int(regrets.argmin()), regrets.shape)
    return Map(regrets, (int(i), int(j)), play(star))


def _table(name: str, one: Map, windows: list[int]) -> Table:
    return Table(
        f"Regret a step, {name}",
        ("W", *(f"eta {eta:g}" for eta in ETAS)),
        [[f"{W:,}", *(f"{value:.3f}" for value in one.regrets[i])] for i, W in enumerate(windows)],
    )


def _draw(maps: dict[str, Map], windows: list[int], star: tuple[int, float]) -> Any:
    figure, panels = canvas(
        "Regret a step over windows and widenings: cross (W*, eta*), circle the best",
        columns=len(maps), height=4.8,
    )  # fmt: skip
    for panel, (name, one) in zip(panels, maps.items(), strict=True):
        mesh = panel.pcolormesh(np.arange(len(ETAS) + 1) - 0.5, np.arange(len(windows) + 1) - 0.5,
                                one.regrets, cmap="viridis_r", rasterized=True)  # fmt: skip
        x = float(np.interp(np.log(star[1]), np.log(ETAS[1:]), np.arange(1, len(ETAS))))
        y = float(np.interp(np.log(star[0]), np.log(windows), np.arange(len(windows))))
        panel.plot(x, y, "x", color="#FFFFFF", markersize=12, markeredgewidth=3)
        panel.plot(x, y, "x", color="#D55E00", markersize=11, markeredgewidth=1.8)
        for colour, width in (("#000000", 4.0), ("#FFFFFF", 2.0)):  # seen on any shade
            panel.plot(one.best[1], one.best[0], "o", color="none", markeredgecolor=colour,
                       markersize=13, markeredgewidth=width)  # fmt: skip
        panel.set_xticks(np.arange(len(ETAS)), [f"{eta:g}" for eta in ETAS], fontsize=8)
        panel.set_yticks(np.arange(len(windows)), [f"{W:,}" for W in windows])
        panel.grid(visible=False)
        label(panel, name, "eta", "W")
        panel.figure.colorbar(mesh, ax=panel, shrink=0.9)
    return figure
