"""Learning: whole runs against NumPy and a peer, EVI against a dense kernel, many states, threads.

Before a speed is quoted the two sides are compared: same episodes, sweeps and reward.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse
from numba import njit

import windage as wd
from benchmarks import twin
from benchmarks.clock import cpu_seconds, python
from benchmarks.peers import ask
from windage.envs.riverswim import riverswim_mdp
from windage.theory import run_seconds

T = 1_000_000
_MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "riverswim 6x2": ("riverswim", {}),
    "random 20x4": ("random-drift", {"states": 20, "actions": 4}),
    "random 100x4": ("random-drift", {"states": 100, "actions": 4}),
}
SCALES = (1.0, 0.1)  # sets that say nothing, and tight ones
LOOPS = (
    ("reference, rows blended by NumPy", twin.blended),
    ("reference, lean loop of alias tables", twin.by_alias),
)


def measure() -> dict[str, float]:
    """Ratios of whole runs, of EVI, of threads; megabytes of a large model."""
    warnings.simplefilter("ignore", wd.GuaranteeWarning)
    return {
        **_runs(), **_before(), **_online(), **_fleet(), **_borl(), **_peer(), **_planning(),
        **_chains(), **_large(), **_threads(),
    }  # fmt: skip


def _models() -> dict[str, wd.DriftingMDP]:
    return {
        name: wd.envs.make(kind, horizon=T, **options) for name, (kind, options) in _MODELS.items()
    }


def _agent(model: wd.DriftingMDP, scale: float, **options: object) -> wd.SWUCRL2CW:
    return wd.agents.make(
        "swucrl2-cw",
        model.space,
        horizon=T,
        budgets=model.budgets(),
        radii=wd.Radii.paper().scaled(scale),
        **options,
    )


def _runs() -> dict[str, float]:
    found: dict[str, float] = {}
    for name, model in _models().items():
        for scale in SCALES:
            label = f"{name}, radii x{scale:g}"
            agent = _agent(model, scale)

            whole = _seconds(model, T, scale)
            found[f"{label}: million steps a second, T = 1e6"] = T / whole / 1e6
            said = run_seconds(model.space, T)[SCALES.index(scale)]
            found[f"{label}: seconds that a plan says / measured"] = said / whole
            steps = max(60_000, 2 * agent.window)
            fast = _seconds(model, steps, scale, ties="lowest", warm_start=False)
            run = wd.run(model, _agent(model, scale, ties="lowest", warm_start=False), steps=steps)
            mine = twin.Outcome(
                run.episodes.total, int(run.episodes.sweeps.sum()), run.total_reward
            )
            for kind, sampler in LOOPS:
                sample = sampler(model, run)
                start = time.process_time()
                theirs = twin.run(
                    model,
                    steps,
                    sample,
                    window=agent.window,
                    widening=agent.widening,
                    scale=scale,
                )
                slow = time.process_time() - start
                assert theirs == mine, (label, kind, theirs, mine)
                found[f"{label}: {kind} / windage"] = slow / fast
    return found


def _seconds(model: wd.DriftingMDP, steps: int, scale: float, **options: object) -> float:
    """CPU seconds of a run, without what it takes to make the agent."""
    agents = iter([_agent(model, scale, **options) for _ in range(4)])
    return cpu_seconds(lambda: wd.run(model, next(agents), steps=steps, record="totals"), 3)


def _before() -> dict[str, float]:
    """Time of whole runs over that of another version, whose `src` WINDAGE_BEFORE names."""
    if "WINDAGE_BEFORE" not in os.environ:
        return {}
    sources = {"after": str(Path(wd.__file__).parents[1]), "before": os.environ["WINDAGE_BEFORE"]}
    found = {}
    for name, (kind, options) in _MODELS.items():
        for scale in SCALES:
            sides = {
                side: subprocess.Popen(
                    python(_TIMED.format(T=T, kind=kind, options=options, scale=scale)),
                    env=os.environ | {"PYTHONPATH": source},
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                )
                for side, source in sources.items()
            }  # fmt: skip
            times = [[_ask(side) for side in sides.values()] for _ in range(12)]
            for side in sides.values():
                side.communicate()
            ratios = [after / before for after, before in times[2:]]
            found[f"{name}, radii x{scale:g}: whole run, after / before"] = statistics.median(
                ratios
            )
    return found


_TIMED = """
import sys, time, warnings, windage as wd
warnings.simplefilter("ignore")
model = wd.envs.make("{kind}", horizon={T}, **{options})
for line in sys.stdin:
    agent = wd.agents.make("swucrl2-cw", model.space, horizon={T}, budgets=model.budgets(),
                           radii=wd.Radii.paper().scaled({scale}))
    start = time.process_time()
    wd.run(model, agent, record="totals")
    print(time.process_time() - start, flush=True)
"""


def _ask(side: subprocess.Popen[str]) -> float:
    """The CPU seconds of one more run of a side."""
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write("\n")
    side.stdin.flush()
    return float(side.stdout.readline())


def _online() -> dict[str, float]:
    """One decision and its outcome by hand, as a service or a Gymnasium loop has it."""
    model, steps = wd.envs.make("riverswim", horizon=T), 20_000
    run = wd.run(model, _agent(model, 1.0), steps=steps)
    moves = list(
        zip(*(x.tolist() for x in (run.states, run.rewards, run.states[1:])), strict=False)
    )
    agents = iter([_agent(model, 1.0) for _ in range(4)])

    def work() -> None:
        agent = next(agents)
        for s, reward, after in moves:
            agent.observe(s, agent.act(s), reward, after)
        assert agent.n_episodes == run.episodes.total

    return {
        "riverswim 6x2: act and observe by hand, microseconds": cpu_seconds(work, 3) / steps * 1e6
    }


FLEET = """
import warnings, windage as wd
warnings.simplefilter("ignore")
space = wd.StateActions.uniform(10, 4)
def resident():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
def made():
    agent = wd.SWUCRL2CW(space, horizon=100_000, window=500, widening=0.1)
    for i in range(20):
        agent.observe(i % 10, agent.act(i % 10), 0.5, (i + 1) % 10)
    return agent
first, before = made(), resident()
fleet = [made() for _ in range(1000)]
print((resident() - before) / 1e6)
"""


def _fleet() -> dict[str, float]:
    """What ten thousand agents need: a thousand are made, and have acted."""
    done = subprocess.run([sys.executable, "-c", FLEET], capture_output=True, text=True, check=True)
    return {"10,000 agents, S = 10, A = 4, W = 500: memory, MB": 10 * float(done.stdout)}


def _borl() -> dict[str, float]:
    """BORL beside SWUCRL2-CW with W* and eta*, and its shortest window beside its longest."""
    model = _models()["random 100x4"]

    def seconds(**options: object) -> float:
        agents = iter([wd.BORL(model.space, horizon=T, **options) for _ in range(4)])
        return cpu_seconds(lambda: wd.run(model, next(agents), record="totals"), 3)

    arms = wd.BORL(model.space, horizon=T).arms
    eta = min(eta for _, eta in arms)
    short, long = ((W(w for w, _ in arms), eta) for W in (min, max))
    return {
        "random 100x4: BORL / SWUCRL2-CW at W*, eta*, T = 1e6": seconds() / _seconds(model, T, 1.0),
        f"random 100x4: blocks of W = {short[0]} / of W = {long[0]}": seconds(arms=[short])
        / seconds(arms=[long]),
    }


PEER = """
import json, sys, time
import numpy as np
from statisticalrl_learners.MDPs_discrete.UCRL2 import UCRL2

class SameTolerance(UCRL2):
    def new_episode(self):  # theirs plans to 1/t where UCRL2 asks for 1/sqrt(t)
        self.episodes = getattr(self, "episodes", 0) + 1
        super().new_episode()
    def EVI(self, r, p, epsilon=0.01, max_iter=1000):
        super().EVI(r, p, epsilon=1.0 / np.sqrt(max(1, self.t)), max_iter=max_iter)

rewards, rows = (np.array(x) for x in json.loads(sys.stdin.read()))
steps = int(sys.argv[1])
np.random.seed(0)
rng = np.random.default_rng(0)
sums = np.cumsum(rows, axis=-1)
agent, state, total = SameTolerance(rows.shape[0], rows.shape[1], 0.05), 0, 0.0
agent.reset(0)
start = time.process_time()
for _ in range(steps):
    action = agent.play(state)
    reward = float(rng.random() < rewards[state, action])
    after = int(np.searchsorted(sums[state, action], rng.random(), side="right"))
    agent.update(state, action, reward, after)
    state, total = after, total + reward
print(json.dumps([time.process_time() - start, agent.episodes, total]))
"""


def _peer() -> dict[str, float]:
    """UCRL2 on RiverSwim-6 against the UCRL2 of statisticalrl-learners, both clipped."""
    mdp = riverswim_mdp(6)
    rows = mdp.transitions.reshape(6, 2, 6)
    text = json.dumps([mdp.rewards.reshape(6, 2).tolist(), rows.tolist()])
    steps = 200_000
    seconds, episodes, reward = ask("statisticalrl-learners", PEER, str(steps), stdin=text)
    world = wd.DriftingMDP.stationary(mdp, horizon=steps)

    def agent(seed: int) -> wd.UCRL2:
        return wd.UCRL2(mdp.space, horizon=steps, clip=True, seed=seed)

    mine = [wd.run(world, agent(seed), seed=seed) for seed in range(20)]
    lengths = [run.episodes.total for run in mine]
    rewards = [run.total_reward for run in mine]
    assert 0.8 * min(lengths) <= episodes <= 1.25 * max(lengths), (episodes, lengths)
    spread = 3 * (max(rewards) - min(rewards)) + 50
    assert min(rewards) - spread <= reward <= max(rewards) + spread, (reward, rewards)

    ready = iter([[agent(seed) for seed in range(10)] for _ in range(4)])

    def work() -> None:
        for seed, made in enumerate(next(ready)):
            wd.run(world, made, seed=seed, record="totals")

    ours = cpu_seconds(work, 3) / 10
    return {"UCRL2, RiverSwim-6: statisticalrl-learners / windage": seconds / ours}


@njit(error_model="numpy")
def _dense(offsets, upper, p_hat, half, free, epsilon, most):
    """EVI on dense rows: the same plain iteration, every row walked in order of u."""
    S = p_hat.shape[1]
    u, new = np.zeros(S), np.zeros(S)
    sweeps = 0
    while sweeps < most:
        order = np.argsort(u)
        best = order[S - 1]
        sweeps += 1
        for s in range(S):
            top = -np.inf
            for pair in range(offsets[s], offsets[s + 1]):
                if free[pair]:
                    value = upper[pair] + u[best]
                else:
                    left = min(half[pair], 1.0 - p_hat[pair, best])
                    value = upper[pair] + left * u[best]
                    for i in range(S):
                        state = order[i]
                        taken = min(left, p_hat[pair, state])
                        left -= taken
                        value += (p_hat[pair, state] - taken) * u[state]
                top = max(top, value)
            new[s] = top
        gap = new - u
        u[:] = new - new.min()
        if gap.max() - gap.min() <= epsilon:
            break
    return gap.max(), sweeps


def _region(states: int, rng: np.random.Generator) -> wd.ConfidenceRegion:
    """W = 10 SA samples of a random model with about six next states a pair."""
    space = wd.StateActions.uniform(states, 4)
    pairs = np.repeat(np.arange(space.n_pairs), rng.poisson(10, space.n_pairs))
    support = rng.integers(0, states, (space.n_pairs, 7))
    after = support[pairs, rng.integers(0, 7, pairs.size)]
    counts = scipy.sparse.csr_array(
        (np.ones(pairs.size), (pairs, after)), shape=(space.n_pairs, states)
    )
    visits = np.bincount(pairs, minlength=space.n_pairs)
    p_hat = scipy.sparse.diags_array(1.0 / np.maximum(visits, 1)) @ counts
    radius = 0.3 / np.sqrt(np.maximum(visits, 1))
    return wd.ConfidenceRegion(
        space, rng.random(space.n_pairs), p_hat.tocsr(), radius, visits > 0, widening=0.05
    )


def _planning() -> dict[str, float]:
    from windage.kernels import evi as kernel

    found: dict[str, float] = {}
    rng = np.random.default_rng(3)
    for states in (10, 50, 200, 1000, 10_000):
        region = _region(states, rng)
        free = region.width >= 2.0
        arguments = (
            np.asarray(region.space.offsets),
            region.reward_upper,
            region.p_hat.toarray(),
            region.width / 2.0,
            free,
            1e-3,
        )
        plain = wd.evi(region, 1e-3, method="plain")
        most = 3 if states == 10_000 else 100_000  # a full solve would take minutes: scaled
        _dense(*arguments, 1)
        gain, sweeps = _dense(*arguments, most)
        if most > 3:
            assert abs(gain - plain.gain) < 1e-9, (gain, plain.gain)
            assert sweeps == plain.sweeps
        rounds = 200 if states <= 200 else 1

        def dense(arguments: tuple = arguments, most: int = most, rounds: int = rounds) -> None:
            for _ in range(rounds):
                _dense(*arguments, most)

        plan = region.as_plan(np.zeros(states))

        def ours(plan: object = plan, rounds: int = rounds) -> None:
            for _ in range(rounds):
                plan.u[:] = 0.0
                kernel.arrange(plan, plan.rows.size)
                assert kernel.solve(plan, 1e-3, True, 100_000)

        slow = cpu_seconds(dense, 3) / rounds * (plain.sweeps / sweeps)
        fast = cpu_seconds(ours, 3) / rounds
        found[f"EVI cold, S = {states}: dense kernel / windage"] = slow / fast
        del arguments
    return found


def _chains() -> dict[str, float]:
    """Slow chains of 200 states, planned again when the window has 2 % new samples."""
    from windage.kernels import evi as kernel

    found: dict[str, float] = {}
    rng = np.random.default_rng(5)
    mdp, visits = riverswim_mdp(200), 1000
    space, seen = mdp.space, np.ones(mdp.space.n_pairs, bool)
    rows = mdp.transitions.toarray() if scipy.sparse.issparse(mdp.transitions) else mdp.transitions
    counts = np.stack([rng.multinomial(visits, row) for row in rows]).astype(float)
    newer = np.stack([rng.multinomial(visits // 50, row) for row in rows])
    for name, scale in (("tight", 0.01), ("wide", 0.1)):
        radius = np.full(space.n_pairs, scale * 2 * np.sqrt(2 * 200 * 20 / visits) / 10)
        upper = np.minimum(mdp.rewards + radius, 1.0)
        before = wd.ConfidenceRegion(space, upper, counts / visits, radius, seen)
        mixed = 0.98 * counts + newer
        now = wd.ConfidenceRegion(
            space, upper, mixed / mixed.sum(axis=1, keepdims=True), radius, seen
        )
        start = wd.evi(before, 1e-3).bias
        cold, warm = wd.evi(now, 1e-3, method="plain"), wd.evi(now, 1e-3, warm_start=start)
        assert abs(cold.gain - warm.gain) <= 2e-3
        plan = now.as_plan(np.zeros(200))

        def solve(u: np.ndarray | float, quick: bool, plan: object = plan) -> float:
            def work() -> None:
                for _ in range(20):
                    plan.u[:] = u
                    kernel.arrange(plan, plan.rows.size)
                    assert kernel.solve(plan, 1e-3, quick, 1_000_000)

            return cpu_seconds(work, 3)

        slow = solve(0.0, False)
        found[f"EVI, {name} chain of 200: plain cold / warm start"] = slow / solve(start, True)
        found[f"EVI, {name} chain of 200: plain warm / with evaluations"] = solve(
            start, False
        ) / solve(start, True)
    return found


LARGE = """
import time, warnings, windage as wd
from windage.envs.riverswim import riverswim_mdp
warnings.simplefilter("ignore")
mdp = riverswim_mdp(100_000)
world = wd.DriftingMDP.stationary(mdp, horizon=200_000)
agent = wd.SWUCRL2CW(mdp.space, horizon=200_000, window=100_000, widening=0.1,
                     radii=wd.Radii.laplace().scaled(0.1))
start = time.process_time()
run = wd.run(world, agent, record="totals")
assert run.steps == 200_000
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024, time.process_time() - start)
"""


def _large() -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    megabytes, seconds = map(float, done.stdout.split())
    return {
        "S = 100,000, W = 1e5, 2e5 steps: peak memory, MB": megabytes,
        "S = 100,000, W = 1e5, 2e5 steps: seconds": seconds,
    }


def _threads() -> dict[str, float]:
    """Eight seeds on one and on two threads."""
    model = wd.envs.make("riverswim", horizon=T)

    def one(seed: int) -> float:
        return wd.run(model, _agent(model, 0.1, seed=seed), seed=seed, record="totals").total_reward

    def on(threads: int) -> tuple[float, float, list[float]]:
        wall, cpu = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(threads) as pool:
            rewards = list(pool.map(one, range(8)))
        return time.perf_counter() - wall, time.process_time() - cpu, rewards

    on(1)
    single, double = on(1), on(2)
    assert single[2] == double[2]
    return {
        "eight seeds: throughput of two threads / one": single[0] / double[0],
        "eight seeds: CPU of two threads / one": double[1] / single[1],
    }
