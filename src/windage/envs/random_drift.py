"""RandomDrift: random models that drift by exactly as much as asked."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.errors import InputError
from windage.models import MDP, DriftingMDP, Noise
from windage.rng import stream
from windage.schedules import Burst, Cosine, Linear, RandomWalk, Schedule, Steps
from windage.spaces import StateActions
from windage.validation import as_choice, as_horizon, as_real, as_seed, as_size, require_memory

__all__ = ["random_drift"]

_SHAPES = ("cosine", "linear", "jumps", "walk", "burst")


@register("random-drift-v0")
def random_drift(
    horizon: int = 5000,
    states: int = 5,
    actions: int = 3,
    reward_budget: float = 1.0,
    transition_budget: float = 1.0,
    shape: str = "cosine",
    mixing: float = 0.2,
    seed: int = 0,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A random model that drifts towards another one and back, with the budgets you ask for.

    States
        0 .. states - 1.
    Actions
        0 .. actions - 1 in every state. Rows are Dirichlet draws; those of action 0 are mixed with
        `mixing` parts of the uniform distribution.
    Drift
        p_t = (1 - w_t) K0 + w_t K1 and r_t = (1 - v_t) R0 + v_t R1, where w and v have the `shape`
        "cosine", "linear", "jumps", "walk" or "burst" and K1, R1 are pulled towards K0, R0 so that
        the budgets are met. A budget of 0 is no drift.
    B_r
        `reward_budget`, exactly.
    B_p
        `transition_budget`, exactly.
    D
        At most states / mixing.
    Why communicating
        Under action 0 every state is entered with probability at least mixing / states a step.
    Version history
        v0: first.
    """
    Noise.of(noise)
    asked = _Asked(
        as_horizon(horizon),
        as_size(states, "states"),
        as_size(actions, "actions"),
        as_real(reward_budget, "reward_budget", low=0),
        as_real(transition_budget, "transition_budget", low=0),
        as_choice(shape, "shape", _SHAPES),
        as_real(mixing, "mixing", low=0, high=1, open_low=True),
        as_seed(seed),
    )
    still = asked.states == 1 or (asked.actions == 1 and asked.mixing == 1)
    if still and asked.transition_budget > 0:
        why = "one state" if asked.states == 1 else "rows that are all uniform"
        raise InputError(
            f"{asked.transition_budget} cannot be drifted by a model with {why}",
            field="transition_budget",
            fix="ask for a budget of 0, or for more states",
        )
    cells = float(asked.states) ** 2 * asked.actions
    require_memory(8.0 * 6 * cells, "states", fix="ask for fewer states or actions")

    def facts() -> Facts:
        return Facts(
            reward_budget=asked.reward_budget,
            transition_budget=asked.transition_budget,
            diameter_bound=asked.states / asked.mixing if asked.states > 1 else 0.0,
        )

    def build() -> DriftingMDP:
        space = StateActions.uniform(asked.states, asked.actions)
        rng = stream(asked.seed, "envs.random_drift")
        first, second = (_kernel(rng, space, asked.mixing) for _ in range(2))
        here, there = rng.random((2, space.n_pairs))
        apart = float(np.abs(second - first).sum(axis=1).max())
        kernel_schedule, pull = _fitted(asked, "transition_budget", apart)
        reward_schedule, reward_pull = _fitted(
            asked, "reward_budget", float(np.abs(there - here).max())
        )
        return DriftingMDP.blend(
            [
                MDP(space, here, first),
                MDP(space, here + reward_pull * (there - here), first + pull * (second - first)),
            ],
            kernel_schedule,
            reward_schedule,
            horizon=asked.horizon,
            noise=noise,
        )

    return Instance(build, facts)


class _Asked(NamedTuple):
    """The parameters, checked."""

    horizon: int
    states: int
    actions: int
    reward_budget: float
    transition_budget: float
    shape: str
    mixing: float
    seed: int


def _kernel(rng: np.random.Generator, space: StateActions, mixing: float) -> NDArray[np.float64]:
    rows = rng.dirichlet(np.ones(space.n_states), size=space.n_pairs)
    default = space.action_of == 0
    rows[default] = (1 - mixing) * rows[default] + mixing / space.n_states
    return rows


def _fitted(asked: _Asked, field: str, distance: float) -> tuple[Schedule, float]:
    """Return a schedule and how far to go towards the second model, so that the budget is met.

    A drift all the way from one model to the other moves by the schedule's variation times their
    distance. Schedules of the shape are tried with ever more swings until that reaches the budget;
    the excess is taken off by going only a part of the way. Fewer swings may do, since their number
    grows by a fifth at a time.
    """
    wanted: float = getattr(asked, field)
    if wanted == 0:
        return Steps(), 0.0
    own = int(stream(asked.seed, f"envs.random_drift.{field}").integers(1 << 62))
    most, swings = 0.0, 1  # rewards and kernels must not follow one and the same walk
    while (schedule := _shaped(asked.shape, swings, asked.horizon, own)) is not None:
        reach = schedule.variation(asked.horizon) * distance
        if reach >= wanted:
            return schedule, wanted / reach
        most = max(most, reach)
        swings = math.ceil(1.2 * swings)
    raise InputError(
        f"{wanted} is more than {asked.horizon} steps of shape {asked.shape!r} can drift",
        field=field,
        fix=f"ask for {most:.3g} at the most, or a longer horizon",
    )


def _shaped(shape: str, swings: int, horizon: int, seed: int) -> Schedule | None:
    """Return a schedule with that many swings, or None if they do not fit into the horizon."""
    if shape == "cosine":
        return Cosine(cycles=swings) if 2 * swings <= horizon else None
    if shape == "linear":
        return Linear(legs=swings) if swings < horizon else None
    if shape == "burst":
        return Burst(cycles=swings) if 10 * swings <= horizon else None
    if shape == "walk":
        return RandomWalk(seed=seed, moves=32 * swings) if 32 * swings < max(64, horizon) else None
    if 2 + swings >= horizon:
        return None
    times = stream(seed, "envs.random_drift.jumps").choice(horizon - 1, 2 + swings, replace=False)
    return Steps(sorted(int(t) + 2 for t in times))
