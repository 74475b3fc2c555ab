"""The cache of compiled kernels never outlives the sources it was made from, nor mixes code up."""

from __future__ import annotations

import importlib
import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import windage
from windage.kernels import jit
from windage.kernels.jit import _Cache, _Files, compiled

PROGRAM = """
import numpy as np
from windage.kernels.rollout import Uniform, decide
from windage.rng import key
agent = Uniform(np.zeros(1, np.int64), np.full(1, 1000, np.uint64), key(1, "a"))
print(sum(decide(agent, t, 0) for t in range(50)))
print(sum(decide.stats.cache_hits.values()))
"""


def _run(sources: Path, cache: Path) -> tuple[str, int]:
    env = os.environ | {"PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(cache)}
    env |= {"PYTHONDONTWRITEBYTECODE": "1"}  # bytecode goes by size and time
    env.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    answer, hits = done.stdout.split()
    return answer, int(hits)


def test_a_change_of_a_callee_in_another_file_is_noticed(tmp_path: Path) -> None:
    sources = tmp_path / "src"
    without = shutil.ignore_patterns("*pycache*")
    shutil.copytree(Path(windage.__file__).parent, sources / "windage", ignore=without)
    cache = tmp_path / "cache"
    first, _ = _run(sources, cache)
    again, hits = _run(sources, cache)
    assert (again, hits) == (first, 1)  # the cache works at all

    callee = sources / "windage" / "kernels" / "random.py"
    text = callee.read_text()
    assert "0xBF58476D1CE4E5B9" in text
    stamp = callee.stat()
    callee.write_text(text.replace("0xBF58476D1CE4E5B9", "0xBF58476D1CE4E5B7"))
    os.utime(callee, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # same size, same time
    changed, _ = _run(sources, cache)
    assert changed != first


def test_the_key_holds_every_kernel_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which files a kernel builds on depends on the types it is compiled for: so it is all."""
    kernels = tmp_path / "kernels"
    shutil.copytree(Path(jit.__file__).parent, kernels, ignore=shutil.ignore_patterns("*pycache*"))
    monkeypatch.setattr(jit, "__file__", str(kernels / "jit.py"))
    key = jit._sources.__wrapped__
    known = {key()}
    for path in sorted(kernels.glob("*.py")):
        text = path.read_bytes()
        path.write_bytes(text + b"# more\n")
        assert key() not in known
        known.add(key())
        path.write_bytes(text)
    (kernels / "another.py").write_bytes(b"")
    assert key() not in known
    (kernels / "another.py").unlink()
    assert key() in known
    assert jit._sources() in known  # of the files themselves
    assert len(known) == 1 + len(list(kernels.glob("*.py")))


class _Turns:
    """Lets threads go on one at a time, from one access of a file to the next, in a given order."""

    def __init__(self, order: str) -> None:
        self.order, self.change = list(order), threading.Condition()

    def wait(self, who: str) -> None:
        with self.change:
            assert self.change.wait_for(lambda: self.order[0] == who, timeout=30)

    def done(self) -> None:
        with self.change:
            self.order.pop(0)
            self.change.notify_all()


class _Taking(_Files):
    """Files whose every access waits for its turn."""

    turns: _Turns
    who: str
    waited = 0

    def _turn(self) -> None:
        if self.waited:
            self.turns.done()
        self.waited += 1
        self.turns.wait(self.who)

    def _load_index(self) -> Any:
        self._turn()
        return super()._load_index()

    def _save_index(self, overloads: Any) -> None:
        self._turn()
        super()._save_index(overloads)

    def _save_data(self, name: str, data: Any) -> None:
        self._turn()
        super()._save_data(name, data)


_ORDERS = ["".join(o) for o in sorted(set(itertools.permutations("AAABBB")))]


@pytest.mark.parametrize("stale", [False, True], ids=["empty", "of other sources"])
@pytest.mark.parametrize("order", _ORDERS)
def test_two_that_save_at_once_never_load_what_the_other_saved(
    tmp_path: Path, order: str, stale: bool
) -> None:
    if stale:
        _Files(str(tmp_path), "kernel", "older").save("old", "old")
    turns = _Turns(order)

    def saver(who: str) -> Callable[[], None]:
        files = _Taking(str(tmp_path), "kernel", "stamp")
        files.turns, files.who = turns, who

        def work() -> None:
            files.save(who, f"code of {who}")
            turns.done()

        return work

    threads = [threading.Thread(target=saver(who), daemon=True) for who in "AB"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert turns.order == []
    files = _Files(str(tmp_path), "kernel", "stamp")
    found = {who: files.load(who) for who in "AB"}
    assert all(data in (None, f"code of {who}") for who, data in found.items()), found
    if order in ("AAABBB", "BBBAAA"):  # one after the other: nothing is lost
        assert None not in found.values()
    assert files.load("old") is None
    for who in "AB":  # whatever was lost is saved again, beside the rest
        files.save(who, f"code of {who}, again")
    assert [files.load(who) for who in "AB"] == ["code of A, again", "code of B, again"]


def test_what_older_sources_left_is_swept_up(tmp_path: Path) -> None:
    older, newer = (_Files(str(tmp_path), "kernel", stamp) for stamp in ("older", "newer"))
    older.save("a", 1)
    older.save("b", 2)
    assert len(list(tmp_path.glob("kernel.*.nbc"))) == 2
    newer.save("a", 3)
    assert len(list(tmp_path.glob("kernel.*.nbc"))) == 1
    assert (newer.load("a"), older.load("a")) == (3, None)


def test_an_index_that_names_a_class_that_is_no_more_is_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index names types of arguments: of an earlier version or a script, they are not here."""
    (tmp_path / "passing.py").write_text("class Kind: pass\nclass Other: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("passing")
    files = _Files(str(tmp_path), "kernel", "stamp")
    files.save(module.Kind(), 1)
    assert len(files._load_index()) == 1
    monkeypatch.delattr(module, "Kind")
    assert files.load("b") is None
    files.save(module.Other(), 2)
    monkeypatch.delitem(sys.modules, "passing")
    (tmp_path / "passing.py").unlink()
    importlib.invalidate_caches()
    assert files.load("b") is None
    files.save("b", 3)
    assert files.load("b") == 3


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["cut", "empty", "junk", "flipped", "a folder"])
def test_damaged_files_are_made_anew(tmp_path: Path, ending: str, damage: str) -> None:
    files = _Files(str(tmp_path), "kernel", "stamp")
    files.save("key", b"code" * 100)
    (path,) = tmp_path.glob(f"*.{ending}")
    whole = path.read_bytes()
    path.unlink()
    if damage == "a folder":
        path.mkdir()
        assert files.load("key") is None
        return
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    path.write_bytes(
        {"cut": whole[:middle], "empty": b"", "junk": b"junk\n" * 99, "flipped": flipped}[damage]
    )
    assert files.load("key") is None
    files.save("key", b"code" * 100)
    assert files.load("key") == b"code" * 100


def _twice(x: Any) -> Any:
    return 2 * x


def cached_in(kernel: Any, place: Path) -> Any:
    """A kernel whose cache is in a place of its own."""
    kernel._cache = _Cache(kernel.py_func)
    kernel._cache._cache_file._cache_path = str(place)
    kernel._cache._cache_file._index_path = str(place / "index.nbi")
    return kernel


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_code_that_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    kernel = cached_in(compiled(_twice), tmp_path)
    (tmp_path / "index.nbi").mkdir()
    with pytest.warns(RuntimeWarning, match="compiled code cannot be kept"):
        assert kernel(3) == 6


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_two_caches_of_one_kernel_keep_the_signatures_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that have read an empty index, and then compile for different types."""
    kernels = [cached_in(compiled(_twice), tmp_path) for _ in range(3)]
    for kernel, x in zip(kernels, (3, 1.5), strict=False):
        with monkeypatch.context() as patch:
            patch.setattr(kernel._cache._cache_file, "_load_index", dict)
            assert kernel(x) == 2 * x
    for x in (3, 1.5):
        answer = kernels[2](x)
        assert (answer, type(answer)) == (2 * x, type(x))
    assert sum(kernels[2].stats.cache_hits.values()) == 1  # one entry was lost, and compiled again
