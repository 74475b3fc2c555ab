"""The command line as people meet it: what it prints, where, and the code it ends with."""

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from tests.e2e.commands import WINDAGE, windage
from windage.cli import main


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
