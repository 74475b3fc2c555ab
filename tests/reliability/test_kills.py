"""SIGKILL at random moments: nothing acknowledged is lost or doubled.

Once here, 200 times in `make reliability`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import RELIABILITY

ROOT = Path(__file__).parents[2]


def test_a_live_loop_killed_at_random_moments_is_the_loop_that_was_never_killed(tmp_path):
    kills = 200 if RELIABILITY else 1
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.killing", str(tmp_path), str(kills), "1"],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert found["kills"] == kills
    assert found["told"] >= kills, "the loop must have got somewhere between kills"
    assert (found["lost"], found["doubled"], found["told twice"]) == (0, 0, [])
    assert all(
        found[what] for what in ("keys in order", "actions", "state", "next action", "sound")
    )
