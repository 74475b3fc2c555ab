"""Bandit algorithms, for one state; with several states, one bandit in each, looking no further.

A bandit's clock counts the visits of its state, and its constants are those for T steps, since
nobody knows how often a state will be visited. Constants are recalled, not copied from the papers.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from windage.agents.base import Budgets, is_left_open, warn
from windage.agents.loop import LoopAgent
from windage.errors import InputError, ParameterWarning
from windage.spaces import StateActions

__all__ = ["BanditAgent"]


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
        word = options.get(number)
        if isinstance(word, str) and word == "tuned" and budgets is None:
            raise InputError(
                'is "tuned", and there are no budgets',
                field=number,
                fix="pass budgets=model.budgets(), or a number",
            )
        if word is None or (isinstance(word, str) and word == "tuned"):
            options.pop(number, None)
        if fact and budgets is not None and number not in options and fact not in options:
            name = "reward" if fact == "variation" else fact
            if not hasattr(budgets, name):
                raise InputError(
                    f"{budgets!r} does not tell it", field=fact, fix="pass drifting.budgets()"
                )
            options[fact] = getattr(budgets, name)
        return cls(space, horizon=horizon, **options)
