"""Write the files of this version, and what is to be read in them."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import windage as wd
from tests.unit.live.test_seen import LEARNERS, loop

STUDY = """
name = "archive"
horizon = 200
seeds = 2
[[environments]]
id = "two-state-cosine"
[[agents]]
id = "random"
"""


def write(folder: Path) -> None:
    """Write a model, a structured model, saved agents, a journal and a study."""
    folder.mkdir(parents=True)
    expected: dict[str, object] = {}
    for id_ in ("two-state-cosine", "inventory"):
        model = wd.envs.make(id_, horizon=100)
        model.save(folder / f"{id_}.npz")
        expected[f"{id_}.npz"] = [model.at(50).solve().gain, model.budgets().transition]
    model = wd.envs.make("two-state-cosine", horizon=200)
    for agent in ("ucrl2", "multi-scale"):
        learner = wd.agents.make(agent, model.space, horizon=200)
        wd.run(model, learner, seed=1, steps=100)
        (folder / f"{agent}.state").write_bytes(learner.state())
        expected[f"{agent}.state"] = [learner.t, learner.act(0)]
    with wd.live.open(folder / "stock.journal", LEARNERS["multi-scale"]()) as live:
        _, s = loop(live, 12)
        decided = live.decide(s)
    expected["stock.journal"] = [decided.id, decided.state, decided.action]
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "study.toml").write_text(STUDY)
        wd.Study.load(f"{place}/study.toml").run(folder / "study")
    frame = wd.load_results(folder / "study")
    expected["study"] = [frame.height, sorted(frame["regret"].to_list())]
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    for name in ("-wal", "-shm"):
        (folder / f"stock.journal{name}").unlink(missing_ok=True)
    for name in (".lock", "timings.jsonl"):
        (folder / "study" / name).unlink(missing_ok=True)


write(Path(sys.argv[1]))
