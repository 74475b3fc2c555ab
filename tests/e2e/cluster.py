"""A Dask cluster of two worker processes, a study on it, and one worker killed in the middle.

    python tests/e2e/cluster.py STUDY.toml DIR

prints the exit code of `windage run`, how many results were there when the worker was killed, and
what the command said.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from distributed import Client, LocalCluster

WINDAGE = str(Path(sys.executable).with_name("windage"))


def main(study: str, folder: str) -> None:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="localhost:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 2
        assert os.getpid() not in pids
        command = [WINDAGE, "run", study, "-o", folder, "--executor", "dask"]
        command += ["--scheduler", cluster.scheduler_address]
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        there = 0
        while running.poll() is None and there < 3:
            there = len(list(Path(folder, "runs").glob("*.parquet")))
            time.sleep(0.01)
        os.kill(pids[0], signal.SIGKILL)
        alive = running.poll() is None
        out, err = running.communicate(timeout=100)
    print(json.dumps({
        "code": running.returncode, "there": there, "alive": alive, "out": out, "err": err,
        "pids": pids,
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
