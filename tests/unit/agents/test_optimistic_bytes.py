"""Same seed, same bytes: compiled, step by step, split and restored, in a foreign world."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.simulators import Simulator

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

SPACE = wd.StateActions([2, 3, 1])
T = 300
MODEL = wd.DriftingMDP.blend(
    [random_mdp(SPACE, seed, density=0.7) for seed in (1, 2)], wd.schedules.Cosine(2), horizon=T
)
TIGHT = {"kind": "paper", "scale": 0.1}
CASES = {
    "random": {},
    "lowest": {"ties": "lowest"},
    "previous": {"ties": "previous"},
    "sampled": {"ties": "sampled"},
    "sampled with slack": {"ties": "sampled", "slack": 0.2},
    "random with slack": {"slack": 0.3},
    "printed radii": {"radii": "paper"},
    "proof radii": {"radii": "proof"},
    "laplace radii": {"radii": {"kind": "laplace", "bounded": True, "scale": 0.3}},
    "radii with t": {"radii": {"kind": "ucrl2", "scale": 0.2}},
    "window 1": {"window": 1},
    "window 2": {"window": 2, "boundary": "end"},
    "window T": {"window": T},
    "no widening": {"widening": 0.0},
    "widening by pair": {"widening": [0.0, 0.1, 0.2, 0.3, 0.4, 2.5]},
    "cold": {"warm_start": False},
    "reward range": {"reward_range": (-1.0, 3.0)},
    "ucrl2": {"id": "ucrl2"},
    "ucrl2 clipped": {"id": "ucrl2", "clip": True, "slack": 0.1},
}


class Wrapped:
    """A world of the user's own that makes the same draws."""

    def __init__(self, model):
        self.space, self.horizon, self.model = model.space, model.horizon, model

    def reset(self, seed):
        self.inner = Simulator(self.model, seed)
        return self.inner.state

    @property
    def state(self):
        return self.inner.state

    def step(self, action):
        return self.inner.step(action)


def make(options, seed=5):
    given = {"id": "swucrl2-cw", "radii": TIGHT, "seed": seed} | options
    if given["id"] == "swucrl2-cw":
        given = {"window": 40, "widening": 0.2} | given
    return wd.agents.make(given.pop("id"), SPACE, horizon=T, **given)


def looped(agent, start, stop, state, seed=3):
    """Act and observe from t = start to stop - 1; returns what happened and the last state."""
    world, path = Simulator(MODEL, seed, state=state, t=start), []
    for _ in range(start, stop):
        s = world.state
        a = agent.act(s)
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        path.append((s, a, reward))
    return path, world.state


@pytest.fixture(params=[False, True], ids=["table", "hashed"])
def hashed(request, monkeypatch):
    if request.param:
        monkeypatch.setattr("windage.confidence.window._CELLS", 0)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("hashed")
def test_one_learner_however_it_is_run(case):
    agent = make(CASES[case])
    run = wd.run(MODEL, agent, seed=3)
    path = list(zip(run.states[:-1], run.actions, run.rewards, strict=True))
    end = agent.state()

    step_by_step = make(CASES[case])
    assert looped(step_by_step, 1, T + 1, 0)[0] == path
    assert step_by_step.state() == end

    foreign = make(CASES[case])
    again = wd.run(Wrapped(MODEL), foreign, seed=3)
    assert list(zip(again.states[:-1], again.actions, again.rewards, strict=True)) == path
    assert foreign.state() == end
    for name in ("start", "length", "reason", "gain", "span", "sweeps", "vacuous", "ties"):
        mine, theirs = getattr(run.episodes, name), getattr(again.episodes, name)
        assert mine.tolist() == theirs.tolist()

    for cut in (1, 39, 40, 41, 137, T - 1):
        head = make(CASES[case])
        wd.run(MODEL, head, seed=3, steps=cut)
        middle = wd.agents.restore(head.state())
        assert middle.state() == head.state()
        assert wd.run(MODEL, middle, seed=3).actions.tolist() == run.actions[cut:].tolist()
        assert middle.state() == end


def test_counts_in_a_table_or_hashed_are_the_same_state(monkeypatch):
    for case in ("random", "sampled", "ucrl2"):
        table = make(CASES[case])
        wd.run(MODEL, table, seed=3)
        with monkeypatch.context() as patch:
            patch.setattr("windage.confidence.window._CELLS", 0)
            hashed = make(CASES[case])
            assert hashed._window.is_hashed
            wd.run(MODEL, hashed, seed=3)
            assert hashed.state() == table.state()
            assert wd.agents.restore(table.state()).state() == table.state()


@pytest.mark.parametrize("case", ["random", "previous", "sampled", "ucrl2"])
def test_a_run_split_at_every_t(case):
    """Saved after `observe` and again with a decision pending, at every step of one run."""
    whole = make(CASES[case])
    path, _ = looped(whole, 1, 121, 0)
    agent, world = make(CASES[case]), Simulator(MODEL, 3)
    for expected in path:
        agent = wd.agents.restore(agent.state())
        s = world.state
        a = agent.act(s)
        agent = wd.agents.restore(agent.state())
        assert agent.act(s) == a
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        assert (s, a, reward) == expected
    assert agent.state() == whole.state()


def test_hash_tables_of_all_history_grow_without_a_trace(monkeypatch):
    """Room for the first cells only: it is made again and again, in runs and step by step."""
    monkeypatch.setattr("windage.confidence.window._CELLS", 0)
    monkeypatch.setattr("windage.confidence.window._BATCH", 4)
    a, b = make({"id": "ucrl2"}), make({"id": "ucrl2"})
    room = a._window.most_cells
    path = looped(a, 1, 201, 0)
    wd.run(MODEL, b, seed=3, steps=120)
    wd.run(MODEL, b, seed=3, steps=80)
    assert a._window.most_cells > room
    assert a.state() == b.state()
    monkeypatch.undo()
    table = make({"id": "ucrl2"})
    assert looped(table, 1, 201, 0) == path
    assert table.episode == a.episode


def test_threads_do_not_matter():
    def play(seed):
        agent = make({"ties": "sampled" if seed % 2 else "random"}, seed=seed)
        run = wd.run(MODEL, agent, seed=seed)
        return run.actions.tobytes() + run.rewards.tobytes() + agent.state()

    alone = [play(seed) for seed in range(6)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(play, range(6))) == alone
    assert len(set(alone)) == 6


def test_a_decision_withdrawn_at_a_boundary_starts_no_second_episode():
    """A step that failed is asked for again; the episode that began with it is still the same."""
    a, b = make({}), make({})
    looped(a, 1, 120, 0)
    looped(b, 1, 120, 0)
    assert a.t % 40 == 0
    b.act(1)
    b.withdraw()
    assert a.act(1) == b.act(1)
    assert a.state() == b.state()
    assert b.episode.start == 120
    assert b.n_episodes == a.n_episodes


def test_the_past_that_was_preloaded_counts_like_what_was_seen():
    """The same samples, once preloaded and once observed: the same counts, means and radii."""
    rng = np.random.default_rng(0)
    seen, told = make({"window": 50}), make({"window": 50})
    s, samples = 0, []
    for _ in range(70):
        a, after = seen.act(s), int(rng.integers(3))
        samples.append((s, a, float(rng.random()), after))
        seen.observe(*samples[-1])
        s = after
    for sample in samples:
        told.preload(*sample)
    assert (told.t, told.preloaded) == (1, 70)
    told.act(s)
    with pytest.raises(wd.CallOrderError, match="preload at t=1: the agent has started to act"):
        told.preload(*samples[0])
    last = {}
    for s_, a, reward, after in samples[-50:]:
        last.setdefault((s_, a), []).append((reward, after))
    for state in range(3):
        for report in told.explain(state).actions:
            mine = last.get((state, report.action), [])
            assert report.visits == len(mine)
            mean = sum(r for r, _ in mine) / max(1, len(mine))
            assert report.mean_reward == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("window", [30, T, T + 5])
def test_the_past_leaves_the_window_too(window):
    """Recounted after every episode: the last W of what was told and seen, also where W >= T."""
    agent = make({"window": window, "radii": "paper"})
    history = []
    rng = np.random.default_rng(1)
    for _ in range(20):
        s = int(rng.integers(3))
        history.append((s, int(rng.integers(SPACE.counts[s])), 0.5, int(rng.integers(3))))
        agent.preload(*history[-1])
    world, start = Simulator(MODEL, 3), 0
    for t in range(1, T + 1):
        s = world.state
        a = agent.act(s)
        if agent.episode.start > start:
            start = agent.episode.start
            count = np.zeros(SPACE.n_pairs, int)
            for s_, a_, _, _ in history[-window:]:
                count[SPACE.pair(s_, a_)] += 1
            reports = [report for z in range(3) for report in agent.explain(z).actions]
            assert [report.visits for report in reports] == count.tolist(), t
            assert wd.agents.restore(agent.state()).state() == agent.state()
        reward, after = world.step(a)
        agent.observe(s, a, reward, after)
        history.append((s, a, reward, after))
    assert len(history) > window or window > T
