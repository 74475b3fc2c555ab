"""Data of a report: the runs of a study by setting and agent, their comparisons, and oracles.

A setting is one environment at one horizon; `AgentRuns` are the runs of one agent in one setting on
all its seeds. Agents of a setting are compared seed by seed: `windage.study.compare` has the rule
of which pairs are tested and how tests are corrected, `windage.study.stats` the statistics.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.confidence.tuning import optimal_widening, optimal_window
from windage.report.page.chart import AgentStyle, styles_of
from windage.spaces import StateActions
from windage.study import stats
from windage.study.compare import Plan, corrected, informed
from windage.study.stats import Interval, Paired
from windage.study.store import ManifestRun

__all__ = [
    "LEVEL",
    "REWARD",
    "SHARE",
    "AgentRuns",
    "Asked",
    "Contrast",
    "Material",
    "Measure",
    "Oracle",
    "Results",
    "Scored",
    "Setting",
    "Standings",
    "StudyAgent",
    "compare",
    "gather",
    "rounded_text",
    "settings_of",
    "shared",
    "values_of",
]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]
Kind = Literal["learner", "informed", "floor"]

_FLOOR = ("random",)  # ids of agents that learn nothing

LEVEL = 0.05
"""Differences with a corrected p-value below this are called significant."""


@dataclass(frozen=True)
class Setting:
    """One environment at one horizon."""

    environment: str
    environment_id: str
    parameters: str
    horizon: int

    @property
    def title(self) -> str:
        """Its name on the page."""
        return f"{self.environment}, T = {self.horizon:,}"


@dataclass(frozen=True)
class StudyAgent:
    """One agent as the study names it."""

    label: str
    id: str
    parameters: str
    told: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """Whether it learns, requires the model, or does neither."""
        if informed(self.told):
            return "informed"
        return "floor" if self.id in _FLOOR else "learner"

    def parameter_values(self) -> dict[str, Any]:
        """Return its parameters as the study file has them."""
        found = json.loads(self.parameters)
        return found if isinstance(found, dict) else {}

    @property
    def own(self) -> bool:
        """Whether it is a class of the user's, which a reader can look up nowhere else."""
        return ":" in self.id


@dataclass(frozen=True)
class Measure:
    """The measure by which runs of a setting are compared; more is better."""

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


SHARE = Measure("share", 100.0, "share of the optimal gain", "points", 1)
REWARD = Measure("reward", 1.0, "mean reward per step", "per step", 4)


class AgentRuns:
    """The runs of one agent in one setting, in the order of their seeds."""

    def __init__(self, setting: Setting, agent: StudyAgent, frame: pl.DataFrame) -> None:
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
            means = self.column("total_mean_reward")  # a user's simulator may not give them
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

    def settings_text(self) -> list[str]:
        """Return what else was set: of an own agent all parameters, of others what is unusual."""
        if not self.agent.own:
            return [rounded_text(text) for text in self.labels("variant") if text]
        shown = [name for name in ("window", "widening", "delta") if any(self.labels(name))]
        texts = []
        for text in self.labels("agent_parameters"):
            values = json.loads(text).items()
            parts = [f"{name} {_word(value)}" for name, value in values if name not in shown]
            texts.append(rounded_text(", ".join(parts)))
        return [text for text in texts if text]

    def has(self, name: str) -> bool:
        """Whether some run has something in a list column."""
        return bool((self.frame[name].list.len() > 0).any())


def values_of(cells: Iterable[AgentRuns], name: str) -> list[Any]:
    """Return the different values of a column; null and an empty text are none, but 0 is one."""
    found = dict.fromkeys(value for cell in cells for value in cell.labels(name))
    return [value for value in found if value is not None and value != ""]


def settings_of(cells: Iterable[AgentRuns]) -> list[str]:
    """Return the different texts on what else was set."""
    return list(dict.fromkeys(text for cell in cells for text in cell.settings_text()))


def rounded_text(text: str) -> str:
    """Return a text with its numbers in four digits.

    >>> rounded_text("slack 4.47003527154273, prior 1")
    'slack 4.47, prior 1'
    """
    return re.sub(r"\d+\.\d{4,}", lambda found: f"{float(found[0]):.4g}", text)


def _word(value: Any) -> str:
    """Return a parameter in words.

    >>> _word(True), _word(None), _word(0.5), _word([1, 2])
    ('yes', 'none', '0.5', '[1, 2]')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


class Results:
    """All cells of a study, and the order in which to speak of them."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.settings: list[Setting] = []
        self.agents: list[StudyAgent] = []
        self._cells: dict[tuple[Setting, str], AgentRuns] = {}
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
            agent = StudyAgent(
                first["agent"], first["agent_id"], first["agent_parameters"], tuple(first["told"])
            )
            self.agents.append(agent)
        if setting not in self.settings:
            self.settings.append(setting)
        self._cells[setting, agent.label] = AgentRuns(setting, agent, part)

    def agent(self, label: str) -> StudyAgent | None:
        """Return the agent of this name."""
        return next((agent for agent in self.agents if agent.label == label), None)

    def cells(self, setting: Setting, kinds: Sequence[Kind] = ()) -> list[AgentRuns]:
        """Return the cells of a setting, in the order of the study."""
        found = (self._cells.get((setting, agent.label)) for agent in self.agents)
        return [cell for cell in found if cell and (not kinds or cell.agent.kind in kinds)]

    def cells_of(self, label: str) -> list[AgentRuns]:
        """Return the cells of one agent in all settings."""
        return [cell for (_, name), cell in self._cells.items() if name == label]

    def of_agent(self, agent: StudyAgent, environment: str) -> list[AgentRuns]:
        """Return the cells of an agent in an environment, the shortest horizon first."""
        found = [
            cell
            for (setting, label), cell in self._cells.items()
            if label == agent.label and setting.environment == environment
        ]
        return sorted(found, key=lambda cell: cell.setting.horizon)

    def measure(self, setting: Setting) -> Measure:
        """Return the measure of a setting: the share of the optimal gain, else the reward."""
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


@dataclass(frozen=True, eq=False)
class Scored:
    """A cell and its mean over seeds."""

    cell: AgentRuns
    score: Interval

    @property
    def label(self) -> str:
        """The agent's name."""
        return self.cell.agent.label


@dataclass(frozen=True, eq=False)
class Contrast:
    """One agent less another, on the seeds both have."""

    better: Scored
    other: Scored
    found: Paired
    corrected: float

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below the level."""
        return self.corrected < LEVEL


@dataclass(frozen=True, eq=False)
class Standings:
    """Ranking and tests of the agents in one setting.

    Attributes
    ----------
    setting, measure
        The setting, and the measure by which agents are compared.
    ranking
        All agents, the best mean first.
    contrasts
        The best learner less every other agent that does not require the model, in that order; or
        the comparisons that were planned.
    corrected
        The p-values of all pairs that were tested, by their labels, corrected by Holm's rule.
    plan
        Which pairs were to be tested.
    """

    setting: Setting
    measure: Measure
    ranking: Sequence[Scored]
    contrasts: Sequence[Contrast]
    corrected: Mapping[frozenset[str], float]
    plan: Plan = field(default_factory=Plan)

    @property
    def tests(self) -> int:
        """How many pairs were tested."""
        return len(self.corrected)

    def apart(self, one: str, other: str) -> bool:
        """Whether a test tells two agents apart, given their labels."""
        return self.corrected.get(frozenset((one, other)), 1.0) < LEVEL

    @property
    def learners(self) -> list[Scored]:
        """The learners, the best first."""
        return [one for one in self.ranking if one.cell.agent.kind == "learner"]

    @property
    def rivals(self) -> list[Contrast]:
        """The contrasts of the best learner with other learners."""
        return [one for one in self.contrasts if one.other.cell.agent.kind == "learner"]

    @property
    def seeds(self) -> int:
        """How many seeds the agents have at most."""
        return max(one.cell.n for one in self.ranking)

    @property
    def paired_seeds(self) -> int:
        """How many seeds the best learner shares with the others at least."""
        return min((contrast.found.n for contrast in self.contrasts), default=0)

    @property
    def needed_seeds(self) -> int:
        """From how many seeds on a test can say yes at all: with n the least p-value is 2^(1-n)."""
        return 1 + math.floor(1 + math.log2(max(self.tests, 1) / LEVEL))

    @property
    def decidable(self) -> bool:
        """Whether there are that many."""
        return self.paired_seeds >= self.needed_seeds


def compare(results: Results, setting: Setting, plan: Plan) -> Standings:
    """Return the ranking and the tests of a setting: those that were planned, or of all pairs."""
    measure = results.measure(setting)
    scored = [Scored(cell, stats.mean(cell.values(measure))) for cell in results.cells(setting)]
    ranking = sorted(scored, key=lambda one: -one.score.estimate)
    judged = [one for one in ranking if one.cell.agent.kind != "informed"]
    tested = corrected({one.label: one.cell.by_seed(measure) for one in judged}, plan)
    p_values = {frozenset(pair): p for pair, p in tested.items()}
    best = next((one for one in judged if one.cell.agent.kind == "learner"), None)
    others = [other for other in judged if best is not None and other is not best]
    pairs = [(best.label, other.label) for other in others] if best else []
    by_label = {one.label: one for one in judged}
    contrasts = []
    for labels in plan.pairs_of(by_label) if plan else pairs:
        one, other = (by_label[label] for label in labels)
        first, second = shared(one.cell, other.cell, measure)
        if first.size:
            p = p_values.get(frozenset(labels), 1.0)
            contrasts.append(Contrast(one, other, stats.paired(first, second), p))
    return Standings(setting, measure, ranking, contrasts, p_values, plan)


def shared(
    one: AgentRuns, other: AgentRuns, measure: Measure
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what two agents achieved on the seeds that both have."""
    _, first, second = np.intersect1d(one.seeds, other.seeds, return_indices=True)
    return one.values(measure)[first], other.values(measure)[second]


@dataclass(frozen=True, eq=False)
class Oracle:
    """rho*_t of a setting at some times, and (W*, eta*) of Theorem 1 there."""

    times: NDArray[np.int64]
    gains: Reals
    tuning: tuple[float, float]


@dataclass(frozen=True)
class Asked:
    """What a study asks for, whether it was found or not.

    Attributes
    ----------
    runs
        All of them.
    plan
        Which agents are to be compared.
    failed
        The keys of runs that failed when they were last tried.
    """

    runs: Sequence[ManifestRun] = ()
    plan: Plan = field(default_factory=Plan)
    failed: Set[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Material:
    """Results, comparisons, styles and oracles: the input of charts and words.

    Attributes
    ----------
    results
        The runs, in cells.
    comparisons
        Ranking and tests of each setting.
    styles
        The style of each agent on all charts, by its label.
    oracles
        Optimal gains over time, where they are known.
    asked
        What the study asks for.
    """

    results: Results
    comparisons: Mapping[Setting, Standings]
    styles: Mapping[str, AgentStyle]
    oracles: Mapping[tuple[str, int], Oracle]
    asked: Asked = field(default_factory=Asked)

    @property
    def missing(self) -> dict[tuple[str, int], list[str]]:
        """The agents without a finished run, by environment and horizon."""
        done = {(s.environment, s.horizon, cell.agent.label)
                for s in self.results.settings for cell in self.results.cells(s)}  # fmt: skip
        found: dict[tuple[str, int], list[str]] = {}
        for run in self.asked.runs:
            agents = found.setdefault((run.environment, run.horizon), [])
            place = (run.environment, run.horizon, run.agent)
            if place not in done and run.agent not in agents:
                agents.append(run.agent)
        return {place: agents for place, agents in found.items() if agents}

    @property
    def nowhere(self) -> list[str]:
        """The agents without any finished run."""
        known = {agent.label for agent in self.results.agents}
        return [a for a in dict.fromkeys(run.agent for run in self.asked.runs) if a not in known]

    @property
    def tuned(self) -> dict[str, str]:
        """What was picked on other seeds for some agents, and on which, by their labels."""
        return {run.agent: run.tuned for run in self.asked.runs if run.tuned}

    def has_failed(self, agent: str, environment: str = "", horizon: int = 0) -> bool:
        """Whether all runs of an agent failed; of all its runs, or of those in one setting."""
        runs = [
            run
            for run in self.asked.runs
            if run.agent == agent
            and (environment, horizon) in (("", 0), (run.environment, run.horizon))
        ]
        return bool(runs) and all(run.key in self.asked.failed for run in runs)

    def best_of(self) -> dict[tuple[str, str, int], list[str]]:
        """Return where the best learner is one of several settings of its kind.

        By its label, its id, and how many there are: the environments. Agents of planned
        comparisons are named in advance, and tuned ones picked on other seeds.
        """
        found: dict[tuple[str, str, int], list[str]] = {}
        for standings in [] if self.asked.plan else self.judged:
            learners = [one for one in standings.learners if one.label not in self.tuned]
            for best in (one for one in standings.learners[:1] if one in learners):
                id = best.cell.agent.id  # noqa: A001
                n = sum(one.cell.agent.id == id for one in learners)
                if n > 1:
                    where = found.setdefault((best.label, id, n), [])
                    where.append(standings.setting.environment)
        return found

    @property
    def judged(self) -> Sequence[Standings]:
        """The comparison of the longest horizon of each environment."""
        return [self.comparisons[self.results.longest(e)] for e in self.results.environments]

    def oracle(self, setting: Setting) -> Oracle | None:
        """Return the oracle's curve of a setting."""
        return self.oracles.get((setting.environment, setting.horizon))


def gather(frame: pl.DataFrame, oracles: pl.DataFrame, asked: Asked | None = None) -> Material:
    """Return the material of a page, from the rows of runs and of oracles."""
    results, asked = Results(frame), asked or Asked()
    comparisons = {setting: compare(results, setting, asked.plan) for setting in results.settings}
    curves = {
        (row["environment"], int(row["horizon"])): Oracle(
            np.array(row["t"]),
            np.array(row["optimal_gain"], dtype=np.float64),
            _tuning(row),
        )
        for row in oracles.iter_rows(named=True)
        if row["optimal_gain"]
    }
    return Material(results, comparisons, _styles(results, comparisons), curves, asked)


def _tuning(row: dict[str, Any]) -> tuple[float, float]:
    """Return W* and eta*; they depend on the sizes only through S and the mean of A."""
    S, pairs = int(row["states"]), int(row["pairs"])
    space = StateActions([1] * (S - 1) + [pairs - S + 1])
    known = (space, int(row["horizon"]), row["reward_budget"], row["transition_budget"])
    return optimal_window(*known), optimal_widening(*known)


def _styles(results: Results, comparisons: Mapping[Setting, Standings]) -> dict[str, AgentStyle]:
    """Give every agent its style; of many learners the best are coloured."""
    kinds = {
        kind: [agent.label for agent in results.agents if agent.kind == kind]
        for kind in ("learner", "informed", "floor")
    }
    found = styles_of(kinds["learner"], kinds["informed"], kinds["floor"])
    if any(not style.coloured for style in found):
        ranks: dict[str, list[int]] = {label: [] for label in kinds["learner"]}
        for comparison in comparisons.values():
            for place, one in enumerate(comparison.learners):
                ranks[one.label].append(place)
        best = sorted(kinds["learner"], key=lambda label: float(np.mean(ranks[label])))
        found = styles_of(best, kinds["informed"], kinds["floor"])
    return {style.label: style for style in found}
