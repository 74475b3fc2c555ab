"""Algorithm 3, BORL: blocks and EXP3.P against the reference, the grid in 50 digits (spec 1.10).

In its blocks the reference has the compiled SWUCRL2-CW here, so that all its options can be played;
`tests/unit/reference/test_borl.py` has the reference alone. The place where draws are found is the
library's: arm i is drawn with stream(seed, "agents.borl", i), counted from 0, and its learner has
the two words of its own address as seed.
"""

from __future__ import annotations

import math
import warnings
from itertools import pairwise

import mpmath
import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage import reference
from windage.agents.meta.borl import BORL
from windage.confidence.tuning import borl_grid
from windage.rng import key

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

TIGHT = {"kind": "paper", "scale": 0.1}


# --- the twin ------------------------------------------------------------------------------------


def learner_seed(seed, block):
    high, low = key(seed, f"agents.borl/{block}")
    return int(high) * 2**64 + int(low)


def literal_grid(pairs, S, T):
    """Lines 1 to 3: H, windows and widenings of the corrected grid, in 50 digits."""
    with mpmath.workdps(50):
        A, third = mpmath.mpf(pairs) / S, mpmath.mpf(1) / 3
        H = 3 * mpmath.mpf(S) ** (2 * third) * mpmath.sqrt(A) * mpmath.sqrt(T)
        low = 1 / (2 * mpmath.sqrt(T))
        falls = [int(mpmath.floor(mpmath.log(x))) for x in (H, 1 / low)]
        windows = [int(mpmath.floor(H ** (mpmath.mpf(j) / falls[0]))) for j in range(falls[0] + 1)]
        top = mpmath.mpf(S) ** third * A ** (mpmath.mpf(1) / 4)
        powers = [0, *(mpmath.mpf(k) / falls[1] for k in range(1, falls[1] + 1))]
        widenings = [float(min(2, top * low**power)) for power in powers]
        return float(H), min(T, int(mpmath.ceil(H))), windows, widenings


class Twin(reference.BORL):
    """The reference with the compiled SWUCRL2-CW in its blocks, played in a simulated world."""

    def __init__(self, model, seed, world_seed, arms=None, block_length=None, **options):
        T = model.horizon
        super().__init__(model.space, horizon=T, arms=arms, block_length=block_length, seed=seed)
        self.passed_on = {"reward_range": (0.0, 1.0), **options}
        self.path, self.starts = [], []
        world = wd.simulate.Simulator(model, world_seed)
        for t in range(1, T + 1):
            s = world.state
            a = self.act(s)
            if self.learner.episode.length == 0:
                self.starts.append((t, self.learner.episode.gain, self.learner.episode.sweeps))
            reward, after = world.step(a)
            self.observe(s, a, reward, after)
            self.path.append((s, a, reward))
        self.drawn = [block.arm for block in self.blocks]
        self.likely = [block.probabilities for block in self.blocks]

    def restarted(self, block, W, eta):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return wd.SWUCRL2CW(
                self.space, horizon=self.horizon, window=W, widening=eta,
                seed=learner_seed(self.seed, block), **self.passed_on,
            )  # fmt: skip


# --- same arms, same actions, same probabilities -------------------------------------------------


def ragged(horizon):
    space = wd.StateActions([2, 3, 1])
    ends = [random_mdp(space, seed, density=0.7) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon)


WORLDS = {
    "two-state-cosine": lambda: wd.envs.make("two-state-cosine", horizon=1300),
    "riverswim": lambda: wd.envs.make("riverswim", horizon=1500),
    "ragged": lambda: ragged(1100),
    "bandit": lambda: wd.envs.make("bandit", horizon=1200),
}
FEW = [(25, 0.1), (60, 0.0), (400, 0.5)]
CASES = {
    "the paper's": {},
    "tight radii": {"radii": TIGHT},
    "few arms": {"radii": TIGHT, "arms": FEW, "block_length": 37},
    "two arms, lowest ties": {"arms": FEW[:2], "block_length": 20, "ties": "lowest"},
    "twice the same arm": {"arms": [FEW[0], FEW[0], FEW[2]], "block_length": 50, "radii": TIGHT},
    "one arm": {"arms": FEW[:1], "block_length": 100, "slack": 0.1, "ties": "sampled"},
    "delta": {"delta": 0.4, "arms": FEW, "block_length": 29, "radii": "laplace"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("world", WORLDS)
def test_algorithm_3_line_by_line(world, case):
    model, options = WORLDS[world](), CASES[case]
    agent = BORL(model.space, horizon=model.horizon, seed=7, **options)
    twin = Twin(model, 7, 3, **options)
    assert (agent.block_length, agent.n_blocks) == (twin.block_length, len(twin.drawn))
    assert [W for W, _ in agent.arms] == [W for W, _ in twin.arms]
    assert [eta for _, eta in agent.arms] == pytest.approx([e for _, e in twin.arms], rel=1e-14)
    run = wd.run(model, agent, seed=3)
    blocks = agent.blocks
    assert blocks.arm.tolist() == twin.drawn
    assert np.abs(blocks.probabilities - twin.likely).max() <= 1e-12
    assert np.abs(agent.probabilities - twin.likely[-1]).max() <= 1e-12  # no choice follows
    assert blocks.reward[:-1].tolist() == pytest.approx(twin.heard[:-1], abs=1e-14)
    path = zip(run.states[:-1].tolist(), run.actions.tolist(), run.rewards.tolist(), strict=True)
    assert list(path) == twin.path
    assert run.episodes.start.tolist() == [t for t, _, _ in twin.starts]
    assert run.episodes.gain.tolist() == pytest.approx([g for _, g, _ in twin.starts], abs=1e-9)
    assert run.episodes.sweeps.tolist() == [n for _, _, n in twin.starts]
    if len(agent.arms) > 1 and "arms" in options:  # otherwise gamma is 1, and nothing is learned
        assert np.ptp(twin.likely[-1]) > 1e-3
        assert len(set(twin.drawn)) > 1


def test_the_cases_have_short_last_blocks_and_whole_ones():
    horizons = [make().horizon for make in WORLDS.values()]
    assert all(T % 37 and T % 29 for T in horizons)
    assert all(T % 20 == 0 for T in horizons)


@pytest.mark.parametrize(("world", "T"), [("two-state-cosine", 40), ("riverswim", 190)])
def test_one_block_where_h_is_at_least_t(world, T):
    """One arm is drawn for all of T; a GuaranteeWarning says so (E5)."""
    model = wd.envs.make(world, horizon=T)
    with pytest.warns(wd.GuaranteeWarning, match=f"one block of {T} steps holds all of T = {T}"):
        agent = BORL(model.space, horizon=T, seed=2)
    run, twin = wd.run(model, agent, seed=5), Twin(model, 2, 5)
    assert (agent.n_blocks, agent.block_length) == (1, T)
    assert run.actions.tolist() == [a for _, a, _ in twin.path]
    assert agent.blocks.arm.tolist() == twin.drawn
    assert not agent.blocks.told.any()


def test_rewards_in_another_unit():
    """R -> 5 R - 2, declared: the same arms, actions and probabilities."""
    model = ragged(900)
    options = {"arms": FEW, "block_length": 45, "radii": TIGHT, "seed": 3}

    class Rescaled:
        space, horizon = model.space, model.horizon

        def reset(self, seed):
            self.inner = wd.simulate.Simulator(model, seed)
            return self.inner.state

        def step(self, action):
            reward, after = self.inner.step(action)
            return 5 * reward - 2, after

    a, b = (
        BORL(model.space, horizon=900, reward_range=unit, **options)
        for unit in ((0.0, 1.0), (-2.0, 3.0))
    )
    here, there = wd.run(model, a, seed=1), wd.run(Rescaled(), b, seed=1)
    assert here.actions.tolist() == there.actions.tolist()
    assert np.abs(a.blocks.probabilities - b.blocks.probabilities).max() < 1e-12
    assert b.blocks.reward[:-1].tolist() == pytest.approx(a.blocks.reward[:-1].tolist(), abs=1e-12)


# --- the grid ------------------------------------------------------------------------------------

SIZES = [([1], 1), ([3], 2), ([2, 2], 5_000), ([2, 3, 1], 777), ([2] * 6, 100_000),
         ([4] * 20, 10**6), ([4] * 20, 5_000), ([10] * 100, 10_000), ([2, 1], 10**9)]  # fmt: skip


@pytest.mark.parametrize(("actions", "T"), SIZES)
def test_the_grid_in_fifty_digits(actions, T):
    space = wd.StateActions(actions)
    H, length, windows, widenings = literal_grid(space.n_pairs, space.n_states, T)
    grid = borl_grid(space, T)
    assert grid.length == pytest.approx(H, rel=1e-14)
    assert (grid.block_length, grid.blocks) == (length, math.ceil(T / length))
    assert list(grid.windows) == windows
    assert list(grid.widenings) == pytest.approx(widenings, rel=1e-14)
    twin = reference.BORL(space, horizon=T)
    assert twin.block_length == length
    assert [W for W, _ in twin.arms[:: len(widenings)]] == windows
    assert [eta for _, eta in twin.arms[: len(widenings)]] == pytest.approx(widenings, rel=1e-14)


@pytest.mark.parametrize(("actions", "T"), SIZES[2:])
def test_some_arm_is_near_the_best_for_any_budgets(actions, T):
    """The coverage argument of Theorem 2's proof, with floors, caps and sqrt(3) minded (E21, E29).

    W* and eta* real, capped at T and 2. A window is at most W* and, rounded up, W* is at most its
    ratio above; a widening is at least eta* and at most its ratio above, or the grid ends less than
    a factor of 2 below eta*.
    """
    space = wd.StateActions(actions)
    grid = borl_grid(space, T)
    ratio = grid.length ** (1 / max(1, math.floor(math.log(grid.length))))
    fall = (2 * math.sqrt(T)) ** (1 / max(1, math.floor(math.log(2 * math.sqrt(T)))))
    budgets = [0.0, *np.geomspace(1e-3, T - 1, 25)]
    for Br in budgets:
        for Bp in [*budgets, 2.0 * (T - 1)]:
            W = wd.optimal_window(space, T, Br, Bp)
            eta = min(2.0, wd.optimal_widening(space, T, Br, Bp))
            below = max(w for w in grid.windows if w <= W)
            assert min(W, T) <= ratio * (below + 1) * (1 + 1e-12)
            above = [e for e in grid.widenings if e >= eta]
            if above:
                assert min(above) <= fall * eta * (1 + 1e-12)
            else:
                assert grid.widenings[0] < eta <= 2 * grid.widenings[0]
            assert grid.widenings[-1] < eta


def test_arms_are_window_major():
    space = wd.StateActions.uniform(2, 2)
    agent = BORL(space, horizon=5_000)
    grid = borl_grid(space, 5_000)
    rows = [agent.arms[i : i + 5] for i in range(0, 35, 5)]
    assert [{W for W, _ in row} for row in rows] == [{W} for W in grid.windows]
    assert all([eta for _, eta in row] == list(grid.widenings) for row in rows)
    assert all(x > y for x, y in pairwise(grid.widenings))


def test_duplicates_are_kept():
    """Two widenings meet at the cap of 2; each is an arm of its own."""
    agent = BORL(wd.StateActions.uniform(200, 10), horizon=100_000)
    assert [eta for _, eta in agent.arms[:3]] == [2.0, 2.0, pytest.approx(1.2115, abs=1e-4)]
    assert len(agent.arms) == 12 * 7
    assert len(set(agent.arms)) == 12 * 6
    assert agent.probabilities.size == 12 * 7
