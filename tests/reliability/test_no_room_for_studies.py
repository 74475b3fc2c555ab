"""A full disk under a study: one clear line, nothing half there; on it goes when there is room.

Two ways to run out of room: a small file system of its own where one can be mounted, and a device
that is always full, which works everywhere.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import one_of
from tests.e2e.commands import windage
from tests.e2e.studying import contents, hash_in, stamps
from tests.reliability.test_no_room import can_mount

ROOT = Path(__file__).parents[2]
RUNS = 12

STUDY = """
horizon = 200
seeds = 6
[[environments]]
id = "riverswim"
[[agents]]
id = "random"
[[agents]]
id = "psrl"
"""


def check_study_full_and_room_again(out, fills, make_room):
    """Play the whole scene; each of `fills` leaves a study little room, `make_room` gives it all.

    Returns how many runs were there before there was room.
    """
    home = out.parents[1]
    (home / "study.toml").write_text(STUDY)
    whole = windage("run", "study.toml", "-o", "whole", cwd=home)
    assert whole.returncode == 0, whole.stderr
    wanted = contents(home / "whole")
    assert len(wanted) == 1 + RUNS
    command = ["run", "study.toml", "-o", str(out), "-w", "1"]
    for fill in fills:
        fill()
        before = stamps(out)
        full = windage(*command, cwd=home)
        assert full.returncode == 2, full.stdout + full.stderr
        said = re.fullmatch(
            r"windage: (.+): cannot be written \(No space left on device\)\. "
            r"Fix: make room on the disk and do the same again\.\n",
            full.stderr,
        )
        assert said, full.stderr
        assert out in Path(said[1]).parents, "it names a file in the folder"
        assert not list(out.rglob("*.tmp"))
        assert contents(out).items() <= wanted.items(), "a result is there and not whole"
        assert before.items() <= stamps(out).items(), "a result was lost or made again"
    before, kept = stamps(out), len(list((out / "runs").iterdir()))
    make_room()
    done = windage(*command, cwd=home)
    assert done.returncode == 0, done.stderr
    assert f"{RUNS} of {RUNS} runs in {out} ({RUNS - kept} made now, {kept} kept)" in done.stdout
    assert hash_in(done.stdout) == hash_in(whole.stdout)
    assert contents(out) == wanted
    assert before.items() <= stamps(out).items(), "what was there is kept"
    assert (out / "manifest.json").read_bytes() == (home / "whole/manifest.json").read_bytes()
    assert not list(out.rglob("*.tmp"))
    return kept


@pytest.mark.parametrize("way", one_of("a small file system", "a full device"))
def test_a_study_says_there_is_no_room_and_goes_on_when_there_is(tmp_path, way):
    """In a process of its own: the file system is one of its view."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [sys.executable, "-m", "tests.reliability.full_disk", str(disk)]
    if way == "a small file system" and can_mount(disk):
        command = ["unshare", "--user", "--map-root-user", "--mount", *command, "study"]
    else:
        command.append("device")
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert 0 < found["steps"] < RUNS
