"""The scene of a full disk in a process of its own.

    python -m tests.reliability.full_disk FOLDER [mounted|opened|study|device]

With "mounted", FOLDER becomes a file system of 400 KiB, which a file fills up; with "opened" it is
full before a journal is opened there, with "study" a study runs there; with "device" it notes its
times on a device that is always full; otherwise the kernel is asked not to let any file grow.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import windage as wd
from tests.live_loops import loop, swucrl, twin_loop
from tests.reliability.test_no_room import check_full_and_room_again
from tests.reliability.test_no_room_for_studies import check_study_full_and_room_again
from windage.live.maintenance import verify


def mount(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)], check=True)


def leave(folder: Path, room: int) -> None:
    """Fill a file system up, but for so many bytes."""
    ballast = folder / "ballast"
    ballast.unlink(missing_ok=True)
    free = os.statvfs(folder)
    ballast.write_bytes(bytes(free.f_bavail * free.f_bsize - room))


def mounted(folder: Path) -> int:
    mount(folder)
    return check_full_and_room_again(
        folder / "a.journal",
        lambda live: leave(folder, 24 * 1024),
        lambda live: (folder / "ballast").unlink(),
    )


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


def opened(folder: Path) -> int:
    """Open a journal on a file system without room: a new one, one that was closed, one killed."""
    mount(folder)
    ballast, steps = folder / "ballast", 0
    for before in ("new", "closed", "killed"):
        path, twin = folder / f"{before}.journal", swucrl()
        if before != "new":
            live = wd.live.open(path, swucrl())
            loop(live, 5)
            files = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-wal", "-head")}
            live.close()
            if before == "killed":
                for end, data in files.items():
                    Path(f"{path}{end}").write_bytes(data)
            _, s = twin_loop(twin, 5)
        else:
            s = 0
        leave(folder, 0)
        with wd.live.open(path, swucrl(), fallback=[1, 2, 0]) as live:
            d = live.decide(s)
            assert (d.id, d.action) == (0, [1, 2, 0][s]), before
            assert re.search("disk is full|disk I/O error", d.fallback), d.fallback
            assert live.observe(d.id, 1.0, 0).how == "fallback"
            ballast.unlink()
            loop(live, 3, start=twin.t - 1, s=s)
            twin_loop(twin, 3, start=twin.t - 1, s=s)
            assert live.agent.state() == twin.state(), before
        assert verify(path).is_sound, before
        steps += twin.t - 1
        for file in folder.iterdir():
            file.unlink()
    return steps


def study(folder: Path) -> int:
    """Run a study that finds no room for anything, then for a few results, then for a few more."""
    mount(folder)
    rooms = [0, 40 * 1024, 40 * 1024]
    return check_study_full_and_room_again(
        folder / "out",
        [lambda room=room: leave(folder, room) for room in rooms],
        lambda: (folder / "ballast").unlink(),
    )


def device(folder: Path) -> int:
    """Run a study with room for results, but for no line about when they were made."""
    timings = folder / "out" / "timings.jsonl"
    timings.parent.mkdir()
    timings.symlink_to("/dev/full")
    return check_study_full_and_room_again(folder / "out", [lambda: None] * 3, timings.unlink)


if __name__ == "__main__":
    ways = {"mounted": mounted, "opened": opened, "study": study, "device": device}
    way = ways.get(sys.argv[-1], limited)
    print(json.dumps({"way": way.__name__, "steps": way(Path(sys.argv[1]))}))
