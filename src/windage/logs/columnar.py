"""A log from columns that are in memory already."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.logs.labels import Labels
from windage.logs.reading import LARGEST, Rows
from windage.logs.times import Clock
from windage.validation import shown

__all__ = ["rows_of"]


def rows_of(
    states: ArrayLike, actions: ArrayLike, rewards: ArrayLike, next_states: ArrayLike
) -> Rows:
    """Return four columns as the steps of a log; nothing may be missing in them."""
    state_names, action_names = Labels("states"), Labels("actions")
    codes = [
        _encoded(states, "states", state_names),
        _encoded(actions, "actions", action_names),
        _encoded(next_states, "next_states", state_names),
    ]
    paid = np.array(rewards, dtype=np.float64)
    sizes = [*(code.size for code in codes), paid.size]
    if len(set(sizes)) > 1 or paid.ndim != 1 or not paid.size:
        raise InputError(
            f"{sizes} entries",
            field="states, actions, next_states and rewards",
            fix="pass four columns of one length, at least one entry each",
        )
    if not np.isfinite(paid).all():
        place = int(np.argmin(np.isfinite(paid)))
        raise InputError(f"{paid[place]} is not a number", field=f"rewards[{place}]", fix="mend it")
    if (np.abs(paid) > LARGEST).any():
        place = int(np.argmax(np.abs(paid) > LARGEST))
        raise InputError(
            f"{paid[place]:g} is beyond {LARGEST:g}, too large to compute with",
            field=f"rewards[{place}]",
            fix="pass rewards in larger units",
        )
    clock = Clock()
    clock.add(np.arange(1, paid.size + 1))
    return Rows(
        codes[0], codes[1], paid, codes[2], state_names.names(), action_names.names(), clock,
        paid.size, [], 0, [],
    )  # fmt: skip


def _encoded(values: Any, field: str, labels: Labels) -> NDArray[np.uint16]:
    cells = pl.Series(np.asarray(values).tolist(), strict=False)
    codes = labels.encode(cells)
    if (codes < 0).any():
        place = int(np.argmax(codes < 0))
        raise InputError(
            f"{shown(cells[place])} is no name, or not of the kind of the others",
            field=f"{field}[{place}]",
            fix="pass integers, or words",
        )
    return codes.astype(np.uint16)
