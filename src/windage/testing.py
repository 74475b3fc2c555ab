"""Conformance suites, public: what windage asks of a model, run it over your own.

`check_drifting_mdp(model)` raises `AssertionError` with the finding if a model breaks a promise.
"""

from __future__ import annotations

import numpy as np

from windage.drift import DriftingMDP
from windage.drift.tables import largest, largest_row
from windage.mdp import MDP, TOLERANCE
from windage.simulate import Run, run
from windage.spaces import StateActions

__all__ = ["check_drifting_mdp"]


class _Cycling:
    """Plays the actions of a state in turn and remembers that every call was legal."""

    def __init__(self, space: StateActions) -> None:
        self.space = space
        self.turn = np.zeros(space.n_states, dtype=np.int64)

    def act(self, s: int) -> int:
        return int(self.turn[s] % self.space.counts[s])

    def observe(self, s: int, a: int, reward: float, s_next: int) -> None:
        del a, reward, s_next
        self.turn[s] += 1


def check_drifting_mdp(
    model: DriftingMDP, *, communicating: bool = True, times: int = 50, steps: int = 500
) -> None:
    """Check that a drifting model keeps what its interface promises.

    Rewards and rows are legal at sampled times, models are immutable and the same when asked for
    again, budgets agree with the models they are the budgets of, the model communicates, and
    simulated steps are possible moves, repeatable and unchanged when a run is split.

    Parameters
    ----------
    model
        The model to check.
    communicating
        Whether to insist that every state can be reached from every other at every time.
    times
        At how many times to look at the model.
    steps
        How many steps to simulate.

    Examples
    --------
    >>> import windage as wd
    >>> check_drifting_mdp(wd.envs.make("riverswim", horizon=1000))
    """
    sampled = np.unique(np.linspace(1, model.horizon, times).astype(np.int64))
    for t in sampled:
        _check_model(model, int(t))
    _check_budgets(model, sampled)
    if communicating:
        holes = model.disconnections()
        assert not holes, f"does not communicate: {holes[0]}"
    _check_runs(model, min(steps, model.horizon))


def _check_model(model: DriftingMDP, t: int) -> None:
    mdp, again = model.at(t), model.at(t)
    assert mdp == again, f"t={t}: asked twice, the model is not the same"
    MDP(model.space, mdp.rewards, mdp.transitions)  # raises if it is no model
    assert not mdp.rewards.flags.writeable, f"t={t}: rewards can be written to"
    rows = np.asarray(mdp.transitions.sum(axis=1)).ravel()
    assert np.abs(rows - 1).max() <= TOLERANCE, f"t={t}: a row sums to {rows[rows.argmax()]}"


def _check_budgets(model: DriftingMDP, sampled: np.ndarray) -> None:
    for t in sampled[sampled < model.horizon]:
        now, after = model.at(int(t)), model.at(int(t) + 1)
        budget = model.budgets(int(t), int(t) + 1)
        r = largest(after.rewards - now.rewards)
        p = largest_row(after.transitions - now.transitions)
        assert abs(budget.reward - r) <= 1e-9, f"t={t}: B_r,t is {r}, not {budget.reward}"
        assert abs(budget.transition - p) <= 1e-9, f"t={t}: B_p,t is {p}, not {budget.transition}"
    middle = max(1, model.horizon // 2)
    whole, left, right = model.budgets(), model.budgets(1, middle), model.budgets(middle)
    for name in ("reward", "transition"):
        total, parts = getattr(whole, name), getattr(left, name) + getattr(right, name)
        assert abs(total - parts) <= 1e-9 * max(1.0, total), f"{name} budgets do not add up"


def _check_runs(model: DriftingMDP, steps: int) -> None:
    whole = _cycled(model, steps)
    for i in range(steps):
        mdp = model.at(i + 1)
        pair = model.space.pair(int(whole.states[i]), int(whole.actions[i]))
        moves = mdp.cells.states[mdp.cells.rows[pair] : mdp.cells.rows[pair + 1]]
        assert whole.states[i + 1] in moves, f"t={i + 1}: an impossible move was drawn"
        mean = mdp.rewards[pair]
        assert abs(whole.mean_rewards[i] - mean) <= 1e-12, f"t={i + 1}: wrong mean reward"
    assert not model.noise.bounded or (whole.rewards.min() >= 0 and whole.rewards.max() <= 1), (
        "a reward left [0, 1]"
    )
    again = _cycled(model, steps)
    assert np.array_equal(whole.states, again.states), "the same seed gave another path"


def _cycled(model: DriftingMDP, steps: int) -> Run:
    return run(model, _Cycling(model.space), seed=1, steps=steps)
