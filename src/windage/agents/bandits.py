"""Bandit algorithms, for one state; with several states, one bandit in each, looking no further.

A bandit's clock counts the visits of its state, and its constants are those for T steps, since
nobody knows how often a state will be visited. Constants are recalled, not copied from the papers.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

from windage.agents.base import Agent
from windage.agents.hearing import warn
from windage.agents.known import Budgets, is_left_open
from windage.agents.loop import LoopAgent
from windage.errors import GuaranteeWarning, InputError, ParameterWarning
from windage.spaces import StateActions

__all__ = ["BanditAgent", "needed", "warn_of_states"]

Fact = TypeVar("Fact")


class BanditAgent(LoopAgent):
    """What all of them share: how they are tuned, and a word on rewards that are clipped."""

    tunes: ClassVar[tuple[str, str]] = ("", "")
    """A number that can be given, and what it is tuned to if it is not."""

    _warned = False

    def _look_back(self) -> None:
        from windage.kernels.bandits import CLIPPED

        if not self._warned and self._table.now[CLIPPED] > 0:
            self._warned = True
            warn(
                f"{self.id}: a reward outside [0, 1] was clipped, as others will be: declare a "
                "reward_range",
                ParameterWarning,
                stacklevel=4,
            )

    @classmethod
    def told_with(cls, options: dict[str, Any], budgets: Budgets | None) -> tuple[str, ...]:
        """Return what an agent is told; the fact itself may be among its options."""
        del budgets
        number, fact = cls.tunes
        return cls.told if number == fact or is_left_open(options.get(number)) else ()

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options, tuned to the budgets; "tuned" says the same."""
        number, fact = cls.tunes
        if is_left_open(options.get(number)):
            options.pop(number, None)
        if fact and budgets is not None and number not in options and fact not in options:
            name = "reward" if fact == "variation" else fact
            if not hasattr(budgets, name):
                raise InputError(
                    f"{budgets!r} does not tell it", field=fact, fix="pass drifting.budgets()"
                )
            options[fact] = getattr(budgets, name)
        return cls(space, horizon=horizon, **options)


def needed(fact: Fact | None, name: str, number: str) -> Fact:
    """Return the fact that a number is tuned to; it is told, never made up."""
    if fact is None:
        ways = f"{number}=" if number == name else f"{number}= or {name}="
        raise InputError(
            f"is tuned to the {name} of the model, which nobody told",
            field=number,
            fix=f"pass {ways}, or budgets=model.budgets() to windage.agents.make",
        )
    return fact


def warn_of_states(agent: Agent) -> None:
    """Say that a bandit with several states is one in each, and that its bound is for one."""
    S = agent.space.n_states
    if S > 1:
        warn(
            f"{agent.id} is a bandit: with {S} states it plays one in each and never looks where "
            "an action leads; its bound speaks of one state",
            GuaranteeWarning,
            stacklevel=3,
        )
