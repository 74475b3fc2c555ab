"""Dynamic regret against linear programs at every t, closed forms, and sums written out."""

import math
import tracemalloc
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import windage as wd
from tests.models import Weights, random_mdp
from tests.pages import random_run

RAGGED = wd.StateActions([2, 3, 1])


def a_blend(horizon=60):
    models = [random_mdp(RAGGED, seed) for seed in (0, 1)]
    return wd.DriftingMDP.blend(models, wd.schedules.Cosine(cycles=2), horizon=horizon)


def two_weights(horizon=60):
    models = [random_mdp(RAGGED, seed) for seed in (2, 3)]
    return wd.DriftingMDP.blend(
        models, wd.schedules.Linear(), wd.schedules.Cosine(cycles=1), horizon=horizon
    )


def a_stream(horizon=40):
    rng = np.random.default_rng(4)
    r, p = rng.random((horizon, 3, 2)), rng.dirichlet(np.ones(3), size=(horizon, 3, 2))
    return wd.DriftingMDP.from_arrays(r, p, noise="gaussian")


def steps(horizon=50):
    models = [random_mdp(RAGGED, seed, density=0.6) for seed in (5, 6)]
    rows = [[model.rewards for model in models], [model.transitions for model in models]]
    return wd.DriftingMDP(RAGGED, [1, 17], *rows, horizon=horizon, interpolation="step")


MODELS = [a_blend, two_weights, a_stream, steps]


def literal(model, run):
    """Regret of a full run from the definition: an LP a step, and sums in the order of time."""
    per_step, cumulative, observed = [], [], []
    path = drawn = 0.0
    for i in range(run.steps):
        frozen = model.at(run.first + i)
        rho = wd.gain_lp(frozen).primal
        paid = frozen.rewards[model.space.pair(int(run.states[i]), int(run.actions[i]))]
        per_step.append(rho - paid)
        path += rho - paid
        drawn += rho - run.rewards[i]
        cumulative.append(path)
        observed.append(drawn)
    return np.array(per_step), np.array(cumulative), np.array(observed)


# --- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MODELS)
def test_against_a_linear_program_at_every_t(make):
    model = make()
    run = random_run(model, seed=3)
    found = wd.dynamic_regret(run, model, tol=1e-8)
    per_step, cumulative, observed = literal(model, run)
    assert np.allclose(found.per_step, per_step, rtol=0, atol=2e-8)
    assert np.allclose(found.cumulative, cumulative, rtol=0, atol=2e-8 * run.steps)
    assert np.allclose(found.observed, observed, rtol=0, atol=2e-8 * run.steps)
    assert np.allclose(found.optimal, np.cumsum(per_step + run.mean_rewards), rtol=0, atol=1e-6)
    assert found.total == pytest.approx(cumulative[-1], abs=2e-8 * run.steps)
    assert found.total_observed == pytest.approx(observed[-1], abs=2e-8 * run.steps)
    assert (found.first, found.last) == (1, model.horizon)
    assert np.array_equal(found.times, np.arange(1, model.horizon + 1))
    assert found.per_step.dtype == found.cumulative.dtype == np.float64
    assert found.cumulative[-1] == found.total
    assert found.observed[-1] == found.total_observed
    assert found.optimal[-1] == found.total_optimal
    assert abs(found.total - found.total_observed) > 0.01  # noise tells the two apart
    assert found.share == pytest.approx(run.mean_rewards.sum() / found.total_optimal, rel=1e-12)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_the_error_holds_the_truth(tol):
    for make in (a_blend, two_weights):
        model = make()
        run = random_run(model)
        found = wd.dynamic_regret(run, model, tol)
        truth = math.fsum(literal(model, run)[0])
        assert abs(found.total - truth) <= found.error + 1e-10 * run.steps  # an LP is not exact
        each = model.optimal_gains(tol).evaluate(np.arange(1, model.horizon + 1))[1]
        assert math.fsum(each) < found.error <= math.fsum(each) + 1e-12
        assert found.error <= tol * run.steps + 1e-12


def test_a_rough_curve_is_rough_and_says_so():
    model = wd.envs.make("riverswim", horizon=800)
    run = random_run(model)
    rough, fine = (wd.dynamic_regret(run, model, tol) for tol in (0.03, 1e-9))
    assert 1.0 < rough.error < 12.0
    assert 1e-4 < abs(rough.total - fine.total) <= rough.error + fine.error
    assert fine.error <= 800 * 1e-9 + 1e-12


def test_peril_has_gain_one_and_the_oracle_loses_a_step_a_half_cycle():
    model = wd.envs.make("peril", tau=20, repeats=3)
    run = random_run(model)
    found = wd.dynamic_regret(run, model)
    assert np.allclose(found.per_step, 1.0 - run.mean_rewards, atol=1e-12)
    assert np.allclose(found.cumulative, np.arange(1, 241) - np.cumsum(run.mean_rewards))
    assert found.total_optimal == pytest.approx(240, abs=1e-9)
    best = wd.agents.make("oracle", model.space, horizon=240, problem=model)
    lost = wd.dynamic_regret(wd.run(model, best), model)
    # s_1 is not the goal, and the goal moves after every half-cycle: six ways of one step
    assert lost.total == pytest.approx(6.0, abs=1e-9)
    assert np.flatnonzero(lost.per_step > 0.5).tolist() == [0, 40, 80, 120, 160, 200]


def test_one_state_is_a_bandit_against_its_best_arm():
    space = wd.StateActions([3])
    means = np.array([[0.2, 0.5, 0.1], [0.9, 0.3, 0.1]])
    stay = np.ones((3, 1))
    model = wd.DriftingMDP(space, [1, 31], means, [stay, stay], horizon=50)
    run = random_run(model, seed=1)
    found = wd.dynamic_regret(run, model, tol=1e-10)
    w = np.minimum(np.arange(50) / 30, 1.0)[:, None]
    arms = (1 - w) * means[0] + w * means[1]
    expected = arms.max(axis=1) - arms[np.arange(50), run.actions]
    assert np.allclose(found.per_step, expected, atol=2e-10)
    assert found.per_step.min() > -1e-9


# --- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("every", [1, 4, 7, 1000])
def test_every_kth_step_is_the_full_regret_at_those_steps(make, every):
    model = make()
    full = wd.dynamic_regret(random_run(model), model)
    some = wd.dynamic_regret(random_run(model, record=every), model)
    kept = np.arange(every, model.horizon + 1, every)
    assert np.array_equal(some.times, kept)
    for name in ("per_step", "cumulative", "observed", "optimal"):
        assert np.allclose(
            getattr(some, name), getattr(full, name)[kept - 1], rtol=1e-12, atol=1e-12
        )
    for name in ("total", "total_observed", "total_optimal", "error"):
        assert getattr(some, name) == getattr(full, name)


@pytest.mark.parametrize("make", MODELS)
def test_totals_are_the_same_totals_and_nothing_else(make):
    model = make()
    full = wd.dynamic_regret(random_run(model), model)
    totals = wd.dynamic_regret(random_run(model, record="totals"), model)
    assert (totals.total, totals.total_observed) == (full.total, full.total_observed)
    assert (totals.total_optimal, totals.error) == (full.total_optimal, full.error)
    for column in (totals.times, totals.per_step, totals.cumulative, totals.observed):
        assert column.size == 0
    assert totals.share == full.share


@pytest.mark.parametrize("record", ["full", 8, "totals"])
def test_a_run_that_is_continued_has_the_regret_of_its_own_steps(record):
    model = a_blend(horizon=60)
    whole = wd.dynamic_regret(random_run(model), model, tol=1e-9)
    agent = wd.agents.make("random", model.space, horizon=60, seed=0)
    wd.run(model, agent, seed=0, steps=21)
    late = wd.dynamic_regret(wd.run(model, agent, seed=0, steps=30, record=record), model, tol=1e-9)
    assert (late.first, late.last) == (22, 51)
    assert late.total == pytest.approx(whole.cumulative[50] - whole.cumulative[20], abs=1e-12)
    assert late.total_observed == pytest.approx(whole.observed[50] - whole.observed[20], abs=1e-12)
    if record != "totals":
        places = late.times - 1
        assert late.times[0] == (22 if record == "full" else 24)
        expected = whole.cumulative[places] - whole.cumulative[20]
        assert np.allclose(late.cumulative, expected, rtol=0, atol=1e-12)


def test_long_sums_are_exact_to_the_last_digits():
    model = wd.envs.make("random-drift", horizon=200_000, noise="gaussian")
    run = random_run(model)
    found = wd.dynamic_regret(run, model)
    assert found.cumulative[-1] == pytest.approx(found.total, rel=1e-9)
    assert found.total == pytest.approx(math.fsum(found.per_step), rel=1e-13)
    some = np.arange(0, 200_000, 19_997)
    for i in some:
        assert found.cumulative[i] == pytest.approx(
            math.fsum(found.per_step[: i + 1]), rel=1e-11, abs=1e-11
        )
    each = model.optimal_gains().evaluate(found.times)[1]
    assert found.error == pytest.approx(math.fsum(each), rel=1e-6)
    rho = found.per_step + run.mean_rewards
    assert found.total_observed == pytest.approx(math.fsum(rho - run.rewards), rel=1e-12)


def test_totals_of_a_long_run_need_no_memory_for_it():
    model = wd.envs.make("riverswim", horizon=2_000_000)
    run = random_run(model, record="totals")
    curve = model.optimal_gains()
    tracemalloc.start()
    found = wd.dynamic_regret(run, model, gains=curve)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000  # a column of this run would be 16 MB
    assert found.total_optimal == pytest.approx(curve.sum(), rel=1e-12)
    assert found.total == pytest.approx(curve.sum() - run.total_mean_reward, rel=1e-12)


def test_a_curve_at_hand_is_used(monkeypatch):
    model = a_blend()
    run = random_run(model)
    expected = wd.dynamic_regret(run, model, tol=1e-5)
    curve = model.optimal_gains(1e-5)

    def unwanted(*_, **__):
        raise AssertionError("the curve was computed again")

    monkeypatch.setattr(wd.DriftingMDP, "optimal_gains", unwanted)
    again = wd.dynamic_regret(run, model, gains=curve)
    assert again.total == expected.total
    assert np.array_equal(again.cumulative, expected.cumulative)


# --- what it says --------------------------------------------------------------------------------


def spring():
    """The counterexample of E10: state 0 pays 1 once, the way back takes 20 steps."""
    space = wd.StateActions([1, 1])
    return wd.MDP(space, [1.0, 0.0], [[0.0, 1.0], [0.05, 0.95]])


def test_a_transient_gain_is_negative_regret_and_is_explained():
    model = wd.DriftingMDP.stationary(spring(), horizon=2, noise="none")
    found = wd.dynamic_regret(random_run(model), model, tol=1e-9)
    assert found.per_step == pytest.approx([1 / 21 - 1, 1 / 21], abs=1e-9)
    assert found.total == pytest.approx(2 / 21 - 1, abs=1e-8)
    assert found.total == found.cumulative[-1] < -0.9  # not clipped
    assert found.share == pytest.approx(21 / 2, rel=1e-6)
    assert found.explain() == (
        "The run from t = 1 to 2 earned 1 where the optimal gains add up to 0.09524: a regret of "
        "-0.9048, and of -0.9048 with the rewards as they were drawn; it is negative because "
        "rho*_t is what the best policy of the frozen model earns per step in the long run: a "
        "transient gain, of a run that starts in a good state or is in one when the model "
        "changes, comes on top of that, and so does a lucky path."
    )


def test_a_curve_that_dips_below_zero_is_explained():
    model = wd.DriftingMDP.stationary(spring(), horizon=400, noise="none")
    found = next(
        one
        for one in (wd.dynamic_regret(random_run(model, seed), model) for seed in range(50))
        if one.total > 1
    )
    low = int(found.cumulative.argmin())
    said = found.explain()
    assert f"; by t = {found.times[low]} it was {found.cumulative[low]:.4g}, below zero" in said
    assert said.count(".") - said.count(".", 0, -1) == 1
    assert "negative" not in said


def test_luck_of_the_draws_is_told_from_skill():
    coin = wd.MDP(wd.StateActions([2]), [0.5, 0.45], np.ones((2, 1)))
    model = wd.DriftingMDP.stationary(coin, horizon=40)
    found = next(
        one
        for one in (wd.dynamic_regret(random_run(model, seed), model) for seed in range(50))
        if one.total_observed < 0
    )
    assert found.total > 0
    assert found.explain().endswith("which is negative by the luck of the draws.")


def test_zero_is_said_to_be_zero():
    fixed = wd.MDP(wd.StateActions([1]), [0.25], np.ones((1, 1)))
    model = wd.DriftingMDP.stationary(fixed, horizon=30, noise="none")
    found = wd.dynamic_regret(random_run(model), model)
    assert abs(found.total) <= found.error < 1e-4
    assert "a regret that cannot be distinguished from zero" in found.explain()


def test_nothing_to_earn_has_no_share():
    poor = wd.MDP(wd.StateActions([1]), [0.0], np.ones((1, 1)))
    found = wd.dynamic_regret(
        random_run(model := wd.DriftingMDP.stationary(poor, horizon=5)), model
    )
    assert found.total == 0.0
    assert math.isnan(found.share)


def test_a_regret_is_a_value():
    model = a_blend()
    found = wd.dynamic_regret(random_run(model), model)
    assert isinstance(found, wd.Regret)
    assert repr(found).startswith(f"Regret(t=1..60, total={found.total:.6g}, total_observed=")
    with pytest.raises(FrozenInstanceError):
        found.total = 0.0
    assert found != wd.dynamic_regret(random_run(model), model)  # arrays have no one equality


# --- refusals ------------------------------------------------------------------------------------


class Foreign:
    """A world that does not tell its means."""

    space, horizon = RAGGED, 60

    def reset(self, seed):
        return 0

    def step(self, action):
        return 0.5, 0


@pytest.mark.parametrize("record", ["full", 5, "totals"])
def test_a_world_that_does_not_tell_has_no_regret(record):
    run = random_run(Foreign(), record=record)
    with pytest.raises(wd.InputError, match="mean rewards are not known") as caught:
        wd.dynamic_regret(run, a_blend())
    assert caught.value.field == "run"
    assert "DriftingMDP" in caught.value.fix


@pytest.mark.parametrize("record", ["full", 5, "totals"])
def test_a_run_beyond_the_model_is_refused(record):
    run = random_run(a_blend(horizon=61), record=record)
    with pytest.raises(wd.InputError, match="goes on to t = 61, the model ends at T = 60"):
        wd.dynamic_regret(run, a_blend(horizon=60))


@pytest.mark.parametrize("record", ["full", 3])
def test_a_run_in_another_space_is_refused(record):
    run = random_run(wd.envs.make("riverswim", horizon=60), record=record)
    with pytest.raises(wd.InputError, match=r"has no action \d in a state \d"):
        wd.dynamic_regret(run, a_blend())
    one = wd.StateActions([1])
    small = wd.DriftingMDP.stationary(wd.MDP(one, [0.5], np.ones((1, 1))), horizon=60)
    with pytest.raises(wd.InputError, match="made in another model"):
        wd.dynamic_regret(random_run(a_blend(), record=record), small)


@pytest.mark.parametrize("record", ["full", 3])
def test_a_run_in_another_model_of_the_same_space_is_refused(record):
    with pytest.raises(wd.InputError, match="this one pays .* the run was paid") as caught:
        wd.dynamic_regret(random_run(a_blend(), record=record), two_weights())
    assert caught.value.where.startswith("t=")
    long, short = (wd.envs.make("riverswim", horizon=T) for T in (4000, 3000))
    with pytest.raises(wd.InputError, match="made in another model"):
        wd.dynamic_regret(random_run(short, record=record), long)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"run": "a run"}, "run"),
        ({"drifting": random_mdp(RAGGED)}, "drifting"),
        ({"tol": 0.0}, "tol"),
        ({"tol": float("nan")}, "tol"),
        ({"gains": np.ones(60)}, "gains"),
        ({"gains": "horizon"}, "gains"),
    ],
)
def test_what_is_no_argument_is_refused(change, field):
    model = a_blend()
    if change.get("gains") is not None and isinstance(change["gains"], str):
        change = {"gains": a_blend(horizon=59).optimal_gains()}
    arguments = {"run": random_run(model), "drifting": model} | change
    with pytest.raises(wd.InputError) as caught:
        wd.dynamic_regret(**arguments)
    assert caught.value.field == field
    assert caught.value.fix


def test_gains_that_cannot_be_certified_are_not_made_up(monkeypatch):
    from windage.models import gains

    monkeypatch.setattr(gains, "MOST_SOLVES", 10)
    model = wd.DriftingMDP.blend(
        [random_mdp(RAGGED, 0), random_mdp(RAGGED, 1)], Weights(0.5, 0.5), horizon=50
    )
    with pytest.raises(wd.NotConverged, match="50 models"):
        wd.dynamic_regret(random_run(model), model)


def paid_alike(seed):
    """Two models that pay alike in every state and step: recorded steps cannot tell them apart."""
    p = np.random.default_rng(seed).dirichlet(np.ones(2), size=4)
    mdp = wd.MDP(wd.StateActions([2, 2]), [0.0, 0.0, 1.0, 1.0], p)
    return wd.DriftingMDP.stationary(mdp, horizon=30)


@pytest.mark.parametrize("record", ["full", 7, "totals"])
def test_a_run_in_a_model_that_pays_alike_is_refused(record):
    run = random_run(paid_alike(0), record=record)
    with pytest.raises(wd.InputError, match="made in another model") as caught:
        wd.dynamic_regret(run, paid_alike(1))
    assert caught.value.field == "run"
    assert caught.value.fix


def test_gains_of_another_model_are_refused():
    model, other = paid_alike(0), paid_alike(1)
    run = random_run(model)
    assert model.optimal_gains().sum() != pytest.approx(other.optimal_gains().sum(), abs=0.1)
    with pytest.raises(wd.InputError, match="not the curve of this model") as caught:
        wd.dynamic_regret(run, model, gains=other.optimal_gains())
    assert caught.value.field == "gains"
    with pytest.raises(wd.InputError, match="not the curve of this model"):
        wd.dynamic_regret(run, model, gains=model.optimal_gains().values)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("record", ["full", "totals"])
def test_an_equal_model_is_the_same_model(make, record):
    model, twin = make(), make()
    run = random_run(model, record=record)
    assert run.model is model
    curve = model.optimal_gains()
    assert curve.model is model
    expected = wd.dynamic_regret(run, model)
    assert wd.dynamic_regret(run, twin).total == expected.total
    assert wd.dynamic_regret(run, twin, gains=curve).total == expected.total


def test_the_model_itself_is_known_without_a_look_at_its_content(monkeypatch):
    def unwanted(_):
        raise AssertionError("the content was looked at")

    monkeypatch.setattr("windage.regret.fingerprint", unwanted)
    model = a_blend()
    run = random_run(model, record="totals")
    wd.dynamic_regret(run, model, gains=model.optimal_gains())


def test_a_world_that_is_no_model_has_none():
    assert random_run(Foreign()).model is None
