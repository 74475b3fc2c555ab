"""Replay of a run up to a decision, to ask its agent why.

The same environment, agent and seed give the same steps, so nothing but the study need be kept. The
stored rewards of the run are compared on the way: a replay that differs is refused.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.errors import InputError, StateError, listening
from windage.models import DriftingMDP
from windage.simulate import run
from windage.simulators import Problem
from windage.study.store import Manifest, ManifestRun, Store
from windage.study.task import failing_in_words, recording_step
from windage.validation import as_integer

__all__ = ["Moment", "find_run", "follow", "replay"]

_SHORTEST = 4  # letters of a key that name a run


@dataclass(frozen=True, eq=False)
class Moment:
    """An agent about to decide.

    Attributes
    ----------
    planned, number
        The run as the study asks for it, and its place in it, from 1 on.
    environment, agent
        The environment, and the agent as it was at time t.
    t, state
        The time, and the state at that time.
    """

    planned: ManifestRun
    number: int
    environment: DriftingMDP | Problem
    agent: Any
    t: int
    state: int

    @property
    def asked(self) -> ManifestRun:
        """Former name of `planned`."""
        warnings.warn("`asked` is called `planned`", DeprecationWarning, stacklevel=2)
        return self.planned

    @property
    def world(self) -> DriftingMDP | Problem:
        """Former name of `environment`."""
        warnings.warn("`world` is called `environment`", DeprecationWarning, stacklevel=2)
        return self.environment


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
    places = [k for k, run in enumerate(manifest.runs) if run.key.startswith(wanted)]
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
    planned = manifest.runs[place]
    time = planned.horizon if t is None else as_integer(t, "t", low=1, high=planned.horizon)
    stored = store.run(planned.key)
    environment = manifest.environments[planned.environment_index].build()
    played = None
    with failing_in_words(), listening():  # its warnings were shown when the study ran
        agent = manifest.agents[planned.agent_index].build(environment, planned.seed)
        state = 0
        if time > 1:
            step = recording_step(planned.horizon)
            played = run(environment, agent, planned.seed, steps=time - 1, record=step)
            state = played.final_state
        elif not isinstance(environment, DriftingMDP):
            state = int(environment.reset(planned.seed))
    if stored is not None and played is not None:
        _require_same(played.cumulative_reward, stored["cumulative_reward"][0], planned)
    return Moment(planned, place + 1, environment, agent, time, state)


def follow(moment: Moment) -> tuple[int, float, int] | None:
    """Play the decision; return the action, its reward and the next state.

    Only the library's agents can withdraw a decision: for others the result is None.
    """
    if not isinstance(moment.agent, Agent):
        return None
    moment.agent.withdraw()
    with listening():
        played = run(moment.environment, moment.agent, moment.planned.seed, steps=1)
    return int(played.actions[0]), float(played.rewards[0]), int(played.final_state)


def _require_same(replayed: NDArray[np.float64], stored: pl.Series, planned: ManifestRun) -> None:
    values = np.asarray(stored, dtype=np.float64)[: replayed.size]
    if not np.array_equal(replayed, values):
        first = int(np.argmax(replayed != values))
        raise StateError(
            f"played again, it has collected {replayed[first]:g} where {values[first]:g} is stored",
            field=f"run {planned.key[:12]}",
            where=f"t={(first + 1) * recording_step(planned.horizon)}",
            fix="use the version and the source that made it, or run the study again",
        )
