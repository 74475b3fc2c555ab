"""BibTeX of the algorithms a study used.

Entries of `references.bib` stand apart by empty lines. Above some of them a comment says which
fields nobody has looked up; it goes where the entry goes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from importlib.resources import files

__all__ = ["bibliography", "keys_of"]

_OF_AGENT: dict[str, tuple[str, ...]] = {
    "swucrl2-cw": ("cheung2020",),
    "swucrl2-cw-practical": ("cheung2020", "windage"),
    "swucrl2": ("cheung2020",),
    "borl": ("cheung2020",),
    "ucrl2": ("jaksch2010",),
    "ucrl2-restarts": ("jaksch2010",),
    "sw-ucrl": ("gajane2018",),
    "va-ucrl": ("ortner2019",),
    "ucrl2b": ("fruit2020",),
    "psrl": ("osband2013", "ouyang2017"),
    "sw-psrl": ("osband2013", "ouyang2017"),
    "restarted-psrl": ("osband2013", "ouyang2017"),
    "diff-q": ("wan2021",),
    "master": ("wei2021",),
    "multi-scale": ("windage",),
    "multi-scale-guarded": ("windage",),
    "ucb1": ("auer2002finite",),
    "sw-ucb": ("garivier2011",),
    "d-ucb": ("garivier2011",),
    "rexp3": ("besbes2014",),
    "exp3-s": ("auer2002nonstochastic",),
    "bob": ("cheung2022",),
}
_ALWAYS = ("cheung2020", "windage")  # dynamic regret, and what computed it


def keys_of(agent_id: str) -> tuple[str, ...]:
    """Return the keys to cite for an agent; nothing for yardsticks and agents of one's own.

    >>> keys_of("borl"), keys_of("random")
    (('cheung2020',), ())
    """
    return _OF_AGENT.get(agent_id, ())


def bibliography(agent_ids: Iterable[str]) -> str:
    """Return the BibTeX file of the agents, every entry once, sorted."""
    wanted = set(_ALWAYS).union(*(keys_of(agent) for agent in agent_ids))
    entries = _entries()
    return "\n\n".join(entries[key] for key in sorted(wanted)) + "\n"


@functools.cache
def _entries() -> dict[str, str]:
    """Return all entries by their keys."""
    text = (files("windage.report.papers") / "references.bib").read_text("utf-8")
    entries = text.strip().split("\n\n")
    return {re.findall(r"^@\w+\{(\w+),", entry, re.MULTILINE)[0]: entry for entry in entries}
