"""What a drifting model is, exactly: base models and schedules, or the models it passes through."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage.models.blend import Blend
from windage.models.mdp import MDP, Transitions, cells_of
from windage.models.tabulated import ArrayStream
from windage.schedules import Knots, Schedule, serialization

if TYPE_CHECKING:
    from windage.models.drifting import DriftingMDP

__all__ = ["fingerprint", "is_plain", "passed", "spec_of"]

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


def is_plain(source: Blend) -> bool:
    """Return whether both schedules of a blend are the library's own and can be written as data."""
    sides = (source.kernels, source.rewards)
    return all(serialization.is_plain(side.schedule) for side in sides)


def spec_of(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as plain data in which equal numbers are written alike."""
    return {name: _number(value) for name, value in serialization.to_spec(schedule).items()}


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
    if isinstance(source, Blend) and is_plain(source):
        for r, p in zip(source.rewards.parts, source.kernels.parts, strict=True):
            _add(digest, r, p)
        schedules = [spec_of(source.kernels.schedule), spec_of(source.rewards.schedule)]
    else:
        asked: Iterable[int] = range(1, model.horizon + 1)
        if model.horizon > ASKED and not isinstance(source, ArrayStream):
            asked = np.unique(np.linspace(1, model.horizon, ASKED).astype(np.int64)).tolist()
        times = []
        for t, mdp in passed(model, asked):
            times.append(t)
            _add(digest, mdp.rewards, mdp.transitions)
        schedules = [spec_of(Knots(tuple(times), "step"))] * 2
    noise = [model.noise.kind, float(model.noise.spread)]
    digest.update(msgspec.json.encode([schedules, noise, model.horizon], order="sorted"))
    return digest.hexdigest()[:32]


def _add(digest: Any, rewards: NDArray[np.float64], kernel: Transitions) -> None:
    for part in (rewards + 0.0, *cells_of(kernel)):  # a reward of -0.0 is 0.0
        digest.update(np.ascontiguousarray(part).tobytes())


def _number(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain
