"""How far a study is, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from windage.errors import WindageError

__all__ = ["Failure", "Status", "Summary", "reason"]


@dataclass(frozen=True)
class Failure:
    """A run that could not be made, and why; it is tried again the next time."""

    what: str
    why: str


def reason(err: Exception) -> str:
    """Return why a run failed: our errors speak for themselves, others need their names.

    >>> reason(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    return str(err) if isinstance(err, WindageError) else f"{type(err).__name__}: {err}"


@dataclass
class Status:
    """How far a study is; given to `progress` now and then.

    Attributes
    ----------
    stage
        What is done: "planning", "reading", "compiling", "oracles" or "runs".
    total, kept, made, failed
        Runs that are asked for, that were there already, that were made now, that failed.
    steps, steps_to_do
        Steps of the runs made now, and of all that are to be made now; those that failed are not.
    running
        What the workers are at.
    """

    stage: str = "planning"
    total: int = 0
    kept: int = 0
    made: int = 0
    failed: int = 0
    steps: int = 0
    steps_to_do: int = 0
    running: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Summary:
    """What became of a study.

    Attributes
    ----------
    folder
        Where the results are.
    runs, kept, made
        Runs that are asked for, that were there already, that were made now.
    repaired
        Files that were damaged and have been computed anew.
    failures
        Runs that could not be made.
    spare
        Files of runs that the study does not ask for any more.
    hash
        Of all results, the same wherever and in how many pieces they were made; empty if some are
        missing.
    """

    folder: Path
    runs: int
    kept: int
    made: int
    repaired: tuple[str, ...]
    failures: tuple[Failure, ...]
    spare: int
    hash: str
