"""Models as files: `.npz` without pickle, written whole or not at all.

A file of the library's own holds the base models and the schedules. A file of the user's own holds
plain arrays: `r[t, s, a]` and `p[t, s, a, s']`, or without the t for a model that does not drift,
and, if action sets differ, `actions[s]`, the number of actions of each state.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.drift.blend import Blend
from windage.drift.model import DriftingMDP
from windage.errors import ModelError, StateError, WindageError
from windage.inputs import require_memory
from windage.mdp import MDP, Transitions, cells_of, same_cells
from windage.noise import Noise
from windage.schedules import Knots
from windage.schedules.spec import from_spec, is_plain, to_spec
from windage.spaces import StateActions

__all__ = ["fingerprint", "load", "save", "write_whole"]

_FORMAT = 1
_DAMAGE = (OSError, EOFError, ValueError, KeyError, SyntaxError, zipfile.BadZipFile, zlib.error,
           struct.error, NotImplementedError, RuntimeError, TypeError)  # fmt: skip
"""What NumPy and zipfile raise on a file that is not what it says."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    windage_model: int
    actions: list[int]
    state_names: list[str] | None
    action_names: list[list[str]] | None
    horizon: int
    noise: str
    spread: float
    name: str | None
    kernel_schedule: dict[str, Any]
    reward_schedule: dict[str, Any]
    sparse: bool


def save(model: DriftingMDP, path: str | Path) -> None:
    """Write a model; a stream is written as the models it passes through."""
    source = model.source
    if isinstance(source, Blend) and _is_plain(source):
        rewards, kernels = source.rewards.parts, source.kernels.parts
        schedules = (source.kernels.schedule, source.rewards.schedule)
    else:
        times, rewards, kernels = _tabulated(model)
        schedules = (Knots(times, "step"),) * 2
    header = _Header(
        windage_model=_FORMAT,
        actions=model.space.counts.tolist(),
        state_names=_plain(model.space.state_names),
        action_names=_plain(model.space.action_names),
        horizon=model.horizon,
        noise=model.noise.kind,
        spread=model.noise.spread,
        name=model.name,
        kernel_schedule=to_spec(schedules[0]),
        reward_schedule=to_spec(schedules[1]),
        sparse=not isinstance(kernels[0], np.ndarray),
    )
    arrays: dict[str, NDArray[Any]] = {
        "header": np.frombuffer(msgspec.json.encode(header), dtype=np.uint8),
        "rewards": np.stack(list(rewards)),
    }
    if header.sparse:
        for k, kernel in enumerate(kernels):
            cells = cells_of(kernel)
            arrays |= {
                f"rows_{k}": cells.rows, f"states_{k}": cells.states,
                f"probabilities_{k}": cells.probabilities,
            }  # fmt: skip
    else:
        arrays["transitions"] = np.stack(list(kernels))
    write_whole(path, arrays)


def fingerprint(model: DriftingMDP) -> str:
    """Return a number that tells models apart: from their content, not from who made them.

    Models are looked at in up to 64 places; two that agree there to the last bit count as one.
    """
    digest = hashlib.sha256(f"{model.horizon} {model.noise!r} {model.space.counts}".encode())
    for t in np.unique(np.linspace(1, model.horizon, 64).astype(np.int64)):
        mdp = model.at(int(t))
        for part in (mdp.rewards, *mdp.cells):
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:32]


def load(path: str | Path) -> DriftingMDP:
    """Read a model from a file of the library's own or from one with plain arrays.

    Raises
    ------
    StateError
        The file is damaged, or is not a model.
    ModelError
        The file can be read, but what it holds is not a model; the message says where.
    """
    file = Path(path)
    try:
        with file.open("rb") as handle, zipfile.ZipFile(handle) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            require_memory(3.0 * size, str(file), fix="use a machine with more memory")
            handle.seek(0)
            with np.load(handle, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
    except WindageError:
        raise
    except FileNotFoundError:
        raise StateError("there is no such file", field=str(file), fix="check the path") from None
    except _DAMAGE as err:
        raise _unreadable(file, str(err)) from None
    if "header" in arrays:
        return _own(file, arrays)
    return _plain_arrays(file, arrays)


def write_whole(path: str | Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write an `.npz` so that a reader finds all of it or the file that was there before."""
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    except OSError as err:
        raise StateError(f"cannot be written ({err.strerror})", field=str(target)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as err:
        raise StateError(f"cannot be written ({err.strerror})", field=str(target)) from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def _own(file: Path, arrays: dict[str, NDArray[Any]]) -> DriftingMDP:
    try:
        header = msgspec.json.decode(arrays["header"].tobytes(), type=_Header)
        rewards = arrays["rewards"]
        kernels: Sequence[Transitions]
        if header.sparse:
            shape = (sum(header.actions), len(header.actions))
            kernels = [
                csr_array(
                    (arrays[f"probabilities_{k}"], arrays[f"states_{k}"], arrays[f"rows_{k}"]),
                    shape=shape,
                )
                for k in range(len(rewards))
            ]
        else:
            kernels = list(arrays["transitions"])
    except (msgspec.DecodeError, KeyError, ValueError, IndexError) as err:
        raise _unreadable(file, f"{type(err).__name__}: {err}") from None
    if header.windage_model != _FORMAT:
        raise StateError(
            f"format {header.windage_model}, this version reads {_FORMAT}",
            field=str(file),
            fix="use the version of windage that wrote it",
        )
    space = StateActions(header.actions, header.state_names, header.action_names)
    parts = max(len(rewards), len(kernels))
    models = [
        MDP(space, rewards[min(k, len(rewards) - 1)], kernels[min(k, len(kernels) - 1)])
        for k in range(parts)
    ]
    model = DriftingMDP.blend(
        models,
        from_spec(header.kernel_schedule),
        from_spec(header.reward_schedule),
        horizon=header.horizon,
        noise=Noise(header.noise, header.spread),
    )
    model.name = header.name
    return model


def _plain_arrays(file: Path, arrays: dict[str, NDArray[Any]]) -> DriftingMDP:
    missing = {"r", "p"} - set(arrays)
    if missing:
        raise ModelError(
            f"has the arrays {sorted(arrays)}, not {' and '.join(sorted(missing))}",
            field=str(file),
            fix="save r[t, s, a] and p[t, s, a, s'] with numpy.savez(file, r=r, p=p)",
        )
    space = StateActions(arrays["actions"]) if "actions" in arrays else None
    if arrays["r"].ndim == 2:
        model = MDP.from_arrays(arrays["r"], arrays["p"], space)
        horizon = arrays.get("horizon", np.array(1000))
        if horizon.ndim or horizon.dtype.kind not in "iu":
            raise ModelError(
                f"{horizon.tolist()!r} is not an integer",
                field=f"{file}: horizon",
                fix="save a single integer, the number of steps",
            )
        return DriftingMDP.stationary(model, horizon=int(horizon))
    return DriftingMDP.from_arrays(arrays["r"], arrays["p"], space)


def _tabulated(
    model: DriftingMDP,
) -> tuple[tuple[int, ...], list[NDArray[np.float64]], list[Transitions]]:
    """Return the times at which a model changes and the arrays from then on."""
    require_memory(
        8.0 * model.horizon * model.space.n_pairs * model.space.n_states,
        "horizon",
        fix="save a shorter stretch, or keep the function that makes the model",
    )
    times, rewards, kernels = [1], [model.at(1).rewards], [model.at(1).transitions]
    for t in range(2, model.horizon + 1):
        now = model.at(t)
        same = np.array_equal(now.rewards, rewards[-1]) and same_cells(
            now.cells, cells_of(kernels[-1])
        )
        if not same:
            times.append(t)
            rewards.append(now.rewards)
            kernels.append(now.transitions)
    return tuple(times), rewards, kernels


def _is_plain(source: Blend) -> bool:
    return is_plain(source.kernels.schedule) and is_plain(source.rewards.schedule)


def _plain(names: Any) -> Any:
    return msgspec.to_builtins(names)


def _unreadable(file: Path, why: str) -> StateError:
    return StateError(
        f"cannot be read as a model ({why})",
        field=str(file),
        fix="pass an .npz file written by DriftingMDP.save or by numpy.savez(file, r=r, p=p)",
    )
