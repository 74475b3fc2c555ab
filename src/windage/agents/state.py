"""Saved agents: one byte string with a version, the configuration and a checksum; no pickle.

Layout: a magic line, the length of a JSON header (8 bytes), the header, the arrays one after
another as little-endian bytes, and the SHA-256 of everything before it.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage.errors import StateError
from windage.validation import shown

__all__ = ["Blob", "array_like", "pack", "take_back", "unpack"]

_MAGIC = b"windage agent\n"
_FORMAT = 2
_MOST_AXES = 8  # no agent has arrays of more; NumPy takes 64
_DTYPES = ("|b1", "|u1", "<i4", "<i8", "<u8", "<f8")


class Blob(msgspec.Struct, frozen=True):
    """What a saved agent holds."""

    agent: str
    configuration: dict[str, Any]
    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class _Format(msgspec.Struct):
    format: int


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    agent: str
    configuration: dict[str, Any]
    values: dict[str, Any]
    arrays: list[tuple[str, str, list[int]]]


def pack(blob: Blob) -> bytes:
    """Return a blob as bytes."""
    arrays = {
        name: np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        for name, array in blob.arrays.items()
    }
    for name, array in arrays.items():
        if array.dtype.str not in _DTYPES:
            raise StateError(
                f"array {name!r} has type {array.dtype}, which cannot be saved",
                field="state",
                fix="keep it as one of " + ", ".join(_DTYPES),
            )
    header = _Header(
        format=_FORMAT,
        agent=blob.agent,
        configuration=blob.configuration,
        values=blob.values,
        arrays=[(name, array.dtype.str, list(array.shape)) for name, array in arrays.items()],
    )
    text = msgspec.json.encode(header)
    body = b"".join(
        [
            _MAGIC,
            struct.pack("<Q", len(text)),
            text,
            *(array.tobytes() for array in arrays.values()),
        ]
    )
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes) -> Blob:
    """Return the blob in `data`, or say what is wrong with it."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise _damaged(f"{type(data).__name__} is not bytes")
    data = bytes(data)
    start = len(_MAGIC) + 8
    if len(data) < start + 32 or not data.startswith(_MAGIC):
        raise _damaged("these bytes are not a saved agent")
    body, checksum = data[:-32], data[-32:]
    if hashlib.sha256(body).digest() != checksum:
        raise _damaged("the checksum does not match: the bytes were damaged or cut short")
    (length,) = struct.unpack("<Q", body[len(_MAGIC) : start])
    try:
        form = msgspec.json.decode(body[start : start + length], type=_Format).format
        if form != _FORMAT:  # before anything else: another format has other fields
            raise StateError(
                f"format {form}, this version reads {_FORMAT}",
                field="state",
                fix="use the version of windage that wrote it",
            )
        header = msgspec.json.decode(body[start : start + length], type=_Header)
    except (msgspec.DecodeError, RecursionError) as err:
        raise _damaged(f"the header cannot be read ({err})") from None
    arrays: dict[str, NDArray[Any]] = {}
    place = start + length
    for name, dtype, shape in header.arrays:
        if dtype not in _DTYPES or len(shape) > _MOST_AXES or any(n < 0 for n in shape):
            raise _damaged(f"array {shown(name)} has the impossible type {dtype} {shown(shape)}")
        count = math.prod(shape)  # as it is: 2^32 x 2^32 would be 0 in 64 bits
        size = np.dtype(dtype).itemsize * count
        if place + size > len(body) or any(n > len(body) for n in shape):
            raise _damaged(f"array {shown(name)} is cut short: its shape is {shown(shape)}")
        if name in arrays:
            raise _damaged(f"array {shown(name)} is there twice")
        flat = np.frombuffer(body, dtype=dtype, count=count, offset=place)
        arrays[name] = flat.reshape(shape).astype(np.dtype(dtype).newbyteorder("="))
        place += size
    if place != len(body):
        raise _damaged("there are bytes left over")
    return Blob(header.agent, header.configuration, header.values, arrays)


def array_like(old: NDArray[Any], arrays: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return the saved array `name`, which must look like the agent's own."""
    new = arrays[name]
    if new.shape != old.shape or new.dtype != old.dtype:
        raise _damaged(f"array {name!r} is {new.dtype} {new.shape}, not {old.dtype} {old.shape}")
    return new


def take_back(
    mine: dict[str, NDArray[Any]], arrays: dict[str, NDArray[Any]], *, unbounded: str = ""
) -> None:
    """Write saved arrays into an agent's own, of the same names, types and shapes.

    Numbers are finite; those of the array `unbounded` may be minus infinity.
    """
    for name, array in mine.items():
        saved = array_like(array, arrays, name)
        impossible = saved == np.inf if name == unbounded else np.isinf(saved)
        if (impossible | np.isnan(saved)).any():
            raise _damaged(f"array {name!r} holds numbers that are not finite")
        array[...] = saved


def _damaged(problem: str) -> StateError:
    return StateError(problem, field="state", fix="restore the agent from another copy")
