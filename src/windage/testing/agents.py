"""Conformance suite for agents, public: the contract of `Agent`, to be run over agents of your own.

`check_agent(make)` raises `AssertionError` with the finding, and how to fix it, if an agent breaks
the contract; `findings(make)` reports all checks. Both play in a small drifting environment whose
states have one to three actions.
"""

from __future__ import annotations

import gc
import math
import operator
import random
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from windage import agents
from windage.agents.base import Agent
from windage.agents.registry import in_words, with_structure
from windage.confidence.tuning import Budgets
from windage.errors import GuaranteeWarning, InputError, ParameterWarning
from windage.models import DriftingMDP
from windage.models.mdp import MDP
from windage.rng import stream
from windage.schedules import Cosine, Steps
from windage.simulate import run, takes_seen
from windage.simulators import Simulator
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_choice, as_integer, as_seed

__all__ = ["Finding", "NotOffered", "agent_checks", "check_agent", "findings"]

Maker = Callable[[StateActions, int, int], Any]
Path = list[tuple[int, int, float]]

_TWINS = "two of them made alike act alike, side by side"

_ACTIONS = [2, 1, 3, 1]
_SHORT = 200  # steps of most checks
_LONG = 1000  # steps from which on a leak stands out
_MEMORY = "its memory is bounded"  # meaningful for an agent that acts differently each time, too
_NEEDED = 2  # the first two checks: without legal actions there is nothing to compare with
_SLACK = 1024  # bytes that come and go in Python itself
_A_STEP = 4  # bytes a step: half of the smallest thing a list can hold


def check_agent(
    make: Maker | type[Agent] | str,
    *,
    horizon: int = 2000,
    seed: int = 0,
    problem: DriftingMDP | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Check that an agent keeps the contract of its interface.

    Its actions exist; asked again before `observe` it gives the same one; two agents made alike act
    alike, side by side and in any thread of a program, whatever the global generators of Python and
    NumPy stand at, and they leave these alone; what comes later does not change what was done
    before; a saved agent goes on as if it had never stopped; impossible calls are refused and
    change nothing; memory is bounded; and a compiled loop plays what `act` and `observe` play.

    In an environment with a structure `observe` is given `seen` if it takes it. An agent that has a
    `structure` refuses outcomes that are not declared, or that do not lead to the next state.

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
        Of the agent and of the environment.
    problem
        The environment to play in; a small one of windage if not given, one that follows from a
        structure if `options` has one.
    options
        Parameters of the agent, for a class or an id. `structure` may be "environment".

    Examples
    --------
    >>> check_agent("random", horizon=300)
    >>> check_agent(lambda space, horizon, seed: agents.UCRL2(space, horizon=horizon, seed=seed))
    >>> check_agent("psrl", horizon=300, options={"structure": "environment"})
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
) -> list[AgentCheck]:
    """Return the checks of the contract, in the order in which to run them.

    The arguments are those of `check_agent`. Each check raises `AssertionError` with what it found,
    and `NotOffered` if it is about something optional that the agent does not have.
    """
    T, seed = as_integer(horizon, "horizon", low=8), as_seed(seed)
    given = _options(make, options)
    environment: Any = _environment(T, given) if problem is None else problem
    if not isinstance(environment, DriftingMDP) or environment.horizon < T:
        raise InputError(
            f"{environment!r} is no DriftingMDP of at least {T} steps",
            field="problem",
            fix="pass a model with a larger horizon, or none",
        )
    made, required, short = (
        _maker(make, environment, given),
        _required(make, environment),
        min(_SHORT, T),
    )
    alone: Path = []  # filled by the second check, for others to be compared with

    def resume() -> None:
        for cut in sorted({1, short // 3, short - 1}):
            _check_resume(made(seed), environment, seed, alone, cut, required)

    found = [
        AgentCheck("has act and observe", lambda: _check_interface(made(seed))),
        AgentCheck(
            "plays actions that exist",
            lambda: alone.extend(_play(made(seed), Simulator(environment, seed), short)),
        ),
        AgentCheck(
            _TWINS,
            lambda: _check_twins(made(seed), made(seed), environment, seed, alone),
        ),
        AgentCheck(
            "gives the same action when asked again",
            lambda: _check_calls(made(seed), environment, seed, alone),
        ),
        AgentCheck(
            "leaves the global random generators alone",
            lambda: _check_global_randomness(made, environment, seed, alone),
        ),
        AgentCheck(
            "does not know the future", lambda: _check_future(make, given, environment, T, seed)
        ),
        AgentCheck(
            "windage.run plays what act and observe play",
            lambda: _check_loop(made(seed), environment, seed, alone),
        ),
        AgentCheck("saved and restored, goes on as if never stopped", resume),
        AgentCheck(
            "refuses impossible calls and stays as it was",
            lambda: _check_bad_calls(made(seed), environment, seed),
        ),
        AgentCheck(_MEMORY, lambda: _check_memory(lambda: made(seed), environment, T)),
    ]
    skipped = {"does not know the future"} if required else set()
    if T < _LONG:
        skipped.add(_MEMORY)
    return [check for check in found if check.name not in skipped]


class AgentCheck(NamedTuple):
    """One contract check: its name, and the function that runs it."""

    name: str
    run: Callable[[], None]

    def __call__(self) -> None:
        """Raise `AssertionError` if the check fails; put the global generators back."""
        with _global_generators():
            self.run()


class NotOffered(Exception):  # noqa: N818 - it is no error
    """Raised by a check of something optional that the agent does not have."""


class Finding(NamedTuple):
    """Result of one check: its name, whether it passed (None: not checked or not offered), why."""

    check: str
    passed: bool | None
    message: str


def findings(
    make: Maker | type[Agent] | str,
    *,
    horizon: int = 2000,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    before: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Return what each check of `check_agent` finds; an agent that raises is a finding too.

    Parameters
    ----------
    make, horizon, seed, options
        As in `check_agent`.
    before
        Called with the name of the check that is about to run.

    Examples
    --------
    >>> all(one.passed for one in findings("random", horizon=300))
    True
    """
    found: list[Finding] = []
    for check in agent_checks(make, horizon=horizon, seed=seed, options=options):
        if any(one.passed is False for one in found[:_NEEDED]):
            found.append(Finding(check.name, None, "not checked: it does not play yet"))
            continue
        if check.name != _MEMORY and any(
            one.check == _TWINS and one.passed is False for one in found
        ):
            why = "not checked: made alike, it does not act alike"
            found.append(Finding(check.name, None, why))
            continue
        if before is not None:
            before(check.name)
        try:
            check()
        except NotOffered as err:
            found.append(Finding(check.name, None, f"not offered: {err}"))
        except AssertionError as err:
            found.append(Finding(check.name, False, str(err) or f"raised {in_words(err)}"))
        except (Exception, SystemExit) as err:
            found.append(Finding(check.name, False, f"raised {in_words(err)}"))
        else:
            found.append(Finding(check.name, True, ""))
    return found


def _environment(horizon: int, options: Mapping[str, Any]) -> DriftingMDP:
    """Return the environment to play in; for an agent with a structure, one that has it."""
    asked = options.get("structure")
    if asked is None:
        return DriftingMDP.blend(_models()[:2], Cosine(2), horizon=horizon)
    if isinstance(asked, Mapping):
        asked = Structure.from_dict(asked)
    known = asked if isinstance(asked, Structure) else _structure()
    return _of_laws(known, (0, 1), Cosine(2), horizon)


def _structure() -> Structure:
    """Return a small structure: intervals, laws that not every action shows, rewards beyond 1."""

    def bid(_: int, a: int) -> int | None:
        return a or None

    def after(s: int, _: int, demand: int, won: int | None) -> int:
        return (s + min(demand, 1) + (won or 0)) % len(_ACTIONS)

    def pays(s: int, a: int, _: int, won: int | None) -> float:
        return 3.0 * (won or 0) - a - 0.5 * s

    demand = Exogenous("demand", range(3), seen="interval")
    won = Exogenous("won", (0, 1), bid, seen="involved")
    return Structure(StateActions(_ACTIONS), [demand, won], next_state=after, reward=pays)


def _of_laws(
    structure: Structure, which: tuple[int, int], schedule: Any, horizon: int
) -> DriftingMDP:
    """Return a model whose laws go from one draw to another."""
    rng = stream(0, "agent_checks")
    bases = [[rng.dirichlet(np.ones(n)) for n in structure.law_sizes] for _ in range(3)]
    given: dict[str, Any] = {}
    for law, (f, label) in enumerate(structure.laws):
        rows = np.array([bases[i][law] for i in which])
        name = structure.variables[f].name
        if label is None:
            given[name] = rows, schedule
        else:
            given.setdefault(name, {})[label] = rows, schedule
    means = None
    if structure.reward is None:
        low, high = structure.reward_range
        means = low + (high - low) * rng.random(structure.space.n_pairs)
    return structure.drifting(given, horizon=horizon, rewards=means)


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
    environment: DriftingMDP,
    given: Mapping[str, Any],
    budgets: Budgets | None = None,
    diameter: float | None = None,
) -> Callable[[int], Any]:
    """Return a function of a seed that makes an agent; warnings on its parameters are silenced."""
    space, horizon = environment.space, environment.horizon
    if isinstance(make, str) or (isinstance(make, type) and issubclass(make, Agent)):
        kind = agents.resolve(make) if isinstance(make, str) else make
        options: dict[str, Any] = {
            **with_structure(kind, dict(given), environment),
            **_required(make, environment),
            "budgets": budgets or environment.budgets(),
        }
        if "D" in getattr(kind, "requires", ()):
            options["diameter"] = diameter or environment.max_diameter().upper

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


def _required(make: Any, environment: DriftingMDP) -> dict[str, DriftingMDP]:
    """Return the model, for an agent that requires it."""
    kind = agents.resolve(make) if isinstance(make, str) else make
    sees = isinstance(kind, type) and "problem" in agents.parameters(kind)
    return {"problem": environment} if sees else {}


def _check_interface(agent: Any) -> None:
    for name, call in (("act", "act(s)"), ("observe", "observe(s, a, reward, s_next)")):
        _require(
            callable(getattr(agent, name, None)),
            f"{type(agent).__name__} has no method {name!r}",
            f"give it {call}",
        )


def _check_calls(agent: Any, environment: DriftingMDP, seed: int, alone: Path) -> None:
    """Ask twice before every step: the path is that of an agent that was asked once."""
    simulator = Simulator(environment, seed)
    fix = "decide once, keep the decision until observe, and draw nothing when asked again"
    for t, (_, once, _) in enumerate(alone, 1):
        s = simulator.state
        a = _asked(agent, environment.space, s, t)
        before = _saved(agent)
        again = _asked(agent, environment.space, s, t)
        _require(again == a, f"t={t}: act({s}) returned {a}, and {again} when asked again", fix)
        _require(_saved(agent) == before, f"t={t}: asking again changed the state", fix)
        _require(a == once, f"t={t}: asked twice before, act({s}) returned {a}, not {once}", fix)
        _observe(agent, simulator, s, a)


def _check_twins(one: Any, other: Any, environment: DriftingMDP, seed: int, alone: Path) -> None:
    """Two agents side by side, each in an environment of its own, asked once: nothing is shared."""
    environments = Simulator(environment, seed), Simulator(environment, seed)
    for t, expected in enumerate(alone, 1):
        for agent, simulator in zip((one, other), environments, strict=True):
            _require(
                _play(agent, simulator, 1) == [expected],
                f"t={t}: the same seed and the same outcomes gave another action",
                "let decisions depend on the seed and on what was observed, on nothing else: no "
                "clock, no state shared between agents, no draw that is used up by asking",
            )


def _check_global_randomness(
    made: Callable[[int], Any], environment: DriftingMDP, seed: int, alone: Path
) -> None:
    fix = "draw from a generator of the agent's own, seeded with its seed"
    for start in (1, 2):
        random.seed(start)
        np.random.seed(start)  # noqa: NPY002 - it is the global generator that is watched
        before = _generators()
        path = _play(made(seed), Simulator(environment, seed), len(alone))
        _require(path == alone, "actions depend on the global random generators", fix)
        _require(_generators() == before, "the global random generators were used", fix)


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


def _check_future(
    make: Any, options: Mapping[str, Any], played_in: DriftingMDP, horizon: int, seed: int
) -> None:
    """Play in two environments that differ after some t: up to then the actions are the same."""
    models, cut = _models(), min(_SHORT, horizon) // 2
    actions: list[Any] = []
    budgets: Budgets | None = None
    diameter: float | None = None
    for later in (1, 2):
        if played_in.structure is not None:
            known = played_in.structure
            environment = _of_laws(known, (0, later), Steps([cut + 1]), horizon)
        else:
            bases = [models[0], models[later]]
            environment = DriftingMDP.blend(bases, Steps([cut + 1]), horizon=horizon)
        if budgets is None:  # what an agent is given is the same in both
            budgets, diameter = environment.budgets(), environment.max_diameter().upper
        agent = _maker(make, environment, options, budgets, diameter)(seed)
        played = run(environment, agent, seed=seed, steps=min(_SHORT, horizon))
        actions.append(played.actions[: cut + 1])
    same = actions[0] == actions[1]
    _require(
        same.all(),
        f"t={int(np.argmin(same)) + 1}: the action depends on the environment after t={cut}",
        "choose from what was observed before t; of the environment given to play, use step alone",
    )


def _check_loop(agent: Any, environment: DriftingMDP, seed: int, alone: Path) -> None:
    played = run(environment, agent, seed=seed, steps=len(alone))
    found = list(zip(played.states[:-1], played.actions, played.rewards, strict=True))
    _require(
        found == alone,
        "windage.run goes another way than act and observe",
        "let play call the same rules as act and observe, or leave play out",
    )


def _check_resume(
    agent: Any, environment: DriftingMDP, seed: int, alone: Path, cut: int, required: dict[str, Any]
) -> None:
    """Save after some steps and with a decision pending, go on with the restored agent."""
    if _saved(agent) is None or not callable(getattr(type(agent), "from_state", None)):
        raise NotOffered("it has no state() and from_state(data)")
    fix = "save all that decisions depend on, a decision that waits for its outcome included"
    simulator = Simulator(environment, seed)
    _play(agent, simulator, cut)
    again = type(agent).from_state(agent.state(), **required)
    _require(again.state() == agent.state(), f"t={cut + 1}: restored, the state differs", fix)
    advised = _asked(again, environment.space, simulator.state, cut + 1)
    pending = again.state()
    _require(
        _asked(
            type(agent).from_state(pending, **required), environment.space, simulator.state, cut + 1
        )
        == advised,
        f"t={cut + 1}: restored with a decision pending, the agent decides again",
        fix,
    )
    again, s = type(agent).from_state(pending, **required), simulator.state
    accepted, reward = False, 0.0
    with suppress(ValueError):
        reward = _observe(again, simulator, s, advised)
        accepted = True
    _require(accepted, f"t={cut + 1}: restored with a decision pending, observe is refused", fix)
    rest = [(s, advised, reward), *_play(again, simulator, len(alone) - cut - 1)]
    _require(rest == alone[cut:], f"saved after t={cut}, the agent goes on differently", fix)


def _check_bad_calls(agent: Any, environment: DriftingMDP, seed: int) -> None:
    """Call it with what does not exist: an error, and the agent as it was."""
    space, simulator = environment.space, Simulator(environment, seed)
    _play(agent, simulator, 20)
    s = simulator.state
    _refuses(
        agent,
        "observe",
        (s, 0, 0.5, s),
        "without a decision",
        "check that a decision waits before learning and raise windage.errors.CallOrderError",
    )
    for wrong in (space.n_states, -1, 0.5, None):
        _refuses(agent, "act", (wrong,), "with a state that does not exist")
    a = _asked(agent, space, s, 21)
    for call, what in (
        ((s, int(space.counts[s]), 0.5, s), "with an action the state does not offer"),
        ((s, -1, 0.5, s), "with an action that does not exist"),
        ((s, a, math.nan, s), "with a reward that is no number"),
        ((s, a, math.inf, s), "with an infinite reward"),
        ((s, a, 0.5, space.n_states), "with a next state that does not exist"),
        (((s + 1) % space.n_states, 0, 0.5, s), "in a state that was not asked for"),
    ):
        if what != "in a state that was not asked for" or space.n_states > 1:
            _refuses(agent, "observe", call, what)
    if simulator.shows and getattr(agent, "structure", None) is not None:
        _check_bad_outcomes(agent, simulator, s, a)
    _require(agent.act(s) == a, "impossible calls changed the decision", "check before learning")


def _check_bad_outcomes(agent: Any, simulator: Simulator, s: int, a: int) -> None:
    """Tell it of outcomes that there are not, and of some that lead elsewhere."""
    structure = simulator.problem.structure
    assert structure is not None
    pair = structure.space.pair(s, a)
    reward, after = simulator.step(a)
    seen = simulator.seen or {}
    fix = "check what is seen before anything else and raise windage.errors.InputError"
    for name in seen:
        wrong = seen | {name: "no such outcome"}
        _refuses(agent, "observe", (s, a, reward, after, wrong), "with an undeclared outcome", fix)
    wrong = seen | {"no such variable": 1}
    _refuses(agent, "observe", (s, a, reward, after, wrong), "with an undeclared variable", fix)
    leads = structure.next_state[structure.first[pair] : structure.first[pair + 1]]
    for elsewhere in range(structure.space.n_states):
        if elsewhere not in leads:
            call = (s, a, reward, elsewhere, seen)
            _refuses(agent, "observe", call, "with outcomes that lead elsewhere", fix)


def _refuses(
    agent: Any,
    method: str,
    call: tuple[Any, ...],
    what: str,
    fix: str = "check the arguments before anything else and raise windage.errors.InputError",
) -> None:
    before, refused = _saved(agent), False
    with suppress(ValueError, TypeError, LookupError):
        getattr(agent, method)(*call)
        refused = True
    shown = f"{method}{call!r} {what}"
    _require(not refused, f"{shown} was accepted", fix)
    _require(_saved(agent) == before, f"{shown} was refused, and changed the state", fix)


def _check_memory(make: Callable[[], Any], environment: DriftingMDP, horizon: int) -> None:
    """Compare what an agent gives back when it goes, after more and more steps.

    Only what the agent holds is measured: what Python and compiled calls keep for themselves stays.
    Room that is taken once, for all that may come, is no growth: a history grows whenever the steps
    are doubled.
    """
    space, rng = environment.space, stream(1, "agent_checks")
    states = rng.integers(space.n_states, size=horizon + 1).tolist()
    rewards = rng.integers(2, size=horizon).astype(np.float64).tolist()

    def held(steps: int) -> int:
        agent = make()
        if environment.structure is not None:  # not every state follows from every other
            simulator = Simulator(environment, 0)
            for _ in range(steps):
                _observe(agent, simulator, simulator.state, agent.act(simulator.state))
            del simulator
        else:
            for i in range(steps):
                agent.observe(states[i], agent.act(states[i]), rewards[i], states[i + 1])
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        del agent
        gc.collect()
        return before - tracemalloc.get_traced_memory()[0]

    was_on, was_frozen = tracemalloc.is_tracing(), gc.get_freeze_count() > 0
    if not was_frozen:
        gc.collect()
        gc.freeze()  # a large program's other objects would be walked eight times
    if not was_on:
        tracemalloc.start()
    try:
        steps = [horizon >> k for k in (3, 2, 1, 0)]
        grown = np.diff([held(n) for n in steps])
    finally:
        if not was_on:
            tracemalloc.stop()
        if not was_frozen:
            gc.unfreeze()
    _require(
        (grown <= np.maximum(_SLACK, _A_STEP * np.diff(steps))).any(),
        f"memory grew by {grown[-1]} bytes from t={steps[-2]} to t={horizon}",
        "keep counts or a window, not the history",
    )


def _require(kept: object, finding: str, fix: str) -> None:
    """Raise the finding and its fix unless a condition holds."""
    if not kept:
        raise AssertionError(f"{finding}. Fix: {fix}.")


def _play(agent: Any, environment: Simulator, steps: int) -> Path:
    """Let an agent act and observe; its actions must exist."""
    path = []
    for _ in range(steps):
        s, t = environment.state, environment.t
        a = _asked(agent, environment.space, s, t)
        path.append((s, a, _observe(agent, environment, s, a)))
    return path


def _observe(agent: Any, simulator: Simulator, s: int, a: int) -> float:
    """Play an action, let the agent learn from it, and return the reward."""
    reward, after = simulator.step(a)
    if simulator.shows and takes_seen(agent):
        agent.observe(s, a, reward, after, seen=simulator.seen)
    else:
        agent.observe(s, a, reward, after)
    return reward


def _asked(agent: Any, space: StateActions, s: int, t: int) -> int:
    """Return what the agent plays in a state; it must be one of the state's actions."""
    answer = agent.act(s)
    fix = f"return an integer from 0 to {space.counts[s] - 1}, an index into the actions of s={s}"
    _require(
        not isinstance(answer, (bool, np.bool_)) and hasattr(answer, "__index__"),
        f"t={t}: act({s}) returned {answer!r}, which is no action",
        fix,
    )
    action = operator.index(answer)
    exists = 0 <= action < space.counts[s]
    _require(exists, f"t={t}: act({s}) returned {action}, which s={s} does not offer", fix)
    return action


def _saved(agent: Any) -> bytes | None:
    """Return the saved state of an agent that can be saved."""
    return agent.state() if callable(getattr(agent, "state", None)) else None
