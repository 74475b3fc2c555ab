"""Tables on terminals of all widths: texts are folded, numbers are whole."""

import re
import sys

import pytest

from windage.cli.terminal import print_table

HEADERS = ["environment", "T", "agent", "seeds", "regret in A", "B - A", "95 % interval"]
ROWS = [
    ["riverswim", "20,000", "swucrl2-cw, radii laplace", "10", "1.288e+04", "+5", "-1 to +12,345"],
    ["queue", "80,000", "a label that goes on and on, to its end", "10", "6,474", "+0", "+0 to +0"],
]  # fmt: skip


@pytest.mark.parametrize("columns", [40, 60, 80, 90, 100, 120, 200])
def test_numbers_are_whole_on_every_terminal(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(HEADERS, ROWS)
    said = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)  # bold has no width
    assert all(cell in said for row in ROWS for cell in (row[1], *row[3:]))
    if "─" in said:
        assert max(map(len, said.splitlines())) <= columns


def test_long_texts_are_folded_where_that_makes_a_table_fit(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(HEADERS, ROWS)
    said = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)  # bold has no width
    assert "─" in said
    assert ROWS[1][2] not in said
    assert said.index("a label") < said.index("end")
