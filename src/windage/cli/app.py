"""The verbs and the options that come before them."""

from __future__ import annotations

from typing import Annotated

import typer

from windage.cli import (
    agent_check,
    agents,
    catalogue,
    compile_kernels,
    demo,
    explain,
    inspect,
    live,
    models,
    paper,
    plan,
    report,
    results,
    show,
    study,
    trial,
    watch,
)

__all__ = ["app"]

app = typer.Typer(
    name="windage",
    help="Learning in Markov decision processes that change while you act.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("try")(trial.trial)
app.command("run")(study.run)
app.command("verify")(results.verify)
app.command("diff")(results.diff)
app.command("report")(report.report)
app.command("watch")(watch.watch)
app.command("explain")(explain.explain)
app.command("envs")(catalogue.envs)
app.command("agents")(agents.agents)
app.command("show")(show.show)
app.command("check")(models.check)
app.command("plan")(plan.plan)
app.command("paper")(paper.paper)
app.command("check-agent")(agent_check.check_agent)
app.command("inspect")(inspect.inspect)
app.command("compile")(compile_kernels.compile_)

_live = typer.Typer(help="Look after agents that decide for real.", no_args_is_help=True)
_live.command("status")(live.status)
_live.command("explain")(live.explain)
_live.command("export")(live.export)
_live.command("verify")(live.verify)
_live.command("recover")(live.recover)
_live.command("expire")(live.expire)
_live.command("switch")(live.switch)
app.add_typer(_live, name="live")


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
