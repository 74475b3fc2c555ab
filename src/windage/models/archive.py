"""`.npz` archives of plain arrays: nothing is unpickled, and nothing is read on its word alone."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.atomic_io import as_path, write_whole
from windage.errors import StateError, WindageError
from windage.validation import require_memory

__all__ = ["Arrays", "read_arrays", "unreadable", "write_arrays"]

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: str | Path, arrays: Arrays) -> None:
    """Write arrays to an `.npz`; a reader finds all of it or the file that was there before."""
    write_whole(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def read_arrays(path: str | Path) -> Arrays:
    """Return the arrays of an `.npz` by name.

    The sizes that the archive and the arrays claim must agree and fit into memory before anything
    is allocated.
    """
    file = as_path(path)
    try:
        with file.open("rb") as handle, zipfile.ZipFile(handle) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            require_memory(3.0 * size, str(file), fix="use a machine with more memory")
            arrays: Arrays = {}
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                if name == entry.filename or name in arrays:
                    raise ValueError(f"{entry.filename} is no array, or is there twice")
                _check_size(archive, entry)
                with archive.open(entry) as content:
                    arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
            return arrays
    except WindageError:
        raise
    except FileNotFoundError:
        raise StateError("there is no such file", field=str(file), fix="check the path") from None
    except Exception as err:  # NumPy reads a header as Python code: damage raises what it likes
        raise unreadable(file, str(err) or type(err).__name__) from None


def unreadable(file: Path, why: str) -> StateError:
    """Return the error that a file is damaged or holds something else."""
    return StateError(
        f"cannot be read as a model ({why})",
        field=str(file),
        fix="pass an .npz file written by DriftingMDP.save or by numpy.savez(file, r=r, p=p)",
    )


def _check_size(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Refuse an array whose header claims another size than its entry of the archive has."""
    with archive.open(entry) as content:
        version = np.lib.format.read_magic(content)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(content)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(content)
        else:
            raise ValueError(f"{entry.filename} has the unknown version {version}")
        if dtype.hasobject:
            raise ValueError(f"{entry.filename} holds Python objects, which are not read")
        claimed = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or claimed != entry.file_size - content.tell():
            raise ValueError(
                f"{entry.filename} claims {claimed} bytes, "
                f"the file has {entry.file_size - content.tell()}"
            )
