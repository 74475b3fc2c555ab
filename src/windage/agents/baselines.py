"""Baselines: the oracle, finite-horizon and myopic agents, which see the model, and random play."""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import KernelAgent
from windage.agents.configuration import AgentOptions
from windage.agents.state import unpack
from windage.errors import InputError, StateError
from windage.models import Blend, DriftingMDP
from windage.models.files import fingerprint
from windage.oracle import finite_horizon, gain
from windage.rng import key
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.kernels.exogenous import ExogenousDynamics
    from windage.kernels.rollout import Block, Policies, Uniform
    from windage.kernels.simulator import Dynamics

__all__ = ["FiniteHorizonAgent", "InformedAgent", "MyopicAgent", "OracleAgent", "RandomAgent"]


class RandomAgent(KernelAgent):
    """Plays every action of a state with equal probability.

    Examples
    --------
    >>> agent = RandomAgent(StateActions([2, 3]), horizon=10, seed=1)
    >>> action = agent.act(1)
    >>> agent.observe(1, action, reward=0.5, s_next=0)
    >>> agent.t
    2
    """

    id: ClassVar[str] = "random"

    def __init__(
        self, space: StateActions, *, horizon: int, **options: Unpack[AgentOptions]
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
        self._key = key(self.seed, "agents.random")

    @property
    def _kernel(self) -> Uniform:
        from windage.kernels.rollout import Uniform

        return Uniform(self.space.offsets, self.space.counts, self._key)

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        """Learn nothing."""


PolicyTable = NDArray[np.int64]

_SEGMENT = 1 << 8
"""So many times are looked at together; finding a first policy from nowhere is a small part."""

_TABLE = 1 << 24
_CELLS = 1 << 22
"""The largest table of policies, and the most numbers of kernels held at a time."""


class InformedAgent(KernelAgent):
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

    requires: ClassVar[tuple[str, ...]] = ("the model",)

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        problem: DriftingMDP | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
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
        self._length = max(1, min(_SEGMENT, _TABLE // space.n_states))
        self._first, self._table = 0, np.empty((0, space.n_states), dtype=np.int64)

    @classmethod
    def from_state(cls, data: bytes, **given: Any) -> Self:
        """Return the agent that `state` saved; the model must be given again as `problem`."""
        problem = given.get("problem")
        configuration = unpack(data).configuration
        if problem is None or fingerprint(problem) != configuration.get("problem"):
            raise StateError(
                "the model is missing" if problem is None else "this is not the model it saw",
                field="problem",
                fix="pass the model the agent was made with",
            )
        return super().from_state(data, **given)

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, the model as its fingerprint."""
        return super().configuration() | {"problem": fingerprint(self.problem)}

    @property
    def _kernel(self) -> Policies:
        from windage.kernels.rollout import Policies

        first, table = self._segment(self.t)
        return Policies(table, first)

    def play(self, model: Dynamics | ExogenousDynamics, state: int, block: Block) -> int:
        """Play a whole block, segment by segment of the table; returns the state it ends in."""
        start, done = self.t, 0
        while done < block.states.size:
            self.t = start + done
            first, table = self._segment(self.t)
            n = min(first + len(table) - self.t, block.states.size - done)
            state = super().play(model, state, block.part(done, done + n))
            done += n
        self.t = start
        return state

    def _choose(self, state: int) -> int:
        first, table = self._segment(self.t)
        return int(self.space.action_of[table[self.t - first, state]])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        """Learn nothing."""

    def _segment(self, t: int) -> tuple[int, PolicyTable]:
        """Return the segment of the table that holds t: its first time and its policies."""
        first = t - (t - 1) % self._length
        if self._first != first:
            last = min(first + self._length - 1, self.horizon)
            self._first, self._table = first, self._policies(first, last)
        return self._first, self._table

    @abstractmethod
    def _policies(self, first: int, last: int) -> PolicyTable:
        """Return the pair to play at each time of a segment and in each state."""


class OracleAgent(InformedAgent):
    """Plays at every t a policy that is optimal for the frozen model M_t.

    Its mean reward need not reach rho*_t: the policy changes before its chain has settled.
    """

    id: ClassVar[str] = "oracle"
    bound: ClassVar[str] = "small: only what changing policies costs"

    def _policies(self, first: int, last: int) -> PolicyTable:
        changed = np.concatenate([[True], self._moved(first, last)])
        times = first + np.flatnonzero(changed)
        kernel = self.problem.source.at(first)[1]
        cells = kernel.size if isinstance(kernel, np.ndarray) else kernel.nnz
        piece = max(1, _CELLS // max(cells, 1))
        found: list[PolicyTable] = []
        for begin in range(0, times.size, piece):
            found += self._solved(times[begin : begin + piece], found[-1] if found else None)
        policies = np.stack(found) + self.space.offsets[:-1]
        return np.ascontiguousarray(policies[np.cumsum(changed) - 1])

    def _moved(self, first: int, last: int) -> NDArray[np.bool_]:
        r, p = self.problem.source.variations(first, last)
        return (r > 0) | (p > 0)

    def _solved(self, times: NDArray[np.int64], warm: PolicyTable | None) -> list[PolicyTable]:
        """Return the policies of some times, each found from the one before."""
        models = [self.problem.source.at(int(t)) for t in times]
        kernels = [kernel for _, kernel in models]
        found = gain.solve_many(
            self.space,
            np.array([rewards for rewards, _ in models]),
            np.array(kernels) if isinstance(kernels[0], np.ndarray) else kernels,
            tol=1e-6 * self.problem.reward_scale,
            warm=warm,
        )
        return [one.policy for one in found]


class FiniteHorizonAgent(InformedAgent):
    """Plays the policy that earns the most until T, over all policies: the true optimum.

    It is found by dynamic programming backwards from T and kept as a table of T x S actions.
    """

    id: ClassVar[str] = "finite-horizon"
    bound: ClassVar[str] = "the least of all; it may be negative"

    @functools.cached_property
    def _optimum(self) -> finite_horizon.FiniteHorizon:
        return finite_horizon.finite_horizon(
            self.space, self.problem.source.at, self.horizon, policy=True
        )

    def _policies(self, first: int, last: int) -> PolicyTable:
        actions = self._optimum.policy
        return actions[first - 1 : last].astype(np.int64) + self.space.offsets[:-1]


class MyopicAgent(InformedAgent):
    """Plays in every state the action with the largest mean reward now, the first if several."""

    id: ClassVar[str] = "myopic"

    def _policies(self, first: int, last: int) -> PolicyTable:
        return np.stack([self._greedy(t) for t in range(first, last + 1)])

    def _greedy(self, t: int) -> NDArray[np.int64]:
        source, space = self.problem.source, self.space
        rewards = source.rewards.at(t) if isinstance(source, Blend) else source.at(t)[0]
        best = np.maximum.reduceat(rewards, space.offsets[:-1])
        pairs = np.flatnonzero(rewards == best[space.state_of])
        return pairs[np.searchsorted(pairs, space.offsets[:-1])]
