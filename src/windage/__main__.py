"""`python -m windage` is `windage`."""

from __future__ import annotations

import sys

from windage.cli import main

if __name__ == "__main__":
    sys.exit(main())
