"""A multi-scale learner as one compiled structure: what it holds, how it grows, what survives."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.episodes import RECENT, Episode, Episodes, larger_ring
from windage.agents.multiscale.explanation import Forgetting
from windage.agents.multiscale.windows import Weighing, WindowExperts
from windage.agents.state import take_back
from windage.errors import StateError
from windage.rng import key
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.kernels.multiscale import MultiScaleLearner

__all__ = ["Constants", "MultiScaleState"]

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
    prior
        Weights of the windows before anything is seen; those of the constants if not given.
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
        prior: NDArray[np.float64] | None = None,
    ) -> None:
        self.space = space
        self.experts = self._blank_experts(windows, constants.weighing, prior)
        self._constants = constants.flat()
        self._logged_from = 1  # the first epoch there is a row of
        self.kernel = self._fresh(horizon, constants, key(seed, stream), reward_range)

    def _blank_experts(
        self, windows: list[int], weighing: Weighing, prior: NDArray[np.float64] | None
    ) -> WindowExperts:
        return WindowExperts(self.space, windows, weighing, prior=prior)

    def _blank_estimate(
        self, horizon: int, constants: Constants, reward_range: tuple[float, float]
    ) -> Any:
        """Return the model before anything is known; `reward_range` is for known rewards."""
        from windage.kernels.evi import ENTRY
        from windage.kernels.multiscale import PAIR, Estimate

        del reward_range
        return Estimate(
            experts=self.experts.kernel,
            horizon=horizon,
            unseen=float(constants.unseen),
            exploration=float(constants.exploration),
            payback=float(constants.payback),
            gaussian=bool(constants.gaussian),
            offsets=np.ascontiguousarray(self.space.offsets, np.int64),
            pairs=np.zeros(self.space.n_pairs, PAIR),
            rows=np.zeros(self.experts.room, ENTRY),
            u=np.zeros(self.space.n_states),
            omega=np.zeros(len(self.experts.windows)),
        )

    def _pace(self, horizon: int) -> int:
        """Return how many steps a plan lasts at least, if the constants do not say."""
        del horizon
        return max(min(8, math.ceil(self.space.n_pairs / 4)), self.space.n_pairs // 128)

    def _fresh(
        self,
        horizon: int,
        constants: Constants,
        named: NDArray[np.uint64],
        reward_range: tuple[float, float],
    ) -> MultiScaleLearner:
        from windage.kernels.evi import ANSWER
        from windage.kernels.multiscale import EPOCH, MultiScaleLearner
        from windage.kernels.swucrl2cw import LOG

        space, K = self.space, len(self.experts.windows)
        samples = min(_SAMPLES, horizon)
        estimate = self._blank_estimate(horizon, constants, reward_range)
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
            pace=self._pace(horizon) if constants.pace is None else constants.pace,
            patience=float(constants.patience),
            spread=float(constants.spread),
            grows=True,
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
            **self._checks(),
            "epoch": 0 <= number <= self.t and (start > 0) == (number > 0),
            "start": 0 <= start <= planned <= self.t and 0 <= before < self.t,
            "policy": number == 0 or bool(home.all()),
            "samples": 0 <= samples <= kernel.times.size and 1 <= due <= self.t + kernel.every,
            "times": bool((np.diff(kernel.times[:samples], prepend=0) > 0).all()),
            "u": bool((kernel.estimate.u >= 0.0).all()),
            "weights": bool((kernel.samples >= 0.0).all()),
            "allowed": bool(np.isin(pairs["allowed"], (0, 1)).all() and (allowed > 0).all()),
            "factor": number == 0 or bool((np.abs(pairs["factor"] - 1.0) <= kernel.spread).all()),
        }
        wrong = ", ".join(name for name, holds in checks.items() if not holds)
        if wrong:
            raise ValueError(wrong)

    def _checks(self) -> dict[str, bool]:
        """Say of what is there only by pair, or only by law, whether it is possible."""
        pairs = self.kernel.estimate.pairs
        return {
            "plays": bool((pairs["plays"] >= 0.0).all()) and pairs["plays"].sum() <= self.t,
            "limit": self.epochs == 0 or bool((pairs["limit"] >= 1.0).all()),
        }

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

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count, for transitions and for rewards."""
        return self.experts.memory()

    @property
    def contents(self) -> NDArray[np.int64]:
        """How many samples of every pair count."""
        return self.experts.contents

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
