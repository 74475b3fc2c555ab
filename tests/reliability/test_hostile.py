"""Hostile arguments, files and saved agents in children: none of them crashes, hangs or strays."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import RELIABILITY, one_of

CASES = 1000 if RELIABILITY else 40


def ran(module, *arguments, **environment):
    """What a module prints; it returns 0 if there is nothing to say."""
    made = subprocess.run(
        [sys.executable, "-m", f"tests.reliability.{module}", *map(str, arguments)],
        capture_output=True, text=True, timeout=3000, check=False,
        env=os.environ | environment,
    )  # fmt: skip
    assert made.returncode in (0, 1), made.stderr[-2000:]
    return made.stdout + (made.stderr if made.returncode and not made.stdout else "")


@pytest.mark.parametrize("kind", one_of("rows", "model", "bytes", "blob"))
def test_what_was_changed_is_refused_or_works(kind):
    assert ran("fuzzing", kind, CASES, 7) == ""


@pytest.mark.skipif(not RELIABILITY, reason="compiles all kernels anew, with bounds checks")
def test_no_door_leads_a_kernel_out_of_an_array(tmp_path):
    bounds = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "WINDAGE_PATIENCE": "0"}
    assert ran("doors", **bounds) == ""
