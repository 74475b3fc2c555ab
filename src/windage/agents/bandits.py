"""Bandit algorithms, for one state; with several states, one bandit in each, looking no further.

A bandit's clock counts the visits of its state, and its constants are those for T steps, since
nobody knows how often a state will be visited. Constants are recalled, not copied from the papers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from windage.agents.base import Agent, Budgets, warn
from windage.errors import InputError, ParameterWarning
from windage.inputs import as_real
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.kernels.play import Block
    from windage.kernels.world import World

__all__ = ["BanditAgent"]

LARGEST = 1e290  # rewards up to here can be summed over any horizon


class BanditAgent(Agent):
    """What all of them share: the compiled loop and its clock, the range of rewards, tuning."""

    tunes: ClassVar[tuple[str, str]] = ("", "")
    """A number that can be given, and what it is tuned to if it is not."""

    _bandit: Any
    _warned = False

    @staticmethod
    @abstractmethod
    def _kernels() -> tuple[Any, Any, Any]:
        """Return the kernels that choose, learn and play."""

    def _scale(self) -> dict[str, float]:
        """Return how a kernel takes rewards to [0, 1], and which it refuses."""
        low, high = self.reward_range or (0.0, 1.0)
        least, most = self.reward_range or (-LARGEST, LARGEST)
        return {"low": low, "width": high - low, "least": least, "most": most}

    def _check_reward(self, reward: object) -> float:
        return as_real(reward, "reward", low=self._bandit.least, high=self._bandit.most)

    def _choose(self, state: int) -> int:
        choose, _, _ = self._kernels()
        return int(self.space.action_of[choose(self._bandit, self.t, state)])

    def _learn(self, state: int, action: int, reward: float, s_next: int) -> None:
        _, learn, _ = self._kernels()
        learn(self._bandit, state, self.space.pair(state, action), reward, s_next)
        self._notice_clipping()

    def play(self, world: World, state: int, block: Block) -> int:
        """Play a whole block in one compiled loop; returns the state it ends in."""
        _, _, play = self._kernels()
        after, n = play(self._bandit, world, state, self.t, *block)
        self._notice_clipping()
        if n < block.states.size:
            raise InputError(
                f"{block.rewards[n]} is not in the declared range "
                f"[{self._bandit.least:g}, {self._bandit.most:g}]",
                field="reward",
                where=f"t={self.t + n}",
                fix="declare a wider reward_range, or none",
            )
        return int(after)

    def _notice_clipping(self) -> None:
        from windage.kernels.bandits import CLIPPED

        if not self._warned and self._bandit.now[CLIPPED] > 0:
            self._warned = True
            warn(
                f"{self.id}: a reward outside [0, 1] was clipped, as others will be: declare a "
                "reward_range",
                ParameterWarning,
                stacklevel=4,
            )

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Keep the clock with what was learned whatever interrupts them."""
        from windage.kernels.bandits import STANDS, TAKEN

        try:
            yield
        except BaseException:
            now = self._bandit.now
            if now[TAKEN] + 1 != self.t:
                self.t, self._pending = int(now[TAKEN]) + 1, None
                self.last_state = int(now[STANDS])
            raise

    @classmethod
    def configured(
        cls, space: StateActions, *, horizon: int, budgets: Budgets | None = None, **options: Any
    ) -> Self:
        """Return the agent for these options, tuned to the budgets; "tuned" says the same."""
        number, fact = cls.tunes
        word = options.get(number)
        if isinstance(word, str) and word == "tuned" and budgets is None:
            raise InputError(
                'is "tuned", and there are no budgets',
                field=number,
                fix="pass budgets=model.budgets(), or a number",
            )
        if word is None or (isinstance(word, str) and word == "tuned"):
            options.pop(number, None)
        if fact and budgets is not None and number not in options and fact not in options:
            name = "reward" if fact == "variation" else fact
            if not hasattr(budgets, name):
                raise InputError(
                    f"{budgets!r} does not tell it", field=fact, fix="pass drifting.budgets()"
                )
            options[fact] = getattr(budgets, name)
        return cls(space, horizon=horizon, **options)

    def _restored(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._bandit.now[:2] = self.t - 1, self.last_state or 0
