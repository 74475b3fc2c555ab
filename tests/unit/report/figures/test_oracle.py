"""The oracle's picture shows what is true: its lines and bands are read back and checked."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import windage as wd
from tests.models import random_mdp
from tests.pages import assert_on_the_page, drawn, labels, notes, random_run
from windage.report import oracle_figure, share, truth_of
from windage.report.figures.oracle import bands_of, bin_means, stacked
from windage.report.truth import PolicyCourse, policy_course


def lp_gains(model, times):
    return np.array([wd.gain_lp(model.at(int(t))).primal for t in times])


def line(axes, label):
    return next(one for one in axes.get_lines() if one.get_label().startswith(label))


# --- optimal gains -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["riverswim", "two-state-cosine", "bandit"])
def test_the_curve_is_what_linear_programs_say(name):
    model = wd.envs.make(name, horizon=2500)
    x, y = line(oracle_figure(model).axes[0], r"$\rho").get_data()
    assert (x[0], x[-1]) == (1, 2501)
    assert y[-1] == y[-2]
    some = np.linspace(0, x.size - 2, 25).astype(int)
    assert np.allclose(y[some], lp_gains(model, x[some]), atol=1e-6)


def test_a_bracket_that_can_be_seen_is_drawn_and_holds_the_truth():
    model = wd.envs.make("riverswim", horizon=800)
    rough = truth_of(model, tol=0.03)
    assert 0.005 < rough.gains.error <= 0.03
    axes = oracle_figure(model, rough).axes[0]
    assert labels(axes)[1] == "certified bracket"
    bound = float(labels(axes)[0].split("±")[1])
    assert rough.gains.error <= bound <= 1.1 * rough.gains.error
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    for t, truth in zip(range(1, 801, 40), lp_gains(model, range(1, 801, 40)), strict=True):
        beside = corners[np.abs(corners[:, 0] - t) < 0.6, 1]
        assert beside.min() - 1e-9 <= truth <= beside.max() + 1e-9
    fine = oracle_figure(model).axes[0]
    assert not fine.collections
    assert labels(fine)[0].startswith(r"$\rho^*_t$, certified to ±")
    assert "bracket" not in " ".join(labels(fine))


def test_the_share_of_the_oracle_is_in_the_legend():
    model = wd.envs.make("riverswim", horizon=120)
    run = random_run(model)
    truth = truth_of(model)
    paid = sum(
        model.at(t).rewards[model.space.pair(run.states[t - 1], run.actions[t - 1])]
        for t in range(1, 121)
    )
    expected = paid / lp_gains(model, range(1, 121)).sum()
    assert share(run, truth) == pytest.approx(expected, abs=1e-6)
    axes = oracle_figure(model, truth, {"random": run, "$odd$": run}).axes[0]
    assert labels(axes)[1:] == [
        rf"random agent: {expected:.1%} of $\sum\rho^*_t$",
        rf"\$odd\$ agent: {expected:.1%} of $\sum\rho^*_t$",
    ]
    assert axes.get_title(loc="left").endswith("(means of 2 steps)")


def test_nothing_to_earn():
    space = wd.StateActions([2, 1])
    poor = wd.MDP(space, [0.0, 0.0, 0.0], [[0, 1], [1, 0], [1, 0]])
    model = wd.DriftingMDP.stationary(poor, horizon=30)
    figure = oracle_figure(model, runs={"random": random_run(model)})
    assert labels(figure.axes[0])[1] == "random agent: nothing to earn"
    assert figure.axes[0].get_ylim() == (0.0, 1.0)


@pytest.mark.parametrize("record", ["full", 7, "totals"])
@pytest.mark.parametrize("horizon", [1, 45, 500])
def test_means_over_intervals_against_a_loop(record, horizon):
    model = wd.envs.make("two-state-cosine", horizon=horizon)
    literal = random_run(model).mean_rewards
    edges, means = bin_means(random_run(model, record=record))
    assert (edges[0], edges[-1]) == (1, horizon + 1)
    for start, end, mean in zip(edges[:-1].astype(int), edges[1:].astype(int), means, strict=True):
        assert mean == pytest.approx(np.mean(literal[start - 1 : end - 1]), abs=1e-12)
    if record == "full":
        assert means.size == min(60, horizon)


# --- diameters -----------------------------------------------------------------------------------


def test_diameters_are_drawn_where_they_are():
    model = wd.envs.make("two-state-cosine", horizon=3000)
    axes = oracle_figure(model).axes[1]
    x, y = line(axes, "$D_t$").get_data()
    switch = 0.5 + 0.4 * np.cos(2 * np.pi * x[:-1] / 3000)
    assert np.allclose(y[:-1], 1 / np.maximum(switch, 1 - switch), rtol=1e-9)
    assert 100 < x.size < 250
    top = line(axes, "largest")
    assert (top.get_xdata()[0], top.get_ydata()[0]) == (750, pytest.approx(2.0))
    assert top.get_label() == "largest: 2 at t = 750"
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[0] == 0


def test_decades_of_diameters_get_a_logarithmic_scale():
    space = wd.StateActions([1, 1])
    chance = [0.5, 0.001]
    models = [wd.MDP(space, [0, 1.0], [[1 - q, q], [1.0, 0.0]]) for q in chance]
    model = wd.DriftingMDP.blend(models, wd.schedules.Linear(), horizon=3000)
    axes = oracle_figure(model).axes[1]
    assert axes.get_yscale() == "log"
    x, y = line(axes, "$D_t$").get_data()
    weight = (x[:-1] - 1) / 2999
    assert np.allclose(y[:-1], 1 / ((1 - weight) * 0.5 + weight * 0.001), rtol=1e-6)
    assert axes.get_ylim()[0] < 2 < 1000 < axes.get_ylim()[1]


def lost(gone, horizon=60):
    rng = np.random.default_rng(1)
    r, p = rng.random((horizon, 3, 2)), rng.dirichlet(np.ones(3), size=(horizon, 3, 2))
    p[np.array(gone) - 1, 0] = [1.0, 0.0, 0.0]
    return wd.DriftingMDP.from_arrays(r, p)


def test_where_it_does_not_communicate_is_a_marked_gap():
    axes = oracle_figure(lost([10, 11, 12, 40])).axes[1]
    x, y = line(axes, "$D_t$").get_data()
    assert x[np.isnan(y)].tolist() == [10, 11, 12, 40]
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
    assert spans == [(10, 13), (40, 41)]
    assert all(patch.get_linewidth() > 0 for patch in axes.patches), "one step of many shows"
    assert labels(axes) == ["$D_t$", r"$D = \infty$ at 4 of 60 t"]


def test_a_model_that_never_communicates():
    figure = oracle_figure(lost(range(1, 61)))
    assert labels(figure.axes[1]) == [r"$D = \infty$ at every t"]
    assert figure.get_suptitle().endswith(r"$D_{max}$ = $\infty$")


# --- optimal policies ----------------------------------------------------------------------------


def painted(axes):
    """The bands as drawn: for every row [(first, end, colour)]."""
    rows = {}
    for collection in axes.collections:
        if not collection.get_facecolor().size or not collection.get_paths():
            continue
        colour = tuple(collection.get_facecolor()[0][:3].round(6))
        for path in collection.get_paths():
            (x0, y0), (x1, y1) = path.vertices.min(axis=0), path.vertices.max(axis=0)
            rows.setdefault(round((y0 + y1) / 2), []).append((x0, x1, colour))
    return {row: sorted(pieces) for row, pieces in rows.items()}


def colours(axes):
    """Which colour stands for which action, by the legend."""
    legend = axes.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    return {
        tuple(np.round(to_rgb(patch.get_facecolor()), 6)): name
        for patch, name in zip(legend.get_patches(), names, strict=True)
    }


@pytest.mark.parametrize("name", ["inventory", "ride", "replacement", "peril"])
def test_the_bands_are_the_optimal_actions(name):
    """Second witness of an action: no other action of that state has a better value in the LP."""
    model = wd.envs.make(name, horizon=1000)
    axes = oracle_figure(model).axes[2]
    words, ticks = colours(axes), [text.get_text() for text in axes.get_yticklabels()]
    states = [s for s in range(model.space.n_states) if model.space.counts[s] > 1]
    assert ticks == [model.space.state_name(s) for s in states]
    bands = painted(axes)
    assert sorted(bands) == list(range(len(states)))
    for pieces in bands.values():
        assert pieces[0][0] == 1
        assert pieces[-1][1] == 1001
        assert all(a[1] == b[0] for a, b in zip(pieces, pieces[1:], strict=False))
    for t in (1, 137, 300, 551, 800, 1000):
        mdp = model.at(t)
        dual = wd.gain_lp(mdp)
        value = mdp.rewards + np.asarray(mdp.transitions) @ dual.bias
        used = np.bincount(mdp.space.state_of, dual.occupancy, minlength=mdp.space.n_states)
        for row, s in enumerate(states):
            said = next(words[c] for first, end, c in bands[row] if first <= t < end)
            names = [model.space.action_name(s, a) for a in range(model.space.counts[s])]
            values = value[model.space.offsets[s] : model.space.offsets[s + 1]]
            if used[s] > 1e-6:  # elsewhere the bias of the program need not be tight
                assert values[names.index(said)] >= values.max() - 1e-7, (t, s, said)


def test_words_lie_inside_their_bands():
    model = wd.envs.make("inventory", horizon=100)
    figure = oracle_figure(model)
    renderer = drawn(figure)
    axes = figure.axes[2]
    words, bands = colours(axes), painted(axes)
    assert len(axes.texts) > 15
    for text in axes.texts:
        x, row = text.get_position()
        first, end, colour = next(one for one in bands[row] if one[0] <= x < one[1])
        assert words[colour] == text.get_text()
        box = text.get_window_extent(renderer)
        left, low = axes.transData.transform((first, row - 0.42))
        right, high = axes.transData.transform((end, row + 0.42))
        assert left < box.x0 < box.x1 < right
        assert low < box.y0 < box.y1 < high


@pytest.mark.parametrize("arms", [8, 20])
def test_actions_differ_in_colour_and_neighbours_in_pattern(arms):
    space = wd.StateActions([arms])
    peaks = np.linspace(0, 1, arms)
    model = wd.DriftingMDP.from_function(
        lambda t: (1 - 0.5 * np.abs(peaks - t / 100), np.ones((arms, 1))), space=space, horizon=100
    )
    axes = oracle_figure(model).axes[2]
    patches = axes.get_legend().get_patches()
    shown = patches[:13] if arms > 14 else patches
    assert len({patch.get_facecolor() for patch in shown}) == len(shown) == min(arms, 13)
    if arms > 14:
        assert labels(axes)[-1] == "and 7 more"
    hatches = [patch.get_hatch() for patch in shown]
    assert len(set(hatches[:8])) == min(arms, 8)
    luminance = [np.dot(patch.get_facecolor()[:3], (0.3, 0.6, 0.1)) for patch in shown]
    assert min(luminance) > 0.6, "black words must be legible"
    assert_on_the_page(axes.figure)


def test_changes_too_many_to_draw_become_shares():
    T = 5000
    model = wd.envs.make("peril", horizon=T, tau=2)
    axes = oracle_figure(model).axes[2]
    assert (
        axes.get_title(loc="left") == "Optimal policy: 1,250 changes seen; shares of every 17 steps"
    )
    heights = {}
    for collection in axes.collections:
        corners = collection.get_paths()[0].vertices
        heights[round(corners[:, 1].mean(), 1)] = np.ptp(corners[:, 1])
    assert len(axes.collections) == 8  # four actions in two rows, those of the other state empty
    assert not axes.texts
    starts, actions = policy_course(model).of_state(0)
    edges, shares = stacked(starts, actions, T, 2)
    steps = actions[np.searchsorted(starts, np.arange(1, T + 1), side="right") - 1]
    for k in (0, 1, 150, 299):
        inside = [
            max(0.0, min(t + 1, edges[k + 1]) - max(t, edges[k])) for t in range(1, T + 1)
        ]  # a step may lie in two bins
        for a in (0, 1):
            literal = sum(x for x, used in zip(inside, steps, strict=True) if used == a)
            assert shares[a, k] == pytest.approx(literal / (edges[k + 1] - edges[k]), abs=1e-9)
    assert np.allclose(shares.sum(axis=0), 1)


def test_of_many_states_the_most_visited_are_shown():
    model = wd.envs.make("bidding", horizon=900)
    course = policy_course(model)
    bands = bands_of(model, course)
    law, visits = np.eye(1, 33)[0], np.zeros(33)
    for t in range(1, 901):
        visits += law
        pairs = model.space.offsets[:-1] + course.at(t)
        law = law @ np.asarray(model.at(t).transitions)[pairs]
    visits[model.space.counts == 1] = 0
    assert len(bands.states) == 16
    assert bands.states == sorted(bands.states)
    least = min(visits[bands.states])
    missed = [s for s in range(33) if s not in bands.states and visits[s] > 1.1 * least]
    assert not missed
    assert bands.remark == "the 16 states it visits most, of 33"


def test_names_are_shared_between_states_and_ordered_by_action():
    space = wd.StateActions(
        [2, 3, 1], action_names=[["wait", "go"], ["wait", "back", "go"], ["wait"]]
    )
    model = wd.DriftingMDP.stationary(random_mdp(space, seed=1), horizon=4)
    course = PolicyCourse(np.array([1, 3]), np.array([[1, 0, 0], [0, 2, 0]]), 2)
    bands = bands_of(model, course)
    assert bands.states == [0, 1]
    assert bands.actions == ["wait", "go"]
    assert bands.remark == "states with one action left out"
    axes = oracle_figure(model, replace(truth_of(model), policies=course)).axes[2]
    assert axes.get_title(loc="left") == (
        "Optimal policy: 1 change seen; states with one action left out"
    )
    words = colours(axes)
    said = {row: [(a, b, words[c]) for a, b, c in band] for row, band in painted(axes).items()}
    assert said == {0: [(1, 3, "go"), (3, 5, "wait")], 1: [(1, 3, "wait"), (3, 5, "go")]}


# --- the page ------------------------------------------------------------------------------------

ODD = wd.StateActions(
    [2, 2],
    state_names=["_a state that is $5$ and very long", "$^$"],
    action_names=[["_go", "$x$"], ["x$y$", "another name without end or mercy"]],
)
CORNERS = {
    "one pair, T = 1": lambda: wd.DriftingMDP.stationary(
        wd.MDP(wd.StateActions([1]), [0.3], [[1.0]]), horizon=1
    ),
    "bandit, T = 1": lambda: wd.envs.make("bandit", horizon=1),
    "odd names": lambda: wd.DriftingMDP.blend(
        [random_mdp(ODD, 1), random_mdp(ODD, 2)], wd.schedules.Linear(), horizon=30
    ),
    "lost for good": lambda: lost(range(1, 61)),
    "long names": lambda: wd.envs.make("bidding", horizon=40),
    "many actions": lambda: wd.envs.make("inventory", horizon=60, capacity=18),
    "decades": lambda: wd.envs.make("queue", horizon=60),
    "jumps": lambda: wd.envs.make("peril", horizon=200, tau=10),
}


@pytest.mark.parametrize("name", CORNERS)
def test_everything_stays_on_the_page(name):
    model = CORNERS[name]()
    run = random_run(model)
    assert_on_the_page(oracle_figure(model, runs={"random": run, "myopic": run}))


def test_words_of_the_corners():
    one = oracle_figure(CORNERS["one pair, T = 1"]())
    assert notes(one) == [[], ["one state: D = 0"], ["no state has a choice"]]
    assert one.axes[2].get_title(loc="left") == "Optimal policy: 0 changes seen"
    assert one.axes[0].get_xlim() == (1, 2)
    arms = CORNERS["bandit, T = 1"]()
    best = arms.space.action_name(0, int(np.argmax(arms.at(1).rewards)))
    assert [text.get_text() for text in oracle_figure(arms).axes[2].texts] == [best]
    odd = oracle_figure(CORNERS["odd names"](), title="$5$ model").axes[2]
    assert odd.figure.get_suptitle().startswith(r"\$5\$ model")
    assert [text.get_text() for text in odd.get_yticklabels()] == [
        r"_a state that is \$5\$ an…", r"\$^\$"
    ]  # fmt: skip
    assert set(labels(odd)) <= {"_go", r"\$x\$", r"x\$y\$", "another name without …"}
