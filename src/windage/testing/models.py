"""Conformance suites, public: what windage asks of a model, run it over your own.

`check_drifting_mdp(model)` raises `AssertionError` with the finding if a model breaks a promise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.baselines import RandomAgent
from windage.errors import InputError, ModelError
from windage.models import DriftingMDP
from windage.models.mdp import MDP
from windage.models.source import largest, largest_row
from windage.simulate import Run, run
from windage.simulators import Simulator
from windage.structure import ALWAYS, INFERRED, INTERVAL, INVOLVED, Structure
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

    Of a model with a structure also: groups answer what they answered; the rows and mean rewards of
    sampled pairs follow from the laws; steps show what the structure says, outcomes that lead to
    their reward and next state, and are distributed by their laws (with a false alarm in a million
    models); B_q agrees with the laws.

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
    if model.structure is not None:
        _check_structure(model, model.structure, sampled)
        _check_outcomes(model, model.structure, length)


def _require(kept: object, finding: str) -> None:
    if not kept:
        raise AssertionError(finding)


def _check_models(model: DriftingMDP, sampled: list[int]) -> None:
    """Look at the models forwards, then backwards: an answer must not hang on what was asked."""
    seen = []
    for t in sampled:
        mdp = model.at(t)
        try:
            MDP(model.space, _as_share(model, mdp.rewards), mdp.transitions)
        except ModelError as err:
            raise AssertionError(f"t={t}: {err}") from None
        rows = mdp.transitions
        for array in (mdp.rewards, rows if isinstance(rows, np.ndarray) else rows.data):
            _require(not array.flags.writeable, f"t={t}: the model can be written to")
        seen.append(_digest(mdp))
    for t, digest in zip(reversed(sampled), reversed(seen), strict=True):
        _require(_digest(model.at(t)) == digest, f"t={t}: asked twice, the model is not the same")


def _as_share(model: DriftingMDP, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rewards as shares of their range; those in [0, 1] as they are."""
    low, high = model.reward_range
    return (rewards - low) / (high - low)


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
    low, high = model.reward_range
    inside = whole.rewards.min() >= low and whole.rewards.max() <= high
    _require(not model.noise.bounded or inside, f"a reward left [{low:g}, {high:g}]")


def _check_splits(model: DriftingMDP, agent: Callable[[DriftingMDP], Any], steps: int) -> None:
    """Play a run in one piece, again, and cut after 1, a third and all but one of the steps."""
    whole = _played(model, agent, [steps])
    again = _played(model, agent, [steps])
    _require(again == whole, "the same seed gave another path")
    for first in sorted({1, steps // 3, steps - 1} - {0, steps}):
        parts = _played(model, agent, [first, steps - first])
        _require(parts == whole, f"a run that is split after t={first} goes on differently")


_FALSE_ALARM = 1e-6
_PAIRS = 100  # so many are looked at a time


def _check_structure(model: DriftingMDP, structure: Structure, sampled: list[int]) -> None:
    """Compare groups, rows, mean rewards and B_q with what follows from the laws, pair by pair."""
    space, (low, high) = structure.space, structure.reward_range
    for f, variable in enumerate(structure.variables):
        for pair in range(space.n_pairs if variable.group is not None else 0):
            s, a = int(space.state_of[pair]), int(space.action_of[pair])
            label, law = variable.group(s, a), structure.law_of[pair, f]  # type: ignore[misc]
            _require(
                label == (structure.laws[law][1] if law >= 0 else None),
                f"{variable.name}: group at {space.describe(pair)} answers {label!r} now",
            )
    for t in sampled:
        laws, mdp = _vectors(model, t), model.at(t)
        for law, q in enumerate(laws):
            legal = q.min() >= 0 and abs(math.fsum(q) - 1) <= 1e-9
            _require(legal, f"t={t}: {_named(structure, law)} is no law")
        for pair in sorted(
            {(t + i * space.n_pairs // _PAIRS) % space.n_pairs for i in range(_PAIRS)}
        ):
            here = slice(structure.first[pair], structure.first[pair + 1])
            chances = _joint_law(structure, laws, pair)
            row = np.bincount(structure.next_state[here], chances, space.n_states)
            cells = slice(*mdp.cells.rows[pair : pair + 2])
            row -= np.bincount(mdp.cells.states[cells], mdp.cells.probabilities[cells], row.size)
            place = f"t={t}: at {space.describe(pair)} the"
            _require(abs(row).max() <= 1e-12, f"{place} row does not follow from the laws")
            if structure.reward is not None:
                off = abs(chances @ structure.reward[here] - mdp.rewards[pair])
                near = off <= 1e-12 * max(abs(low), abs(high))
                _require(near, f"{place} mean reward does not follow from the laws")
        if t < model.horizon:
            moved = zip(laws, _vectors(model, t + 1), strict=True)
            largest_law = max(float(np.abs(after - now).sum()) for now, after in moved)
            _near(model.budgets(t, t + 1).law, largest_law, f"t={t}: B_q,t")
    middle = max(1, model.horizon // 2)
    halves = model.budgets(1, middle).law + model.budgets(middle).law
    _near(model.budgets().law, halves, "B_q of two halves")


def _check_outcomes(model: DriftingMDP, structure: Structure, steps: int) -> None:
    """Compare what steps show with their reward and next state, and with the laws.

    Where an outcome falls in its law, the probability of all before it and half of its own, is 1/2
    on average, of intervals too; Hoeffding's inequality says how far off the sum may be.
    """
    simulator, grid = Simulator(model, seed=1), functools.lru_cache(1 << 10)(_grid)
    turn = np.zeros(structure.space.n_states, np.int64)
    fell = np.zeros(len(structure.laws))
    times = np.zeros(len(structure.laws), np.int64)
    for t in range(1, steps + 1):
        s, laws = simulator.state, _vectors(model, t)
        a = int(turn[s] % structure.space.counts[s])
        turn[s] += 1
        pair = structure.space.pair(s, a)
        reward, after = simulator.step(a)
        place = f"t={t}, {structure.space.describe(pair)}: "
        for law, low, high in _shown(structure, pair, grid, reward, after, simulator.seen, place):
            q = laws[law]
            mass = float(q[low : high + 1].sum())
            _require(mass > 0, f"{place}what is shown has probability zero")
            fell[law] += float(q[:low].sum()) + mass / 2 - 0.5
            times[law] += 1
    bound = np.sqrt(times / 2 * math.log(2 * times.size / _FALSE_ALARM))
    for law in np.flatnonzero(np.abs(fell) > bound).tolist():
        _require(False, f"outcomes are not distributed by {_named(structure, law)}")


def _shown(
    structure: Structure,
    pair: int,
    grid: Callable[[Structure, int], dict[int, NDArray[np.int64]]],
    reward: float,
    after: int,
    seen: dict[str, Any] | None,
    place: str,
) -> list[tuple[int, int, int]]:
    """Return the laws of a step and which of their outcomes, lowest and highest, are possible."""
    here = slice(structure.first[pair], structure.first[pair + 1])
    possible = structure.next_state[here] == after
    if structure.reward is not None:
        possible &= structure.reward[here] == reward
    index, told, found = grid(structure, pair), dict(seen or {}), []
    for f, variable in enumerate(structure.variables):
        law, code = int(structure.law_of[pair, f]), structure.seen[f]
        if code > INVOLVED or (law < 0 and code != ALWAYS):
            continue
        _require(variable.name in told, f"{place}{variable.name} is not shown")
        outcome = variable.index(told.pop(variable.name))
        if law >= 0:
            possible &= index[f] == outcome
        else:
            law = [v for v, _ in structure.laws].index(f)
        found.append((law, outcome, outcome))
    what = f"{place}{seen} does not lead to reward {reward} and next state {after}"
    _require(possible.any(), what)
    for f, variable in enumerate(structure.variables):
        law, code = int(structure.law_of[pair, f]), structure.seen[f]
        if law < 0 or code <= INVOLVED:
            continue
        low, high = int(index[f][possible].min()), int(index[f][possible].max())
        found.append((law, low, high))
        if code == INTERVAL:
            ends = variable.outcomes[low], variable.outcomes[high]
            shown = told.pop(variable.name, None)
            right = shown == (ends[0] if low == high else ends)
            _require(right, f"{place}{variable.name} is shown as {shown!r}, {ends} are possible")
        else:
            _require(code == INFERRED and low == high, f"{place}{variable.name} cannot be inferred")
    _require(not told, f"{place}{sorted(told)} should not be shown")
    return found


def _vectors(model: DriftingMDP, t: int) -> list[NDArray[np.float64]]:
    """Return the laws at time t in the order of the structure."""
    structure, named = model.structure, model.laws(t)
    assert structure is not None
    found = [(named[structure.variables[f].name], label) for f, label in structure.laws]
    return [law if label is None else law[label] for law, label in found]


def _joint_law(
    structure: Structure, laws: list[NDArray[np.float64]], pair: int
) -> NDArray[np.float64]:
    involved = [laws[law] for law in structure.law_of[pair] if law >= 0]
    return np.asarray(functools.reduce(np.multiply.outer, involved, np.ones(()))).ravel()


def _grid(structure: Structure, pair: int) -> dict[int, NDArray[np.int64]]:
    """Return the numbers of the outcomes of each variable of a pair, over its joint outcomes."""
    laws = structure.law_of[pair]
    involved = np.flatnonzero(laws >= 0).tolist()
    index = np.indices([int(structure.law_sizes[laws[f]]) for f in involved])
    return {f: index[k].ravel() for k, f in enumerate(involved)}


def _named(structure: Structure, law: int) -> str:
    f, label = structure.laws[law]
    name = structure.variables[f].name
    return f"the law of {name}" + ("" if label is None else f" at {label!r}")


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
