"""BORL: one agent however it is run, what it shows of itself, and its options.

That it is Algorithm 3 at all: `tests/paper/test_algorithm_3_borl.py`.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage import adversarial
from windage.agents.meta.borl import BORL
from windage.rng import stream
from windage.simulators import Simulator
from windage.testing import check_agent

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

SPACE = wd.StateActions([2, 3, 1])
T, H = 300, 40  # eight blocks, the last one of 20 steps
FEW = [(15, 0.1), (70, 0.0), (500, 0.5)]
TIGHT = {"kind": "paper", "scale": 0.1}


def drifting(noise="bernoulli", horizon=T):
    ends = [random_mdp(SPACE, seed, density=0.7) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=horizon, noise=noise)


MODEL = drifting()


def make(seed=5, **options):
    given = {"arms": FEW, "block_length": H, "radii": TIGHT, "seed": seed} | options
    return BORL(SPACE, horizon=T, **given)


def looped(agent, steps, model=MODEL, seed=3):
    """Act and observe; returns the samples."""
    start = agent.last_state or 0
    world, path = Simulator(model, seed, state=start, t=agent.t), []
    for _ in range(steps):
        s = world.state
        a = agent.act(s)
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        path.append((s, a, reward, after))
    return path


CASES = {
    "plain": {},
    "the paper's grid": {"arms": None, "block_length": None, "radii": None},
    "carried": {"carry_window": True},
    "any reward": {"reward_range": None, "carry_window": True},
    "sampled ties": {"ties": "sampled", "slack": 0.1},
    "lowest ties": {"ties": "lowest", "radii": "laplace"},
    "blocks of one step": {"block_length": 1},
    "one long block": {"block_length": 10**6},
    "a whole last block": {"block_length": 50, "carry_window": True},
    **{name: {"master": name} for name in adversarial.names() if name != "exp3p"},
}


@pytest.mark.parametrize("case", CASES)
def test_one_agent_however_it_is_run(case):
    """Compiled, step by step, cut and restored, before and after the first act of a block."""
    model = drifting(wd.Noise.gaussian(0.5)) if case == "any reward" else MODEL
    whole = make(**CASES[case])
    run = wd.run(model, whole, seed=3)
    path, end = list(zip(run.states[:-1], run.actions, run.rewards, strict=True)), whole.state()
    online = make(**CASES[case])
    assert [step[:3] for step in looped(online, T, model)] == path
    assert online.state() == end
    h = min(whole.block_length, 120)
    for cut in sorted({h - 1, h, h + 1, 2 * h, 137} - {0}):
        for asked in (False, True):
            head = make(**CASES[case])
            wd.run(model, head, seed=3, steps=cut)
            action = head.act(head.last_state) if asked else None
            middle = BORL.from_state(head.state())
            assert middle.state() == head.state()
            if asked:
                assert middle.act(middle.last_state) == action == run.actions[cut]
                middle.withdraw()
            tail = wd.run(model, middle, seed=3)
            assert tail.actions.tolist() == run.actions[cut:].tolist()
            starts = run.episodes.start[run.episodes.start > cut].tolist()
            assert tail.episodes.start.tolist() in (starts, starts[1:])
            assert middle.state() == end


@pytest.mark.parametrize("case", ["plain", "carried", "tsallis-inf"])
def test_saved_at_every_step(case):
    whole = make(**CASES[case])
    path = looped(whole, 90)
    agent = make(**CASES[case])
    for s, a, reward, after in path:
        agent = BORL.from_state(agent.state())
        assert agent.act(s) == a
        agent = BORL.from_state(agent.state())
        assert agent.act(s) == a
        agent.observe(s, a, reward, after)
    assert agent.state() == whole.state()


@pytest.mark.parametrize("steps", [0, 39, 40, 41, 280])
def test_saved_after_a_decision_was_withdrawn(steps):
    agent, twin = make(), make()
    looped(agent, steps), looped(twin, steps)
    s = agent.last_state or 0
    action = agent.act(s)
    agent.withdraw()
    again = BORL.from_state(agent.state())
    assert again.state() == agent.state()
    assert again.act(s) == action == twin.act(s)
    assert again.state() == twin.state()


SAME = [(30, 0.0), (30, 0.3)]  # learners of the same size


@pytest.mark.parametrize(
    ("options", "horizon"),
    [
        ({}, 900),
        ({"arms": SAME, "block_length": 25}, 1000),
        ({"arms": SAME, "block_length": 25, "carry_window": True}, 1000),
    ],
)
def test_the_suite_for_agents(options, horizon):
    """From 1,000 steps on also that memory does not grow, over forty blocks."""
    check_agent(
        lambda space, T, seed: BORL(space, horizon=T, seed=seed, **options), horizon=horizon
    )


def test_threads_do_not_matter():
    def play(seed):
        agent = make(seed=seed)
        return wd.run(MODEL, agent, seed=seed).actions.tobytes() + agent.state()

    alone = [play(seed) for seed in range(4)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(play, range(4))) == alone
    assert len(set(alone)) == 4


# --- what it shows -------------------------------------------------------------------------------


def test_blocks_in_columns():
    agent = make()
    assert (len(agent.blocks), agent.blocks.start.size, agent.n_blocks) == (0, 0, 8)
    rewards = []
    for n in range(1, T + 1):
        rewards += [step[2] for step in looped(agent, 1)]
        blocks = agent.blocks
        assert len(blocks) == math.ceil(n / H)
        assert blocks.told.tolist() == [True] * (len(blocks) - 1) + [False]
        assert blocks.length.tolist() == [H] * (len(blocks) - 1) + [n - H * (len(blocks) - 1)]
        mean = math.fsum(rewards[H * (len(blocks) - 1) :]) / blocks.length[-1]
        assert blocks.reward[-1] == pytest.approx(mean, abs=1e-14)
    means = [math.fsum(rewards[i : i + H]) / H for i in range(0, 7 * H, H)]
    assert blocks.reward[:-1].tolist() == pytest.approx(means, abs=1e-14)
    assert blocks.start.tolist() == [1, 41, 81, 121, 161, 201, 241, 281]
    assert blocks.probabilities.shape == (8, 3)
    assert blocks.probabilities.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-12)
    assert blocks.probabilities[0].tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)
    assert repr(blocks) == "BlockLog(8 of 40 steps)"
    for i, block in enumerate(blocks):
        steps = H if i < 7 else T - 7 * H
        assert (block.start, block.length, block.arm) == (1 + H * i, steps, blocks.arm[i])
        assert (block.window, block.widening) == FEW[block.arm]
        assert block.probability == blocks.probabilities[i, block.arm]
        assert (block.reward, block.told) == (blocks.reward[i], i < 7)
    assert blocks[-1].start == 281
    with pytest.raises(IndexError):
        blocks[8]
    blocks.arm[:] = 99
    blocks.probabilities[:] = 99
    assert agent.blocks.arm.max() < 3
    agent.probabilities[:] = 99
    assert agent.probabilities.max() < 1


def test_explanations():
    agent = make()
    for fresh in (agent, BORL.from_state(agent.state())):
        with pytest.raises(wd.CallOrderError, match="explain: nothing has been planned yet"):
            fresh.explain(0)
    looped(agent, 250)
    before, blocks, said = agent.state(), agent.blocks, agent.explain(1)
    assert agent.state() == before
    assert (said.block, said.of, said.arm) == (7, 8, blocks.arm[6])
    assert said.gamma == pytest.approx(1.05 * math.sqrt(3 * math.log(3) / 8))
    played = np.bincount(blocks.arm[:6], minlength=3)
    for k, arm in enumerate(said.arms):
        assert ((arm.window, arm.widening), arm.played) == (FEW[k], played[k])
        assert (arm.probability, arm.at_first) == (agent.probabilities[k], 1 / 3)
        mean = blocks.reward[:6][blocks.arm[:6] == k]
        if mean.size:
            assert arm.mean_reward == pytest.approx(mean.mean())
        else:
            assert math.isnan(arm.mean_reward)
    own = agent.runner.explain(1)
    assert said.learner == replace(own, start=own.start + 240)  # the seventh block is of t = 241
    assert said.learner.start == agent.episode.start
    lines = str(said).splitlines()
    assert lines[0] == f"block 7 of 8, arm {said.arm}"
    assert not any("above 1" in line for line in lines)
    rows = lines[2:5]
    assert [row[3] == "*" for row in rows] == [k == said.arm for k in range(3)]
    assert [row.split()[-1] == "-" for row in rows] == [n == 0 for n in played]
    for k, row in enumerate(rows):
        numbers = row.replace("*", " ").split()
        assert (int(numbers[0]), int(numbers[1]), float(numbers[2])) == (k, *FEW[k])
        assert float(numbers[3]) == pytest.approx(agent.probabilities[k], abs=5e-5)
    assert "\n".join(lines[5:]) == str(said.learner)
    with pytest.raises(wd.InputError):
        agent.explain(3)


def test_explanations_of_masters_without_a_gamma_and_with_too_large_a_one():
    agent = make(master="tsallis-inf")
    looped(agent, 50)
    assert agent.explain(0).gamma == 0.0
    small = make(block_length=T // 2)
    looped(small, 1)
    assert "gamma = 1.35 is above 1 and cut at 1: 2 blocks are too few for 3" in str(
        small.explain(0)
    )


def test_episodes_are_dated_by_the_run_and_end_with_blocks():
    run = wd.run(MODEL, make(), seed=3)
    starts, ends = run.episodes.start, run.episodes.start + run.episodes.length
    borders = set(range(1 + H, T + 1, H))
    assert borders <= set(starts.tolist())
    assert ends[:-1].tolist() == starts[1:].tolist()
    for end, reason in zip(ends, run.episodes.reason, strict=True):
        assert (reason == "restart") == (end in borders)
    assert run.episodes.reason[-1] == "open"
    assert {"visits", "boundary"} <= set(run.episodes.reason)


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("block_length", "arms"), [(10, FEW[:2]), (40, FEW)])
def test_a_carried_window_holds_the_last_samples_of_the_run(block_length, arms):
    """Recounted at every episode: the last W of all samples, whichever arm collected them."""
    agent = make(carry_window=True, block_length=block_length, arms=arms, seed=2)
    world, history, first = Simulator(MODEL, 3), [], 0
    for t in range(1, T + 1):
        s = world.state
        a = agent.act(s)
        W = agent.arms[agent.blocks.arm[-1]][0]
        if (t - 1) % block_length == 0:
            assert agent.runner.preloaded == min(W, t - 1)
            first += block_length < W < t
        if agent.episode.start == t:
            mine = {}
            for pair, reward, after in history[max(0, len(history) - W) :]:
                mine.setdefault(pair, []).append((reward, after))
            counts = np.zeros((SPACE.n_pairs, 3))
            for pair, seen in mine.items():
                for _, after in seen:
                    counts[pair, after] += 1 / len(seen)
            assert agent.runner.region().p_hat.toarray() == pytest.approx(counts, abs=1e-12)
            for z in range(3):
                for report in agent.explain(z).learner.actions:
                    seen = mine.get(SPACE.pair(z, report.action), [])
                    mean = math.fsum(r for r, _ in seen) / max(1, len(seen))
                    assert report.visits == len(seen)
                    assert report.mean_reward == pytest.approx(mean, abs=1e-12)
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        history.append((SPACE.pair(s, a), reward, after))
    assert first > 0
    assert set(agent.blocks.arm.tolist()) == set(range(len(arms)))


@pytest.mark.parametrize("master", adversarial.names())
def test_masters_are_told_and_asked_block_by_block(master):
    """One of the same kind, told the rewards of the blocks, has the same probabilities and arms."""
    agent, alone = make(master=master, block_length=10), adversarial.make(master, 3, 30)
    wd.run(MODEL, agent, seed=3)
    for i, block in enumerate(agent.blocks):
        assert agent.blocks.probabilities[i].tolist() == alone.probabilities.tolist()
        assert block.arm == alone.choose(stream(5, "agents.borl", i).random())
        if i < 29:
            alone.update(block.arm, block.reward)
    assert np.ptp(alone.probabilities) > 0.01
    assert agent.probabilities.tolist() == alone.probabilities.tolist()


def test_same_seed_same_agent_and_another_seed_another():
    runs = [wd.run(MODEL, make(seed=seed), seed=3).actions.tobytes() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    drawn = {tuple(played(seed).blocks.arm) for seed in range(6)}
    assert len(drawn) > 1


def played(seed, **options):
    agent = make(seed=seed, **options)
    wd.run(MODEL, agent, seed=3)
    return agent


def test_blocks_have_tie_draws_of_their_own():
    """Printed radii: all actions are alike, and only ties decide; no block repeats another."""
    agent = make(arms=FEW[:1], radii=None, block_length=50)
    actions = [tuple(a for _, a, _, _ in stuck(agent, 50)) for _ in range(6)]
    assert len(set(actions)) == 6
    again = make(arms=FEW[:1], radii=None, block_length=50)
    assert [tuple(a for _, a, _, _ in stuck(again, 50)) for _ in range(6)] == actions
    seeds = {agent._learner_seed(i) for i in range(6)}
    assert len(seeds) == 6
    assert agent.runner.seed == agent._learner_seed(5)
    assert min(seeds) > 2**64  # none that anybody would choose for a learner beside it


def stuck(agent, steps):
    """State 1, three actions, all with reward 1."""
    path = []
    for _ in range(steps):
        a = agent.act(1)
        agent.observe(1, a, 1.0, 1)
        path.append((1, a, 1.0, 1))
    return path
