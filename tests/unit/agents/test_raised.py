"""Errors of somebody's own code, in words."""

from __future__ import annotations

import json
from pathlib import Path

import windage as wd
from windage.agents.registry import in_words


def caught(work):
    try:
        work()
    except BaseException as err:
        return err
    raise AssertionError("nothing was raised")


def test_the_line_is_the_last_that_is_not_the_librarys():
    def asked():
        wd.MDP.from_arrays([[2.0]], [[[1.0]]])

    line = asked.__code__.co_firstlineno + 1
    said = in_words(caught(asked))
    assert said.startswith("ModelError: rewards")
    assert said.endswith(f"({Path(__file__).name}:{line}, in asked)")


def test_a_message_is_one_line_and_may_be_empty_or_broken():
    class Untold(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError

    assert in_words(ValueError("two\nlines\t here")) == "ValueError: two lines here"
    assert in_words(KeyError()) == "KeyError"
    assert in_words(Untold()) == "Untold: it does not say why"
    assert in_words(caught(lambda: json.loads("?"))).startswith("JSONDecodeError: Expecting value")
