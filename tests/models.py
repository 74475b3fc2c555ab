"""Small models that many tests use."""

from __future__ import annotations

import numpy as np

import windage as wd


def random_mdp(space: wd.StateActions, seed: int = 0, density: float = 1.0) -> wd.MDP:
    """A model with Dirichlet rows; with density < 1 some moves are impossible."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(space.n_states), size=space.n_pairs)
    keep = rng.random(rows.shape) < density
    keep[np.arange(space.n_pairs), rng.integers(space.n_states, size=space.n_pairs)] = True
    rows = np.where(keep, rows, 0.0)
    return wd.MDP(space, rng.random(space.n_pairs), rows / rows.sum(axis=1, keepdims=True))


def draw_model(rng: np.random.Generator, seed: int) -> wd.DriftingMDP:
    """A drifting model with one to five states, ragged action sets and at most 200 steps."""
    space = wd.StateActions(rng.integers(1, 4, size=rng.integers(1, 6)).tolist())
    T = int(min(rng.integers(1, 201, size=2)))
    noise = rng.choice(["bernoulli", "none"])
    ends = [random_mdp(space, 2 * seed + k, density=0.6) for k in range(2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(1), horizon=T, noise=noise)


def draw_window(rng: np.random.Generator, T: int) -> int:
    """A window: 1, 2, any, T or more."""
    return int(rng.choice([1, 2, rng.integers(1, T + 1), rng.integers(1, T + 1), T, T + 1, 3 * T]))


def literal_budgets(model: wd.DriftingMDP, first: int, last: int) -> tuple[list, list]:
    """B_{r,t} and B_{p,t} from the definition, one model after another."""
    r, p = [], []
    for t in range(first, last):
        now, after = model.at(t), model.at(t + 1)
        r.append(max(abs(x - y) for x, y in zip(now.rewards, after.rewards, strict=True)))
        difference = np.asarray(_dense(after) - _dense(now))
        p.append(max(sum(abs(x) for x in row) for row in difference))
    return r, p


def _dense(mdp: wd.MDP) -> np.ndarray:
    found = mdp.transitions
    return found if isinstance(found, np.ndarray) else found.toarray()


class Weights:
    """A schedule of the user's own: any object with weights(t, T)."""

    def __init__(self, *weights: float) -> None:
        self.fixed = weights

    def weights(self, t: int, horizon: int) -> tuple[float, ...]:
        return self.fixed
