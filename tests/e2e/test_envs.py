"""`windage envs`: a list that fits its terminal, all about one environment, JSON for programs."""

import json
import os
import re
import sys

import pytest

import windage as wd
from tests.e2e.commands import refused, windage
from windage.cli import main
from windage.cli.terminal import print_table
from windage.envs.registry import REGISTERED


def test_envs_in_a_pipe_has_one_whole_line_an_environment(here):
    done = windage("envs", cwd=here, env=os.environ | {"COLUMNS": "40"})
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert header.split()[:4] == ["id", "S", "x", "A"]
    assert [line.split()[0] for line in lines] == [wd.envs.get(n).id for n in wd.envs.names()]
    river = next(line for line in lines if line.startswith("riverswim-v0"))
    assert river.endswith(wd.envs.get("riverswim").summary)
    cells = [cell.strip() for cell in river.split("  ") if cell]
    assert cells[1:6] == ["6 x 2 (12)", "20,000", "2.1", "1", "14.72"]
    assert "\x1b" not in done.stdout


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Runs a command as on a terminal of so many columns; returns its lines without colours."""

    def lines(columns, *arguments):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(arguments) == 0
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    return lines


@pytest.mark.parametrize(("columns", "most"), [(80, 3), (120, 2)])
def test_the_list_fits_a_terminal(terminal, columns, most):
    lines = terminal(columns, "envs")
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    for name in wd.envs.names():
        environment = wd.envs.get(name)
        counts = environment.build().space.counts
        actions = f"{counts.min()}-{counts.max()}" if counts.min() < counts.max() else counts[0]
        start = next(k for k, line in enumerate(lines) if line.strip().startswith(environment.id))
        assert lines[start].split()[1:3] == [str(counts.size), str(actions)]
        place = lines[start].index(environment.summary.split()[0])
        told = [line[place:].strip() for line in lines[start : start + most]]
        assert environment.summary in " ".join(told), "words are whole and few lines hold them"
    assert "`windage envs ID` describes one." in text
    able = " ".join(text.partition("With a structure, ")[2].partition(".\n")[0].split())
    known = [id for id, e in sorted(REGISTERED.items()) if "Structure\n" in e.build.__doc__]
    assert able == f"for agents that learn laws: {', '.join(known)}"


def test_the_drift_of_laws_stands_beside_that_of_rows(capsys):
    exact = wd.envs.facts("assortment", last=0.25).transition_budget / 0.25
    for name, row in (("assortment", f"B_q {exact:.8g}"), ("epidemic", None)):
        assert main(["envs", name]) == 0
        rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert [line for line in rows if line.startswith("B_q")] == ([row] if row else [])
        assert any(line.startswith("B_p") for line in rows)


def test_all_about_one_environment(capsys):
    assert main(["envs", "riverswim"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("riverswim-v0: A river whose current turns")
    words = " ".join(out.split())
    described = " ".join(wd.envs.riverswim.__doc__.split())
    assert words.removeprefix("riverswim-v0: ").startswith(described), "every section, in order"
    assert lines[lines.index("Actions") + 1].startswith('    0, "left"')
    rows = [" ".join(line.split()) for line in lines]
    for row in ("states 6", "pairs 12", "T 20,000", "B_r 2.1 2.1", "D at most 14.722338"):
        assert row in rows
    for row in ("parameter default", "horizon 20000", "states 6", "noise bernoulli"):
        assert row in rows[rows.index("parameter default") :]
    assert rows[-1] == "`windage show riverswim --set NAME=VALUE` draws it."


@pytest.mark.parametrize("name", wd.envs.names())
def test_every_environment_can_be_read_about_at_80_columns(terminal, name):
    lines = terminal(80, "envs", name)
    assert max(map(len, lines)) <= 80
    for section in ("States", "Actions", "Drift", "B_r", "B_p", "D", "Why communicating"):
        assert section in lines


def test_an_environment_that_does_not_exist(capsys):
    said = refused(capsys, "envs", "rivrswim")
    assert said.startswith("environment: no such choice: 'rivrswim'. Fix: did you mean 'riverswim'")


def test_envs_as_json(capsys):
    assert main(["envs", "--json"]) == 0
    entries = {entry["id"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(entries) == {wd.envs.get(name).id for name in wd.envs.names()}
    peril = entries["peril-v0"]
    assert peril["actions"] == [2, 2]
    assert peril["pairs"] == 4
    assert (peril["reward_budget"], peril["transition_budget"]) == (9.0, 38.0)
    assert peril["diameter_bound"] == 1.0
    assert peril["parameters"] == {
        "horizon": None, "tau": 50, "repeats": None, "noise": "bernoulli"
    }  # fmt: skip
    assert main(["envs", "peril", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [peril]


def test_a_terminal_gets_a_drawn_table_with_whole_ids(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    print_table(["id", "what"], [["two-state-cosine-v0", "[bold] words " * 12]])
    out = capsys.readouterr().out
    assert "two-state-cosine-v0" in out
    assert "[bold]" in out
    assert len(out.splitlines()) > 4  # the words are wrapped, the id is not
