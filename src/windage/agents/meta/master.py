"""MASTER (Wei, Luo 2021): copies of a learner on many scales, restarted when tests see a change.

    for n = 0, 1, 2, ...: a block of 2^n steps; at its step tau = 0, 1, ...
        for m = n, ..., 0 with 2^m | tau: with probability rho(2^n) / rho(2^m)
            schedule a fresh copy of order m for the next 2^m steps
        the shortest copy that lives acts and learns; g_t is its optimistic gain; U_t = min g
        test 1, for a copy of order m that ends: mean reward in its life >= U_t + 9 rho^(2^m)
        test 2: mean of g - R since the block began >= 3 rho^(steps since then)
        if one fires: n = 0, all copies are dropped

C(t) = c sqrt(t) bounds the regret of the learner, rho(t) = C(t) / t, and
rho^(t) = 6 (log2 T + 1) ln(T / delta) rho(t). The algorithm and its constants are recalled, not
copied from the paper; all of them are parameters. With the constants above no test can fire at
horizons anybody plays, and MASTER is a schedule of random restarts: `explain` says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent, quietly
from windage.agents.episodes import REASONS, Episode, Episodes, no_rows, put_rows, rows_of
from windage.agents.optimistic.ucrl2 import AdaptiveUCRL
from windage.agents.state import take_back
from windage.confidence.radii import Radii
from windage.confidence.tuning import Budgets
from windage.errors import CallOrderError, InputError
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import as_integer, as_real, require_memory

__all__ = ["MASTER", "LiveCopy", "MasterExplanation", "Reach", "Restart", "is_drawn"]

_RESTARTS_KEPT = 10_000
_LONGEST = 1000  # horizons of 2^1000 and more are not looked at


class Tally(msgspec.Struct, frozen=True):
    """What the tests know of a block: one value a step, so that no step is ever half counted.

    Attributes
    ----------
    t
        The last step that is counted, 0 before the first.
    order, start
        n, and the time of the first step of the block that goes on or begins after t.
    lowest
        U_t, the least optimistic gain of the block; infinite before its first step.
    missed
        Sum of optimistic gain minus reward over the block.
    earned
        Sum of all rewards in the life of the copy of each order.
    fired
        How often test 1 and test 2 have led to a restart.
    """

    t: int
    order: int
    start: int
    lowest: float
    missed: float
    earned: tuple[float, ...]
    fired: tuple[int, int]

    def opened(self, order: int, fired: tuple[int, int]) -> Tally:
        """Return the tally of a new block of 2^order steps, from the next step on."""
        earned = (0.0,) * len(self.earned)
        return Tally(self.t, order, self.t + 1, math.inf, 0.0, earned, fired)

    def saved(self) -> dict[str, Any]:
        """Return it as plain data, which has no infinity."""
        lowest = self.lowest if self.lowest < math.inf else None
        return {"tally": msgspec.structs.asdict(self) | {"lowest": lowest}}

    @classmethod
    def restored(cls, saved: dict[str, Any], t: int, orders: int) -> Tally:
        """Return what was saved before step t, of an agent with so many orders of copies."""
        lowest = math.inf if t == saved["start"] else saved["lowest"]
        found = msgspec.convert(saved | {"lowest": lowest}, cls)
        if not (
            found.t == t - 1
            and 1 <= found.start <= t
            and 0 <= found.order < found.start.bit_length()
            and len(found.earned) == orders
            and 0 <= min(found.fired) <= max(found.fired) <= t
        ):
            raise ValueError("tally")
        return found


@dataclass(frozen=True)
class Restart:
    """A test that fired after step t: `value` had reached `threshold`, in units of the rewards.

    `order` is that of the copy that ended (test 1) or of the block (test 2).
    """

    t: int
    test: int
    order: int
    value: float
    threshold: float


_RESTART = np.dtype(
    [("t", int), ("test", int), ("order", int), ("value", float), ("threshold", float)]
)


class Following(NamedTuple):
    """What a step leads to, once the copy that acts has learned from it."""

    tally: Tally
    restart: Restart | None
    clock: int  # of that copy, then


@dataclass(frozen=True)
class Reach:
    """Whether one test can fire at all before the horizon.

    Attributes
    ----------
    test
        1 or 2.
    least
        The smallest threshold it ever has, in units of the width of the rewards: above 1 no
        rewards within their range can reach it, up to the precision of the plans.
    horizon
        A horizon from which on it could, of the form 2^k - 1; None: there is none.
    """

    test: int
    least: float
    horizon: int | None

    @property
    def can_fire(self) -> bool:
        """Whether the smallest threshold is within reach."""
        return self.least <= 1.0

    def __str__(self) -> str:
        if self.can_fire:
            return f"test {self.test} can fire: its least threshold is {self.least:.3g} of 1"
        far = "at no horizon"
        if self.horizon is not None:
            far = f"from about T = {float(self.horizon):.2g} on"
        return (
            f"test {self.test} cannot fire at this horizon: its least threshold is "
            f"{self.least:.3g}, and means of rewards in [0, 1] differ by 1 at most; it could {far}"
        )


_EPISODES_KEPT = (1 << 15) + 8  # more than a run plays between two looks at them


@dataclass
class Copy:
    """A learner of its own for the 2^order steps from `start` on; it sleeps while a shorter lives.

    `episodes` and `gain` are those of its learner when it last acted.
    """

    order: int
    start: int
    learner: AdaptiveUCRL
    episodes: int = 0
    gain: float = math.nan

    def is_live(self, t: int, since: int) -> bool:
        """Whether it was scheduled for time t, in the block that began at `since`."""
        return since <= self.start <= t < self.start + (1 << self.order)

    def seen(self, horizon: int) -> LiveCopy:
        """Return it as one may look at it."""
        end = min(self.start + (1 << self.order) - 1, horizon)
        return LiveCopy(self.order, self.start, end, acted=self.learner.t - 1)


def _bytes(part: Any) -> float:
    """Return the bytes of the large arrays in a compiled structure."""
    if isinstance(part, np.ndarray):
        return float(part.nbytes)
    return sum(map(_bytes, part)) if isinstance(part, tuple) else 0.0


def starts(key: NDArray[np.uint64], t: int, tally: Tally) -> list[int]:
    """Return the orders of the copies that start at t."""
    tau = t - tally.start
    longest = tally.order if tau == 0 else (tau & -tau).bit_length() - 1
    return [order for order in range(longest + 1) if is_drawn(key, t, order, tally)]


def is_drawn(key: NDArray[np.uint64], t: int, order: int, tally: Tally) -> bool:
    """Whether a copy is scheduled at t, in the current block: rho(2^n) / rho(2^m) of the time.

    The constant of rho(t) = c / sqrt(t) cancels.
    """
    from windage.kernels.random import uniform

    lower = tally.order - order
    return lower == 0 or float(uniform(key, t, order)) < 2.0 ** (-0.5 * lower)


@dataclass(frozen=True)
class LiveCopy:
    """A copy as one may look at it: when it lives, both ends included, and the steps it acted."""

    order: int
    start: int
    end: int
    acted: int


class Planned:
    """The last episodes of all copies in the order they were planned: number m in row m % size."""

    def __init__(self, horizon: int) -> None:
        self._rows = np.zeros(min(_EPISODES_KEPT, horizon + 8), no_rows().dtype)
        self._since = 1  # rows before this one were not saved
        self.total = 0
        """How many there have been."""

    def add(self, row: NDArray[np.void], t: int, reason: int) -> None:
        """List an episode planned at t; the one listed before ends here, for this reason.

        At one time one is planned at most: to list it again changes nothing.
        """
        last = self._rows[self.total % self._rows.size]
        if self.total > 0 and last["start"] == t:
            return
        if self.total > 0:
            last["length"], last["reason"] = t - last["start"], reason
        place = (self.total + 1) % self._rows.size
        self._rows[place] = row
        self._rows[place]["start"] = t
        self.total += 1

    def rows(self, first: int) -> NDArray[np.void]:
        """Return those from number `first` on that are kept; the last has no length yet."""
        oldest = max(1, self._since, self.total - self._rows.size + 1)
        return self._rows[np.arange(max(first, oldest), self.total + 1) % self._rows.size]

    def current(self, t: int) -> Episode | None:
        """Return the one planned last, as it stands before step t."""
        rows = self.rows(self.total)
        rows["length"] = t - rows["start"]
        return Episodes(rows)[0] if rows.size else None

    def restore(self, total: Any, rows: list[list[Any]], t: int) -> None:
        """Take back how many there were and the last of them, saved before step t + 1."""
        self.total = as_integer(total, "episodes", low=0)
        self._since = max(1, self.total)
        if len(rows) != min(self.total, 1):
            raise ValueError("episode")
        for start, length, reason, sweeps, ties, *rest in rows:
            integers = [
                as_integer(start, "start", low=1, high=t),
                as_integer(length, "length", low=0, high=0),
                as_integer(reason, "reason", low=0, high=len(REASONS) - 1),
                as_integer(sweeps, "sweeps", low=0),
                as_integer(ties, "ties", low=0),
            ]
            gain, span, vacuous = (as_real(value, "episode") for value in rest)
            self._rows[self.total % self._rows.size] = (*integers, gain, span, vacuous)


@dataclass(frozen=True)
class MasterExplanation:
    """What MASTER does now, and why.

    Attributes
    ----------
    t, order, start
        The time of the next or waiting decision, and the block it lies in: 2^order steps.
    copies, acting
        The copies that live now, and the order of the one that acts: the shortest.
    lowest_gain
        U_t, the least optimistic gain of the block so far; infinite before its first step.
    missed, threshold
        Test 2 so far: mean of optimistic gain minus reward, and what would be too much.
    fired, restarts
        How often each test has fired, and the last restarts.
    reach
        Whether the tests can fire before the horizon.
    learner
        What the copy that acts says of the state that was asked about.
    """

    t: int
    order: int
    start: int
    copies: tuple[LiveCopy, ...]
    acting: int
    lowest_gain: float
    missed: float
    threshold: float
    fired: dict[int, int]
    restarts: tuple[Restart, ...]
    reach: tuple[Reach, Reach]
    learner: object

    def __str__(self) -> str:
        steps = self.t - self.start
        lines = [f"t = {self.t}, block of 2^{self.order} steps since t = {self.start}"]
        lines.append("order      start        end  acted")
        for copy in self.copies:
            mark = "*" if copy.order == self.acting else " "
            lines.append(f"{copy.order:5}{mark} {copy.start:10} {copy.end:10} {copy.acted:6}")
        lines.append("* acts, being the shortest; the others sleep")
        if steps > 0:
            lines.append(
                f"in {steps} steps the least optimistic gain was {self.lowest_gain:.4g}; gains "
                f"exceeded rewards by {self.missed:.4g} on average, {self.threshold:.4g} would be "
                "too much"
            )
        lines.append(f"test 1 has fired {self.fired[1]} times, test 2 {self.fired[2]} times")
        if self.restarts:
            last = self.restarts[-1]
            lines.append(
                f"last restart: after t = {last.t} by test {last.test}, {last.value:.4g} >= "
                f"{last.threshold:.4g}"
            )
        lines += [*map(str, self.reach), "the copy that acts counts its own steps only:"]
        return "\n".join([*lines, str(self.learner)])


class MASTER(Agent):
    """MASTER over UCRL with adaptive widening, for models that drift by amounts nobody knows.

    The episodes of all copies form one list, in the order they were planned. One that is planned
    ends, for that list, when the next is, whichever copy plans it; a copy that wakes up goes on
    with its old plan and is not listed again.

    Parameters
    ----------
    diameter
        A bound on the diameter of every model.
    delta, radii, ties, slack, warm_start
        Those of the copies, see `AdaptiveUCRL`.
    test_1, test_2
        The factors 9 and 3 of the two tests.
    log_factor
        rho^ / rho; 6 (log2 T + 1) ln(T / delta) if not given.
    regret_constant
        c, for rewards in [0, 1]: the learner's regret in t steps is taken to be c sqrt(t). If not
        given, D S sqrt(A ln(T / delta)), where D counts as at least 1.
    ladder
        The widenings each copy tries.
    reward_range
        If given, (lowest, highest) reward: others are refused, and thresholds are in units of it.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine", horizon=1000)
    >>> agent = MASTER(model.space, horizon=1000, diameter=2.0)
    >>> run = wd.run(model, agent, seed=1)
    >>> agent.order, agent.fired
    (9, {1: 0, 2: 0})
    >>> print(agent.reach()[1])  # doctest: +ELLIPSIS
    test 2 cannot fire at this horizon: ... it could from about T = 1.1e+12 on
    """

    id: ClassVar[str] = "master"
    requires: ClassVar[tuple[str, ...]] = ("D",)
    covers_drift: ClassVar[bool | None] = True
    default_radii: ClassVar[str] = "ucrl2"
    bound: ClassVar[str] = "min(sqrt(l T), (B_r + B_p)^(1/3) T^(2/3)), D known"
    source: ClassVar[str] = "Wei, Luo 2021, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        diameter: float,
        delta: float = 0.05,
        test_1: float = 9.0,
        test_2: float = 3.0,
        log_factor: float | None = None,
        regret_constant: float | None = None,
        ladder: tuple[float, ...] = AdaptiveUCRL.LADDER,
        radii: Radii | str | dict[str, Any] | None = None,
        ties: str = "random",
        slack: float = 0.0,
        warm_start: bool = True,
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self._passed_on: dict[str, Any] = {
            "diameter": diameter,
            "delta": delta,
            "ladder": ladder,
            "radii": "ucrl2" if radii is None else radii,
            "ties": ties,
            "slack": slack,
            "warm_start": warm_start,
        }
        self._key = key(self.seed, f"agents.{self.id}")
        self._warned = False
        first = self._learner(0, 0)  # says what is wrong with the options
        self._passed_on = {name: first.configuration()[name] for name in self._passed_on}
        self._copies_largest = first._largest
        self.diameter, self.delta = first.diameter, first.delta
        self.radii, self.ties, self.slack = first.radii, first.ties, first.slack
        self.ladder, self.warm_start = first.ladder, first.warm_start
        self.test_1 = as_real(test_1, "test_1", low=0.0)
        self.test_2 = as_real(test_2, "test_2", low=0.0)
        given = {"log_factor": log_factor, "regret_constant": regret_constant}
        self._log_factor, self._regret_constant = (
            None if value is None else as_real(value, name, low=0.0)
            for name, value in given.items()
        )
        orders = self.horizon.bit_length()  # block n starts at t = 2^n or later
        require_memory(orders * _bytes(first._learner), "space", fix="use fewer states")
        # a place for each order, since no two copies of one order live at once; always filled, so
        # that memory is the same from the first step to the last
        learners = [first, *(self._learner(0, order) for order in range(1, orders))]
        self._copies = [Copy(order, 0, learner) for order, learner in enumerate(learners)]
        self._acting: Copy | None = None  # whoever decided last
        self._scheduled = 0  # the last time for which copies were scheduled
        self._tally = Tally(0, 0, 1, math.inf, 0.0, (0.0,) * orders, (0, 0))
        self._next: Following | None = None  # what the step in hand leads to
        self._planned = Planned(self.horizon)
        # the last restarts: number m, from 1 on, in row m % size
        self._restarts = np.zeros(min(_RESTARTS_KEPT, self.horizon), _RESTART)

    @classmethod
    def configured(
        cls,
        space: StateActions,
        *,
        horizon: int,
        budgets: Budgets | None = None,
        diameter: float | None = None,
        **options: Any,
    ) -> Self:
        """Return the agent for these options; it needs a bound on the diameter, and no budgets."""
        del budgets
        if diameter is None:
            raise InputError(
                "is not known, and the copies need a bound on it",
                field="diameter",
                fix="pass diameter=model.max_diameter().upper",
            )
        return cls(space, horizon=horizon, diameter=diameter, **options)

    @property
    def log_factor(self) -> float:
        """rho^ / rho."""
        return self._constants(self.horizon)[0]

    @property
    def regret_constant(self) -> float:
        """The constant c of C(t) = c sqrt(t)."""
        return self._constants(self.horizon)[1]

    def _constants(self, T: int) -> tuple[float, float]:
        """Return rho^ / rho and c, as they would be at horizon T: those given, or the paper's."""
        logs = math.log(T) - math.log(self.delta)
        factor, c = self._log_factor, self._regret_constant
        if factor is None:
            factor = 6.0 * (math.log2(T) + 1.0) * logs
        if c is None:
            size = self.space.n_states * math.sqrt(self.space.mean_actions)
            c = max(1.0, self.diameter) * size * math.sqrt(logs)
        return factor, c

    def _rho_hat(self, steps: int, T: int) -> float:
        """Return rho^ of so many steps at horizon T, in units of the width of the rewards."""
        return math.prod(self._constants(T)) / math.sqrt(steps)

    def _bar(self, test: int, steps: int) -> float:
        """Return how far a mean over so many steps may be off before a test fires."""
        if steps == 0:
            return math.inf
        factor = self.test_1 if test == 1 else self.test_2
        return factor * (self._scale.width * self._rho_hat(steps, self.horizon))

    def _after(self, reward: float, gain: float) -> tuple[Tally, Restart | None]:
        """Return the tally one step later, and the restart that step leads to, if any."""
        tally, t = self._tally, self.t
        live = [(copy.order, copy.start) for copy in self._live()]
        earned = [0.0] * len(tally.earned)
        for order, start in live:
            earned[order] = (tally.earned[order] if start < t else 0.0) + reward
        now = msgspec.structs.replace(
            tally,
            t=t,
            lowest=min(tally.lowest, gain),
            missed=tally.missed + (gain - reward),
            earned=tuple(earned),
        )
        restart = self._tested(now, [m for m, start in live if start + (1 << m) == t + 1])
        if restart is not None:
            ones, twos = tally.fired
            return now.opened(0, (ones + (restart.test == 1), twos + (restart.test == 2))), restart
        over = t - tally.start + 1 == 1 << tally.order
        return now.opened(tally.order + 1, tally.fired) if over else now, None

    def _tested(self, now: Tally, ended: Sequence[int]) -> Restart | None:
        """Return the first test that fires: test 1 from the shortest copy on, then test 2."""
        for order in ended:
            value = now.earned[order] / (1 << order)
            bar = now.lowest + self._bar(1, 1 << order)
            if value >= bar:
                return Restart(now.t, 1, order, value, bar)
        steps = now.t - now.start + 1
        value, bar = now.missed / steps, self._bar(2, steps)
        return Restart(now.t, 2, now.order, value, bar) if value >= bar else None

    def reach(self) -> tuple[Reach, Reach]:
        """Say of both tests whether they can fire before the horizon, and from which on if not."""
        T = self.horizon
        longest = 1 << ((T + 1).bit_length() - 2)  # of the copies that can end
        block = 1 << (T.bit_length() - 1)  # start and steps of the last block; it may be cut short
        stretch = max(block // 2, T - block + 1)
        return self._reach(1, self.test_1, longest), self._reach(2, self.test_2, stretch)

    def _reach(self, test: int, factor: float, steps: int) -> Reach:
        # a horizon of 2^k - 1 ends with a whole block of 2^(k - 1) steps
        far = [
            k
            for k in range(1, _LONGEST)
            if factor * self._rho_hat(1 << (k - 1), (1 << k) - 1) > 1.0
        ]
        first = far[-1] + 1 if far else 1
        horizon = (1 << first) - 1 if first < _LONGEST else None
        return Reach(test, factor * self._rho_hat(steps, self.horizon), horizon)

    def _learner(self, t: int, order: int) -> AdaptiveUCRL:
        """Return a fresh learner, with draws of its own, for the copy that starts at t."""
        high, low = key(self.seed, f"agents.{self.id}/{t}/{order}")
        options = {
            "horizon": self.horizon,
            "reward_range": self.reward_range,
            "seed": (int(high) << 64) | int(low),
            **self._passed_on,
        }
        made = quietly(AdaptiveUCRL, self.space, options)
        made._warned = self._warned  # what one copy has said need not be said again
        return made

    def _schedule(self) -> None:
        """Draw the copies that start now."""
        copies = list(self._copies)
        for order in starts(self._key, self.t, self._tally):
            copies[order] = Copy(order, self.t, self._learner(self.t, order))
        self._copies = copies
        self._scheduled = self.t

    def _live(self) -> list[Copy]:
        """Return the copies that live at `self.t`, the shortest first."""
        return [copy for copy in self._copies if copy.is_live(self.t, self._tally.start)]

    def _choose(self, state: int) -> int:
        if self._scheduled != self.t:
            self._schedule()
        copy = self._acting = self._live()[0]
        action = copy.learner.act(state)
        self._warned |= copy.learner._warned
        self._list_episode()
        return action

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        assert self._acting is not None
        following = self._after(reward, self._acting.gain)
        self._next = Following(*following, clock=self._acting.learner.t + 1)
        self._acting.learner.observe(state, action, reward, s_next)
        self._settle()

    def _settle(self) -> None:
        """Enter what the step led to; entering it twice changes nothing."""
        assert self._next is not None
        tally, restart, _ = self._next
        if restart is not None:
            self._restarts[sum(tally.fired) % self._restarts.size] = astuple(restart)
        self._tally = tally

    def _reached(self) -> tuple[int, int | None]:
        copy, following = self._acting, self._next
        if copy is None or following is None or copy.learner.t != following.clock:
            return self._tally.t + 1, self.last_state
        self._settle()  # it has learned
        return self._tally.t + 1, copy.learner.last_state

    def withdraw(self) -> None:
        """Take back the decision that waits for its outcome: it was not played."""
        super().withdraw()
        if self._acting is not None:
            self._acting.learner.withdraw()

    @property
    def _largest(self) -> float:
        return self._copies_largest

    def _list_episode(self) -> None:
        """List the episode that the copy that acts has just planned, if it has planned one."""
        from windage.kernels.swucrl2cw import RESTART

        copy = self._acting
        if copy is None or copy.learner.n_episodes == copy.episodes:
            return
        n = copy.learner.n_episodes
        rows = copy.learner.episode_rows(n - 1)
        self._planned.add(rows[-1], self.t, RESTART if n == 1 else int(rows[0]["reason"]))
        copy.gain, copy.episodes = float(rows[-1]["gain"]), n

    @property
    def n_episodes(self) -> int:
        """How many episodes have started."""
        return self._planned.total

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the episodes from number `first` (from 1 on) to the last one, as rows."""
        return self._planned.rows(first)

    @property
    def episode(self) -> Episode | None:
        """The episode planned last; None before the first decision."""
        return self._planned.current(self.t)

    @property
    def order(self) -> int:
        """n: the current block has 2^n steps."""
        return self._tally.order

    @property
    def copies(self) -> tuple[LiveCopy, ...]:
        """The copies that live now, the shortest first: it acts."""
        return tuple(copy.seen(self.horizon) for copy in self._live())

    @property
    def fired(self) -> dict[int, int]:
        """How often test 1 and test 2 have led to a restart."""
        return {1: self._tally.fired[0], 2: self._tally.fired[1]}

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """The restarts, the last ten thousand of them."""
        return tuple(Restart(*row) for row in self._kept_restarts().tolist())

    def _kept_restarts(self) -> NDArray[np.void]:
        total, size = sum(self._tally.fired), self._restarts.size
        return rows_of(self._restarts, max(1, total - size + 1), total)

    def explain(self, s: int) -> MasterExplanation:
        """Say which copies live, what the tests have seen, and what the copy that acts thinks."""
        state, live, tally = self.space.check_state(s), self._live(), self._tally
        if not live or live[0].episodes == 0:
            raise CallOrderError(
                "nothing has been planned for this step yet",
                field="explain",
                fix="call act(s) first",
            )
        steps = self.t - tally.start
        return MasterExplanation(
            t=self.t,
            order=tally.order,
            start=tally.start,
            copies=self.copies,
            acting=live[0].order,
            lowest_gain=tally.lowest,
            missed=tally.missed / max(1, steps),
            threshold=self._bar(2, steps),
            fired=self.fired,
            restarts=self.restarts,
            reach=self.reach(),
            learner=live[0].learner.explain(state),
        )

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        self._list_episode()
        live, planned = self._live(), self._planned
        values = {
            "scheduled": self._scheduled == self.t,
            "copies": [(copy.order, copy.start) for copy in live],
            "episodes": planned.total,
            "episode": [row.item() for row in planned.rows(planned.total)],
        }
        restarts = self._kept_restarts()
        arrays = {f"restarts.{name}": restarts[name] for name in _RESTART.names or ()}
        for copy in live:
            arrays[f"copy.{copy.order}"] = np.frombuffer(copy.learner.state(), np.uint8)
        return values | self._tally.saved(), arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        t = self.t
        self._tally = tally = Tally.restored(values["tally"], t, len(self._copies))
        self._planned.restore(values["episodes"], values["episode"], t)
        restarts = self._kept_restarts()
        take_back({f"restarts.{name}": restarts[name] for name in _RESTART.names or ()}, arrays)
        times = np.append(restarts["t"], t)
        if (np.diff(times, prepend=0) < 1).any() or not np.isin(restarts["test"], (1, 2)).all():
            raise ValueError("restarts")
        put_rows(self._restarts, sum(tally.fired), restarts)
        self._scheduled = t if values["scheduled"] else 0
        for m, start in values["copies"]:
            order = as_integer(m, "copies", low=0, high=tally.order)
            self._copies[order] = self._restored_copy(order, start, arrays[f"copy.{order}"])
        live = self._live()
        if live:  # the longest is as old as the block
            whole = (live[-1].order, live[-1].start) == (tally.order, tally.start)
        else:
            whole = t == tally.start and not self._scheduled
        if len(live) != len(values["copies"]) or not whole:
            raise ValueError("copies")
        waiting = [copy.learner._pending for copy in live]
        if self._scheduled:
            self._acting = live[0]
            waiting.remove(self._pending)
        if any(waiting) or (self._pending is not None and not self._scheduled):
            raise ValueError("pending")

    def _restored_copy(self, order: int, start: int, data: NDArray[Any]) -> Copy:
        """Return a copy that was saved, if the agent can have scheduled it."""
        tau = as_integer(start, "start", low=1) - self._tally.start
        learner, mine = AdaptiveUCRL.from_state(data.tobytes()), self._learner(start, order)
        drawn = tau % (1 << order) == 0 and is_drawn(self._key, start, order, self._tally)
        if not drawn or learner.configuration() != mine.configuration():
            raise ValueError(f"copy {order}")
        if learner.t - 1 > self.t - start:
            raise ValueError(f"the clock of copy {order}")
        learner._warned = self._warned
        gain = math.nan if learner.episode is None else learner.episode.gain
        return Copy(order, start, learner, learner.n_episodes, gain)
