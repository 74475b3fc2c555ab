"""The command line: parse, call the library, print.

Commands import the library inside their functions, so that `windage --help` answers at once; this
file imports next to nothing, so that Ctrl-C is quiet from the start.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from io import StringIO, TextIOWrapper
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
        _prepare_output()
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = _run(arguments)
        sys.stdout.flush()
    except OSError as err:
        if isinstance(err, BrokenPipeError):
            _discard_output()
            return _BROKEN_PIPE
        from windage.cli.terminal import complain

        with contextlib.suppress(OSError):  # there may be no place left to say it
            complain(f"{err.filename or 'the output'}: {err.strerror or err}")
        _discard_output()
        return _REFUSED
    return code


def _prepare_output() -> None:
    """Escape letters that a terminal cannot show; a stream that is closed keeps what it gets."""
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, StringIO())
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Point output that cannot be written elsewhere, or Python complains at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    from windage.cli.app import app

    try:
        app(arguments, prog_name="windage", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except WindageError as err:
        from windage.cli.terminal import complain

        complain(str(err))
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
    from windage.cli.terminal import complain

    del category, filename, lineno, file, line  # where in the library is of no help here
    complain(f"warning: {message}")
