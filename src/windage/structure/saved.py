"""A structured model as arrays and plain data: what its file holds, and its fingerprint."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage.models.drifting import DriftingMDP
from windage.models.files import Stored, spec_of
from windage.models.mdp import Noise
from windage.schedules import from_spec, is_plain
from windage.structure.laws import Moving, Tabulated
from windage.structure.structure import Structure
from windage.structure.worlds import drifting
from windage.validation import require_memory, shown

__all__ = ["Header", "arrays_of", "model_of"]

Arrays: TypeAlias = dict[str, NDArray[Any]]

FORMAT = 2


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    """Laws that are blends on one schedule, or rows a time if there is none."""

    laws: list[int]
    schedule: dict[str, Any] | None


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """What is no array; `rewards` is there if they are learned."""

    windage_model: int
    horizon: int
    noise: str
    spread: float
    name: str | None
    parts: list[_Part]
    rewards: _Part | None


def arrays_of(model: DriftingMDP, times: NDArray[np.int64] | None = None) -> tuple[Header, Arrays]:
    """Return what is written of a model.

    A schedule of one's own is written as its rows, at some times or, if none are given, at all.
    """
    laws, learned = model._laws, model._learned
    assert laws is not None
    structure = msgspec.json.encode(laws.structure.to_dict())
    arrays: Arrays = {
        "structure": np.frombuffer(structure, np.uint8), "constant": laws.constant
    }  # fmt: skip
    parts = []
    for k, part in enumerate(laws.moving):
        members = np.flatnonzero(np.isin(laws.offsets[:-1], part.columns)).tolist()
        schedule, arrays[f"part_{k}"] = _numbers(part, model.horizon, times)
        parts.append(_Part(members, schedule))
    rewards = None
    if learned is not None:
        schedule, arrays["rewards"] = _numbers(learned, model.horizon, times)
        rewards = _Part([], schedule)
    noise = model.noise
    header = Header(FORMAT, model.horizon, noise.kind, noise.spread, model.name, parts, rewards)
    return header, arrays


def _numbers(
    part: Moving | Tabulated, horizon: int, times: NDArray[np.int64] | None
) -> tuple[dict[str, Any] | None, NDArray[np.float64]]:
    """Return the schedule of a part and its bases; no schedule and a row a time if it is own."""
    if isinstance(part, Moving) and is_plain(part.side.schedule):
        return spec_of(part.side.schedule), np.stack(part.side.parts)
    if times is None:
        require_memory(
            8.0 * horizon * part.columns.size,
            "horizon",
            fix="save a shorter horizon, or use one of windage.schedules",
        )
        return None, part.between(1, horizon)
    return None, np.concatenate([part.between(t, t) for t in times.tolist()])


def model_of(header: Header, stored: Stored) -> DriftingMDP:
    """Return the model of what was written; all of it must fit together."""
    structure = Structure.from_dict(msgspec.json.decode(stored.text("structure")))
    offsets = np.concatenate([[0], np.cumsum(structure.law_sizes)])
    stored.expect("constant", np.float64, int(offsets[-1]))
    for k, part in enumerate(header.parts):
        if any(law < 0 for law in part.laws):
            raise ValueError(f"part {k} has the laws {shown(part.laws)}")
        width = int(structure.law_sizes[part.laws].sum())
        stored.expect(f"part_{k}", np.float64, _times(header, part), width)
    if header.rewards is not None:
        times = _times(header, header.rewards)
        stored.expect("rewards", np.float64, times, structure.space.n_pairs)
    stored.require_no_other()
    constant = stored.take("constant")
    values: list[Any] = [constant[a:b] for a, b in itertools.pairwise(offsets.tolist())]
    for k, part in enumerate(header.parts):
        sizes = structure.law_sizes[part.laws]
        rows = stored.take(f"part_{k}")
        for law, piece in zip(
            part.laws, np.split(rows, np.cumsum(sizes)[:-1], axis=1), strict=True
        ):
            values[law] = _given(piece, part.schedule)
    rewards = None
    if header.rewards is not None:
        rewards = _given(stored.take("rewards"), header.rewards.schedule)
    laws: dict[str, Any] = {}
    for (f, label), value in zip(structure.laws, values, strict=True):
        name = structure.variables[f].name
        if label is None:
            laws[name] = value
        else:
            laws.setdefault(name, {})[label] = value
    noise = Noise(header.noise, header.spread) if rewards is not None else None
    model = drifting(structure, laws, header.horizon, rewards, noise)
    if model.noise != Noise(header.noise, header.spread):
        raise ValueError(f"the noise is {header.noise}")
    model.name = header.name
    return model


def _given(rows: NDArray[np.float64], schedule: dict[str, Any] | None) -> Any:
    return rows if schedule is None else (rows, from_spec(schedule))


def _times(header: Header, part: _Part) -> int | None:
    """Return how many rows a part has: one a time, or any number of bases of a schedule."""
    return header.horizon if part.schedule is None else None
