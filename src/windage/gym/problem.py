"""A Gymnasium environment as a problem for any agent of ours: `wrap`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.wrappers import TimeLimit

from windage.binning import Binner
from windage.errors import CallOrderError, HorizonReached, InputError, WindageError
from windage.gym.masks import MaskedDiscrete
from windage.spaces import StateActions
from windage.validation import as_choice, as_horizon, as_integer, as_range, as_real, shown

__all__ = ["RESTARTS", "WrappedEnv", "require_discrete", "wrap"]

RESTARTS = ("same-step", "next-step")

_STATE, _CHANGE = "state", "env_change"  # parts of the observations of ns_gym
_MOST_NAMED = 10_000  # states that get names

_FIVE = ("observation", "reward", "terminated", "truncated", "info")


class WrappedEnv:
    """A Gymnasium environment with `space`, `horizon`, `reset(seed)` and `step(action)`.

    `wrap` makes one. Nothing is known of what would have been best in it, so a run in it has a
    reward and no regret.

    Attributes
    ----------
    env
        The environment, without its time limits.
    space, horizon
        States and actions; T.
    state
        Where it stands; None before the first reset.
    t
        The time of the next step.
    ends
        How often the environment said that it had ended, or that it was cut short.
    info
        What it said last beside state and reward: its `info`, and the parts of a Dict observation
        that are no state.
    changes
        The times of the steps with which it announced a change, in a part called `env_change`.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        horizon: int,
        reward_range: tuple[float, float],
        binner: Binner | None,
        restart: str,
        state: str | Sequence[str] | None = None,
    ) -> None:
        self.env = _without_limits(env)
        self.horizon = as_horizon(horizon)
        self.reward_range = as_range(reward_range, "reward_range")
        self.binner = binner
        self.restart = as_choice(restart, "restart", RESTARTS)
        self._first_action, actions = _actions(self.env)
        self._chosen = _chosen(self.env.observation_space, state)
        self._read, states, names = _reader(self.env, self._chosen, binner)
        self.space = _space(self.env, states, actions, names)
        self.state: int | None = None
        self.t = 1
        self.ends = 0
        self.info: dict[str, Any] = {}
        self.changes: list[int] = []
        self._over = False

    def reset(self, seed: int) -> int:
        """Start again at t = 1; the seed is handed to the environment."""
        state = self._restart(seed)
        self.t, self.ends, self._over, self.changes = 1, 0, False, []
        self.state = state
        return state

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward, between 0 and 1 of the declared range, and the state.

        Where the environment ends, it starts again: see `restart` of `wrap`.
        """
        if self.state is None:
            raise CallOrderError("there is no state yet", field="step", fix="call reset(seed)")
        if self.t > self.horizon:
            raise HorizonReached(f"all {self.horizon} steps have been played", fix="call reset")
        chosen = self.space.check_action(self.state, action)
        if self._over:  # a step from the last state back to a first one
            reward, state, self._over = 0.0, self._restart(None), False
            low, high = self.reward_range
            reward = (0.0 - low) / (high - low) if low <= 0.0 <= high else 0.0
        else:
            reward, state, ended = self._played(chosen)
            self.ends += ended
            if ended and self.restart == "same-step":
                state = self._restart(None)
            elif ended:
                self._over = True
        self.state = state
        self.t += 1
        return reward, state

    def _played(self, action: int) -> tuple[float, int, bool]:
        call = f"step({action + self._first_action})"
        try:
            answer: Any = self.env.step(action + self._first_action)
        except WindageError:
            raise
        except Exception as err:
            raise self._broken(call, f"raised {type(err).__name__}: {err}") from err
        if not isinstance(answer, tuple) or len(answer) != 5:
            size = f"a tuple of {len(answer)}" if isinstance(answer, tuple) else shown(answer)
            raise self._broken(call, f"returned {size}")
        observation, paid, terminated, truncated, info = answer
        for name, value in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(value, (bool, np.bool_)):
                raise self._broken(call, f"returned {name} = {shown(value)}, which is no bool")
        cut = truncated and self.t < self.horizon  # at T nobody starts again
        reward, state = self._rescaled(call, paid), self._seen(call, observation)
        self._keep(observation, info)
        if _announces(self.info.get(_CHANGE)):
            self.changes.append(self.t)
        return reward, state, terminated or cut

    def _keep(self, observation: Any, info: Any) -> None:
        """Keep what an answer says beside the state."""
        self.info = dict(info) if isinstance(info, Mapping) else {}
        if self._chosen is not None:
            rest = observation.items()
            self.info |= {name: value for name, value in rest if name not in self._chosen}

    def _rescaled(self, call: str, paid: Any) -> float:
        low, high = self.reward_range
        try:
            as_real(_scalar(paid), "reward")
        except InputError:
            raise InputError(
                f"{call} paid {shown(paid)}, which is not a number",
                field="env.step: reward",
                where=f"t={self.t}",
                fix="return a finite number as the reward",
            ) from None
        try:
            value = as_real(_scalar(paid), "reward", low=low, high=high)
        except InputError:
            raise InputError(
                f"{call} paid {shown(paid)}, the declared range is [{low:g}, {high:g}]",
                field="env.step: reward",
                where=f"t={self.t}",
                fix="declare the range of its rewards: wrap(env, ..., reward_range=(low, high))",
            ) from None
        return (value - low) / (high - low)

    def _restart(self, seed: int | None) -> int:
        call = "reset()" if seed is None else f"reset(seed={seed})"
        try:
            answer: Any = self.env.reset(seed=seed)
        except WindageError:
            raise
        except Exception as err:
            raise self._broken(call, f"raised {type(err).__name__}: {err}") from err
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InputError(
                f"{call} returned {shown(answer)}",
                field="env.reset",
                where=f"t={self.t}",
                fix="return (observation, info), as Gymnasium asks",
            )
        state = self._seen(call, answer[0])
        self._keep(*answer)
        return state

    def _seen(self, call: str, observation: Any) -> int:
        try:
            return self._read(observation)
        except InputError as err:
            raise InputError(
                f"{call} led to {shown(observation)}: {err.problem}",
                field=f"env.{call.partition('(')[0]}: observation",
                where=f"t={self.t}",
                fix="return observations of the environment's observation_space",
            ) from None

    def _broken(self, call: str, what: str) -> InputError:
        return InputError(
            f"{call} {what}",
            field=f"env.{call.partition('(')[0]}",
            where=f"t={self.t}",
            fix=f"return ({', '.join(_FIVE)}), as Gymnasium asks; "
            "gymnasium.utils.env_checker.check_env finds such faults",
        )

    def __repr__(self) -> str:
        return f"WrappedEnv({self.env}, {self.space!r}, horizon={self.horizon}, reward only)"


def wrap(
    env: gymnasium.Env[Any, Any],
    *,
    horizon: int,
    reward_range: tuple[float, float] = (0.0, 1.0),
    binner: Binner | None = None,
    restart: str = "same-step",
    state: str | Sequence[str] | None = None,
) -> WrappedEnv:
    """Return a Gymnasium environment as a problem for `windage.run`.

    Parameters
    ----------
    env
        An environment with Discrete actions, whose observations are Discrete, MultiDiscrete,
        MultiBinary, or a Tuple or Dict of these: every combination is a state. With a `binner`, any
        observations it can bin. A time limit that `gymnasium.make` put around it is taken off: the
        horizon takes its place.
    horizon
        T, the number of steps. The environment is started again whenever it ends.
    reward_range
        The least and the largest reward; they become 0 and 1. Any other is refused.
    binner
        A `windage.Binner` that turns observations into states.
    restart
        What the end of an episode is: with "same-step" the step that ends it leads back to a first
        state at once, drawn as `env.reset()` draws it. With "next-step" it leads to the last state,
        and any action there leads back, for a reward of 0 (the nearest end of a range without 0).
        The second gives last states visits of their own: a learner that is optimistic about what
        it has not seen stops hoping for them.
    state
        The part of a Dict observation that is the state, or several of them; the others are kept as
        `info`. All of them, if not given; of the environments of ns_gym, "state".

    Examples
    --------
    >>> import gymnasium
    >>> import windage as wd
    >>> lake = wrap(gymnasium.make("FrozenLake-v1"), horizon=500)
    >>> agent = wd.agents.make("ucrl2", lake.space, horizon=500)
    >>> wd.run(lake, agent, seed=0)  # doctest: +ELLIPSIS
    Run(t=1..500, seed=0, record='full', total_reward=..., reward only)
    """
    if not isinstance(env, gymnasium.Env):
        raise InputError(
            f"{shown(env)} is not a Gymnasium environment",
            field="env",
            fix='pass gymnasium.make("..."); a vector environment is wrapped one by one',
        )
    if binner is not None and not isinstance(binner, Binner):
        raise InputError(
            f"{shown(binner)} is not a Binner", field="binner", fix="pass wd.Binner(edges)"
        )
    return WrappedEnv(env, horizon, reward_range, binner, restart, state)


def _without_limits(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    while isinstance(env, TimeLimit):
        env = env.env
    return env


def require_discrete(env: gymnasium.Env[Any, Any], name: str) -> Discrete[Any]:
    """Return a space of an environment if it is Discrete, else say what to do."""
    space = getattr(env, name)
    if isinstance(space, Discrete):
        return space
    fixes = {
        "observation_space": "a table has a row a state: let the observation be its number",
        "action_space": "choose finitely many actions of it and map them with "
        "gymnasium.wrappers.TransformAction",
    }
    raise InputError(f"{shown(space)} is not Discrete", field=f"env.{name}", fix=fixes[name])


def _actions(env: gymnasium.Env[Any, Any]) -> tuple[int, int]:
    space = require_discrete(env, "action_space")
    return int(space.start), int(space.n)


def _chosen(space: Space[Any], state: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the parts of a Dict that are the state; None of any other space."""
    if not isinstance(space, Dict):
        if state is not None:
            raise InputError(
                f"{shown(space)} has no named parts", field="state", fix="leave it out"
            )
        return None
    if state is None:
        theirs = {_STATE, _CHANGE} <= set(space.keys())
        return (_STATE,) if theirs else tuple(space.keys())
    names = (state,) if isinstance(state, str) else tuple(state or ())
    if not names:
        raise InputError("names no part", field="state", fix="name the parts that are the state")
    return tuple(as_choice(name, "state", sorted(space.keys())) for name in names)


def _reader(
    env: gymnasium.Env[Any, Any], chosen: tuple[str, ...] | None, binner: Binner | None
) -> tuple[Callable[[Any], int], int, list[str] | None]:
    """Return how an observation becomes a state, how many there are, and their names."""
    space: Any = env.observation_space
    if chosen is not None:
        space = Dict({name: space[name] for name in chosen})
    if binner is not None:
        path: tuple[Any, ...] = () if chosen is None else chosen
        if len(path) > 1:
            raise InputError(
                f"it bins one part, and {len(path)} are the state: {', '.join(path)}",
                field="binner",
                fix='name one, wrap(env, ..., state="...")',
            )
        return (lambda observation: binner(_part(observation, path))), binner.n_states, None
    digits = list(_digits(space, (), ""))
    states = math.prod(digit.size for digit in digits)

    def read(observation: Any) -> int:
        found = 0
        for path, name, start, size in digits:
            value = _scalar(_part(observation, path))
            value = as_integer(value, name or "observation", low=start, high=start + size - 1)
            found = found * size + value - start
        return found

    if len(digits) < 2 or states > _MOST_NAMED:
        return read, states, None
    each = [[f"{d.name} {d.start + k}" for k in range(d.size)] for d in digits]
    return read, states, [", ".join(names) for names in itertools.product(*each)]


class _Digit(NamedTuple):
    """A Discrete part of an observation, and the keys that lead to it."""

    path: tuple[Any, ...]
    name: str
    start: int
    size: int


def _digits(space: Space[Any], path: tuple[Any, ...], name: str) -> Iterator[_Digit]:
    """Return the Discrete parts of a space; the last one is to change fastest."""
    if isinstance(space, Discrete):
        yield _Digit(path, name, int(space.start), int(space.n))
    elif isinstance(space, Dict):
        for key, part in space.items():
            yield from _digits(part, (*path, key), f"{name}.{key}".strip("."))
    elif isinstance(space, Tuple):
        for k, part in enumerate(space):
            yield from _digits(part, (*path, k), f"{name}[{k}]")
    elif isinstance(space, (MultiDiscrete, MultiBinary)):
        sizes = space.nvec if isinstance(space, MultiDiscrete) else np.full(space.shape, 2)
        starts = np.broadcast_to(getattr(space, "start", 0), sizes.shape)
        for at in np.ndindex(sizes.shape):
            place = "".join(f"[{k}]" for k in at)
            yield _Digit((*path, *at), f"{name}{place}", int(starts[at]), int(sizes[at]))
    else:
        raise _not_discrete(space, path, name)


def _part(observation: Any, path: tuple[Any, ...]) -> Any:
    """Return what stands at the end of a path of keys."""
    for key in path:
        try:
            observation = observation[key]
        except (LookupError, TypeError):
            raise InputError(f"it has no part {key!r}", field="observation") from None
    return observation


def _not_discrete(space: Space[Any], path: tuple[Any, ...], name: str) -> InputError:
    fix = (
        "bin it: wrap(env, ..., binner=wd.Binner.uniform(low, high, bins)) "
        "or wd.Binner.quantiles(samples, bins)"
    )
    if path and isinstance(path[0], str):
        fix = (
            "say which parts are the state, wrap(env, ..., state=[...]); one that is not Discrete "
            f'is binned: wrap(env, ..., state="{path[0]}", binner=wd.Binner(...))'
        )
    place = f"the part {name}, {shown(space)}," if path else shown(space)
    return InputError(f"{place} is not Discrete", field="env.observation_space", fix=fix)


def _announces(notice: Any) -> bool:
    """Return whether a change was announced: any number in a notice that is not zero."""
    if isinstance(notice, Mapping):
        return any(map(_announces, notice.values()))
    return bool(np.any(notice)) if notice is not None else False


def _space(
    env: gymnasium.Env[Any, Any], states: int, actions: int, names: list[str] | None
) -> StateActions:
    masked = env.action_space
    if isinstance(masked, MaskedDiscrete) and masked.actions.n_states == states:
        return masked.actions
    return StateActions.uniform(states=states, actions=actions, state_names=names)


def _scalar(value: Any) -> Any:
    """Return what an array without dimensions holds, which Gymnasium lets pass as a number."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
