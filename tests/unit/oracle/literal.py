"""Small models with known gains, and gains from their definition."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csr_array

from windage.spaces import StateActions


def river(states, left=0.005, right=1.0):
    """RiverSwim: left is sure, right is a struggle; pay at both ends."""
    cells = []
    for s in range(states):
        cells.append((2 * s, max(s - 1, 0), 1.0))
        up, down = (0.6 if s == 0 else 0.35), (0.4 if s == states - 1 else 0.05)
        if s < states - 1:
            cells.append((2 * s + 1, s + 1, up))
        if s > 0:
            cells.append((2 * s + 1, s - 1, down))
        cells.append((2 * s + 1, s, 0.4 if s == 0 else 0.6))
    rows, columns, values = zip(*cells, strict=True)
    rewards = np.zeros(2 * states)
    rewards[0], rewards[-1] = left, right
    transitions = csr_array((values, (rows, columns)), shape=(2 * states, states))
    return StateActions.uniform(states, 2), rewards, transitions


def ring(states, laps=1):
    """A sure walk around; state 0 pays. With two laps the other action goes the other way."""
    space = StateActions.uniform(states, laps)
    steps = [1, -1][:laps]
    transitions = np.zeros((space.n_pairs, states))
    for pair, (s, step) in enumerate(itertools.product(range(states), steps)):
        transitions[pair, (s + step) % states] = 1.0
    return space, (space.state_of == 0).astype(float), transitions


def tiny(rng, kind):
    """A model of at most four states, with ragged action sets and often several classes."""
    states = int(rng.integers(1, 5))
    space = StateActions(rng.integers(1, 4, size=states))
    transitions = np.zeros((space.n_pairs, states))
    for row in transitions:
        least, most = {"sure": (1, 1), "sparse": (1, 2), "full": (states, states)}[kind]
        reach = min(states, int(rng.integers(least, most + 1)))
        row[rng.choice(states, size=reach, replace=False)] = rng.dirichlet(np.ones(reach))
    tied = rng.integers(0, 4, size=space.n_pairs) / 3
    return space, tied if rng.random() < 0.5 else rng.random(space.n_pairs), transitions


def cesaro(chain):
    """The mean of the first 2^40 powers of a chain, by doubling."""
    mean, power = np.eye(len(chain)), chain
    for _ in range(40):
        mean = (mean + power @ mean) / 2
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return mean


def best_of_all_policies(space, rewards, transitions):
    """The optimal gain of each start state, from every deterministic policy there is."""
    best = np.full(space.n_states, -np.inf)
    for actions in itertools.product(*map(range, space.counts)):
        pairs = [space.pair(s, a) for s, a in enumerate(actions)]
        best = np.maximum(best, cesaro(transitions[pairs]) @ rewards[pairs])
    return best
