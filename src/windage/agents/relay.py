"""Agents that let others act for them, one after the other, each on a clock of its own.

`Doubling`, `BORL` and `BOB` are relays. A subclass says who acts next (`_next_runner`) and may look
at how a stretch went when it is over (`_finished`).

The runner's clock is the truth. What the relay adds to it, sums and samples, is entered afterwards
and from where it stands (`_settle`), so that whatever is cut short can be done again.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.episodes import Episode, Episodes, no_rows, put_rows, rows_of
from windage.agents.scale import LARGEST
from windage.errors import InputError, StateError
from windage.spaces import StateActions
from windage.validation import as_integer, as_real

if TYPE_CHECKING:
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["Relay"]

_NOWHERE: NDArray[np.float64] = np.empty(0)
_EPISODES_KEPT = (1 << 14) + 8  # more than a run plays between two looks at them


class Leg(NamedTuple):
    """Who acts and since when: one value, so that no handover is ever half done."""

    runner: Any
    since: int  # the time at which it took over
    until: int  # ... and at which the next one does
    sum: NDArray[np.float64]  # what it has earned so far, and what rounding took from it
    settled: int  # ... in so many of its steps
    episodes: int  # how many there were before


class Relay(Agent):
    """An agent whose steps are taken by a runner, until the next one takes over."""

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        seed: int = 0,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self._leg = Leg(None, 1, 1, np.zeros(2), 0, 0)
        self._hand: Any = None  # the steps that the runner plays now, a `kernels.play.Block`
        # episodes of those before, as far as anyone may still ask: number m in row m % size
        self._past = np.zeros(min(_EPISODES_KEPT, self.horizon + 8), no_rows().dtype)
        self._kept_since = 1  # rows before this one were not saved

    @property
    def _largest(self) -> float:
        return LARGEST

    @abstractmethod
    def _next_runner(self) -> tuple[Agent, int]:
        """Return who acts from `self.t` on, and for how many steps."""

    def _saw(
        self,
        before: int,
        pairs: NDArray[np.int64],
        rewards: NDArray[np.float64],
        afters: NDArray[Any],
    ) -> None:
        """Look at what happened after so many steps; it may be shown again."""

    def _finished(self, earned: float) -> None:
        """Learn from what the last runner has earned; it may be told again."""

    @property
    def runner(self) -> Agent | None:
        """Who acts now; None before the first decision."""
        made: Agent | None = self._runner
        return made

    def _ready(self) -> Any:
        """Return who acts at `self.t`; calls the next one if it is time to.

        All of it may be cut short and done again; only the last line counts.
        """
        self._settle()
        if self._runner is None or self.t >= self._until:
            if self._runner is not None:
                self._finished(float(self._sum.sum()))
            runner, steps = self._next_runner()
            episodes = self._keep_episodes()
            self._leg = Leg(runner, self.t, self.t + steps, np.zeros(2), 0, episodes)
        return self._runner

    @property
    def _runner(self) -> Any:
        return self._leg.runner

    @property
    def _since(self) -> int:
        return self._leg.since

    @property
    def _until(self) -> int:
        return self._leg.until

    @property
    def _sum(self) -> NDArray[np.float64]:
        return self._leg.sum

    @property
    def _past_episodes(self) -> int:
        return self._leg.episodes

    def _choose(self, state: int) -> int:
        return int(self._ready().act(state))

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        from windage.kernels.play import Block

        self._hand = step = Block.empty(1)
        step.states[0], step.pairs[0] = state, self.space.pair(state, action)
        step.rewards[0] = reward
        self._runner.observe(state, action, reward, s_next)
        self._settle()

    def _settle(self) -> None:
        """Enter the steps that the runner has learned from since the last time."""
        leg = self._leg
        new = leg.runner.t - 1 - leg.settled if leg.runner is not None else 0
        if new > 0:
            played = self._hand.head(new)
            afters = np.append(played.states[1:], leg.runner.last_state)
            self._enter(played.pairs, played.rewards, afters)

    def _enter(
        self, pairs: NDArray[np.int64], rewards: NDArray[np.float64], afters: NDArray[Any]
    ) -> None:
        """Enter the next steps of the runner; cut short, it can be done again.

        Rewards add up to the same sum whether they come one by one or together.
        """
        from windage.kernels.sums import accumulate

        leg, total = self._leg, self._leg.sum.copy()
        accumulate(rewards, total, 0, 0, _NOWHERE)
        self._saw(leg.since - 1 + leg.settled, pairs, rewards, afters)
        self._leg = leg._replace(sum=total, settled=leg.settled + rewards.size)

    def withdraw(self) -> None:
        """Take back the decision that waits for its outcome: it was not played."""
        super().withdraw()
        if self._runner is not None:
            self._runner.withdraw()

    def _reached(self) -> tuple[int, int | None]:
        if self._runner is None:
            return 1, None
        self._settle()
        steps = self._runner.t - 1
        return self._since + steps, self._runner.last_state if steps > 0 else self.last_state

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block, each runner its part of it; returns the state it ends in."""
        start, done = self.t, 0
        while done < block.states.size:
            self.t = start + done
            runner = self._ready()
            part = block.part(done, min(block.states.size, done + self._until - self.t))
            self._hand = part
            try:
                with runner.in_step():
                    shifted = world._replace(ahead=world.ahead + self._since - 1)
                    state = runner.play(shifted, state, part)
                    runner.last_state = state
                    runner.t += part.states.size
            except InputError as err:  # about a reward, at a time of the runner's own clock
                raise InputError(
                    err.problem,
                    field=err.field,
                    where=f"t={runner.t + self._since - 1}",
                    fix=err.fix,
                ) from None
            self._settle()
            self.last_state = state
            done += part.states.size
        self.t = start
        return state

    def _keep_episodes(self) -> int:
        """Remember the episodes of the runner that has finished; returns how many there were."""
        rows = self._runner_rows(1)
        if rows.size:
            rows[-1]["length"] = self.t - rows[-1]["start"]
            rows[-1]["reason"] = 4
        total = self.n_episodes
        put_rows(self._past, total, rows[-self._past.size :])
        return total

    def _runner_episodes(self) -> int:
        return int(getattr(self._runner, "n_episodes", 0))

    def _runner_rows(self, first: int) -> NDArray[np.void]:
        if not hasattr(self._runner, "episode_rows"):
            return no_rows()
        rows: NDArray[np.void] = self._runner.episode_rows(first)
        rows["start"] += self._since - 1
        return rows

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair whoever acts remembers now; none if it has no memory."""
        nothing = np.zeros(self.space.n_pairs, np.int64)
        found: NDArray[np.int64] = getattr(self._runner, "in_memory", nothing)
        return found

    @property
    def n_episodes(self) -> int:
        """How many episodes have started."""
        return self._past_episodes + self._runner_episodes()

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the episodes from number `first` (from 1 on) to the current one, as rows."""
        oldest = max(1, self._kept_since, self._past_episodes - self._past.size + 1)
        past = rows_of(self._past, max(first, oldest), self._past_episodes)
        rows = self._runner_rows(max(1, first - self._past_episodes))
        return np.concatenate([past, rows]) if past.size else rows

    @property
    def episode(self) -> Episode | None:
        """The current episode; None before the first decision."""
        rows = self.episode_rows(self.n_episodes)
        if not rows.size:
            return None
        rows = rows[-1:]
        rows["length"] = self.t - rows["start"]
        return Episodes(rows)[0]

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        self._settle()
        values = {
            "since": self._since,
            "until": self._until,
            "earned": self._sum.tolist(),
            "episodes": self._past_episodes,
        }
        if self._runner is None:
            return values, {}
        return values, {"runner": np.frombuffer(self._runner.state(), np.uint8)}

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        since = as_integer(values["since"], "since", low=1, high=self.t)
        until = as_integer(values["until"], "until", low=since)
        total, lost = values["earned"]
        earned = np.array([as_real(total, "earned"), as_real(lost, "earned")])
        episodes = as_integer(values["episodes"], "episodes", low=0, high=since - 1)
        runner = None
        if "runner" in arrays:
            runner = self._restored_runner(arrays["runner"].tobytes(), since)
        steps = 0 if runner is None else runner.t - 1
        self._leg = Leg(runner, since, until, earned, steps, episodes)
        self._kept_since = self._past_episodes + 1
        if "runner" not in arrays:
            if self.t > 1 or self._pending is not None:
                raise StateError("it does not say who acts", field="state", fix="restore a copy")
            return
        pending = self._runner._pending
        if self._runner.t + self._since - 1 != self.t or pending != self._pending:
            raise StateError(
                "the clocks of the agent and of who acts for it disagree",
                field="state",
                fix="restore the agent from another copy",
            )

    @abstractmethod
    def _restored_runner(self, data: bytes, since: int) -> Agent:
        """Return the runner that was saved, and that acts since a time."""
