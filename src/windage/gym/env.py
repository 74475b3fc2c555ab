"""A `DriftingMDP` as a Gymnasium environment."""

from __future__ import annotations

from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from windage import envs
from windage.envs.registry import REGISTERED
from windage.errors import CallOrderError, InputError
from windage.gym.masks import MaskedDiscrete, masks
from windage.models import DriftingMDP
from windage.simulators import Simulator
from windage.validation import as_choice

__all__ = ["DriftingEnv", "make_env", "make_named", "register"]

Info = dict[str, Any]


class DriftingEnv(gymnasium.Env[Any, Any]):
    """A drifting model under Gymnasium's rules; `make_env` makes one.

    Observations are states, `truncated` is True after step T and `terminated` never: the problem
    has no end of its own. `info["action_mask"]` holds 1 for each action of the state at hand, and
    after a step of a model with a structure `info["seen"]` what was shown of its variables. Drift
    starts again at t = 1 with every reset.

    `reset(seed=7)` meets the same noise as `windage.run(model, agent, seed=7)`: the same actions
    give the same rewards and states. Without a seed the noise is new at every reset. A start state
    is given as `reset(options={"state": 2})`.

    Parameters
    ----------
    model
        The model to play.
    forbidden
        What an action does that the state does not offer: "error" refuses it, "nearest" plays the
        last action the state offers.
    render_mode
        None, or "ansi" for one line of text a step.
    tell_mean
        Whether `info["mean_reward"]` holds r_t(s_t, a_t) after a step. Regret is made of it; a
        learner must not see it.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's own form

    def __init__(
        self,
        model: DriftingMDP,
        *,
        forbidden: str = "error",
        render_mode: str | None = None,
        tell_mean: bool = False,
    ) -> None:
        if not isinstance(model, DriftingMDP):
            raise InputError(
                f"{type(model).__name__} is not a DriftingMDP",
                field="model",
                fix="pass a DriftingMDP; wd.gym.wrap takes Gymnasium environments",
            )
        self.model = model
        self.forbidden = as_choice(forbidden, "forbidden", ("error", "nearest"))
        if render_mode is not None:
            as_choice(render_mode, "render_mode", self.metadata["render_modes"])
        self.render_mode = render_mode
        self.tell_mean = tell_mean
        self.observation_space = Discrete(model.space.n_states)
        self._masked = MaskedDiscrete(model.space) if np.ptp(model.space.counts) else None
        self.action_space = self._masked or Discrete(int(model.space.counts[0]))
        self._nearest = self.forbidden == "nearest"
        self._last_action = (model.space.counts - 1).tolist()
        self._masks = masks(model.space)
        self._horizon = model.horizon
        self._simulator: Simulator | None = None
        self._line = ""

    @property
    def t(self) -> int:
        """The time of the next step, from 1 on."""
        return 1 if self._simulator is None else self._simulator.t

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, Info]:
        """Start again at t = 1; see the class for seeds and options."""
        start = _start_state(self.model, options)
        super().reset(seed=seed)
        noise = int(self.np_random.integers(2**63)) if seed is None else seed
        self._simulator = Simulator(self.model, noise, state=start)
        mask = self._masks[start]
        if self._masked is not None:
            self._masked.mask = mask
        if self.render_mode is not None:
            self._line = f"t=1 {self.model.space.describe_state(start)}"
        return start, {"action_mask": mask.copy()}  # a caller may keep it, and write to it

    def step(self, action: int) -> tuple[int, float, bool, bool, Info]:
        """Play an action of the state at hand."""
        world = self._simulator
        if world is None:
            raise CallOrderError("there is no state yet", field="step", fix="call reset() first")
        if self._nearest:
            action = self._offered(world.state, action)
        reward, state = world.step(action)
        mask = self._masks[state]
        if self._masked is not None:
            self._masked.mask = mask
        if self.render_mode is not None:
            self._line = (
                f"t={world.t} {self.model.space.describe_state(state)}, "
                f"after action {action} and reward {reward:.6g}"
            )
        info: Info = {"action_mask": mask.copy()}
        if world.shows:
            info["seen"] = world.seen
        if self.tell_mean:
            info["mean_reward"] = world.mean_reward
        return state, reward, False, world.t > self._horizon, info

    def _offered(self, state: int, action: Any) -> Any:
        """Return the last action of a state in place of those beyond; what is none is left so."""
        last: int = self._last_action[state]
        try:
            is_beyond = not isinstance(action, bool) and index(action) > last
        except TypeError:
            return action
        return last if is_beyond else action

    def render(self) -> str | None:
        """Return one line on where the world stands, or nothing without a render mode."""
        return None if self.render_mode is None else self._line


def make_env(
    model: DriftingMDP,
    forbidden: str = "error",
    *,
    render_mode: str | None = None,
    tell_mean: bool = False,
) -> DriftingEnv:
    """Return a drifting model as a Gymnasium environment.

    Parameters
    ----------
    model
        The model to play.
    forbidden
        What an action does that the state does not offer: "error" refuses it, "nearest" plays the
        last action the state offers.
    render_mode
        None, or "ansi" for one line of text a step.
    tell_mean
        Whether `info["mean_reward"]` holds r_t(s_t, a_t) after a step. Regret is made of it; a
        learner must not see it.

    Examples
    --------
    >>> import windage as wd
    >>> env = make_env(wd.envs.make("riverswim", horizon=100))
    >>> state, info = env.reset(seed=7)
    >>> state, reward, terminated, truncated, info = env.step(1)
    >>> info["action_mask"]
    array([1, 1], dtype=int8)
    """
    return DriftingEnv(model, forbidden=forbidden, render_mode=render_mode, tell_mean=tell_mean)


def make_named(
    *,
    name: str,
    forbidden: str = "error",
    render_mode: str | None = None,
    tell_mean: bool = False,
    **parameters: Any,
) -> DriftingEnv:
    """Return the environment with this id of windage's: the entry point of Gymnasium's ids."""
    model = envs.make(name, **parameters)
    return DriftingEnv(model, forbidden=forbidden, render_mode=render_mode, tell_mean=tell_mean)


def register() -> None:
    """Register every environment of `windage.envs` that Gymnasium does not know yet."""
    for environment in REGISTERED.values():
        if environment.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                environment.gymnasium_id,
                f"{__name__}:{make_named.__name__}",
                kwargs={"name": environment.id},
            )


def _start_state(model: DriftingMDP, options: dict[str, Any] | None) -> int:
    given = dict(options or {})
    start = model.space.check_state(given.pop("state", 0), "options['state']")
    if given:
        raise InputError(
            f"{sorted(map(str, given))[0]!r} is no option of reset",
            field="options",
            fix='pass {"state": s}, or nothing',
        )
    return start
