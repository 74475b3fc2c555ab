"""Studies in which something fails: it is named, the others go on, and it is tried again."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import windage as wd
from tests.unit.study.test_runner import stamps, study
from tests.unit.study.test_store import contents
from windage import atomic_io
from windage.agents.registry import in_words
from windage.errors import InputError, StateError
from windage.study.store import Store
from windage.study.verify import verify

OWN = "tests.unit.study.own"
pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")


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
    with (tmp_path / "results" / "timings.jsonl").open("a") as file:
        file.write('{"kind": "fail\n3\n')  # a line that was cut short
    failed = {
        run.key for run in Store(tmp_path / "results").manifest().runs if run.agent == "wrong"
    }
    assert Store(tmp_path / "results").failed() == failed
    before = stamps(tmp_path / "results")
    flag.touch()
    again = asked.run(tmp_path / "results")
    assert (again.kept, again.made, again.failures) == (6, 3, ())
    assert again.hash
    assert Store(tmp_path / "results").failed() == set()
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


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_an_agent_that_raises_keyboard_interrupt_has_failed_and_the_others_go_on(
    tmp_path, executor
):
    asked = study({"id": f"{OWN}:Interrupting"}, {"id": "random"}, seeds=1)
    done = asked.run(tmp_path / "results", executor=executor, workers=1)
    assert done.made == 1
    (failure,) = done.failures
    assert failure.why.startswith("raised KeyboardInterrupt, which is for Ctrl-C")


def test_an_agent_that_leaves_the_folder_takes_no_results_along(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    leaving = {"id": f"{OWN}:Interrupting", "leaves_for": str(tmp_path / "elsewhere")}
    done = study(leaving, {"id": "random"}, seeds=2).run("results", workers=1)
    assert (done.made, done.failures) == (4, ())
    assert Path.cwd() == tmp_path / "here"
    assert verify("results", sample=None).holds
    assert Path.cwd() == tmp_path / "here"
    assert not list((tmp_path / "elsewhere").iterdir())


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


def test_processes_that_are_forked_are_refused(tmp_path):
    """A study that goes on has read results by then, and what is forked after that hangs."""
    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool,
        pytest.raises(InputError, match=r"executor: its processes are forked.*\"processes\""),
    ):
        study({"id": "random"}).run(tmp_path / "results", executor=pool)
    assert not (tmp_path / "results").exists()


class Disk:
    """A disk that fills up: after so many bytes nothing can be written."""

    def __init__(self, monkeypatch, room):
        self.room = room
        real = os.fdopen
        monkeypatch.setattr(atomic_io.os, "fdopen", lambda *given: FullFile(real(*given), self))


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


def test_a_long_message_is_cut():
    said = in_words(ValueError("first " + "x" * 1_000_000))
    assert said.startswith("ValueError: first xxx")
    assert len(said) < 600
    assert said.endswith("...")
