"""What an agent requires depends on how it is made, not on its kind alone."""

from __future__ import annotations

import re

import pytest

import windage as wd
from windage.study.configs import EnvironmentConfig, tuned

MODEL = wd.envs.make("peril", horizon=400, tau=25)
BANDIT = wd.envs.make("bandit", horizon=400, shape="breaks")
B = ("B_r", "B_p")


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("swucrl2-cw", {}, B),
        ("swucrl2-cw", {"window": "tuned", "widening": 0.1}, B),
        ("swucrl2-cw", {"window": 200}, B),
        ("swucrl2-cw", {"window": 200, "widening": 0.1}, ()),
        ("swucrl2-cw", {"window": 200, "widening": [0.1] * 4}, ()),
        ("swucrl2-cw", {"window": "oblivious", "widening": "oblivious"}, ()),
        ("swucrl2-cw-practical", {"window": 200, "widening": 0.1}, B),
        ("swucrl2-cw-practical", {"window": 200, "widening": 0.1, "slack": 0.5}, ()),
        ("swucrl2", {}, B),
        ("swucrl2", {"window": 200}, ()),
        ("sw-psrl", {}, B),
        ("sw-psrl", {"window": 200}, ()),
        ("sw-psrl", {"window": "oblivious"}, ()),
        ("sw-ucrl", {}, ("l", "D")),
        ("sw-ucrl", {"window": "tuned"}, ("l", "D")),
        ("sw-ucrl", {"window": 100}, ()),
        ("ucrl2-restarts", {}, ("l",)),
        ("ucrl2-restarts", {"restarts": "changes"}, ("the times of the changes",)),
        ("ucrl2-restarts", {"restarts": [100, 200]}, ()),
        ("restarted-psrl", {"restarts": 100}, ()),
        ("va-ucrl", {}, B),
        ("master", {}, ("D",)),
        ("oracle", {}, ("the model",)),
        ("ucrl2", {}, ()),
        ("borl", {"arms": [(100, 0.1)]}, ()),
    ],
)
def test_what_each_kind_requires(name, options, told):
    facts = wd.agents.facts(name, MODEL, **options)
    assert wd.agents.requires(name, **(facts | options)) == told
    assert set(facts) <= {"budgets", "diameter", "problem"}
    if not told and name != "borl":  # nothing is told, so it makes no difference
        space, T = MODEL.space, MODEL.horizon
        made = (wd.agents.make(name, space, horizon=T, **one, **options) for one in (facts, {}))
        assert len({agent.state() for agent in made}) == 1


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("sw-ucb", {}, ("l",)),
        ("sw-ucb", {"changes": 3}, ("l",)),
        ("sw-ucb", {"window": 50}, ()),
        ("d-ucb", {"discount": 0.9}, ()),
        ("rexp3", {}, ("B_r",)),
        ("rexp3", {"batch": 50}, ()),
        ("exp3-s", {"changes": 3}, ("l",)),
        ("ucb1", {}, ()),
        ("bob", {}, ()),
    ],
)
def test_bandits(name, options, told):
    facts = wd.agents.facts(name, BANDIT, **options)
    assert wd.agents.requires(name, **(facts | options)) == told


def test_without_budgets_nothing_is_required():
    assert wd.agents.requires("swucrl2-cw") == wd.agents.requires("sw-psrl", window=None) == ()
    assert wd.agents.requires(wd.SWUCRL2CW, budgets=MODEL.budgets()) == B


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("sw-psrl", "window = 93"),
        ("swucrl2-cw", "window = 93 and widening = 0.2333"),
        ("swucrl2", "window = 93"),
        ("sw-ucrl3", "window = 93"),
    ],
)
def test_without_budgets_an_agent_says_what_it_fell_back_to(name, numbers):
    """W = S^(2/3) A^(1/2) sqrt(T) and sqrt(W / T): S = A = 2, T = 1700."""
    space = wd.StateActions([2, 2])
    message = f"{name} requires B_r and B_p, and there are no budgets: {numbers}"
    with pytest.warns(wd.ParameterWarning, match=re.escape(message)) as heard:
        agent = wd.agents.make(name, space, horizon=1700)
    words = dict(re.findall(r'(\w+)="(oblivious)"', str(heard[0].message)))
    said = wd.agents.make(name, space, horizon=1700, **words)  # in silence
    assert said.state() == agent.state()
    wd.agents.make(name, space, horizon=1700, budgets=MODEL.budgets())


def test_what_is_chosen_by_hand_is_not_warned_of():
    space = wd.StateActions([2, 2])
    wd.agents.make("sw-psrl", space, horizon=100, window=20)
    with pytest.warns(wd.ParameterWarning, match=r"budgets: widening = 0\.\d+ for unknown"):
        wd.agents.make("swucrl2-cw", space, horizon=100, window=20)
    with pytest.warns(wd.ParameterWarning, match='widening="oblivious", slack="oblivious"'):
        agent = wd.agents.make("swucrl2-cw-practical", space, horizon=100, window=20)
    words = {"widening": "oblivious", "slack": "oblivious"}
    same = wd.agents.make("swucrl2-cw-practical", space, horizon=100, window=20, **words)
    assert same.state() == agent.state()


class Asks:
    """An agent of one's own that wants to know."""

    def __init__(self, space, horizon, budgets=None, diameter=None):
        self.space = space

    def act(self, s):
        return 0

    def observe(self, s, a, reward, s_next): ...


class Declares(Asks):
    requires = ("B_r",)


def test_agents_of_ones_own():
    facts = wd.agents.facts(Asks, MODEL)
    assert wd.agents.requires(Asks, **facts) == ("B_r", "B_p", "D")
    assert wd.agents.requires(Asks) == ()
    assert wd.agents.requires(Declares, **facts) == ("B_r",)


def test_a_study_tells_numbers_found_from_the_same_numbers_chosen_by_hand():
    default = tuned("swucrl2-cw", {}, MODEL)
    numbers = {name: default.parameters[name] for name in ("window", "widening")}
    chosen = tuned("swucrl2-cw", numbers, MODEL)
    assert chosen.parameters == default.parameters
    assert (default.told, chosen.told) == (None, ())
    environment = EnvironmentConfig("peril-v1", {"horizon": 400})
    assert default.keys(environment, [1], measured=True) != chosen.keys(
        environment, [1], measured=True
    )
    assert tuned("swucrl2-cw", {"window": "oblivious", "widening": 0.1}, MODEL).told == ()
    assert tuned("ucrl2", {}, MODEL).told is None
