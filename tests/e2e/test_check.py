"""`windage check`: what is wrong in a file, and where; and what a good one holds."""

from pathlib import Path

import numpy as np
import pytest

import windage as wd
from tests.e2e.commands import own_arrays, refused
from windage.cli import main


def test_scene_6_a_row_that_sums_to_098(here, capsys):
    r, p = own_arrays()
    p[122, 2, 1] *= 0.98  # t = 123
    np.savez("mine.npz", r=r, p=p)
    said = refused(capsys, "check", "mine.npz")
    assert said == (
        "mine.npz: p at t=123, s=2, a=1: row sums to 0.98, not 1. "
        "Fix: mend the row, for instance divide it by its sum."
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
        "agents may still run, but no guarantee applies to such a model."
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
    gone = [10, 20, 21, 30, 40, 50, 60, 70]  # seven intervals, one of them two steps long
    for t in gone:
        p[t - 1, 1] = [0.0, 1.0]
    np.savez("holes.npz", r=r, p=p)
    said = refused(capsys, "check", "holes.npz")
    assert "in 7 intervals, at t=10:" in said
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
    assert rows["actions per state"] == "1-2"
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
