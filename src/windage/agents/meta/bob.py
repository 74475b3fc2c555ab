"""BOB: a bandit over the windows of a bandit (Cheung, Simchi-Levi, Zhu 2019)."""

from __future__ import annotations

import math
from typing import ClassVar, Unpack

from windage.adversarial import Exp3
from windage.agents.bandits import SWUCB, warn_of_states
from windage.agents.base import Agent
from windage.agents.configuration import AgentOptions
from windage.agents.meta.delegating import Blockwise, Choices
from windage.agents.warning_capture import quietly
from windage.rng import key
from windage.spaces import StateActions
from windage.validation import as_real

__all__ = ["BOB"]


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
