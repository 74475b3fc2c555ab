"""Every agent of the library keeps the contract; every check has an agent that fails it."""

# ruff: noqa: NPY002 - the global generator is what some of these agents must not use
from __future__ import annotations

import itertools
import random
import subprocess
import sys

import numpy as np
import pytest

import windage as wd
from tests.conftest import RELIABILITY
from windage.agents.state import Blob, pack, unpack
from windage.errors import InputError
from windage.testing import check_agent

# bandits are checked on several states all the same
pytestmark = pytest.mark.filterwarnings("ignore:.* is a bandit:windage.errors.GuaranteeWarning")


@pytest.mark.parametrize("id", wd.agents.names())
def test_every_agent_keeps_the_contract(id):
    """Memory is watched from 1,000 steps on, in `make reliability` twice as long."""
    check_agent(id, horizon=2000 if RELIABILITY else 1000)


LEARN_LAWS = [
    id for id in wd.agents.names() if "structure" in wd.agents.parameters(wd.agents.get(id))
]


@pytest.mark.parametrize("id", LEARN_LAWS)
def test_every_learner_of_laws_keeps_the_contract(id):
    """In a small structure with intervals and groups, and in one whose rewards are learned."""
    check_agent(id, horizon=1000, options={"structure": "environment"})
    known = wd.Structure(
        wd.StateActions([2, 2]),
        [wd.Exogenous("weather", ["dry", "wet"])],
        next_state=lambda s, a, weather: a if weather == "wet" else s,
    )
    assert known.reward is None
    check_agent(id, horizon=300, options={"structure": known})


def test_learners_of_laws_play_in_a_world_of_the_users():
    auctions = wd.envs.make("bidding-v1", horizon=200)

    def make(space, horizon, seed):
        return wd.MultiScale(space, horizon=horizon, structure=auctions.structure, seed=seed)

    check_agent(make, horizon=200, problem=auctions)
    check_agent("random", horizon=200, problem=auctions)
    check_agent(Plain, horizon=200, problem=auctions)  # its observe does not take `seen`


class TrustsOutcomes(wd.PSRL):
    """Takes an outcome that is not declared for one that was not said."""

    def __new__(cls, space, **options):
        agent = wd.PSRL(space, **options)
        plain = agent._check_seen

        def lenient(pair, reward, after, seen):
            told = seen or {}
            known = ("demand", range(3)), ("won", (0, 1))
            return plain(pair, reward, after, {n: told[n] for n, o in known if told.get(n) in o})

        agent._check_seen = lenient
        return agent


def test_an_agent_that_trusts_outcomes_is_found():
    options = {"structure": "environment"}
    with pytest.raises(AssertionError, match="with an undeclared .* was accepted"):
        check_agent(TrustsOutcomes, horizon=300, options=options)


@pytest.mark.parametrize("ties", ["lowest", "random", "previous", "sampled"])
def test_every_tie_rule_keeps_the_contract(ties):
    def make(space, horizon, seed):
        return wd.SWUCRL2CW(
            space, horizon=horizon, window=90, widening=0.2, ties=ties, slack=0.1, seed=seed,
            radii=wd.Radii.paper().scaled(0.1),
        )  # fmt: skip

    check_agent(make, horizon=600)


@pytest.mark.parametrize("id", wd.agents.names())
def test_in_a_world_of_the_users(id):
    check_agent(id, horizon=300, seed=3, problem=wd.envs.make("riverswim", horizon=300))


def test_one_state_and_one_action():
    space = wd.StateActions([1])
    model = wd.DriftingMDP.stationary(wd.MDP(space, [0.5], [[1.0]]), horizon=100)
    for id in wd.agents.names():
        check_agent(id, horizon=100, problem=model)


class Plain:
    """An agent with nothing but act and observe: a fixed rule on what it saw last."""

    def __init__(self, space, horizon, seed):
        self.space, self.t, self.last, self.pending = space, 1, seed, None

    def rule(self, s):
        return (self.last + self.t) % int(self.space.counts[s])

    def act(self, s):
        s = self.space.check_state(s)
        if self.pending is None:
            self.pending = (s, self.rule(s))
        if self.pending[0] != s:
            raise ValueError("another state")
        return self.pending[1]

    def check(self, s, a, reward, s_next):
        if self.pending is None or self.pending[0] != self.space.check_state(s):
            raise ValueError("not asked")
        self.space.check_action(s, a)
        self.space.check_state(s_next)
        if not np.isfinite(reward):
            raise ValueError("reward")

    def observe(self, s, a, reward, s_next):
        self.check(s, a, reward, s_next)
        self.learn(s, a, reward, s_next)
        self.last, self.pending = s_next, None
        self.t += 1

    def learn(self, s, a, reward, s_next):
        pass


class Saved(Plain):
    """The same, and it can be saved."""

    id = "saved"

    def __init__(self, space, horizon, seed):
        super().__init__(space, horizon, seed)
        self.horizon = horizon

    def values(self):
        return {"t": self.t, "last": self.last, "pending": self.pending}

    def state(self):
        made = {"actions": self.space.counts.tolist(), "horizon": self.horizon}
        return pack(Blob(self.id, made, self.values(), {}))

    @classmethod
    def from_state(cls, data):
        blob = unpack(data)
        made = blob.configuration
        agent = cls(wd.StateActions(made["actions"]), made["horizon"], 0)
        agent.t, agent.last = blob.values["t"], blob.values["last"]
        if blob.values["pending"] is not None:
            agent.pending = tuple(blob.values["pending"])
        return agent


@pytest.mark.parametrize("make", [Plain, Saved])
def test_agents_of_the_users_own_pass(make):
    check_agent(make, horizon=300)


class NoObserve:
    def __init__(self, space, horizon, seed):
        pass

    def act(self, s):
        return 0


class OutOfRange(Plain):
    """Knows the largest action set only."""

    def rule(self, s):
        return (self.last + self.t) % 3


class Negative(Plain):
    def rule(self, s):
        return -1


class Floats(Plain):
    def rule(self, s):
        return 0.0


class Booleans(Plain):
    def rule(self, s):
        return True


class Moody(Plain):
    """Draws anew whenever it is asked."""

    def __init__(self, space, horizon, seed):
        super().__init__(space, horizon, seed)
        self.rng = np.random.default_rng(seed)

    def act(self, s):
        s = self.space.check_state(s)
        self.pending = s, int(self.rng.integers(self.space.counts[s]))
        return self.pending[1]


class Counting(Saved):
    """Counts how often it was asked."""

    asked = 0

    def values(self):
        return super().values() | {"asked": self.asked}

    def act(self, s):
        action = super().act(s)
        self.asked += 1
        return action


class Shared(Plain):
    """All agents of the class count together."""

    count = itertools.count()

    def rule(self, s):
        return next(self.count) % int(self.space.counts[s])


class FromPython(Plain):
    def rule(self, s):
        return random.randrange(int(self.space.counts[s]))


class FromNumPy(Plain):
    def rule(self, s):
        return int(np.random.randint(int(self.space.counts[s])))


class Wasteful(Plain):
    """Draws from the global generator and does not use it."""

    def rule(self, s):
        random.random()
        return super().rule(s)


class Prophet(wd.agents.RandomAgent):
    """Its compiled loop looks at the rewards the world has at the end."""

    def play(self, world, state, block):
        from windage.kernels.simulator import step

        final = world.rewards[-1]  # the model of later times
        for i in range(block.states.size):
            first, last = self.space.offsets[state : state + 2]
            pair = first + int(1e6 * final.sum()) % (last - first)
            block.states[i], block.pairs[i] = state, pair
            block.means[i], block.rewards[i], state = step(world, self.t + i, pair)
        return int(state)


class OtherLoop(wd.agents.RandomAgent):
    """Its compiled loop always plays the first action."""

    def play(self, world, state, block):
        from windage.kernels.simulator import step

        for i in range(block.states.size):
            pair = self.space.offsets[state]
            block.states[i], block.pairs[i] = state, pair
            block.means[i], block.rewards[i], state = step(world, self.t + i, pair)
        return int(state)


class ForgetsPending(Saved):
    def values(self):
        return super().values() | {"pending": None}


class DecidesAgain(Saved):
    """Its decisions hang on a draw of which a restart makes another one."""

    @classmethod
    def from_state(cls, data):
        agent = super().from_state(data)
        if agent.pending is not None:
            n = int(agent.space.counts[agent.pending[0]])
            agent.pending = agent.pending[0], (agent.pending[1] + 1) % n
        return agent

    def state(self):
        made = {"actions": self.space.counts.tolist(), "horizon": self.horizon}
        return pack(Blob(self.id, made, super().values() | {"pending": self.pending}, {}))


class Forgetful(Saved):
    """What it learned is not saved."""

    turn = 0

    def rule(self, s):
        return self.turn % int(self.space.counts[s])

    def learn(self, s, a, reward, s_next):
        self.turn += 1


class TrustsActions(Plain):
    def check(self, s, a, reward, s_next):
        super().check(s, 0, reward, s_next)


class TrustsRewards(Plain):
    def check(self, s, a, reward, s_next):
        super().check(s, a, 0.0, s_next)


class TrustsCallers(Plain):
    def check(self, s, a, reward, s_next):
        if self.pending is not None:
            super().check(s, a, reward, s_next)


class LearnsFirst(Saved):
    """Learns, and looks afterwards whether it should have."""

    def observe(self, s, a, reward, s_next):
        before, self.last = self.last, s_next
        try:
            self.check(s, a, reward, s_next)
        except ValueError:
            self.t += self.pending is not None
            self.last = before
            raise
        super().observe(s, a, reward, s_next)


class Hoarding(Plain):
    """Keeps one number of each step."""

    def __init__(self, space, horizon, seed):
        super().__init__(space, horizon, seed)
        self.history = []

    def learn(self, s, a, reward, s_next):
        self.history.append(reward)


CASES = [
    (NoObserve, r"NoObserve has no method 'observe'. Fix: give it observe\("),
    (OutOfRange, r"act\(\d\) returned \d, which s=\d does not offer. Fix: return an integer"),
    (Negative, r"t=1: act\(0\) returned -1, which s=0 does not offer"),
    (Floats, r"t=1: act\(0\) returned 0.0, which is no action"),
    (Booleans, r"t=1: act\(0\) returned True, which is no action"),
    (Moody, r"act\(\d\) returned \d, and \d when asked again. Fix: decide once"),
    (Counting, "t=1: asking again changed the state"),
    (Shared, "the same seed and the same outcomes gave another action"),
    (FromPython, "the same seed and the same outcomes gave another action"),
    (FromNumPy, "the same seed and the same outcomes gave another action"),
    (Wasteful, "the global random generators were used. Fix: draw from a generator of the"),
    (Prophet, r"the action depends on the environment after t=100"),
    (OtherLoop, "windage.run goes another way than act and observe"),
    (ForgetsPending, "t=2: restored with a decision pending, observe is refused"),
    (DecidesAgain, "restored with a decision pending, the agent decides again"),
    (Forgetful, "saved after t=1, the agent goes on differently"),
    (TrustsActions, r"observe\(.*\) with an action .* was accepted\. .*errors\.InputError"),
    (TrustsRewards, r"observe\(.*nan.*\) with a reward that is no number was accepted"),
    (TrustsCallers, r"observe\(.*\) without a decision was accepted\. .*CallOrderError"),
    (LearnsFirst, "was refused, and changed the state"),
    (Hoarding, r"memory grew by \d+ bytes from t=1000 to t=2000. Fix: keep counts or a window"),
]


@pytest.mark.parametrize(("make", "finding"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_broken_contract_is_found(make, finding):
    with pytest.raises(AssertionError, match=finding):
        check_agent(make)


def test_global_generators_are_left_where_they_were():
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    check_agent("random", horizon=50)
    with pytest.raises(AssertionError):
        check_agent(Wasteful, horizon=50)
    assert (random.random(), np.random.random()) == expected


def test_only_global_draws_differ():
    """An agent whose draws are seeded globally acts the same until the generators differ."""

    class Reseeding(FromPython):
        def rule(self, s):
            state = random.getstate()
            action = super().rule(s)
            random.setstate(state)
            return action

    with pytest.raises(AssertionError, match="actions depend on the global random generators"):
        check_agent(Reseeding)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"make": 3}, "make: 3 makes no agents"),
        ({"make": "randm"}, "did you mean 'random'"),
        ({"horizon": 7}, "horizon: 7"),
        ({"seed": -1}, "seed: -1"),
        ({"problem": 3}, "problem: 3 is no DriftingMDP"),
        ({"problem": wd.envs.make("riverswim", horizon=50)}, "at least 2000 steps"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {"make": "random"} | arguments
    with pytest.raises(InputError, match=message):
        check_agent(given.pop("make"), **given)


def test_the_suite_does_not_vanish_when_asserts_do():
    code = (
        "from tests.contract.test_agents import Negative\n"
        "from windage.testing import check_agent\n"
        "try:\n    check_agent(Negative)\n"
        "except AssertionError as err:\n    print('found', err)\n"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("found t=1: act(0) returned -1")
