"""What must survive in an agent: restarts, impossible calls, and a long life."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from windage.models import DriftingMDP
from windage.rng import stream
from windage.simulators import Simulator
from windage.spaces import StateActions
from windage.testing.playing import NotOffered, Path, asked, play, require, saved

__all__ = ["check_bad_calls", "check_memory", "check_resume"]

_SLACK = 1024  # bytes that come and go in Python itself
_A_STEP = 4  # bytes a step: half of the smallest thing a list can hold


def check_resume(
    agent: Any, world: DriftingMDP, seed: int, alone: Path, cut: int, told: dict[str, Any]
) -> None:
    """Save after some steps and with a decision pending, go on with the restored agent."""
    if saved(agent) is None or not callable(getattr(type(agent), "from_state", None)):
        raise NotOffered("it has no state() and from_state(data)")
    fix = "save all that decisions hang on, a decision that waits for its outcome included"
    simulator = Simulator(world, seed)
    play(agent, simulator, cut)
    again = type(agent).from_state(agent.state(), **told)
    require(again.state() == agent.state(), f"t={cut + 1}: restored, the state differs", fix)
    advised = asked(again, world.space, simulator.state, cut + 1)
    pending = again.state()
    require(
        asked(type(agent).from_state(pending, **told), world.space, simulator.state, cut + 1)
        == advised,
        f"t={cut + 1}: restored with a decision pending, the agent decides again",
        fix,
    )
    again, s = type(agent).from_state(pending, **told), simulator.state
    reward, after = simulator.step(advised)
    accepted = False
    with suppress(ValueError):
        again.observe(s, advised, reward, after)
        accepted = True
    require(accepted, f"t={cut + 1}: restored with a decision pending, observe is refused", fix)
    rest = [(s, advised, reward), *play(again, simulator, len(alone) - cut - 1)]
    require(rest == alone[cut:], f"saved after t={cut}, the agent goes on differently", fix)


def check_bad_calls(agent: Any, world: DriftingMDP, seed: int) -> None:
    """Call it with what does not exist: an error, and the agent as it was."""
    space, simulator = world.space, Simulator(world, seed)
    play(agent, simulator, 20)
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
    a = asked(agent, space, s, 21)
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
    require(agent.act(s) == a, "impossible calls changed the decision", "check before learning")


def _refuses(
    agent: Any,
    method: str,
    call: tuple[Any, ...],
    what: str,
    fix: str = "check the arguments before anything else and raise windage.errors.InputError",
) -> None:
    before, refused = saved(agent), False
    with suppress(ValueError, TypeError, LookupError):
        getattr(agent, method)(*call)
        refused = True
    shown = f"{method}{call!r} {what}"
    require(not refused, f"{shown} was accepted", fix)
    require(saved(agent) == before, f"{shown} was refused, and changed the state", fix)


def check_memory(make: Callable[[], Any], space: StateActions, horizon: int) -> None:
    """Compare what an agent gives back when it goes, after more and more steps.

    Only what the agent holds is measured: what Python and compiled calls keep for themselves stays.
    Room that is taken once, for all that may come, is no growth: a history grows whenever the steps
    are doubled.
    """
    rng = stream(1, "agent_checks")
    states = rng.integers(space.n_states, size=horizon + 1).tolist()
    rewards = rng.integers(2, size=horizon).astype(np.float64).tolist()

    def held(steps: int) -> int:
        agent = make()
        for i in range(steps):
            agent.observe(states[i], agent.act(states[i]), rewards[i], states[i + 1])
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        del agent
        gc.collect()
        return before - tracemalloc.get_traced_memory()[0]

    was_on = tracemalloc.is_tracing()
    if not was_on:
        tracemalloc.start()
    try:
        steps = [horizon >> k for k in (3, 2, 1, 0)]
        grown = np.diff([held(n) for n in steps])
    finally:
        if not was_on:
            tracemalloc.stop()
    require(
        (grown <= np.maximum(_SLACK, _A_STEP * np.diff(steps))).any(),
        f"memory grew by {grown[-1]} bytes from t={steps[-2]} to t={horizon}",
        "keep counts or a window, not the history",
    )
