"""Every master against its definition in 50 digits, and far from where numbers are comfortable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from tests.unit.adversarial.literal import LITERAL, LiteralExp3P
from windage import adversarial
from windage.errors import InputError, NotConverged
from windage.rng import stream


def distance(master, literal):
    return max(abs(float(mpf(a) - b)) for a, b in zip(master.probabilities, literal, strict=True))


def adversary(t, probabilities):
    """Pay least what is played most, and change one's mind now and then."""
    order = np.argsort(np.argsort(-probabilities, kind="stable"), kind="stable")
    rewards = order / max(1, probabilities.size - 1)
    return rewards if (t // 700) % 2 == 0 else np.clip(1.3 - rewards, 0, 1)


def test_exp3p_stays_with_fifty_digits_for_ten_thousand_rounds():
    K, n = 4, 10_000
    master, literal = adversarial.Exp3P(n_arms=K, n_rounds=n), LiteralExp3P(K, n)
    for mine, exact in ((master.alpha, literal.alpha), (master.gamma, literal.gamma)):
        assert mine == pytest.approx(float(exact), rel=4e-16)
    assert master.beta == pytest.approx(float(literal.beta), rel=4e-16)
    draws, worst, least = stream(1, "exp3p").random(n), 0.0, 1.0
    for t in range(n):
        p = master.probabilities
        least = min(least, p.min())
        if t % 10 == 0 or t == n - 1:
            worst = max(worst, distance(master, literal.probabilities()))
        arm = master.choose(draws[t])
        x = float(adversary(t, p)[arm])
        master.update(arm, x)
        literal.update(arm, x)
    print(f"largest distance {worst:.1e}")
    assert worst <= 1e-12
    assert least < 0.05 < master.probabilities.max()  # it did learn


@pytest.mark.parametrize(
    ("id", "rounds"),
    [("exp3", 1500), ("exp3-s", 1500), ("exp3-ix", 1500), ("tsallis-inf", 120), ("exp3p", 1500)],
)
@pytest.mark.parametrize("K", [1, 2, 7])
def test_masters_are_what_their_definitions_say(id, rounds, K):
    master, literal = adversarial.make(id, K, rounds), LITERAL[id](K, rounds)
    draws, worst = stream(K, id).random(rounds), 0.0
    for t in range(rounds):
        p = master.probabilities
        assert p.min() >= 0.0
        assert abs(math.fsum(p) - 1.0) <= 1e-12
        if t % 10 == 0:
            worst = max(worst, distance(master, literal.probabilities()))
        arm = master.choose(draws[t])
        x = float(adversary(t, p)[arm])
        master.update(arm, x)
        literal.update(arm, x)
    assert worst <= 1e-12
    assert master.rounds == rounds
    assert (K == 1) == (master.probabilities.max() == 1.0)


@pytest.mark.parametrize("id", [id for id in adversarial.names() if id != "exp3-s"])
def test_only_differences_count(id):
    """Scores that have grown beyond 2^60 still take in rewards of 1: nothing is rounded away."""
    near, far = (adversarial.make(id, 3, 60, quiet=True) for _ in range(2))
    far.restore(far.saved() | {"scores": np.full(3, -(2.0**60))})
    for u in stream(4, "far").random(60):
        arm = near.choose(u)
        for master in (near, far):
            master.update(arm, 0.3 if arm == 2 else 0.9)
        assert far.probabilities == pytest.approx(near.probabilities, abs=1e-12)
    assert np.ptp(far.probabilities) > 0.01


def test_exp3s_counts_pieces_and_always_shares():
    """No change is one piece; weight is shared all the same, so that none ever vanishes."""
    n = 4000
    literal = LITERAL["exp3-s"](2, n)
    literal.pieces = 1
    literal.setup()
    master = adversarial.make("exp3-s", 2, n, changes=0)
    assert master.gamma == pytest.approx(float(literal.gamma), rel=1e-15)
    assert master.share == pytest.approx(math.e / (2 * n), rel=1e-15)
    for _ in range(n):
        x = 0.05 if master.rounds < n // 2 else 0.0
        master.update(0, x)
        literal.update(0, x)
    assert distance(master, literal.probabilities()) <= 1e-12
    assert adversarial.make("exp3-s", 2, n, changes=3).gamma > master.gamma


FAR = [
    [0.0, 1e3, -1e3, 2e3],
    [0.0, 1e6, -1e12, 1e12],
    [1e300, -1e300, 0.0, 1e299],
    [1e308, -1e308, 1e308, 0.0],
    [1e-300, 0.0, 5e-324, 1.0],
    [-1e5, -1e5, -1e5 - 1e-9, -2e5],
]


@pytest.mark.parametrize("scores", FAR)
@pytest.mark.parametrize("id", [id for id in adversarial.names() if id != "exp3-s"])
def test_no_difference_of_scores_is_too_large(id, scores):
    """Also far behind, a probability is a number from 0 to 1, and they sum to 1."""
    master = adversarial.make(id, 4, 1000)
    master.restore(master.saved() | {"scores": np.array(scores)})
    p = master.probabilities
    assert p.min() >= 0.0
    assert abs(math.fsum(p) - 1.0) <= 1e-12
    assert (np.argsort(p)[-1] == np.argmax(scores)) or p.max() == p[np.argmax(scores)]
    mp.dps = 50
    top = max(map(mpf, scores))
    if id != "tsallis-inf":
        w = [mp.exp(mpf(master.alpha) * (mpf(q) - top)) for q in scores]
        gamma = mpf(master.gamma)
        exact = [(1 - gamma) * x / sum(w) + gamma / 4 for x in w]
        assert distance(master, exact) <= 1e-12
    for arm in range(4):
        if id == "tsallis-inf" and master.probabilities[arm] < 1e-200:
            with pytest.raises(InputError, match="nobody can have drawn it"):
                master.update(arm, 0.5)
            continue
        master.update(arm, 0.5)
        assert np.isfinite(master.probabilities).all()
        assert master.probabilities.min() >= 0.0


def test_shared_weights_far_apart():
    master = adversarial.make("exp3-s", 3, 1000)
    master.restore(master.saved() | {"scores": np.array([1e-300, 1.0, 5e-324])})
    p = master.probabilities
    assert p.min() == pytest.approx(master.gamma / 3, rel=1e-12)
    assert abs(math.fsum(p) - 1.0) <= 1e-12
    for _ in range(60):
        master.update(0, 1.0)
    assert np.argmax(master.probabilities) == 0  # no weight is ever lost for good


@pytest.mark.parametrize("K", [2, 30, 1000, 20_000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e4, 1e12])
def test_the_normalisation_of_tsallis_is_found(K, spread):
    """The optimality condition itself: 2 / (eta sqrt(p_k)) - L_k is the same for every arm."""
    losses = spread * np.sort(stream(K, "losses").random(K))
    master = adversarial.TsallisINF(K, 10)
    master.restore(master.saved() | {"scores": -losses, "rounds": np.array([8])})
    p, eta = master.probabilities, 2.0 / math.sqrt(9)
    assert abs(math.fsum(p) - 1.0) <= 1e-12
    x = 2.0 / (eta * np.sqrt(p)) - losses
    assert np.ptp(x) <= 1e-9 * max(1.0, spread)


def test_tsallis_step_by_step():
    """Its losses reinforce themselves: a rounding error grows e-fold in some 25 rounds.

    So a long run is compared with the definition one round at a time, not with another long run.
    """
    n = 4000
    master, draws = adversarial.TsallisINF(3, n), stream(5, "steps").random(n)
    for t in range(1, n + 1):
        p, losses = master.probabilities, -(master._bank.scores + master._bank.lost)
        x = 2.0 / (2.0 / math.sqrt(t) * np.sqrt(p)) - losses
        assert np.ptp(x) <= 1e-11 * max(1.0, losses.max())
        assert abs(math.fsum(p) - 1.0) <= 1e-12
        arm = master.choose(draws[t - 1])
        reward = float(adversary(t, p)[arm])
        master.update(arm, reward)
        more = -(master._bank.scores + master._bank.lost) - losses
        assert more[arm] == pytest.approx((1.0 - reward) / p[arm], rel=1e-9, abs=1e-9)
        assert np.count_nonzero(more) <= 1


def test_newton_climbs_and_says_when_it_has_not_arrived():
    from windage.kernels.exp3 import normaliser

    bank = adversarial.TsallisINF(1000, 10)._bank
    bank.scores[:] = -np.linspace(0.0, 30.0, 1000)
    found = [normaliser(bank, 0, 2.0, 0, steps) for steps in range(1, 30)]
    ys = [abs(y) for y, _ in found]
    assert ys == sorted(ys)
    assert found[0][0] < 0 < found[-1][0]
    assert found[-1][1] == pytest.approx(1.0, abs=1e-14)
    assert [y > 0 for y, _ in found].index(True) <= 12


def test_what_does_not_converge_is_said(monkeypatch):
    master = adversarial.TsallisINF(3, 10)
    monkeypatch.setattr(master, "_call", lambda *_: False)
    with pytest.raises(NotConverged, match="tsallis-inf: no probabilities found for 3 arms"):
        master.update(0, 0.5)


def test_many_arms_sum_to_one():
    for id in adversarial.names():
        master = adversarial.make(id, 300_000, 10, quiet=True)
        master.update(7, 1.0)
        assert abs(math.fsum(master.probabilities) - 1.0) <= 1e-12


def test_choices_are_cumulative():
    master = adversarial.Exp3P(n_arms=4, n_rounds=500)
    for k, x in enumerate((0.1, 0.9, 0.4, 0.7)):
        master.update(k, x)
    p = master.probabilities
    edges = np.cumsum(p)
    for u in stream(3, "u").random(2000):
        assert master.choose(u) == np.searchsorted(edges, u, side="right")
    assert master.choose(0.0) == 0
    assert master.choose(float(np.nextafter(1.0, 0.0))) == 3
    assert master.choose(float(edges[1])) == 2  # intervals are closed below


def test_an_arm_without_probability_is_never_chosen():
    master = adversarial.Exp3IX(n_arms=4, n_rounds=500)
    master.restore(master.saved() | {"scores": np.array([-1e12, 0.0, -0.5, -1e12])})
    assert master.probabilities[0] == master.probabilities[3] == 0.0
    assert master.choose(0.0) == 1
    assert master.choose(float(np.nextafter(1.0, 0.0))) == 2
