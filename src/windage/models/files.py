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
from contextlib import ExitStack, contextmanager
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
from windage.spaces import StateActions, require_rectangular
from windage.validation import require_memory, require_parts, shown

if TYPE_CHECKING:
    from windage.structure.saved import Header

__all__ = ["Stored", "fingerprint", "load", "save"]

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
    with ExitStack() as stack:
        with _reading(file):
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(file.open("rb"))))
            stored = Stored(file, archive)
        if "header" not in stored.shapes:
            return _plain_arrays(file, stored)
        try:
            header = _header(file, stored.text("header"))
            if isinstance(header, _Header):
                return _own(header, stored)
            from windage.structure.saved import model_of

            return model_of(header, stored)
        except StateError:
            raise
        except (
            *(WindageError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError),
            RecursionError,
        ) as err:
            raise _unreadable(file, str(err) or type(err).__name__) from None


def _encoded(header: msgspec.Struct) -> NDArray[np.uint8]:
    return np.frombuffer(msgspec.json.encode(header), dtype=np.uint8)


def _header(file: Path, data: bytes) -> _Header | Header:
    from windage.structure.saved import FORMAT, Header

    try:
        version = msgspec.json.decode(data, type=_Version).windage_model
        if version == _FORMAT:
            return msgspec.json.decode(data, type=_Header)
        if version == FORMAT:
            return msgspec.json.decode(data, type=Header)
    except (msgspec.DecodeError, RecursionError) as err:
        raise _unreadable(file, f"header: {err}") from None
    newer = version > FORMAT
    raise StateError(
        f"format {version}, this version reads {_FORMAT} and {FORMAT}"
        + (": it is newer" if newer else ""),
        field=str(file),
        fix="update windage" if newer else "use the version of windage that wrote it",
    )


def _own(header: _Header, stored: Stored) -> DriftingMDP:
    """Return the model of a file of the library's own; all of it must fit together."""
    space = StateActions(header.actions, header.state_names, header.action_names)
    pairs, states = shape = space.n_pairs, space.n_states
    parts: list[tuple[str, str, str]] = []
    if header.sparse:
        for k in range(sum(name.startswith("rows_") for name in stored.shapes)):
            parts.append((f"rows_{k}", f"states_{k}", f"probabilities_{k}"))
            stored.expect(parts[k][0], np.int64, pairs + 1)
            (cells,) = stored.expect(parts[k][1], np.int32, None)
            if cells > pairs * states:
                raise ValueError(f"{parts[k][1]} has {cells} entries for {pairs * states} cells")
            stored.expect(parts[k][2], np.float64, cells)
        count = len(parts)
    else:
        count = stored.expect("transitions", np.float64, None, pairs, states)[0]
    stored.expect("rewards", np.float64, count, pairs)
    stored.require_no_other()
    rewards = stored.take("rewards")
    kernels: list[Transitions] = []
    for k, names in enumerate(parts):
        rows, after, values = map(stored.take, names)
        require_parts(rows, after, values, shape, f"kernel {k}")
        kernels.append(csr_array((values, after, rows), shape=shape))
    model = DriftingMDP.blend(
        [
            MDP(space, r, p)
            for r, p in zip(rewards, kernels or stored.take("transitions"), strict=True)
        ],
        from_spec(header.kernel_schedule),
        from_spec(header.reward_schedule),
        horizon=header.horizon,
        noise=Noise(header.noise, header.spread),
    )
    model.name = header.name
    return model


def _plain_arrays(file: Path, stored: Stored) -> DriftingMDP:
    shapes = stored.shapes
    missing, unknown = {"r", "p"} - set(shapes), set(shapes) - set(_PLAIN)
    if missing:
        raise ModelError(
            f"has the arrays {shown(sorted(shapes))}, not {' and '.join(sorted(missing))}",
            field=str(file),
            fix="save r[t, s, a] and p[t, s, a, s'] with numpy.savez(file, r=r, p=p)",
        )
    if unknown:
        raise ModelError(
            f"has the unknown arrays {shown(sorted(unknown))}",
            field=str(file),
            fix=f"save no others than {', '.join(_PLAIN)}",
        )
    for name in ("r", "p"):
        if stored.types[name].kind not in "biuf":
            raise ModelError(
                f"is not an array of numbers but of {stored.types[name]} values",
                field=name,
                fix="pass numbers in equal rows",
            )
    still = len(shapes["r"]) == 2
    require_rectangular(shapes["r"], shapes["p"], leading=0 if still else 1)
    states = shapes["r"][-2]
    if shapes.get("actions", (states,)) != (states,):
        raise ModelError(
            f"has shape {shapes['actions']}, r has {states} states",
            field=f"{file}: actions",
            fix="save the number of actions of each state, or leave it out",
        )
    horizon = _horizon(file, stored, 1000 if still else shapes["r"][0])
    space = StateActions(stored.take("actions")) if "actions" in shapes else None
    r, p = stored.take("r"), stored.take("p")
    if not still:
        source = builders.from_arrays(r, p, space, normalize=None)
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
    return DriftingMDP.stationary(mdp, horizon=horizon)


def _horizon(file: Path, stored: Stored, default: int) -> int:
    if "horizon" not in stored.shapes:
        return default
    shape, kind = stored.shapes["horizon"], stored.types["horizon"]
    if shape or kind.kind not in "iu":
        raise ModelError(
            f"what is there, of shape {shape} and type {kind}, is not an integer",
            field=f"{file}: horizon",
            fix="save a single integer, the number of steps",
        )
    return int(stored.take("horizon"))


def _write_arrays(path: str | Path, arrays: Arrays) -> None:
    """Write arrays to an `.npz`; a reader finds all of it or the file that was there before."""
    write_whole(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Turn what goes wrong while an archive is read into the error that names its file."""
    try:
        yield
    except WindageError:
        raise
    except FileNotFoundError:
        raise StateError("there is no such file", field=str(file), fix="check the path") from None
    except Exception as err:  # NumPy reads a header as Python code: damage raises what it likes
        raise _unreadable(file, str(err) or type(err).__name__) from None


class Stored:
    """The arrays of an open `.npz`, none of them unpacked before its shape was looked at.

    A file of 5 MB may hold zeros that unpack to 5 GB. The sizes that the archive and the arrays
    claim must agree and fit into memory.
    """

    def __init__(self, file: Path, archive: zipfile.ZipFile) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.types: dict[str, np.dtype[Any]] = {}
        self._file, self._archive = file, archive
        self._expected: set[str] = set()
        entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        require_memory(3.0 * size, str(file), fix="use a machine with more memory")
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename or name in self.shapes:
                raise ValueError(f"{shown(entry.filename)} is no array, or is there twice")
            self.shapes[name], self.types[name] = _claims(archive, entry)

    def expect(self, name: str, kind: type[np.generic], *shape: int | None) -> tuple[int, ...]:
        """Return the shape of an array if it is as expected; None is any number."""
        self._expected.add(name)
        if name not in self.shapes:
            raise ValueError(f"there is no array {name}")
        found = self.shapes[name]
        same = len(found) == len(shape) and all(
            n in (None, m) for n, m in zip(shape, found, strict=True)
        )
        if self.types[name] != kind or not same:
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise ValueError(
                f"{name} of shape {found} and type {self.types[name]}, "
                f"not of shape ({wanted}) and type {np.dtype(kind)}"
            )
        return found

    def require_no_other(self) -> None:
        """Refuse arrays that were not expected."""
        others = set(self.shapes) - self._expected
        if others:
            raise ValueError(f"unknown arrays {shown(sorted(others))}")

    def take(self, name: str) -> NDArray[Any]:
        """Return an array, unpacked."""
        with _reading(self._file), self._archive.open(f"{name}.npy") as content:
            found: NDArray[Any] = np.lib.format.read_array(content, allow_pickle=False)
            return found

    def text(self, name: str) -> bytes:
        """Return an array of bytes, which is plain data as JSON."""
        (size,) = self.expect(name, np.uint8, None)
        if size > _LONGEST_TEXT:
            raise ValueError(f"{name} has {size} bytes of text, more than {_LONGEST_TEXT}")
        return self.take(name).tobytes()


_LONGEST_TEXT = 1 << 27
"""Bytes of names and numbers of actions: those of some 10 million states."""


def _unreadable(file: Path, why: str) -> StateError:
    """Return the error that a file is damaged or holds something else."""
    return StateError(
        f"cannot be read as a model ({why})",
        field=str(file),
        fix="pass an .npz file written by DriftingMDP.save or by numpy.savez(file, r=r, p=p)",
    )


def _claims(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of an array, whose header must claim the size its entry has."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename} is packed in a way that NumPy does not pack")
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
        return shape, dtype


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
