"""What all optimistic learners share: a memory, radii, a widening, EVI, ties and episodes.

SWUCRL2-CW, its form without widening and UCRL2 are the same learner with other parameters; the
algorithm itself, line by line, is in `windage.kernels.learner`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.agents.base import Agent, warn
from windage.agents.blob import array_like
from windage.agents.episodes import Episode, Episodes
from windage.agents.explain import Explanation, reports
from windage.agents.survival import require_possible, survivors
from windage.errors import CallOrderError, InputError, ParameterWarning
from windage.inputs import as_choice, as_integer, as_real, require_memory
from windage.learn.confidence import ConfidenceRegion, blank_plan, over_pairs
from windage.learn.evi import SWEEPS, not_converged
from windage.learn.radii import Radii
from windage.learn.window import Window
from windage.spaces import StateActions
from windage.streams import key

if TYPE_CHECKING:
    from windage.kernels.learner import Learner
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["OptimisticAgent"]

TIES = ("lowest", "random", "previous", "sampled")

_LOG_ROWS = (1 << 14) + 8  # more than a run plays between two looks at it
_LARGEST = 1e290  # rewards up to here can be summed over any horizon


class OptimisticAgent(Agent):
    """A learner that plays the best policy of the best plausible model, episode by episode.

    Parameters
    ----------
    width
        How many samples are remembered; None: all.
    period, phase
        A new episode starts at every t with t % period == phase; 0: only the doubling rule.
    """

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        width: int | None,
        period: int,
        phase: int,
        delta: float,
        radii: Radii | str | dict[str, Any],
        widening: ArrayLike,
        clip: bool,
        ties: str,
        slack: float,
        warm_start: bool,
        seed: int,
        reward_range: tuple[float, float] | None,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self.delta = as_real(delta, "delta", low=0.0, high=1.0, open_low=True, open_high=True)
        self.radii = Radii.from_spec(radii)
        self.ties = as_choice(ties, "ties", TIES)
        self.slack = as_real(slack, "slack", low=0.0)
        self.warm_start = _flag(warm_start, "warm_start")
        self.clip = _flag(clip, "clip")
        self._warned = False
        self.preloaded = 0
        """How many samples of the past the agent was given before its first decision."""
        self._eta = _widening(widening, space)
        self._width = width
        forgets = width is not None and width < self.horizon
        self._window = Window(space, width if forgets else None)
        self._learner = self._fresh(period, phase)

    def _fresh(self, period: int, phase: int) -> Learner:
        from windage.kernels.learner import DUE, FIRST, LOG, LOOK, SETS, Learner, Rules

        space = self.space
        low, high = self.reward_range or (0.0, 1.0)
        least, most = self.reward_range or (-math.inf, math.inf)
        rules = Rules(
            radii=self.radii.rules(space, self.horizon, self.delta),
            key=key(self.seed, f"agents.{self.id}"),
            by_time=self.radii.needs_time,
            clip=self.clip,
            low=low,
            width=high - low,
            least=least,
            most=most,
            period=period,
            phase=phase,
            ties=TIES.index(self.ties),
            slack=self.slack,
            warm=self.warm_start,
            sweeps=SWEEPS,
        )
        learner = Learner(
            rules=rules,
            memory=self._window.memory,
            plan=blank_plan(space, self._window.most_cells),
            drawn=blank_plan(space, self._room_for_draws()),
            sets=np.zeros(space.n_pairs, SETS),
            looks=np.zeros(space.n_states, LOOK),
            now=np.zeros(8, np.int64),
            log=np.zeros(_LOG_ROWS, LOG),
        )
        learner.sets["eta"], learner.sets["state"] = self._eta, space.state_of
        learner.now[DUE] = FIRST
        return learner

    def _room_for_draws(self) -> int:
        if self.ties != "sampled":
            return 0
        cells = self.space.n_pairs * self.space.n_states
        require_memory(32 * cells, "ties", fix="break ties another way, or with fewer states")
        return cells

    def _choose(self, state: int) -> int:
        from windage.kernels import learner

        pair = learner.act(self._learner, self.t, state)
        if self._learner.now[1] == self.t:  # a new episode has looked at the means
            self._notice_scale()
        if pair < 0:
            raise not_converged(self._learner.plan.answer, 1.0 / math.sqrt(self.t))
        return int(self.space.action_of[pair])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        from windage.kernels import learner

        self._make_room(1)
        learner.observe(self._learner, self.space.pair(state, action), reward, s_next)

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Keep the clock and the memory together whatever interrupts them.

        Ctrl-C in a compiled loop is told when the loop is over: its steps were played.
        """
        from windage.kernels.memory import SLOT, TAKEN

        try:
            yield
        except BaseException:
            memory = self._window.memory
            t = int(memory.clock[TAKEN]) - self.preloaded + 1
            if t != self.t:
                self.t, self._pending = t, None
                self.last_state = int(memory.ring["after"][memory.clock[SLOT] - 1])
            raise

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels import learner

        self._make_room(block.states.size)
        state, n, how = learner.play(self._learner, world, state, self.t, *block)
        self._notice_scale()
        if how != learner.PLAYED:
            self.last_state = int(state)
            self.t += n
            if how == learner.NOT_CONVERGED:
                raise not_converged(self._learner.plan.answer, 1.0 / math.sqrt(self.t))
            raise InputError(
                f"{block.rewards[n]} is not in the declared range "
                f"[{self._learner.rules.least:g}, {self._learner.rules.most:g}]",
                field="reward",
                where=f"t={self.t}",
                fix="declare a wider reward_range, or none",
            )
        return int(state)

    def _notice_scale(self) -> None:
        """Warn once if mean rewards are clearly outside [0, 1], where the learner sees nothing.

        The noise of a mean over n visits is 1 / sqrt(n); five times that is no accident.
        """
        if self.reward_range is None and not self._warned:
            n, mean = self._learner.sets["visits"], self._learner.sets["mean"]
            away = np.maximum(mean - 1.0, -mean) * np.sqrt(n) > 5.0
            if away.any():
                self._warned = True
                warn(
                    f"a mean reward of {mean[np.argmax(away)]:g} lies outside [0, 1], where all "
                    "rewards look alike to the learner: declare a reward_range",
                    ParameterWarning,
                    stacklevel=5,
                )

    def _make_room(self, samples: int) -> None:
        if self._window.make_room(samples):
            room = blank_plan(self.space, self._window.most_cells)
            plan = self._learner.plan._replace(rows=room.rows, columns=room.columns)
            self._learner = self._learner._replace(memory=self._window.memory, plan=plan)

    def preload(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn from a step somebody took before t = 1; older ones first.

        Samples of the past age like all others: they leave the window as new ones come in.
        """
        if self.t > 1 or self._pending is not None or self.episode is not None:
            raise CallOrderError(
                "the agent has started to act",
                field="preload",
                where=f"t={self.t}",
                fix="preload before the first call of act",
            )
        state = self.space.check_state(s)
        action = self.space.check_action(state, a)
        after = self.space.check_state(s_next, "s_next")
        value = self._check_reward(reward)
        if self.preloaded == 0:
            self._let_the_past_go()
        try:
            self._learn(state, action, value, after)
        finally:
            self.preloaded = int(self._window.memory.clock[0])

    def _let_the_past_go(self) -> None:
        """Give an empty agent a window, even one that would forget nothing of the horizon."""
        if self._width is not None and self._window.width is None:
            self._window = Window(self.space, self._width)
            plan = blank_plan(self.space, self._window.most_cells)
            self._learner = self._learner._replace(memory=self._window.memory, plan=plan)

    @property
    def episode(self) -> Episode | None:
        """The current episode; None before the first decision."""
        rows = self.episode_rows(self.n_episodes)
        if not rows.size:
            return None
        rows["length"] = self.t - rows["start"]
        return Episodes(rows)[0]

    @property
    def n_episodes(self) -> int:
        """How many episodes have started."""
        return int(self._learner.now[0])

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the episodes from number `first` (from 1 on) to the current one, as rows."""
        oldest = self.n_episodes - _LOG_ROWS + 1  # older rows have been written over
        numbers = np.arange(max(first, 1, oldest), self.n_episodes + 1)
        rows = self._learner.log[numbers % _LOG_ROWS]
        rules = self._learner.rules
        rows["gain"] = rules.low + rules.width * rows["gain"]
        rows["span"] *= rules.width
        return rows

    def region(self) -> ConfidenceRegion:
        """Return the sets the current episode was planned with, rewards scaled to [0, 1].

        Counts are those of the last time samples were counted: the start of the episode, unless
        it has grown longer than 65,536 steps.
        """
        learner, counts = self._learner, self._window.transitions
        n = np.asarray(counts.sum(axis=1)).ravel()
        visited = (learner.sets["visits"] > 0) & (n > 0)
        radius = 2.0 * learner.plan.pairs["half"] - self._eta
        p_hat = counts.multiply(1.0 / np.maximum(n, 1)[:, None]).tocsr()
        return ConfidenceRegion(
            self.space,
            learner.plan.pairs["reward"],
            p_hat,
            np.where(visited, np.maximum(radius, 0.0), 0.0),
            visited,
            self._eta,
        )

    def explain(self, s: int) -> Explanation:
        """Say what the current episode knows of each action of a state, and hopes for."""
        from windage.kernels.learner import PLANNED

        state = self.space.check_state(s)
        episode = self.episode
        if episode is None:
            raise CallOrderError(
                "nothing has been planned yet", field="explain", fix="call act(s) first"
            )
        learner = self._learner
        bias = learner.plan.u if learner.now[PLANNED] else np.zeros(self.space.n_states)
        first, last = self.space.offsets[state : state + 2]
        radii = [self._reward_radius(pair, episode.start) for pair in range(first, last)]
        return Explanation(
            state=state,
            state_name=self.space.state_name(state),
            episode=self.n_episodes,
            start=episode.start,
            gain=episode.gain,
            span=episode.span,
            radii=self.radii.label,
            ties=self.ties,
            slack=self.slack,
            actions=reports(
                state, self.region(), bias, learner, radii, self._played(state), self.slack
            ),
        )

    def _played(self, state: int) -> int:
        """Return the pair the current episode plays in a state, without a trace in the agent."""
        from windage.kernels import learner

        copy = self._learner._replace(looks=self._learner.looks.copy())
        return int(learner.choice(copy, state))

    def _reward_radius(self, pair: int, tau: int) -> float:
        visits = int(self._learner.sets["visits"][pair])
        return self.radii.reward(
            visits, space=self.space, horizon=self.horizon, delta=self.delta, t=tau
        )

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {
            "delta": self.delta,
            "radii": self.radii.spec(),
            "ties": self.ties,
            "slack": self.slack,
            "warm_start": self.warm_start,
        }

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {f"window.{name}": array for name, array in self._window.saved().items()}
        arrays |= {name: array.copy() for name, array in survivors(self._learner).items()}
        row = self._learner.log[self.n_episodes % _LOG_ROWS]
        return {"preloaded": self.preloaded, "episode": row.item()}, arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.preloaded = as_integer(values["preloaded"], "preloaded", low=0)
        if self.preloaded > 0:
            self._let_the_past_go()
        self._window.restore(
            {name.removeprefix("window."): array for name, array in arrays.items()}
        )
        plan = blank_plan(self.space, self._window.most_cells)
        self._learner = self._learner._replace(memory=self._window.memory, plan=plan)
        for name, mine in survivors(self._learner).items():
            mine[:] = array_like(mine, arrays, name)
        samples = self.preloaded + self.t - 1
        require_possible(self._learner, self._window, self.t, samples, tuple(values["episode"]))
        self._learner.log[self.n_episodes % _LOG_ROWS] = tuple(values["episode"])

    def _check_reward(self, reward: object) -> float:
        if self.reward_range is not None:
            return super()._check_reward(reward)
        return as_real(reward, "reward", low=-_LARGEST, high=_LARGEST)


def _flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{value!r} is no yes or no", field=field, fix="pass True or False")
    return value


def _widening(value: ArrayLike, space: StateActions) -> NDArray[np.float64]:
    eta = np.array(over_pairs(value, "widening", space, one_for_all=True))
    if (eta >= 2.0).any():
        warn(
            f"a widening of {eta.max():g} makes every kernel plausible: the policy is myopic (E7)",
            ParameterWarning,
            stacklevel=4,
        )
    return eta
