"""Multi-scale windows: no window to choose, all of them compete in predicting the next step.

    windows W_1 < ... < W_K: powers of two from 2 SA on, then all of T
    for t = 1, 2, ..., T
        every few steps: believe the windows' counts, averaged by their weights   (kernels.belief)
                         hope for what would be worth finding out
                         plan with it, from where the last plan left off          (kernels.replan)
        play the plan, observe R_t and s_{t+1}
        weigh every window by how likely it held them; count; forget              (kernels.scales)

Windows are compared by prediction, not by reward as BORL's arms are: every step scores all of them,
and trying one out costs nothing. Rewards and transitions have weights of their own, and so has each
pair: prices may change by the hour where the road network stays for years. The constants are fixed
once, for all problems; docs/studies/multi-scale.md says on which problems they were chosen and how
the learner did on others. No theorem bounds its regret; `MultiScaleGuarded` plays within one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.blob import array_like
from windage.agents.episodes import Episode, Episodes
from windage.agents.forgetting import Forgetting, MultiScaleExplanation, explained
from windage.errors import CallOrderError, InputError
from windage.learn.scales import Scales, Weighing, windows_for
from windage.spaces import StateActions
from windage.streams import key

if TYPE_CHECKING:
    from windage.kernels.multiscale import MultiScale as Kernel
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["Constants", "MultiScale", "Thinker"]

_LOG_ROWS = (1 << 14) + 8  # more than a run plays between two looks at it
_LOOKS = 200  # how often the weights are remembered in a run


@dataclass(frozen=True)
class Constants:
    """What was chosen once, on the tuning problems of docs/studies/multi-scale.md.

    Attributes
    ----------
    exploration
        c: hope is c standard deviations, times its logarithms.
    payback
        The largest payback factor; 0: none.
    spread
        Random factors lie within so much of 1.
    pace
        Steps between two plans; None: a quarter of the pairs, at most 8, and in large models a
        128th, since a plan costs what the model costs.
    base
        Ratio of one window to the next, a power of two.
    gaussian
        Whether to hope for rewards by standard deviations instead of Wilson's bound.
    weighing
        How windows are weighed.
    """

    exploration: float = 0.6
    payback: float = 100.0
    spread: float = 0.5
    pace: int | None = None
    base: int = 2
    gaussian: bool = False
    weighing: Weighing = Weighing()  # noqa: RUF009 - frozen


class Thinker:
    """The learner itself, as one compiled structure with room to grow; the agents act by it.

    Parameters
    ----------
    windows
        Those to compare.
    stream
        Names the draws of random factors.
    """

    def __init__(
        self,
        space: StateActions,
        horizon: int,
        windows: list[int],
        constants: Constants,
        seed: int,
        stream: str,
        reward_range: tuple[float, float],
    ) -> None:
        self.space = space
        self.scales = Scales(space, windows, constants.weighing)
        self.kernel = self._fresh(horizon, constants, key(seed, stream), reward_range)

    def _fresh(
        self,
        horizon: int,
        constants: Constants,
        named: NDArray[np.uint64],
        reward_range: tuple[float, float],
    ) -> Kernel:
        from windage.kernels.belief import PAIR, Belief
        from windage.kernels.multiscale import LOOK
        from windage.kernels.multiscale import MultiScale as Kernel
        from windage.kernels.plan import ENTRY
        from windage.kernels.rules import LOG

        space, K = self.space, len(self.scales.windows)
        looks = min(_LOOKS, horizon)
        pace = max(min(8, math.ceil(space.n_pairs / 4)), space.n_pairs // 128)
        belief = Belief(
            scales=self.scales.kernel,
            horizon=horizon,
            exploration=constants.exploration,
            payback=constants.payback,
            gaussian=constants.gaussian,
            offsets=np.ascontiguousarray(space.offsets, np.int64),
            pairs=np.zeros(space.n_pairs, PAIR),
            rows=np.zeros(self.scales.room, ENTRY),
            u=np.zeros(space.n_states),
            omega=np.zeros((2, K)),
        )
        belief.pairs["allowed"] = 1
        made = Kernel(
            belief=belief,
            policy=np.zeros(space.n_states, np.int64),
            swept=np.zeros(space.n_states),
            answer=np.zeros(4),
            now=np.zeros(6, np.int64),
            log=np.zeros(min(_LOG_ROWS, horizon + 8), LOG),
            looks=np.zeros((looks, 2, K)),
            times=np.zeros(looks, np.int64),
            every=-(-horizon // looks),
            key=named,
            pace=pace if constants.pace is None else constants.pace,
            spread=constants.spread,
            low=reward_range[0],
            high=reward_range[1],
        )
        made.now[LOOK] = 1
        return made

    def make_room(self, samples: int) -> None:
        """See to it that so many more samples fit."""
        if self.scales.make_room(samples):
            self._use_scales()

    def _use_scales(self) -> None:
        """Believe what the scales, which may have grown, count."""
        from windage.kernels.plan import ENTRY

        rows = np.zeros(self.scales.room, ENTRY)
        belief = self.kernel.belief._replace(scales=self.scales.kernel, rows=rows)
        self.kernel = self.kernel._replace(belief=belief)

    @property
    def t(self) -> int:
        """The time of the next step."""
        return self.scales.taken - self.scales.ahead + 1

    def preload(self, pair: int, reward: float, after: int) -> None:
        """Learn from a sample of the time before t = 1."""
        self.make_room(1)
        low, high = self.kernel.low, self.kernel.high
        self.scales.add(pair, (reward - low) / (high - low), after)
        self.scales.ahead = self.scales.taken

    def survivors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, beside those of the scales, that must survive a restart."""
        pairs = self.kernel.belief.pairs
        return {
            "u": self.kernel.belief.u,
            "policy": self.kernel.policy,
            "now": self.kernel.now,
            "times": self.kernel.times,
            "looks": self.kernel.looks,
            **{name: pairs[name] for name in ("factor", "limit", "plays", "allowed")},
        }

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return copies of all that must survive."""
        arrays = {f"scales.{name}": array for name, array in self.scales.saved().items()}
        return arrays | {name: array.copy() for name, array in self.survivors().items()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `saved` gave."""
        self.scales.restore(
            {
                name.removeprefix("scales."): array
                for name, array in arrays.items()
                if name.startswith("scales.")
            }
        )
        self._use_scales()
        for name, mine in self.survivors().items():
            mine[:] = array_like(mine, arrays, name)
        self._require_possible()

    def _require_possible(self) -> None:
        """Refuse what no run could have led to."""
        space, pairs, kernel = self.space, self.kernel.belief.pairs, self.kernel
        epoch, start, before, planned, looks, look = kernel.now.tolist()
        policy = np.clip(kernel.policy, 0, space.n_pairs - 1)
        home = (policy == kernel.policy) & (space.state_of[policy] == np.arange(space.n_states))
        allowed = np.bincount(space.state_of, pairs["allowed"], space.n_states)
        checks = {
            "epoch": 0 <= epoch <= self.t and (start > 0) == (epoch > 0),
            "start": 0 <= start <= planned <= self.t and 0 <= before < self.t,
            "policy": epoch == 0 or bool(home.all()),
            "looks": 0 <= looks <= kernel.times.size and 1 <= look <= self.t + kernel.every,
            "times": bool((np.diff(kernel.times[:looks], prepend=0) > 0).all()),
            "u": bool(np.isfinite(kernel.belief.u).all() and (kernel.belief.u >= 0.0).all()),
            "weights": bool(np.isfinite(kernel.looks).all() and (kernel.looks >= 0.0).all()),
            "allowed": bool(np.isin(pairs["allowed"], (0, 1)).all() and (allowed > 0).all()),
            "plays": bool((pairs["plays"] >= 0.0).all()) and pairs["plays"].sum() <= self.t,
            "limit": epoch == 0 or bool((pairs["limit"] >= 1.0).all()),
            "factor": epoch == 0 or bool((np.abs(pairs["factor"] - 1.0) <= kernel.spread).all()),
        }
        wrong = ", ".join(name for name, holds in checks.items() if not holds)
        if wrong:
            raise ValueError(wrong)

    def forgetting(self) -> Forgetting:
        """Return the world's weights through time."""
        from windage.kernels.multiscale import LOOKS

        n = int(self.kernel.now[LOOKS])
        looks = self.kernel.looks[:n]
        return Forgetting(
            windows=tuple(self.scales.windows),
            times=self.kernel.times[:n].copy(),
            transitions=looks[:, 0].copy(),
            rewards=looks[:, 1].copy(),
        )


class MultiScale(Agent):
    """A learner without parameters for worlds that drift, or may: what to try first.

    Parameters
    ----------
    space
        States and actions.
    horizon
        T; if it is not known, `windage.Doubling`.
    reward_range
        (lowest, highest) reward: others are refused, and rewards are scaled from it to [0, 1]. It
        must be declared if it is not [0, 1]: windows are compared by the likelihood of rewards.
    seed
        Of the agent's own draws.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=20_000)
    >>> agent = MultiScale(model.space, horizon=model.horizon)
    >>> run = wd.run(model, agent, seed=1)
    >>> agent.windows[:3], agent.windows[-1]
    ((32, 64, 128), 20000)
    >>> memory = agent.forgetting()
    >>> bool(memory.mean("rewards")[-1] < memory.mean("transitions")[-1])  # rewards jump, p creeps
    True
    """

    id: ClassVar[str] = "multi-scale"
    covers_drift: ClassVar[bool | None] = None
    bound: ClassVar[str] = "none known"
    source: ClassVar[str] = "windage, docs/studies/multi-scale.md"
    constants: ClassVar[Constants] = Constants()

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        super().__init__(space, horizon=horizon, seed=seed, reward_range=declared(reward_range))
        assert self.reward_range is not None
        self._thinker = Thinker(
            self.space,
            self.horizon,
            windows_for(self.space, self.horizon, self.constants.base),
            self.constants,
            self.seed,
            f"agents.{self.id}",
            self.reward_range,
        )

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows that are compared; the last one is all history."""
        return tuple(self._thinker.scales.windows)

    @property
    def preloaded(self) -> int:
        """How many samples of the past the agent was given before its first decision."""
        return self._thinker.scales.ahead

    def _choose(self, state: int) -> int:
        from windage.kernels import multiscale

        pair = multiscale.act(self._thinker.kernel, self.t, state)
        return int(self.space.action_of[pair])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        from windage.kernels import multiscale

        self._thinker.make_room(1)
        pair = self.space.pair(state, action)
        multiscale.observe(self._thinker.kernel, pair, reward, s_next)

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Keep the clock with what was learned whatever interrupts them."""
        try:
            yield
        except BaseException:
            if self._thinker.t != self.t:
                self.t, self._pending = self._thinker.t, None
                self.last_state = int(self._thinker.scales.kernel.clock[2])
            raise

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels import multiscale
        from windage.kernels.rules import PLAYED

        self._thinker.make_room(block.states.size)
        state, n, how = multiscale.play(self._thinker.kernel, world, state, self.t, *block)
        if how != PLAYED:
            self.last_state = int(state)
            self.t += n
            self._check_reward(block.rewards[n])
        return int(state)

    def _check_reward(self, reward: object) -> float:
        try:
            return super()._check_reward(reward)
        except InputError as err:
            raise InputError(
                err.problem,
                field=err.field,
                where=f"t={self.t}",
                fix=f"{err.fix}; if rewards may be larger or smaller, declare their reward_range",
            ) from None

    def preload(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn from a step somebody took before t = 1; older ones first.

        Samples of the past age like all others; only the longest window remembers them for good.
        """
        if self.t > 1 or self._pending is not None or self.n_episodes > 0:
            raise CallOrderError(
                "the agent has started to act",
                field="preload",
                where=f"t={self.t}",
                fix="preload before the first call of act",
            )
        state = self.space.check_state(s)
        pair = self.space.pair(state, self.space.check_action(state, a))
        after = self.space.check_state(s_next, "s_next")
        self._thinker.preload(pair, self._check_reward(reward), after)

    def forgetting(self) -> Forgetting:
        """Return how much each window has counted in the world as a whole, through time."""
        return self._thinker.forgetting()

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count for each pair, on average.

        The first row is for its transitions, the second for its rewards.
        """
        return self._thinker.scales.memory()

    def explain(self, s: int) -> MultiScaleExplanation:
        """Say what is believed of each action of a state, from how far back, and hoped for."""
        state = self.space.check_state(s)
        episode = self.episode
        if episode is None:
            raise CallOrderError(
                "nothing has been planned yet", field="explain", fix="call act(s) first"
            )
        return explained(self._thinker.kernel, self._thinker.scales, state, episode)

    @property
    def n_episodes(self) -> int:
        """How many epochs have started."""
        return int(self._thinker.kernel.now[0])

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the epochs from number `first` (from 1 on) to the current one, as rows."""
        log, low, high = self._thinker.kernel.log, *(self.reward_range or (0.0, 1.0))
        oldest = self.n_episodes - log.size + 1  # older rows have been written over
        rows = log[np.arange(max(first, 1, oldest), self.n_episodes + 1) % log.size]
        rows["gain"] = low + (high - low) * rows["gain"]
        rows["span"] *= high - low
        return rows

    @property
    def episode(self) -> Episode | None:
        """The current epoch; None before the first decision."""
        rows = self.episode_rows(self.n_episodes)
        if not rows.size:
            return None
        rows["length"] = self.t - rows["start"]
        return Episodes(rows)[0]

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        log = self._thinker.kernel.log
        return {"episode": log[self.n_episodes % log.size].item()}, self._thinker.saved()

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._thinker.restore(arrays)
        if self._thinker.t != self.t:
            raise ValueError("t")
        log = self._thinker.kernel.log
        log[self.n_episodes % log.size] = tuple(values["episode"])
        row = log[self.n_episodes % log.size]
        if row["start"] != self._thinker.kernel.now[1] or not np.isfinite(row["gain"]):
            raise ValueError("episode")


def declared(reward_range: Any) -> tuple[float, float]:
    """Return a declared range of rewards, or say that one is needed."""
    if reward_range is None:
        raise InputError(
            "None is no range",
            field="reward_range",
            fix="declare (lowest, highest) reward: windows are compared by their likelihood",
        )
    return reward_range  # type: ignore[no-any-return]  # checked by the agent
