"""Masters by id: input, what is saved, and what they lose to the best arm."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

import windage as wd
from windage import adversarial
from windage.adversarial import make_bank
from windage.errors import GuaranteeWarning, HorizonReached, InputError, StateError
from windage.rng import stream


def test_ids():
    assert adversarial.names() == sorted(["exp3p", "exp3", "exp3-s", "exp3-ix", "tsallis-inf"])
    for id in adversarial.names():
        master = adversarial.make(id, 3, 100, quiet=True)
        assert (master.id, master.n_arms, master.n_rounds) == (id, 3, 100)
        assert isinstance(master, adversarial.Master)
        assert master.probabilities.tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)
    with pytest.raises(InputError, match="did you mean 'exp3p'"):
        adversarial.make("exp3.p", 3, 100)
    with pytest.raises(InputError, match="changes: 'exp3' does not take it"):
        adversarial.make("exp3", 3, 100, changes=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10), "n_arms: 0"),
        ((2.0, 10), "n_arms: 2.0"),
        ((True, 10), "n_arms: True"),
        ((2, 0), "n_rounds: 0"),
        ((2, math.nan), "n_rounds: nan"),
        ((2, None), "n_rounds: None"),
    ],
)
@pytest.mark.parametrize("id", adversarial.names())
def test_impossible_masters(id, arguments, message):
    with pytest.raises(InputError, match=message):
        adversarial.make(id, *arguments)


@pytest.mark.parametrize("id", adversarial.names())
def test_impossible_calls_change_nothing(id):
    master = adversarial.make(id, 3, 50, quiet=True)
    master.update(1, 0.5)
    before = {name: array.tobytes() for name, array in master.saved().items()}
    for arm, reward, message in (
        (3, 0.5, "arm: 3"), (-1, 0.5, "arm: -1"), (1.0, 0.5, "arm: 1.0"), (True, 0.5, "arm: True"),
        (0, 1.1, "reward: 1.1"), (0, -0.1, "reward"), (0, math.nan, "reward: nan"),
        (0, None, "reward: None"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            master.update(arm, reward)
    for u in (1.0, -0.1, math.nan, None, "0.5"):
        with pytest.raises(InputError, match="u: "):
            master.choose(u)
    master.probabilities[:] = 7.0  # a copy
    assert {name: array.tobytes() for name, array in master.saved().items()} == before


def test_rounds_end():
    for id in adversarial.names():
        master = adversarial.make(id, 2, 10, quiet=True)
        for _ in range(10):
            master.update(0, 0.5)
        if master.anytime:
            master.update(0, 0.5)
            assert master.rounds == 11
        else:
            with pytest.raises(HorizonReached, match="all 10 rounds"):
                master.update(0, 0.5)


@pytest.mark.parametrize("id", adversarial.names())
def test_a_restored_master_goes_on_with_the_same_bytes(id):
    one, other = adversarial.make(id, 5, 400), adversarial.make(id, 5, 400)
    rng = stream(2, "saved")
    for t in range(300):
        u, x = rng.random(2)
        if t % 37 == 0:
            other = adversarial.make(id, 5, 400)
            other.restore({name: array.copy() for name, array in one.saved().items()})
        arm = one.choose(u)
        assert other.choose(u) == arm
        one.update(arm, x)
        other.update(arm, x)
        assert other.probabilities.tobytes() == one.probabilities.tobytes()
    one.saved()["scores"][:] = 0.0  # a copy
    assert other.probabilities.tobytes() == one.probabilities.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.zeros(3)}, "scores"),
        ({"scores": np.zeros(4, np.int64)}, "scores"),
        ({"scores": np.array([0.0, 1.0, math.nan, 0.0])}, "not finite"),
        ({"lost": np.full(4, math.inf)}, "not finite"),
        ({"rounds": np.array([-1])}, "-1 rounds"),
        ({"rounds": np.array([51])}, "51 rounds of 50"),
        ({"rounds": None}, "rounds"),
    ],
)
def test_damaged_states_change_nothing(change, message):
    master = adversarial.Exp3P(4, 50, quiet=True)
    before = master.probabilities
    with pytest.raises(StateError, match=message):
        master.restore(master.saved() | change)
    assert (master.probabilities == before).all()
    shared = adversarial.Exp3S(4, 50, quiet=True)
    with pytest.raises(StateError, match="a weight is not positive"):
        shared.restore(shared.saved() | {"scores": np.array([0.0, 1.0, 1.0, 1.0])})


def test_one_warning_with_the_numbers():
    """E4: gamma above 1, at construction, once, and for nobody who asks for silence."""
    with pytest.warns(GuaranteeWarning) as seen:
        master = adversarial.Exp3P(n_arms=35, n_rounds=11)
    assert len(seen) == 1
    text = str(seen[0].message)
    enough = math.ceil(1.05**2 * 35 * math.log(35))
    for part in ("gamma = 3.53 > 1", "35 arms", "11 rounds", f"it takes {enough} rounds"):
        assert part in text, text
    assert seen[0].filename == __file__
    assert master.raw_gamma == pytest.approx(1.05 * math.sqrt(35 * math.log(35) / 11), rel=1e-15)
    assert master.gamma == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(11):
            master.update(master.choose(0.3), 1.0)
        adversarial.make("exp3p", 35, 11, quiet=True)
        adversarial.make("exp3-ix", 35, 11)
        adversarial.make("tsallis-inf", 35, 11)
    with pytest.warns(GuaranteeWarning, match="gamma = 1 > 1"):
        adversarial.Exp3P(35, enough - 1)
    with pytest.warns(GuaranteeWarning, match="its bound says that"):
        assert adversarial.Exp3P(35, enough).gamma <= 1.0
    for id in ("exp3", "exp3-s"):
        with pytest.warns(GuaranteeWarning, match=f"{id}: gamma = .* it takes (\\d+) rounds"):
            adversarial.make(id, 35, 11)


@pytest.mark.parametrize("id", ["exp3p", "exp3", "exp3-s"])
@pytest.mark.parametrize("K", [2, 3, 35, 1000])
def test_from_when_on_gamma_is_at_most_one(id, K):
    enough = adversarial.make(id, K, 1, quiet=True).enough
    assert adversarial.make(id, K, enough, quiet=True).raw_gamma <= 1.0
    assert enough == 1 or adversarial.make(id, K, enough - 1, quiet=True).raw_gamma > 1.0


@pytest.mark.parametrize("K", [2, 3, 35])
def test_a_bound_that_promises_nothing_is_said(K):
    """Between gamma <= 1 and a bound below n lie many rounds; solved here by hand for sqrt(n)."""
    root = 5.15 * math.sqrt(K * math.log(K)) + math.sqrt(K / math.log(K))
    enough = math.floor(root**2) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        master = adversarial.Exp3P(K, enough)
    assert (master.said, master.regret_bound < enough) == ("", True)
    text = f"exp3p: its bound says that {enough - 1} rounds .* With as many arms it takes {enough}"
    with pytest.warns(GuaranteeWarning, match=text) as seen:
        assert adversarial.Exp3P(K, enough - 1).raw_gamma <= 1.0
    assert seen[0].filename == __file__
    assert adversarial.Exp3P(K, enough - 1, quiet=True).said.startswith("exp3p: its bound")


def fixed_gap(t, K, master):
    return np.where(np.arange(K) == K - 1, 0.9, 0.1)


def alternating(t, K, master):
    """Two arms pay in turns; one of them a little more often."""
    rewards = np.zeros(K)
    rewards[0 if t % 5 < 3 else 1] = 1.0
    return rewards


def punishing(t, K, master):
    """Nothing for the arm it plays most."""
    return (np.arange(K) != np.argmax(master.probabilities)).astype(float)


def regret(choose, learn, adversary, master, K, n):
    earned, totals = 0.0, np.zeros(K)
    for t in range(n):
        rewards = adversary(t, K, master)
        arm = choose(t)
        earned += rewards[arm]
        totals += rewards
        learn(arm, rewards[arm])
    return totals.max() - earned


@pytest.mark.parametrize("adversary", [fixed_gap, alternating, punishing])
@pytest.mark.parametrize("id", adversarial.names())
def test_the_best_arm_is_hardly_better(id, adversary):
    """Regret of EXP3.P within its bound; the others need no more on these adversaries."""
    K, n = 4, 3000
    bound = 5.15 * math.sqrt(n * K * math.log(K)) + math.sqrt(n * K / math.log(K))
    assert adversarial.Exp3P(K, n).regret_bound == pytest.approx(bound, rel=1e-14)
    lost = []
    for seed in range(3 if id == "exp3p" else 1):
        master, u = adversarial.make(id, K, n), stream(seed, "choices").random(n)
        lost.append(
            regret(lambda t: master.choose(u[t]), master.update, adversary, master, K, n)  # noqa: B023
        )
    print(id, adversary.__name__, np.mean(lost), bound)
    assert np.mean(lost) <= bound


def test_the_bound_would_catch_a_master_that_learns_nothing():
    K, n = 4, 3000
    master, u = adversarial.Exp3P(K, n), stream(0, "choices").random(n)
    lost = regret(lambda t: int(u[t] * K), lambda *_: None, fixed_gap, master, K, n)
    assert lost > 2 * master.regret_bound


def test_one_arm_has_nothing_to_lose():
    assert adversarial.Exp3P(1, 10).regret_bound == 0.0


def test_masters_load_late():
    code = "import sys, windage.adversarial as m; m.names(); assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arms": [3, -1]}, r"arms\[1\]: -1 is out of range"),
        ({"arms": [3, 0]}, r"arms\[1\]: 0 is out of range"),
        ({"arms": [1.5]}, "arms: holds float64"),
        ({"arms": [2**39]}, "arms: would need about"),
        ({"form": 4}, "form: 4 is not an integer from 0 to 3"),
        ({"form": -1}, "form: -1 is not"),
    ],
)
def test_banks_that_cannot_be(given, message):
    with pytest.raises(wd.WindageError, match=message):
        make_bank(**{"form": 0, "arms": [3, 2], "alpha": 0.1} | given)
