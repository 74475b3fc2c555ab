"""What of MASTER survives a restart, and what a saved one cannot be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.alarms import Tally
from windage.agents.copies import Copy, is_drawn
from windage.agents.ucrl2 import AdaptiveUCRL
from windage.validation import as_integer

if TYPE_CHECKING:
    from windage.agents.master import MASTER

__all__ = ["restore", "saved"]


def saved(agent: MASTER) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the numbers and arrays that must survive."""
    live = agent._live()
    values = {
        "scheduled": agent._scheduled == agent.t,
        "copies": [(copy.order, copy.start) for copy in live],
        **agent._tally.saved(),
        **agent._planned.saved(),
    }
    arrays = {f"restarts.{name}": array for name, array in agent._restarts.saved().items()}
    for copy in live:
        arrays[f"copy.{copy.order}"] = np.frombuffer(copy.learner.state(), np.uint8)
    return values, arrays


def restore(agent: MASTER, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Take back what `saved` gave."""
    t = agent.t
    agent._tally = Tally.restored(values, t, len(agent._copies))
    agent._planned.restore(values, t)
    kept = {name: arrays[f"restarts.{name}"] for name in agent._restarts.saved()}
    agent._restarts.restore(kept, sum(agent._tally.fired), t)
    agent._scheduled = t if values["scheduled"] else 0
    for m, start in values["copies"]:
        order = as_integer(m, "copies", low=0, high=agent._tally.order)
        agent._copies[order] = _copy(agent, order, start, arrays[f"copy.{order}"])
    live = agent._live()
    if live:  # the longest is as old as the block
        whole = (live[-1].order, live[-1].start) == (agent._tally.order, agent._tally.start)
    else:
        whole = t == agent._tally.start and not agent._scheduled
    if len(live) != len(values["copies"]) or not whole:
        raise ValueError("copies")
    waiting = [copy.learner._pending for copy in live]
    if agent._scheduled:
        agent._acting = live[0]
        waiting.remove(agent._pending)
    if any(waiting) or (agent._pending is not None and not agent._scheduled):
        raise ValueError("pending")


def _copy(agent: MASTER, order: int, start: int, data: NDArray[Any]) -> Copy:
    """Return a copy that was saved, if the agent can have scheduled it."""
    tau = as_integer(start, "start", low=1) - agent._tally.start
    learner, mine = AdaptiveUCRL.from_state(data.tobytes()), agent._learner(start, order)
    drawn = tau % (1 << order) == 0 and is_drawn(agent._key, start, order, agent._tally)
    if not drawn or learner.configuration() != mine.configuration():
        raise ValueError(f"copy {order}")
    if learner.t - 1 > agent.t - start:
        raise ValueError(f"the clock of copy {order}")
    learner._warned = agent._warned
    gain = math.nan if learner.episode is None else learner.episode.gain
    return Copy(order, start, learner, learner.n_episodes, gain)
