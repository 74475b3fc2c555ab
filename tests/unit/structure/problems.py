"""Small structured problems, and what they are by brute force."""

from __future__ import annotations

import itertools

import numpy as np

import windage as wd


def shelf(seen: str = "always", **options: object) -> wd.Structure:
    """Return a shelf for three pieces; rewards count what is sold, and orders cost."""
    demand = wd.Exogenous("demand", range(5), seen=seen)
    return wd.Structure(
        wd.StateActions([4, 3, 2, 1]),
        [demand],
        next_state=lambda s, a, d: max(s + a - d, 0),
        reward=lambda s, a, d: 5.0 * min(s + a, d) - 2.0 * a - 0.5 * max(s + a - d, 0),
        **options,
    )


def counter() -> wd.Structure:
    """Return a counter with two variables: one law of arrivals, a law of service a speed."""
    space = wd.StateActions([2, 2, 2, 2], action_names=["slow", "fast"])
    arrivals = wd.Exogenous("arrivals", [0, 1, 2])
    service = wd.Exogenous("service", ["no", "yes"], lambda s, a: a if s else None, "involved")

    def after(s, a, arrived, served):
        return min(s - (served == "yes") + arrived, 3)

    return wd.Structure(
        space, [arrivals, service], next_state=after, reward=lambda s, a, x, served: -s - 2 * a
    )


def enumerated(structure, functions, laws):
    """Return rows and mean rewards, joint outcome by joint outcome, from the functions."""
    after, reward = functions
    space = structure.space
    rows, means = np.zeros((space.n_pairs, space.n_states)), np.zeros(space.n_pairs)
    for pair in range(space.n_pairs):
        s, a = int(space.state_of[pair]), int(space.action_of[pair])
        axes, law = [], []
        for f, variable in enumerate(structure.variables):
            label = variable.group(s, a) if variable.group else None
            absent = variable.group is not None and label is None
            axes.append((None,) if absent else variable.outcomes)
            given = laws[variable.name]
            q = [1.0] if absent else (given[label] if variable.group else given)
            law.append(dict(zip(axes[f], q, strict=True)))
        for joint in itertools.product(*axes):
            weight = np.prod([q[o] for q, o in zip(law, joint, strict=True)])
            rows[pair, after(s, a, *joint)] += weight
            means[pair] += weight * reward(s, a, *joint)
    return rows, means
