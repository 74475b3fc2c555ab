"""Why this action: what an optimistic learner knows of each action and hopes for beyond that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windage.confidence.confidence import ConfidenceRegion

if TYPE_CHECKING:
    from windage.agents.reward_scale import Scale

__all__ = ["ActionReport", "Explanation", "reports"]


@dataclass(frozen=True)
class ActionReport:
    """One action of the state that was asked about.

    `value` = `optimistic_reward` + `expected` + `bonus`: what the sets allow at best, the bias
    expected under the estimate p_hat, and the optimism about transitions on top of it, all in units
    of the rewards. All of it is what the episode was planned with, however long it lasts.
    """

    action: int
    name: str
    visits: int
    mean_reward: float
    reward_radius: float
    optimistic_reward: float
    transition_radius: float
    widening: float
    expected: float
    bonus: float
    bonus_from_widening: float
    value: float
    vacuous: bool
    tied: bool
    chosen: bool


@dataclass(frozen=True)
class Explanation:
    """All actions of one state, as the current episode sees them, in units of the rewards."""

    state: int
    state_name: str
    episode: int
    start: int
    gain: float
    span: float
    radii: str
    ties: str
    slack: float
    actions: tuple[ActionReport, ...]

    def __str__(self) -> str:
        head = (
            f"{self.state_name}: episode {self.episode}, planned at t = {self.start} with "
            f"{self.radii} radii; optimistic gain {self.gain:.4g}, span {self.span:.4g}"
        )
        names = [f"{a.name}{' *' if a.chosen else ''}" for a in self.actions]
        wide = max(6, *map(len, names))
        columns = "visits   mean  radius  hoped  p radius  bonus  of eta   value  tied"
        lines = [
            f"{name:{wide}} {a.visits:6} {a.mean_reward:6.3f} {a.reward_radius:7.3f} "
            f"{a.optimistic_reward:6.3f} {a.transition_radius:9.3f} {a.bonus:6.3f} "
            f"{a.bonus_from_widening:7.3f} {a.value:7.3f}  {'yes' if a.tied else 'no'}"
            for name, a in zip(names, self.actions, strict=True)
        ]
        foot = f"* played; ties are broken by {self.ties!r} within a slack of {self.slack:g}"
        return "\n".join([head, f"{'action':{wide}} {columns}", *lines, foot])


def reports(
    state: int,
    region: ConfidenceRegion,
    bias: NDArray[np.float64],
    sets: NDArray[np.void],
    scale: Scale,
    reward_radii: Sequence[float],
    played: int,
    tied: NDArray[np.bool_],
) -> tuple[ActionReport, ...]:
    """Return what a learner knows of each action of a state, under the bias it planned with."""
    space = region.space
    first = int(space.offsets[state])
    tight = region.without_widening()
    found = []
    for action, reward_radius in enumerate(reward_radii):
        pair = first + action
        expected = float((region.p_hat[[pair]] @ bias)[0])
        hoped = float(region.best_row(pair, bias) @ bias)
        without = float(tight.best_row(pair, bias) @ bias)
        reward = float(region.reward_upper[pair])
        found.append(
            ActionReport(
                action=action,
                name=space.action_name(state, action),
                visits=int(sets[pair]["visits"]),
                mean_reward=float(sets[pair]["r_hat"]),
                reward_radius=reward_radius,
                optimistic_reward=reward,
                transition_radius=float(region.radius[pair].max()) if region.visited[pair] else 2.0,
                widening=float(region.widening[pair]),
                expected=expected,
                bonus=hoped - expected,
                bonus_from_widening=hoped - without,
                value=reward + hoped,
                vacuous=bool(sets[pair]["vacuous"]),
                tied=bool(tied[action]),
                chosen=pair == played,
            )
        )
    return tuple(_in_rewards(one, scale) for one in found)


def _in_rewards(report: ActionReport, scale: Scale) -> ActionReport:
    """Return a report in units of the rewards; the learner itself thinks in [0, 1]."""
    low, width = scale.low, scale.width
    return replace(
        report,
        mean_reward=low + width * report.mean_reward,
        reward_radius=width * report.reward_radius,
        optimistic_reward=low + width * report.optimistic_reward,
        expected=width * report.expected,
        bonus=width * report.bonus,
        bonus_from_widening=width * report.bonus_from_widening,
        value=low + width * report.value,
    )
