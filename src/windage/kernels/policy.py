"""The policy of an episode: which action to play where several are optimistic alike (line 8).

An action counts as tied if its optimistic value is within the slack of the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windage.kernels.evi import tie_bar
from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.random import uniform

LOWEST, RANDOM, PREVIOUS, SAMPLED = 0, 1, 2, 3  # how ties are broken

POLICY = np.dtype(
    [
        ("best", np.float64),  # max_a r~
        ("tied", np.int64),  # whether several actions have r~ within the slack of it
        ("episode", np.int64),  # the one that last looked its action up
        ("pair", np.int64),  # pi~(s)
    ],
    align=True,
)


class TieRule(NamedTuple):
    """The lowest, a random or the previous action of those tied, by `RULES["ties"]`."""

    code: int


@variants
def fix_policy(ties, learner, t, age):
    """Fix the policy of a new episode, where it is not looked up state by state."""


@inlined
def optimistic_value(learner, p):
    """Return the optimistic value of a pair; without a plan u = 0 and it is r~."""
    pair = learner.plan.pairs[p]
    return pair["value"] if learner.episode[0]["planned"] else pair["reward"]


@compiled
def tied_from(learner, s):
    """Return the value from which on an action of a state is tied with the best."""
    state, best = learner.plan.states[s], -np.inf
    for p in range(state["first"], state["last"]):
        value = optimistic_value(learner, p)
        best = value if value > best else best
    return tie_bar(best, learner.rules[0]["slack"])


@compiled
def n_tied(learner, s, least):
    """Return how many actions of a state reach a value."""
    n = 0
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        n += optimistic_value(learner, p) >= least
    return n


@compiled
def count_ties(learner):
    """Return in how many states several actions are tied."""
    n = 0
    for s in range(learner.policy.size):
        n += n_tied(learner, s, tied_from(learner, s)) > 1
    return n


@fix_policy.register(TieRule)
def _look_up_later(_ties, _learner, _t, _age):
    """Leave it to `policy_of`."""


@inlined
def policy_of(learner, s):
    """Return pi~(s) as a pair (line 8), looked up when the episode first meets the state."""
    if learner.policy[np.uint64(s)]["episode"] != learner.episode[0]["number"]:
        _look_up(learner, s)
    return learner.policy[np.uint64(s)]["pair"]


@compiled
def _look_up(learner, s):
    rules, own, least = learner.rules[0], learner.policy[s], tied_from(learner, s)
    known = own["episode"] > 0
    own["episode"] = learner.episode[0]["number"]
    if rules["ties"] == PREVIOUS and known and optimistic_value(learner, own["pair"]) >= least:
        return
    skip = 0
    if rules["ties"] == RANDOM:
        draw = uniform(learner.key, learner.episode[0]["tau"], s)
        skip = int(draw * n_tied(learner, s, least))
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        if optimistic_value(learner, p) >= least:
            if skip == 0:
                own["pair"] = p
                return
            skip -= 1
