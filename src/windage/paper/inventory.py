"""Structure that makes widening unnecessary: inventory, where no average is perilous."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from windage.drift import DriftingMDP
from windage.hindsight import hindsight
from windage.learn.radii import Radii
from windage.mdp import MDP
from windage.paper.drawing import COLOURS, canvas, label, legend
from windage.paper.result import Effort, Least, Result, Table
from windage.paper.suite import learner
from windage.study import stats

__all__ = ["averaged_diameters", "compute", "inventory_window"]

Reals = NDArray[np.float64]

_ASKED = 60  # averaged models a run whose diameter is computed
_TIGHT = Radii.laplace().scaled(0.03)

LEAST = Least(1000, "a season would be shorter than W*")

ABOUT = """
The paper's extended version leaves the widening out for inventory control with a fixed cost: its
transitions have a structure that averages keep. Every demand has probability at least zeta at
every t, so from any level any other is reached within a period with probability at least zeta:
order up to it and sell nothing, or order nothing and sell down to it. An average of such laws is
such a law, so the averaged model of any window has diameter at most 1/zeta, and eta = 0 is safe.
Here p-bar of every window of a run is turned into a model, with the model at tau(m) in the place
of pairs never visited, and its diameter computed; the same is done in the drift of Proposition 3,
where it grows to the length of a phase. Then eta = 0 and eta* are compared on the same seeds,
with W* and with the window for this structure, (S sqrt(A) T / B)^(2/3), our own derivation.
"""


def averaged_diameters(model: DriftingMDP, seed: int = 0, **options: Any) -> Reals:
    """Return the diameters of models averaged by windows, of some episodes of a run."""
    again = hindsight(wd.run(model, learner(model, seed, **options), seed=seed), model)
    stride = max(1, len(again.run.episodes) // _ASKED)
    found = []
    for look in again.looks(biases=False):
        if look.number % stride == 0 and look.number > 0:
            rows = np.where(look.seen[:, None], look.p_bar, look.transitions)
            made = MDP(model.space, np.zeros(model.space.n_pairs), rows, normalize=True)
            found.append(made.diameter())
    return np.array(found)


def inventory_window(model: DriftingMDP) -> int:
    """Return (S sqrt(A) T / B)^(2/3), rounded and capped at T."""
    space, B = model.space, model.budgets()
    real = (space.n_states * np.sqrt(space.mean_actions) * model.horizon
            / max(B.reward + B.transition, 1e-9)) ** (2 / 3)  # fmt: skip
    return max(1, min(model.horizon, round(float(real))))


class _Setting(NamedTuple):
    window: str
    W: int
    radii: str
    without: Reals
    with_eta: Reals
    eta: float


def compute(effort: Effort) -> Result:
    """Compute diameters of averaged models, and compare eta = 0 with eta*."""
    T = effort.steps(100_000, quick=3000)
    seeds = effort.runs(20, quick=3)
    model = wd.envs.make("inventory", horizon=T)
    zeta = 0.2 / model.space.n_states
    bound = wd.envs.facts("inventory", horizon=T).diameter_bound or 1 / zeta
    effort.say("diameters of averaged models")
    own = model.max_diameter()
    calm = averaged_diameters(model, radii=_TIGHT)
    tau = 250
    peril = wd.envs.make("peril", horizon=min(T, 20_000), tau=tau)
    wild = averaged_diameters(peril, window=4 * tau, widening=0.0, radii=_TIGHT)
    settings = _settings(effort, model, seeds)
    differences = [stats.paired(s.without, s.with_eta) for s in settings]
    return Result(
        name="inventory",
        title="Inventory: where averages are not perilous",
        about=ABOUT,
        expected=(
            "every averaged model has diameter at most 1/zeta, and eta = 0 loses no more than eta*."
        ),
        seen=(
            f"the {calm.size} averaged models have diameters up to {calm.max():.1f}, the true ones "
            f"up to {own.lower:.1f}, 1/zeta = {bound:.0f}; in the perilous drift averages of "
            f"models of diameter 1 reach {wild.max():.0f}. The regret with eta = 0 less "
            "that with eta* is "
            + ", ".join(
                f"{d.difference.estimate:,.0f} ({d.difference.low:,.0f} to "
                f"{d.difference.high:,.0f}) with {s.window}, {s.radii}"
                for s, d in zip(settings, differences, strict=True)
            )
            + "."
        ),
        holds=bool(calm.max() <= bound * (1 + 1e-6)) and wild.max() > 2 and (
            effort.is_quick
            or all(d.difference.low <= 0.02 * s.with_eta.mean() for s, d in
                   zip(settings, differences, strict=True))
        ),
        tables=[_table(settings, differences, T, seeds)],
        figure=_draw(calm, wild, bound, settings, tau),
        is_quick=effort.is_quick,
    )  # fmt: skip


def _settings(effort: Effort, model: DriftingMDP, seeds: int) -> list[_Setting]:
    best = model.optimal_gains().sum()
    tuned = learner(model)
    eta = float(np.max(tuned.widening))
    found = []
    for window, W in (("W*", tuned.window), ("the window for it", inventory_window(model))):
        for radii in (Radii.laplace(), Radii.laplace().scaled(0.3)):
            effort.say(f"with and without widening: {window}, {radii.label}")

            def play(task: tuple[float, int], W: int = W, radii: Radii = radii) -> float:
                widening, seed = task
                made = learner(model, seed, window=W, widening=widening, radii=radii)
                run = wd.run(model, made, seed=seed, record="totals")
                return best - float(run.total_mean_reward)

            both = [
                np.array(effort.each(play, [(widening, seed) for seed in range(seeds)]))
                for widening in (0.0, eta)
            ]
            found.append(_Setting(window, W, radii.label, both[0], both[1], eta))
    return found


def _table(settings: list[_Setting], differences: list[stats.Paired], T: int, seeds: int) -> Table:
    rows = []
    for s, d in zip(settings, differences, strict=True):
        cells = [stats.mean(values) for values in (s.without, s.with_eta)]
        rows.append(
            [
                s.window, f"{s.W:,}", s.radii,
                *(f"{c.estimate:,.0f} ({c.low:,.0f} to {c.high:,.0f})" for c in cells),
                f"{d.difference.estimate:,.0f} ({d.difference.low:,.0f} to "
                f"{d.difference.high:,.0f})",
                f"{d.p_value:.2g}",
            ]
        )  # fmt: skip
    return Table(
        f"Regret with eta = 0 and eta* = {settings[0].eta:.3g}, T = {T:,}, {seeds} seeds",
        ("window", "W", "radii", "eta = 0", "eta*", "difference, paired", "p"),
        rows,
    )


def _draw(calm: Reals, wild: Reals, bound: float, settings: list[_Setting], tau: int) -> Any:
    figure, (left, right) = canvas("Averages of models: harmless and perilous", height=4.6)
    left.plot(np.linspace(0, 1, calm.size), np.sort(calm), color=COLOURS[0], label="inventory")
    left.plot(np.linspace(0, 1, wild.size), np.sort(wild), color=COLOURS[1],
              label=f"peril, tau = {tau}, W = 4 tau: every model has diameter 1")  # fmt: skip
    left.axhline(bound, color=COLOURS[0], linestyle="--", linewidth=1, label="1/zeta of inventory")
    label(left, "Diameter of p-bar, sorted over episodes", "share of the episodes", "diameter",
          logs="y")  # fmt: skip
    legend(left, columns=1)
    x = np.arange(len(settings))
    for i, (name, pick) in enumerate((("eta = 0", 3), ("eta*", 4))):
        cells = [stats.mean(s[pick]) for s in settings]
        sides = np.array([[c.estimate - c.low, c.high - c.estimate] for c in cells]).T
        right.bar(x + 0.4 * i - 0.2, [c.estimate for c in cells], 0.38, yerr=sides,
                  color=COLOURS[i + 2], label=name)  # fmt: skip
    right.set_xticks(x, [f"{s.window}\n{s.radii}" for s in settings], fontsize=9)
    label(right, "Regret with and without widening", "", "regret")
    legend(right)
    return figure
