"""Multi-scale windows: no window to choose, all of them compete in predicting the next step.

    windows W_1 < ... < W_K: powers of two from 2 SA on, then all of T
    for t = 1, 2, ..., T
        every few steps: average the windows' counts by their weights   (kernels.multiscale)
                         add a bonus for what would be worth finding out
                         plan with it, from where the last plan left off
        play the plan, observe R_t and s_{t+1}
        weigh every window by how likely it held them; count; forget    (kernels.window_experts)

Windows are compared by prediction, not by reward as BORL's arms are: every step scores all of them,
and trying one out costs nothing. Rewards and transitions have weights of their own, and so has each
pair: prices may change by the hour where the road network stays for years. The constants are fixed
once, for all problems; docs/studies/multi-scale.md says on which problems they were chosen and how
the learner did on others. No theorem bounds its regret; `MultiScaleGuarded` plays within one.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import KernelAgent, Scale
from windage.agents.episodes import RECENT, Episode, Episodes, larger_ring
from windage.agents.exclusive import exclusive
from windage.agents.multiscale.explanation import Forgetting, MultiScaleExplanation, explained
from windage.agents.multiscale.windows import Weighing, WindowExperts, windows_for
from windage.agents.state import take_back
from windage.errors import InputError, StateError
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import as_range, as_real

if TYPE_CHECKING:
    from windage.kernels.multiscale import MultiScaleLearner

__all__ = ["Constants", "MultiScale", "MultiScaleState", "declared", "undeclared"]

_SAMPLES = 200  # how often the weights are remembered in a run


@dataclass(frozen=True)
class Constants:
    """What was chosen once, on the tuning problems of docs/studies/multi-scale.md.

    Attributes
    ----------
    unseen
        mu: pseudo-counts of a pair, spread over all next states.
    exploration
        c: hope is c standard deviations, times its logarithms.
    payback
        The largest payback factor; 0: none.
    spread
        Random factors lie within so much of 1.
    pace
        Steps between two plans, at least; None: a quarter of the pairs, at most 8, and in large
        models a 128th, since a plan costs what the model costs.
    patience
        A plan lasts, up to 8 steps, for one part in so many of the samples that are known of the
        pair about to be played; 0: no longer than `pace`.
    base
        Ratio of one window to the next, a power of two.
    gaussian
        Whether to hope for rewards by standard deviations instead of Wilson's bound.
    weighing
        How windows are weighed.
    """

    unseen: float = 0.5
    exploration: float = 0.65
    payback: float = 100.0
    spread: float = 0.5
    pace: int | None = None
    patience: float = 32.0
    base: int = 2
    gaussian: bool = False
    weighing: Weighing = Weighing()  # noqa: RUF009 - frozen

    def flat(self) -> dict[str, Any]:
        """Return them as plain data, those of the weighing beside the others."""
        found = asdict(self)
        found.update(found.pop("weighing"))
        return found


class MultiScaleState:
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
        self.experts = WindowExperts(space, windows, constants.weighing)
        self._constants = constants.flat()
        self._logged_from = 1  # the first epoch there is a row of
        self.kernel = self._fresh(horizon, constants, key(seed, stream), reward_range)

    def _fresh(
        self,
        horizon: int,
        constants: Constants,
        named: NDArray[np.uint64],
        reward_range: tuple[float, float],
    ) -> MultiScaleLearner:
        from windage.kernels.evi import ANSWER, ENTRY
        from windage.kernels.multiscale import EPOCH, PAIR, Estimate, MultiScaleLearner
        from windage.kernels.swucrl2cw import LOG

        space, K = self.space, len(self.experts.windows)
        samples = min(_SAMPLES, horizon)
        pace = max(min(8, math.ceil(space.n_pairs / 4)), space.n_pairs // 128)
        estimate = Estimate(
            experts=self.experts.kernel,
            horizon=horizon,
            unseen=float(constants.unseen),
            exploration=float(constants.exploration),
            payback=float(constants.payback),
            gaussian=bool(constants.gaussian),
            offsets=np.ascontiguousarray(space.offsets, np.int64),
            pairs=np.zeros(space.n_pairs, PAIR),
            rows=np.zeros(self.experts.room, ENTRY),
            u=np.zeros(space.n_states),
            omega=np.zeros(K),
        )
        estimate.pairs["allowed"] = 1
        learner = MultiScaleLearner(
            estimate=estimate,
            policy=np.zeros(space.n_states, np.int64),
            swept=np.zeros(space.n_states),
            answer=np.zeros(1, ANSWER),
            epoch=np.zeros(1, EPOCH),
            log=np.zeros(RECENT + 4, LOG),
            samples=np.zeros((samples, 2, K)),
            times=np.zeros(samples, np.int64),
            every=-(-horizon // samples),
            key=named,
            pace=pace if constants.pace is None else constants.pace,
            patience=float(constants.patience),
            spread=float(constants.spread),
            low=float(reward_range[0]),
            high=float(reward_range[1]),
        )
        learner.epoch["sample_due"] = 1
        return learner

    def make_room(self, samples: int) -> None:
        """See to it that so many more samples fit, and the epochs they may start."""
        self.experts.make_room(samples)
        if self.experts.kernel is not self.kernel.estimate.experts:
            self._use_experts()
        if self.kernel.log.size < samples + 3:
            log = larger_ring(self.kernel.log, self.epochs, samples + 3)
            self.kernel = self.kernel._replace(log=log)

    def _use_experts(self) -> None:
        """Estimate from the windows' tables, which may have grown."""
        from windage.kernels.evi import ENTRY

        rows = np.zeros(self.experts.room, ENTRY)
        estimate = self.kernel.estimate._replace(experts=self.experts.kernel, rows=rows)
        self.kernel = self.kernel._replace(estimate=estimate)

    @property
    def t(self) -> int:
        """The time of the next step."""
        return self.experts.taken - self.experts.ahead + 1

    def preload(self, pair: int, reward: float, after: int) -> None:
        """Learn from a sample of the time before t = 1."""
        low, high = self.kernel.low, self.kernel.high
        try:
            self.experts.add(pair, (reward - low) / (high - low), after)
        finally:  # whether or not it was cut short before
            self.experts.ahead = self.experts.taken
        self.make_room(0)

    def survivors(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, beside those of the windows, that must survive a restart."""
        pairs, epoch = self.kernel.estimate.pairs, self.kernel.epoch
        return {
            "u": self.kernel.estimate.u,
            "policy": self.kernel.policy,
            **{f"epoch.{name}": epoch[name] for name in epoch.dtype.names or ()},
            "times": self.kernel.times,
            "samples": self.kernel.samples,
            **{name: pairs[name] for name in ("factor", "limit", "plays", "allowed")},
        }

    def saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return copies of all that must survive, and the constants that led to it."""
        arrays = {f"experts.{name}": array for name, array in self.experts.saved().items()}
        arrays |= {name: array.copy() for name, array in self.survivors().items()}
        return {"epoch": self.row.item(), "constants": self._constants}, arrays

    def restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `saved` gave."""
        self._require_same_rules(values.get("constants"))
        self.experts.restore(
            {
                name.removeprefix("experts."): array
                for name, array in arrays.items()
                if name.startswith("experts.")
            }
        )
        self._use_experts()
        take_back(self.survivors(), arrays)
        self._require_possible()
        self._logged_from = max(1, self.epochs)
        self.row[...] = tuple(values["epoch"])
        if self.row["start"] != self.kernel.epoch["start"][0] or not np.isfinite(self.row["gain"]):
            raise ValueError("epoch")

    def _require_same_rules(self, saved: Any) -> None:
        """Refuse a mind with other constants: its weights and its epoch mean something else."""
        mine, theirs = self._constants, saved
        if theirs == mine:
            return
        if not isinstance(theirs, dict):
            what = "it was saved by an earlier version of multi-scale windows"
        else:
            changed = [
                f"{name} = {theirs.get(name, 'unknown')}, here {mine.get(name, 'unknown')}"
                for name in sorted(mine.keys() | theirs.keys())
                if mine.get(name) != theirs.get(name)
            ]
            what = f"it was saved with other constants: {'; '.join(changed)}"
        raise StateError(
            what,
            field="state",
            fix="use the version of windage that wrote it, or let a new agent learn from your logs",
        )

    def _require_possible(self) -> None:
        """Refuse what no run could have led to."""
        space, pairs, kernel = self.space, self.kernel.estimate.pairs, self.kernel
        number, start, before, planned, samples, due = kernel.epoch[0].item()
        policy = np.clip(kernel.policy, 0, space.n_pairs - 1)
        home = (policy == kernel.policy) & (space.state_of[policy] == np.arange(space.n_states))
        allowed = np.bincount(space.state_of, pairs["allowed"], space.n_states)
        checks = {
            "epoch": 0 <= number <= self.t and (start > 0) == (number > 0),
            "start": 0 <= start <= planned <= self.t and 0 <= before < self.t,
            "policy": number == 0 or bool(home.all()),
            "samples": 0 <= samples <= kernel.times.size and 1 <= due <= self.t + kernel.every,
            "times": bool((np.diff(kernel.times[:samples], prepend=0) > 0).all()),
            "u": bool((kernel.estimate.u >= 0.0).all()),
            "weights": bool((kernel.samples >= 0.0).all()),
            "allowed": bool(np.isin(pairs["allowed"], (0, 1)).all() and (allowed > 0).all()),
            "plays": bool((pairs["plays"] >= 0.0).all()) and pairs["plays"].sum() <= self.t,
            "limit": number == 0 or bool((pairs["limit"] >= 1.0).all()),
            "factor": number == 0 or bool((np.abs(pairs["factor"] - 1.0) <= kernel.spread).all()),
        }
        wrong = ", ".join(name for name, holds in checks.items() if not holds)
        if wrong:
            raise ValueError(wrong)

    @property
    def epochs(self) -> int:
        """How many epochs have started."""
        return int(self.kernel.epoch["number"][0])

    @property
    def row(self) -> NDArray[np.void]:
        """The row of the current epoch."""
        place = self.epochs % self.kernel.log.size
        return self.kernel.log[place : place + 1].reshape(())

    def rows(self, first: int) -> NDArray[np.void]:
        """Return the epochs from number `first` (from 1 on) to the current one, as rows."""
        log, low, width = self.kernel.log, self.kernel.low, self.kernel.high - self.kernel.low
        oldest = max(self._logged_from, self.epochs - log.size + 1)  # older ones are gone
        rows = log[np.arange(max(first, 1, oldest), self.epochs + 1) % log.size]
        rows["gain"] = low + width * rows["gain"]
        rows["span"] *= width
        return rows

    def epoch(self, t: int) -> Episode | None:
        """Return the current epoch as it stands at time t; None before the first."""
        rows = self.rows(self.epochs)
        if not rows.size:
            return None
        rows["length"] = t - rows["start"]
        return Episodes(rows)[0]

    def forgetting(self) -> Forgetting:
        """Return the world's weights through time."""
        n = int(self.kernel.epoch["n_samples"][0])
        samples = self.kernel.samples[:n]
        return Forgetting(
            windows=tuple(self.experts.windows),
            times=self.kernel.times[:n].copy(),
            transitions=samples[:, 0].copy(),
            rewards=samples[:, 1].copy(),
        )


class MultiScale(KernelAgent):
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
        self._learner_state = MultiScaleState(
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
        return tuple(self._learner_state.experts.windows)

    @property
    def preloaded(self) -> int:
        """How many samples of the past the agent was given before its first decision."""
        return self._learner_state.experts.ahead

    @property
    def _kernel(self) -> MultiScaleLearner:
        return self._learner_state.kernel

    def _make_room(self, steps: int) -> None:
        self._learner_state.make_room(steps)

    def _reached(self) -> tuple[int, int | None]:
        t = self._learner_state.t
        state = int(self._learner_state.experts.kernel.clock["state"][0])
        return t, state if t > 1 else None

    def _refusal(self, reward: float) -> InputError:
        return undeclared(reward, self._scale, self.t)

    def _check_reward(self, reward: object) -> float:
        value = as_real(reward, "reward")
        if not self._scale.least <= value <= self._scale.most:
            raise undeclared(value, self._scale, self.t)
        return value

    @exclusive
    def preload(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Learn from a step somebody took before t = 1; older ones first.

        Samples of the past age like all others; only the longest window remembers them for good.
        """
        started = self.n_episodes > 0
        self._learner_state.preload(*self._past_step(s, a, reward, s_next, started=started))

    def forgetting(self) -> Forgetting:
        """Return how much each window has counted in the world as a whole, through time."""
        return self._learner_state.forgetting()

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count for each pair, on average.

        The first row is for its transitions, the second for its rewards.
        """
        return self._learner_state.experts.memory()

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair count now, as the windows are weighted."""
        return self._learner_state.experts.contents

    @exclusive
    def explain(self, s: int) -> MultiScaleExplanation:
        """Say what is believed of each action of a state, from how far back, and hoped for."""
        state = self.space.check_state(s)
        return explained(
            self._learner_state.kernel, self._learner_state.experts, state, self.episode
        )

    @property
    def n_episodes(self) -> int:
        """How many epochs have started."""
        return self._learner_state.epochs

    def episode_rows(self, first: int) -> NDArray[np.void]:
        """Return the epochs from number `first` (from 1 on) to the current one, as rows."""
        return self._learner_state.rows(first)

    @property
    def episode(self) -> Episode | None:
        """The current epoch; None before the first decision."""
        return self._learner_state.epoch(self.t)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return self._learner_state.saved()

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._learner_state.restore(values, arrays)
        if self._learner_state.t != self.t:
            raise ValueError("t")


def undeclared(reward: float, scale: Scale, t: int) -> InputError:
    """Return what to raise if a reward at time t is outside the declared range."""
    return InputError(
        f"{reward} is not in the declared range [{scale.least:g}, {scale.most:g}]",
        field="reward",
        where=f"t={t}",
        fix="declare a wider reward_range: windows are compared by the likelihood of rewards",
    )


def declared(reward_range: Any) -> tuple[float, float]:
    """Return a declared range of rewards, or say that one is needed."""
    if reward_range is None:
        raise InputError(
            "None is no range",
            field="reward_range",
            fix="declare (lowest, highest) reward: windows are compared by their likelihood",
        )
    return as_range(reward_range, "reward_range")
