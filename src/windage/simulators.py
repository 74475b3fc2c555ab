"""Worlds an agent can act in, one step at a time: a `DriftingMDP`, or anybody's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from windage.errors import CallOrderError, HorizonReached, InputError, WindageError
from windage.kernels.simulator import BERNOULLI, Bernoulli, Dynamics, Spread, step
from windage.models import DriftingMDP
from windage.rng import key, stream
from windage.spaces import StateActions, as_space
from windage.validation import as_horizon, as_integer, as_real, as_seed, shown

if TYPE_CHECKING:
    from windage.kernels.exogenous import ExogenousDynamics
    from windage.structure.laws import Laws, Moving, Tabulated

__all__ = ["Foreign", "FunctionWorld", "Problem", "Simulator", "world_of"]


@runtime_checkable
class Problem(Protocol):
    """A world of one's own: what `run` needs besides a `DriftingMDP`.

    One whose steps show the outcomes of a structure's variables says which, after each of them, as
    `seen`. One that also knows what it is, as `model` (a `DriftingMDP`) and as `mean_reward` of the
    last step, r_t(s_t, a_t), gets its regret computed like any model's.
    """

    space: StateActions
    horizon: int

    def reset(self, seed: int) -> int:
        """Start again; return the first state."""
        ...

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward and the next state."""
        ...


class Simulator:
    """A `DriftingMDP` played step by step: the same draws as a compiled run, from Python.

    Attributes
    ----------
    t
        The time of the next step.
    state
        The state it starts in.
    mean_reward
        r_t(s_t, a_t) of the last step, NaN before the first.
    shows
        Whether the model has a structure, so that steps show outcomes of its variables.
    seen
        What the last step showed of each, an outcome or (lowest, highest), as `observe` takes it;
        None if the model has no structure, and before the first step.

    Examples
    --------
    >>> import windage as wd
    >>> simulator = Simulator(wd.envs.make("two-state-cosine"), seed=0)
    >>> reward, state = simulator.step(1)
    """

    def __init__(self, problem: DriftingMDP, seed: int = 0, *, state: int = 0, t: int = 1) -> None:
        self.problem = problem
        self.space = problem.space
        self.horizon = problem.horizon
        self.seed = as_seed(seed)
        self.state = self.space.check_state(state)
        self.t = as_integer(t, "t", low=1)
        self.mean_reward = math.nan
        self._world: Dynamics | ExogenousDynamics | None = None
        self._ahead = 1
        self._played = False

    def reset(self, seed: int) -> int:
        """Start again at t = 1 in state 0 with another seed."""
        self.__init__(self.problem, seed)  # type: ignore[misc]
        return self.state

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward and the next state."""
        if self.t > self.horizon:
            raise HorizonReached(f"all {self.horizon} steps have been played", fix="call reset")
        pair = self.space.pair(self.state, action)
        self.mean_reward, reward, after = step(self.world(self._ahead), self.t, pair)
        self.t += 1
        self.state, self._played = int(after), True
        return reward, self.state

    @property
    def shows(self) -> bool:
        """Whether steps show the outcomes of variables."""
        return self.problem.structure is not None

    @property
    def seen(self) -> dict[str, Any] | None:
        """What the last step showed of each variable."""
        structure = self.problem.structure
        if structure is None or not self._played or self._world is None:
            return None
        return {
            variable.name: variable.outcomes[low]
            if low == high
            else (variable.outcomes[low], variable.outcomes[high])
            for variable, (low, high) in zip(
                structure.variables, self._world.seen.tolist(), strict=True
            )
            if low <= high
        }

    def world(self, steps: int) -> Dynamics | ExogenousDynamics:
        """Return the compiled world from now on, made for `steps` further steps if need be."""
        if self._world is None or not self._world.first <= self.t <= self._world.last:
            last = min(self.t + steps - 1, self.horizon)
            self._world = world_of(self.problem, self.seed, self.t, last)
            self._ahead = min(2 * self._ahead, 1 << 10)  # cheap to start, cheap to go on
        return self._world


def world_of(
    problem: DriftingMDP, seed: int, first: int, last: int
) -> Dynamics | ExogenousDynamics:
    """Return what a compiled loop needs from `first` to `last`, or as far as one piece goes."""
    if problem._laws is not None:
        return _exogenous(problem, problem._laws, seed, first, last)
    tables = problem.source.tables(first, last)
    return Dynamics(
        tables.first, tables.last, 0, problem.space.n_pairs, *tables[2:],
        _noise(problem, seed), key(seed, "world.base"), key(seed, "world.state"),
        np.zeros((0, 2), np.int64),
    )  # fmt: skip


def _noise(problem: DriftingMDP, seed: int) -> Bernoulli | Spread:
    code, of_rewards = problem.noise.code, key(seed, "world.reward")
    if code == BERNOULLI:
        return Bernoulli(of_rewards)
    return Spread(of_rewards, code, float(problem.noise.spread))


_CELLS = 1 << 21  # so many probabilities of laws at a time: 16 MB


def _exogenous(
    problem: DriftingMDP, laws: Laws, seed: int, first: int, last: int
) -> ExogenousDynamics:
    """Return the same for a model whose variables are drawn."""
    from windage.kernels.exogenous import ExogenousDynamics, Fallen, Learned

    structure, known = laws.structure, laws.drawn
    last = min(last, first + max(1, _CELLS // max(1, known.width)) - 1)
    of_rewards, T = key(seed, "world.reward"), problem.horizon
    noise: Fallen | Learned
    if structure.reward is not None:
        noise = Fallen(of_rewards, structure.reward, np.empty(known.most))
    else:
        assert problem._learned is not None
        low, high = structure.reward_range
        table = _reward_table(problem._learned, first, min(last, T))
        noise = Learned(of_rewards, low, high - low, _noise(problem, seed), *table, first)
    return ExogenousDynamics(
        first=first,
        last=last,
        ahead=0,
        law_of=known.law_of,
        drawn=known.drawn,
        exact=known.exact,
        sizes=structure.law_sizes,
        place=known.place,
        stride=known.stride,
        cumulative=known.cumulative(first, last),
        keys=np.stack([key(seed, f"world.outcome.{name}") for name in known.names]),
        joint=structure.first,
        next_state=structure.next_state,
        spans=known.spans,
        noise=noise,
        seen=np.tile(np.array([0, -1], np.int64), (len(structure.variables), 1)),
    )


def _reward_table(
    rewards: Moving | Tabulated, first: int, last: int
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
    """Return mean rewards of bases, and bases and weights of every time."""
    side = getattr(rewards, "side", None)
    if side is not None:
        return np.stack(side.parts), *side.active(first, last)
    rows = rewards.between(first, last)
    return rows, np.arange(len(rows), dtype=np.int32)[:, None], np.ones((len(rows), 1))


class FunctionWorld:
    """A simulator that is a Python function of (t, s, a, rng), as a problem for `run`.

    Parameters
    ----------
    function
        Returns (reward, next state). All that is random in it must come from `rng`, a NumPy
        generator that depends on the seed and on t alone: then every agent on one seed meets the
        same noise, and a run can be split anywhere.
    space, horizon
        States and actions; T.
    start
        The first state, or a function of a generator that draws it.

    Examples
    --------
    A queue that jobs come to more often as the day goes on:

    >>> import windage as wd
    >>> def step(t, jobs, servers, rng):
    ...     jobs = min(max(jobs + (rng.random() < 0.3 + 0.0004 * t) - servers, 0), 9)
    ...     return 1 - 0.09 * jobs - 0.05 * servers, int(jobs)
    >>> queue = FunctionWorld(step, space=wd.StateActions.uniform(10, 2), horizon=1000)
    >>> wd.run(queue, wd.agents.make("ucrl2", queue.space, horizon=1000), seed=0)
    Run(t=1..1000, seed=0, record='full', total_reward=..., reward only)
    """

    def __init__(
        self,
        function: Callable[[int, int, int, np.random.Generator], tuple[float, int]],
        *,
        space: StateActions,
        horizon: int,
        start: int | Callable[[np.random.Generator], int] = 0,
    ) -> None:
        if not callable(function):
            raise InputError(
                f"{shown(function)} cannot be called",
                field="function",
                fix="pass a function of (t, s, a, rng) that returns (reward, next state)",
            )
        self.function = function
        self.space = as_space(space)
        self.horizon = as_horizon(horizon)
        self.start = start if callable(start) else self.space.check_state(start, "start")
        self.t = 1
        self.state: int | None = None
        self._seed = 0

    def reset(self, seed: int) -> int:
        """Start again at t = 1."""
        self._seed = as_seed(seed)
        first = self.start
        if callable(first):
            first = first(stream(self._seed, "world.start"))
        self.t, self.state = 1, self.space.check_state(first, "start")
        return self.state

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward and the next state, both checked."""
        if self.state is None:
            raise CallOrderError("there is no state yet", field="step", fix="call reset(seed)")
        if self.t > self.horizon:
            raise HorizonReached(f"all {self.horizon} steps have been played", fix="call reset")
        chosen = self.space.check_action(self.state, action)
        rng = stream(self._seed, "world.function", self.t)
        where = f"t={self.t}, {self.space.describe_state(self.state)}, a={chosen}"
        try:
            answer = self.function(self.t, self.state, chosen, rng)
        except WindageError:
            raise
        except Exception as err:
            raise InputError(
                f"raised {type(err).__name__}: {err}",
                field="function",
                where=where,
                fix="mend the function, or the states and actions it is said to know",
            ) from err
        reward, self.state = _checked(answer, self.space, "function", where)
        self.t += 1
        return reward, self.state


def _checked(answer: Any, space: StateActions, field: str, where: str) -> tuple[float, int]:
    """Return the reward and the next state somebody's own world answered with."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InputError(
            f"returned {shown(answer)}", field=field, where=where, fix="return (reward, next state)"
        )
    state = space.check_state(answer[1], f"{field} at {where}: next state")
    return as_real(answer[0], f"{field} at {where}: reward"), state


class Foreign:
    """Somebody else's world with the attributes the loop uses."""

    def __init__(self, problem: Problem, state: int, t: int) -> None:
        self.problem = problem
        self.space = problem.space
        self.state = state
        self.t = t

    @property
    def mean_reward(self) -> float:
        """r_t(s_t, a_t) of the last step if the world tells it, else NaN."""
        return float(getattr(self.problem, "mean_reward", math.nan))

    @property
    def shows(self) -> bool:
        """Whether the world tells what steps show of variables."""
        return hasattr(self.problem, "seen")

    @property
    def seen(self) -> Mapping[str, Any] | None:
        """What the last step showed of them."""
        return getattr(self.problem, "seen", None)

    def step(self, action: int) -> tuple[float, int]:
        """Play an action; return the reward and the next state, both checked."""
        answer = self.problem.step(action)
        reward, self.state = _checked(answer, self.space, "problem.step", f"t={self.t}")
        self.t += 1
        return reward, self.state
