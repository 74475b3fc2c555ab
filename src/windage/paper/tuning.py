"""The choice of W and eta: a heat map of regret, with (W*, eta*) of Theorem 1 on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from windage.drift import DriftingMDP
from windage.learn.radii import Radii
from windage.paper.drawing import canvas, label
from windage.paper.result import Effort, Least, Result, Table
from windage.paper.suite import learner

__all__ = ["compute"]

Reals = NDArray[np.float64]

ETAS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0)
KINDS = {
    "printed radii": Radii.paper(),
    "Laplace radii": Radii.laplace(),
    "Laplace radii x0.3": Radii.laplace().scaled(0.3),
}
COUNT = 12  # windows

LEAST = Least(2000, "W* would be longer than T / 10")

ABOUT = """
Regret a step of SWUCRL2-CW on `two-state-cosine` over a grid of windows and widenings, for three
kinds of radii; the last ones keep no guarantee. The cross is (W*, eta*) of Theorem 1, the circle
the best cell. (W*, eta*) minimises a worst-case bound without its constants and logarithms and
does not know the radii, so it need not be the best cell of one world.
"""


class _Map(NamedTuple):
    regrets: Reals  # [window, eta], a step
    best: tuple[int, int]
    at_tuned: float
    random: float


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
    worst = {name: one.at_tuned / float(one.regrets.min()) for name, one in maps.items()}
    best = {name: (windows[one.best[0]], ETAS[one.best[1]]) for name, one in maps.items()}
    return Result(
        name="tuning",
        title="Choosing W and eta",
        about=ABOUT,
        expected=(
            "regret that falls and rises again in W, and (W*, eta*) within a moderate factor of "
            "the best cell for radii that keep the guarantee; no such promise for tighter ones."
        ),
        seen=(
            f"(W*, eta*) = ({star[0]:,}, {star[1]:.3f}); its regret over that of the best cell is "
            + ", ".join(
                f"{worst[name]:.1f} with {name} (best W = {best[name][0]:,}, eta = "
                f"{best[name][1]:g})"
                for name in KINDS
            )
            + ". What separates them is W: the best windows are longer than W* for wide radii."
        ),
        holds=all(
            one.regrets.min() < min(one.regrets[0].min(), one.regrets[-1].min())
            for one in maps.values()
        )
        or effort.is_quick,
        tables=[_table(name, one, windows) for name, one in maps.items()],
        figure=_draw(maps, windows, star),
        is_quick=effort.is_quick,
    )


def _map(
    effort: Effort,
    model: DriftingMDP,
    radii: Radii,
    windows: list[int],
    star: tuple[int, float],
    seeds: int,
) -> _Map:
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
    return _Map(regrets, (int(i), int(j)), play(star), 0.0)


def _table(name: str, one: _Map, windows: list[int]) -> Table:
    return Table(
        f"Regret a step, {name}",
        ("W", *(f"eta {eta:g}" for eta in ETAS)),
        [[f"{W:,}", *(f"{value:.3f}" for value in one.regrets[i])] for i, W in enumerate(windows)],
    )


def _draw(maps: dict[str, _Map], windows: list[int], star: tuple[int, float]) -> Any:
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
        panel.plot(one.best[1], one.best[0], "o", color="none", markeredgecolor="#FFFFFF",
                   markersize=13, markeredgewidth=2.5)  # fmt: skip
        panel.set_xticks(np.arange(len(ETAS)), [f"{eta:g}" for eta in ETAS], fontsize=8)
        panel.set_yticks(np.arange(len(windows)), [f"{W:,}" for W in windows])
        panel.grid(visible=False)
        label(panel, name, "eta", "W")
        panel.figure.colorbar(mesh, ax=panel, shrink=0.9)
    return figure
