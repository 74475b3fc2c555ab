"""Windows with restarts and sums of squares, against a recount of the whole history.

The rule, written out: sample k has time k - ahead; a restart at r has happened once the next
sample's time is r or later, and then nothing older than r counts, nor what is older than the width.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from windage.confidence import window as module
from windage.confidence.window import Window, as_restarts
from windage.errors import InputError, StateError
from windage.kernels.window import settle, variance
from windage.spaces import StateActions

T = 90
SPACE = StateActions([2, 1, 3, 1])
SCHEDULES = [
    (),
    (2,),
    (T,),
    (T + 1,),
    (T + 2, 10 * T),
    (30, 31, 32, 60),
    tuple(range(2, 25)),
    (17, 50, 88),
]
WIDTHS = [1, 6, 40, 10 * T, None]


@pytest.fixture(params=["table", "hash"])
def storage(request, monkeypatch):
    if request.param == "hash":
        monkeypatch.setattr(module, "_CELLS", 0)
    return request.param


def samples(size, seed, kind="unit", space=SPACE):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, space.n_pairs, size) * rng.integers(0, 2, size)
    after = np.minimum(rng.geometric(0.4, size) - 1, space.n_states - 1)
    rewards = rng.random(size)
    if kind == "wild":
        rewards = rng.choice([-1.0, 1.0], size) * 10.0 ** rng.uniform(-6, 6, size)
    return list(zip(pairs.tolist(), rewards.tolist(), after.tolist(), strict=True))


def remembered(history, width, restarts, ahead=0):
    """The samples that count before the next one, from the rule above."""
    now = len(history) - ahead + 1
    last = max((r for r in restarts if r <= now), default=-len(history) - ahead)
    return [
        sample
        for k, sample in enumerate(history, start=1)
        if k - ahead >= last and (width is None or k > len(history) - width)
    ]


def squares(window):
    return window.kernel.counts["squares"] + window.kernel.counts["squares_lost"]


def assert_recount(window, history, ahead=0):
    kept = remembered(history, window.width, window.restarts.tolist(), ahead)
    pairs, states = window.space.n_pairs, window.space.n_states
    visits = Counter(pair for pair, _, _ in kept)
    cells = Counter((pair, after) for pair, _, after in kept)
    assert window.visits.tolist() == [visits[pair] for pair in range(pairs)]
    found = window.transitions.toarray()
    assert found.tolist() == [[cells[pair, s] for s in range(states)] for pair in range(pairs)]
    kernel = window.kernel
    assert kernel.clock["cells"][0] == len(cells)
    assert kernel.sources.tolist() == [
        sum(1 for _, after in cells if after == s) for s in range(states)
    ]
    assert kernel.counts["distinct"].tolist() == [
        sum(1 for pair_, _ in cells if pair_ == pair) for pair in range(pairs)
    ]
    for pair in range(pairs):
        mine = [reward for pair_, reward, _ in kept if pair_ == pair]
        total, square = math.fsum(mine), math.fsum(x * x for x in mine)
        assert abs(window.rewards[pair] - total) <= 1e-12 * max(1.0, abs(total))
        expected = square if window.squares else 0.0
        assert abs(squares(window)[pair] - expected) <= 1e-12 * max(1.0, expected)
    changed = kernel.changed[: kernel.clock["changed"][0]].tolist()
    assert sorted(changed) == np.flatnonzero(kernel.counts["changed"]).tolist()


@pytest.mark.parametrize("restarts", SCHEDULES, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_counts_sums_and_squares_at_every_t(storage, width, restarts):
    window, history = Window(SPACE, width, restarts=restarts, squares=True), []
    assert window.is_hashed == (storage == "hash")
    for sample in samples(T, seed=1, kind="wild"):
        window.add(*sample)
        history.append(sample)
        window.commit()
        assert_recount(window, history)
    assert window.kernel.clock["restarts"][0] == sum(r <= T + 1 for r in restarts)


@pytest.mark.parametrize("restarts", SCHEDULES[1:], ids=str)
@pytest.mark.parametrize("width", [1, 7, 40, None])
@pytest.mark.parametrize("batch", [1, 5])
def test_late_counting_comes_to_the_same(storage, width, restarts, batch, monkeypatch):
    """Several restarts may pass between two commits, and a full ring is counted early."""
    monkeypatch.setattr(module, "_BATCH", batch)
    window, history = Window(SPACE, width, restarts=restarts, squares=True), []
    rng = np.random.default_rng(batch)
    for sample in samples(T, seed=2):
        window.add(*sample)
        history.append(sample)
        if rng.random() < 0.12:
            window.commit()
            assert_recount(window, history)
    window.commit()
    assert_recount(window, history)


@pytest.mark.parametrize("ahead", [1, 5, 64])
@pytest.mark.parametrize("width", [3, 30, None])
@pytest.mark.parametrize("restarts", [(), (2,), (2, 3), (11, 12, 40)], ids=str)
def test_samples_of_the_time_before(storage, ahead, width, restarts, monkeypatch):
    """They count until the first restart; the schedule is in times, not in samples."""
    monkeypatch.setattr(module, "_BATCH", 9)
    window, history = Window(SPACE, width, restarts=restarts, squares=True), []
    for i, sample in enumerate(samples(ahead + 60, seed=3)):
        if i < ahead:
            window.ahead = i + 1
        window.add(*sample)
        history.append(sample)
        if i % 3 == 0 or i >= ahead:
            window.commit()
            assert_recount(window, history, min(ahead, i + 1))
    assert window.ahead == ahead
    assert window.kernel.clock["restarts"][0] == len(restarts)


def test_the_sample_of_the_restart_is_the_first_that_counts(storage):
    """By hand: at the start of time 3 nothing is left, at that of time 4 the sample of time 3."""
    window = Window(SPACE, restarts=[3])
    left = []
    for reward in (0.1, 0.2, 0.3, 0.4):
        window.commit()
        left.append(window.rewards[0])
        window.add(0, reward, 1)
    window.commit()
    assert left == [0.0, 0.1, 0.0, 0.3]
    assert window.rewards[0] == pytest.approx(0.7)


def test_who_reads_changes_learns_of_all_that_a_restart_wiped(storage):
    """A pair whose counts differ from when changes were last settled is listed, once."""
    window = Window(SPACE, 25, restarts=[20, 21, 47])
    before = window.visits
    rng = np.random.default_rng(4)
    for sample in samples(T, seed=5):
        window.add(*sample)
        if rng.random() < 0.2:
            window.commit()
            listed = window.kernel.changed[: window.kernel.clock["changed"][0]].tolist()
            assert len(set(listed)) == len(listed)
            assert set(np.flatnonzero(window.visits != before)) <= set(listed)
            settle(window.kernel)
            assert not window.kernel.counts["changed"].any()
            before = window.visits


@pytest.mark.parametrize("width", [4, None])
def test_many_cells_come_and_go(storage, width, monkeypatch):
    """Restarts empty a table with collisions, and one that has grown, without a trace."""
    monkeypatch.setattr(module, "_BATCH", 16)
    space = StateActions([1] * 30)
    window, history = Window(space, width, restarts=range(50, 600, 75)), []
    rng = np.random.default_rng(6)
    for _ in range(600):
        sample = int(rng.integers(30)), float(rng.random()), int(rng.integers(30))
        window.add(*sample)
        history.append(sample)
        if rng.random() < 0.1:
            window.commit()
            assert_recount(window, history)


@pytest.mark.parametrize("restarts", [(), (9_000, 19_970)], ids=str)
def test_sums_of_squares_do_not_drift_over_many_evictions(restarts):
    """Within an ulp of the exactly rounded sum of what is in the window, after 20,000 samples."""
    space = StateActions([2, 1])
    window = Window(space, 50, restarts=restarts, squares=True)
    history = samples(20_000, seed=7, space=space)
    for sample in history:
        window.add(*sample)
    window.commit()
    kept = remembered(history, 50, restarts)
    assert len(kept) == (31 if restarts else 50)
    for pair in range(3):
        exact = math.fsum(reward * reward for pair_, reward, _ in kept if pair_ == pair)
        assert abs(squares(window)[pair] - exact) <= math.ulp(exact)
    wild = Window(space, 50, squares=True)
    history = samples(20_000, seed=8, kind="wild", space=space)
    for sample in history:
        wild.add(*sample)
    wild.commit()
    assert_recount(wild, history)


def test_variances_by_fractions():
    """The mean square less the squared mean, never negative, 0 without visits."""
    window = Window(SPACE, 30, squares=True)
    history = samples(200, seed=9)
    history += [(6, 0.1, 0)] * 7  # equal rewards: rounding would go below 0
    for sample in history:
        window.add(*sample)
    window.commit()
    kept = remembered(history, 30, ())
    for pair in range(SPACE.n_pairs):
        mine = [Fraction(reward) for pair_, reward, _ in kept if pair_ == pair]
        n = max(1, len(mine))
        exact = sum(x * x for x in mine) / n - (sum(mine) / n) ** 2 if mine else Fraction(0)
        found = variance(window.kernel.counts[pair])
        assert found >= 0.0
        assert found == pytest.approx(float(exact), abs=1e-15)


def test_squares_are_kept_only_if_asked_for():
    for wanted in (False, True):
        window = Window(SPACE, 5, squares=wanted)
        window.add(0, 3.0, 1)
        window.commit()
        assert squares(window)[0] == (9.0 if wanted else 0.0)
        assert window.saved()["sums"].shape == ((4 if wanted else 2), SPACE.n_pairs)


def test_clear_begins_the_schedule_again(storage):
    window = Window(SPACE, 10, restarts=[5, 12], squares=True)
    for sample in samples(25, seed=10):
        window.add(*sample)
    window.commit()
    window.clear()
    history = []
    for sample in samples(25, seed=11):
        window.commit()
        assert_recount(window, history)
        window.add(*sample)
        history.append(sample)


# --- saved and restored --------------------------------------------------------------------------


def raw(window):
    return {name: array.tolist() for name, array in window.saved().items()}


@pytest.mark.parametrize("width", [1, 6, 200, None])
@pytest.mark.parametrize("ahead", [0, 10])
@pytest.mark.parametrize("batch", [5, 1 << 16])
def test_saved_anywhere_and_restored(storage, width, ahead, batch, monkeypatch):
    """The twin that was saved and restored goes on as the one that was not, sums bit for bit."""
    monkeypatch.setattr(module, "_BATCH", batch)
    history = samples(60, seed=12, kind="wild")
    options = {"restarts": [8, 9, 21, 44, 500], "squares": True}

    def add(window, first, last):
        for i in range(first, last):
            window.ahead = min(i + 1, ahead)
            window.add(*history[i])

    for cut in range(0, 60, 5):
        for commits in (True, False):  # False: some samples, and perhaps restarts, are waiting
            window, twin = Window(SPACE, width, **options), Window(SPACE, width, **options)
            add(window, 0, cut)
            if commits:
                window.commit()
            saved = window.saved()
            add(window, cut, min(60, cut + 4))  # what comes later does not change what was saved
            window.commit()
            twin.restore(saved)
            add(twin, cut, min(60, cut + 4))
            twin.commit()
            assert raw(twin) == raw(window)
            add(window, cut + 4, 60)
            add(twin, cut + 4, 60)
            twin.commit()
            window.commit()
            assert raw(twin) == raw(window)
            assert_recount(twin, history, ahead)


def put(name, place, value):
    def change(saved):
        broken = {key: array.copy() for key, array in saved.items()}
        broken[name][place] = value
        return broken

    return change


DAMAGE = {
    "no restart": put("clock", 4, 0),
    "a restart too few": put("clock", 4, 1),
    "a restart too many": put("clock", 4, 3),
    "no such restart": put("clock", 4, 4),
    "fewer than none": put("clock", 4, -1),
    "dropped before the restart": put("clock", 2, 11),
    "dropped after it": put("clock", 2, 13),
    "counted": put("clock", 1, 16),
    "taken": put("clock", 0, 99),
    "ahead": put("clock", 3, 1),
    "squares missing": lambda saved: saved | {"sums": saved["sums"][:2]},
    "a clock without restarts": lambda saved: saved | {"clock": saved["clock"][:4]},
    "counts": put("cell_count", 0, 9),
    "ring": put("ring_after", 0, 4),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("width", [20, None])
def test_damaged_states_are_refused(storage, damage, width):
    options = {"restarts": [5, 13, 40], "squares": True}
    window = Window(SPACE, width, **options)
    for i, sample in enumerate(samples(18, seed=13)):
        window.add(*sample)
        if i == 14:
            window.commit()
    saved = window.saved()
    assert saved["clock"].tolist() == [18, 15, 15 if width is None else 12, 0, 2]
    with pytest.raises(StateError, match="impossible") as caught:
        Window(SPACE, width, **options).restore(DAMAGE[damage](saved))
    assert caught.value.fix
    Window(SPACE, width, **options).restore(saved)


def test_another_schedule_is_refused(storage):
    window = Window(SPACE, 20, restarts=[5, 13, 40], squares=True)
    for sample in samples(18, seed=13):
        window.add(*sample)
    window.commit()
    for restarts in ((), (5,), (5, 12), (5, 14, 40)):
        with pytest.raises(StateError, match="impossible"):
            Window(SPACE, 20, restarts=restarts, squares=True).restore(window.saved())
    with pytest.raises(StateError, match="sums"):
        Window(SPACE, 20, restarts=[5, 13, 40]).restore(window.saved())


@pytest.mark.parametrize("width", [3, 20, None])
def test_a_restart_that_should_have_been_is_refused(storage, width):
    """It would happen at the next commit, and count samples that left the ring long ago."""
    options = {"restarts": [5], "squares": True}
    window = Window(SPACE, width, **options if width == 3 else {"squares": True})
    for sample in samples(18, seed=14):
        window.add(*sample)
        window.commit()
    saved = window.saved()
    saved["clock"][4] = 0
    with pytest.raises(StateError, match="clock"):
        Window(SPACE, width, **options).restore(saved)


@pytest.mark.parametrize(
    ("restarts", "says"),
    [
        ([1], "1 comes too early"),
        ([0, 5], "0 comes too early"),
        ([-3], "-3 comes too early"),
        ([5, 5], "5 comes too early"),
        ([5, 9, 7], "7 comes too early"),
        ([2.0, 3.0], "no times"),
        ([2, 3.5], "no times"),
        ([[2, 3]], "no times"),
        ([[2], [3, 4]], "no times"),
        (5, "no times"),
        ([True], "no times"),
        (["5"], "no times"),
        ([None], "no times"),
        ([10**30], "no times"),
        ("soon", "no times"),
    ],
)
def test_bad_schedules_are_refused(restarts, says):
    for make in (lambda: Window(SPACE, restarts=restarts), lambda: as_restarts(restarts)):
        with pytest.raises(InputError, match=says) as caught:
            make()
        assert caught.value.field == "restarts"
        assert "from 2 on" in caught.value.fix


def test_a_bad_time_is_placed():
    with pytest.raises(InputError, match=r"restarts at \[2\]: 7 comes too early"):
        Window(SPACE, restarts=[5, 9, 7, 3])


def test_the_caller_keeps_his_schedule():
    given = np.array([4, 8])
    window = Window(SPACE, restarts=given)
    given[0] = 99
    assert window.restarts.tolist() == [4, 8]
    assert Window(SPACE, restarts=(2**40,)).restarts.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        window.restarts[0] = 1
