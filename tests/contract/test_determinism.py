"""Same seed, same bytes: in one thread or two, in this process or another, whole or split."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import windage as wd


def digest(seed: int) -> str:
    model = wd.envs.make("riverswim", horizon=20_000)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=20_000, seed=seed), seed=seed)
    parts = (run.states, run.actions, run.rewards, run.mean_rewards, run.cumulative_reward)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def test_threads_do_not_matter():
    alone = [digest(seed) for seed in range(6)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(digest, range(6))) == alone
    assert len(set(alone)) == 6


def test_processes_do_not_matter():
    code = "from tests.contract.test_determinism import digest; print(digest(3))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="."
    )
    assert done.stdout.strip() == digest(3)


def test_one_model_in_two_threads_at_once():
    """Models are shared by runs: what they keep for later must not depend on who came first."""
    model = wd.envs.make("two-state-cosine", horizon=50_000)

    def play(seed: int) -> bytes:
        agent = wd.agents.make("random", model.space, horizon=50_000, seed=seed)
        return wd.run(model, agent, seed=seed).rewards.tobytes()

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(play, range(8)))
    assert together == [play(seed) for seed in range(8)]
