"""Bandit algorithms, for one state; with several states, one bandit in each, looking no further.

A bandit's clock counts the visits of its state, and its constants are those for T steps, since
nobody knows how often a state will be visited. Constants are recalled, not copied from the papers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.adversarial import Exp3, make_bank, mixing, shared_mixing, too_mixed
from windage.agents.base import Agent, ProgressAgent, quietly
from windage.agents.configuration import AgentOptions
from windage.agents.meta.delegating import Blockwise, Choices
from windage.agents.state import take_back
from windage.confidence import tuning
from windage.confidence.tuning import Budgets, is_left_open
from windage.errors import GuaranteeWarning, InputError, ParameterWarning, warn
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import LAST_TIME, as_integer, as_real, require_memory

if TYPE_CHECKING:
    from windage.kernels.bandits import Bounds, Weights

__all__ = ["BOB", "DUCB", "EXP3S", "REXP3", "SWUCB", "UCB1"]

Fact = TypeVar("Fact")


class BanditAgent(ProgressAgent):
    """What all of them share: how they are tuned, and a word on rewards that are clipped."""

    tunes: ClassVar[tuple[str, str]] = ("", "")
    """A number that can be given, and what it is tuned to if it is not."""

    _warned = False

    def _look_back(self, rewards: NDArray[np.float64]) -> None:
        if not self._warned and self._table.progress["clipped"][0] > 0:
            self._warned = True
            warn(
                f"{self.id}: a reward outside [0, 1] was clipped, as others will be: declare a "
                "reward_range",
                ParameterWarning,
            )

    @classmethod
    def requires_with(cls, options: dict[str, Any], budgets: Budgets | None) -> tuple[str, ...]:
        """Return what the agent requires; the fact itself may be among its options."""
        del budgets
        number, fact = cls.tunes
        return cls.requires if number == fact or is_left_open(options.get(number)) else ()

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
        )


class UCB1Options(AgentOptions, total=False):
    """Keyword arguments of `UCB1`."""

    exploration: float


class ForgettingOptions(UCB1Options, total=False):
    """Keyword arguments of bandits that forget."""

    changes: int | None


class UCB1(BanditAgent):
    """Plays the arm with the largest mean + sqrt(2 ln n / N), n samples in all and N of the arm.

    Arms not seen are played first, and the first of equally good ones. It forgets nothing: the
    baseline for models that do not change.

    Parameters
    ----------
    exploration
        xi, the 2 under the root.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. If
        not given, any finite reward is taken as it is.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("bandit", horizon=1000, shape="breaks")
    >>> run = wd.run(model, UCB1(model.space, horizon=1000), seed=1)
    >>> run.actions[:4].tolist()
    [0, 1, 2, 0]
    """

    id: ClassVar[str] = "ucb1"
    off_policy: ClassVar[bool] = True
    covers_drift: ClassVar[bool | None] = False
    bound: ClassVar[str] = "sqrt(K T log T), one state, no drift"
    source: ClassVar[str] = "Auer, Cesa-Bianchi, Fischer 2002, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        exploration: float = 2.0,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
        self.exploration = as_real(exploration, "exploration", low=0.0)
        self._table: Bounds = self._bounds()
        warn_of_states(self)

    def _bounds(self) -> Bounds:
        return self._blank()

    def _blank(self, *, window: int = 0, discount: float = 1.0, scale: float = 1.0) -> Bounds:
        from windage.kernels.bandits import Bounds
        from windage.kernels.rollout import PROGRESS

        S, pairs = self.space.n_states, self.space.n_pairs
        size = window if window < self.horizon else 0  # else nothing ever leaves it
        require_memory(12.0 * S * size, "window", fix="choose a shorter window")
        return Bounds(
            offsets=np.ascontiguousarray(self.space.offsets),
            visits=np.zeros(pairs),
            sums=np.zeros(pairs),
            lost=np.zeros(pairs),
            clock=np.zeros(S, np.int64),
            ring_pair=np.zeros((S, size), np.int32),
            ring_reward=np.zeros((S, size)),
            progress=np.zeros(1, PROGRESS),
            window=window,
            discount=discount,
            scale=scale,
            xi=self.exploration,
            low=self._scale.low,
            width=self._scale.width,
        )

    def _held(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return state and slot of every sample in a window, state by state."""
        clock, size = self._table.clock, self._table.ring_pair.shape[1]
        kept = np.minimum(clock, size)
        states = np.repeat(np.arange(clock.size), kept)
        return states, np.arange(states.size) - np.repeat(np.cumsum(kept) - kept, kept)

    def _survivors(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self._table, name) for name in _COUNTS}

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        held = self._held()
        return values, arrays | {name: getattr(self._table, name)[held] for name in _RINGS}

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restored(values, arrays)
        held = self._held()
        rings = {name: getattr(self._table, name)[held] for name in _RINGS}
        take_back(rings, arrays)
        first, last = self.space.offsets[held[0]], self.space.offsets[held[0] + 1]
        if not ((first <= rings["ring_pair"]) & (rings["ring_pair"] < last)).all():
            raise ValueError("ring_pair")
        for name, ring in rings.items():
            getattr(self._table, name)[held] = ring

    def _check_restored(self, values: dict[str, Any]) -> None:
        super()._check_restored(values)
        clock, visits = self._table.clock, self._table.visits
        if clock.min() < 0 or clock.sum() != self.t - 1 or not (visits >= 0.0).all():
            raise ValueError("clock or visits")


_COUNTS = ("visits", "sums", "lost", "clock")
_RINGS = ("ring_pair", "ring_reward")


class ForgettingUCB(UCB1):
    """What SW-UCB and D-UCB share: a number that is tuned to l known changes."""

    requires: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = True
    source: ClassVar[str] = "Garivier, Moulines 2011, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        changes: int | None = None,
        exploration: float = 0.6,
        **options: Unpack[AgentOptions],
    ) -> None:
        if changes is not None:
            changes = as_integer(changes, "changes", low=0, high=LAST_TIME)
        self.changes = changes
        super().__init__(space, horizon=horizon, exploration=exploration, **options)


class SWUCB(ForgettingUCB):
    """SW-UCB: the mean of the last samples + sqrt(xi ln(min(t, W)) / N), for l known changes.

    Parameters
    ----------
    window
        W, how many of the last samples count; if not given, 2 sqrt(T ln T / l).
    changes
        l, needed without a window; with 0 that is T, and nothing is forgotten.
    exploration
        xi.
    reward_range
        As for `UCB1`; the bound B on rewards is 1 after scaling.

    Examples
    --------
    >>> SWUCB(StateActions([3]), horizon=10_000, changes=2).window
    429
    """

    id: ClassVar[str] = "sw-ucb"
    tunes: ClassVar[tuple[str, str]] = ("window", "changes")
    bound: ClassVar[str] = "K sqrt(l T log T), one state, l changes"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        window: int | None = None,
        **options: Unpack[ForgettingOptions],
    ) -> None:
        self._window = window
        super().__init__(space, horizon=horizon, **options)

    def _bounds(self) -> Bounds:
        T, window = self.horizon, self._window
        if window is None:
            l = needed(self.changes, "changes", "window")  # noqa: E741 - the paper's letter
            window = tuning.as_window(2.0 * math.sqrt(T * math.log(T) / l) if l > 0 else T, T)
        self.window = as_integer(window, "window", low=1, high=LAST_TIME)
        return self._blank(window=self.window)


class DUCB(ForgettingUCB):
    """D-UCB: discounted means + 2 sqrt(xi ln n / N), n and N discounted too, for l known changes.

    Parameters
    ----------
    discount
        gamma, the weight of a sample relative to the one after it; if not given,
        1 - sqrt(l / T) / 4.
    changes
        l, needed without a discount; with 0 nothing is forgotten.
    exploration
        xi.
    reward_range
        As for `UCB1`; the bound B on rewards is 1 after scaling.

    Examples
    --------
    >>> DUCB(StateActions([3]), horizon=10_000, changes=4).discount
    0.995
    """

    id: ClassVar[str] = "d-ucb"
    tunes: ClassVar[tuple[str, str]] = ("discount", "changes")
    bound: ClassVar[str] = "K sqrt(l T) log T, one state, l changes"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        discount: float | None = None,
        **options: Unpack[ForgettingOptions],
    ) -> None:
        self._discount = discount
        super().__init__(space, horizon=horizon, **options)

    def _bounds(self) -> Bounds:
        discount = self._discount
        if discount is None:
            l = needed(self.changes, "changes", "discount")  # noqa: E741 - the paper's letter
            discount = 1.0 - math.sqrt(min(1.0, l / self.horizon)) / 4.0
        self.discount = as_real(discount, "discount", low=0.0, high=1.0, open_low=True)
        return self._blank(discount=self.discount, scale=2.0)


class WeightsAgent(BanditAgent):
    """Draws arms by exponential weights; rewards outside [0, 1] are clipped unless scaled."""

    def _weights(self, form: int, raw: list[float], batch: ArrayLike, **bank: Any) -> Weights:
        from windage.kernels.bandits import Weights
        from windage.kernels.rollout import PROGRESS

        gamma = np.minimum(1.0, raw)
        return Weights(
            bank=make_bank(
                form, self.space.counts, alpha=gamma / self.space.counts, gamma=gamma, **bank
            ),
            batch=np.full(self.space.n_states, batch, np.int64),
            progress=np.zeros(1, PROGRESS),
            key=key(self.seed, f"agents.{self.id}"),
            low=self._scale.low,
            width=self._scale.width,
        )

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each pair is to be played when its state comes next."""
        return np.array(self._table.bank.probabilities)

    def _survivors(self) -> dict[str, NDArray[Any]]:
        bank, progress = self._table.bank, self._table.progress
        scores = {name: getattr(bank, name) for name in _SCORES}
        return scores | {"clipped": progress["clipped"]}

    def _check_restored(self, values: dict[str, Any]) -> None:
        from windage.kernels.exp3 import SHARED, refresh

        super()._check_restored(values)
        bank, clipped = self._table.bank, int(self._table.progress["clipped"][0])
        known = (bank.rounds >= 0) & (bank.rounds <= np.minimum(self._table.batch, self.t - 1))
        if not known.all() or (bank.form == SHARED and not (bank.scores > 0.0).all()):
            raise ValueError("rounds or scores")
        if not 0 <= clipped < self.t:
            raise ValueError("clipped")
        self._warned = clipped > 0
        for s in range(self.space.n_states):
            refresh(bank, s)


_SCORES = ("scores", "lost", "rounds")


class REXP3(WeightsAgent):
    """REXP3: EXP3, started anew after every batch, for a known variation V of the rewards.

    Parameters
    ----------
    batch
        How many visits of a state a batch lasts; a number, or one for each state. If not given,
        ceil((K ln K)^(1/3) (T / V)^(2/3)) for K actions, at most T.
    variation
        V, in units of the rewards, needed without a batch; with 0 there is one batch, and nothing
        is forgotten.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. If
        not given, rewards outside [0, 1] are clipped.

    Examples
    --------
    >>> REXP3(StateActions([3]), horizon=10_000, variation=1.0).batch.tolist()
    [691]
    """

    id: ClassVar[str] = "rexp3"
    tunes: ClassVar[tuple[str, str]] = ("batch", "variation")
    requires: ClassVar[tuple[str, ...]] = ("B_r",)
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "(K log K B_r)^(1/3) T^(2/3), one state"
    source: ClassVar[str] = "Besbes, Gur, Zeevi 2014, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        batch: ArrayLike | None = None,
        variation: float | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        from windage.kernels.exp3 import GAINS

        super().__init__(space, horizon=horizon, **options)
        self.variation = None if variation is None else as_real(variation, "variation", low=0.0)
        counts = self.space.counts.tolist()
        if batch is None:
            V = needed(self.variation, "variation", "batch") / self._scale.width
            batch = [_batch(K, self.horizon, V) for K in counts]
        self.batch = _batches(batch, self.space)
        raw = [mixing(K, n) for K, n in zip(counts, self.batch.tolist(), strict=True)]
        self._table = self._weights(GAINS, raw, self.batch)
        s = int(np.argmax(raw))
        if raw[s] > 1.0:
            text = too_mixed(self.id, counts[s], int(self.batch[s]), raw[s])
            warn(text, GuaranteeWarning)
        warn_of_states(self)


class EXP3S(WeightsAgent):
    """EXP3.S: EXP3 that gives every arm e / (K T) of all weight each time, for l known changes.

    Its gamma counts the pieces between them, l + 1.

    Parameters
    ----------
    changes
        l.
    reward_range
        As for `REXP3`.

    Examples
    --------
    >>> agent = EXP3S(StateActions([3]), horizon=10_000, changes=2)
    >>> agent.probabilities.round(3)
    array([0.333, 0.333, 0.333])
    """

    id: ClassVar[str] = "exp3-s"
    tunes: ClassVar[tuple[str, str]] = ("changes", "changes")
    requires: ClassVar[tuple[str, ...]] = ("l",)
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "sqrt((l + 1) K T log(K T)), one state, l changes"
    source: ClassVar[str] = "Auer, Cesa-Bianchi, Freund, Schapire 2002, constants recalled"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        changes: int | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        from windage.kernels.exp3 import SHARED

        super().__init__(space, horizon=horizon, **options)
        known = needed(changes, "changes", "changes")
        self.changes = l = as_integer(known, "changes", low=0, high=LAST_TIME)  # noqa: E741
        T, counts = self.horizon, self.space.counts
        raw = [shared_mixing(K, T, l) for K in counts.tolist()]
        self._table = self._weights(SHARED, raw, LAST_TIME, share=math.e / (counts * T))
        if max(raw) > 1.0:
            text = too_mixed(self.id, int(counts[np.argmax(raw)]), T, max(raw))
            warn(text, GuaranteeWarning)
        warn_of_states(self)


class BOB(Blockwise):
    """Bandit over bandits: EXP3 chooses the window of a fresh SW-UCB for every block of steps.

    Blocks last H = ceil(sqrt(T)) steps; windows are floor(H^(j / m)), j = 0..m = ceil(ln H). EXP3
    learns 1/2 + R / (2 H + 4 sqrt(H ln(T / sqrt(H)))), R the reward of a block, clipped to [0, 1].
    It is BORL without states, and need not be told how much rewards vary.

    Parameters
    ----------
    exploration
        xi of SW-UCB.
    reward_range
        As for `UCB1`.

    Examples
    --------
    >>> agent = BOB(StateActions([3]), horizon=10_000)
    >>> agent.block_length, agent.windows
    (100, (1, 2, 6, 15, 39, 100))
    """

    id: ClassVar[str] = "bob"
    covers_drift: ClassVar[bool | None] = True
    bound: ClassVar[str] = "B_r^(1/3) T^(2/3) + T^(3/4), one state, up to logs and K"
    source: ClassVar[str] = "Cheung, Simchi-Levi, Zhu 2022, constants recalled"

    derived: ClassVar[tuple[str, ...]] = ("block_length", "windows")

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        exploration: float = 0.6,
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(space, horizon=horizon, **options)
        self.exploration = as_real(exploration, "exploration", low=0.0)
        self.block_length = math.isqrt(self.horizon - 1) + 1
        """H."""
        self.windows = _windows(self.block_length)
        """What EXP3 chooses from."""
        blocks = -(-self.horizon // self.block_length)
        self._key = key(self.seed, "agents.bob")
        self._choices = Choices(Exp3(len(self.windows), blocks, quiet=True), self._draw)
        warn_of_states(self)

    @property
    def arm(self) -> int | None:
        """The place among `windows` of the one used in this block."""
        return None if self._runner is None else self._choices.arm(self._block)

    @property
    def _pairs(self) -> list[tuple[int, float]]:
        return [(W, 0.0) for W in self.windows]

    def _draw(self, block: int) -> float:
        from windage.kernels.random import uniform

        return float(uniform(self._key, 1 + block * self.block_length, 0))

    def _next_runner(self) -> tuple[Agent, int]:
        arm, H = self._choices.choose(), self.block_length
        options = {
            "horizon": H,
            "window": self.windows[arm],
            "exploration": self.exploration,
            "reward_range": self.reward_range,
        }
        return quietly(SWUCB, self.space, options), H

    def _heard(self, earned: float, steps: int) -> float:
        H, T = self.block_length, self.horizon
        reward = (earned * (H / steps) - self._scale.low * H) / self._scale.width
        most = 2.0 * H + 4.0 * math.sqrt(H * math.log(T / math.sqrt(H)))
        return 0.5 + reward / most

    def _restored_runner(self, data: bytes, since: int) -> Agent:
        del since
        return SWUCB.from_state(data)


def _windows(H: int) -> tuple[int, ...]:
    """Return floor(H^(j / m)) for j = 0..m = ceil(ln H), in whole numbers."""
    m = math.ceil(math.log(H))
    if m == 0:
        return (1,)
    found = []
    for j in range(m + 1):
        w = round(H ** (j / m))
        found.append(w if w**m <= H**j else w - 1)
    return tuple(found)


def _batch(K: int, T: int, V: float) -> int:
    """Return the length of a batch for K arms that vary by V in T steps."""
    if T * V <= 0.0:
        return T
    return max(1, math.ceil(min(T, math.cbrt(K * math.log(K)) * math.cbrt(T / V) ** 2)))


def _batches(value: ArrayLike, space: StateActions) -> NDArray[np.int64]:
    parts = np.atleast_1d(np.asarray(value, object)).ravel().tolist()
    if len(parts) not in (1, space.n_states):
        raise InputError(
            f"has {len(parts)} numbers for {space.n_states} states",
            field="batch",
            fix="pass one number, or one for each state",
        )
    found = [as_integer(part, "batch", low=1, high=LAST_TIME) for part in parts]
    return np.full(space.n_states, found, np.int64)
