"""`Study`: agents, environments, horizons and seeds to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Self

import numpy as np

from windage.confidence.radii import Radii
from windage.errors import InputError
from windage.study.expand import Preview, preview
from windage.study.runner import StudyStatus, StudySummary, run_study
from windage.study.spec import Spec, read_spec
from windage.validation import shown

__all__ = ["Study"]


class Study:
    """A comparison to be run: environments, agents, horizons and seeds.

    Parameters
    ----------
    environments, agents
        Tables as a study file has them: an `id`, maybe a `label`, and parameters. A list where one
        value would do is a sweep; a tuple is one value, and so are `Radii`.
    horizon
        T, or several; environments that are read from files have their own.
    seeds
        How many, or which. Every agent meets the same noise on the same seed.
    name
        Of the study.

    Examples
    --------
    >>> agents = [{"id": "random"}, {"id": "ucrl2", "delta": [0.05, 0.1]}]
    >>> Study([{"id": "riverswim"}], agents, horizon=1000, seeds=5, name="first look")
    Study('first look': 1 environment, 3 agents, 5 seeds, 15 runs)
    """

    def __init__(
        self,
        environments: Sequence[Mapping[str, Any]],
        agents: Sequence[Mapping[str, Any]],
        *,
        horizon: int | Sequence[int] | None = None,
        seeds: int | Sequence[int] = 20,
        name: str = "study",
    ) -> None:
        data: dict[str, Any] = {
            "name": name,
            "seeds": _numbers(seeds),
            "environments": _tables(environments, "environments"),
            "agents": _tables(agents, "agents"),
        }
        if horizon is not None:
            data["horizon"] = _numbers(horizon)
        self.spec = read_spec(data)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study file; an error names the place in it."""
        return cls._of(read_spec(path))

    @classmethod
    def _of(cls, spec: Spec) -> Self:
        study = cls.__new__(cls)
        study.spec = spec
        return study

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.spec.name

    def preview(self, folder: str | Path | None = None) -> Preview:
        """Return the runs the study asks for, sweeps unrolled, and how many of them a folder has.

        >>> agents = [{"id": "ucrl2", "delta": [0.05, 0.1]}]
        >>> study = Study([{"id": "riverswim"}], agents, horizon=1000, seeds=5)
        >>> [(row.agent, row.seeds, row.done) for row in study.preview().places]
        [('ucrl2, delta 0.05', 5, 0), ('ucrl2, delta 0.1', 5, 0)]
        """
        return preview(self.spec, folder)

    def run(
        self,
        folder: str | Path,
        *,
        workers: int | None = None,
        executor: str | Executor = "threads",
        scheduler: str | None = None,
        progress: Callable[[StudyStatus], None] = lambda status: None,  # noqa: ARG005
    ) -> StudySummary:
        """Make the runs that are not in the folder yet; those that are there are kept.

        Parameters
        ----------
        folder
            Where the results are, or will be.
        workers
            How many runs at a time; as many as there are cores if not said.
        executor
            "threads"; "processes" for agents written in Python; "dask"; or any executor of
            `concurrent.futures`, which stays open. The results are the same bytes.
        scheduler
            The address of a Dask scheduler.
        progress
            Called now and then with a `StudyStatus`.

        Raises
        ------
        InputError
            Something is wrong with the study or the options, and nothing was run; or the folder
            cannot be written any more, as when its disk is full.
        StateError
            The workers were taken away: a cluster without its scheduler.
        KeyboardInterrupt
            After Ctrl-C. In every case finished runs are kept, and the next call goes on from
            there.
        """
        return run_study(
            self.spec,
            folder,
            workers=workers,
            executor=executor,
            scheduler=scheduler,
            progress=progress,
        )

    def __repr__(self) -> str:
        spec = self.spec
        lengths = {config.parameters.get("horizon") for _, config, _ in spec.environments}
        counts = [
            _count(len({entry.label for entry, _, _ in spec.environments}), "environment"),
            *([_count(len(lengths), "horizon")] if len(lengths) > 1 else []),
            _count(len(spec.agents), "agent"),
            _count(len(spec.seeds), "seed"),
            _count(len(spec.environments) * len(spec.agents) * len(spec.seeds), "run"),
        ]
        return f"Study({spec.name!r}: {', '.join(counts)})"


def _numbers(given: Any) -> Any:
    """Return one number or several as a study file would have them, right or wrong."""
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        return [_value(one) for one in given]
    return _value(given)


def _tables(given: Any, field: str) -> list[dict[str, Any]]:
    """Return tables as a study file would have them."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(
            f"{shown(given)} is no list of tables",
            field=field,
            fix=f'pass a list, such as {field}=[{{"id": "..."}}]',
        )
    return [_table(table, f"{field}[{i}]") for i, table in enumerate(given)]


def _table(table: Any, field: str) -> dict[str, Any]:
    if not isinstance(table, Mapping) or not all(isinstance(name, str) for name in table):
        raise InputError(
            f"{shown(table)} is no table", field=field, fix='pass a dict, such as {"id": "..."}'
        )
    return {name: _value(value) for name, value in table.items()}


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(one) for one in value]
    if isinstance(value, Radii):
        return value.spec()
    return value.item() if isinstance(value, np.generic) else value


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
