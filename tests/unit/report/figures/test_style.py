"""Pictures as files: whole, the same bytes every time, and nothing else touched."""

import subprocess
import sys

import matplotlib as mpl
import pytest

import windage as wd
from windage.report import drift_figure, oracle_figure, save_figure


def figure_of(what):
    model = wd.envs.make("peril", horizon=40)
    return drift_figure(model) if what == "drift" else oracle_figure(model)


@pytest.mark.parametrize(
    ("what", "kind"), [("drift", "png"), ("drift", "svg"), ("drift", "pdf"), ("oracle", "svg")]
)
def test_the_same_figure_has_the_same_bytes(tmp_path, what, kind):
    for name in ("a", "b"):
        save_figure(figure_of(what), tmp_path / "made" / f"{name}.{kind}")
    first = (tmp_path / "made" / f"a.{kind}").read_bytes()
    assert first == (tmp_path / "made" / f"b.{kind}").read_bytes()
    assert b"Date" not in first
    assert b"dc:date" not in first
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])


def test_a_failed_write_leaves_what_was_there(tmp_path):
    target = tmp_path / "picture.png"
    target.write_bytes(b"old")

    class Full:
        def savefig(self, file, **options):
            file.write(b"half a picture")
            raise OSError(28, "No space left on device")

    with pytest.raises(wd.InputError, match=r"cannot be written \(No space left on device\)"):
        save_figure(Full(), target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


@pytest.mark.parametrize("name", ["picture.jpeg", "picture", ".png"])
def test_other_kinds_are_refused_by_name(tmp_path, name):
    with pytest.raises(wd.InputError, match=r"ends in \.png, \.svg or \.pdf"):
        save_figure(drift_figure(wd.envs.make("peril", horizon=20)), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_nothing_global_changes(tmp_path):
    names = sorted(set(mpl.rcParams) - {"backend"})  # to ask for the backend would choose one
    before = [mpl.rcParams[name] for name in names]
    save_figure(drift_figure(wd.envs.make("peril", horizon=20)), tmp_path / "a.svg")
    oracle_figure(wd.envs.make("peril", horizon=20))
    assert [mpl.rcParams[name] for name in names] == before


def test_no_window_system_is_asked_for(tmp_path):
    code = (
        "import sys, windage as wd\n"
        "from windage.report import drift_figure, save_figure\n"
        "save_figure(drift_figure(wd.envs.make('peril', horizon=20)), sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "a.png"], check=True)
