"""Ring, table and hash table of the samples remembered, against lists and dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.unit.kernels.test_random import literal_mix
from windage.confidence import window as module
from windage.confidence.confidence import blank_plan
from windage.confidence.window import Window
from windage.kernels import window as kernel
from windage.kernels.evi import BOUND, LEFT_OUT, VACUOUS, _fill_rows, estimate, to_rows
from windage.spaces import StateActions

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # whole numbers wrap


@pytest.fixture(params=["table", "hash"])
def storage(request, monkeypatch):
    if request.param == "hash":
        monkeypatch.setattr(module, "_CELLS", 0)
    return request.param


def times_of(window):
    return tuple(int(window.clock[name][0]) for name in ("taken", "counted", "dropped"))


def cells_of(window):
    """The counts as they lie, by (pair, state)."""
    return hashed_cells(window) if isinstance(window, kernel.HashedWindow) else listed_cells(window)


def home(window, pair, state):
    return literal_mix((pair + 1) * window.sources.size + state) % window.cells.size


def hashed_cells(window):
    """Every cell must lie where a search from its home finds it: no gap on the way."""
    found = {}
    for slot in np.flatnonzero(window.cells["mark"]).tolist():
        pair, state = int(window.cells["mark"][slot]) - 1, int(window.cells["state"][slot])
        place = home(window, pair, state)
        while place != slot:
            assert window.cells["mark"][place] != 0
            place = (place + 1) % window.cells.size
        assert (pair, state) not in found
        found[pair, state] = int(window.cells["count"][slot])
    assert not window.cells["count"][window.cells["mark"] == 0].any()
    return found


def listed_cells(window):
    """Every pair's list is dense, and each of its states knows its place in it."""
    S, found = window.sources.size, {}
    for pair, count in enumerate(window.counts):
        for i in range(count["distinct"]):
            state = int(window.cells["state"][pair * S + i])
            assert window.cells["mark"][pair * S + state] == i + 1
            found[pair, state] = int(window.cells["count"][pair * S + state])
    assert np.count_nonzero(window.cells["mark"]) == len(found)
    assert np.count_nonzero(window.cells["count"]) == len(found)
    return found


@pytest.mark.parametrize("width", [1, 4, 12])
def test_ring_and_counts_step_by_step(storage, width):
    """Samples in the order they came; the counts are those of the samples the clock says."""
    space = StateActions([2, 1, 1])
    S = space.n_states
    window = Window(space, width).kernel
    rng = np.random.default_rng(0)
    history = []
    for step in range(120):
        sample = int(rng.integers(4)), float(rng.random()), int(rng.integers(S))
        kernel.take(window, *sample)
        history.append(sample)
        if rng.random() < 0.3:
            kernel.commit(window)
            assert window.clock["counted"][0] == step + 1
        taken, counted, dropped = times_of(window)
        assert taken == step + 1
        assert dropped == max(0, counted - width)
        assert taken - dropped < window.ring.size  # the next sample overwrites none in use
        for i in range(dropped, taken):
            sample = window.ring[i % window.ring.size]
            assert (sample["pair"], sample["reward"], sample["after"]) == history[i]
        expected = Counter((pair, after) for pair, _, after in history[dropped:counted])
        assert cells_of(window) == expected
        assert window.clock["cells"][0] == len(expected)


def test_all_history_needs_a_ring_of_waiting_samples_only(storage, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 3)
    space = StateActions([1, 1])
    window = Window(space).kernel
    for i in range(20):
        kernel.take(window, i % 2, 0.5, (i // 2) % 2)
    assert window.ring.size == 3
    assert times_of(window) == (20, 18, 18)
    kernel.commit(window)
    assert times_of(window) == (20, 20, 20)
    assert cells_of(window) == {(0, 0): 5, (0, 1): 5, (1, 0): 5, (1, 1): 5}


def crowded(monkeypatch):
    """Room for 50 pairs of 8 states in 16 slots, and cells that want to lie in a few of them.

    Six have their home in the last two slots and run over the end of the table.
    """
    monkeypatch.setattr(module, "_CELLS", 0)
    window = Window(StateActions([1] * 8), 3).kernel
    assert window.cells.size == 16
    wide = window._replace(
        counts=np.zeros(50, kernel.COUNT), changed=np.zeros(50, window.changed.dtype)
    )
    every = [(pair, state) for pair in range(50) for state in range(8)]
    last = [cell for cell in every if home(wide, *cell) >= 14][:6]
    return wide, last + [cell for cell in every if home(wide, *cell) in (0, 1, 5)][:4]


def test_the_hash_table_survives_any_order_of_adding_and_removing(monkeypatch):
    """Few homes and many cells: long runs across the end, gaps closed in all places."""
    window, cells = crowded(monkeypatch)
    rng = np.random.default_rng(1)
    counts: Counter[tuple[int, int]] = Counter()
    most = 0
    for _ in range(1500):
        cell = cells[int(rng.integers(len(cells)))]
        by = -1 if counts[cell] > 0 and rng.random() < 0.55 else 1
        kernel._count_hashed(window, np.uint64(cell[0]), cell[1], by)
        counts[cell] += by
        counts += Counter()  # forget what is back at zero
        assert cells_of(window) == counts
        assert window.clock["cells"][0] == len(counts)
        most = max(most, len(counts))
    assert most == 10
    per_pair = Counter(pair for pair, _ in counts)
    assert window.counts["distinct"].tolist() == [per_pair[pair] for pair in range(50)]


def test_refilling_a_hash_table_keeps_every_cell(monkeypatch):
    window, cells = crowded(monkeypatch)
    pairs, states = np.array(cells).T
    times = np.arange(1, 11)
    kernel.refill(window, pairs, states, times)
    assert cells_of(window) == dict(zip(cells, times.tolist(), strict=True))
    assert window.clock["cells"][0] == 10
    per_pair = Counter(pairs.tolist())
    assert window.counts["distinct"].tolist() == [per_pair[pair] for pair in range(50)]


def test_refilling_lists_keeps_every_cell():
    window = Window(StateActions([2, 1, 1]), 9).kernel
    pairs, states, times = np.array([[0, 0, 2, 3, 3], [2, 0, 1, 0, 2], [4, 1, 2, 1, 1]])
    kernel.refill(window, pairs, states, times)
    assert cells_of(window) == {(0, 2): 4, (0, 0): 1, (2, 1): 2, (3, 0): 1, (3, 2): 1}


def test_changed_pairs_are_listed_once_until_settled(storage):
    space = StateActions([2, 1, 1])
    window = Window(space, 2).kernel
    for pair in (0, 0, 2):
        kernel.take(window, pair, 1.0, 1)
    assert window.clock["changed"][0] == 0
    kernel.commit(window)
    assert sorted(window.changed[: window.clock["changed"][0]].tolist()) == [0, 2]
    assert window.counts["changed"].tolist() == [1, 0, 1, 0]
    kernel.settle(window)
    assert window.clock["changed"][0] == 0
    assert not window.counts["changed"].any()
    kernel.take(window, 3, 1.0, 1)  # pair 0 is forgotten: that is a change as well
    kernel.commit(window)
    assert sorted(window.changed[: window.clock["changed"][0]].tolist()) == [0, 3]


def test_means_are_of_the_window_and_zero_without_visits(storage):
    window = Window(StateActions([1, 1]), 3).kernel
    for reward in (0.25, 0.5, 1.0, 0.75):
        kernel.take(window, 1, reward, 0)
    kernel.commit(window)
    assert kernel.r_hat(window.counts[1]) == 0.75
    assert kernel.r_hat(window.counts[0]) == 0.0


@pytest.mark.parametrize("by", ["rows", "columns", "grid"])
def test_p_hat_is_written_of_the_wanted_pairs(storage, by):
    space = StateActions([2, 1, 3, 1])
    S = space.n_states
    rng = np.random.default_rng(2)
    history = [(int(rng.integers(6)), 0.5, int(rng.integers(S))) for _ in range(40)]
    window = Window(space, 30).kernel
    for sample in history:
        kernel.take(window, *sample)
    kernel.commit(window)
    plan = blank_plan(space, 28)
    plan.pairs["kind"] = [BOUND, LEFT_OUT, BOUND, VACUOUS, BOUND, BOUND, BOUND]
    if by == "rows":
        to_rows(window, plan)  # the last pair was never visited
    else:
        if by == "columns":
            plan = plan._replace(grid=np.zeros((0, space.n_pairs)))
        estimate(plan, window)
        _fill_rows(plan)
    visits = Counter(pair for pair, _, _ in history[-30:])
    cells = Counter((pair, after) for pair, _, after in history[-30:])
    end = 0
    for p, pair in enumerate(plan.pairs):
        assert pair["row"] == end or pair["entries"] == 0
        end += pair["entries"]
        own = plan.rows[pair["row"] : pair["row"] + pair["entries"]]
        found = dict(zip(own["index"].tolist(), own["probability"].tolist(), strict=True))
        share = (lambda n, N: n / N) if by == "rows" else (lambda n, N: n * (1.0 / N))
        expected = {s: share(n, visits[p]) for (p_, s), n in cells.items() if p_ == p}
        assert found == (expected if pair["kind"] == BOUND else {})
        assert len(found) == pair["entries"]
    assert end == sum(cell[0] in (0, 2, 4, 5, 6) for cell in cells)
