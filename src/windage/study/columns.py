"""What a result file says of a run: totals and curves, labels, episodes, blocks, memory.

The columns are those of `tables.RUN`; what nobody knows is null, what an agent has not is empty.
"""

from __future__ import annotations

import functools
import json
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage import agents
from windage.agents.base import Agent
from windage.models import DriftingMDP
from windage.recording import Run
from windage.regret import rounding
from windage.simulators import Problem
from windage.spaces import StateActions
from windage.study.kinds import Player, World

__all__ = [
    "Gains",
    "blocks",
    "census_every",
    "curves",
    "episodes",
    "every",
    "forgetting",
    "labels",
    "memory",
    "short",
    "text_of",
    "times_of",
]

POINTS = 200
"""About so many times of a run are kept in its curves."""

SNAPSHOTS = 25
"""So often it is looked at what an agent remembers."""

MOST_EPISODES = 2_000
MOST_PAIRS = 64
MOST_LOOKS = 100

_MOST_LISTED = 64  # values of a parameter that every run writes down

_NOT_A_VARIANT = (
    "window", "widening", "delta", "radii", "ties", "seed", "problem", "diameter", "reward_range",
)  # fmt: skip


class Gains(NamedTuple):
    """What runs in one world are measured by: sums of rho*_t up to the times of their curves."""

    cumulative: NDArray[np.float64]
    total: float
    error: float


def every(horizon: int) -> int:
    """Return how many steps lie between two times of a curve.

    >>> every(20_000), every(150)
    (100, 1)
    """
    return -(-horizon // POINTS)


def text_of(world: World) -> str:
    """Return the parameters of a world as JSON; a file or a module is told by its digest."""
    digest = {"digest": world.digest} if world.digest else {}
    return json.dumps(world.parameters | digest, sort_keys=True)


def times_of(recorded: NDArray[np.int64], T: int) -> NDArray[np.int64]:
    """Return the times of a curve: those recorded, and T."""
    return recorded if recorded.size and recorded[-1] == T else np.append(recorded, T)


def curves(found: Run, gains: Gains | None) -> dict[str, Any]:
    """Return the totals of a run and its curves; what nobody knows is null."""
    times = times_of(found.times, found.last)

    def curve(sums: NDArray[np.float64], total: float) -> NDArray[np.float64]:
        return sums if sums.size == times.size else np.append(sums, total)

    reward = curve(found.cumulative_reward, found.total_reward)
    mean = curve(found.cumulative_mean_reward, found.total_mean_reward)
    row: dict[str, Any] = {
        "steps": found.steps,
        "total_reward": found.total_reward,
        "t": times,
        "cumulative_reward": reward,
        "total_mean_reward": None,
        "cumulative_mean_reward": None,
        "oracle_reward": None,
        "oracle_error": None,
        "regret": None,
        "observed_regret": None,
        "share": None,
        "cumulative_regret": None,
    }
    if math.isfinite(found.total_mean_reward):
        row |= {"total_mean_reward": found.total_mean_reward, "cumulative_mean_reward": mean}
    if gains is not None:
        earned = max(abs(found.total_mean_reward), abs(found.total_reward))
        row |= {
            "oracle_reward": gains.total,
            "oracle_error": gains.error + rounding(gains.total + earned),
            "regret": gains.total - found.total_mean_reward,
            "observed_regret": gains.total - found.total_reward,
            "share": found.total_mean_reward / gains.total if gains.total > 0 else None,
            "cumulative_regret": gains.cumulative - mean,
        }
    return row


def labels(agent: Any, player: Player) -> dict[str, Any]:
    """Return what a result must be labelled with, as far as the agent has it."""
    widening = getattr(agent, "widening", None)
    window = getattr(agent, "window", None)
    delta = getattr(agent, "delta", None)
    return {
        "radii": getattr(getattr(agent, "radii", None), "label", None),
        "ties": getattr(agent, "ties", None) if isinstance(agent, Agent) else None,
        "variant": _variant(agent, player),
        "told": list(getattr(agent, "requires", ()) if player.told is None else player.told),
        "window": window if isinstance(window, int) else None,
        "widening": widening if isinstance(widening, float) else None,
        "delta": delta if isinstance(delta, float) else None,
    }


def _variant(agent: Any, player: Player) -> str | None:
    """Return the parameters that differ from their defaults and have no column of their own."""
    if not isinstance(agent, Agent):
        return None
    chosen = short(player.parameters)
    parts = [
        f"{name} {_word(chosen[name])}"
        for name, default in _defaults(type(agent)).items()
        if name in chosen and chosen[name] != default
    ]
    return ", ".join(parts) or None


@functools.cache
def _defaults(kind: type[Agent]) -> dict[str, Any]:
    known = agents.parameters(kind).items()
    return {name: p.default for name, p in known if name not in _NOT_A_VARIANT}


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def short(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with long lists as their length; the manifest has them in full."""
    return {
        name: f"{len(value):,} values"
        if isinstance(value, list) and len(value) > _MOST_LISTED
        else value
        for name, value in parameters.items()
    }


def episodes(found: Run) -> dict[str, Any]:
    """Return the last episodes of a run, and how many there were."""
    log = found.episodes
    last = slice(max(0, len(log) - MOST_EPISODES), None)
    return {
        "episodes": log.total,
        "episode_start": log.start[last],
        "episode_length": log.length[last],
        "episode_reason": log.reason[last].tolist(),
        "episode_gain": log.gain[last],
        "episode_span": log.span[last],
        "episode_sweeps": log.sweeps[last],
        "episode_vacuous": log.vacuous[last],
        "episode_ties": log.ties[last],
    }


def blocks(agent: Any) -> dict[str, Any]:
    """Return the blocks and arms of BORL; of others nothing."""
    if not isinstance(agent, agents.BORL):
        names = ("block_arm", "block_reward", "block_probabilities", "arm_window", "arm_widening")
        return {name: [] for name in names}
    played = agent.blocks
    return {
        "block_arm": played.arm,
        "block_reward": np.where(played.told, played.reward, math.nan),
        "block_probabilities": played.probabilities.tolist(),
        "arm_window": [W for W, _ in agent.arms],
        "arm_widening": [eta for _, eta in agent.arms],
    }


def forgetting(agent: Any) -> dict[str, Any]:
    """Return how many of the last steps count for a multi-scale learner, and when; else nothing."""
    if not isinstance(agent, agents.MultiScale | agents.MultiScaleGuarded):
        return {"forgetting_t": [], "forgetting_transitions": [], "forgetting_rewards": []}
    told = agent.forgetting()
    looks = slice(None, None, -(-told.times.size // MOST_LOOKS))
    return {
        "forgetting_t": told.times[looks],
        "forgetting_transitions": told.mean("transitions")[looks],
        "forgetting_rewards": told.mean("rewards")[looks],
    }


def census_every(world: DriftingMDP | Problem) -> int | None:
    """Return how many steps lie between two looks at what an agent remembers; None: too much."""
    few = world.space.n_pairs <= MOST_PAIRS
    return -(-world.horizon // SNAPSHOTS) if few else None


def memory(found: Run, space: StateActions) -> dict[str, Any]:
    """Return what was remembered when, and the names of the pairs; of some agents nothing."""
    census = found.census
    if census is None or not census.counts.any():
        return {"memory_t": [], "memory_counts": [], "pair_names": []}
    pairs = zip(space.state_of.tolist(), space.action_of.tolist(), strict=True)
    return {
        "memory_t": census.times,
        "memory_counts": census.counts,
        "pair_names": [f"{space.state_name(s)}/{space.action_name(s, a)}" for s, a in pairs],
    }
