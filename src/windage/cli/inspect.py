"""`windage inspect`: test a log of past steps for drift."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windage.cli.terminal import (
    Progress,
    parse_settings,
    print_json,
    print_text,
    require_writable,
    say,
)
from windage.errors import InputError


def inspect(
    log: Annotated[Path, typer.Argument(help="A .csv or .parquet file, one line a step.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The page; default: LOG.html in out.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="ROLE=NAME",
            help="Which column is t, entity, state, action, reward or next_state; repeatable.",
        ),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(metavar="CHAR", help="The separator of cells of a CSV file.")
    ] = None,
    decimal: Annotated[
        str | None, typer.Option(metavar="MARK", help="The decimal mark of rewards, . or ,")
    ] = None,
    rewards: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="LOW,HIGH", help="The least and the largest possible reward."
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Also save the fitted model, as .npz.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the logs that are drawn for comparison.")] = 0,
    draws: Annotated[int, typer.Option(help="How many of them.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:  # fmt: skip
    """Say where a log of past steps drifted and by how much, and draw it."""
    from windage.logs import read_log
    from windage.logs.page import require_html
    from windage.logs.reader import require_file

    require_file(log)
    target = output or Path("out") / f"{log.stem}.html"
    require_html(target)
    for place in [target, *([model] if model else [])]:
        require_writable(place)
    named = {role: str(name) for role, name in parse_settings(columns or [], "--column").items()}
    span = None if rewards is None else _range(rewards)
    with Progress() as progress:
        progress("reading")

        def read(done: int, total: int) -> None:
            progress(f"reading {100 * done // max(total, 1)} %")

        steps = read_log(
            log, columns=named, separator=separator, decimal=decimal, reward_range=span,
            progress=read,
        )  # fmt: skip
        found = steps.inspect(seed=seed, draws=draws, progress=progress)
        progress("drawing")
        found.save(target)
        if model is not None:
            found.model.save(model)
    if as_json:
        print_json(found.data() | {"page": str(target)})
        return
    for text in found.words():
        print_text(text)
    say(f"page: {target}")
    if model is not None:
        say(f"model: {model}")


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{text!r} is no range", field="--range", fix="write --range LOW,HIGH"
        ) from None
    return low, high
