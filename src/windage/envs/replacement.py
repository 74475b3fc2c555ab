"""Replacement: run a machine, repair it or buy a new one, while it wears ever faster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP, Noise
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_horizon, as_size, require_memory

__all__ = ["replacement"]

_WEARS = (0.1, 0.5, 0.2)  # the probability of wearing in a step: at the start, halfway, at the end
_REPAIRED = 0.7
_LOSS, _REPAIR_PAYS = 0.6, 0.2  # so that uniform random play earns 88 % of the optimal gains


@register("replacement-v0")
def replacement_v0(
    horizon: int = 20_000,
    wear: int = 6,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A machine that earns less the more it is worn, and wears faster in some years than in others.

    States
        0 .. wear, from new to worn out.
    Actions
        "operate" wears the machine by one with probability theta_t and earns 1 - .6 (s / wear)^2.
        "repair" takes one off with probability .7; most of the shift is lost, it earns .2.
        "replace" makes the machine new and earns nothing. A new machine can only operate, one that
        is worn out cannot.
    Drift
        theta_t goes in straight lines from .1 at the start to .5 halfway and to .2 at the end.
    B_r
        0: only the wear changes.
    B_p
        1.4: 2 (.4 + .3).
    D
        wear / .1, the expected time to wear out a new machine at the start.
    Why communicating
        Operating reaches every higher wear since theta_t > 0, and replacing leads back to 0.
    Version history
        v0: first.
    """
    T, m = _checked(horizon, wear)
    Noise.of(noise)

    def build() -> DriftingMDP:
        space, offered = _space(m)
        rewards = [_earned(action, s, m) for s in range(m + 1) for action in offered[s]]
        times, kept = _knots(T)
        kernels = [_kernel(offered, _WEARS[k]) for k in kept]
        return DriftingMDP(space, times, [rewards] * len(kernels), kernels, horizon=T, noise=noise)

    return Instance(build, lambda: _facts(T, m))


@register("replacement-v1")
def replacement(horizon: int = 20_000, wear: int = 6) -> Instance:
    """A machine that earns less the more it is worn, and wears faster in some years than in others.

    States
        0 .. wear, from new to worn out.
    Actions
        "operate" wears the machine by one with probability theta_t and earns 1 - .6 (s / wear)^2.
        "repair" takes one off with probability .7; most of the shift is lost, it earns .2.
        "replace" makes the machine new and earns nothing. A new machine can only operate, one that
        is worn out cannot.
    Structure
        "worn", 0 or 1, where the machine operates, and "repaired", 0 or 1, where it is repaired;
        both are inferred from the next state.
    Drift
        theta_t goes in straight lines from .1 at the start to .5 halfway and to .2 at the end.
    B_r
        0: only the wear changes.
    B_p
        1.4: 2 (.4 + .3). It is B_q too.
    D
        wear / .1, the expected time to wear out a new machine at the start.
    Why communicating
        Operating reaches every higher wear since theta_t > 0, and replacing leads back to 0.
    Version history
        v1: wear is drawn, and rewards are what the action earns. v0: first.
    """
    T, m = _checked(horizon, wear)

    def build() -> DriftingMDP:
        space, offered = _space(m)

        def after(s: int, a: int, worn: int | None, repaired: int | None) -> int:
            return {"operate": s + (worn or 0), "repair": s - (repaired or 0), "replace": 0}[
                offered[s][a]
            ]

        known = Structure(
            space,
            [_during("worn", "operate", offered), _during("repaired", "repair", offered)],
            next_state=after,
            reward=lambda s, a, *_: _earned(offered[s][a], s, m),
            reward_range=(0.0, 1.0),
        )
        times, kept = _knots(T)
        wears = [[1 - _WEARS[k], _WEARS[k]] for k in kept]
        laws = {
            "worn": {"operate": (wears, times)},
            "repaired": {"repair": [1 - _REPAIRED, _REPAIRED]},
        }
        return known.drifting(laws, horizon=T)

    return Instance(build, lambda: _facts(T, m))


def _checked(horizon: int, wear: int) -> tuple[int, int]:
    T, m = as_horizon(horizon), as_size(wear, "wear")
    require_memory(8.0 * 9 * 3 * (m + 1) ** 2, "wear", fix="ask for fewer states of wear")
    return T, m


def _facts(horizon: int, m: int) -> Facts:
    first, middle, last = _WEARS
    moved = 2 * (abs(middle - first) + abs(last - middle))
    return Facts(
        reward_budget=0.0,
        transition_budget=moved if horizon >= 3 else None,
        diameter_bound=m / min(_WEARS),
    )


def _space(m: int) -> tuple[StateActions, list[list[str]]]:
    """Return the space, and what is offered in each state."""
    offered = [
        ["operate"],
        *[["operate", "repair", "replace"]] * (m - 1),
        ["repair", "replace"],
    ]
    space = StateActions(
        [len(of_state) for of_state in offered],
        state_names=[f"wear {s}" for s in range(m + 1)],
        action_names=offered,
    )
    return space, offered


def _earned(action: str, s: int, m: int) -> float:
    return {"repair": _REPAIR_PAYS, "replace": 0.0}.get(action, 1 - _LOSS * (s / m) ** 2)


def _during(name: str, action: str, offered: list[list[str]]) -> Exogenous:
    """Return the variable that a pair involves if its action is this one."""
    return Exogenous(
        name, [0, 1], lambda s, a: action if offered[s][a] == action else None, "inferred"
    )


def _knots(horizon: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times at which the wear is given, and which of its values are."""
    return np.unique([1, (horizon + 1) // 2, horizon], return_index=True)


def _kernel(offered: list[list[str]], theta: float) -> NDArray[np.float64]:
    rows = []
    for s, of_state in enumerate(offered):
        for action in of_state:
            row = np.zeros(len(offered))
            if action == "operate":
                row[s], row[s + 1] = 1 - theta, theta
            elif action == "repair":
                row[s], row[s - 1] = 1 - _REPAIRED, _REPAIRED
            else:
                row[0] = 1.0
            rows.append(row)
    return np.stack(rows)
