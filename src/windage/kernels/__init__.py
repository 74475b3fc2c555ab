"""The compiled loops: the only files that import numba. Arrays in, arrays out.

Numba's on-disk cache notices a change of the file a function stands in, not of a function it
calls in another file. Kernels call each other across files, so a change of any of them drops the
cached code of all of them (docs/adr/0003).
"""

from __future__ import annotations

import hashlib
from pathlib import Path


def _drop_stale_cache() -> None:
    here = Path(__file__).parent
    sources = sorted(here.glob("*.py"))
    facts = [(source.name, source.stat().st_size, source.stat().st_mtime_ns) for source in sources]
    stamp = hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()
    cache = here / "__pycache__"
    note = cache / "windage-kernels.stamp"
    try:
        if note.exists() and note.read_text() == stamp:
            return
        for old in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            old.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        note.write_text(stamp)
    except OSError:
        pass  # an installation that cannot be written to does not change either


_drop_stale_cache()
