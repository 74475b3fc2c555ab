"""Columns of result files, each declared once: its name, its type, and how it is computed.

To add a column, add one `Column` to `RUN` or `ORACLE` with `nullable=True`: older files, which lack
it, are read with nulls in it, and stay valid. Columns that are required, or that mean something
else than before, are another format: `configs.FORMAT` then changes, and with it every key.

A file is one row of Parquet with a checksum of every byte, in the file's own metadata under
`windage.sha256`: it is the SHA-256 of the file with 64 zeros in its place. A file holds results
only, so the same run gives the same bytes on any machine with the same versions.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage import agents, envs
from windage.agents.base import Agent
from windage.atomic_io import unreadable
from windage.errors import StateError
from windage.models import DriftingMDP
from windage.models.gains import GainCurve
from windage.recording import Run
from windage.regret import rounding
from windage.simulators import Problem
from windage.study.configs import FILE, AgentConfig, EnvironmentConfig, agent_parameters, changed

__all__ = [
    "ORACLE",
    "RUN",
    "Column",
    "FinishedRun",
    "Gains",
    "Schema",
    "SolvedEnvironment",
    "changed_columns",
    "decode",
    "encode",
    "read",
    "times_of",
]

MOST_EPISODES = 2_000
MOST_FORGETTING_TIMES = 100

_MOST_LISTED = 64  # values of a parameter that every run writes down

_NOT_A_VARIANT = (
    "window", "widening", "delta", "radii", "ties", "seed", "problem", "diameter", "reward_range",
)  # fmt: skip

Reals = NDArray[np.float64]


class Gains(NamedTuple):
    """The benchmark of runs in one environment: sums of rho*_t up to the times of their curves."""

    cumulative: Reals
    total: float
    error: float


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run that was made, from which all columns of `RUN` are computed.

    Attributes
    ----------
    environment, agent
        As the study configures them.
    problem, learner
        The environment itself, and the agent as it is at the end.
    gains
        The benchmark of the run; None if it is measured by its reward only.
    """

    key: str
    environment: EnvironmentConfig
    agent: AgentConfig
    seed: int
    problem: DriftingMDP | Problem
    learner: Any
    run: Run
    gains: Gains | None

    @functools.cached_property
    def times(self) -> NDArray[np.int64]:
        """The times of the curves."""
        return times_of(self.run.times, self.run.last)

    @functools.cached_property
    def mean_reward_curve(self) -> Reals:
        """Cumulative mean rewards at these times."""
        return self.curve(self.run.cumulative_mean_reward, self.run.total_mean_reward)

    @property
    def mean_rewards_known(self) -> bool:
        """Whether the environment has mean rewards; one of the user's own may have none."""
        return math.isfinite(self.run.total_mean_reward)

    @property
    def benchmark(self) -> Gains:
        """The benchmark of a run that has one."""
        assert self.gains is not None
        return self.gains

    @property
    def oracle_error(self) -> float:
        """Bound of the error of the regret: that of the oracle, and rounding."""
        earned = max(abs(self.run.total_mean_reward), abs(self.run.total_reward))
        return self.benchmark.error + rounding(self.benchmark.total + earned)

    @property
    def share(self) -> float | None:
        """Mean reward as a share of the optimal gain; None if that is not positive."""
        total = self.benchmark.total
        return self.run.total_mean_reward / total if total > 0 else None

    @property
    def last_episodes(self) -> slice:
        """The episodes that are kept."""
        return slice(max(0, len(self.run.episodes) - MOST_EPISODES), None)

    @property
    def remembers(self) -> bool:
        """Whether the agent's memory was counted, and held anything."""
        census = self.run.census
        return census is not None and bool(census.counts.any())

    @functools.cached_property
    def forgetting(self) -> tuple[Any, slice] | None:
        """The effective memory of a multi-scale learner, and which of its times are kept."""
        if not isinstance(self.learner, agents.MultiScale | agents.MultiScaleGuarded):
            return None
        forgetting = self.learner.forgetting()
        return forgetting, slice(None, None, -(-forgetting.times.size // MOST_FORGETTING_TIMES))

    def curve(self, sums: Reals, total: float) -> Reals:
        """Return recorded sums with the total at T."""
        return sums if sums.size == self.times.size else np.append(sums, total)

    def setting(self, name: str, kind: type) -> Any:
        """Return an attribute of the agent; None if it has none, or another type."""
        value = getattr(self.learner, name, None)
        return value if isinstance(value, kind) else None


class SolvedEnvironment(NamedTuple):
    """An environment whose optimal gains are known: the columns of `ORACLE` are computed from it.

    Attributes
    ----------
    times, cumulative
        The times of the runs' curves, and the sums of rho*_t up to them.
    total, error
        The sum up to T, and a bound of its error.
    """

    environment: EnvironmentConfig
    model: DriftingMDP
    curve: GainCurve
    times: NDArray[np.int64]
    cumulative: Reals
    total: float
    error: float


@dataclass(frozen=True)
class Column:
    """One column of a result file.

    Attributes
    ----------
    compute
        Returns the value for a `FinishedRun`, or for a `SolvedEnvironment`.
    nullable
        Whether the value may be unknown. Such a column may be added later: files without it are
        read with a null in its place.
    """

    name: str
    dtype: pl.DataType | type[pl.DataType]
    compute: Callable[[Any], Any]
    nullable: bool = False


class Schema:
    """The columns of one kind of result file, in their order."""

    def __init__(self, *columns: Column) -> None:
        self.columns = columns
        self.dtypes = {column.name: column.dtype for column in columns}

    def row(self, source: FinishedRun | SolvedEnvironment) -> dict[str, Any]:
        """Compute all columns."""
        return {column.name: column.compute(source) for column in self.columns}


def times_of(recorded: NDArray[np.int64], T: int) -> NDArray[np.int64]:
    """Return the times of a curve: those recorded, and T."""
    return recorded if recorded.size and recorded[-1] == T else np.append(recorded, T)


_STRINGS, _INTEGERS, _REALS = pl.List(pl.String), pl.List(pl.Int64), pl.List(pl.Float64)


def _if_measured(compute: Callable[[FinishedRun], Any]) -> Callable[[FinishedRun], Any]:
    """Return a computation that gives null for runs without an oracle."""
    return lambda done: None if done.gains is None else compute(done)


def _episodes(name: str) -> Callable[[FinishedRun], Any]:
    """Return the computation of one field of the last episodes."""

    def values(done: FinishedRun) -> Any:
        column = getattr(done.run.episodes, name)[done.last_episodes]
        return column.tolist() if name == "reason" else column

    return values


def _of_borl(compute: Callable[[Any], Any]) -> Callable[[FinishedRun], Any]:
    """Return a computation for BORL; other agents have no blocks."""
    return lambda done: compute(done.learner) if isinstance(done.learner, agents.BORL) else []


def _if_remembered(compute: Callable[[Any], Any]) -> Callable[[FinishedRun], Any]:
    return lambda done: compute(done) if done.remembers else []


def _forgetting(compute: Callable[[Any], Any]) -> Callable[[FinishedRun], Any]:
    """Return a computation for multi-scale learners, at some of their times."""

    def values(done: FinishedRun) -> Any:
        if done.forgetting is None:
            return []
        forgetting, kept = done.forgetting
        return compute(forgetting)[kept]

    return values


RUN = Schema(
    Column("key", pl.String, lambda done: done.key),
    Column("environment_id", pl.String, lambda done: done.environment.id),
    Column("environment_parameters", pl.String, lambda done: _parameters(done.environment)),
    Column("agent_id", pl.String, lambda done: done.agent.id),
    Column(
        "agent_parameters",
        pl.String,
        lambda done: json.dumps(_short(done.agent.parameters), sort_keys=True),
    ),
    Column("horizon", pl.Int64, lambda done: done.problem.horizon),
    Column("seed", pl.Int64, lambda done: done.seed),
    # labels that a result must carry
    Column(
        "radii",
        pl.String,
        lambda done: getattr(getattr(done.learner, "radii", None), "label", None),
        nullable=True,
    ),
    Column(
        "ties",
        pl.String,
        lambda done: done.setting("ties", str) if isinstance(done.learner, Agent) else None,
        nullable=True,
    ),
    Column("variant", pl.String, lambda done: _variant(done), nullable=True),
    Column(
        "told",
        _STRINGS,
        lambda done: list(
            getattr(done.learner, "requires", ()) if done.agent.told is None else done.agent.told
        ),
    ),
    Column("window", pl.Int64, lambda done: done.setting("window", int), nullable=True),
    Column("widening", pl.Float64, lambda done: done.setting("widening", float), nullable=True),
    Column("delta", pl.Float64, lambda done: done.setting("delta", float), nullable=True),
    # totals
    Column("steps", pl.Int64, lambda done: done.run.steps),
    Column("total_reward", pl.Float64, lambda done: done.run.total_reward),
    Column(
        "total_mean_reward",
        pl.Float64,
        lambda done: done.run.total_mean_reward if done.mean_rewards_known else None,
        nullable=True,
    ),
    Column(
        "oracle_reward", pl.Float64, _if_measured(lambda done: done.benchmark.total), nullable=True
    ),
    Column(
        "oracle_error",
        pl.Float64,
        _if_measured(lambda done: done.oracle_error),
        nullable=True,
    ),
    Column(
        "regret",
        pl.Float64,
        _if_measured(lambda done: done.benchmark.total - done.run.total_mean_reward),
        nullable=True,
    ),
    Column(
        "observed_regret",
        pl.Float64,
        _if_measured(lambda done: done.benchmark.total - done.run.total_reward),
        nullable=True,
    ),
    Column("share", pl.Float64, _if_measured(lambda done: done.share), nullable=True),
    # curves
    Column("t", _INTEGERS, lambda done: done.times),
    Column(
        "cumulative_reward",
        _REALS,
        lambda done: done.curve(done.run.cumulative_reward, done.run.total_reward),
    ),
    Column(
        "cumulative_mean_reward",
        _REALS,
        lambda done: done.mean_reward_curve if done.mean_rewards_known else None,
        nullable=True,
    ),
    Column(
        "cumulative_regret",
        _REALS,
        _if_measured(lambda done: done.benchmark.cumulative - done.mean_reward_curve),
        nullable=True,
    ),
    # the last episodes, and how many there were
    Column("episodes", pl.Int64, lambda done: done.run.episodes.total),
    Column("episode_start", _INTEGERS, _episodes("start")),
    Column("episode_length", _INTEGERS, _episodes("length")),
    Column("episode_reason", _STRINGS, _episodes("reason")),
    Column("episode_gain", _REALS, _episodes("gain")),
    Column("episode_span", _REALS, _episodes("span")),
    Column("episode_sweeps", _INTEGERS, _episodes("sweeps")),
    Column("episode_vacuous", _REALS, _episodes("vacuous")),
    Column("episode_ties", _INTEGERS, _episodes("ties")),
    # blocks and arms of BORL
    Column("block_arm", _INTEGERS, _of_borl(lambda borl: borl.blocks.arm)),
    Column(
        "block_reward",
        _REALS,
        _of_borl(lambda borl: np.where(borl.blocks.told, borl.blocks.reward, math.nan)),
    ),
    Column(
        "block_probabilities",
        pl.List(_REALS),
        _of_borl(lambda borl: borl.blocks.probabilities.tolist()),
    ),
    Column("arm_window", _INTEGERS, _of_borl(lambda borl: [W for W, _ in borl.arms])),
    Column("arm_widening", _REALS, _of_borl(lambda borl: [eta for _, eta in borl.arms])),
    # memory counts per state-action pair
    Column("memory_t", _INTEGERS, _if_remembered(lambda done: done.run.census.times)),
    Column(
        "memory_counts", pl.List(_INTEGERS), _if_remembered(lambda done: done.run.census.counts)
    ),
    Column("pair_names", _STRINGS, _if_remembered(lambda done: _pair_names(done.problem))),
    # effective memory of multi-scale learners
    Column("forgetting_t", _INTEGERS, _forgetting(lambda forgetting: forgetting.times)),
    Column(
        "forgetting_transitions",
        _REALS,
        _forgetting(lambda forgetting: forgetting.mean("transitions")),
    ),
    Column(
        "forgetting_rewards", _REALS, _forgetting(lambda forgetting: forgetting.mean("rewards"))
    ),
)
"""The columns of a run's file. Unknown values are null; lists an agent does not have are empty."""

ORACLE = Schema(
    Column("key", pl.String, lambda solved: solved.environment.key),
    Column("environment_id", pl.String, lambda solved: solved.environment.id),
    Column("environment_parameters", pl.String, lambda solved: _parameters(solved.environment)),
    Column("horizon", pl.Int64, lambda solved: solved.model.horizon),
    Column("states", pl.Int64, lambda solved: solved.model.space.n_states),
    Column("pairs", pl.Int64, lambda solved: solved.model.space.n_pairs),
    Column("reward_budget", pl.Float64, lambda solved: solved.model.budgets().reward),
    Column("transition_budget", pl.Float64, lambda solved: solved.model.budgets().transition),
    Column(
        "diameter_bound",
        pl.Float64,
        lambda solved: _diameter_bound(solved.environment),
        nullable=True,
    ),
    Column("total", pl.Float64, lambda solved: solved.total),
    Column("error", pl.Float64, lambda solved: solved.error),
    Column("largest_error", pl.Float64, lambda solved: solved.curve.error),
    Column("solves", pl.Int64, lambda solved: solved.curve.solves),
    Column("t", _INTEGERS, lambda solved: solved.times),
    Column("optimal_gain", _REALS, lambda solved: solved.curve.evaluate(solved.times)[0]),
    Column("cumulative", _REALS, lambda solved: solved.cumulative),
)
"""The columns of an oracle's file: rho*_t at the times of the runs' curves, and its sums."""


def _parameters(environment: EnvironmentConfig) -> str:
    """Return the parameters of an environment as JSON, with the digest of a file or a module."""
    digest = {"digest": environment.digest} if environment.digest else {}
    return json.dumps(environment.parameters | digest, sort_keys=True)


def _diameter_bound(environment: EnvironmentConfig) -> float | None:
    """Return the closed form of the library's own environments."""
    if ":" in environment.id or environment.id == FILE:
        return None
    return envs.facts(environment.id, **environment.parameters).diameter_bound


def _variant(done: FinishedRun) -> str | None:
    """Return the parameters that differ from their defaults and have no column of their own."""
    parameters = _short(done.agent.parameters)
    if isinstance(done.learner, Agent):
        known = _defaults(type(done.learner))
        names = [n for n in known if n in parameters and parameters[n] != known[n]]
    else:
        shown = {"window": int, "widening": float, "delta": float}
        names = [
            name
            for name in changed(agent_parameters(done.agent.id, "agent"), done.agent.parameters)
            if name not in shown or done.setting(name, shown[name]) is None
        ]
    return ", ".join(f"{name} {_word(parameters[name])}" for name in names) or None


@functools.cache
def _defaults(kind: type[Agent]) -> dict[str, Any]:
    known = agents.parameters(kind).items()
    return {name: p.default for name, p in known if name not in _NOT_A_VARIANT}


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _short(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with long lists as their length; the manifest has them in full."""
    return {
        name: f"{len(value):,} values"
        if isinstance(value, list) and len(value) > _MOST_LISTED
        else value
        for name, value in parameters.items()
    }


def _pair_names(problem: DriftingMDP | Problem) -> list[str]:
    space = problem.space
    pairs = zip(space.state_of.tolist(), space.action_of.tolist(), strict=True)
    return [f"{space.state_name(s)}/{space.action_name(s, a)}" for s, a in pairs]


# --- files ---------------------------------------------------------------------------------------

_NAME = "windage.sha256"
_BLANK = b"0" * 64


def encode(row: dict[str, Any], schema: Schema) -> bytes:
    """Return a row as the bytes of its file; everything that could vary is fixed."""
    values = [row[name] for name in schema.dtypes]
    frame = pl.DataFrame([values], schema=schema.dtypes, orient="row")
    file = io.BytesIO()
    frame.write_parquet(
        file,
        compression="zstd",
        compression_level=1,
        statistics=False,
        metadata={_NAME: _BLANK.decode()},
    )
    data = file.getvalue()
    start = _checksum_start(data)
    assert data[start : start + 64] == _BLANK
    digest = hashlib.sha256(data).hexdigest().encode()
    return data[:start] + digest + data[start + 64 :]


def decode(data: bytes, schema: Schema, path: Path) -> pl.DataFrame:
    """Return the row of a file, or refuse a file that is not, to the last bit, as it was written.

    Nullable columns that the file lacks are null; columns of a later version are left out.

    Raises
    ------
    StateError
        A bit is wrong, or the file was written with other columns.
    """
    frame = _checked(data, schema, path)
    missing = [name for name in schema.dtypes if name not in frame.columns]
    nulls = [pl.lit(None, dtype=schema.dtypes[name]).alias(name) for name in missing]
    return frame.with_columns(nulls).select(list(schema.dtypes))


def changed_columns(before: bytes, after: bytes, schema: Schema, path: Path) -> list[str]:
    """Return the columns in which two files differ, of those that both have."""
    if before == after:
        return []
    first, second = _checked(before, schema, path), _checked(after, schema, path)
    both = [name for name in schema.dtypes if name in first.columns and name in second.columns]
    return [name for name in both if not first[name].equals(second[name], null_equal=True)]


def read(path: Path, schema: Schema) -> pl.DataFrame | None:
    """Return the row of a file; None if there is no file.

    Raises
    ------
    StateError
        It is damaged.
    InputError
        It cannot be read today, which says nothing about what it holds.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise unreadable(path, err) from None
    frame = decode(data, schema, path)
    if frame["key"][0] != path.stem:
        raise _damaged(path, f"it holds the result {frame['key'][0]}")
    return frame


def _checked(data: bytes, schema: Schema, path: Path) -> pl.DataFrame:
    """Return the row of a file as it was written, with the columns it was written with."""
    try:
        start = _checksum_start(data)
        blank = data[:start] + _BLANK + data[start + 64 :]
        if hashlib.sha256(blank).hexdigest().encode() != data[start : start + 64]:
            raise ValueError("its checksum is wrong")
        frame = pl.read_parquet(io.BytesIO(data))
    except Exception as err:
        raise _damaged(path, str(err).split("\n")[0]) from None
    written = dict(frame.schema)
    fits = all(
        written[column.name] == column.dtype if column.name in written else column.nullable
        for column in schema.columns
    )
    if not fits or frame.height != 1:
        raise _damaged(path, "it has other columns than this version reads")
    return frame


def _damaged(path: Path, why: str) -> StateError:
    return StateError(
        f"is damaged ({why})",
        field=str(path),
        fix="run the study again: `windage run` computes it anew and nothing else",
    )


def _checksum_start(data: bytes) -> int:
    """Return where the checksum stands: behind its name, in the metadata at the end."""
    name = data.rfind(_NAME.encode())
    if name < 0 or data[-4:] != b"PAR1" or len(data) < name + len(_NAME) + 66:
        raise ValueError("it has no checksum, or its end is missing")
    return name + len(_NAME) + 2  # behind the type and the length of the text
