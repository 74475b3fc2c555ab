"""C3, C4, C5, C8, C9, C11 on whole runs, both sides printed; E16, E20, E33, E35, E36.

Everything is counted from runs that were played step by step (`tests.paper.runs`); the library's
`regret_terms` is compared with it, not asked.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings

import numpy as np
import pytest

import windage as wd
from tests.paper.runs import SUITE, WORLDS, played

RUNS = pytest.mark.parametrize("name", SUITE)
EXACT = 1e-5  # gains are certified to 1e-6
PRINTED, SHARP = (4.0, 2.0, 4.0, 2.0), (1.0, 0.5, 1.0, 0.5)  # before var_p, eta, rad_p; C8's var_p


class Truth:
    """A run of the suite and all that the proof speaks of, from the definitions."""

    def __init__(self, name):
        self.run = run = played(name)
        self.model, self.W = run.model, run.W
        self.eta = SUITE[name][1]["widening"]
        self.radii = SUITE[name][1].get("radii", wd.Radii.paper())
        self.T, self.space = run.model.horizon, run.model.space
        self.models = [self.model.at(t) for t in range(1, self.T + 1)]
        moved = [(np.abs(b.rewards - a.rewards).max(),
                  np.abs(b.transitions - a.transitions).sum(1).max())
                 for a, b in itertools.pairwise(self.models)]  # fmt: skip
        self.total = np.concatenate([[(0.0, 0.0)], np.cumsum(moved, axis=0)])
        self.rho = self.model.optimal_gains().values
        self.D = self.model.max_diameter().upper
        self.tau = np.array([start.tau for start in run.starts])
        self.bars = [self._bars(start) for start in run.starts]

    def _bars(self, start):
        """r_bar and p_bar of the window, and r_hat."""
        S, SA = self.space.n_states, self.space.n_pairs
        means, rows = np.zeros(SA), np.zeros((SA, S))
        for q in range(max(1, start.tau - self.W), start.tau):
            pair = self.run.pairs[q - 1]
            means[pair] += self.models[q - 1].rewards[pair]
            rows[pair] += self.models[q - 1].transitions[pair]
        n = np.maximum(start.N, 1)
        return means / n, rows / n[:, None]

    def variation(self, t):
        """var_{r,t} and var_{p,t}."""
        tau = self.tau[self.run.number[t - 1]]
        return self.total[t - 1] - self.total[max(1, tau - self.W) - 1]

    def radius(self, start, pair):
        here = {"space": self.space, "horizon": self.T, "delta": 0.05}
        n = int(start.N[pair])
        pair_of = self.radii.reward(n, **here), self.radii.transition(n, **here)
        return pair_of if n else (max(pair_of[0], 0.5), max(pair_of[1], 1.0))  # E8

    @functools.cached_property
    def covered(self):
        """Whether E_p and E_r held at every episode; E_r through r~, which is r_hat + rad_r."""
        for start, (r_bar, p_bar) in zip(self.run.starts, self.bars, strict=True):
            seen = start.N > 0
            p_hat = start.region.p_hat.toarray()
            apart = np.abs(p_hat - p_bar).sum(1)[seen]
            radii = np.array([self.radius(start, k) for k in np.flatnonzero(seen)]).reshape(-1, 2)
            upper = start.region.reward_upper[seen]
            if (apart > radii[:, 1] + 1e-12).any():
                return False
            inside = (upper >= np.minimum(r_bar[seen], 1) - 1e-12) & (
                (upper >= 1) | (upper - 2 * radii[:, 0] <= r_bar[seen] + 1e-12)
            )
            if not inside.all():
                return False
        return True

    @functools.cached_property
    def held(self):
        """Of every episode whether p_tau lies in H_p(eta)."""
        return np.array([
            all(np.abs(self.models[s.tau - 1].transitions[k] - s.region.p_hat.toarray()[k]).sum()
                <= s.region.width[k] + 1e-12 or s.region.width[k] >= 2
                for k in np.flatnonzero(s.N))
            for s in self.run.starts
        ])  # fmt: skip

    @functools.cached_property
    def sets(self):
        """Q_T and Q~_T by the letter."""
        Q = []
        for m in range(self.tau.size):
            if not self.held[m] and all(self.tau[m] - self.tau[q] > self.W for q in Q):
                Q.append(m)
        near = [m for m in range(self.tau.size)
                if any(0 <= self.tau[m] - self.tau[q] <= self.W for q in Q)]  # fmt: skip
        return Q, set(near)


truth = functools.cache(Truth)


@RUNS
def test_c3_and_c4_bad_episodes(name):
    """C3 needs E_p, and eta > 0; C4 nothing at all."""
    it = truth(name)
    Q, near = it.sets
    lengths = np.bincount(it.run.number, minlength=it.tau.size)
    steps = sum(int(lengths[m]) for m in near)
    B_p = it.total[-1][1]
    print(f"C3 {name}: {len(Q)} <= {B_p / it.eta if it.eta else math.inf:.1f} "
          f"(events {'held' if it.covered else 'failed'}); C4: {steps} <= "
          f"{2 * it.W * len(Q)}")  # fmt: skip
    assert steps <= 2 * it.W * len(Q)
    assert all(it.held[m] for m in range(it.tau.size) if m not in near)  # Lemma Q_tilde
    if it.eta > 0 and it.covered:
        assert len(Q) <= B_p / it.eta


def test_c3_somewhere_there_are_bad_episodes_and_the_events_hold():
    assert any(truth(n).covered and SUITE[n][1]["widening"] > 0 and truth(n).sets[0] for n in SUITE)


@RUNS
def test_c5_variations_are_counted_less_than_2w_times(name):
    it = truth(name)
    sums = np.sum([it.variation(t) for t in range(1, it.T + 1)], axis=0)
    bound = (2 * it.W - 1) * it.total[-1]
    print(f"C5 {name}: {sums.round(2)} <= {bound.round(2)}")
    assert (sums <= bound + 1e-9).all()


@pytest.mark.parametrize("W", [1, 4, 10])
def test_e16_a_step_is_counted_2w_less_one_times(W):
    """One arm: after the first block every block is one episode, and one jump at t = jW.

    The printed lemma counts it W times at most, ours 2W - 1 times: this many it is.
    """
    T, jump = 8 * W, 3 * W
    model = wd.DriftingMDP(
        wd.StateActions([1]), [1, jump + 1], [[0.25], [0.75]], [[[1.0]]] * 2, horizon=T,
        interpolation="step",
    )  # fmt: skip
    agent = wd.SWUCRL2CW(model.space, horizon=T, window=W, widening=0.1)
    episodes = wd.run(model, agent).episodes
    starts = episodes.start.tolist()
    assert all(W * j in starts for j in range(1, 8))
    assert [start for start in starts if start >= 2 * W] == [
        W * j for j in range(2, 9) if W * j <= T
    ]
    counted = sum(
        max(1, tau - W) <= jump <= t - 1
        for tau, length in zip(starts, episodes.length.tolist(), strict=True)
        for t in range(tau, tau + length)
    )
    total = counted * 0.5  # B_r = 0.5 in one step
    print(f"E16 W = {W}: {total} = (2W - 1) B_r = {(2 * W - 1) * 0.5}, printed W B_r = {W * 0.5}")
    assert counted == 2 * W - 1
    assert W == 1 or total > W * model.budgets().reward


@RUNS
def test_c8_the_optimistic_gain_is_above_the_optimum_less_the_drift(name):
    """rho~ >= rho*_t - var_r - (D/2) var_p outside Q~_T, on the events; the paper has 2D."""
    it = truth(name)
    slack = []
    for t in range(1, it.T + 1):
        m = int(it.run.number[t - 1])
        if m in it.sets[1]:
            continue
        start, (var_r, var_p) = it.run.starts[m], it.variation(t)
        D = it.D * (1 + start.warm / math.sqrt(start.tau))
        slack.append(start.gain - (it.rho[t - 1] - var_r - 0.5 * D * var_p))
    print(f"C8 {name}: least slack {min(slack, default=math.nan):.4f} in {len(slack)} steps; "
          f"events {'held' if it.covered else 'failed'}")  # fmt: skip
    if it.covered:
        assert min(slack) >= -EXACT
        assert min(slack) < 0.5  # and it is not idle


def per_step(it, t, constants):
    """Both sides of Proposition 2 at a step: regret, and what bounds it; and its D eta."""
    drift, widening, radius, _ = constants
    m, pair = int(it.run.number[t - 1]), int(it.run.pairs[t - 1])
    start, now = it.run.starts[m], it.models[t - 1]
    D = it.D * (1 + start.warm / math.sqrt(start.tau))
    var_r, var_p = it.variation(t)
    rad_r, rad_p = it.radius(start, pair)
    turn = now.transitions[pair] @ start.bias - start.bias[it.run.states[t - 1]]
    right = turn + 1 / math.sqrt(start.tau) + 2 * var_r + 2 * rad_r
    right += D * (drift * var_p + widening * it.eta + radius * rad_p)
    return it.rho[t - 1] - now.rewards[pair], right, D * it.eta


@RUNS
def test_c9_proposition_2_step_by_step(name):
    """With the constants of its proof, and with the sharper ones; E20: the statement has more."""
    it = truth(name)
    good = [t for t in range(1, it.T + 1) if int(it.run.number[t - 1]) not in it.sets[1]]
    for which, constants in (("printed", PRINTED), ("sharp", SHARP)):
        sides = np.array([per_step(it, t, constants) for t in good]).reshape(-1, 3)
        slack = sides[:, 1] - sides[:, 0]
        print(f"C9 {name}, {which}: least slack {slack.min() if slack.size else math.nan:.3f}")
        if it.covered:
            assert slack.min() >= -EXACT
            assert (sides[:, 0] > 0).any()


@RUNS
def test_c11_the_four_terms_add_up_to_more_than_the_regret(name):
    it = truth(name)
    for which, constants in (("printed", PRINTED), ("sharp", SHARP)):
        regret = allowed = 0.0
        for t in range(1, it.T + 1):
            left, right, _ = per_step(it, t, constants)
            regret += left
            allowed += left if int(it.run.number[t - 1]) in it.sets[1] else right
        print(f"C11 {name}, {which}: regret {regret:.1f} <= {allowed:.1f}")
        assert regret <= allowed + EXACT * it.T or not it.covered
        terms = _terms(name)
        assert getattr(terms, which).total == pytest.approx(allowed, rel=1e-6, abs=EXACT * it.T)
        assert terms.is_promised == it.covered
    assert regret > 0


@functools.cache
def _terms(name):
    world, options = SUITE[name]
    model = WORLDS[world]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        agent = wd.SWUCRL2CW(model.space, horizon=model.horizon, seed=5, **options)
    return wd.regret_terms(wd.run(model, agent, seed=6), model)


@RUNS
def test_the_slacks_of_regret_terms_are_those_counted_here(name):
    it, terms = truth(name), _terms(name)
    for which, constants in (("printed", PRINTED), ("sharp", SHARP)):
        c8, c9 = np.full(it.tau.size, np.inf), np.full(it.tau.size, np.inf)
        for t in range(1, it.T + 1):
            m = int(it.run.number[t - 1])
            left, right, _ = per_step(it, t, constants)
            start, (var_r, var_p) = it.run.starts[m], it.variation(t)
            D = it.D * (1 + start.warm / math.sqrt(start.tau))
            c8[m] = min(c8[m], start.gain - it.rho[t - 1] + var_r + constants[3] * D * var_p)
            c9[m] = min(c9[m], right - left)
        good = [m for m in range(it.tau.size) if m not in it.sets[1]]
        assert terms.gain_slack[which][good] == pytest.approx(c8[good], abs=EXACT)
        assert terms.step_slack[which][good] == pytest.approx(c9[good], abs=EXACT)
        assert np.isnan(terms.gain_slack[which][sorted(it.sets[1])]).all()


def test_e20_the_proof_gives_less_than_the_statement():
    """4 D (var_p + eta) is printed, 4 D var_p + 2 D eta proved: 2 D eta a step apart, and true."""
    it = truth("peril")
    assert it.covered
    good = [t for t in range(1, it.T + 1) if int(it.run.number[t - 1]) not in it.sets[1]]
    proved = np.array([per_step(it, t, PRINTED) for t in good])
    stated = np.array([per_step(it, t, (4.0, 4.0, 4.0, 2.0)) for t in good])
    assert stated[:, 1] - proved[:, 1] == pytest.approx(2 * proved[:, 2])
    assert (proved[:, 2] > 0).all()
    assert (proved[:, 0] <= proved[:, 1] + EXACT).all()


@RUNS
def test_e33_the_sum_of_surprises_is_azumas(name):
    """Y_t = p_t . gamma~ - gamma~(s_{t+1}): dependent, mean 0 given the past, at most the span.

    Hoeffding's inequality is for independent terms: one coin, counted T times, is within its range
    and has mean 0, and its sum is T. Azuma's asks for differences of a martingale, which Y_t are.
    """
    it = truth(name)
    Y, spans = np.zeros(it.T), np.zeros(it.T)
    for t in range(1, it.T + 1):
        start, pair = it.run.starts[int(it.run.number[t - 1])], it.run.pairs[t - 1]
        ahead = it.models[t - 1].transitions[pair] @ start.bias
        Y[t - 1] = ahead - start.bias[it.run.states[t]]
        spans[t - 1] = np.ptp(start.bias)
    assert (np.abs(Y) <= spans + 1e-12).all()
    bound = math.sqrt(2 * float((spans**2).sum()) * math.log(2 / 1e-6))
    print(f"E33 {name}: {abs(Y.sum()):.2f} <= {bound:.2f}, by Azuma at 1e-6")
    assert abs(Y.sum()) <= bound
    coin = np.full(it.T, np.random.default_rng(0).choice([-1.0, 1.0]))
    assert abs(coin.sum()) == it.T > math.sqrt(2 * it.T * math.log(2 / 1e-6))


@RUNS
def test_e35_the_telescoping_sum_ends_where_the_episode_does(name):
    """Club's switching is gamma(s_{tau(m+1)}) - gamma(s_{tau(m)}) and the surprises Y_t, summed.

    With gamma(s_{tau(m)+1}) in the place of the first, as printed, it is not. The left side is that
    of `regret_terms`, the right one is put together here.
    """
    it, terms = truth(name), _terms(name)
    states, ours, printed = it.run.states, 0.0, 0.0
    ends = np.append(it.tau[1:], it.T + 1)
    for m, (start, end) in enumerate(zip(it.run.starts, ends.tolist(), strict=True)):
        if m in it.sets[1]:
            continue
        gamma, first = start.bias, start.tau
        surprises = sum(
            it.models[t - 1].transitions[it.run.pairs[t - 1]] @ gamma - gamma[states[t]]
            for t in range(first, end)
        )
        ours += gamma[states[end - 1]] - gamma[states[first - 1]] + surprises
        printed += gamma[states[first]] - gamma[states[first - 1]] + surprises
    print(f"E35 {name}: club's {terms.sharp.switching:.4f}, ours {ours:.4f}, printed {printed:.4f}")
    assert terms.sharp.switching == pytest.approx(ours, abs=1e-6)
    if name != "two states, printed radii":  # next to no spans there
        assert abs(terms.sharp.switching - printed) > 0.1


def test_e35_the_lemma_on_rho_needs_p_bar():
    """Its proof starts from rho~ + gamma~(s) >= r_bar + gamma~ . p_bar, which holds on the events.

    With p_tau(m) it goes on, as printed, to gamma~ . p_tau >= gamma~ . p_t - max gamma~ L1(p_t -
    p_bar), which is false where p_tau is not what the window saw.
    """
    steps = wrong = 0
    for name in SUITE:
        it = truth(name)
        for m, (start, (r_bar, p_bar)) in enumerate(zip(it.run.starts, it.bars, strict=True)):
            gamma, seen = start.bias, start.N > 0
            level = start.gain + gamma[it.space.state_of]
            if it.covered:
                assert (level >= r_bar + p_bar @ gamma - 1e-9)[seen].all()
            p_tau = it.models[start.tau - 1].transitions
            for t in np.flatnonzero(it.run.number == m) + 1:
                p_t = it.models[t - 1].transitions
                right = p_t @ gamma - gamma.max() * np.abs(p_t - p_bar).sum(1)
                steps += int(seen.sum())
                wrong += int((p_tau @ gamma < right - 1e-9)[seen].sum())
    print(f"E35: the printed step is false for {wrong:,} of {steps:,} pairs and steps")
    assert wrong > 0


@RUNS
def test_e36_visits_of_an_episode_are_at_most_n_plus_and_not_n(name):
    it = truth(name)
    beyond = 0
    for m, start in enumerate(it.run.starts):
        nu = np.bincount(it.run.pairs[it.run.number == m], minlength=it.space.n_pairs)
        assert (nu <= np.maximum(start.N, 1)).all()
        beyond += int((nu > start.N).sum())
    assert beyond > 0  # pairs tried for the first time
