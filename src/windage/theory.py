"""What the theory says of a problem before a step is spent: `windage.plan(...)`.

The plan puts together the tuned window and widening, the visits after which confidence sets exclude
anything, BORL's grid, Theorem 1 term by term, and the memory and time of a run. Each part stands
below with its own assumptions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from windage.agents.optimistic.episodic import LOG_ROWS
from windage.confidence.confidence import has_grid
from windage.confidence.radii import Radii
from windage.confidence.tuning import (
    Blocks,
    as_widening,
    as_window,
    bandit,
    borl_blocks,
    checked,
    first_integer,
    optimal_widening,
    optimal_window,
    window_of,
)
from windage.confidence.window import _BATCH, _CELLS, _slots
from windage.errors import InputError
from windage.spaces import StateActions
from windage.validation import as_real

__all__ = [
    "FORMULAS",
    "Blocks",
    "Bound",
    "Plan",
    "Visits",
    "agent_memory",
    "plan",
    "run_seconds",
    "visits_needed",
]

_LONGEST = 1e30  # a diameter: the horizons it asks for grow with its fourth power


@dataclass(frozen=True)
class Plan:
    """A-priori theory for one problem; make one with `windage.plan`.

    Attributes
    ----------
    horizon, delta, reward_budget, transition_budget, diameter
        As asked; the diameter is None if it was not given.
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
        Approximate bytes of an agent.
    seconds
        Approximate time of a run, with vacuous sets and with tight ones.
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
        return _advice(self)

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
    """Return what the theory promises for a problem, before a step is spent.

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
    size = ProblemSize(S, A, Br, Bp, known)
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
        bound=regret_bound(size, T, window, widening, level),
        memory=agent_memory(space, window, T),
        seconds=run_seconds(space, T),
    )


def _diameter(space: StateActions, diameter: float) -> float:
    if space.n_states == 1:
        return as_real(diameter, "diameter", low=0, high=0)
    return as_real(diameter, "diameter", low=1, high=_LONGEST)


# Theorem 1's bound. The theorem is an order: constants and logarithms are left out, every constant
# is 1. So the numbers say which term dominates and how T, S and the budgets act, not what will be
# lost. `noise_from` is the exception: its one term has the constants and the logarithm of the
# proof.

FORMULAS = {
    "bad_windows": "B_p W / eta",
    "reward_drift": "B_r W",
    "reward_noise": "(SA)^(1/2) T / W^(1/2)",
    "transition_drift": "D B_p W",
    "transition_noise": "D S A^(1/2) T / W^(1/2)",
    "widening": "D T eta",
    "episodes": "D SA T / W",
    "chance": "D T^(1/2)",
}


class Bound(NamedTuple):
    """Theorem 1 at one horizon.

    Attributes
    ----------
    terms
        The eight terms, constants 1, logarithms left out.
    total
        Their sum.
    diameter
        The D in it.
    below_from
        The T from which the sum at (W*, eta*) is below T, the budgets staying as they are.
    noise_from
        The T from which the noise of transitions alone, 4 D rad_p summed over all steps with the
        constants and the logarithm of the proof, is below T; None for one state.
    """

    terms: dict[str, float]
    total: float
    diameter: float
    below_from: int
    noise_from: int | None


class ProblemSize(NamedTuple):
    """S, A, the budgets and D: what the bound depends on besides T, W and eta."""

    S: int
    A: float
    Br: float
    Bp: float
    D: float


def theorem_1_terms(size: ProblemSize, T: float, W: float, eta: float) -> dict[str, float]:
    """Return the terms of Theorem 1; eta = 0 is for models whose transitions do not drift.

    >>> terms = theorem_1_terms(ProblemSize(1, 4, 1, 0, 0), T=1000, W=100, eta=0)
    >>> terms["reward_drift"], terms["reward_noise"], terms["transition_noise"]
    (100.0, 200.0, 0.0)
    """
    S, A, Br, Bp, D = map(float, size)
    return {
        "bad_windows": Bp * W / eta if Bp > 0 else 0.0,
        "reward_drift": Br * W,
        "reward_noise": math.sqrt(S * A / W) * T,
        "transition_drift": D * Bp * W,
        "transition_noise": D * S * math.sqrt(A / W) * T,
        "widening": D * T * eta,
        "episodes": D * S * A * T / W,
        "chance": D * math.sqrt(T),
    }


def regret_bound(size: ProblemSize, T: int, W: int, eta: float, delta: float) -> Bound:
    """Return the bound at this T, W and eta, and the horizon from which it is below T."""
    terms = theorem_1_terms(size, T, W, eta)
    noise = None if size.S == 1 else first_integer(lambda n: _noise(size, n, delta) < n)
    return Bound(
        terms,
        math.fsum(terms.values()),
        size.D,
        first_integer(lambda n: _tuned(size, n) < n),
        noise,
    )


def _tuned(size: ProblemSize, T: int) -> float:
    """Return the sum at the tuning of this T, which falls below T once and for all."""
    S, A, Br, Bp, _ = size
    if S == 1:
        W, eta = (math.cbrt(A) * math.cbrt(T / Br) ** 2 if Br > 0 else float(T)), 0.0
    else:
        W = window_of(S, A, T, Br + Bp)
        eta = math.sqrt((Bp + 1) * W / T)
    return math.fsum(theorem_1_terms(size, T, W, eta).values())


def _noise(size: ProblemSize, T: int, delta: float) -> float:
    """Return 4 D sum rad_p, by sum over a block of N^(-1/2) <= (2^(1/2) + 2) (SAW)^(1/2)."""
    S, A, Br, Bp, D = size
    W = window_of(S, A, T, Br + Bp)
    visits = (math.sqrt(2) + 2) * math.sqrt(S * A * W) * (T / W + 1)
    return 4 * D * 2 * math.sqrt(2 * S * (math.log(S * A * T) - math.log(delta))) * visits


# Visits until confidence sets exclude anything. A transition set of L1 radius 2 or more is the
# whole simplex, a reward interval of radius 1 or more may hold all of [0, 1]. Radii fall with the
# number of visits, so the first count below the mark is found by bisection.

_L1_KINDS = ("paper", "proof", "laplace", "ucrl2")  # boxes and added variations have no one mark
_SIMPLEX = 2.0
_UNIT = 1.0


class Visits(NamedTuple):
    """The visits a pair needs; None where no number of visits will do.

    Attributes
    ----------
    transitions
        Until the radius of transitions is below 2.
    widened
        The same with the widening added.
    rewards
        Until the radius of rewards is below 1.
    bounded_rewards
        The same for radii that know that rewards lie in [0, 1].
    """

    transitions: int | None
    widened: int | None
    rewards: int | None
    bounded_rewards: int | None


def visits_needed(
    space: StateActions, horizon: int, delta: float, widening: float
) -> dict[str, Visits]:
    """Return the visits needed under each kind of radii; UCRL2's are taken at t = T.

    >>> needed = visits_needed(StateActions.uniform(2, 2), 5_000, 0.05, widening=0.0)
    >>> [needed[kind].transitions for kind in ("paper", "proof", "laplace", "ucrl2")]
    [52, 24, 9, 91]
    """
    found = {}
    for kind in _L1_KINDS:
        radii = Radii(kind)
        tight = Radii(kind, bounded=True) if kind in ("proof", "laplace") else radii
        found[kind] = Visits(
            _first(radii, 1, _SIMPLEX, space, horizon, delta),
            _first(radii, 1, _SIMPLEX - widening, space, horizon, delta),
            _first(radii, 0, _UNIT, space, horizon, delta),
            _first(tight, 0, _UNIT, space, horizon, delta),
        )
    return found


def _first(
    radii: Radii, part: int, mark: float, space: StateActions, horizon: int, delta: float
) -> int | None:
    """Return the least n >= 1 whose radius is below the mark."""
    if mark <= 0:
        return None
    side = radii.transition if part else radii.reward

    def is_enough(n: int) -> bool:
        return float(side(n, space=space, horizon=horizon, delta=delta, t=horizon)) < mark

    return first_integer(is_enough)


# Memory and time of a run, roughly. Memory is counted from the parts of an agent: the samples of
# the window and of the batch that waits to be counted, the cells of transition counts, the rows
# and columns that the planner makes of them, the log of episodes, and what is kept per pair and
# per state. Time is a rule of thumb, fitted to the whole runs of `python -m benchmarks learning`,
# which prints how far off it is; compiling adds to the first run of an installation.

_SAMPLE = 16  # pair, next state and reward
_SLOT = 16  # of the table of counts
_CELL = 16  # of the table as it was when the episode was planned
_ENTRY = 2 * 16  # of the planner: once in a row, once in a column
_PAIR, _STATE = 196, 104  # counts, sets and the planner's own
_LANE = 8  # of the planner's grid
_LOG = 64  # an episode
_STEP = 25e-9
_PLANNING = 0.2e-9  # a step and pair, where sets are tight enough to plan in


def agent_memory(space: StateActions, window: int, horizon: int) -> int:
    """Return the approximate bytes that an agent with this window holds in a run.

    They grow with T only where the window is all of it and the cells are too many for a table.

    >>> agent_memory(StateActions.uniform(states=10, actions=4), window=5085, horizon=100_000)
    2292304
    """
    forgets = window < horizon
    samples = window + min(window, _BATCH) if forgets else _BATCH
    cells = space.n_pairs * space.n_states
    slots = cells if cells <= _CELLS else _slots(min(cells, samples if forgets else horizon))
    entries = min(cells, window)
    counted_early = min(window, horizon) > _BATCH  # while an episode lasts: its table is kept
    kept = (cells if cells <= _CELLS else min(cells, samples)) * counted_early
    lanes = has_grid(cells, entries) * (space.n_states + 2) * space.n_pairs
    return (
        _SAMPLE * samples
        + _SLOT * slots
        + _CELL * kept
        + _ENTRY * entries
        + _LANE * lanes
        + _PAIR * space.n_pairs
        + _STATE * space.n_states
        + _LOG * min(horizon + 8, LOG_ROWS)
    )


def run_seconds(space: StateActions, horizon: int) -> tuple[float, float]:
    """Return the approximate seconds of a run: with vacuous sets, and with tight ones."""
    return _STEP * horizon, (_STEP + _PLANNING * space.n_pairs) * horizon


# Advice: what follows from the numbers of a plan, in words.

_TIGHTER = ("proof", "laplace")  # than the paper's, under the same theorem


def _advice(plan: Plan) -> list[str]:
    """Return a few paragraphs; each is there because of a number of this plan."""
    paragraphs = [
        _window(plan),
        _widening(plan),
        _sets(plan),
        _rewards(plan),
        _blocks(plan),
        _bound(plan),
    ]
    return [text for text in paragraphs if text]


def _window(plan: Plan) -> str:
    if plan.window_real > plan.horizon:
        return (
            f"W* = {plan.window_real:,.0f} is more than T: the window is the whole horizon and "
            "nothing is ever forgotten. The budgets are too small, or the model too large, for T."
        )
    return ""


def _widening(plan: Plan) -> str:
    if plan.widening_real >= 2:
        return (
            f"eta* = {plan.widening_real:.2f} is capped at 2, where every transition set is the "
            "whole simplex: the agent looks no further than the next reward. Transitions drift "
            "too fast, or the model is too large, for this T; a smaller eta gives up the theorem, "
            "not the agent."
        )
    return ""


def _sets(plan: Plan) -> str:
    if plan.states == 1:
        return "One state: nothing to learn about transitions, and eta plays no part."
    needed = plan.visits_needed["paper"]
    if needed.widened is None:
        return ""
    seen = plan.visits_expected
    numbers = f"{needed.transitions:,} visits a pair ({needed.widened:,} with eta)"
    if seen >= needed.widened:
        return (
            f"The window holds {seen:,.0f} visits a pair on average, transition sets need {numbers}"
            ": on average they say something. Pairs that are visited less are still unknown."
        )
    text = (
        f"Vacuous: with the paper's radii transition sets need {numbers}, the window holds "
        f"{seen:,.0f} on average. The sets allow any transitions, all policies look alike, and "
        "ties decide: say which tie rule you use. "
    )
    enough = [
        f"Radii.{kind}() needs {widened:,}"
        for kind in _TIGHTER
        if (widened := plan.visits_needed[kind].widened) is not None and widened <= seen
    ]
    if enough:
        return text + f"Try tighter radii, same guarantee: {', '.join(enough)} with eta."
    return text + _scaling(plan)


def _scaling(plan: Plan) -> str:
    """Say what to do where no radii with a guarantee are tight enough."""
    radius = Radii.laplace().transition(
        plan.visits_expected, space=plan.space, horizon=plan.horizon, delta=plan.delta
    )
    factor = 2 / radius
    return (
        "No radii with a guarantee are tight enough. Have fewer states or actions, a longer T, or "
        f"give the guarantee up: Radii.laplace().scaled(c) with c below {factor:.2g}, and no eta."
    )


def _rewards(plan: Plan) -> str:
    needed = plan.visits_needed["paper"].rewards
    tight = plan.visits_needed["laplace"].bounded_rewards
    if needed is None or tight is None or plan.visits_expected >= needed:
        return ""
    return (
        f"Rewards need {needed:,} visits a pair until the paper's radius is below 1; before that "
        "every action looks as good as any can be. If rewards lie in [0, 1], "
        f"Radii.laplace(bounded=True) needs {tight:,}."
    )


def _blocks(plan: Plan) -> str:
    blocks = plan.borl
    number = "1 block" if blocks.blocks == 1 else f"{blocks.blocks:,} blocks"
    if blocks.gamma <= 1:
        return (
            f"BORL can adapt: {blocks.gamma:.0%} of its choices are uniform over {blocks.arms} "
            f"arms, in {number}."
        )
    falls = "B_r to the power 2/3" if plan.states == 1 else "the root of B_r + B_p + 1"
    return (
        f"BORL cannot adapt: {blocks.arms} arms in {number} give gamma = "
        f"{blocks.gamma:.2f} > 1, so it picks (W, eta) uniformly at random. It adapts for good "
        f"from T = {blocks.adapts_from:.3g}. If the budgets are known to a factor of a few, "
        f"tune one agent with guessed budgets instead: W* falls only with {falls}."
    )


def _bound(plan: Plan) -> str:
    bound = plan.bound
    whose = f"D = {bound.diameter:g}" + (
        "" if plan.diameter is not None else ", the least there is"
    )
    if bound.total < plan.horizon:
        share = bound.total / plan.horizon
        text = f"Theorem 1, constants 1 and no logarithms, {whose}: {share:.0%} of T."
    else:
        text = (
            f"Theorem 1 promises nothing yet: even with constants 1 and no logarithms ({whose}) "
            f"its bound is {bound.total / plan.horizon:.1f} T. It is below T from "
            f"T = {bound.below_from:.2g}."
        )
    if bound.noise_from is None or plan.horizon >= bound.noise_from:
        return text
    return text + (
        " With the constants and the logarithm of the proof, the noise of transitions alone "
        f"is below T from T = {bound.noise_from:.2g}."
    )
