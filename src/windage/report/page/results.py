"""The rows of a results folder, sorted into what a page speaks of: settings, agents, cells.

A setting is one environment at one horizon, a cell what one agent did in one setting on all its
seeds. Nothing is computed here; statistics are those of `windage.study.stats`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.study.compare import informed

__all__ = ["Agent", "Cell", "Measure", "Results", "Setting"]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]
Kind = Literal["learner", "informed", "floor"]

_FLOOR = ("random",)  # ids of agents that learn nothing


@dataclass(frozen=True)
class Setting:
    """One environment at one horizon."""

    environment: str
    environment_id: str
    parameters: str
    horizon: int

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.environment}, T = {self.horizon:,}"


@dataclass(frozen=True)
class Agent:
    """One agent as the study names it."""

    label: str
    id: str
    parameters: str
    told: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """Whether it learns, is told the model, or does neither."""
        if informed(self.told):
            return "informed"
        return "floor" if self.id in _FLOOR else "learner"

    def parameter_values(self) -> dict[str, Any]:
        """Return its parameters as the study file has them."""
        found = json.loads(self.parameters)
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Measure:
    """What runs of a setting are compared by; more is better."""

    column: str
    scale: float
    name: str
    unit: str
    digits: int

    def text(self, value: float) -> str:
        """Return a value as people read it."""
        return f"{value:.{self.digits}f}{' %' if self.column == 'share' else ''}"

    def difference(self, value: float) -> str:
        """Return a difference with its sign."""
        return f"{value:+.{self.digits}f}".replace("-", "\u2212")


SHARE = Measure("share", 100.0, "share of the oracle's reward", "points", 1)
REWARD = Measure("reward", 1.0, "mean reward a step", "a step", 4)


class Cell:
    """The runs of one agent in one setting, in the order of their seeds."""

    def __init__(self, setting: Setting, agent: Agent, frame: pl.DataFrame) -> None:
        self.setting = setting
        self.agent = agent
        self.frame = frame.sort("seed")

    @property
    def n(self) -> int:
        """How many runs there are."""
        return self.frame.height

    @cached_property
    def seeds(self) -> Times:
        """The seeds."""
        return self.frame["seed"].to_numpy()

    def values(self, measure: Measure) -> Reals:
        """Return what each run achieved."""
        if measure is REWARD:
            means = self.column("total_mean_reward")  # a world of one's own may not tell them
            earned = means if np.isfinite(means).all() else self.column("total_reward")
            return earned / self.column("steps")
        return measure.scale * self.column(measure.column)

    def by_seed(self, measure: Measure) -> dict[int, float]:
        """Return what the run on each seed achieved."""
        return dict(zip(self.seeds.tolist(), self.values(measure).tolist(), strict=True))

    def column(self, name: str) -> Reals:
        """Return a number of each run; NaN where it has none."""
        return self.frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    def times(self) -> Times:
        """Return the times of its curves."""
        return np.asarray(self.frame["t"][0], dtype=np.int64)

    def curves(self, name: str) -> Reals:
        """Return curves, one row a run."""
        return np.stack([curve.cast(pl.Float64).to_numpy() for curve in self.frame[name]])

    def labels(self, name: str) -> list[Any]:
        """Return the different values of a column, as they come."""
        return self.frame[name].unique(maintain_order=True).to_list()

    def has(self, name: str) -> bool:
        """Whether some run has something in a list column."""
        return bool((self.frame[name].list.len() > 0).any())


class Results:
    """All cells of a study, and the order in which to speak of them."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.settings: list[Setting] = []
        self.agents: list[Agent] = []
        self._cells: dict[tuple[Setting, str], Cell] = {}
        keys = ["environment", "horizon", "agent"]
        for _, part in frame.group_by(keys, maintain_order=True):
            self._add(part)

    def _add(self, part: pl.DataFrame) -> None:
        first = part.row(0, named=True)
        setting = Setting(
            first["environment"],
            first["environment_id"],
            first["environment_parameters"],
            int(first["horizon"]),
        )
        agent = self.agent(first["agent"])
        if agent is None:
            agent = Agent(
                first["agent"], first["agent_id"], first["agent_parameters"], tuple(first["told"])
            )
            self.agents.append(agent)
        if setting not in self.settings:
            self.settings.append(setting)
        self._cells[setting, agent.label] = Cell(setting, agent, part)

    def agent(self, label: str) -> Agent | None:
        """Return the agent of this name."""
        return next((agent for agent in self.agents if agent.label == label), None)

    def cells(self, setting: Setting, kinds: Sequence[Kind] = ()) -> list[Cell]:
        """Return the cells of a setting, in the order of the study."""
        found = (self._cells.get((setting, agent.label)) for agent in self.agents)
        return [cell for cell in found if cell and (not kinds or cell.agent.kind in kinds)]

    def of_agent(self, agent: Agent, environment: str) -> list[Cell]:
        """Return the cells of an agent in an environment, the shortest horizon first."""
        found = [
            cell
            for (setting, label), cell in self._cells.items()
            if label == agent.label and setting.environment == environment
        ]
        return sorted(found, key=lambda cell: cell.setting.horizon)

    def measure(self, setting: Setting) -> Measure:
        """Return what the setting is judged by: the oracle's share, or reward where it has none."""
        shares = [cell.column("share") for cell in self.cells(setting)]
        return SHARE if all(np.isfinite(share).all() for share in shares) else REWARD

    @property
    def environments(self) -> list[str]:
        """The environments, in the order of the study."""
        return list(dict.fromkeys(setting.environment for setting in self.settings))

    def longest(self, environment: str) -> Setting:
        """Return the setting of an environment with the longest horizon."""
        found = [setting for setting in self.settings if setting.environment == environment]
        return max(found, key=lambda setting: setting.horizon)
