"""Conformance suite for agents, public: what windage asks of them, run it over your own.

`check_agent(make)` raises `AssertionError` with the finding, and what to do about it, if an agent
breaks a promise. It plays in a small world that drifts, in which the states have one to three
actions.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from windage import agents
from windage.agents.base import Agent
from windage.agents.tuning import Budgets
from windage.errors import GuaranteeWarning, InputError, ParameterWarning
from windage.models import DriftingMDP
from windage.models.mdp import MDP
from windage.rng import stream
from windage.schedules import Cosine, Steps
from windage.simulate import run
from windage.simulators import Simulator
from windage.spaces import StateActions
from windage.testing.durability import check_bad_calls, check_memory, check_resume
from windage.testing.playing import NotOffered, Path, asked, play, require, saved
from windage.validation import as_choice, as_integer, as_seed

__all__ = ["TWINS", "Check", "agent_checks", "check_agent"]

Maker = Callable[[StateActions, int, int], Any]

TWINS = "two of them made alike act alike, side by side"

_ACTIONS = [2, 1, 3, 1]
_SHORT = 200  # steps of most checks
_LONG = 1000  # steps from which on a leak stands out


def check_agent(
    make: Maker | type[Agent] | str,
    *,
    horizon: int = 2000,
    seed: int = 0,
    problem: DriftingMDP | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Check that an agent keeps what its interface promises.

    Its actions exist; asked again before `observe` it gives the same one; two agents made alike act
    alike, side by side and in any thread of a program, whatever the global generators of Python and
    NumPy stand at, and they leave these alone; what comes later does not change what was done
    before; a saved agent goes on as if it had never stopped; impossible calls are refused and
    change nothing; memory stops growing; and a compiled loop plays what `act` and `observe` play.

    Parameters
    ----------
    make
        A function of (space, horizon, seed) that returns a new agent, a subclass of
        `windage.agents.Agent`, an id, or `module:Class`. An agent needs `act(s)` and
        `observe(s, a, reward, s_next)`; it is saved and restored if it has `state()` and
        `from_state(data)`.
    horizon
        How long to play where it takes long to see: memory is watched over the second half, from
        1,000 steps on.
    seed
        Of the agent and of the world.
    problem
        The world to play in, if not a small one of windage's own.
    options
        Parameters of the agent, for a class or an id.

    Examples
    --------
    >>> check_agent("random", horizon=300)
    >>> check_agent(lambda space, horizon, seed: agents.UCRL2(space, horizon=horizon, seed=seed))
    """
    for check in agent_checks(make, horizon=horizon, seed=seed, problem=problem, options=options):
        with suppress(NotOffered):
            check()


def agent_checks(
    make: Maker | type[Agent] | str,
    *,
    horizon: int = 2000,
    seed: int = 0,
    problem: DriftingMDP | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Check]:
    """Return the promises of an agent as checks, in the order in which to run them.

    The arguments are those of `check_agent`. Each check raises `AssertionError` with what it found,
    and `NotOffered` if the promise is about something the agent does not have.
    """
    T, seed = as_integer(horizon, "horizon", low=8), as_seed(seed)
    world = _world(T) if problem is None else problem
    if not isinstance(world, DriftingMDP) or world.horizon < T:
        raise InputError(
            f"{world!r} is no DriftingMDP of at least {T} steps",
            field="problem",
            fix="pass a model with a larger horizon, or none",
        )
    given = _options(make, options)
    made, told, short = _maker(make, world, given), _told(make, world), min(_SHORT, T)
    alone: Path = []  # filled by the second check, for others to be compared with

    def resume() -> None:
        for cut in sorted({1, short // 3, short - 1}):
            check_resume(made(seed), world, seed, alone, cut, told)

    found = [
        Check("has act and observe", lambda: _check_interface(made(seed))),
        Check(
            "plays actions that exist",
            lambda: alone.extend(play(made(seed), Simulator(world, seed), short)),
        ),
        Check(
            TWINS,
            lambda: _check_twins(made(seed), made(seed), world, seed, alone),
        ),
        Check(
            "gives the same action when asked again",
            lambda: _check_calls(made(seed), world, seed, alone),
        ),
        Check(
            "leaves the global random generators alone",
            lambda: _check_global_randomness(made, world, seed, alone),
        ),
        Check("does not know the future", lambda: _check_future(make, given, T, seed)),
        Check(
            "windage.run plays what act and observe play",
            lambda: _check_loop(made(seed), world, seed, alone),
        ),
        Check("saved and restored, goes on as if never stopped", resume),
        Check(
            "refuses impossible calls and stays as it was",
            lambda: check_bad_calls(made(seed), world, seed),
        ),
        Check("its memory stops growing", lambda: check_memory(lambda: made(seed), world.space, T)),
    ]
    skipped = {"does not know the future"} if told else set()
    if T < _LONG:
        skipped.add("its memory stops growing")
    return [check for check in found if check.promise not in skipped]


class Check(NamedTuple):
    """One promise of an agent, and how to check it."""

    promise: str
    run: Callable[[], None]

    def __call__(self) -> None:
        """Raise `AssertionError` if the promise is broken; put the global generators back."""
        with _global_generators():
            self.run()


def _world(horizon: int) -> DriftingMDP:
    return DriftingMDP.blend(_models()[:2], Cosine(2), horizon=horizon)


def _models() -> list[MDP]:
    space, rng = StateActions(_ACTIONS), stream(0, "agent_checks")
    return [
        MDP(
            space,
            rng.random(space.n_pairs),
            rng.dirichlet(np.ones(space.n_states), size=space.n_pairs),
        )
        for _ in range(3)
    ]


def _maker(
    make: Any,
    world: DriftingMDP,
    given: Mapping[str, Any],
    budgets: Budgets | None = None,
    diameter: float | None = None,
) -> Callable[[int], Any]:
    """Return how to make an agent for this world from a seed; its parameters are not judged."""
    space, horizon = world.space, world.horizon
    if isinstance(make, str) or (isinstance(make, type) and issubclass(make, Agent)):
        kind = agents.resolve(make) if isinstance(make, str) else make
        options: dict[str, Any] = {
            **given,
            **_told(make, world),
            "budgets": budgets or world.budgets(),
        }
        if "D" in getattr(kind, "told", ()):
            options["diameter"] = diameter or world.max_diameter().upper

        def made(seed: int) -> Any:
            everything: dict[str, Any] = {"horizon": horizon, "seed": seed, **options}
            if isinstance(make, str):
                return agents.make(make, space, **everything)
            return make.configured(space, **everything)

    elif callable(make):

        def made(seed: int) -> Any:
            return make(space, horizon, seed)

    else:
        raise InputError(
            f"{make!r} makes no agents",
            field="make",
            fix="pass a function of (space, horizon, seed), a subclass of Agent, or an id",
        )

    def quietly(seed: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuaranteeWarning)
            warnings.simplefilter("ignore", ParameterWarning)
            return made(seed)

    return quietly


def _options(make: Any, options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the parameters an agent is to be made with, if it takes them."""
    if not options:
        return {}
    if not isinstance(make, (str, type)):
        raise InputError(
            "a function makes its agents as it likes",
            field="options",
            fix="write them into the function, or pass a class or an id",
        )
    taken = set(agents.parameters(agents.resolve(make))) - {"seed", "problem"}
    for name in options:
        as_choice(name, "options", sorted(taken))
    return options


def _told(make: Any, world: DriftingMDP) -> dict[str, DriftingMDP]:
    """Return the model, for an agent that must see it."""
    kind = agents.resolve(make) if isinstance(make, str) else make
    sees = isinstance(kind, type) and "problem" in agents.parameters(kind)
    return {"problem": world} if sees else {}


def _check_interface(agent: Any) -> None:
    for name, call in (("act", "act(s)"), ("observe", "observe(s, a, reward, s_next)")):
        require(
            callable(getattr(agent, name, None)),
            f"{type(agent).__name__} has no method {name!r}",
            f"give it {call}",
        )


def _check_calls(agent: Any, world: DriftingMDP, seed: int, alone: Path) -> None:
    """Ask twice before every step: the path is that of an agent that was asked once."""
    simulator = Simulator(world, seed)
    fix = "decide once, keep the decision until observe, and draw nothing when asked again"
    for t, (_, once, _) in enumerate(alone, 1):
        s = simulator.state
        a = asked(agent, world.space, s, t)
        before = saved(agent)
        again = asked(agent, world.space, s, t)
        require(again == a, f"t={t}: act({s}) returned {a}, and {again} when asked again", fix)
        require(saved(agent) == before, f"t={t}: asking again changed the state", fix)
        require(a == once, f"t={t}: asked twice before, act({s}) returned {a}, not {once}", fix)
        reward, after = simulator.step(a)
        agent.observe(s, a, reward, after)


def _check_twins(one: Any, other: Any, world: DriftingMDP, seed: int, alone: Path) -> None:
    """Two agents side by side, each in a world of its own, asked once: nothing is shared."""
    worlds = Simulator(world, seed), Simulator(world, seed)
    for t, expected in enumerate(alone, 1):
        for agent, simulator in zip((one, other), worlds, strict=True):
            require(
                play(agent, simulator, 1) == [expected],
                f"t={t}: the same seed and the same outcomes gave another action",
                "let decisions hang on the seed and on what was observed, on nothing else: no "
                "clock, no state shared between agents, no draw that is used up by asking",
            )


def _check_global_randomness(
    made: Callable[[int], Any], world: DriftingMDP, seed: int, alone: Path
) -> None:
    fix = "draw from a generator of the agent's own, seeded with its seed"
    for start in (1, 2):
        random.seed(start)
        np.random.seed(start)  # noqa: NPY002 - it is the global generator that is watched
        before = _generators()
        path = play(made(seed), Simulator(world, seed), len(alone))
        require(path == alone, "actions hang on the global random generators", fix)
        require(_generators() == before, "the global random generators were used", fix)


def _generators() -> tuple[Any, ...]:
    name, words, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), name, np.asarray(words).tobytes(), *rest


@contextmanager
def _global_generators() -> Iterator[None]:
    """Put the global generators back where they were."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _check_future(make: Any, options: Mapping[str, Any], horizon: int, seed: int) -> None:
    """Play in two worlds that part after some t: up to then the actions are the same."""
    models, cut = _models(), min(_SHORT, horizon) // 2
    actions: list[Any] = []
    budgets: Budgets | None = None
    diameter: float | None = None
    for later in models[1:]:
        world = DriftingMDP.blend([models[0], later], Steps([cut + 1]), horizon=horizon)
        if budgets is None:  # what an agent is told is the same in both
            budgets, diameter = world.budgets(), world.max_diameter().upper
        agent = _maker(make, world, options, budgets, diameter)(seed)
        played = run(world, agent, seed=seed, steps=min(_SHORT, horizon))
        actions.append(played.actions[: cut + 1])
    same = actions[0] == actions[1]
    require(
        same.all(),
        f"t={int(np.argmin(same)) + 1}: the action hangs on what the world does after t={cut}",
        "choose from what was observed before t; of the world that play is given, use step alone",
    )


def _check_loop(agent: Any, world: DriftingMDP, seed: int, alone: Path) -> None:
    played = run(world, agent, seed=seed, steps=len(alone))
    found = list(zip(played.states[:-1], played.actions, played.rewards, strict=True))
    require(
        found == alone,
        "windage.run goes another way than act and observe",
        "let play call the same rules as act and observe, or leave play out",
    )
