"""Episodes in columns: consistent with the run, recounted from its history."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import windage as wd
from tests.models import draw_model
from windage.agents.episodes import RECENT, Episode, Episodes, no_rows, put_rows, rows_of
from windage.recording import EpisodeTape
from windage.simulators import Simulator

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

RIVER = wd.envs.make("riverswim", horizon=30_000)


def river_agent(**options):
    given = {"window": 300, "widening": 0.2, "radii": {"kind": "paper", "scale": 0.1}, "seed": 2}
    return wd.SWUCRL2CW(RIVER.space, horizon=RIVER.horizon, **given | options)


def test_episodes_tile_the_run():
    run = wd.run(RIVER, river_agent(), seed=1, steps=5000)
    e = run.episodes
    assert e.start[0] == 1
    assert (e.start[1:] == e.start[:-1] + e.length[:-1]).all()
    assert e.start[-1] + e.length[-1] == 5001
    assert e.reason[-1] == "open"
    assert set(e.reason[:-1]) == {"visits", "boundary"}
    ends = e.start[1:]
    assert (e.reason[:-1] == np.where(ends % 300 == 0, "boundary", "visits")).all()
    assert len(e) == e.total == e.start.size
    assert repr(e) == f"Episodes({len(e)})"
    assert (e.sweeps >= 1).all()
    assert list(e)[7] == e[7] == Episode(
        start=int(e.start[7]), length=int(e.length[7]), reason=str(e.reason[7]),
        gain=float(e.gain[7]), span=float(e.span[7]), sweeps=int(e.sweeps[7]),
        vacuous=float(e.vacuous[7]), ties=int(e.ties[7]),
    )  # fmt: skip


def test_gains_and_spans_stay_in_their_bounds():
    """rho~ <= max r~ + eps from a warm start; span <= max(1, 2 / eta) (1 + eps) (spec 1.7)."""
    for eta in (0.1, 0.4, 1.5):
        e = wd.run(RIVER, river_agent(widening=eta), seed=1, steps=4000).episodes
        eps = 1 / np.sqrt(e.start)
        assert (e.gain <= 1 + eps + 1e-9).all()
        assert (e.gain >= 0).all()
        assert (e.span <= max(1.0, 2 / eta) * (1 + eps)).all()
        assert (e.span >= 0).all()


@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_vacuous_sets_and_ties_are_those_of_a_recount(slack):
    """At every tau: counts, r~ and widths from the history, by hand; ties where u = 0 decides."""
    some_ties = some_vacuous = some_planned = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        model = draw_model(rng, 300 + seed)
        space, T = model.space, model.horizon
        W, eta, scale = int(rng.integers(1, T + 1)), 0.3, rng.choice([1.0, 0.2])
        agent = wd.SWUCRL2CW(
            space, horizon=T, window=W, widening=eta, radii=wd.Radii.paper().scaled(scale),
            slack=slack, seed=seed,
        )  # fmt: skip
        run = wd.run(model, agent, seed=seed)
        pairs = np.array(
            [space.pair(int(s), int(a)) for s, a in zip(run.states[:-1], run.actions, strict=True)]
        )
        L = math.log(space.n_pairs * T / 0.05)
        for e in run.episodes:
            seen = slice(max(0, e.start - 1 - W), e.start - 1)
            n = np.bincount(pairs[seen], minlength=space.n_pairs)
            total = np.bincount(pairs[seen], run.rewards[seen], minlength=space.n_pairs)
            N = np.maximum(n, 1)
            radius = scale * 2 * np.sqrt(2 * space.n_states * L / N)
            assert e.vacuous == pytest.approx(((n == 0) | (radius + eta >= 2)).mean(), abs=1e-15)
            r = np.where(n == 0, 1.0, np.clip(total / N + scale * 2 * np.sqrt(2 * L / N), 0, 1))
            best = np.maximum.reduceat(r, space.offsets[:-1])
            within = r >= best[space.state_of] - slack
            if (best == 1.0).all():  # nothing to plan: the first sweep from u = 0 ends it
                assert (e.gain, e.span, e.sweeps) == (1.0, 0.0, 1)
                assert e.ties == (np.add.reduceat(within, space.offsets[:-1]) > 1).sum()
            else:
                some_planned += 1
            some_ties += e.ties > 0
            some_vacuous += 0 < e.vacuous < 1
    assert min(some_ties, some_vacuous, some_planned) > 20


def test_gains_and_spans_are_in_units_of_the_rewards():
    """The same world paid in other units: the same decisions, and gains that are converted."""
    space = wd.StateActions([2, 2])
    rng = np.random.default_rng(0)
    unit = wd.SWUCRL2CW(
        space, horizon=400, window=90, widening=0.2, radii={"kind": "paper", "scale": 0.1},
        ties="lowest", reward_range=(0, 1),
    )  # fmt: skip
    other = wd.SWUCRL2CW(
        space, horizon=400, window=90, widening=0.2, radii={"kind": "paper", "scale": 0.1},
        ties="lowest", reward_range=(-8, 24),
    )  # fmt: skip
    state, spans = 0, set()
    for _ in range(400):
        action = unit.act(state)
        assert other.act(state) == action
        # powers of two: the scaling is exact, so that not even rounding can part the two
        reward, after = float(rng.integers(0, 1025)) / 1024, int(rng.integers(2))
        unit.observe(state, action, reward, after)
        other.observe(state, action, -8 + 32 * reward, after)
        assert other.episode.gain == pytest.approx(-8 + 32 * unit.episode.gain, abs=1e-12)
        assert other.episode.span == pytest.approx(32 * unit.episode.span, abs=1e-12)
        spans.add(unit.episode.span)
        state = after
    assert len(spans) > 5


@pytest.mark.parametrize("record", ["totals", 100])
def test_sparse_records_keep_the_last_ten_thousand(record):
    """With W = 1 every step is an episode; a run of 30,000 has as many."""
    full = wd.run(RIVER, river_agent(window=1), seed=1)
    assert len(full.episodes) == full.episodes.total == 30_000
    thin = wd.run(RIVER, river_agent(window=1), seed=1, record=record)
    assert thin.episodes.total == 30_000
    assert len(thin.episodes) == 10_000
    for name in ("start", "length", "reason", "gain", "span", "sweeps", "vacuous", "ties"):
        kept = getattr(full.episodes, name)[-10_000:]
        assert getattr(thin.episodes, name).tolist() == kept.tolist()


def test_a_run_has_the_episodes_that_started_in_it():
    whole = wd.run(RIVER, river_agent(), seed=1, steps=3000).episodes
    agent = river_agent()
    parts = [wd.run(RIVER, agent, seed=1, steps=n).episodes for n in (1000, 1, 1999)]
    starts = np.concatenate([part.start for part in parts])
    assert starts.tolist() == whole.start.tolist()
    assert parts[0].length[-1] == 1001 - parts[0].start[-1]
    assert sum(part.total for part in parts) == whole.total
    again = wd.agents.restore(agent.state())
    assert again.episode == agent.episode
    tail = wd.run(RIVER, again, seed=1, steps=500).episodes
    assert tail.start.tolist() == wd.run(RIVER, agent, seed=1, steps=500).episodes.start.tolist()


def test_the_current_episode():
    agent = river_agent()
    assert agent.episode is None
    assert agent.n_episodes == 0
    agent.act(0)
    assert (agent.episode.start, agent.episode.length, agent.episode.reason) == (1, 0, "open")
    assert (agent.episode.gain, agent.episode.vacuous) == (1.0, 1.0)
    run = wd.run(RIVER, river_agent(), seed=1, steps=700)
    agent = river_agent()
    wd.run(RIVER, agent, seed=1, steps=700)
    assert agent.episode == run.episodes[-1]
    assert agent.n_episodes == run.episodes.total


def test_agents_without_episodes_have_none():
    run = wd.run(RIVER, wd.agents.make("random", RIVER.space, horizon=30_000), steps=100)
    assert isinstance(run.episodes, Episodes)
    assert len(run.episodes) == run.episodes.total == 0
    assert list(run.episodes) == []


def test_by_hand_an_agent_remembers_recent_episodes():
    """The same rows as those of a run, though the log has grown and gone round; never more."""
    horizon = 3000
    world = wd.envs.make("riverswim", horizon=horizon)
    run = wd.run(world, river_agent(window=5), steps=horizon)
    agent = river_agent(window=5)
    first_size = agent._learner.log.size
    assert run.episodes.total > 4 * (RECENT + first_size)
    steps = zip(run.states, run.actions, run.rewards, run.states[1:], strict=False)
    looked = EpisodeTape(agent, None)
    for i, (s, a, reward, after) in enumerate(steps):
        if i % RECENT == 0:
            looked.add()
        assert agent.act(int(s)) == a
        agent.observe(int(s), int(a), float(reward), int(after))
    assert RECENT < agent._learner.log.size < 3 * RECENT
    left = agent.episode_rows(1)
    assert left.size == agent._learner.log.size
    found = looked.finish(agent.t)
    for name in ("start", "gain", "length"):
        assert getattr(found, name).tolist() == getattr(run.episodes, name).tolist()
        assert left[name][:-1].tolist() == getattr(run.episodes, name)[-left.size : -1].tolist()
    again = wd.agents.restore(agent.state())
    assert again.episode_rows(1).tolist() == agent.episode_rows(again.n_episodes).tolist()
    assert again._learner.log.size == first_size


@pytest.mark.parametrize("id", ["swucrl2-cw", "borl", "multi-scale", "multi-scale-guarded"])
def test_a_run_step_by_step_has_all_episodes(id):
    """In a problem that is stepped through, agents remember less than they start."""

    class Stepped:
        space, horizon = RIVER.space, 2000

        def reset(self, seed):
            self.world = Simulator(RIVER, seed, state=0)
            return 0

        def step(self, action):
            reward, after = self.world.step(action)
            return reward, after

    def agent():
        options = {"window": 5, "widening": 0.1} if id == "swucrl2-cw" else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return wd.agents.make(id, RIVER.space, horizon=2000, **options)

    whole, stepped = wd.run(RIVER, agent(), steps=2000), wd.run(Stepped(), agent())
    assert whole.episodes.total > RECENT + 4
    for name in ("start", "length", "gain", "reason"):
        assert np.array_equal(getattr(whole.episodes, name), getattr(stepped.episodes, name))


def test_ten_thousand_agents_fit_into_a_gigabyte():
    """All arrays of one of S = 10, A = 4, W = 500: at most 100 KB."""
    agent = wd.SWUCRL2CW(wd.StateActions.uniform(10, 4), horizon=100_000, window=500, widening=0.1)
    learner = agent._learner
    parts = (learner, learner.window, learner.plan, learner.planning, learner.ties)
    size = sum(x.nbytes for part in parts for x in part if isinstance(x, np.ndarray))
    assert 20_000 < size < 100_000


@pytest.mark.parametrize("size", [1, 5, 8])
def test_rows_of_a_ring(size):
    """One by one and in two pieces the same, wherever they start."""
    ring = np.zeros(size, no_rows().dtype)
    for last in range(40):
        for n in range(size + 1):
            rows = np.zeros(n, ring.dtype)
            rows["start"], rows["gain"] = np.arange(last - n, last) + 1, last / 7
            expected = ring.copy()
            for row in rows:
                expected[row["start"] % size] = row
            put_rows(ring, last, rows)
            assert ring.tolist() == expected.tolist()
            found = rows_of(ring, last - n + 1, last)
            assert found.tolist() == rows.tolist()
            assert not np.shares_memory(found, ring)
    assert rows_of(ring, 3, 1).size == 0
