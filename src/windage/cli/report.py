"""`windage report` and `windage watch`: the page of a study, written once or served live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windage.cli.options import require_writable
from windage.cli.terminal import Progress, print_text, say
from windage.errors import InputError

__all__ = ["report", "watch"]

_KINDS = (".html", ".htm")


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `windage run -o` wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page, one HTML file.")] = Path(
        "report.html"
    ),
    paper: Annotated[
        Path | None,
        typer.Option(
            "--paper", metavar="FOLDER", help="Write LaTeX tables, figures and BibTeX there too."
        ),
    ] = None,
) -> None:
    """Write one page: which agent is better, by how much, and why; it opens offline."""
    if output.suffix.lower() not in _KINDS:
        raise InputError(
            "is no name of a page", field=str(output), fix="name a file that ends in .html"
        )
    require_writable(output)
    if paper is not None:
        require_writable(paper / "example.tex")
    from windage.report.page import write_report

    with Progress() as progress:
        made = write_report(folder, output, progress=progress)
        files = []
        if paper is not None:
            from windage.report.latex import write_paper

            progress("drawing for paper")
            files = write_paper(
                made.material,
                paper,
                title=made.page.title,
                versions=made.manifest.versions,
                study_hash=made.manifest.hash,
                before=made.manifest.before,
            )
    for sentence in made.verdict:
        print_text(sentence)
    if made.done < made.wanted:
        print_text(f"{made.done:,} of {made.wanted:,} runs are in; the rest is missing.")
    say(f"page: {output} ({output.stat().st_size / 1e6:.1f} MB)")
    if files:
        names = ", ".join(path.name for path in files)
        print_text(f"for a paper, in {paper}: {names}")


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
    say(f"watching {folder}: http://{LOOPBACK}:{server.server_address[1]}/")
    say("Ctrl-C ends it; the study goes on.")
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        watcher.close()
        server.server_close()
