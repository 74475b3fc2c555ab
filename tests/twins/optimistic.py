"""UCRL2 and its window as variants of the reference, and the comparison of a run with a twin."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from windage.reference import SWUCRL2CW


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
