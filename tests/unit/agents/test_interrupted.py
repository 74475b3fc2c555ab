"""Ctrl-C: clock and memory stay together, and the agent goes on as if nothing had been."""

from __future__ import annotations

import signal

import pytest

import windage as wd

T = 300_000


class Stop(BaseException):
    pass


def _agent(model):
    return wd.SWUCRL2CW(model.space, horizon=T, window=400, widening=0.2, seed=3)


@pytest.fixture(scope="module")
def model():
    return wd.envs.make("riverswim", horizon=T)


@pytest.mark.parametrize("after", [0.0004, 0.001, 0.002, 0.003, 0.004, 0.006])
def test_an_interrupted_run_goes_on(model, after):
    whole = _agent(model)
    wd.run(model, whole, seed=1, record="totals")
    agent = _agent(model)

    def ring(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        with pytest.raises(Stop):
            wd.run(model, agent, seed=1, record="totals")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert wd.agents.restore(agent.state()).state() == agent.state()
    if agent.t <= T:
        wd.run(model, agent, seed=1, record="totals")
    assert agent.state() == whole.state()


def test_an_interrupt_between_memory_and_clock_is_made_good(model, monkeypatch):
    """The worst moment, deterministically: the loop is over, the clock has not moved."""
    whole, agent = _agent(model), _agent(model)
    wd.run(model, whole, seed=1, steps=50_000, record="totals")
    real = type(agent).play

    def cut_short(self, world, state, block):
        after = real(self, world, state, block)
        if self.t > 20_000:
            raise Stop
        return after

    monkeypatch.setattr(wd.agents.SWUCRL2CW.__mro__[1], "play", cut_short)
    with pytest.raises(Stop):
        wd.run(model, agent, seed=1, steps=50_000, record="totals")
    monkeypatch.undo()
    assert agent.t > 20_000
    wd.run(model, agent, seed=1, steps=50_001 - agent.t, record="totals")
    assert agent.state() == whole.state()
