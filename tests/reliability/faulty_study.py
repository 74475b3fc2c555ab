"""A study of two runs on a disk of which one call goes wrong, in a process of its own.

    LD_PRELOAD=faults.so python -m tests.reliability.faulty_study STUDY.toml FOLDER N HOW

The N-th call that touches the folder of FOLDER goes wrong, none if N is 0; HOW as in faults.c. The
number of calls is printed. A typed error is printed instead, and the exit code is 2.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from windage.errors import WindageError
from windage.study.study import Study


def main(study: str, folder: str, n: str, how: str) -> int:
    shim = ctypes.CDLL(None)
    shim.faults_set(str(Path(folder).parent).encode(), ctypes.c_long(int(n)), int(how))
    try:
        Study.load(study).run(folder, workers=1)
    except WindageError as err:
        print(type(err).__name__, err)
        return 2
    print(shim.faults_calls())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
