"""What the family of learners refuses, the field it names, and that nothing has changed then."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from windage.agents.optimistic.ucrl2 import cubic_restarts, restart_times
from windage.agents.state import Blob, pack, unpack
from windage.confidence.tuning import KnownBudgets
from windage.errors import InputError, ModelError, StateError, WindageError

SPACE = wd.StateActions([2, 3], state_names=["low", "high"])
T = 60
PHASES = {"restarts": [20, 45], "reward_variation": [0.1] * 3, "transition_variation": [0.2] * 3}
FAMILY = {
    "ucrl2-restarts": {"restarts": [20, 45]},
    "sw-ucrl": {"window": 15},
    "va-ucrl": PHASES,
    "psrl": {},
    "sw-psrl": {"window": 15},
    "restarted-psrl": {"restarts": [20, 45]},
    "diff-q": {},
    "swucrl2-cw-practical": dict.fromkeys(("window", "widening", "slack"), "oblivious"),
}
NO_NUMBERS = [math.nan, math.inf, -1, "x", None, True, [0.5]]


def make(kind, horizon=T, **options):
    return wd.agents.make(kind, SPACE, horizon=horizon, **FAMILY[kind] | options)


def model(horizon, noise="bernoulli"):
    mdp = wd.MDP(SPACE, [0.2, 0.5, 0.8, 0.4, 0.6], [[0.5, 0.5]] * 5)
    return wd.DriftingMDP.stationary(mdp, horizon=horizon, noise=noise)


def refused(error, field, call, *arguments, **options):
    """See to it that a call fails with a typed error about this field that says what to do."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert caught.value.field.startswith(field), caught.value
    assert caught.value.fix
    return str(caught.value)


class TestParameters:
    @pytest.mark.parametrize("kind", FAMILY)
    def test_those_of_every_agent(self, kind):
        for wrong in (0, -1, 2.0, None, True, 2**40):
            refused(InputError, "horizon", make, kind, horizon=wrong)
        for wrong in (-1, 1.0, None):
            refused(InputError, "seed", make, kind, seed=wrong)
        for wrong in (3, (1, 0), (0, math.inf), (0, 1, 2), "ab"):
            refused(InputError, "reward_range", make, kind, reward_range=wrong)
        refused(ModelError, "space", wd.agents.make, kind, 3, horizon=T, **FAMILY[kind])
        text = refused(InputError, f"{kind}.sed", make, kind, sed=1)
        assert "no such parameter" in text

    @pytest.mark.parametrize("kind", ["ucrl2-restarts", "sw-ucrl", "va-ucrl"])
    def test_those_of_optimists(self, kind):
        for name, values in {
            "delta": [0, 1, *NO_NUMBERS], "slack": NO_NUMBERS, "ties": ["best", 1, None],
            "radii": ["wide", 3, {"scale": 1}], "warm_start": [0, 1, None, "yes"],
        }.items():  # fmt: skip
            for wrong in values:
                refused(InputError, name, make, kind, **{name: wrong})

    @pytest.mark.parametrize("kind", ["psrl", "sw-psrl", "restarted-psrl"])
    def test_those_of_posterior_sampling(self, kind):
        for wrong in (0, 0.0, *NO_NUMBERS):
            refused(InputError, "prior", make, kind, prior=wrong)
        for wrong in ("tdse", "paper", None, 1):
            refused(InputError, "episodes", make, kind, episodes=wrong)
        text = refused(InputError, "episodes", make, kind, episodes="tdse")
        assert "did you mean 'tsde'" in text

    def test_those_of_differential_q(self):
        for name in ("rate", "gain_rate", "exploration"):
            for wrong in (1.0001, *NO_NUMBERS):
                refused(InputError, name, make, "diff-q", **{name: wrong})
        refused(InputError, "rate", make, "diff-q", rate=0)
        make("diff-q", rate=1, gain_rate=0, exploration=0)

    @pytest.mark.parametrize("kind", [wd.SWUCRL, wd.SWPSRL])
    def test_windows(self, kind):
        for wrong in (0, -1, 2.0, True, None, "x", [3], 2**40):
            refused(InputError, "window", kind, SPACE, horizon=T, window=wrong)
        refused(InputError, "window", wd.agents.make, kind.id, SPACE, horizon=T, window="tune")
        refused(InputError, "window", wd.agents.make, kind.id, SPACE, horizon=T, window="tuned")

    @pytest.mark.parametrize("kind", ["ucrl2-restarts", "restarted-psrl", "va-ucrl"])
    @pytest.mark.parametrize(
        "wrong",
        [0, -5, True, 2.0, "x", None, [1], [2, 2], [3, 2], [-1], [2.0, 3.0], [[2]], [[2], [3, 4]],
         [True], ["a"]],
        ids=str,
    )  # fmt: skip
    def test_restarts(self, kind, wrong):
        text = refused(InputError, "restarts", make, kind, restarts=wrong)
        if wrong == [3, 2]:
            assert "restarts at [1]: 2 comes too early" in text

    def test_words_for_restarts_need_to_know_the_changes(self):
        for kind in ("ucrl2-restarts", "restarted-psrl"):
            for budgets in (None, KnownBudgets(1.0, 1.0)):
                for word in ("tuned", "changes"):
                    refused(
                        InputError, "restarts", wd.agents.make, kind, SPACE, horizon=T,
                        restarts=word, budgets=budgets,
                    )  # fmt: skip
            told = {"horizon": 300, "budgets": model(300).budgets()}
            refused(InputError, "restarts", wd.agents.make, kind, SPACE, restarts="never", **told)

    def test_changes(self):
        for wrong in (-1, 101, 2.0, True, None, "x"):
            refused(InputError, "changes", cubic_restarts, wrong, 100)
            refused(
                InputError, "changes", wd.RestartedUCRL2.tuned, SPACE, horizon=100, changes=wrong
            )
        refused(InputError, "horizon", cubic_restarts, 1, 0)
        refused(InputError, "horizon", restart_times, 1, 0)

    def test_what_does_not_fit_in_memory(self):
        """Said before anything is allocated, with the size."""
        many = 2**40 - 1
        for call in (
            lambda: restart_times(1, many),
            lambda: cubic_restarts(many, many),
            lambda: wd.RestartedUCRL2.tuned(SPACE, horizon=many, changes=many),
        ):
            assert "TiB" in refused(ModelError, "restarts", call)
        large = wd.StateActions.uniform(states=200_000, actions=10)
        assert "TiB" in refused(ModelError, "space", wd.PSRL, large, horizon=10)
        practical = wd.SWUCRL2CW.practical
        assert "TiB" in refused(ModelError, "ties", practical, large, horizon=10, widening=0.5)

    @pytest.mark.parametrize("name", ["reward_variation", "transition_variation"])
    def test_variations(self, name):
        for wrong in (
            0.5, [0.1], [0.1] * 4, [0.1, 0.1, -0.1], [math.nan] * 3, [math.inf] * 3, "x", None,
            [True] * 3, [[0.1] * 3], ["a"] * 3,
        ):  # fmt: skip
            refused(InputError, name, make, "va-ucrl", **{name: wrong})
        with pytest.raises(InputError, match=r"at phase 3: -0.1 is not allowed"):
            make("va-ucrl", **{name: [0.1, 0.1, -0.1]})
        with pytest.raises(InputError, match=r"Fix: pass 3 numbers, by phase"):
            make("va-ucrl", **{name: [0.1]})

    def test_budgets_that_do_not_tell_enough(self):
        informed = wd.VariationAwareUCRL.informed
        for wrong in (None, 3, KnownBudgets(1.0, 1.0)):
            refused(InputError, "budgets", informed, SPACE, horizon=T, budgets=wrong)
        refused(InputError, "budgets", wd.agents.make, "va-ucrl", SPACE, horizon=T)
        short = model(30).budgets()
        assert informed(SPACE, horizon=30, budgets=short).restarts.size == 0
        with pytest.raises(InputError):
            informed(SPACE, horizon=T, budgets=short)

    def test_variations_too_small_for_a_phase(self):
        class Tiny(KnownBudgets):
            def between(self, first, last):
                return KnownBudgets(0.0, 0.0)

        agent = wd.VariationAwareUCRL.informed(SPACE, horizon=T, budgets=Tiny(1e-200, 0.0))
        assert agent.restarts.size == 0

    @pytest.mark.parametrize(
        ("kind", "field", "options"),
        [
            ("va-ucrl", "reward_variation", {"restarts": [3]}),
            ("va-ucrl", "restarts", {"reward_variation": [0.1], "transition_variation": [0.1]}),
            ("sw-ucrl", "window", {"window": np.array([3, 4])}),
        ],
    )
    def test_by_id_with_half_of_what_is_needed(self, kind, field, options):
        given = {"horizon": T, "budgets": model(T).budgets()}
        refused(InputError, field, wd.agents.make, kind, SPACE, **given, **options)

    def test_tuning_of_sw_ucrl(self):
        given = {"horizon": 100, "changes": 2, "diameter": 3.0}
        for name, values in {
            "changes": (-1, 1.0, True, None), "diameter": NO_NUMBERS, "delta": (0, 1, *NO_NUMBERS),
        }.items():  # fmt: skip
            for wrong in values:
                refused(InputError, name, wd.SWUCRL.tuned, SPACE, **given | {name: wrong})
        refused(InputError, "horizon", wd.SWUCRL.tuned, SPACE, **given | {"horizon": 0})
        refused(ModelError, "space", wd.SWUCRL.tuned, 3, **given)

    def test_practical(self):
        practical = wd.SWUCRL2CW.practical
        for name in ("reward_budget", "transition_budget"):
            given = {"reward_budget": 1.0, "transition_budget": 1.0}
            for wrong in (math.nan, math.inf, -1, "x", True, [0.5]):
                refused(InputError, name, practical, SPACE, horizon=T, **given | {name: wrong})
            del given[name]
            refused(InputError, name, practical, SPACE, horizon=T, **given)
        for wrong in (math.nan, math.inf, -1, True, [0.5]):
            refused(InputError, "slack", practical, SPACE, horizon=T, slack=wrong)
        refused(WindageError, "space", practical, 3, horizon=T)
        refused(WindageError, "horizon", practical, SPACE, horizon=0)


def in_the_middle(kind, **options):
    """An agent that has played on, past a restart if it has one, with a decision pending."""
    agent = make(kind, **options)
    wd.run(model(T), agent, seed=1, steps=33)
    agent.act(agent.last_state)
    return agent


@pytest.mark.parametrize("kind", FAMILY)
def test_impossible_observations_change_nothing(kind):
    agent = in_the_middle(kind)
    s, a = agent.last_state, agent.act(agent.last_state)
    before = agent.state()
    for call, field in [
        ((2, 0, 0.5, 0), "state"), ((True, 0, 0.5, 0), "state"), ((s, 3, 0.5, 0), "action"),
        ((s, 1.0, 0.5, 0), "action"), ((s, a, math.nan, 0), "reward"), ((s, a, "1", 0), "reward"),
        ((s, a, math.inf, 0), "reward"), ((s, a, 1e300, 0), "reward"), ((s, a, 0.5, 2), "s_next"),
        ((s, a, 0.5, None), "s_next"),
    ]:  # fmt: skip
        refused(InputError, field, agent.observe, *call)
        assert agent.state() == before
    refused(wd.CallOrderError, "act", agent.act, 1 - s)
    refused(wd.CallOrderError, "observe", agent.observe, 1 - s, 0, 0.5, 0)
    assert agent.state() == before
    agent.observe(s, a, 0.5, 0)
    refused(wd.CallOrderError, "observe", agent.observe, s, a, 0.5, 0)


def doubling(kind, **options):
    return wd.Doubling(lambda T: make(kind, horizon=T, **options), first=50)


@pytest.mark.parametrize(
    "make_agent",
    [
        *(pytest.param(lambda kind=kind, **options: make(kind, 400, **options), id=kind)
          for kind in FAMILY if kind != "diff-q"),
        pytest.param(lambda **options: doubling("psrl", **options), id="doubling"),
        pytest.param(lambda **options: make("diff-q", 400, **options), id="diff-q"),
        pytest.param(lambda **options: doubling("diff-q", **options), id="twice"),
    ],
)  # fmt: skip
def test_rewards_outside_a_declared_range_in_compiled_runs(make_agent):
    """The agent stays where the reward came, as if it had not been asked, and can go on."""
    loud, quiet = model(400, wd.Noise.gaussian(0.2)), model(400)
    agent, twin = (make_agent(reward_range=(0, 1), seed=2) for _ in range(2))
    wd.run(quiet, agent, seed=1, steps=70)
    with pytest.raises(InputError, match=r"reward at t=\d+: .* declared range \[0") as caught:
        wd.run(loud, agent, seed=1)
    wd.run(quiet, twin, seed=1, steps=70)
    if agent.t > 71:
        wd.run(loud, twin, seed=1, steps=agent.t - 71)
    assert (twin.t, twin.last_state) == (agent.t, agent.last_state)
    first, second = (wd.run(quiet, played, seed=3) for played in (agent, twin))
    assert first.actions.tolist() == second.actions.tolist()
    assert agent.state() == twin.state()
    assert caught.value.where == f"t={first.first}"


@pytest.mark.parametrize("kind", FAMILY)
def test_impossible_states_are_refused(kind):
    """Every array of a good blob cut short, left out, or with a number that is none."""
    agent = in_the_middle(kind)
    good = unpack(agent.state())
    assert wd.agents.restore(agent.state()).state() == agent.state()

    def bad(arrays=None, values=None, configuration=None):
        blob = Blob(
            good.agent,
            good.configuration | (configuration or {}),
            good.values | (values or {}),
            good.arrays if arrays is None else arrays,
        )
        with pytest.raises(StateError) as caught:
            wd.agents.restore(pack(blob))
        assert caught.value.fix

    for name, array in good.arrays.items():
        bad({key: value for key, value in good.arrays.items() if key != name})
        if array.size:
            bad(good.arrays | {name: array[:-1]})
        if array.dtype == np.float64 and array.size:
            broken = array.copy()
            broken.flat[0] = math.nan
            bad(good.arrays | {name: broken})
    for wrong in (0, -1, T + 2, "x", None, 12.5):
        bad(values={"t": wrong})
    for name in FAMILY[kind]:
        bad(configuration={name: "x"})
    for name, wrong in (("horizon", 3), ("space", 3), ("seed", -1), ("unheard_of", 1)):
        bad(configuration={name: wrong})


def test_none_is_left_open_and_a_ladder_is_a_list():
    """None means "not given" for every agent that is tuned."""
    model = wd.envs.make("peril", horizon=400, tau=25)
    for kind, name in (("sw-ucrl", "window"), ("ucrl2-restarts", "restarts")):
        facts = wd.agents.facts(kind, model)
        left, given = (
            wd.agents.make(kind, model.space, horizon=400, **facts, **options)
            for options in ({}, {name: None})
        )
        assert left.state() == given.state()
        with pytest.raises(InputError, match=f'^{name}: is "tuned", and '):
            wd.agents.make(kind, model.space, horizon=400, **{name: None})
    for ladder in (3, "high", [], [1.0, 1.0]):
        with pytest.raises(InputError, match="^ladder: .* does not rise. Fix: pass a list of"):
            wd.MASTER(model.space, horizon=400, diameter=3.0, ladder=ladder)
