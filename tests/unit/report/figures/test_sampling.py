"""Pictures of long horizons: as true as short ones, without a look at every step."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import windage as wd
from tests.pages import drawn, labels, notes, random_run
from windage.models.drifting import Budgets
from windage.report import drift_figure
from windage.report.figures import sampling

LONG = 100_000_000


def test_budgets_of_a_long_horizon_against_their_closed_forms():
    """RiverSwim: prizes swap by .7 every T / 4, the current moves .5 there and back."""
    model = wd.envs.make("riverswim", horizon=LONG)
    times = sampling.sample_times(model)
    rewards, transitions = sampling.accumulated(model, times)
    assert np.allclose(rewards, 0.7 * ((times - 1) // (LONG // 4)), atol=1e-9)
    weight = (1 + np.cos(2 * np.pi * times / LONG)) / 2
    start = (1 + np.cos(2 * np.pi / LONG)) / 2
    moved = np.where(times <= LONG // 2, start - weight, start + weight)
    assert np.allclose(transitions, 0.5 * moved, atol=1e-9)


@pytest.mark.parametrize("times", [[1, 2, 70_000, 399_999, 400_000], [5, 300_000], [1]])
def test_sums_between_times_are_sums_of_steps(times):
    """Second witness: the series of single steps, added up one by one."""
    model = wd.envs.make("inventory", horizon=400_000)
    found = sampling._telescoped(model, np.array(times))
    assert np.array_equal(found, sampling.accumulated(model, np.array(times))), "few times: quick"
    budgets = model.budgets()
    for series, steps in zip(found, (budgets.reward_steps, budgets.transition_steps), strict=True):
        assert np.allclose(series, [steps[: t - 1].sum() for t in times], atol=1e-9)


def test_no_picture_looks_at_every_step_of_a_long_blend(monkeypatch):
    monkeypatch.setattr(Budgets, "_series", property(lambda self: pytest.fail("every step")))
    monkeypatch.setattr(Budgets, "_chunks", lambda self: pytest.fail("every step"))
    for name in ("riverswim", "two-state-cosine", "bandit"):
        figure = drift_figure(wd.envs.make(name, horizon=LONG))
        assert all(line.get_xdata().size < 2100 for axes in figure.axes for line in axes.lines)


def test_ticks_of_a_long_horizon_do_not_touch():
    figure = drift_figure(wd.envs.make("inventory", horizon=LONG))
    renderer = drawn(figure)
    ticks = [one for one in figure.axes[-1].get_xticklabels() if one.get_text()]
    boxes = sorted((one.get_window_extent(renderer) for one in ticks), key=lambda box: box.x0)
    assert len(boxes) > 3
    for left, right in zip(boxes, boxes[1:], strict=False):
        assert left.x1 + 10 < right.x0


def test_crowded_curves_are_hatched_bands_from_lowest_to_highest():
    model = wd.envs.make("two-state-cosine", horizon=30_000, reward_cycles=5000)
    rewards, kernels, _ = drift_figure(model).axes
    bands = [one for one in rewards.collections if isinstance(one, PolyCollection)]
    assert len(bands) == 2
    assert len({band.get_hatch() for band in bands}) == 2, "one shows through the other"
    assert all(not band.get_facecolor().size for band in bands)
    literal = np.array([model.at(t).rewards for t in range(1, 30_001)])
    for band in bands:
        corners = band.get_paths()[0].vertices
        assert corners[:, 0].min() == 1
        assert corners[:, 0].max() == 30_001
        assert corners[:, 1].min() == pytest.approx(literal.min(), abs=1e-9)
        assert corners[:, 1].max() == pytest.approx(literal.max(), abs=1e-9)
    patches = rewards.get_legend().get_patches()
    assert [patch.get_hatch() for patch in patches] == [band.get_hatch() for band in bands]
    assert labels(rewards) == ["0, hold", "1, hold", "2 constant"]
    # the kernel moves slowly: its bands are as thin as curves, and where the kernel is
    corners = kernels.collections[0].get_paths()[0].vertices
    t, p = corners[100]
    assert p == pytest.approx(0.5 + 0.4 * np.cos(2 * np.pi * t / 30_000), abs=1e-2)


def test_one_state_needs_no_map():
    model = wd.envs.make("bandit", horizon=50)
    figure = drift_figure(model, random_run(model))
    assert notes(figure)[3] == ["one state"]
    assert not figure.axes[3].collections


def test_an_equal_share_of_two_states_is_half_dark():
    model = wd.envs.make("two-state-cosine", horizon=20_000)
    (mesh,) = drift_figure(model, random_run(model)).axes[3].collections
    assert mesh.get_clim() == (0.0, 1.0)
    assert mesh.get_array().max() < 0.8


@pytest.mark.parametrize(("name", "key"), [("bidding", ", states by number"), ("riverswim", "")])
def test_numbers_that_stand_for_names_are_said_to_be_numbers(name, key):
    axes = drift_figure(wd.envs.make(name, horizon=40)).axes[1]
    assert axes.get_legend().get_title().get_text() == "s -action-> s'" + key


@pytest.mark.parametrize(("states", "cut"), [(13, False), (60, True)])
def test_the_states_are_counted_only_where_some_are_cut(states, cut):
    model = wd.envs.make("random-drift", horizon=300, states=states, actions=2)
    if cut:
        model = wd.envs.make("riverswim", horizon=300, states=states)
    label = drift_figure(model, random_run(model)).axes[3].get_ylabel()
    assert label.startswith("state (") if cut else label == "state"
