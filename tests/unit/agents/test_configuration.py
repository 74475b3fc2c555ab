"""The frozen record of what an agent was made with."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import warnings

import msgspec
import numpy as np
import pytest

import windage as wd

KNOWN = wd.envs.make("two-state-cosine", horizon=300)
NAMES = sorted(wd.agents.names())


def made(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = wd.agents.facts(name, KNOWN)
        return wd.agents.make(name, KNOWN.space, horizon=300, **facts, **options)


def again(agent, record):
    given = {"problem": KNOWN} if hasattr(agent, "problem") else {}
    return type(agent).remade(record, **given)


@pytest.mark.parametrize("name", NAMES)
class TestOfEveryAgent:
    def test_its_fields_are_the_arguments_of_the_constructor(self, name):
        agent = made(name)
        fields = ["space", "horizon", *wd.agents.parameters(type(agent))]
        assert list(agent.config.__struct_fields__) == fields
        # no structure is not said: configurations are those from before there were any
        assert set(agent.configuration()) == set(fields) - {"structure"}
        signature = inspect.signature(type(agent))
        assert list(signature.parameters) == fields
        assert all(p.kind is p.KEYWORD_ONLY for p in list(signature.parameters.values())[1:])

    def test_it_makes_the_agent_again_and_equal_ones_are_equal(self, name):
        agent = made(name, seed=3)
        data = json.loads(json.dumps(agent.configuration()))
        assert data == agent.configuration()
        for record in (agent.config, agent.configuration(), data):
            twin = again(agent, record)
            assert twin.config == agent.config
            assert hash(twin.config) == hash(agent.config)
            assert twin.state() == agent.state()
        other = made(name, seed=4)
        assert other.config != agent.config

    def test_it_cannot_be_changed(self, name):
        config = made(name).config
        for field in config.__struct_fields__:
            with pytest.raises(AttributeError):
                setattr(config, field, 5)
            assert not isinstance(getattr(config, field), (np.ndarray, list, dict))


def test_values_are_the_checked_ones():
    eta = np.array([0.1, 0.2, 0.1, 0.3])
    agent = wd.SWUCRL2CW(KNOWN.space, horizon=np.int64(300), window=50, widening=eta, seed=1)
    assert (agent.config.horizon, agent.config.widening) == (300, (0.1, 0.2, 0.1, 0.3))
    assert agent.config.radii is agent.radii
    assert agent.configuration()["radii"] == "paper"
    assert (
        agent.config
        == wd.SWUCRL2CW(
            KNOWN.space, horizon=300, window=50, widening=list(eta), radii="paper", seed=1
        ).config
    )


def test_what_an_agent_found_itself_is_no_argument():
    borl = made("borl")
    assert (borl.config.arms, borl.config.block_length) == (None, None)
    assert len(borl.arms) > 1
    own = made("borl", arms=((50, 0.1) for _ in range(2)), block_length=30)
    assert own.config.arms == own.arms == ((50, 0.1), (50, 0.1))
    assert own.configuration()["arms"] == [[50, 0.1], [50, 0.1]]


class Own(wd.agents.RandomAgent):
    def __init__(self, space, *, horizon, rate=0.5, rule=None, **options):
        super().__init__(space, horizon=horizon, **options)
        self.rate = rate


def test_a_class_of_ones_own_needs_to_say_nothing():
    agent = Own(KNOWN.space, horizon=10, rate=0.25, seed=2)
    agent.rate *= 0.5  # what it changes later is not what it was made with
    assert isinstance(agent.config, msgspec.Struct)
    assert agent.configuration()["rate"] == 0.25
    twin = Own.remade(agent.configuration())
    assert (twin.rate, twin.seed, twin.config) == (0.25, 2, agent.config)
    assert "rule" not in Own(KNOWN.space, horizon=10, rule=print).configuration()


def test_the_registry_knows_an_agent_without_loading_it():
    """Each id is that of its class, and asking for one loads no other."""
    for name in NAMES:
        assert wd.agents.get(name).id == name
        assert getattr(wd.agents, wd.agents.get(name).__name__) is wd.agents.get(name)
    code = (
        "import sys, windage as wd; wd.agents.names(); wd.agents.get('diff-q');"
        "print([m for m in sys.modules if 'psrl' in m or 'optimistic' in m or 'bandits' in m])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_old_name_of_requires_goes_on_working():
    with pytest.warns(DeprecationWarning, match=r"told is now windage\.agents\.requires"):
        assert wd.agents.told("swucrl2-cw", budgets=KNOWN.budgets()) == ("B_r", "B_p")
