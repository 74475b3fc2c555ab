"""What a run will take: memory and time, roughly.

Memory is counted from the parts of an agent: the samples of the window and of the batch that waits
to be counted, the cells of transition counts, the rows and columns that the planner makes of them,
the log of episodes, and what is kept per pair and per state. Time is a rule of thumb, fitted to the
whole runs of `python -m benchmarks learning`, which prints how far off it is; compiling adds half a
minute to the first run of an installation.
"""

from __future__ import annotations

from windage.agents.optimistic.episodic import LOG_ROWS
from windage.confidence.confidence import has_grid
from windage.confidence.window import _BATCH, _CELLS, _slots
from windage.spaces import StateActions

__all__ = ["agent_memory", "run_seconds"]

_SAMPLE = 16  # pair, next state and reward
_SLOT = 16  # of the table of counts
_CELL = 16  # of the table as it was when the episode was planned
_ENTRY = 2 * 16  # of the planner: once in a row, once in a column
_PAIR, _STATE = 196, 104  # counts, sets and the planner's own
_LANE = 8  # of the planner's grid
_LOG = 64  # an episode
_STEP = 25e-9
_PLANNING = 0.2e-9  # a step and pair, where sets are tight enough to plan in


def agent_memory(space: StateActions, window: int, horizon: int) -> int:
    """Return about how many bytes an agent with this window holds in a run.

    They grow with T only where the window is all of it and the cells are too many for a table.

    >>> agent_memory(StateActions.uniform(states=10, actions=4), window=5085, horizon=100_000)
    1243728
    """
    forgets = window < horizon
    samples = window + min(window, _BATCH) if forgets else _BATCH
    cells = space.n_pairs * space.n_states
    slots = cells if cells <= _CELLS else _slots(min(cells, samples if forgets else horizon))
    entries = min(cells, window)
    counted_early = min(window, horizon) > _BATCH  # while an episode lasts: its table is kept
    kept = (cells if cells <= _CELLS else min(cells, samples)) * counted_early
    lanes = has_grid(cells, entries) * (space.n_states + 2) * space.n_pairs
    return (
        _SAMPLE * samples
        + _SLOT * slots
        + _CELL * kept
        + _ENTRY * entries
        + _LANE * lanes
        + _PAIR * space.n_pairs
        + _STATE * space.n_states
        + _LOG * min(horizon + 8, LOG_ROWS)
    )


def run_seconds(space: StateActions, horizon: int) -> tuple[float, float]:
    """Return about how long a run takes: with sets that say nothing, and with tight ones."""
    return _STEP * horizon, (_STEP + _PLANNING * space.n_pairs) * horizon
