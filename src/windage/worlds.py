"""Worlds an agent can act in, one step at a time: a `DriftingMDP`, or anybody's own."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

from windage.drift import DriftingMDP
from windage.errors import HorizonReached, InputError
from windage.inputs import as_integer, as_real, as_seed
from windage.kernels.world import World, step
from windage.spaces import StateActions
from windage.streams import key

__all__ = ["Foreign", "Problem", "Simulator", "world_of"]


@runtime_checkable
class Problem(Protocol):
    """A world of one's own: what `run` needs besides a `DriftingMDP`."""

    space: StateActions
    horizon: int

    def reset(self, seed: int) -> int:
        """Start again; return the first state."""
        ...

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward and the next state."""
        ...


class Simulator:
    """A `DriftingMDP` played step by step: the same draws as a compiled run, from Python.

    Attributes
    ----------
    t
        The time of the next step.
    state
        The state it starts in.
    mean_reward
        r_t(s_t, a_t) of the last step, NaN before the first.

    Examples
    --------
    >>> import windage as wd
    >>> simulator = Simulator(wd.envs.make("two-state-cosine"), seed=0)
    >>> reward, state = simulator.step(1)
    """

    def __init__(self, problem: DriftingMDP, seed: int = 0, *, state: int = 0, t: int = 1) -> None:
        self.problem = problem
        self.space = problem.space
        self.horizon = problem.horizon
        self.seed = as_seed(seed)
        self.state = self.space.check_state(state)
        self.t = as_integer(t, "t", low=1)
        self.mean_reward = math.nan
        self._world: World | None = None
        self._ahead = 1

    def reset(self, seed: int) -> int:
        """Start again at t = 1 in state 0 with another seed."""
        self.__init__(self.problem, seed)  # type: ignore[misc]
        return self.state

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward and the next state."""
        if self.t > self.horizon:
            raise HorizonReached(f"all {self.horizon} steps have been played", fix="call reset")
        pair = self.space.pair(self.state, action)
        self.mean_reward, reward, after = step(self.world(self._ahead), self.t, pair)
        self.t += 1
        self.state = int(after)
        return reward, self.state

    def world(self, steps: int) -> World:
        """Return the compiled world from now on, made for `steps` further steps if need be."""
        if self._world is None or not self._world.first <= self.t <= self._world.last:
            last = min(self.t + steps - 1, self.horizon)
            self._world = world_of(self.problem, self.seed, self.t, last)
            self._ahead = min(2 * self._ahead, 1 << 10)  # cheap to start, cheap to go on
        return self._world


def world_of(problem: DriftingMDP, seed: int, first: int, last: int) -> World:
    """Return what a compiled loop needs from `first` to `last`, or as far as one piece goes."""
    tables = problem.source.tables(first, last)
    return World(
        tables.first, tables.last, 0, problem.space.n_pairs, *tables[2:],
        problem.noise.code, problem.noise.spread,
        key(seed, "world.base"), key(seed, "world.state"), key(seed, "world.reward"),
    )  # fmt: skip


class Foreign:
    """Somebody else's world with the attributes the loop uses."""

    mean_reward = math.nan

    def __init__(self, problem: Problem, state: int, t: int) -> None:
        self.problem = problem
        self.space = problem.space
        self.state = state
        self.t = t

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward and the next state, both checked."""
        answer = self.problem.step(action)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InputError(
                f"returned {answer!r}",
                field="problem.step",
                where=f"t={self.t}",
                fix="return (reward, next state)",
            )
        self.state = self.space.check_state(answer[1], "problem.step: next state")
        reward = as_real(answer[0], "problem.step: reward")
        self.t += 1
        return reward, self.state
