"""Live loops in a small environment whose outcomes depend on the step alone: cut and repeat."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from windage.rng import stream

SPACE = wd.StateActions(
    [2, 3, 1], ["low", "middle", "high"], [["wait", "order"], ["wait", "order", "rush"], ["wait"]]
)
_RNG = np.random.default_rng(7)
ROWS = _RNG.dirichlet(np.ones(3), 6)
MEANS = _RNG.random(6)


def swucrl(window=40, **options):
    return wd.SWUCRL2CW(
        SPACE, horizon=100_000, window=window, widening=0.05, radii="laplace", **options
    )


def outcome(s, a, i):
    """What follows action a in state s at step i: the same whenever it is asked for."""
    draw = stream(3, "tests.online", i + 1)
    pair = SPACE.pair(s, a)
    reward = float(draw.random() < MEANS[pair])
    return reward, int(np.searchsorted(np.cumsum(ROWS[pair]), draw.random() * 0.999999))


def loop(live, steps, start=0, s=0):
    """Decide and observe; return what was done and the state it ends in."""
    done = []
    for i in range(start, start + steps):
        d = live.decide(s)
        reward, after = outcome(s, d.action, i)
        live.observe(d.id, reward, after)
        done.append((s, d.action, reward, after))
        s = after
    return done, s


def twin_loop(agent, steps, start=0, s=0):
    """The same with an agent by hand."""
    done = []
    for i in range(start, start + steps):
        a = agent.act(s)
        reward, after = outcome(s, a, i)
        agent.observe(s, a, reward, after)
        done.append((s, a, reward, after))
        s = after
    return done, s


def state_in(path, agent):
    """The state of the agent after the journal was opened once more."""
    with wd.live.open(path, agent) as live:
        return live.agent.state()


def busy_journal(path):
    """A journal in which everything happens; returns what happened, counted by hand."""
    units = {"reward_range": (0, 10), "direction": "cost"}
    with wd.live.open(path, swucrl(window=25), missing="skip", **units) as live:
        with live.batch():
            s, costs, other = 0, [], None
            for i in range(60):
                d = live.decide(s, key=f"day {i}")
                reward, after = outcome(s, d.action, i)
                if i == 3:
                    lost = d.id  # never reported
                elif i == 7:
                    too_late = (d.id, 2.0, after)
                elif i == 50:
                    late = (d.id, 5.0, after)
                elif i >= 20 and other is None and SPACE.counts[s] > 1:
                    other = (d.action + 1) % SPACE.counts[s]
                    live.observe(d.id, 10 * reward, after, action=other)
                    costs.append(10 * reward)
                else:
                    live.observe(d.id, 10 * reward, after)
                    costs.append(10 * reward)
                s = after
            assert live.observe(*too_late).how == "unused"
            assert live.observe(*late).how == "late"
        for bad in (11.0, float("nan")):
            with pytest.raises(wd.InputError):
                live.observe(d.id, bad, 0)
        waiting = live.decide(s)
    costs.insert(50 - 2, 5.0)
    return {
        "costs": costs,
        "waiting": waiting,
        "lost": lost,
        "late": late[0],
        "unused": too_late[0],
    }
