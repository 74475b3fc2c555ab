"""Where chromium is: `$CHROME`, or found on the machine; `make test` installs one if there is none.

`python -m tests.e2e.chrome` prints its path, or says what is missing and exits with 1.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
MISSING = (
    "the browser tests need chromium, and there is none: install it (apt-get install chromium), "
    "or set CHROME to its path"
)


def find_chrome() -> str | None:
    """Return the path of a browser; None if there is none."""
    named = os.environ.get("CHROME")
    if named:
        return shutil.which(named)
    found = (shutil.which(name) for name in NAMES)
    places = (place for place in PLACES if Path(place).is_file())
    return next(filter(None, [*found, *places]), None)


if __name__ == "__main__":
    path = find_chrome()
    print(path or MISSING, file=sys.stdout if path else sys.stderr)
    sys.exit(path is None)
