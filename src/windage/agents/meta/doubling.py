"""The doubling trick: an agent for a known horizon, made anew for twice as many steps each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from windage.agents.base import Agent
from windage.agents.meta.delegating import Relay
from windage.agents.state import unpack
from windage.errors import InputError, StateError
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_integer

__all__ = ["Doubling"]


class Doubling(Relay):
    """An agent for an unknown horizon: `make_agent(T)` for T = first, 2 first, 4 first, ...

    A regret of order T^a becomes one of at most max(1 + 2^a, 2^a / (2^a - 1)) times as much, 2.7
    times for the T^(3/4) of Theorem 1. Nothing is carried over from one agent to the next; give
    each a seed of its own, such as the horizon, or their draws repeat.

    Parameters
    ----------
    make_agent
        A function of the horizon that returns a new agent, always for the same space.
    first
        How many steps the first one is made for.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=5000)
    >>> agent = Doubling(lambda T: wd.SWUCRL2CW.oblivious(model.space, horizon=T))
    >>> run = wd.run(model, agent, seed=1)
    >>> agent.runner.horizon
    4096
    """

    id: ClassVar[str] = "doubling"
    bound: ClassVar[str] = "a constant times that of the agent it makes"
    source: ClassVar[str] = "the doubling trick"

    def __init__(self, make_agent: Callable[[int], Agent], *, first: int = 1024) -> None:
        if not callable(make_agent):
            raise InputError(
                f"{make_agent!r} makes no agents",
                field="make_agent",
                fix="pass a function of the horizon, such as lambda T: UCRL2(space, horizon=T)",
            )
        self._make = make_agent
        self.first = as_integer(first, "first", low=1, high=LAST_TIME)
        self._space: StateActions | None = None
        made = self._made(self.first)
        self._space = made.space
        super().__init__(
            made.space, horizon=LAST_TIME, seed=made.seed, reward_range=made.reward_range
        )

    @property
    def phase(self) -> int:
        """How many agents have acted so far, the current one included."""
        return 0 if self._runner is None else self._phase_at(self._since)

    def _phase_at(self, since: int) -> int:
        """Return the number of the agent that took over at a time: 1, 1 + first, 1 + 3 first..."""
        return ((since - 1) // self.first + 1).bit_length()

    def _made(self, horizon: int) -> Agent:
        agent: Any = self._make(horizon)
        if (
            not isinstance(agent, Agent)
            or agent.horizon < horizon
            or agent.t > 1
            or agent.space != (self._space or agent.space)
        ):
            raise InputError(
                f"returned {agent!r}",
                field="make_agent",
                where=f"horizon {horizon}",
                fix="return a new windage.agents.Agent for this horizon, always for the same space",
            )
        return agent

    def has_loop(self) -> bool:
        """Whether the agents it makes have a compiled loop."""
        return self._made(self.first).has_loop()

    @property
    def _counted(self) -> float:
        return 0 if self._runner is None else float(self._runner._counted)

    def _next_runner(self) -> tuple[Agent, int]:
        steps = min(self.first << self.phase, LAST_TIME)
        return self._made(steps), steps

    def configuration(self) -> dict[str, Any]:
        """Return what this agent was made with; the function is given again to `from_state`."""
        made = self._made(self.first)
        return {"first": self.first, "agent": made.id, "options": made.configuration()}

    @classmethod
    def from_state(cls, data: bytes, **given: Any) -> Self:
        """Return the agent that `state` saved; `make_agent` is given again."""
        if "make_agent" not in given:
            raise InputError(
                "a saved state holds no functions",
                field="make_agent",
                fix="pass the make_agent the agent was made with",
            )
        blob = unpack(data)
        if blob.agent != cls.id:
            raise StateError(
                f"this is a saved {blob.agent!r} agent", field="state", fix="restore it"
            )
        agent = cls(given["make_agent"], first=blob.configuration["first"])
        if unpack(agent.state()).configuration != blob.configuration:
            raise _another(f"it was saved with other {blob.configuration['agent']!r} agents")
        return agent._continued(blob)

    def _restored_runner(self, data: bytes, since: int) -> Agent:
        steps = self.first << (self._phase_at(since) - 1)
        due = self._made(min(steps, LAST_TIME))
        if unpack(data).configuration != unpack(due.state()).configuration:
            raise _another(f"for {steps} steps it makes another agent than the one that was saved")
        return type(due).from_state(data)


def _another(problem: str) -> StateError:
    return StateError(problem, field="make_agent", fix="pass the function the agent was made with")
