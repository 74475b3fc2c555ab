"""What a study will run, before anything runs: every sweep unrolled, and what is there already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windage.study.planning import plan
from windage.study.spec import Spec
from windage.study.store import Store

__all__ = ["Planned", "Preview", "preview"]


@dataclass(frozen=True)
class Planned:
    """One agent in one environment at one horizon.

    Attributes
    ----------
    environment, agent
        Their labels.
    seeds
        On how many seeds it is to be run.
    there
        Of how many of them the folder has a result, whole or not: none was read.
    """

    environment: str
    horizon: int
    agent: str
    seeds: int
    there: int


@dataclass(frozen=True)
class Preview:
    """What a study comes to; a run that two labels share is made once, and counted once.

    Attributes
    ----------
    places
        Agents in environments, in the order of the study.
    runs, there
        Runs that are asked for, and of how many the folder has a result.
    steps
        Of the runs that are to be made.
    """

    places: tuple[Planned, ...]
    runs: int
    there: int
    steps: int


def preview(spec: Spec, folder: str | Path | None) -> Preview:
    """Return what a study asks for; agents are tuned, and nothing is written."""
    present = set() if folder is None else Store.at(folder).present("runs")
    asked = plan(spec).manifest.runs
    seeds: dict[tuple[str, int, str], list[bool]] = {}
    for one in asked:
        place = one.environment, one.horizon, one.agent
        seeds.setdefault(place, []).append(one.key in present)
    horizons = {one.key: one.horizon for one in asked}
    return Preview(
        places=tuple(Planned(*place, len(there), sum(there)) for place, there in seeds.items()),
        runs=len(horizons),
        there=len(horizons.keys() & present),
        steps=sum(horizon for key, horizon in horizons.items() if key not in present),
    )
