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


LOOPS = [name for name in wd.agents.names() if name not in ("master", "oracle", "myopic",
                                                            "finite-horizon")]  # fmt: skip


@pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")
@pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning")
@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_that_is_cut_short_goes_on(name, monkeypatch):
    """The worst moment, for every agent with a loop: it is over, the clock has not moved."""
    model = wd.envs.make("two-state-cosine", horizon=12_000)
    told = wd.agents.facts(name, model) | {"seed": 3}
    if "restarts" in wd.agents.parameters(wd.agents.get(name)):
        told |= {"restarts": 1500}
    if name == "va-ucrl":
        told |= {"reward_variation": [0.1] * 8, "transition_variation": [0.1] * 8}
    whole, agent = (wd.agents.make(name, model.space, horizon=12_000, **told) for _ in range(2))
    wd.run(model, whole, seed=1, record="totals")
    home = next(kind for kind in type(agent).__mro__ if "play" in vars(kind))
    real = home.play

    def cut_short(self, world, state, block):
        after = real(self, world, state, block)
        if self is agent and self.t > 4_000:
            raise Stop
        return after

    monkeypatch.setattr(wd.simulate, "_BLOCK", 1 << 12)
    monkeypatch.setattr(home, "play", cut_short)
    with pytest.raises(Stop):
        wd.run(model, agent, seed=1, record="totals")
    monkeypatch.undo()
    assert 4_000 < agent.t < 12_000
    wd.run(model, agent, seed=1, record="totals")
    assert agent.state() == whole.state()


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

    monkeypatch.setattr(wd.simulate, "_BLOCK", 1 << 14)
    monkeypatch.setattr(wd.agents.SWUCRL2CW.__mro__[1], "play", cut_short)
    with pytest.raises(Stop):
        wd.run(model, agent, seed=1, steps=50_000, record="totals")
    monkeypatch.undo()
    assert agent.t > 20_000
    wd.run(model, agent, seed=1, steps=50_001 - agent.t, record="totals")
    assert agent.state() == whole.state()
