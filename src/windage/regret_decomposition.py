"""The regret of a run, term by term as in the proof of Theorem 1 (appendix, section "Proof of").

Episodes whose H_p(eta) does not hold the model of their first step are bad; Q_T takes them greedily
so that starts are more than W apart, and Q~_T adds all that start within W after one of Q_T. Then

    regret <= spade + club + diamond + heart, where

    spade    sum over Q~_T of rho*_t - r_t(s_t, a_t)
    club     elsewhere, of p_t . gamma~ - gamma~(s_t) + 1 / sqrt(tau(m))
    diamond  elsewhere, of 2 var_r + 4 D var_p + 2 D eta          (E20: not 4 D eta)
    heart    elsewhere, of 2 rad_r(s_t, a_t) + 4 D rad_p(s_t, a_t)

holds whenever the sets hold the averages (E_r and E_p). The constants 4 D, 2 D and 4 D come from
span(gamma~) <= 2 D and a norm; with span <= D (E12) and half the L1 norm they are D, D / 2 and D,
which is just as true. Both are given, `printed` and `sharp`. A warm start of EVI may exceed a span
by a factor 1 + eps, and so may D here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError
from windage.models import DriftingMDP
from windage.models.gains import GainCurve
from windage.proof import Hindsight, HindsightEpisode, hindsight
from windage.recording import Run
from windage.regret import Regret, dynamic_regret

__all__ = ["RegretTerms", "Terms", "far_apart", "regret_terms"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class _Constants(NamedTuple):
    """What D is multiplied by before var_p, eta and rad_p; and before var_p in Lemma dev_rho."""

    drift: float
    widening: float
    radius: float
    gain: float


_CONSTANTS = {"printed": _Constants(4.0, 2.0, 4.0, 2.0), "sharp": _Constants(1.0, 0.5, 1.0, 0.5)}


@dataclass(frozen=True)
class Terms:
    """The four terms, in parts.

    Attributes
    ----------
    bad
        What was lost in the episodes of Q~_T.
    switching, planning
        Sums of p_t . gamma~ - gamma~(s_t), and of what EVI may be off by.
    reward_drift, transition_drift, widening
        2 var_r; D var_p and D eta with their constants.
    reward_radii, transition_radii
        2 rad_r; D rad_p with its constant.
    """

    bad: float
    switching: float
    planning: float
    reward_drift: float
    transition_drift: float
    widening: float
    reward_radii: float
    transition_radii: float

    @property
    def spade(self) -> float:
        """What bad episodes lost: B_p W / eta."""
        return self.bad

    @property
    def club(self) -> float:
        """Changes of policy and what EVI is off by: D (M(T) + sqrt T)."""
        return self.switching + self.planning

    @property
    def diamond(self) -> float:
        """Drift, and the widening that guards against it: (B_r + D B_p) W + D T eta."""
        return self.reward_drift + self.transition_drift + self.widening

    @property
    def heart(self) -> float:
        """What is not known for want of samples: D S A^(1/2) T / W^(1/2)."""
        return self.reward_radii + self.transition_radii

    @property
    def total(self) -> float:
        """All four."""
        return self.spade + self.club + self.diamond + self.heart

    @property
    def suits(self) -> dict[str, float]:
        """The four terms by name."""
        return {name: getattr(self, name) for name in ("spade", "club", "diamond", "heart")}

    @property
    def largest(self) -> str:
        """Which of the four is the largest."""
        return max(self.suits, key=lambda name: self.suits[name])


@dataclass(frozen=True, eq=False)
class RegretTerms:
    """A run's regret beside the four terms that bound it in the proof of Theorem 1.

    Attributes
    ----------
    regret
        What `dynamic_regret` says of the run.
    printed, sharp
        The terms with the constants of the paper, and with the least that its proof gives.
    diameter
        D_max, from above.
    window, widening
        W and eta.
    covers_rewards, covers_transitions
        Whether E_r and E_p held at every episode: the proof needs both.
    starts, lengths
        tau(m) and the steps of every episode.
    holds_the_model
        Of every episode whether p_tau(m) lies in H_p(eta).
    separated, bad
        Q_T and Q~_T, as flags over episodes.
    gain_slack, step_slack
        For "printed" and "sharp": by how much Lemma dev_rho (C8) and the per-step inequality of
        Proposition 2 (C9) hold in every episode, at its worst step; NaN in Q~_T.
    """

    regret: Regret
    printed: Terms
    sharp: Terms
    diameter: float
    window: int
    widening: float
    covers_rewards: bool
    covers_transitions: bool
    starts: Integers
    lengths: Integers
    holds_the_model: Flags
    separated: Flags
    bad: Flags
    gain_slack: dict[str, Reals]
    step_slack: dict[str, Reals]

    @property
    def is_promised(self) -> bool:
        """Whether the proof speaks of this run: E_r and E_p held."""
        return self.covers_rewards and self.covers_transitions

    @property
    def holds(self) -> bool:
        """Whether the terms, with either constants, add up to at least the regret."""
        least = min(self.printed.total, self.sharp.total)
        return bool(self.regret.total - self.regret.error <= least)

    def explain(self) -> str:
        """Return in one sentence what the terms say of the run."""
        t = self.sharp
        parts = ", ".join(f"{name} {value:,.4g}" for name, value in t.suits.items())
        event = "E_r and E_p held" if self.is_promised else "E_r or E_p failed: nothing is promised"
        return (
            f"A regret of {self.regret.total:,.4g} where the proof allows {t.total:,.4g} with its "
            f"least constants ({parts}) and {self.printed.total:,.4g} as printed; {t.largest} is "
            f"the largest; {event}."
        )

    def __repr__(self) -> str:
        return (
            f"RegretTerms(regret={self.regret.total:.6g}, printed={self.printed.total:.6g}, "
            f"sharp={self.sharp.total:.6g}, promised={self.is_promised})"
        )


def regret_terms(
    run: Run,
    drifting: DriftingMDP,
    *,
    gains: GainCurve | None = None,
    diameter: float | None = None,
) -> RegretTerms:
    """Return a run's regret beside the four terms of the proof of Theorem 1, measured.

    Parameters
    ----------
    run
        A full record, from t = 1 on, of `SWUCRL2CW` or `SWUCRL2`.
    drifting
        The model it was made in.
    gains, diameter
        `drifting.optimal_gains()` and a bound on every D_t if they are at hand, as they are for
        the second of many runs.

    Raises
    ------
    InputError
        The run is that of another agent or model, or no full record; the model does not
        communicate at every t, so that its D_max is infinite.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine")
    >>> agent = wd.SWUCRL2CW(model.space, horizon=5000, window=500, widening=0.2)
    >>> terms = regret_terms(wd.run(model, agent, seed=1), model)
    >>> terms.is_promised, terms.holds, terms.sharp.largest
    (True, True, 'heart')
    """
    regret = dynamic_regret(run, drifting, gains=gains)
    again = hindsight(run, drifting)
    D = drifting.max_diameter().upper if diameter is None else float(diameter)
    if not math.isfinite(D):
        raise InputError(
            "does not communicate at every t: its D_max is infinite",
            field="drifting",
            fix="see drifting.disconnections()",
        )
    M = len(run.episodes)
    covers = np.empty((2, M), np.bool_)
    holds = np.empty(M, np.bool_)
    slacks = {name: np.full((2, M), np.nan) for name in _CONSTANTS}
    steps = _Steps(again, regret, D)
    for episode in again.episodes():
        m = episode.number
        covers[:, m] = episode.covers_rewards, episode.covers_transitions
        holds[m] = episode.holds_the_model
        steps.add(episode)
        for name, constants in _CONSTANTS.items():
            slacks[name][:, m] = steps.slacks(episode, constants)
    separated = far_apart(run.episodes.start, ~holds, again.window)
    bad = _near(run.episodes.start, separated, again.window)
    for found in slacks.values():
        found[:, bad] = np.nan
    eta = float(np.max(again.agent.widening))
    return RegretTerms(
        regret=regret,
        printed=steps.terms(bad, _CONSTANTS["printed"]),
        sharp=steps.terms(bad, _CONSTANTS["sharp"]),
        diameter=D,
        window=again.window,
        widening=eta,
        covers_rewards=bool(covers[0].all()),
        covers_transitions=bool(covers[1].all()),
        starts=run.episodes.start.copy(),
        lengths=run.episodes.length.copy(),
        holds_the_model=holds,
        separated=separated,
        bad=bad,
        gain_slack={name: found[0] for name, found in slacks.items()},
        step_slack={name: found[1] for name, found in slacks.items()},
    )


def far_apart(starts: Integers, candidates: Flags, window: int) -> Flags:
    """Return Q_T: candidates in the order of time, each more than W after the last one taken.

    >>> far_apart(np.array([1, 5, 12, 13]), np.array([True, True, True, True]), 10)
    array([ True, False,  True, False])
    """
    taken = np.zeros(starts.size, np.bool_)
    last = -math.inf
    for m in np.flatnonzero(candidates):
        if starts[m] - last > window:
            taken[m], last = True, starts[m]
    return taken


def _near(starts: Integers, separated: Flags, window: int) -> Flags:
    """Return Q~_T: every episode that starts within W after one of Q_T."""
    since = np.full(starts.size, -math.inf)
    since[separated] = starts[separated]
    return starts - np.maximum.accumulate(since) <= window


class _Steps:
    """Every step's share of the terms, before D is multiplied in."""

    def __init__(self, again: Hindsight, regret: Regret, diameter: float) -> None:
        T = again.pairs.size
        self.again, self.D = again, diameter
        self.lost = regret.per_step
        self.rho = regret.per_step + again.run.mean_rewards
        self.spread = np.empty(T)  # 1 + eps for a warm start, of which D is multiplied
        self.turn, self.epsilon, self.eta, self.rad_r, self.rad_p = np.empty((5, T))

    def add(self, episode: HindsightEpisode) -> None:
        """Take in the steps of an episode."""
        here = slice(episode.start - 1, episode.last)
        states, pairs = self.again.run.states[:-1][here], self.again.pairs[here]
        self.turn[here] = self.again.rows[here] @ episode.bias - episode.bias[states]
        self.epsilon[here] = episode.epsilon
        self.spread[here] = 1.0 + self.again.agent.warm_start / math.sqrt(episode.start)
        self.eta[here] = episode.widening[pairs]
        self.rad_r[here] = episode.reward_radius[pairs]
        self.rad_p[here] = episode.transition_radius[pairs]

    def slacks(self, episode: HindsightEpisode, c: _Constants) -> tuple[float, float]:
        """By how much C8 and C9 hold at the worst step of an episode."""
        here = slice(episode.start - 1, episode.last)
        var_r, var_p = self.again.variation_r[here], self.again.variation_p[here]
        D = self.D * self.spread[here]
        gain = episode.gain - (self.rho[here] - var_r - c.gain * D * var_p)
        right = self.turn[here] + self.epsilon[here] + 2 * var_r + 2 * self.rad_r[here]
        right += D * (c.drift * var_p + c.widening * self.eta[here] + c.radius * self.rad_p[here])
        return float(gain.min()), float((right - self.lost[here]).min())

    def terms(self, bad: Flags, c: _Constants) -> Terms:
        """Sum the steps outside Q~_T, and what was lost inside."""
        inside = bad[self.again.number]
        out = ~inside
        D = self.D * self.spread[out]
        return Terms(
            bad=float(self.lost[inside].sum()),
            switching=float(self.turn[out].sum()),
            planning=float(self.epsilon[out].sum()),
            reward_drift=2 * float(self.again.variation_r[out].sum()),
            transition_drift=c.drift * float(D @ self.again.variation_p[out]),
            widening=c.widening * float(D @ self.eta[out]),
            reward_radii=2 * float(self.rad_r[out].sum()),
            transition_radii=c.radius * float(D @ self.rad_p[out]),
        )
