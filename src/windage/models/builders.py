"""What people pass for a drifting model, checked, and the source of models it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from windage.errors import ModelError
from windage.models.blend import Blend, Mixture, alike
from windage.models.mdp import (
    MDP,
    Transitions,
    as_floats,
    check_rewards,
    check_transitions,
    rectangular,
)
from windage.models.source import ArrayStream, FunctionStream, largest, largest_row
from windage.schedules import Knots, Schedule, as_schedule, check_knots
from windage.spaces import StateActions, as_space
from windage.validation import as_choice

__all__ = ["as_model", "from_arrays", "from_function", "from_knots", "from_models"]

Reals = NDArray[np.float64]


def as_model(model: object, field: str) -> MDP:
    """Return `model` if it is one."""
    if not isinstance(model, MDP):
        raise ModelError(
            f"{_shown(model)} is not an MDP",
            field=field,
            fix="pass a wd.MDP, made from rewards and transitions",
        )
    return model


def from_knots(
    space: StateActions,
    knots: ArrayLike,
    rewards: ArrayLike,
    transitions: ArrayLike | Sequence[Transitions],
    interpolation: str,
    horizon: int,
) -> Blend:
    """Return the blend of the models at the knots."""
    as_space(space)
    times = check_knots(knots, horizon)
    schedule = Knots(times, as_choice(interpolation, "interpolation", ("linear", "step")))
    at = [f"knot {k} (t={t})" for k, t in enumerate(times)]
    rows = _one_a_knot(rewards, len(times), "rewards")
    r = [check_rewards(space, row, at=place) for row, place in zip(rows, at, strict=True)]
    kernels = _one_a_knot(transitions, len(times), "transitions")
    p = [check_transitions(space, one, at=place) for one, place in zip(kernels, at, strict=True)]
    return _blend(space, r, schedule, p, schedule, horizon)


def from_models(
    models: Sequence[MDP], schedule: object, reward_schedule: object, horizon: int
) -> Blend:
    """Return the blend of base models."""
    found = _base_models(models)
    space = found[0].space
    kernel_weights = as_schedule(schedule, horizon)
    reward_weights = kernel_weights
    if reward_schedule is not None:
        reward_weights = as_schedule(reward_schedule, horizon, "reward_schedule")
    for weights, field in ((kernel_weights, "schedule"), (reward_weights, "reward_schedule")):
        if weights.n_models > len(found):
            raise ModelError(
                f"speaks of {weights.n_models} models, there are {len(found)}",
                field=field,
                fix="pass as many base models as the schedule has weights",
            )
    r, p = [model.rewards for model in found], [model.transitions for model in found]
    return _blend(space, r, reward_weights, p, kernel_weights, horizon)


def from_arrays(
    rewards: ArrayLike,
    transitions: ArrayLike,
    space: StateActions | None,
    *,
    normalize: bool | None,
) -> ArrayStream:
    """Return the stream of `r[t, s, a]` and `p[t, s, a, s']`, row 0 being t = 1.

    `normalize` is None where the caller has no such option.
    """
    r, p, space = rectangular(rewards, transitions, space, leading=1)
    if not len(r):
        raise ModelError("there are no times", field="r", fix="pass one row a time, from t = 1 on")
    for i in _suspects(r, p):
        r[i] = check_rewards(space, r[i], field="r", at=f"t={i + 1}")
        p[i] = check_transitions(space, p[i], field="p", at=f"t={i + 1}", normalize=normalize)
    return ArrayStream(space, r, p)


def from_function(
    function: Callable[[int], tuple[ArrayLike, ArrayLike | Transitions]], space: StateActions
) -> FunctionStream:
    """Return the stream of what a function answers; it is asked for t = 1 at once."""
    as_space(space)
    if not callable(function):
        raise ModelError(
            f"{_shown(function)} cannot be called",
            field="function",
            fix="pass a function of t that returns (rewards, transitions)",
        )
    stream = FunctionStream(space, function)
    first = stream.at(1)[1]
    cells = first.size if isinstance(first, np.ndarray) else first.nnz
    return FunctionStream(space, function, int(cells))


def _base_models(models: object) -> list[MDP]:
    if not isinstance(models, Sequence) or isinstance(models, (str, bytes)):
        raise ModelError(
            f"{_shown(models)} is not a list of models",
            field="models",
            fix="pass a list of wd.MDP on one space",
        )
    if not models:
        raise ModelError("there are no base models", field="models", fix="pass at least one")
    for k, model in enumerate(models):
        as_model(model, f"models[{k}]")
        if model.space != models[0].space:
            raise ModelError(
                f"{model.space!r} is not {models[0].space!r}"
                if repr(model.space) != repr(models[0].space)
                else "its states or actions have other names than those of models[0]",
                field=f"models[{k}].space",
                fix="build all base models on one space",
            )
    return list(models)


def _blend(
    space: StateActions,
    rewards: Sequence[Reals],
    reward_schedule: Schedule,
    kernels: Sequence[Transitions],
    kernel_schedule: Schedule,
    horizon: int,
) -> Blend:
    return Blend(
        space,
        Mixture(rewards, reward_schedule, horizon, largest),
        Mixture(alike(kernels), kernel_schedule, horizon, largest_row),
    )


def _suspects(rewards: Reals, transitions: Reals) -> NDArray[np.int64]:
    """Return the times whose arrays are not flawless: only these need a closer look."""
    fine = ((rewards >= 0) & (rewards <= 1)).all(axis=1)
    fine &= (transitions >= 0).all(axis=(1, 2))
    fine &= (np.abs(transitions.sum(axis=2) - 1) <= 1e-15 * transitions.shape[2]).all(axis=1)
    return np.flatnonzero(~fine)


def _one_a_knot(values: Any, knots: int, field: str) -> Any:
    if issparse(values):
        raise ModelError(
            "is a single sparse matrix", field=field, fix="pass a list of matrices, one a knot"
        )
    if isinstance(values, (list, tuple)) and any(issparse(value) for value in values):
        found: Any = values
    else:
        found = as_floats(values, field)
        if found.ndim == 0:
            raise ModelError("is a single number", field=field, fix="pass one array a knot")
    if len(found) != knots:
        raise ModelError(
            f"{len(found)} entries for {knots} knots", field=field, fix="pass one array a knot"
        )
    return found


def _shown(value: object) -> str:
    """Return a value as a message shows it: short, and classes by name."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    text = repr(value)
    return text if len(text) <= 60 else f"a value of type {type(value).__name__}"
