"""What all learners that plan by episodes share: a memory, a clock, and one compiled learner.

How they plan is up to a subclass, which gives `windage.kernels.swucrl2cw` its rules; that file has
the algorithm itself, line by line.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import LARGEST, KernelAgent, Steps
from windage.agents.configuration import AgentOptions
from windage.agents.episodes import REASONS, RECENT, Episode, Episodes, larger_ring, rows_of
from windage.agents.exclusive import exclusive
from windage.agents.state import take_back
from windage.confidence.confidence import SWEEPS, blank_plan, not_converged, one_each
from windage.confidence.window import Window, as_restarts
from windage.errors import GuaranteeWarning, InputError, ParameterWarning, StateError, warn
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_integer, as_integers, as_real, require_memory

if TYPE_CHECKING:
    from windage.kernels.swucrl2cw import OptimisticLearner

__all__ = [
    "EpisodicAgent",
    "Pace",
    "draws",
    "require_possible",
    "rounding",
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


def scale(agent: EpisodicAgent) -> None:
    """Warn once if mean rewards are clearly outside [0, 1], where the learner sees nothing.

    The noise of a mean over n visits is 1 / sqrt(n); five times that is no accident.
    """
    if agent.reward_range is None and not agent._warned:
        n, mean = agent._learner.sets["visits"], agent._learner.sets["r_hat"]
        if mean.min() >= 0.0 and mean.max() <= 1.0:  # asked after every segment of a run
            return
        away = np.maximum(mean - 1.0, -mean) * np.sqrt(n) > 5.0
        if away.any():
            agent._warned = True
            warn(
                f"a mean reward of {mean[np.argmax(away)]:g} lies outside [0, 1], where all "
                "rewards look alike to the learner: declare a reward_range",
                ParameterWarning,
            )


def draws(agent: EpisodicAgent) -> None:
    """Warn once of a drawn model that was played without being solved.

    Where a draw only breaks ties (`learner.drawn`), any policy keeps the guarantee.
    """
    if agent._learner.plan.answer["unsolved"][0] > 0 and not agent._warned_of_draws:
        agent._warned_of_draws = True
        warn(
            "a drawn model was not solved to 1 / sqrt(t) in 2,000 sweeps: the policy found so far "
            "is played, as it will be again",
            GuaranteeWarning,
        )


def rounding(agent: EpisodicAgent, least: float, most: float) -> None:
    """Warn once of rewards that are rounded to 0 or 1 though they are nowhere near."""
    if agent.reward_range is None and not agent._warned and not -0.5 <= least <= most <= 1.5:
        agent._warned = True
        warn(
            f"a reward of {most if most > 1.5 else least:g} lies outside [0, 1] and is rounded to "
            "0 or 1: declare a reward_range",
            ParameterWarning,
        )


_SETS = ("lift", "eta", "visits", "r_hat", "visits_left", "vacuous", "spread")
_POLICY = ("best", "tied", "episode", "pair")
_PAIRS = ("reward", "half", "root", "rest", "value")


def survivors(learner: OptimisticLearner) -> dict[str, NDArray[Any]]:
    """Return the arrays, beside the window's, that must survive a restart."""
    return {
        "plan.u": learner.plan.u,
        **{f"episode.{name}": learner.episode[name] for name in learner.episode.dtype.names or ()},
        **{f"pairs.{name}": learner.plan.pairs[name] for name in _PAIRS},
        **{f"sets.{name}": learner.sets[name] for name in _SETS},
        **{f"policy.{name}": learner.policy[name] for name in _POLICY},
    }


def _ends(learner: OptimisticLearner, window: Window, tau: int) -> list[tuple[int, int]]:
    """Return when an episode that started at tau may have to end, and why.

    A restart may have passed in the counts and not yet in the episodes, when planning failed.
    """
    from windage.kernels.swucrl2cw import BOUNDARY, LENGTH, RESTART
    from windage.kernels.window import NEVER

    rules, end = learner.rules[0], int(learner.episode["end"][0])
    period, phase = int(rules["period"]), int(rules["phase"])
    restarts = window.restarts[window.restarts > tau][:1].tolist() or [int(NEVER)]
    ends = [(t, RESTART) for t in restarts]
    if period > 0:
        ends.append((tau + period - (tau - phase) % period, BOUNDARY))
    if rules["grows"] and tau + 1 < end <= 2 * tau + 1:
        ends.append((end, LENGTH))
    return ends


def require_possible(
    learner: OptimisticLearner, window: Window, t: int, samples: int, row: tuple[Any, ...]
) -> None:
    """Refuse a restored learner that no run could have led to.

    `samples` were taken in before time t; `row` is the log's of the current episode.
    """
    space, sets, policy = window.space, learner.sets, learner.policy
    episode = dict(zip(learner.episode.dtype.names or (), learner.episode[0].item(), strict=True))
    number, tau, due = episode["number"], episode["tau"], episode["due"]
    start, length, reason, sweeps, ties, gain, span, vacuous = row
    states = np.arange(space.n_states)
    pair = np.clip(policy["pair"], 0, space.n_pairs - 1)
    home = (policy["pair"] == pair) & (space.state_of[pair] == states)
    checks = {
        "samples": int(window.kernel.clock["taken"][0]) == samples,
        "episode": 0 <= number <= t and (tau > 0) == (number > 0),
        "start": 0 <= tau <= t and start == tau,
        "end": number == 0 or (episode["end"], episode["cause"]) in _ends(learner, window, tau),
        "due": 0 <= due < len(REASONS) and (due == 1) == (number == 0),
        "full": episode["full"] == (policy["best"] == 1.0).sum(),
        "vacuous": episode["vacuous"] == sets["vacuous"].sum()
        and bool(np.isin(sets["vacuous"], (0, 1)).all()),
        "tied": episode["tied"] == policy["tied"].sum(),
        "widening": bool((sets["lift"] >= 0.0).all() and (sets["eta"] >= 0.0).all()),
        "met": bool(((policy["episode"] >= 0) & (policy["episode"] <= number)).all()),
        "policy": bool(home[policy["episode"] > 0].all()),
        "visits": bool(((sets["visits"] >= 0) & (sets["visits"] <= samples)).all())
        and bool((sets["visits_left"] <= np.maximum(sets["visits"], 1)).all()),
        "numbers": all(np.isfinite(array).all() for array in window.saved().values()),
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


LOG_ROWS = (1 << 15) + 8  # more than a run plays between two looks at it
_FIRST_ROWS = 32  # of the log of episodes, until they are full: a fleet has thousands of agents


class EpisodicAgent(KernelAgent):
    """A learner that plans at the start of each episode and keeps to its plan while it lasts.

    A subclass checks its own arguments, then calls this constructor; `_pace`, `_rules` and `_etas`
    are called from there.
    """

    replays: ClassVar[bool] = True
    """Whether `kernels.rollout.replay` may replay its history: it alone decides and learns."""
    off_policy: ClassVar[bool] = True
    counts_in_loop: ClassVar[bool] = True
    _explains: ClassVar[bool] = False
    """Whether it can be asked what its episode was planned with, however long that lasts."""

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
        pace, rules = self._pace(), self._rules()
        restarts = as_restarts(pace.restarts)
        self._restarts = restarts[: np.searchsorted(restarts, self.horizon, side="right")]
        self.preloaded = 0
        """How many samples of the past the agent was given before its first decision."""
        self._warned = self._warned_of_draws = False
        self._eta = self._etas()
        self._width = pace.width
        self._longest = (pace.period or self.horizon) if self._explains else 0
        forgets = pace.width is not None and pace.width < self.horizon
        self._window = self._new_window(pace.width if forgets else None)
        self._logged_from = 1  # the first episode there is a row of
        self._learner = self._fresh(pace, rules)

    def _pace(self) -> Pace:
        """Return what it forgets, and when episodes end beside the doubling rule."""
        return Pace(width=self._keeps())

    def _keeps(self) -> int | None:
        """Return how many samples it remembers; None: all."""
        return None

    @abstractmethod
    def _rules(self) -> dict[str, Any]:
        """Return what differs from a plain optimist.

        Fields of `kernels.swucrl2cw.RULES`; `radii`, `boxes`, `widenings`; `ladder` with
        `most_span`; `posterior`, its prior.
        """

    def _etas(self) -> NDArray[np.float64]:
        """Return the widening of the transition set of every pair."""
        return np.zeros(self.space.n_pairs)

    @property
    def _squares(self) -> bool:
        """Whether the variance of rewards is needed."""
        return False

    def _new_window(self, width: int | None) -> Window:
        return Window(
            self.space,
            width,
            restarts=self._restarts,
            squares=self._squares,
            longest=self._longest,
        )

    def _fresh(self, pace: Pace, rules: dict[str, Any]) -> OptimisticLearner:
        from windage.kernels.confidence import SETS
        from windage.kernels.policy import POLICY
        from windage.kernels.swucrl2cw import (
            EPISODE,
            FIRST,
            LOG,
            RULES,
            OptimisticLearner,
        )

        space = self.space
        learner = OptimisticLearner(
            rules=np.zeros(1, RULES),
            radii=np.ascontiguousarray(rules.get("radii", np.zeros((2, 4)))),
            widenings=rules.get("widenings", _FIXED),
            key=key(self.seed, f"agents.{self.id}"),
            window=self._window.kernel,
            plan=self._blank_plan(rules.get("boxes", False)),
            planning=self._planning(rules),
            ties=self._tie_rule(rules),
            sets=np.zeros(space.n_pairs, SETS),
            policy=np.zeros(space.n_states, POLICY),
            episode=np.zeros(1, EPISODE),
            log=np.zeros(_FIRST_ROWS, LOG),
        )
        given = (
            {"clip": True, "warm": True}
            | rules
            | {
                "low": self._scale.low,
                "width": self._scale.width,
                "period": pace.period,
                "phase": pace.phase,
                "grows": pace.grows,
                "sweeps": SWEEPS,
            }
        )
        for name in RULES.names or ():
            learner.rules[name] = given.get(name, 0)
        learner.sets["eta"], learner.sets["state"] = self._eta, space.state_of
        learner.episode["due"] = FIRST
        return learner

    @staticmethod
    def _planning(rules: dict[str, Any]) -> Any:
        """Return the planning rule, of a type of its own."""
        from windage.kernels.posterior import Ladder, Posterior
        from windage.kernels.swucrl2cw import Optimism

        if "posterior" in rules:
            return Posterior(float(rules["posterior"]))
        if "ladder" in rules:
            return Ladder(rules["ladder"], float(rules["most_span"]))
        return Optimism(1.0)

    def _tie_rule(self, rules: dict[str, Any]) -> Any:
        """Return how the policy is fixed, of a type of its own."""
        from windage.kernels.policy import SAMPLED, TieRule
        from windage.kernels.posterior import Greedy, SampledTies

        if "posterior" in rules:
            return Greedy(0)
        room = self._room_for_draws()
        if rules.get("ties") == SAMPLED:
            return SampledTies(blank_plan(self.space, room), 1.0)
        return TieRule(0)

    @property
    def _kernel(self) -> OptimisticLearner:
        return self._learner

    def _blank_plan(self, boxes: bool) -> Any:
        """Return an empty plan, whose class says of what shape the sets are.

        Kernels are registered for that class: a subclass with sets of its own returns another one.
        """
        return blank_plan(self.space, self._most_entries, boxes=boxes)

    @property
    def _most_entries(self) -> int:
        """How many non-zeros of p_hat the window may hold."""
        cells, width = self._window.most_cells, self._window.width
        return cells if width is None else min(cells, width)

    def _room_for_draws(self) -> int:
        """Return how many entries a model drawn beside the plan needs."""
        return 0

    def _all_cells(self, name: str, fix: str) -> int:
        """Return how many entries a drawn model has: none of its probabilities is 0."""
        cells = self.space.n_pairs * self.space.n_states
        require_memory(32 * cells, name, fix=fix)
        return cells

    def _choose(self, state: int) -> int:
        from windage.kernels.swucrl2cw import act_anew, cached_action

        learner = self._learner
        pair = cached_action(learner.episode, learner.policy, learner.sets, self.t, state)
        if pair < 0:
            self._make_room_to_log(1)
            pair = act_anew(self._learner, self.t, state)
            if self._learner.episode["tau"][0] == self.t:  # a new episode has looked at the means
                scale(self)
                draws(self)
            if pair < 0:
                raise self._not_converged()
        return int(self.space.action_of[pair])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        self._take(self.t, int(self.space.offsets[state]) + action, reward, s_next)

    def _take(self, t: int, pair: int, reward: float, s_next: int) -> None:
        from windage.kernels.swucrl2cw import remember

        self._make_room_to_remember(1)
        learner = self._learner
        remember(learner.rules, learner.key, learner.window, learner.sets, t, pair, reward, s_next)
        if learner.rules["rounded"][0]:
            rounding(self, reward, reward)

    def _origin(self, t: int) -> int:
        """Return the time at which the learner's own clock, asked at time t, stood at 0."""
        n = int(np.searchsorted(self._restarts, t, side="right"))
        return int(self._restarts[n - 1]) - 1 if n > 0 else 0

    @property
    def _counted(self) -> float:
        return min(self._window.width or math.inf, self.t - self._origin(self.t))

    def _not_converged(self) -> Exception:
        age = self.t - self._origin(self.t)
        return not_converged(self._learner.plan.answer[0], 1.0 / math.sqrt(age))

    def _reached(self) -> tuple[int, int | None]:
        window = self._window.kernel
        clock = window.clock[0]
        t = int(clock["taken"]) - self.preloaded + 1
        return t, int(window.ring["after"][clock["slot"] - 1]) if t > 1 else None

    def _look_back(self, rewards: NDArray[np.float64]) -> None:
        scale(self)
        draws(self)
        if self._learner.rules["rounded"][0] and rewards.size:
            rounding(self, float(rewards.min()), float(rewards.max()))

    def _make_room(self, steps: int) -> None:
        self._make_room_to_remember(steps)
        self._make_room_to_log(steps)

    def _make_room_to_remember(self, samples: int) -> None:
        self._window.make_room(samples)
        if self._window.kernel is not self._learner.window:
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
        old = self._learner.plan
        room = self._blank_plan(hasattr(old, "rooms"))
        kept = {name: getattr(old, name) for name in ("pairs", "states", "u", "answer")}
        self._learner = self._learner._replace(
            window=self._window.kernel, plan=room._replace(**kept)
        )

    @exclusive
    def preload(
        self,
        s: int,
        a: int,
        reward: float,
        s_next: int,
        seen: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn from a step somebody took before t = 1; older ones first.

        Samples of the past age like all others: they leave the window as new ones come in.
        """
        started = self.n_episodes > 0
        pair, value, after = self._past_step(s, a, reward, s_next, seen, started=started)
        if self.preloaded == 0:
            self._let_the_past_go()
        self._window.ahead = self.preloaded + 1
        try:
            # a time that never comes, so that no draw is used twice
            self._take(LAST_TIME + self._window.ahead, pair, value, after)
        finally:
            self.preloaded = self._window.ahead = int(self._window.kernel.clock["taken"][0])

    @exclusive
    def preload_all(
        self, pairs: NDArray[np.int64], rewards: NDArray[np.float64], afters: NDArray[np.int64]
    ) -> None:
        """`preload` many samples at once, by pair; the same bytes as one by one.

        If one of them is impossible nothing is learned.
        """
        from windage.kernels.swucrl2cw import remember_all

        self._require_unstarted(self.n_episodes > 0)
        pairs = as_integers(pairs, "pairs", low=0, high=self.space.n_pairs - 1)
        afters = as_integers(afters, "afters", low=0, high=self.space.n_states - 1)
        rewards = one_each(rewards, "rewards", pairs.size, "sample", low=-math.inf)
        if afters.size != pairs.size:
            raise InputError(
                f"has {afters.size} states for {pairs.size} pairs",
                field="afters",
                fix="pass as many of each",
            )
        if pairs.size == 0:
            return
        least, most = (self._check_reward(float(one)) for one in (rewards.min(), rewards.max()))
        if self.preloaded == 0:
            self._let_the_past_go()
        first = LAST_TIME + self.preloaded + 1  # times that never come, as in `preload`
        self._window.ahead = self.preloaded + pairs.size
        try:
            self._make_room_to_remember(pairs.size)
            remember_all(self._learner, first, pairs, rewards, afters)
        finally:
            self.preloaded = self._window.ahead = int(self._window.kernel.clock["taken"][0])
        if self._learner.rules["rounded"][0]:
            rounding(self, least, most)

    @exclusive
    def replay(self, steps: Steps) -> NDArray[np.int64]:
        """Live through recorded steps in one compiled loop."""
        from windage.kernels.rollout import replay

        if not (self.replays and self.has_loop()):
            return super().replay(steps)
        steps = self._replayable(steps)
        advised = np.zeros(steps.states.size, np.int64)
        self._make_room_to_remember(int(steps.learned.sum()))
        self._make_room_to_log(steps.states.size)
        columns = steps[:5]
        nothing = np.zeros((steps.states.size, 0, 2), np.int64)
        with self.in_step():
            t, done = replay(self._learner, self.t, *columns, nothing, advised)
            self._advance(steps.part(0, done), advised)
            assert self.t == t
        if done < steps.states.size:
            raise self._not_converged()
        return advised

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
        return int(self._learner.episode["number"][0])

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the episodes from number `first` (from 1 on) to the current one, as rows."""
        log = self._learner.log
        oldest = max(self._logged_from, self.n_episodes - log.size + 1)  # older ones are gone
        rows = rows_of(log, max(first, 1, oldest), self.n_episodes)
        low, width = self._scale.low, self._scale.width
        if (low, width) != (0.0, 1.0):
            rows["gain"] = low + width * rows["gain"]
            rows["span"] *= width
        return rows

    def _survivors(self) -> dict[str, NDArray[Any]]:
        return survivors(self._learner)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        _, arrays = super()._saved()
        arrays |= {f"window.{name}": array for name, array in self._window.saved().items()}
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
        # minus infinity where a pair was left out
        take_back(self._survivors(), arrays, unbounded="pairs.value")
        samples = self.preloaded + self.t - 1
        require_possible(self._learner, self._window, self.t, samples, tuple(values["episode"]))
        self._logged_from = max(1, self.n_episodes)
        self._learner.log[self.n_episodes % self._learner.log.size] = tuple(values["episode"])

    @property
    def _largest(self) -> float:
        return math.sqrt(LARGEST) if self._squares else LARGEST
