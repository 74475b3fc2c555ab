"""Agents that let others act for them, one after the other, each on a clock of its own.

`Doubling`, `BORL` and `BOB` are relays. A subclass says who acts next (`_next_runner`) and may look
at how a stretch went when it is over (`_finished`).

The runner's clock is the truth. What the relay adds to it, sums and samples, is entered afterwards
and from where it stands (`_settle`), so that whatever is cut short can be done again.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from windage.adversarial import Master
from windage.agents.base import LARGEST, Agent, Steps
from windage.agents.configuration import AgentOptions
from windage.agents.episodes import Episode, Episodes, no_rows, put_rows, rows_of
from windage.agents.exclusive import exclusive
from windage.agents.state import array_like
from windage.errors import InputError, ParameterWarning, StateError, warn
from windage.spaces import StateActions
from windage.validation import as_integer, as_real, require_memory

if TYPE_CHECKING:
    from windage.kernels.exogenous import ExogenousDynamics
    from windage.kernels.rollout import Block
    from windage.kernels.simulator import Dynamics

__all__ = ["BlockLog", "BlockRecord", "Blockwise", "Choices", "Recent", "Relay"]

_NOWHERE: NDArray[np.float64] = np.empty(0)
_EPISODES_KEPT = (1 << 15) + 8  # more than a run plays between two looks at them


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
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
        self._leg = Leg(None, 1, 1, np.zeros(2), 0, 0)
        self._hearsay: tuple[Mapping[str, Any], ...] = ()
        self._hand: Any = None  # the steps that the runner plays now, a `kernels.rollout.Block`
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
        from windage.kernels.rollout import Block

        self._hand = step = Block.empty(1)
        step.states[0], step.pairs[0] = state, self.space.pair(state, action)
        step.rewards[0] = reward
        self._runner.observe(state, action, reward, s_next, *self._hearsay)
        self._settle()

    def _check_seen(
        self, pair: int, reward: float, after: int, seen: Mapping[str, Any] | None
    ) -> NDArray[np.int64]:
        """Keep what was shown for the runner, who knows what to make of it."""
        self._hearsay = () if seen is None else (seen,)
        if self._runner is not None:
            self._runner._check_seen(pair, reward, after, seen)
        return super()._check_seen(pair, reward, after, seen)

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
        from windage.kernels.jit import call
        from windage.kernels.sums import accumulate

        leg, total = self._leg, self._leg.sum.copy()
        call(accumulate, rewards, total, 0, 0, _NOWHERE, seconds=1e-6 * rewards.size)
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

    def play(self, world: Dynamics | ExogenousDynamics, state: int, block: Block) -> int:
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

    @exclusive
    def replay(self, steps: Steps) -> NDArray[np.int64]:
        """Let each runner live through its own steps."""
        if not self.has_loop():
            return super().replay(steps)
        steps = self._replayable(steps)
        advised = np.zeros(steps.states.size, np.int64)
        done = 0
        while done < steps.states.size:
            runner = self._ready()
            ends = np.cumsum(steps.learned[done:]) == self._until - self.t
            last = done + int(np.argmax(ends)) + 1 if ends.any() else steps.states.size
            part = steps.part(done, last)
            advised[done:last] = runner.replay(part)
            lived = part.learned
            if lived.any():
                rewards = np.ascontiguousarray(part.rewards[lived])
                self._enter(part.pairs[lived], rewards, part.afters[lived])
            self._advance(part, advised[done:last])
            done = last
        return advised

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


_TYPES = {"pair": np.int64, "reward": np.float64, "after": np.int64}


class Recent:
    """A ring of the last `capacity` samples: pair, reward, next state.

    Examples
    --------
    >>> recent = Recent(capacity=2)
    >>> recent.add(0, np.array([5, 6, 7]), np.array([0.0, 0.5, 1.0]), np.array([1, 0, 1]))
    >>> recent.last(9)[0].tolist()
    [6, 7]
    """

    def __init__(self, capacity: int) -> None:
        require_memory(24.0 * capacity, "window", fix="choose smaller windows")
        self.capacity = capacity
        self.seen = 0
        self._rings: list[NDArray[Any]] = [np.zeros(capacity, kind) for kind in _TYPES.values()]

    def add(
        self,
        before: int,
        pairs: NDArray[np.int64],
        rewards: NDArray[np.float64],
        afters: NDArray[Any],
    ) -> None:
        """Remember samples, the oldest first, of which so many came before; twice is as once."""
        n, seen = min(pairs.size, self.capacity), before + pairs.size
        slots = np.arange(seen - n, seen) % self.capacity
        for ring, new in zip(self._rings, (pairs, rewards, afters), strict=True):
            ring[slots] = new[new.size - n :]
        self.seen = seen

    def last(self, n: int) -> tuple[NDArray[Any], ...]:
        """Return the last n samples, or as many as there are, the oldest first."""
        kept = min(n, self.seen, self.capacity)
        slots = np.arange(self.seen - kept, self.seen) % self.capacity
        return tuple(ring[slots] for ring in self._rings)

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must survive."""
        kept = dict(zip(_TYPES, self.last(self.capacity), strict=True))
        return kept | {"seen": np.array([self.seen])}

    def restore(self, arrays: dict[str, NDArray[Any]], pairs: int, states: int) -> None:
        """Take back what `saved` gave; samples are of so many pairs and states."""
        (seen,) = arrays["seen"].tolist()
        n = min(seen, self.capacity)
        for name, kind in _TYPES.items():
            if arrays[name].shape != (n,) or arrays[name].dtype != kind:
                raise ValueError(name)
        for name, most in (("pair", pairs), ("after", states)):
            if n and not 0 <= arrays[name].min() <= arrays[name].max() < most:
                raise ValueError(name)
        if not np.isfinite(arrays["reward"]).all():
            raise ValueError("reward")
        self.add(seen - n, arrays["pair"], arrays["reward"], arrays["after"])


_ROUNDING = 1e-9  # another machine may compute probabilities that differ in the last digits


class Choices:
    """A master, the arms it drew and the rewards it was told.

    Parameters
    ----------
    master
        One that has been told nothing yet, made for as many rounds as there are blocks.
    draw
        A function of the number of a block, from 0 on, that returns its uniform draw.
    """

    def __init__(self, master: Master, draw: Callable[[int], float]) -> None:
        n, K = master.n_rounds, master.n_arms
        require_memory(8.0 * n * (K + 2), "arms", fix="pass fewer arms or longer blocks")
        self.master = master
        self._draw = draw
        self._arm = np.zeros(n, np.int64)
        self._reward = np.full(n, math.nan)
        self._likely = np.zeros((n, K))
        self._has_cut = False

    @property
    def told(self) -> int:
        """How many blocks the master has been told of."""
        return self.master.rounds

    def choose(self) -> int:
        """Return the arm of the block after those the master was told of."""
        i = self.told
        self._likely[i] = self.master.probabilities
        self._arm[i] = self.master.choose(self._draw(i))
        return int(self._arm[i])

    def arm(self, block: int) -> int:
        """Return the arm that was drawn for a block."""
        return int(self._arm[block])

    def tell(self, block: int, reward: float) -> None:
        """Tell the master what a block has earned; to tell it again changes nothing.

        It hears of rewards in [0, 1]: others are cut (E9), and the first time that is said.
        """
        if self.told == block:
            self._reward[block] = heard = min(1.0, max(0.0, reward))
            self.master.update(self.arm(block), heard)
            if abs(reward - heard) > _ROUNDING and not self._has_cut:
                self._has_cut = True
                warn(
                    f"the reward of a block, {reward:.4g} in units of the range, is cut to [0, 1] "
                    "before the master hears of it, as others will be: declare a reward_range",
                    ParameterWarning,
                )

    def columns(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return arms, rewards and probabilities of the first n blocks; no reward yet is NaN."""
        rewards = self._reward[:n].copy()
        rewards[self.told :] = math.nan
        return self._arm[:n].copy(), rewards, self._likely[:n].copy()

    def saved(self, n: int) -> dict[str, NDArray[Any]]:
        """Return what must survive of the first n blocks."""
        arms, rewards, _ = self.columns(n)
        return {"blocks.arm": arms, "blocks.reward": rewards}

    def restore(self, arrays: dict[str, NDArray[Any]], n: int, ended: int) -> None:
        """Let a new master hear of n blocks that were saved, of which so many have ended.

        It need not have been told of the last one yet.
        """
        arms = array_like(self._arm[:n], arrays, "blocks.arm")
        rewards = array_like(self._reward[:n], arrays, "blocks.reward")
        told = int((~np.isnan(rewards)).sum())
        if not max(0, n - 1) <= told <= ended or not ((rewards >= 0) & (rewards <= 1))[:told].all():
            raise ValueError("blocks.reward")
        for i in range(n):
            self._likely[i] = self.master.probabilities
            if not 0 <= arms[i] < self.master.n_arms or not self._can_be(i, int(arms[i])):
                raise ValueError(f"the arm of block {i}")
            self._arm[i] = arms[i]
            if i < told:
                self.tell(i, float(rewards[i]))
        self._has_cut = bool(np.isin(rewards, (0.0, 1.0)).any())  # it may have been said

    def _can_be(self, block: int, arm: int) -> bool:
        """Whether the draw of a block falls on an arm, give or take a rounding error."""
        below = float(self._likely[block, :arm].sum())
        u, share = self._draw(block), float(self._likely[block, arm])
        return share > 0.0 and below - _ROUNDING <= u <= below + share + _ROUNDING


@dataclass(frozen=True)
class BlockRecord:
    """One block: the arm that was drawn and what came of it.

    Attributes
    ----------
    start, length
        The time of its first step, and how many it has had so far.
    arm, window, widening
        Which arm, and its W and eta.
    probability
        How likely the master made that arm.
    reward
        What the master was told, its mean reward scaled to [0, 1]. As long as it was told nothing,
        what it would hear if the whole block went like its steps so far; NaN before the first.
    told
        Whether it was: not of the block that lasts, and never of the last, no choice follows it.
    """

    start: int
    length: int
    arm: int
    window: int
    widening: float
    probability: float
    reward: float
    told: bool


class BlockLog:
    """The blocks that have started, one array a column; indexing gives a `BlockRecord`."""

    def __init__(
        self,
        block_length: int,
        arms: Sequence[tuple[int, float]],
        arm: NDArray[np.int64],
        reward: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        *,
        steps: int,
        so_far: float,
    ) -> None:
        self.block_length = block_length
        """H, the steps of a block; the last one may have fewer."""
        self._arms = arms
        self.arm = arm
        """Which arm each played."""
        self.told = ~np.isnan(reward)
        """Whether the master was told of it: not yet of the current one, and never of the last."""
        self.reward = reward
        """What the master was told of each; of the current one what it would be told by now."""
        self.reward[~self.told] = so_far
        self.probabilities = probabilities
        """[block, arm] how likely each arm was."""
        self.start = 1 + block_length * np.arange(arm.size)
        """Times of the first steps."""
        self.length = np.full(arm.size, block_length)
        """How many steps each has had so far."""
        self.length[-1:] = steps

    def __len__(self) -> int:
        return int(self.arm.size)

    def __getitem__(self, index: int) -> BlockRecord:
        i = range(len(self))[index]
        arm = int(self.arm[i])
        window, widening = self._arms[arm]
        return BlockRecord(
            start=int(self.start[i]),
            length=int(self.length[i]),
            arm=arm,
            window=window,
            widening=widening,
            probability=float(self.probabilities[i, arm]),
            reward=float(self.reward[i]),
            told=bool(self.told[i]),
        )

    def __iter__(self) -> Iterator[BlockRecord]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"BlockLog({len(self)} of {self.block_length} steps)"


class Blockwise(Relay):
    """A relay whose runners act for a block each, with the arm that a master draws for it."""

    block_length: int
    """H, the steps of a block."""
    _choices: Choices

    @property
    @abstractmethod
    def _pairs(self) -> Sequence[tuple[int, float]]:
        """W and eta of every arm."""

    @abstractmethod
    def _heard(self, earned: float, steps: int) -> float:
        """Return what the master hears of a block that earns as it did in so many steps."""

    @property
    def _block(self) -> int:
        """The number of the block of the learner that acts, from 0 on; -1 before the first."""
        return -1 if self._runner is None else (self._since - 1) // self.block_length

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each arm is to be drawn for the next block, as far as is known now."""
        return self._choices.master.probabilities

    @property
    def blocks(self) -> BlockLog:
        """The blocks that have started."""
        self._settle()
        steps, so_far = self._leg.settled, math.nan
        if steps > 0:
            so_far = min(1.0, max(0.0, self._heard(float(self._sum.sum()), steps)))
        return BlockLog(
            self.block_length,
            self._pairs,
            *self._choices.columns(self._block + 1),
            steps=steps,
            so_far=so_far,
        )

    def _finished(self, earned: float) -> None:
        self._choices.tell(self._block, self._heard(earned, self.block_length))  # over H (E24)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        return values, arrays | self._choices.saved(self._block + 1)

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restored(values, arrays)
        self._require_possible(values)
        self._choices.restore(arrays, self._block + 1, (self.t - 1) // self.block_length)

    def _require_possible(self, values: dict[str, Any]) -> None:
        """Refuse saved values that no run leads to, before the master hears of the blocks."""
