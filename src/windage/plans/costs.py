"""What a run will take: memory and time, roughly.

Memory is counted from the parts of an agent: 16 bytes a sample of the window and of the batch that
waits to be counted, the table of transition counts, and what is kept per pair and per state. Time
is a rule of thumb for one core of a laptop; compiling adds seconds to the first run.
"""

from __future__ import annotations

from windage.spaces import StateActions

__all__ = ["agent_memory", "run_seconds"]

_SAMPLE = 16  # pair, next state and reward
_BATCH = 1 << 16
_CELL, _SLOT = 16, 32  # of a full table, of a hash table that is half empty
_FULL_TABLE = 1 << 20
_PAIR, _STATE = 150, 100
_STEP = 25e-9
_PLANNING = 0.6e-9  # a step and pair, where sets are tight enough to plan in


def agent_memory(space: StateActions, window: int) -> int:
    """Return about how many bytes an agent with this window holds: it does not grow with T.

    >>> agent_memory(StateActions.uniform(states=10, actions=4), window=5085)
    176120
    """
    samples = window + min(window, _BATCH)
    cells = space.n_pairs * space.n_states
    counts = _CELL * cells if cells <= _FULL_TABLE else _SLOT * min(cells, samples)
    return _SAMPLE * samples + counts + _PAIR * space.n_pairs + _STATE * space.n_states


def run_seconds(space: StateActions, horizon: int) -> tuple[float, float]:
    """Return about how long a run takes: with sets that say nothing, and with tight ones."""
    return _STEP * horizon, (_STEP + _PLANNING * space.n_pairs) * horizon
