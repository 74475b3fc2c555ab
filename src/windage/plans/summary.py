"""The plan: what the theory promises for a space, a horizon and budgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from windage.confidence.adapting import Blocks, borl_blocks
from windage.confidence.tuning import (
    as_widening,
    as_window,
    bandit,
    checked,
    optimal_widening,
    optimal_window,
)
from windage.errors import InputError
from windage.plans.advice import advice
from windage.plans.bound import Bound, Setting, regret_bound
from windage.plans.costs import agent_memory, run_seconds
from windage.plans.visits import Visits, visits_needed
from windage.spaces import StateActions
from windage.validation import as_real

__all__ = ["Plan", "plan"]

_LONGEST = 1e30  # a diameter: the horizons it asks for grow with its fourth power


@dataclass(frozen=True)
class Plan:
    """What the theory says before a step is spent; make one with `windage.plan`.

    Attributes
    ----------
    horizon, delta, reward_budget, transition_budget, diameter
        As asked; the diameter is None if it was not told.
    window, widening
        W* and eta* as an agent can use them: rounded and capped.
    window_real, widening_real
        The same as Theorem 1 has them; for one state as the remark on bandits has them.
    visits_needed
        Visits a pair until confidence sets say anything, under each kind of radii.
    borl
        BORL's blocks, arms and gamma.
    bound
        Theorem 1 term by term.
    memory
        About how many bytes an agent holds.
    seconds
        About how long a run takes, with sets that say nothing and with tight ones.
    """

    space: StateActions = field(repr=False)
    horizon: int
    delta: float
    reward_budget: float
    transition_budget: float
    diameter: float | None
    window: int
    widening: float
    window_real: float
    widening_real: float
    visits_needed: dict[str, Visits]
    borl: Blocks
    bound: Bound
    memory: int
    seconds: tuple[float, float]

    @property
    def states(self) -> int:
        """S."""
        return self.space.n_states

    @property
    def pairs(self) -> int:
        """SA."""
        return self.space.n_pairs

    @property
    def visits_expected(self) -> float:
        """W / SA: the visits of a pair in a window, if all pairs are visited alike."""
        return self.window / self.pairs

    @property
    def vacuous(self) -> bool:
        """Whether, on average, the paper's transition sets are the whole simplex."""
        needed = self.visits_needed["paper"].widened
        return self.states > 1 and (needed is None or self.visits_expected < needed)

    @property
    def advice(self) -> list[str]:
        """What follows, in words."""
        return advice(self)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, for JSON."""
        return {
            "states": self.states,
            "pairs": self.pairs,
            "mean_actions": self.space.mean_actions,
            "horizon": self.horizon,
            "delta": self.delta,
            "reward_budget": self.reward_budget,
            "transition_budget": self.transition_budget,
            "diameter": self.diameter,
            "window": self.window,
            "window_real": self.window_real,
            "widening": self.widening,
            "widening_real": self.widening_real,
            "visits_expected": self.visits_expected,
            "visits_needed": {kind: v._asdict() for kind, v in self.visits_needed.items()},
            "vacuous": self.vacuous,
            "borl": self.borl._asdict(),
            "bound": self.bound._asdict(),
            "memory_bytes": self.memory,
            "seconds": list(self.seconds),
            "advice": self.advice,
        }


def plan(
    space: StateActions,
    *,
    horizon: int,
    reward_budget: float,
    transition_budget: float,
    delta: float = 0.05,
    diameter: float | None = None,
) -> Plan:
    """Return what the theory promises here, before a step is spent.

    Parameters
    ----------
    space
        States and actions.
    horizon, delta
        T, and how often the guarantee may fail.
    reward_budget, transition_budget
        B_r and B_p, or guesses of them.
    diameter
        A bound of D; without it the terms of Theorem 1 have D = 1, which is a lower bound.

    Examples
    --------
    >>> space = StateActions.uniform(states=10, actions=4)
    >>> found = plan(space, horizon=100_000, reward_budget=1, transition_budget=1)
    >>> found.window, round(found.widening, 3), found.visits_needed["paper"].widened
    (5085, 0.319, 516)
    >>> found.borl.blocks, found.borl.arms, round(found.borl.gamma, 2), found.vacuous
    (12, 70, 5.23, True)
    """
    S, A, T, Br, Bp = checked(space, horizon, reward_budget, transition_budget)
    level = as_real(delta, "delta", low=0, high=1, open_low=True, open_high=True)
    W, eta = optimal_window(space, T, Br, Bp), optimal_widening(space, T, Br, Bp)
    if S == 1:
        W, eta = bandit(space, T, Br).window, 0.0
        if Bp > 0:
            raise InputError(
                f"{Bp:g} with one state, which has nowhere to go",
                field="transition_budget",
                fix="pass 0",
            )
    D = None if diameter is None else _diameter(space, diameter)
    known = D if D is not None else float(S > 1)
    window, widening = as_window(W, T), as_widening(eta)
    setting = Setting(S, A, Br, Bp, known)
    return Plan(
        space=space,
        horizon=T,
        delta=level,
        reward_budget=Br,
        transition_budget=Bp,
        diameter=D,
        window=window,
        widening=widening,
        window_real=W,
        widening_real=eta,
        visits_needed=visits_needed(space, T, level, widening),
        borl=borl_blocks(space, T),
        bound=regret_bound(setting, T, window, widening, level),
        memory=agent_memory(space, window, T),
        seconds=run_seconds(space, T),
    )


def _diameter(space: StateActions, diameter: float) -> float:
    if space.n_states == 1:
        return as_real(diameter, "diameter", low=0, high=0)
    return as_real(diameter, "diameter", low=1, high=_LONGEST)
