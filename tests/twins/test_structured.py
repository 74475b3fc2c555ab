"""MultiScale with a structure against its slow literal twin, action by action."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.twins.structured import Sampler, Twin
from windage.structure import Exogenous, Structure

CLOSE = {"rtol": 1e-7, "atol": 1e-9}


class Shelf:
    """Stock for six with a demand of 0..4: one law, every action shows it."""

    outcomes = (range(5),)
    seen = ("always",)
    space = wd.StateActions([7 - s for s in range(7)])

    @staticmethod
    def labels(s, a):
        return ("all",)

    @staticmethod
    def land(s, a, d):
        return max(s + a - d, 0)

    @staticmethod
    def g(s, a, d):
        return 4 * min(s + a, d) - a - 0.3 * (s + a) - (a > 0)


class Sales(Shelf):
    """The same, where only sales are seen: a demand beyond the stock is an interval."""

    seen = ("interval",)

    @staticmethod
    def shown(s, a, d):
        return ((d, d) if d < s + a else (s + a, 4),)


class Weekday(Shelf):
    """A weekday in the state, and a law for each."""

    space = wd.StateActions([4 - s % 4 for s in range(12)])

    @staticmethod
    def labels(s, a):
        return (f"day {s // 4}",)

    @staticmethod
    def land(s, a, d):
        return (s // 4 + 1) % 3 * 4 + max(s % 4 + a - d, 0)

    @staticmethod
    def g(s, a, d):
        return 4 * min(s % 4 + a, d) - a - 0.3 * (s % 4 + a)


class Auction:
    """Bids on a budget: a law of winning for each bid, seen where it is bid; a refill, always."""

    outcomes = (range(2), range(2))
    seen = ("involved", "always")
    space = wd.StateActions([1, 2, 3, 3])  # as much as is left, three at most

    @staticmethod
    def labels(s, a):
        return (None if a == 0 else f"bid {a}", "all")

    @staticmethod
    def land(s, a, won, refill):
        return min(s - a * (won or 0) + refill, 3)

    @staticmethod
    def g(s, a, won, refill):
        return 2.5 * (won or 0) - 0.5 * a * (won or 0)


class Learned(Auction):
    """The same, and rewards are not known."""

    g = None


class Inferred(Auction):
    """Nothing is shown of the bids: what is left of the budget says whether one was won."""

    seen = ("inferred", "inferred")
    space = wd.StateActions([1, 2, 3])

    @staticmethod
    def land(s, a, won, refill):
        return min(s - a * (won or 0) + refill, 2)

    @staticmethod
    def g(s, a, won, refill):
        return 2.5 * (won or 0) - 0.25 * a * (won or 0) + 0.1 * refill


class Stall:
    """A stall that may stay shut: open, it shows two laws, one of them as intervals."""

    outcomes = (range(4), range(2))
    seen = ("interval", "involved")
    space = wd.StateActions([1, 3, 3, 3])  # stock; 0: shut, else what kind of goods to offer

    @staticmethod
    def labels(s, a):
        return (None, None) if a == 0 else ("all", f"goods {a}")

    @staticmethod
    def shown(s, a, demand, returned):
        if a == 0:
            return (None, None)
        return ((demand, demand) if demand < s else (s, 3), (returned, returned))

    @staticmethod
    def land(s, a, demand, returned):
        return min(s + 1, 3) if a == 0 else min(max(s - demand, 0) + returned, 3)

    @staticmethod
    def g(s, a, demand, returned):
        return -s / 2 if a == 0 else a * min(s, demand) - (1 + a) * returned


CASES = [Shelf, Sales, Weekday, Auction, Learned, Inferred, Stall]


def structure_of(case):
    names = ("demand", "refill") if len(case.outcomes) == 2 else ("demand",)
    variables = [
        Exogenous(name, outcomes, group=lambda s, a, f=f: case.labels(s, a)[f], seen=seen)
        for f, (name, outcomes, seen) in enumerate(
            zip(names, case.outcomes, case.seen, strict=True)
        )
    ]
    reward = case.g
    return Structure(case.space, variables, next_state=case.land, reward=reward)


def twin_of(case, known, T, seed, kind=Twin, **options):
    space = case.space
    pairs = [(int(s), int(a)) for s, a in zip(space.state_of, space.action_of, strict=True)]

    def laws(s, a):
        return tuple(
            None if label is None else (f, label) for f, label in enumerate(case.labels(s, a))
        )

    used = sorted({law for s, a in pairs for law in laws(s, a) if law is not None})
    sizes = {law: len(case.outcomes[law[0]]) for law in used}
    always = {law for law in used if case.seen[law[0]] == "always"}
    low, high = known.reward_range
    if kind is Sampler:
        options["intervals"] = [law for law in sizes if case.seen[law[0]] == "interval"]
    given = pairs, laws, sizes, case.land, case.g, T, seed, low, high, always
    twin = kind(*given, **options)
    return twin, laws


def world(case, sizes, laws, seed, T):
    """What a step shows and leads to: laws that drift, drawn from NumPy's own generator."""
    rng = np.random.default_rng([seed, 7])
    ends = {law: rng.dirichlet(np.ones(n), 2) for law, n in sizes.items()}

    def step(t, s, a):
        weight = 0.5 + 0.5 * np.cos(6.0 * t / T)
        outcomes = []
        for law in laws(s, a):
            if law is None:
                outcomes.append(None)
            else:
                q = weight * ends[law][0] + (1 - weight) * ends[law][1]
                outcomes.append(int(rng.choice(q.size, p=q)))
        reward = rng.random() if case.g is None else case.g(s, a, *outcomes)
        return outcomes, reward, case.land(s, a, *outcomes)

    return step


def told(case, s, a, outcomes):
    """What a step shows, as (lowest, highest) of each variable, None if it shows nothing."""
    if hasattr(case, "shown"):
        return case.shown(s, a, *outcomes)
    return tuple(None if o is None else (o, o) for o in outcomes)


def as_seen(case, known, shown):
    """`shown` as observe takes it."""
    if case.seen[0] == "inferred":
        return None
    return {
        variable.name: ends[0] if ends[0] == ends[1] else ends
        for variable, ends in zip(known.variables, shown, strict=True)
        if ends is not None
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_step_is_the_twins(case, seed):
    """Actions, weights, laws and the model that is planned with, at every step."""
    T = 90
    known = structure_of(case)
    agent = wd.MultiScale(case.space, horizon=T, structure=known, seed=seed)
    twin, laws = twin_of(case, known, T, seed)
    step = world(case, twin.sizes, laws, seed, T)
    order = [(v, label) for v, label in known.laws]
    censored = {law for law in order if case.seen[law[0]] == "interval"}
    s = 0
    for t in range(T):
        pair = known.space.pair(s, agent.act(s))
        assert pair == twin.act(s), t
        compare(agent, twin, order, planned=twin.planned == twin.t)
        a = int(known.space.action_of[pair])
        outcomes, reward, after = step(t, s, a)
        shown = told(case, s, a, outcomes)
        agent.observe(s, a, reward, after, as_seen(case, known, shown))
        of_laws = {law: one for law, one in zip(laws(s, a), shown, strict=True) if law is not None}
        twin.observe(pair, reward, of_laws, censored)
        s = after


SAMPLERS = {
    "psrl": (wd.PSRL, {}),
    "sw-psrl": (wd.SWPSRL, {"window": 25, "prior": 2.0}),
    "doubling": (wd.SWPSRL, {"window": 40, "episodes": "doubling"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_posterior_sampling_is_its_twins(case, kind):
    """Actions, episodes, the laws drawn and the model planned with, at every step."""
    T, seed = 90, 3
    known = structure_of(case)
    make, options = SAMPLERS[kind]
    agent = make(case.space, horizon=T, structure=known, seed=seed, **options)
    options = {name: options[name] for name in ("window", "prior") if name in options}
    twin, laws = twin_of(
        case, known, T, seed, Sampler, grows=kind != "doubling", stream=agent.id, **options
    )
    order = list(known.laws)
    twin.sizes = {law: twin.sizes[law] for law in order}
    step, s, starts = world(case, twin.sizes, laws, seed, T), 0, []
    for t in range(T):
        pair = known.space.pair(s, agent.act(s))
        assert pair == twin.act(s), t
        if twin.planned == twin.t:
            starts.append(t + 1)
            estimate = agent._learner_state.kernel.estimate
            mine = np.concatenate([twin.q[law] for law in order])
            np.testing.assert_allclose(estimate.q, mine, rtol=1e-9)
            np.testing.assert_allclose(estimate.pairs["mean"], twin.r, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(estimate.u, list(twin.u.values()), rtol=1e-6, atol=1e-9)
        assert agent.episode.start == starts[-1]
        a = int(known.space.action_of[pair])
        outcomes, reward, after = step(t, s, a)
        shown = told(case, s, a, outcomes)
        agent.observe(s, a, reward, after, as_seen(case, known, shown))
        of_laws = {law: one for law, one in zip(laws(s, a), shown, strict=True) if law is not None}
        twin.observe(pair, reward, of_laws)
        s = after
    assert 3 < len(starts) < T - 10


def compare(agent, twin, order, planned):
    kernel = agent._learner_state.kernel
    estimate = kernel.estimate
    experts = estimate.experts
    assert agent.windows == tuple(twin.windows)
    np.testing.assert_allclose(experts.of_laws.overall, twin.G, **CLOSE)
    np.testing.assert_allclose(experts.of_laws.own, [twin.w[law] for law in order], **CLOSE)
    np.testing.assert_allclose(experts.of_laws.past[0], twin.v, **CLOSE)
    np.testing.assert_allclose(experts.of_laws.own_past, [twin.vs[law] for law in order], **CLOSE)
    if twin.g is None:
        np.testing.assert_allclose(experts.of_rewards.overall, twin.Gr, **CLOSE)
        own = [twin.wr[p] for p in range(len(twin.pairs))]
        np.testing.assert_allclose(experts.of_rewards.own, own, **CLOSE)
    assert estimate.laws["plays"].tolist() == [twin.used[law] for law in order]
    np.testing.assert_allclose(estimate.laws["limit"], [twin.limit[law] for law in order], **CLOSE)
    if planned:
        mine = np.concatenate([twin.q[law] for law in order])
        np.testing.assert_allclose(estimate.q, mine, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(estimate.laws["mass"], [twin.M[law] for law in order], **CLOSE)
        np.testing.assert_allclose(estimate.pairs["mean"], twin.r, **CLOSE)
        np.testing.assert_allclose(estimate.pairs["bonus"], twin.b, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(estimate.u, list(twin.u.values()), rtol=1e-6, atol=1e-8)
