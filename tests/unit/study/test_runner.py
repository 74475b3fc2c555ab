"""The runner: what is there is kept, what is made is the same wherever it is made."""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import windage as wd
from tests.unit.study.test_store import contents
from windage.errors import InputError
from windage.study import configs, executors
from windage.study.store import Store, load_oracles
from windage.study.verify import verify

OWN = "tests.unit.study.own"
pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")


def study(*agents, **more):
    options = {"horizon": 200, "seeds": 3} | more
    environments = options.pop("environments", [{"id": "riverswim"}])
    return wd.Study(environments, agents or [{"id": "random"}, {"id": "ucrl2"}], **options)


def stamps(folder):
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino)
            for path in folder.rglob("*.parquet")}  # fmt: skip


def test_the_same_bytes_on_one_worker_two_and_processes(tmp_path):
    agents = [{"id": "random"}, {"id": "ucrl2"}, {"id": "borl"}, {"id": f"{OWN}:Plain"}]
    one = study(*agents).run(tmp_path / "one", workers=1)
    two = study(*agents).run(tmp_path / "two", workers=2)
    own = study(*agents).run(tmp_path / "own", workers=2, executor="processes")
    with ThreadPoolExecutor(2) as pool:
        given = study(*agents).run(tmp_path / "given", executor=pool)
        assert pool.submit(int, "7").result() == 7  # still open
    assert one.hash == two.hash == own.hash == given.hash != ""
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == contents(tmp_path / "own")
    lines = (tmp_path / "own" / "timings.jsonl").read_text().splitlines()
    pids = {json.loads(line)["pid"] for line in lines}
    assert os.getpid() not in pids


def test_a_changed_study_keeps_the_runs_it_still_asks_for(tmp_path):
    folder = tmp_path / "results"
    study().run(folder)
    before, made_at = contents(folder), stamps(folder)
    changed = study({"id": "ucrl2", "label": "new name"}, {"id": "sw-psrl"}, seeds=4, name="other")
    done = changed.run(folder)
    assert (done.runs, done.kept, done.made, done.spare) == (8, 3, 5, 3)
    table = wd.load_results(folder)
    assert table["agent"].to_list() == ["new name"] * 4 + ["sw-psrl"] * 4
    assert table["study"][0] == "other"
    assert before.items() <= contents(folder).items()
    assert made_at.items() <= stamps(folder).items()
    back = study().run(folder)
    assert (back.kept, back.made) == (6, 0)


@pytest.mark.parametrize("first", [True, False])
def test_with_and_without_the_oracle_in_one_folder_are_two_results(tmp_path, first):
    def asked(oracle):
        return study({"id": "random"}, environments=[{"id": "riverswim", "oracle": oracle}])

    alone = {
        oracle: asked(oracle).run(tmp_path / str(oracle), workers=1).hash
        for oracle in (True, False)
    }
    folder = tmp_path / "results"
    for oracle in (first, not first):
        done = asked(oracle).run(folder, workers=1)
        assert (done.kept, done.made) == (0, 3)
        assert done.hash == alone[oracle]
        assert wd.load_results(folder)["regret"].null_count() == (0 if oracle else 3)
        assert verify(folder, sample=None).holds
    assert asked(first).run(folder, workers=1).kept == 3


def test_one_environment_under_two_labels_with_and_without_the_oracle(tmp_path):
    worlds = [
        {"id": "riverswim", "label": "rewards", "oracle": False},
        {"id": "riverswim", "label": "regret"},
    ]
    study({"id": "random"}, environments=worlds).run(tmp_path / "results", workers=1)
    table = wd.load_results(tmp_path / "results")
    known = {
        label: rows["regret"].is_not_null().sum()
        for (label,), rows in table.group_by("environment")
    }
    assert known == {"rewards": 0, "regret": 3}
    found = verify(tmp_path / "results", sample=None)
    assert (found.files, found.recomputed, found.holds) == (7, 7, True)


def test_runs_are_measured_by_the_oracle_of_their_own_world(tmp_path):
    worlds = [{"id": "riverswim", "states": [4, 5]}]
    study({"id": "random"}, environments=worlds, horizon=[150, 200]).run(tmp_path / "results")
    oracles = {
        (row["environment"], row["horizon"]): row["total"]
        for row in load_oracles(tmp_path / "results").iter_rows(named=True)
    }
    assert len(set(oracles.values())) == 4
    for row in wd.load_results(tmp_path / "results").iter_rows(named=True):
        assert row["oracle_reward"] == oracles[row["environment"], row["horizon"]]
        assert row["regret"] == row["oracle_reward"] - row["total_mean_reward"]


def test_a_study_that_has_lost_an_oracle_for_good_has_no_hash(tmp_path, monkeypatch):
    asked = study({"id": "random"})
    asked.run(tmp_path / "results")
    (oracle,) = (tmp_path / "results" / "oracles").iterdir()
    oracle.unlink()

    def refused(model, tol=1e-6):
        if model.horizon == 200:
            raise wd.NotConverged("did not close", field="optimal_gains", fix="wait")
        return real(model, tol)

    real = wd.DriftingMDP.optimal_gains
    monkeypatch.setattr(wd.DriftingMDP, "optimal_gains", refused)
    done = asked.run(tmp_path / "results", workers=1)
    assert (done.kept, done.made, done.hash) == (3, 0, "")
    assert [failure.what for failure in done.failures] == ["the oracle of riverswim, T = 200"]


def test_oracles_are_found_once_for_all_runs(tmp_path, monkeypatch):
    calls = []
    real = wd.DriftingMDP.optimal_gains
    monkeypatch.setattr(
        wd.DriftingMDP,
        "optimal_gains",
        lambda model, *a: calls.append(model.horizon) or real(model, *a),
    )
    asked = study({"id": "random"}, {"id": "ucrl2"}, horizon=[150, 200], seeds=4)
    asked.run(tmp_path / "results")
    assert sorted(T for T in calls if T > 10) == [150, 200]  # 10: what is compiled with
    asked.run(tmp_path / "results")
    assert len([T for T in calls if T > 10]) == 2
    study(horizon=[150, 200], seeds=6).run(tmp_path / "results")
    assert len([T for T in calls if T > 10]) == 2


def test_models_are_made_once_however_many_there_are(tmp_path, monkeypatch):
    made, seeds = [], []
    make, play = wd.envs.make, executors.play
    monkeypatch.setattr(
        wd.envs, "make", lambda name, **given: made.append(given["horizon"]) or make(name, **given)
    )
    monkeypatch.setattr(
        executors, "play", lambda task, *rest: seeds.append(task.seed) or play(task, *rest)
    )
    horizons = list(range(30, 30 + configs.AT_HAND + 3))
    worlds = [{"id": "peril", "tau": 3, "oracle": False}]
    asked = study({"id": "random"}, environments=worlds, horizon=horizons, seeds=4)
    asked.run(tmp_path / "results", workers=1)
    planned, played = made[: len(horizons)], made[len(horizons) :]
    assert planned == horizons
    assert sorted(played) == sorted(set(played)), "a model was made again for every seed"
    few, rest = configs.AT_HAND, 3
    assert seeds == [seed for n in (few, rest) for seed in range(4) for _ in range(n)]


def test_an_interrupt_keeps_what_is_done_and_goes_on(tmp_path):
    whole = study(horizon=2000, seeds=6).run(tmp_path / "whole")
    folder = tmp_path / "cut"

    def interrupt(status):
        if status.made == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(horizon=2000, seeds=6).run(folder, workers=2, progress=interrupt)
    assert len(list((folder / "runs").iterdir())) == 5
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("windage")]
    before = stamps(folder)
    done = study(horizon=2000, seeds=6).run(folder)
    assert (done.kept, done.made) == (5, 7)
    assert done.hash == whole.hash
    assert before.items() <= stamps(folder).items()


def test_an_interrupt_between_a_file_and_its_count_leaves_the_number_of_files(
    tmp_path, monkeypatch
):
    folder, seen, noted = tmp_path / "results", [], []
    study(seeds=1).run(folder)
    note = Store.note

    def interrupt(store, entry):
        note(store, entry)
        noted.append(entry["kind"])
        if len(noted) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "note", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study().run(folder, workers=1, progress=seen.append)
    assert noted == ["run"] * 3
    status = seen[-1]
    assert (status.kept, status.made, status.total) == (2, 3, 6)
    assert len(list((folder / "runs").iterdir())) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers: 0 is not"),
        ({"workers": 2.0}, "workers: 2.0"),
        ({"executor": "thread"}, "executor: no such choice: 'thread'. Fix: did you mean 'threads'"),
        ({"executor": "dask"}, "scheduler: the address of the cluster is missing"),
        ({"scheduler": "tcp://1.2.3.4:5"}, "scheduler: 'tcp://1.2.3.4:5' is the address of a"),
    ],
)
def test_bad_options(options, message, tmp_path):
    with pytest.raises(InputError) as caught:
        study().run(tmp_path / "results", **options)
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "results").exists()


def test_changed_source_is_another_agent(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = (Path(__file__).parent / "own.py").read_text()
    (tmp_path / "mine_v1.py").write_text(text)
    asked = study({"id": "mine_v1:Plain"})
    assert asked.run(tmp_path / "results").made == 3
    assert asked.run(tmp_path / "results").made == 0
    (tmp_path / "mine_v1.py").write_text(text + "# another thought\n")
    for folder in ("results", "new"):  # what Python has loaded is still the class of before
        with pytest.raises(InputError, match=r"mine_v1.py was changed after Python .*reload"):
            asked.run(tmp_path / folder)
    importlib.reload(sys.modules["mine_v1"])
    assert asked.run(tmp_path / "results").made == 3


def test_all_parameters_of_ones_own_are_stored_with_their_defaults(tmp_path):
    """The agent a paper is about must be described as well as those it is compared with."""
    agents = [{"id": f"{OWN}:Plain", "action": [0, 1]}, {"id": f"{OWN}:Odd_defaults"}]
    world = {"id": f"{OWN}:shore", "low": 0.5}
    done = study(*agents, environments=[world], seeds=1).run(tmp_path / "results")
    assert not done.failures
    manifest = Store.found(tmp_path / "results").manifest()
    plain = {"action": 1, "fails_at": None, "flag": None}
    odd = {"rule": "builtins:max", "limit": "inf", "arms": [[1, 0.5]], "grid": [1.0, 2.0]}
    assert [agent.parameters for agent in manifest.agents[1:]] == [plain, odd]
    assert manifest.environments[0].parameters == {"low": 0.5, "horizon": 200}
    table = wd.load_results(tmp_path / "results")
    assert [json.loads(text) for text in table["agent_parameters"][1:]] == [plain, odd]
    assert table["variant"].to_list() == [None, "action 1", None]
    assert verify(tmp_path / "results", sample=None).holds  # made again from plain data


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"])
def test_somebody_else_at_the_address_of_a_scheduler(tmp_path, monkeypatch, answer):
    """Silence, as of a scheduler that hangs; or its dashboard, one port further."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "_ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def serve():
            caller, _ = server.accept()
            with caller:
                caller.sendall(answer or b"")
                caller.recv(1 << 16)
                over.wait(20)

        over = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(InputError, match="scheduler: no Dask scheduler answers at"):
                study(seeds=1).run(tmp_path / "out", executor="dask", scheduler=address)
        finally:
            over.set()
            thread.join()
