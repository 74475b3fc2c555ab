"""Files and saved agents that were changed by chance, and some that were made to do harm.

    python -m tests.reliability.fuzzing {model,bytes,rows,blob} CASES SEED

Whatever is read is refused with an error of the library, or it works: a model is run and an agent
goes on for some steps. Each block of cases has a process of its own, so that a crash is seen as
one. What was neither is printed as JSON, one a line.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import windage as wd
from tests.drifting import BUILDERS
from windage.agents.state import Blob, pack, unpack

Rng = np.random.Generator
BLOCK, SECONDS = 25, 60
ODD = [-1, 0, 1, 2, 7, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**63 - 1, -(2**63), 2**64, 10**30]
AGENTS = (
    "ucrl2", "swucrl2-cw", "psrl", "diff-q", "multi-scale", "multi-scale-guarded", "borl", "master",
    "sw-ucb", "exp3-s", "imed-rl", "kl-ucrl", "ucrl3",
)  # fmt: skip


def changed(array: np.ndarray, rng: Rng) -> np.ndarray:
    """An array with one thing about it that is another."""
    kind = rng.integers(8)
    if kind < 4 and array.size and array.dtype.kind in "iufb":
        made = array.copy()
        value = ODD[rng.integers(len(ODD))] if rng.random() < 0.8 else np.nan
        with np.errstate(all="ignore"):
            place = -1 if rng.random() < 0.3 else rng.integers(array.size)
            made.flat[place] = np.array(value, float).astype(array.dtype)
        return made
    if kind == 4:
        return array[: int(rng.integers(array.shape[0] + 1))] if array.ndim else array[None]
    if kind == 5:
        return np.concatenate([array, array]) if array.ndim else array
    if kind == 6:
        return array.astype([np.float32, np.int64, np.int32, np.uint8, np.float64][rng.integers(5)])
    return array.reshape(-1) if rng.random() < 0.5 else array[..., None]


def meddled(data: Any, rng: Rng) -> Any:
    """Plain data with one entry that is another."""
    if isinstance(data, dict) and data and rng.random() < 0.95:
        name = list(data)[rng.integers(len(data))]
        if rng.random() < 0.1:
            return {key: value for key, value in data.items() if key != name}
        return data | {name: meddled(data[name], rng)}
    if isinstance(data, list) and data and rng.random() < 0.8:
        i = int(rng.integers(len(data)))
        return [*data[:i], meddled(data[i], rng), *data[i + 1 :]]
    odd = [*ODD, None, True, "x", 1.5, -0.5, 1e308, [], {}, [[[]]], "x" * 10**4]
    return odd[rng.integers(len(odd))]


def model_file(rng: Rng) -> dict[str, np.ndarray]:
    """The arrays of a file that holds a model of one kind or another."""
    kind = rng.integers(4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        if kind == 0:
            wd.envs.make("inventory", horizon=30).save(path)
        elif kind == 3:
            return {"r": np.full((9, 3, 2), 0.5), "p": np.full((9, 3, 2, 3), 1 / 3),
                    "actions": np.array([2, 1, 2]), "horizon": np.array(9)}  # fmt: skip
        else:
            BUILDERS["sparse function" if kind == 1 else "knots"]().save(path)
        with np.load(path) as content:
            return dict(content)


def use(model: wd.DriftingMDP) -> None:
    """What was read is a model that can be run."""
    steps = min(20, model.horizon)
    agent = wd.agents.make("random", model.space, horizon=model.horizon)
    wd.run(model, agent, steps=steps, record="totals")
    assert np.isfinite(model.at(1).rewards).all()


def load(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        path.write_bytes(content)
        use(wd.load(path))


def zipped(arrays: dict[str, np.ndarray]) -> bytes:
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


def model(rng: Rng) -> None:
    """A file one of whose arrays, or a field of whose header, is another."""
    arrays = model_file(rng)
    for name in rng.permutation(sorted(arrays))[: rng.integers(1, 3)].tolist():
        if name in ("header", "structure") and rng.random() < 0.9:
            data = meddled(json.loads(arrays[name].tobytes()), rng)
            arrays[name] = np.frombuffer(json.dumps(data).encode(), np.uint8)
        else:
            arrays[name] = changed(arrays[name], rng)
    load(zipped(arrays))


def bytes_(rng: Rng) -> None:
    """A file some of whose bytes are others; its sums of what is packed are made to fit again."""
    content = bytearray(zipped(model_file(rng)))
    for _ in range(rng.integers(1, 4)):
        content[rng.integers(len(content))] = rng.integers(256)
    if rng.random() < 0.5:  # a reader that looks at sums would see nothing else
        zipfile.ZipExtFile._update_crc = lambda *_: None  # type: ignore[method-assign]
    load(bytes(content))


def rows(rng: Rng) -> None:
    """A sparse matrix one of whose parts is another."""
    base = csr_array(np.where(rng.random((6, 4)) < 0.5, 0.5, 0.0))
    format_ = ["csr", "csc", "coo", "bsr", "lil", "dia", "dok"][rng.integers(7)]
    found = base.asformat(format_)
    for part in ("indptr", "indices", "data", "offsets"):
        if hasattr(found, part) and rng.random() < 0.5 and format_ != "lil":
            setattr(found, part, changed(getattr(found, part), rng))
    if format_ == "coo":
        i = int(rng.integers(2))
        found.coords = tuple(
            changed(axis, rng) if k == i else axis for k, axis in enumerate(found.coords)
        )
    if format_ == "lil":
        found.rows[rng.integers(6)] = [ODD[rng.integers(11)]] * int(rng.integers(4))
    space = wd.StateActions([2, 1, 2, 1])
    wd.MDP(space, np.zeros(6), found, normalize=bool(rng.random() < 0.5)).solve()


def saved(id_: str) -> tuple[wd.DriftingMDP, bytes]:
    world = wd.envs.make("riverswim", states=3, horizon=90)
    options = {"swucrl2-cw": {"window": 9}, "master": {"diameter": 20.0}}.get(id_, {})
    agent = wd.agents.make(id_, world.space, horizon=90, budgets=world.budgets(), **options)
    wd.run(world, agent, steps=40)
    return world, agent.state()


def go_on(world: wd.DriftingMDP, data: bytes) -> None:
    """What was restored goes on, and can be saved and restored again."""
    agent = wd.agents.restore(data)
    if agent.space == world.space:
        steps = min(5, agent.horizon - agent.t + 1, world.horizon - agent.t + 1)
        if steps > 0:
            wd.run(world, agent, steps=steps, start_state=agent.last_state or 0)
    wd.agents.restore(agent.state())


def blob(rng: Rng) -> None:
    """A saved agent with a number, an array or a field of its configuration that is another."""
    world, data = saved(AGENTS[rng.integers(len(AGENTS))])
    if rng.random() < 0.2:
        go_on(world, headed(data, rng))
        return
    found = unpack(data)
    parts = {"configuration": found.configuration, "values": found.values}
    arrays = dict(found.arrays)
    if rng.random() < 0.6:
        name = sorted(arrays)[rng.integers(len(arrays))]
        arrays[name] = changed(arrays[name], rng)
    else:
        name = "values" if rng.random() < 0.6 else "configuration"
        parts[name] = meddled(parts[name], rng)
    go_on(world, pack(Blob(found.agent, parts["configuration"], parts["values"], arrays)))


HEADERS = [
    {"arrays": [["x", "<f8", [2**32, 2**32]]]},
    {"arrays": [["x", "<f8", [0, 2**62]]]},
    {"arrays": [["x", "<f8", [1] * 65]]},
    {"arrays": [["x", "|u1", []]]},
    {"arrays": [["x", "<f8", [0]], ["x", "<f8", [0]]]},
    {"arrays": [["x", "|O8", [0]]]},
    {"values": None},
]


def headed(data: bytes, rng: Rng) -> bytes:
    """A blob with another header, or one that is deeper than any, and a checksum that fits."""
    start = len(b"windage agent\n")
    (length,) = struct.unpack("<Q", data[start : start + 8])
    header = json.loads(data[start + 8 : start + 8 + length])
    kind = int(rng.integers(len(HEADERS) + 2))
    if kind < len(HEADERS):
        text = json.dumps(header | HEADERS[kind]).encode()
    else:
        deep = b"[" * 10**5 + b"]" * 10**5
        text = json.dumps(header).encode().replace(b'"values":', b'"values":' + deep + b',"x":', 1)
    size = len(text) if kind != len(HEADERS) + 1 else 2**63
    body = data[:start] + struct.pack("<Q", size) + text + data[start + 8 + length : -32]
    return body + sha256(body).digest()


KINDS: dict[str, Callable[[Rng], None]] = {
    "model": model, "bytes": bytes_, "rows": rows, "blob": blob,
}  # fmt: skip


def in_child(kind: str, cases: range, seed: int) -> list[dict[str, Any]]:
    """Try cases in a child; return those that ended in a crash, a hang or another error."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ear)
        for case in cases:
            os.write(mouth, f"{case}\n".encode())
            signal.alarm(SECONDS)
            try:
                KINDS[kind](np.random.default_rng([seed, case]))
            except (wd.WindageError, OSError):
                pass
            except BaseException:
                os.write(mouth, (json.dumps(traceback.format_exc()[-900:]) + "\n").encode())
        os._exit(0)
    os.close(mouth)
    with os.fdopen(ear) as told:
        lines = told.read().splitlines()
    _, status = os.waitpid(child, 0)
    found, case = [], cases.start
    for line in lines:
        if line.startswith('"'):
            found.append({"kind": kind, "case": case, "said": json.loads(line)})
        else:
            case = int(line)
    if os.WIFSIGNALED(status):
        said = f"died of {signal.Signals(os.WTERMSIG(status)).name}"
        found.append({"kind": kind, "case": case, "said": said})
        return found + in_child(kind, range(case + 1, cases.stop), seed)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    kind, cases, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for id_ in AGENTS if kind == "blob" else ():
        go_on(*saved(id_))  # here, so that what it compiles is there for all children
    bad = 0
    for first in range(0, cases, BLOCK):
        for one in in_child(kind, range(first, min(first + BLOCK, cases)), seed):
            bad += 1
            print(json.dumps(one), flush=True)
    sys.exit(bad > 0)
