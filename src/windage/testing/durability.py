"""What must survive in an agent: restarts, impossible calls, and a long life."""

from __future__ import annotations

import gc
import math
import tracemalloc
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from windage.drift import DriftingMDP
from windage.spaces import StateActions
from windage.streams import stream
from windage.testing.playing import Path, asked, play, require, saved
from windage.worlds import Simulator

__all__ = ["check_bad_calls", "check_memory", "check_resume"]

_SLACK = 1024  # bytes that come and go in Python itself
_A_STEP = 4  # bytes a step: half of the smallest thing a list can hold


def check_resume(
    agent: Any, world: DriftingMDP, seed: int, alone: Path, cut: int, told: dict[str, Any]
) -> None:
    """Save after some steps and with a decision pending, go on with the restored agent."""
    if saved(agent) is None or not callable(getattr(type(agent), "from_state", None)):
        return
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
    _refuses(agent, "observe", (s, 0, 0.5, s), "without a decision")
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


def _refuses(agent: Any, method: str, call: tuple[Any, ...], what: str) -> None:
    before, refused = saved(agent), False
    with suppress(ValueError, TypeError, LookupError):
        getattr(agent, method)(*call)
        refused = True
    shown = f"{method}{call!r} {what}"
    fix = "check the arguments before anything else and raise windage.errors.InputError"
    require(not refused, f"{shown} was accepted", fix)
    require(saved(agent) == before, f"{shown} was refused, and changed the state", fix)


def check_memory(agents_: tuple[Any, Any], space: StateActions, horizon: int) -> None:
    """Measure what is allocated in each third of the second half: what leaks, leaks in all three.

    The outcomes are drawn beforehand, and one agent has played before the other is measured, so
    that what Python and the compiler keep for themselves is there already.
    """
    rng = stream(1, "agent_checks")
    states = rng.integers(space.n_states, size=horizon + 1).tolist()
    rewards = rng.integers(2, size=horizon).astype(np.float64).tolist()

    def part_of(agent: Any, first: int, last: int) -> int:
        for i in range(first, last):
            agent.observe(states[i], agent.act(states[i]), rewards[i], states[i + 1])
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    ends = np.linspace(horizon // 2, horizon, 4).astype(np.int64).tolist()
    was_on = tracemalloc.is_tracing()
    if not was_on:
        tracemalloc.start()
    try:  # traced from the first step on: what replaces an older object is then no growth
        part_of(agents_[0], 0, horizon)
        used = [part_of(agents_[1], *part) for part in pairwise([0, *ends])]
    finally:
        if not was_on:
            tracemalloc.stop()
    require(
        min(np.diff(used)) <= max(_SLACK, _A_STEP * (ends[1] - ends[0])),
        f"memory grew by {used[-1] - used[0]} bytes from t={ends[0]} to t={horizon}",
        "keep counts or a window, not the history",
    )
