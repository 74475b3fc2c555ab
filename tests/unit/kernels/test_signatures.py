"""Arguments that count as the same compile the same: an int for a float costs no minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_no_kernel_is_compiled_again_for_ints_where_floats_are_meant() -> None:
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.kernels.signatures"],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["compiled"] > 30
    assert found["kernels"] > 100
    assert found["again"] == {}
