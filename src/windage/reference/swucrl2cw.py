"""SWUCRL2-CW: sliding-window UCRL2 with confidence widening (paper, Algorithm 1).

Readings: the test of line 7 comes after a step (E1); a pair not seen in the window may pay 1 and
lead anywhere (E8); optimistic rewards are cut to [0, 1] (E9). Counts are those at tau(m) (E25).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import HorizonReached
from windage.reference.evi import evi, tied
from windage.spaces import StateActions

__all__ = ["SWUCRL2CW"]


class SWUCRL2CW:
    """Algorithm 1. Arguments are those of `windage.SWUCRL2CW`; `scale` multiplies rad_r and rad_p.

    >>> agent = SWUCRL2CW(StateActions([2, 1]), horizon=100, window=20, widening=0.1, ties="lowest")
    >>> agent.act(0)
    0
    >>> agent.observe(0, 0, reward=0.5, s_next=0)  # nu = N+ = 1: the next step starts an episode
    >>> agent.act(0), agent.tau, agent.N
    (0, 2, array([1, 0, 0]))
    """

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        window: int,
        widening: ArrayLike,
        delta: float = 0.05,
        scale: float | tuple[float, float] = 1.0,
        ties: str = "random",
        boundary: str = "start",
        seed: int | Sequence[int] = 0,
    ) -> None:
        self.space, self.horizon, self.window, self.widening = space, horizon, window, widening
        self.delta, self.scale, self.ties = delta, scale, ties  # line 1
        self.phase = 0 if boundary == "start" else 1 % window  # E1: blocks start at W, or after it
        self.rng = np.random.default_rng(seed)
        self.t = 1  # line 2
        self.pairs = np.zeros(horizon, np.int64)  # H_{t-1}: what was done, earned and led to
        self.rewards = np.zeros(horizon)
        self.afters = np.zeros(horizon, np.int64)
        self.over = True  # whether an episode is
        self.episodes: list[tuple[int, float, float, int]] = []  # tau, rho~, span(gamma~), sweeps

    def act(self, s: int) -> int:
        """Return the action for state s at time t."""
        if self.t > self.horizon:
            raise HorizonReached(f"all {self.horizon} steps are over")  # lines 10, 11
        if self.over:
            self.begin_episode()  # line 3
        return int(self.policy[self.space.check_state(s)])  # line 8

    def observe(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn the reward and the next state (line 8)."""
        pair, s_next = self.space.pair(s, a), self.space.check_state(s_next, "s_next")
        self.pairs[self.t - 1], self.rewards[self.t - 1] = pair, reward
        self.afters[self.t - 1] = s_next
        self.nu[pair] += 1  # line 9
        self.t += 1
        self.over = self.is_over(s_next)

    def is_over(self, s: int) -> bool:
        """Whether line 7 ends the episode, tested after a step (E1)."""
        pair = self.space.offsets[s] + self.policy[s]
        return self.is_boundary(self.t) or bool(self.nu[pair] >= max(1, self.N[pair]))

    def is_boundary(self, t: int) -> bool:
        """Whether t is a multiple of W."""
        return t % self.window == self.phase

    def begin_episode(self) -> None:
        """Plan anew (lines 4 to 6)."""
        self.tau, self.nu = self.t, np.zeros(self.space.n_pairs, np.int64)  # line 4
        self.N, self.r_hat, self.p_hat = self.estimates()
        self.reward_upper, self.width = self.confidence_regions()  # line 5
        self.plan = evi(
            self.space, self.reward_upper, self.p_hat, self.width, 1 / np.sqrt(self.tau)
        )  # line 6
        self.policy, self.over = self.chosen(self.plan.values), False
        span = float(self.plan.bias.max())
        self.episodes.append((self.tau, self.plan.gain, span, self.plan.sweeps))

    def estimates(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return N, r_hat and p_hat of the window (tau - W) v 1, ..., tau - 1; equation (3)."""
        S, SA = self.space.n_states, self.space.n_pairs
        recent = slice(max(self.tau - self.window, 1) - 1, self.tau - 1)  # t = 1 is at place 0
        pairs = self.pairs[recent]
        N = np.bincount(pairs, minlength=SA)
        sums = np.bincount(pairs, self.rewards[recent], minlength=SA)
        moves = np.bincount(pairs * S + self.afters[recent], minlength=SA * S).reshape(SA, S)
        N_plus = np.maximum(1, N)
        return N, sums / N_plus, moves / N_plus[:, None]

    def confidence_regions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the largest reward of H_r and the L1 width of H_p(eta); equations (4) and (5)."""
        S, SA, seen = self.space.n_states, self.space.n_pairs, self.N > 0
        L, N_plus = np.log(SA * self.horizon / self.delta), np.maximum(1, self.N)  # SA: E32
        scale_r, scale_p = np.broadcast_to(self.scale, 2)
        rad_r = scale_r * 2 * np.sqrt(2 * L / N_plus)
        rad_p = scale_p * 2 * np.sqrt(2 * S * L / N_plus)
        upper = np.where(seen, np.clip(self.r_hat + rad_r, 0, 1), 1.0)  # (4), E8, E9
        width = np.where(seen, rad_p + self.widening, 2.0)  # (5); 2 is all of the simplex: E8
        return upper, width

    def chosen(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return an action of the largest value for each state: the lowest, or a random one."""
        order = np.arange(values.size, 0.0, -1.0)
        if self.ties == "random":
            order = self.rng.random(values.size)
        order = np.where(tied(self.space, values), order, -1.0)
        return np.array([order[i:k].argmax() for i, k in pairwise(self.space.offsets)])
