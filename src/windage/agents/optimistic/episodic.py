"""What all learners that plan by episodes share: a memory, a clock, and one compiled learner.

How they plan is up to a subclass, which gives `windage.kernels.learner` its rules; that file has
the algorithm itself, line by line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.episodes import REASONS, RECENT, Episode, Episodes, larger_ring, rows_of
from windage.agents.reward_scale import LARGEST, Scale
from windage.agents.state import array_like
from windage.agents.warning_capture import warn
from windage.confidence.confidence import blank_plan, no_plan
from windage.confidence.evi import SWEEPS, not_converged
from windage.confidence.window import Window, as_restarts
from windage.errors import GuaranteeWarning, ParameterWarning, StateError
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_integer, as_real, require_memory

if TYPE_CHECKING:
    from windage.kernels.plan import Plan
    from windage.kernels.play import Block
    from windage.kernels.rules import Learner, Rules
    from windage.kernels.world import World

__all__ = [
    "EpisodicAgent",
    "Pace",
    "draws",
    "require_possible",
    "rounding",
    "rules_of",
    "scale",
    "survivors",
]

_NONE: NDArray[np.int64] = np.empty(0, np.int64)
_FIXED: NDArray[np.float64] = np.empty((0, 2))
_NO_STEPS: NDArray[np.float64] = np.empty(0)


@dataclass(frozen=True)
class Pace:
    """What an agent forgets, and when an episode ends beside the doubling of visits.

    Attributes
    ----------
    width
        How many samples are remembered; None: all.
    period, phase
        A new episode starts at every t with t % period == phase; 0: at none.
    restarts
        Times at which everything older is forgotten and the learner's clock starts anew.
    grows
        Whether an episode may last only one step longer than the one before.
    """

    width: int | None = None
    period: int = 0
    phase: int = 0
    restarts: NDArray[np.int64] = field(default_factory=lambda: _NONE)
    grows: bool = False


def rules_of(key: NDArray[np.uint64], scale: Scale, pace: Pace, changed: dict[str, Any]) -> Rules:
    """Return the rules of the compiled learner: a plain optimist's, but for what is changed."""
    from windage.kernels.rules import Rules

    plain: dict[str, Any] = {
        "radii": np.zeros((2, 4)),
        "by_time": False,
        "boxes": False,
        "clip": True,
        "widenings": _FIXED,
        "ladder": _NO_STEPS,
        "most_span": math.inf,
        "drawn": False,
        "rounded": False,
        "prior": 1.0,
        "ties": 0,
        "slack": 0.0,
        "warm": True,
    }
    return Rules(
        key=key,
        **scale._asdict(),
        period=pace.period,
        phase=pace.phase,
        grows=pace.grows,
        sweeps=SWEEPS,
        **plain | changed,
    )


def scale(agent: EpisodicAgent) -> None:
    """Warn once if mean rewards are clearly outside [0, 1], where the learner sees nothing.

    The noise of a mean over n visits is 1 / sqrt(n); five times that is no accident.
    """
    if agent.reward_range is None and not agent._warned:
        n, mean = agent._learner.sets["visits"], agent._learner.sets["mean"]
        away = np.maximum(mean - 1.0, -mean) * np.sqrt(n) > 5.0
        if away.any():
            agent._warned = True
            warn(
                f"a mean reward of {mean[np.argmax(away)]:g} lies outside [0, 1], where all "
                "rewards look alike to the learner: declare a reward_range",
                ParameterWarning,
                stacklevel=5,
            )


def draws(agent: EpisodicAgent) -> None:
    """Warn once of a drawn model that was played without being solved.

    Where a draw only breaks ties (`learner.drawn`), any policy keeps the guarantee.
    """
    from windage.kernels.plan import UNSOLVED

    if agent._learner.plan.answer[UNSOLVED] > 0.0 and not agent._warned_of_draws:
        agent._warned_of_draws = True
        warn(
            "a drawn model was not solved to 1 / sqrt(t) in 2,000 sweeps: the policy found so far "
            "is played, as it will be again",
            GuaranteeWarning,
            stacklevel=5,
        )


def rounding(agent: EpisodicAgent, least: float, most: float) -> None:
    """Warn once of rewards that are rounded to 0 or 1 though they are nowhere near."""
    if agent.reward_range is None and not agent._warned and not -0.5 <= least <= most <= 1.5:
        agent._warned = True
        warn(
            f"a reward of {most if most > 1.5 else least:g} lies outside [0, 1] and is rounded to "
            "0 or 1: declare a reward_range",
            ParameterWarning,
            stacklevel=5,
        )


_SETS = ("lift", "eta", "visits", "mean", "left", "saturated")
_LOOKS = ("best", "tied", "met", "pair")
_PAIRS = ("reward", "half", "root", "rest", "value")


def survivors(learner: Learner) -> dict[str, NDArray[Any]]:
    """Return the arrays, beside the window's, that must survive a restart."""
    spread = {"sets.spread": learner.sets["spread"]} if learner.rules.boxes else {}
    return spread | {
        "now": learner.now,
        "plan.u": learner.plan.u,
        **{f"pairs.{name}": learner.plan.pairs[name] for name in _PAIRS},
        **{f"sets.{name}": learner.sets[name] for name in _SETS},
        **{f"states.{name}": learner.looks[name] for name in _LOOKS},
    }


def _limits(learner: Learner, window: Window, tau: int) -> list[tuple[int, int]]:
    """Return when an episode that started at tau may have to end, and why.

    A restart may have passed in the counts and not yet in the episodes, when planning failed.
    """
    from windage.kernels.memory import NEVER
    from windage.kernels.rules import BOUNDARY, LENGTH, NEXT, RESTART

    rules, following = learner.rules, int(learner.now[NEXT])
    restarts = window.restarts[window.restarts > tau][:1].tolist() or [int(NEVER)]
    found = [(t, RESTART) for t in restarts]
    if rules.period > 0:
        found.append((tau + rules.period - (tau - rules.phase) % rules.period, BOUNDARY))
    if rules.grows and tau + 1 < following <= 2 * tau + 1:
        found.append((following, LENGTH))
    return found


def require_possible(
    learner: Learner, window: Window, t: int, samples: int, episode: tuple[Any, ...]
) -> None:
    """Refuse a restored learner that no run could have led to.

    `samples` were taken in before time t; `episode` is the row of the current one.
    """
    space, sets, looks = window.space, learner.sets, learner.looks
    number, tau, following, reason_due, planned, full, saturated, tied, cause = learner.now.tolist()
    start, length, reason, sweeps, ties, gain, span, vacuous = episode
    states = np.arange(space.n_states)
    pair = np.clip(looks["pair"], 0, space.n_pairs - 1)
    home = (looks["pair"] == pair) & (space.state_of[pair] == states)
    kept = survivors(learner) | window.saved()
    value = kept.pop("pairs.value")  # minus infinity where a pair was left out
    numbers = kept.values()
    checks = {
        "samples": int(window.memory.clock[0]) == samples,
        "episode": 0 <= number <= t and (tau > 0) == (number > 0),
        "start": 0 <= tau <= t and start == tau,
        "limit": (following, cause) in _limits(learner, window, tau) or number == 0,
        "due": 0 <= reason_due < len(REASONS) and (reason_due == 1) == (number == 0),
        "planned": planned in (0, 1),
        "full": full == (looks["best"] == 1.0).sum(),
        "saturated": saturated == sets["saturated"].sum()
        and bool(np.isin(sets["saturated"], (0, 1)).all()),
        "tied": tied == looks["tied"].sum(),
        "widening": bool((sets["lift"] >= 0.0).all() and (sets["eta"] >= 0.0).all()),
        "met": bool(((looks["met"] >= 0) & (looks["met"] <= number)).all()),
        "policy": bool(home[looks["met"] > 0].all()),
        "visits": bool(((sets["visits"] >= 0) & (sets["visits"] <= samples)).all())
        and bool((sets["left"] <= np.maximum(sets["visits"], 1)).all()),
        "numbers": all(np.isfinite(array).all() for array in numbers)
        and not bool((np.isnan(value) | (value == math.inf)).any()),
        "log": length == reason == 0
        and 0 <= as_integer(sweeps, "sweeps") <= SWEEPS
        and 0 <= as_integer(ties, "ties") <= states.size
        and 0.0 <= as_real(vacuous, "vacuous") <= 1.0
        and as_real(span, "span") >= 0.0
        and math.isfinite(as_real(gain, "gain")),
    }
    wrong = ", ".join(name for name, holds in checks.items() if not holds)
    if wrong:
        raise StateError(
            f"the saved values are impossible ({wrong})",
            field="state",
            fix="restore the agent from another copy",
        )


LOG_ROWS = (1 << 14) + 8  # more than a run plays between two looks at it
_FIRST_ROWS = 32  # of the log of episodes, until they are full: a fleet has thousands of agents


class EpisodicAgent(Agent):
    """A learner that plans at the start of each episode and keeps to its plan while it lasts.

    Parameters
    ----------
    pace
        What it forgets and when episodes end.
    rules
        Fields of `kernels.learner.Rules` that differ from those of a plain optimist.
    eta
        Widening of the transition sets, over pairs.
    squares
        Whether the variance of rewards is needed.
    """

    replays: ClassVar[bool] = True
    """Whether `kernels.replay` takes in a history for it: nobody else decides or learns with it."""
    counts_in_loop: ClassVar[bool] = True
    _explains: ClassVar[bool] = False
    """Whether it can be asked what its episode was planned with, however long that lasts."""

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        seed: int,
        reward_range: tuple[float, float] | None,
        pace: Pace,
        rules: dict[str, Any],
        eta: NDArray[np.float64],
        squares: bool = False,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        restarts = as_restarts(pace.restarts)
        self._restarts = restarts[: np.searchsorted(restarts, self.horizon, side="right")]
        self.preloaded = 0
        """How many samples of the past the agent was given before its first decision."""
        self._warned = self._warned_of_draws = False
        self._eta = eta
        self._width = pace.width
        self._squares = squares
        self._longest = (pace.period or self.horizon) if self._explains else 0
        forgets = pace.width is not None and pace.width < self.horizon
        self._window = self._new_window(pace.width if forgets else None)
        self._logged_from = 1  # the first episode there is a row of
        self._learner = self._fresh(pace, rules)

    def _new_window(self, width: int | None) -> Window:
        return Window(
            self.space,
            width,
            restarts=self._restarts,
            squares=self._squares,
            longest=self._longest,
        )

    def _fresh(self, pace: Pace, rules: dict[str, Any]) -> Learner:
        from windage.kernels.rules import DUE, FIRST, LOG, LOOK, SETS, Learner

        made = rules_of(key(self.seed, f"agents.{self.id}"), self._scale, pace, rules)
        space, room = self.space, self._room_for_draws()
        learner = Learner(
            rules=made,
            memory=self._window.memory,
            plan=self._blank_plan(made.boxes),
            drawn=blank_plan(space, room) if room else no_plan(),
            sets=np.zeros(space.n_pairs, SETS),
            looks=np.zeros(space.n_states, LOOK),
            now=np.zeros(9, np.int64),
            log=np.zeros(_FIRST_ROWS, LOG),
        )
        learner.sets["eta"], learner.sets["state"] = self._eta, space.state_of
        learner.now[DUE] = FIRST
        return learner

    def _blank_plan(self, boxes: bool) -> Plan:
        cells, width = self._window.most_cells, self._window.width
        return blank_plan(self.space, cells if width is None else min(cells, width), boxes=boxes)

    def _room_for_draws(self) -> int:
        """Return how many entries a model drawn beside the plan needs."""
        return 0

    def _all_cells(self, name: str, fix: str) -> int:
        """Return how many entries a drawn model has: none of its probabilities is 0."""
        cells = self.space.n_pairs * self.space.n_states
        require_memory(32 * cells, name, fix=fix)
        return cells

    def _choose(self, state: int) -> int:
        from windage.kernels import learner

        mine = self._learner
        pair = learner.glance(mine.now, mine.looks, mine.sets, self.t, state)
        if pair >= 0:
            return int(self.space.action_of[pair])
        self._make_room_to_log(1)
        pair = learner.act(self._learner, self.t, state)
        if self._learner.now[1] == self.t:  # a new episode has looked at the means
            scale(self)
            draws(self)
        if pair < 0:
            raise self._not_converged()
        return int(self.space.action_of[pair])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        self._take(self.t, int(self.space.offsets[state]) + action, reward, s_next)

    def _take(self, t: int, pair: int, reward: float, s_next: int) -> None:
        from windage.kernels import learner

        self._make_room(1)
        mine, rules = self._learner, self._learner.rules
        scale = (rules.low, rules.width, rules.rounded)
        learner.observe(mine.memory, mine.sets, scale, rules.key, t, pair, reward, s_next)
        if rules.rounded:
            rounding(self, reward, reward)

    def _origin(self, t: int) -> int:
        """Return the time at which the learner's own clock, asked at time t, stood at 0."""
        n = int(np.searchsorted(self._restarts, t, side="right"))
        return int(self._restarts[n - 1]) - 1 if n > 0 else 0

    def _not_converged(self) -> Exception:
        age = self.t - self._origin(self.t)
        return not_converged(self._learner.plan.answer, 1.0 / math.sqrt(age))

    def _reached(self) -> tuple[int, int | None]:
        from windage.kernels.memory import SLOT, TAKEN

        memory = self._window.memory
        t = int(memory.clock[TAKEN]) - self.preloaded + 1
        return t, int(memory.ring["after"][memory.clock[SLOT] - 1]) if t > 1 else None

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels import learner
        from windage.kernels.rules import NOT_CONVERGED, PLAYED

        self._make_room(block.states.size)
        self._make_room_to_log(block.states.size)
        if block.census is None:
            state, n, how = learner.play(self._learner, world, state, self.t, *block.columns)
        else:
            every, _, counts = block.census
            state, n, how = learner.play_counted(
                self._learner,
                world,
                state,
                self.t,
                *block.columns,
                every,
                block.census.before,
                counts,
            )
        scale(self)
        draws(self)
        if self._learner.rules.rounded and n > 0:
            rounding(self, float(block.rewards[:n].min()), float(block.rewards[:n].max()))
        if how != PLAYED:
            self.last_state = int(state)
            self.t += n
            if how == NOT_CONVERGED:
                raise self._not_converged()
            raise self._scale.refusal(float(block.rewards[n]), self.t)
        return int(state)

    def _make_room(self, samples: int) -> None:
        self._window.make_room(samples)
        if self._window.memory is not self._learner.memory:
            self._use_window()

    def _make_room_to_log(self, steps: int) -> None:
        """Let the log keep the episodes that so many more steps may start, and recent ones."""
        log, number = self._learner.log, self.n_episodes
        wanted = min(min(number - self._logged_from, RECENT) + steps + 3, LOG_ROWS)
        if log.size < wanted:  # at least twice as much, so that it seldom grows
            log = larger_ring(log, number, min(max(wanted, 2 * log.size), LOG_ROWS))
            self._learner = self._learner._replace(log=log)

    def _use_window(self) -> None:
        """Let the learner count in another window, with room to plan for it."""
        old, room = self._learner.plan, self._blank_plan(self._learner.rules.boxes)
        plan = old._replace(rows=room.rows, rooms=room.rooms, columns=room.columns, grid=room.grid)
        self._learner = self._learner._replace(memory=self._window.memory, plan=plan)

    def preload(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn from a step somebody took before t = 1; older ones first.

        Samples of the past age like all others: they leave the window as new ones come in.
        """
        pair, value, after = self._past_step(s, a, reward, s_next, started=self.n_episodes > 0)
        if self.preloaded == 0:
            self._let_the_past_go()
        self._window.ahead = self.preloaded + 1
        try:
            # a time that never comes, so that no draw is used twice
            self._take(LAST_TIME + self._window.ahead, pair, value, after)
        finally:
            self.preloaded = self._window.ahead = int(self._window.memory.clock[0])

    def preload_all(
        self, pairs: NDArray[np.int64], rewards: NDArray[np.float64], afters: NDArray[np.int64]
    ) -> None:
        """`preload` many samples at once, by pair; the same bytes as one by one.

        If one of the rewards is impossible nothing is learned. Pairs and states are not checked.
        """
        from windage.kernels.learner import observe_all

        self._require_unstarted(self.n_episodes > 0)
        if pairs.size == 0:
            return
        least, most = (self._check_reward(float(one)) for one in (rewards.min(), rewards.max()))
        if self.preloaded == 0:
            self._let_the_past_go()
        first = LAST_TIME + self.preloaded + 1  # times that never come, as in `preload`
        self._window.ahead = self.preloaded + pairs.size
        try:
            self._make_room(pairs.size)
            observe_all(self._learner, first, pairs, rewards, afters)
        finally:
            self.preloaded = self._window.ahead = int(self._window.memory.clock[0])
        if self._learner.rules.rounded:
            rounding(self, least, most)

    def _let_the_past_go(self) -> None:
        """Give an empty agent a window, even one that would forget nothing of the horizon."""
        if self._width is not None and self._window.width is None:
            self._window = self._new_window(self._width)
            self._use_window()

    @property
    def episode(self) -> Episode | None:
        """The current episode; None before the first decision."""
        rows = self.episode_rows(self.n_episodes)
        if not rows.size:
            return None
        rows["length"] = self.t - rows["start"]
        return Episodes(rows)[0]

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair the agent remembers now."""
        return self._window.contents

    @property
    def n_episodes(self) -> int:
        """How many episodes have started."""
        return int(self._learner.now[0])

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the episodes from number `first` (from 1 on) to the current one, as rows."""
        log = self._learner.log
        oldest = max(self._logged_from, self.n_episodes - log.size + 1)  # older ones are gone
        rows = rows_of(log, max(first, 1, oldest), self.n_episodes)
        rules = self._learner.rules
        rows["gain"] = rules.low + rules.width * rows["gain"]
        rows["span"] *= rules.width
        return rows

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {f"window.{name}": array for name, array in self._window.saved().items()}
        arrays |= {name: array.copy() for name, array in survivors(self._learner).items()}
        row = self._learner.log[self.n_episodes % self._learner.log.size]
        return {"preloaded": self.preloaded, "episode": row.item()}, arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.preloaded = as_integer(values["preloaded"], "preloaded", low=0)
        if self.preloaded > 0:
            self._let_the_past_go()
        self._window.restore(
            {name.removeprefix("window."): array for name, array in arrays.items()}
        )
        if self._window.ahead != self.preloaded:
            raise ValueError("preloaded")
        self._use_window()
        for name, mine in survivors(self._learner).items():
            mine[:] = array_like(mine, arrays, name)
        samples = self.preloaded + self.t - 1
        require_possible(self._learner, self._window, self.t, samples, tuple(values["episode"]))
        self._logged_from = max(1, self.n_episodes)
        self._learner.log[self.n_episodes % self._learner.log.size] = tuple(values["episode"])

    @property
    def _largest(self) -> float:
        return math.sqrt(LARGEST) if self._squares else LARGEST
