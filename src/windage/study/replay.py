"""A run of a study played again up to a moment, to ask its agent why.

The same world, the same agent and the same seed give the same steps, so nothing but the study need
be kept. What is stored of the run's rewards is compared on the way: a replay that differs is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.warning_capture import listening
from windage.errors import InputError, StateError
from windage.models import DriftingMDP
from windage.simulate import run
from windage.simulators import Problem
from windage.study.columns import every
from windage.study.manifest import Asked, Manifest
from windage.study.store import Store
from windage.validation import as_integer

__all__ = ["Moment", "find_run", "follow", "replay"]

_SHORTEST = 4  # letters of a key that name a run


@dataclass(frozen=True, eq=False)
class Moment:
    """An agent about to decide.

    Attributes
    ----------
    asked, number
        Which run of the study, and its place in it, from 1 on.
    world, agent
        The world, and the agent as it was at time t.
    t, state
        When, and where it stands.
    """

    asked: Asked
    number: int
    world: DriftingMDP | Problem
    agent: Any
    t: int
    state: int


def find_run(manifest: Manifest, wanted: str) -> int:
    """Return the place of a run in a study, by its number from 1 on or the start of its key.

    Raises
    ------
    InputError
        There is no such run, or there are several.
    """
    n = len(manifest.runs)
    if wanted.isdecimal() and len(wanted) < 2 * _SHORTEST:
        return as_integer(int(wanted), "run", low=1, high=n) - 1
    places = [k for k, asked in enumerate(manifest.runs) if asked.key.startswith(wanted)]
    if len(wanted) < _SHORTEST or not places:
        raise InputError(
            f"no run has the number or the key {wanted!r}",
            field="run",
            fix=f"pass a number from 1 to {n:,}, or {_SHORTEST} letters of a key or more",
        )
    if len({manifest.runs[k].key for k in places}) > 1:
        raise InputError(
            f"{len(places)} keys start with {wanted!r}", field="run", fix="pass more letters"
        )
    return places[0]


def replay(folder: str | Path, wanted: str, t: int | None = None) -> Moment:
    """Play a run of a study again until its agent is about to decide at time t.

    Parameters
    ----------
    folder
        The study's results.
    wanted
        The number of the run in the study, from 1 on, or the start of its key.
    t
        When; the last step if not given.

    Raises
    ------
    StateError
        The replay differs from what is stored: other versions, or another source, made it.
    """
    store = Store.found(folder)
    manifest = store.manifest()
    place = find_run(manifest, wanted)
    asked = manifest.runs[place]
    time = asked.horizon if t is None else as_integer(t, "t", low=1, high=asked.horizon)
    stored = store.run(asked.key)
    world = manifest.worlds[asked.world].make()
    with listening():  # what it warns of was said when the study ran
        agent = manifest.players[asked.player].make(world, asked.seed)
        state = 0
        if time > 1:
            step = every(asked.horizon)
            played = run(world, agent, asked.seed, steps=time - 1, record=step)
            state = played.final_state
            if stored is not None:
                _require_same(played.cumulative_reward, stored["cumulative_reward"][0], asked)
        elif not isinstance(world, DriftingMDP):
            state = int(world.reset(asked.seed))
    return Moment(asked, place + 1, world, agent, time, state)


def follow(moment: Moment) -> tuple[int, float, int] | None:
    """Play the decision; return the action, its reward and the next state.

    Only the library's agents can take back what they were asked: others return None.
    """
    if not isinstance(moment.agent, Agent):
        return None
    moment.agent.withdraw()
    with listening():
        played = run(moment.world, moment.agent, moment.asked.seed, steps=1)
    return int(played.actions[0]), float(played.rewards[0]), int(played.final_state)


def _require_same(found: NDArray[np.float64], stored: pl.Series, asked: Asked) -> None:
    values = np.asarray(stored, dtype=np.float64)[: found.size]
    if not np.array_equal(found, values):
        first = int(np.argmax(found != values))
        raise StateError(
            f"played again, it has collected {found[first]:g} where {values[first]:g} is stored",
            field=f"run {asked.key[:12]}",
            where=f"t={(first + 1) * every(asked.horizon)}",
            fix="use the version and the source that made it, or run the study again",
        )
