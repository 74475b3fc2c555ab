"""Results as files of other trackers; fakes stand for the packages, which tests do not need."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import windage as wd
from windage.study.export import export


class Client:
    """An MLflow client that keeps what it is given."""

    def __init__(self, tracking_uri):
        self.uri, self.made = tracking_uri, {}

    def create_experiment(self, name, artifact_location):
        assert artifact_location.startswith("file:///")
        return name

    def create_run(self, experiment, run_name):
        assert experiment == "small"
        self.made[run_name] = {"params": [], "metrics": [], "over": False}
        return SimpleNamespace(info=SimpleNamespace(run_id=run_name))

    def log_batch(self, run, metrics=(), params=()):
        assert len(metrics) <= 1000
        self.made[run]["metrics"] += metrics
        self.made[run]["params"] += params

    def set_terminated(self, run):
        self.made[run]["over"] = True


class Tracked:
    """A run of Weights & Biases that keeps what it is given."""

    def __init__(self, **given):
        self.given, self.steps, self.summary, self.over = given, [], {}, False

    def log(self, values, step):
        self.steps.append((step, values))

    def finish(self):
        self.over = True


@pytest.fixture
def trackers(monkeypatch):
    made = {"mlflow": [], "wandb": []}

    def client(tracking_uri):
        made["mlflow"].append(Client(tracking_uri))
        return made["mlflow"][-1]

    def init(**given):
        made["wandb"].append(Tracked(**given))
        return made["wandb"][-1]

    entities = SimpleNamespace(
        Param=lambda name, value: (name, value),
        Metric=lambda name, value, timestamp, step: (name, value, step),
    )
    mlflow = SimpleNamespace(tracking=SimpleNamespace(MlflowClient=client), entities=entities)
    wandb = SimpleNamespace(Settings=lambda **options: options, init=init)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    return made


def test_a_run_of_mlflow_is_a_run_of_the_study(pair, trackers, tmp_path):
    results = wd.load_results(pair[0])
    assert export(pair[0], "mlflow", tmp_path / "new") == results.height == 8
    (client,) = trackers["mlflow"]
    assert client.uri == f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}"
    for row, (name, run) in zip(results.iter_rows(named=True), client.made.items(), strict=True):
        assert name == f"{row['agent']} on riverswim, T = 300, seed {row['seed']}"
        params = dict(run["params"])
        assert (params["seed"], params["key"]) == (str(row["seed"]), row["key"])
        assert params["agent_parameters"] == row["agent_parameters"]
        curve = [(step, value) for n, value, step in run["metrics"] if n == "cumulative_regret"]
        assert curve == list(zip(row["t"], row["cumulative_regret"], strict=True))
        assert ("regret", row["regret"], 300) in run["metrics"]
        assert run["over"]


def test_a_run_of_wandb_is_a_run_of_the_study(pair, trackers, tmp_path):
    results = wd.load_results(pair[0])
    assert export(pair[0], "wandb", tmp_path / "new") == 8
    for row, run in zip(results.iter_rows(named=True), trackers["wandb"], strict=True):
        assert run.given["mode"] == "offline"
        assert run.given["dir"] == str(tmp_path / "new")
        assert run.given["config"]["seed"] == row["seed"]
        assert (run.given["project"], run.given["group"]) == ("small", row["agent"])
        assert [t for t, _ in run.steps] == row["t"]
        assert [values["cumulative_reward"] for _, values in run.steps] == row["cumulative_reward"]
        assert run.summary["share"] == row["share"]
        assert run.over


def test_what_cannot_be_exported_is_refused(pair, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(wd.InputError, match="wandb is not installed. Fix: pip install"):
        export(pair[0], "wandb", tmp_path / "new")
    with pytest.raises(wd.InputError, match=r"to: no such choice: 'neptune'"):
        export(pair[0], "neptune", tmp_path / "new")
    with pytest.raises(wd.InputError, match="is there, and not empty"):
        export(pair[0], "mlflow", pair[1])
    assert not (tmp_path / "new").exists()
