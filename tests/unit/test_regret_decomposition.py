"""The four terms of Theorem 1's proof against a literal twin, and what they refuse."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import windage as wd
from tests.paper.runs import SUITE, WORLDS, played
from windage.regret_decomposition import far_apart

RUNS = pytest.mark.parametrize("name", SUITE)


def terms_of(name):
    world, options = SUITE[name]
    model = WORLDS[world]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        agent = wd.SWUCRL2CW(model.space, horizon=model.horizon, seed=5, **options)
    return wd.regret_terms(wd.run(model, agent, seed=6), model)


def literal(name, constants):
    """The sums of the appendix, written down step by step from a run played step by step."""
    run, (drift, widening, radius) = played(name), constants
    model, W, eta = run.model, run.W, SUITE[name][1]["widening"]
    space, T = model.space, model.horizon
    radii = SUITE[name][1].get("radii", wd.Radii.paper())
    D = model.max_diameter().upper
    models = [model.at(t) for t in range(1, T + 1)]
    moved = [
        (np.abs(b.rewards - a.rewards).max(), np.abs(b.transitions - a.transitions).sum(1).max())
        for a, b in itertools.pairwise(models)
    ]
    held = []
    for start in run.starts:
        p = start.region.p_hat.toarray()
        apart = np.abs(models[start.tau - 1].transitions - p).sum(1)
        held.append(all(apart[k] <= start.region.width[k] + 1e-12 or start.region.width[k] >= 2
                        for k in range(space.n_pairs) if start.N[k] > 0))  # fmt: skip
    Q = []
    for m, start in enumerate(run.starts):
        if not held[m] and all(start.tau - run.starts[q].tau > W for q in Q):
            Q.append(m)
    near = {
        m for m, start in enumerate(run.starts)
        if any(0 <= start.tau - run.starts[q].tau <= W for q in Q)
    }  # fmt: skip
    found = dict.fromkeys(("spade", "club", "diamond", "heart"), 0.0)
    bound = {"space": space, "horizon": T, "delta": 0.05}
    for t in range(1, T + 1):
        m, pair, s = int(run.number[t - 1]), int(run.pairs[t - 1]), int(run.states[t - 1])
        start, now = run.starts[m], models[t - 1]
        if m in near:
            found["spade"] += now.solve().gain - now.rewards[pair]
            continue
        warm = D * (1 + start.warm / math.sqrt(start.tau))
        var = np.sum([(0.0, 0.0)] + [moved[q - 1] for q in range(max(1, start.tau - W), t)], axis=0)
        n = int(start.N[pair])
        rad_r, rad_p = radii.reward(n, **bound), radii.transition(n, **bound)
        if n == 0:
            rad_r, rad_p = max(rad_r, 0.5), max(rad_p, 1.0)
        turn = now.transitions[pair] @ start.bias - start.bias[s]
        found["club"] += turn + 1 / math.sqrt(start.tau)
        found["diamond"] += 2 * var[0] + drift * warm * var[1] + widening * warm * eta
        found["heart"] += 2 * rad_r + radius * warm * rad_p
    return found, set(Q), near


@pytest.mark.parametrize("name", ["river, cold", "peril", "ragged", "two states, printed radii"])
def test_terms_by_the_letter(name):
    terms = terms_of(name)
    for which, constants in (("printed", (4, 2, 4)), ("sharp", (1, 0.5, 1))):
        twin, Q, near = literal(name, constants)
        made = getattr(terms, which)
        assert made.suits == pytest.approx(twin, rel=1e-6, abs=1e-2)
        assert made.total == pytest.approx(sum(twin.values()), rel=1e-6, abs=1e-2)
        assert set(np.flatnonzero(terms.separated)) == Q
        assert set(np.flatnonzero(terms.bad)) == near


def test_what_is_far_apart():
    starts = np.array([1, 4, 11, 12, 13, 30])
    wanted = far_apart(starts, np.array([False, True, True, True, True, True]), 8)
    assert wanted.tolist() == [False, True, False, False, True, True]  # 12 - 4 = 8 is not > 8


@RUNS
def test_parts_make_up_the_terms(name):
    made = terms_of(name)
    for terms in (made.printed, made.sharp):
        parts = (terms.bad, terms.switching, terms.planning, terms.reward_drift,
                 terms.transition_drift, terms.widening, terms.reward_radii,
                 terms.transition_radii)  # fmt: skip
        assert sum(parts) == pytest.approx(terms.total)
        assert terms.suits[terms.largest] == max(terms.suits.values())
    assert made.sharp.total <= made.printed.total
    assert made.regret.total == pytest.approx(
        wd.dynamic_regret(played_run(name), WORLDS[SUITE[name][0]]()).total
    )
    assert f"{made.regret.total:,.4g}" in made.explain()
    assert f"promised={made.is_promised}" in repr(made)


def played_run(name):
    world, options = SUITE[name]
    model = WORLDS[world]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        agent = wd.SWUCRL2CW(model.space, horizon=model.horizon, seed=5, **options)
    return wd.run(model, agent, seed=6)


def test_a_model_that_falls_apart_is_refused():
    space = wd.StateActions([1, 1])
    still = wd.MDP(space, [0.2, 0.4], [[1, 0], [0, 1]])
    model = wd.DriftingMDP.stationary(still, horizon=50)
    agent = wd.SWUCRL2CW(space, horizon=50, window=20, widening=0.3)
    run = wd.run(model, agent)
    with pytest.raises(wd.InputError, match="D_max is infinite"):
        wd.regret_terms(run, model)
    assert wd.regret_terms(run, model, diameter=3.0).diameter == 3.0
