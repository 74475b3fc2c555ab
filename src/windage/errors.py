"""What windage raises and warns: every message says what, where, the value and the fix.

All errors are `WindageError`, which is a `ValueError`, so that callers can catch one class; the
subclasses say whose mistake it was. The command line prints the message and exits with code 2.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "CallOrderError",
    "GuaranteeWarning",
    "HorizonReached",
    "InputError",
    "JournalError",
    "ModelError",
    "NotConverged",
    "ParameterWarning",
    "StateError",
    "WindageError",
    "listening",
    "warn",
]


class WindageError(ValueError):
    """Base class of every error windage raises on purpose.

    Parameters
    ----------
    problem
        What is wrong, with the offending value in it.
    field
        The argument, array or file entry that is wrong.
    where
        The place inside the field: a time, a state, an action, a row.
    fix
        What the caller can do about it.

    Examples
    --------
    >>> print(WindageError("sums to 0.98", field="transitions", where="t=3", fix="rescale it"))
    transitions at t=3: sums to 0.98. Fix: rescale it.
    """

    def __init__(self, problem: str, *, field: str = "", where: str = "", fix: str = "") -> None:
        self.problem = problem
        self.field = field
        self.where = where
        self.fix = fix
        place = " at ".join(part for part in (field, where) if part)
        message = f"{place}: {problem}" if place else problem
        stop = "" if message.endswith("?") else "."
        super().__init__(f"{message}{stop} Fix: {fix}." if fix else message)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the trip between processes with all fields."""
        return _rebuild, (type(self), self.problem, self.field, self.where, self.fix)


def _rebuild(
    kind: type[WindageError], problem: str, field: str, where: str, fix: str
) -> WindageError:
    return kind(problem, field=field, where=where, fix=fix)


class ModelError(WindageError):
    """A model is not one: rewards, transitions, knots, schedules or sizes are impossible."""


class InputError(WindageError):
    """An argument of a call is impossible: an unknown state, an action not in A_s, a bad number."""


class CallOrderError(WindageError):
    """`act` and `observe` were called in an order that has no meaning."""


class HorizonReached(WindageError):  # noqa: N818 - the public name says what happened
    """All T steps have been played; there is no decision left to make."""


class NotConverged(WindageError):  # noqa: N818 - the public name says what happened
    """An iteration stopped before its certificate held; the message carries the numbers."""


class StateError(WindageError):
    """A saved agent or a saved model is damaged, or belongs to something else."""


class JournalError(WindageError):
    """A journal cannot be written, is damaged, is somebody else's now, or holds something else."""


class GuaranteeWarning(UserWarning):
    """The theorem does not speak about this setting; the code runs all the same."""


class ParameterWarning(UserWarning):
    """A parameter is legal but almost surely not what was meant."""


_OURS = __name__.partition(".")[0] + "."
Heard = list[tuple[str, type[Warning]]]

heard_here: ContextVar[Heard | None] = ContextVar("heard", default=None)
"""Where warnings of agents are collected in this thread; None: they are given."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn where the library was called from, or tell whoever listens instead."""
    heard = heard_here.get()
    if heard is None:
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
            frame, level = frame.f_back, level + 1
        warnings.warn(message, category, stacklevel=level)
    else:
        heard.append((message, category))


@contextmanager
def listening() -> Iterator[Heard]:
    """Collect what agents warn of in this thread, to be told once or not at all."""
    heard: Heard = []
    token = heard_here.set(heard)
    try:
        yield heard
    finally:
        heard_here.reset(token)
