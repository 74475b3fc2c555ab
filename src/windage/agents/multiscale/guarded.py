"""Multi-scale windows within the optimism of BORL: `MultiScaleGuarded`.

BORL is the anchor, as it is: blocks, arms (W, eta), the master, and in each block a fresh
SWUCRL2-CW with its sets and episodes. It no longer plays: it admits, episode by episode, the
actions whose optimistic value is within xi_m of the best. Which of them is played, a multi-scale
learner decides, whose memory goes on from block to block. docs/paper/guarded.md has the argument
why the order of BORL's bound survives that, step by step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windage.agents.base import Agent
from windage.agents.meta.borl import BORL
from windage.agents.multiscale.explanation import Forgetting, GuardedExplanation, explained
from windage.agents.multiscale.multiscale import Constants, Thinker, declared, undeclared
from windage.agents.optimistic.swucrl2cw import SWUCRL2CW
from windage.confidence.radii import Radii
from windage.confidence.scales import windows_for
from windage.errors import CallOrderError, InputError
from windage.spaces import StateActions, as_space
from windage.validation import as_horizon, as_seed

if TYPE_CHECKING:
    from windage.kernels.guarded import Guarded
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["MultiScaleGuarded"]

_KAPPA = 1.0
_ANY = 1.0  # a slack as large as any difference of optimistic rewards: EVI values every pair


class _Anchor(SWUCRL2CW):
    """SWUCRL2-CW in one block, which admits actions and lets a multi-scale learner choose."""

    id: ClassVar[str] = "multi-scale-anchor"
    replays: ClassVar[bool] = False
    thinker: Thinker

    @property
    def rate(self) -> float:
        """The number kappa (eta + S sqrt(A L / W)); xi_m is 1 + span(gamma~_m) times as much."""
        space, eta = self.space, float(self._eta[0])
        L = math.log(space.n_pairs * self.horizon / self.delta)
        width = space.n_states * math.sqrt(space.mean_actions * L / self.window)
        return _KAPPA * (width if space.n_states == 1 else eta + width)

    @property
    def guarded(self) -> Guarded:
        """Both, as the compiled loop knows them."""
        from windage.kernels.guarded import Guarded

        return Guarded(self._learner, self.thinker.kernel, self.rate)

    def _choose(self, state: int) -> int:
        from windage.kernels import guarded

        self.thinker.make_room(1)
        pair = guarded.act(self.guarded, self.t, self.thinker.t, state)
        if pair < 0:
            raise self._not_converged()
        return int(self.space.action_of[pair])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        from windage.kernels import guarded

        self._make_room(1)
        self.thinker.make_room(1)
        pair = self.space.pair(state, action)
        guarded.observe(self.guarded, self.t, pair, reward, s_next)

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        from windage.kernels import guarded
        from windage.kernels.rules import NOT_CONVERGED, PLAYED

        self._make_room(block.states.size)
        self._make_room_to_log(block.states.size)
        self.thinker.make_room(block.states.size)
        made, clock = self.guarded, self.thinker.t
        state, n, how = guarded.play(made, world, state, self.t, clock, *block.columns)
        if how != PLAYED:
            self.last_state = int(state)
            self.t += n
            if how == NOT_CONVERGED:
                raise self._not_converged()
            raise undeclared(float(block.rewards[n]), self._scale, self.t)
        return int(state)

    def _played(self, state: int) -> int:
        return int(self.thinker.kernel.policy[state])


class MultiScaleGuarded(BORL):
    """`MultiScale` that plays only what BORL's optimism admits, for whoever needs a bound.

    Parameters
    ----------
    delta, arms, master, radii, block_length
        Those of `BORL`, the anchor. Where the budgets are known: arms=[(W*, eta*)] and
        block_length=T.
    space, horizon, reward_range, seed
        Those of `MultiScale`.

    Examples
    --------
    >>> import warnings, windage as wd
    >>> model = wd.envs.make("two-state-cosine")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", wd.GuaranteeWarning)
    ...     agent = MultiScaleGuarded(model.space, horizon=model.horizon)
    >>> run = wd.run(model, agent, seed=1)
    >>> agent.blocks
    BlockLog(11 of 477 steps)
    >>> all(agent.explain(0).admitted)  # at this size nearly everything is
    True
    """

    id: ClassVar[str] = "multi-scale-guarded"
    bound: ClassVar[str] = "the order of BORL's, argued in docs/paper/guarded.md"
    source: ClassVar[str] = "windage, docs/paper/guarded.md"
    fixed: ClassVar[tuple[str, ...]] = ("ties", "slack", "carry_window")
    counts_in_loop: ClassVar[bool] = False
    constants: ClassVar[Constants] = Constants()
    learner_kind: ClassVar[type[SWUCRL2CW]] = _Anchor

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        delta: float = 0.05,
        arms: Any = None,
        master: str = "exp3p",
        radii: Radii | str | dict[str, Any] | None = None,
        block_length: int | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        space, horizon = as_space(space), as_horizon(horizon, error=InputError)
        self._thinker = Thinker(
            space,
            horizon,
            windows_for(space, horizon, self.constants.base),
            self.constants,
            as_seed(seed),
            "agents.multi-scale",  # the same draws: where all is admitted, the same learner
            declared(reward_range),
        )
        super().__init__(
            space,
            horizon=horizon,
            delta=delta,
            arms=arms,
            master=master,
            radii=radii,
            ties="lowest",
            slack=_ANY,
            block_length=block_length,
            reward_range=reward_range,
            seed=seed,
        )

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows that are compared; the last one is all history."""
        return tuple(self._thinker.scales.windows)

    @property
    def xi(self) -> float:
        """xi_m of the current anchor episode, of rewards scaled to [0, 1]."""
        from windage.kernels.guarded import slack

        if self._runner is None:
            raise CallOrderError("nothing is admitted yet", field="xi", fix="call act(s) first")
        return float(slack(self._runner.guarded))

    def _learner(self, arm: int, block: int) -> SWUCRL2CW:
        return self._tied(super()._learner(arm, block))

    def _tied(self, anchor: SWUCRL2CW) -> _Anchor:
        """Tie an anchor to the learner; the log of its episodes has room for the block at once."""
        assert isinstance(anchor, _Anchor)
        anchor.thinker = self._thinker
        anchor._make_room_to_log(min(self.block_length, self.horizon))
        return anchor

    def preload(self, s: int, a: int, reward: float, s_next: int) -> None:
        """Let the multi-scale learner learn from a step of the time before t = 1.

        The anchor does not: its blocks start with nothing, as the theorem has them.
        """
        started = self._runner is not None
        self._thinker.preload(*self._past_step(s, a, reward, s_next, started=started))

    @property
    def preloaded(self) -> int:
        """How many samples of the past the agent was given before its first decision."""
        return self._thinker.scales.ahead

    def forgetting(self) -> Forgetting:
        """Return how much each window has counted in the world as a whole, through time."""
        return self._thinker.forgetting()

    def memory(self) -> NDArray[np.float64]:
        """Return [2, pair] how many of the last steps count, for transitions and for rewards."""
        return self._thinker.scales.memory()

    @property
    def in_memory(self) -> NDArray[np.int64]:
        """How many samples of every pair count now, as the windows are weighted."""
        return self._thinker.scales.contents

    def explain(self, s: int) -> GuardedExplanation:  # type: ignore[override]
        """Say what is believed of each action, what is admitted, and what the anchor hopes for."""
        anchor = super().explain(s)
        thinker = self._thinker
        first, last = self.space.offsets[s : s + 2]
        low, high = self.reward_range or (0.0, 1.0)
        return GuardedExplanation(
            slack=(high - low) * self.xi,
            admitted=tuple((thinker.kernel.belief.pairs["allowed"][first:last] == 1).tolist()),
            decision=explained(thinker.kernel, thinker.scales, s, thinker.epoch(self.t)),
            anchor=anchor,
        )

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        given = super().configuration()
        return {name: value for name, value in given.items() if name not in self.fixed}

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._saved()
        mind, its = self._thinker.saved()
        arrays |= {f"thinker.{name}": array for name, array in its.items()}
        return values | mind, arrays

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        start = "thinker."
        mine = {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}
        self._thinker.restore(values, mine)
        super()._restored(values, arrays)
        if self._thinker.t != self.t:
            raise ValueError("t")

    def _restored_runner(self, data: bytes, since: int) -> Agent:
        del since
        return self._tied(_Anchor.from_state(data))
