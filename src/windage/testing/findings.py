"""What the suite for agents finds, promise by promise, instead of the first thing that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from windage.agents.base import Agent
from windage.agents.plugins import in_words
from windage.testing.agents import TWINS, Maker, agent_checks
from windage.testing.playing import NotOffered

__all__ = ["Finding", "findings"]

_NEEDED = 2  # the first two checks: without legal actions there is nothing to compare with
_ALONE = "its memory stops growing"  # the rest says nothing of one that acts as it happens to


class Finding(NamedTuple):
    """One promise; whether it is kept, None if that was not checked or not offered; why not."""

    promise: str
    kept: bool | None
    found: str


def findings(
    make: Maker | type[Agent] | str,
    *,
    horizon: int = 2000,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    before: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Return what each check of `check_agent` finds; an agent that raises is a finding too.

    Parameters
    ----------
    make, horizon, seed, options
        As in `check_agent`.
    before
        Called with the promise that is about to be checked.

    Examples
    --------
    >>> all(one.kept for one in findings("random", horizon=300))
    True
    """
    found: list[Finding] = []
    for check in agent_checks(make, horizon=horizon, seed=seed, options=options):
        if any(one.kept is False for one in found[:_NEEDED]):
            found.append(Finding(check.promise, None, "not checked: it does not play yet"))
            continue
        if check.promise != _ALONE and any(
            one.promise == TWINS and one.kept is False for one in found
        ):
            why = "not checked: made alike, it does not act alike"
            found.append(Finding(check.promise, None, why))
            continue
        if before is not None:
            before(check.promise)
        try:
            check()
        except NotOffered as err:
            found.append(Finding(check.promise, None, f"not offered: {err}"))
        except AssertionError as err:
            found.append(Finding(check.promise, False, str(err) or f"raised {in_words(err)}"))
        except Exception as err:
            found.append(Finding(check.promise, False, f"raised {in_words(err)}"))
        else:
            found.append(Finding(check.promise, True, ""))
    return found
