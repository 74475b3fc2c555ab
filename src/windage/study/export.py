"""Results of a study as offline files of MLflow and of Weights & Biases.

A run of the study is a run there: its parameters, totals, and regret and reward over time. Nothing
is sent anywhere; `mlflow ui --backend-store-uri FOLDER` and `wandb sync FOLDER/wandb/offline-run-*`
take the files.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from windage.atomic_io import as_path
from windage.errors import InputError
from windage.study.store import load_results
from windage.validation import as_choice

__all__ = ["export"]

_PARAMETERS = (
    "environment", "agent", "seed", "horizon", "environment_id", "environment_parameters",
    "agent_id", "agent_parameters", "variant", "told", "radii", "ties", "window", "widening",
    "delta", "key",
)  # fmt: skip
_TOTALS = ("total_reward", "total_mean_reward", "regret", "observed_regret", "share", "episodes")
_LONGEST = 6000  # characters of a parameter that MLflow takes
_CURVES = ("cumulative_reward", "cumulative_mean_reward", "cumulative_regret")


class _Run(NamedTuple):
    """A run as trackers have them; unknown values are left out."""

    name: str
    parameters: dict[str, Any]
    totals: dict[str, float]
    curve: list[tuple[int, dict[str, float]]]


def export(folder: str | Path, to: str, output: str | Path) -> int:
    """Write the results of a study as files of a tracker; return how many runs there are.

    Parameters
    ----------
    folder
        The study's.
    to
        "mlflow" or "wandb"; each needs the extra of its name.
    output
        A folder for their files, in which there is nothing yet.
    """
    write = {"mlflow": _to_mlflow, "wandb": _to_wandb}[as_choice(to, "to", ("mlflow", "wandb"))]
    target = as_path(output, "output").absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("is there, and not empty", field=str(output), fix="name a new folder")
    results = load_results(folder)
    study = str(results["study"][0])
    try:
        tracker = importlib.import_module(to)
    except ImportError:
        raise InputError(
            f"{to} is not installed", field="to", fix=f"pip install 'windage[{to}]'"
        ) from None
    target.mkdir(parents=True, exist_ok=True)
    write(tracker, study, _runs(results), target)
    return int(results.height)


def _runs(results: Any) -> Iterator[_Run]:
    for row in results.iter_rows(named=True):
        curves = {name: row[name] for name in _CURVES if row[name] is not None}
        yield _Run(
            f"{row['agent']} on {row['environment']}, T = {row['horizon']:,}, seed {row['seed']}",
            {name: row[name] for name in _PARAMETERS if row[name] is not None},
            {name: float(row[name]) for name in _TOTALS if row[name] is not None},
            [
                (t, {name: curve[i] for name, curve in curves.items()})
                for i, t in enumerate(row["t"])
            ],
        )


def _to_mlflow(mlflow: Any, study: str, runs: Iterator[_Run], target: Path) -> None:
    client = mlflow.tracking.MlflowClient(tracking_uri=f"sqlite:///{target / 'mlflow.db'}")
    experiment = client.create_experiment(study, artifact_location=(target / "files").as_uri())
    entities = mlflow.entities
    for run in runs:
        made = client.create_run(experiment, run_name=run.name).info.run_id
        known = [
            entities.Param(name, f"{value}"[:_LONGEST]) for name, value in run.parameters.items()
        ]
        client.log_batch(made, params=known)
        points = [*run.curve, (run.curve[-1][0], run.totals)]
        metrics = [
            entities.Metric(name, value, timestamp=0, step=t)
            for t, values in points
            for name, value in values.items()
        ]
        for first in range(0, len(metrics), 1000):  # as many as one call takes
            client.log_batch(made, metrics=metrics[first : first + 1000])
        client.set_terminated(made)


def _to_wandb(wandb: Any, study: str, runs: Iterator[_Run], target: Path) -> None:
    silent = wandb.Settings(silent=True, console="off")
    for run in runs:
        made = wandb.init(
            project=study,
            name=run.name,
            group=run.parameters["agent"],
            config=run.parameters,
            dir=str(target),
            mode="offline",
            reinit=True,
            settings=silent,
        )
        for t, values in run.curve:
            made.log(values, step=t)
        made.summary.update(run.totals)
        made.finish()
