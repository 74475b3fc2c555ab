"""A journal that cannot even be opened: the fallback decides, says so, and hands over."""

from __future__ import annotations

import pytest

import windage as wd
from tests.live_loops import SPACE, loop, outcome, swucrl, twin_loop
from windage.live.journal import Writer
from windage.live.lockfile import head_path
from windage.live.maintenance import verify
from windage.live.schema import unwritable

RULE = [1, 2, 0]


def close_the_way(path):
    """Let nobody write the head, whoever it is: root, too, cannot write to a folder."""
    kept = head_path(path)
    if kept.exists():
        kept.rename(f"{kept}.kept")
    kept.mkdir()


def make_way(path):
    head_path(path).rmdir()
    kept = path.with_name(path.name + "-head.kept")
    if kept.exists():
        kept.rename(head_path(path))


@pytest.mark.parametrize("before", [0, 5])
def test_the_fallback_decides_until_the_journal_can_be_opened(path, before):
    twin = swucrl()
    wanted, s = twin_loop(twin, before + 3)
    if before:
        with wd.live.open(path, swucrl()) as live:
            _, s = loop(live, before)
    else:
        s = 0
    close_the_way(path)
    with wd.live.open(path, swucrl(), fallback=RULE) as live:
        for k in range(2):
            d = live.decide(s, key="monday")
            assert (d.id, d.action, d.key) == (0, RULE[s], "monday")
            assert "cannot be written (Is a directory)" in d.fallback
            assert live.by_fallback == k + 1
            assert live.observe(d.id, 1.0, 0).how == "fallback"
        assert "not open yet" in repr(live)
        with pytest.raises(wd.JournalError, match="cannot be written"):
            live.observe(before + 1, 1.0, 0)
        with pytest.raises(wd.JournalError, match="cannot be written"), live.batch():
            pass
        with pytest.raises(wd.InputError, match="state"):
            live.decide(99)
        with pytest.raises(wd.InputError, match="reward"):
            live.observe(0, float("nan"), 0)
        make_way(path)
        done, _ = loop(live, 3, start=before, s=s)
        assert done == wanted[before:], "nothing was learned from what the fallback did"
        assert live.agent.state() == twin.state()
    assert verify(path).problems == []
    assert wd.live.status(path).agents[0].by_fallback == 2


def test_a_fleet_waits_for_its_journal_too(path):
    close_the_way(path)
    shops = {name: swucrl(seed=i) for i, name in enumerate(["east", "west"])}
    with wd.live.open(path, shops, fallback=RULE) as fleet:
        found = fleet.decide({"east": 0, "west": "middle"})
        assert [(d.id, d.action) for d in found.values()] == [(0, 1), (0, 2)]
        told = dict.fromkeys(fleet, (0, 1.0, 0))
        assert {one.how for one in fleet.observe(told).values()} == {"fallback"}
        make_way(path)
        found = fleet.decide({"east": 0, "west": 0})
        assert not any(d.fallback for d in found.values())
        fleet.observe({name: (d.id, *outcome(0, d.action, 1)) for name, d in found.items()})
    assert verify(path).problems == []
    assert [one.by_fallback for one in wd.live.status(path).agents] == [1, 1]


def test_a_doubling_is_made_anew_when_the_first_attempt_could_not_be_written(path, monkeypatch):
    def make():
        return wd.Doubling(lambda T: wd.UCRL2(SPACE, horizon=T), first=4)

    def full(self):
        self._unflushed = []
        raise unwritable(self.path, "disk full")

    monkeypatch.setattr(Writer, "_flush", full)
    with wd.live.open(path, make(), fallback=RULE) as live:
        assert "disk full" in live.decide(0).fallback
        monkeypatch.undo()
        loop(live, 6)
        state = live.agent.state()
    assert verify(path).problems == []
    with wd.live.open(path, make()) as live:
        assert live.agent.state() == state


def test_without_a_fallback_it_is_an_error(path):
    close_the_way(path)
    with pytest.raises(wd.JournalError, match="cannot be written"):
        wd.live.open(path, swucrl())


@pytest.mark.parametrize("mistake", ["another configuration", "a second writer", "no folder"])
def test_a_fallback_does_not_hide_a_mistake(path, mistake):
    other = swucrl(window=41) if mistake == "another configuration" else swucrl()
    with wd.live.open(path, swucrl()) as live:
        if mistake == "another configuration":
            live.close()
        where = path.parent / "nowhere" / "a.journal" if mistake == "no folder" else path
        with pytest.raises(wd.JournalError, match=r"another config|is writing|no folder"):
            wd.live.open(where, other, fallback=RULE)


def test_what_is_found_wrong_when_it_opens_at_last_stands_in_every_decision(path):
    wd.live.open(path, swucrl(window=41)).close()
    close_the_way(path)
    with wd.live.open(path, swucrl(), fallback=RULE) as live:
        live.decide(0)
        make_way(path)
        for _ in range(2):
            assert "window: 41 in the journal, 40 now" in live.decide(0).fallback


def test_a_closed_session_decides_no_more(path):
    close_the_way(path)
    live = wd.live.open(path, swucrl(), fallback=RULE)
    live.close()
    make_way(path)
    assert "is closed" in live.decide(0).fallback
    assert not path.exists()
