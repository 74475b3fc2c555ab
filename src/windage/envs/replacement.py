"""Replacement: run a machine, repair it or buy a new one, while it wears ever faster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP, Noise
from windage.spaces import StateActions
from windage.validation import as_horizon, as_size, require_memory

__all__ = ["replacement"]

_WEARS = (0.1, 0.5, 0.2)  # the probability of wearing in a step: at the start, halfway, at the end
_REPAIRED = 0.7
_LOSS, _REPAIR_PAYS = 0.6, 0.2  # so that uniform random play earns 88 % of the optimal gains


@register("replacement-v0")
def replacement(
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
    T, m = as_horizon(horizon), as_size(wear, "wear")
    Noise.of(noise)
    require_memory(8.0 * 9 * 3 * (m + 1) ** 2, "wear", fix="ask for fewer states of wear")

    def facts() -> Facts:
        first, middle, last = _WEARS
        return Facts(
            reward_budget=0.0,
            transition_budget=2 * (abs(middle - first) + abs(last - middle)) if T >= 3 else None,
            diameter_bound=m / min(_WEARS),
        )

    def build() -> DriftingMDP:
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
        earned = {"repair": _REPAIR_PAYS, "replace": 0.0}
        rewards = [
            earned.get(action, 1 - _LOSS * (s / m) ** 2)
            for s in range(m + 1)
            for action in offered[s]
        ]
        times, kept = np.unique([1, (T + 1) // 2, T], return_index=True)
        kernels = [_kernel(offered, _WEARS[k]) for k in kept]
        return DriftingMDP(space, times, [rewards] * len(kernels), kernels, horizon=T, noise=noise)

    return Instance(build, facts)


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
