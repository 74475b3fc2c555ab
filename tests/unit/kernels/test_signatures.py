"""Arguments that count as the same compile the same: an int for a float costs no minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_no_kernel_is_compiled_again_for_ints_where_floats_are_meant() -> None:
    env = os.environ | {"WINDAGE_PATIENCE": "-1"}  # runs are compiled too, however short
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.kernels.signatures"],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["compiled"] > 30
    assert found["kernels"] > 100
    assert found["again"] == {}
