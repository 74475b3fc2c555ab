"""The window against a recount of the whole history at every t, stored in a table and hashed."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from windage.agents.multiscale.windows import WindowExperts
from windage.confidence import window as module
from windage.confidence.window import Window
from windage.errors import InputError, ModelError, StateError
from windage.spaces import StateActions

T = 120
SPACE = StateActions([2, 1, 3, 1])
WIDTHS = [1, 2, 7, T - 1, T, T + 1, 10 * T, None]


@pytest.fixture(params=["table", "hash"])
def storage(request, monkeypatch):
    """Small models have a table; this makes them hash as large ones do."""
    if request.param == "hash":
        monkeypatch.setattr(module, "_CELLS", 0)
    return request.param


def rewards(kind, size, rng):
    if kind == "binary":
        return rng.integers(0, 2, size).astype(float)
    if kind == "unit":
        return rng.random(size)
    return rng.choice([-1.0, 1.0], size) * 10.0 ** rng.uniform(-12, 12, size)


def samples(space, size, seed, kind="unit"):
    """Samples as a learner would meet them, some pairs often and most next states rarely."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, space.n_pairs, size) * rng.integers(0, 2, size)
    after = np.minimum(rng.geometric(0.4, size) - 1, space.n_states - 1)
    return list(zip(pairs.tolist(), rewards(kind, size, rng).tolist(), after.tolist(), strict=True))


def assert_counts(window, history):
    """Eq. (3): with t = len(history) + 1, the times max(1, t - W) to t - 1 and no other."""
    t = len(history) + 1
    first = 1 if window.width is None else max(1, t - window.width)
    kept = [history[q - 1] for q in range(first, t)]
    pairs, states = window.space.n_pairs, window.space.n_states
    visits = Counter(pair for pair, _, _ in kept)
    cells = Counter((pair, after) for pair, _, after in kept)
    assert window.visits.tolist() == [visits[pair] for pair in range(pairs)]
    found = window.transitions.toarray()
    assert found.tolist() == [[cells[pair, s] for s in range(states)] for pair in range(pairs)]
    assert window.kernel.clock["cells"][0] == len(cells)
    assert window.kernel.counts["distinct"].tolist() == [
        sum(1 for pair_, _ in cells if pair_ == pair) for pair in range(pairs)
    ]
    for pair in range(pairs):
        exact = math.fsum(reward for pair_, reward, _ in kept if pair_ == pair)
        assert abs(window.rewards[pair] - exact) <= 1e-12 * max(1.0, abs(exact))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["binary", "unit", "wild"])
def test_counts_and_sums_at_every_t(storage, width, kind):
    window, history = Window(SPACE, width), []
    assert window.is_hashed == (storage == "hash")
    for sample in samples(SPACE, T, seed=1, kind=kind):
        window.add(*sample)
        history.append(sample)
        window.commit()
        assert_counts(window, history)


@pytest.mark.parametrize("batch", [1, 3, 50])
@pytest.mark.parametrize("width", [1, 5, 40, None])
def test_late_counting_comes_to_the_same(storage, width, batch, monkeypatch):
    """Samples wait for `commit`; a full ring is counted early and nothing is lost."""
    monkeypatch.setattr(module, "_BATCH", batch)
    window, history = Window(SPACE, width), []
    rng = np.random.default_rng(2)
    for sample in samples(SPACE, 3 * T, seed=3, kind="wild"):
        window.add(*sample)
        history.append(sample)
        if rng.random() < 0.1:
            window.commit()
            assert_counts(window, history)
    window.commit()
    assert_counts(window, history)


def test_counts_stay_as_they_are_until_the_commit():
    window = Window(SPACE, 5)
    window.add(0, 1.0, 2)
    assert window.visits.sum() == 0
    window.commit()
    window.add(1, 1.0, 2)
    assert window.visits.tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert window.rewards.tolist() == [1.0, 0, 0, 0, 0, 0, 0]


def test_a_large_reward_that_left_leaves_no_trace():
    """1e12 + 0.1 - 1e12 is 0.09998 in plain doubles."""
    window = Window(StateActions([1]), 3)
    for reward in (0.1, 1e12, 0.3, 0.7, 0.9):
        window.add(0, reward, 0)
        window.commit()
    assert window.rewards[0] == pytest.approx(1.9, abs=1e-15)


def test_sums_do_not_drift_over_many_evictions():
    window = Window(StateActions([2, 1]), 50)
    history = samples(window.space, 20_000, seed=4, kind="wild")
    for sample in history:
        window.add(*sample)
    window.commit()
    assert_counts(window, history)


@pytest.mark.parametrize("width", [3, 30, None])
def test_many_next_states_and_as_many_collisions(storage, width, monkeypatch):
    """Hashed: up to half full, pairs that come and go, next states spread over all slots."""
    monkeypatch.setattr(module, "_BATCH", 8)
    space = StateActions([1] * 40)
    rng = np.random.default_rng(5)
    window, history = Window(space, width), []
    for _ in range(600):
        sample = int(rng.integers(40)), float(rng.random()), int(rng.integers(40))
        window.add(*sample)
        history.append(sample)
        if rng.random() < 0.2:
            window.commit()
            assert_counts(window, history)
    if storage == "hash":
        room = window.kernel.cells.size
        assert window.kernel.clock["cells"][0] <= window.most_cells <= room // 2


def test_all_history_grows_its_hash_table_and_stops_growing(monkeypatch):
    monkeypatch.setattr(module, "_CELLS", 0)
    monkeypatch.setattr(module, "_BATCH", 4)
    space = StateActions([2, 1, 1])
    window, history = Window(space), []
    sizes, replaced = [window.kernel.cells.size], 0
    for i in range(200):
        before = window.kernel
        sample = i % 4, 0.5, (i // 4) % 3
        window.add(*sample)
        history.append(sample)
        replaced += window.kernel is not before
        sizes.append(window.kernel.cells.size)
        window.commit()
        assert_counts(window, history)
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]
    assert replaced <= 3  # a table that holds every cell is never built again
    assert not window.make_room(10**6)


def test_clear_forgets_everything(storage):
    window = Window(SPACE, 10)
    for sample in samples(SPACE, 25, seed=6):
        window.add(*sample)
    window.commit()
    window.clear()
    assert_counts(window, [])
    history = samples(SPACE, 25, seed=7)
    for sample in history:
        window.add(*sample)
    window.commit()
    assert_counts(window, history)


def raw(window):
    """All that a window will do from here on depends on."""
    return {name: array.tolist() for name, array in window.saved().items()}


@pytest.mark.parametrize("width", [1, 6, 200, None])
@pytest.mark.parametrize("batch", [5, 1 << 16])
def test_saved_anywhere_and_restored(storage, width, batch, monkeypatch):
    """The twin that was saved and restored goes on as the one that was not, sums bit for bit."""
    monkeypatch.setattr(module, "_BATCH", batch)
    history = samples(SPACE, 60, seed=8, kind="wild")
    for cut in range(0, 60, 7):
        for commits in (True, False):  # False: some samples are still waiting
            window = Window(SPACE, width)
            for sample in history[:cut]:
                window.add(*sample)
            if commits:
                window.commit()
            saved = window.saved()
            for sample in history[cut : cut + 3]:  # what comes later does not change what was saved
                window.add(*sample)
            window.commit()
            twin = Window(SPACE, width)
            twin.restore(saved)
            for sample in history[cut : cut + 3]:
                twin.add(*sample)
            twin.commit()
            assert raw(twin) == raw(window)
            changed = twin.kernel.changed[: twin.kernel.clock["changed"][0]]
            assert sorted(changed) == np.flatnonzero(twin.kernel.counts["changed"]).tolist()
            for sample in history[cut + 3 :]:
                window.add(*sample)
                twin.add(*sample)
            twin.commit()
            window.commit()
            assert raw(twin) == raw(window)
            assert_counts(twin, history)


def test_a_restored_table_has_room_for_the_samples_that_wait(monkeypatch):
    """The planner's room is `most_cells`: waiting samples become cells without asking again."""
    monkeypatch.setattr(module, "_CELLS", 0)
    monkeypatch.setattr(module, "_BATCH", 8)
    space = StateActions([1] * 10)
    window = Window(space)
    for i in range(8 + 7):
        window.add(i % 10, 0.5, i // 10)
    saved = window.saved()
    assert saved["cell_key"].size == 8
    twin = Window(space)
    twin.restore(saved)
    twin.commit()
    assert twin.kernel.clock["cells"][0] == 15
    assert twin.most_cells >= 15


def damage(saved, name, change):
    broken = {key: array.copy() for key, array in saved.items()}
    broken[name] = change(broken[name])
    return broken


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


DAMAGE = [
    ("clock", lambda a: a[:2]),
    ("clock", put(0, -1)),  # taken
    ("clock", put(0, 5)),  # fewer taken than counted
    ("clock", put(1, 99)),  # counted
    ("clock", put(2, 0)),  # dropped
    ("clock", put(3, -1)),  # of the time before t = 1
    ("clock", put(3, 24)),
    ("clock", put(4, 1)),  # restarts
    ("ring_pair", lambda a: a[:-1]),
    ("ring_pair", put(0, 7)),
    ("ring_pair", put(-1, -1)),
    ("ring_after", lambda a: np.append(a, 0)),
    ("ring_after", put(1, 4)),
    ("ring_after", put(1, -1)),
    ("ring_reward", lambda a: a[:-1]),
    ("sums", lambda a: a[:-1]),
    ("sums", lambda a: a.ravel()),
    ("cell_key", lambda a: a[:-1]),
    ("cell_key", lambda a: a[::-1]),
    ("cell_key", put(-1, 28)),
    ("cell_key", put(0, -1)),
    ("cell_count", put(0, 0)),
    ("cell_count", put(0, -3)),
    ("cell_count", lambda a: a + 1),
    ("changed", put(0, 7)),
    ("changed", lambda a: np.append(a, a[0])),
]


@pytest.mark.parametrize(("name", "change"), DAMAGE)
def test_damaged_arrays_are_refused(storage, name, change):
    window = Window(SPACE, 6)
    for sample in samples(SPACE, 20, seed=9):
        window.add(*sample)
    window.commit()
    for sample in samples(SPACE, 3, seed=10):
        window.add(*sample)
    saved = window.saved()
    assert saved["clock"].tolist() == [23, 20, 14, 0, 0]
    with pytest.raises(StateError, match="impossible") as caught:
        Window(SPACE, 6).restore(damage(saved, name, change))
    assert caught.value.field == "state"
    assert caught.value.fix
    Window(SPACE, 6).restore(saved)


def test_counts_that_are_not_those_of_the_ring_are_refused(storage):
    """One count moved to another cell: every total is right, yet evictions would go wrong."""
    window = Window(SPACE, 6)
    for pair, after in [(0, 0), (0, 0), (0, 1), (1, 1)]:
        window.add(pair, 0.5, after)
    window.commit()
    saved = window.saved()
    assert saved["cell_count"].tolist() == [2, 1, 1]
    for counts in ([1, 2, 1], [1, 1, 2]):
        with pytest.raises(StateError, match="cell_count"):
            Window(SPACE, 6).restore(saved | {"cell_count": np.array(counts)})


def test_a_ring_that_would_overflow_is_refused(storage):
    """A full ring is counted at once, so a saved one has room for a sample."""
    window = Window(SPACE, 2)
    for sample in samples(SPACE, 7, seed=11):
        window.add(*sample)
    saved = window.saved()
    clock = window.kernel.clock[0]
    assert clock["taken"] - clock["dropped"] == 4
    fuller = saved | {
        "clock": saved["clock"] + [1, 0, 0, 0, 0],
        **{name: np.append(saved[name], saved[name][-1:]) for name in saved if "ring" in name},
    }
    with pytest.raises(StateError, match="clock"):
        Window(SPACE, 2).restore(fuller)


def test_a_window_of_another_width_is_refused(storage):
    window = Window(SPACE, 6)
    for sample in samples(SPACE, 20, seed=12):
        window.add(*sample)
    window.commit()
    assert window.kernel.clock["counted"][0] == 20
    for width in (5, 7, None):
        with pytest.raises(StateError, match="clock"):
            Window(SPACE, width).restore(window.saved())


@pytest.mark.parametrize("width", [0, -1, 2.0, True, "3"])
def test_a_width_that_is_none(width):
    with pytest.raises(InputError, match="window"):
        Window(SPACE, width)


def test_a_window_that_does_not_fit_is_refused_before_anything_is_allocated():
    with pytest.raises(ModelError, match="window.*would need about") as caught:
        Window(SPACE, 10**15)
    assert "smaller window" in caught.value.fix


@pytest.mark.parametrize("width", [None, 1, 5, 40])
@pytest.mark.parametrize("restarts", [(), (9, 30)])
def test_contents_need_no_commit(width, restarts):
    rng = np.random.default_rng(1)
    window = Window(StateActions([2, 1]), width, restarts=restarts)
    pairs: list[int] = []
    for t in range(1, 61):
        pairs.append(int(rng.integers(3)))
        window.add(pairs[-1], 0.5, int(rng.integers(2)))
        first = max([0, *(r - 1 for r in restarts if r <= t + 1)])
        kept = pairs[max(first, t - (width or t)) :]
        assert window.contents.tolist() == [kept.count(pair) for pair in range(3)], t
        if rng.random() < 0.2:
            window.commit()
            assert window.contents.tolist() == window.visits.tolist()


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"pair": 10**9}, "pair: 1000000000 is not an integer from 0 to 2"),
        ({"pair": 3}, "pair: 3 is not an integer from 0 to 2"),
        ({"pair": -1}, "pair: -1 is not an integer from 0 to 2"),
        ({"pair": True}, "pair: True is a boolean"),
        ({"pair": 1.0}, r"pair: 1\.0 \(float\) is not an integer"),
        ({"pair": 2**63}, "pair: 9223372036854775808 is not an integer"),
        ({"after": 2}, "after: 2 is not an integer from 0 to 1"),
        ({"after": -1}, "after: -1 is not an integer from 0 to 1"),
        ({"reward": math.nan}, "reward: nan is not a number"),
        ({"reward": "1"}, "reward: '1' is not a number"),
    ],
)
@pytest.mark.parametrize("kind", ["window", "experts"])
def test_samples_that_cannot_be(kind, sample, message):
    """Kernels have no bounds checks: a pair of 10**9 wrote, or died, wherever that is."""
    space = StateActions([2, 1])
    made = Window(space, 5) if kind == "window" else WindowExperts(space, [2, 9])
    with pytest.raises(InputError, match=message):
        made.add(**{"pair": 0, "reward": 0.5, "after": 1} | sample)
    made.add(0, 0.5, 1)
    assert made.contents.sum() == 1


@pytest.mark.parametrize("value", [-1, 2**63, 1.5, None, True])
def test_steps_ahead_that_cannot_be(value):
    for made in (Window(SPACE, 5), WindowExperts(SPACE, [2, 9])):
        with pytest.raises(InputError, match="ahead"):
            made.ahead = value
        assert made.ahead == 0


@pytest.mark.parametrize("windows", [[], [0, 3], [-4, 3], [9, 2], [3, 3], [2.5, 9], 7, [True, 9]])
def test_lengths_of_windows_that_cannot_be(windows):
    with pytest.raises(InputError, match="windows"):
        WindowExperts(SPACE, windows)
