"""`windage watch`: the page of a study, live while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windage.cli.progress import Progress

__all__ = ["watch"]


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `windage run -o` writes or wrote.")
    ],
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes a free one.")
    ] = 0,
) -> None:
    """Serve the report to this machine only; it follows the study. Ctrl-C ends it."""
    from windage.report.watch import LOOPBACK, serve

    with Progress() as progress:
        progress("reading the results")
        server, watcher = serve(folder, port)
    print(f"watching {folder}: http://{LOOPBACK}:{server.server_address[1]}/", flush=True)
    print("Ctrl-C ends it; the study goes on.", flush=True)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        watcher.close()
        server.server_close()
