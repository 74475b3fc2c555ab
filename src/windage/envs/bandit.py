"""Bandit: one state, arms whose means drift or jump."""

from __future__ import annotations

import numpy as np

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Cosine, Schedule, Steps
from windage.spaces import StateActions
from windage.validation import as_choice, as_horizon

__all__ = ["bandit"]

_SHAPES = ("waves", "breaks")
_MEANS = {
    "waves": ((0.8, 0.2), (0.2, 0.8)),
    "breaks": ((0.5, 0.3, 0.4), (0.5, 0.3, 0.9)),
}


@register("bandit-v0")
def bandit(
    horizon: int = 20_000,
    shape: str = "waves",
    cycles: float = 2.5,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """Arms and nothing else: two that trade places, or three of which one has a great moment.

    States
        One.
    Actions
        "arm 1", "arm 2" and, with breaks, "arm 3". Nothing is lost by looking no further than the
        next step: the myopic policy is optimal here.
    Drift
        "waves": the means are .5 +- .3 cos(2 pi cycles t / T); with cycles = 5 B / 2 these are the
        waves of Besbes, Gur and Zeevi's experiments, a quarter of a wave ahead. "breaks": .5, .3
        and .4, but the third arm has .9 from .3 T to .5 T, the two breakpoints of Garivier and
        Moulines; `cycles` does not matter there.
    B_r
        1.2 cycles up to the discrete sum for waves; 1 for breaks.
    B_p
        0.
    D
        0: there is nowhere to go.
    Why communicating
        One state.
    Version history
        v0: first.
    """
    T = as_horizon(horizon)
    Noise.of(noise)
    as_choice(shape, "shape", _SHAPES)
    schedule: Schedule = Cosine(cycles)
    if shape == "breaks":
        first, second = 3 * T // 10 + 1, T // 2 + 1
        schedule = Steps([first, second] if first < second else [])
    before, after = _MEANS[shape]

    def facts() -> Facts:
        distance = float(np.abs(np.subtract(after, before)).max())
        return Facts(
            reward_budget=distance * schedule.variation(T),
            transition_budget=0.0,
            diameter_bound=0.0,
        )

    def build() -> DriftingMDP:
        arms = [f"arm {k + 1}" for k in range(len(before))]
        space = StateActions([len(arms)], action_names=[arms])
        stay = np.ones((len(arms), 1))
        models = [MDP(space, means, stay) for means in (before, after)]
        return DriftingMDP.blend(models, schedule, horizon=T, noise=noise)

    return Instance(build, facts)
