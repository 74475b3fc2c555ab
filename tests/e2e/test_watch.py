"""`windage watch`: the page follows a study that runs, on this machine and for it alone."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import windage as wd
from tests.e2e import studies
from tests.e2e.commands import WINDAGE, refused
from windage.cli.report import LOOPBACK, Watcher, serve


def study(seeds, horizon=400):
    agents = [{"id": "sw-psrl", "label": "PSRL"}, {"id": "random"}]
    return wd.Study([{"id": "two-state-cosine"}], agents, horizon=horizon, seeds=seeds, name="slow")


@pytest.fixture
def watching(here):
    """Run `windage watch`; returns its address."""
    processes = []

    def start(folder):
        process = subprocess.Popen(
            [*WINDAGE, "watch", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        processes.append(process)
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return re.search(r"http://127\.0\.0\.1:\d+/", line)[0], process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_it_follows_a_study_while_it_runs(here, watching, visit):
    studies.run(study(2), "results")
    manifest = Path("results/manifest.json").read_bytes()
    address, process = watching("results")
    seen = visit(address, offline=False)
    page = seen.page
    assert page.locator("#live").text_content() == "All 4 runs are in."
    assert "2 seeds" in page.locator(".facts").text_content()
    page.get_by_role("button", name="Dark").click()
    page.locator("#numbers").scroll_into_view_if_needed()
    scrolled = page.evaluate("window.scrollY")
    assert scrolled > 0
    page.evaluate("window.before = document.querySelector('main')")
    studies.run(study(6), "results")  # the same folder, four more seeds
    assert Path("results/manifest.json").read_bytes() != manifest
    page.locator(".facts", has_text="6 seeds").wait_for(timeout=30_000)
    seen.ready()
    assert "All 12 runs are in." in page.locator("#live").text_content()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("window.scrollY") > 0
    assert page.evaluate("window.before.isConnected") is False
    drawn = seen.drawn()
    assert all(chart["found"] == chart["wanted"] for chart in drawn)
    assert seen.errors == []
    assert all(url.startswith((address, "data:", "blob:")) for url in seen.requests)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    page.locator("#live", has_text="The server has stopped").wait_for(timeout=10_000)


def test_a_study_that_has_only_begun(here):
    studies.run(study(2), "results")
    shutil.rmtree("results/runs")
    Path("results/runs").mkdir()
    watcher = Watcher("results")
    text = watcher.page.decode()
    assert "Nothing has been run yet." in text
    assert watcher.status()["text"] == "Live: 0 of 4 runs are in."


def test_a_damaged_file_keeps_the_last_page_and_says_so(here):
    studies.run(study(2), "results")
    watcher = Watcher("results")
    before, version = watcher.page, watcher.status()["version"]
    file = sorted(Path("results/runs").iterdir())[0]
    file.write_bytes(b"nonsense")
    watcher._build("later")
    assert watcher.page == before
    assert file.name in watcher.status()["text"]
    assert watcher.status()["version"] != version


def ask(address, path="/version", host=None, method="GET"):
    port = int(address.rstrip("/").rsplit(":", 1)[1])
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_it_answers_this_machine_only(here, watching):
    studies.run(study(2, horizon=100), "results")
    address, _ = watching("results")
    port = int(address.rstrip("/").rsplit(":", 1)[1])
    status, body = ask(address)
    assert status == 200
    assert json.loads(body)["text"] == "All 4 runs are in."
    assert ask(address, host=f"localhost:{port}")[0] == 200
    assert ask(address, host="elsewhere.example")[0] == 421
    assert ask(address, "/../manifest.json")[0] == 404
    assert ask(address, method="POST")[0] == 501
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)} - {LOOPBACK}
    for other in others:
        if "." in other and not other.startswith("127."):
            with socket.socket() as knock:
                knock.settimeout(2)
                assert knock.connect_ex((other, port)) != 0, f"it listens on {other}"


def test_it_listens_on_the_loopback_address_only(here):
    studies.run(study(1, horizon=50), "results")
    server, watcher = serve("results")
    watcher.close()
    with server:
        assert server.socket.getsockname()[0] == "127.0.0.1"


def test_what_is_refused(here, capsys):
    assert refused(capsys, "watch", "gone").startswith("gone: is no folder of results")
    studies.run(study(1, horizon=50), "results")
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused(capsys, "watch", "results", "--port", str(port))
    assert said.startswith(f"port {port}: cannot be used (")
