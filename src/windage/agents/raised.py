"""What somebody's own class raised, in words: on one line, with the line of theirs it came from."""

from __future__ import annotations

import traceback
from pathlib import Path

__all__ = ["in_words"]

_HOME = Path(__file__).parents[1]


def in_words(err: BaseException) -> str:
    """Return what was raised, and the last line of code on the way there that is not ours.

    >>> in_words(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    kind, said, line = type(err).__name__, _message(err), _last_line(err)
    return kind + (f": {said}" if said else "") + (f" ({line})" if line else "")


def _message(err: BaseException) -> str:
    try:
        return " ".join(str(err).split())
    except Exception:
        return "it does not say why"


def _last_line(err: BaseException) -> str:
    lines = [
        f"{Path(frame.filename).name}:{frame.lineno}, in {frame.name}"
        for frame in traceback.extract_tb(err.__traceback__)
        if _HOME not in Path(frame.filename).parents
    ]
    return lines[-1] if lines else ""
