"""The page as text: hashes, escapes, and the study as a file to run again."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.report.page.frames import asked, material, row, scores
from windage.report.page import compose, render, study_text
from windage.study.compare import Plan


class Read(HTMLParser):
    """What a browser would take for scripts, styles, handlers and addresses."""

    def __init__(self, text):
        super().__init__()
        self.inside, self.bodies, self.policy, self.bad = None, [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag in ("script", "style"):
            self.inside = tag if found.get("type") != "application/json" else None
            self.bodies.append((self.inside, ""))
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        for name, value in attributes:
            address = name in ("src", "href") and not value.startswith(("#", "data:"))
            if name.startswith("on") or name == "style" or address:
                self.bad.append((tag, name, value))

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            kind, text = self.bodies[-1]
            self.bodies[-1] = (kind, text + data)


@pytest.fixture(scope="module")
def page():
    found = material(scores(a=[0.5, 0.6], b=[0.4, 0.5]))
    return render(
        compose(
            found,
            title="by hand",
            provenance=[("command", "x")],
            study_file="",
        )
    )


def test_the_policy_names_what_is_there_and_nothing_else(page):
    read = Read(page)
    assert read.bad == []
    hashes = {
        kind: [
            base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            for which, text in read.bodies
            if which == kind
        ]
        for kind in ("script", "style")
    }
    policy = dict(part.strip().split(" ", 1) for part in read.policy.split(";"))
    assert policy["default-src"] == "'none'"
    assert re.findall(r"sha256-([^']+)", policy["script-src"]) == hashes["script"]
    assert set(hashes["style"]) <= set(re.findall(r"sha256-([^']+)", policy["style-src-elem"]))
    assert "unsafe" not in policy["script-src"]
    assert "connect-src" not in policy
    assert set(policy) == {
        "default-src", "script-src", "style-src-elem", "style-src-attr", "img-src", "base-uri",
        "form-action",
    }  # fmt: skip


def test_nothing_of_the_day_or_the_machine_is_in_it(page):
    own = page[: page.index("<script>")] + page[page.rindex("<script>") :]
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b|/tmp/|/home/|/root/", own)
    found = material(scores(a=[0.5, 0.6], b=[0.4, 0.5]))
    again = compose(
        found,
        title="by hand",
        provenance=[("command", "x")],
        study_file="",
    )
    assert render(again) == page


@settings(max_examples=20)
@example("</script><script>alert(1)</script><img src=x onerror=alert(1)>")
@given(st.text(max_size=60))
def test_any_name_is_text(name):
    found = material([row(f"agent {name}", seed, 0.5) for seed in range(2)])
    page = compose(found, title=name, provenance=[("seeds", name)], study_file=name)
    text = render(page)
    assert Read(text).bad == []
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
    tables = json.loads(data)["tables"]
    assert any(f"agent {name}" in line for table in tables.values() for line in table["rows"])
    assert text.count("<script") == 3


def remarks(rows, asked=None):
    page = compose(material(rows, asked=asked), title="t", provenance=[], study_file="")
    return [*page.remarks, *page.setup_words]


def test_the_best_of_a_sweep_is_shown_with_a_warning():
    same = {"agent_id": "sw-ucrl"}
    rows = [row(f"window {w}", seed, w / 100, **same) for w in (20, 50) for seed in range(2)]
    rows += [row("other", seed, 0.9, agent_id="psrl") for seed in range(2)]
    assert not any("settings of" in said for said in remarks(rows))  # it is not the best one
    (warning,) = (said for said in remarks(rows[:4]) if "settings of" in said)
    assert warning.startswith(
        "window 50 is the best of 2 settings of sw-ucrl on world, picked on the seeds it is shown "
        "on: expect less of it on others."
    )
    planned = asked(plan=Plan(pairs=(("window 50", "window 20"),)))
    assert not any("settings of" in said for said in remarks(rows[:4], planned))


def test_what_was_tuned_apart_is_said():
    runs = [("a", seed, {"tuned": "window, on 3 seeds from 7 to 9"}) for seed in range(2)]
    said = remarks(scores(a=[0.5, 0.6]), asked(*runs))
    assert (
        "Picked in each environment on seeds that are not shown: a: window, on 3 seeds from 7 to 9."
        in said
    )


def test_agents_and_settings_without_a_run_are_named():
    runs = [("a", 0), ("a", 1), ("b", 0), ("a", 0, {"horizon": 900})]
    first, *_ = remarks(scores(a=[0.5, 0.6]), asked(*runs))
    assert first.startswith("2 of 4 runs are in")
    assert first.endswith("so far: b. Nothing has finished on world, T = 900.")


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
TABLES = st.lists(st.dictionaries(st.text(min_size=1, max_size=8), VALUES, max_size=4), min_size=1)


@given(st.dictionaries(st.text(min_size=1, max_size=8), VALUES, max_size=4), TABLES)
def test_a_study_reads_back_as_it_was(plain, agents):
    study = {name: value for name, value in plain.items() if name != "agents"}
    study = {k: v for k, v in study.items() if v != []} | {"agents": agents}
    assert tomllib.loads(study_text(study)) == study
