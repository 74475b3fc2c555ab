"""Addressed randomness: every draw is a function of (seed, purpose, t) and of nothing else.

So agents on one seed face the same noise, results do not depend on the number of workers, and a run
split at any t goes on as if it had not been. There is no global generator.

Compiled loops take `key(seed, purpose)` and hash it with the time (`kernels.random`); code that
builds a model takes `stream(seed, purpose)`, an ordinary NumPy generator.
"""

from __future__ import annotations

import functools
import hashlib

import numpy as np
from numpy.typing import NDArray

from windage.validation import LAST_TIME, as_integer, as_name, as_seed

__all__ = ["key", "stream"]


def key(seed: int, purpose: str) -> NDArray[np.uint64]:
    """Return the 128-bit key of one purpose under one seed, as two uint64.

    >>> bool((key(7, "rewards") == key(7, "rewards")).all())
    True
    """
    return _key(as_seed(seed), as_name(purpose, "purpose"))


@functools.lru_cache(maxsize=256)  # a run asks for the same few again and again
def _key(seed: int, purpose: str) -> NDArray[np.uint64]:
    words = np.frombuffer(_digest(seed, purpose, 0)[:16], dtype="<u8").astype(np.uint64)
    words.flags.writeable = False
    return words


def stream(seed: int, purpose: str, t: int = 0) -> np.random.Generator:
    """Return a NumPy generator for the address (seed, purpose, t).

    Its key is another one than `key` returns for the same address: what a model is built from and
    what a compiled loop draws are not related.

    >>> bool(stream(7, "walk").random() == stream(7, "walk").random())
    True
    """
    words = np.frombuffer(_digest(seed, purpose, t)[16:], dtype="<u8")
    return np.random.Generator(np.random.Philox(key=words[:2].astype(np.uint64)))


def _digest(seed: int, purpose: str, t: int) -> bytes:
    time = as_integer(t, "t", low=0, high=LAST_TIME)
    text = f"windage/{as_seed(seed)}/{time}/{as_name(purpose, 'purpose')}"
    return hashlib.blake2b(text.encode(), digest_size=32).digest()
