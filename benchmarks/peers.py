"""Other people's packages, each in a virtual environment of its own under out/peers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1] / "out" / "peers"


def ask(package: str, code: str, *arguments: str, stdin: str | None = None) -> Any:
    """Run code with a peer installed; it prints one line of JSON last."""
    python = HOME / package / "bin" / "python"
    if not python.exists():
        print(f"  (installing {package} into {python.parents[1]})", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(HOME / package)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", package], check=True)
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        input=stdin,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])
