"""Wireless: when to send what has queued up, over a channel that fades."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP
from windage.schedules import Cosine
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_horizon, as_size, require_memory

__all__ = ["wireless"]

_CHANNELS = ("poor", "fair", "good")  # one to three packets fit into a slot
_ENERGY = np.array([0.9, 0.4, 0.1])  # of a packet
_DELAY, _LOST = 0.3, 0.5
_WORST = _ENERGY[0] + _DELAY + _LOST  # a full buffer and a poor channel
_PACKETS = (0.4, 0.35, 0.25)  # the probability that 0, 1 or 2 come in
# The next channel, given this one: near the mast, and far from it.
_NEAR = np.array([[0.3, 0.5, 0.2], [0.1, 0.4, 0.5], [0.05, 0.15, 0.8]])
_FAR = np.array([[0.9, 0.08, 0.02], [0.6, 0.3, 0.1], [0.3, 0.5, 0.2]])


@register("wireless-v0")
def wireless(horizon: int = 20_000, capacity: int = 8, cycles: float = 2) -> Instance:
    """A sender on the move who pays for energy and delay, and may wait for a better channel.

    States
        The packets that wait, 0 .. capacity, with the channel, "poor", "fair" or "good".
    Actions
        "send 0" up to as many packets as wait and fit into the slot, 1, 2 or 3 by the channel. A
        packet costs .9, .4 or .1 of energy, waiting costs .3 times the share of the buffer that is
        taken, and a packet that comes to a full buffer is lost, at .5. The reward is 1 less the
        cost of the slot over 1.7.
    Structure
        "packets", the 0 to 2 that come in after the slot, with one law; "channel", the next one,
        with a law for each channel. Both are seen at every step.
    Drift
        The laws of the channel move on a cosine, `cycles` times, between those near the mast, where
        it is mostly good, and those far from it, where it is mostly poor.
    B_r
        0: what a slot costs depends on packets, and their law is stationary.
    B_p
        2.4 cycles up to the discrete sum, 1.2 a swing, from a poor or a good channel. It is B_q
        too.
    D
        Not known in closed form.
    Why communicating
        Every channel may follow every other; sending empties the buffer while no packets come in,
        and not sending fills it.
    Version history
        v0: first.
    """
    T, most, schedule = as_horizon(horizon), as_size(capacity, "capacity"), Cosine(cycles)
    n = len(_CHANNELS)
    require_memory(8.0 * 3 * 9 * 3 * (most + 1) ** 2, "capacity", fix="ask for a smaller buffer")

    def after(s: int, a: int, coming: Any, channel: Any) -> Any:
        return np.minimum(s // n - a + coming, most) * n + channel

    def reward(s: int, a: int, coming: Any, _: Any) -> Any:
        waiting, now = divmod(s, n)
        lost = np.maximum(waiting - a + coming - most, 0)
        return 1 - (_ENERGY[now] * a + _DELAY * waiting / most + _LOST * lost) / _WORST

    def build() -> DriftingMDP:
        states = list(itertools.product(range(most + 1), range(n)))
        sent = [range(min(waiting, channel + 1) + 1) for waiting, channel in states]
        space = StateActions(
            [len(of_state) for of_state in sent],
            state_names=[f"{waiting} waiting, {_CHANNELS[c]} channel" for waiting, c in states],
            action_names=[[f"send {k}" for k in of_state] for of_state in sent],
        )
        known = Structure(
            space,
            [
                Exogenous("packets", range(len(_PACKETS))),
                Exogenous("channel", range(n), lambda s, a: _CHANNELS[s % n]),  # noqa: ARG005
            ],
            next_state=after,
            reward=reward,
            reward_range=(0.0, 1.0),
        )
        channels = {
            name: (np.stack([_NEAR[c], _FAR[c]]), schedule) for c, name in enumerate(_CHANNELS)
        }
        return known.drifting({"packets": _PACKETS, "channel": channels}, horizon=T)

    apart = float(np.abs(_FAR - _NEAR).sum(axis=1).max())
    return Instance(build, lambda: Facts(0.0, apart * schedule.variation(T)))
