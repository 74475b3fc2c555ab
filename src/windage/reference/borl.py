"""BORL: a bandit over windows and widenings (paper, Algorithm 3, equation (68)).

Readings: eta_k has no floor (E2) but the factor S^(1/3) A^(1/4) (E3), and is at most 2 (E7). Blocks
have min(T, ceil H) steps, windows come from the real H, and T = 1 has one widening (E5). The reward
of a block is divided by H, also that of a shorter last block (E24), and cut to [0, 1] (E9).
SWUCRL2-CW has T and delta of the whole run (E22), and starts anew in each block, its clock too
(E23).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.reference.exp3p import Exp3P
from windage.reference.swucrl2cw import SWUCRL2CW
from windage.rng import stream
from windage.spaces import StateActions

__all__ = ["BORL"]


class Block(NamedTuple):
    """A block that has started: its arm, and how likely each arm was."""

    arm: int  # (j_i, k_i), by its place in `arms`
    probabilities: NDArray[np.float64]  # u_i


class BORL:
    """Algorithm 3. Arguments are those of `windage.BORL`; `scale` multiplies the radii.

    `uniform` draws a number in [0, 1) for each block; that of `windage.BORL` if not given, so that
    both choose the same arms.

    >>> agent = BORL(StateActions.uniform(2, 2), horizon=5000)
    >>> agent.block_length, len(agent.arms), agent.master.gamma
    (477, 35, 1.0)
    """

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        delta: float = 0.05,
        arms: Sequence[tuple[int, float]] | None = None,
        block_length: int | None = None,
        scale: float | tuple[float, float] = 1.0,
        ties: str = "random",
        seed: int = 0,
        uniform: Callable[[int], float] | None = None,
    ) -> None:
        S, A, T = space.n_states, space.mean_actions, horizon  # line 1
        H = 3 * S ** (2 / 3) * A ** (1 / 2) * T ** (1 / 2)  # line 2, equation (68)
        Phi = 1 / (2 * T ** (1 / 2))
        Delta_W, Delta_eta = math.floor(math.log(H)), math.floor(-math.log(Phi))
        J_W = [math.floor(H ** (j / Delta_W)) for j in range(Delta_W + 1)]  # E5
        top = S ** (1 / 3) * A ** (1 / 4)
        falls = [k / max(1, Delta_eta) for k in range(Delta_eta + 1)]  # E5
        J_eta = [min(2.0, top * Phi**fall) for fall in falls]  # E2, E3, E7
        self.space, self.horizon, self.seed = space, horizon, seed
        self.options: dict[str, Any] = {"delta": delta, "scale": scale, "ties": ties}
        self.arms = arms or [(W, eta) for W in J_W for eta in J_eta]  # line 3: J, by M
        self.block_length = block_length or min(T, math.ceil(H))  # E5
        self.master = Exp3P(len(self.arms), math.ceil(T / self.block_length))  # line 2, (69)
        self.uniform = uniform or (lambda i: float(stream(seed, "agents.borl", i).random()))
        self.t = 1
        self.blocks: list[Block] = []
        self.heard: list[float] = []  # what the master was told of each

    def act(self, s: int) -> int:
        """Return the action for state s at time t."""
        if (self.t - 1) // self.block_length == len(self.blocks):
            self.begin_block()
        return int(self.learner.act(s))  # line 9

    def begin_block(self) -> None:
        """Draw an arm and start SWUCRL2-CW with it (lines 4 to 8)."""
        i, u = len(self.blocks), self.master.probabilities  # lines 4, 5; counted from 0
        arm = self.master.choose(self.uniform(i))  # line 6
        self.learner, self.earned = self.restarted(i, *self.arms[arm]), 0.0  # line 7
        self.blocks.append(Block(arm, u))

    def restarted(self, block: int, W: int, eta: float) -> Any:
        """Return a new SWUCRL2-CW for a block: E22, E23."""
        T, seed = self.horizon, (self.seed, block)
        return SWUCRL2CW(self.space, horizon=T, window=W, widening=eta, seed=seed, **self.options)

    def observe(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn the reward and the next state (line 9), and after a block what it earned."""
        self.learner.observe(s, a, reward, s_next)
        self.earned += reward
        self.t += 1
        if (self.t - 1) % self.block_length == 0 or self.t > self.horizon:
            share = min(1.0, max(0.0, self.earned / self.block_length))  # E9, E24
            self.heard.append(share)
            self.master.update(self.blocks[-1].arm, share)  # after line 10, equation (71)
