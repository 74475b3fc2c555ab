"""`windage show`: tables, pictures, and what is left out because it is long."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from tests.e2e.commands import own_arrays, png_size, refused
from windage.cli import main, models
from windage.cli import show as verb
from windage.cli.terminal import Progress
from windage.models.diameters import DiameterBound
from windage.report import truth_of


def test_show_prints_the_table_and_draws(here, capsys):
    assert main(["show", "riverswim", "-T", "2000", "--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("riverswim-v0: A river whose current")
    assert out.endswith("picture: out/riverswim-v0.png\npicture: out/riverswim-v0-oracle.png\n")
    table = {line[:17].strip(): line[17:].split() for line in out.splitlines()[2:-2]}
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
    assert png_size("out/riverswim-v0-oracle.png")[0] == 1200
    model = wd.envs.make("riverswim", horizon=2000)
    gains = np.array([wd.gain_lp(model.at(t)).primal for t in range(25, 2001, 50)])
    mean, plus_minus, error = table["mean rho*"]
    assert float(mean) == pytest.approx(gains.mean(), abs=1e-4)  # the midpoint rule
    assert plus_minus == "+-"
    assert 0 < float(error) <= 1e-6
    assert table["D max"] == ["14.722338", "at", "t=1,000"]
    assert table["policy changes"] == ["3", "seen"]
    for name, told in (("random", {}), ("myopic", {"problem": model})):
        agent = wd.agents.make(name, model.space, horizon=2000, seed=5, **told)
        part = wd.run(model, agent, seed=5).mean_rewards.sum() / (2000 * float(mean))
        assert table[f"{name} earns"] == [f"{part:.1%}", "of", "the", "optimal", "gain"]


def test_show_writes_other_kinds_of_pictures(here, capsys):
    assert (
        main(["show", "peril", "--set", "tau=3", "--set", "repeats=2", "-o", "deep/er/p.svg"]) == 0
    )
    both = ["deep/er/p.svg", "deep/er/p-oracle.svg"]
    assert capsys.readouterr().out.endswith("".join(f"picture: {one}\n" for one in both))
    assert all(Path(one).read_bytes().startswith(b"<?xml") for one in both)
    assert not list(Path().rglob("*.tmp"))


def test_show_reads_parameters_as_ints_floats_and_strings(here, unpainted, capsys):
    settings = ["states=4", "reward_budget=0.25", "shape=jumps", "noise=gaussian"]
    arguments = [part for setting in settings for part in ("--set", setting)]
    assert main(["show", "random-drift", "-T", "300", "--no-oracle", *arguments]) == 0
    out = capsys.readouterr().out
    model = wd.envs.make(
        "random-drift", horizon=300, states=4, reward_budget=0.25, shape="jumps", noise="gaussian"
    )
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "B_r 0.25 0.25" in lines
    assert f"changes {model.budgets().changes}" in lines
    assert "noise gaussian(sigma=0.1)" in lines


def test_show_draws_another_path_for_another_seed(here, unpainted):
    for name, *options in (("a", "3"), ("b", "4"), ("c", "3", "--no-oracle")):
        arguments = ["bandit", "-T", "30", "-o", f"{name}.png", "--seed", *options]
        assert main(["show", *arguments]) == 0
    assert sorted(unpainted) == ["a-oracle.png", "a.png", "b-oracle.png", "b.png", "c.png"]
    paths = {name: picture["runs"]["random"] for name, picture in unpainted.items()}
    assert [paths[name].seed for name in ["a.png", "b.png", "c.png"]] == [3, 4, 3]
    assert np.array_equal(paths["a.png"].actions, paths["c.png"].actions)
    assert not np.array_equal(paths["a.png"].actions, paths["b.png"].actions)
    assert paths["a-oracle.png"] is paths["a.png"]
    model = unpainted["b.png"]["model"]
    agent = wd.agents.make("random", model.space, horizon=30, seed=4)
    assert np.array_equal(paths["b.png"].rewards, wd.run(model, agent, seed=4).rewards)
    myopic = [unpainted[f"{name}-oracle.png"]["runs"]["myopic"] for name in "ab"]
    assert [run.seed for run in myopic] == [3, 4]


def test_show_draws_a_file_and_says_where_it_does_not_communicate(here, capsys):
    r, p = own_arrays(horizon=30, states=2, actions=1)
    p[9:12, 0] = [1.0, 0.0]
    np.savez("mine.npz", r=r, p=p)
    assert main(["show", "mine.npz"]) == 0
    out = capsys.readouterr().out
    assert "not at t=10..12: no policy leads from s=0 to s=1" in out
    assert "closed form" not in out
    assert "D max              inf at t=10\n" in out
    assert png_size("out/mine.png")[0] == png_size("out/mine-oracle.png")[0] == 1200


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rivrswim"], "environment: no such choice: 'rivrswim'. Fix: did you mean 'riverswim'?"),
        (["riverswim", "--set", "stats=4"], "stats: no such parameter; did you mean states?"),
        (["riverswim", "--set", "states=four"], "states: 'four'"),
        (["riverswim", "--set", "states"], "--set: 'states' sets nothing"),
        (["riverswim", "-T", "9", "--set", "horizon=8"], "'horizon' is given twice"),
        (["riverswim", "-T", "0"], "horizon: 0 is not an integer from 1"),
        (["riverswim", "--seed", "-1"], "seed: -1"),
        (["riverswim", "-o", "picture.gif"], "picture.gif: 'gif' is no kind of picture"),
        (["gone.npz"], "gone.npz: there is no such file"),
        (["gone.npz", "-T", "5"], "gone.npz: a file has its own horizon"),
    ],
)
def test_show_refuses(here, capsys, arguments, says):
    assert says in refused(capsys, "show", *arguments)
    assert not list(Path().iterdir())


def test_what_is_wrong_with_the_arguments_is_said_before_the_work(here, capsys, monkeypatch):
    for work in (wd.envs, "make"), (wd, "load"):
        monkeypatch.setattr(*work, lambda *_, **__: pytest.fail("the work began"))
    Path("taken").write_text("a file, not a folder")
    said = refused(capsys, "show", "peril", "-o", "taken/deep/picture.png")
    assert said == (
        "taken/deep/picture.png: cannot be written (its folder is a file). "
        "Fix: name a file in a folder you may write to."
    )
    Path("folder.png").mkdir()
    said = refused(capsys, "show", "peril", "-o", "folder.png")
    assert said.startswith("folder.png: cannot be written (it is a folder)")
    assert refused(capsys, "show", "peril", "--seed", "-1").startswith("seed: -1 is not")
    assert refused(capsys, "show", "peril", "-o", "p.gif").startswith("p.gif: 'gif' is no kind")
    assert refused(capsys, "show", "peril", "--set", "tau").startswith("--set: 'tau' sets nothing")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    said = refused(capsys, "show", "peril", "-o", "new/picture.png")
    assert said.startswith("new/picture.png: cannot be written (its folder is read-only)")
    assert sorted(path.name for path in Path().iterdir()) == ["folder.png", "taken"]


def test_a_default_output_that_cannot_be_written(here, capsys, monkeypatch):
    Path("out").write_text("a file, not a folder")
    with monkeypatch.context() as patch:
        patch.setattr(wd, "run", lambda *_, **__: pytest.fail("the work began"))
        said = refused(capsys, "show", "bandit", "-T", "9")
    assert said.startswith("out/bandit-v0.png: cannot be written (its folder is a file)")
    assert Path("out").read_text() == "a file, not a folder"


# --- the oracle ----------------------------------------------------------------------------------


def printed(capsys, *arguments):
    assert main(["show", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_without_the_oracle(here, unpainted, capsys):
    out = printed(capsys, "bandit", "-T", "20", "--no-oracle")
    assert "rho" not in out
    assert "earns" not in out
    assert [path.name for path in Path("out").iterdir()] == ["bandit-v0.png"]


def stream(horizon):
    r, p = own_arrays(horizon=horizon, states=2)
    np.savez("mine.npz", r=r, p=p)
    return "mine.npz"


def test_what_would_take_long_is_left_out_and_can_be_forced(here, unpainted, capsys, monkeypatch):
    monkeypatch.setattr(verb, "_MOST_WORK", 1)
    monkeypatch.setattr(verb, "_MOST_MYOPIC_STEPS", 1)
    out = printed(capsys, stream(30))
    why = "this drift is no blend, all 30 models would be solved one by one"
    assert f"oracle: left out, {why}; pass --oracle to have it all the same\n" in out
    assert "rho" not in out.replace("oracle", "")
    assert not Path("out/mine-oracle.png").exists()
    forced = printed(capsys, "mine.npz", "--oracle")
    assert "left out" not in forced
    assert "mean rho*" in forced
    assert "myopic earns" in forced
    assert Path("out/mine-oracle.png").exists()


def test_the_myopic_agent_is_left_out_of_long_runs(here, unpainted, capsys, monkeypatch):
    monkeypatch.setattr(verb, "_MOST_MYOPIC_STEPS", 10)
    out = printed(capsys, "bandit", "-T", "20")
    assert "myopic agent: left out, 20 steps are more than 10; pass --oracle to have" in out
    assert "random earns" in out
    assert "myopic earns" not in out


def test_the_limits_are_where_they_are_said_to_be():
    def why(name, **parameters):
        return verb.reason_to_skip(wd.envs.make(name, **parameters))

    assert not why("riverswim", states=200)
    assert why("riverswim", states=201) == "201 states are more than 200"
    assert not why("riverswim", horizon=1_000_000)
    assert why("riverswim", horizon=1_000_001) == "1,000,001 steps are more than 1,000,000"
    space = wd.StateActions([2])
    for horizon, skipped in ((10_000, False), (20_000, True)):
        model = wd.DriftingMDP.from_function(
            lambda t: ([0.5, t % 2], [[1.0], [1.0]]), space=space, horizon=horizon
        )
        assert bool(verb.reason_to_skip(model)) == skipped


def test_a_bracket_that_is_open_is_shown_with_both_ends():
    truth = truth_of(wd.envs.make("bandit", horizon=5))
    truth = replace(truth, largest=DiameterBound(2.0, 2.5, 1234, 9))
    assert ["D max", "2 to 2.5 at t=1,234", ""] in verb.oracle_rows(truth, {})


def test_what_does_not_converge_says_how_to_do_without(here, unpainted, capsys, monkeypatch):
    def fail(self, tol=1e-6):
        raise wd.NotConverged("span 0.3 after 7 sweeps", field="optimal_gains", fix="try more")

    monkeypatch.setattr(wd.DriftingMDP, "optimal_gains", fail)
    assert refused(capsys, "show", "bandit", "-T", "9") == (
        "optimal_gains: span 0.3 after 7 sweeps. "
        "Fix: try more, or leave the oracle out with --no-oracle."
    )


def test_nothing_to_earn_is_said(here, unpainted, capsys):
    np.savez("poor.npz", r=np.zeros((5, 1, 2)), p=np.ones((5, 1, 2, 1)))
    out = printed(capsys, "poor.npz")
    assert "random earns       nothing is to be earned\n" in out
    assert "D max              0 at t=1\n" in out
    assert "policy changes     0 seen\n" in out


# --- long horizons -------------------------------------------------------------------------------


def test_single_steps_of_a_long_horizon_are_not_looked_at(here, unpainted, capsys, monkeypatch):
    monkeypatch.setattr(models, "_MOST_STEPS", 50)
    out = printed(capsys, "riverswim", "-T", "50", "--no-oracle")
    assert "changes            49\n" in out
    assert "left out" not in out
    out = printed(capsys, "riverswim", "-T", "52", "--no-oracle")
    assert (
        "changes and largest steps: left out, 52 steps are more than 50; "
        "in Python, model.budgets() has them\n"
    ) in out
    assert "largest step of" not in out
    assert " ".join(out.split("B_r")[1].split()[:2]) == "2.1 2.1"


def test_progress_is_for_terminals_and_leaves_no_trace(here, unpainted, terminal):
    screen = terminal()
    assert main(["show", "bandit", "-T", "20"]) == 0
    stages = [
        "the model", "the variation budgets of 20 steps", "whether it communicates at every t",
        "20 steps of the random agent", "the picture of the drift", "the optimal gain of every t",
        "20 steps of the myopic agent", "the picture of the oracle",
    ]  # fmt: skip
    places = [screen.history.index(f"{stage} ...") for stage in stages]
    assert places == sorted(places)
    assert all(" ..." in line and "\n" not in line for line in screen.history if line)
    assert screen.shown == "", "the line is wiped"
    assert screen.cursor == (0, 0)
    assert screen.cursor_is_shown


def test_a_long_stage_counts_its_seconds(monkeypatch, terminal):
    screen = terminal()
    clock = [0.0]
    monkeypatch.setattr("windage.cli.terminal.time.monotonic", lambda: clock[0])
    with Progress() as progress:
        progress("a long stage")
        for clock[0], shown in [
            (1.9, "a long stage ..."), (2.0, "a long stage ... 2 s"), (3.0, "a long stage ... 3 s")
        ]:  # fmt: skip
            drawn, limit = len(screen.history), time.perf_counter() + 20
            while len(screen.history) < drawn + 2:  # by itself, a few times a second
                assert time.perf_counter() < limit
                time.sleep(0.01)
            assert screen.shown == shown
        assert screen.cursor_is_shown
    assert screen.shown == ""


def test_a_refusal_wipes_the_progress_first(here, terminal):
    screen = terminal()
    assert main(["show", "gone.npz"]) == 2
    assert "the model ..." in screen.history
    assert screen.shown.startswith("windage: gone.npz: there is no such file")
    assert "\n" not in screen.shown


def test_an_interrupt_wipes_the_progress(here, terminal, monkeypatch):
    screen = terminal()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(wd.envs, "make", interrupt)
    assert main(["show", "bandit"]) == 130
    assert "the model ..." in screen.history
    assert screen.shown == ""
    assert screen.cursor_is_shown


def test_a_line_longer_than_the_terminal_is_cut(monkeypatch, terminal):
    screen = terminal()
    monkeypatch.setenv("COLUMNS", "40")
    with Progress() as progress:
        progress("a stage with a name that goes on and on and does not end")
        assert 30 < len(screen.shown) <= 40
    assert screen.shown == ""
