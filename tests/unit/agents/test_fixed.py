"""What an agent was made with cannot be set afterwards."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import windage as wd

KNOWN = wd.envs.make("two-state-cosine", horizon=300)


def made(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = wd.agents.facts(name, KNOWN)
        return wd.agents.make(name, KNOWN.space, horizon=300, **facts)


@pytest.mark.parametrize("name", sorted(set(wd.agents.names())))
def test_every_argument_is_read_only(name):
    agent = made(name)
    before = agent.state()
    arguments = {"space", "horizon", *wd.agents.parameters(type(agent))}
    shown = {one for one in arguments if hasattr(agent, one)}
    assert {"space", "horizon", "seed", "reward_range"} <= shown
    for one in sorted(shown):
        with pytest.raises(AttributeError, match=f"{one} .*fixed|{one!r} of .* has no setter"):
            setattr(agent, one, 5)
        with pytest.raises(AttributeError):
            delattr(agent, one)
        value = getattr(agent, one)
        if isinstance(value, np.ndarray) and value.size:
            with pytest.raises(ValueError, match="read-only"):
                value[0] = 5
        assert not isinstance(value, (list, dict, set)), one
    assert agent.state() == before


def test_what_an_agent_is_made_with_is_an_attribute():
    """The test above is about something: all arguments can be looked at."""
    hidden = set()
    for name in wd.agents.names():
        agent = made(name)
        arguments = wd.agents.parameters(type(agent))
        hidden |= {(name, one) for one in arguments if not hasattr(agent, one)}
    assert not hidden


def test_arms_and_a_widening_of_every_pair_are_copies_nobody_can_write_to():
    eta = np.array([0.1, 0.2, 0.1, 0.3])
    agent = wd.SWUCRL2CW(KNOWN.space, horizon=300, window=50, widening=eta)
    eta[:] = 1.0  # the caller's own array stays the caller's
    assert agent.widening.tolist() == [0.1, 0.2, 0.1, 0.3]
    with pytest.raises(AttributeError, match="widening is fixed when a SWUCRL2CW is made; make"):
        agent.widening = 5
    borl = made("borl")
    with pytest.raises(TypeError):
        borl.arms[0] = (1, 0.0)
    with pytest.raises(AttributeError, match="n_blocks is fixed"):
        borl.n_blocks = 3


def test_a_class_of_ones_own_may_change_what_is_its_own():
    class Mine(wd.agents.RandomAgent):
        def __init__(self, space, *, horizon, rate=0.5, **options):
            super().__init__(space, horizon=horizon, **options)
            self.rate = rate

    agent = Mine(KNOWN.space, horizon=10)
    agent.rate *= 0.9
    assert agent.rate == 0.45
    assert "rate" in inspect.signature(Mine.__init__).parameters
    with pytest.raises(AttributeError, match="horizon is fixed when a Mine is made"):
        agent.horizon = 5
