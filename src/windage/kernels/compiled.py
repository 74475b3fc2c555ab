"""The one way kernels are compiled: cached on disk, without the GIL, never with fast math.

Fast math would let the compiler reorder sums, and then the fused run and the step-by-step run
could differ in the last bit. Reference counting is off (`_nrt=False`): kernels allocate nothing,
and counting references to the dozen arrays of a world would cost five times as much as a step
does. A kernel that tries to allocate does not compile (docs/adr/0002).

Numba's cache notices a change of the file a function stands in, not of a function it calls in
another file. Kernels call each other across files, so the contents of all files a kernel builds on
are part of its address in the cache (docs/adr/0003). Files are named by that address, so processes
that compile at the same time do not mistake one's code for the other's.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


_HERE = Path(__file__).parent
_IMPORTS = re.compile(r"^from windage\.kernels\b(?:.*\($[^)]*|.*)", re.MULTILINE)


@functools.cache
def _text(name: str) -> str:
    return (_HERE / f"{name}.py").read_text(encoding="utf-8")


@functools.cache
def _sources(name: str) -> str:
    """Return a hash of a kernel file and of all kernel files it builds on."""
    files = {path.stem for path in _HERE.glob("*.py")}
    found, new = {name}, {name}
    while new:
        lines = "\n".join(line for file in new for line in _IMPORTS.findall(_text(file)))
        new = (set(re.findall(r"\w+", lines)) & files) - found
        found |= new
    return hashlib.sha256("\0".join(map(_text, sorted(found))).encode()).hexdigest()


class _Files(IndexDataCacheFile):
    """Numba's files of one kernel, with data files that are named by what they hold.

    Numba numbers them by the index it has read. Two processes that read the same index give two
    signatures the same number, and whichever index is written last, one of them may load the code
    of the other. Here data never changes under its name, and is there before the index says so: an
    entry lost to a process that wrote at the same time is compiled again, and no more than that.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep data under a key."""
        whose = self._dump((self._version, self._source_stamp, key))
        name = self._index_name.replace(".nbi", f".{hashlib.sha256(whose).hexdigest()[:32]}.nbc")
        entries = self._load_index()
        if not entries:  # none, or of other sources: what they have left is of no use
            for path in Path(self._cache_path).glob(self._index_name.replace(".nbi", ".*.nbc")):
                with contextlib.suppress(OSError):
                    path.unlink()
        self._save_data(name, data)
        self._save_index(entries | {key: name})


class _Cache(FunctionCache):
    """Numba's cache, with the sources of a kernel and of what it calls in the key."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        stem = self._py_func.__module__.rpartition(".")[2]
        sources = _sources(stem) if (_HERE / f"{stem}.py").exists() else ""
        return (*super()._index_key(sig, codegen), sources)


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    kernel = njit(**_OPTIONS, **options)(function)
    if hasattr(kernel, "enable_caching"):  # a plain function when compiling is switched off
        kernel._cache = _Cache(function)
    return kernel


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel."""
    return _compile(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a kernel into whatever calls it."""
    return _compile(function, forceinline=True)
