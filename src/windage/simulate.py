"""`run`: any agent in any world, recorded as finely as asked, continued where it stands."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.episodes import RECENT
from windage.agents.exclusive import claim, release
from windage.errors import CallOrderError, HorizonReached, InputError
from windage.kernels.rollout import Block
from windage.models import DriftingMDP
from windage.recording import Run, Tape
from windage.simulators import Foreign, FunctionWorld, Problem, Simulator, world_of
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_integer, as_seed

__all__ = ["FunctionWorld", "Problem", "Run", "Simulator", "run", "time_of", "world_of"]

_BLOCK = 1 << 15  # steps a compiled loop plays at a time: its arrays stay in the cache
_PATIENCE = 0.1  # seconds that an agent played step by step may take before anybody is told


class Player(Protocol):
    """The least an agent must offer; one with `t`, from 1 on, continues where it stands."""

    def act(self, s: int) -> int:
        """Return an action for state s."""
        ...

    def observe(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn what the action led to."""
        ...


def run(
    problem: DriftingMDP | Problem,
    agent: Player,
    seed: int = 0,
    start_state: int | None = None,
    steps: int | None = None,
    record: str | int = "full",
    *,
    progress: Callable[[int, int], None] | None = None,
    census: int | None = None,
) -> Run:
    """Let an agent act in a world; the agent advances and can be run further.

    Parameters
    ----------
    problem
        A `DriftingMDP`, or anything with `space`, `horizon`, `reset(seed)` and `step(action)`.
    agent
        Anything with `act(s)` and `observe(s, a, reward, s_next)`. One that counts its time in `t`
        is continued from there: two runs of 500 steps are one of 1,000, to the last bit. The
        library's agents run in compiled loops, others step by step.
    seed
        Names the world's noise: all agents on one seed meet the same.
    start_state
        The state the first step starts in. If not given: 0 at t = 1, afterwards where the agent
        stands.
    steps
        How many steps to play; up to the horizon if not given. An agent whose own horizon is
        shorter must be given them: its run would end before the problem does.
    record
        "full", an integer k for every k-th step, or "totals".
    progress
        Called now and then with the steps done and the steps to do.
    census
        Count whenever t is a multiple of this, and at the end, how many samples of every pair the
        agent remembers: `Run.census`. Nothing is counted of one without `in_memory`.

    Examples
    --------
    >>> import windage as wd
    >>> world = wd.envs.make("riverswim", horizon=1000)
    >>> agent = wd.agents.make("random", world.space, horizon=1000)
    >>> wd.run(world, agent, seed=3, record="totals")  # doctest: +ELLIPSIS
    Run(t=1..1000, seed=3, record='totals', total_reward=...)
    """
    as_seed(seed)
    try:
        if isinstance(agent, Agent):
            in_loop = isinstance(problem, DriftingMDP) and agent.has_loop()
            claim(agent, "run", alone=in_loop)
        return _run(problem, agent, seed, start_state, steps, record, progress, census)
    finally:
        if isinstance(agent, Agent):
            release(agent)


def _run(
    problem: DriftingMDP | Problem,
    agent: Player,
    seed: int,
    start_state: int | None,
    steps: int | None,
    record: str | int,
    progress: Callable[[int, int], None] | None,
    census: int | None,
) -> Run:
    _check_agent(problem, agent)
    first = time_of(agent)
    n = _steps_to_play(problem, agent, first, steps)
    room = None if census is None else as_integer(census, "census", low=1)
    if isinstance(problem, DriftingMDP):
        state = _start_state(problem.space, agent, first, start_state)
        simulator = Simulator(problem, seed, state=state, t=first)
        tape = Tape(problem.space, first, n, record, agent, room)
        if isinstance(agent, Agent) and agent.has_loop():
            state = _play_compiled(simulator, agent, n, tape, progress)
        else:
            state = _play_steps(simulator, agent, n, tape, progress)
    else:
        state = _start_foreign(problem, first, seed, start_state)
        tape = Tape(problem.space, first, n, record, agent, room)
        state = _play_steps(Foreign(problem, state, first), agent, n, tape, progress)
    model = problem if isinstance(problem, DriftingMDP) else getattr(problem, "model", None)
    return tape.finish(seed, state, agent, model)


def _check_range(agent: Agent, rewards: NDArray[np.float64]) -> None:
    if agent.reward_range is not None:
        low, high = agent.reward_range
        wrong = (rewards < low) | (rewards > high)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise InputError(
                f"{rewards[place]} is not in the declared range [{low}, {high}]",
                field="reward",
                where=f"t={agent.t + place}",
                fix="declare a wider reward_range, or none",
            )


def _play_compiled(
    simulator: Simulator,
    agent: Any,
    steps: int,
    tape: Tape,
    progress: Callable[[int, int], None] | None,
) -> int:
    buffer = Block.empty(min(steps, _BLOCK), tape.census if agent.counts_in_loop else None)
    done, state = 0, simulator.state
    while done < steps:
        world = simulator.world(min(_BLOCK, steps - done))
        ahead = min(steps - done, buffer.states.size)
        if buffer.census is None:
            ahead = min(ahead, tape.before_census)
        block = buffer.head(min(world.last - simulator.t + 1, ahead))
        n = block.states.size
        with agent.in_step():
            state = agent.play(world, state, block)
            _check_range(agent, block.rewards)
            agent.last_state = state
            agent.t += n
        simulator.t += n
        done += n
        tape.add(block)
        if progress is not None:
            progress(done, steps)
    return state


def _play_steps(
    world: Simulator | Foreign,
    agent: Player,
    steps: int,
    tape: Tape,
    progress: Callable[[int, int], None] | None,
) -> int:
    buffer = Block.empty(min(steps, 1 << 10))
    done, shows = 0, world.shows and takes_seen(agent)
    while done < steps:
        block = buffer.head(min(buffer.states.size, steps - done, tape.before_census))
        until = time.monotonic() + _PATIENCE
        for i in range(block.states.size):
            if i % RECENT == 0:
                tape.log.add()  # an agent played by hand remembers no more
            state = world.state
            try:
                action = agent.act(state)
                block.states[i], block.pairs[i] = state, world.space.pair(state, action)
                reward, after = world.step(action)
                if shows:
                    agent.observe(state, action, reward, after, seen=world.seen)  # type: ignore[call-arg]
                else:
                    agent.observe(state, action, reward, after)
            except BaseException:
                if isinstance(agent, Agent):
                    agent.withdraw()  # the step was not taken: the decision waits no more
                raise
            block.rewards[i], block.means[i] = reward, world.mean_reward
            if time.monotonic() > until:  # an agent that takes its time
                block = buffer.head(i + 1)
                break
        done += block.states.size
        tape.add(block)
        if progress is not None:
            progress(done, steps)
    return world.state


def takes_seen(agent: Player) -> bool:
    """Return whether what a step shows can be told to the agent."""
    try:
        return "seen" in inspect.signature(agent.observe).parameters
    except (TypeError, ValueError):
        return False


def _check_agent(problem: DriftingMDP | Problem, agent: Player) -> None:
    for name in ("space", "horizon", "step", "reset"):
        if not isinstance(problem, DriftingMDP) and not hasattr(problem, name):
            raise InputError(
                f"{type(problem).__name__} has no {name!r}",
                field="problem",
                fix="pass a DriftingMDP, or give it space, horizon, reset(seed), step(action)",
            )
    if isinstance(agent, type):
        raise InputError(
            f"{agent.__name__} is a class, not an agent",
            field="agent",
            fix=f"make one: {agent.__name__}(problem.space, horizon=problem.horizon, ...)",
        )
    for name in ("act", "observe"):
        if not callable(getattr(agent, name, None)):
            raise InputError(
                f"{type(agent).__name__} has no method {name!r}",
                field="agent",
                fix="give it act(s) and observe(s, a, reward, s_next)",
            )
    space = getattr(agent, "space", problem.space)
    if isinstance(space, StateActions) and not np.array_equal(space.counts, problem.space.counts):
        raise InputError(
            f"the agent is made for {space!r}, the problem has {problem.space!r}",
            field="agent.space",
            fix="make the agent with problem.space",
        )
    if getattr(agent, "_pending", None) is not None:
        raise CallOrderError(
            "the agent waits for the outcome of a decision",
            field="agent",
            fix="call observe before run",
        )


def time_of(agent: Player) -> int:
    """Return the time of an agent's next decision, its `t`; one that has no such clock is at 1.

    Raises
    ------
    InputError
        It counts from 0, or backwards: where it stands cannot be told.
    """
    t = getattr(agent, "t", 1)
    if not _is_integer(t):
        return 1  # something else of that name
    if t < 1:
        raise InputError(
            f"{type(agent).__name__}.t is {t}, but t is the time of the next decision: 1, 2, ...",
            field="agent.t",
            fix="let it start at 1, or give the attribute another name",
        )
    return int(t)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _steps_to_play(
    problem: DriftingMDP | Problem, agent: Player, first: int, steps: int | None
) -> int:
    horizon = as_integer(problem.horizon, "problem.horizon", low=1, high=LAST_TIME)
    own = getattr(agent, "horizon", None)
    last = min(horizon, own) if _is_integer(own) else horizon
    left = last - first + 1
    if left <= 0:
        raise HorizonReached(
            f"the agent is at t = {first}, the horizon is {last}",
            fix="make a new agent, or a problem with a larger horizon",
        )
    if steps is None:
        if last < horizon:
            raise InputError(
                f"the agent's horizon is {last:,}, the problem's {horizon:,}: the run would end "
                f"after {left:,} steps",
                field="agent.horizon",
                where=f"t={last}",
                fix=f"make the agent with horizon={horizon}, or pass steps={left} to stop there"
                if isinstance(agent, Agent)
                else f"pass steps={left}, or rename the attribute if it is no last time",
            )
        return left
    n = as_integer(steps, "steps", low=1)
    if n > left:
        raise InputError(
            f"{n} steps from t = {first} on pass the horizon by {n - left}",
            field="steps",
            fix=f"pass an integer from 1 to {left}",
        )
    return n


def _start_state(space: StateActions, agent: Player, first: int, given: int | None) -> int:
    if given is not None:
        return space.check_state(given, "start_state")
    if first == 1:
        return 0
    stands = getattr(agent, "last_state", None)
    if stands is None:
        raise InputError(
            f"the agent is at t = {first} and does not tell where it stands",
            field="start_state",
            fix="pass the last run's final_state",
        )
    return int(stands)


def _start_foreign(problem: Problem, first: int, seed: int, given: int | None) -> int:
    wanted = None if given is None else problem.space.check_state(given, "start_state")
    if first == 1:
        state = problem.space.check_state(problem.reset(seed), "problem.reset: state")
        if wanted is not None and wanted != state:
            raise InputError(
                f"the problem starts in {problem.space.describe_state(state)}, not in {wanted}",
                field="start_state",
                fix="leave it out: only a DriftingMDP can be started anywhere",
            )
        return state
    if wanted is not None:
        return wanted
    standing = getattr(problem, "state", None)
    if standing is None:
        raise InputError(
            "the run goes on and the problem does not tell its state",
            field="start_state",
            fix="pass the last run's final_state, or give the problem an attribute `state`",
        )
    return problem.space.check_state(standing, "problem.state")
