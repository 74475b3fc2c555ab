"""The page of all benchmark figures: `python -m benchmarks.page` writes docs/benchmarks.md again.

`python -m benchmarks` does so too after it has measured; a test compares the page with the results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"

TITLES = {
    "stepping": "A step of a world",
    "startup": "Starting up",
    "cold": "The first run, from an empty cache",
    "oracle": "The certified oracle",
    "learning": "Learners",
    "studies": "Studies",
    "reports": "Reports",
    "adapters": "Gymnasium",
    "inspection": "Past logs",
    "online": "Live agents",
    "scales": "Multi-scale windows",
}
HEAD = """\
# Benchmarks

What is fast, and how that was measured. Ratios are measured in one run, both sides on the same
machine; the few absolute figures are there for orders of magnitude. Correctness is no benchmark: it
belongs to the tests.

```text
make bench                        # all groups; writes benchmarks/results.json and this page
python -m benchmarks oracle       # one group, the others stay as they are
```

Other figures have commands of their own:

- `python -m benchmarks.family`: [the family compared](studies/family.md)
- `python -m benchmarks.stationary`: [without drift, beside another
  package](studies/family.md#without-drift-beside-another-package)
- `python -m benchmarks.parameter_free`: [what not knowing the budgets
  costs](studies/parameter-free.md)
- `python -m benchmarks.protocol`: [multi-scale windows, measured](studies/multi-scale.md)
- `python -m benchmarks.structure`: [what structure is worth](studies/structure.md)
- `windage paper all -o docs/paper/results`: [the paper, checked](paper/results/index.md)
"""


def text(results: dict[str, Any]) -> str:
    """Return the page for these results."""
    parts = [HEAD]
    for name, group in results.items():
        about = group["measured"]
        parts.append(
            f"## {TITLES.get(name, name)}\n\n`python -m benchmarks {name}`, {about['day']}: Python "
            f"{about['python']}, NumPy {about['numpy']}, Numba {about['numba']}; others "
            f"kept {about['busy']:.2f} cores busy.\n"
        )
        rows = [f"| {what.replace('|', chr(92) + '|')} | {value:,.4g} |" for what, value in
                group["figures"].items()]  # fmt: skip
        parts.append("\n".join(["| what | figure |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def write() -> None:
    """Write the page from the results that are kept."""
    PAGE.write_text(text(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    write()
