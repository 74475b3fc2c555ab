"""The fenced blocks of a page."""

from __future__ import annotations

from typing import NamedTuple


class Block(NamedTuple):
    language: str
    line: int  # of the first line inside, from 1 on
    text: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found: list[Block] = []
    language, start, inside = None, 0, []
    for number, line in enumerate(page.splitlines(), 1):
        if not line.lstrip().startswith("```"):
            inside.append(line)
        elif language is None:
            language, start, inside = line.strip().removeprefix("```").strip(), number + 1, []
        else:
            found.append(Block(language, start, "\n".join(inside) + "\n"))
            language = None
    assert language is None, f"the block at line {start - 1} is not closed"
    return found
