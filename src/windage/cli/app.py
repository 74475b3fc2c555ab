"""Verbs and the options before them.

A verb is a function in a module of its own and one line here; its module is imported when the verb
is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

__all__ = ["app"]

_LIVE = {
    "status": "live:status",
    "explain": "live:explain",
    "export": "live:export",
    "verify": "live:verify",
    "recover": "live:recover",
    "expire": "live:expire",
    "switch": "live:switch",
}

_VERBS: dict[str, Any] = {
    "demo": "study:demo",
    "try": "show:try_",
    "run": "study:run",
    "verify": "study:verify",
    "diff": "study:diff",
    "report": "report:report",
    "watch": "report:watch",
    "explain": "explain:explain",
    "envs": "models:envs",
    "agents": "agents:agents",
    "show": "show:show",
    "check": "models:check",
    "plan": "plan:plan",
    "paper": "paper:paper",
    "check-agent": "agents:check_agent",
    "inspect": "inspect:inspect",
    "compile": "agents:compile_",
    "live": _LIVE,
}

_HELP_OF_LIVE = "Look after agents that decide for real."


def _group(verbs: Mapping[str, Any]) -> type[TyperGroup]:
    """Return a group of commands, each of which is imported when it is asked for."""

    class Verbs(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options | {"commands": dict(verbs)})

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            target: Any = self.commands.get(cmd_name)
            if isinstance(target, (str, dict)):
                target = self.commands[cmd_name] = _command(cmd_name, target)
            return target

    return Verbs


def _command(name: str, target: str | dict[str, str]) -> Any:
    """Return the command that a line of the table names, or the group it holds."""
    if isinstance(target, dict):
        group = typer.Typer(
            name=name, cls=_group(target), help=_HELP_OF_LIVE, no_args_is_help=True,
            add_completion=False,
        )  # fmt: skip
        group.callback()(lambda: None)
        return get_command(group)
    module, _, function = target.partition(":")
    single = typer.Typer(add_completion=False)
    single.command(name)(getattr(importlib.import_module(f"windage.cli.{module}"), function))
    return get_command(single)


app = typer.Typer(
    name="windage",
    cls=_group(_VERBS),
    help="Learning in Markov decision processes that change while you act.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from windage import __version__
        from windage.cli.terminal import say

        say(f"windage {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
