"""`windage live`, and the scenes of an engineer: kill -9 (10), why this action (11)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import polars as pl
import pytest

import windage as wd
from tests.e2e.commands import refused, windage
from tests.live_loops import SPACE, loop, swucrl
from windage.cli import main

ROOT = Path(__file__).parents[2]
LOOP = """
    import sys, windage as wd
    from tests.live_loops import outcome, swucrl

    with wd.live.open("orders.journal", swucrl()) as live:
        s = live.pending.state if live.pending else live.agent.last_state or 0
        for i in range(live.agent.t - 1, int(sys.argv[1])):
            d = live.decide(s, key=f"day {i}")
            reward, s_next = outcome(s, d.action, i)
            live.observe(d.id, reward, s_next)
            s = s_next
        print(live.decide(s, key=f"day {sys.argv[1]}").action)
"""


@pytest.fixture
def journal(here):
    with wd.live.open("orders.journal", swucrl(), reward_range=(0, 1)) as live, live.batch():
        loop(live, 150)
        live.decide("low", key="today")
    return "orders.journal"


def said(capsys, *arguments, code=0):
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_scene_10_a_twelve_line_loop_survives_kill_9(here):
    """Killed twice in the middle, it takes the same next action as a twin that never was."""
    Path("loop.py").write_text(textwrap.dedent(LOOP).strip())
    assert len(Path("loop.py").read_text().splitlines()) <= 12
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "loop.py"]
    for steps in (50, 100):
        child = subprocess.Popen([*command, "100000"], env=environment)
        deadline = time.monotonic() + 100
        while events_of("orders.journal") < 2 * steps:
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
    done = (events_of("orders.journal") - 1) // 2 + 5
    Path("twin").mkdir()
    answers = [
        subprocess.run([sys.executable, "../loop.py" if place == "twin" else "loop.py", str(done)],
                       env=environment, cwd=place, capture_output=True, text=True, check=True)
        for place in (".", "twin")
    ]  # fmt: skip
    assert answers[0].stdout == answers[1].stdout
    actions = [pl.DataFrame(rows_of(f"{place}/orders.journal")) for place in (".", "twin")]
    assert actions[0].equals(actions[1])


def events_of(path):
    try:
        con = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        (n,) = con.execute("SELECT count(*) FROM events").fetchone()
        con.close()
    except sqlite3.Error:
        return 0
    return n


def rows_of(path):
    frame = wd.live.to_frame(path)
    return frame.select("key", "state", "advised", "played", "reward", "next_state").to_dict()


def test_scene_11_why_this_action(journal, capsys):
    """Counts, radii, the optimistic value of each action, ties, and how much is due to eta."""
    out = said(capsys, "live", "explain", journal)
    first, *_ = out.splitlines()
    assert "key today: in low the advice was " in first
    with wd.live.open(journal, swucrl(), reward_range=(0, 1)) as live:
        explained = live.agent.explain(0)
        advised = live.pending.action_name
    assert f"the advice was {advised} " in first
    table = {
        line.split()[0]: line for line in out.splitlines() if re.match(r"(wait|order)  ?", line)
    }
    for action in explained.actions:
        cells = table[action.name].replace("* ", "").split()
        assert cells[1] == str(action.visits)
        assert float(cells[3]) == pytest.approx(action.reward_radius, rel=1e-2)
        assert float(cells[-2]) == pytest.approx(action.value, rel=1e-2, abs=1e-3)
    assert "of eta" in out
    assert "due to the widening (eta = 0.05)" in out
    assert "behind" in out or "Tied with" in out


def test_explain_as_json_and_page(journal, capsys):
    found = json.loads(said(capsys, "live", "explain", journal, "--json"))
    assert found["state"] == "low"
    out = said(capsys, "live", "explain", journal, "--decision", "2", "--html", "why.html")
    assert out.splitlines()[-1] == "page: why.html"
    text = Path("why.html").read_text()
    assert "<svg" in text
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+|http://purl\.org/\S+|http://creative\S+|"
                                r"https://matplotlib\.org/?", "", text)  # fmt: skip


def test_status_says_how_it_is_doing(journal, capsys):
    out = said(capsys, "live", "status", journal)
    assert re.search(r"decisions +151\n", out)
    assert re.search(r"waiting for its outcome +decision 302: (wait|order) in low, since 20", out)
    assert re.search(r"learned from +150\n", out)
    assert re.search(r"optimistic reward +[\d.]+\n", out)
    assert re.search(r"pairs with unknown transitions +\d+%\n", out)
    assert "none: the program is not running" in out
    found = json.loads(said(capsys, "live", "status", journal, "--json"))
    assert found["agents"][0]["learned"] == 150
    said(capsys, "live", "status", journal, "--html", "page/status.html")
    assert "<svg" in Path("page/status.html").read_text()
    with wd.live.open(journal, swucrl(), reward_range=(0, 1)):
        assert f"process {os.getpid()}" in said(capsys, "live", "status", journal)


def test_status_shows_drift_with_pair_and_size(here, capsys):
    with wd.live.open("a.journal", swucrl(window=100)) as live, live.batch():
        for i in range(200):
            d = live.decide("high")
            live.observe(d.id, float(i >= 100), "low" if i >= 100 else "high")
    out = said(capsys, "live", "status", "a.journal")
    assert "drift alarms (a stationary environment shows one with probability 0.01):" in out
    assert "wait in high: the mean reward went from 0 to 1 (size 1, 100 and 100 samples)" in out
    assert re.search(r"wait in high: it leads to (high|low) in .* \(size 2, 100 and 100", out)


def test_status_of_a_fleet(here, capsys):
    with wd.live.open("f.journal", {f"shop {i}": swucrl(seed=i) for i in range(60)}) as fleet:
        fleet.decide({f"shop {i}": 0 for i in range(0, 60, 2)})
    out = said(capsys, "live", "status", "f.journal")
    assert "60 agents, 90 events" in out
    assert "and 10 more; --name shows one" in out
    assert re.search(
        r"decisions +1\n", said(capsys, "live", "status", "f.journal", "--name", "shop 2")
    )
    assert "did you mean" in refused(capsys, "live", "status", "f.journal", "--name", "shop2")
    assert "--name" in refused(capsys, "live", "explain", "f.journal")


def test_export_writes_parquet(journal, capsys):
    assert said(capsys, "live", "export", journal, "-o", "x.parquet") == (
        "151 decisions written to x.parquet\n"
    )
    assert pl.read_parquet("x.parquet").height == 151
    assert "ending in .parquet" in refused(capsys, "live", "export", journal, "-o", "x.csv")


def test_verify_and_recover(journal, capsys):
    out = said(capsys, "live", "verify", journal)
    assert out.startswith(
        "orders.journal: sound. 302 events in one chain, 151 decisions of 1 agent"
    )
    data = bytearray(Path(journal).read_bytes())
    place = data.rindex(b"observed") + 2
    data[place] ^= 1
    Path(journal).write_bytes(data)
    line = refused(capsys, "live", "verify", journal)
    assert re.search(r"event \d+ is not what was written|not as it was closed", line)
    out = said(capsys, "live", "recover", journal, "-o", "saved.journal")
    saved = int(re.search(r"saved.journal: (\d+) events saved", out)[1])
    assert 250 < saved < 302
    assert f"missing: event {saved + 1} and all after it, {302 - saved} at least" in out
    assert "302 were acknowledged" in out
    assert "sound" in said(capsys, "live", "verify", "saved.journal")
    assert "exists already" in refused(capsys, "live", "recover", journal, "-o", "saved.journal")
    with wd.live.open("saved.journal", swucrl(), reward_range=(0, 1)) as live:
        assert live.journal.n == saved


def test_what_is_left_of_nothing(here, capsys):
    Path("a.journal").write_bytes(b"nothing of the kind")
    assert "not even its first event" in refused(
        capsys, "live", "recover", "a.journal", "-o", "b.journal"
    )
    assert not Path("b.journal").exists()
    for verb in ("status", "explain", "verify"):
        refused(capsys, "live", verb, "a.journal")
        assert "there is no such file" in refused(capsys, "live", verb, "none.journal")
    assert not Path("none.journal").exists()


def test_a_copy_without_its_head_is_verified_as_far_as_can_be(journal, capsys):
    shutil.copy(journal, "copy.journal")
    out = said(capsys, "live", "verify", "copy.journal")
    assert "it has no head: whether the end was cut cannot be told" in out
    assert "sound" in out


def test_expire_says_what_it_would_give_up_and_does_it_when_told_to(journal, capsys):
    with wd.live.open(journal, swucrl(), reward_range=(0, 1)) as live:
        waiting = live.pending or live.decide(0)
        problem = refused(capsys, "live", "expire", journal, "--apply")
        assert f"process {os.getpid()} is writing to it" in problem
    before = Path(journal).read_bytes()
    out = said(capsys, "live", "expire", journal)
    assert f"decision {waiting.id}: {waiting.action_name} in" in out
    assert "waits since 20" in out
    assert "nothing was changed" in out
    for number, problem in [
        (1, "there is no decision 1"),
        (-4, "there is no decision -4"),
        (10**6, "there is no decision 1000000"),
        (2, "decision 2: is not waiting for its outcome"),
    ]:
        said_so = refused(capsys, "live", "expire", journal, "--decision", str(number), "--apply")
        assert problem in said_so
    assert Path(journal).read_bytes() == before
    out = said(capsys, "live", "expire", journal, "--decision", str(waiting.id), "--apply")
    assert "done: its step is dropped and counted" in out
    assert "no decision is waiting" in refused(capsys, "live", "expire", journal)
    assert "sound" in said(capsys, "live", "verify", journal)
    with wd.live.open(journal, swucrl(), reward_range=(0, 1)) as live:
        assert live.pending is None
        live.decide(0)


def test_expire_of_one_agent_of_several(here, capsys):
    shops = {name: swucrl(seed=i) for i, name in enumerate(["east", "west"])}
    with wd.live.open("f.journal", shops) as fleet:
        fleet.decide({"east": 0, "west": 1})
    assert "--name" in refused(capsys, "live", "expire", "f.journal", "--apply")
    assert "in middle" in said(
        capsys, "live", "expire", "f.journal", "--name", "west", "--apply"
    )  # fmt: skip
    with wd.live.open("f.journal", shops) as fleet:
        assert fleet["east"].pending is not None
        assert fleet["west"].pending is None


def test_switch_tries_first_and_does_it_when_told_to(journal, capsys):
    refused(capsys, "live", "switch", journal)
    assert "no such parameter" in refused(capsys, "live", "switch", journal, "--set", "widow=3")
    assert "is waiting" in refused(
        capsys, "live", "switch", journal, "--set", "window=20", "--apply"
    )
    with wd.live.open(journal, swucrl(), reward_range=(0, 1)) as live:
        live.observe(live.pending.id, 1.0, 0)
        line = refused(capsys, "live", "switch", journal, "--set", "window=20", "--apply")
        assert f"process {os.getpid()} is writing to it" in line.splitlines()[-1]
    before = Path(journal).read_bytes()
    out = said(capsys, "live", "switch", journal, "--set", "window=20")
    assert "window: 40 -> 20" in out
    assert "it would start with the last 20 samples" in out
    assert "nothing was changed" in out
    assert Path(journal).read_bytes() == before
    out = said(capsys, "live", "switch", journal, "--set", "window=20", "--apply")
    assert "done" in out
    with pytest.raises(wd.JournalError, match="it was switched at event 304"):
        wd.live.open(journal, swucrl(), reward_range=(0, 1))
    wd.live.open(journal, swucrl(window=20), reward_range=(0, 1)).close()
    out = said(capsys, "live", "switch", journal, "--agent", "ucrl2", "--apply")
    made = wd.UCRL2(SPACE, horizon=100_000)
    wd.live.open(journal, made, reward_range=(0, 1)).close()
    assert "sound" in said(capsys, "live", "verify", journal)


def test_switch_while_a_decision_waits_is_only_tried(journal, capsys):
    with wd.live.open(journal, swucrl(), reward_range=(0, 1)) as live:
        waiting = live.pending or live.decide(0)
        out = said(capsys, "live", "switch", journal, "--set", "window=20")
        assert "nothing was changed" in out
    problem = refused(capsys, "live", "switch", journal, "--set", "window=20", "--apply")
    assert f"decision {waiting.id} is waiting" in problem


def test_switch_to_another_agent_takes_a_horizon(journal, capsys):
    out = said(
        capsys, "live", "switch", journal, "--agent", "ucrl2", "--set", "horizon=200000"
    )  # fmt: skip
    assert "horizon: 100000 -> 200000" in out


@pytest.mark.parametrize(
    "options", [["--agent", "ucrl2"], ["--set", "window=5"], ["--set", "first=8"]]
)
def test_switch_of_a_doubling_journal_says_where_to_do_it(here, capsys, options):
    made = wd.Doubling(lambda T: wd.UCRL2(SPACE, horizon=T))
    with wd.live.open("d.journal", made) as live:
        loop(live, 3)
    problem = refused(capsys, "live", "switch", "d.journal", *options)
    assert "agent is Doubling" in problem
    assert "live.switch" in problem


@pytest.mark.parametrize(("refusals", "words"), [(1000, "1,000"), (1001, "at least 1,000")])
def test_status_says_when_it_does_not_know_of_all_refusals(here, capsys, refusals, words):
    with wd.live.open("a.journal", swucrl()) as live, live.batch():
        for _ in range(refusals):
            with pytest.raises(wd.InputError):
                live.observe(9999, 0.5, 0)
    out = said(capsys, "live", "status", "a.journal")
    assert re.search(rf"refused outcomes +{words}\n", re.sub(" +\n", "\n", out))


def test_drift_alarms_speak_of_costs_where_there_are_costs(here, capsys):
    with (
        wd.live.open(
            "a.journal", swucrl(window=100), reward_range=(0, 9), direction="cost"
        ) as live,
        live.batch(),
    ):
        for i in range(200):
            d = live.decide("high")
            live.observe(d.id, 9.0 * (i >= 100), "high")
    out = said(capsys, "live", "status", "a.journal")
    assert "wait in high: the mean cost went from 0 to 9 (size 9, 100 and 100 samples)" in out


@pytest.mark.parametrize("name", ["inventory", "queue", "bidding"])
def test_examples_run_and_run_again(here, name):
    """Each example goes through its data; run again it repeats itself and learns nothing twice."""
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / f"{name}.py")]
    first, again = (
        subprocess.run([*command, "e.journal"], capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout == again.stdout
    done = windage("live", "verify", "e.journal", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "sound" in done.stdout


def test_the_inventory_example_goes_on_after_a_kill(here):
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / "inventory.py")]
    child = subprocess.Popen([*command, "killed.journal"])
    while events_of("killed.journal") < 100 and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert 100 <= events_of("killed.journal") < 731
    for path in ("killed.journal", "whole.journal"):
        subprocess.run([*command, path], check=True, capture_output=True)
    columns = ("key", "state", "advised", "reward", "next_state", "outcome")
    killed, whole = (
        wd.live.to_frame(p).select(columns) for p in ("killed.journal", "whole.journal")
    )
    assert killed.equals(whole)
