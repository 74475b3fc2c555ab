"""The command line: parse, call the library, print.

Commands import the library inside their functions, so that `windage --help` answers at once; this
file imports next to nothing, so that Ctrl-C is quiet from the start.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from windage.errors import WindageError

__all__ = ["main"]

_BROKEN_PIPE = 1
_INTERRUPTED = 128 + 2  # what a shell reports for a program that SIGINT ended
_REFUSED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 2 for what the library or the parser refuses."""
    try:
        return _whole(arguments)
    except KeyboardInterrupt:  # wherever it came: in the work, or while the end of it was told
        return _INTERRUPTED
    except ImportError as err:
        if _was_interrupted(err):
            return _INTERRUPTED
        raise


def _was_interrupted(err: BaseException | None) -> bool:
    """Return whether Ctrl-C is behind an error: compiled modules report it as a failed import."""
    while err is not None and not isinstance(err, KeyboardInterrupt):
        err = err.__cause__ or err.__context__
    return err is not None


def _whole(arguments: Sequence[str] | None) -> int:
    """Run one command and get its output out."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has left; point it elsewhere, or Python complains at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from windage.cli.app import app

    try:
        app(arguments, prog_name="windage", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except WindageError as err:
        print(f"windage: {err}", file=sys.stderr)
        return _REFUSED
    return 0


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    del category, filename, lineno, file, line  # where in the library helps nobody here
    print(f"windage: warning: {message}", file=sys.stderr)
