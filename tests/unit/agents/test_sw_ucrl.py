"""SW-UCRL: the doubling rule alone over a window, and the window of its theorem."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import windage as wd
from tests.models import draw_model, draw_window
from tests.twins.optimistic import UCRL2, replay

SPACE = wd.StateActions([2, 3, 1])


def best_window(space, T, changes, D, delta):
    """W* = (16.53 T D S sqrt(A ln(T / delta)) / l)^(2/3), with 50 digits."""
    with mpmath.workdps(50):
        SA, S = mpmath.mpf(space.n_pairs), space.n_states
        log = mpmath.log(mpmath.mpf(T) / mpmath.mpf(delta))
        factor = mpmath.mpf("16.53") * T * mpmath.mpf(D) * S * mpmath.sqrt(SA / S * log)
        return (factor / changes) ** (mpmath.mpf(2) / 3)


@pytest.mark.parametrize("T", [10**4, 10**6, 10**9])
@pytest.mark.parametrize("changes", [1, 3, 50])
@pytest.mark.parametrize("D", [1.0, 14.7])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_window_is_that_of_the_theorem(T, changes, D, delta):
    """The nearest integer, at most T; A = SA / S is a mean, here 2."""
    given = {"horizon": T, "changes": changes, "diameter": D, "delta": delta}
    if T == 10**9:  # the formula, at a horizon whose samples nobody wants to store
        space = wd.StateActions([1])
        changes = given["changes"] = 10**6 * changes
    else:
        space = SPACE
    wanted = min(T, int(mpmath.nint(best_window(space, T, changes, D, delta))))
    agent = wd.SWUCRL.tuned(space, **given)
    assert agent.window == wanted
    assert agent.delta == delta


def test_windows_that_the_theorem_does_not_give():
    given = {"horizon": 300, "changes": 2, "diameter": 3.0}
    assert best_window(SPACE, 300, 2, 3.0, 0.05) > 300
    assert wd.SWUCRL.tuned(SPACE, **given).window == 300
    assert wd.SWUCRL.tuned(SPACE, **given | {"changes": 0}).window == 300
    one_state = {"horizon": 10_000, "changes": 2_000}  # D = 0 would leave a window of 1
    floor = round(best_window(SPACE, 10_000, 2_000, 1.0, 0.05))
    assert wd.SWUCRL.tuned(SPACE, **one_state, diameter=0.0).window == floor > 1


def test_facts_of_a_model_tune_it():
    model = wd.envs.make("peril", tau=30_000, repeats=1)
    told = wd.agents.facts("sw-ucrl", model)
    assert told["budgets"].changes == 3
    assert told["diameter"] == pytest.approx(1.0, abs=2e-3)
    agent = wd.agents.make("sw-ucrl", model.space, horizon=model.horizon, **told)
    wanted = best_window(model.space, model.horizon, 3, told["diameter"], 0.05)
    assert agent.window == min(model.horizon, int(mpmath.nint(wanted)))
    assert "diameter" not in wd.agents.facts("sw-ucrl", model, window=5)
    made = wd.agents.make("sw-ucrl", model.space, horizon=100, window=5)
    assert wd.agents.restore(made.state()).window == 5


@pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning")
def test_episodes_are_literal():
    """UCRL2's pseudo-code, recounting the last W samples at the start of every episode."""
    forgot, reasons = 0, set()
    for seed in range(150):
        rng = np.random.default_rng([seed, 11])
        model = draw_model(rng, 9000 + seed)
        space, T = model.space, model.horizon
        W = draw_window(rng, T)
        scale, delta = rng.choice([1.0, 0.3, 0.1, 0.05]), rng.uniform(0.01, 0.5)
        clip = bool(rng.random() < 0.5)
        agent = wd.SWUCRL(
            space, horizon=T, window=W, delta=delta, radii=wd.Radii.ucrl2().scaled(scale),
            clip=clip, ties="lowest", warm_start=False,
        )  # fmt: skip
        run = wd.run(model, agent, seed=seed)
        twin = UCRL2(space, horizon=T, window=W, delta=delta, scale=scale, clip=clip, ties="lowest")
        reasons |= replay(twin, run)
        forgot += any(tau > W + 1 for tau, *_ in twin.episodes)
    assert reasons == {"visits"}
    assert forgot > 50


def test_no_boundary_ends_an_episode():
    """At multiples of W episodes go on."""
    model = wd.envs.make("riverswim", horizon=3000)
    agent = wd.SWUCRL(model.space, horizon=3000, window=200, ties="lowest")
    episodes = wd.run(model, agent, seed=2).episodes
    assert set(episodes.reason[:-1].tolist()) == {"visits"}
    across = episodes.start // 200 < (episodes.start + episodes.length - 1) // 200
    assert across.any()
    one = wd.agents.SWUCRL(model.space, horizon=100, window=1, ties="lowest")
    assert set(wd.run(model, one, seed=2, steps=100).episodes.reason[:-1].tolist()) == {"visits"}
