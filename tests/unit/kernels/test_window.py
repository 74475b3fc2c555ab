"""Ring, table and hash table of the samples remembered, against lists and dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.unit.kernels.test_random import literal_mix
from windage.confidence import window as module
from windage.confidence.confidence import blank_plan
from windage.confidence.window import Window
from windage.kernels import memory as kernel
from windage.kernels.gather import gather
from windage.kernels.memory import CELLS, CHANGED, COUNTED, DROPPED, TAKEN
from windage.kernels.plan import BOUND, FREE, LEFT_OUT, spread
from windage.spaces import StateActions

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # whole numbers wrap


@pytest.fixture(params=["table", "hash"])
def storage(request, monkeypatch):
    if request.param == "hash":
        monkeypatch.setattr(module, "_CELLS", 0)
    return request.param


def cells_of(memory):
    """The counts as they lie, by (pair, state)."""
    return hashed_cells(memory) if memory.hashed else listed_cells(memory)


def home(memory, pair, state):
    return literal_mix((pair + 1) * memory.n_states + state) % memory.cell_mark.size


def hashed_cells(memory):
    """Every cell must lie where a search from its home finds it: no gap on the way."""
    found = {}
    for slot in np.flatnonzero(memory.cell_mark).tolist():
        pair, state = int(memory.cell_mark[slot]) - 1, int(memory.cell_state[slot])
        place = home(memory, pair, state)
        while place != slot:
            assert memory.cell_mark[place] != 0
            place = (place + 1) % memory.cell_mark.size
        assert (pair, state) not in found
        found[pair, state] = int(memory.cell_count[slot])
    assert not memory.cell_count[memory.cell_mark == 0].any()
    return found


def listed_cells(memory):
    """Every pair's list is dense, and each of its states knows its place in it."""
    S, found = memory.n_states, {}
    for pair, count in enumerate(memory.counts):
        for i in range(count["distinct"]):
            state = int(memory.cell_state[pair * S + i])
            assert memory.cell_mark[pair * S + state] == i + 1
            found[pair, state] = int(memory.cell_count[pair * S + state])
    assert np.count_nonzero(memory.cell_mark) == len(found)
    assert np.count_nonzero(memory.cell_count) == len(found)
    return found


@pytest.mark.parametrize("width", [1, 4, 12])
def test_ring_and_counts_step_by_step(storage, width):
    """Samples in the order they came; the counts are those of the samples the clock says."""
    space = StateActions([2, 1, 1])
    S = space.n_states
    memory = Window(space, width).memory
    rng = np.random.default_rng(0)
    history = []
    for step in range(120):
        sample = int(rng.integers(4)), float(rng.random()), int(rng.integers(S))
        kernel.add(memory, *sample)
        history.append(sample)
        if rng.random() < 0.3:
            kernel.commit(memory)
            assert memory.clock[COUNTED] == step + 1
        taken, counted, dropped = memory.clock[[TAKEN, COUNTED, DROPPED]]
        assert taken == step + 1
        assert dropped == max(0, counted - width)
        assert taken - dropped < memory.ring.size  # the next sample overwrites none in use
        for i in range(dropped, taken):
            sample = memory.ring[i % memory.ring.size]
            assert (sample["pair"], sample["reward"], sample["after"]) == history[i]
        expected = Counter((pair, after) for pair, _, after in history[dropped:counted])
        assert cells_of(memory) == expected
        assert memory.clock[CELLS] == len(expected)


def test_all_history_needs_a_ring_of_waiting_samples_only(storage, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 3)
    space = StateActions([1, 1])
    memory = Window(space).memory
    for i in range(20):
        kernel.add(memory, i % 2, 0.5, (i // 2) % 2)
    assert memory.ring.size == 3
    assert memory.clock[[TAKEN, COUNTED, DROPPED]].tolist() == [20, 18, 18]
    kernel.commit(memory)
    assert memory.clock[[TAKEN, COUNTED, DROPPED]].tolist() == [20, 20, 20]
    assert cells_of(memory) == {(0, 0): 5, (0, 1): 5, (1, 0): 5, (1, 1): 5}


def crowded(monkeypatch):
    """Room for 50 pairs of 8 states in 16 slots, and cells that want to lie in a few of them.

    Six have their home in the last two slots and run over the end of the table.
    """
    monkeypatch.setattr(module, "_CELLS", 0)
    memory = Window(StateActions([1] * 8), 3).memory
    assert memory.cell_mark.size == 16
    wide = memory._replace(
        counts=np.zeros(50, kernel.COUNT), changed=np.zeros(50, memory.changed.dtype)
    )
    every = [(pair, state) for pair in range(50) for state in range(8)]
    last = [cell for cell in every if home(wide, *cell) >= 14][:6]
    return wide, last + [cell for cell in every if home(wide, *cell) in (0, 1, 5)][:4]


def test_the_hash_table_survives_any_order_of_adding_and_removing(monkeypatch):
    """Few homes and many cells: long runs across the end, gaps closed in all places."""
    memory, cells = crowded(monkeypatch)
    rng = np.random.default_rng(1)
    counts: Counter[tuple[int, int]] = Counter()
    most = 0
    for _ in range(1500):
        cell = cells[int(rng.integers(len(cells)))]
        by = -1 if counts[cell] > 0 and rng.random() < 0.55 else 1
        kernel._count_hashed(memory, np.uint64(cell[0]), cell[1], by)
        counts[cell] += by
        counts += Counter()  # forget what is back at zero
        assert cells_of(memory) == counts
        assert memory.clock[CELLS] == len(counts)
        most = max(most, len(counts))
    assert most == 10
    per_pair = Counter(pair for pair, _ in counts)
    assert memory.counts["distinct"].tolist() == [per_pair[pair] for pair in range(50)]


def test_refilling_a_hash_table_keeps_every_cell(monkeypatch):
    memory, cells = crowded(monkeypatch)
    pairs, states = np.array(cells).T
    times = np.arange(1, 11)
    kernel.refill(memory, pairs, states, times)
    assert cells_of(memory) == dict(zip(cells, times.tolist(), strict=True))
    assert memory.clock[CELLS] == 10
    per_pair = Counter(pairs.tolist())
    assert memory.counts["distinct"].tolist() == [per_pair[pair] for pair in range(50)]


def test_refilling_lists_keeps_every_cell():
    memory = Window(StateActions([2, 1, 1]), 9).memory
    pairs, states, times = np.array([[0, 0, 2, 3, 3], [2, 0, 1, 0, 2], [4, 1, 2, 1, 1]])
    kernel.refill(memory, pairs, states, times)
    assert cells_of(memory) == {(0, 2): 4, (0, 0): 1, (2, 1): 2, (3, 0): 1, (3, 2): 1}


def test_changed_pairs_are_listed_once_until_settled(storage):
    space = StateActions([2, 1, 1])
    memory = Window(space, 2).memory
    for pair in (0, 0, 2):
        kernel.add(memory, pair, 1.0, 1)
    assert memory.clock[CHANGED] == 0
    kernel.commit(memory)
    assert sorted(memory.changed[: memory.clock[CHANGED]].tolist()) == [0, 2]
    assert memory.counts["changed"].tolist() == [1, 0, 1, 0]
    kernel.settle(memory)
    assert memory.clock[CHANGED] == 0
    assert not memory.counts["changed"].any()
    kernel.add(memory, 3, 1.0, 1)  # pair 0 is forgotten: that is a change as well
    kernel.commit(memory)
    assert sorted(memory.changed[: memory.clock[CHANGED]].tolist()) == [0, 3]


def test_means_are_of_the_window_and_zero_without_visits(storage):
    memory = Window(StateActions([1, 1]), 3).memory
    for reward in (0.25, 0.5, 1.0, 0.75):
        kernel.add(memory, 1, reward, 0)
    kernel.commit(memory)
    assert kernel.mean(memory, 1) == 0.75
    assert kernel.mean(memory, 0) == 0.0


def test_gather_writes_p_hat_of_the_wanted_pairs(storage):
    space = StateActions([2, 1, 3, 1])
    S = space.n_states
    rng = np.random.default_rng(2)
    history = [(int(rng.integers(6)), 0.5, int(rng.integers(S))) for _ in range(40)]
    memory = Window(space, 30).memory
    for sample in history:
        kernel.add(memory, *sample)
    kernel.commit(memory)
    plan = blank_plan(space, 28)
    plan.pairs["kind"] = [BOUND, LEFT_OUT, BOUND, FREE, BOUND, BOUND, BOUND]
    gather(memory, plan)  # the last pair was never visited
    spread(plan)
    visits = Counter(pair for pair, _, _ in history[-30:])
    cells = Counter((pair, after) for pair, _, after in history[-30:])
    end = 0
    for p, pair in enumerate(plan.pairs):
        assert pair["row"] == end
        end += pair["entries"]
        own = plan.rows[pair["row"] : end]
        found = dict(zip(own["index"].tolist(), own["probability"].tolist(), strict=True))
        expected = {s: n * (1.0 / visits[p]) for (p_, s), n in cells.items() if p_ == p}
        assert found == (expected if pair["kind"] == BOUND else {})
        assert len(found) == pair["entries"]
