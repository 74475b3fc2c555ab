"""Every call that touches the disk made to fail, or to end the process, one after another.

    LD_PRELOAD=faults.so python -m tests.reliability.faults FOLDER EVERY

A journal is worked on in a child whose n-th write, sync, truncation or rename fails once, is not
made, or is made half, and the child with it; or from it on all fail. Then the journal must hold all
that was acknowledged, and go on as a twin does. EVERY takes each so many-th call. The count of
cases is printed as JSON.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import windage as wd
from tests.live_loops import swucrl, twin_loop
from tests.reliability.killing import step
from windage.live.journal import Journal

HOWS = ("fail", "stop", "half", "dead")  # as in faults.c
STEPS = 8


def disturbed(work: Callable[[int], None], folder: Path, n: int, how: int) -> bytes:
    """Do some work in a child whose n-th call goes wrong; return what it has told."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        shim = ctypes.CDLL(None)
        shim.faults_set(str(folder).encode(), ctypes.c_long(n), how)
        try:
            work(mouth)
        except wd.WindageError:
            os.write(mouth, b"error\n")
        except BaseException as err:
            os.write(mouth, b"other %r\n" % err)
        os.write(mouth, b"calls %d\n" % shim.faults_calls())
        os._exit(0)
    os.close(mouth)
    told = b""
    while part := os.read(ear, 1 << 16):
        told += part
    os.close(ear)
    os.waitpid(child, 0)
    assert b"other" not in told, told
    return told


def calls_in(told: bytes) -> int:
    return int(told.rsplit(b"calls ", 1)[1])


def live_on(path: Path, tell: int) -> None:
    """Some steps, alone and in a batch; an error is met by asking once more."""
    with wd.live.open(path, swucrl()) as live:
        for _ in range(3):
            try:
                step(live, tell)
            except wd.JournalError:
                os.write(tell, b"error\n")
                step(live, tell)
        with live.batch():
            told = [step(live, None) for _ in range(2)]
        os.write(tell, b"".join(told))


def journals(folder: Path, every: int) -> int:
    """Try every call of a new journal and of an old one; return how many cases there were."""
    (folder / "new").mkdir()
    (folder / "old").mkdir()
    with wd.live.open(folder / "old/a.journal", swucrl()) as live:
        for _ in range(STEPS):
            step(live, None)
    wanted, _ = twin_loop(swucrl(), STEPS + 30)
    cases = 0
    for base, how in itertools.product(("new", "old"), range(len(HOWS))):
        n, most = 0, 1
        while n < most:
            place = folder / "case"
            shutil.copytree(folder / base, place)
            path = place / "a.journal"
            told = disturbed(lambda mouth: live_on(path, mouth), place, n, how)  # noqa: B023
            most = calls_in(told) + 1 if n == 0 else most
            acknowledged = [line.split() for line in told.splitlines() if b" " in line]
            with wd.live.open(path, swucrl()) as live:
                for _ in range(4):
                    step(live, None)
                events = live.journal.n
            case = base, how, n
            assert wd.live.verify(path).problems == [], case
            with Journal(path) as journal:
                kinds = {(e.kind.encode(), b"%d" % e.step) for e in journal.events("n > 0")}
            lost = [one for one in acknowledged if one[0] != b"calls" and tuple(one) not in kinds]
            assert not lost, (case, lost)
            rows = wd.live.to_frame(path).select("state", "played", "reward", "next_state").rows()
            assert rows == wanted[: len(rows)], case
            assert events == 1 + 2 * len(rows)
            shutil.rmtree(place)
            cases += n > 0
            n += every if n else 1
    return cases


if __name__ == "__main__":
    print(json.dumps({"cases": journals(Path(sys.argv[1]), int(sys.argv[2]))}))
