"""Bandits: literal twins from the definitions, bytes, forgetting, input."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import windage as wd
from windage.agents import BOB, DUCB, EXP3S, REXP3, SWUCB, UCB1
from windage.streams import key, stream
from windage.testing import check_agent

KINDS = [UCB1, SWUCB, DUCB, REXP3, EXP3S, BOB]
SPACE = wd.StateActions([3, 1, 2])


# --- literal twins -------------------------------------------------------------------------------


def drawn(seed, purpose, t):
    """The uniform number at an address, in Python's own integers."""
    low, high = (int(word) for word in key(seed, purpose))

    def mixed(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    return (mixed((mixed((t + low) % 2**64) + high) % 2**64) >> 11) / 2**53


class Bound:
    """One bandit: the whole history, and an index from its definition."""

    def __init__(self, K, xi, *, window=None, discount=1.0, scale=1.0):
        self.K, self.xi, self.window, self.discount, self.scale = K, xi, window, discount, scale
        self.history = []

    def indices(self):
        t = len(self.history) + 1
        found = []
        old = 1 if self.window is None else max(1, t - self.window)
        N, X = np.zeros(self.K), np.zeros(self.K)
        for arm in range(self.K):
            mine = [
                (self.discount ** (t - 1 - s), x)
                for s, (a, x) in enumerate(self.history, 1)
                if a == arm and s >= old
            ]
            N[arm] = math.fsum(w for w, _ in mine)
            X[arm] = math.fsum(w * x for w, x in mine)
        total = N.sum() if self.window is None else min(t, self.window)
        for arm in range(self.K):
            if N[arm] == 0:
                return [float(a == arm) for a in range(self.K)]
            found.append(
                X[arm] / N[arm] + self.scale * math.sqrt(self.xi * math.log(total) / N[arm])
            )
        return found

    def learn(self, arm, x):
        self.history.append((arm, x))


def world(space, T, seed, low=0.0, high=1.0):
    """Rewards of any size and states of any order: what an agent may meet."""
    rng = stream(seed, "bandit tests")
    rewards = low + (high - low) * rng.random(T)
    rewards[::3] = np.where(rng.random(rewards[::3].size) < 0.5, low, high)  # ties too
    return rng.integers(space.n_states, size=T + 1).tolist(), rewards.tolist()


BOUNDS = [
    (UCB1, {}, {"xi": 2.0}),
    (UCB1, {"exploration": 0.3}, {"xi": 0.3}),
    (SWUCB, {"window": 17}, {"xi": 0.6, "window": 17}),
    (SWUCB, {"window": 1}, {"xi": 0.6, "window": 1}),
    (SWUCB, {"window": 60, "exploration": 0.1}, {"xi": 0.1, "window": 60}),
    (SWUCB, {"window": 10**6}, {"xi": 0.6, "window": 10**6}),
    (DUCB, {"discount": 0.93}, {"xi": 0.6, "discount": 0.93, "scale": 2.0}),
    (DUCB, {"discount": 0.5}, {"xi": 0.6, "discount": 0.5, "scale": 2.0}),
    (DUCB, {"changes": 0}, {"xi": 0.6, "scale": 2.0}),
]


@pytest.mark.parametrize(("kind", "options", "literal"), BOUNDS)
@pytest.mark.parametrize("reward_range", [None, (-2.0, 3.0)])
def test_bounds_are_their_definitions(kind, options, literal, reward_range):
    """The action has the largest index."""
    T, (low, high) = 400, reward_range or (0.0, 1.0)
    agent = kind(SPACE, horizon=T, reward_range=reward_range, **options)
    twins = [Bound(K, **literal) for K in SPACE.counts]
    states, rewards = world(SPACE, T, 1, low, high)
    contested = 0
    for t in range(T):
        s = states[t]
        a, indices = agent.act(s), twins[s].indices()
        best = max(indices)
        assert indices[a] >= best - 1e-10, t
        contested += len(set(indices)) > 1
        agent.observe(s, a, rewards[t], states[t + 1])
        twins[s].learn(a, (rewards[t] - low) / (high - low))
    assert contested > 50


@pytest.mark.parametrize(("kind", "options", "literal"), BOUNDS[:6])
def test_the_first_of_equally_good_arms_is_played(kind, options, literal):
    """With rewards 0 and 1 the twins agree to the last bit, ties included."""
    T = 300
    agent, twin = kind(wd.StateActions([4]), horizon=T, **options), Bound(4, **literal)
    rewards, tied = stream(9, "coins").integers(2, size=T).tolist(), 0
    for reward in rewards:
        a, indices = agent.act(0), twin.indices()
        assert a == indices.index(max(indices))
        tied += indices.count(max(indices)) > 1
        agent.observe(0, a, reward, 0)
        twin.learn(a, reward)
    assert tied > 0 or options.get("window") == 1


class Exponential:
    """One bandit by exponential weights: EXP3 in batches, or with shared weights."""

    def __init__(self, K, gamma, *, batch=math.inf, share=0.0):
        self.K, self.gamma, self.batch, self.share = K, gamma, batch, share
        self.w, self.n = np.ones(K), 0

    def probabilities(self):
        return (1 - self.gamma) * self.w / self.w.sum() + self.gamma / self.K

    def learn(self, arm, x):
        grown = np.ones(self.K)
        grown[arm] = math.exp(self.gamma / self.K * x / self.probabilities()[arm])
        self.w = self.w * grown + self.share * self.w.sum()
        self.n += 1
        if self.n == self.batch:
            self.w, self.n = np.ones(self.K), 0


def gamma_exp3(K, n):
    return min(1.0, math.sqrt(K * math.log(K) / ((math.e - 1) * n)))


def gamma_shared(K, T, changes):
    if K == 1:
        return 0.0
    pieces = changes + 1
    return min(1.0, math.sqrt(K * (pieces * math.log(K * T) + math.e) / ((math.e - 1) * T)))


def rexp3(T, V):
    def made(K):
        batch = T
        if V > 0:
            batch = min(T, max(1, math.ceil((K * math.log(K)) ** (1 / 3) * (T / V) ** (2 / 3))))
        return Exponential(K, gamma_exp3(K, batch), batch=batch)

    return made


def exp3s(T, changes):
    def made(K):
        return Exponential(K, gamma_shared(K, T, changes), share=math.e / (K * T))

    return made


T_LITERAL = 1200
WEIGHTS = [
    (REXP3, {"variation": 2.5}, rexp3(T_LITERAL, 2.5)),
    (REXP3, {"variation": 60.0}, rexp3(T_LITERAL, 60.0)),
    (REXP3, {"variation": 0.0}, rexp3(T_LITERAL, 0.0)),
    (REXP3, {"batch": [5, 7, 9]}, lambda K: Exponential(
        K, gamma_exp3(K, {3: 5, 1: 7, 2: 9}[K]), batch={3: 5, 1: 7, 2: 9}[K])),
    (EXP3S, {"changes": 2}, exp3s(T_LITERAL, 2)),
    (EXP3S, {"changes": 0}, exp3s(T_LITERAL, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "make"), WEIGHTS)
@pytest.mark.parametrize("reward_range", [None, (-2.0, 3.0)])
def test_weights_are_their_definitions(kind, options, make, reward_range):
    """Probabilities to 1e-12 in every state, and the arm whose interval holds the draw."""
    T, (low, high) = T_LITERAL, reward_range or (0.0, 1.0)
    if "variation" in options:  # in units of the rewards
        options = {"variation": options["variation"] * (high - low)}
    agent = kind(SPACE, horizon=T, reward_range=reward_range, seed=7, **options)
    twins = [make(int(K)) for K in SPACE.counts]
    states, rewards = world(SPACE, T, 2, low, high)
    for t in range(1, T + 1):
        s, p = states[t - 1], agent.probabilities
        for state, twin in enumerate(twins):
            first, last = SPACE.offsets[state : state + 2]
            assert p[first:last] == pytest.approx(twin.probabilities(), abs=1e-12)
        a, u = agent.act(s), drawn(7, f"agents.{kind.id}", t)
        edges = np.concatenate([[0.0], np.cumsum(twins[s].probabilities())])
        assert edges[a] - 1e-12 <= u <= edges[a + 1] + 1e-12
        agent.observe(s, a, rewards[t - 1], states[t])
        twins[s].learn(a, (rewards[t - 1] - low) / (high - low))


@pytest.mark.parametrize("reward_range", [None, (-2.0, 3.0)])
@pytest.mark.parametrize("T", [1, 2, 70, 900])
def test_bob_is_its_definition(T, reward_range):
    """Blocks of ceil(sqrt(T)) steps, a fresh SW-UCB in each, EXP3 over its windows."""
    low, high = reward_range or (0.0, 1.0)
    agent = BOB(SPACE, horizon=T, reward_range=reward_range, seed=3)
    H = next(n for n in range(1, T + 1) if n * n >= T)
    m = math.ceil(math.log(H))
    windows = [max(w for w in range(1, H + 1) if w**m <= H**j) for j in range(m + 1)]
    master = Exponential(m + 1, gamma_exp3(m + 1, math.ceil(T / H)))
    assert (agent.block_length, list(agent.windows)) == (H, windows)
    states, rewards = world(SPACE, T, 4, low, high)
    total, seen = 0.0, set()
    for t in range(1, T + 1):
        s, a = states[t - 1], agent.act(states[t - 1])
        if (t - 1) % H == 0:
            if t > 1:
                x = 0.5 + total / (2 * H + 4 * math.sqrt(H * math.log(T / math.sqrt(H))))
                assert 0 <= x <= 1
                master.learn(arm, x)  # noqa: F821 - of the block before
            p, u = master.probabilities(), drawn(3, "agents.bob", t)
            assert agent.probabilities == pytest.approx(p, abs=1e-12)
            arm = int(np.searchsorted(np.cumsum(p), u, side="right"))
            seen.add(arm)
            assert agent.arm == arm
            total = 0.0
            twins = [Bound(K, 0.6, window=windows[arm]) for K in SPACE.counts]
        indices = twins[s].indices()
        assert indices[a] >= max(indices) - 1e-10
        agent.observe(s, a, rewards[t - 1], states[t])
        twins[s].learn(a, (rewards[t - 1] - low) / (high - low))
        total += (rewards[t - 1] - low) / (high - low)
    assert T < 900 or len(seen) >= 4


# --- tuning --------------------------------------------------------------------------------------


class Known:
    reward, transition, changes = 2.0, 0.0, 5


def test_what_they_are_tuned_to():
    T, space = 10_000, wd.StateActions([3, 1])
    made = {kind: kind.configured(space, horizon=T, budgets=Known()) for kind in KINDS}
    assert made[SWUCB].window == round(2 * math.sqrt(T * math.log(T) / 5))
    assert made[DUCB].discount == pytest.approx(1 - math.sqrt(5 / T) / 4, rel=1e-15)
    assert made[REXP3].batch.tolist() == [math.ceil((3 * math.log(3) * (T / 2) ** 2) ** (1 / 3)), 1]
    assert made[EXP3S].changes == 5
    told = {kind: kind.told for kind in KINDS}
    assert told == {
        UCB1: (), SWUCB: ("l",), DUCB: ("l",), REXP3: ("B_r",), EXP3S: ("l",), BOB: (),
    }  # fmt: skip


def test_without_budgets_one_change_or_a_variation_of_one():
    T, space = 10_000, wd.StateActions([3])
    for kind, name, value in (
        (SWUCB, "window", round(2 * math.sqrt(T * math.log(T)))),
        (DUCB, "discount", 1 - 1 / 400),
        (EXP3S, "changes", 1),
        (REXP3, "batch", [math.ceil((3 * math.log(3)) ** (1 / 3) * T ** (2 / 3))]),
    ):
        agent = kind.configured(space, horizon=T)
        assert np.array_equal(getattr(agent, name), value), kind
        assert np.array_equal(getattr(kind(space, horizon=T), name), value)
        given = kind.configured(space, horizon=T, budgets=Known(), **{name: value})
        assert np.array_equal(getattr(given, name), value)  # what is given is taken
        tuned = kind.configured(space, horizon=T, budgets=Known(), **{name: "tuned"})
        assert not np.array_equal(getattr(tuned, name), value)
        with pytest.raises(wd.InputError, match=f'{name}: is "tuned", and there are no budgets'):
            kind.configured(space, horizon=T, **{name: "tuned"})
        with pytest.raises(wd.InputError, match=f"{name}: "):
            kind.configured(space, horizon=T, **{name: "oblivious"})


def test_a_model_that_does_not_change_is_not_forgotten():
    T, space = 500, wd.StateActions([3, 2])
    still = wd.DriftingMDP.stationary(
        wd.MDP(space, [0.1, 0.5, 0.9, 0.2, 0.4], np.full((5, 2), 0.5)), horizon=T
    )
    made = {kind: kind.configured(space, horizon=T, budgets=still.budgets()) for kind in KINDS}
    assert made[SWUCB].window == T
    assert made[SWUCB]._table.ring_pair.size == 0
    assert made[DUCB].discount == 1.0
    assert made[REXP3].batch.tolist() == [T, T]
    assert made[EXP3S].changes == 0
    with pytest.warns(wd.GuaranteeWarning, match="3 arms and 1 rounds"):
        assert REXP3(space, horizon=T, variation=1e9).batch.tolist() == [1, 1]


def test_budgets_that_do_not_tell_the_changes():
    class Two:
        reward, transition = 1.0, 1.0

    with pytest.raises(wd.InputError, match="changes: .* does not tell it"):
        SWUCB.configured(SPACE, horizon=100, budgets=Two())


# --- the contract --------------------------------------------------------------------------------


def quietly(kind):
    def make(space, horizon, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wd.GuaranteeWarning)
            return kind.configured(space, horizon=horizon, seed=seed, budgets=Known())

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_they_keep_the_contract(kind):
    check_agent(quietly(kind), horizon=1000)
    check_agent(kind, horizon=200, problem=wd.envs.make("bandit", horizon=200, shape="breaks"))
    one = wd.StateActions([1])
    still = wd.DriftingMDP.stationary(wd.MDP(one, [0.5], [[1.0]]), horizon=50)
    check_agent(kind, horizon=50, problem=still)


def small(T, noise="beta"):
    rng = stream(3, "small")
    models = [
        wd.MDP(SPACE, rng.random(6), rng.dirichlet(np.ones(3), size=6)),
        wd.MDP(SPACE, rng.random(6), rng.dirichlet(np.ones(3), size=6)),
    ]
    return wd.DriftingMDP.blend(models, wd.schedules.Cosine(3), horizon=T, noise=noise)


@pytest.mark.parametrize("kind", KINDS)
def test_split_anywhere_the_bytes_are_the_same(kind):
    T = 1500
    model, make = small(T), quietly(kind)
    whole = make(SPACE, T, 5)
    run = wd.run(model, whole, seed=2)
    for cuts in ([1], [37, 38, 700], [250, 1499]):
        agent, parts = make(SPACE, T, 5), []
        for steps in np.diff([0, *cuts, T]).tolist():
            agent = type(agent).from_state(agent.state())
            parts.append(wd.run(model, agent, seed=2, steps=steps))
        assert np.concatenate([part.actions for part in parts]).tolist() == run.actions.tolist()
        assert agent.state() == whole.state()
    live, s = make(SPACE, T, 5), 0
    for t in range(T):
        a = live.act(s)
        assert a == run.actions[t]
        live.observe(s, a, run.rewards[t], int(run.states[t + 1]))
        s = int(run.states[t + 1])
    assert live.state() == whole.state()


def test_seeds_name_the_draws():
    T = 300
    model = small(T)
    for kind in (REXP3, EXP3S, BOB):
        paths = [wd.run(model, kind(SPACE, horizon=T, seed=i), seed=1).actions for i in (1, 1, 2)]
        assert (paths[0] == paths[1]).all()
        assert (paths[0] != paths[2]).any()


def test_a_window_bounds_the_memory():
    T, space = 4000, wd.StateActions([2])
    model = wd.envs.make("bandit", horizon=T)
    agent = SWUCB(space, horizon=T, window=50)
    assert agent._table.ring_pair.shape == (1, 50)
    sizes = []
    for _ in range(4):
        wd.run(model, agent, seed=1, steps=1000)
        sizes.append(len(agent.state()))
    assert max(sizes) - min(sizes) < 16
    assert agent._table.visits.sum() == 50


# --- forgetting ----------------------------------------------------------------------------------

T_BREAKS = 20_000
LATE = slice(4 * T_BREAKS // 10, T_BREAKS // 2)  # the second half of the third arm's moment
AFTER = slice(3 * T_BREAKS // 4, T_BREAKS)


def shares(make):
    """How often the third arm is played late in its great moment, and long after it."""
    model = wd.envs.make("bandit", horizon=T_BREAKS, shape="breaks")
    late, after, regret = [], [], []
    for seed in range(5):
        run = wd.run(model, make(model.space, seed), seed=seed)
        late.append((run.actions[LATE] == 2).mean())
        after.append((run.actions[AFTER] == 2).mean())
        regret.append(wd.dynamic_regret(run, model).total)
    return np.mean(late), np.mean(after), np.mean(regret)


@pytest.mark.parametrize(
    ("kind", "told", "blind"),
    [
        (EXP3S, {"changes": 2}, {"variation": 0.0}),  # that is REXP3: EXP3.S always shares
        (REXP3, {"variation": 1.0}, {"variation": 0.0}),
        (SWUCB, {"changes": 2}, {"changes": 0}),
        (DUCB, {"changes": 2}, {"changes": 0}),
    ],
)
def test_forgetting_follows_the_breaks(kind, told, blind):
    """Five fixed seeds; the same learner that forgets nothing does not pass."""
    found = {}
    for name, options in (("told", told), ("blind", blind)):
        made = REXP3 if "variation" in options else kind
        found[name] = shares(
            lambda space, seed: made(space, horizon=T_BREAKS, seed=seed, **options)  # noqa: B023
        )
    print(kind.id, found)
    came_back = {name: late - after for name, (late, after, _) in found.items()}
    assert came_back["told"] > 0.4
    assert came_back["blind"] < 0.3
    if kind is not DUCB:  # which pays more for its wide bounds than it gains here
        assert found["told"][2] < found["blind"][2]


# --- input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (UCB1, {"exploration": -1}, "exploration: -1"),
        (UCB1, {"exploration": math.nan}, "exploration: nan"),
        (UCB1, {"reward_range": (1, 0)}, "reward_range"),
        (SWUCB, {"window": 0}, "window: 0"),
        (SWUCB, {"window": 2.5}, "window: 2.5"),
        (SWUCB, {"changes": -1}, "changes: -1"),
        (SWUCB, {"changes": 1.0}, "changes: 1.0"),
        (DUCB, {"discount": 0.0}, "discount: 0.0"),
        (DUCB, {"discount": 1.1}, "discount: 1.1"),
        (REXP3, {"batch": 0}, "batch: 0"),
        (REXP3, {"batch": [1, 2]}, "batch: has 2 numbers for 3 states"),
        (REXP3, {"batch": [1, 2, 2.5]}, "batch: 2.5"),
        (REXP3, {"variation": -1.0}, "variation: -1.0"),
        (REXP3, {"variation": math.inf}, "variation: inf"),
        (EXP3S, {"changes": True}, "changes: True"),
        (BOB, {"exploration": "much"}, "exploration: 'much'"),
    ],
)
def test_impossible_bandits(kind, options, message):
    with pytest.raises(wd.InputError, match=message):
        kind(SPACE, horizon=100, **options)


def test_impossible_spaces_and_horizons():
    for kind in KINDS:
        with pytest.raises(wd.ModelError, match="space"):
            kind(3, horizon=100)
        with pytest.raises(wd.ModelError, match="horizon"):
            kind(SPACE, horizon=0)
        assert wd.run(small(1), quiet(kind, 1, None), seed=1).steps == 1
    huge = wd.StateActions.uniform(1000, 1)
    with pytest.raises(wd.ModelError, match="window: would need about"):
        SWUCB(huge, horizon=10**12, window=10**11)


def test_a_mixing_above_one_is_said_once():
    with pytest.warns(wd.GuaranteeWarning, match=r"exp3-s: gamma = .* 3 arms and 100 rounds"):
        agent = EXP3S(SPACE, horizon=100, changes=50)
    with pytest.warns(wd.GuaranteeWarning, match=r"rexp3: gamma = .* 3 arms and 1 rounds"):
        REXP3(SPACE, horizon=100, batch=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = EXP3S.from_state(agent.state())
        wd.run(small(100, "bernoulli"), again, seed=1)
    assert again.probabilities == pytest.approx([1 / 3] * 3 + [1.0] + [0.5] * 2)


def test_rewards_outside_the_unit_interval_are_clipped_and_it_is_said():
    agent, twin = (EXP3S(SPACE, horizon=100, seed=1) for _ in range(2))
    for t, reward in enumerate((1.0, 7.0, -3.0, 0.5)):
        a = agent.act(0)
        assert twin.act(0) == a
        twin.observe(0, a, min(1.0, max(0.0, reward)), 0)
        if t == 1:
            with pytest.warns(wd.ParameterWarning, match=r"exp3-s: a reward outside \[0, 1\] was"):
                agent.observe(0, a, reward, 0)
        else:
            agent.observe(0, a, reward, 0)
    assert (agent.probabilities == twin.probabilities).all()
    again = EXP3S.from_state(agent.state())
    again.observe(0, again.act(0), 9.0, 0)  # it has warned already


@pytest.mark.parametrize("kind", KINDS)
def test_a_reward_outside_the_declared_range_stops_a_run_where_it_is(kind):
    T = 2000
    model = small(T, wd.Noise.gaussian(0.3))
    agent, twin = (quiet(kind, T, (-0.25, 1.25)) for _ in range(2))
    with pytest.raises(wd.InputError, match=r"reward at t=\d+: .* not in the declared range"):
        wd.run(model, agent, seed=1)
    assert 1 < agent.t < T
    wd.run(model, twin, seed=1, steps=agent.t - 1)
    if kind is not BOB:  # a relay does not keep what an interrupted block has earned
        assert agent.state() == twin.state()
    assert kind.from_state(agent.state()).t == agent.t


def quiet(kind, T, reward_range):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        return kind(SPACE, horizon=T, reward_range=reward_range, seed=2)


class Stop(BaseException):
    pass


@pytest.mark.parametrize("kind", [UCB1, SWUCB, DUCB, REXP3, EXP3S])
def test_an_interrupt_between_learning_and_clock_is_made_good(kind, monkeypatch):
    T = 60_000
    model = small(T)
    whole, agent = quiet(kind, T, None), quiet(kind, T, None)
    wd.run(model, whole, seed=1, record="totals")
    real = kind.play

    def cut_short(self, world, state, block):
        after = real(self, world, state, block)
        if self.t > 20_000:
            raise Stop
        return after

    with monkeypatch.context() as patch:
        patch.setattr(kind, "play", cut_short)
        with pytest.raises(Stop):
            wd.run(model, agent, seed=1, record="totals")
    assert agent.t > 20_000
    wd.run(model, agent, seed=1, record="totals")
    assert agent.state() == whole.state()


@pytest.mark.parametrize("kind", KINDS)
def test_impossible_saved_values_are_refused(kind):
    from windage.agents.blob import Blob, pack, unpack

    T = 300
    agent = quiet(kind, T, None)
    wd.run(small(T), agent, seed=1, steps=200)
    blob = unpack(agent.state())
    for name, array in blob.arrays.items():
        if name == "runner" or array.size == 0:
            continue
        broken = [array[:-1], np.zeros(array.shape, bool)]
        if array.dtype == np.float64:
            broken.append(np.full(array.shape, math.nan))
        if array.dtype == np.int32:
            broken += [np.full_like(array, 99), np.full_like(array, -1)]
        if array.dtype == np.int64:
            broken += [array - 1000, array + 1000]
        for wrong in broken:
            arrays = blob.arrays | {name: wrong}
            data = pack(Blob(blob.agent, blob.configuration, blob.values, arrays))
            with pytest.raises(wd.StateError):
                kind.from_state(data)


def test_another_action_than_the_advised_one_teaches_too():
    for kind in KINDS:
        agent = quiet(kind, 200, None)
        for _ in range(200):
            agent.observe(0, (agent.act(0) + 1) % 3, 0.5, 0)
        assert agent.overridden == 200
