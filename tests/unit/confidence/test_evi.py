"""EVI on models one can do by hand; that it ends, and how it says that it did not."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.unit.confidence.test_evi_certificate import assert_certified, random_region
from windage.confidence.confidence import ConfidenceRegion, evi
from windage.errors import InputError, NotConverged
from windage.spaces import StateActions

METHODS = ["auto", "plain"]


def sure(rewards, rows, radius=0.0, widening=0.0, actions=None):
    """A region around known rows; with radius 0 it is one model."""
    space = StateActions(actions or [1] * len(rows[0]))
    n = len(rows)
    return ConfidenceRegion(space, rewards, rows, np.full(n, radius), np.ones(n, bool), widening)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("eta", [0.1, 0.5, 1.0, 1.9])
def test_a_swap_that_can_be_held_up(method, eta):
    """State 0 pays 1 and moves on, state 1 pays 0 and comes back; eta / 2 may stay in state 0.

    The stationary law is in balance where pi_0 (1 - eta / 2) = pi_1, so the gain is
    1 / (2 - eta / 2); one step later the reward is exact, so u_0 - u_1 is the gain.
    """
    region = sure([1.0, 0.0], [[0, 1], [1, 0]], widening=eta)
    model = evi(region, 1e-10, method=method)
    assert model.gain == pytest.approx(1 / (2 - eta / 2), abs=1e-9)
    assert model.bias == pytest.approx([1 / (2 - eta / 2), 0.0], abs=1e-9)
    assert model.transitions == pytest.approx(np.array([[eta / 2, 1 - eta / 2], [1, 0]]), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("eta", [0.02, 0.3])
def test_two_islands_joined_by_the_widening_alone(method, eta):
    """Nobody ever left; gain 1 in state 0, and state 1 leads there with probability eta / 2."""
    region = sure([1.0, 0.0], np.eye(2), widening=eta)
    model = evi(region, 1e-9, method=method)
    assert model.gain == pytest.approx(1.0, abs=1e-8)
    assert model.span == pytest.approx(2 / eta, rel=1e-6)


def test_one_state_is_the_largest_reward():
    """S = 1: argmax of reward_upper, whatever the sets are."""
    rng = np.random.default_rng(0)
    for actions in (1, 2, 7):
        rewards = rng.random(actions)
        region = ConfidenceRegion(
            StateActions([actions]), rewards, np.ones((actions, 1)), rng.random(actions),
            rng.random(actions) < 0.5, 0.3,
        )  # fmt: skip
        for method in METHODS:
            model = evi(region, 1e-9, method=method, warm_start=[5.0])
            assert model.gain == max(rewards)
            assert model.policy.tolist() == [int(np.argmax(rewards))]
            assert (model.span, model.sweeps, model.gap) == (0.0, 1, 0.0)
            assert model.action_values.tolist() == rewards.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_known_is_the_largest_reward_of_all(method):
    """eta >= 2 or no visits: any state can be next, so go where the reward is largest and stay."""
    for seed in range(10):
        region = random_region(seed)
        for eta, visited in ((2.0, True), (5.0, True), (0.0, False)):
            free = ConfidenceRegion(
                region.space, region.reward_upper,
                np.eye(region.space.n_states)[region.space.state_of], np.zeros(len(region.radius)),
                np.full(len(region.radius), visited), eta,
            )  # fmt: skip
            model = evi(free, 1e-9, method=method)
            assert model.gain == pytest.approx(max(region.reward_upper), abs=1e-9)
            own = [region.reward_upper[region.space.state_of == s] for s in range(len(model.bias))]
            assert model.policy.tolist() == [int(np.argmax(r)) for r in own]
            assert model.span <= 1.0


@pytest.mark.parametrize("method", METHODS)
def test_a_periodic_model_of_radius_zero_is_solved(method):
    """Plain sweeps of a 2-cycle return to where they were; halved steps do not."""
    region = sure([1.0, 0.0], [[0, 1], [1, 0]])
    model = evi(region, 1e-9, method=method)
    assert model.gain == pytest.approx(0.5, abs=1e-9)
    assert model.bias == pytest.approx([0.5, 0.0], abs=1e-8)
    assert_certified(region, model, 1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("states", [3, 4, 7])
def test_longer_cycles_are_solved(method, states):
    rows = np.roll(np.eye(states), 1, axis=1)
    region = sure(np.eye(states)[0], rows)
    model = evi(region, 1e-9, method=method)
    assert model.gain == pytest.approx(1 / states, abs=1e-9)
    assert_certified(region, model, 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_two_closed_classes_are_not_solved_but_said(method):
    """Gains 1 and 0.25 that cannot reach each other: the span stays at 0.75 for ever (E39)."""
    region = sure([1.0, 0.25], np.eye(2))
    with pytest.raises(NotConverged, match=r"after (\d+) sweeps span\(Tu - u\) is 0.75") as caught:
        evi(region, 1e-3, method=method)
    assert caught.value.field == "evi"
    assert "wanted 0.001" in caught.value.problem
    assert "radius or widening" in caught.value.fix
    sweeps = int(caught.value.problem.split()[1])
    assert 1 < sweeps < 100_000


@pytest.mark.parametrize("method", METHODS)
def test_closed_classes_of_one_gain_are_solved(method):
    region = sure([0.5, 1.0, 0.0], [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    model = evi(region, 1e-9, method=method)
    assert model.gain == pytest.approx(0.5, abs=1e-9)
    assert_certified(region, model, 1e-9)


def test_no_more_sweeps_than_allowed():
    region = sure([1.0, 0.0], [[0, 1], [1, 0]], widening=0.5)
    with pytest.raises(NotConverged, match="after 1 sweeps span.* is 1, wanted 0.001"):
        evi(region, 1e-3, max_sweeps=1)
    needed = evi(region, 1e-3, method="plain").sweeps
    assert needed > 3
    assert evi(region, 1e-3, method="plain", max_sweeps=needed).sweeps == needed
    with pytest.raises(NotConverged, match=f"after {needed - 1} sweeps"):
        evi(region, 1e-3, method="plain", max_sweeps=needed - 1)
    assert evi(region, 1.0, max_sweeps=1).sweeps == 1  # span(T0 - 0) = 1


def test_a_start_at_the_answer_needs_one_sweep():
    for seed in range(5):
        region = random_region(seed)
        first = evi(region, 1e-6)
        again = evi(region, 1e-6, warm_start=first.bias)
        assert again.sweeps == 1
        assert again.gain == first.gain
        assert again.bias.tolist() == first.bias.tolist()


def test_a_common_offset_of_the_start_costs_no_digits():
    """1e12 + 0.3 has four digits left behind the point; the gain must not be read off them."""
    region = sure([0.3, 0.3], np.eye(2))
    model = evi(region, 1e-9, warm_start=[1e12, 1e12])
    assert model.gain == 0.3
    assert model.action_values.tolist() == [0.3, 0.3]


@pytest.mark.parametrize("radius", [1e-4, 0.05, 0.3])
def test_evaluations_between_sweeps_are_a_short_cut_to_the_same_place(radius):
    """A slow river, cold and warm; how many sweeps it saves is for the benchmarks to say."""
    mdp = wd.envs.riverswim_mdp(40)
    n = mdp.space.n_pairs
    region = ConfidenceRegion(
        mdp.space, mdp.rewards, mdp.transitions, np.full(n, radius), np.ones(n, bool)
    )
    quick, plain = evi(region, 1e-4), evi(region, 1e-4, method="plain")
    again = evi(region, 1e-4, warm_start=evi(region, 1e-2).bias)
    assert again.sweeps < plain.sweeps
    for model in (quick, again, plain):
        assert model.gain == pytest.approx(plain.gain, abs=1e-4)
        assert_certified(region, model, 1e-4)


def test_more_states_than_insertion_sorts():
    """Rewards falling with the index turn the order of u round: heapsort, in the first sweeps."""
    n = 80
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(n), n)
    region = sure(np.linspace(1.0, 0.0, n), rows, radius=0.3)
    models = [evi(region, 1e-8, method=method) for method in METHODS]
    for model in models:
        assert_certified(region, model, 1e-8)
    # turned round, the same: here insertion is cheap
    turned = sure(np.linspace(0.0, 1.0, n), rows[::-1, ::-1], radius=0.3)
    assert evi(turned, 1e-8).gain == pytest.approx(models[0].gain, abs=1e-7)


def tied_region():
    space = StateActions([4, 2])
    rewards = [0.5, 1.0, 1.0, 0.9375, 0.25, 0.25]
    return ConfidenceRegion(space, rewards, np.zeros((6, 2)), np.zeros(6), np.zeros(6, bool))


def test_ties_are_broken_as_asked():
    region = tied_region()
    lowest = evi(region)
    assert lowest.policy.tolist() == [1, 0]
    assert lowest.tied.tolist() == [False, True, True, False, True, True]
    seen = {tuple(evi(region, ties="random", seed=seed).policy.tolist()) for seed in range(60)}
    assert seen == {(1, 0), (1, 1), (2, 0), (2, 1)}
    assert evi(region, ties="random", seed=7).policy.tolist() == (
        evi(region, ties="random", seed=7).policy.tolist()
    )


def test_slack_widens_what_counts_as_tied():
    region = tied_region()
    assert evi(region, slack=0.0625).tied.tolist() == [False, True, True, True, True, True]
    assert evi(region, slack=0.0624).tied.tolist() == [False, True, True, False, True, True]
    assert evi(region, slack=0.5).policy.tolist() == [0, 0]
    assert evi(region, slack=0.0625).gain == 1.0
    seen = {
        int(evi(region, ties="random", slack=0.0625, seed=seed).policy[0]) for seed in range(60)
    }
    assert seen == {1, 2, 3}


def test_rounding_neither_breaks_nor_makes_a_tie():
    """0.1 + 0.2 is not 0.3 in doubles; nor is 0.3 - 1e-9."""
    space = StateActions([3])
    region = ConfidenceRegion(
        space, [0.3, 0.1 + 0.2, 0.3 - 1e-9], np.ones((3, 1)), np.zeros(3), np.ones(3, bool)
    )
    model = evi(region)
    assert model.tied.tolist() == [True, True, False]
    assert model.policy.tolist() == [0]


def test_random_ties_are_even():
    """400 seeds, two choices: off by more than 0.135 with probability below 1e-6 (Hoeffding)."""
    region = tied_region()
    share = np.mean([evi(region, ties="random", seed=seed).policy[1] for seed in range(400)])
    assert abs(share - 0.5) <= 0.135


def test_answers_can_be_compared_and_kept_in_sets():
    region = tied_region()
    one, other = evi(region), evi(region)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


BAD = [
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1e-3}, "epsilon"),
    ({"epsilon": np.nan}, "epsilon"),
    ({"epsilon": "small"}, "epsilon"),
    ({"slack": -0.1}, "slack"),
    ({"slack": np.inf}, "slack"),
    ({"ties": "first"}, "ties"),
    ({"method": "fast"}, "method"),
    ({"max_sweeps": 0}, "max_sweeps"),
    ({"max_sweeps": 1.5}, "max_sweeps"),
    ({"seed": -1}, "seed"),
    ({"warm_start": [0.0]}, "warm_start"),
    ({"warm_start": [[0.0, 0.0]]}, "warm_start"),
    ({"warm_start": [0.0, np.nan]}, "warm_start"),
    ({"warm_start": [0.0, np.inf]}, "warm_start"),
    ({"warm_start": "zero"}, "warm_start"),
    ({"warm_start": ["0", "1"]}, "warm_start"),
    ({"warm_start": [0.0, [1.0]]}, "warm_start"),
]


@pytest.mark.parametrize(("options", "field"), BAD)
def test_bad_input_is_named(options, field):
    with pytest.raises(InputError) as caught:
        evi(tied_region(), **options)
    assert caught.value.field == field
    assert caught.value.fix


@pytest.mark.parametrize("region", [None, "region", [[1.0]]])
def test_a_region_that_is_none(region):
    with pytest.raises(InputError, match="region"):
        evi(region)


def test_the_start_is_not_written_to():
    start = np.array([3.0, 1.0])
    evi(tied_region(), warm_start=start)
    assert start.tolist() == [3.0, 1.0]
