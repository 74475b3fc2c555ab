"""Who plays: the learner, those it is compared with, and every fixed (window, widening).

"Best fixed in hindsight" is, problem by problem, the best of some ninety configurations, each with
the same window throughout: window PSRL with both episode rules, and optimism with the paper's radii
times .1 and .03 and three widenings. All of them are run on two seeds, the best six of each of
these four kinds on eight, the best three of each on all; the best of these is picked on the very
seeds it is compared on, which favours it.
"""

from __future__ import annotations

from collections.abc import Callable

import windage as wd

Maker = Callable[[wd.DriftingMDP, int], wd.agents.Agent]  # of a model and a seed


def _by_id(id: str, **options: object) -> Maker:  # noqa: A002
    def make(model: wd.DriftingMDP, seed: int) -> wd.agents.Agent:
        told = wd.agents.facts(id, model, **options)
        return wd.agents.make(id, model.space, horizon=model.horizon, seed=seed, **told | options)

    return make


def _every_best_window(id: str) -> Maker:  # noqa: A002
    """Restarts as often as Theorem 1 would have its window."""

    def make(model: wd.DriftingMDP, seed: int) -> wd.agents.Agent:
        B = model.budgets()
        best = wd.optimal_window(model.space, model.horizon, B.reward, B.transition)
        period = max(1, min(model.horizon, round(best)))
        return wd.agents.make(id, model.space, horizon=model.horizon, seed=seed, restarts=period)

    return make


RIVALS: dict[str, Maker] = {
    "sw-psrl at W*": _by_id("sw-psrl"),
    "borl": _by_id("borl"),
    "swucrl2-cw": _by_id("swucrl2-cw"),
    "swucrl2-cw-practical": _by_id("swucrl2-cw-practical"),
    "ucrl2": _by_id("ucrl2"),
    "ucrl2, radii x0.1": _by_id("ucrl2", radii={"kind": "ucrl2", "scale": 0.1}),
    "ucrl2-restarts every W*": _every_best_window("ucrl2-restarts"),
    "restarted-psrl every W*": _every_best_window("restarted-psrl"),
    "master": _by_id("master"),
    "random": _by_id("random"),
}
FEW_SEEDS = {"master": 3}  # it runs step by step, a hundred times slower: only up to T = 5,000


def fixed(horizon: int) -> dict[str, Maker]:
    """Every fixed window from 32 on: powers of two and T itself; of four in runs of 1e5 steps."""
    step = 1 if horizon < 100_000 else 2
    windows = [2**i for i in range(5, horizon.bit_length(), step) if 2**i < horizon] + [horizon]
    found: dict[str, Maker] = {}
    for W in windows:
        for rule in ("tsde", "doubling"):
            found[f"psrl {rule} W={W}"] = _by_id("sw-psrl", window=W, episodes=rule)
        for scale in (0.1, 0.03):
            radii = {"kind": "paper", "scale": scale}
            for eta in (0.0, 0.05, 0.2):
                found[f"optimism x{scale:g} W={W} eta={eta:g}"] = _by_id(
                    "swucrl2-cw", window=W, widening=eta, radii=radii
                )
    return found
