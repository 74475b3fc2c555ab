"""Any model at all: hypothesis chooses spaces, knots, schedules and cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windage as wd
from tests.models import literal_budgets, random_mdp

schedules = st.one_of(
    st.builds(wd.schedules.Cosine, st.floats(0, 20)),
    st.builds(wd.schedules.Linear, st.floats(0, 20)),
    st.builds(wd.schedules.RandomWalk, st.integers(0, 9), st.integers(1, 60), st.floats(0.01, 2)),
    st.builds(
        lambda a, b, n: wd.schedules.Burst(min(a, b) / 101, (max(a, b) + 1) / 101, n),
        st.integers(0, 99),
        st.integers(0, 99),
        st.integers(1, 5),
    ),
    st.lists(st.integers(1, 60), unique=True).map(lambda t: wd.schedules.Steps(sorted(t))),
)
spaces = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(wd.StateActions)


@st.composite
def models(draw):
    space = draw(spaces)
    horizon = draw(st.integers(1, 60))
    density = draw(st.sampled_from([0.2, 0.6, 1.0]))
    bases = [random_mdp(space, draw(st.integers(0, 99)), density) for _ in range(3)]
    kind = draw(st.sampled_from(["blend", "knots", "function"]))
    if kind == "blend":
        return wd.DriftingMDP.blend(bases, draw(schedules), draw(schedules), horizon=horizon)
    if kind == "knots":
        later = draw(st.lists(st.integers(2, max(2, horizon)), unique=True, max_size=5))
        times = [1, *sorted(t for t in later if t <= horizon)]
        chosen = [bases[draw(st.integers(0, 2))] for _ in times]
        return wd.DriftingMDP(
            space,
            times,
            [mdp.rewards for mdp in chosen],
            [mdp.transitions for mdp in chosen],
            horizon=horizon,
            interpolation=draw(st.sampled_from(["linear", "step"])),
        )
    order = draw(st.lists(st.integers(0, 2), min_size=horizon, max_size=horizon))
    return wd.DriftingMDP.from_function(
        lambda t: (bases[order[t - 1]].rewards, bases[order[t - 1]].transitions),
        space=space,
        horizon=horizon,
    )


@given(models(), st.data())
def test_budgets_of_any_interval_are_those_of_the_definition(model, data):
    first = data.draw(st.integers(1, model.horizon))
    last = data.draw(st.integers(first, model.horizon))
    r, p = literal_budgets(model, first, last)
    budgets = model.budgets(first, last)
    assert budgets.reward == pytest.approx(sum(r), abs=1e-11)
    assert budgets.transition == pytest.approx(sum(p), abs=1e-11)
    assert budgets.reward_steps == pytest.approx(np.array(r), abs=1e-12)
    assert budgets.transition_steps == pytest.approx(np.array(p), abs=1e-12)


@given(models(), st.integers(0, 3), st.data())
def test_a_run_split_anywhere_is_the_run(model, seed, data):
    whole = wd.run(model, _agent(model), seed=seed)
    agent, parts = _agent(model), []
    while agent.t <= model.horizon:
        left = model.horizon - agent.t + 1
        parts.append(wd.run(model, agent, seed=seed, steps=data.draw(st.integers(1, left))))
        agent = wd.agents.restore(agent.state())
    assert np.concatenate([part.rewards for part in parts]).tobytes() == whole.rewards.tobytes()
    assert np.concatenate([part.actions for part in parts]).tobytes() == whole.actions.tobytes()
    assert parts[-1].final_state == whole.final_state


@given(models())
def test_runs_make_possible_moves_only(model):
    wd.testing.check_drifting_mdp(model, communicating=False, times=5, steps=60)


@given(models())
def test_relabelling_states_relabels_everything(model):
    space = model.space
    order = np.arange(space.n_states)[::-1]
    renamed = wd.StateActions(space.counts[order])
    pairs = np.concatenate([np.arange(space.offsets[s], space.offsets[s + 1]) for s in order])

    def function(t):
        mdp = model.at(t)
        return mdp.rewards[pairs], np.asarray(mdp.transitions)[pairs][:, order]

    mirror = wd.DriftingMDP.from_function(function, space=renamed, horizon=model.horizon)
    mine, theirs = model.budgets(), mirror.budgets()
    assert theirs.reward == pytest.approx(mine.reward, abs=1e-11)
    assert theirs.transition == pytest.approx(mine.transition, abs=1e-11)
    assert theirs.changes == mine.changes
    assert _cut_off(mirror) == _cut_off(model)


def _cut_off(model):
    return {t for hole in model.disconnections() for t in range(hole.first, hole.last + 1)}


def _agent(model):
    return wd.agents.make("random", model.space, horizon=model.horizon, seed=1)
