"""Agents and worlds as users write them, for `module:Class`."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import numpy as np

import windage as wd
from windage.errors import warn

GRID = np.array([1.0, 2.0])


class Plain:
    """An agent that is no `windage.agents.Agent`: it plays one action, and may fall over."""

    def __init__(self, space, action=0, fails_at=None, flag=None, seed=0):
        self.space, self.action, self.seed = space, action, seed
        self.fails_at, self.flag = fails_at, flag
        self.t = 1
        self.last_state = None

    def act(self, s):
        if self.fails_at == self.t and not (self.flag and Path(self.flag).exists()):
            raise RuntimeError(f"fell over at t = {self.t}, seed {self.seed}")
        return min(self.action, int(self.space.counts[s]) - 1)

    def observe(self, s, a, reward, s_next):
        self.t += 1
        self.last_state = s_next


class Knowing(Plain):
    """Asks for a structure."""

    def __init__(self, space, structure=None):
        super().__init__(space)
        assert isinstance(structure, wd.Structure)
        assert structure.space == space


class Slow(Plain):
    """Takes its time."""

    def __init__(self, space, pause=0.01):
        super().__init__(space)
        self.pause = pause

    def act(self, s):
        time.sleep(self.pause)
        return super().act(s)


class Loud(Plain):
    """Warns in the middle of a run, of two things, as learners of the library do."""

    def act(self, s):
        if self.t == 7:
            warn(f"odd parameter at t = 7, seed {self.seed}", wd.ParameterWarning)
            warn(f"no guarantee at t = 7, seed {self.seed}", wd.GuaranteeWarning)
        return super().act(s)


class Deadly(Plain):
    """Takes its process down, until the flag is there."""

    def act(self, s):
        if self.t == 5 and not (self.flag and Path(self.flag).exists()):
            if self.flag:
                Path(self.flag).touch()
            os._exit(9)
        return super().act(s)


class KilledInALock(Plain):
    """Dies as soon as it holds a lock that processes share, until the flag is there."""

    def act(self, s):
        if not Path(self.flag).exists():
            Path(self.flag).touch()
            sys.setprofile(self._look)
        return super().act(s)

    def _look(self, frame, event, arg):
        ours = frame.f_code.co_filename.endswith("multiprocessing/synchronize.py")
        if ours and event == "return" and frame.f_code.co_name == "__enter__":
            os._exit(9)


class Leaving(Plain):
    """Ends Python in the middle of a run, or as it is made."""

    def __init__(self, space, at_once=False):
        super().__init__(space)
        if at_once:
            raise SystemExit(3)

    def act(self, s):
        if self.t == 5:
            raise SystemExit("enough")
        return super().act(s)


class UntoldError(Exception):
    """Cannot be made again where it is unpickled, and cannot say what it is."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")

    def __str__(self):
        raise self


class Quit(BaseException):
    """No `Exception`: most programs let it pass."""


class Raising(Plain):
    """Raises what does not travel well."""

    def __init__(self, space, what="two"):
        super().__init__(space)
        self.what = what

    def act(self, s):
        if self.what == "untold":
            raise UntoldError("this", "that")
        if self.what == "quit":
            raise Quit("enough")
        if self.what == "local":

            class LocalError(Exception):
                pass

            raise LocalError("of this function")
        raise BrokenExecutor("of my own")


class FromZero(Plain):
    """Has an attribute `t` of another meaning than the library's."""

    def __init__(self, space, t=0):
        super().__init__(space)
        self.t = t

    def observe(self, s, a, reward, s_next):
        pass


class Odd_defaults(Plain):  # noqa: N801
    """Has defaults that are no plain data, and insists on getting them as they are."""

    def __init__(self, space, rule=max, limit=float("inf"), arms=((1, 0.5),), grid=GRID):
        super().__init__(space)
        assert (rule, limit, arms) == (max, float("inf"), ((1, 0.5),))
        assert grid is GRID


class Interrupting(Plain):
    """Raises what Ctrl-C raises, or leaves the current folder."""

    def __init__(self, space, leaves_for=None):
        super().__init__(space)
        self.leaves_for = leaves_for

    def act(self, s):
        if self.leaves_for is None:
            raise KeyboardInterrupt
        os.chdir(self.leaves_for)
        return super().act(s)


class Modest(wd.agents.RandomAgent):
    """A subclass of a library agent."""

    id = "modest"


class Counter:
    """A world that is no model: every step pays, and nobody knows what is best."""

    def __init__(self, horizon=50, pay=1.0):
        self.space = wd.StateActions([2, 2])
        self.horizon, self.pay = horizon, pay

    def reset(self, seed):
        self.state = self.seed = seed % 2
        return self.state

    def step(self, action):
        self.state = (self.state + action) % 2
        return self.pay * action, self.state


class Odd(Counter):
    """A world that may have any horizon and any space."""

    def __init__(self, horizon=50, pairs=None):
        super().__init__()
        self.horizon, self.space = horizon, pairs or self.space


def shore(horizon=40, low=0.0):
    """A model made by a function."""
    space = wd.StateActions.uniform(states=1, actions=2)
    one, other = (wd.MDP(space, [x, 1 - x], [[1.0], [1.0]]) for x in (low, 1.0))
    return wd.DriftingMDP.blend([one, other], wd.schedules.Linear(), horizon=horizon)


class Nothing:
    """Neither an agent nor a world."""

    def __init__(self, space=None):
        self.space = space
