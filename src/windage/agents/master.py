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
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from windage.agents import master_state
from windage.agents.alarms import Alarms, Following, Reach, Restart, Restarts, Tally
from windage.agents.base import Agent
from windage.agents.copies import Copy, LiveCopy, MasterExplanation, Planned, starts
from windage.agents.episodes import Episode
from windage.agents.fixed import fixed
from windage.agents.hearing import quietly
from windage.agents.known import Budgets
from windage.agents.ucrl2 import AdaptiveUCRL
from windage.confidence.radii import Radii
from windage.errors import CallOrderError, InputError
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import as_real, require_memory

__all__ = ["MASTER"]


@fixed("diameter", "delta", "radii", "ties", "slack")
class MASTER(Agent):
    """MASTER over UCRL with adaptive widening, for models that drift by amounts nobody knows.

    The episodes of all copies form one list, in the order they were planned. One that is planned
    ends, for that list, when the next is, whichever copy plans it; a copy that wakes up goes on
    with its old plan and is not listed again.

    Parameters
    ----------
    diameter
        A bound on the diameter of every model.
    delta, radii, ties, slack
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
    told: ClassVar[tuple[str, ...]] = ("D",)
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
        }
        self._key = key(self.seed, f"agents.{self.id}")
        self._warned = False
        first = self._learner(0, 0)  # says what is wrong with the options
        self._passed_on = {name: first.configuration()[name] for name in self._passed_on}
        self._copies_largest = first._largest
        self.diameter, self.delta = first.diameter, first.delta
        self.radii, self.ties, self.slack = first.radii, first.ties, first.slack
        given = {"log_factor": log_factor, "regret_constant": regret_constant}
        factor, constant = (
            None if value is None else as_real(value, name, low=0.0)
            for name, value in given.items()
        )
        self._alarms = Alarms(
            horizon=self.horizon,
            delta=self.delta,
            size=max(1.0, self.diameter) * self.space.n_states * math.sqrt(space.mean_actions),
            width=self._scale.width,
            test_1=as_real(test_1, "test_1", low=0.0),
            test_2=as_real(test_2, "test_2", low=0.0),
            factor=factor,
            constant=constant,
        )
        orders = self.horizon.bit_length()  # block n starts at t = 2^n or later
        require_memory(orders * Copy(0, 0, first).room(), "space", fix="use fewer states")
        # a place for each order, since no two copies of one order live at once; always filled, so
        # that memory is the same from the first step to the last
        learners = [first, *(self._learner(0, order) for order in range(1, orders))]
        self._copies = [Copy(order, 0, learner) for order, learner in enumerate(learners)]
        self._acting: Copy | None = None  # whoever decided last
        self._scheduled = 0  # the last time for which copies were scheduled
        self._tally = Tally(0, 0, 1, math.inf, 0.0, (0.0,) * orders, (0, 0))
        self._next: Following | None = None  # what the step in hand leads to
        self._restarts, self._planned = Restarts(self.horizon), Planned(self.horizon)

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
        return self._alarms.constants(self.horizon)[0]

    @property
    def regret_constant(self) -> float:
        """The constant c of C(t) = c sqrt(t)."""
        return self._alarms.constants(self.horizon)[1]

    def reach(self) -> tuple[Reach, Reach]:
        """Say of both tests whether they can fire before the horizon, and from which on if not."""
        return self._alarms.reach()

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
        live = [(copy.order, copy.start) for copy in self._live()]
        following = self._alarms.after(self._tally, reward, self._acting.gain, live)
        self._next = Following(*following, clock=self._acting.learner.t + 1)
        self._acting.learner.observe(state, action, reward, s_next)
        self._settle()

    def _settle(self) -> None:
        """Enter what the step led to; entering it twice changes nothing."""
        assert self._next is not None
        tally, restart, _ = self._next
        if restart is not None and self._restarts.total < sum(tally.fired):
            self._restarts.add(restart)
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
        from windage.kernels.rules import RESTART

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
        return self._restarts.listed()

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
            threshold=self._alarms.bar_2(steps),
            fired=self.fired,
            restarts=self.restarts,
            reach=self.reach(),
            learner=live[0].learner.explain(state),
        )

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        alarms = self._alarms
        return super().configuration() | {
            **self._passed_on,
            "test_1": alarms.test_1,
            "test_2": alarms.test_2,
            "log_factor": alarms.factor,
            "regret_constant": alarms.constant,
        }

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        self._list_episode()
        return master_state.saved(self)

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        master_state.restore(self, values, arrays)
