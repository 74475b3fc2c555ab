"""A command of windage run in this process, as if in one of its own: it leaves nothing behind.

A new process costs a second or more, for imports and kernels that are loaded already. Which
commands need one all the same, tests say by taking `subprocess`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from windage.cli import main
from windage.envs.registry import REGISTERED

SHIPPED = dict(REGISTERED)  # what a new process knows; a test may have registered more
SILENT = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def windage_here(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run `windage ARGUMENTS` in a folder; return its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with (
        as_a_new_process(folder, environment or {}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(list(arguments))
    return CompletedProcess(["windage", *arguments], code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def as_a_new_process(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Begin with what a process begins with, and put back afterwards what one would not touch."""
    handler, modules = signal.getsignal(signal.SIGINT), set(sys.modules)
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "path", list(sys.path)),
        mock.patch.dict(REGISTERED, SHIPPED, clear=True),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()  # pytest makes errors of them
        for kind in SILENT:
            warnings.simplefilter("ignore", kind)
        importlib.invalidate_caches()  # files of the folder may be younger than what Python knows
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)
            for name in sys.modules.keys() - modules:
                if is_inside(getattr(sys.modules[name], "__file__", None), folder):
                    del sys.modules[name]  # another folder may have one of that name


def is_inside(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).is_relative_to(folder)
