"""Every kernel test also runs with the compiler off: the source is what is tested, not luck."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="this is the inner run")
def test_kernels_as_plain_python():
    here = Path(__file__).parent
    tests = sorted(str(path) for path in here.glob("test_*.py") if path.name != Path(__file__).name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
