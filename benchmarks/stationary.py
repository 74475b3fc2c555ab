"""UCRL2 and PSRL on RiverSwim-6 without drift, beside those of statisticalrl-learners.

    python -m benchmarks.stationary

writes a table of docs/studies/family.md: mean regret after 100,000 steps over 20 seeds. Ours have
the options that make them theirs: rewards clipped at 1, a Dirichlet(1, ..., 1) prior, episodes that
end by doubling only.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import windage as wd
from benchmarks.family import halfwidth, write
from benchmarks.peers import ask
from windage.envs.riverswim import riverswim_mdp

STATES, T, SEEDS = 6, 100_000, 20

PEER = """
import contextlib, importlib, io, json, sys
import numpy as np
name, steps, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
module = importlib.import_module("statisticalrl_learners.MDPs_discrete." + name)
rewards, rows = (np.array(x) for x in json.loads(sys.stdin.read()))
sums, totals = np.cumsum(rows, axis=-1), []
for seed in range(seeds):
    np.random.seed(seed)
    rng = np.random.default_rng(seed)
    agent, state, total = getattr(module, name)(rows.shape[0], rows.shape[1], 0.05), 0, 0.0
    with contextlib.redirect_stdout(io.StringIO()):  # it prints while it plans
        agent.reset(0)
        for _ in range(steps):
            action = agent.play(state)
            total += rewards[state, action]
            reward = float(rng.random() < rewards[state, action])
            after = int(np.searchsorted(sums[state, action], rng.random(), side="right"))
            agent.update(state, action, reward, after)
            state = after
    totals.append(total)
print(json.dumps(totals))
"""


def main() -> None:
    mdp = riverswim_mdp(STATES)
    world = wd.DriftingMDP.stationary(mdp, horizon=T)
    best = T * mdp.solve().gain
    rows = mdp.transitions.reshape(STATES, 2, STATES)
    text = json.dumps([mdp.rewards.reshape(STATES, 2).tolist(), rows.tolist()])
    mine: dict[str, dict[str, Any]] = {
        "UCRL2": {"id": "ucrl2", "clip": True},
        "PSRL": {"id": "psrl", "prior": float(STATES), "episodes": "doubling"},
    }
    lines = ["| learner | windage | statisticalrl-learners |", "|---|---|---|"]
    for name, options in mine.items():
        ours = []
        for seed in range(SEEDS):
            agent = wd.agents.make(space=mdp.space, horizon=T, seed=seed, **options)
            run = wd.run(world, agent, seed=seed, record="totals")
            ours.append(best - run.total_mean_reward)
        totals = ask("statisticalrl-learners", PEER, name, str(T), str(SEEDS), stdin=text)
        both = (np.array(ours), best - np.array(totals))
        cells = [f"{regrets.mean():,.0f} ± {halfwidth(regrets):,.0f}" for regrets in both]
        print(name, *cells)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    write({"stationary": "\n".join(lines)})


if __name__ == "__main__":
    main()
