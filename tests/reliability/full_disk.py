"""The scene of a full disk in a process of its own.

    python -m tests.reliability.full_disk FOLDER [mounted]

With "mounted", FOLDER becomes a file system of 400 KiB, which a file fills up; otherwise the kernel
is asked not to let any file grow.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

from tests.reliability.test_no_room import check_full_and_room_again


def mounted(folder: Path) -> int:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)], check=True)
    ballast = folder / "ballast"

    def fill(live):
        """Leave 24 KiB."""
        room = os.statvfs(folder)
        ballast.write_bytes(bytes(room.f_bavail * room.f_bsize - 24 * 1024))

    return check_full_and_room_again(folder / "a.journal", fill, lambda live: ballast.unlink())


def limited(folder: Path) -> int:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = folder / "a.journal"
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def fill(live):
        log = path.with_name("a.journal-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (log + 20_000, most))

    return check_full_and_room_again(
        path, fill, lambda live: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    )


if __name__ == "__main__":
    way = mounted if "mounted" in sys.argv else limited
    print(json.dumps({"way": way.__name__, "steps": way(Path(sys.argv[1]))}))
