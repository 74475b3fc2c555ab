"""What a study will run, before anything runs: every sweep unrolled, and what is there already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windage.study.planning import plan
from windage.study.spec import Spec
from windage.study.store import Store

__all__ = ["Preview", "preview"]


@dataclass(frozen=True)
class Preview:
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


def preview(spec: Spec, folder: str | Path | None) -> list[Preview]:
    """Return what a study asks for, in its order; agents are tuned, and nothing is written."""
    present = set() if folder is None else Store.at(folder).present("runs")
    seeds: dict[tuple[str, int, str], list[bool]] = {}
    for one in plan(spec).manifest.runs:
        place = one.environment, one.horizon, one.agent
        seeds.setdefault(place, []).append(one.key in present)
    return [Preview(*place, len(there), sum(there)) for place, there in seeds.items()]
