"""The contract of every agent: act, observe, and a state that survives a restart.

A subclass says how it chooses (`_choose`), what it learns (`_learn`) and which of its arrays must
survive (`_survivors`); this class sees to it that calls come in an order that has a meaning and
that a bad call changes nothing. Its arguments are one frozen record, `config`.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage.agents.configuration import (
    arguments,
    declare,
    is_ours,
    named,
    parameters,
    plain,
)
from windage.agents.exclusive import exclusive
from windage.agents.state import Blob, pack, take_back, unpack
from windage.confidence.confidence import one_each
from windage.confidence.tuning import Budgets, is_left_open
from windage.errors import (
    CallOrderError,
    HorizonReached,
    InputError,
    NotConverged,
    StateError,
    heard_here,
)
from windage.spaces import StateActions, as_space
from windage.validation import (
    as_horizon,
    as_integer,
    as_integers,
    as_range,
    as_real,
    as_seed,
    shown,
)

if TYPE_CHECKING:
    from windage.kernels.exogenous import ExogenousDynamics
    from windage.kernels.rollout import Block
    from windage.kernels.simulator import Dynamics

__all__ = [
    "LARGEST",
    "Agent",
    "KernelAgent",
    "ProgressAgent",
    "Scale",
    "Steps",
    "missing_horizon",
    "quietly",
]

A = TypeVar("A")

LARGEST = 1e290
"""Rewards up to here can be summed over any horizon."""


class Scale(NamedTuple):
    """Takes rewards from [low, low + width] to [0, 1]; refuses those outside [least, most].

    Without a declared range rewards are taken as they are.

    Examples
    --------
    >>> Scale.of((-1.0, 3.0)).unit(1.0), Scale.of(None).unit(1.0)
    (0.5, 1.0)
    """

    low: float
    width: float
    least: float
    most: float

    @classmethod
    def of(cls, declared: tuple[float, float] | None, largest: float = LARGEST) -> Scale:
        """Return the scale of a declared range; `largest` is the limit if there is none."""
        low, high = declared or (0.0, 1.0)
        least, most = declared or (-largest, largest)
        return cls(low, high - low, least, most)

    def unit(self, reward: float) -> float:
        """Return a reward, or a mean of rewards, in units of the range."""
        return (reward - self.low) / self.width

    def checked(self, reward: object) -> float:
        """Return a reward, or say that it is impossible."""
        return as_real(reward, "reward", low=self.least, high=self.most)

    def refusal(self, reward: float, t: int) -> InputError:
        """Return what to raise if a reward at time t is outside."""
        declared = "declared" if self.least == self.low else "largest possible"
        return InputError(
            f"{reward} is not in the {declared} range [{self.least:g}, {self.most:g}]",
            field="reward",
            where=f"t={t}",
            fix="declare a wider reward_range, or none",
        )


def quietly(kind: Callable[..., A], space: StateActions, options: dict[str, Any]) -> A:
    """Make an agent whose warnings somebody else has given, or will give, already.

    In a context of its own: Ctrl-C in any line of it leaves nothing that would swallow warnings.
    """

    def make() -> A:
        heard_here.set([])
        return kind(space, **options)

    return copy_context().run(make)


def missing_horizon(agent: str) -> InputError:
    """Return what to raise if an agent is to be made without a horizon."""
    return InputError(
        f"{agent} needs to know how many steps it will decide",
        field="horizon",
        fix="pass horizon=T; wd.Doubling(lambda T: ...) makes agents where no T is known",
    )


class Steps(NamedTuple):
    """Steps in the order they were decided; rewards in the agent's units.

    A step that was never learned from was decided and withdrawn; its outcome is not looked at.
    `seen` has what `observe` is given of each step, None if it is given nothing of any.
    """

    states: NDArray[np.int64]
    learned: NDArray[np.bool_]
    pairs: NDArray[np.int64]
    rewards: NDArray[np.float64]
    afters: NDArray[np.int64]
    seen: Sequence[Mapping[str, Any] | None] | None = None

    def part(self, first: int, last: int | None = None) -> Steps:
        """Return the steps from `first` up to before `last`, sharing memory."""
        here = slice(first, last)
        return Steps(
            self.states[here],
            self.learned[here],
            self.pairs[here],
            self.rewards[here],
            self.afters[here],
            None if self.seen is None else self.seen[here],
        )

    def checked(self, space: StateActions) -> Steps:
        """Return these columns in the types that kernels take, or say which cannot be.

        Of a step that was not learned from only the state counts: its outcome comes back as zeros.
        """
        states = as_integers(self.states, "states", low=0, high=space.n_states - 1)
        n, learned = states.size, np.ascontiguousarray(self.learned)
        if learned.dtype != np.bool_ or learned.shape != (n,):
            raise InputError(
                f"has type {learned.dtype} and shape {learned.shape}",
                field="learned",
                fix=f"pass {n} booleans",
            )
        pairs, rewards, afters = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64)
        for field, column in (("pairs", self.pairs), ("afters", self.afters)):
            if np.shape(column) != (n,):
                raise InputError(
                    f"has shape {np.shape(column)}", field=field, fix=f"pass {n} integers"
                )
        outcome = np.asarray(self.pairs)[learned], np.asarray(self.afters)[learned]
        pairs[learned] = as_integers(outcome[0], "pairs", low=0, high=space.n_pairs - 1)
        afters[learned] = as_integers(outcome[1], "afters", low=0, high=space.n_states - 1)
        rewards[learned] = one_each(
            np.asarray(self.rewards)[learned] if np.shape(self.rewards) == (n,) else self.rewards,
            "rewards",
            int(learned.sum()),
            "step",
            low=-math.inf,
        )
        wrong = learned & (space.state_of[pairs] != states)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise InputError(
                f"{space.describe(int(pairs[i]))} is no pair of state {states[i]}",
                field=f"pairs[{i}]",
                fix="pass pairs of the states they were played in",
            )
        return Steps(states, learned, pairs, rewards, afters, self.seen)


_NOTHING = np.zeros((0, 2), np.int64)


class Agent(ABC):
    """An agent that acts one step at a time in a world with the given states and actions.

    Parameters
    ----------
    space
        States and actions.
    horizon
        T; after T observations the agent is done.
    seed
        Names the agent's own randomness; the world's noise has a seed of its own.
    reward_range
        If given, (lowest, highest): any other reward is refused. If not, any finite one is taken.
    """

    id: ClassVar[str]
    """What saved states call it; of a class of one's own that has none, `module:Class`."""
    requires: ClassVar[tuple[str, ...]] = ()
    """What its kind must be told of the problem, beyond its states, actions and horizon.

    One whose numbers were chosen by hand requires less: `windage.agents.requires` says what.
    """
    auto_tuned: ClassVar[tuple[str, ...]] = ()
    """The parameters that are found from what it is told, unless they are given."""
    covers_drift: ClassVar[bool | None] = None
    """Whether a theorem bounds its regret on models that drift; None: it has no theorem."""
    bound: ClassVar[str] = "none"
    """How its regret is bounded, in words."""
    source: ClassVar[str] = ""
    """Where it comes from."""
    off_policy: ClassVar[bool] = False
    """Whether it learns the same of a step whoever chose the action: it can be given steps of
    another agent, and outcomes that come late, at their place."""
    counts_in_loop: ClassVar[bool] = False
    """Whether `play` takes the census of a block; others are stopped to count `in_memory`."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Parameters of the class above that this one decides itself."""
    derived: ClassVar[tuple[str, ...]] = ()
    """Attributes that are found when it is made; the configuration has the argument, if any."""
    Config: ClassVar[type[msgspec.Struct]]
    """The type of `config`: a frozen record with a field for every argument."""
    __signature__: ClassVar[inspect.Signature]
    _given: dict[str, Any]  # the arguments as they were passed

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if ":" in getattr(cls, "id", ":") and "id" not in vars(cls) and not is_ours(cls):
            cls.id = f"{cls.__module__}:{cls.__qualname__}"
        for old, new in (("told", "requires"), ("found", "auto_tuned")):
            if old in vars(cls) and new not in vars(cls):
                warnings.warn(
                    f"{cls.__qualname__}.{old} is now {new}", DeprecationWarning, stacklevel=2
                )
                setattr(cls, new, vars(cls)[old])
        declare(cls)

    def __new__(cls, *positional: Any, **given: Any) -> Self:
        """Keep the arguments for the configuration; `__init__` checks them."""
        if "structure" in given and "structure" not in parameters(cls) and is_ours(cls):
            raise InputError(
                f"{cls.__name__} learns no laws, and has no use for what is known of them",
                field="structure",
                fix="give it to MultiScale, CertaintyEquivalent, SWPSRL or PSRL",
            )
        if positional and "horizon" in parameters(cls) and "horizon" not in given and is_ours(cls):
            raise missing_horizon(cls.__name__)
        self = super().__new__(cls)
        self._given = given | named(cls, positional) if len(positional) > 1 else given
        return self

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        seed: int = 0,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        self.space = as_space(space)
        self.horizon = as_horizon(horizon, error=InputError)
        self.seed = as_seed(seed)
        self.reward_range = None if reward_range is None else as_range(reward_range, "reward_range")
        self.t = 1
        """The time of the next decision, from 1 on."""
        self.last_state: int | None = None
        """The state the last observation led to."""
        self.overridden = 0
        """How often another action than the advised one was played."""
        self._pending: tuple[int, int] | None = None
        self._seen = _NOTHING  # what the step in hand showed
        self._overridden_then = 0  # what `overridden` is once the step in hand is learned

    @exclusive
    def act(self, s: int) -> int:
        """Return the action to play in state `s`; asked again before `observe`, the same one."""
        state = self.space.check_state(s)
        if self._pending is not None:
            if self._pending[0] != state:
                raise CallOrderError(
                    f"a decision in {self.space.describe_state(self._pending[0])} is waiting for "
                    f"its outcome, now {self.space.describe_state(state)} was asked for",
                    field="act",
                    where=f"t={self.t}",
                    fix="call observe(s, a, reward, s_next) first",
                )
            return self._pending[1]
        if self.t > self.horizon:
            raise HorizonReached(
                f"all {self.horizon} steps have been played",
                fix="make an agent with a larger horizon",
            )
        try:
            action = self._choose(state)
            self._pending = (state, action)
        except BaseException:
            self.withdraw()  # whoever was asked for it waits no longer
            raise
        return action

    @exclusive
    def observe(
        self,
        s: int,
        a: int,
        reward: float,
        s_next: int,
        seen: Mapping[str, Any] | None = None,
    ) -> None:
        """Take in what followed the last decision: action played, reward, next state.

        `seen` says what the step showed of the variables of a structure, by name: an outcome, or
        the (lowest, highest) it may have been. An agent without a structure has no use for it.
        """
        state = self.space.check_state(s)
        action = self.space.check_action(state, a)
        after = self.space.check_state(s_next, "s_next")
        value = self._check_reward(reward)
        told = self._check_seen(int(self.space.offsets[state]) + action, value, after, seen)
        if self._pending is None:
            raise CallOrderError(
                "there is no decision to learn about",
                field="observe",
                where=f"t={self.t}",
                fix="call act(s) first",
            )
        if self._pending[0] != state:
            raise CallOrderError(
                f"the decision was asked for in {self.space.describe_state(self._pending[0])}, "
                f"not in {self.space.describe_state(state)}",
                field="observe",
                where=f"t={self.t}",
                fix="observe the state that act was called with",
            )
        with self.in_step():
            self._overridden_then = self.overridden + (action != self._pending[1])
            self._seen = told
            self._learn(state, action, value, after)
            self.overridden, self._pending = self._overridden_then, None
            self.last_state = after
            self.t += 1

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Keep the clock with what was learned if a step is cut short, by Ctrl-C or an error.

        What has been learned counts as played: Ctrl-C in a compiled loop is told when the loop is
        over. So the step in hand is finished or was never begun, and nothing is counted twice.
        """
        before = self.t, self.last_state, self.overridden, self._pending
        self._overridden_then = self.overridden
        try:
            yield
        except GeneratorExit:  # cut short before the step or after it: all is well
            raise
        except BaseException:
            reached = self._reached()
            if reached is None:  # it learns nothing: a step counts when its clock has moved
                reached = self.t, self.last_state
            if reached[0] != before[0]:
                self.overridden, self._pending = self._overridden_then, None
                self.t, self.last_state = reached
            else:
                self.t, self.last_state, self.overridden, self._pending = before
            raise

    def _reached(self) -> tuple[int, int | None] | None:
        """Return the time of the next step by what has been learned, and the state it starts in.

        None: the agent learns nothing that could be ahead of its clock.
        """
        return None

    def has_loop(self) -> bool:
        """Whether a compiled loop, `play`, is all there is to it: no subclass has its own rules."""
        for kind in type(self).__mro__:
            if {"play", "_kernel"} & set(vars(kind)):
                return True
            if {"act", "observe", "_choose", "_learn"} & set(vars(kind)):
                return False
        return False

    @exclusive
    def replay(self, steps: Steps) -> NDArray[np.int64]:
        """Live through recorded steps; returns what it would have played, as pairs.

        Learners with a compiled loop replay in one as well, a hundred times faster than by act and
        observe and to the same bit; any other agent is called step by step.

        Examples
        --------
        >>> import windage as wd
        >>> model = wd.envs.make("riverswim", horizon=500)
        >>> agent = wd.UCRL2(model.space, horizon=500)
        >>> run = wd.run(model, agent, seed=1)
        >>> pairs = model.space.offsets[run.states[:-1]] + run.actions
        >>> lived = Steps(run.states[:-1], np.full(500, True), pairs, run.rewards, run.states[1:])
        >>> twin = wd.UCRL2(model.space, horizon=500)
        >>> bool((twin.replay(lived) == pairs).all()), twin.state() == agent.state()
        (True, True)
        """
        steps = self._replayable(steps)
        advised = np.zeros(steps.states.size, np.int64)
        actions = self.space.action_of[steps.pairs].tolist()
        columns = (steps.states, steps.learned, steps.rewards, steps.afters)
        for i, (s, learned, reward, after) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            advised[i] = self.space.pair(s, self.act(s))
            if learned:
                seen = None if steps.seen is None else steps.seen[i]
                self.observe(s, actions[i], reward, after, *(() if seen is None else (seen,)))
            else:
                self.withdraw()
        return advised

    def _replayable(self, steps: Steps) -> Steps:
        """Return steps that a compiled loop may live through, or say which it may not."""
        steps = steps.checked(self.space)
        if steps.states.size and self.t + int(steps.learned[:-1].sum()) > self.horizon:
            raise HorizonReached(
                f"{int(steps.learned.sum())} steps from t = {self.t} on do not end by "
                f"T = {self.horizon}",
                field="replay",
                fix="make an agent with a larger horizon",
            )
        return steps

    def _advance(self, steps: Steps, advised: NDArray[np.int64]) -> None:
        """Set the clock and the counts every agent has after so many steps."""
        lived = np.flatnonzero(steps.learned)
        self.t += lived.size
        self.overridden += int((steps.pairs[lived] != advised[: steps.states.size][lived]).sum())
        if lived.size:
            self.last_state = int(steps.afters[lived[-1]])

    def withdraw(self) -> None:
        """Take back the decision that waits for its outcome: it was not played."""
        self._pending = None

    @exclusive
    def state(self) -> bytes:
        """Return all that must survive a restart, versioned and checksummed."""
        values, arrays = self._saved()
        values |= {
            "t": self.t,
            "last_state": self.last_state,
            "overridden": self.overridden,
            "pending": self._pending,
        }
        return pack(Blob(self.id, self.configuration(), values, arrays))

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options; one that can use budgets is tuned by them.

        One that can use a bound on the diameter, "D" in `requires`, takes `diameter` too.
        """
        del budgets
        return cls(space, horizon=horizon, **options)

    @classmethod
    def requires_with(cls, options: dict[str, Any], budgets: Budgets | None) -> tuple[str, ...]:
        """Return what the agent that `configured` makes of these options and budgets requires.

        Numbers that were chosen by hand require nothing, and neither does "oblivious".
        """
        if not cls.auto_tuned:
            return cls.requires
        open_ = any(is_left_open(options.get(name)) for name in cls.auto_tuned)
        return cls.requires if open_ and budgets is not None else ()

    @classmethod
    def from_state(cls, data: bytes, **given: Any) -> Self:
        """Return the agent that `state` saved; it goes on as if it had never stopped.

        What a saved state does not hold, such as the model an informed agent sees, is given again.
        """
        blob = unpack(data)
        if blob.agent != cls.id:
            raise StateError(
                f"this is a saved {blob.agent!r} agent, not {cls.id!r}",
                field="state",
                fix="use windage.agents.restore",
            )
        with _impossible():
            agent = cls.remade(blob.configuration, **given)
        return agent._continued(blob)

    @classmethod
    def remade(cls, configuration: dict[str, Any] | msgspec.Struct, **given: Any) -> Self:
        """Return a new agent like the one whose `config` or `configuration()` this was."""
        if isinstance(configuration, msgspec.Struct):
            configuration = msgspec.structs.asdict(configuration)
        options = configuration | given
        space = options.pop("space")
        if not isinstance(space, StateActions):
            space = StateActions(**space)
        return quietly(cls, space, options)

    def _continued(self, blob: Blob) -> Self:
        """Return this new agent where the saved one stood."""
        with _impossible():
            self._take_up(blob.values)
            self._restored(blob.values, blob.arrays)
        return self

    def _take_up(self, values: dict[str, Any]) -> None:
        """Take back what every agent has."""
        self.t = as_integer(values["t"], "t", low=1, high=self.horizon + 1)
        self.overridden = as_integer(values["overridden"], "overridden", low=0, high=self.t)
        if values["last_state"] is not None:
            self.last_state = self.space.check_state(values["last_state"], "last_state")
        if values["pending"] is not None:
            state, action = values["pending"]
            self._pending = self.space.check_state(state), self.space.check_action(state, action)

    @cached_property
    def config(self) -> msgspec.Struct:
        """The arguments it was made with, checked: agents of a class with equal ones are alike."""
        return type(self).Config(**arguments(self))

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return plain(self.config)

    @abstractmethod
    def _choose(self, state: int) -> int:
        """Return the action for time `self.t`."""

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:  # noqa: B027
        """Learn from the step at time `self.t`."""

    def _survivors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that must survive a restart, as they stand; restored in place."""
        return {}

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the numbers and arrays that must survive, beyond those every agent has."""
        return {}, {name: array.copy() for name, array in self._survivors().items()}

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `_saved` gave: arrays of the same types and shapes, numbers finite."""
        take_back(self._survivors(), arrays)
        self._check_restored(values)

    def _check_restored(self, values: dict[str, Any]) -> None:  # noqa: B027
        """Raise ValueError, with what is wrong, if the restored arrays are impossible."""

    def _require_unstarted(self, started: bool) -> None:
        if started or self.t > 1 or self._pending is not None:
            raise CallOrderError(
                "the agent has started to act",
                field="preload",
                where=f"t={self.t}",
                fix="preload before the first call of act",
            )

    def _past_step(
        self,
        s: int,
        a: int,
        reward: float,
        s_next: int,
        seen: Mapping[str, Any] | None,
        *,
        started: bool,
    ) -> tuple[int, float, int]:
        """Return pair, reward and next state of a step before t = 1; too late once it has acted."""
        self._require_unstarted(started)
        pair = self.space.pair(s, a)
        after = self.space.check_state(s_next, "s_next")
        value = self._check_reward(reward)
        self._seen = self._check_seen(pair, value, after, seen)
        return pair, value, after

    @property
    def _counted(self) -> float:
        """How many of the last samples count; 0 if a late one cannot be put in its place."""
        return math.inf if self.off_policy else 0

    @property
    def _largest(self) -> float:
        """The largest reward that is taken without a declared range."""
        return math.inf

    @cached_property
    def _scale(self) -> Scale:
        """How rewards are taken to [0, 1], and which are refused."""
        return Scale.of(self.reward_range, self._largest)

    def _check_reward(self, reward: object) -> float:
        return self._scale.checked(reward)

    def _check_seen(
        self,
        pair: int,
        reward: float,
        after: int,
        seen: Mapping[str, Any] | None,
    ) -> NDArray[np.int64]:
        """Return what a step showed of each variable, as `kernels.simulator.Dynamics` has it."""
        if seen is not None and not isinstance(seen, Mapping):
            raise InputError(
                f"{shown(seen)} does not say which variable it is about",
                field="seen",
                fix='name the variables of the structure: seen={"demand": 7}',
            )
        return _NOTHING

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space!r}, horizon={self.horizon}, t={self.t})"


declare(Agent)


@contextmanager
def _impossible() -> Iterator[None]:
    """Say of whatever goes wrong that a saved state is damaged."""
    try:
        yield
    except StateError:
        raise
    except (
        *(LookupError, TypeError, ValueError, ArithmeticError, AttributeError),
        *(msgspec.ValidationError, RecursionError),
    ) as err:
        raise StateError(
            f"the saved values are impossible ({err})",
            field="state",
            fix="restore the agent from another copy",
        ) from None


_CHUNK = 50  # steps that are played as plain Python before it is asked again whether to compile
_SMALL = 2_000  # cells of (pair, next state); in larger models one plan may take seconds


class KernelAgent(Agent):
    """Agents that are a compiled structure: one loop plays them all (`windage.kernels.rollout`).

    A subclass gives the structure: a NamedTuple for whose class `act` and `observe` are
    registered.
    """

    @cached_property
    def _compiled(self) -> set[tuple[Any, type, type]]:
        """Loops, by kind of model and noise, that are compiled for it."""
        return set()

    @property
    @abstractmethod
    def _kernel(self) -> Any:
        """The compiled structure as it stands."""

    def _make_room(self, steps: int) -> None:
        """Make room for so many more steps."""

    def _look_back(self, rewards: NDArray[np.float64]) -> None:
        """Warn of the steps with these rewards, which were just learned from."""

    def _not_converged(self) -> Exception:
        """Return what to raise if `act` gave no pair; agents with EVI say how far it came."""
        return NotConverged("planning failed", field="act", fix="report it with the agent's state")

    def _choose(self, state: int) -> int:
        from windage.kernels.rollout import decide

        self._make_room(1)
        pair = decide(self._kernel, self.t, state)
        if pair < 0:
            raise self._not_converged()
        return int(self.space.action_of[pair])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        from windage.kernels.rollout import learn

        self._make_room(1)
        pair = int(self.space.offsets[state]) + action
        learn(self._kernel, self.t, state, pair, reward, s_next, self._seen)
        self._look_back(np.array([reward]))

    def play(self, model: Dynamics | ExogenousDynamics, state: int, block: Block) -> int:
        """Play a whole block in one loop; returns the state it ends in."""
        from windage.kernels.rollout import NOT_CONVERGED, PLAYED

        self._make_room(block.states.size)
        state, n, how = self._play(model, state, block)
        self._look_back(block.rewards[:n])
        if how != PLAYED:
            self.last_state = state
            self.t += n
            if how == NOT_CONVERGED:
                raise self._not_converged()
            raise self._refusal(float(block.rewards[n]))
        return state

    def _play(
        self, model: Dynamics | ExogenousDynamics, state: int, block: Block
    ) -> tuple[int, int, int]:
        """Return the last state, the steps played and how they ended."""
        from windage.kernels import rollout
        from windage.kernels.jit import Tier

        loop: Any = rollout.play
        counting: tuple[Any, ...] = ()
        if block.census is not None:
            every, _, counts = block.census
            loop, counting = rollout.play_counting, (every, block.census.before, counts)
        given = (self._kernel, float(self._scale.least), float(self._scale.most), model)
        kind = loop, type(model), type(model.noise)
        if kind in self._compiled or self.space.n_pairs * self.space.n_states > _SMALL:
            state, n, how = loop(*given, state, self.t, *block.columns, *counting)
            return int(state), n, how
        tier = Tier(loop, (*given, state, self.t, *block.columns, *counting))
        done, size, how, speed = 0, block.states.size, rollout.PLAYED, 0.0
        while done < size and how == rollout.PLAYED:
            interprets = tier.interprets((size - done) * speed)
            part = block.part(done, min(size, done + _CHUNK) if interprets else size)
            play = tier if interprets else loop
            before = time.perf_counter()
            state, n, how = play(*given, state, self.t + done, *part.columns, *counting)
            speed = (time.perf_counter() - before) / max(1, n)
            done += n
            if not interprets:
                self._compiled.add(kind)  # to ask for types takes as long as thousands of steps
        return int(state), done, how

    def _refusal(self, reward: float) -> InputError:
        """Return what to raise for a reward that is not accepted at time t."""
        return self._scale.refusal(reward, self.t)


class ProgressAgent(KernelAgent):
    """Kernel agents without a window: the structure counts its own steps in `progress`."""

    _table: Any

    @property
    def _largest(self) -> float:
        return LARGEST

    @property
    def _kernel(self) -> Any:
        return self._table

    def _reached(self) -> tuple[int, int | None]:
        steps, state = (int(self._table.progress[name][0]) for name in ("taken", "state"))
        return steps + 1, state if steps > 0 else None

    def _check_restored(self, values: dict[str, Any]) -> None:
        progress = self._table.progress
        progress["taken"], progress["state"] = self.t - 1, self.last_state or 0
