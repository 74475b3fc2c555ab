"""One agent in two runs, or two threads, at once: the second is refused, the first goes on."""

from __future__ import annotations

import copy
import threading
import time

import numpy as np
import pytest

import windage as wd
from windage.errors import CallOrderError

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]

T = 60_000
MODEL = wd.envs.make("two-state-cosine", horizon=T)
IDS = [
    "ucrl2",
    "swucrl2-cw",
    "diff-q",
    "psrl",
    "borl",
    "multi-scale",
    "imed-rl",
    "sw-ucb",
    "master",
]


def made(id_, horizon=T):
    return wd.agents.make(id_, MODEL.space, horizon=horizon, **wd.agents.facts(id_, MODEL))


def in_threads(calls):
    """Start all calls at once; return what they returned or raised, in their order."""
    found, ready = [None] * len(calls), threading.Barrier(len(calls))

    def work(i):
        ready.wait()
        try:
            found[i] = calls[i]()
        except Exception as err:
            found[i] = err

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("id_", IDS)
def test_one_agent_in_two_runs_at_once(id_):
    steps = 400 if id_ == "master" else 4_000
    alone = made(id_)
    wanted = wd.run(MODEL, alone, seed=1, steps=steps)
    agent, met = made(id_), threading.Event()

    def first():
        # a run that cannot end before the second has tried
        return wd.run(MODEL, agent, seed=1, steps=steps, progress=lambda *_: met.wait(60))

    def second():
        while "_use" not in vars(agent):
            time.sleep(1e-4)
        try:
            wd.run(MODEL, agent, seed=2, steps=steps)
        finally:
            met.set()

    run, refused = in_threads([first, second])
    assert isinstance(refused, CallOrderError), refused
    assert "in use, by 'run' in another thread" in refused.problem
    assert refused.field == "run"
    assert "restore" in refused.fix
    assert agent.t == steps + 1
    assert agent.state() == alone.state()
    assert (run.actions == wanted.actions).all()
    wd.run(MODEL, agent, seed=1, steps=100)  # the agent can be used again


@pytest.mark.parametrize("id_", ["ucrl2", "multi-scale", "diff-q", "borl"])
def test_steps_from_many_threads_leave_a_whole_agent(id_):
    """Some calls are refused; what was learned is whole, and the state can be restored."""
    agent, refused = made(id_), []

    def work():
        for _ in range(150):
            try:
                s = agent.last_state or 0
                agent.observe(s, agent.act(s), 0.5, 1 - s)
            except CallOrderError as err:
                refused.append(err)

    assert in_threads([work] * 4) == [None] * 4
    again = wd.agents.restore(agent.state())
    assert again.t == agent.t == 1 + 600 - len(refused)
    s = agent.last_state
    agent.withdraw()
    again.withdraw()
    assert agent.act(s) == again.act(s)


@pytest.mark.parametrize(
    "call",
    [
        lambda agent: agent.act(0),
        lambda agent: agent.observe(0, 0, 0.5, 1),
        lambda agent: agent.state(),
        lambda agent: agent.preload(0, 0, 0.5, 1),
        lambda agent: agent.explain(0),
        lambda agent: agent.region(),
    ],
)
def test_nothing_is_called_from_another_thread_while_it_runs(call):
    agent, found = made("ucrl2"), []

    def progress(*_):
        found.extend(in_threads([lambda: call(agent)]))

    wd.run(MODEL, agent, seed=1, steps=100, progress=progress)
    assert [type(one) for one in found] == [CallOrderError], found


def test_a_run_may_be_looked_at_and_not_disturbed_from_within(monkeypatch):
    monkeypatch.setattr(wd.simulate, "_BLOCK", 1 << 12)
    agent, states = made("ucrl2"), []

    def progress(done, _):
        states.append(agent.state())
        assert agent.explain(0).start <= done
        for call in (
            lambda: agent.act(0),
            lambda: wd.run(MODEL, agent, seed=3),
            lambda: agent.preload(0, 0, 0.5, 1),
        ):
            with pytest.raises(CallOrderError, match="in use, by 'run' in this thread"):
                call()

    wd.run(MODEL, agent, seed=1, steps=20_000, progress=progress)
    assert len(states) > 1
    assert states[-1] == agent.state()


class Stepped:
    """A problem that is stepped through, and lets somebody meddle."""

    def __init__(self, meddle):
        self.space, self.horizon, self.meddle = MODEL.space, 50, meddle

    def reset(self, seed):
        self.world = wd.simulate.Simulator(MODEL, seed, state=0)
        return 0

    def step(self, action):
        self.meddle()
        return self.world.step(action)


def test_a_run_within_a_run_step_by_step_is_refused():
    agent = made("ucrl2", 50)
    with pytest.raises(CallOrderError, match="in use, by 'run' in this thread"):
        wd.run(Stepped(lambda: wd.run(Stepped(lambda: None), agent)), agent)
    assert agent.t == 1
    wd.run(Stepped(lambda: None), agent)
    assert agent.t == 51


def test_a_call_that_was_cut_short_holds_nothing():
    """Whatever stops a run, with its traceback kept, the agent goes on: here and in a thread."""

    class Stop(BaseException):
        pass

    def stop(*_):
        raise Stop

    agent = made("swucrl2-cw")
    with pytest.raises(Stop) as stopped:
        wd.run(MODEL, agent, seed=1, steps=100, progress=stop)
    frame = stopped.tb
    while frame.tb_next is not None and frame.tb_frame.f_code.co_name != "run":
        frame = frame.tb_next
    # as if not even the last line of the run had been reached
    from windage.agents.exclusive import Use

    agent.__dict__["_use"] = Use("run", threading.get_ident(), frame.tb_frame, alone=True)
    assert in_threads([lambda: agent.act(0)])[0] in (0, 1)
    assert "_use" not in vars(agent)


def test_idle_agents_can_be_copied():
    agent = made("ucrl2", 1000)
    wd.run(MODEL, agent, seed=1, steps=100)
    twin = copy.deepcopy(agent)
    assert twin.state() == agent.state()
    assert np.array_equal(
        wd.run(MODEL, twin, seed=1, steps=50).actions,
        wd.run(MODEL, agent, seed=1, steps=50).actions,
    )
