"""The command line: parse, call the library, print.

Commands import the library inside their functions, so that `windage --help` answers at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, TextIO

import typer

from windage.cli import demo, models
from windage.errors import WindageError

__all__ = ["app", "main"]

_BROKEN_PIPE = 1
_INTERRUPTED = 128 + 2  # what a shell reports for a program that SIGINT ended
_REFUSED = 2

app = typer.Typer(
    name="windage",
    help="Learning in Markov decision processes that change while you act.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("envs")(models.envs)
app.command("show")(models.show)
app.command("check")(models.check)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 2 for what the library or the parser refuses."""
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
    try:
        app(arguments, prog_name="windage", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except WindageError as err:
        print(f"windage: {err}", file=sys.stderr)
        return _REFUSED
    except KeyboardInterrupt:
        return _INTERRUPTED
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


def _version(wanted: bool) -> None:
    if wanted:
        from windage import __version__

        print(f"windage {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    del version
