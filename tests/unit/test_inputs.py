from __future__ import annotations

import math

import numpy as np
import pytest

from windage import inputs
from windage.errors import InputError, ModelError


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint64(3), np.array(3)])
def test_whole_numbers_of_all_kinds(value):
    assert inputs.as_integer(value, "n", low=0, high=3) == 3
    assert type(inputs.as_integer(value, "n")) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.nan])
def test_what_is_no_integer(value):
    with pytest.raises(InputError, match="n: .*integer from 0 to 9"):
        inputs.as_integer(value, "n", low=0, high=9)


@pytest.mark.parametrize("value", [-1, 10])
def test_integers_out_of_range(value):
    with pytest.raises(InputError, match=f"n: {value} is not an integer from 0 to 9"):
        inputs.as_integer(value, "n", low=0, high=9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.0, "0.5", True, None, [1, 2]])
def test_reals(value):
    with pytest.raises(InputError, match=r"delta: .*\[0, 1\)"):
        inputs.as_real(value, "delta", low=0, high=1, open_high=True)


def test_real_numbers_pass_unchanged():
    assert inputs.as_real(0.1, "x") == 0.1
    assert inputs.as_real(np.float32(0.5), "x", low=0.5) == 0.5


def test_integer_lists():
    assert inputs.as_integers([1, 2], "k").dtype == np.int64
    assert inputs.as_integers([], "k").size == 0
    with pytest.raises(InputError, match=r"k\[1\]: -2 is out of range"):
        inputs.as_integers([1, -2], "k", low=0)
    for wrong in ([1.5, 2.0], [True, False], ["a"], [[1], [2]]):
        with pytest.raises(InputError, match="k: "):
            inputs.as_integers(wrong, "k")


def test_choices_suggest_the_nearest():
    with pytest.raises(InputError, match="did you mean 'bernoulli'"):
        inputs.as_choice("bernuli", "noise", ["bernoulli", "none"])
    with pytest.raises(InputError, match="one of: a, b"):
        inputs.as_choice(7, "x", ["a", "b"])


@pytest.mark.parametrize("value", [0, -1, 2**40, 1.0, True])
def test_horizons(value):
    with pytest.raises(ModelError, match="horizon"):
        inputs.as_horizon(value)


def test_memory_is_estimated_before_it_is_taken():
    with pytest.raises(ModelError, match=r"x: would need about 9\.1 TiB of memory.*Fix: less\."):
        inputs.require_memory(1e13, "x", fix="less")
    inputs.require_memory(1e3, "x", fix="less")


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (2048, "2.0 KiB"), (2**50, "1024.0 TiB")],
)
def test_sizes_in_words(size, words):
    assert inputs.bytes_in_words(size) == words


@pytest.mark.parametrize("name", ["", "  ", "a\nb", 7, None])
def test_names(name):
    with pytest.raises(InputError, match="non-empty string"):
        inputs.as_name(name, "state_names[0]")
