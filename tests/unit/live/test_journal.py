"""The file itself: its chain, its head, its snapshots, and what reading it leaves alone."""

from __future__ import annotations

import hashlib
import sqlite3

import msgspec
import pytest

import windage as wd
from tests.live_loops import SPACE, loop, state_in, swucrl
from windage.live import history
from windage.live.journal import Journal
from windage.live.lockfile import head_path, read_head
from windage.live.maintenance import verify
from windage.live.views import status


def events_of(path):
    with Journal(path) as journal:
        return journal.events("TRUE ORDER BY n")


def change(path, statement, *values):
    con = sqlite3.connect(path)
    con.execute(statement, values)
    con.commit()
    con.close()


def test_the_chain_is_sha_256_over_the_chain_before_and_all_fields(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    before = hashlib.sha256(b"windage journal").digest()
    for *fields, chain in events_of(path):
        before = hashlib.sha256(before + msgspec.msgpack.encode(fields)).digest()
        assert before == chain


def test_an_event_rewritten_with_a_right_chain_breaks_the_next(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 10)
    before, event = events_of(path)[9:11]
    event = event._replace(reward=1.0 - event.reward)
    chain = event.chain_after(before.chain)
    change(path, "UPDATE events SET reward = ?, chain = ? WHERE n = 11", event.reward, chain)
    assert "event 12 is not what was written" in verify(path).problems


def test_every_commit_waits_for_the_disk(path):
    with wd.live.open(path, swucrl()) as live:
        con = live.journal._connection()
        assert con.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_head_follows_every_acknowledged_event(path):
    with wd.live.open(path, swucrl()) as live:
        for _ in range(3):
            d = live.decide(0)
            assert read_head(path).n == d.id
            live.observe(d.id, 1.0, 0)
            assert read_head(path).n == d.id + 1
            assert read_head(path).seal == ""
    assert len(read_head(path).seal) == 64


@pytest.mark.parametrize("damage", ["digit", "cut", "gone"])
def test_a_damaged_head_is_said_and_the_journal_opens_without_it(path, damage):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 5)
        state = live.agent.state()
    head = head_path(path)
    data = head.read_bytes()
    if damage == "gone":
        head.unlink()
        assert verify(path).remarks == ["it has no head: whether the end was cut cannot be told"]
    else:
        changed = data.replace(b'"n":11', b'"n":10') if damage == "digit" else data[:300]
        assert changed != data
        head.write_bytes(changed)
        assert "its head is damaged" in verify(path).problems[0]
        with pytest.raises(wd.JournalError, match="whether the end of the journal was cut") as err:
            wd.live.open(path, swucrl())
        assert "remove this file" in err.value.fix
        assert head.read_bytes() == changed
        head.unlink()
    assert state_in(path, swucrl()) == state
    assert verify(path).is_sound


def test_a_journal_put_back_from_an_old_copy_is_refused(path, tmp_path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 5)
    old = path.read_bytes()
    with wd.live.open(path, swucrl()) as live:
        loop(live, 5, start=5, s=live.agent.last_state)
    path.write_bytes(old)
    for call in (lambda: wd.live.open(path, swucrl()), lambda: status(path)):
        with pytest.raises(wd.JournalError, match="ends at event 11, but event 21 was acknowledge"):
            call()
    assert path.read_bytes() == old


def test_a_snapshot_of_another_history_is_not_used(path, tmp_path, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    other = tmp_path / "other.journal"
    for place, make in ((other, lambda: swucrl(seed=5)), (path, swucrl)):
        with wd.live.open(place, make()) as live, live.batch():
            loop(live, 40)
            state = live.agent.state()
    ((theirs,),) = Journal(other).all("SELECT state FROM snapshots ORDER BY step DESC LIMIT 1")
    newest = "(SELECT max(step) FROM snapshots)"
    change(path, f"UPDATE snapshots SET state = ?, chain = x'00' WHERE step = {newest}", theirs)
    head_path(path).unlink()  # its seal would refuse the file
    assert state_in(path, swucrl()) == state
    assert any("another history" in problem for problem in verify(path).problems)


def test_a_snapshot_that_replay_does_not_lead_to_is_a_problem(path, tmp_path, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    other = tmp_path / "other.journal"
    for place, make in ((path, swucrl), (other, lambda: swucrl(seed=5))):
        with wd.live.open(place, make()) as live, live.batch():
            loop(live, 80)
    ((theirs,),) = Journal(other).all("SELECT state FROM snapshots ORDER BY step DESC LIMIT 1")
    newest = "(SELECT max(step) FROM snapshots)"
    change(path, f"UPDATE snapshots SET state = ? WHERE step = {newest}", theirs)
    assert any("not what replay leads to" in problem for problem in verify(path).problems)


def test_a_late_reward_finds_a_snapshot_before_its_step(path, monkeypatch):
    """Whatever the window still holds can be corrected without living through everything again."""
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    monkeypatch.setattr(history, "SNAPSHOT_BYTES", 10**9)
    with wd.live.open(path, swucrl()) as live, live.batch():
        loop(live, 200)
        decided = [n for (n,) in live.journal.all("SELECT n FROM events WHERE kind = 'decided'")]
        kept = [s for (s,) in live.journal.all("SELECT step FROM snapshots ORDER BY step")]
    assert kept[0] < decided[-40]
    assert len(kept) <= 5


def test_an_agent_that_could_not_be_written_is_made_again(path, monkeypatch):
    """A Doubling hands over while the journal cannot be written: its next agent is noted later."""

    def make():
        return wd.Doubling(lambda T: swucrl(seed=T), first=4)

    with wd.live.open(path, make()) as live:
        _, s = loop(live, 4)
        with monkeypatch.context() as patch:
            refuse = sqlite3.OperationalError("database or disk is full")
            patch.setattr(live.journal, "insert", lambda row: (_ for _ in ()).throw(refuse))
            with pytest.raises(sqlite3.OperationalError):
                live.decide(s)
        loop(live, 10, start=4, s=s)
        state = live.agent.state()
    assert status(path).agents[0].trouble == ""
    with wd.live.open(path, make()) as live:
        assert live.agent.state() == state


def test_a_log_is_not_taken_away_from_an_empty_file(path):
    live = wd.live.open(path, swucrl())
    loop(live, 3)
    log = path.with_name(path.name + "-wal")
    data = log.read_bytes()
    live.close()
    path.write_bytes(b"")
    log.write_bytes(data)
    head_path(path).unlink()
    for call in (lambda: wd.live.open(path, swucrl()), lambda: Journal(path)):
        with pytest.raises(wd.JournalError, match="is empty, though there is a log beside it"):
            call()
    assert log.read_bytes() == data
    saved = wd.live.recover(path, path.with_name("saved.journal"))
    assert saved.events > 0


def test_keys_belong_to_an_agent_of_a_fleet(path):
    agents = {name: swucrl() for name in ("a", "b")}
    with wd.live.open(path, agents) as fleet:
        one, other = fleet["a"].decide(0, key="monday"), fleet["b"].decide(1, key="monday")
        assert one.id != other.id
        with pytest.raises(wd.InputError, match=f"there is no decision {other.id}"):
            fleet["a"].observe(other.id, 1.0, 0)
    assert SPACE.n_states == 3
