"""What a run leaves behind: `Run`, and the tape it is recorded on."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.episodes import Episodes, Planner, no_rows
from windage.errors import InputError
from windage.kernels.jit import call
from windage.kernels.rollout import Block, Census
from windage.kernels.sums import accumulate_both
from windage.spaces import StateActions
from windage.validation import as_integer, require_memory

if TYPE_CHECKING:
    from windage.models import DriftingMDP

__all__ = ["Run", "Tape"]

KEPT_EPISODES = 10_000
"""How many of the last episodes a run keeps that does not record every step."""


@dataclass(frozen=True)
class Run:
    """What happened from time `first` on, for `steps` steps.

    With record="full", `states` has one entry more than the other columns: it ends with the state
    after the last step. With record=k the columns hold the times that are multiples of k; with
    record="totals" they are empty. `mean_rewards` holds r_t(s_t, a_t), what regret is made of; it
    is NaN in a world that does not tell. `episodes` holds those that started in the run, if the
    agent has episodes. `census` tells what the agent remembered and when, if that was asked for
    and it can tell. `model` is the `DriftingMDP` it was made in, None for a world that has none:
    of such a run only the reward is known, no regret. `agent` is the id and configuration of who
    made it, as plain data, None for an agent of one's own.
    """

    first: int
    steps: int
    seed: int
    record: str | int
    times: NDArray[np.int64]
    states: NDArray[np.int32]
    actions: NDArray[np.int32]
    rewards: NDArray[np.float64]
    mean_rewards: NDArray[np.float64]
    cumulative_reward: NDArray[np.float64]
    cumulative_mean_reward: NDArray[np.float64]
    total_reward: float
    total_mean_reward: float
    final_state: int
    episodes: Episodes
    census: Census | None = field(default=None, repr=False, compare=False)
    model: DriftingMDP | None = field(default=None, repr=False, compare=False)
    agent: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def last(self) -> int:
        """The time of the last step."""
        return self.first + self.steps - 1

    def __repr__(self) -> str:
        known = "" if math.isfinite(self.total_mean_reward) else ", reward only"
        return (
            f"Run(t={self.first}..{self.last}, seed={self.seed}, record={self.record!r}, "
            f"total_reward={self.total_reward:.6g}{known})"
        )


class EpisodeTape:
    """Collects the episodes of a learner: all of them, or the last few."""

    def __init__(self, agent: object, most: int | None) -> None:
        self.most = most
        self.planner = agent if isinstance(agent, Planner) else None  # asked once: it is slow
        self.first = self.planner.n_episodes + 1 if self.planner else 1
        self.next = self.first
        self.parts: deque[NDArray[np.void]] = deque()
        self.kept = 0  # rows in all of them

    def add(self) -> None:
        """Take the episodes that have ended since the last time."""
        if self.planner is not None and self.planner.n_episodes > self.next:
            self._keep(self.planner.episode_rows(self.next)[:-1])
            self.next = self.planner.n_episodes

    def finish(self, t: int) -> Episodes:
        """Return the episodes; the last one is still open at time t."""
        self.add()
        if self.planner is not None and self.planner.n_episodes >= self.next:
            rows = self.planner.episode_rows(self.next)
            rows["length"] = t - rows["start"]
            self._keep(rows)
        rows = np.concatenate(self.parts) if self.parts else no_rows()
        if self.most is not None:
            rows = rows[-self.most :]
        total = self.planner.n_episodes + 1 - self.first if self.planner else 0
        return Episodes(rows, total)

    def _keep(self, rows: NDArray[np.void]) -> None:
        self.parts.append(rows)
        self.kept += rows.size
        while self.most is not None and self.kept - self.parts[0].size >= self.most:
            self.kept -= self.parts.popleft().size


class Tape:
    """Collects blocks of steps into a `Run`."""

    def __init__(
        self,
        space: StateActions,
        first: int,
        steps: int,
        record: str | int,
        agent: object = None,
        census: int | None = None,
    ) -> None:
        self.space = space
        self.first = first
        self.steps = steps
        self.record = record
        if record == "full":
            self.every = 1
        elif record == "totals":
            self.every = 0
        elif isinstance(record, str):
            raise InputError(
                f"{record!r} is no way to record",
                field="record",
                fix='pass "full", "totals" or an integer',
            )
        else:
            self.every = as_integer(record, "record", low=1)
        self.kept = (
            (first + steps - 1) // self.every - (first - 1) // self.every if self.every else 0
        )
        require_memory(40 * self.kept, "record", fix='record every k-th step, or "totals"')
        self.states = np.empty(self.kept + (record == "full"), np.int32)
        self.actions = np.empty(self.kept, np.int32)
        self.columns = np.empty((4, self.kept))  # reward, mean and their running sums
        self.totals = np.zeros((2, 2))
        self.place = 0
        self.t = first
        self.log = EpisodeTape(agent, None if record == "full" else KEPT_EPISODES)
        self.agent = agent
        self.census = None
        if census is not None and hasattr(agent, "in_memory"):
            self.census = _blank_census(census, space, first, steps)

    @property
    def before_census(self) -> int:
        """How many steps may be played before what the agent remembers must be counted."""
        if self.census is None:
            return self.steps
        return self.census.every - (self.t - 1) % self.census.every

    def add(self, block: Block) -> None:
        """Record the next steps, and the episodes the agent closed in them.

        The census is taken here if the loop that filled the block does not take it.
        """
        self.log.add()
        every, place = self.every, self.place
        if every:
            kept = slice((-self.t) % every, None, every)
            n = len(range(*kept.indices(block.states.size)))
            here = slice(place, place + n)
            self.states[here] = block.states[kept]
            self.actions[here] = self.space.action_of[block.pairs[kept]]
            self.columns[0, here] = block.rewards[kept]
            self.columns[1, here] = block.means[kept]
            self.place += n
        sums = self.columns[2:, place:]
        given = block.rewards, block.means, self.totals, self.t, every, sums
        call(accumulate_both, *given, seconds=1e-6 * block.rewards.size)
        self.t += block.states.size
        if block.census is None and self.census is not None:
            row, rest = divmod(self.t - 1, self.census.every)
            if rest == 0:
                self._count(row - 1 - self.census.before)

    def _count(self, row: int) -> None:
        """Write into the census what the agent remembers now."""
        assert self.census is not None
        found = np.asarray(self.agent.in_memory)  # type: ignore[attr-defined]
        if found.shape != (self.space.n_pairs,) or found.dtype.kind not in "iu":
            raise InputError(
                f"{found.dtype} of shape {found.shape} is no count of samples",
                field=f"{type(self.agent).__name__}.in_memory",
                where=f"t={self.t}",
                fix=f"return one integer for each of the {self.space.n_pairs} pairs",
            )
        self.census.counts[row] = found

    def finish(
        self, seed: int, state: int, agent: object = None, model: DriftingMDP | None = None
    ) -> Run:
        """Return the run, which was made in the model and ended in `state`."""
        if self.record == "full":
            self.states[-1] = state
        start = self.first + (-self.first) % self.every if self.every else 0
        times = start + max(self.every, 1) * np.arange(self.kept, dtype=np.int64)
        rewards, means, cumulative, cumulative_mean = self.columns
        if self.census is not None:
            self._count(-1)
        return Run(
            first=self.first,
            steps=self.steps,
            seed=seed,
            record=self.record,
            times=times,
            states=self.states,
            actions=self.actions,
            rewards=rewards,
            mean_rewards=means,
            cumulative_reward=cumulative,
            cumulative_mean_reward=cumulative_mean,
            total_reward=float(self.totals[0].sum()),
            total_mean_reward=float(self.totals[1].sum()),
            final_state=state,
            episodes=self.log.finish(self.t),
            census=self.census,
            model=model,
            agent=_maker(agent),
        )


def _blank_census(every: int, space: StateActions, first: int, steps: int) -> Census:
    """Return a census with room for the multiples of `every` in a run, and for its last step."""
    last = first + steps - 1
    rows = last // every - (first - 1) // every + (last % every > 0)
    require_memory(8 * rows * (1 + space.n_pairs), "census", fix="count less often")
    times = every * ((first - 1) // every + 1 + np.arange(rows, dtype=np.int64))
    return Census(every, np.minimum(times, last), np.zeros((rows, space.n_pairs), np.int64))


def _maker(agent: object) -> dict[str, Any] | None:
    """Return what one of the library's agents can be made again from; None for any other."""
    if not isinstance(agent, Agent) or not hasattr(agent, "id"):
        return None
    return {"id": agent.id, **agent.configuration()}
