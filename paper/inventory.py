"""Structure that makes widening unnecessary: inventory, where no average is perilous."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from paper.cases import learner
from paper.claims import Check, Sides, check, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, canvas, label, legend
from windage.confidence.radii import Radii
from windage.models import DriftingMDP
from windage.models.mdp import MDP
from windage.proof import hindsight
from windage.study import stats

__all__ = ["Setting", "averaged_diameters", "compute", "inventory_window", "judge"]

Reals = NDArray[np.float64]

_TIGHT = Radii.laplace().scaled(0.03)

LEAST = Least(2157, "W* would be longer than half a season, T / 4")

ABOUT = """
The paper's extended version leaves the widening out for inventory control with a fixed cost: its
transitions have a structure that averages keep. Every demand has probability at least zeta at
every t, so from any level any other is reached within a period with probability at least zeta:
order up to it and sell nothing, or order nothing and sell down to it. An average of such laws is
such a law, so the averaged model of any window has diameter at most 1/zeta, and eta = 0 is safe.
Here p-bar of every window of a run is turned into a model, with the model at tau(m) in the place
of pairs never visited, and its diameter computed, for all episodes but the first, whose window is
empty; the same is done in the drift of Proposition 3. Then eta = 0 and eta* are compared on the
same seeds, with W* and with the window for this structure, (S sqrt(A) T / B)^(2/3), our own
derivation.
"""


def averaged_diameters(model: DriftingMDP, seed: int = 0, **options: Any) -> Reals:
    """Return the diameters of the models averaged by the windows of all episodes but the first."""
    again = hindsight(wd.run(model, learner(model, seed, **options), seed=seed), model)
    found = []
    for episode in again.episodes(biases=False):
        if episode.number > 0:  # the window of the first is empty
            rows = np.where(episode.seen[:, None], episode.p_bar, episode.transitions)
            made = MDP(model.space, np.zeros(model.space.n_pairs), rows, normalize=True)
            found.append(made.diameter())
    return np.array(found)


def inventory_window(model: DriftingMDP) -> int:
    """Return (S sqrt(A) T / B)^(2/3), rounded and capped at T."""
    space, B = model.space, model.budgets()
    real = (space.n_states * np.sqrt(space.mean_actions) * model.horizon
            / max(B.reward + B.transition, 1e-9)) ** (2 / 3)  # fmt: skip
    return max(1, min(model.horizon, round(float(real))))


class Setting(NamedTuple):
    """Regrets with and without widening, for a window and a kind of radii."""

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
    model = wd.envs.make("inventory-v0", horizon=T)
    zeta = 0.2 / model.space.n_states
    bound = wd.envs.facts("inventory-v0", horizon=T).diameter_bound or 1 / zeta
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
        checks=judge(calm, wild, bound, settings, is_judged=not effort.is_quick),
        remarks=(
            f"The true models of the inventory have diameters up to {own.lower:.1f}, those of the "
            "perilous drift 1."
        ),
        tables=[_table(settings, differences, T, seeds)],
        figure=_draw(calm, wild, bound, settings, tau),
        is_quick=effort.is_quick,
    )


def judge(
    calm: Reals, wild: Reals, bound: float, settings: list[Setting], *, is_judged: bool = True
) -> list[Check]:
    """Judge diameters of all averaged models, and what leaving the widening out costs."""
    costs = []
    for s in settings:
        apart = stats.paired(s.without, s.with_eta).difference
        where = (
            f"{s.window}, {s.radii}: {apart.estimate:,.0f} ({apart.low:,.0f} to {apart.high:,.0f})"
        )
        costs.append(Sides(apart.low, 0.0, where))
    return [
        worst(
            "averages",
            "every averaged model has diameter 1/zeta at most",
            [Sides(float(D), bound * (1 + 1e-6)) for D in calm],
            unit="episodes",
        ),
        check(
            "peril",
            "in the perilous drift some average has a diameter beyond 2, though every model has 1",
            float(wild.max()), ">", 2.0, f"of {wild.size:,} episodes",
        ),
        worst(
            "eta = 0",
            "eta = 0 loses no more than eta*: the interval of the paired difference begins at 0 or "
            "below",
            costs, unit="settings", is_judged=is_judged,
        ),
    ]  # fmt: skip


def _settings(effort: Effort, model: DriftingMDP, seeds: int) -> list[Setting]:
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
            found.append(Setting(window, W, radii.label, both[0], both[1], eta))
    return found


def _table(settings: list[Setting], differences: list[stats.Paired], T: int, seeds: int) -> Table:
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


def _draw(calm: Reals, wild: Reals, bound: float, settings: list[Setting], tau: int) -> Any:
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
