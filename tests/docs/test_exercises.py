"""The exercise notebook: the solution passes, every blank fails, and both say the same."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import jupytext
import pytest

import windage as wd

FOLDER = Path(__file__).parents[2] / "docs" / "exercises"
SOLUTION = (FOLDER / "widening_solution.py").read_text()
BLANK = '    raise NotImplementedError("your turn")\n'
ANSWER = re.compile(r"    # <solution>\n.*?    # </solution>\n", re.DOTALL)


def cells(text):
    """The code cells of a notebook."""
    return [c.source for c in jupytext.reads(text, fmt="py:percent").cells if c.cell_type == "code"]


def run(text):
    """Run the cells in order; return what was printed before one failed, and how it failed."""
    printed, namespace = io.StringIO(), {"__name__": "__main__"}
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        try:
            for cell in cells(text):
                exec(compile(cell, "exercise", "exec"), namespace)
        except (AssertionError, NotImplementedError) as err:
            return printed.getvalue(), type(err)
    return printed.getvalue(), None


def test_the_solution_passes_every_part():
    printed, failed = run(SOLUTION)
    assert failed is None
    assert re.findall(r"^(\d)\. ", printed, re.MULTILINE) == ["1", "2", "3", "4"]


def test_the_exercise_is_the_solution_with_blanks():
    assert ANSWER.sub(BLANK, SOLUTION) == (FOLDER / "widening.py").read_text()
    assert len(ANSWER.findall(SOLUTION)) == 4


@pytest.mark.parametrize("part", range(4))
def test_a_part_that_is_missing_fails_where_it_is_checked(part):
    answers = ANSWER.findall(SOLUTION)
    printed, failed = run(SOLUTION.replace(answers[part], BLANK, 1))
    assert failed is NotImplementedError
    assert re.findall(r"^(\d)\. ", printed, re.MULTILINE) == [str(n) for n in range(1, part + 1)]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("min(d / 2, 1 - q[best])", "min(d, 1 - q[best])"),  # the full radius is moved
        ("in order[:-1]:", "in order[:-1][::-1]:"),  # mass is taken from the wrong end
        ("return change.max(), u - u.min()", "return change.min(), u - u.min()"),
        ("(radii, (2, 2)) + eta)", "(radii, (2, 2)))"),  # eta dropped
        ("np.reshape(radii, (2, 2)) + eta", "eta"),  # radii dropped
    ],
)
def test_asserts_catch_what_students_write(right, wrong):
    assert SOLUTION.count(right) == 1
    assert run(SOLUTION.replace(right, wrong))[1] is AssertionError
