"""`windage report` and `windage watch`: the page of a study, written once or served live.

While a page is served, one thread looks at the folder and builds the page anew when more runs are
in; requests are answered from what it built last, so a slow page never makes a reader wait. The
server listens on the loopback address and answers only those who call it by that name: a page
elsewhere that resolves its own name to this machine is refused.
"""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from windage.cli.terminal import Progress, print_text, require_writable, say
from windage.errors import InputError, WindageError

__all__ = ["Watcher", "report", "serve", "watch"]

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


LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")
_LOOK = 0.5  # seconds between two looks at the folder
_SHARE = 0.25  # of the time may go into building pages: the study has better use for it


class Watcher:
    """The newest page of a folder, and how far its study is."""

    def __init__(self, folder: str | Path) -> None:
        from windage.study.store import Store

        self._folder = folder
        self._store = Store.found(folder)
        self._built = ""  # what the folder looked like when the page was built
        self._lock = threading.Lock()
        self._page = b""
        self._error = ""
        self._over = threading.Event()
        self._rest = 0.0
        self._build(self._look())  # a folder that cannot be shown is refused at once

    def follow(self) -> None:
        """Look at the folder until `close` is called."""
        while not self._over.wait(max(_LOOK, self._rest)):
            seen = self._look()
            if seen != self._built:
                self._build(seen)

    def close(self) -> None:
        """Stop looking."""
        self._over.set()

    @property
    def page(self) -> bytes:
        """The newest page."""
        with self._lock:
            return self._page

    def status(self) -> dict[str, str]:
        """Return the version of the page, and how far the study is in words."""
        try:
            manifest = self._store.manifest()
            done = self._done({asked.key for asked in manifest.runs})
            wanted = len({asked.key for asked in manifest.runs})
            text = (
                f"All {wanted:,} runs are in."
                if done == wanted
                else f"Live: {done:,} of {wanted:,} runs are in."
            )
        except WindageError as err:
            text = str(err)
        with self._lock:
            return {"version": self._built, "text": self._error or text}

    def _done(self, keys: set[str]) -> int:
        return len(keys & self._store.present("runs"))

    def _look(self) -> str:
        """Return what a change of the folder changes."""
        path = self._store.folder / "manifest.json"
        stamp = path.stat().st_mtime_ns if path.is_file() else 0
        parts = [len(self._store.present(kind)) for kind in ("runs", "oracles")]
        return "-".join(map(str, [stamp, *parts]))

    def _build(self, seen: str) -> None:
        from windage.report.page import make_report

        start = time.monotonic()
        try:
            page, error = make_report(self._folder, live=True).html().encode(), ""
        except WindageError as err:  # a damaged file: the last page stays, and says what is wrong
            if not self._page:
                raise
            page, error = self._page, str(err)
        with self._lock:
            self._page, self._error, self._built = page, error, seen
        self._rest = (time.monotonic() - start) / _SHARE


def serve(folder: str | Path, port: int = 0) -> tuple[ThreadingHTTPServer, Watcher]:
    """Return a server, ready but not yet serving, and the watcher it shows.

    Parameters
    ----------
    folder
        The study's results.
    port
        Where to listen on the loopback address; 0 takes a free one.

    Raises
    ------
    InputError
        The port is taken, or none.
    StateError
        The folder holds no study.
    """
    watcher = Watcher(folder)
    try:
        server = ThreadingHTTPServer((LOOPBACK, port), partial(_Handler, watcher))
    except (OSError, OverflowError) as err:
        raise InputError(
            f"cannot be used ({getattr(err, 'strerror', None) or err})",
            field=f"port {port}",
            fix="name another, or 0 for a free one",
        ) from None
    server.daemon_threads = True
    threading.Thread(target=watcher.follow, daemon=True).start()
    return server, watcher


class _Handler(BaseHTTPRequestHandler):
    """Answers for the page and for its version."""

    def __init__(self, watcher: Watcher, *arguments: Any) -> None:
        self._watcher = watcher
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer."""
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        if host not in _NAMES:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif self.path == "/":
            self._send(self._watcher.page, "text/html; charset=utf-8")
        elif self.path == "/version":
            self._send(json.dumps(self._watcher.status()).encode(), "application/json")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the reader has left

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Say nothing: a page that asks every second would fill the terminal."""
