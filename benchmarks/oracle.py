"""The oracle: the certified curve, one gain, one diameter, against what others would do."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

import windage as wd
from benchmarks.clock import cpu_seconds
from benchmarks.peers import ask
from windage.oracle import gain
from windage.oracle.diameter import solve_diameter

TOL = 1e-4

PEER = """
import json, sys, time
import numpy as np, scipy.sparse as sp
from mdptoolbox.mdp import RelativeValueIteration
data = np.load(sys.argv[1])
S, A = int(data["S"]), int(data["A"])
if "data" in data:
    rows = sp.csr_matrix((data["data"], data["indices"], data["indptr"]), shape=(S * A, S))
    P = [rows[a::A].tocsr() for a in range(A)]
else:
    P = np.ascontiguousarray(data["P"].reshape(S, A, S).transpose(1, 0, 2))
R = data["R"].reshape(S, A)
times = []
for _ in range(int(sys.argv[4])):
    start = time.process_time()
    solver = RelativeValueIteration(P, R, epsilon=float(sys.argv[2]), max_iter=int(sys.argv[3]))
    solver.run()
    times.append(time.process_time() - start)
print(json.dumps({"gain": float(solver.average_reward), "seconds": sorted(times)[len(times) // 2],
                  "iterations": int(solver.iter)}))
"""


def measure() -> dict[str, float]:
    """Ratios of the curve, of single gains and of diameters."""
    found: dict[str, float] = {}
    for states in (6, 20, 50):
        found |= _curve(states)
    short, long = (_curve_seconds(_knots(20, T)) for T in (10**5, 10**8))
    found["curve, S = 20: T = 1e8 / T = 1e5, CPU"] = long / short
    for states in (10, 50, 200):
        found |= _one_gain(states)
    found |= _rivers()
    for states in (200, 500):
        found |= _diameter(states)
    return found


def _knots(states: int, horizon: int) -> wd.DriftingMDP:
    space = wd.StateActions.uniform(states, 4)
    rng = np.random.default_rng(states)
    knots = np.linspace(1, horizon, 10).astype(np.int64)
    return wd.DriftingMDP(
        space,
        knots,
        rng.random((10, space.n_pairs)),
        rng.dirichlet(np.full(states, 0.3), size=(10, space.n_pairs)),
        horizon=horizon,
    )


def _curve_seconds(model: wd.DriftingMDP) -> float:
    return cpu_seconds(lambda: model.optimal_gains(TOL))


def _curve(states: int) -> dict[str, float]:
    """The curve at T = 1e5 against warm policy iteration and a linear program at every t."""
    model, T = _knots(states, 10**5), 10**5
    curve, seconds = model.optimal_gains(TOL), _curve_seconds(model)
    block = np.arange(40_000, 42_000)
    mdps = [model.at(int(t)) for t in block]
    rewards = np.array([mdp.rewards for mdp in mdps])
    rows = np.array([mdp.transitions for mdp in mdps])
    start = gain.solve(model.space, rewards[0], rows[0]).policy

    def every_t() -> list[gain.Solution]:
        return gain.solve_many(model.space, rewards, rows, tol=1e-9, warm=start)

    every = cpu_seconds(every_t, rounds=3) * T / block.size
    truth = np.array([one.gain for one in every_t()])
    error = float(np.abs(curve.evaluate(block)[0] - truth).max())
    assert error <= curve.error <= TOL, (error, curve.error)
    begin = time.process_time()
    for i in range(0, block.size, block.size // 60):
        value = _lp(model.space, rewards[i], rows[i])
        assert abs(value - truth[i]) < 1e-7
    program = (time.process_time() - begin) / len(range(0, block.size, block.size // 60)) * T
    size = f"curve, S = {states}"
    return {
        f"{size}: warm policy iteration at every t / curve": every / seconds,
        f"{size}: linear program at every t / curve": program / seconds,
        f"{size}: models solved": float(curve.solves),
        f"{size}: largest error seen / stated": error / curve.error,
    }


def _lp(space: wd.StateActions, rewards: np.ndarray, rows: np.ndarray) -> float:
    """The dual program, as small as it gets: min rho, rho + h(s) >= r + P h."""
    own = csr_array((np.ones(rewards.size), (np.arange(rewards.size), space.state_of)))
    left = hstack([csr_array(rows) - own, -np.ones((rewards.size, 1))])
    cost = np.concatenate([np.zeros(space.n_states), [1.0]])
    fixed = csr_array(([1.0], ([0], [0])), shape=(1, space.n_states + 1))
    return float(
        linprog(
            cost, A_ub=vstack([left]), b_ub=-rewards, A_eq=fixed, b_eq=[0.0], bounds=(None, None)
        ).fun
    )


def _one_gain(states: int) -> dict[str, float]:
    """One dense model, to a tighter tolerance than the peer's."""
    space = wd.StateActions.uniform(states, 4)
    rng = np.random.default_rng(states)
    mdp = wd.MDP(
        space, rng.random(space.n_pairs), rng.dirichlet(np.full(states, 0.3), space.n_pairs)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        np.savez(path, S=states, A=4, P=mdp.transitions, R=mdp.rewards)
        theirs = ask("pymdptoolbox", PEER, str(path), "1e-8", "1000000", "9")
    ours = cpu_seconds(lambda: mdp.solve(tol=1e-9), rounds=15)
    assert abs(theirs["gain"] - mdp.solve().gain) < 1e-7
    return {f"gain, S = {states}: pymdptoolbox to 1e-8 / ours to 1e-9": theirs["seconds"] / ours}


def _rivers() -> dict[str, float]:
    river = wd.envs.riverswim_mdp(1000)
    ours = cpu_seconds(lambda: river.solve(tol=1e-9), rounds=5)
    assert abs(river.solve().gain - 3 / 7) < 1e-8
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "river.npz"
        rows = river.transitions
        np.savez(
            path, S=1000, A=2, data=rows.data, indices=rows.indices, indptr=rows.indptr,
            R=river.rewards,
        )  # fmt: skip
        theirs = ask("pymdptoolbox", PEER, str(path), "1e-8", "200000", "1")
    large = wd.envs.riverswim_mdp(100_000)
    begin = time.process_time()
    error = abs(large.solve(tol=1e-7).gain - 3 / 7)
    return {
        "RiverSwim-1000: pymdptoolbox (at most 200,000 sweeps) / ours": theirs["seconds"] / ours,
        "RiverSwim-1000: error of pymdptoolbox": abs(theirs["gain"] - 3 / 7),
        "RiverSwim-1000: error of ours": abs(river.solve().gain - 3 / 7),
        "RiverSwim-100000: error of ours": error,
        "RiverSwim-100000: CPU seconds": time.process_time() - begin,
    }


def _diameter(states: int) -> dict[str, float]:
    """Pruned against policy iteration for every target, both in LAPACK's hands."""
    space = wd.StateActions.uniform(states, 4)
    rng = np.random.default_rng(states)
    rows = rng.dirichlet(np.full(states, 0.3), space.n_pairs)
    ours = cpu_seconds(lambda: solve_diameter(space, rows), rounds=3)
    begin = time.process_time()
    some = range(0, states, max(1, states // 20))
    worst = max(_every_target(space, rows, target) for target in some)
    full = (time.process_time() - begin) / len(some) * states
    assert worst <= solve_diameter(space, rows).upper * (1 + 1e-9)
    return {f"diameter, S = {states}: policy iteration for every target / ours": full / ours}


def _every_target(space: wd.StateActions, rows: np.ndarray, target: int) -> float:
    """Howard's policy iteration for the least expected times to one target."""
    states = np.flatnonzero(np.arange(space.n_states) != target)
    pairs = space.offsets[:-1].copy()
    while True:
        matrix = np.eye(states.size) - rows[pairs[states]][:, states]
        h = np.zeros(space.n_states)
        h[states] = np.linalg.solve(matrix, np.ones(states.size))
        values = (1.0 + rows @ h).reshape(space.n_states, -1)
        better = space.offsets[:-1] + values.argmin(axis=1)
        gain_of = values[np.arange(space.n_states), pairs - space.offsets[:-1]]
        better = np.where(values.min(axis=1) < gain_of - 1e-9 * h.max(), better, pairs)
        if np.array_equal(better, pairs):
            return float(h.max())
        pairs = better
