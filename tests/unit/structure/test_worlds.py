"""Models of a structure: rows and means by brute force, outcomes drawn from laws, shown as seen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

import windage as wd
from tests.unit.structure.problems import counter, enumerated, shelf
from windage.errors import InputError, ModelError
from windage.models.blend import Blend
from windage.structure import worlds
from windage.structure.worlds import LawStream

RNG = np.random.default_rng(5)
SELLS = (
    lambda s, a, d: max(s + a - d, 0),
    lambda s, a, d: 5.0 * min(s + a, d) - 2.0 * a - 0.5 * max(s + a - d, 0),
)
SERVES = (
    lambda s, a, arrived, served: min(s - (served == "yes") + arrived, 3),
    lambda s, a, arrived, served: -s - 2 * a,
)
SEASON = np.array([[0.4, 0.3, 0.15, 0.1, 0.05], [0.0, 0.1, 0.2, 0.3, 0.4]])
COSINE = wd.schedules.Cosine(cycles=2)


def drawn(*shape):
    """Return laws, one a row."""
    found = RNG.random(shape) + 0.05
    return found / found.sum(axis=-1, keepdims=True)


def shop(T=400, seen="always"):
    return shelf(seen).drifting({"demand": (SEASON, COSINE)}, horizon=T)


def desk(T=300):
    """Two variables, one of them grouped; all laws drift, so that rows are products."""
    laws = {"arrivals": (drawn(2, 3), COSINE), "service": {0: drawn(T, 2), 1: [0.2, 0.8]}}
    return counter().drifting(laws, horizon=T), laws


def close(mdp, rows, means):
    np.testing.assert_allclose(mdp.transitions, rows, rtol=0, atol=1e-14)
    np.testing.assert_allclose(mdp.rewards, means, rtol=0, atol=1e-13)


def test_a_model_is_the_push_forward_of_its_laws():
    law = drawn(5)
    close(shelf().model({"demand": law}), *enumerated(shelf(), SELLS, {"demand": law}))
    laws = {"arrivals": drawn(3), "service": {0: drawn(2), 1: drawn(2)}}
    close(counter().model(laws), *enumerated(counter(), SERVES, laws))


def test_laws_of_every_t_make_the_model_of_every_t():
    model, laws = desk()
    assert isinstance(model.source, LawStream)
    weight = COSINE.weights(np.arange(1, 301), 300)
    for t in (1, 2, 77, 300):
        now = {
            "arrivals": weight[t - 1] @ laws["arrivals"][0],
            "service": {0: laws["service"][0][t - 1], 1: [0.2, 0.8]},
        }
        close(model.at(t), *enumerated(model.structure, SERVES, now))
        again = model.laws(t)
        close(model.structure.model(again), model.at(t).transitions, model.at(t).rewards)
        np.testing.assert_allclose(again["arrivals"], now["arrivals"], atol=1e-15)


@pytest.mark.parametrize(
    "schedule", [COSINE, [1, 100, 400], wd.schedules.Steps([50]), wd.schedules.RandomWalk(0)]
)
def test_one_schedule_and_one_drifting_law_a_pair_is_a_blend(schedule):
    bases = drawn(3, 5) if isinstance(schedule, list) else drawn(2, 5)
    model = shelf().drifting({"demand": (bases, schedule)}, horizon=400)
    assert isinstance(model.source, Blend)
    plan = wd.schedules.Knots((1, 100, 400)) if isinstance(schedule, list) else schedule
    for t in (1, 49, 50, 250, 400):
        law = plan.weights(t, 400) @ bases
        close(model.at(t), *enumerated(shelf(), SELLS, {"demand": law}))


def test_products_of_laws_are_a_blend_only_where_they_jump():
    laws = {"arrivals": (drawn(2, 3), COSINE), "service": {0: (drawn(2, 2), COSINE), 1: [0.5, 0.5]}}
    smooth = counter().drifting(laws, horizon=100)
    assert isinstance(smooth.source, LawStream)
    jump = wd.schedules.Steps([30, 60])
    laws = {"arrivals": (drawn(2, 3), jump), "service": {0: (drawn(2, 2), jump), 1: [0.5, 0.5]}}
    steps = counter().drifting(laws, horizon=100)
    assert isinstance(steps.source, Blend)
    for model in (smooth, steps):
        for t in (1, 29, 30, 31, 60, 99):
            close(model.at(t), *enumerated(model.structure, SERVES, model.laws(t)))
        assert model.optimal_gains().at(30) == pytest.approx(model.at(30).solve().gain, abs=1e-6)


@pytest.mark.parametrize("schedule", [COSINE, wd.schedules.Steps([30])])
def test_sparse_rows_are_the_dense_ones_whatever_is_zero(schedule, monkeypatch):
    """Laws with zeros in different places: each has entries of its own."""
    bases = np.array([[0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5], [0.2, 0.2, 0.2, 0.2, 0.2]])
    laws = {"demand": (bases[:2], schedule)}
    dense = shelf().drifting(laws, horizon=60)
    monkeypatch.setattr(worlds, "_DENSE", 0)
    known = shelf()
    sparse = known.drifting(laws, horizon=60)
    for t in (1, 20, 29, 30, 31, 60, 20):
        assert not isinstance(sparse.at(t).transitions, np.ndarray)
        close(dense.at(t), sparse.at(t).transitions.toarray(), sparse.at(t).rewards)
    models = [known.model({"demand": law}) for law in bases]
    for law, mdp in zip(bases, models, strict=True):
        rows, means = enumerated(known, SELLS, {"demand": law})
        np.testing.assert_allclose(mdp.transitions.toarray(), rows, rtol=0, atol=1e-14)
        np.testing.assert_allclose(mdp.rewards, means, rtol=0, atol=1e-13)
        assert mdp.transitions.nnz == np.count_nonzero(rows)
    wd.testing.check_drifting_mdp(sparse, communicating=False)
    every = np.repeat(bases, 20, axis=0)
    wd.testing.check_drifting_mdp(
        known.drifting({"demand": every}, horizon=60), communicating=False
    )


def test_laws_that_stay_are_a_stationary_model():
    model = shelf().drifting({"demand": SEASON[0]}, horizon=50)
    assert model.budgets().reward == model.budgets().transition == 0
    assert model.optimal_gains().solves <= 2
    close(model.at(50), *enumerated(shelf(), SELLS, {"demand": SEASON[0]}))


class Recorder:
    """Plays at random, by a seed of its own, and writes down what it is told."""

    def __init__(self, space, seed):
        self.space, self.rng, self.told = space, np.random.default_rng(seed), []

    def act(self, s):
        return int(self.rng.integers(self.space.counts[s]))

    def observe(self, s, a, reward, s_next, seen=None):
        self.told.append((s, a, reward, s_next, seen))


def told(model, seed=0, play=0):
    agent = Recorder(model.space, play)
    run = wd.run(model, agent, seed=seed)
    return agent.told, run


def test_reward_and_next_state_are_those_of_the_outcomes():
    model, _ = desk()
    steps, run = told(model)
    for t, (s, a, reward, after, seen) in enumerate(steps, start=1):
        outcomes = seen["arrivals"], seen.get("service")
        assert ("service" in seen) == (s > 0)
        assert after == SERVES[0](s, a, *outcomes)
        assert reward == SERVES[1](s, a, *outcomes)
        mean = model.at(t).rewards[model.space.pair(s, a)]
        assert run.mean_rewards[t - 1] == pytest.approx(mean, abs=1e-12)


def test_outcomes_are_those_of_their_laws():
    """Chi-square at a false-alarm rate of 1e-6; a law that is off by .02 is rejected."""
    T, law = 40_000, SEASON[0]
    model = shelf().drifting({"demand": law}, horizon=T)
    counts = np.bincount([seen["demand"] for *_, seen in told(model)[0]], minlength=5)
    assert chisquare(counts, T * law).pvalue > 1e-6
    off = law + np.array([0.02, -0.02, 0, 0, 0])
    assert chisquare(counts, T * off).pvalue < 1e-6


def test_drifting_laws_are_drawn_from_as_they_stand():
    T = 30_000
    model = shop(T)
    weight = COSINE.weights(np.arange(1, T + 1), T)
    outcomes = np.array([seen["demand"] for *_, seen in told(model)[0]])
    busy = weight[:, 1] > 0.8
    for some in (busy, ~busy):
        expected = (weight[some] @ SEASON).sum(axis=0)
        counts = np.bincount(outcomes[some], minlength=5)
        assert chisquare(counts, expected).pvalue > 1e-6
    still = np.bincount(outcomes[busy], minlength=5), SEASON.mean(axis=0) * busy.sum()
    assert chisquare(*still).pvalue < 1e-6


def test_an_outcome_of_probability_zero_is_never_drawn():
    law = np.array([0.0, 0.3, 0.0, 0.7, 0.0])
    model = shelf().drifting({"demand": law}, horizon=5000)
    assert {seen["demand"] for *_, seen in told(model)[0]} == {1, 3}


def test_all_agents_on_a_seed_meet_the_same_outcomes():
    model, _ = desk()
    one, other = told(model, play=1)[0], told(model, play=2)[0]
    assert [s for s, *_ in one] != [s for s, *_ in other]
    assert [seen["arrivals"] for *_, seen in one] == [seen["arrivals"] for *_, seen in other]
    both = [
        (x[4]["service"], y[4]["service"])
        for x, y in zip(one, other, strict=True)
        if "service" in x[4] and "service" in y[4] and x[1] == y[1]  # the same label
    ]
    assert len(both) > 30
    assert all(x == y for x, y in both)
    assert [x[4] for x in one] != [x[4] for x in told(model, seed=1, play=1)[0]]


def test_an_outcome_does_not_depend_on_other_laws():
    """Draws are addressed by name and label: another variable beside it changes none of them."""
    model, laws = desk()
    alone = model.structure.drifting(laws | {"service": {0: [1, 0], 1: [1, 0]}}, horizon=300)
    assert [seen["arrivals"] for *_, seen in told(model)[0]] == [
        seen["arrivals"] for *_, seen in told(alone)[0]
    ]


@pytest.mark.parametrize("seen", ["always", "involved", "interval", "inferred"])
def test_what_is_shown(seen):
    if seen == "inferred":  # unambiguous: what is left and what was lost tell it
        known = wd.Structure(
            wd.StateActions([4, 3, 2, 1]),
            [wd.Exogenous("demand", range(5), seen=seen)],
            next_state=SELLS[0],
            reward=lambda s, a, d: float(s + a - d),
        )
        model = known.drifting({"demand": (SEASON, COSINE)}, horizon=300)
    else:
        model = shop(300, seen)
    space = model.space
    for s, a, reward, after, shown in told(model)[0]:
        possible = [
            d for d in range(5) if SELLS[0](s, a, d) == after and SELLS[1](s, a, d) == reward
        ]
        if seen == "inferred":
            assert shown == {}
        elif seen == "interval":
            ends = possible[0] if len(possible) == 1 else (possible[0], possible[-1])
            assert shown == {"demand": ends}
        else:
            assert shown["demand"] in possible
    assert space.n_states == 4


@pytest.mark.parametrize("seen", ["always", "involved", "interval"])
def test_compiled_stepwise_and_by_hand_are_one(seen):
    T = 500
    model = shop(T, seen)

    class Slow(wd.MultiScale):
        """The same, played step by step: a class with an `act` of its own has no loop."""

        def act(self, s):
            return super().act(s)

    def agent(kind=wd.MultiScale):
        return kind(model.space, horizon=T, structure=model.structure)

    whole, fast = agent(), None
    fast = wd.run(model, whole, seed=4)
    slow = wd.run(model, agent(Slow), seed=4)
    cut = agent()
    parts = [wd.run(model, cut, seed=4, steps=n) for n in (1, 170, 329)]
    for name in ("rewards", "mean_rewards", "actions"):
        column = getattr(fast, name)
        assert column.tobytes() == getattr(slow, name).tobytes()
        assert column.tobytes() == np.concatenate([getattr(p, name) for p in parts]).tobytes()
    assert cut.state() == whole.state()
    by_hand, simulator = agent(), wd.simulate.Simulator(model, seed=4)
    assert simulator.shows
    assert simulator.seen is None
    for t in range(T):
        s = simulator.state
        a = by_hand.act(s)
        reward, after = simulator.step(a)
        by_hand.observe(s, a, reward, after, seen=simulator.seen)
        assert (s, a, reward) == (fast.states[t], fast.actions[t], fast.rewards[t])
    assert by_hand.state() == whole.state()


def test_agents_that_cannot_be_told_are_not():
    class Deaf:
        def __init__(self):
            self.n = 0

        def act(self, s):
            return 0

        def observe(self, s, a, reward, s_next):
            self.n += 1

    agent = Deaf()
    wd.run(shop(40), agent)
    assert agent.n == 40


def test_a_problem_of_ones_own_may_show_outcomes():
    class Own:
        def __init__(self):
            self.simulator = wd.simulate.Simulator(shop(60))
            self.space, self.horizon, self.seen = self.simulator.space, 60, None

        def reset(self, seed):
            return self.simulator.reset(seed)

        def step(self, action):
            answer = self.simulator.step(action)
            self.seen = self.simulator.seen
            return answer

    known = shelf()
    twin, agent = (wd.MultiScale(known.space, horizon=60, structure=known) for _ in range(2))
    wd.run(Own(), agent, seed=2)
    wd.run(shop(60), twin, seed=2)
    assert agent.state() == twin.state()


def test_rewards_gains_and_regret_are_in_the_units_of_the_structure():
    def priced(scale, shift):
        return wd.Structure(
            wd.StateActions([4, 3, 2, 1]),
            [wd.Exogenous("demand", range(5))],
            next_state=SELLS[0],
            reward=lambda s, a, d: scale * SELLS[1](s, a, d) + shift,
        )

    T, found = 300, {}
    for scale, shift in ((1.0, 0.0), (1e6, 3e6)):
        known = priced(scale, shift)
        model = known.drifting({"demand": (SEASON, COSINE)}, horizon=T)
        agent = wd.MultiScale(known.space, horizon=T, structure=known)
        run = wd.run(model, agent, seed=1)
        regret = wd.dynamic_regret(run, model)
        low, high = known.reward_range
        assert model.reward_range == (low, high)
        assert low <= run.rewards.min()
        assert run.rewards.max() <= high
        found[scale] = (
            run.actions, (run.rewards - shift) / scale, (regret.total / scale),
            (model.optimal_gains().values - shift) / scale, model.budgets().reward / scale,
            model.at(7).solve().gain / scale - shift / scale,
        )  # fmt: skip
        assert regret.error <= 1e-5 * T * (high - low)
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-4)


class TestLearnedRewards:
    known = wd.Structure(
        wd.StateActions([2, 2]),
        [wd.Exogenous("wind", [0, 1])],
        next_state=lambda s, a, w: int(s ^ (w & a)),
    )

    def test_have_means_of_their_own(self):
        means = np.array([0.1, 0.9, 0.3, 0.6])
        mdp = self.known.model({"wind": [0.5, 0.5]}, rewards=means)
        assert mdp.rewards.tolist() == means.tolist()
        bases = ([means, 1 - means], wd.schedules.Linear())
        model = self.known.drifting({"wind": [0.5, 0.5]}, horizon=9, rewards=bases)
        np.testing.assert_allclose(model.at(5).rewards, 0.5, atol=1e-15)
        table = RNG.random((9, 4))
        model = self.known.drifting({"wind": drawn(9, 2)}, horizon=9, rewards=table)
        assert model.at(4).rewards.tolist() == table[3].tolist()

    @pytest.mark.parametrize("rewards", ["bases", "rows", "still"])
    def test_are_drawn_around_them(self, rewards):
        T = 20_000
        still = np.array([0.1, 0.9, 0.3, 0.6])
        given = {
            "still": still, "rows": np.tile(still, (T, 1)), "bases": ([still, still], COSINE)
        }[rewards]  # fmt: skip
        model = self.known.drifting({"wind": [0.5, 0.5]}, horizon=T, rewards=given)
        assert model.noise == wd.Noise.bernoulli()
        agent = wd.agents.make("random", model.space, horizon=T)
        run = wd.run(model, agent, seed=1)
        assert set(np.unique(run.rewards)) == {0.0, 1.0}
        for pair in range(4):
            here = model.space.offsets[run.states[:-1]] + run.actions == pair
            paid, mean, n = run.rewards[here].mean(), still[pair], here.sum()
            assert abs(paid - mean) < 5 * np.sqrt(mean * (1 - mean) / n)
            np.testing.assert_allclose(run.mean_rewards[here], mean, rtol=1e-15)

    def test_have_a_range(self):
        known = wd.Structure(
            wd.StateActions([2, 2]), [wd.Exogenous("wind", [0, 1])],
            next_state=lambda s, a, w: w, reward_range=(-10, 30),
        )  # fmt: skip
        model = known.drifting({"wind": [0.5, 0.5]}, horizon=4000, rewards=[0.0, 20.0] * 2)
        run = wd.run(model, wd.agents.make("random", model.space, horizon=4000))
        assert set(np.unique(run.rewards)) == {-10.0, 30.0}
        assert abs(run.rewards[run.actions == 1].mean() - 20.0) < 3.0
        with pytest.raises(ModelError, match=r"40.0 is not in the range \[-10, 30\]"):
            known.drifting({"wind": [0.5, 0.5]}, horizon=4, rewards=[0.0, 40.0] * 2)

    def test_must_be_given(self):
        with pytest.raises(ModelError, match="does not say what is earned"):
            self.known.model({"wind": [0.5, 0.5]})
        with pytest.raises(ModelError, match="3 rows for a horizon of 4"):
            self.known.drifting({"wind": [0.5, 0.5]}, horizon=4, rewards=np.zeros((3, 4)))
        with pytest.raises(ModelError, match="the space has 4 pairs"):
            self.known.drifting({"wind": [0.5, 0.5]}, horizon=4, rewards=[0.5, 0.5])
        with pytest.raises(InputError, match="knows its rewards"):
            shelf().model({"demand": SEASON[0]}, rewards=np.zeros(10))
        with pytest.raises(InputError, match="there is no other noise"):
            shelf().drifting({"demand": SEASON[0]}, horizon=5, noise="beta")


@pytest.mark.parametrize(
    ("laws", "said"),
    [
        (SEASON, r"laws: .*does not say whose laws.*\{'demand'"),
        ({}, r"laws\['demand'\]: is missing"),
        ({"demnd": SEASON[0]}, "did you mean"),
        ({"demand": [0.5, 0.5]}, r"laws\['demand'\]: 2 probabilities for 5 outcomes"),
        ({"demand": [0.2, 0.2, 0.2, 0.2, 0.1]}, r"laws\['demand'\]: sums to 0.9, not 1"),
        ({"demand": [1.2, -0.2, 0, 0, 0]}, "probability -0.2 of 1 is not in"),
        ({"demand": [np.nan, 1, 0, 0, 0]}, "probability nan of 0"),
        ({"demand": "often"}, "is not an array of numbers"),
        ({"demand": {0: SEASON[0]}}, "has labels .0., and the variable has one law"),
        ({"demand": SEASON}, "2 rows for a horizon of 9"),
        ({"demand": np.vstack([SEASON[[0] * 8], [[0.5, 0, 0, 0, 0]]])}, "at t=9: sums to 0.5"),
        ({"demand": (SEASON[0], COSINE)}, "base laws of shape"),
        ({"demand": (SEASON, "cosine")}, "'cosine' has no method weights"),
        ({"demand": (SEASON, wd.schedules.Cosine)}, "is a class, not a schedule"),
        ({"demand": (SEASON[:1], COSINE)}, "speaks of 2 base laws, there are 1"),
        ({"demand": (SEASON * 0.9, COSINE)}, "at base law 0: sums to 0.9"),
        ({"demand": (SEASON, [2, 5])}, "the first knot is 2"),
        ({"demand": (SEASON, [1, 12])}, "12"),
    ],
)  # fmt: skip
def test_laws_that_are_none_are_named(laws, said):
    with pytest.raises((ModelError, InputError), match=said):
        shelf().drifting(laws, horizon=9)


def test_labels_of_laws_are_checked():
    fine = {"arrivals": [0.2, 0.3, 0.5]}
    for given, said in (
        ([0.5, 0.5], r"is one law, and the variable has 2 \(0, 1\)"),
        ({0: [0.5, 0.5]}, "the law 1 is missing"),
        ({0: [0.5, 0.5], 1: [0.5, 0.5], 2: [1, 0]}, "there is no law 2"),
        ({0: [0.5, 0.5], 1: [0.5, 0.4]}, r"laws\['service'\]\[1\]: sums to 0.9"),
    ):
        with pytest.raises(ModelError, match=said):
            counter().model(fine | {"service": given})
    with pytest.raises(ModelError, match="one law is needed"):
        shelf().model({"demand": SEASON})


def test_only_a_structure_has_the_noise_of_outcomes():
    mdp = wd.envs.riverswim_mdp(3)
    with pytest.raises(InputError, match="model with a structure"):
        wd.DriftingMDP.stationary(mdp, horizon=5, noise=wd.Noise.outcomes())
    with pytest.raises(InputError, match="noise"):
        wd.DriftingMDP.stationary(mdp, horizon=5, noise="outcomes")
    plain = wd.DriftingMDP.stationary(mdp, horizon=5)
    assert plain.structure is None
    assert plain.reward_range == (0.0, 1.0)
    with pytest.raises(InputError, match="has no structure"):
        plain.laws(1)


def test_many_states_and_one_law():
    S = 10_000
    known = wd.Structure(
        wd.StateActions.uniform(S, 2),
        [wd.Exogenous("step", range(7))],
        next_state=lambda s, a, x: (s + (1 if a else -1) * x) % S,
        reward=lambda s, a, x: -x + s / S,
    )
    laws = drawn(2, 7)
    model = known.drifting({"step": (laws, COSINE)}, horizon=1000)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=1000), seed=1)
    half = COSINE.weights(250, 1000) @ laws
    mdp = model.at(250)
    row = mdp.transitions[[model.space.pair(5, 1)], :].toarray()[0]
    np.testing.assert_allclose(row[5:12], half, atol=1e-15)
    assert row.sum() == pytest.approx(1.0)
    assert set(np.diff(run.states) % S) <= {*range(7), *(S - np.arange(7)).tolist()}


def test_a_model_travels_between_processes():
    import pickle

    model, _ = desk()
    again = pickle.loads(pickle.dumps(model))
    assert told(again)[0] == told(model)[0]
    assert again.structure.same(model.structure)


def test_pairs_that_involve_nothing_are_certain():
    known = wd.Structure(
        wd.StateActions([2, 2]),
        [wd.Exogenous("coin", [0, 1], lambda s, a: "fair" if a else None, "involved")],
        next_state=lambda s, a, x: s if x is None else int(x),
        reward=lambda s, a, x: 0.25 if x is None else float(x),
    )
    model = known.drifting({"coin": {"fair": [0.5, 0.5]}}, horizon=200)
    for s, a, reward, after, seen in told(model)[0]:
        assert (a == 1) == ("coin" in seen)
        assert (reward, after) == ((float(seen["coin"]), seen["coin"]) if a else (0.25, s))


def test_laws_sum_up_by_hand():
    """The literal loop of the tests above against one worked out on paper."""
    mdp = shelf().model({"demand": [0.5, 0.5, 0, 0, 0]})
    pair = shelf().space.pair(1, 1)  # two on the shelf, half a piece is sold
    assert mdp.transitions[pair].tolist() == [0, 0.5, 0.5, 0]
    assert mdp.rewards[pair] == pytest.approx(0.5 * (-2 - 1) + 0.5 * (5 - 2 - 0.5))
    assert list(itertools.islice(mdp.transitions[0], 2)) == [1.0, 0.0]
