"""Algorithm 1, SWUCRL2-CW, as one compiled learner; UCRL2 and the rest differ in parameters only.

They differ in what they remember (a window, everything, everything since a restart), in their sets
(balls or boxes, widened or not), in what they plan with (the best plausible model, or one drawn
from the posterior) and in when an episode ends.

The line numbers are those of Algorithm 1. `begin` starts an episode (lines 4 to 6), `decide` gives
the action (line 8), `learn` takes in what followed (lines 8 and 9), `kept` is the test of line 7
after a step (E1). Acting online calls `act` and `observe` one by one; `play` is a loop of them.

What an episode was planned with changes only where counts changed: `begin` touches the pairs that
were played or forgotten since the last episode, and the policy of a state is looked up the first
time the episode meets it. So an episode costs what its steps cost, not what the model costs, unless
there is something to plan.
"""

from __future__ import annotations

import math

import numpy as np

from windage.kernels import evi, grid
from windage.kernels.gather import gather, gather_boxes
from windage.kernels.jit import compiled, inlined
from windage.kernels.memory import (
    CELLS,
    RESTARTS,
    commit,
    contents,
    next_restart,
    origin,
    settle,
    take,
)
from windage.kernels.plan import BOUND, BOX, FREE, GAIN, GRID, SPAN, SWEEPS
from windage.kernels.posterior import draw_policy
from windage.kernels.random import uniform
from windage.kernels.rules import (
    BOUNDARY,
    CAUSE,
    DUE,
    EPISODE,
    FIRST,
    FULL,
    GOING_ON,
    LENGTH,
    NEXT,
    NOT_CONVERGED,
    OUT_OF_RANGE,
    PLANNED,
    PLAYED,
    PREVIOUS,
    RANDOM,
    RESTART,
    SAMPLED,
    SATURATED,
    TAU,
    TIED,
    VISITS,
)
from windage.kernels.sets import bar_of, count_ties, refresh, refresh_pair, ties, value
from windage.kernels.world import AHEAD, draw_noise, land

_ROUNDED = np.int64(1) << np.int64(20)  # place of the draw that rounds a reward, beyond all others


@inlined
def kept(now, looks, sets, t, s):
    """Return the pair to play at time t in state s; -1 if the episode is over (line 7) or new here.

    It needs a few arrays only, and nearly every step needs no more than it.
    """
    look = looks[np.uint64(s)]
    if now[DUE] != GOING_ON or t == now[NEXT] or look["met"] != now[EPISODE]:
        return np.int64(-1)
    return look["pair"] if sets[np.uint64(look["pair"])]["left"] > 0 else np.int64(-1)


@inlined
def _why(learner, t):
    """Return why the episode is over at time t."""
    if learner.now[DUE] != GOING_ON:  # the first, or one whose plan did not converge
        return learner.now[DUE]
    return learner.now[CAUSE] if t == learner.now[NEXT] else np.int64(VISITS)


@compiled
def begin(learner, t, reason):
    """Start episode m + 1 at tau = t (lines 4 to 6); returns whether EVI converged."""
    now, rules, memory = learner.now, learner.rules, learner.memory
    commit(memory)
    if reason in (FIRST, RESTART):  # counts may have been restarted before, in `take`
        _set_widening(learner)
        for s in range(learner.plan.u.size):
            learner.plan.u[s] = 0.0  # all is forgotten, the last bias too
    clock = t - origin(memory)  # a restarted learner's own time
    refresh(learner, clock)
    # where every state has an action with r~ = 1, u = 0 passes the test of EVI's first sweep
    now[PLANNED] = rules.drawn or not rules.clip or now[FULL] < learner.looks.size
    if rules.drawn:
        for p in range(learner.plan.pairs.size):
            learner.plan.pairs[p]["kind"] = BOUND
        draw_policy(memory, learner.plan, rules.key, t, clock, rules.prior)
    elif now[PLANNED]:
        if not _climb(learner, clock):
            return False
    elif rules.ladder.size > 0:  # nothing to plan: the first step will do
        for p in range(learner.sets.size):
            learner.sets[p]["eta"] = rules.ladder[0]
            refresh_pair(learner, p, math.log(clock))
    settle(memory)
    row = learner.log[now[EPISODE] % learner.log.size]
    row["length"] = t - now[TAU]
    row["reason"] = reason
    now[EPISODE] += 1
    _set_limit(learner, t, np.int64(1) if clock == 1 else t - now[TAU])
    now[TAU] = t
    answer = learner.plan.answer
    row = learner.log[now[EPISODE] % learner.log.size]
    row["start"] = t
    row["length"] = 0
    row["reason"] = GOING_ON
    row["sweeps"] = answer[SWEEPS] if now[PLANNED] else 1
    row["ties"] = count_ties(learner) if now[PLANNED] else now[TIED]
    row["gain"] = answer[GAIN] if now[PLANNED] else 1.0
    row["span"] = answer[SPAN] if now[PLANNED] else 0.0
    row["vacuous"] = now[SATURATED] / learner.sets.size
    if rules.drawn:
        for s in range(learner.looks.size):
            learner.looks[s]["pair"] = learner.plan.states[s]["greedy"]
            learner.looks[s]["met"] = now[EPISODE]
    elif rules.ties == SAMPLED:
        _sample_policy(learner, t, clock)
    return True


@inlined
def _climb(learner, clock):
    """Plan with the first widening of the ladder, if there is one, whose bias is flat enough."""
    rules, epsilon = learner.rules, 1.0 / math.sqrt(clock)
    last = max(0, rules.ladder.size - 1)
    for i in range(last + 1):
        if rules.ladder.size > 0:
            for p in range(learner.sets.size):
                learner.sets[p]["eta"] = rules.ladder[i]
                refresh_pair(learner, p, math.log(clock))
        solved = _plan(learner, epsilon)
        flat = learner.plan.answer[SPAN] <= rules.most_span * (1.0 + epsilon)
        if solved and (flat or i == last):
            return True
    return False


@inlined
def _set_widening(learner):
    """Give all sets the widenings of the phase that the last restart has begun."""
    rules = learner.rules
    if rules.widenings.size > 0:
        phase = learner.memory.clock[RESTARTS]
        for p in range(learner.sets.size):
            learner.sets[p]["lift"] = rules.widenings[phase, 0]
            learner.sets[p]["eta"] = rules.widenings[phase, 1]


@inlined
def _set_limit(learner, t, before):
    """Find out when an episode that starts at t must end; the one before had so many steps."""
    now, rules = learner.now, learner.rules
    now[NEXT], now[CAUSE] = next_restart(learner.memory), RESTART
    if rules.period > 0:
        boundary = t + rules.period - (t - rules.phase) % rules.period
        if boundary < now[NEXT]:
            now[NEXT], now[CAUSE] = boundary, BOUNDARY
    if rules.grows and t + before + 1 < now[NEXT]:
        now[NEXT], now[CAUSE] = t + before + 1, LENGTH


@compiled
def _plan(learner, epsilon):
    """Find the optimistic policy: pi~, rho~, gamma~ = EVI(H_r, H_p; epsilon) (line 6)."""
    plan = learner.plan
    known = BOX if learner.rules.boxes else BOUND
    for p in range(plan.pairs.size):
        plan.pairs[p]["kind"] = FREE if learner.sets[p]["saturated"] else known
    evi.prune(plan, learner.rules.slack)
    _gather(learner.memory, plan)
    if learner.rules.boxes:
        gather_boxes(learner.memory, plan)
    if not learner.rules.warm:
        for s in range(plan.u.size):
            plan.u[s] = 0.0
    return evi.solve(plan, epsilon, learner.rules.warm, learner.rules.sweeps)


@inlined
def _gather(memory, plan):
    """Write p_hat into the columns of a plan, or on its grid if most are non-zeros."""
    if not memory.hashed and grid.fits(plan, memory.clock[CELLS]):
        grid.fill(plan, memory.cell_count, memory.counts)
    else:
        plan.answer[GRID] = 0.0
        gather(memory, plan)


@compiled
def _sample_policy(learner, t, clock):
    """Play of the tied actions the one that is best in a model drawn from the posterior."""
    drawn = learner.drawn
    for p in range(drawn.pairs.size):
        drawn.pairs[p]["kind"] = BOUND
    draw_policy(learner.memory, drawn, learner.rules.key, t, clock, learner.rules.prior)
    for s in range(learner.looks.size):
        bar, best = bar_of(learner, s), -np.inf
        for p in range(drawn.states[s]["first"], drawn.states[s]["last"]):
            if value(learner, p) >= bar and drawn.pairs[p]["value"] > best:
                best = drawn.pairs[p]["value"]
                learner.looks[s]["pair"] = p
        learner.looks[s]["met"] = learner.now[EPISODE]


@inlined
def decide(learner, s):
    """Return pi~(s) as a pair (line 8), looked up when the episode first meets the state."""
    look = learner.looks[np.uint64(s)]
    if look["met"] != learner.now[EPISODE]:
        _look_up(learner, s)
    return look["pair"]


@compiled
def _look_up(learner, s):
    rules, look = learner.rules, learner.looks[s]
    bar = bar_of(learner, s)
    keep = rules.ties == PREVIOUS and look["met"] > 0 and value(learner, look["pair"]) >= bar
    look["met"] = learner.now[EPISODE]
    if keep:
        return
    skip = 0
    if rules.ties == RANDOM:
        skip = int(uniform(rules.key, learner.now[TAU], s) * ties(learner, s, bar))
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        if value(learner, p) >= bar:
            if skip == 0:
                look["pair"] = p
                return
            skip -= 1


@inlined
def learn(learner, t, p, reward, after):
    """Take in one step (lines 8 and 9): remember it, nu(s, a) += 1."""
    rules = learner.rules
    scale = (rules.low, rules.width, rules.rounded)
    _take_in(learner.memory, learner.sets, scale, rules.key, t, p, reward, after)


@inlined
def _take_in(memory, sets, scale, key, t, p, reward, after):
    low, width, rounded = scale
    scaled = (reward - low) / width
    if rounded:
        scaled = 1.0 if uniform(key, t, _ROUNDED) < scaled else 0.0
    take(memory, p, scaled, after)
    sets[np.uint64(p)]["left"] -= 1


@compiled
def observe(memory, sets, scale, key, t, p, reward, after):
    """`learn`, for callers outside the loop; they hand over what it needs and no more."""
    _take_in(memory, sets, scale, key, t, p, reward, after)


@compiled
def observe_all(learner, t, pairs, rewards, afters):
    """`learn` from many samples, the first of them of time t."""
    for i in range(pairs.size):
        learn(learner, t + i, pairs[i], rewards[i], afters[i])


@compiled
def choice(learner, s):
    """`decide`, for callers outside the loop."""
    return decide(learner, s)


@inlined
def _asked(learner, t, s):
    """Return the pair to play at time t in state s, -1 if EVI did not converge."""
    now = learner.now
    if now[DUE] == GOING_ON and t != now[NEXT]:
        p = decide(learner, s)
        if learner.sets[p]["left"] > 0:
            return p
    now[DUE] = _why(learner, t)
    if not begin(learner, t, now[DUE]):
        for state in range(learner.plan.u.size):
            learner.plan.u[state] = 0.0  # asked again, it fails in the same way
        return np.int64(-1)
    now[DUE] = GOING_ON
    return decide(learner, s)


@compiled
def act(learner, t, s):
    """Return the pair to play at time t in state s, -1 if EVI did not converge."""
    return _asked(learner, t, s)


@compiled
def glance(now, looks, sets, t, s):
    """`kept`, for callers outside the loop: they ask `act` if it is -1."""
    return kept(now, looks, sets, t, s)


@inlined
def advise(learner, t, s):
    """`act`, for loops: where the episode goes on, a glance will do."""
    p = kept(learner.now, learner.looks, learner.sets, t, s)
    return p if p >= 0 else _asked(learner, t, s)  # inlined: an episode may be a single step


@compiled
def play(learner, world, state, t, states, pairs, rewards, means):
    """Act, observe, learn; returns the last state, the steps played and how it ended."""
    for i in range(states.size):
        if i % AHEAD == 0:
            draw_noise(world, t, i, states, pairs, rewards)
        base, u, coin = states[i], pairs[i], rewards[i]
        p = advise(learner, t, state)
        if p < 0:
            return state, i, NOT_CONVERGED
        states[i] = state
        pairs[i] = p
        means[i], rewards[i], after = land(world, t, p, base, u, coin)
        if not learner.rules.least <= rewards[i] <= learner.rules.most:
            return state, i, OUT_OF_RANGE
        learn(learner, t, p, rewards[i], after)
        state = after
        t += 1
    return state, states.size, PLAYED


@compiled
def play_counted(learner, world, state, t, states, pairs, rewards, means, every, before, counts):
    """`play`, and count what is remembered whenever the world's time is a multiple of `every`."""
    done = 0
    while done < states.size:
        past = t + world.ahead + done - 1  # steps of the world that have been
        last = min(states.size, done + every - past % every)
        state, n, how = play(
            learner, world, state, t + done,
            states[done:last], pairs[done:last], rewards[done:last], means[done:last],
        )  # fmt: skip
        if how != PLAYED:
            return state, done + n, how
        if (past + n) % every == 0:
            contents(learner.memory, counts[(past + n) // every - 1 - before])
        done = last
    return state, done, PLAYED
