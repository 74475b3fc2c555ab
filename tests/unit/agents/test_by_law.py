"""Learners that are told a structure: what they take in, keep, refuse and say."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

import windage as wd
from tests.conftest import RELIABILITY
from tests.twins.test_structured import (
    Auction,
    Inferred,
    Learned,
    Sales,
    Shelf,
    Weekday,
    as_seen,
    structure_of,
    told,
    twin_of,
    world,
)
from windage.errors import CallOrderError, InputError, ModelError, StateError
from windage.structure import Exogenous, Structure

CASES = [Shelf, Sales, Weekday, Auction, Learned, Inferred]
MAKERS = {
    "multi-scale": lambda known, T, **o: wd.MultiScale(
        known.space, horizon=T, structure=known, **o
    ),
    "certainty-equivalent": lambda known, T, **o: wd.CertaintyEquivalent(
        known.space, horizon=T, structure=known, window=20, bonus=0.65, **o
    ),
    "psrl": lambda known, T, **o: wd.PSRL(known.space, horizon=T, structure=known, **o),
    "sw-psrl": lambda known, T, **o: wd.SWPSRL(
        known.space, horizon=T, structure=known, window=20, episodes="doubling", **o
    ),
}


class Days:
    """A world of one of the twin's cases, one step after another."""

    def __init__(self, case, T, seed=0):
        self.case, self.known = case, structure_of(case)
        twin, self.laws = twin_of(case, self.known, T, seed)
        self.step = world(case, twin.sizes, self.laws, seed, T)
        self.s, self.t = 0, 0

    def after(self, a):
        """What a step led to: reward, next state, what is seen."""
        outcomes, reward, after = self.step(self.t, self.s, a)
        seen = as_seen(self.case, self.known, told(self.case, self.s, a, outcomes))
        self.s, self.t = after, self.t + 1
        return reward, after, seen

    def play(self, agent, steps):
        actions = []
        for _ in range(steps):
            s = self.s
            actions.append(agent.act(s))
            agent.observe(s, actions[-1], *self.after(actions[-1]))
        return actions


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("case", CASES)
def test_saved_anywhere_it_goes_on_as_if_it_had_never_stopped(case, make):
    T = 70
    days, again = Days(case, T), Days(case, T)
    agent, twin = make(days.known, T, seed=5), make(again.known, T, seed=5)
    actions = days.play(agent, T)
    found = []
    for _ in range(T):
        found += again.play(twin, 1)
        twin = type(twin).from_state(twin.state())
    assert found == actions
    assert twin.state() == agent.state()
    assert len(set(actions)) > 1
    assert wd.agents.restore(agent.state()).structure.same(days.known)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("case", CASES)
def test_explaining_changes_nothing(case, make):
    T = 40
    days, again = Days(case, T), Days(case, T)
    agent, silent = make(days.known, T), make(again.known, T)
    with pytest.raises(CallOrderError, match="nothing has been planned"):
        agent.explain(0)
    for _ in range(T):
        s = days.s
        a = agent.act(s)
        before = agent.state()
        told_of = agent.explain(s)
        assert agent.state() == before
        assert [x.chosen for x in told_of.actions].index(True) == a
        agent.observe(s, a, *days.after(a))
        assert again.play(silent, 1) == [a]
    assert agent.state() == silent.state()


@pytest.mark.parametrize("kind", [wd.CertaintyEquivalent, wd.SWPSRL])
@pytest.mark.parametrize(("horizon", "window"), [(30, 12), (10, 12), (12, 12), (5, 40)])
def test_a_window_forgets_the_past_however_short_the_horizon(kind, horizon, window):
    """Twenty days of demand 0 before the first, then demand 3: the last W steps count."""
    known = structure_of(Shelf)
    agent = kind(known.space, horizon=horizon, structure=known, window=window)
    for _ in range(20):
        agent.preload(2, 0, Shelf.g(2, 0, 0), 2, seen={"demand": 0})
    for t in range(horizon):
        assert agent.in_memory.tolist() == [min(20 + t, window)] * known.space.n_pairs
        s = agent.last_state or 0
        a = agent.act(s)
        zeros, threes = max(0, min(20, window - t)), min(t, window)
        (law,) = agent.explain(s).laws
        prior = 0.5 if kind is wd.CertaintyEquivalent else 1.0
        total = zeros + threes + prior
        expected = [(prior / 5 + n) / total for n in (zeros, 0, 0, threes, 0)]
        if kind is wd.CertaintyEquivalent or agent.episode.start == t + 1:
            assert law.probabilities == pytest.approx(expected)
        agent.observe(s, a, Shelf.g(s, a, 3), max(s + a - 3, 0), seen={"demand": 3})
        agent = type(agent).from_state(agent.state())
    assert agent.preloaded == 20


class TestPosteriorSampling:
    def test_is_asked_for_as_without_a_structure(self):
        known = structure_of(Shelf)
        for id, options in (("psrl", {}), ("sw-psrl", {"window": 9})):
            kind = wd.agents.get(id)
            agent = kind(known.space, horizon=50, structure=known, prior=2.0, **options)
            made = wd.agents.make(id, known.space, horizon=50, structure=known, prior=2, **options)
            assert agent.state() == made.state()
            assert agent.reward_range == known.reward_range
            assert kind.from_state(agent.state()).state() == agent.state()
            assert type(agent).remade(agent.config).state() == agent.state()
            assert agent.configuration()["structure"] == known.to_dict()
            assert "structure" not in kind(known.space, horizon=50, **options).configuration()
            with pytest.raises(InputError, match="structure: 3 is no Structure"):
                kind(known.space, horizon=50, structure=3, **options)
        with pytest.raises(InputError, match="learns no laws"):
            wd.RestartedPSRL(known.space, horizon=50, restarts=9, structure=known)

    def test_its_window_is_that_of_laws(self):
        """K (T / (B + 1))^(1/2): two laws of bids with two outcomes, one refill with two."""
        known = structure_of(Auction)
        given = {"horizon": 10_000, "structure": known}
        K = np.sqrt(2 * 2) + np.sqrt(2 * 1)
        with pytest.warns(wd.ParameterWarning, match="there are no budgets: window = 341"):
            blind = wd.agents.make("sw-psrl", known.space, **given)
        assert blind.window == round(K * 100)
        budgets = wd.envs.make("riverswim", horizon=10_000).budgets()
        told = wd.agents.make("sw-psrl", known.space, budgets=budgets, **given)
        B = budgets.reward + budgets.transition
        assert told.window == round(K * np.sqrt(10_000 / (B + 1)))
        with pytest.raises(InputError, match="there are no budgets"):
            wd.agents.make("sw-psrl", known.space, window="tuned", **given)

    @pytest.mark.parametrize("seen", ["always", "interval"])
    def test_laws_are_drawn_from_their_posterior(self, seen):
        """Against Dirichlet draws weighted by the likelihood of what was seen; level 1e-6.

        Taking an interval for its lowest outcome, or for the prior's share of all, is caught.
        """
        space = wd.StateActions([1])
        x = Exogenous("x", range(3), seen=seen)
        known = Structure(space, [x], next_state=lambda s, a, x: 0, reward=lambda s, a, x: x / 2)
        steps = [(0, 0)] * 3 + [(2, 2)] * 4 + [(1, 1)] * 2
        if seen == "interval":
            steps = [(0, 0)] * 2 + [(1, 2)] * 24 + [(0, 1)] * 9 + [(1, 1)] * 2
        drawn = []
        for seed in range(400):
            agent = wd.PSRL(space, horizon=9, structure=known, prior=1.5, seed=seed)
            for low, high in steps:
                agent._by_law.look_back(0, low / 2, 0, np.array([[low, high]]))
            agent.act(0)
            drawn.append(agent._by_law.estimate.q.copy())
        q = (np.array(drawn) - 0.001 / 3) / 0.999
        rng = np.random.default_rng(1)
        prior = rng.dirichlet([0.5] * 3, 400_000)
        log = sum(np.log(prior[:, a : b + 1].sum(axis=1) + 1e-300) for a, b in steps)
        weights = np.exp(log - log.max())
        sample = prior[rng.choice(len(prior), 4000, p=weights / weights.sum())]
        for o in range(3):
            assert stats.ks_2samp(q[:, o], sample[:, o]).pvalue > 1e-6 / 3
        wrong = sum(np.log(prior[:, a] + 1e-300) for a, _ in steps)
        weights = np.exp(wrong - wrong.max())
        point = prior[rng.choice(len(prior), 4000, p=weights / weights.sum())]
        if seen == "interval":
            assert min(stats.ks_2samp(q[:, o], point[:, o]).pvalue for o in range(3)) < 1e-6

    def test_binomial_numbers(self):
        """Halving is exact: chi-square of 4,000 numbers against the law, level 1e-6 each."""
        from windage.kernels.posterior import FEW, binomial
        from windage.rng import key

        named = tuple(key(1, "test"))
        for n, p in ((FEW + 1, 0.3), (100, 0.02), (1000, 0.5), (5000, 0.999)):
            numbers = [int(binomial(named, t, 0, n, p)[0]) for t in range(4000)]
            law = stats.binom(n, p)
            cuts = np.unique(law.ppf(np.linspace(0.05, 0.95, 19)))
            edges = np.concatenate([[-1], cuts, [n]])
            found = np.histogram(numbers, edges + 0.5)[0]
            expected = np.diff(law.cdf(edges)) * 4000
            keep = expected > 0
            assert stats.chisquare(found[keep], expected[keep]).pvalue > 1e-6
        assert binomial(named, 1, 0, 50, 1.0)[0] == 50
        assert binomial(named, 1, 0, 50, 0.0)[0] == 0


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_is_always_seen_is_learned_wherever_one_is(make):
    """At home the weather matters to nothing, and is seen through the window all the same."""
    weather = Exogenous("weather", ["dry", "wet"], lambda s, a: "all" if a else None)
    known = Structure(
        wd.StateActions([2]),
        [weather],
        next_state=lambda s, a, w: 0,
        reward=lambda s, a, w: {"dry": 1.0, "wet": -1.0, None: 0.0}[w],
    )
    agent = make(known, 15)
    for t in range(12):
        agent.act(0)
        agent.observe(0, 0, 0.0, 0, seen={"weather": "wet" if t < 9 else "dry"})
    agent.act(0)
    (law,) = agent.explain(0).laws
    assert law.samples == pytest.approx(12, abs=3)
    assert law.probabilities[1] > 0.6
    assert [action.hope for action in agent.explain(0).actions] == [0.0, 0.0]
    world = known.drifting({"weather": {"all": [0.25, 0.75]}}, horizon=15)
    fused, online = make(known, 15), make(known, 15)
    wd.run(world, fused, seed=1)
    simulator = wd.simulate.Simulator(world, 1)
    for _ in range(15):
        a = online.act(0)
        online.observe(0, a, *simulator.step(a), simulator.seen)
    assert fused.state() == online.state()


class TestWhatItSays:
    def learned(self, T=60, **options):
        days = Days(Shelf, T)
        agent = wd.MultiScale(days.known.space, horizon=T, structure=days.known, **options)
        for _ in range(40):  # demand is always 3
            s = days.s
            a = agent.act(s)
            after = max(s + a - 3, 0)
            agent.observe(s, a, Shelf.g(s, a, 3), after, seen={"demand": 3})
            days.s = after
        agent.act(days.s)
        return agent, days

    def test_of_the_law_of_demand(self):
        agent, days = self.learned()
        why = agent.explain(days.s)
        (law,) = why.laws
        assert (law.name, law.label, law.outcomes) == ("demand", "all", (0, 1, 2, 3, 4))
        # every window saw one outcome only, and half a sample is spread over five
        n = law.samples
        assert 30 < n < 40
        assert law.probabilities[3] == pytest.approx((n + 0.1) / (n + 0.5))
        assert law.mean == pytest.approx((3 * n + 0.1 * 10) / (n + 0.5))
        assert str(law) == f"demand [all]: mean 2.99 from an effective {n:.0f} steps"
        assert 8 <= law.memory <= 40
        assert f"* {law}; " in str(why)
        assert " because it is worth " in why.reason
        assert [action.hope for action in why.actions] == [0.0] * len(why.actions)

    def test_of_words(self):
        space = wd.StateActions([2])
        weather = Exogenous("weather", ["dry", "wet"])
        known = Structure(
            space, [weather], next_state=lambda s, a, w: 0,
            reward=lambda s, a, w: float((w == "wet") == (a == 1)),
        )  # fmt: skip
        agent = wd.MultiScale(space, horizon=10, structure=known)
        agent.act(0)
        agent.observe(0, 0, 1.0, 0, seen={"weather": "dry"})
        agent.act(0)
        assert agent.explain(0).reason.startswith("action 0 because it is worth ")
        assert str(agent.explain(0).laws[0]) == (
            "weather: dry with probability 0.83 from an effective 1 step"
        )

    def test_of_forgetting(self):
        agent, days = self.learned()
        weights = agent.forgetting()
        assert weights.windows == (8, 16, 32, 60)
        assert np.array_equal(weights.transitions, weights.rewards)  # known rewards need none
        (law,) = agent.explain(days.s).laws
        assert agent.in_memory.tolist() == [round(law.samples)] * agent.space.n_pairs
        assert agent.memory().shape == (2, agent.space.n_pairs)

    def test_of_pairs_that_involve_nothing(self):
        days = Days(Auction, 60)
        agent = wd.MultiScale(days.known.space, horizon=60, structure=days.known)
        days.play(agent, 60)
        bids = agent.space.action_of
        of_refill = agent.in_memory[bids == 0]  # all they know of
        assert np.unique(of_refill).size == 1
        assert (agent.in_memory[bids > 0] <= of_refill[0]).all()  # the least of its laws
        assert agent.in_memory[bids > 0].min() < of_refill[0]
        assert agent.in_memory[bids > 0].max() > 0


class TestThePast:
    @pytest.mark.parametrize("case", CASES)
    def test_is_learned_like_any_other(self, case):
        """Windows, weights and counts are those of an agent that lived through it."""
        T = 50
        days, again = Days(case, T), Days(case, T)
        lived = wd.MultiScale(days.known.space, horizon=2 * T, structure=days.known)
        agent = wd.MultiScale(days.known.space, horizon=2 * T, structure=days.known)
        for _ in range(T):
            s = days.s
            a = lived.act(s)
            lived.observe(s, a, *days.after(a))
            agent.preload(s, a, *again.after(a))
        assert agent.preloaded == T
        mine, its = (x._learner_state.saved()[1] for x in (agent, lived))
        for name in mine:
            if name.startswith("experts.") and name != "experts.clock":
                assert np.array_equal(mine[name], its[name]), name
        agent.act(0)
        with pytest.raises(CallOrderError, match="has started to act"):
            agent.preload(0, 0, 0.0, 0, {"demand": 1})
        assert agent.t == 1

    def test_is_checked(self):
        known = structure_of(Shelf)
        agent = wd.MultiScale(known.space, horizon=9, structure=known)
        before = agent.state()
        with pytest.raises(InputError, match="'demand'.*9 is no outcome"):
            agent.preload(0, 1, Shelf.g(0, 1, 1), 0, {"demand": 9})
        assert agent.state() == before


SHELF = (3, 2, Shelf.g(3, 2, 1), 4)
SOLD = (0, 1, Shelf.g(0, 1, 1), 0)


class TestBadInput:
    @pytest.mark.parametrize(
        ("case", "step", "seen", "message"),
        [
            (Shelf, SHELF, {"demand": 9}, r"seen\['demand'\]: 9 is no outcome of 'demand'"),
            (Shelf, SHELF, {"demand": True}, "True is no outcome"),
            (Shelf, SHELF, {"demnd": 1}, "did you mean 'demand'"),
            (Shelf, SOLD, {}, r"seen\['demand'\] at s=0, a=1: it was not said"),
            (Shelf, SHELF, 1, "does not say which variable"),
            (Shelf, SHELF, {"demand": (1, 2)}, "which is seen exactly"),
            (Shelf, SHELF, {"demand": 2}, r"demand = 2 leads to s=3, and s_next is s=4"),
            (Sales, SHELF, {"demand": (2, 1)}, "empty interval: 2 comes after 1"),
            (Sales, SHELF, {"demand": (1, 2, 3)}, "is no interval"),
            (Sales, SHELF, {"demand": (2, 4)}, r"demand = \(2, 4\) leads to s=1 or s=2 or s=3"),
            (Sales, (0, 1, 0.0, 0), {"demand": ()}, "is no interval"),
            (Auction, (2, 0, 0.0, 2), {"demand": 1, "refill": 0}, "not involved here"),
            (Auction, (3, 1, 0.7, 3), {"refill": 1}, r"seen\['demand'\]"),
            (Inferred, (2, 1, 0.7, 2), None, "leads to the next state pays this reward.*correct"),
        ],
    )
    def test_changes_nothing(self, case, step, seen, message):
        known = structure_of(case)
        agent = wd.MultiScale(known.space, horizon=9, structure=known)
        agent.act(step[0])
        before = agent.state()
        with pytest.raises(InputError, match=message):
            agent.observe(*step, seen)
        assert agent.state() == before

    def test_what_is_unambiguous_need_not_be_said(self):
        """What is left says what the demand was, unless nothing is left."""
        known = structure_of(Sales)
        told, silent = (wd.MultiScale(known.space, horizon=9, structure=known) for _ in range(2))
        steps = [(3, 2, 1, {"demand": 1}), (3, 2, 4, {"demand": 4}), (1, 1, 3, {"demand": (2, 4)})]
        for s, a, d, seen in steps:
            for agent, shown in ((told, seen), (silent, None)):
                agent.act(s)
                agent.observe(s, a, Sales.g(s, a, d), max(s + a - d, 0), shown)
        assert told.state() == silent.state()

    def test_rewards_may_be_off_by_a_rounding(self):
        known = structure_of(Shelf)
        agent = wd.MultiScale(known.space, horizon=9, structure=known)
        low, _ = agent.reward_range
        assert agent.reward_range == known.reward_range
        agent.act(0)
        agent.observe(0, 6, low - 1e-13, 6, {"demand": 0})
        agent.act(0)
        with pytest.raises(InputError, match="reward"):
            agent.observe(0, 6, low - 1e-3, 6, {"demand": 0})

    def test_a_range_that_does_not_hold_the_rewards(self):
        known = structure_of(Shelf)
        low, high = known.reward_range
        for make in MAKERS.values():
            with pytest.raises(InputError, match="reward_range: .* does not hold the rewards of"):
                make(known, 9, reward_range=(low, high - 1))
            assert make(known, 9, reward_range=(low, high + 1)).reward_range == (low, high + 1)
            assert make(known, 9, reward_range=None).reward_range == (low, high)

    def test_structures_of_another_space(self):
        known = structure_of(Shelf)
        with pytest.raises(InputError, match="structure: it is of"):
            wd.MultiScale(wd.StateActions([2, 2]), horizon=9, structure=known)
        with pytest.raises(InputError, match="structure: 3 is no Structure"):
            wd.MultiScale(known.space, horizon=9, structure=3)

    def test_damaged_states(self):
        days = Days(Sales, 30)
        agent = wd.MultiScale(days.known.space, horizon=30, structure=days.known)
        days.play(agent, 20)
        for name, change in (
            ("law", lambda x: x - x),
            ("fits", lambda x: x * 2),
            ("law.limit", lambda x: x - 1000),
            ("experts.ring_cell", lambda x: x + 1000),
            ("experts.ring_pair", lambda x: x - 1000),
            ("experts.laws", lambda x: x * 0),
            ("experts.discarded", lambda x: x + 1),
            ("experts.cell_count", lambda x: x + 1),
        ):
            blob = wd.agents.state.unpack(agent.state())
            blob.arrays[name] = change(blob.arrays[name])
            with pytest.raises(StateError, match="impossible"):
                wd.MultiScale.from_state(wd.agents.state.pack(blob))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_worlds_of_another_structure_are_refused(make):
    """An outcome by its number may be none of the agent's: a compiled loop checks no bounds."""
    space = wd.StateActions([2, 2])

    def structure(outcomes, first, group=None):
        return Structure(
            space,
            [Exogenous("demand", range(outcomes), group)],
            next_state=lambda s, a, d: first ^ min(d, 1),
            reward=lambda s, a, d: float(a == min(d, 1)),
        )

    known = structure(3, 0)
    even = {n: np.full(n, 1 / n) for n in (3, 5)}
    for other in (structure(5, 0), structure(3, 1)):
        world = other.drifting({"demand": even[other.law_sizes[0]]}, horizon=50)
        agent = make(known, 50)
        for player in (agent, wd.Doubling(lambda T: make(known, T))):
            with pytest.raises(InputError, match=r"problem.*: has another structure"):
                wd.run(world, player, seed=0)
        assert agent.t == 1
    still = wd.DriftingMDP.stationary(known.model({"demand": even[3]}), horizon=50)
    with pytest.raises(InputError, match="does not show the variables"):
        wd.run(still, make(known, 50), seed=0)
    # laws that are grouped otherwise are the agent's to find out
    tied = structure(3, 0, lambda s, a: s)
    world = tied.drifting({"demand": {0: even[3], 1: even[3]}}, horizon=50)
    assert wd.run(world, make(known, 50), seed=0).rewards.size == 50


def test_one_law_behind_many_states():
    """A thousand states, ten thousand in `make reliability`, and no row to learn."""
    S, A, D = 10_000 if RELIABILITY else 1_000, 4, 20
    space = wd.StateActions.uniform(S, A)
    known = Structure(
        space,
        [Exogenous("demand", range(D))],
        next_state=lambda s, a, d: np.clip(s + 20 * a - 2 * d - 5, 0, S - 1),
        reward=lambda s, a, d: 4.0 * np.minimum(s + 20 * a, d) - 1e-4 * s - 0.3 * a,
    )
    law = np.bincount([3, 5, 5, 8], minlength=D) / 4
    world = known.drifting({"demand": law}, horizon=200)
    agent = wd.MultiScale(space, horizon=200, structure=known)
    run = wd.run(world, agent, seed=0)
    believed = agent.explain(int(run.states[-1])).laws[0]
    assert believed.mean == pytest.approx(law @ np.arange(D), abs=0.5)
    assert wd.agents.restore(agent.state()).state() == agent.state()
    kept = sum(array.size for array in agent._learner_state.survivors().values())
    assert kept < 60 * space.n_pairs  # far from S x A x S


def test_what_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    """Two thousand outcomes make two million intervals."""
    known = Structure(
        wd.StateActions([2]),
        [Exogenous("demand", range(2000), seen="interval")],
        next_state=lambda s, a, d: 0,
        reward=lambda s, a, d: np.minimum(1000 * a, d) - a,
    )
    monkeypatch.setattr("windage.validation._free_memory", lambda: 5e7)
    tracemalloc.start()
    with pytest.raises(ModelError, match="structure: would need about .* of memory"):
        wd.CertaintyEquivalent(known.space, horizon=10, structure=known)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e7


def test_a_saved_outcome_must_be_one_of_its_law():
    """The first variable has three outcomes, the other two: number 2 is none of them.

    Compiled code would read it from the next law, or from beyond the last.
    """
    known = Structure(
        wd.StateActions([2]),
        [Exogenous("demand", range(3)), Exogenous("refill", (0, 1))],
        next_state=lambda s, a, demand, refill: 0,
        reward=lambda s, a, demand, refill: float(demand * a + refill),
    )
    agent = wd.MultiScale(known.space, horizon=9, structure=known)
    a = agent.act(0)
    agent.observe(0, a, 2.0 * a + 1, 0, seen={"demand": 2, "refill": 1})
    blob = wd.agents.state.unpack(agent.state())
    state = blob.arrays["experts.cell_state"]
    assert state.tolist() == [2, 1]
    blob.arrays["experts.cell_state"] = state[::-1] + np.int32(1) - np.array([0, 1], np.int32)
    assert blob.arrays["experts.cell_state"].tolist() == [2, 2]
    with pytest.raises(StateError, match="'cell_state' is impossible"):
        wd.MultiScale.from_state(wd.agents.state.pack(blob))


def test_learners_of_rows_refuse_a_structure():
    known = structure_of(Shelf)
    for kind in (wd.UCRL2, wd.BORL, wd.MultiScaleGuarded, wd.SWUCRL2CW):
        with pytest.raises(InputError, match=r"structure: .* learns no laws.*MultiScale"):
            kind(known.space, horizon=9, structure=known)


def test_certainty_equivalence_is_the_law_of_the_last_window():
    """The best policy of the law that was counted by hand, found by the library's solver."""
    T, W = 60, 15
    days = Days(Shelf, T)
    agent = wd.CertaintyEquivalent(days.known.space, horizon=T, structure=days.known, window=W)
    demands = []
    for t in range(T):
        s = days.s
        a = agent.act(s)
        if t > W:
            recent = np.bincount(demands[-W:], minlength=5)
            q = (recent + 0.1) / (W + 0.5)
            (law,) = agent.explain(s).laws
            np.testing.assert_allclose(law.probabilities, q, rtol=1e-12)
            assert law.samples == pytest.approx(W)
            space = days.known.space
            pairs = np.column_stack([space.state_of, space.action_of]).tolist()
            rewards = [sum(q[d] * Shelf.g(*pair, d) for d in range(5)) for pair in pairs]
            rows = np.zeros((len(pairs), 7))
            for p, pair in enumerate(pairs):
                for d in range(5):
                    rows[p, Shelf.land(*pair, d)] += q[d]
            low, high = days.known.reward_range
            unit = (np.array(rewards) - low) / (high - low)
            worth = unit + rows @ wd.MDP(space, unit, rows).solve().bias
            here = slice(*space.offsets[s : s + 2])
            assert worth[here][a] >= worth[here].max() - 0.02  # plans stop at a span of .01
        reward, after, seen = days.after(a)
        demands.append(seen["demand"])
        agent.observe(s, a, reward, after, seen)
