"""Hostile arguments at every door: no call may end in a crash, hang, or read beyond an array.

    python -m tests.reliability.doors [NAME ...]

Each call is made in a child of its own, so that a crash is seen as one. With NUMBA_BOUNDSCHECK=1 an
index that kernels would follow out of an array is an IndexError. What ended so is printed as JSON,
one a line.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import windage as wd
from windage.adversarial import make, make_bank
from windage.agents.base import Steps
from windage.agents.multiscale.windows import WindowExperts
from windage.confidence.confidence import BoxRegion
from windage.confidence.window import Window
from windage.oracle import diameter, gain
from windage.oracle.certificate import certify
from windage.oracle.finite_horizon import finite_horizon
from windage.oracle.lp import gain_lp
from windage.simulators import Simulator

SECONDS = 10
ROOM = 12 << 30  # bytes of memory that a call may take
SPACE = wd.StateActions([2, 1, 3])
PAIRS, STATES = SPACE.n_pairs, SPACE.n_states
ROWS = np.full((PAIRS, STATES), 1 / 3)
REWARDS = np.linspace(0.0, 1.0, PAIRS)
MODEL = wd.MDP(SPACE, REWARDS, ROWS)
T = 30

NUMBERS: list[Any] = [
    -1, 0, 6, 10**9, -(10**9), 2**31, 2**40, 2**63, -(2**63), 10**30, True, 1.5, np.nan, np.inf,
    None, "1", [], [1], np.int8(-1), np.uint64(2**63), np.array([1, 2]),
]  # fmt: skip
LONG = {"finite horizon array", "finite horizon csr_array"}  # a long horizon takes its time


def arrays(valid: np.ndarray) -> list[Any]:
    """What may stand where an array should: others like it, and things that are none."""
    odd = [-1, 10**9, 2**31, np.nan]
    changed = []
    for value in odd:
        one = valid.astype(np.float64 if value is np.nan else valid.dtype)
        if valid.size:
            with np.errstate(all="ignore"):
                one.flat[valid.size // 2] = np.array(value).astype(one.dtype)
        changed.append(one)
    return [
        *changed, valid[:0], valid[:1], np.concatenate([valid, valid]), valid.astype(np.int8),
        valid.astype(np.float32), valid.astype(object), np.asfortranarray(valid)[::-1],
        valid.reshape(-1, 1), np.zeros((0, 0)), None, 7, "x", [[1], [1, 2]],
    ]  # fmt: skip


Door = tuple[Callable[..., Any], dict[str, Any]]


def window(**options: Any) -> Window:
    made = Window(SPACE, **options)
    for t in range(5):
        made.add(t % PAIRS, 0.5, t % STATES)
    made.commit()
    return made


def committed(made: Window) -> Callable[..., None]:
    def add(pair: Any, reward: Any, after: Any) -> None:
        made.add(pair, reward, after)
        made.commit()

    return add


def restored(kind: Callable[[], Any]) -> Callable[..., None]:
    def restore(**saved: Any) -> None:
        kind().restore(saved)

    return restore


def experts() -> WindowExperts:
    made = WindowExperts(SPACE, [4, T])
    for t in range(9):
        made.add(t % PAIRS, 0.5, t % STATES)
    return made


def region() -> wd.ConfidenceRegion:
    return wd.ConfidenceRegion(SPACE, REWARDS, ROWS, np.full(PAIRS, 0.3), np.full(PAIRS, True))


def drifting() -> wd.DriftingMDP:
    other = wd.MDP(SPACE, REWARDS[::-1], ROWS)
    return wd.DriftingMDP.blend([MODEL, other], wd.schedules.Linear(), horizon=T)


def agent(id_: str, steps: int = 4) -> Any:
    model = drifting()
    made = fresh(id_)
    wd.run(model, made, steps=steps)
    return made


def fresh(id_: str) -> Any:
    budgets = wd.envs.make("riverswim", horizon=T).budgets()
    options = {"window": 9} if id_ == "sw-ucrl" else {}
    return wd.agents.make(id_, SPACE, horizon=T, budgets=budgets, **options)


def observed(id_: str) -> Callable[..., None]:
    def observe(s: Any, a: Any, reward: Any, s_next: Any) -> None:
        made = agent(id_, 4)
        here = made.last_state
        made.act(here)
        made.observe(here if s == 0 else s, a, reward, s_next)
        made.act(made.last_state)

    return observe


def preloaded(id_: str) -> Callable[..., None]:
    def preload_all(pairs: Any, rewards: Any, afters: Any) -> None:
        made = fresh(id_)
        made.preload_all(pairs, rewards, afters)
        made.act(0)

    return preload_all


def replayed(id_: str) -> Callable[..., None]:
    def replay(**columns: Any) -> None:
        made = fresh(id_)
        made.replay(Steps(**columns))

    return replay


STEPS = {
    "states": np.array([0, 1, 2]), "learned": np.full(3, True), "pairs": np.array([1, 2, 4]),
    "rewards": np.array([0.5, 0.0, 1.0]), "afters": np.array([1, 2, 0]),
}  # fmt: skip


def ahead(made: Any) -> Callable[..., None]:
    def put(steps: Any) -> None:
        made.ahead = steps
        made.add(0, 0.5, 0)

    return put


def doors() -> Iterator[tuple[str, Door]]:
    """Yield the doors: a callable, and valid arguments by name."""
    sample = {"pair": 1, "reward": 0.5, "after": 1}
    for name, options in (
        ("all history", {}), ("of 3", {"width": 3}), ("that restarts", {"restarts": [3, 9]}),
    ):  # fmt: skip
        yield f"window {name}: add", (committed(window(**options)), sample)
        yield f"window {name}: make_room", (window(**options).make_room, {"samples": 3})
        yield f"window {name}: ahead", (ahead(window(**options)), {"steps": 1})
        yield (
            f"window {name}: restore",
            (restored(lambda o=options: Window(SPACE, **o)), window(**options).saved()),
        )
    yield "window", (Window, {"space": SPACE, "width": 3, "longest": 3, "restarts": [3]})
    yield "experts", (WindowExperts, {"space": SPACE, "windows": [4, T]})
    yield "experts: add", (experts().add, sample)
    yield "experts: make_room", (experts().make_room, {"steps": 3})
    yield "experts: ahead", (ahead(experts()), {"steps": 1})
    yield "experts: transitions", (experts().transitions, {"pair": 1})
    yield (
        "experts: restore",
        (restored(lambda: WindowExperts(SPACE, [4, T])), experts().saved()),
    )
    sets = {
        "space": SPACE, "reward_upper": REWARDS, "p_hat": ROWS, "radius": np.full(PAIRS, 0.3),
        "visited": np.full(PAIRS, True), "widening": np.zeros(PAIRS),
    }  # fmt: skip
    yield "region", (lambda **some: wd.evi(wd.ConfidenceRegion(**some)), sets)
    boxes = sets | {"radius": np.full((PAIRS, STATES), 0.1)}
    yield "boxes", (lambda **some: wd.evi(BoxRegion(**some)), boxes)
    yield "region: best_row", (region().best_row, {"pair": 1, "u": np.zeros(STATES)})
    yield "boxes: best_row", (BoxRegion(**boxes).best_row, {"pair": 1, "u": np.zeros(STATES)})
    yield "region: as_plan", (region().as_plan, {"u": np.zeros(STATES)})
    warm = {"warm_start": np.zeros(STATES), "max_sweeps": 9, "seed": 1, "epsilon": 0.1}
    yield "evi", (lambda **some: wd.evi(region(), **some), warm)
    numbers = {"n": np.arange(4), "horizon": T, "t": 3, "delta": 0.1}
    for kind in ("paper", "bernstein", "ucrl2"):
        radii = getattr(wd.Radii, kind)()
        yield f"radii {kind}", (lambda r=radii, **some: r.transition(space=SPACE, **some), numbers)
    yield "key", (wd.rng.key, {"seed": 3, "purpose": "x"})
    yield "stream", (wd.rng.stream, {"seed": 3, "purpose": "x", "t": 4})
    bank = {"arms": [3, 2], "alpha": [0.1, 0.1]}
    yield "bank", (lambda form=0, **some: make_bank(form, **some), bank | {"form": 0})
    for id_ in wd.adversarial.names():
        yield f"{id_}: update", (make(id_, 3, 9, quiet=True).update, {"arm": 1, "reward": 0.5})
        yield f"{id_}: choose", (make(id_, 3, 9, quiet=True).choose, {"u": 0.5})
        made = make(id_, 3, 9, quiet=True)
        yield f"{id_}: restore", (lambda m=made, **some: m.restore(some), made.saved())
        yield id_, (lambda i=id_, **some: make(i, quiet=True, **some), {"n_arms": 3, "n_rounds": 9})
    yield from of_models()
    yield from of_oracle()
    yield from of_agents()


def of_models() -> Iterator[tuple[str, Door]]:
    yield "mdp", (wd.MDP, {"space": SPACE, "rewards": REWARDS, "transitions": ROWS})
    model = drifting()
    several = {"first": 2, "last": 9}
    for name in ("budgets",):
        yield f"model: {name}", (getattr(model, name), several)
    yield "model: at", (model.at, {"t": 3})
    yield "model: diameters", (model.diameters, {"times": np.array([1, 9])})
    curve = model.optimal_gains()
    yield "gains: at", (curve.at, {"t": 3})
    yield "gains: sum", (lambda a, b: curve.sum(a, b), {"a": 2, "b": 9})
    yield "gains: evaluate", (curve.evaluate, {"times": np.array([1, 9])})
    yield "schedule", (wd.schedules.Steps([4, 9]).weights, {"t": [2, 3], "horizon": T})
    knots = wd.schedules.Knots((1, 9))
    yield "knots", (knots.weights, {"t": [2, 3], "horizon": T})
    for kind in (wd.schedules.Cosine(2), wd.schedules.RandomWalk(seed=1)):
        yield f"{kind}", (kind.weights, {"t": [2, 3], "horizon": T})
    run = {"seed": 1, "start_state": 1, "steps": 9, "record": 2}
    for id_ in ("random", "multi-scale", "ucrl2"):

        def play(i: str = id_, **some: Any) -> Any:
            return wd.run(model, wd.agents.make(i, SPACE, horizon=T), **some)

        yield f"run {id_}", (play, run)

    def step(action: Any, **some: Any) -> Any:
        return Simulator(model, **some).step(action)

    yield "simulator", (step, {"action": 0, "seed": 1, "state": 1, "t": 9})


def of_oracle() -> Iterator[tuple[str, Door]]:
    given = {"space": SPACE, "rewards": REWARDS, "transitions": ROWS}
    yield "gain", (gain.solve, given | {"warm": np.zeros(STATES, int)})
    yield "gains", (
        gain.solve_many,
        {
            "space": SPACE, "rewards": np.stack([REWARDS] * 2), "transitions": np.stack([ROWS] * 2),
            "warm": np.zeros(STATES, int),
        },
    )  # fmt: skip
    yield "certify", (certify, given | {"bias": np.zeros(STATES), "policy": np.zeros(STATES, int)})
    yield "lp", (gain_lp, given)
    yield "diameter", (diameter.diameter, {"space": SPACE, "transitions": ROWS})
    yield "hitting times", (
        diameter.hitting_times, {"space": SPACE, "transitions": ROWS, "target": 1}
    )  # fmt: skip
    cells = csr_array(ROWS)
    entries = {"rows": cells.indptr.astype(np.int64), "states": cells.indices.astype(np.int32)}
    for name in ("classes", "unreachable"):
        yield name, (getattr(diameter, name), {"space": SPACE} | entries)
    for kind in (np.array, csr_array):

        def best(r: Any, p: Any, k: Any = kind, **some: Any) -> Any:
            rows = k(p) if isinstance(p, np.ndarray) and p.dtype.kind in "iuf" else p
            return finite_horizon(SPACE, lambda t: (r, rows), **some)

        yield f"finite horizon {kind.__name__}", (
            best, {"r": REWARDS, "p": ROWS, "horizon": 5, "start": 2}
        )  # fmt: skip


AGENTS = ("ucrl2", "sw-ucrl", "psrl", "diff-q", "multi-scale", "ucb1", "sw-ucb", "exp3-s", "borl")


def of_agents() -> Iterator[tuple[str, Door]]:
    step = {"s": 0, "a": 0, "reward": 0.5, "s_next": 1}
    for id_ in AGENTS:
        yield f"{id_}: observe", (observed(id_), step)
        yield f"{id_}: act", (lambda s, i=id_: agent(i).act(s), {"s": 1})
        yield f"{id_}: replay", (replayed(id_), STEPS)
    past = {name: STEPS[name] for name in ("pairs", "rewards", "afters")}
    for id_ in ("sw-ucrl", "swucrl2-cw", "sw-psrl"):
        yield f"{id_}: preload_all", (preloaded(id_), past)
    yield "reference", (reference, step)
    yield "reference: exp3p", (wd.reference.Exp3P(3, 9).update, {"arm": 1, "reward": 0.5})


def reference(s: Any, a: Any, reward: Any, s_next: Any) -> None:
    made = wd.reference.SWUCRL2CW(SPACE, horizon=T, window=5, widening=0.1)
    made.act(0)
    made.observe(s, a, reward, s_next)
    made.act(s_next)


def hostile(valid: Any, numbers: list[Any]) -> list[Any]:
    """What is passed in the place of a valid argument."""
    if isinstance(valid, np.ndarray):
        return arrays(valid)
    if isinstance(valid, list):
        return [*numbers, *([x] for x in numbers), [1, -1], [3, 10**9]]
    if isinstance(valid, wd.StateActions):
        return [None, 3, wd.StateActions([1]), wd.StateActions([5] * 9)]
    return numbers


def outcome(function: Callable[..., Any], given: dict[str, Any]) -> str:
    """Make a call in a child; return how it ended: "", or what is no typed error."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ear)
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
            os.write(mouth, _said(function, given).encode()[:500])
        finally:
            os._exit(0)
    os.close(mouth)
    said = b""
    while part := os.read(ear, 1 << 12):
        said += part
    os.close(ear)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"died of {signal.Signals(os.WTERMSIG(status)).name}"
    return said.decode(errors="replace")


def _said(function: Callable[..., Any], given: dict[str, Any]) -> str:
    """Return what tells that an index left its array; "" for a result or another error."""
    try:
        function(**given)
    except IndexError as err:
        return f"IndexError: {err}" if "for axis" not in str(err) else ""
    except Exception:
        return ""
    return ""


def findings(wanted: list[str], numbers: list[Any]) -> Iterator[dict[str, str]]:
    """Yield the calls that died, hung, or read beyond an array."""
    for name, (function, valid) in doors():
        if wanted and not any(one in name for one in wanted):
            continue
        for _ in range(2):  # the second time nothing is interpreted: its children find it compiled
            function(**valid)
        for field, value in valid.items():
            for odd in hostile(value, numbers):
                said = outcome(function, valid | {field: odd})
                if said and not (name in LONG and "ALRM" in said):
                    shown = " ".join(repr(odd).split())[:60]
                    yield {"door": name, "argument": field, "value": shown, "said": said}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = 0
    for finding in findings(sys.argv[1:], NUMBERS):
        found += 1
        print(json.dumps(finding), flush=True)
    sys.exit(found > 0)
