"""A disk that is full: what is decided without the journal is said to be, for many agents too."""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from pathlib import Path

import pytest

import windage as wd
from tests.live_loops import outcome, swucrl
from windage.live.maintenance import verify

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = [f"shop {i}" for i in range(60)]


@contextmanager
def full(live):
    """Let the file not grow, as SQLite itself would refuse it."""
    con = live.journal._connection()
    (used,) = con.execute("PRAGMA page_count").fetchone()
    con.execute(f"PRAGMA max_page_count = {used}")
    yield
    con.execute("PRAGMA max_page_count = 1000000")


def fleet_of(path, **options):
    return wd.live.open(path, {name: swucrl(seed=i) for i, name in enumerate(NAMES)}, **options)


def test_a_round_that_cannot_be_written_is_decided_by_the_fallback(path):
    states = dict.fromkeys(NAMES, 0)
    with fleet_of(path, fallback=[1, 2, 0]) as fleet:
        known = fleet.decide({"shop 3": 0}, {"shop 3": "monday"})["shop 3"]
        fleet.observe({"shop 3": (known.id, 1.0, 0)})
        events = fleet.journal.n
        with full(fleet):
            for _ in range(2):
                found = fleet.decide(states, dict.fromkeys(NAMES, "monday"))
                assert found.pop("shop 3") == known, "what was decided stays decided"
                assert {(d.id, d.action, d.state, d.key) for d in found.values()} == {
                    (0, 1, 0, "monday")
                }
                assert all("cannot be written" in d.fallback for d in found.values())
                told = {name: (d.id, 1.0, 0) for name, d in found.items()}
                assert {r.how for r in fleet.observe(told).values()} == {"fallback"}
        assert fleet.journal.n == events
        assert {fleet[name].by_fallback for name in found} == {2}, "each decision counts once"
        assert fleet["shop 3"].by_fallback == 0
        decisions = fleet.decide(states)
        assert not any(d.fallback for d in decisions.values())
        fleet.observe({d: (one.id, *outcome(0, one.action, 1)) for d, one in decisions.items()})
    assert verify(path).problems == []
    assert wd.live.status(path, "shop 0").agents[0].by_fallback == 2


def test_without_a_fallback_a_round_is_an_error_and_nothing_of_it_counts(path):
    with fleet_of(path) as fleet:
        events = fleet.journal.n
        with full(fleet), pytest.raises(wd.JournalError, match="cannot be written"):
            fleet.decide(dict.fromkeys(NAMES, 0))
        assert fleet.journal.n == events
        assert all(one.pending is None for one in fleet.values())


def test_a_fallback_does_not_hide_a_mistake(path):
    with fleet_of(path, fallback=[1, 2, 0]) as fleet, pytest.raises(wd.InputError, match="state"):
        fleet.decide({"shop 0": 99})


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda fleet: fleet.decide([0, 1]), r"states: \[0, 1\] names no agents"),
        (lambda fleet: fleet.decide({"shop 0": 0}, "monday"), "keys: 'monday' names no agents"),
        (lambda fleet: fleet.decide({"shop 99": 0}), "there is no agent 'shop 99'"),
        (lambda fleet: fleet.observe([1]), "outcomes: .* names no agents"),
        (lambda fleet: fleet.observe({"shop 0": 5}), "outcomes at agent 'shop 0': 5 is no outcome"),
        (lambda fleet: fleet.observe({"shop 0": (1, 0.5)}), "is no outcome"),
        (lambda fleet: fleet.observe({"shop 0": (0, 0.5, 0, 0, {}, 0)}), "is no outcome"),
    ],
)
def test_a_round_that_is_none_is_refused(path, call, problem):
    with fleet_of(path, fallback=[1, 2, 0]) as fleet:
        events = fleet.journal.n
        with pytest.raises(wd.InputError, match=problem):
            call(fleet)
        assert fleet.journal.n == events


@pytest.mark.parametrize("number", [2**63, 10**30])
def test_numbers_beyond_all_decisions_are_of_none(path, number):
    with wd.live.open(path, swucrl()) as live:
        live.decide(0)
        for ask in (lambda: live.observe(number, 1.0, 0), lambda: live.expire(number)):
            with pytest.raises(wd.InputError, match=f"there is no decision {number}"):
                ask()
    with pytest.raises(wd.InputError, match=f"{number}"):
        wd.live.explain(path, number)


def in_one_batch(live, steps):
    with live.batch():
        for _ in range(steps):
            d = live.decide(0)
            live.observe(d.id, 1.0, 0)


def test_a_batch_that_cannot_be_written_raises_with_a_fallback_too(path):
    with wd.live.open(path, swucrl(), fallback=[1, 2, 0]) as live:
        events = live.journal.n
        with full(live), pytest.raises(wd.JournalError, match="cannot be written"):
            in_one_batch(live, 300)
        assert live.journal.n == events
    assert verify(path).problems == []


def test_the_bidding_example_bids_nothing_and_says_so(path, capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location("bidding", EXAMPLES / "bidding.py")
    bidding = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bidding)
    monkeypatch.setattr(bidding, "ROUNDS", 60)
    bids, auction, opened = {}, bidding.auction, []
    monkeypatch.setattr(
        wd.live, "open", lambda *a, _open=wd.live.open, **k: opened.append(_open(*a, **k))
        or opened[0],
    )  # fmt: skip

    def watched(market, t, state, bid):
        bids[t, market] = bid
        con = opened[0].journal._connection()
        if (t, market) == (20, "books"):
            (used,) = con.execute("PRAGMA page_count").fetchone()
            con.execute(f"PRAGMA max_page_count = {used}")
        if (t, market) == (50, "books"):
            con.execute("PRAGMA max_page_count = 1000000")
        return auction(market, t, state, bid)

    monkeypatch.setattr(bidding, "auction", watched)
    bidding.main(str(path))
    out = capsys.readouterr().out
    silent = [t for t in range(60) if f"round {t}: no bids. " in out]
    assert silent
    assert silent == list(range(silent[0], 51))
    assert all(bids[t, name] == 0 for t in silent for name in bidding.MARKETS)
    assert out.endswith("60 rounds in 3 markets\n")
    assert verify(path).problems == []
    for one in wd.live.status(path).agents:
        assert (one.learned, one.by_fallback) == (60 - len(silent), len(silent))
