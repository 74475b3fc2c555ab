"""Ctrl-C at any line of a call: what is in the journal counts, and the loop goes on."""

from __future__ import annotations

import sqlite3
import sys

import pytest

import windage as wd
from tests.conftest import RELIABILITY
from tests.live_loops import outcome, swucrl, twin_loop
from windage.live.maintenance import verify

EVERY = 1 if RELIABILITY else 10
"""Interrupt each line in turn, or every tenth."""


class At:
    """Raises KeyboardInterrupt at the k-th line that runs in `windage.live`."""

    def __init__(self, k):
        self.left = k
        self.happened = False

    def __call__(self, frame, event, argument):
        if "windage/live" not in frame.f_code.co_filename:
            return None
        if event == "line" and not self.happened:
            self.left -= 1
            if self.left == 0:
                self.happened = True
                raise KeyboardInterrupt
        return self


def step(live, i):
    """One step, asked for by its key, so that it may be repeated after whatever happened."""
    if live.agent.t - 1 > i:
        return  # it had been written before the interrupt was heard of
    s = live.pending.state if live.pending else live.agent.last_state or 0
    d = live.decide(s, key=f"step {i}")
    live.observe(d.id, *outcome(s, d.action, i))


@pytest.mark.parametrize("how", ["single", "batch"] if RELIABILITY else ["batch"])
def test_ctrl_c_at_any_line(tmp_path, how):
    path, k, i, missed = tmp_path / "a.journal", 1 - EVERY, 0, 0
    live = wd.live.open(path, swucrl())
    while missed < 3:  # until no line is left to interrupt
        k += EVERY
        at, before = At(k), sys.gettrace()
        sys.settrace(at)
        try:
            if how == "batch":
                with live.batch():
                    step(live, i)
            else:
                step(live, i)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        missed += not at.happened
        step(live, i)
        i += 1
        assert live.agent.t - 1 == i, k
        assert not live.journal._connection().in_transaction, k
    live.close()
    assert k > 60
    assert verify(path).is_sound
    twin = swucrl()
    twin_loop(twin, i)
    with wd.live.open(path, swucrl()) as live:
        assert live.agent.state() == twin.state()


def test_a_commit_that_was_only_interrupted_has_happened(tmp_path, monkeypatch):
    with wd.live.open(tmp_path / "a.journal", swucrl()) as live:
        d = live.decide(0)
        execute = live.journal._execute

        def interrupted(statement, values=()):
            execute(statement, values)
            if statement == "COMMIT":
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(live.journal, "_execute", interrupted)
            with pytest.raises(KeyboardInterrupt):
                live.observe(d.id, 1.0, 1)
        assert live.observe(d.id, 1.0, 1).how == "again"
        live.decide(1)
        assert live.journal.n == 4
    assert verify(tmp_path / "a.journal").is_sound


def test_a_batch_that_has_failed_takes_no_more(tmp_path):
    """SQLite takes a transaction back when the disk is full: what follows may not slip in."""
    path = tmp_path / "a.journal"
    with wd.live.open(path, swucrl()) as live:
        con = live.journal._connection()
        d = live.decide(0)

        def go_on():
            with live.batch():
                live.observe(d.id, 1.0, 1)
                con.execute("ROLLBACK")  # as SQLite does on a full disk
                live.journal._failed = sqlite3.OperationalError("disk is full")
                with pytest.raises(wd.JournalError, match="disk is full"):
                    live.decide(1)

        with pytest.raises(wd.JournalError, match="disk is full"):
            go_on()
        assert live.journal.n == 2
        assert live.pending == d
        assert live.observe(d.id, 0.0, 2).how == "learned"
    assert verify(path).is_sound
