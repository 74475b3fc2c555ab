from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from windage.errors import InputError
from windage.kernels.random import uniform
from windage.rng import key, stream

N = 100_000
KEY_OF_WORLD_STATE = [17819331162547594887, 14396335632822482499]
FIRST_UNIFORM = 0.1520148423104586
FIRST_OF_A_WALK = 1426522384268052320
ADDRESSES = [(s, p, t) for s in (1, 11) for p in ("1/p", "p", "/p") for t in (0, 1, 11)]


def draws(seed, purpose, draw=0):
    k = key(seed, purpose)
    return np.array([uniform(k, t, draw) for t in range(1, N + 1)])


def test_keys_differ_by_seed_and_purpose():
    keys = {key(s, p).tobytes() for s in range(100) for p in ("a", "b", "c")}
    assert len(keys) == 300


def test_keys_are_a_stable_format():
    """A change here changes every result ever stored: it needs a new version of all ids."""
    assert [int(word) for word in key(0, "world.state")] == KEY_OF_WORLD_STATE
    assert uniform(key(0, "world.state"), 1, 0) == pytest.approx(FIRST_UNIFORM, abs=0)


def test_draws_are_uniform_and_unrelated_across_addresses():
    """False-alarm rate 1e-6 each; the power is shown on the same stream one step later."""
    a, b = draws(0, "x"), draws(0, "y")
    c, d = draws(1, "x"), draws(0, "x", draw=1)
    cells = lambda u: np.floor(u * 16).astype(int)  # noqa: E731
    assert stats.chisquare(np.bincount(cells(a), minlength=16)).pvalue > 1e-6
    for other in (b, c, d, np.roll(a, 1), np.roll(a, 7)):
        table = np.zeros((16, 16))
        np.add.at(table, (cells(a), cells(other)), 1)
        assert stats.chi2_contingency(table).pvalue > 1e-6
    shifted = np.zeros((16, 16))
    np.add.at(shifted, (cells(a), cells(0.97 * a + 0.03 * b)), 1)
    assert stats.chi2_contingency(shifted).pvalue < 1e-6


def test_every_bit_of_the_counter_matters():
    k = key(3, "bits")
    base = uniform(k, 1, 0)
    assert len({uniform(k, 1 + (1 << bit), 0) for bit in range(1, 39)} | {base}) == 39
    assert len({uniform(k, 1, 1 << bit) for bit in range(24)} | {base}) == 25


def test_numpy_streams_are_addressed_too():
    assert stream(1, "p", 5).random() == stream(1, "p", 5).random()
    assert len({stream(s, p, t).random() for s in (1, 2) for p in "ab" for t in (0, 1)}) == 8


def test_numpy_streams_do_not_share_their_key_with_compiled_ones():
    """What a model is built from must not be what its noise is drawn with."""
    for seed in (0, 1, 2**70):
        for purpose in ("world.state", "schedules.Walk"):
            compiled = key(seed, purpose)
            state = stream(seed, purpose).bit_generator.state
            assert state["bit_generator"] == "Philox"
            assert not set(state["state"]["key"].tolist()) & set(compiled.tolist())
            same = np.random.Generator(np.random.Philox(key=compiled))
            assert stream(seed, purpose).random() != same.random()


def test_numpy_streams_are_a_stable_format():
    """Walks, random models and all results made from them hang on these bits."""
    assert stream(0, "schedules.Walk").integers(1 << 62) == FIRST_OF_A_WALK


def test_no_stream_of_an_address_is_that_of_another():
    words = [stream(s, p, t).bit_generator.state["state"]["key"] for s, p, t in ADDRESSES]
    assert len({word.tobytes() for word in words}) == len(ADDRESSES)


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ((0, ""), "purpose"),
        ((0, 7), "purpose"),
        ((0, None), "purpose"),
        ((0, "p", -1), "t"),
        ((0, "p", 1.0), "t"),
        ((0, "p", True), "t"),
        ((0, "p", 2**40), "t"),
        ((10**5000, "p"), "seed"),
    ],
    ids=range(8),
)
def test_what_is_no_address(address, field):
    with pytest.raises(InputError, match=f"^{field}: ") as error:
        stream(*address)
    assert error.value.fix


@pytest.mark.parametrize("seed", [-1, 1.0, True, None, "0"])
def test_seeds_are_whole_numbers_from_zero_on(seed):
    with pytest.raises(InputError, match="seed"):
        key(seed, "x")
