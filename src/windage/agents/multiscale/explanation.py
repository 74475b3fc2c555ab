"""How fast a world forgets, and why an action was tried, as a multi-scale learner tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windage.agents.episodes import Episode
from windage.agents.meta.borl import BorlExplanation
from windage.errors import CallOrderError
from windage.validation import as_choice

if TYPE_CHECKING:
    from windage.agents.multiscale.structured import StructuredState
    from windage.agents.multiscale.windows import WindowExperts
    from windage.kernels.multiscale import MultiScaleLearner

__all__ = [
    "BelievedAction",
    "Forgetting",
    "GuardedExplanation",
    "MultiScaleExplanation",
    "StructuredExplanation",
    "explained",
    "explained_by_law",
]


@dataclass(frozen=True)
class Forgetting:
    """How much each window has counted, through time, in the world as a whole.

    Attributes
    ----------
    windows
        W_1 < ... < W_K; the last is all history.
    times
        When the weights were looked at.
    transitions, rewards
        [time, window] weights, each row sums to 1.
    """

    windows: tuple[int, ...]
    times: NDArray[np.int64]
    transitions: NDArray[np.float64]
    rewards: NDArray[np.float64]

    def mean(self, kind: str) -> NDArray[np.float64]:
        """Return how many of the last steps count, for "transitions" or "rewards", at each time."""
        weights = getattr(self, as_choice(kind, "kind", ("transitions", "rewards")))
        reach = np.minimum(np.array(self.windows), np.maximum(1, self.times[:, None] - 1))
        return np.asarray((weights * reach).sum(axis=1))


@dataclass(frozen=True)
class BelievedAction:
    """One action of the state that was asked about.

    `value` = `mean_reward` + `hope` + `expected`: what it is believed to pay, what is hoped for on
    top because it is not known well enough, and the bias expected of the next state, in units of
    the rewards. `visits` counts all history; `transition_memory` and `reward_memory` say how many
    of the last steps count for this pair, `transition_samples` and `reward_samples` how many of its
    own samples that leaves.
    """

    action: int
    name: str
    visits: int
    transition_memory: float
    reward_memory: float
    transition_samples: float
    reward_samples: float
    mean_reward: float
    hope: float
    expected: float
    value: float
    chosen: bool

    @property
    def known_value(self) -> float:
        """What it is worth without hope."""
        return self.value - self.hope


@dataclass(frozen=True)
class MultiScaleExplanation:
    """All actions of one state, as the learner sees them now, under the bias of its last plan."""

    state: int
    state_name: str
    epoch: int
    start: int
    gain: float
    actions: tuple[BelievedAction, ...]

    @property
    def reason(self) -> str:
        """Why the chosen action is played, in words."""
        played = next(a for a in self.actions if a.chosen)
        known = max(self.actions, key=lambda a: a.known_value)
        if known.chosen:
            return f"{played.name} is the best by what is known"
        hoped = max(self.actions, key=lambda a: a.value)
        if hoped.chosen:
            return (
                f"{played.name} is tried: {known.name} is better by what is known, by "
                f"{known.known_value - played.known_value:.3g}, but {played.name} rests on "
                f"{played.reward_samples:.0f} recent samples against {known.reward_samples:.0f}, "
                f"and may be worth {played.hope - known.hope:.3g} more than is known"
            )
        return f"{played.name} was the best when last planned; what was seen since speaks against"

    def __str__(self) -> str:
        head = (
            f"{self.state_name}: epoch {self.epoch}, since t = {self.start}; "
            f"planned gain {self.gain:.4g}"
        )
        names = [f"{a.name}{' *' if a.chosen else ''}" for a in self.actions]
        wide = max(6, *map(len, names))
        columns = "visits  p memory  r memory  p samples  r samples    mean    hope   value"
        lines = [
            f"{name:{wide}} {a.visits:6} {a.transition_memory:9.0f} {a.reward_memory:9.0f} "
            f"{a.transition_samples:10.1f} {a.reward_samples:10.1f} {a.mean_reward:7.3f} "
            f"{a.hope:7.3f} {a.value:7.3f}"
            for name, a in zip(names, self.actions, strict=True)
        ]
        return "\n".join([head, f"{'action':{wide}} {columns}", *lines, f"* {self.reason}"])


@dataclass(frozen=True)
class BelievedLaw:
    """What is believed of the law of a variable.

    `samples` says how many samples it rests on, `memory` how many of the last steps count. `drawn`
    is the law that posterior sampling has drawn for its episode; others plan with what is believed.
    """

    name: str
    label: object
    outcomes: tuple[int | float | str, ...]
    probabilities: tuple[float, ...]
    samples: float
    memory: float
    drawn: tuple[float, ...] | None = None

    @property
    def mean(self) -> float | None:
        """The mean outcome; None if outcomes are words."""
        return self._mean(self.probabilities)

    def _mean(self, law: tuple[float, ...]) -> float | None:
        if isinstance(self.outcomes[0], str):
            return None
        return float(sum(float(o) * p for o, p in zip(self.outcomes, law, strict=True)))

    def _in_words(self, law: tuple[float, ...]) -> str:
        """Return the mean of a law over numbers, the most likely outcome of one over words."""
        mean = self._mean(law)
        if mean is not None:
            return f"mean {mean:.3g}"
        chance, outcome = max(zip(law, self.outcomes, strict=True), key=lambda both: both[0])
        return f"{outcome} with probability {chance:.2f}"

    def __str__(self) -> str:
        group = "" if self.label is None else f" [{self.label}]"
        if round(self.samples) == 0:
            return f"{self.name}{group}: nothing is known yet"
        steps = "step" if round(self.samples) == 1 else "steps"
        known = f"{self._in_words(self.probabilities)} from an effective {self.samples:.0f} {steps}"
        drawn = "" if self.drawn is None else f", drawn as {self._in_words(self.drawn)}"
        return f"{self.name}{group}: {known}{drawn}"


@dataclass(frozen=True)
class KnownAction:
    """One action of the state that was asked about, under the laws that are planned with.

    `value` = `mean_reward` + `hope` + `expected`, as in `BelievedAction`.
    """

    action: int
    name: str
    mean_reward: float
    hope: float
    expected: float
    value: float
    chosen: bool

    @property
    def known_value(self) -> float:
        """What it is worth without hope."""
        return self.value - self.hope


def _called(action: KnownAction) -> str:
    """Return how a sentence calls an action; one without a name is a number."""
    return f"action {action.name}" if action.name.isdecimal() else action.name


@dataclass(frozen=True)
class StructuredExplanation:
    """The laws a state depends on, as they are believed now, and what they make of its actions.

    Posterior sampling values actions by the laws it has drawn for its episode.

    Attributes
    ----------
    laws
        Of the variables that the actions of the state involve.
    actions
        All actions, under the bias of the last plan.
    """

    state: int
    state_name: str
    epoch: int
    start: int
    gain: float
    laws: tuple[BelievedLaw, ...]
    actions: tuple[KnownAction, ...]

    @property
    def reason(self) -> str:
        """Why the chosen action is played, in words."""
        played = next(a for a in self.actions if a.chosen)
        others = [a for a in self.actions if not a.chosen]
        if not others:
            return f"{_called(played)}: there is no other action"
        next_best = max(others, key=lambda a: a.known_value)
        this, that = _called(played), _called(next_best)
        ahead = played.known_value - next_best.known_value
        if ahead >= 0.0:
            now = played.mean_reward - next_best.mean_reward
            later = played.expected - next_best.expected
            return (
                f"{this} because it is worth {ahead:.3g} more than {that}: "
                f"{now:+.3g} now, {later:+.3g} later"
            )
        if played.value >= max(a.value for a in others):
            return (
                f"{this} is tried: {that} is worth {-ahead:.3g} more by what is known, but "
                f"{this} may be worth {played.hope - next_best.hope:.3g} more than is known"
            )
        return f"{this} was the best when last planned; what was seen since speaks against"

    def __str__(self) -> str:
        head = (
            f"{self.state_name}: epoch {self.epoch}, since t = {self.start}; "
            f"planned gain {self.gain:.4g}"
        )
        names = [f"{a.name}{' *' if a.chosen else ''}" for a in self.actions]
        wide = max(6, *map(len, names))
        lines = [
            f"{name:{wide}} {a.mean_reward:10.3f} {a.hope:7.3f} {a.expected:9.3f} {a.value:9.3f}"
            for name, a in zip(names, self.actions, strict=True)
        ]
        columns = f"{'action':{wide}}       mean    hope  expected     value"
        laws = "; ".join(map(str, self.laws))
        why = f"* {laws}; {self.reason}" if laws else f"* {self.reason}"
        return "\n".join([head, columns, *lines, why])


@dataclass(frozen=True)
class GuardedExplanation:
    """Why a guarded learner plays what it does.

    Attributes
    ----------
    slack
        xi_m: how much less hopeful than the best an action may be and still be admitted.
    admitted
        Which actions of the state are.
    decision
        What the multi-scale learner believes and hopes of each action.
    anchor
        What BORL and its learner say of the state.
    """

    slack: float
    admitted: tuple[bool, ...]
    decision: MultiScaleExplanation
    anchor: BorlExplanation

    def __str__(self) -> str:
        return f"{self.decision}\n{self.guard}"

    @property
    def guard(self) -> str:
        """What is admitted, and by which block of BORL."""
        names = [action.name for action in self.decision.actions]
        out = [name for name, fine in zip(names, self.admitted, strict=True) if not fine]
        guard = f"within {self.slack:.4g} of the most hopeful: " + (
            "every action" if not out else f"not {', '.join(out)}"
        )
        arm = self.anchor.arms[self.anchor.arm]
        block = f"block {self.anchor.block} of {self.anchor.of}, anchored at W = {arm.window}"
        return f"{guard}\n{block}, eta = {arm.widening:.4g}"


def explained(
    kernel: MultiScaleLearner, experts: WindowExperts, state: int, epoch: Episode | None
) -> MultiScaleExplanation:
    """Return what is believed of each action of a state now; nothing that decides is changed."""
    from windage.kernels.multiscale import form, spread_evenly, value

    if epoch is None:
        raise CallOrderError(
            "nothing has been planned yet", field="explain", fix="call act(s) first"
        )
    space, estimate, width = experts.space, kernel.estimate, kernel.high - kernel.low
    form(estimate)  # a workspace: the next plan forms it anew
    memory, even = experts.memory(), spread_evenly(estimate)
    found = []
    for action in range(int(space.counts[state])):
        p = space.pair(state, action)
        pair = estimate.pairs[p]
        worth = float(value(estimate, p, even))
        found.append(
            BelievedAction(
                action=action,
                name=space.action_name(state, action),
                visits=int(experts.kernel.visits[p, -1]),
                transition_memory=float(memory[0, p]),
                reward_memory=float(memory[1, p]),
                transition_samples=float(pair["p_mass"]) - estimate.unseen,
                reward_samples=float(pair["r_mass"]) - 2.0,
                mean_reward=kernel.low + width * float(pair["mean"]),
                hope=width * float(pair["bonus"]),
                expected=width * (worth - float(pair["reward"])),
                value=kernel.low + width * worth,
                chosen=p == int(kernel.policy[state]),
            )
        )
    return MultiScaleExplanation(
        state=state,
        state_name=space.state_name(state),
        epoch=int(kernel.epoch["number"][0]),
        start=epoch.start,
        gain=epoch.gain,
        actions=tuple(found),
    )


def explained_by_law(
    learner: StructuredState, state: int, epoch: Episode | None
) -> StructuredExplanation:
    """Return what is believed of the laws of a state now; nothing that decides is changed."""
    from windage.kernels.multiscale import form, value
    from windage.kernels.structured import believe, form_pairs

    if epoch is None:
        raise CallOrderError(
            "nothing has been planned yet", field="explain", fix="call act(s) first"
        )
    structure, kernel, estimate = learner.structure, learner.kernel, learner.estimate
    space, low, width = learner.space, kernel.low, kernel.high - kernel.low
    kept = estimate.q.copy()  # the next fit goes on from it; all else is a workspace
    if learner.draws:
        form_pairs(estimate)
        estimate.q[:] = np.repeat(1.0 / structure.law_sizes, structure.law_sizes)
        for _ in range(5):
            believe(estimate)
    else:
        form(estimate)
    believed, known = estimate.q.copy(), estimate.known
    estimate.q[:] = kept
    first, last = space.offsets[state : state + 2]
    memory = learner.experts.reach(learner.experts.kernel.of_laws)
    laws = []
    for law in np.unique(known.law_of[first:last]):
        if law < 0:
            continue
        variable, label = structure.laws[law]
        here = slice(*known.outcomes[law : law + 2])
        laws.append(
            BelievedLaw(
                name=structure.variables[variable].name,
                label=label,
                outcomes=structure.variables[variable].outcomes,
                probabilities=tuple(believed[here].tolist()),
                samples=float(estimate.laws[law]["mass"]) - estimate.prior,
                memory=float(memory[law]),
                drawn=tuple(kept[here].tolist()) if learner.draws else None,
            )
        )
    actions = []
    for p in range(first, last):
        pair, worth = estimate.pairs[p], float(value(estimate, p, 0.0))
        actions.append(
            KnownAction(
                action=p - int(first),
                name=space.action_name(state, p - int(first)),
                mean_reward=low + width * float(pair["mean"]),
                hope=width * float(pair["bonus"]),
                expected=width * (worth - float(pair["reward"])),
                value=low + width * worth,
                chosen=p == int(kernel.policy[state]),
            )
        )
    return StructuredExplanation(
        state=state,
        state_name=space.state_name(state),
        epoch=int(kernel.epoch["number"][0]),
        start=epoch.start,
        gain=epoch.gain,
        laws=tuple(laws),
        actions=tuple(actions),
    )
