"""One loop plays every agent: what it does is act, step, observe, by hand as in a kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.kernels import rollout
from windage.kernels.jit import interpreted
from windage.kernels.rollout import Block, Census, Policies, Uniform, act, memory_counts, observe
from windage.kernels.simulator import AHEAD, step
from windage.rng import key
from windage.simulate import world_of

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # whole numbers wrap

SPACE = wd.StateActions([2, 1, 3])
T = AHEAD + 190  # noise is drawn a second time
MODEL = wd.DriftingMDP.blend(
    [random_mdp(SPACE, seed) for seed in (1, 2)], wd.schedules.Cosine(2), horizon=3 * T
)
WIDE = (-np.inf, np.inf)


class Fair(NamedTuple):
    """An agent of these tests: the pair played least, and from some time on no plan."""

    offsets: np.ndarray
    visits: np.ndarray  # [pairs]
    seen: np.ndarray  # [4] the last t, state, reward and next state
    stop: int
    shown: np.ndarray  # [1] the sum of all that steps showed


@act.register(Fair)
def _least_played(agent, t, s):
    best = agent.offsets[s]
    for p in range(agent.offsets[s], agent.offsets[s + 1]):
        if agent.visits[p] < agent.visits[best]:
            best = p
    return best if t < agent.stop else np.int64(-1)


@observe.register(Fair)
def _count(agent, t, s, pair, reward, after, seen):
    agent.visits[pair] += 1
    agent.shown[0] += seen.sum()
    agent.seen[0], agent.seen[1], agent.seen[2], agent.seen[3] = t, s, reward, after


@memory_counts.register(Fair)
def _visits(agent, counts):
    for p in range(counts.size):
        counts[p] = agent.visits[p]


def fair(stop=10**9):
    offsets = np.ascontiguousarray(SPACE.offsets, np.int64)
    return Fair(offsets, np.zeros(SPACE.n_pairs, np.int64), np.zeros(4), stop, np.zeros(1))


def uniform():
    return Uniform(SPACE.offsets, SPACE.counts.astype(np.uint64), key(3, "test"))


def policies():
    rng = np.random.default_rng(0)
    drawn = SPACE.offsets[:-1] + rng.integers(0, SPACE.counts, (3 * T, SPACE.n_states))
    return Policies(drawn, 1)


# agents of these tests are not compiled: a cache that is shared must not hold their class
KINDS = {
    "uniform": (uniform, rollout),
    "policies": (policies, rollout),
    "fair": (fair, None),
    "uniform, interpreted": (uniform, None),
}


@pytest.fixture(params=KINDS)
def kind(request):
    """A new agent, and how a function of the loop is called for it."""
    make, module = KINDS[request.param]
    if module is not None:
        return make, lambda name: getattr(rollout, name)
    return make, lambda name: interpreted(getattr(rollout, name))


def by_hand(make, call, model, state, t, n):
    """The steps from time t on, one after another, as a block."""
    agent, block = make(), Block.empty(n)
    for i in range(n):
        pair = call("decide")(agent, t + i, state)
        mean, reward, after = step(model, t + i, pair)
        call("learn")(agent, t + i, state, pair, reward, after, model.seen)
        block.states[i], block.pairs[i] = state, pair
        block.rewards[i], block.means[i] = reward, mean
        state = after
    return agent, block, state


def plain(value):
    """All numbers of an agent or a block."""
    return [x.tolist() if isinstance(x, np.ndarray) else x for x in value]


@pytest.mark.parametrize("ahead", [0, 7])
def test_a_loop_is_act_step_observe(kind, ahead):
    make, call = kind
    model = world_of(MODEL, 5, 1, 3 * T)._replace(ahead=ahead, seen=np.array([[1, 2]]))
    agent, block = make(), Block.empty(T)
    state, n, how = call("play")(agent, *WIDE, model, 2, 4, *block.columns)
    twin, expected, last = by_hand(make, call, model, 2, 4, T)
    assert (state, n, how) == (last, T, rollout.PLAYED)
    assert plain(block) == plain(expected)
    assert plain(agent) == plain(twin)
    assert not isinstance(agent, Fair) or agent.shown[0] == 3 * T
    assert len(set(block.pairs.tolist())) == SPACE.n_pairs


def test_pieces_are_the_whole(kind):
    make, call = kind
    model = world_of(MODEL, 5, 1, 3 * T)
    agent, block = make(), Block.empty(T)
    state = call("play")(agent, *WIDE, model, 0, 1, *block.columns)[0]
    twin, other, at, first = make(), Block.empty(T), 0, 0
    for last in (1, 60, AHEAD + 1, T):
        part = other.part(first, last)
        at, n, _ = call("play")(twin, *WIDE, model, at, 1 + first, *part.columns)
        first += n
    assert (at, first) == (state, T)
    assert plain(other) == plain(block)
    assert plain(twin) == plain(agent)
    assert plain(other.head(9)) == plain(other.part(0, 9))
    assert np.shares_memory(other.head(9).states, other.states)


def test_a_loop_ends_before_what_cannot_be_played():
    """A plan that failed, or a reward out of range, which is left for whoever reports it."""
    model = world_of(MODEL, 5, 1, 3 * T)
    play, agent, block = interpreted(rollout.play), fair(stop=31), Block.empty(T)
    state, n, how = play(agent, *WIDE, model, 0, 1, *block.columns)
    assert (n, how) == (30, rollout.NOT_CONVERGED)
    assert agent.visits.sum() == 30
    assert agent.seen[[0, 3]].tolist() == [30, state]
    agent, again = fair(), Block.empty(T)
    state, n, how = play(agent, 0.5, 1.0, model, 0, 1, *again.columns)
    assert how == rollout.OUT_OF_RANGE
    assert n == int(np.argmax(block.rewards[:30] == 0.0)) > 0
    assert again.rewards[n] == 0.0
    assert agent.visits.sum() == n
    assert state == again.states[n] == agent.seen[3]


@pytest.mark.parametrize("every", [1, 13, T, 2 * T])
@pytest.mark.parametrize("ahead", [0, 7])
def test_memory_is_counted_at_multiples_of_the_models_time(every, ahead):
    model = world_of(MODEL, 5, 1, 3 * T)._replace(ahead=ahead)
    n_counts = (T + ahead) // every - ahead // every
    counts = np.full((n_counts, SPACE.n_pairs), -1)
    counting, agent, block = interpreted(rollout.play_counting), fair(), Block.empty(T)
    times = every * (ahead // every + 1 + np.arange(n_counts))
    census = Census(every, times, counts)
    if n_counts:
        assert census.before == ahead // every
    before = ahead // every
    end = counting(agent, *WIDE, model, 0, 1, *block.columns, every, before, counts)
    twin, expected = fair(), Block.empty(T)
    assert end == interpreted(rollout.play)(twin, *WIDE, model, 0, 1, *expected.columns)
    assert plain(block) == plain(expected)
    assert plain(agent) == plain(twin)
    for time, row in zip(times.tolist(), counts.tolist(), strict=True):
        played = block.pairs[: time - ahead]
        assert row == np.bincount(played, minlength=SPACE.n_pairs).tolist()


def test_counting_stops_where_the_loop_stops():
    model = world_of(MODEL, 5, 1, 3 * T)
    counts, block = np.full((T // 10, SPACE.n_pairs), -1), Block.empty(T)
    counting, agent = interpreted(rollout.play_counting), fair(stop=36)
    _, n, how = counting(agent, *WIDE, model, 0, 1, *block.columns, 10, 0, counts)
    assert (n, how) == (35, rollout.NOT_CONVERGED)
    assert counts.sum(axis=1)[:4].tolist() == [10, 20, 30, -SPACE.n_pairs]


def test_a_replay_acts_everywhere_and_learns_from_outcomes():
    rng = np.random.default_rng(1)
    n = 200
    states, learned = rng.integers(0, SPACE.n_states, n), rng.random(n) < 0.7
    pairs = SPACE.offsets[states] + rng.integers(0, SPACE.counts[states])
    rewards, afters = rng.random(n), rng.integers(0, SPACE.n_states, n)
    advised, agent, twin, t = np.empty(n, np.int64), fair(), fair(), 5
    replay = interpreted(rollout.replay)
    told = rng.integers(0, 9, (n, 3, 2))
    found = replay(agent, 5, states, learned, pairs, rewards, afters, told, advised)
    for i in range(n):
        assert advised[i] == interpreted(rollout.decide)(twin, t, states[i])
        if learned[i]:
            step_ = (states[i], pairs[i], rewards[i], afters[i], told[i])
            interpreted(rollout.learn)(twin, t, *step_)
            t += 1
    assert found == (t, n) == (5 + learned.sum(), n)
    assert plain(agent) == plain(twin)
    done = replay(fair(stop=20), 5, states, learned, pairs, rewards, afters, told, advised)
    assert done == (20, int(np.searchsorted(np.cumsum(learned), 15)) + 1)
