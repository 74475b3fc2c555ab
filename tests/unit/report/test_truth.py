"""What the oracle's picture is made of: policies, gains and diameters against their definitions."""

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.cli.show import ask, oracle_rows, show
from windage.errors import NotConverged
from windage.report import truth_of
from windage.report.truth import policy_course, time_shares


def improvement(mdp, actions):
    """The most any single action adds to a policy: at most zero means optimal, in every state.

    Gain and bias of the policy from its own equations g + h = r + P h, h(0) = 0; one closed class.
    """
    S = mdp.space.n_states
    pairs = mdp.space.offsets[:-1] + actions
    p = np.asarray(mdp.transitions)
    system = np.eye(S) - p[pairs]
    system[:, 0] = 1.0
    solved = np.linalg.solve(system, mdp.rewards[pairs])
    g, h = solved[0], np.concatenate([[0.0], solved[1:]])
    return float((mdp.rewards + p @ h - h[mdp.space.state_of]).max() - g)


def spiking_arms(horizon, at):
    """Two arms; the worse one is the better for a single step."""
    return wd.DriftingMDP.from_function(
        lambda t: ([0.5, 1.0 if t == at else 0.4], [[1.0], [1.0]]),
        space=wd.StateActions([2]), horizon=horizon,
    )  # fmt: skip


MODELS = {
    "riverswim": lambda: wd.envs.make("riverswim", horizon=3000),
    "two-state-cosine": lambda: wd.envs.make("two-state-cosine", horizon=5000),
    "replacement": lambda: wd.envs.make("replacement", horizon=4000),
    "ride": lambda: wd.envs.make("ride", horizon=2500),
    "walk": lambda: wd.DriftingMDP.blend(
        [random_mdp(wd.StateActions([3, 2, 4]), seed) for seed in (1, 2)],
        wd.schedules.RandomWalk(seed=2, moves=40), wd.schedules.Cosine(cycles=3), horizon=3000,
    ),
    "knots": lambda: wd.DriftingMDP(
        (space := wd.StateActions([2, 3, 1])), [1, 900, 901, 2500],
        [(models := [random_mdp(space, seed) for seed in range(4)])[k].rewards for k in range(4)],
        [one.transitions for one in models], horizon=3000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_the_policy_is_optimal_at_any_time_and_changes_when_it_must(name):
    model = MODELS[name]()
    course = policy_course(model)
    assert course.starts[0] == 1
    assert course.changes > 0
    for t in np.random.default_rng(3).integers(1, model.horizon + 1, size=60):
        assert improvement(model.at(int(t)), course.at(int(t))) < 1e-9
    for k, start in enumerate(course.starts[1:].tolist()):
        before, after = course.actions[k], course.actions[k + 1]
        assert improvement(model.at(start - 1), before) < 1e-9
        assert improvement(model.at(start), after) < 1e-9
        assert improvement(model.at(start), before) > 1e-12, "it was still optimal"


@pytest.mark.parametrize("name", ["two-state-cosine", "ride"])
def test_the_policy_earns_what_the_linear_program_says(name):
    model = MODELS[name]()
    course = policy_course(model)
    for t in (1, 700, 1234, 2500):
        mdp = model.at(t)
        chain = np.asarray(mdp.transitions)[mdp.space.offsets[:-1] + course.at(t)]
        stationary = np.linalg.matrix_power(0.5 * (chain + np.eye(len(chain))), 1 << 14)[0]
        earned = stationary @ mdp.rewards[mdp.space.offsets[:-1] + course.at(t)]
        assert earned == pytest.approx(wd.gain_lp(mdp).primal, abs=1e-9)


def test_no_jump_is_missed():
    """Peril: the kernel changes every tau steps, the goal every 2 tau; both are known (1.12)."""
    tau, T = 3, 4000
    course = policy_course(wd.envs.make("peril", horizon=T, tau=tau))
    for t in range(1, T + 1):
        first_kernel = (t - 1) // tau % 2 == 0
        goal = 1 if (t - 1) // (2 * tau) % 2 == 0 else 0
        stay, move = (0, 1) if first_kernel else (1, 0)
        assert course.at(t).tolist() == [stay if s == goal else move for s in (0, 1)]
    assert course.changes == len({(t - 1 + tau) // (2 * tau) for t in range(1, T + 1)}) - 1


def test_a_change_for_a_single_step_of_a_stream_is_seen():
    course = policy_course(spiking_arms(3500, at=2345))
    assert course.starts.tolist() == [1, 2345, 2346]
    assert course.actions.tolist() == [[0], [1], [0]]


def test_a_policy_that_is_as_good_is_no_change():
    space = wd.StateActions([3])  # arms 0 and 1 are the same, arm 2 wins in the middle
    models = [wd.MDP(space, r, [[1.0]] * 3) for r in ([0.6, 0.6, 0.2], [0.3, 0.3, 0.9])]
    model = wd.DriftingMDP.blend(models, wd.schedules.Cosine(cycles=2), horizon=2000)
    course = policy_course(model)
    assert course.changes == 4
    assert course.actions[:, 0].tolist() == [0, 2, course.actions[2, 0], 2, course.actions[4, 0]]
    assert 2 not in course.actions[[0, 2, 4], 0]


def test_a_long_horizon_costs_few_solves():
    course = policy_course(wd.envs.make("riverswim", horizon=1_000_000))
    assert course.starts.tolist() == [1, 250_001, 500_001, 750_001]
    assert (course.actions == course.actions[:, :1]).all()
    assert course.actions[:, 0].tolist() == [1, 0, 1, 0]
    assert course.solves < 1000


def test_the_course_of_one_state():
    model = MODELS["ride"]()
    course = policy_course(model)
    for s in range(model.space.n_states):
        starts, actions = course.of_state(s)
        literal = [course.at(t)[s] for t in range(1, model.horizon + 1)]
        places = np.searchsorted(starts, np.arange(1, model.horizon + 1), side="right") - 1
        assert np.array_equal(actions[places], literal)
        assert (np.diff(actions) != 0).all()


@pytest.mark.parametrize("name", ["riverswim", "ride"])
def test_time_shares_against_the_exact_law_of_the_path(name):
    model = MODELS[name]()
    course = policy_course(model)
    law, shares = np.eye(1, model.space.n_states)[0], np.zeros(model.space.n_states)
    for t in range(1, model.horizon + 1):
        shares += law / model.horizon
        pairs = model.space.offsets[:-1] + course.at(t)
        law = law @ np.asarray(model.at(t).transitions)[pairs]
    assert np.allclose(time_shares(model, course), shares, atol=0.02)


def test_time_shares_of_a_chain_with_several_classes():
    stuck = wd.MDP(wd.StateActions([1, 1, 1]), [0, 0, 1.0], np.eye(3))
    model = wd.DriftingMDP.stationary(stuck, horizon=50)
    assert np.allclose(time_shares(model, policy_course(model)), [1, 0, 0])


def test_gains_and_diameters_are_those_of_the_models():
    T = 150
    model = wd.envs.make("two-state-cosine", horizon=T)
    stages = []
    truth = truth_of(model, progress=stages.append)
    best = [wd.gain_lp(model.at(t)).primal for t in range(1, T + 1)]
    assert truth.mean_gain == pytest.approx(np.mean(best), abs=truth.gains.error + 1e-9)
    assert truth.gain_sum == pytest.approx(np.sum(best), abs=T * (truth.gains.error + 1e-9))
    # two states: the larger of the two chances to switch decides
    switch = 0.5 + 0.4 * np.cos(2 * np.pi * truth.times / T)
    assert np.allclose(truth.diameters, 1 / np.maximum(switch, 1 - switch), rtol=1e-9)
    assert truth.times.tolist() == list(range(1, T + 1))
    assert truth.largest.lower == pytest.approx(truth.diameters.max(), rel=1e-3)
    assert truth.diameters.max() <= truth.largest.upper
    assert not truth.holes
    assert len(stages) == len(set(stages)) == 4


def test_where_it_does_not_communicate_is_exact():
    rng = np.random.default_rng(0)
    r, p = rng.random((300, 3, 2)), rng.dirichlet(np.ones(3), size=(300, 3, 2))
    lost = [20, 21, 22, 250]
    p[np.array(lost) - 1, 0] = [1.0, 0.0, 0.0]
    truth = truth_of(wd.DriftingMDP.from_arrays(r, p))
    assert [(hole.first, hole.last) for hole in truth.holes] == [(20, 22), (250, 250)]
    assert truth.times[np.isinf(truth.diameters)].tolist() == lost
    assert (truth.largest.lower, truth.largest.t) == (np.inf, 20)


def test_diameters_too_long_for_floating_point_keep_back_nothing_else():
    """An epidemic of 60: D is about 2e12 and refused, gains and policies are not."""
    model = wd.envs.make("epidemic", population=60, horizon=40, cycles=1)
    with pytest.raises(NotConverged, match="the longest time to .* lies between"):
        truth_of(model)
    remarks = []
    truth = ask(model, lambda stage: None, remarks)
    assert len(remarks) == 1
    assert remarks[0].startswith("D: left out, the longest time to")
    swept = [model.at(t).solve(1e-7, method="value-iteration").gain for t in range(1, 41)]
    assert truth.gain_sum == pytest.approx(sum(swept), abs=1e-4)
    rows = {row[0]: row[1] for row in oracle_rows(truth, {})}
    assert rows["D max"] == "not known"
    assert rows["mean rho*"].startswith(f"{sum(swept) / 40:.4f}"[:5])
    assert truth.policies.starts[0] == 1
    with pytest.raises(NotConverged, match="leave the oracle out with --no-oracle"):
        ask(model, lambda stage: None)


def test_show_goes_on_without_diameters(tmp_path, capsys):
    target = tmp_path / "epidemic.png"
    settings = ["population=60", "cycles=1"]
    show("epidemic", horizon=40, settings=settings, output=target)
    said = capsys.readouterr().out
    assert "D max              not known" in said
    assert "D: left out, the longest time to" in said
    assert target.exists()
    assert target.with_name("epidemic-oracle.png").exists()
