"""A tabular Gymnasium environment that changes on a schedule, and its oracle: `drift`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from windage.errors import HorizonReached, InputError
from windage.gym.problem import WrappedEnv
from windage.gym.tabular import table_of, tabular
from windage.models import DriftingMDP
from windage.schedules import as_schedule
from windage.validation import as_integer, shown

__all__ = ["Drifting", "DriftingProblem", "drift"]


class Drifting(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A tabular environment whose transitions are a blend of several that changes with t.

    `drift` makes one. The clock t goes on from episode to episode, since the world drifts whether
    or not somebody starts again; a reset with a seed sets it back to 1. `truncated` is True at T.

    Attributes
    ----------
    model
        The `DriftingMDP` of what is played, restarts included: gains, budgets, diameters.
    t
        The time of the next step.
    """

    def __init__(
        self,
        envs: Sequence[gymnasium.Env[Any, Any]],
        schedule: object,
        horizon: int,
        reward_range: tuple[float, float],
        restart: str,
    ) -> None:
        super().__init__(envs[0])
        self.reward_range, self.restart = reward_range, restart
        models = [tabular(env, reward_range=reward_range, restart=restart) for env in envs]
        self.model = DriftingMDP.blend(models, schedule, horizon=horizon)
        self.t = 1
        self._schedule = as_schedule(schedule, self.model.horizon)
        self._tables = [table_of(env) for env in envs]
        self._rewards = np.array([model.rewards for model in models])

    def problem(self) -> DriftingProblem:
        """Return this as a problem for `windage.run`, in which regret is known."""
        return DriftingProblem(self)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start another episode; with a seed, start the drift again too."""
        if seed is not None:
            self.t = 1
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play an action with the transitions of the moment."""
        if self.t > self.model.horizon:
            raise HorizonReached(
                f"all {self.model.horizon} steps have been played", fix="reset with a seed"
            )
        base: Any = self.env.unwrapped
        s, a = int(base.s), as_integer(action, "action", low=0, high=len(self._tables[0][0]) - 1)
        kept = base.P[s][a]
        base.P[s][a] = [
            (w * one.probability, one.state, one.reward, one.terminated)
            for w, table in zip(self._weights(), self._tables, strict=False)
            for one in table[s][a]
            if w > 0
        ]
        try:
            state, reward, terminated, truncated, info = self.env.step(a)
        finally:
            base.P[s][a] = kept
        self.t += 1
        return state, reward, terminated, truncated or self.t > self.model.horizon, info

    def mean_reward(self, pair: int) -> float:
        """Return r_t of a pair at the time of the next step."""
        weights = self._weights()
        return float(weights @ self._rewards[: weights.size, pair])

    def _weights(self) -> Any:
        return self._schedule.weights(self.t, self.model.horizon)


class DriftingProblem(WrappedEnv):
    """A drifting environment as a problem whose model, and so whose regret, is known."""

    def __init__(self, env: Drifting) -> None:
        super().__init__(env, env.model.horizon, env.reward_range, None, env.restart)
        self.model = env.model
        self.mean_reward = math.nan
        self._drifting = env

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; `mean_reward` is then r_t(s_t, a_t) of this step."""
        self._drifting.t = self.t  # a restart may take a step of its own
        if self.state is not None and self.t <= self.horizon:
            self.mean_reward = self._drifting.mean_reward(self.space.pair(self.state, action))
        return super().step(action)


def drift(
    envs: Sequence[gymnasium.Env[Any, Any]],
    schedule: object,
    *,
    horizon: int,
    reward_range: tuple[float, float] = (0.0, 1.0),
    restart: str = "same-step",
) -> Drifting:
    """Return a tabular environment that drifts: the first of `envs`, with the transitions of all.

    Parameters
    ----------
    envs
        Environments with the same states and actions, made with different parameters, that tell
        their transitions: see `tabular`. The first one is played.
    schedule
        Their weights over time: one of `windage.schedules`, or any object with `weights(t, T)`.
    horizon
        T, the number of steps, over all episodes.
    reward_range
        The least and the largest reward; in the model they become 0 and 1.
    restart
        "same-step" or "next-step": see `windage.gym.wrap`.

    Examples
    --------
    A lake that is slippery in the morning, at noon not:

    >>> import gymnasium
    >>> import windage as wd
    >>> lakes = [gymnasium.make("FrozenLake-v1", success_rate=rate) for rate in (0.4, 0.9)]
    >>> env = drift(lakes, wd.schedules.Cosine(cycles=2), horizon=2000)
    >>> print(f"{env.model.budgets().transition:.2f}")
    4.00
    >>> agent = wd.agents.make("random", env.model.space, horizon=2000)
    >>> run = wd.run(env.problem(), agent, seed=0)
    >>> regret = wd.dynamic_regret(run, env.model)
    """
    if not isinstance(envs, (list, tuple)) or not envs:
        raise InputError(
            f"{shown(envs)} is not a list of environments",
            field="envs",
            fix="pass a list: the same environment, made with different parameters",
        )
    for k, env in enumerate(envs):
        if not isinstance(env, gymnasium.Env):
            raise InputError(
                f"{shown(env)} is not a Gymnasium environment",
                field=f"envs[{k}]",
                fix='pass gymnasium.make("...")',
            )
    return Drifting(envs, schedule, horizon, reward_range, restart)
