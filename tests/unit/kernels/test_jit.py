"""Kernels are compiled whole: parts have no code of their own, programs take in all below them."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.event import Listener, register, unregister

from windage.kernels.jit import compiled, inlined


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


def test_a_program_is_optimised_once_and_its_parts_never(compiled_names):
    x, y = np.array([3.0, 4.0]), np.array([4.0, 3.0])
    assert cosine(x, y) == pytest.approx(24.0 / 25.0)
    assert sorted(compiled_names) in ([], ["cosine", "norm", "squared"])  # [] from the cache
    assert not cosine.part.overloads  # nothing but Python called it
    parts = [*norm.part.overloads.values(), *squared.part.overloads.values()]
    assert not any(part.library._object_caching_enabled for part in parts)  # no machine code


def test_a_part_can_be_called_from_python_as_a_program_of_its_own():
    cosine(np.ones(2), np.ones(2))
    assert norm(np.array([3.0, 4.0])) == 5.0
    assert squared(3.0) == 9.0 == squared.py_func(3.0)


def test_a_part_without_a_wrapper_cannot_be_reached_from_python():
    cosine(np.ones(2), np.ones(2))
    with pytest.raises(TypeError, match="only kernels"):
        norm.part(np.ones(2))


def test_an_index_that_cannot_be_read_is_no_index(tmp_path, monkeypatch):
    files = squared._cache._cache_file
    monkeypatch.setattr(files, "_index_path", str(tmp_path / "broken.nbi"), raising=True)
    (tmp_path / "broken.nbi").write_bytes(b"\x80\x04cwindage.kernels.jit\nGone\n.")
    assert files._load_index() == {}
