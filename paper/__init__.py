"""The paper, checked: every claim that can be computed, one result a file.

`names()` lists the results, `compute(name)` computes one: tables, a picture, and what was expected
and seen. `windage paper` is the command. The folder belongs to a checkout and is not installed.
"""

from __future__ import annotations

import importlib
from typing import Any

from paper.result import Effort, Result, Table
from windage.errors import InputError
from windage.validation import as_choice

__all__ = ["SUMMARIES", "Effort", "Result", "Table", "compute", "module", "names", "require"]

_MODULES = {
    "perils": "proposition3",
    "evi": "evi_properties",
    "regret": "theorem1_terms",
    "benchmark": "proposition1",
    "rates": "theorem1_rates",
}
"""The file of a result that is not called like it."""

SUMMARIES = {
    "perils": "Proposition 3: drift makes a window see a diameter that is not there",
    "coverage": "Lemma 1: the sets hold what was averaged (C1)",
    "episodes": "the number of episodes (C2, C12)",
    "span": "the span of the optimistic bias (C6)",
    "evi": "Properties 1 and 2 on every call of EVI (C7)",
    "regret": "Theorem 1's proof, term by term (C3-C5, C8-C11)",
    "benchmark": "Proposition 1: the best of T steps against the sum of rho*",
    "borl": "Theorem 2: the best fixed arm and the master",
    "bandit": "the remark on one state: a bandit that drifts",
    "piecewise": "jumps against drift: guarantees in l and in budgets",
    "inventory": "structure that makes widening unnecessary",
    "rates": "regret against T, B and S beside Theorem 1's exponents",
    "tuning": "a map of regret over W and eta, with (W*, eta*)",
    "figures": "the paper's four figures, from computed data",
}
"""What each result is about, in the order of `all`."""


def names() -> list[str]:
    """Return the names of all results.

    >>> "perils" in names()
    True
    """
    return list(SUMMARIES)


def compute(name: str, effort: Effort | None = None) -> Result:
    """Compute a result, in full unless less is asked for.

    >>> compute("episodes", Effort(horizon=200, seeds=1)).holds
    True
    """
    asked = effort or Effort()
    require([name], asked)
    made: Result = module(name).compute(asked)
    return made


def require(wanted: list[str], effort: Effort) -> None:
    """Refuse a T that is too small for one of the results, before any of them is computed."""
    for name in wanted:
        least = module(name).LEAST
        if effort.horizon is not None and effort.horizon < least.steps:
            raise InputError(
                f"T = {effort.horizon} is too small: {least.why}",
                field=f"{name}.horizon",
                fix=f"the least that means something is {least.steps}",
            )


def module(name: str) -> Any:
    """Return the module that computes a result."""
    as_choice(name, "result", names())
    return importlib.import_module(f"paper.{_MODULES.get(name, name)}")
