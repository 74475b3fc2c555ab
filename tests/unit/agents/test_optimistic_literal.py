"""Episodes, actions and gains of whole runs, against Algorithms 1 and 2 written down literally.

The reference below is the paper's pseudo-code with E1 (the test of line 7 comes after a step) and
E8 (a pair never visited may do anything), recounted from the history at every episode; it shares no
line with the library. It is shown the states and rewards of a run and must come to the same
episodes and actions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

RUNS = 1000
ROUNDING = 1e-12  # values this close are ties: equal up to the order of summation


def best_value(p, d, u, order):
    """The inner maximum: d / 2 of the mass moves to the best state, the worst ones lose it."""
    q, best = list(p), order[-1]
    q[best] = min(1.0, p[best] + d / 2)
    excess = q[best] - p[best]
    for s in order[:-1]:
        q[s] = max(0.0, p[s] - excess)
        excess -= p[s] - q[s]
    return sum(x * y for x, y in zip(q, u, strict=True))


def literal_evi(actions, r, p, d, epsilon):
    """Algorithm 2 from u = 0; p[s][a] is None where anything may happen (E8)."""
    u = [0.0] * len(actions)
    while True:
        order = sorted(range(len(u)), key=lambda s: (u[s], s))
        values = [[0.0] * n for n in actions]
        for s, n in enumerate(actions):
            for a in range(n):
                anything = p[s][a] is None or d[s][a] >= 2
                hope = max(u) if anything else best_value(p[s][a], d[s][a], u, order)
                values[s][a] = r[s][a] + hope
        gaps = [max(values[s]) - u[s] for s in range(len(actions))]
        if max(gaps) - min(gaps) <= epsilon:
            return values, max(gaps), u
        u = [max(v) - min(map(max, values)) for v in values]


class Literal:
    """Algorithm 1. `rad(n, tau)` gives both radii, `period` and `phase` are the boundaries of E1.

    `step` is told the action the agent played, and only where two actions are equal up to rounding
    does it take the agent's word for which of them is the lowest.
    """

    def __init__(self, actions, W, eta, rad, period, phase, clip):
        self.actions, self.W, self.eta, self.rad = actions, W, eta, rad
        self.period, self.phase, self.clip = period, phase, clip
        self.history, self.episodes, self.reasons, self.split = [], [], [], 0

    def is_over(self, t, s):
        if not self.episodes:
            return "first"
        if self.period and t % self.period == self.phase:
            return "boundary"
        a = self.policy.get(s)
        over = a is not None and self.nu.get((s, a), 0) >= max(1, self.N[s][a])
        return "visits" if over else ""

    def begin(self, tau):
        S = len(self.actions)
        self.nu, self.policy = {}, {}
        window = self.history[max(0, tau - 1 - self.W) :]
        self.N, r, p, d = ([[None] * n for n in self.actions] for _ in range(4))
        seen = {}
        for s, a, x, after in window:
            seen.setdefault((s, a), []).append((x, after))
        for s in range(S):
            for a in range(self.actions[s]):
                mine = seen.get((s, a), [])
                n = len(mine)
                rad_r, rad_p = self.rad(max(1, n), tau)
                r_hat = math.fsum(x for x, _ in mine) / max(1, n)
                r[s][a] = r_hat + rad_r
                if self.clip:
                    r[s][a] = min(1.0, max(0.0, r[s][a])) if n else 1.0
                p[s][a] = [sum(y == z for _, y in mine) / n for z in range(S)] if n else None
                d[s][a] = rad_p + self.eta[s][a]
                self.N[s][a] = n
        self.values, gain, u = literal_evi(self.actions, r, p, d, 1 / math.sqrt(tau))
        self.episodes.append((tau, gain, max(u) - min(u)))

    def step(self, t, s, played, reward, after):
        reason = self.is_over(t, s)
        if reason:
            self.reasons.append(reason)
            self.begin(t)
        if s not in self.policy:
            value = self.values[s]
            near = [a for a, v in enumerate(value) if v >= max(value) - ROUNDING]
            self.split += played in near and played != near[0]
            self.policy[s] = played if played in near else near[0]
        a = self.policy[s]
        self.nu[s, a] = self.nu.get((s, a), 0) + 1
        self.history.append((s, a, reward, after))
        return a


def over_pairs(space, numbers):
    return [
        [float(numbers[space.pair(s, a)]) for a in range(n)] for s, n in enumerate(space.counts)
    ]


def paper_radii(space, T, delta, scale):
    S, L = space.n_states, math.log(space.n_pairs * T / delta)
    return lambda N, tau: (
        scale * 2 * math.sqrt(2 * L / N), scale * 2 * math.sqrt(2 * S * L / N),
    )  # fmt: skip


def ucrl2_radii(space, delta, scale):
    S, SA = space.n_states, space.n_pairs
    return lambda N, tau: (
        scale * math.sqrt(7 * math.log(2 * SA * tau / delta) / (2 * N)),
        scale * math.sqrt(14 * S * math.log(2 * (SA / S) * tau / delta) / N),
    )


def draw_world(rng, seed):
    """A drifting model with one to five states and ragged action sets."""
    space = wd.StateActions(rng.integers(1, 4, size=rng.integers(1, 6)).tolist())
    T = int(min(rng.integers(1, 201, size=2)))
    noise = rng.choice(["bernoulli", "none"])
    ends = [random_mdp(space, 2 * seed + k, density=0.6) for k in range(2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(1), horizon=T, noise=noise)


def draw_window(rng, T):
    return int(rng.choice([1, 2, rng.integers(1, T + 1), rng.integers(1, T + 1), T, T + 1, 3 * T]))


def replayed(reference, run, space):
    """Let the reference go through a run; compare everything, and return it."""
    for i in range(run.steps):
        s, a = int(run.states[i]), int(run.actions[i])
        mine = reference.step(i + 1, s, a, float(run.rewards[i]), int(run.states[i + 1]))
        assert mine == a, f"t={i + 1}"
    starts, gains, spans = (list(column) for column in zip(*reference.episodes, strict=True))
    assert run.episodes.start.tolist() == starts
    assert ["first", *run.episodes.reason[:-1]] == reference.reasons
    assert run.episodes.gain == pytest.approx(gains, abs=1e-9)
    assert run.episodes.span == pytest.approx(spans, abs=1e-9)
    return reference


@pytest.mark.parametrize("boundary", ["start", "end"])
def test_swucrl2cw_is_algorithm_1(boundary):
    reasons, split = set(), 0
    for seed in range(RUNS // 2):
        rng = np.random.default_rng([seed, boundary == "end"])
        model = draw_world(rng, seed)
        space, T = model.space, model.horizon
        W = draw_window(rng, T)
        eta = rng.choice([0.0, 0.1, 0.5, 1.9, 2.5])
        eta = eta if rng.random() < 0.7 else eta * rng.random(space.n_pairs)
        scale = 1.0 if rng.random() < 0.3 else rng.uniform(0.05, 0.3)
        delta = rng.uniform(0.01, 0.5)
        agent = wd.SWUCRL2CW(
            space, horizon=T, window=W, widening=eta, delta=delta,
            radii=wd.Radii.paper().scaled(scale), ties="lowest", warm_start=False,
            boundary=boundary,
        )  # fmt: skip
        run = wd.run(model, agent, seed=seed)
        # E1: the blocks are [jW, (j + 1)W - 1], or 1..W, W + 1..2W, ...
        phase = 0 if boundary == "start" else 1 % W
        widths = over_pairs(space, np.broadcast_to(eta, space.n_pairs))
        rad = paper_radii(space, T, delta, scale)
        reference = Literal(space.counts.tolist(), W, widths, rad, W, phase, clip=True)
        replayed(reference, run, space)
        reasons |= set(reference.reasons)
        split += reference.split
    assert reasons == {"first", "boundary", "visits"}
    assert split == 0


@pytest.mark.parametrize("clip", [False, True])
def test_ucrl2_is_the_same_with_all_history_and_its_own_radii(clip):
    split, longest = 0, 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 2 + clip])
        model = draw_world(rng, 5000 + seed)
        space, T = model.space, model.horizon
        scale, delta = rng.choice([1.0, 0.3, 0.1]), rng.uniform(0.01, 0.5)
        agent = wd.UCRL2(
            space, horizon=T, delta=delta, radii=wd.Radii.ucrl2().scaled(scale), clip=clip,
            ties="lowest", warm_start=False,
        )  # fmt: skip
        run = wd.run(model, agent, seed=seed)
        none = over_pairs(space, np.zeros(space.n_pairs))
        rad = ucrl2_radii(space, delta, scale)
        reference = Literal(space.counts.tolist(), T, none, rad, 0, 0, clip)
        replayed(reference, run, space)
        assert set(reference.reasons[1:]) <= {"visits"}
        longest = max(longest, int(run.episodes.length.max()))
        split += reference.split
    assert longest > 10
    assert split == 0


def test_windows_beyond_the_horizon_are_all_history():
    """With W > T and no widening, SWUCRL2-CW is the all-history learner with the same radii."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = draw_world(rng, seed)
        space, T = model.space, model.horizon
        # an agent's draws hang on its id: a tie rule without draws is needed to compare
        options = {"radii": wd.Radii.paper().scaled(0.1), "ties": "lowest"}
        window = wd.SWUCRL2(space, horizon=T, window=T + 1, **options)
        a = wd.run(model, window, seed=seed)
        b = wd.run(model, wd.UCRL2(space, horizon=T, clip=True, **options), seed=seed)
        assert a.actions.tolist() == b.actions.tolist()
        assert a.episodes.start.tolist() == b.episodes.start.tolist()
        assert a.episodes.gain.tolist() == b.episodes.gain.tolist()
