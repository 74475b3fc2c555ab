"""What Gymnasium's interface costs a step, over the bare sampler called from Python."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import windage as wd

STEPS = 20_000
ROUNDS = 15
LIMIT = 3.0  # microseconds a step


def measure() -> dict[str, float]:
    """Microseconds a step, in turns: all sides play the same actions with the same seed."""
    found: dict[str, float] = {}
    for name in ("riverswim", "inventory"):
        model = wd.envs.make(name, horizon=STEPS)
        run = wd.run(model, wd.agents.make("random", model.space, horizon=STEPS), seed=1)
        actions = run.actions.tolist()
        sampler = wd.simulate.Simulator(model, seed=1)
        env = wd.gym.make_env(model)
        gym = wd.gym.wrap(wd.gym.make_env(model), horizon=STEPS)
        sides: dict[str, tuple[Callable[[], object], Callable[[int], object]]] = {
            "sampler": (lambda s=sampler: s.reset(1), sampler.step),
            "adapter": (lambda e=env: e.reset(seed=1), env.step),
            "wrapped": (lambda g=gym: g.reset(1), gym.step),
        }
        times: dict[str, list[float]] = {side: [] for side in sides}
        for turn in range(ROUNDS + 1):
            for side, (reset, step) in sides.items():
                reset()
                start = time.process_time()
                for action in actions:
                    answer = step(action)
                if turn:
                    times[side].append((time.process_time() - start) / STEPS * 1e6)
                assert run.final_state in answer  # the same path
        cost = {side: statistics.median(each) for side, each in times.items()}
        over = cost["adapter"] - cost["sampler"]
        found[f"{name}: bare sampler from Python, microseconds a step"] = cost["sampler"]
        found[f"{name}: Gymnasium adapter over it, microseconds a step"] = over
        found[f"{name}: Gymnasium adapter / bare sampler"] = cost["adapter"] / cost["sampler"]
        found[f"{name}: adapter wrapped again / bare sampler"] = cost["wrapped"] / cost["sampler"]
        assert over <= LIMIT, f"{name}: {over:.2f} microseconds a step"
    return found
