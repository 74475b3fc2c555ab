"""The runner: what is there is kept, what fails is named, workers that die are replaced."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import socket
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import windage as wd
from tests.unit.study.test_store import contents
from windage import writing
from windage.errors import InputError, StateError
from windage.study import kinds, pools
from windage.study.results import load_oracles
from windage.study.store import Store
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


def test_an_agent_that_raises_is_named_and_tried_again(tmp_path):
    flag = tmp_path / "mended"
    wrong = {"id": f"{OWN}:Plain", "label": "wrong", "fails_at": 120, "flag": str(flag)}
    asked = study({"id": "random"}, wrong, {"id": "ucrl2"})
    seen = []
    done = asked.run(tmp_path / "results", progress=seen.append)
    assert (done.runs, done.made) == (9, 6)
    status = seen[-1]
    assert (status.failed, status.steps, status.steps_to_do) == (3, 6 * 200, 6 * 200)  # no ETA left
    assert [failure.what for failure in done.failures] == [
        f"wrong on riverswim, T = 200, seed {seed}" for seed in range(3)
    ]
    why = r"RuntimeError: fell over at t = 120, seed 0 \(own\.py:\d+, in act\)"
    assert re.fullmatch(why, done.failures[0].why)
    assert done.hash == ""
    lines = (tmp_path / "results" / "timings.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["kind"] == "failure" for line in lines) == 3
    before = stamps(tmp_path / "results")
    flag.touch()
    again = asked.run(tmp_path / "results")
    assert (again.kept, again.made, again.failures) == (6, 3, ())
    assert again.hash
    assert before.items() <= stamps(tmp_path / "results").items()


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_an_agent_that_ends_python_has_failed_and_the_others_go_on(tmp_path, executor):
    asked = study({"id": f"{OWN}:Leaving"}, {"id": "random"}, seeds=1)
    done = asked.run(tmp_path / "results", executor=executor, workers=1)
    assert done.made == 1
    (failure,) = done.failures
    assert failure.what == f"{OWN}:Leaving on riverswim, T = 200, seed 0"
    assert failure.why.startswith("asked Python to end (SystemExit: enough)")


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_whatever_an_agent_raises_is_told_in_words_and_the_others_go_on(tmp_path, executor):
    raising = {"id": f"{OWN}:Raising", "what": ["untold", "quit", "local", "broken"]}
    asked = study(raising, {"id": "random"}, seeds=1)
    done = asked.run(tmp_path / "results", executor=executor, workers=1)
    assert done.made == 1
    said = [re.sub(r" \(own\.py:\d+, in act\)$", " there", one.why) for one in done.failures]
    assert said == [
        "UntoldError: it does not say why there",
        "Quit: enough there",
        "LocalError: of this function there",
        "BrokenExecutor: of my own there",
    ]


def test_what_ends_python_before_anything_runs_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(
        InputError, match=r"agents\[0\]: cannot be made on riverswim: SystemExit: 3 \("
    ):
        study({"id": f"{OWN}:Leaving", "at_once": True}).run(tmp_path / "results")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_script_v1.py").write_text("raise SystemExit(4)")
    for options in ({"agents": ({"id": "a_script_v1:Me"},)},
                    {"environments": [{"id": "a_script_v1:Me"}]}):  # fmt: skip
        with pytest.raises(InputError, match=r"a_script_v1.*imported, SystemExit: 4.*__main"):
            study(*options.pop("agents", ()), **options)
    (tmp_path / "a_script_v2.py").write_text("1 / 0")
    with pytest.raises(
        InputError,
        match=r"environments\[0\].id at a_script_v2.py:1: module 'a_script_v2'.*ZeroDivisionErr",
    ):
        study(environments=[{"id": "a_script_v2:Me"}])


def test_a_clock_that_starts_at_0_is_named_before_anything_runs(tmp_path):
    message = r"agents\[0\]: FromZero.t is 0, but t is the time of the next decision: 1, 2, ..."
    with pytest.raises(InputError, match=message):
        study({"id": f"{OWN}:FromZero"}).run(tmp_path / "results")
    assert not (tmp_path / "results").exists()
    done = study({"id": f"{OWN}:FromZero", "t": "a name"}, seeds=1).run(tmp_path / "results")
    assert (done.made, done.failures) == (1, ())


def test_an_oracle_that_fails_takes_only_its_own_runs_along(tmp_path, monkeypatch):
    def refused(model, tol=1e-6):
        if model.space.n_states == 4:
            raise wd.NotConverged("did not close", field="optimal_gains", fix="wait")
        return real(model, tol)

    real = wd.DriftingMDP.optimal_gains
    monkeypatch.setattr(wd.DriftingMDP, "optimal_gains", refused)
    worlds = [{"id": "riverswim", "states": [4, 5]}]
    seen = []
    done = study({"id": "random"}, environments=worlds).run(
        tmp_path / "results", workers=1, progress=seen.append
    )
    assert done.made == 3
    assert (seen[-1].made, seen[-1].failed, seen[-1].total) == (3, 3, 6)  # the oracle is no run
    assert done.failures[0].what == "the oracle of riverswim, states 4, T = 200"
    assert "did not close" in done.failures[0].why
    assert [failure.why for failure in done.failures[1:]] == ["its oracle failed"] * 3
    worlds[0]["oracle"] = False
    done = study({"id": "random"}, environments=worlds).run(tmp_path / "rewards", workers=1)
    assert done.made == 6
    assert wd.load_results(tmp_path / "rewards")["regret"].null_count() == 6


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
    make, play = wd.envs.make, pools.play
    monkeypatch.setattr(
        wd.envs, "make", lambda name, **given: made.append(given["horizon"]) or make(name, **given)
    )
    monkeypatch.setattr(
        pools, "play", lambda task, *rest: seeds.append(task.seed) or play(task, *rest)
    )
    horizons = list(range(30, 30 + kinds.AT_HAND + 3))
    worlds = [{"id": "peril", "tau": 3, "oracle": False}]
    asked = study({"id": "random"}, environments=worlds, horizon=horizons, seeds=4)
    asked.run(tmp_path / "results", workers=1)
    planned, played = made[: len(horizons)], made[len(horizons) :]
    assert planned == horizons
    assert sorted(played) == sorted(set(played)), "a model was made again for every seed"
    few, rest = kinds.AT_HAND, 3
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


def test_a_worker_that_dies_is_replaced(tmp_path):
    flag = tmp_path / "died"
    deadly = {"id": f"{OWN}:Deadly", "flag": str(flag)}
    done = study({"id": "random"}, deadly).run(
        tmp_path / "results", workers=2, executor="processes"
    )
    assert flag.exists()
    assert (done.made, done.failures) == (6, ())


def test_a_worker_that_dies_with_a_lock_in_its_hand_is_replaced(tmp_path):
    done = []
    flag = tmp_path / "died"
    asked = study({"id": "random"}, {"id": f"{OWN}:KilledInALock", "flag": str(flag)})
    folder = tmp_path / "results"
    work = threading.Thread(
        target=lambda: done.append(asked.run(folder, workers=2, executor="processes")), daemon=True
    )
    work.start()
    work.join(60)
    assert flag.exists()
    assert done, "the study waits for a lock that nobody will give back"
    assert (done[0].made, done[0].failures) == (6, ())


def test_a_run_that_takes_every_worker_down_has_failed(tmp_path):
    done = study({"id": "random"}, {"id": f"{OWN}:Deadly"}, seeds=1).run(
        tmp_path / "results", workers=2, executor="processes"
    )
    assert done.made == 1
    (failure,) = done.failures
    assert failure.why.startswith("3 workers died at it")
    assert "Deadly" in failure.what


@pytest.mark.parametrize("end", ["broken", "shut down"])
def test_an_executor_that_takes_no_more_work_is_an_error_and_the_study_goes_on_with_another(
    tmp_path, end
):
    deadly = {"id": f"{OWN}:Deadly", "flag": str(tmp_path / "died")}
    asked = study({"id": "random"}, deadly)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        if end == "shut down":
            pool.shutdown()
        with pytest.raises(StateError, match=r"executor: takes no more work .*goes on from here"):
            asked.run(tmp_path / "results", executor=pool)
    (tmp_path / "died").touch()
    kept = len(list((tmp_path / "results" / "runs").iterdir()))
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        done = asked.run(tmp_path / "results", executor=pool)
    assert (done.kept, done.made, done.failures) == (kept, 6 - kept, ())


class Disk:
    """A disk that fills up: after so many bytes nothing can be written."""

    def __init__(self, monkeypatch, room):
        self.room = room
        real = os.fdopen
        monkeypatch.setattr(writing.os, "fdopen", lambda *given: FullFile(real(*given), self))


class FullFile:
    def __init__(self, file, disk):
        self.file, self.disk = file, disk

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        self.file.write(data[: max(0, self.disk.room)])
        self.disk.room -= len(data)
        if self.disk.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_said_and_the_study_goes_on_when_there_is_room(tmp_path, monkeypatch):
    whole = study(seeds=6).run(tmp_path / "whole")
    folder = tmp_path / "results"
    size = sum(len(data) for data in contents(tmp_path / "whole").values())
    with monkeypatch.context() as patch:
        Disk(patch, size // 2)
        with pytest.raises(InputError, match="No space left on device.*make room on the disk") as e:
            study(seeds=6).run(folder)
        assert e.value.field.endswith(".parquet")
    assert not list(folder.rglob("*.tmp"))
    kept = len(list((folder / "runs").iterdir()))
    assert 0 < kept < 12
    table = wd.load_results(folder, unfinished=True)  # nothing is half there
    assert table.height == kept
    before = stamps(folder)
    done = study(seeds=6).run(folder)
    assert (done.kept, done.made) == (kept, 12 - kept)
    assert done.hash == whole.hash
    assert before.items() <= stamps(folder).items()


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


def test_classes_that_are_neither_agents_nor_worlds():
    with pytest.raises(InputError, match=r"agents\[0\].id: 'Nothing' has no method 'act'"):
        study({"id": f"{OWN}:Nothing"}).run("nowhere")
    with pytest.raises(InputError, match=r"environments\[0\]: makes a Nothing, which has no"):
        study(environments=[{"id": f"{OWN}:Nothing"}]).run("nowhere")
    with pytest.raises(
        InputError, match=r"agents\[0\].paws: no such parameter; did you mean pause"
    ):
        study({"id": f"{OWN}:Slow", "paws": 1})
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_what_runs_warn_of_is_said_once_an_agent_and_kind(tmp_path, executor):
    """Though the numbers in them differ from run to run."""
    import warnings

    loud = {"id": f"{OWN}:Loud"}
    asked = study(loud | {"label": "one"}, loud | {"label": "other", "action": 1}, seeds=4)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        done = asked.run(tmp_path / "results", workers=1, executor=executor)
    assert (done.made, done.failures) == (8, ())
    said = [(re.sub(r" \d$", "", str(one.message)), one.category.__name__) for one in heard]
    assert sorted(said) == [
        ("one: no guarantee at t = 7, seed", "GuaranteeWarning"),
        ("one: odd parameter at t = 7, seed", "ParameterWarning"),
        ("other: no guarantee at t = 7, seed", "GuaranteeWarning"),
        ("other: odd parameter at t = 7, seed", "ParameterWarning"),
    ]


def test_changed_source_is_another_agent(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = (Path(__file__).parent / "own.py").read_text()
    (tmp_path / "mine_v1.py").write_text(text)
    asked = study({"id": "mine_v1:Plain"})
    assert asked.run(tmp_path / "results").made == 3
    assert asked.run(tmp_path / "results").made == 0
    (tmp_path / "mine_v1.py").write_text(text + "# another thought\n")
    assert asked.run(tmp_path / "results").made == 3


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"])
def test_somebody_else_at_the_address_of_a_scheduler(tmp_path, monkeypatch, answer):
    """Silence, as of a scheduler that hangs; or its dashboard, one port further."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(pools, "_ANSWER", 0.5)
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
