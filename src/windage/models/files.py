"""Models as files, `.npz` without pickle, written whole or not at all; and their fingerprints.

A file of the library's own holds the base models and the schedules. A file of the user's own holds
plain arrays: `r[t, s, a]` and `p[t, s, a, s']`, or without the t for a model that does not drift,
and, if action sets differ, `actions[s]`, the number of actions of each state.
"""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.atomic_io import as_path, write_whole
from windage.errors import ModelError, StateError, WindageError
from windage.models import builders
from windage.models.blend import Blend
from windage.models.drifting import DriftingMDP
from windage.models.mdp import (
    MDP,
    Noise,
    Transitions,
    cells_of,
    check_rewards,
    check_transitions,
    rectangular,
)
from windage.models.source import ArrayStream
from windage.schedules import Knots, Schedule, from_spec, is_plain, to_spec
from windage.spaces import StateActions
from windage.validation import require_memory, require_parts

if TYPE_CHECKING:
    from windage.structure.saved import Header

__all__ = ["fingerprint", "load", "save"]

Arrays = dict[str, NDArray[Any]]

_FORMAT = 1
_PLAIN = ("r", "p", "actions", "horizon")


class _Version(msgspec.Struct):
    """What every version writes into a header, whatever else is there."""

    windage_model: int


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
    """Write a model; one that is no blend is written as the models it passes through.

    One with a structure is written as its structure and its laws.
    """
    source = model.source
    if model.structure is not None:
        from windage.structure.saved import arrays_of

        structured, tables = arrays_of(model)
        _write_arrays(path, {"header": _encoded(structured)} | tables)
        return
    rewards: Sequence[NDArray[np.float64]]
    kernels: Sequence[Transitions]
    if _plain_blend(source):
        rewards, kernels = source.rewards.parts, source.kernels.parts
        schedules: tuple[Schedule, Schedule] = (source.kernels.schedule, source.rewards.schedule)
    else:
        require_memory(
            8.0 * model.horizon * model.space.n_pairs * model.space.n_states,
            "horizon",
            fix="save a shorter stretch, or keep the function that makes the model",
        )
        times, mdps = zip(*passed(model, range(1, model.horizon + 1)), strict=True)
        rewards, kernels = [mdp.rewards for mdp in mdps], [mdp.transitions for mdp in mdps]
        schedules = (Knots(times, "step"),) * 2
    header = _Header(
        windage_model=_FORMAT,
        actions=model.space.counts.tolist(),
        state_names=msgspec.to_builtins(model.space.state_names),
        action_names=msgspec.to_builtins(model.space.action_names),
        horizon=model.horizon,
        noise=model.noise.kind,
        spread=model.noise.spread,
        name=model.name,
        kernel_schedule=spec_of(schedules[0]),
        reward_schedule=spec_of(schedules[1]),
        sparse=not isinstance(kernels[0], np.ndarray),
    )
    arrays: Arrays = {
        "header": _encoded(header),
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
    _write_arrays(path, arrays)


def load(path: str | Path) -> DriftingMDP:
    """Read a model from a file of the library's own or from one with plain arrays.

    Raises
    ------
    StateError
        The file is damaged, or is not a model, or was written by a newer version.
    ModelError
        The file can be read, but what it holds is not a model; the message says where.
    """
    file = as_path(path)
    arrays = _read_arrays(file)
    if "header" not in arrays:
        return _plain_arrays(file, arrays)
    try:
        header = _header(file, arrays.pop("header"))
        if isinstance(header, _Header):
            return _own(header, arrays)
        from windage.structure.saved import model_of

        return model_of(header, arrays)
    except StateError:
        raise
    except (WindageError, ValueError, KeyError, IndexError, TypeError) as err:
        raise _unreadable(file, str(err) or type(err).__name__) from None


def _encoded(header: msgspec.Struct) -> NDArray[np.uint8]:
    return np.frombuffer(msgspec.json.encode(header), dtype=np.uint8)


def _header(file: Path, content: NDArray[Any]) -> _Header | Header:
    from windage.structure.saved import FORMAT, Header

    data = content.tobytes()
    try:
        version = msgspec.json.decode(data, type=_Version).windage_model
        if version == _FORMAT:
            return msgspec.json.decode(data, type=_Header)
        if version == FORMAT:
            return msgspec.json.decode(data, type=Header)
    except msgspec.DecodeError as err:
        raise _unreadable(file, f"header: {err}") from None
    newer = version > FORMAT
    raise StateError(
        f"format {version}, this version reads {_FORMAT} and {FORMAT}"
        + (": it is newer" if newer else ""),
        field=str(file),
        fix="update windage" if newer else "use the version of windage that wrote it",
    )


def _own(header: _Header, arrays: Arrays) -> DriftingMDP:
    """Return the model of a file of the library's own; all of it must fit together."""
    space = StateActions(header.actions, header.state_names, header.action_names)
    rewards, kernels = arrays.pop("rewards"), _kernels(header, arrays)
    if arrays:
        raise ValueError(f"unknown arrays {sorted(arrays)}")
    if rewards.dtype != np.float64 or rewards.shape != (len(kernels), space.n_pairs):
        raise ValueError(
            f"rewards of shape {rewards.shape} and type {rewards.dtype} "
            f"for {len(kernels)} kernels over {space.n_pairs} pairs"
        )
    model = DriftingMDP.blend(
        [MDP(space, r, p) for r, p in zip(rewards, kernels, strict=True)],
        from_spec(header.kernel_schedule),
        from_spec(header.reward_schedule),
        horizon=header.horizon,
        noise=Noise(header.noise, header.spread),
    )
    model.name = header.name
    return model


def _kernels(header: _Header, arrays: Arrays) -> list[Transitions]:
    shape = (sum(header.actions), len(header.actions))
    if not header.sparse:
        dense = arrays.pop("transitions")
        if dense.dtype != np.float64 or dense.shape[1:] != shape:
            raise ValueError(f"transitions of shape {dense.shape} and type {dense.dtype}")
        return list(dense)
    kernels = []
    for k in range(sum(name.startswith("rows_") for name in arrays)):
        values, states, rows = (
            arrays.pop(f"{part}_{k}") for part in ("probabilities", "states", "rows")
        )
        kinds = [str(array.dtype) for array in (values, states, rows)]
        if kinds != ["float64", "int32", "int64"]:
            raise ValueError(f"kernel {k} has entries of types {kinds}")
        require_parts(rows, states, values, shape, f"kernel {k}")
        kernels.append(csr_array((values, states, rows), shape=shape))
    return kernels


def _plain_arrays(file: Path, arrays: Arrays) -> DriftingMDP:
    missing, unknown = {"r", "p"} - set(arrays), set(arrays) - set(_PLAIN)
    if missing:
        raise ModelError(
            f"has the arrays {sorted(arrays)}, not {' and '.join(sorted(missing))}",
            field=str(file),
            fix="save r[t, s, a] and p[t, s, a, s'] with numpy.savez(file, r=r, p=p)",
        )
    if unknown:
        raise ModelError(
            f"has the unknown arrays {sorted(unknown)}",
            field=str(file),
            fix=f"save no others than {', '.join(_PLAIN)}",
        )
    r, p = arrays["r"], arrays["p"]
    space = StateActions(arrays["actions"]) if "actions" in arrays else None
    if r.ndim != 2:
        source = builders.from_arrays(r, p, space, normalize=None)
        horizon = _horizon(file, arrays, len(source.rewards))
        if horizon != len(source.rewards):
            raise ModelError(
                f"{horizon}, but r and p have {len(source.rewards)} times",
                field=f"{file}: horizon",
                fix="leave it out: it is the number of times",
            )
        return DriftingMDP._of(horizon, "bernoulli", source)
    pairs = rectangular(r, p, space, leading=0)
    mdp = MDP.trusted(
        pairs[2],
        check_rewards(pairs[2], pairs[0], field="r"),
        check_transitions(pairs[2], pairs[1], field="p"),
    )
    return DriftingMDP.stationary(mdp, horizon=_horizon(file, arrays, 1000))


def _horizon(file: Path, arrays: Arrays, default: int) -> int:
    horizon = arrays.get("horizon", np.array(default))
    if horizon.ndim or horizon.dtype.kind not in "iu":
        raise ModelError(
            f"{horizon.tolist()!r} is not an integer",
            field=f"{file}: horizon",
            fix="save a single integer, the number of steps",
        )
    return int(horizon)


def _write_arrays(path: str | Path, arrays: Arrays) -> None:
    """Write arrays to an `.npz`; a reader finds all of it or the file that was there before."""
    write_whole(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def _read_arrays(path: str | Path) -> Arrays:
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
        raise _unreadable(file, str(err) or type(err).__name__) from None


def _unreadable(file: Path, why: str) -> StateError:
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


ASKED = 1 << 16
"""At so many times a fingerprint looks at a function."""


def fingerprint(model: DriftingMDP) -> str:
    """Return a number that tells models apart by their content, not by who made them.

    It is a hash of what `save` would write, names apart: every base model to the last bit, the
    schedules, the noise and the horizon. So a model and its file have the same, and the same drift
    written in another way has another. A function, or a schedule of one's own, is asked at every
    time up to 65,536 times, and at so many evenly spaced ones of a longer horizon: two that agree
    there count as one.
    """
    if model._fingerprint is None:
        model._fingerprint = _hash(model)
    return model._fingerprint


def _plain_blend(source: object) -> TypeGuard[Blend]:
    """Return whether this is a blend whose schedules can be written as data."""
    return isinstance(source, Blend) and all(
        is_plain(side.schedule) for side in (source.kernels, source.rewards)
    )


def spec_of(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as plain data in which equal numbers are written alike."""
    return {name: _number(value) for name, value in to_spec(schedule).items()}


def passed(model: DriftingMDP, times: Iterable[int]) -> Iterator[tuple[int, MDP]]:
    """Yield the times at which a model differs from the one looked at before, and the model."""
    before: MDP | None = None
    for t in times:
        now = model.at(t)
        if before is None or now != before:
            before = now
            yield t, now


def _hash(model: DriftingMDP) -> str:
    digest = hashlib.sha256(model.space.counts.tobytes())
    source = model.source
    if model.structure is not None:
        from windage.structure.saved import arrays_of

        header, tables = arrays_of(model, _asked(model))
        header.name = None
        digest.update(msgspec.json.encode(header))
        for name, table in sorted(tables.items()):
            digest.update(name.encode() + np.ascontiguousarray(table).tobytes())
        return digest.hexdigest()[:32]
    if _plain_blend(source):
        for r, p in zip(source.rewards.parts, source.kernels.parts, strict=True):
            _add(digest, r, p)
        schedules = [spec_of(source.kernels.schedule), spec_of(source.rewards.schedule)]
    else:
        asked: Iterable[int] = range(1, model.horizon + 1)
        if model.horizon > ASKED and not isinstance(source, ArrayStream):
            asked = _asked(model).tolist()
        times = []
        for t, mdp in passed(model, asked):
            times.append(t)
            _add(digest, mdp.rewards, mdp.transitions)
        schedules = [spec_of(Knots(tuple(times), "step"))] * 2
    noise = [model.noise.kind, float(model.noise.spread)]
    digest.update(msgspec.json.encode([schedules, noise, model.horizon], order="sorted"))
    return digest.hexdigest()[:32]


def _asked(model: DriftingMDP) -> NDArray[np.int64]:
    return np.unique(np.linspace(1, model.horizon, ASKED).astype(np.int64))


def _add(digest: Any, rewards: NDArray[np.float64], kernel: Transitions) -> None:
    for part in (rewards + 0.0, *cells_of(kernel)):  # a reward of -0.0 is 0.0
        digest.update(np.ascontiguousarray(part).tobytes())


def _number(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain
