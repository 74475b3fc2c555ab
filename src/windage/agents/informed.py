"""Agents that see the truth: yardsticks, not learners.

They are given the drifting model itself. What they do is a table of policies, one a time, made in
stretches as it is needed.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.blob import unpack
from windage.drift import DriftingMDP
from windage.drift.files import fingerprint
from windage.errors import InputError, StateError
from windage.mdp import MDP
from windage.oracle import comparator, gain
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["FiniteHorizonAgent", "InformedAgent", "MyopicAgent", "OracleAgent"]

Policies = NDArray[np.int64]

_STRETCH = 1 << 12


class InformedAgent(Agent):
    """An agent that is told the model it acts in.

    Parameters
    ----------
    space
        States and actions.
    problem
        The model; it is not part of the saved state, which only remembers which one it was.
    options
        Those of every agent: `horizon`, `seed`, `reward_range`.
    """

    told: ClassVar[str] = "the model at every t"

    def __init__(
        self, space: StateActions, *, problem: DriftingMDP | None = None, **options: Any
    ) -> None:
        super().__init__(space, **options)
        if not isinstance(problem, DriftingMDP):
            raise InputError(
                f"{problem!r} is not a DriftingMDP",
                field="problem",
                fix="pass problem=model, the model the agent will act in",
            )
        if problem.space != space or problem.horizon < self.horizon:
            raise InputError(
                f"{problem!r} does not cover {space!r} up to t = {self.horizon}",
                field="problem",
                fix="pass the model the agent will act in",
            )
        self.problem = problem
        self._first, self._table = 1, np.empty((0, space.n_states), dtype=np.int64)

    @classmethod
    def from_state(cls, data: bytes, **given: Any) -> Self:
        """Return the agent that `state` saved; the model must be given again as `problem`."""
        problem = given.get("problem")
        configuration = unpack(data).configuration
        if problem is None or fingerprint(problem) != configuration.get("fingerprint"):
            raise StateError(
                "the model is missing" if problem is None else "this is not the model it saw",
                field="problem",
                fix="pass the model the agent was made with",
            )
        return super().from_state(data, **given)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, the model as its fingerprint."""
        return super().configuration() | {"fingerprint": fingerprint(self.problem)}

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels.play import play_policies

        last = self.t + block.states.size - 1
        table = self._policies(self.t, last)
        return int(play_policies(world, table, self.t, state, self.t, *block))

    def _choose(self, state: int) -> int:
        if not self._first <= self.t < self._first + len(self._table):
            self._first = self.t
            self._table = self._policies(self.t, min(self.t + _STRETCH - 1, self.horizon))
        return int(self.space.action_of[self._table[self.t - self._first, state]])

    @abstractmethod
    def _policies(self, first: int, last: int) -> Policies:
        """Return the pair to play at each time and in each state."""


class OracleAgent(InformedAgent):
    """Plays at every t a policy that is optimal for the frozen model M_t.

    Its mean reward need not reach rho*_t: the policy changes before its chain has settled.
    """

    id: ClassVar[str] = "oracle"

    def _policies(self, first: int, last: int) -> Policies:
        changed = np.concatenate([[True], self._moved(first, last)])
        times = first + np.flatnonzero(changed)
        models = [self.problem.at(int(t)) for t in times]
        kernels = [model.transitions for model in models]
        found = gain.solve_many(
            self.space,
            np.array([model.rewards for model in models]),
            np.array(kernels) if isinstance(kernels[0], np.ndarray) else kernels,
            tol=1e-6,
            warm=self._before(first),
        )
        policies = np.stack([one.policy for one in found]) + self.space.offsets[:-1]
        return np.ascontiguousarray(policies[np.cumsum(changed) - 1])

    def _moved(self, first: int, last: int) -> NDArray[np.bool_]:
        r, p = self.problem.source.variations(first, last)
        return (r > 0) | (p > 0)

    def _before(self, first: int) -> NDArray[np.int64]:
        """Return the policy of M_first found from nowhere: a resumed agent finds the same."""
        return _solved(self.problem.at(first)).policy


class FiniteHorizonAgent(InformedAgent):
    """Plays the policy that earns the most until T, over all policies: the true optimum.

    It is found by dynamic programming backwards from T and kept as a table of T x S actions.
    """

    id: ClassVar[str] = "finite-horizon"

    @functools.cached_property
    def _optimum(self) -> comparator.FiniteHorizon:
        return comparator.finite_horizon(
            self.space, self.problem.source.at, self.horizon, policy=True
        )

    def _policies(self, first: int, last: int) -> Policies:
        actions = self._optimum.policy
        return actions[first - 1 : last].astype(np.int64) + self.space.offsets[:-1]


class MyopicAgent(InformedAgent):
    """Plays in every state the action with the largest mean reward now, the first if several."""

    id: ClassVar[str] = "myopic"

    def _policies(self, first: int, last: int) -> Policies:
        return np.stack([self._greedy(t) for t in range(first, last + 1)])

    def _greedy(self, t: int) -> NDArray[np.int64]:
        rewards = self.problem.source.at(t)[0]
        best = np.maximum.reduceat(rewards, self.space.offsets[:-1])
        pairs = np.flatnonzero(rewards == best[self.space.state_of])
        first = np.unique(self.space.state_of[pairs], return_index=True)[1]
        return pairs[first]


def _solved(mdp: MDP) -> gain.Solution:
    return gain.solve(mdp.space, mdp.rewards, mdp.transitions, tol=1e-6)
