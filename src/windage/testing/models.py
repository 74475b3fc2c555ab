"""Conformance suites, public: what windage asks of a model, run it over your own.

`check_drifting_mdp(model)` raises `AssertionError` with the finding if a model breaks a promise.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np

from windage.agents.baselines import RandomAgent
from windage.errors import InputError, ModelError
from windage.models import DriftingMDP
from windage.models.mdp import MDP
from windage.models.source import largest, largest_row
from windage.simulate import Run, run
from windage.validation import as_integer

__all__ = ["check_drifting_mdp"]


def check_drifting_mdp(
    model: DriftingMDP, *, communicating: bool = True, times: int = 50, steps: int = 500
) -> None:
    """Check that a drifting model keeps what its interface promises.

    Rewards and rows are legal at sampled times, models cannot be written to and are the same when
    asked for again, in another order; budgets agree with the models they are the budgets of; the
    model communicates; simulated steps are possible moves with the right mean rewards, the same
    when repeated and when the run is split and continued.

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
    if not isinstance(model, DriftingMDP):
        raise InputError(
            f"{type(model).__name__} is not a DriftingMDP",
            field="model",
            fix="build one with wd.DriftingMDP, blend, from_arrays or from_function",
        )
    count = as_integer(times, "times", low=1)
    length = min(as_integer(steps, "steps", low=1), model.horizon)
    sampled = np.unique(np.linspace(1, model.horizon, count).astype(np.int64)).tolist()
    _check_models(model, sampled)
    _check_steps(model, sampled)
    _check_sums(model, count)
    if communicating:
        holes = model.disconnections()
        _require(not holes, f"does not communicate: {holes[0] if holes else ''}")
    _check_moves(model, run(model, _Cycling(model), seed=1, steps=length))
    for agent in (_Cycling, _random):
        _check_splits(model, agent, length)


def _require(kept: object, finding: str) -> None:
    if not kept:
        raise AssertionError(finding)


def _check_models(model: DriftingMDP, sampled: list[int]) -> None:
    """Look at the models forwards, then backwards: an answer must not hang on what was asked."""
    seen = []
    for t in sampled:
        mdp = model.at(t)
        try:
            MDP(model.space, mdp.rewards, mdp.transitions)
        except ModelError as err:
            raise AssertionError(f"t={t}: {err}") from None
        rows = mdp.transitions
        for array in (mdp.rewards, rows if isinstance(rows, np.ndarray) else rows.data):
            _require(not array.flags.writeable, f"t={t}: the model can be written to")
        seen.append(_digest(mdp))
    for t, digest in zip(reversed(sampled), reversed(seen), strict=True):
        _require(_digest(model.at(t)) == digest, f"t={t}: asked twice, the model is not the same")


def _check_steps(model: DriftingMDP, sampled: list[int]) -> None:
    for t in sampled:
        if t < model.horizon:
            budget, (r, p) = model.budgets(t, t + 1), _moved(model, t)
            _near(budget.reward, r, f"t={t}: B_r,t")
            _near(budget.transition, p, f"t={t}: B_p,t")
            _near(budget.reward_steps[0], r, f"t={t}: B_r,t of the series")
            _near(budget.transition_steps[0], p, f"t={t}: B_p,t of the series")


def _check_sums(model: DriftingMDP, count: int) -> None:
    """Compare sums: those of consecutive steps with their models, those of all with two halves."""
    middle = max(1, model.horizon // 2)
    end = min(middle + count, model.horizon)
    steps = [_moved(model, t) for t in range(middle, end)]
    some, clear = model.budgets(middle, end), sum(max(step) > 1e-9 for step in steps)
    place = f"t={middle}..{end}: "
    _near(some.reward, sum(r for r, _ in steps), f"{place}B_r")
    _near(some.transition, sum(p for _, p in steps), f"{place}B_p")
    _require(some.changes >= clear, f"{place}changes {clear} times, not {some.changes}")
    whole, left, right = model.budgets(), model.budgets(1, middle), model.budgets(middle)
    _near(whole.reward, left.reward + right.reward, "B_r of two halves")
    _near(whole.transition, left.transition + right.transition, "B_p of two halves")


def _check_moves(model: DriftingMDP, whole: Run) -> None:
    for i in range(whole.steps):
        mdp = model.at(i + 1)
        pair = model.space.pair(int(whole.states[i]), int(whole.actions[i]))
        moves = mdp.cells.states[mdp.cells.rows[pair] : mdp.cells.rows[pair + 1]]
        _require(whole.states[i + 1] in moves, f"t={i + 1}: an impossible move was drawn")
        _near(whole.mean_rewards[i], mdp.rewards[pair], f"t={i + 1}: the mean reward of a step")
    inside = whole.rewards.min() >= 0 and whole.rewards.max() <= 1
    _require(not model.noise.bounded or inside, "a reward left [0, 1]")


def _check_splits(model: DriftingMDP, agent: Callable[[DriftingMDP], Any], steps: int) -> None:
    """Play a run in one piece, again, and cut after 1, a third and all but one of the steps."""
    whole = _played(model, agent, [steps])
    again = _played(model, agent, [steps])
    _require(again == whole, "the same seed gave another path")
    for first in sorted({1, steps // 3, steps - 1} - {0, steps}):
        parts = _played(model, agent, [first, steps - first])
        _require(parts == whole, f"a run that is split after t={first} goes on differently")


class _Cycling:
    """Plays the actions of a state in turn, step by step, and can be continued."""

    def __init__(self, model: DriftingMDP) -> None:
        self.space = model.space
        self.turn = np.zeros(model.space.n_states, dtype=np.int64)
        self.t = 1
        self.last_state = 0

    def act(self, s: int) -> int:
        return int(self.turn[s] % self.space.counts[s])

    def observe(self, s: int, a: int, reward: float, s_next: int) -> None:
        del a, reward
        self.turn[s] += 1
        self.t += 1
        self.last_state = s_next


def _random(model: DriftingMDP) -> RandomAgent:
    """Return an agent that runs in compiled loops."""
    return RandomAgent(model.space, horizon=model.horizon, seed=1)


def _played(
    model: DriftingMDP, agent: Callable[[DriftingMDP], Any], lengths: list[int]
) -> tuple[bytes, ...]:
    """Return what happened in a run that is cut into pieces, joined again."""
    player = agent(model)
    parts = [run(model, player, seed=1, steps=steps) for steps in lengths]
    columns = (
        [*(part.states[:-1] for part in parts), parts[-1].states[-1:]],
        [part.actions for part in parts],
        [part.rewards for part in parts],
        [part.mean_rewards for part in parts],
    )
    return tuple(np.concatenate(column).tobytes() for column in columns)


def _moved(model: DriftingMDP, t: int) -> tuple[float, float]:
    """Return B_{r,t} and B_{p,t} of the models at t and t + 1."""
    now, after = model.at(t), model.at(t + 1)
    r, p = largest(after.rewards - now.rewards), largest_row(after.transitions - now.transitions)
    return float(r), float(p)


def _near(found: float, expected: float, what: str) -> None:
    near = abs(found - expected) <= 1e-9 * max(1.0, abs(expected))
    _require(near, f"{what} is {expected}, not {found}")


def _digest(mdp: MDP) -> bytes:
    parts = (mdp.rewards, *mdp.cells)
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()
