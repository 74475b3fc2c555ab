"""C1 (Lemma 1): the sets hold the averages along whole runs, with the power of saying so; E26."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import windage as wd
from paper import coverage
from tests.conftest import RELIABILITY
from windage.confidence.radii import Radii

RUNS = 600 if RELIABILITY else 60
WORLDS = ("two-state-cosine", "riverswim")


def counted(world, radii):
    model = wd.envs.make(world, horizon=1500)
    return coverage.count(model, radii, RUNS)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("kind", ["paper", "proof", "laplace"])
def test_c1_the_events_fail_no_more_often_than_promised(world, kind):
    """False alarms: 1e-6 an event, were the lemma just kept; seeds are fixed."""
    found = counted(world, Radii(kind))
    limit = int(binom.isf(1e-6, RUNS, 0.025))
    print(f"C1 {world}, {kind}: {found.reward} and {found.transition} of {RUNS}, limit {limit}; "
          f"{found.reward_ratio:.2f} and {found.transition_ratio:.2f} of the radii")  # fmt: skip
    assert max(found.reward, found.transition) <= limit
    assert 0 < found.reward_ratio < 1  # the distances are not zero: something was compared
    assert 0 < found.transition_ratio < 1


@pytest.mark.parametrize("radii", [Radii.paper().scaled(0.1), Radii.laplace().scaled(0.3)], ids=str)
def test_c1_radii_that_are_too_small_are_found_out(radii):
    """The power is that of the lower bound of their failures, at 99.9 %."""
    limit = int(binom.isf(1e-6, RUNS, 0.025))
    found = counted("two-state-cosine", radii)
    assert max(found.reward, found.transition) > limit
    low = coverage.floor(max(found.reward, found.transition), RUNS)
    power = float(binom.sf(limit, RUNS, low))
    print(f"C1 {radii}: {found.reward} and {found.transition} of {RUNS} fail, power {power:.6f}")
    assert power >= 0.999


def test_e26_windows_that_are_chosen_by_looking_need_the_union():
    """Fair coins: the worst of all windows [i, j] leaves the radius of one window, not the union's.

    tau(m) depends on what was seen, so a bound for each fixed window is not enough; with T^2 in
    the logarithm it holds for all of them at once. 200 sequences; under the union each fails with
    probability 0.025 at most, so that 30 failures or more have probability below 1e-15.
    """
    T, delta, n = 300, 0.05, 200
    rng = np.random.default_rng(26)
    sums = np.concatenate([[[0]] * n, np.cumsum(rng.integers(0, 2, (n, T)) - 0.5, axis=1)], axis=1)
    fixed = union = 0
    one = math.sqrt(math.log(2 / (delta / 2)) / 2)  # Hoeffding's, of a mean of one fixed window
    all_of_them = 2 * 0.5 * math.sqrt(math.log(2 * T * T / delta))  # E13, R = 1/2, SA = 1
    lags = np.arange(1, T + 1)
    for walk in sums:
        worst = max(float(np.abs(walk[lag:] - walk[:-lag]).max()) / math.sqrt(lag) for lag in lags)
        fixed += worst > one
        union += worst > all_of_them
    print(f"E26: {fixed} of {n} leave the radius of a fixed window, {union} that of the union")
    assert fixed > 20 * 0.025 * n  # where 0.025 n at most was promised of each
    assert union < 30
