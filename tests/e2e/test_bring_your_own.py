"""Scenes 6 to 9: own arrays that are wrong, a Gymnasium environment, a past log."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import gymnasium
import numpy as np
import polars as pl
import pytest

import windage as wd
from tests.e2e.commands import own_arrays, refused, windage_here
from windage.cli import main


def test_scene_6_own_arrays_with_a_row_that_sums_to_less(here, capsys):
    r, p = own_arrays()
    p[41, 2, 1] *= 0.98
    np.savez("mine.npz", r=r, p=p)
    said = refused(capsys, "check", "mine.npz")
    assert "t=42, s=2, a=1" in said
    assert "0.98" in said


def test_scene_7_own_arrays_that_stop_communicating(here, capsys):
    r, p = own_arrays(horizon=500)
    p[399:412, 0] = [1.0, 0.0, 0.0]
    np.savez("mine.npz", r=r, p=p)
    said = refused(capsys, "check", "mine.npz")
    assert "does not communicate at t=400..412" in said


def test_scene_8_a_gymnasium_environment_runs_and_a_box_says_what_to_do():
    cliff = wd.gym.wrap(gymnasium.make("CliffWalking-v1"), horizon=800, reward_range=(-100, -1))
    told = {"reward_range": (0, 1)}
    run = wd.run(cliff, wd.UCRL2(cliff.space, horizon=800, **told), seed=0)
    assert run.steps == 800
    assert "reward only" in repr(run)
    with pytest.raises(wd.InputError, match="Fix: bin it"):
        wd.gym.wrap(gymnasium.make("MountainCar-v0"), horizon=10)
    bins = wd.Binner.uniform([-1.2, -0.07], [0.6, 0.07], bins=8)
    car = wd.gym.wrap(
        gymnasium.make("MountainCar-v0"), horizon=500, reward_range=(-1, 0), binner=bins
    )
    assert wd.run(car, wd.UCRL2(car.space, horizon=500), seed=0).steps == 500


def past(horizon=6000, seed=0):
    """A log of RiverSwim, whose prizes trade places three times."""
    model = wd.envs.make("riverswim", horizon=horizon)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=horizon, seed=seed), seed)
    return pl.DataFrame(
        {
            "t": run.times,
            "state": run.states[:-1],
            "action": run.actions,
            "reward": run.rewards,
            "next_state": run.states[1:],
        }
    )


class Page(HTMLParser):
    """What a page asks the network for, and how many pictures it holds."""

    def __init__(self):
        super().__init__()
        self.fetched, self.pictures = [], 0

    def handle_starttag(self, tag, attrs):
        self.pictures += tag == "svg"
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "#").startswith(
                ("#", "data:")
            ):
                self.fetched.append(value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_scene_9_a_past_log_is_inspected(here, kind):
    frame = past()
    if kind == "csv":
        frame.write_csv("orders.csv")
        text = (here / "orders.csv").read_text().splitlines()
        text[7] = text[7].replace(text[7].split(",")[3], "n/a")
        text[100] = "100,3"
        (here / "orders.csv").write_text("\n".join(text) + "\n")
    else:
        frame.write_parquet("orders.parquet")
    done = windage_here(
        "inspect", f"orders.{kind}", "-o", "page.html", "--model", "m.npz", cwd=here
    )
    assert done.returncode == 0, done.stderr
    if kind == "csv":
        assert "5,998 of 6,000 lines can be used" in done.stdout
        assert "line 8, reward: 'n/a' is not a number" in done.stdout
        assert "line 101, action: it is empty" in done.stdout
        assert "Time is missing: 1 step(s) between 6 and 8" in done.stdout
    assert "Drift of mean rewards" in done.stdout
    assert re.search(r"B_r, estimated in \d+ blocks", done.stdout)
    assert "A stationary environment would show" in done.stdout
    assert "No regret is printed." in done.stdout
    page = Page()
    page.feed((here / "page.html").read_text())
    assert page.fetched == []
    assert page.pictures == 5
    assert "No regret is printed." in (here / "page.html").read_text()
    model = wd.load("m.npz")
    assert model.horizon == (5998 if kind == "csv" else 6000)
    wd.run(model, wd.agents.make("random", model.space, horizon=100), seed=0, steps=100)


def test_an_inspection_is_data_too_and_the_same_every_time(here, capsys):
    past(2000).write_csv("orders.csv")
    for name in ("a.html", "b.html"):
        assert main(["inspect", "orders.csv", "-o", name, "--json", "--draws", "20"]) == 0
    out = capsys.readouterr().out
    found = json.loads(out[: out.index('"page": "a.html"\n}') + len('"page": "a.html"\n}')])
    assert found["steps"] == 2000
    assert found["regret"] is None
    assert set(found["budgets"]) == {"B_r", "B_p"}
    assert (here / "a.html").read_bytes() == (here / "b.html").read_bytes()


def test_names_in_a_log_are_no_markup(here):
    states = ["<script>alert(1)</script>", "a & b"] * 60
    frame = pl.DataFrame(
        {
            "state": states[:-1],
            "action": ["<b>"] * 119,
            "reward": [0.0, 1.0] * 59 + [0.0],
            "next_state": states[1:],
        }
    )
    frame.write_csv("odd.csv")
    assert main(["inspect", "odd.csv", "-o", "odd.html", "--draws", "5"]) == 0
    text = (here / "odd.html").read_text()
    assert "<script>" not in text
    assert "<b>" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.csv"], "none.csv: cannot be read (there is no such file)"),
        (["."], ".: cannot be read (it is a folder). Fix: name a .csv or .parquet file."),
        (["header.csv"], "header.csv: holds no lines, only the names of columns"),
        (["one.csv"], "log: 1 step(s) can be used, too few to compare"),
        (["fives.csv"], "all 30 rewards are 5, which does not tell what else is possible"),
        (["orders.csv", "-o", "page.png"], "page.png: is not a page"),
        (["orders.csv", "--column", "reward=profit"], "there is no column 'profit'"),
        (["orders.csv", "--column", "profit=reward"], "no such choice: 'profit'"),
        (["orders.csv", "--column", "profit"], "sets nothing"),
        (["orders.csv", "--range", "0"], "'0' is no range"),
        (["orders.csv", "--range", "0,0.5"], "reward_range: 1.0 is not a number in [0, 0.5]"),
        (["orders.csv", "--draws", "0"], "draws: 0 is not an integer"),
        (["twice.csv"], "line 1: the column 'state' is there 2 times, as columns 2 and 4"),
        (["quote.csv"], "quote.csv at line 3: a quote is opened and never closed"),
    ],
)
def test_what_cannot_be_inspected_is_refused(here, capsys, arguments, said):
    past(60).write_csv("orders.csv")
    header = "state,action,reward,next_state\n"
    (here / "header.csv").write_text(header)
    (here / "one.csv").write_text(header + "0,0,0.5,0\n")
    (here / "fives.csv").write_text(header + "0,0,5,0\n" * 30)
    (here / "twice.csv").write_text("t,state,action,state,reward\n1,0,0,0,1\n")
    (here / "quote.csv").write_text('t,state,action,reward\n1,0,0,1\n2,"0,0,1\n3,0,0,1\n')
    assert said in refused(capsys, "inspect", *arguments)
    assert not (here / "out").exists()
