"""What all optimistic learners share: radii, a widening, EVI and ties.

SWUCRL2-CW, its form without widening, UCRL2 and its relatives are the same learner with other
parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.agents.configuration import AgentOptions
from windage.agents.exclusive import exclusive
from windage.agents.optimistic.episodic import EpisodicAgent
from windage.confidence.confidence import ConfidenceRegion, over_pairs
from windage.confidence.radii import Radii
from windage.errors import CallOrderError, ParameterWarning, warn
from windage.spaces import StateActions
from windage.validation import as_choice, as_flag, as_real, require_memory

if TYPE_CHECKING:
    from windage.agents.base import Scale

__all__ = [
    "ActionReport",
    "Explanation",
    "OptimisticAgent",
    "OptimisticOptions",
    "SetOptions",
    "reports",
    "widening_of_pairs",
]

TIES = ("lowest", "random", "previous", "sampled")


class SetOptions(AgentOptions, total=False):
    """Keyword arguments of every learner with confidence sets."""

    delta: float
    radii: Radii | str | dict[str, Any] | None
    warm_start: bool


class OptimisticOptions(SetOptions, total=False):
    """Keyword arguments of every optimistic learner."""

    ties: str
    slack: float


class OptimisticAgent(EpisodicAgent):
    """A learner that plays the best policy of the best plausible model, episode by episode.

    The parameters are described at `SWUCRL2CW`. A subclass may widen rewards and transitions in
    every phase of a restart schedule (`_rules`, "widenings") and transitions always (`_etas`).
    """

    clip: bool
    """Whether optimistic rewards stop at 1."""
    default_radii: ClassVar[str] = "paper"
    _explains = True

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        delta: float = 0.05,
        radii: Radii | str | dict[str, Any] | None = None,
        ties: str = "random",
        slack: float = 0.0,
        warm_start: bool = True,
        **options: Unpack[AgentOptions],
    ) -> None:
        self.delta = as_real(delta, "delta", low=0.0, high=1.0, open_low=True, open_high=True)
        self.radii = Radii.from_spec(self.default_radii if radii is None else radii)
        self.ties = as_choice(ties, "ties", TIES)
        self.slack = as_real(slack, "slack", low=0.0)
        self.warm_start = as_flag(warm_start, "warm_start")
        super().__init__(space, horizon=horizon, **options)

    def _rules(self) -> dict[str, Any]:
        return {
            "radii": self.radii.rules(self.space, self.horizon, self.delta),
            "by_time": self.radii.needs_time,
            "boxes": self.radii.makes_boxes,
            "clip": self.clip,
            "ties": TIES.index(self.ties),
            "slack": self.slack,
            "warm": self.warm_start,
        }

    @property
    def _squares(self) -> bool:
        return self.radii.makes_boxes

    def _room_for_draws(self) -> int:
        if self.ties != "sampled":
            return 0
        return self._all_cells("ties", "break ties another way, or with fewer states")

    @exclusive
    def region(self) -> ConfidenceRegion:
        """Return the sets the current episode was planned with, rewards scaled to [0, 1]."""
        counts, pairs = self._window.planned, self._learner.plan.pairs
        eta = self._learner.sets["eta"].copy()
        n = np.asarray(counts.sum(axis=1)).ravel()
        visited = (self._learner.sets["visits"] > 0) & (n > 0)
        p_hat = counts.astype(np.float64)
        p_hat.data /= np.repeat(n, np.diff(counts.indptr))  # n / n is 1; n (1 / n) may not be
        if self.radii.makes_boxes:
            require_memory(24 * p_hat.shape[0] * p_hat.shape[1], "region", fix="use L1 radii")
            spread = np.sqrt(p_hat.toarray() * (1.0 - p_hat.toarray()))
            radius = pairs["root"][:, None] * spread + pairs["rest"][:, None]
            return ConfidenceRegion.box(self.space, pairs["reward"], p_hat, radius, visited, eta)
        radius = np.where(visited, np.maximum(2.0 * pairs["half"] - eta, 0.0), 0.0)
        return ConfidenceRegion(self.space, pairs["reward"], p_hat, radius, visited, eta)

    @property
    def bias(self) -> NDArray[np.float64]:
        """gamma~ of the current episode, in units of the rewards; its least entry is 0."""
        if not self._learner.episode["planned"][0]:  # every state is worth the same
            return np.zeros(self.space.n_states)
        return self._scale.width * np.asarray(self._learner.plan.u)

    @exclusive
    def explain(self, s: int) -> Explanation:
        """Say what the current episode knows of each action of a state, and hopes for."""
        from windage.kernels.swucrl2cw import GOING_ON

        state = self.space.check_state(s)
        episode, learner = self.episode, self._learner
        if episode is None:
            raise CallOrderError(
                "nothing has been planned yet", field="explain", fix="call act(s) first"
            )
        if learner.episode["due"][0] != GOING_ON:
            raise CallOrderError(
                "the plan that is due did not converge", field="explain", fix="see act(s)"
            )
        bias = learner.plan.u if learner.episode["planned"][0] else np.zeros(self.space.n_states)
        first, last = self.space.offsets[state : state + 2]
        radii = [self._reward_radius(pair) for pair in range(first, last)]
        return Explanation(
            state=state,
            state_name=self.space.state_name(state),
            episode=self.n_episodes,
            start=episode.start,
            gain=episode.gain,
            span=episode.span,
            radii=self.radii.label,
            ties=self.ties,
            slack=self.slack * self._scale.width,
            actions=reports(
                state,
                self.region(),
                bias,
                learner.sets,
                self._scale,
                radii,
                self._played(state),
                self._tied(state),
            ),
        )

    def _tied(self, state: int) -> NDArray[np.bool_]:
        """Return which actions of a state the current episode takes for equally good."""
        from windage.kernels.evi import tie_bar

        field = "value" if self._learner.episode["planned"][0] else "reward"
        first, last = self.space.offsets[state : state + 2]
        values = self._learner.plan.pairs[field][first:last]
        return np.asarray(values >= tie_bar(values.max(), self.slack))

    def _played(self, state: int) -> int:
        """Return the pair the current episode plays in a state, without a trace in the agent."""
        from windage.kernels.policy import policy_of

        copy = self._learner._replace(policy=self._learner.policy.copy())
        return int(policy_of(copy, state))

    def _reward_radius(self, pair: int) -> float:
        visits, lift, spread = self._learner.sets[["visits", "lift", "spread"]][pair]
        if self.radii.makes_boxes:  # it hangs on the variance of the rewards
            return float(lift + spread)
        tau = int(self._learner.episode["tau"][0])
        radius = self.radii.reward(
            int(visits),
            space=self.space,
            horizon=self.horizon,
            delta=self.delta,
            t=tau - self._origin(tau),
        )
        return float(lift) + float(radius)


def widening_of_pairs(value: ArrayLike, space: StateActions) -> NDArray[np.float64]:
    """Return the widening of every pair, from one number or one for each."""
    eta = np.array(over_pairs(value, "widening", space, one_for_all=True))
    if (eta >= 2.0).any():
        warn(
            f"a widening of {eta.max():g} makes every kernel plausible: the policy is myopic (E7)",
            ParameterWarning,
        )
    return eta


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
