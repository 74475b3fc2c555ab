"""Kernels are compiled whole, chosen by class, and interpreted while that is cheaper."""

from __future__ import annotations

import os
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.event import Listener, register, unregister

from tests.unit.kernels.test_cache import cached_in
from windage.errors import InputError
from windage.kernels import jit
from windage.kernels.jit import Tier, compiled, inlined, interpreted, variants
from windage.kernels.random import mix

needs_compiler = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")


@inlined
def squared(x):
    return x * x


@compiled
def norm(values):
    total = 0.0
    for i in range(values.size):
        total += squared(values[i])
    return total**0.5


@compiled
def cosine(one, other):
    total = 0.0
    for i in range(one.size):
        total += one[i] * other[i]
    return total / (norm(one) * norm(other))


class Compiled(Listener):
    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


@pytest.fixture
def compiled_names():
    listener = Compiled()
    register("numba:compile", listener)
    yield listener.names
    unregister("numba:compile", listener)


@needs_compiler
def test_a_program_is_optimised_once_and_its_parts_never(compiled_names):
    x, y = np.array([3.0, 4.0]), np.array([4.0, 3.0])
    assert cosine(x, y) == pytest.approx(24.0 / 25.0)
    assert sorted(compiled_names) in ([], ["cosine", "norm", "squared"])  # [] from the cache
    assert not cosine.part.overloads  # nothing but Python called it
    parts = [*norm.part.overloads.values(), *squared.part.overloads.values()]
    assert not any(part.library._object_caching_enabled for part in parts)  # no machine code


@needs_compiler
def test_a_part_can_be_called_from_python_as_a_program_of_its_own():
    cosine(np.ones(2), np.ones(2))
    assert norm(np.array([3.0, 4.0])) == 5.0
    assert squared(3.0) == 9.0 == squared.py_func(3.0)


@needs_compiler
def test_a_part_without_a_wrapper_cannot_be_reached_from_python():
    cosine(np.ones(2), np.ones(2))
    with pytest.raises(TypeError, match="only kernels"):
        norm.part(np.ones(2))


# --- variants ------------------------------------------------------------------------------------


class Square(NamedTuple):
    side: float


class Rectangle(NamedTuple):
    side: float
    other: float


class Tile(NamedTuple):
    """The fields of a square, and another class."""

    side: float


@variants
def area(shape, scale):
    """Return how large a shape is."""


@area.register(Square)
def _area_of_square(shape, scale):
    return scale * shape.side * shape.side


@area.register(Rectangle, forceinline=True)
def _area_of_rectangle(shape, scale):
    return scale * shape.side * shape.other


@area.register(Tile)
def _area_of_tile(shape, scale):
    return -scale * shape.side


@compiled
def price(shape, rate):
    return rate * area(shape, 2.0)


@compiled
def cost(shape):
    return area(shape, np.float32(2.0))


@compiled
def frame(shape, rate):
    return area(Square(shape.side + rate), 1.0) - area(shape, 1.0)


SHAPES = [(Square(3.0), 9.0), (Rectangle(3.0, 5.0), 15.0), (Tile(3.0), -3.0)]


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_the_class_of_the_first_argument_chooses(shape, size):
    """From Python, from a kernel, and interpreted; twice, since types are known the second time."""
    for _ in range(2):
        assert area(shape, 0.5) == 0.5 * size
        assert price(shape, 10.0) == 20.0 * size
        assert interpreted(area)(shape, 0.5) == 0.5 * size
        assert interpreted(price)(shape, 10.0) == 20.0 * size
    assert area.__name__ == "area"
    assert area.__doc__ == "Return how large a shape is."


class Circle(NamedTuple):
    """No kernel knows it."""

    radius: float


@pytest.mark.parametrize("shape", [Circle(1.0), np.ones(1)])
@pytest.mark.parametrize("call", [area, price, interpreted(area), interpreted(price)])
def test_a_class_without_a_variant_is_named(call, shape):
    with pytest.raises(InputError) as caught:
        call(shape, 1.0)
    assert "the kernel area has no variant for" in str(caught.value)
    assert "area.shape" in str(caught.value)
    if isinstance(shape, Circle):
        assert "@area.register(Circle)" in str(caught.value)


def test_two_variants_in_one_kernel():
    for call in (frame, interpreted(frame)):
        assert call(Rectangle(3.0, 5.0), 1.0) == 1.0
        assert call(Square(3.0), 1.0) == 7.0


def test_a_variant_is_a_kernel_of_its_own():
    assert _area_of_square(Square(3.0), 1.0) == 9.0


@needs_compiler
def test_a_caller_compiles_the_variant_it_uses_and_no_other(compiled_names):
    assert cost(Square(2.0)) == 8.0
    used = {"cost", "_area_of_square"}
    assert set(compiled_names) in (set(), used)  # none: from the cache
    assert not cost.part.overloads


# --- interpreted ---------------------------------------------------------------------------------


@compiled
def scrambled(words):
    total = np.uint64(0)
    for i in range(words.size):
        total = mix(total + words[i] * np.uint64(0x9E3779B97F4A7C15))
    return total


def test_interpreted_words_wrap_in_silence():
    words = np.arange(1, 50, dtype=np.uint64) << np.uint64(58)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = interpreted(scrambled)(words)
    with np.errstate(over="ignore"):
        assert found == scrambled(words)


@needs_compiler
def test_nothing_is_compiled_of_what_is_interpreted(compiled_names):
    x = np.array([3.0, 4.0], np.float32)
    before = [kernel.overloads.copy() for kernel in (cosine, norm, squared)]
    assert interpreted(cosine)(x, x) == pytest.approx(1.0)
    assert interpreted(price)(Rectangle(np.float32(1), np.float32(2)), 3) == 12.0
    assert compiled_names == []
    assert [kernel.overloads for kernel in (cosine, norm, squared)] == before


class Clock:
    """A clock on which every call of a kernel takes 0.4 seconds."""

    now = 0.0

    def perf_counter(self):
        self.now += 0.4
        return self.now


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr(jit, "time", Clock())
    monkeypatch.setattr(jit, "PATIENCE", 1.0)
    monkeypatch.setattr(Tier, "_spent", {})


def half(x):
    return squared(x) / 2


@needs_compiler
def test_a_kernel_is_compiled_when_patience_is_spent(patience, tmp_path):
    kernel = cached_in(compiled(half), tmp_path)
    tier = Tier(kernel, (3.0,))
    for n in range(3):
        assert tier.interprets()
        assert not tier.interprets(1.01 - 0.4 * n)  # what is left would take too long
        assert tier(3.0) == 4.5
        assert not kernel.overloads
    assert not tier.interprets()
    assert not Tier(kernel, (3.0,)).interprets()  # time is spent by kernel and types
    assert Tier(kernel, (np.float32(3.0),)).interprets()
    assert tier(3.0) == 4.5
    assert list(kernel.overloads) == [tuple(map(kernel.typeof_pyval, (3.0,)))]


@needs_compiler
def test_a_kernel_that_is_compiled_or_cached_is_never_interpreted(patience, tmp_path):
    kernel = cached_in(compiled(half), tmp_path)
    kernel(3.0)
    other = cached_in(compiled(half), tmp_path)
    for one in (kernel, other):
        tier = Tier(one, (3.0,))
        assert not tier.interprets()
        assert tier(5.0) == 12.5
        assert Tier(one, (3,)).interprets()  # for other types it is neither
    assert sum(other.stats.cache_hits.values()) == 1
    assert len(other.overloads) == 1


@needs_compiler
def test_a_cache_of_other_sources_does_not_count(patience, tmp_path, monkeypatch):
    cached_in(compiled(half), tmp_path)(3.0)
    monkeypatch.setattr(jit, "_sources", lambda: "others")
    assert Tier(cached_in(compiled(half), tmp_path), (3.0,)).interprets()


@needs_compiler
def test_a_call_is_interpreted_if_its_seconds_are_cheaper(patience, tmp_path):
    kernel = cached_in(compiled(half), tmp_path)
    assert jit.call(kernel, 3.0, seconds=1.0) == 4.5
    assert not kernel.overloads
    assert jit.call(kernel, 3.0, seconds=0.7) == 4.5  # 0.4 are spent
    assert len(kernel.overloads) == 1


@compiled
def counted(out, n):
    for _ in range(n):
        out[0] += 1
    return out[out[1]]


class Stop(BaseException):
    pass


@pytest.fixture
def alarm():
    """Stop soon, as Ctrl-C would: between any two steps of Python in the main thread."""

    def ring(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def interpreting(monkeypatch):
    monkeypatch.setattr(jit, "PATIENCE", np.inf)
    monkeypatch.setattr(Tier, "_spent", {})
    monkeypatch.setattr(Tier, "_is_compiled", lambda *_: False)


def test_what_is_interpreted_is_done_when_ctrl_c_is_told(interpreting, alarm):
    out, n = np.zeros(2, np.int64), 300_000
    tier = Tier(counted, (out, n))
    alarm()
    with pytest.raises(Stop):
        tier(out, n)
    assert out[0] == n
    assert tier(out, 5) == n + 5


def test_an_error_of_what_is_interpreted_is_raised(interpreting):
    out = np.array([0, 9])
    with pytest.raises(IndexError):
        Tier(counted, (out, 1))(out, 1)


def test_other_threads_interpret_for_themselves(interpreting):
    out = np.zeros(2, np.int64)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(Tier(counted, (out, 7)), out, 7).result() == 7


if "NUMBA_DISABLE_JIT" in os.environ:  # test_without_compiler.py runs this file so

    def test_without_a_compiler_all_is_interpreted(patience):
        tier = Tier(norm, (np.ones(4),))
        for _ in range(9):
            assert tier(np.ones(4)) == 2.0
            assert tier.interprets(1e9)
