"""Optimistic learners of other papers as variants of the reference, and runs compared with them."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from windage.reference import SWUCRL2CW, Plan
from windage.reference.evi import tied


class UCRL2(SWUCRL2CW):
    """UCRL2 (Jaksch, Ortner, Auer 2010): radii that grow with t, doubling alone; W = T is all."""

    def __init__(self, space, *, horizon, window=None, clip=False, **options):
        super().__init__(space, horizon=horizon, window=window or horizon, widening=0.0, **options)
        self.clip = clip

    def is_boundary(self, t):
        return False

    def confidence_regions(self):
        S, SA, t, N_plus = self.space.n_states, self.space.n_pairs, self.tau, np.maximum(1, self.N)
        A = SA / S
        rad_r = self.scale * np.sqrt(7 * np.log(2 * SA * t / self.delta) / (2 * N_plus))
        rad_p = self.scale * np.sqrt(14 * S * np.log(2 * A * t / self.delta) / N_plus)
        upper = self.r_hat + rad_r
        if self.clip:
            upper = np.where(self.N > 0, np.clip(upper, 0, 1), 1.0)
        return upper, np.where(self.N > 0, rad_p, 2.0)


class AnySets(UCRL2):
    """UCRL2's episodes with sets of another shape: a subclass has `regions` and `best_rows`.

    With `drift` the sets hold the averages of a window of a drifting model; without, they are those
    of the paper, for a model that is stationary.
    """

    def __init__(self, space, *, drift=False, **options):
        super().__init__(space, **options)
        self.drift = drift

    def laplace_radius(self):
        """That of rewards in [0, 1] under drift, for all windows at once (`Radii.laplace`)."""
        n = np.maximum(1, self.N)
        log = np.log(2 * np.sqrt(n + 1) * self.space.n_pairs * self.horizon / self.delta)
        return np.sqrt((1 + 1 / n) * log / (2 * n))

    def regions(self):
        """Find the sets from N, r_hat and p_hat; return the largest plausible rewards."""
        raise NotImplementedError

    def best_rows(self, u):
        """Return the plausible row with the largest q.u of each pair."""
        raise NotImplementedError

    def begin_episode(self):
        self.tau, self.nu = self.t, np.zeros(self.space.n_pairs, np.int64)
        self.N, self.r_hat, self.p_hat = self.estimates()
        self.reward_upper = self.regions()
        epsilon = 1 / np.sqrt(self.tau)
        self.plan = value_iteration(self.space, self.reward_upper, self.best_rows, epsilon)
        self.policy, self.over = self.chosen(self.plan.values), False
        plan = self.plan
        self.episodes.append((self.tau, plan.gain, float(plan.bias.max()), plan.sweeps))


def value_iteration(space, reward_upper, best_rows, epsilon, max_sweeps=20_000):
    """EVI (Algorithm 2) with any inner maximum, `best_rows(u)`."""
    first, u = space.offsets[:-1], np.zeros(space.n_states)
    for i in range(max_sweeps):
        rows = best_rows(u)
        values = reward_upper + rows @ u
        after = np.maximum.reduceat(values, first)
        rise = after - u
        if np.ptp(rise) <= epsilon:
            lowest = np.where(tied(space, values), space.action_of, space.n_pairs)
            policy = np.minimum.reduceat(lowest, first)
            return Plan(policy, reward_upper, rows, rise.max(), u - u.min(), values, i + 1)
        u = after - after.min()
    raise wd.NotConverged(f"span is {np.ptp(rise)} after {max_sweeps} sweeps")


def replay(twin: SWUCRL2CW, run: wd.Run) -> set[str]:
    """Show a twin the states and rewards of a run; it must come to the same actions and episodes.

    Returns why episodes ended.
    """
    for i in range(run.steps):
        s, a = int(run.states[i]), int(run.actions[i])
        assert twin.act(s) == a, f"t={i + 1}"
        twin.observe(s, a, float(run.rewards[i]), int(run.states[i + 1]))
    starts, gains, spans, sweeps = map(list, zip(*twin.episodes, strict=True))
    assert run.episodes.start.tolist() == starts
    assert run.episodes.gain == pytest.approx(gains, abs=1e-9)
    assert run.episodes.span == pytest.approx(spans, abs=1e-9)
    assert run.episodes.sweeps.tolist() == sweeps
    reasons = ["boundary" if twin.is_boundary(t) else "visits" for t in starts[1:]]
    assert run.episodes.reason[:-1].tolist() == reasons
    return set(reasons)
