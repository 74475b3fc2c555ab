"""What follows from the numbers of a plan, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windage.confidence.radii import Radii

if TYPE_CHECKING:
    from windage.plans.summary import Plan

__all__ = ["advice"]

_TIGHTER = ("proof", "laplace")  # than the paper's, under the same theorem


def advice(plan: Plan) -> list[str]:
    """Return a few paragraphs; each is there because of a number of this plan."""
    told = [
        _window(plan),
        _widening(plan),
        _sets(plan),
        _rewards(plan),
        _blocks(plan),
        _bound(plan),
    ]
    return [text for text in told if text]


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
