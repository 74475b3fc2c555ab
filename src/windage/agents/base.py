"""The contract of every agent: act, observe, and a state that survives a restart.

A subclass says how it chooses (`_choose`), what it learns (`_learn`) and what of it must survive
(`_saved`, `_restored`); this class sees to it that calls come in an order that has a meaning and
that a bad call changes nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from windage.agents.blob import Blob, pack, unpack
from windage.errors import CallOrderError, HorizonReached, InputError, StateError
from windage.inputs import as_horizon, as_real, as_seed
from windage.spaces import StateActions

__all__ = ["Agent"]


class Agent(ABC):
    """An agent that acts one step at a time in a world with the given states and actions.

    Parameters
    ----------
    space
        States and actions.
    horizon
        T; after T observations the agent is done.
    seed
        Names the agent's own randomness; the world's noise has a seed of its own.
    reward_range
        If given, (lowest, highest): any other reward is refused. If not, any finite one is taken.
    """

    id: ClassVar[str]
    _saved_options: ClassVar[tuple[str, ...]] = ("space", "horizon", "seed", "reward_range")

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        seed: int = 0,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        if not isinstance(space, StateActions):
            raise InputError(
                f"{space!r} is not a StateActions", field="space", fix="pass wd.StateActions(...)"
            )
        self.space = space
        self.horizon = as_horizon(horizon)
        self.seed = as_seed(seed)
        self.reward_range = _reward_range(reward_range)
        self.t = 1
        """The time of the next decision, from 1 on."""
        self.last_state: int | None = None
        """The state the last observation led to."""
        self.overridden = 0
        """How often another action than the advised one was played."""
        self._pending: tuple[int, int] | None = None

    def act(self, s: int) -> int:
        """Return the action to play in state `s`; asked again before `observe`, the same one."""
        state = self.space.check_state(s)
        if self._pending is not None:
            if self._pending[0] != state:
                raise CallOrderError(
                    f"a decision in {self.space.describe_state(self._pending[0])} is waiting for "
                    f"its outcome, now {self.space.describe_state(state)} was asked for",
                    field="act",
                    where=f"t={self.t}",
                    fix="call observe(s, a, reward, s_next) first",
                )
            return self._pending[1]
        if self.t > self.horizon:
            raise HorizonReached(
                f"all {self.horizon} steps have been played",
                fix="make an agent with a larger horizon",
            )
        action = self._choose(state)
        self._pending = (state, action)
        return action

    def observe(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Take in what followed the last decision: action played, reward, next state."""
        state = self.space.check_state(s)
        action = self.space.check_action(state, a)
        after = self.space.check_state(s_next, "s_next")
        value = self._check_reward(reward)
        if self._pending is None:
            raise CallOrderError(
                "there is no decision to learn about",
                field="observe",
                where=f"t={self.t}",
                fix="call act(s) first",
            )
        if self._pending[0] != state:
            raise CallOrderError(
                f"the decision was asked for in {self.space.describe_state(self._pending[0])}, "
                f"not in {self.space.describe_state(state)}",
                field="observe",
                where=f"t={self.t}",
                fix="observe the state that act was called with",
            )
        self.overridden += action != self._pending[1]
        self._learn(state, action, value, after)
        self._pending = None
        self.last_state = after
        self.t += 1

    def state(self) -> bytes:
        """Return all that must survive a restart, versioned and checksummed."""
        values, arrays = self._saved()
        values |= {
            "t": self.t,
            "last_state": self.last_state,
            "overridden": self.overridden,
            "pending": self._pending,
        }
        return pack(Blob(self.id, self.configuration(), values, arrays))

    @classmethod
    def from_state(cls, data: bytes, **given: Any) -> Self:
        """Return the agent that `state` saved; it goes on as if it had never stopped.

        What a saved state does not hold, such as the model an informed agent sees, is given again.
        """
        blob = unpack(data)
        if blob.agent != cls.id:
            raise StateError(
                f"this is a saved {blob.agent!r} agent, not {cls.id!r}",
                field="state",
                fix="use windage.agents.restore",
            )
        options = {name: blob.configuration[name] for name in cls._saved_options} | given
        space = StateActions(**options.pop("space"))
        if options["reward_range"] is not None:
            options["reward_range"] = tuple(options["reward_range"])
        agent = cls(space, **options)
        values = dict(blob.values)
        agent.t = values.pop("t")
        agent.last_state = values.pop("last_state")
        agent.overridden = values.pop("overridden")
        pending = values.pop("pending")
        agent._pending = None if pending is None else (pending[0], pending[1])
        agent._restored(values, blob.arrays)
        return agent

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return {
            "space": {
                "actions": self.space.counts.tolist(),
                "state_names": self.space.state_names,
                "action_names": self.space.action_names,
            },
            "horizon": self.horizon,
            "seed": self.seed,
            "reward_range": self.reward_range,
        }

    @abstractmethod
    def _choose(self, state: int) -> int:
        """Return the action for time `self.t`."""

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:  # noqa: B027
        """Learn from the step at time `self.t`."""

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the numbers and arrays that must survive, beyond those every agent has."""
        return {}, {}

    def _restored(  # noqa: B027
        self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> None:
        """Take back what `_saved` gave."""

    def _check_reward(self, reward: object) -> float:
        if self.reward_range is None:
            return as_real(reward, "reward")
        low, high = self.reward_range
        return as_real(reward, "reward", low=low, high=high)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space!r}, horizon={self.horizon}, t={self.t})"


def _reward_range(value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise InputError(f"{value!r} is not a range", field="reward_range", fix="pass (low, high)")
    low, high = as_real(value[0], "reward_range[0]"), as_real(value[1], "reward_range[1]")
    if not math.isfinite(high - low) or high <= low:
        raise InputError(
            f"({low}, {high}) is empty", field="reward_range", fix="pass (low, high), low < high"
        )
    return low, high
