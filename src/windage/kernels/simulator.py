"""One step of a drifting MDP: draw the base kernel, then its alias table; then the reward.

sum_k w_k P_k is sampled exactly by drawing k with probability w_k and then from P_k, so a step
costs the same with and without drift and does not depend on S. The draws of base, state and reward
have keys of their own: the same word for two of them would correlate what must be independent.

The next state is drawn by alias tables (Walker 1977, built as Vose 1991) over the non-zeros of CSR
rows. A row with n non-zeros becomes n cells; a draw picks a cell uniformly and then its own place
in the row if the rest of the draw is below the cell's `cut`, else another place. Only states of
positive probability have cells, so an impossible state cannot be drawn, whatever the rounding.
Draws and cuts are whole numbers of units of 2**-53, and what is drawn is exact in them. A step
waits for this look-up, and the cells of a hundred states must not leave the cache: where no state
is missing from any row a cell is four bytes, the first sixteen bits of its cut and the other place.
Only when these bits do not decide, once in 65,536 draws, or when a place does not fit, are the cut
and the place asked in full. Where states are missing rows are short, and the states of both places
are fetched before it is known which of them is drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.random import bits, gamma, normal, split, uniform

AHEAD = 1 << 9  # steps whose noise is drawn beforehand: it stays in the cache
NO_NOISE, BERNOULLI, GAUSSIAN, BETA = 0, 1, 2, 3

_ONE = 2.0**53
_SHIFT = np.uint64(53 - 16)
_SIXTEEN = np.uint32(16)
_PLACES = np.uint32((1 << 16) - 1)
_FIRST, _SECOND = np.uint64(0), np.uint64(1)


class Alias(NamedTuple):
    """The tables of many rows."""

    direct: bool  # whether the k-th place of every row is state k
    rows: NDArray[np.int64]  # [rows + 1] where the cells of each row start
    cells: NDArray[np.uint32]  # first bits of the cut, last bits of the other place
    states: NDArray[np.int32]
    cuts: NDArray[np.uint64]
    others: NDArray[np.int32]  # the state of the other place


@compiled
def build(alias, probabilities, shares, stack):
    """Fill the cells of every row; `shares` has room for one, `stack` too."""
    rows, cuts, places = alias.rows, alias.cuts, alias.others  # of places until the end
    for row in range(rows.size - 1):
        first, n = rows[row], rows[row + 1] - rows[row]
        total = 0.0
        for place in range(n):
            total += probabilities[first + place]
        small, large = 0, n  # the stack holds cells below one from the left, others from the right
        for place in range(n):
            shares[place] = probabilities[first + place] / total * n
            places[first + place] = place
            if shares[place] < 1.0:
                stack[small] = place
                small += 1
            else:
                large -= 1
                stack[large] = place
        while small > 0 and large < n:
            poor, rich = stack[small - 1], stack[large]
            places[first + poor] = rich
            shares[rich] -= 1.0 - shares[poor]
            small -= 1
            if shares[rich] < 1.0:
                large += 1
                stack[small] = rich
                small += 1
        for place in range(n):  # a cell whose other place is its own is full, rounding or not
            cut = min(np.ceil(shares[place] * _ONE), _ONE - 1.0)
            cuts[first + place] = np.uint64(cut)
            bits = np.uint32(np.uint64(cut) >> _SHIFT) << _SIXTEEN
            alias.cells[first + place] = bits | (np.uint32(places[first + place]) & _PLACES)
        for place in range(n):
            alias.others[first + place] = alias.states[first + places[first + place]]


@inlined
def draw(alias, row, u):
    """Return the state that u, in units of 2**-53, picks from a row."""
    start = np.uint64(alias.rows[row])
    n = np.uint64(alias.rows[row + _SECOND]) - start
    own, rest = split(u, n)
    k = start + own
    cell, bits = alias.cells[k], np.uint32(rest >> _SHIFT)
    state, other = np.int64(own), np.int64(cell & _PLACES)
    if not alias.direct:
        state, other = np.int64(alias.states[k]), np.int64(alias.others[k])
    if bits == cell >> _SIXTEEN or n > _PLACES:
        return state if rest < alias.cuts[k] else np.int64(alias.others[k])
    return state if (bits << _SIXTEEN | _PLACES) < cell else other


class Bernoulli(NamedTuple):
    """Rewards are 0 or 1."""

    key: NDArray[np.uint64]


class Spread(NamedTuple):
    """Rewards are spread around their mean, or are their mean."""

    key: NDArray[np.uint64]
    kind: int
    width: float  # sigma or concentration, as the noise has it


class Dynamics(NamedTuple):
    """All a compiled loop needs to know of the environment for the times `first`..`last`.

    Weights are stored sparsely: at time t the kernel is the sum over j of
    `kernel_weight[t - first, j]` times base `kernel_base[t - first, j]`; likewise the rewards.
    """

    first: int
    last: int
    ahead: int  # by how much its time is ahead of that of whoever plays
    pairs: int
    alias: Alias  # of [bases * pairs] rows
    kernel_base: NDArray[np.int32]  # [times, active]
    kernel_weight: NDArray[np.float64]
    rewards: NDArray[np.float64]  # [bases, pairs]
    reward_base: NDArray[np.int32]
    reward_weight: NDArray[np.float64]
    noise: Bernoulli | Spread
    base_key: NDArray[np.uint64]
    state_key: NDArray[np.uint64]
    seen: NDArray[np.int64]  # [variables, 2] lowest and highest outcome each may have had; (0, -1)


@inlined
def base_at(model, t, u):
    """Return the base kernel that the uniform number u picks at time t."""
    i = np.uint64(t - model.first)
    active = model.kernel_base.shape[1]
    j = np.uint64(0)
    if active == 2:  # nearly always; a sum instead of a branch that could go either way
        j = np.uint64(u >= model.kernel_weight[i, 0])
    elif active > 2:
        while j < active - 1 and u >= model.kernel_weight[i, j]:
            u -= model.kernel_weight[i, j]
            j += np.uint64(1)
    return model.kernel_base[i, j]


@inlined
def mean_reward(model, t, pair):
    """Return r_t(pair), the blended mean."""
    i = np.uint64(t - model.first)
    mean = _part(model, i, 0, pair)
    if model.reward_base.shape[1] > 1:
        mean += _part(model, i, 1, pair)
    for j in range(2, model.reward_base.shape[1]):  # seldom: a loop costs more than its two rounds
        mean += _part(model, i, j, pair)
    return mean


@inlined
def _part(model, i, j, pair):
    base = np.uint64(model.reward_base[i, np.uint64(j)])
    return model.reward_weight[i, np.uint64(j)] * model.rewards[base, np.uint64(pair)]


@variants
def reward(noise, t, mean, coin):
    """Draw R_t with the given mean; a coin in [0, 1) decides where rewards are 0 or 1."""


@reward.register(Bernoulli, forceinline=True)
def _reward_or_not(_noise, _t, mean, coin):
    return 1.0 if coin < mean else 0.0


@reward.register(Spread)
def _spread_out(noise, t, mean, coin):  # noqa: ARG001 - it draws numbers of its own
    key = noise.key
    if noise.kind == GAUSSIAN:
        return mean + noise.width * normal(key, t, 0)
    if noise.kind == BETA and 0.0 < mean < 1.0:
        left, draw = gamma(key, t, 0, noise.width * mean)
        right, draw = gamma(key, t, draw, noise.width * (1.0 - mean))
        total = left + right
        if total > 0.0:
            return left / total
        return 1.0 if uniform(key, t, draw) < mean else 0.0  # both underflowed
    return mean


@variants
def draw_noise(model, t, spins, draws, coins):
    """Draw the noise of as many steps as there is room for; the first of them is at time t.

    It does not depend on what is played, so it goes before the loop that has to wait for it.
    """


@variants
def noise_at(model, t):
    """Return the same noise of one step."""


@variants
def land(model, t, pair, spin, u, coin):
    """Return (r_t(pair), R_t, s_{t+1}) for the noise of time t, and leave in `seen` what it shows.

    t is the time of whoever plays.
    """


@inlined
def step(model, t, pair):
    """Return (r_t(pair), R_t, s_{t+1}); t is the time of whoever plays."""
    spin, u, coin = noise_at(model, t)
    return land(model, t, pair, spin, u, coin)


@draw_noise.register(Dynamics)
def _draw_noise(model, t, spins, draws, coins):
    start = np.uint64(t + model.ahead)
    if model.kernel_base.shape[1] > 1:
        uniforms(model.base_key, start, spins)
    uniforms(model.noise.key, start, coins)
    key = (model.state_key[0], model.state_key[1])
    for k in range(np.uint64(draws.size)):
        draws[k] = np.int64(bits(key, start + k, _FIRST))


@noise_at.register(Dynamics, forceinline=True)
def _noise_at(model, t):
    at = t + model.ahead
    spin, coin = uniform(model.base_key, at, 0), uniform(model.noise.key, at, 0)
    return spin, bits(model.state_key, at, 0), coin


@land.register(Dynamics, forceinline=True)
def _land(model, t, pair, spin, u, coin):
    t += model.ahead
    mean = mean_reward(model, t, pair)
    row = np.uint64(base_at(model, t, spin) * model.pairs + pair)
    return mean, reward(model.noise, t, mean, coin), draw(model.alias, row, np.uint64(u))


@inlined
def uniforms(key, start, out):
    """Fill in the uniform numbers of consecutive times."""
    own = (key[0], key[1])  # read once, so that the loop may go eight at a time
    for k in range(np.uint64(out.size)):
        out[k] = uniform(own, start + k, _FIRST)
