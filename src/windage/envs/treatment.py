"""Treatment: which drug to give while a strain that resists one of them comes and goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP
from windage.schedules import Cosine
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_horizon, as_size, require_memory

__all__ = ["treatment"]

_CARE = ("observe", "first drug", "second drug")
_HARM = (0.0, 0.1, 0.15)  # side effects and costs
_ILLNESS = 0.8
_VACANT = 0.3  # the probability that an empty bed stays empty
_RESPONSES = ("better", "same", "worse")
# By care; of patients with the strain that every drug cures, and with the one that resists.
_TAME = np.array([[0.15, 0.5, 0.35], [0.6, 0.3, 0.1], [0.5, 0.4, 0.1]])
_RESISTANT = np.array([[0.15, 0.5, 0.35], [0.15, 0.5, 0.35], [0.5, 0.4, 0.1]])


@register("treatment-v0")
def treatment(horizon: int = 20_000, levels: int = 5, cycles: float = 2) -> Instance:
    """A hospital bed, three ways to treat who lies in it, and a strain that resists one of them.

    States
        The severity of the illness, 1 .. levels; 0 is an empty bed.
    Actions
        "observe", the "first drug" or the "second drug", at a harm of 0, .1 or .15; for an empty
        bed there is only "wait". The patient gets better or worse by one level, or neither; at 0
        the bed is free again, and at the last level nothing gets worse. The reward is
        1 - .8 s' / levels - the harm, s' being the severity after the treatment; an empty bed
        pays 1.
    Structure
        "response", "better", "same" or "worse", with a law for each way to treat, seen where there
        is a patient; "patient", the severity of the next one or 0 if there is none, with one law,
        seen where the bed is empty.
    Drift
        The share of patients with a resistant strain moves on a cosine, `cycles` times, from 0 to 1
        and back. The first drug makes 60 % of the others better, a little more than the second one,
        and does nothing against the resistant strain; the second drug works against both.
    B_r
        1.12 cycles / levels up to the discrete sum, for the first drug: .56 a swing. With one level
        getting worse changes nothing, and it is .72 cycles.
    B_p
        1.8 cycles up to the discrete sum, .9 a swing, for the first drug. It is B_q too.
    D
        Not known in closed form.
    Why communicating
        An empty bed may be filled at any severity. Every treatment may make a patient better, down
        to an empty bed, or worse.
    Version history
        v0: first.
    """
    T, m, schedule = as_horizon(horizon), as_size(levels, "levels"), Cosine(cycles)
    require_memory(8.0 * 3 * 3 * (m + 1) ** 2, "levels", fix="ask for fewer levels")
    step = dict(zip(_RESPONSES, (-1, 0, 1), strict=True))

    def after(s: int, _: int, patient: int | None, response: str | None) -> Any:
        return patient if response is None else min(s + step[response], m)

    def reward(s: int, a: int, _: int | None, response: str | None) -> float:
        if response is None:
            return 1.0
        return 1 - (_ILLNESS * min(s + step[response], m) / m + _HARM[a])

    def build() -> DriftingMDP:
        space = StateActions(
            [1] + [len(_CARE)] * m,
            state_names=["empty"] + [f"severity {s}" for s in range(1, m + 1)],
            action_names=[["wait"]] + [_CARE] * m,
        )
        known = Structure(
            space,
            [
                Exogenous("patient", range(m + 1), lambda s, _: None if s else "next", "involved"),
                Exogenous("response", _RESPONSES, lambda s, a: _CARE[a] if s else None, "involved"),
            ],
            next_state=after,
            reward=reward,
            reward_range=(0.0, 1.0),
        )
        laws = {
            "patient": {"next": [_VACANT] + [(1 - _VACANT) / m] * m},
            "response": {
                care: (np.stack([_TAME[a], _RESISTANT[a]]), schedule)
                for a, care in enumerate(_CARE)
            },
        }
        return known.drifting(laws, horizon=T)

    return Instance(build, lambda: _facts(m, schedule.variation(T)))


def _facts(m: int, swings: float) -> Facts:
    change = _RESISTANT[1] - _TAME[1]
    worse = float(change @ [-1, 0, 1 if m > 1 else 0])
    return Facts(_ILLNESS / m * abs(worse) * swings, float(np.abs(change).sum()) * swings)
