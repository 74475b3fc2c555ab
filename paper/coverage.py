"""Lemma 1 (C1): the sets hold the window's true means, at every episode of whole runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, binom

import windage as wd
from paper.cases import learner
from paper.claims import Check, Sides, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, canvas, label, legend
from windage.confidence.radii import Radii
from windage.models import DriftingMDP
from windage.proof import hindsight

__all__ = ["Counted", "ceiling", "compute", "count", "floor", "judge", "most_violations"]

DELTA = 0.05
WINDOW, WIDENING = 500, 0.2
STEPS, SEEDS = 5000, 150
"""From here on broken radii must be found out with power 0.999."""
WORLDS = ("two-state-cosine", "riverswim")
GUARANTEED = {"printed": Radii.paper(), "proof": Radii.proof(), "Laplace": Radii.laplace()}
BROKEN = {
    "printed x0.1": Radii.paper().scaled(0.1),
    "Laplace x0.3": Radii.laplace().scaled(0.3),
}
ALARM = 1e-6
"""How often sets that keep their promise would be called broken."""

LEAST = Least(2 * WINDOW, "the window must move on")

ABOUT = f"""
E_r says that r-bar, the true mean reward at the visits a window holds, is within rad_r of r-hat
for every pair, and E_p that p-bar is within rad_p of p-hat; each at the start of every episode of
a run. Lemma 1 gives each of them probability at least 1 - delta/2 = {1 - DELTA / 2:g}. For every
kind of radii whole runs are counted in which either fails. Upper bounds are Clopper and
Pearson's, one-sided at 95 %. The last columns give the largest distance seen over its radius: 1
is where an event fails.

A test that cannot fail shows nothing, so two kinds of radii are counted that are too small. A
count is called a violation of the lemma if it would come up with probability {ALARM:g} at most
were the lemma true; the power is the probability that the broken radii are found out, at the
lower Clopper-Pearson bound of their failures (99.9 %).
"""


class Counted(NamedTuple):
    """Runs in which an event failed, for rewards and transitions, and the largest ratios."""

    runs: int
    reward: int
    transition: int
    reward_ratio: float
    transition_ratio: float


def count(model: DriftingMDP, radii: Radii, seeds: int) -> Counted:
    """Count the runs in which E_r or E_p fails at some episode."""
    failed, worst = np.zeros(2, int), np.zeros(2)
    for seed in range(seeds):
        made = learner(model, seed, window=WINDOW, widening=WIDENING, radii=radii)
        again = hindsight(wd.run(model, made, seed=seed), model)
        held = np.ones(2, bool)
        for episode in again.episodes(biases=False):
            held &= episode.covers_rewards, episode.covers_transitions
            if episode.seen.any():
                seen = (
                    episode.reward_errors[episode.seen].max(),
                    episode.transition_errors[episode.seen].max(),
                )
                worst = np.maximum(worst, seen)
        failed += ~held
    return Counted(seeds, int(failed[0]), int(failed[1]), float(worst[0]), float(worst[1]))


def ceiling(failures: int, runs: int, level: float = 0.95) -> float:
    """Return the one-sided upper bound of Clopper and Pearson.

    >>> print(f"{ceiling(0, 150):.4f}")
    0.0198
    """
    return 1.0 if failures == runs else float(beta.ppf(level, failures + 1, runs - failures))


def floor(failures: int, runs: int, level: float = 0.999) -> float:
    """Return the one-sided lower bound."""
    return 0.0 if failures == 0 else float(beta.ppf(1 - level, failures, runs - failures + 1))


def most_violations(runs: int, chance: float = DELTA / 2) -> int:
    """Return the largest count that does not yet contradict the lemma.

    >>> most_violations(150)
    16
    """
    return int(binom.isf(ALARM, runs, chance))


def compute(effort: Effort) -> Result:
    """Count violations of E_r and E_p over whole runs, for radii that keep Lemma 1 and others."""
    T = effort.steps(STEPS, quick=1500)
    seeds = effort.runs(SEEDS, quick=20, least=20)
    models = {name: wd.envs.make(f"{name}-v0", horizon=T) for name in WORLDS}
    kinds = GUARANTEED | BROKEN
    found: dict[tuple[str, str], Counted] = {}
    for world, model in models.items():
        for kind, radii in kinds.items():
            effort.say(f"counting: {world}, {kind}")
            found[world, kind] = count(model, radii, seeds)
    limit = most_violations(seeds)
    power = {k: _power([found[w, k] for w in WORLDS], limit) for k in BROKEN}
    return Result(
        name="coverage",
        title="The sets hold what was averaged (Lemma 1)",
        about=ABOUT,
        checks=judge(found, power, limit, is_full=T >= STEPS and seeds >= SEEDS),
        remarks=_remarks(found, seeds),
        tables=[_table(found, seeds, T), _powers(found, power, seeds, limit)],
        figure=_draw(found, seeds),
        is_quick=effort.is_quick,
    )


def judge(
    found: dict[tuple[str, str], Counted], power: dict[str, float], limit: int, *, is_full: bool
) -> list[Check]:
    """Judge failures of sets that keep the lemma, and how surely broken ones are found out."""
    events = [
        Sides(failures, limit, f"{event}, {world}, {kind}")
        for (world, kind), one in found.items()
        if kind in GUARANTEED
        for event, failures in (("E_r", one.reward), ("E_p", one.transition))
    ]
    return [
        worst(
            "C1",
            f"the runs in which E_r or E_p fails are so few that the lemma's {DELTA / 2:.1%} is "
            "not contradicted, with printed, proof and Laplace radii",
            events,
            unit="counts",
        ),
        worst(
            "power",
            "radii that are too small are found out",
            [Sides(value, 0.999, kind) for kind, value in power.items()],
            ">=",
            unit="kinds of radii",
            is_judged=is_full,
        ),
    ]


def _remarks(found: dict[tuple[str, str], Counted], seeds: int) -> str:
    kept = [one for (_, kind), one in found.items() if kind in GUARANTEED]
    bad = sum(one.reward + one.transition for one in kept)
    highest = max(ceiling(max(one.reward, one.transition), seeds) for one in kept)
    return (
        f"Where the lemma speaks, {bad:,} failures in {2 * len(kept) * seeds:,} events of "
        f"{len(kept) * seeds:,} runs: at most {highest:.1%} of the runs with 95 % confidence."
    )


def _power(counts: list[Counted], limit: int) -> float:
    """How surely the radii are found out in the better of the worlds, by the better event."""
    best = max(floor(max(one.reward, one.transition), one.runs) for one in counts)
    return float(binom.sf(limit, counts[0].runs, best))


def _table(found: dict[tuple[str, str], Counted], seeds: int, T: int) -> Table:
    return Table(
        f"Failures in {seeds} runs of {T:,} steps, W = {WINDOW}, eta = {WIDENING:g}, delta = "
        f"{DELTA:g}",
        ("world", "radii", "E_r fails", "at most", "E_p fails", "at most", "rad_r used",
         "rad_p used"),
        [
            [
                world,
                kind,
                str(one.reward),
                f"{ceiling(one.reward, seeds):.1%}",
                str(one.transition),
                f"{ceiling(one.transition, seeds):.1%}",
                f"{one.reward_ratio:.2f}",
                f"{one.transition_ratio:.2f}",
            ]
            for (world, kind), one in found.items()
        ],
    )  # fmt: skip


def _powers(
    found: dict[tuple[str, str], Counted], power: dict[str, float], seeds: int, limit: int
) -> Table:
    return Table(
        f"Power: more than {limit} failures in {seeds} runs contradict the lemma",
        ("radii", *(f"{world}: failures of E_r, E_p" for world in WORLDS), "power"),
        [
            [kind]
            + [f"{found[w, kind].reward}, {found[w, kind].transition}" for w in WORLDS]
            + [f"{power[kind]:.6f}"]
            for kind in power
        ],
    )


def _draw(found: dict[tuple[str, str], Counted], seeds: int) -> Any:
    figure, panels = canvas("How much of the radii is used, at the worst episode of all runs")
    for panel, world in zip(panels, WORLDS, strict=True):
        kinds = [kind for w, kind in found if w == world]
        x = np.arange(len(kinds))
        ratios = np.array([found[world, k][3:] for k in kinds])
        names = ("max abs(r-hat - r-bar) / rad_r", "max L1(p-hat - p-bar) / rad_p")
        for i, name in enumerate(names):
            panel.bar(x + 0.4 * i - 0.2, ratios[:, i], 0.38, color=COLOURS[i], label=name)
        panel.axhline(1.0, color="#000000", linewidth=1, linestyle="--")
        for i, kind in enumerate(kinds):
            one = found[world, kind]
            panel.text(
                i, max(ratios[i]) + 0.06, f"fails in\n{one.reward}, {one.transition}", ha="center",
                fontsize=9,
            )  # fmt: skip
        panel.set_xticks(x, kinds)
        panel.set_ylim(0, max(1.2, 1.2 * float(ratios.max())))
        label(panel, f"{world}, {seeds} runs: above 1, the event fails", "", "share of the radius")
        legend(panel, columns=1)
    return figure
