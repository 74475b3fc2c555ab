"""The parts that results are made of, each against a witness of its own."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import windage as wd
from paper import (
    Effort,
    bandit,
    borl,
    coverage,
    episodes,
    evi_properties,
    module,
    proposition3,
    theorem1_rates,
)
from paper.cases import CASES, LONGEST, learner, make
from paper.inventory import averaged_diameters, inventory_window
from paper.proposition3 import computed_points, lecture_page
from paper.result import Table, starred
from tests.e2e.chrome import MISSING, find_chrome
from tests.paper import runs
from windage.confidence import tuning
from windage.confidence.radii import Radii
from windage.envs.proposition3 import peril_replay


@pytest.mark.parametrize("name", ["river", "ragged", "peril"])
def test_the_checker_is_the_one_of_the_tests(name):
    """Sets recounted from a record, and those that the agent says it planned with."""
    for episode, start in zip(
        runs.in_hindsight(name).episodes(), runs.played(name).starts, strict=True
    ):
        mine = evi_properties.best_values(episode, episode.bias)
        assert mine == pytest.approx(runs.best_values(start.region, start.bias), abs=1e-9)
        printed = evi_properties.printed_values(episode, episode.bias)
        assert printed == pytest.approx(runs.printed_values(start.region, start.bias), abs=1e-9)


@pytest.mark.parametrize(
    ("tau", "eta", "best"), [(50, 0.0, 1.12), (500, 0.0, 3.2), (500, 0.1, 2.8), (500, 0.5, 1.8)]
)
def test_best_diameters_are_those_of_the_formula(tau, eta, best):
    """1 / min(1, p-hat + (rad + eta) / 2), the larger of the two actions; figures of the spec."""
    region = proposition3.poisoned(peril_replay(tau), Radii.paper(), eta)
    L = math.log(4 * 4 * tau / 0.05)
    ways = [
        1 / (tau + 1) + (2 * math.sqrt(4 * L / (tau + 1)) + eta) / 2,
        (2 * math.sqrt(4 * L / (tau - 1)) + eta) / 2,
    ]
    assert proposition3.best_diameter(region) == pytest.approx(1 / min(1, max(ways)), rel=1e-9)
    assert proposition3.best_diameter(region) == pytest.approx(best, abs=0.06)
    assert proposition3.span_if_one_state_pays(region) == pytest.approx(
        1 / min(1, max(ways)), rel=1e-3
    )


def test_bounds_of_failures_are_clopper_and_pearsons():
    for failures, n in ((0, 150), (3, 150), (17, 20), (20, 20)):
        both = binomtest(failures, n).proportion_ci(0.9, method="exact")
        assert coverage.ceiling(failures, n) == pytest.approx(both.high)
        assert coverage.floor(failures, n, 0.95) == pytest.approx(both.low)


def test_the_limit_of_violations_has_its_false_alarm_rate():
    limit = coverage.most_violations(150)
    assert sum(
        math.comb(150, k) * 0.025**k * 0.975 ** (150 - k) for k in range(limit + 1, 151)
    ) <= 1e-6 < sum(
        math.comb(150, k) * 0.025**k * 0.975 ** (150 - k) for k in range(limit, 151)
    )  # fmt: skip


def test_counterfactual_blocks_are_those_of_borl_with_one_arm():
    """The first block of BORL with a single arm, and of the block's own arm in every block."""
    model = wd.envs.make("two-state-cosine", horizon=1200)
    agent = make("borl", model, 4)
    run = wd.run(model, agent, seed=4)
    earned = borl.counterfactual(model, agent, run)
    blocks = agent.blocks
    own = np.add.reduceat(run.mean_rewards, blocks.start - 1)
    assert earned[np.arange(len(blocks)), blocks.arm] == pytest.approx(own, abs=1e-9)
    assert np.unique(earned[0]).size > 5
    for k in (0, 7, len(agent.arms) - 1):
        alone = make("borl", model, 4, arms=[agent.arms[k]] * 2)
        first = wd.run(model, alone, seed=4, steps=blocks.block_length)
        assert first.total_mean_reward == pytest.approx(earned[0, k], abs=1e-9)


@pytest.mark.parametrize(("T", "B"), [(10_000, 3.0), (100_000, 1.5), (30_000, 48.0)])
def test_batches_spend_their_budget(T, B):
    """Two arms that trade places, by one gap, every 30 W steps or more often."""
    model = bandit.batches(T, B)
    assert model.budgets().reward == pytest.approx(B, rel=1e-9)
    means = np.array([model.at(t).rewards for t in range(1, T + 1)])
    gaps = means[:, 0] - means[:, 1]
    trades = np.flatnonzero(np.diff(np.sign(gaps)))
    assert np.abs(gaps) == pytest.approx(B / trades.size, rel=1e-9)
    W = 2 ** (1 / 3) * (T / B) ** (2 / 3)
    assert 0 < means.min() < means.max() < 1
    lengths = np.diff(np.concatenate([[-1], trades, [T - 1]]))
    assert np.ptp(lengths) <= 1
    assert trades.size == max(math.ceil(B / 0.8), int(T / (30 * W)))


def test_a_random_agent_loses_half_the_gap_of_a_batch():
    model = bandit.batches(1_000_000, 3.0)
    rate = np.cbrt(2 * 3.0) * 1e6 ** (2 / 3)
    lost = bandit._regrets(model, 3.0, "random", 2, Effort())
    assert lost.mean() / rate == pytest.approx(15, rel=0.2)
    mine = bandit._regrets(model, 3.0, "Laplace radii", 2, Effort())
    assert mine.mean() < lost.mean() / 5


def test_averages_of_inventory_are_harmless_and_those_of_the_peril_are_not():
    shop = wd.envs.make("inventory-v0", horizon=2000)
    calm = averaged_diameters(shop, radii="laplace")
    assert calm.max() <= 50 * (1 + 1e-9)
    episodes = wd.run(shop, learner(shop, radii="laplace"), seed=0).episodes
    assert calm.size == len(episodes) - 1 > 50  # all of them but the first, whose window is empty
    wild = averaged_diameters(
        wd.envs.make("peril", tau=50, repeats=5), window=200, widening=0.0,
        radii={"kind": "laplace", "scale": 0.03},
    )  # fmt: skip
    assert wild.max() > 10
    S, SA, B = 10, 55, shop.budgets().reward + shop.budgets().transition
    assert inventory_window(shop) == round((S * math.sqrt(SA / S) * 2000 / B) ** (2 / 3))


@pytest.mark.parametrize(
    ("name", "least"),
    [("perils", 800), ("coverage", 1000), ("episodes", 60), ("span", 400), ("evi", 400),
     ("regret", 400), ("benchmark", 50), ("borl", 1069), ("bandit", 100_000), ("piecewise", 23_835),
     ("inventory", 2157), ("rates", 100_000), ("tuning", 7612), ("figures", 48)],
)  # fmt: skip
def test_too_small_a_horizon_says_the_least_that_means_something(name, least):
    import paper

    with pytest.raises(wd.InputError, match=f"least that means something is {least}") as err:
        paper.compute(name, Effort(horizon=least - 1))
    assert str(err.value).startswith(f"{name}.horizon: ")
    assert f"T = {least - 1} is too small" in str(err.value)


def tuned_window(world, T):
    model = wd.envs.make(f"{world}-v0", horizon=T)
    B = model.budgets()
    return wd.optimal_window(model.space, T, B.reward, B.transition)


def blocks_of_borl(world, T):
    return tuning.borl_grid(wd.envs.make(f"{world}-v0", horizon=T).space, T).blocks


def printed_sets_say_something(T):
    space = wd.StateActions([2, 2])
    visits = int(tuned_window("two-state-cosine", T) / 4)
    return Radii.paper().transition(visits, space=space, horizon=T, delta=0.05) < 2


def ucrl2_says_something_between_jumps(T):
    model = wd.envs.make("random-drift", horizon=T, shape="jumps")
    between = T // (model.budgets().changes + 1)
    visits = between // model.space.n_pairs
    bounds = {"space": model.space, "horizon": T, "delta": 0.05, "t": between}
    return Radii.ucrl2().transition(visits, **bounds) < 2


@pytest.mark.parametrize(
    ("name", "is_enough"),
    [
        ("perils", lambda T: T // 40 >= 20),
        ("coverage", lambda T: T >= 2 * coverage.WINDOW),
        ("episodes", lambda T: sum(2 * W <= T for W in episodes.WINDOWS) >= 4),
        *((name, lambda T: T >= 2 * 200) for name in ("span", "evi", "regret")),
        ("borl", lambda T: min(blocks_of_borl(world, T) for world, _ in borl.WORLDS) >= 2),
        ("bandit", lambda T: sum(t <= T for t in bandit.HORIZONS) >= 3),
        ("piecewise", ucrl2_says_something_between_jumps),
        ("inventory", lambda T: tuned_window("inventory", T) <= T / 4),
        ("rates", lambda T: sum(t <= T for t in theorem1_rates.HORIZONS) >= 2),
        ("tuning", printed_sets_say_something),
        ("figures", lambda T: blocks_of_borl("two-state-cosine", T) >= 2),
    ],
)
def test_what_is_said_of_fewer_steps_is_true_of_them_and_not_of_the_least(name, is_enough):
    least = module(name).LEAST.steps
    assert not is_enough(least - 1)
    assert is_enough(least)


def test_the_longest_window_of_the_suite():
    assert max(learner(case.model(Effort(horizon=400)), **case.options).window
               for case in CASES if "window" in case.options) == LONGEST == 200  # fmt: skip


def test_too_few_seeds_are_refused():
    with pytest.raises(wd.InputError, match="ask for 20 at the least"):
        coverage.compute(Effort(seeds=3))


def test_tables_and_stars():
    table = Table("A title", ("a", "b"), [["1", "x | y"]])
    assert table.markdown().splitlines()[-1] == r"| 1 | x \| y |"
    assert starred("W*, rho*_t and eta\\*") == r"W\*, rho\*_t and eta\*"


def test_the_lecture_page_of_the_documentation_is_the_one_that_is_made():
    """Its source is the template in `paper`; `windage paper perils` puts the dots in."""
    kept = Path(__file__).parents[3] / "docs/paper/results/lecture.html"
    assert kept.read_text() == lecture_page(), "run windage paper perils -o docs/paper/results"


def test_the_lecture_page_agrees_with_the_library(tmp_path):
    """Its formulas, run by a browser, against diameters that the library computes."""
    page = lecture_page()
    assert "http" not in page.replace("http://www.w3.org", "")
    cases = "COMPUTED.map(c => [bestDiameter(c.tau, c.eta, c.radii), c.tau + 1])"
    page = page.replace("draw();\n</script>", f"document.title = JSON.stringify({cases});</script>")
    (tmp_path / "page.html").write_text(page)
    done = subprocess.run(
        [find_chrome() or pytest.fail(MISSING), "--headless", "--no-sandbox", "--disable-gpu",
         "--disable-background-networking", "--dump-dom", f"file://{tmp_path}/page.html"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    title = done.stdout.split("<title>")[1].split("</title>")[0]
    found = np.array(eval(title))
    points = computed_points()
    assert found[:, 0] == pytest.approx([one["best"] for one in points], rel=1e-9)
    assert found[:, 1] == pytest.approx([one["average"] for one in points], rel=1e-9)
