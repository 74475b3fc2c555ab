"""The command line as people meet it: what it prints, where, and the code it ends with."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from windage.cli import main, tables

WINDAGE = [str(Path(sys.executable).with_name("windage"))]


def windage(*arguments, cwd, **options):
    return subprocess.run(
        [*WINDAGE, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, **options
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments):
    """Run a command that must be refused; return what it says, in one line."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert err.count("\n") == 1
    assert err.startswith("windage: ")
    return err.removeprefix("windage: ").rstrip("\n")


def png_size(path):
    """Read a PNG chunk by chunk, checksums included; return its width and height."""
    data = Path(path).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, kinds, pixels = 8, [], b""
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        body = data[place + 4 : place + 8 + length]
        (checksum,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(body)
        kinds.append(body[:4])
        pixels += body[4:] if body[:4] == b"IDAT" else b""
        place += 12 + length
    assert kinds[0] == b"IHDR"
    assert kinds[-1] == b"IEND"
    size = struct.unpack(">II", data[16:24])
    rows = zlib.decompress(pixels)
    assert len(rows) == size[1] * (1 + 4 * size[0])  # RGBA, a filter byte a row
    assert len(set(rows)) > 50, "a blank page"
    return size


# --- arrays of one's own -------------------------------------------------------------------------


def own_arrays(horizon=600, states=3, actions=2, seed=0):
    rng = np.random.default_rng(seed)
    r = rng.random((horizon, states, actions))
    p = rng.dirichlet(np.ones(states), size=(horizon, states, actions))
    return r, p


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


def test_show_prints_the_table_and_draws(here, capsys):
    assert main(["show", "riverswim", "-T", "2000"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("riverswim-v0: A river whose current")
    assert out.endswith("picture: out/riverswim-v0.png\n")
    table = {line[:17].strip(): line[17:].split() for line in out.splitlines()[2:-1]}
    assert table["states"] == ["6"]
    assert table["pairs"] == ["12"]
    assert table["T"] == ["2,000"]
    assert table["noise"] == ["bernoulli"]
    assert table["B_r"] == ["2.1", "2.1"]
    # one half-wave down and one up over an L1 distance of .5, the first step missing
    exact = 0.5 * (2 - (1 - np.cos(2 * np.pi / 2000)) / 2)
    assert [float(cell) for cell in table["B_p"]] == pytest.approx([exact, exact], rel=1e-7)
    assert table["changes"] == ["1,999"]
    assert table["largest step of r"] == ["0.7"]
    assert table["D at most"] == ["14.722338"]
    assert table["communicates"] == ["at", "every", "t"]
    assert png_size("out/riverswim-v0.png")[0] == 1200


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_show_writes_other_kinds_of_pictures(here, capsys, kind):
    target = f"deep/er/p.{kind}"
    assert main(["show", "peril", "--set", "tau=3", "--set", "repeats=2", "-o", target]) == 0
    assert f"picture: {target}\n" in capsys.readouterr().out
    start = Path(target).read_bytes()[:5]
    assert start == {"svg": b"<?xml", "pdf": b"%PDF-"}[kind]
    assert not list(Path().rglob("*.tmp"))


def test_show_reads_parameters_as_ints_floats_and_strings(here, capsys):
    settings = ["states=4", "reward_budget=0.25", "shape=jumps", "noise=gaussian"]
    arguments = [part for setting in settings for part in ("--set", setting)]
    assert main(["show", "random-drift", "-T", "300", *arguments]) == 0
    out = capsys.readouterr().out
    model = wd.envs.make(
        "random-drift", horizon=300, states=4, reward_budget=0.25, shape="jumps", noise="gaussian"
    )
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "B_r 0.25 0.25" in lines
    assert f"changes {model.budgets().changes}" in lines
    assert "noise gaussian(sigma=0.1)" in lines


def test_show_draws_another_path_for_another_seed(here):
    for seed in ("3", "3", "4"):
        assert main(["show", "peril", "--seed", seed, "-o", f"{seed}.png"]) == 0
        Path(f"{seed}.png").rename(f"{seed}-{len(list(Path().glob('*.png')))}.png")
    first, again, other = (path.read_bytes() for path in sorted(Path().glob("*.png")))
    assert first == again
    assert first != other


def test_show_draws_a_file_and_says_where_it_does_not_communicate(here, capsys):
    r, p = own_arrays(horizon=30, states=2, actions=1)
    p[9:12, 0] = [1.0, 0.0]
    np.savez("mine.npz", r=r, p=p)
    assert main(["show", "mine.npz"]) == 0
    out = capsys.readouterr().out
    assert "not at t=10..12: no policy leads from s=0 to s=1" in out
    assert "closed form" not in out
    assert png_size("out/mine.png")[0] == 1200


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rivrswim"], "environment: no such choice: 'rivrswim'. Fix: did you mean 'riverswim'?"),
        (["riverswim", "--set", "stats=4"], "did you mean 'states'?"),
        (["riverswim", "--set", "states=four"], "states: 'four'"),
        (["riverswim", "--set", "states"], "--set: 'states' sets nothing"),
        (["riverswim", "-T", "9", "--set", "horizon=8"], "'horizon' is given twice"),
        (["riverswim", "-T", "0"], "horizon: 0 is not an integer from 1"),
        (["riverswim", "--seed", "-1"], "seed: -1"),
        (["riverswim", "-o", "picture.gif"], "picture.gif: 'gif' is no kind of picture"),
        (["gone.npz"], "gone.npz: there is no such file"),
        (["gone.npz", "-T", "5"], "gone.npz: a file has no parameters, horizon cannot be set"),
    ],
)
def test_show_refuses(here, capsys, arguments, says):
    assert says in refused(capsys, "show", *arguments)
    assert not list(Path().iterdir())


def test_an_output_that_cannot_be_written(here, capsys):
    Path("taken").write_text("a file, not a folder")
    said = refused(capsys, "show", "peril", "-o", "taken/picture.png")
    assert said == (
        "taken/picture.png: cannot be written (its folder is a file). "
        "Fix: name a file in a folder you may write to."
    )
    said = refused(capsys, "demo", "-o", "taken")
    assert said.startswith("taken/riverswim.png: cannot be written")
    Path("folder.png").mkdir()
    assert "folder.png: cannot be written" in refused(capsys, "show", "peril", "-o", "folder.png")
    assert sorted(path.name for path in Path().iterdir()) == ["folder.png", "taken"]


# --- the program ---------------------------------------------------------------------------------


def test_demo_draws_and_tells(here):
    done = windage("demo", "-o", "somewhere", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert png_size(here / "somewhere" / "riverswim.png") == (1200, 1120)
    stages, place, sentences = done.stdout.split("\n\n")
    assert len(stages.splitlines()) == 3
    assert place == "The picture is somewhere/riverswim.png."
    first, second, third = sentences.splitlines()
    assert "t = 5,001, 10,001 and 15,001, so B_r grows in 3 jumps to 2.10" in first
    assert "0.60 at t = 1, 0.35 at t = 10,000 and 0.60 at t = 20,000" in second
    river = wd.envs.make("riverswim", horizon=20_000)
    run = wd.run(river, wd.agents.make("random", river.space, horizon=20_000))
    low = sum(int(s) <= 1 for s in run.states[:20_000]) / 20_000
    quarters = run.rewards.reshape(4, 5000).mean(axis=1)  # the great prize is up, down, up, down
    assert f"spends {low:.0%} of its time" in third
    assert f"collects {run.rewards.mean():.3f} a step" in third
    assert f"{quarters[[0, 2]].mean():.3f} while the great prize is up the river" in third
    assert f"{quarters[[1, 3]].mean():.3f} while it is at the mouth" in third


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
    os.mkfifo("never.npz")
    command = [*WINDAGE, "check", "never.npz"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        handle = None
        while handle is None and process.poll() is None:
            try:  # succeeds when the program has come to reading, and keeps it waiting there
                handle = os.open("never.npz", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        os.close(handle)
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""


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
