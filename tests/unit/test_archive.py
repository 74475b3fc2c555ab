"""Files that each version wrote: this one reads them as they were, or refuses them in words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import windage as wd
from windage.live.history import agent_at, agent_records
from windage.live.journal import Journal

ARCHIVE = Path(__file__).parents[1] / "archive"
FILES = [
    (version, name)
    for version in sorted(ARCHIVE.glob("[0-9]*"))
    for name in json.loads((version / "expected.json").read_text())
]


def read(path: Path) -> list[object]:
    """Return what `expected.json` says of a file."""
    if path.suffix == ".npz":
        model = wd.load(path)
        return [model.at(50).solve().gain, model.budgets().transition]
    if path.suffix == ".state":
        agent = wd.agents.restore(path.read_bytes())
        return [agent.t, agent.act(0)]
    if path.suffix == ".journal":
        assert wd.live.verify(path).problems == []
        with Journal(path) as journal:
            (record,) = agent_records(journal).values()
            return list(agent_at(journal, record).pending)
    frame = wd.load_results(path)
    return [frame.height, sorted(frame["regret"].to_list())]


@pytest.mark.parametrize(
    ("version", "name"), FILES, ids=[f"{version.name}-{name}" for version, name in FILES]
)
def test_what_a_version_wrote_is_read_or_refused_in_words(version, name, tmp_path):
    expected = json.loads((version / "expected.json").read_text())[name]
    shutil.copytree(version, tmp_path / "old")
    found, refusal = read_or_refusal(tmp_path / "old" / name)
    assert (found is None) == ("version" in refusal), refusal
    if found is not None:
        assert numbers(found) == pytest.approx(numbers(expected), rel=1e-9)


def read_or_refusal(path: Path) -> tuple[list[object] | None, str]:
    try:
        return read(path), ""
    except wd.WindageError as err:
        return None, str(err)


def numbers(values: list[object]) -> list[object]:
    return [x for value in values for x in (value if isinstance(value, list) else [value])]
