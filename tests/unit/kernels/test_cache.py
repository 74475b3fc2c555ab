"""The cache of compiled kernels never outlives the sources it was made from (ADR 3)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import windage

PROGRAM = """
from windage.kernels.play import uniform_action
from windage.streams import key
print(sum(uniform_action(key(1, "a"), t, 1000) for t in range(50)))
print(sum(uniform_action.stats.cache_hits.values()))
"""


def _run(sources: Path, cache: Path) -> tuple[str, int]:
    env = os.environ | {"PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(cache)}
    env.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    answer, hits = done.stdout.split()
    return answer, int(hits)


def test_a_change_of_a_callee_in_another_file_is_noticed(tmp_path: Path) -> None:
    sources = tmp_path / "src"
    shutil.copytree(Path(windage.__file__).parent, sources / "windage")
    cache = tmp_path / "cache"
    first, _ = _run(sources, cache)
    again, hits = _run(sources, cache)
    assert (again, hits) == (first, 1)  # the cache works at all

    callee = sources / "windage" / "kernels" / "random.py"
    text = callee.read_text()
    assert "0xBF58476D1CE4E5B9" in text
    stamp = callee.stat()
    callee.write_text(text.replace("0xBF58476D1CE4E5B9", "0xBF58476D1CE4E5B7"))
    os.utime(callee, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # same size, same time
    changed, _ = _run(sources, cache)
    assert changed != first
