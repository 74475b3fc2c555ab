"""UCRL2 with restarts: the times, and phases that are those of new learners, one after another."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import windage as wd
from tests.models import literal_budgets, random_mdp
from tests.twins.optimistic import UCRL2
from windage.agents.optimistic.ucrl2 import cubic_restarts, restart_times

T = 400
SPACE = wd.StateActions([2, 3, 1])
TIGHT = wd.Radii.ucrl2().scaled(0.1)


def drifting(horizon=T, shape=None):
    ends = [random_mdp(SPACE, seed, density=0.7) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, shape or wd.schedules.Cosine(2), horizon=horizon)


def is_cubic(t, l):  # noqa: E741 - the paper's letter
    """Whether some i has ceil(i^3 / l^2) = t: the largest one with i^3 <= t l^2, or none."""
    i = round((t * l * l) ** (1 / 3)) + 2
    while i**3 > t * l * l:
        i -= 1
    return i**3 > (t - 1) * l * l


def among(asked, times):
    """Which of the numbers are in a rising list."""
    return times[np.searchsorted(times, asked).clip(max=times.size - 1)] == asked


class TestTimes:
    def test_cubic_ones_are_exact_fractions(self):
        rng = np.random.default_rng(0)
        cases = [(l, T) for l in range(1, 13) for T in (1, 2, 5, 27, 100)]  # noqa: E741
        cases += [tuple(sorted(rng.integers(1, 2000, size=2).tolist())) for _ in range(60)]
        for l, T in cases:  # noqa: E741
            if l > T:
                continue
            every = [math.ceil(Fraction(i**3, l * l)) for i in range(1, 2 * T + 2)]
            assert every[-1] > T
            wanted = sorted({t for t in every if 1 < t <= T})
            assert cubic_restarts(l, T).tolist() == wanted, (l, T)

    @pytest.mark.parametrize(
        ("l", "T"),
        [
            (1, 10**9), (1000, 10**9), (3001, 10**9 - 7), (2_999_999, 3_000_000), (3, 2**40 - 1),
        ],
    )  # fmt: skip
    def test_cubic_ones_at_size(self, l, T):  # noqa: E741
        """Every time is asked whether it is one; cubes of 1e7 over 1e13 do not fit 64 bits."""
        times = cubic_restarts(l, T)
        assert (np.diff(times) > 0).all()
        assert times[0] > 1
        assert times[-1] <= T
        rng = np.random.default_rng(l)
        listed = rng.choice(times, size=min(times.size, 700))
        others = rng.integers(2, T + 1, size=700)
        edges = [t for t in (2, 3, T - 1, T, int(times[-1]), int(times[-1]) + 1) if 1 < t <= T]
        asked = {*listed.tolist(), *(listed + 1).clip(2, T).tolist(), *others.tolist(), *edges}
        asked = sorted(asked)
        for t, listed in zip(asked, among(asked, times).tolist(), strict=True):
            assert listed == is_cubic(t, l), t
        largest = int((T * l * l) ** (1 / 3)) - 1
        cubes = [-(-(i**3) // (l * l)) for i in rng.integers(1, largest + 1, size=700).tolist()]
        assert among(cubes, np.append(1, times)).all()

    def test_without_changes_nothing_is_forgotten(self):
        assert cubic_restarts(0, 10**9).tolist() == []

    @pytest.mark.parametrize(
        ("period", "horizon"), [(1, 5), (2, 10), (3, 10), (9, 10), (10, 10), (11, 10)]
    )
    def test_periods(self, period, horizon):
        wanted = [t for t in range(2, horizon + 1) if (t - 1) % period == 0]
        assert restart_times(period, horizon).tolist() == wanted
        assert restart_times(np.int32(period), horizon).tolist() == wanted

    def test_lists_are_taken_as_they_are(self):
        for times in ([2, 3, 9], (5,), np.array([4, 7], np.int32), []):
            found = restart_times(times, 10)
            assert found.tolist() == list(times)
            assert not found.flags.writeable


def pieced_together(model, restarts, options, seed):
    """Fresh UCRL2 learners, each told to start where the last one stood; steps one by one."""
    world = wd.simulate.Simulator(model, seed)
    borders = [1, *restarts, model.horizon + 1]
    states, actions, episodes = [], [], []
    for first, after in zip(borders, borders[1:], strict=False):
        agent = wd.UCRL2(model.space, horizon=model.horizon, **options)
        rows = []
        for t in range(first, after):
            s = world.state
            states.append(s)
            actions.append(agent.act(s))
            if agent.n_episodes > len(rows):
                now = agent.episode
                rows.append([t, now.gain, now.span, now.sweeps, now.ties, now.vacuous])
            reward, s_next = world.step(actions[-1])
            agent.observe(s, actions[-1], reward, s_next)
        episodes += rows
    return states, actions, episodes


OPTIONS = [
    {"radii": TIGHT, "warm_start": False},
    {"radii": TIGHT, "warm_start": False, "clip": True},
    {"radii": wd.Radii.paper().scaled(0.1), "warm_start": False, "clip": True},
    {"radii": TIGHT, "clip": True},
    {"warm_start": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("restarts", [[2, 3, 90, 91, 250], [150, T], [T + 5], []])
def test_phases_are_those_of_new_learners(options, restarts):
    """Actions, episodes, gains, spans and sweeps, to the last bit."""
    model = drifting()
    options = {"ties": "lowest", **options}
    agent = wd.RestartedUCRL2(SPACE, horizon=T, restarts=restarts, **options)
    run = wd.run(model, agent, seed=4)
    inside = [t for t in restarts if t <= T]
    states, actions, episodes = pieced_together(model, inside, options, 4)
    assert run.states[:-1].tolist() == states
    assert run.actions.tolist() == actions
    mine = run.episodes
    columns = [mine.start, mine.gain, mine.span, mine.sweeps, mine.ties, mine.vacuous]
    assert [list(row) for row in zip(*(c.tolist() for c in columns), strict=True)] == episodes
    starts = [row[0] for row in episodes]
    assert mine.length.tolist() == np.diff([*starts, T + 1]).tolist()
    reasons = dict(zip(starts[1:], mine.reason[:-1].tolist(), strict=True))
    assert reasons == {t: "restart" if t in inside else "visits" for t in starts[1:]}
    assert set(inside) <= {1, *reasons}
    assert agent.episode.reason == "open"


def test_phases_are_literal_ucrl2():
    """The second witness: the pseudo-code recounted from the history of its phase alone."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        restarts = sorted(set(rng.integers(2, T + 1, size=4).tolist()))
        agent = wd.RestartedUCRL2(
            SPACE, horizon=T, restarts=restarts, radii=TIGHT, ties="lowest", warm_start=False
        )
        run = wd.run(drifting(), agent, seed=seed)
        starts, gains = [], []
        borders = [1, *restarts, T + 1]
        for first, after in zip(borders, borders[1:], strict=False):
            twin = UCRL2(SPACE, horizon=T, scale=0.1, ties="lowest")
            for t in range(first, after):
                s, a, r = (x[t - 1].item() for x in (run.states, run.actions, run.rewards))
                assert twin.act(s) == a, f"t={t}"
                twin.observe(s, a, r, int(run.states[t]))
            starts += [first - 1 + tau for tau, *_ in twin.episodes]
            gains += [gain for _, gain, *_ in twin.episodes]
        assert run.episodes.start.tolist() == starts
        assert run.episodes.gain == pytest.approx(gains, abs=1e-9)


@pytest.mark.parametrize("warm", [False, True])
def test_a_run_split_anywhere_is_the_same_run(warm):
    """Also where a restart is due, with a decision pending, and through saved bytes."""
    model, restarts = drifting(60), [2, 17, 40]

    def fresh():
        return wd.RestartedUCRL2(
            SPACE, horizon=60, restarts=restarts, radii=TIGHT, warm_start=warm, seed=3
        )

    agent = fresh()
    whole = wd.run(model, agent, seed=1)
    for cut in [*range(1, 20), 38, 39, 40, 41, 59]:
        for saved in (False, True):
            twin = fresh()
            head = wd.run(model, twin, seed=1, steps=cut)
            starts = set(head.episodes.start.tolist())
            if saved:
                twin.act(twin.last_state)
                starts.add(twin.episode.start)
                twin = wd.agents.restore(twin.state())
                twin.withdraw()
            tail = wd.run(model, twin, seed=1)
            assert [*head.actions, *tail.actions] == whole.actions.tolist()
            assert twin.state() == agent.state()
            starts |= set(tail.episodes.start.tolist())
            assert starts == set(whole.episodes.start.tolist())


def stepping():
    """Two models that come and go, and a third whose rewards alone differ."""
    a, b = random_mdp(SPACE, 1), random_mdp(SPACE, 2)
    third = wd.MDP(SPACE, b.rewards[::-1], b.transitions)
    times = [1, 30, 31, 100, 220]
    models = [a, b, a, b, third]
    return wd.DriftingMDP(
        SPACE, times, [m.rewards for m in models], [m.transitions for m in models],
        horizon=300, interpolation="step",
    )  # fmt: skip


def rows(mdp):
    found = mdp.transitions
    return found if isinstance(found, np.ndarray) else found.toarray()


@pytest.mark.parametrize(
    "model",
    [
        stepping(),
        wd.DriftingMDP.stationary(random_mdp(SPACE, 1), horizon=50),
        wd.envs.make("peril", tau=20, repeats=3),
        wd.envs.make("riverswim", horizon=200),
    ],
    ids=["steps", "none", "peril", "always"],
)
@pytest.mark.filterwarnings("ignore:.* restarts in .* steps leave:windage.errors.ParameterWarning")
def test_restarts_at_the_changes(model):
    """Exactly where the model differs from that of the step before, compared at every t."""
    wanted, last = [], model.at(1)
    for t in range(2, model.horizon + 1):
        now = model.at(t)
        if (now.rewards != last.rewards).any() or (rows(now) != rows(last)).any():
            wanted.append(t)
        last = now
    budgets = model.budgets()
    assert budgets.change_times.tolist() == wanted
    assert budgets.changes == len(wanted)
    inner = model.budgets(40, model.horizon).change_times
    assert inner.tolist() == [t for t in wanted if t > 40]
    given = {"horizon": model.horizon, "budgets": budgets}
    for kind in ("ucrl2-restarts", "restarted-psrl"):
        agent = wd.agents.make(kind, model.space, restarts="changes", **given)
        assert agent.restarts.tolist() == wanted
        run = wd.run(model, agent, seed=1)
        ends = run.episodes.start + run.episodes.length
        assert ends[run.episodes.reason == "restart"].tolist() == wanted
        tuned = wd.agents.make(kind, model.space, **given)
        cubes = cubic_restarts(len(wanted), model.horizon)
        assert tuned.restarts.tolist() == cubes.tolist()


def test_too_many_restarts_are_warned_of():
    with pytest.warns(wd.ParameterWarning, match="100 restarts in 101 steps leave less than a"):
        agent = wd.RestartedUCRL2(SPACE, horizon=101, restarts=1)
    assert wd.agents.restore(agent.state()).restarts.tolist() == agent.restarts.tolist()


class Told:
    """Budgets of the user's own: V, and nothing of any phase."""

    def __init__(self, reward, transition=0.0):
        self.reward, self.transition = reward, transition

    def between(self, first, last):
        return Told(first / 1000, last / 1000)


class TestVariationAware:
    @pytest.mark.parametrize("V", [0.0, 0.0625, 0.5, 1.0, 1.75, 3.0, 6.0, 200.0])
    def test_phases_have_ceil_of_i2_over_v2_steps(self, V):
        """V is B_r + B_p and has few bits, so that fractions are exact."""
        agent = wd.VariationAwareUCRL.informed(SPACE, horizon=500, budgets=Told(V / 4, 3 * V / 4))
        starts, i = [1], 0
        while V and starts[-1] <= 500:
            i += 1
            starts.append(starts[-1] + math.ceil(Fraction(i) ** 2 / Fraction(V) ** 2))
        starts = [t for t in starts if t <= 500]
        assert agent.restarts.tolist() == starts[1:]
        assert agent.reward_variation.tolist() == [t / 1000 for t in starts]
        ends = [t - 1 for t in starts[1:]] + [500]
        assert agent.transition_variation.tolist() == [t / 1000 for t in ends]

    @pytest.mark.parametrize("name", ["riverswim", "two-state-cosine", "peril"])
    def test_variations_are_those_of_the_steps_inside_each_phase(self, name):
        size = {"tau": 25, "repeats": 3} if name == "peril" else {"horizon": 300}
        model = wd.envs.make(name, **size)
        T = model.horizon
        r, p = literal_budgets(model, 1, T)  # of the step t -> t + 1 at place t - 1
        V = sum(r) + sum(p)
        agent = wd.agents.make("va-ucrl", model.space, horizon=T, budgets=model.budgets())
        borders = [1, *agent.restarts.tolist(), T + 1]
        phases = list(zip(borders, borders[1:], strict=False))
        for i, (first, after) in enumerate(phases[:-1], start=1):
            assert after - first == math.ceil(i * i / V**2)
        wanted = [[sum(x[first - 1 : after - 2]) for first, after in phases] for x in (r, p)]
        assert agent.reward_variation == pytest.approx(wanted[0], abs=1e-12)
        assert agent.transition_variation == pytest.approx(wanted[1], abs=1e-12)
        assert sum(wanted[0]) + sum(wanted[1]) < V  # no phase has the steps between two of them

    @pytest.mark.parametrize("saved", [False, True])
    def test_sets_of_every_episode(self, saved):
        """r_hat + radius(N, t) + B_r, and radius(N, t) with B_p, in the phase's own time t."""
        model, scale, T = wd.envs.make("riverswim", horizon=700), 0.05, 700
        space = model.space
        agent = wd.VariationAwareUCRL.informed(
            space, horizon=T, budgets=model.budgets(), radii=wd.Radii.varying().scaled(scale)
        )
        world = wd.simulate.Simulator(model, 3)
        history, seen, known, below = [], 0, set(), 0
        for t in range(1, T + 1):
            s = world.state
            if saved and t % 7 == 0:
                agent = wd.agents.restore(agent.state())
            a = agent.act(s)
            if agent.n_episodes > seen:
                seen = agent.n_episodes
                phase = sum(t >= start for start in agent.restarts.tolist())
                first = [1, *agent.restarts.tolist()][phase]
                region = agent.region()
                for pair in range(space.n_pairs):
                    own = [x for q, x, _ in history[first - 1 :] if q == pair]
                    there = [z for q, _, z in history[first - 1 :] if q == pair]
                    N, tau = len(own), t - first + 1
                    part = 8 * math.log(8 * space.n_pairs * tau**3 / 0.05) / max(1, N)
                    r = scale * math.sqrt(part) + agent.reward_variation[phase]
                    hope = min(1.0, sum(own) / N + r) if N else 1.0
                    assert region.reward_upper[pair] == pytest.approx(hope, abs=1e-12)
                    assert region.visited[pair] == (N > 0)
                    assert region.widening[pair] == agent.transition_variation[phase]
                    if N:
                        d = scale * math.sqrt(space.n_states * part)
                        assert region.radius[pair] == pytest.approx(d, abs=1e-12)
                        row = [there.count(z) / N for z in range(space.n_states)]
                        assert region.p_hat.toarray()[pair] == pytest.approx(row, abs=1e-15)
                        below += hope < 1
                known.add(phase)
            reward, after = world.step(a)
            history.append((space.pair(s, a), reward, after))
            agent.observe(s, a, reward, after)
        assert known == set(range(agent.restarts.size + 1))
        assert below > 100

    def test_a_restart_at_the_very_step_at_which_samples_are_counted(self):
        """An episode of 65,536 steps fills the memory just when the next phase begins."""
        space, T = wd.StateActions([1]), 131_100
        model = wd.DriftingMDP.stationary(wd.MDP(space, [0.5], [[1.0]]), horizon=T)
        agent = wd.VariationAwareUCRL(
            space, horizon=T, restarts=[131_073], reward_variation=[0.0, 0.2],
            transition_variation=[0.1, 0.7],
        )  # fmt: skip
        wd.run(model, agent, seed=1)
        assert agent.region().widening.tolist() == [0.7]
        again = wd.agents.restore(agent.state())
        assert again.region().reward_upper == agent.region().reward_upper
