"""The command line as people meet it: what it prints, where, and the code it ends with."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from tests.e2e.commands import WINDAGE, own_arrays, refused, windage
from windage.cli import main, tables

# --- arrays of one's own -------------------------------------------------------------------------


def test_scene_6_a_row_that_sums_to_098(here, capsys):
    r, p = own_arrays()
    p[122, 2, 1] *= 0.98  # t = 123
    np.savez("mine.npz", r=r, p=p)
    said = refused(capsys, "check", "mine.npz")
    assert said == (
        "mine.npz: p at t=123, s=2, a=1: row sums to 0.98, not 1. "
        "Fix: mend the row, or pass normalize=True to rescale rows."
    )


def test_scene_7_a_model_that_stops_communicating(here, capsys):
    r, p = own_arrays()
    p[399:412, 1:, :, 0] = 0.0  # t = 400..412: no way back to state 0
    p[399:412] /= p[399:412].sum(axis=-1, keepdims=True)
    np.savez("mine.npz", r=r, p=p)
    said = refused(capsys, "check", "mine.npz")
    assert said == (
        "mine.npz: does not communicate at t=400..412: no policy leads from s=1 to s=0. "
        "Fix: give an action a way there with positive probability; "
        "agents may still run, but no guarantee speaks of such a model."
    )


def test_a_saved_model_that_stops_communicating_is_told_by_its_names(here, capsys):
    space = wd.StateActions([1, 1], state_names=["low", "high"])
    swap, stuck = [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]
    model = wd.DriftingMDP(
        space, [1, 5, 6], [[0.1, 0.2]] * 3, [swap, stuck, swap], horizon=9, interpolation="step"
    )
    model.save("named.npz")
    said = refused(capsys, "check", "named.npz")
    assert "at t=5: no policy leads from s=1 ('high') to s=0 ('low')" in said


def test_of_many_stretches_five_are_listed_and_the_rest_counted(here, capsys):
    r, p = own_arrays(horizon=100, states=2, actions=1)
    gone = [10, 20, 21, 30, 40, 50, 60, 70]  # seven stretches, one of them two steps long
    for t in gone:
        p[t - 1, 1] = [0.0, 1.0]
    np.savez("holes.npz", r=r, p=p)
    said = refused(capsys, "check", "holes.npz")
    assert "in 7 stretches of time, at t=10:" in said
    assert "at t=20..21:" in said
    assert said.count("no policy leads from s=1 to s=0") == 5
    assert "at t=50:" in said
    assert "at t=60:" not in said
    assert "; and 2 more. Fix:" in said


def test_check_says_what_a_good_file_holds(here, capsys):
    r, p = own_arrays(horizon=50)
    np.savez("mine.npz", r=r, p=p, actions=[2, 1, 2])
    assert main(["check", "mine.npz"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = dict(line.rsplit("  ", 1) for line in out.splitlines()[2:])
    rows = {name.strip(): value.strip() for name, value in rows.items()}
    used = np.array([[1, 1], [1, 0], [1, 1]], dtype=bool)
    reward = np.abs(np.diff(r, axis=0))[:, used].max(axis=1)
    moved = np.abs(np.diff(p, axis=0)).sum(axis=-1)[:, used].max(axis=1)
    assert rows["states"] == "3"
    assert rows["actions a state"] == "1-2"
    assert rows["pairs"] == "5"
    assert rows["T"] == "50"
    assert rows["changes"] == "49"
    assert float(rows["B_r"]) == pytest.approx(reward.sum(), rel=1e-7)
    assert float(rows["B_p"]) == pytest.approx(moved.sum(), rel=1e-7)
    assert float(rows["largest step of r"]) == pytest.approx(reward.max(), rel=1e-7)
    assert float(rows["largest step of p"]) == pytest.approx(moved.max(), rel=1e-7)
    assert rows["communicates"] == "at every t"


def test_check_knows_an_environment_of_the_library(here, capsys):
    wd.envs.make("riverswim", horizon=100).save("river.npz")
    assert main(["check", "river.npz"]) == 0
    assert capsys.readouterr().out.startswith("river.npz: a saved riverswim-v0, fit for use\n")


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"r": np.full((2, 1, 1), np.nan), "p": np.ones((2, 1, 1, 1))}, "bad.npz: r at t=1, s=0"),
        ({"r": np.full((2, 1, 1), 1.5), "p": np.ones((2, 1, 1, 1))}, "mean reward 1.5"),
        ({"r": np.zeros((2, 1, 1))}, "bad.npz: has the arrays ['r'], not p"),
        ({"r": np.zeros((2, 1, 1)), "p": np.ones((3, 1, 1, 1))}, "bad.npz: r and p: shapes"),
        ({"r": np.array(["x"]), "p": np.ones(1)}, "bad.npz: r"),
        ({"r": np.zeros((1, 1, 1)), "p": -np.ones((1, 1, 1, 1))}, "probability -1.0"),
    ],
)
def test_check_refuses_what_is_no_model(here, capsys, arrays, says):
    np.savez("bad.npz", **arrays)
    said = refused(capsys, "check", "bad.npz")
    assert said.startswith("bad.npz: ")
    assert says in said
    assert "Fix: " in said


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 half of one"])
def test_check_refuses_files_it_cannot_read(here, capsys, content):
    Path("bad.npz").write_bytes(content)
    assert refused(capsys, "check", "bad.npz").startswith("bad.npz: cannot be read as a model")


def test_check_refuses_a_missing_file_and_a_folder(here, capsys):
    assert refused(capsys, "check", "gone.npz") == (
        "gone.npz: there is no such file. Fix: check the path."
    )
    assert refused(capsys, "check", ".").startswith(".: cannot be read as a model")


# --- environments --------------------------------------------------------------------------------


def test_envs_in_a_pipe_has_one_whole_line_an_environment(here):
    done = windage("envs", cwd=here, env=os.environ | {"COLUMNS": "40"})
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert header.split()[:4] == ["id", "S", "x", "A"]
    assert [line.split()[0] for line in lines] == [wd.envs.get(n).id for n in wd.envs.names()]
    river = next(line for line in lines if line.startswith("riverswim-v0"))
    assert river.endswith(wd.envs.get("riverswim").summary)
    cells = [cell.strip() for cell in river.split("  ") if cell]
    assert cells[1:6] == ["6 x 2 (12)", "20,000", "2.1", "1", "14.72"]
    assert "\x1b" not in done.stdout


def test_envs_as_json(here, capsys):
    assert main(["envs", "--json"]) == 0
    entries = {entry["id"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(entries) == {wd.envs.get(name).id for name in wd.envs.names()}
    peril = entries["peril-v0"]
    assert peril["actions"] == [2, 2]
    assert peril["pairs"] == 4
    assert (peril["reward_budget"], peril["transition_budget"]) == (9.0, 38.0)
    assert peril["diameter_bound"] == 1.0
    assert peril["parameters"] == {
        "horizon": None, "tau": 50, "repeats": 5, "noise": "bernoulli"
    }  # fmt: skip


def test_a_terminal_gets_a_drawn_table_with_whole_ids(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    tables.print_table(["id", "what"], [["two-state-cosine-v0", "[bold] words " * 12]])
    out = capsys.readouterr().out
    assert "two-state-cosine-v0" in out
    assert "[bold]" in out
    assert len(out.splitlines()) > 4  # the words are wrapped, the id is not


# --- the program ---------------------------------------------------------------------------------


def test_version_and_help_and_module(here):
    done = windage("--version", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"windage {wd.__version__}\n", "")
    module = subprocess.run(
        [sys.executable, "-m", "windage", "--help"], capture_output=True, text=True, cwd=here
    )
    assert module.returncode == 0
    assert "Usage: windage" in module.stdout
    for verb in ("envs", "show", "check", "demo"):
        assert verb in module.stdout


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from windage.cli import main\n"
        "assert main(['--help']) == 0\n"
        "heavy = {'numpy', 'scipy', 'numba', 'matplotlib', 'msgspec'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("arguments", [["frob"], ["show"], ["show", "peril", "-T", "x"], ["--no"]])
def test_wrong_words_end_with_2(capsys, arguments):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "Usage: windage" in err
    assert "Traceback" not in err


def test_refusals_of_the_program_itself(here):
    done = windage("show", "rivrswim", cwd=here)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("windage: environment: no such choice: 'rivrswim'")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_no_error(here):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    for unbuffered in ("", "1"):  # found out at the end, or in the middle
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        with subprocess.Popen([*WINDAGE, "envs"], env=environment, **pipes) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 1


def test_ctrl_c_is_quiet(here):
    code = (
        "import sys, time, pathlib, windage\n"
        "from windage.cli import main\n"
        "def wait(path):\n"
        "    pathlib.Path('waiting').touch()\n"
        "    time.sleep(100)\n"
        "windage.load = wait\n"
        "sys.exit(main(['check', 'never.npz']))\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not Path("waiting").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""


def interrupt(*_, **__):
    raise KeyboardInterrupt


def interrupted_import(*_):
    """What a compiled module makes of Ctrl-C while it is loaded."""
    raise ImportError("initialization failed") from KeyboardInterrupt()


class Interrupted:
    """Finds a module by pressing Ctrl-C."""

    def find_spec(self, name, path=None, target=None):
        if name == "windage.cli.app":
            raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["loading", "work", "module", "refusal", "flush"])
def test_ctrl_c_ends_with_130_wherever_it_comes(here, monkeypatch, capsys, where):
    importlib.import_module("windage.cli.app")
    if where == "loading":
        monkeypatch.delitem(sys.modules, "windage.cli.app")
        monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    elif where == "work":
        monkeypatch.setattr(wd, "load", interrupt)
    elif where == "module":
        monkeypatch.setattr(wd, "load", interrupted_import)
    elif where == "refusal":
        monkeypatch.setattr(sys.stderr, "write", interrupt)
    else:
        np.savez("gone.npz", r=np.ones((1, 1, 1)), p=np.ones((1, 1, 1, 1)))
        monkeypatch.setattr(sys.stdout, "flush", interrupt)
    assert main(["check", "gone.npz"]) == 130
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_a_module_that_is_missing_is_no_ctrl_c(monkeypatch):
    def missing(path):
        raise ImportError("no module named so")

    monkeypatch.setattr(wd, "load", missing)
    with pytest.raises(ImportError, match="no module named so"):
        main(["check", "any.npz"])


def test_warnings_are_one_line(monkeypatch, capsys):
    import warnings

    def warned():
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("the theorem does not speak here", wd.GuaranteeWarning, stacklevel=1)
        return []

    monkeypatch.setattr(wd.envs, "names", warned)
    assert main(["envs", "--json"]) == 0
    assert capsys.readouterr().err == "windage: warning: the theorem does not speak here\n"
