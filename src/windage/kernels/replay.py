"""Recorded steps, taken in again by a learner in one compiled loop.

The functions are those of acting online, in the same order: what they leave behind is what act and
observe, called by hand for every step, would have left.
"""

from __future__ import annotations

from windage.kernels.jit import compiled
from windage.kernels.learner import advise, learn


@compiled
def replay(learner, t, states, learned, pairs, rewards, afters, advised):
    """Decide in every state; learn from the steps that had an outcome.

    Fills in what the learner would have played, as pairs; returns the next time and how many steps
    were taken in: fewer than there are if a plan did not converge.
    """
    for i in range(states.size):
        advised[i] = advise(learner, t, states[i])
        if advised[i] < 0:
            return t, i
        if learned[i]:
            learn(learner, t, pairs[i], rewards[i], afters[i])
            t += 1
    return t, states.size
