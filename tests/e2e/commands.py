"""Running commands as people do, and reading what they leave."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

from tests.in_process import windage_here as run_here
from windage.cli import main

PATIENCE = 300
"""Seconds after which a command hangs: in a fresh clone the first ones compile for about a minute,
and others do so beside them."""

WINDAGE = [str(Path(sys.executable).with_name("windage"))]


def windage(*arguments, cwd, **options):
    return subprocess.run(
        [*WINDAGE, *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, **options,
    )  # fmt: skip


def windage_here(*arguments, cwd):
    """The same in this process, where nothing hangs on a process."""
    return run_here(arguments, cwd)


def refused(capsys, *arguments):
    """Run a command that must be refused, and print nothing before; return its one line."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert err.startswith("windage: ")
    return err.removeprefix("windage: ").rstrip("\n")


def png_size(path):
    """Read a PNG chunk by chunk, checksums included; return its width and height."""
    data = Path(path).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, kinds, pixels = 8, [], b""
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        body = data[place + 4 : place + 8 + length]
        (checksum,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(body)
        kinds.append(body[:4])
        pixels += body[4:] if body[:4] == b"IDAT" else b""
        place += 12 + length
    assert kinds[0] == b"IHDR"
    assert kinds[-1] == b"IEND"
    size = struct.unpack(">II", data[16:24])
    rows = zlib.decompress(pixels)
    assert len(rows) == size[1] * (1 + 4 * size[0])  # RGBA, a filter byte a row
    assert len(set(rows)) > 50, "a blank page"
    return size


def own_arrays(horizon=600, states=3, actions=2, seed=0):
    rng = np.random.default_rng(seed)
    r = rng.random((horizon, states, actions))
    p = rng.dirichlet(np.ones(states), size=(horizon, states, actions))
    return r, p
