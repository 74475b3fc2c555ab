"""SWUCRL2-CW for practice: its numbers against formulas with 50 digits, and what words mean."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import windage as wd
from windage.agents.optimistic.swucrl2cw import SLACK, PracticalSWUCRL2CW
from windage.confidence import tuning
from windage.errors import InputError

SPACES = {
    "two": wd.StateActions([2, 2]),
    "ragged": wd.StateActions([2, 3, 1, 1]),
    "large": wd.StateActions.uniform(states=50, actions=5),
}


def order(space, T, B):
    """S^(2/3) A^(1/2) ((B + 1) / T)^(1/4), A a mean."""
    with mpmath.workdps(50):
        S = mpmath.mpf(space.n_states)
        A = mpmath.mpf(sum(space.counts.tolist())) / S
        root = ((mpmath.mpf(B) + 1) / T) ** mpmath.mpf("0.25")
        return float(mpmath.cbrt(S) ** 2 * mpmath.sqrt(A) * root)


def bandit_order(A, T, Br):
    with mpmath.workdps(50):
        drift = mpmath.cbrt(mpmath.mpf(A) * mpmath.mpf(Br) / T)
        return float(max(drift, mpmath.sqrt(mpmath.mpf(A) / T)))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(
    ("T", "Br", "Bp"),
    [
        (1, 0.0, 0.0),
        *((T, *B) for T in (777, 5000, 10**6) for B in ((0, 0), (3.2, 3.2), (0, 0.5), (17.25, 1))),
    ],
)
@pytest.mark.filterwarnings("ignore:a widening of 2 makes:windage.errors.ParameterWarning")
def test_slack_window_and_widening_for_known_budgets(name, T, Br, Bp):
    space = SPACES[name]
    xi = order(space, T, Br + Bp)
    assert tuning.slack(space, T, Br, Bp) == pytest.approx(xi, rel=1e-14)
    agent = wd.SWUCRL2CW.practical(space, horizon=T, reward_budget=Br, transition_budget=Bp)
    assert agent.slack == pytest.approx(8.0 * xi, rel=1e-14)
    S, A = space.n_states, space.n_pairs / space.n_states
    W = 3 * S ** (2 / 3) * (A * T / (Br + Bp + 1)) ** 0.5
    assert agent.window == min(T, max(1, round(W)))
    assert agent.widening == pytest.approx(min(2.0, ((Bp + 1) * W / T) ** 0.5), rel=1e-12)
    assert (agent.radii, agent.ties) == (wd.Radii.laplace(), "sampled")
    assert type(agent) is PracticalSWUCRL2CW


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("T", [777, 10**6])
def test_without_budgets_it_is_oblivious(name, T):
    space = SPACES[name]
    agent = wd.SWUCRL2CW.practical(space, horizon=T)
    plain = wd.SWUCRL2CW.oblivious(space, horizon=T)
    assert (agent.window, agent.widening) == (plain.window, plain.widening)
    assert agent.slack == pytest.approx(SLACK * order(space, T, 0.0), rel=1e-14)
    assert tuning.slack(space, T) == tuning.slack(space, T, 0.0, 0.0)


@pytest.mark.parametrize("A", [1, 2, 8])
@pytest.mark.parametrize("Br", [0.0, 0.01, 1.0, 40.0])
def test_one_state_has_the_order_of_bandits(A, Br):
    """(A B_r / T)^(1/3) of the remark; what a stationary bandit costs anyway if that is less."""
    space, T = wd.StateActions([A]), 5000
    xi = bandit_order(A, T, Br)
    assert tuning.slack(space, T, Br, 0.0) == pytest.approx(xi, rel=1e-14)
    assert tuning.slack(space, T, Br, 9.0) == tuning.slack(space, T, Br, 0.0)
    agent = wd.SWUCRL2CW.practical(space, horizon=T, reward_budget=Br, transition_budget=0.0)
    assert agent.slack == pytest.approx(SLACK * xi, rel=1e-14)
    plain = wd.SWUCRL2CW.bandit(space, horizon=T, reward_budget=Br)
    assert (agent.window, agent.widening) == (plain.window, plain.widening)


def test_words_and_numbers():
    model = wd.envs.make("riverswim", horizon=3000)
    space, B = model.space, model.budgets()
    made = {"horizon": 3000, "budgets": B}
    make = "swucrl2-cw-practical"
    told = wd.agents.make(make, space, **made)
    same = wd.agents.make(make, space, slack="tuned", window="tuned", widening="tuned", **made)
    assert told.configuration() == same.configuration()
    by_name = wd.SWUCRL2CW.practical(
        space, horizon=3000, reward_budget=B.reward, transition_budget=B.transition
    )
    assert by_name.configuration() == told.configuration()
    with pytest.warns(wd.ParameterWarning, match="there are no budgets"):
        blind = wd.agents.make(make, space, horizon=3000)
    less = wd.agents.make(make, space, slack="oblivious", **made)
    assert less.slack == blind.slack < told.slack
    assert less.window == told.window != blind.window
    fixed = wd.agents.make(make, space, slack=0.25, ties="previous", radii="proof", **made)
    assert (fixed.slack, fixed.ties, fixed.radii.label) == (0.25, "previous", "proof")
    with pytest.raises(InputError, match='slack: is "tuned", and there are no budgets'):
        wd.agents.make(make, space, horizon=3000, slack="tuned")
    with pytest.raises(InputError, match="slack: no such choice: 'tight'"):
        wd.agents.make(make, space, slack="tight", **made)


def test_the_theorem_still_speaks_of_it():
    """Laplace radii and a positive widening: no warning, and none when it is restored."""
    agent = wd.SWUCRL2CW.practical(SPACES["ragged"], horizon=500)
    assert agent.radii.keeps_guarantee
    assert agent.covers_drift
    agent.observe(0, agent.act(0), 0.5, 1)
    again = wd.agents.restore(agent.state())
    assert type(again) is PracticalSWUCRL2CW
    assert again.state() == agent.state()
    with pytest.warns(wd.GuaranteeWarning, match="radii do not cover"):
        wd.SWUCRL2CW.practical(SPACES["ragged"], horizon=500, radii=wd.Radii.paper().scaled(0.1))


def test_with_no_slack_and_no_draws_it_is_swucrl2cw():
    """The same learner: only the id, hence its draws, differ."""
    model = wd.envs.make("riverswim", horizon=1500)
    options = {
        "horizon": 1500, "window": 300, "widening": 0.2, "radii": wd.Radii.laplace(),
        "ties": "lowest", "slack": 0.0,
    }  # fmt: skip
    paper = {"episodes": "paper"} if "episodes" in wd.agents.parameters(PracticalSWUCRL2CW) else {}
    a = wd.run(model, PracticalSWUCRL2CW(model.space, **options, **paper), seed=2)
    b = wd.run(model, wd.SWUCRL2CW(model.space, **options), seed=2)
    assert a.actions.tolist() == b.actions.tolist()
    assert a.episodes.gain.tolist() == b.episodes.gain.tolist()


def test_where_sets_say_nothing_the_draw_decides():
    """All of a state's actions tied: the greedy action of the drawn model is played.

    Pairs visited 150 times make the draw predictable: action 1 pays 0.9, action 0 pays 0.1.
    """
    space, played = wd.StateActions([2, 2]), []
    for seed in range(8):
        agent = wd.SWUCRL2CW.practical(space, horizon=10**6, slack=5.0, seed=seed)
        for i in range(150):
            for s in range(2):
                agent.preload(s, 0, float(i % 10 == 0), i % 2)
                agent.preload(s, 1, float(i % 10 != 0), i % 2)
        played.append([agent.act(0), (agent.withdraw(), agent.act(1))[1]])
    assert np.array(played).min() == 1
    agent = wd.SWUCRL2CW.practical(space, horizon=10**6, ties="lowest", slack=5.0)
    assert agent.act(0) == 0


def test_budgets_come_in_pairs():
    for one in ("reward_budget", "transition_budget"):
        other = {"reward_budget": "transition_budget"}.get(one, "reward_budget")
        with pytest.raises(InputError, match=f"{other}: one budget is given and the other is not"):
            wd.SWUCRL2CW.practical(SPACES["two"], horizon=100, **{one: 1.0})


def test_episodes_grow_by_one_step_at_most():
    """Step 3 of the argument, and the number of episodes it allows."""
    model = wd.envs.make("riverswim", horizon=20_000)
    run = wd.run(model, wd.agents.make("swucrl2-cw-practical", model.space, horizon=20_000,
                                       budgets=model.budgets()))  # fmt: skip
    lengths, reasons = run.episodes.length, run.episodes.reason
    assert (lengths[1:] <= lengths[:-1] + 1).all()
    grown = int((reasons == "length").sum())
    others = len(run.episodes) - grown
    assert 0 < grown <= math.sqrt(2 * (others + 1) * 20_000) + others + 1


def test_every_episode_draws_anew():
    """Nothing but the time differs: the draws of two episodes are not the same."""
    space = wd.StateActions([3])
    agent = wd.SWUCRL2CW.practical(space, horizon=4000)
    played = []
    for _ in range(300):
        played.append(agent.act(0))
        agent.observe(0, played[-1], 0.5, 0)
    assert {*played} == {0, 1, 2}
    later = played[-100:]
    assert max(later.count(a) for a in range(3)) < 90
