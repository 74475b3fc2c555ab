"""A journal of which any one write, sync, truncation or rename fails, is not made, or made half."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RELIABILITY

HERE = Path(__file__).parent


@pytest.mark.skipif(shutil.which("cc") is None, reason="the shim is compiled")
def test_a_journal_survives_each_fault_of_the_disk(tmp_path):
    """A tenth of the calls here, all of them in `make reliability`."""
    shim = tmp_path / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, HERE / "faults.c", "-ldl"], check=True)
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.faults", tmp_path / "work",
         "1" if RELIABILITY else "10"],
        env=os.environ | {"LD_PRELOAD": str(shim), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=HERE.parents[1], check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)["cases"]
    print(f"\n{cases} faults of the disk survived")
    assert cases >= (150 if RELIABILITY else 15)
