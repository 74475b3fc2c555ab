"""UCRL2 (Jaksch, Ortner, Auer 2010): the same learner with all history, its own radii, no widening.

It assumes that the model does not change; on one that drifts it is the baseline that forgets
nothing. Episodes end by the doubling rule alone.
"""

from __future__ import annotations

from typing import Any, ClassVar

from windage.agents.optimistic import OptimisticAgent
from windage.learn.radii import Radii
from windage.spaces import StateActions

__all__ = ["UCRL2"]


class UCRL2(OptimisticAgent):
    """UCRL2, for models that stay as they are.

    Parameters
    ----------
    clip
        Whether optimistic rewards stop at 1. The original does not clip, and a pair with few
        visits then looks better than any reward there is.

    The other parameters are those of `SWUCRL2CW`; the radii default to UCRL2's own.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("riverswim", horizon=1000)
    >>> run = wd.run(model, UCRL2(model.space, horizon=1000), seed=1)
    >>> bool((run.episodes.reason[:-1] == "visits").all())
    True
    """

    id: ClassVar[str] = "ucrl2"
    covers_drift: ClassVar[bool | None] = False
    default_radii: ClassVar[str] = "ucrl2"

    def __init__(
        self,
        space: StateActions,
        *,
        horizon: int,
        delta: float = 0.05,
        radii: Radii | str | dict[str, Any] | None = None,
        clip: bool = False,
        ties: str = "random",
        slack: float = 0.0,
        reward_range: tuple[float, float] | None = None,
        warm_start: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(
            space,
            horizon=horizon,
            width=None,
            period=0,
            phase=0,
            delta=delta,
            radii=Radii.ucrl2() if radii is None else radii,
            widening=0.0,
            clip=clip,
            ties=ties,
            slack=slack,
            warm_start=warm_start,
            seed=seed,
            reward_range=reward_range,
        )

    def configuration(self) -> dict[str, Any]:
        """Return the arguments this agent was made with, as plain data."""
        return super().configuration() | {"clip": self.clip}
