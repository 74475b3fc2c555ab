"""What reaches the terminal: no control characters of others, nothing endless, no traceback."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.in_process import windage_here
from windage.cli import main
from windage.cli.terminal import complain, escaped, print_table, print_text, say

ESCAPES = "\x1b]0;owned\x07\x1b[31m\u202e"
SHOWN = r"\x1b]0;owned\x07\x1b[31m\u202e"

STUDY = r"""
horizon = 50
seeds = 2
[[environments]]
id = "riverswim"
label = "river\u001b]0;owned\u0007\u001b[31m\u202e"
[[agents]]
id = "random"
label = "random\u001b]0;owned\u0007\u001b[31m\u202e"
[[agents]]
id = "angry:Angry"
"""

ANGRY = f"""
class Angry:
    def __init__(self, space):
        pass
    def act(self, s):
        raise RuntimeError("no" + {ESCAPES!r} + "!" * 10_000_000)
    def observe(self, s, a, reward, s_next):
        pass
"""


def clean(text):
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("is_terminal", [False, True])
def test_every_way_to_print_escapes_and_cuts(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    for text in (ESCAPES, "x" * 10**7):
        say(f"{text}\n{text}")
        print_text(text)
        complain(text)
        print_table([text, "[red]b"], [["1", text], ["2", "[red]c"]])
    out, err = capsys.readouterr()
    assert clean(out)
    assert clean(err)
    assert out.count(SHOWN) == 5
    assert err.startswith(f"windage: {SHOWN}\n")
    assert "xxx... (10,000,000 characters)" in err
    assert len(out) < 20_000
    assert out.count("[red]b") == out.count("[red]c") == 2  # no markup


def test_labels_and_messages_of_studies_are_escaped(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "angry.py").write_text(ANGRY)
    done = [
        windage_here(arguments.split(), tmp_path)
        for arguments in (
            "run study.toml -o a -w 1", "run study.toml -o a --dry-run", "diff a a",
            "explain a", "explain a --run 1",
        )
    ]  # fmt: skip
    assert [one.returncode for one in done] == [1, 0, 0, 0, 0], done[-1].stderr
    for one in done:
        assert clean(one.stdout)
        assert clean(one.stderr)
        assert SHOWN in one.stdout
        assert len(one.stdout) + len(one.stderr) < 20_000
    assert SHOWN in done[0].stderr


def test_letters_that_the_terminal_does_not_know_are_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr("windage.envs.registry.Environment.summary", "Fluß")
    assert main(["envs"]) == 0
    sys.stdout.flush()
    assert rb"Flu\xdf" in raw.getvalue()


@pytest.mark.parametrize("buffering", [1, -1])  # found out in the middle, or at the end
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_output_that_cannot_be_written_is_said_in_words(monkeypatch, capsys, buffering):
    with Path("/dev/full").open("w", buffering) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["agents"]) == 2
    assert capsys.readouterr().err == "windage: the output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
@pytest.mark.parametrize("arguments", [["agents"], ["try", "riverswim", "random", "-T", "0"]])
def test_where_nothing_can_be_said_the_exit_code_says_it(monkeypatch, arguments):
    with Path("/dev/full").open("w", 1) as out, Path("/dev/full").open("w", 1) as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert main(arguments) == 2


RAISING = """
class Raising:
    def __init__(self, space, horizon, seed=0, error="OSError"):
        self.error = {"OSError": OSError(28, "\x1b[31mfull"), "Pipe": BrokenPipeError("gone"),
                      "Exit": SystemExit(3)}[error]
    def act(self, s): raise self.error
    def observe(self, s, a, r, s2): pass
"""


@pytest.mark.parametrize(
    ("error", "says"),
    [("OSError", r"\x1b[31m" + "full (raising.py:6, in act)"), ("Pipe", "BrokenPipeError: gone"),
     ("Exit", "asked Python to end (SystemExit: 3)")],
)  # fmt: skip
def test_an_agent_that_raises_is_not_taken_for_the_output(tmp_path, error, says):
    (tmp_path / "raising.py").write_text(RAISING)
    agent = f'id = "raising:Raising"\nerror = "{error}"'
    study = f'seeds = 1\nhorizon = 9\n[[environments]]\nid = "riverswim"\n[[agents]]\n{agent}'
    (tmp_path / "s.toml").write_text(study)
    done = [
        windage_here(arguments.split(), tmp_path)
        for arguments in (
            f"try riverswim raising:Raising -T 9 --set error={error}", "run s.toml -o a",
            "explain a --run 1",
        )
    ]  # fmt: skip
    assert [one.returncode for one in done] == [2, 1, 2]
    for one in done:
        assert says in one.stderr
        assert clean(one.stderr)
        assert "Traceback" not in one.stderr
    checked = windage_here(f"check-agent raising:Raising --set error={error}".split(), tmp_path)
    assert checked.returncode == 1
    assert checked.stdout.endswith("fails 1 of 10 checks; 8 more were not checked\n")


def test_a_closed_output_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["envs"]) == 0
    assert main(["show", "no-such-environment"]) == 2


def test_a_long_text_says_how_long_it_is():
    assert escaped("ab" * 5000, most=4) == "abab... (10,000 characters)"
