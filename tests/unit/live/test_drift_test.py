"""Drift test: false alarms, power, and the evidence against an integral over coins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from tests.live_loops import SPACE
from windage.live.config import Units
from windage.live.history import History
from windage.live.views import DELTA, drift_alarms

PLAIN = Units(None, "profit", (0.0, 1.0))


def past_of(states, actions, rewards, afters):
    n = len(states)
    columns = (np.arange(n) + 2, states, actions, actions, rewards, afters)
    return History(
        *(np.asarray(c) for c in columns),
        np.full(n, True),
        np.full(n, False),
        np.arange(n) + 3,
        np.full(n, None),
    )


def random_past(rng, n, changed_at=None):
    """A history; from a time on one pair has other rewards and another leads elsewhere."""
    means, rows = rng.random(6), rng.dirichlet(np.ones(3), 6)
    states, actions, rewards, afters = [], [], [], []
    s = 0
    for i in range(n):
        a = int(rng.integers(SPACE.counts[s]))
        pair = SPACE.pair(s, a)
        mean, row = means[pair], rows[pair]
        if changed_at is not None and i >= changed_at:
            mean = (0.95 if mean < 0.5 else 0.05) if pair == 0 else mean
            row = np.eye(3)[np.argmin(row)] if pair == 5 else row
        states.append(s)
        actions.append(a)
        rewards.append(float(rng.random() < mean))
        s = int(rng.choice(3, p=row))
        afters.append(s)
    return past_of(states, actions, rewards, afters)


def test_a_stationary_environment_raises_no_alarm():
    """At most one look in a hundred may be wrong: more than 8 of 60 has a chance below 1e-6."""
    rng = np.random.default_rng(1)
    false = sum(bool(drift_alarms(random_past(rng, 1200), SPACE, PLAIN, 400)) for _ in range(60))
    assert false <= 8


def test_drift_is_found_with_its_pair_and_size():
    rng = np.random.default_rng(2)
    for _ in range(10):
        past = random_past(rng, 1200, changed_at=600)
        found = drift_alarms(past, SPACE, PLAIN, 600)
        pairs = {(alarm.pair, alarm.what == "reward") for alarm in found}
        assert (5, False) in pairs
        (moved,) = [alarm for alarm in found if alarm.pair == 5]
        mine = (past.states == 2) & (past.actions == 0)
        rows = [np.bincount(past.next_states[part][mine[part]], minlength=3) / mine[part].sum()
                for part in (slice(0, 600), slice(600, None))]  # fmt: skip
        assert moved.size == pytest.approx(np.abs(rows[0] - rows[1]).sum(), abs=1e-12)
        assert moved.samples == (mine[:600].sum(), mine[600:].sum())
        assert "high" in str(moved)
        assert {0, 5} >= {alarm.pair for alarm in found}


def test_the_evidence_is_that_of_the_text():
    """Forty tails, then k heads of forty: the first k that alarms, by integrating over coins."""

    def mixture(heads, n):
        def likelihood(angle):  # Beta(1/2, 1/2) is uniform in the angle
            p = math.sin(angle) ** 2
            return p**heads * (1 - p) ** (n - heads)

        return integrate.quad(likelihood, 0, math.pi / 2, epsabs=0)[0] / (math.pi / 2)

    def alarms(k):
        rewards = [0.0] * 40 + [1.0] * k + [0.0] * (40 - k)
        past = past_of([2] * 80, [0] * 80, rewards, [2] * 80)
        return bool(drift_alarms(past, SPACE, PLAIN, 40))

    def wanted(k):
        tests, z = 6 * (3 + 1), k / 80
        return mixture(0, 40) * mixture(k, 40) / (z**k * (1 - z) ** (80 - k)) > tests / DELTA

    assert [alarms(k) for k in range(41)] == [wanted(k) for k in range(41)]
    assert alarms(25)
    assert not alarms(10)


def test_choices_that_follow_outcomes_raise_no_alarm():
    """An agent that tries an action again only after luck: visits depend on what was seen."""
    rng, false = np.random.default_rng(3), 0
    for _ in range(200):
        rewards, states = [], []
        while len(rewards) < 400:
            states.append(2 if not rewards or rewards[-1] == 1.0 else int(rng.integers(3)))
            rewards.append(float(rng.random() < 0.5))
        past = past_of(states, [0] * 400, rewards, [2] * 400)
        false += bool(drift_alarms(past, SPACE, PLAIN, 200))
    assert false <= 11, "at most 2 are expected; more than 11 has a chance below 1e-6"
