"""Our models under Gymnasium's rules."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.utils.env_checker import check_env

import windage as wd
from windage.envs.registry import REGISTERED

IDS = {  # fixed: people have them in their code
    "windage/Assortment-v0": "assortment-v0",
    "windage/Bandit-v0": "bandit-v0",
    "windage/Bidding-v0": "bidding-v0",
    "windage/Bidding-v1": "bidding-v1",
    "windage/Epidemic-v0": "epidemic-v0",
    "windage/Inventory-v0": "inventory-v0",
    "windage/Inventory-v1": "inventory-v1",
    "windage/Peril-v0": "peril-v0",
    "windage/Queue-v0": "queue-v0",
    "windage/Queue-v1": "queue-v1",
    "windage/RandomDrift-v0": "random-drift-v0",
    "windage/Replacement-v0": "replacement-v0",
    "windage/Replacement-v1": "replacement-v1",
    "windage/Ride-v0": "ride-v0",
    "windage/Ride-v1": "ride-v1",
    "windage/RiverSwim-v0": "riverswim-v0",
    "windage/Treatment-v0": "treatment-v0",
    "windage/TwoStateCosine-v0": "two-state-cosine-v0",
    "windage/Wireless-v0": "wireless-v0",
}
make_env = wd.gym.make_env  # the import of windage.gym registers the ids
RAGGED = wd.StateActions([2, 3, 1])


def ragged(horizon=50):
    rng = np.random.default_rng(3)
    base = [wd.MDP(RAGGED, rng.random(6), rng.dirichlet(np.ones(3), size=6)) for _ in range(2)]
    return wd.DriftingMDP.blend(base, wd.schedules.Linear(), horizon=horizon)


@pytest.mark.filterwarnings("ignore:.*is out of date")  # of ids that keep their numbers
@pytest.mark.parametrize("name", IDS)
def test_every_id_passes_gymnasiums_own_checker(name):
    env = gymnasium.make(name, horizon=100) if name != "windage/Peril-v0" else gymnasium.make(name)
    check_env(env.unwrapped)
    assert env.observation_space.n == env.unwrapped.model.space.n_states


@pytest.mark.filterwarnings("ignore:.*is out of date")
def test_the_ids_are_those_of_the_registry():
    assert {env.gymnasium_id: env.id for env in REGISTERED.values()} == IDS
    registered = {name for name in gymnasium.registry if name.startswith("windage/")}
    assert registered == set(IDS)
    for name, ours in IDS.items():
        assert gymnasium.make(name).unwrapped.model.name == ours


@pytest.mark.parametrize(
    "lines",
    [
        "import gymnasium, windage.gym; gymnasium.make('windage/RiverSwim-v0', horizon=9)",
        "import windage.gym; import gymnasium; gymnasium.make('windage/RiverSwim-v0', horizon=9)",
        "import windage as wd; import gymnasium; wd.gym; gymnasium.make('windage/RiverSwim-v0')",
        "import windage; import gymnasium; gymnasium.make('windage.gym:windage/RiverSwim-v0')",
        "import gymnasium; gymnasium.make('windage.gym:windage/RiverSwim-v0', horizon=9)",
        "import windage, sys; assert 'gymnasium' not in sys.modules and 'numpy' not in sys.modules",
        "import sys; path = list(sys.meta_path); import windage.gym; assert sys.meta_path == path",
    ],
)
def test_ids_are_known_in_any_order_of_imports(lines):
    subprocess.run([sys.executable, "-W", "error", "-c", lines], check=True, timeout=60)


def test_the_mean_reward_is_told_to_who_asks_for_it_alone():
    for options, told in (({}, False), ({"tell_mean": True}, True)):
        for env in (
            make_env(wd.envs.make("riverswim", horizon=9), **options),
            gymnasium.make("windage/RiverSwim-v0", horizon=9, **options),
        ):
            env.reset(seed=1)
            assert ("mean_reward" in env.step(0)[4]) == told


@pytest.mark.parametrize("name", ["riverswim", "inventory"])
def test_an_episode_is_the_run_with_the_same_seed(name):
    model = wd.envs.make(name, horizon=300)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=300, seed=5), seed=11)
    env = make_env(model, tell_mean=True)
    state, _ = env.reset(seed=11)
    for t in range(300):
        assert state == run.states[t]
        state, reward, terminated, truncated, info = env.step(run.actions[t])
        assert reward == run.rewards[t]
        assert info["mean_reward"] == run.mean_rewards[t]
        assert not terminated
        assert truncated == (t == 299)
    assert state == run.final_state
    with pytest.raises(wd.HorizonReached):
        env.step(0)


@pytest.mark.parametrize("name", ["inventory", "riverswim"])
def test_outcomes_are_shown_to_who_knows_a_structure(name):
    model = wd.envs.make(name, horizon=40)
    env, simulator = make_env(model), wd.simulate.Simulator(model, seed=3)
    env.reset(seed=3)
    for _ in range(40):
        action = int(model.space.counts[simulator.state]) - 1
        simulator.step(action)
        info = env.step(action)[4]
        assert info.get("seen") == simulator.seen
        assert ("seen" in info) == (name == "inventory")


def test_the_mask_is_the_action_set_and_samples_honour_it():
    env = make_env(ragged(horizon=400))
    state, info = env.reset(seed=0)
    env.action_space.seed(0)
    drawn = {s: set() for s in range(3)}
    for _ in range(400):
        expected = [int(a < RAGGED.counts[state]) for a in range(3)]
        assert info["action_mask"].tolist() == expected
        assert info["action_mask"].dtype == np.int8
        action = env.action_space.sample()
        assert env.action_space.contains(action)
        drawn[state].add(int(action))
        state, _, _, _, info = env.step(action)
    assert drawn == {0: {0, 1}, 1: {0, 1, 2}, 2: {0}}
    env.reset(options={"state": 2})
    assert {int(env.action_space.sample()) for _ in range(20)} == {0}
    assert env.action_space.sample(mask=np.array([0, 0, 1], dtype=np.int8)) == 2


def test_a_uniform_model_has_a_plain_discrete_space():
    assert type(make_env(wd.envs.make("riverswim", horizon=5)).action_space) is Discrete


def test_forbidden_actions_are_refused_or_moved_to_the_nearest():
    env = make_env(ragged())
    env.reset(seed=0, options={"state": 2})
    with pytest.raises(wd.InputError, match=r"s=2 offers 1 action\(s\)"):
        env.step(1)
    assert env.t == 1
    near, exact = make_env(ragged(), forbidden="nearest"), make_env(ragged())
    for one in (near, exact):
        one.reset(seed=4, options={"state": 0})
    assert near.step(2)[:2] == exact.step(1)[:2]
    near.reset(seed=4, options={"state": 0})
    exact.reset(seed=4, options={"state": 0})
    assert near.step(np.array(2))[:2] == exact.step(1)[:2], "as a vector hands them on"
    near.reset(options={"state": 2})
    for none in (-1, "1", None, 1.5, True):
        with pytest.raises(wd.InputError, match="action"):
            near.step(none)
    assert near.t == 1


def test_resets_without_a_seed_bring_new_noise_and_the_same_start_of_the_drift():
    env = make_env(wd.envs.make("riverswim", horizon=60))
    env.reset(seed=3)
    paths = []
    for _ in range(2):
        env.reset()
        paths.append([env.step(1)[:2] for _ in range(60)])
    assert paths[0] != paths[1]
    again = make_env(wd.envs.make("riverswim", horizon=60))
    again.reset(seed=3)
    again.reset()
    assert [again.step(1)[:2] for _ in range(60)] == paths[0]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_environments_are_vectorised(mode):
    many = gymnasium.make_vec(
        "windage/Inventory-v1", num_envs=3, vectorization_mode=mode, horizon=20,
        forbidden="nearest",
    )  # fmt: skip
    states, infos = many.reset(seed=1)
    assert states.shape == (3,)
    assert infos["action_mask"].shape == (3, 10)
    ended = np.zeros(3)
    for _ in range(42):
        _, rewards, terminated, truncated, infos = many.step(np.full(3, 9))
        ended += truncated
        assert not terminated.any()
        assert rewards.shape == (3,)
    assert ended.tolist() == [2, 2, 2]
    many.close()


def test_text_is_rendered():
    env = make_env(ragged(), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "t=1 s=0"
    env.step(1)
    assert env.render().startswith("t=2 s=")
    assert "after action 1 and reward" in env.render()
    assert make_env(ragged()).render() is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make_env(wd.envs), "module is not a DriftingMDP"),
        (lambda: make_env(ragged(), forbidden="never"), "no such choice: 'never'"),
        (lambda: make_env(ragged(), render_mode="human"), "no such choice: 'human'"),
        (lambda: make_env(ragged()).step(0), "call reset"),
        (lambda: make_env(ragged()).reset(options={"t": 3}), "'t' is no option of reset"),
        (lambda: make_env(ragged()).reset(options={"state": 9}), r"options\['state'\]"),
        (lambda: gymnasium.make("windage/RiverSwim-v0", horizn=9), "no such parameter"),
    ],
)
def test_what_cannot_be_played_is_refused(call, said):
    with pytest.raises(wd.WindageError, match=said):
        call()
