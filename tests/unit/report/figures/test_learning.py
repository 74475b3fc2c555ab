"""The picture of regret shows the numbers: its lines are read back and checked."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from tests.pages import assert_on_the_page, labels, notes, random_run
from windage.report import save_figure
from windage.report.figures.learning import regret_figure, share_of_intervals


class Episodes(SimpleNamespace):
    def __len__(self):
        return len(self.start)


class Told:
    """A run with episodes, whatever `Run` has itself."""

    def __init__(self, run, starts, total=None):
        self._run = run
        self.episodes = Episodes(start=np.array(starts), total=total or len(starts))

    def __getattr__(self, name):
        return getattr(self._run, name)


def world(horizon=400):
    return wd.envs.make("riverswim", horizon=horizon)


def a_case(model=None, record="full"):
    model = model or world()
    run = random_run(model, seed=2, record=record)
    return run, wd.dynamic_regret(run, model)


def line(axes, label):
    return next(one for one in axes.get_lines() if label in str(one.get_label()))


def literal(model, run):
    """Regret and the sum of gains after each step, an LP a step."""
    rho = np.array([wd.gain_lp(model.at(t)).primal for t in range(1, model.horizon + 1)])
    return np.cumsum(rho - run.mean_rewards), np.cumsum(rho - run.rewards), np.cumsum(rho)


def test_the_curves_are_the_sums_of_linear_programs():
    model = world(150)
    run, regret = a_case(model)
    above = regret_figure(run, regret).axes[0]
    path, observed, _ = literal(model, run)
    for label, expected in (("r_t(s_t, a_t)", path), ("rewards drawn", observed)):
        x, y = line(above, label).get_data()
        assert x.tolist() == list(range(1, 152))  # what step t loses is lost at t + 1
        assert y[0] == 0.0
        assert np.allclose(y[1:], expected, atol=1e-4)
    even = line(above, "even loss")
    assert even.get_xdata().tolist() == [1, 151]
    assert even.get_ydata() == pytest.approx([0.0, path[-1]], abs=1e-4)
    said = labels(above)
    assert said[0].split(": ")[1].startswith(f"{path[-1]:.4g} ±")
    assert float(said[0].split("±")[1]) >= regret.error
    assert said[1] == f"with the rewards drawn: {observed[-1]:.4g}"
    assert said[2] == f"an even loss: {path[-1] / 150:.3g} per step"


def test_the_share_is_that_of_each_interval_and_so_far():
    model = world(150)
    run, regret = a_case(model)
    below = regret_figure(run, regret).axes[1]
    path, _, optimal = literal(model, run)
    edges, shares = line(below, "in each").get_data()
    assert (edges[0], edges[-1]) == (1, 151)
    assert edges.size == 61
    earned = np.concatenate([[0.0], optimal - path])
    whole = np.concatenate([[0.0], optimal])
    for a, b, share in zip(edges[:-1].astype(int), edges[1:].astype(int), shares, strict=False):
        expected = (earned[b - 1] - earned[a - 1]) / (whole[b - 1] - whole[a - 1])
        assert share == pytest.approx(expected, abs=1e-5)
    x, so_far = line(below, "so far").get_data()
    assert np.allclose(so_far, (earned[1:] / whole[1:])[x.astype(int) - 2], atol=1e-5)
    assert labels(below)[1] == f"so far: {earned[-1] / whole[-1]:.1%}"


@pytest.mark.parametrize("record", [1, 7, 90, "totals"])
@pytest.mark.parametrize("horizon", [1, 45, 400])
def test_shares_do_not_depend_on_the_record(record, horizon):
    model = world(horizon)
    run, full = a_case(model)
    edges, shares = share_of_intervals(a_case(model, record)[1])
    assert (edges[0], edges[-1]) == (1, horizon + 1)
    optimal = np.concatenate([[0.0], full.optimal])
    earned = np.concatenate([[0.0], np.cumsum(run.mean_rewards)])
    for a, b, share in zip(edges[:-1].astype(int), edges[1:].astype(int), shares, strict=True):
        expected = (earned[b - 1] - earned[a - 1]) / (optimal[b - 1] - optimal[a - 1])
        assert share == pytest.approx(expected, abs=1e-12)


def test_a_gain_is_not_drawn_as_a_loss():
    """Where more than the optimal gain is earned, nothing is filled."""
    space = wd.StateActions([1, 1])
    spring = wd.MDP(space, [1.0, 0.0], [[0.0, 1.0], [0.05, 0.95]])
    model = wd.DriftingMDP.stationary(spring, horizon=20, noise="none")
    run = random_run(model, seed=3)
    regret = wd.dynamic_regret(run, model)
    assert regret.cumulative.min() < 0
    above, below = regret_figure(run, regret).axes
    (lost,) = below.collections
    assert lost.get_paths()[0].vertices[:, 1].max() == 1.0
    assert line(below, "in each").get_ydata().max() > 1.5
    assert below.get_ylim()[1] > line(below, "in each").get_ydata().max()
    assert above.get_ylim()[0] < regret.cumulative.min()
    assert any(np.all(np.asarray(one.get_ydata()) == 0.0) for one in above.get_lines())


def test_starts_of_episodes_are_ticks():
    run, regret = a_case()
    above = regret_figure(Told(run, [1, 30, 200]), regret).axes[0]
    (ticks,) = above.collections
    assert [path[0, 0] for path in ticks.get_segments()] == [1, 30, 200]
    assert labels(above)[3] == "starts of 3 episodes"
    assert labels(regret_figure(Told(run, [1]), regret).axes[0])[3] == "start of the one episode"
    assert len(labels(regret_figure(run, regret).axes[0])) == 3
    assert not regret_figure(run, regret).axes[0].collections


def test_too_many_episodes_are_thinned_and_counted():
    run, regret = a_case(world(5000))
    starts = list(range(1, 5001, 2))
    above = regret_figure(Told(run, starts), regret).axes[0]
    (ticks,) = above.collections
    drawn = [path[0, 0] for path in ticks.get_segments()]
    assert len(drawn) == 400
    assert set(drawn) <= set(starts)
    assert labels(above)[3] == "2,500 episodes, some starts drawn"
    kept = regret_figure(Told(run, starts[-300:], total=9000), regret).axes[0]
    assert labels(kept)[3] == "starts of the last 300 of 9,000 episodes"


def test_the_episodes_of_a_learner_are_drawn():
    model = world(2000)
    run = wd.run(model, wd.agents.make("ucrl2", model.space, horizon=2000))
    figure = regret_figure(run, wd.dynamic_regret(run, model), agent="ucrl2")
    drawn = [path[0, 0] for path in figure.axes[0].collections[0].get_segments()]
    assert drawn == run.episodes.start.tolist()


def test_totals_have_no_curve_and_say_so():
    run, regret = a_case(record="totals")
    figure = regret_figure(run, regret)
    assert notes(figure)[0] == ["totals only: no curve was recorded"]
    x, y = line(figure.axes[0], "r_t(s_t").get_data()
    assert x.tolist() == [1, 401]
    assert y.tolist() == [0.0, regret.total]


def test_the_last_steps_of_a_coarse_record_are_drawn():
    run, regret = a_case(record=150)
    x, y = line(regret_figure(run, regret).axes[0], "r_t(s_t").get_data()
    assert x.tolist() == [1, 151, 301, 401]
    assert y[-1] == regret.total


def test_nothing_to_earn():
    poor = wd.DriftingMDP.stationary(
        wd.MDP(wd.StateActions([2]), [0.0, 0.0], np.ones((2, 1))), horizon=30
    )
    figure = regret_figure(*a_case(poor))
    assert notes(figure)[1] == ["there is nothing to earn"]
    assert labels(figure.axes[1])[1] == "so far"


def test_titles():
    run, regret = a_case()
    figure = regret_figure(run, regret, "my $river$", agent="random", details="ties lowest")
    assert figure.get_suptitle() == r"my \$river\$    random agent    T = 400    seed 2"
    assert figure.axes[0].get_title(loc="right") == "ties lowest"
    model = world()
    agent = wd.agents.make("random", model.space, horizon=400)
    wd.run(model, agent, steps=100)
    late = wd.run(model, agent, steps=200)
    figure = regret_figure(late, wd.dynamic_regret(late, model))
    assert figure.get_suptitle() == "regret    t = 101..300    seed 0"
    assert figure.axes[1].get_xlim() == (101, 301)


def test_a_regret_of_another_run_is_refused():
    run, regret = a_case()
    for other in (replace(regret, last=399), a_case(record=2)[1]):
        with pytest.raises(wd.InputError, match="is not that of"):
            regret_figure(run, other)


@pytest.mark.parametrize(
    "model",
    [
        world(1),
        world(2),
        world(20_000),
        wd.DriftingMDP.stationary(random_mdp(wd.StateActions([2, 1]), 3), horizon=90),
    ],
    ids=["one", "two", "long", "still"],
)
def test_all_of_it_is_on_the_page(model, tmp_path):
    run, regret = a_case(model)
    told = Told(run, [1] if model.horizon == 1 else [1, 2])
    figure = regret_figure(told, regret, "w" * 70, agent="a" * 60, details="d" * 200)
    assert_on_the_page(figure)
    for name in ("a", "b"):
        save_figure(regret_figure(told, regret), tmp_path / f"{name}.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
