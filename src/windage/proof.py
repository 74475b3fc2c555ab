"""The quantities of the paper's proofs on a run: estimates of each episode beside the truth.

Proofs compare what an episode was planned with, p_hat, r_hat, the radii, rho~ and gamma~, with what
no agent can see: the visit-weighted true means r_bar and p_bar of its window, and the model at
tau(m). Statistics are recounted here from the record of the run. Only gamma~ comes from the agent:
it is played again, episode by episode, and must take the same steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from windage import agents
from windage.agents.optimistic.swucrl2cw import SWUCRL2CW
from windage.errors import InputError
from windage.models import DriftingMDP
from windage.models.blend import Blend
from windage.recording import Run
from windage.simulate import run as play
from windage.validation import require_memory

__all__ = ["Hindsight", "HindsightEpisode", "hindsight"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROUNDING = 1e-12  # of sums of probabilities


@dataclass(frozen=True, eq=False)
class HindsightEpisode:
    """One episode: what it was planned with, and what was true.

    Attributes
    ----------
    number
        m, from 0 on.
    start, last
        tau(m) and the time of its last step.
    epsilon
        1 / sqrt(tau(m)), what EVI may be off by, and the agent's slack.
    gain, bias
        rho~ and gamma~.
    visits
        N of every pair: its steps in the window, recounted.
    mean_reward, p_hat
        r_hat and p_hat: what the window has seen; zeros for pairs never visited.
    true_reward, p_bar
        r_bar and p_bar: the true means and rows at these visits, averaged; zeros likewise.
    reward_radius, transition_radius
        rad_r and rad_p. A pair never visited may be anything, whatever the formula says of N+ = 1
        (E8): its radii are at least 1/2 and 1, half the size of what the sets then are.
    widening
        eta of every pair.
    rewards, transitions
        r and p of the model at tau(m), over pairs.
    """

    number: int
    start: int
    last: int
    epsilon: float
    gain: float
    bias: Reals
    visits: Integers
    mean_reward: Reals
    p_hat: Reals
    true_reward: Reals
    p_bar: Reals
    reward_radius: Reals
    transition_radius: Reals
    widening: Reals
    rewards: Reals
    transitions: Reals

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which pairs the window has visits of."""
        return self.visits > 0

    @property
    def reward_errors(self) -> Reals:
        """The distance of r_hat from r_bar over rad_r, pair by pair: above 1, E_r fails."""
        return np.abs(self.mean_reward - self.true_reward) / self.reward_radius

    @property
    def transition_errors(self) -> Reals:
        """The L1 distance of p_hat from p_bar over rad_p, pair by pair: above 1, E_p fails."""
        apart: Reals = np.abs(self.p_hat - self.p_bar).sum(axis=1)
        return apart / self.transition_radius

    @property
    def covers_rewards(self) -> bool:
        """Whether r_bar of every visited pair is within rad_r of r_hat: E_r at tau(m)."""
        return bool((self.reward_errors[self.seen] <= 1.0 + _ROUNDING).all())

    @property
    def covers_transitions(self) -> bool:
        """Whether p_bar of every visited pair is within rad_p of p_hat: E_p at tau(m)."""
        return bool((self.transition_errors[self.seen] <= 1.0 + _ROUNDING).all())

    @property
    def holds_the_model(self) -> bool:
        """Whether p_tau(m) lies in H_p(eta): what the proof needs of an episode."""
        apart = np.abs(self.transitions - self.p_hat).sum(axis=1)
        width = self.transition_radius + self.widening
        return bool((apart[self.seen] <= width[self.seen] + _ROUNDING).all())


@dataclass(frozen=True, eq=False)
class Hindsight:
    """A run of SWUCRL2-CW and what was true along it.

    Attributes
    ----------
    run, model, agent
        The run, the model it was made in, and a fresh agent like the one that made it.
    pairs
        The pair of every step.
    rows
        `rows[t - 1]`, the true row p_t(. | s_t, a_t) of every step.
    number
        The episode of every step, from 0 on.
    variation_r, variation_p
        var_{r,t} and var_{p,t} of every step: the budgets from tau(m) - W to t - 1.
    """

    run: Run
    model: DriftingMDP
    agent: SWUCRL2CW
    pairs: Integers
    rows: Reals
    number: Integers
    variation_r: Reals
    variation_p: Reals

    @property
    def window(self) -> int:
        """W."""
        return self.agent.window

    @property
    def blocks(self) -> Integers:
        """The block of every step: [jW, (j + 1)W - 1], or jW + 1 .. (j + 1)W (E1)."""
        t = np.arange(1, self.pairs.size + 1)
        return (t if self.agent.boundary == "start" else t - 1) // self.window

    def episodes(self, *, biases: bool = True) -> Iterator[HindsightEpisode]:
        """Go through the episodes, each beside what was true; without biases the faster way."""
        made, space, run = self.agent, self.model.space, self.run
        bounds: dict[str, Any] = {"space": space, "horizon": made.horizon, "delta": made.delta}
        starts, lengths = run.episodes.start, run.episodes.length
        none = np.full(space.n_states, np.nan)
        for m, bias in enumerate(self._biases() if biases else itertools.repeat(none, len(starts))):
            tau = int(starts[m])
            visits, sums = self._counted(tau)
            n = np.maximum(visits, 1)[:, None]
            rad_r = np.asarray(made.radii.reward(visits, **bounds))
            rad_p = np.asarray(made.radii.transition(visits, **bounds))
            rewards, transitions = _dense(self.model, tau)
            yield HindsightEpisode(
                number=m,
                start=tau,
                last=tau + int(lengths[m]) - 1,
                epsilon=1.0 / math.sqrt(tau) + made.slack,
                gain=float(run.episodes.gain[m]),
                bias=bias,
                visits=visits,
                mean_reward=sums.rewards / n[:, 0],
                p_hat=sums.moves / n,
                true_reward=sums.means / n[:, 0],
                p_bar=sums.rows / n,
                reward_radius=np.where(visits > 0, rad_r, np.maximum(rad_r, 0.5)),
                transition_radius=np.where(visits > 0, rad_p, np.maximum(rad_p, 1.0)),
                widening=np.broadcast_to(np.asarray(made.widening, float), visits.shape),
                rewards=rewards,
                transitions=transitions,
            )

    def _biases(self) -> Iterator[Reals]:
        """Play the run again, an episode at a time; gamma~ of each when it has been played."""
        again = _twin(self.run)
        states, at = self.run.states, 0
        for m, length in enumerate(self.run.episodes.length.tolist()):
            part = play(self.model, again, self.run.seed, start_state=int(states[at]), steps=length)
            here = slice(at, at + length)
            same = part.episodes.total == 1 and part.episodes[0].start == at + 1
            if (
                not same
                or (part.actions != self.run.actions[here]).any()
                or (part.states != states[at : at + length + 1]).any()
            ):
                raise InputError(
                    "an agent made anew takes other steps",
                    field="run",
                    where=f"episode {m + 1}, t={at + 1}",
                    fix="pass the whole run of an agent that was new: nothing preloaded, no actions"
                    " of another agent",
                )
            at += length
            yield again.bias

    def _counted(self, tau: int) -> tuple[Integers, _Sums]:
        """Return the visits in the window of tau, and the sums over them."""
        run, pairs = self.run, self.model.space.n_pairs
        here = slice(max(0, tau - 1 - self.window), tau - 1)
        own, after = self.pairs[here], run.states[1:][here]
        S = self.model.space.n_states
        moves = np.bincount(own * S + after, minlength=pairs * S).reshape(pairs, S)
        rows = [_summed(own, self.rows[here, s], pairs) for s in range(S)]
        return np.bincount(own, minlength=pairs), _Sums(
            rewards=_summed(own, run.rewards[here], pairs),
            means=_summed(own, run.mean_rewards[here], pairs),
            moves=moves.astype(np.float64),
            rows=np.stack(rows, axis=1),
        )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the visits of a window, by pair."""

    rewards: Reals
    means: Reals
    moves: Reals
    rows: Reals


def hindsight(run: Run, drifting: DriftingMDP) -> Hindsight:
    """Return a run of SWUCRL2-CW beside what was true along it.

    Parameters
    ----------
    run
        A full record, from t = 1 on, of `SWUCRL2CW` or `SWUCRL2` with L1 sets.
    drifting
        The model it was made in.

    Examples
    --------
    >>> import windage as wd
    >>> model = wd.envs.make("two-state-cosine", horizon=500)
    >>> agent = wd.SWUCRL2CW(model.space, horizon=500, window=100, widening=0.3)
    >>> again = hindsight(wd.run(model, agent, seed=1), model)
    >>> all(episode.covers_transitions for episode in again.episodes())
    True
    """
    made = _twin(run)
    space = drifting.space
    T = run.steps
    require_memory(8.0 * T * (space.n_states + 6), "run", fix="pass a shorter run")
    pairs = space.offsets[run.states[:T]] + run.actions
    number = np.repeat(np.arange(len(run.episodes)), run.episodes.length)
    budgets = drifting.budgets()
    sums = [
        np.concatenate([[0.0], np.cumsum(steps)])
        for steps in (budgets.reward_steps, budgets.transition_steps)
    ]
    first = np.maximum(run.episodes.start - made.window, 1)[number] - 1
    variations = [total[:T][np.arange(T)] - total[first] for total in sums]
    rows = _true_rows(drifting, pairs)
    return Hindsight(run, drifting, made, pairs, rows, number, *variations)


def _twin(run: Run) -> SWUCRL2CW:
    """Return a new agent like the one that made the run, or say why there is none."""
    if not isinstance(run, Run):
        raise InputError(f"{run!r} is not a Run", field="run", fix="pass what wd.run returned")
    made: dict[str, Any] = dict(run.agent or {})
    kind = made.pop("id", None)
    fix = "pass the run of a wd.SWUCRL2CW or wd.SWUCRL2 agent"
    if kind not in ("swucrl2-cw", "swucrl2"):
        raise InputError(
            f"the proof speaks of SWUCRL2-CW, the run is that of {kind or 'an agent of your own'}",
            field="run",
            fix=fix,
        )
    if run.record != "full" or run.first != 1:
        raise InputError(
            f"starts at t = {run.first:,} and records {run.record!r}",
            field="run",
            fix='pass one that starts at t = 1, with record="full"',
        )
    agent = cast("SWUCRL2CW", agents.get(kind).remade(made))
    if agent.radii.makes_boxes or agent.radii.needs_time:
        raise InputError(
            f"the proof speaks of L1 sets, {agent.radii.label} radii make others",
            field="run",
            fix="use Radii.paper(), proof() or laplace(), scaled or not",
        )
    if agent.reward_range not in (None, (0.0, 1.0)):
        raise InputError(
            f"the proof speaks of rewards in [0, 1], the agent scales those in "
            f"{agent.reward_range}",
            field="run",
            fix="leave reward_range out",
        )
    return agent


def _summed(pairs: Integers, values: Reals, n: int) -> Reals:
    """Return the sum of the values of every pair."""
    return np.bincount(pairs, values, minlength=n).astype(np.float64)


def _true_rows(model: DriftingMDP, pairs: Integers) -> Reals:
    """Return p_t(. | s_t, a_t) of every step."""
    source, T = model.source, pairs.size
    if isinstance(source, Blend) and isinstance(source.kernels.parts[0], np.ndarray):
        parts = np.stack(source.kernels.parts)
        bases, weights = source.kernels.active(1, T)
        return np.asarray(
            sum(weights[:, [k]] * parts[bases[:, k], pairs] for k in range(bases.shape[1]))
        )
    rows = np.empty((T, model.space.n_states))
    for i, pair in enumerate(pairs.tolist()):
        kernel = source.at(i + 1)[1]
        rows[i] = kernel[pair] if isinstance(kernel, np.ndarray) else kernel[[pair]].toarray()[0]
    return rows


def _dense(model: DriftingMDP, t: int) -> tuple[Reals, Reals]:
    rewards, kernel = model.source.at(t)
    return rewards, kernel if isinstance(kernel, np.ndarray) else kernel.toarray()
