"""The ring of the last samples, against a list that forgets nothing."""

from __future__ import annotations

import numpy as np
import pytest

from windage.agents.meta.delegating import Recent
from windage.errors import ModelError


def samples(rng, n):
    return rng.integers(0, 7, n), rng.normal(size=n), rng.integers(0, 3, n)


@pytest.mark.parametrize("capacity", [1, 2, 5, 13, 100])
def test_the_last_samples_however_they_come(capacity):
    """One by one, in pieces shorter and longer than the ring, and none at all."""
    rng = np.random.default_rng(capacity)
    recent, history = Recent(capacity), [[], [], []]
    for n in [0, 1, 1, 2, capacity - 1, capacity, capacity + 1, 3 * capacity + 2, 0, 1, 7, 4]:
        new = samples(rng, n)
        recent.add(recent.seen, *new)
        for old, more in zip(history, new, strict=True):
            old.extend(more.tolist())
        assert recent.seen == len(history[0])
        for asked in {0, 1, capacity // 2, capacity, capacity + 5}:
            kept = min(asked, capacity, recent.seen)
            found = recent.last(asked)
            for mine, old in zip(found, history, strict=True):
                assert mine.tolist() == old[len(old) - kept :]


def test_what_it_returns_is_a_copy():
    recent = Recent(3)
    recent.add(0, np.array([1, 2]), np.array([0.5, 0.25]), np.array([0, 1]))
    for array in (*recent.last(2), *recent.saved().values()):
        array[:] = 9
    assert [a.tolist() for a in recent.last(2)] == [[1, 2], [0.5, 0.25], [0, 1]]
    assert recent.seen == 2


@pytest.mark.parametrize("n", [0, 1, 4, 5, 6, 23])
def test_saved_and_restored_it_goes_on(n):
    """The ring may stand elsewhere: what comes out is the same, saved again the same bytes."""
    rng = np.random.default_rng(n)
    recent, again = Recent(5), Recent(5)
    recent.add(0, *samples(rng, n))
    again.restore(recent.saved(), 7, 3)
    for _ in range(4):
        for one, other in zip(recent.saved().values(), again.saved().values(), strict=True):
            assert one.tobytes() == other.tobytes()
            assert one.dtype == other.dtype
        new = samples(rng, 3)
        recent.add(recent.seen, *new)
        again.add(again.seen, *new)


def good():
    recent = Recent(4)
    recent.add(0, np.array([0, 5, 6, 1, 2]), np.arange(5.0), np.array([0, 1, 2, 0, 1]))
    return recent.saved()


@pytest.mark.parametrize(
    "damage",
    [
        {"seen": np.array([3])},
        {"seen": np.array([-1])},
        {"seen": np.array([5, 5])},
        {"seen": np.array([], np.int64)},
        {"pair": np.array([0, 1, 2])},
        {"pair": np.array([0, 1, 2, 7])},
        {"pair": np.array([0, 1, 2, -1])},
        {"pair": np.array([0.0, 1.0, 2.0, 3.0])},
        {"after": np.array([0, 1, 2, 3])},
        {"after": np.array([0, -1, 2, 0])},
        {"after": np.array([[0], [1], [2], [0]])},
        {"reward": np.array([0.0, np.nan, 1.0, 1.0])},
        {"reward": np.array([0.0, np.inf, 1.0, 1.0])},
        {"reward": np.array([0, 1, 1, 1])},
    ],
)
def test_impossible_samples_are_refused_and_change_nothing(damage):
    recent = Recent(4)
    recent.add(0, np.array([3]), np.array([0.5]), np.array([1]))
    with pytest.raises(ValueError):
        recent.restore(good() | damage, 7, 3)
    assert [a.tolist() for a in recent.last(4)] == [[3], [0.5], [1]]
    recent.restore(good(), 7, 3)
    assert recent.last(9)[0].tolist() == [5, 6, 1, 2]


@pytest.mark.parametrize("name", ["pair", "reward", "after", "seen"])
def test_nothing_may_be_missing(name):
    saved = good()
    del saved[name]
    with pytest.raises(LookupError):
        Recent(4).restore(saved, 7, 3)


def test_more_than_memory_holds_is_refused_before_it_is_taken():
    with pytest.raises(ModelError, match=r"window: would need about .* Fix: choose smaller wind"):
        Recent(2**40)


def test_samples_shown_again_are_not_kept_twice():
    """Whoever is interrupted while it adds them does it again."""
    rng, recent, again = np.random.default_rng(3), Recent(7), Recent(7)
    for n in (3, 9, 1):
        new, before = samples(rng, n), recent.seen
        recent.add(before, *new)
        for _ in range(3):
            again.add(before, *new)
    assert again.seen == recent.seen == 13
    for mine, theirs in zip(again.last(9), recent.last(9), strict=True):
        assert mine.tolist() == theirs.tolist()
