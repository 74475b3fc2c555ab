"""BORL: a bandit over windows and widenings, so that no budgets need be known (paper, Algorithm 3).

    H, Delta, J from S, A and T                                                # lines 1 to 3
    for block i = 1, 2, ..., ceil(T / H)                                       # line 5
        u <- the master's probabilities; draw arm (W_i, eta_i) ~ u             # lines 6 to 9
        run a fresh SWUCRL2-CW(W_i, eta_i) for H steps                         # lines 10 to 12
        tell the master the block's reward over H                              # lines 13, 14

The readings we take: widenings without a floor and with their factor (E2, E3), gamma at most 1
(E4), blocks of min(T, ceil H) steps with windows from the real H (E5), widenings at most 2 (E7),
rewards of a block cut to [0, 1] (E9), T and delta of the whole run in every block (E22), a clock of
its own for each (E23), the last block divided by H too (E24).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage import adversarial
from windage.agents.base import Agent, quietly
from windage.agents.meta.delegating import Blockwise, Choices, Recent
from windage.agents.optimistic.base import Explanation
from windage.agents.optimistic.swucrl2cw import SWUCRL2CW
from windage.confidence import tuning
from windage.confidence.radii import Radii
from windage.confidence.tuning import horizons_to_adapt
from windage.errors import CallOrderError, GuaranteeWarning, InputError, ParameterWarning, warn
from windage.rng import key, stream
from windage.spaces import StateActions, as_space
from windage.validation import LAST_TIME, as_choice, as_flag, as_integer, as_real

__all__ = [
    "BORL",
    "Arm",
    "BorlExplanation",
    "as_arms",
    "odd_arms",
    "require_possible_blocks",
    "require_same_runner",
]


def as_arms(value: Any) -> list[tuple[int, float]]:
    """Return own arms, or say which of them is impossible."""
    fix = "pass pairs (W, eta), such as [(100, 0.0), (1000, 0.1)]"
    try:
        pairs = [tuple(arm) for arm in value]
    except TypeError:
        raise InputError(f"{value!r} are no arms", field="arms", fix=fix) from None
    if not pairs:
        raise InputError("there are none", field="arms", fix=fix)
    found = []
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            raise InputError(f"{pair!r} is no arm", field=f"arms[{i}]", fix=fix)
        W = as_integer(pair[0], f"arms[{i}]: window", low=1, high=LAST_TIME)
        found.append((W, as_real(pair[1], f"arms[{i}]: widening", low=0.0, high=2.0)))
    return found


def odd_arms(arms: Sequence[tuple[int, float]], horizon: int) -> list[str]:
    """Return what is hardly meant by arms of one's own; the paper's grid has such windows too.

    >>> odd_arms([(10, 0.1), (200, 2.0)], 100)[1]
    'arms[1]: a widening of 2 makes every kernel plausible (E7)'
    """
    odd = [
        f"arms[{i}]: a window of {W} samples is longer than the horizon {horizon}"
        for i, (W, _) in enumerate(arms)
        if horizon < W
    ]
    return odd + [
        f"arms[{i}]: a widening of 2 makes every kernel plausible (E7)"
        for i, (_, eta) in enumerate(arms)
        if eta == 2.0
    ]


@dataclass(frozen=True)
class Arm:
    """One arm, as the master sees it now."""

    window: int
    widening: float
    probability: float
    at_first: float
    played: int
    mean_reward: float


@dataclass(frozen=True)
class BorlExplanation:
    """Why BORL plays the window and widening it does.

    Attributes
    ----------
    block, of
        The number of the current block, and of all.
    arm
        The arm it plays.
    arms
        All arms: how likely each is now and was at first, how often it was played, what it earned.
    gamma
        The master's share of blind choice as its formula has it; above 1 it is cut at 1.
    learner
        What the learner of this block says of the state that was asked about.
    """

    block: int
    of: int
    arm: int
    arms: tuple[Arm, ...]
    gamma: float
    learner: object

    def __str__(self) -> str:
        lines = [f"block {self.block} of {self.of}, arm {self.arm}"]
        if self.gamma > 1.0:
            lines.append(
                f"gamma = {self.gamma:.3g} is above 1 and cut at 1: {self.of} blocks are too few "
                f"for {len(self.arms)} arms, all are played alike, and nothing is learned about "
                "them. Fewer arms or more steps would help"
            )
        lines.append("arm      W     eta  probability  at first  played  mean reward")
        for i, arm in enumerate(self.arms):
            mark = "*" if i == self.arm else " "
            earned = f"{arm.mean_reward:11.4f}" if arm.played else "          -"
            lines.append(
                f"{i:3}{mark}{arm.window:7} {arm.widening:7.4f} {arm.probability:12.4f} "
                f"{arm.at_first:9.4f} {arm.played:7} {earned}"
            )
        return "\n".join([*lines, str(self.learner)])


_PASSED_ON = ("delta", "ties", "slack", "warm_start")


class BORL(Blockwise):
    """BORL (Cheung, Simchi-Levi, Zhu 2020), for models that drift within unknown budgets.

    Parameters
    ----------
    space, horizon, delta, radii, ties, slack, warm_start, seed
        Those of `SWUCRL2CW`.
    arms
        Pairs (W, eta) to choose from; the paper's grid if not given.
    master
        Which bandit chooses: "exp3p" is the paper's, `windage.adversarial.names()` lists all.
    block_length
        Steps of a block; the paper's min(T, ceil H) if not given.
    carry_window
        Whether a block starts with the last W samples of those before, instead of with nothing.
    reward_range
        (lowest, highest) reward: others are refused. The master needs to know it; with None any
        reward is taken and that of a block is cut to [0, 1].

    Examples
    --------
    >>> import warnings, windage as wd
    >>> model = wd.envs.make("two-state-cosine")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", wd.GuaranteeWarning)
    ...     agent = BORL(model.space, horizon=model.horizon)
    >>> agent.block_length, len(agent.arms)
    (477, 35)
    >>> run = wd.run(model, agent, seed=1)
    >>> agent.blocks
    BlockLog(11 of 477 steps)
    """

    id: ClassVar[str] = "borl"
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "D (B_r + B_p + 1)^(1/4) S^(2/3) A^(1/2) T^(3/4), up to logs"
    source: ClassVar[str] = "Cheung, Simchi-Levi, Zhu 2020, Theorem 2"
    counts_in_loop: ClassVar[bool] = True  # its learners do
    default_radii: ClassVar[str] = "paper"
    derived: ClassVar[tuple[str, ...]] = ("arms", "block_length", "n_blocks")
    learner_kind: ClassVar[type[SWUCRL2CW]] = SWUCRL2CW
    """What acts in a block."""

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        delta: float = 0.05,
        arms: Any = None,
        master: str = "exp3p",
        radii: Radii | str | dict[str, Any] | None = None,
        ties: str = "random",
        slack: float = 0.0,
        warm_start: bool = True,
        block_length: int | None = None,
        carry_window: bool = False,
        reward_range: tuple[float, float] | None = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        grid = tuning.borl_grid(as_space(space), horizon)
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        if arms is not None:
            self._given["arms"] = arms = as_arms(arms)
        if block_length is not None:
            block_length = as_integer(block_length, "block_length", low=1, high=LAST_TIME)
            self._given["block_length"] = block_length
        paper = [(W, eta) for W in grid.windows for eta in grid.widenings]
        self.arms = tuple(paper if arms is None else arms)
        """The pairs (W, eta), one for each arm of the master, duplicates kept."""
        self.block_length = block_length or grid.block_length
        self.n_blocks = -(-self.horizon // self.block_length)
        self.master = as_choice(master, "master", adversarial.names())
        self.carry_window = as_flag(carry_window, "carry_window")
        self._passed_on: dict[str, Any] = {
            "delta": delta,
            "radii": Radii.from_spec("paper" if radii is None else radii).spec(),
            "ties": ties,
            "slack": slack,
            "warm_start": warm_start,
            "reward_range": self.reward_range,
        }
        widest = max(range(len(self.arms)), key=lambda k: self.arms[k][0])
        first = self._learner(widest, block=0)  # says what is wrong with the options
        self.delta, self.radii, self.ties, self.slack = (
            first.delta, first.radii, first.ties, first.slack,
        )  # fmt: skip
        self.warm_start = first.warm_start
        self._passed_on |= {name: getattr(self, name) for name in _PASSED_ON}
        made = adversarial.make(self.master, len(self.arms), self.n_blocks, quiet=True)
        self._choices = Choices(made, self._draw)
        most = min(self.horizon, max(W for W, _ in self.arms))
        self._recent = Recent(most) if carry_window else None
        self._warn()

    def _has_own(self, name: str) -> bool:
        """Whether arms or blocks are not the paper's."""
        return self._given.get(name) is not None

    def _warn(self) -> None:
        master, missing = self._choices.master, []
        alone = self.n_blocks == 1 and len(self.arms) == 1  # Algorithm 1: Theorem 1 speaks of it
        if self.n_blocks == 1 and not alone:
            missing.append(
                f"one block of {self.block_length} steps holds all of T = {self.horizon}: an arm "
                "is drawn, and arms are never compared (E5)"
            )
        elif master.said:
            missing += [master.said, self._when_it_learns()]
        if self._own_ways() and not alone:
            missing.append(f"Theorem 2 does not speak of {', '.join(self._own_ways())}")
        if not self.radii.keeps_guarantee:
            missing.append(f"{self.radii.label} radii do not cover the truth as the theorem needs")
        if self.space.n_states > 1 and all(eta == 0.0 for _, eta in self.arms):
            missing.append("the theorem needs a positive widening")
        if missing:
            warn("; ".join(missing), GuaranteeWarning)
        odd = odd_arms(self.arms, self.horizon) if self._has_own("arms") else []
        if odd:
            warn("; ".join(odd), ParameterWarning)

    def _when_it_learns(self) -> str:
        """Say what it would take: the paper's grid grows with T, own arms do not."""
        if self._has_own("arms") or self._has_own("block_length") or self.master != "exp3p":
            return f"with these {len(self.arms)} arms it takes {self._choices.master.enough} blocks"
        T = horizons_to_adapt(self.space.n_states, self.space.mean_actions)[1]
        return f"with the grid and the blocks of the paper, gamma is at most 1 from T = {T} on"

    def _own_ways(self) -> list[str]:
        """Say which options lead away from Algorithm 3."""
        ways = {
            "arms of one's own": self._has_own("arms"),
            f"the master {self.master!r}": self.master != "exp3p",
            f"blocks of {self.block_length} steps": self._has_own("block_length"),
            "windows carried from block to block": self.carry_window,
        }
        return [words for words, taken in ways.items() if taken]

    @property
    def _pairs(self) -> tuple[tuple[int, float], ...]:
        return self.arms

    def _learner(self, arm: int, block: int) -> SWUCRL2CW:
        """Return a fresh SWUCRL2-CW for an arm, with draws of its own."""
        W, eta = self.arms[arm]
        options = {
            "horizon": self.horizon,
            "window": W,
            "widening": eta,
            "seed": self._learner_seed(block),
            **self._passed_on,
        }
        return quietly(self.learner_kind, self.space, options)

    def _learner_seed(self, block: int) -> int:
        """Return a seed that nobody chose for anything else."""
        high, low = key(self.seed, f"agents.borl/{block}")
        return (int(high) << 64) | int(low)

    def _draw(self, block: int) -> float:
        return float(stream(self.seed, "agents.borl", block).random())

    def _next_runner(self) -> tuple[Agent, int]:
        learner = self._learner(self._choices.choose(), self._choices.told)
        learner._warned = self._runner is not None and self._runner._warned  # once is enough
        if self._recent is not None:
            learner.preload_all(*self._recent.last(learner.window))
        return learner, self.block_length

    def _saw(
        self,
        before: int,
        pairs: NDArray[np.int64],
        rewards: NDArray[np.float64],
        afters: NDArray[Any],
    ) -> None:
        if self._recent is not None:
            self._recent.add(before, pairs, rewards, afters)

    def _heard(self, earned: float, steps: int) -> float:
        return self._scale.unit(earned / steps)

    def explain(self, s: int) -> BorlExplanation:
        """Say which arms are played and how that came, and what this block's learner thinks."""
        if self._runner is None or self._runner.episode is None:
            raise CallOrderError(
                "nothing has been planned yet", field="explain", fix="call act(s) first"
            )
        blocks = self.blocks
        arms = []
        for k, (W, eta) in enumerate(self.arms):
            mine = (blocks.arm == k) & blocks.told
            mean = float(blocks.reward[mine].mean()) if mine.any() else math.nan
            arms.append(
                Arm(
                    window=W,
                    widening=eta,
                    probability=float(self.probabilities[k]),
                    at_first=float(blocks.probabilities[0, k]),
                    played=int(mine.sum()),
                    mean_reward=mean,
                )
            )
        return BorlExplanation(
            block=self._block + 1,
            of=self.n_blocks,
            arm=self._choices.arm(self._block),
            arms=tuple(arms),
            gamma=self._choices.master.raw_gamma,
            learner=self._explained(s),
        )

    def _explained(self, s: int) -> Explanation:
        """Return what the learner of this block says, in the time of the run."""
        said: Explanation = self._runner.explain(s)
        return replace(said, start=said.start + self._since - 1)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        if self._recent is not None:
            arrays |= {f"recent.{name}": array for name, array in self._recent.saved().items()}
        return values | {"block": self._block}, arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restored(values, arrays)
        if self._recent is not None:
            space, prefix = self.space, "recent."
            kept = {name.removeprefix(prefix): array for name, array in arrays.items()}
            self._recent.restore(kept, space.n_pairs, space.n_states)
            if self._recent.seen != self.t - 1:
                raise ValueError("recent")
        if self._runner is not None:
            require_same_runner(self)

    def _require_possible(self, values: dict[str, Any]) -> None:
        require_possible_blocks(self, values["block"])

    def _restored_runner(self, data: bytes, since: int) -> Agent:
        del since
        return SWUCRL2CW.from_state(data)


def require_possible_blocks(agent: BORL, block: object) -> None:
    """The block that goes on is the one of the clock, or the one before if nobody has asked yet."""
    n, H = agent._block + 1, agent.block_length
    asked, waits = -(-agent.t // H), -(-(agent.t - 1) // H)  # a decision may have been withdrawn
    if block != agent._block or (n != asked and (n != waits or agent._pending is not None)):
        raise ValueError("block")
    if agent._since != 1 + max(0, agent._block) * H:
        raise ValueError("since")


def require_same_runner(agent: BORL) -> None:
    """The learner of a block is the one that its arm asks for."""
    due = agent._learner(agent._choices.arm(agent._block), agent._block)
    carried = min(due.window, agent._since - 1) if agent.carry_window else 0
    if (
        agent._runner.configuration() != due.configuration()
        or agent._runner.preloaded != carried
        or agent._until != agent._since + agent.block_length
        or agent._past_episodes < agent._block
    ):
        raise ValueError("runner")
    low, high = agent.reward_range or (-math.inf, math.inf)
    steps, earned = agent.t - agent._since, float(agent._sum.sum())
    slip = 1e-9 * steps * max(abs(low), abs(high)) if agent.reward_range else 0.0
    if steps and not low * steps - slip <= earned <= high * steps + slip:
        raise ValueError("earned")
    if agent._recent is not None:
        rewards = agent._recent.last(agent._recent.capacity)[1]
        if rewards.size and not low <= rewards.min() <= rewards.max() <= high:
            raise ValueError("recent.reward")
