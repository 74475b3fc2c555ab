"""Figures show what the model is: curves against brute force, panels that fit their page."""

import numpy as np
import pytest

import windage as wd
from tests.pages import assert_on_the_page, labels, notes, random_run
from windage.report import drift_figure
from windage.report.figures import sampling
from windage.report.figures.drift import occupancy


def literal_courses(model):
    """Every reward and every transition probability at every t, straight from the models."""
    models = [model.at(t) for t in range(1, model.horizon + 1)]
    rewards = np.stack([one.rewards for one in models])
    dense = [
        one.transitions if isinstance(one.transitions, np.ndarray) else one.transitions.toarray()
        for one in models
    ]
    return rewards, np.stack(dense).reshape(len(models), -1)


def spiking(horizon, at, space=None):
    """A stream that moves smoothly and, for a single step each, jumps somewhere else."""
    space = space or wd.StateActions([1, 2])
    reward_spike, kernel_spike = at

    def model(t):
        w = 0.5 + 0.3 * np.sin(2 * np.pi * t / horizon)
        r = np.array([0.2, 0.5 * w, 0.7])
        p = np.array([[w, 1 - w], [1 - w, w], [1.0, 0.0]])
        if t == reward_spike:
            r[2] = 0.0
        if t == kernel_spike:
            p[2] = 0.0, 1.0
        return r, p

    return wd.DriftingMDP.from_function(model, space=space, horizon=horizon)


class Zigzag:
    """A schedule of one's own over three models: no stops are known, one step stands out."""

    def weights(self, t, horizon):
        if t == 2718:
            return [0.0, 0.0, 1.0]
        w = abs(2 * t / horizon - 1)
        return [w, 1 - w, 0.0]


def three_models(horizon):
    space = wd.StateActions([2, 1])
    rows = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    models = [
        wd.MDP(space, [0.1, 0.5, 0.9], rows),
        wd.MDP(space, [0.4, 0.5, 0.8], rows[::-1]),
        wd.MDP(space, [1.0, 0.5, 0.0], rows),
    ]
    return wd.DriftingMDP.blend(models, Zigzag(), horizon=horizon)


MODELS = {
    "riverswim": lambda: wd.envs.make("riverswim", horizon=3000),
    "riverswim-short": lambda: wd.envs.make("riverswim", horizon=37),
    "riverswim-sparse": lambda: wd.envs.make("riverswim", horizon=2400, states=500),
    "peril": lambda: wd.envs.make("peril", horizon=4000, tau=3),
    "two-state-cosine": lambda: wd.envs.make("two-state-cosine", horizon=5000),
    "jumps": lambda: wd.envs.make("random-drift", horizon=3000, shape="jumps"),
    "walk": lambda: wd.envs.make("random-drift", horizon=3000, shape="walk"),
    "stream": lambda: spiking(3500, at=(1234, 2345)),
    "own schedule": lambda: three_models(3000),
    "knots": lambda: wd.DriftingMDP(
        wd.StateActions([1, 1]), [1, 1500, 1501, 2600], [[0, 0], [1, 0], [0, 0.5], [0.2, 0.5]],
        [[[0, 1], [1, 0]], [[0.5, 0.5], [1, 0]], [[0, 1], [1, 0]], [[0, 1], [0.1, 0.9]]],
        horizon=3000,
    ),
}  # fmt: skip


WITHOUT_STOPS = ("stream", "own schedule")


@pytest.mark.parametrize("name", [name for name in MODELS if name != "riverswim-sparse"])
def test_curves_are_those_of_the_models_and_miss_no_extreme(name):
    model = MODELS[name]()
    times = sampling.sample_times(model)
    assert times[0] == 1
    assert times[-1] == model.horizon
    assert (np.diff(times) > 0).all()
    literal = literal_courses(model)
    for curves_of, courses in zip(
        (sampling.reward_curves, sampling.kernel_curves), literal, strict=True
    ):
        curves = curves_of(model, times, 60)
        assert np.allclose(curves.values, courses[times - 1][:, curves.entries], atol=1e-12)
        possible = courses.max(axis=0) > 0
        if courses is literal[0]:
            possible[:] = True
        ranges = np.ptp(courses, axis=0)
        blurred = 2e-3 if name in WITHOUT_STOPS else 1e-12  # a top between two grid times
        assert np.allclose(np.ptp(curves.values, axis=0), ranges[curves.entries], atol=blurred)
        distinct = {tuple(np.round(course, 7)) for course in courses[:, possible].T}
        assert curves.total == possible.sum()
        if len(distinct) <= 60:
            assert len(curves.entries) == len(distinct)
            assert curves.moving == sum(len(set(course)) > 1 for course in distinct)
            for entry, alike in zip(curves.entries, curves.alike, strict=True):
                twins = np.abs(courses[:, possible] - courses[:, [entry]]).max(axis=0) < 1e-9
                assert alike == twins.sum()
        assert ranges[curves.entries][0] == pytest.approx(ranges.max(), abs=1e-12)
        assert (np.diff(ranges[curves.entries]) < 1e-9).all(), "the one that moves most comes first"


def test_curves_of_a_sparse_model():
    model = MODELS["riverswim-sparse"]()
    times = np.array([1, 5, 600, 1200])
    curves = sampling.kernel_curves(model, times, 10)
    for k, t in enumerate(times):
        rows = model.at(int(t)).transitions.toarray().ravel()
        assert np.allclose(curves.values[k], rows[curves.entries], atol=1e-12)
    assert curves.alike[:2].tolist() == [498, 498]  # up and stay of every interior state
    assert curves.moving == 2


def test_only_the_most_moving_are_kept():
    model = wd.envs.make("random-drift", horizon=400, states=12, actions=2)
    courses = literal_courses(model)[1]
    curves = sampling.kernel_curves(model, sampling.sample_times(model), 9)
    kept = np.sort(np.ptp(courses, axis=0))[::-1][:9]
    assert np.allclose(np.ptp(curves.values, axis=0), kept, atol=1e-12)
    assert curves.total == 24 * 12


@pytest.mark.parametrize("name", ["riverswim", "peril", "stream", "own schedule", "knots"])
def test_budgets_accumulate_as_the_models_differ(name):
    model = MODELS[name]()
    rewards, kernels = literal_courses(model)
    steps_r = np.abs(np.diff(rewards, axis=0)).max(axis=1)
    rows = np.abs(np.diff(kernels, axis=0)).reshape(
        model.horizon - 1, model.space.n_pairs, model.space.n_states
    )
    steps_p = rows.sum(axis=2).max(axis=1)
    times = np.unique([1, 2, 3, 500, 1499, 1500, 1501, 1502, model.horizon - 1, model.horizon])
    r, p = sampling.accumulated(model, times)
    assert np.allclose(r, [steps_r[: t - 1].sum() for t in times], atol=1e-9)
    assert np.allclose(p, [steps_p[: t - 1].sum() for t in times], atol=1e-9)


def test_budgets_accumulate_across_intervals(monkeypatch):
    model = wd.envs.make("riverswim", horizon=1000)
    times = sampling.sample_times(model)
    whole = sampling.accumulated(model, times)
    monkeypatch.setattr(sampling, "_CHUNK", 77)
    assert np.allclose(whole, sampling.accumulated(model, times), atol=1e-12)
    budgets = model.budgets()
    assert whole[0][-1] == pytest.approx(budgets.reward)
    assert whole[1][-1] == pytest.approx(budgets.transition)


def test_a_long_horizon_is_sampled_sparsely_and_jumps_are_kept():
    model = wd.envs.make("riverswim", horizon=1_000_000)
    times = sampling.sample_times(model)
    assert times.size < 2000
    for jump in (250_001, 500_001, 750_001):
        assert {jump - 1, jump} <= set(times.tolist())


def test_a_stream_is_looked_at_on_both_sides_of_a_jump():
    space = wd.StateActions([1])
    model = wd.DriftingMDP.from_function(
        lambda t: ([0.2 if t < 4321 else 0.9], [[1.0]]), space=space, horizon=9000
    )
    assert {4320, 4321} <= set(sampling.sample_times(model).tolist())


class Halves:
    """A schedule that mixes two models and never moves."""

    def weights(self, t, horizon):
        return [0.5, 0.5]


def test_entries_that_end_up_the_same_are_one_curve():
    space = wd.StateActions([3])
    models = [wd.MDP(space, r, [[1.0]] * 3) for r in ([0.2, 0.3, 0.9], [0.4, 0.3, 0.1])]
    model = wd.DriftingMDP.blend(models, Halves(), horizon=20)
    curves = sampling.reward_curves(model, sampling.sample_times(model), 60)
    assert curves.moving == 0
    assert dict(zip(curves.values[0].round(12), curves.alike, strict=True)) == {0.3: 2, 0.5: 1}


def test_more_jumps_than_pixels_become_a_band():
    model = wd.envs.make("peril", horizon=1_000_000, tau=50)
    times = sampling.sample_times(model)
    assert times.size < 70_000
    curves = sampling.reward_curves(model, times, 60)
    x, y = sampling.envelope(times, curves.values)
    assert x.size <= 2000
    # a reward holds 100 steps, a bin 1000: every bin sees 0 and 1, the last step aside
    assert (y[0:-2:2] == 0).all()
    assert (y[1:-2:2] == 1).all()


def test_envelope_against_a_loop():
    rng = np.random.default_rng(5)
    times = np.sort(rng.choice(100_000, 7001, replace=False)) + 1
    values = rng.random((7001, 3))
    x, y = sampling.envelope(times, values, bins=50)
    edges = np.linspace(times[0], times[-1] + 1, 51)
    for k in range(50):
        inside = values[(times >= edges[k]) & (times < edges[k + 1])]
        assert np.array_equal(y[2 * k], inside.min(axis=0))
        assert np.array_equal(y[2 * k + 1], inside.max(axis=0))
    assert x.size == 100


@pytest.mark.parametrize(("record", "states"), [("full", 6), (7, 6), ("full", 250)])
def test_occupancy_against_a_loop(record, states):
    model = wd.envs.make("random-drift", horizon=1700, states=states, actions=2)
    run = random_run(model, record=record)
    time_edges, state_edges, shares = occupancy(run, 0, states - 1)
    counts = np.zeros_like(shares)
    for t, s in zip(run.times, run.states[: run.times.size], strict=True):
        column = max(k for k, edge in enumerate(time_edges[:-1]) if edge <= t)
        band = max(k for k, edge in enumerate(state_edges[:-1]) if edge <= s)
        counts[band, column] += 1
    assert np.allclose(shares, counts / counts.sum(axis=0))
    assert time_edges[0] == 1
    assert time_edges[-1] == 1701
    assert state_edges[0] == -0.5
    assert state_edges[-1] == states - 0.5


def test_labels_of_the_river():
    figure = drift_figure(wd.envs.make("riverswim", horizon=3000))
    rewards, kernels, _ = figure.axes
    assert labels(rewards) == ["5, right", "0, left", "10 constant"]
    assert labels(kernels) == [
        "1 -right-> 1  (+3 alike)", "1 -right-> 2  (+3 alike)", "14 constant"
    ]  # fmt: skip
    title = figure.get_suptitle()
    assert title.split("    ") == ["riverswim-v0", "T = 3,000", "$B_r$ = 2.1", "$B_p$ = 1"]


def test_the_lines_are_drawn_where_the_rewards_are():
    model = wd.envs.make("riverswim", horizon=400)
    line = drift_figure(model).axes[0].get_lines()[0]
    assert line.get_drawstyle() == "steps-post"
    x, y = line.get_data()
    last = model.space.n_pairs - 1
    assert np.array_equal(x, np.arange(1, 402))
    assert np.allclose(y[:-1], [model.at(t).rewards[last] for t in range(1, 401)])
    assert y[-1] == y[-2]


def test_no_drift_is_said():
    still = wd.DriftingMDP.stationary(wd.envs.riverswim_mdp(4), horizon=50)
    assert notes(drift_figure(still)) == [["no drift"]] * 3
    half = wd.envs.make("random-drift", horizon=50, reward_budget=0.0)
    assert notes(drift_figure(half)) == [["no drift"], [], []]


ONE = wd.MDP(wd.StateActions([1]), [0.3], [[1.0]])
ARMS = [wd.MDP(wd.StateActions([3]), r, [[1.0]] * 3) for r in ([0.2, 0.5, 0.8], [0.9, 0.5, 0])]
ODD = wd.StateActions(
    [1, 2],
    state_names=["_a state that is $5$ and very long", "$^$"],
    action_names=[["_go"], ["x$y$", "another name without end or mercy"]],
)
CORNERS = {
    "one pair, T = 1": lambda: wd.DriftingMDP.stationary(ONE, horizon=1),
    "one pair": lambda: wd.DriftingMDP.stationary(ONE, horizon=500),
    "bandit": lambda: wd.DriftingMDP.blend(
        ARMS, wd.schedules.RandomWalk(seed=2, moves=20), horizon=900, noise=wd.Noise.gaussian(0.5)
    ),
    "100 states": lambda: wd.envs.make("random-drift", states=100, actions=4, horizon=2500),
    "crowded": lambda: wd.envs.make("peril", horizon=30_000, tau=2),
    "odd names": lambda: spiking(300, at=(100, 200), space=ODD),
    "peril": lambda: wd.envs.make("peril"),
    "random-drift": lambda: wd.envs.make("random-drift"),
    "riverswim": lambda: wd.envs.make("riverswim"),
    "two-state-cosine": lambda: wd.envs.make("two-state-cosine"),
}


@pytest.mark.parametrize("name", CORNERS)
def test_everything_stays_on_the_page(name):
    model = CORNERS[name]()
    assert_on_the_page(drift_figure(model, random_run(model), agent="random"))


def test_odd_names_are_shown_letter_by_letter():
    figure = drift_figure(spiking(300, at=(100, 200), space=ODD))
    assert labels(figure.axes[0])[0] == r"\$^\$, another name without …"
    assert labels(figure.axes[0])[1] == r"\$^\$, x\$y\$"
    assert labels(figure.axes[1])[0].startswith("1 -another name without …-> 0")
    same = wd.DriftingMDP.stationary(wd.MDP(ODD, [0.1, 0.2, 0.3], [[0.5, 0.5]] * 3), horizon=9)
    swap = wd.DriftingMDP.blend(
        [same.at(1), wd.MDP(ODD, [0.9, 0.2, 0.3], [[0.5, 0.5]] * 3)], wd.schedules.Linear(),
        horizon=9,
    )  # fmt: skip
    assert labels(drift_figure(swap).axes[0])[0] == r"_a state that is \$5\$ …, _go"


def test_a_run_without_a_record_says_so():
    model = wd.envs.make("riverswim", horizon=100)
    figure = drift_figure(model, random_run(model, record="totals"))
    assert notes(figure)[3:] == [["no path recorded"]] * 2


def test_of_many_states_the_visited_ones_are_shown():
    model = wd.envs.make("riverswim", horizon=800, states=60)
    run = random_run(model)
    axes = drift_figure(model, run).axes[3]
    assert axes.get_ylim() == (-0.5, run.states[:-1].max() + 0.5)
    assert axes.get_ylabel() == f"state (0 to {run.states[:-1].max()} of 60)"


def test_reward_panel_shows_means_of_the_run():
    model = wd.envs.make("two-state-cosine", horizon=600)
    run = random_run(model)
    bins, so_far = drift_figure(model, run).axes[4].get_lines()
    assert np.allclose(bins.get_ydata()[:-1], run.rewards.reshape(60, 10).mean(axis=1))
    x, y = so_far.get_data()
    assert np.allclose(y[:-1], [run.rewards[:t].mean() for t in x[:-1].astype(int)])
