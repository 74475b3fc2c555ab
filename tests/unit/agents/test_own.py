"""Agents of the user's own: `module:Class`, entry points, and what their constructors ask for."""

from __future__ import annotations

import importlib.metadata
import sys

import numpy as np
import pytest

import windage as wd

MODULE = '''
import windage as wd

class Cycling:
    """Plays the actions of a state in turn."""

    def __init__(self, space, horizon, seed=0, start=0):
        self.space, self.horizon, self.seed = space, horizon, seed
        self.turn = [start] * space.n_states
        self.t = 1

    def act(self, s):
        return self.turn[s] % int(self.space.counts[s])

    def observe(self, s, a, reward, s_next):
        self.turn[s] += 1
        self.t += 1

class Bare:
    def act(self, s):
        return 0
    def observe(self, s, a, reward, s_next):
        pass

class Told:
    requires = ("B_r",)
    def __init__(self, space, budgets, diameter, problem):
        self.space = space
        self.budget, self.diameter, self.problem = budgets.reward, diameter, problem
    act, observe = Bare.act, Bare.observe

class Positional:
    def __init__(self, space, /, *, depth):
        self.space, self.depth = space, depth
    act, observe = Bare.act, Bare.observe

class Raising(Bare):
    def __init__(self, space):
        raise RuntimeError("no licence")

class Deaf:
    def act(self, s):
        return 0

class Ours(wd.UCRL2):
    id = "ours"

class Outer:
    class Inner(Bare):
        pass

agent = Bare()
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own_agents_here.py").write_text(MODULE)
    (tmp_path / "own_broken_here.py").write_text("x = 1\nx = = 2\n")
    (tmp_path / "own_failing_here.py").write_text("x = 1\nx / 0\n")
    (tmp_path / "own_needing_here.py").write_text("import a_module_nobody_has\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_a_class_of_the_current_folder_is_an_agent(folder):
    model = wd.envs.make("inventory", horizon=60)
    agent = wd.agents.make("own_agents_here:Cycling", model.space, horizon=60, seed=7, start=1)
    assert type(agent).__name__ == "Cycling"
    assert (agent.horizon, agent.seed, agent.turn[0]) == (60, 7, 1)
    run = wd.run(model, agent, seed=0)
    first = np.flatnonzero(run.states[:-1] == run.states[0])
    expected = [(1 + k) % 10 for k in range(first.size)]
    assert run.actions[first].tolist() == expected
    assert wd.dynamic_regret(run, model).last == 60


def test_a_class_is_given_what_it_asks_for_and_no_more(folder):
    model = wd.envs.make("two-state-cosine", horizon=50)
    bare = wd.agents.make("own_agents_here:Bare", model.space, horizon=50)
    assert bare.act(0) == 0
    given = wd.agents.facts("own_agents_here:Told", model)
    assert set(given) == {"problem", "budgets", "diameter"}
    told = wd.agents.make("own_agents_here:Told", model.space, horizon=50, **given)
    assert told.problem is model
    assert told.budget == model.budgets().reward
    assert told.diameter == model.max_diameter().upper
    assert wd.agents.facts("own_agents_here:Cycling", model) == {}
    deep = wd.agents.make("own_agents_here:Positional", model.space, horizon=9, depth=3)
    assert (deep.space, deep.depth) == (model.space, 3)


def test_subclasses_of_our_agents_are_made_like_ours(folder):
    space = wd.StateActions([2, 2])
    agent = wd.agents.make("own_agents_here:Ours", space, horizon=9, delta=0.1)
    assert agent.delta == 0.1
    assert wd.agents.resolve("own_agents_here:Outer.Inner").__name__ == "Inner"
    with pytest.raises(wd.InputError, match="no such parameter"):
        wd.agents.make("own_agents_here:Ours", space, horizon=9, dleta=0.1)


def test_installed_packages_offer_agents_by_entry_points(folder, monkeypatch):
    points = [importlib.metadata.EntryPoint("cycling", "own_agents_here:Cycling", "windage.agents")]
    real = importlib.metadata.entry_points

    def entry_points(*, group):
        return points if group == "windage.agents" else real(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    assert "cycling" in wd.agents.names()
    space = wd.StateActions([2, 1])
    assert wd.agents.make("cycling", space, horizon=9, start=1).act(0) == 1
    assert wd.agents.resolve("cycling") is wd.agents.resolve("own_agents_here:Cycling")
    wd.testing.check_drifting_mdp(wd.envs.make("two-state-cosine", horizon=20))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_agents_here:", "names no class. Fix: write module:Class"),
        (":Cycling", "names no class"),
        ("own_agents_here:Cyclin", "has no 'Cyclin'. Fix: one of: Cycling, Bare"),
        ("own_agents_here:Outer.None", "has no 'None'"),
        ("own_agents_here:agent", "is a Bare, not a class"),
        ("own_agents_here:Deaf", "'Deaf' has no method 'observe'"),
        ("own_nowhere:A", "there is no module 'own_nowhere'"),
        ("own_agents_here.deeper:A", "cannot be imported|there is no module"),
        ("own_broken_here:A", "own_broken_here:A at line 2: .*SyntaxError"),
        ("own_failing_here:A", "own_failing_here.py:2: .*ZeroDivisionError"),
        ("own_needing_here:A", "ModuleNotFoundError: No module named 'a_module_nobody_has'"),
        ("ucrl", "did you mean 'ucrl"),
        (3, "no such choice: 3"),
    ],
)
def test_what_is_no_agent_is_refused(folder, name, said):
    with pytest.raises(wd.InputError, match=said):
        wd.agents.resolve(name)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("Positional", {}, "its constructor asks for 'depth', which is not given"),
        ("Told", {}, "asks to be told 'budgets', which is not given"),
        ("Raising", {}, "making it raised RuntimeError: no licence"),
        ("Cycling", {"strat": 2}, "own_agents_here:Cycling.strat: no such parameter"),
        ("Bare", {"depth": 2}, "no such parameter. Fix: leave it out"),
    ],
)
def test_what_cannot_be_made_is_refused(folder, name, options, said):
    with pytest.raises(wd.InputError, match=said):
        wd.agents.make(f"own_agents_here:{name}", wd.StateActions([2]), horizon=9, **options)


class Loose(wd.agents.Agent):
    """Takes its arguments by place, as most classes do."""

    def __init__(self, space, horizon, seed=0, first=1):
        super().__init__(space, horizon=horizon, seed=seed)
        self.visits, self.first = np.zeros(space.n_pairs), first

    def _choose(self, state):
        last = int(self.space.counts[state]) - 1
        return min(self.first, last) if self.t % 2 else last

    def _learn(self, state, action, reward, s_next):
        self.visits[self.space.pair(state, action)] += 1

    def _survivors(self):
        return {"visits": self.visits}


def test_arguments_of_a_subclass_may_be_positional():
    assert list(wd.agents.parameters(Loose)) == ["seed", "first"]
    space = wd.StateActions([2, 3])
    agent = Loose(space, 100, 7, 2)
    assert (agent.config.horizon, agent.config.seed, agent.config.first) == (100, 7, 2)
    assert agent.config == wd.agents.make(Loose, space, horizon=100, seed=7, first=2).config
    agent.observe(0, agent.act(0), 0.5, 1)
    twin = Loose.from_state(agent.state())
    assert (twin.t, twin.first, twin.visits.sum()) == (2, 2, 1)
    wd.testing.check_agent(Loose, horizon=300)


def test_a_subclass_needs_no_id():
    assert Loose.id.endswith(":Loose")
    state = Loose(wd.StateActions([1]), 10).state()
    with pytest.raises(wd.StateError, match="from_state of the class that wrote it"):
        wd.agents.restore(state)
