"""An agent together with the bins that make its states: what is saved is both."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from windage.agents.base import Agent
from windage.agents.state import Blob, pack, unpack
from windage.binning import Binner
from windage.errors import InputError, StateError, WindageError
from windage.validation import shown

__all__ = ["Binned"]


class Binned:
    """An agent that is asked with measurements instead of states.

    The bins decide what the agent has learned something about, so they are saved and restored with
    it: `windage.agents.restore(binned.state())`.

    Parameters
    ----------
    agent
        An agent for as many states as the binner has.
    binner
        What turns an observation into a state.

    Examples
    --------
    >>> import windage as wd
    >>> load = Binner([0.3, 0.7], names=["load"])
    >>> live = Binned(wd.UCRL2(load.space(2), horizon=100), load)
    >>> a = live.act(0.52)
    >>> live.observe(0.52, a, 1.0, 0.91)
    >>> wd.agents.restore(live.state()).binner == load
    True
    """

    id: ClassVar[str] = "binned"

    def __init__(self, agent: Agent, binner: Binner) -> None:
        given: tuple[Any, Any] = agent, binner
        if not isinstance(given[0], Agent) or not isinstance(given[1], Binner):
            raise InputError(
                f"{shown(agent)} and {shown(binner)} are not an agent and a Binner",
                field="agent and binner",
                fix="pass an agent of windage's, then a wd.Binner",
            )
        if agent.space.n_states != binner.n_states:
            raise InputError(
                f"{binner!r} makes {binner.n_states} states, the agent has {agent.space.n_states}",
                field="agent.space",
                fix="make the agent with binner.space(actions)",
            )
        self.agent = agent
        self.binner = binner

    @property
    def t(self) -> int:
        """The time of the next decision."""
        return self.agent.t

    def act(self, observation: Any) -> int:
        """Return the action to play at this observation."""
        return self.agent.act(self.binner(observation))

    def observe(self, observation: Any, a: int, reward: float, next_observation: Any) -> None:
        """Take in what followed the last decision."""
        after = self.binner(next_observation)
        self.agent.observe(self.binner(observation), a, reward, after)

    def state(self) -> bytes:
        """Return all that must survive a restart: the agent and its bins."""
        inner = np.frombuffer(self.agent.state(), dtype=np.uint8)
        return pack(Blob(self.id, {"binner": self.binner.configuration()}, {}, {"agent": inner}))

    @classmethod
    def from_state(cls, data: bytes, **given: Any) -> Self:
        """Return what `state` saved; what its agent needs again is given again."""
        from windage.agents import restore

        blob = unpack(data)
        if blob.agent != cls.id:
            raise StateError(
                f"this is a saved {blob.agent!r} agent, not {cls.id!r}",
                field="state",
                fix="use windage.agents.restore",
            )
        try:
            binner = Binner(**blob.configuration["binner"])
            return cls(restore(blob.arrays["agent"].tobytes(), **given), binner)
        except StateError:
            raise
        except (LookupError, TypeError, WindageError) as err:
            raise StateError(
                f"the saved values are impossible ({err})",
                field="state",
                fix="restore the agent from another copy",
            ) from None

    def __repr__(self) -> str:
        return f"Binned({self.agent!r}, {self.binner!r})"
