"""Two small studies: one agent of the second has another delta, and there is one seed more."""

from __future__ import annotations

import hashlib
import json

import pytest

import windage as wd


def study(seeds=4, delta=0.05, **more):
    options = {"horizon": 300, "name": "small"} | more
    return wd.Study(
        [{"id": "riverswim"}],
        [{"id": "random"}, {"id": "ucrl2", "delta": delta, "label": "ucrl2"}],
        seeds=seeds, **options,
    )  # fmt: skip


def rewrite(path, manifest):
    """Write a manifest by hand, with its right checksum."""
    bare = json.dumps(manifest | {"checksum": ""}, separators=(",", ":"), ensure_ascii=False)
    checksum = hashlib.sha256(bare.encode()).hexdigest()[:32]
    path.write_text(json.dumps(manifest | {"checksum": checksum}))


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    study().run(folder / "a")
    study(seeds=5, delta=0.5).run(folder / "b")
    return folder / "a", folder / "b"
