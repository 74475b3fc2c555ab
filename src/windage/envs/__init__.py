"""Benchmark worlds by id: `windage.envs.make("riverswim", horizon=20_000)`.

A bare id is the newest version; results store the id with its version, such as `riverswim-v0`.
"""

from __future__ import annotations

from typing import Any

from windage.envs.bandit import bandit
from windage.envs.bidding import bidding
from windage.envs.epidemic import epidemic
from windage.envs.inventory import inventory
from windage.envs.peril import Replay, peril, peril_replay
from windage.envs.queueing import queue
from windage.envs.random_drift import random_drift
from windage.envs.registry import REGISTERED, Environment, Facts
from windage.envs.replacement import replacement
from windage.envs.ride import ride
from windage.envs.riverswim import riverswim, riverswim_mdp
from windage.envs.two_state_cosine import two_state_cosine
from windage.models import DriftingMDP
from windage.validation import as_choice

__all__ = [
    "Environment",
    "Facts",
    "Replay",
    "bandit",
    "bidding",
    "epidemic",
    "facts",
    "get",
    "inventory",
    "make",
    "names",
    "peril",
    "peril_replay",
    "queue",
    "random_drift",
    "replacement",
    "ride",
    "riverswim",
    "riverswim_mdp",
    "two_state_cosine",
]


def names() -> list[str]:
    """Return the bare ids of all environments.

    >>> names()[:2]
    ['bandit', 'bidding']
    """
    return sorted({environment.name for environment in REGISTERED.values()})


def get(id: str) -> Environment:  # noqa: A002
    """Return the entry of an environment; a bare id gives the newest version."""
    newest = {env.name: env for env in sorted(REGISTERED.values(), key=lambda env: env.version)}
    known = newest | REGISTERED
    return known[as_choice(id, "environment", known)]


def make(id: str, **parameters: Any) -> DriftingMDP:  # noqa: A002
    """Return the environment with this id.

    >>> make("riverswim", horizon=1000, states=4).space.n_states
    4
    """
    environment = get(id)
    environment.check(parameters)
    model = environment.build(**parameters)
    model.name = environment.id
    return model


def facts(id: str, **parameters: Any) -> Facts:  # noqa: A002
    """Return what is known in closed form of the environment with these parameters.

    >>> round(facts("riverswim", horizon=20_000).reward_budget, 12)
    2.1
    """
    environment = get(id)
    environment.check(parameters)
    return environment.facts(**parameters)
