"""What an agent was made with stays as it is: attributes that are set once, in the constructor.

Sets, tables and windows were built from them, and a saved state says by them how to make the agent
again. One that was set by hand afterwards would change what the agent says of itself, and nothing
of what it does.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn, TypeVar

import numpy as np

__all__ = ["fixed"]

Kind = TypeVar("Kind", bound=type)


def fixed(*names: str) -> Callable[[Kind], Kind]:
    """Let these attributes of a class be set once; arrays among them become read-only.

    >>> @fixed("window")
    ... class Learner:
    ...     def __init__(self, window):
    ...         self.window = window
    >>> Learner(5).window
    5
    >>> Learner(5).window = 6
    Traceback (most recent call last):
    AttributeError: window is fixed when a Learner is made; make another one
    """

    def decorated(kind: Kind) -> Kind:
        for name in names:
            setattr(kind, name, _set_once(name))
        return kind

    return decorated


def _set_once(name: str) -> property:
    slot = f"_fixed_{name}"

    def put(self: Any, value: object) -> None:
        if slot in self.__dict__:
            refuse(self)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value = value.copy()  # whoever passed it may go on writing into it
            value.flags.writeable = False
        self.__dict__[slot] = value

    def refuse(self: Any) -> NoReturn:
        raise AttributeError(
            f"{name} is fixed when a {type(self).__name__} is made; make another one"
        )

    return property(attrgetter(slot), put, refuse)  # read in C: some are read in every step
