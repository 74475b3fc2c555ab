"""TwoStateCosine: the smallest world in which everything drifts."""

from __future__ import annotations

import math

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Cosine
from windage.spaces import StateActions
from windage.validation import as_horizon, as_size

__all__ = ["two_state_cosine"]


def _cosine_budget(distance: float, cycles: int, horizon: int) -> float | None:
    """2 cycles full swings, less the step from t = 0 to t = 1, if the extremes fall on integers."""
    if cycles == 0:
        return 0.0
    if horizon % (2 * cycles):
        return None
    return distance * (2 * cycles - (1 - math.cos(2 * math.pi * cycles / horizon)) / 2)


@register("two-state-cosine-v0")
def two_state_cosine(
    horizon: int = 5000,
    reward_cycles: int = 2,
    transition_cycles: int = 1,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """Two states whose rewards trade places while the actions trade meanings.

    States
        0 and 1.
    Actions
        0, "hold": changes state with probability 1 - e_t and pays .5 + .4 c_t in state 0,
        .5 - .4 c_t in state 1. 1, "switch": changes state with probability e_t and pays .3.
    Drift
        c_t = cos(2 pi reward_cycles t / T), e_t = .5 + .4 cos(2 pi transition_cycles t / T).
    B_r
        1.6 reward_cycles up to the discrete sum: 3.1999987 at T = 5000.
    B_p
        3.2 transition_cycles up to the discrete sum.
    D
        At most 2, reached when e_t = .5.
    Why communicating
        One of the two actions changes state with probability at least .5.
    Version history
        v0: first.
    """
    Noise.of(noise)
    T = as_horizon(horizon)
    r_cycles = as_size(reward_cycles, "reward_cycles", low=0)
    p_cycles = as_size(transition_cycles, "transition_cycles", low=0)

    def facts() -> Facts:
        return Facts(
            reward_budget=_cosine_budget(0.8, r_cycles, T),
            transition_budget=_cosine_budget(1.6, p_cycles, T),
            diameter_bound=2.0,
        )

    def build() -> DriftingMDP:
        return DriftingMDP.blend(
            [_extreme(1.0, 0.9), _extreme(-1.0, 0.1)],
            Cosine(p_cycles),
            Cosine(r_cycles),
            horizon=T,
            noise=noise,
        )

    return Instance(build, facts)


def _extreme(c: float, e: float) -> MDP:
    space = StateActions.uniform(2, 2, action_names=["hold", "switch"])
    rewards = [[0.5 + 0.4 * c, 0.3], [0.5 - 0.4 * c, 0.3]]
    transitions = [[[e, 1 - e], [1 - e, e]], [[1 - e, e], [e, 1 - e]]]
    return MDP.from_arrays(rewards, transitions, space)
