"""The oracle on the command line: whether to ask it, the agents beside it, its rows and picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windage.cli.tables import number
from windage.errors import NotConverged

if TYPE_CHECKING:
    from windage.models import DriftingMDP
    from windage.report import Truth
    from windage.simulate import Run

__all__ = [
    "ask",
    "oracle_rows",
    "oracle_target",
    "reason_to_skip",
    "reason_to_skip_myopic",
    "run_agent",
]

_MOST_STATES = 200  # up to here models are solved in compiled loops
_MOST_STEPS = 1_000_000
_MOST_WORK = 120_000  # (S + 8) T of drift that is no blend: some 20 seconds
_MOST_MYOPIC_STEPS = 100_000  # it looks at the model of every t
_RECORDED = 1_000_000  # steps of a path that a picture is made of
_DIAMETERS = ("diameter", "max_diameter")  # the fields of errors that speak of these
_MORE_TOLERANCE = "in Python, model.max_diameter(tol) takes a larger tol"


def reason_to_skip(model: DriftingMDP) -> str:
    """Return why asking the oracle would take long; nothing if it would not."""
    S, T = model.space.n_states, model.horizon
    if S > _MOST_STATES:
        return f"{S:,} states are more than {_MOST_STATES}"
    if T > _MOST_STEPS:
        return f"{T:,} steps are more than {_MOST_STEPS:,}"
    if not _is_blend(model) and (S + 8) * T > _MOST_WORK:
        return f"this drift is no blend, all {T:,} models would be solved one by one"
    return ""


def reason_to_skip_myopic(model: DriftingMDP) -> str:
    """Return why the myopic agent would take long; nothing if it would not."""
    if model.horizon <= _MOST_MYOPIC_STEPS:
        return ""
    return f"{model.horizon:,} steps are more than {_MOST_MYOPIC_STEPS:,}"


def run_agent(name: str, model: DriftingMDP, seed: int) -> Run:
    """Let an agent act in a model, recorded finely enough for a picture."""
    import windage as wd

    told: dict[str, Any] = {"problem": model} if name == "myopic" else {}
    agent = wd.agents.make(name, model.space, horizon=model.horizon, seed=seed, **told)
    every = -(-model.horizon // _RECORDED)
    return wd.run(model, agent, seed=seed, record="full" if every == 1 else every)


def ask(
    model: DriftingMDP, progress: Callable[[str], None], remarks: list[str] | None = None
) -> Truth:
    """Return what is true of the model; what does not converge says how to go on without it.

    With `remarks` to add to, diameters too long for floating point do not keep back the rest.
    """
    from windage.report import truth_of

    try:
        return truth_of(model, progress=progress)
    except NotConverged as err:
        if remarks is not None and err.field in _DIAMETERS:
            remarks.append(f"D: left out, {err.problem}; {_MORE_TOLERANCE}")
            return _without_diameters(model, progress)
        fix = f"{err.fix}, or leave the oracle out with --no-oracle"
        raise NotConverged(err.problem, field=err.field, where=err.where, fix=fix) from None


def _without_diameters(model: DriftingMDP, progress: Callable[[str], None]) -> Truth:
    """Return what is true of a model but for its diameters, which are not known."""
    import numpy as np

    from windage.models.diameters import DiameterBound
    from windage.report import Truth
    from windage.report.truth import policy_course

    progress("the optimal gain of every t, without diameters")
    gains = model.optimal_gains()
    none, unknown = np.empty(0), DiameterBound(math.nan, math.inf, 1, 0)
    times = none.astype(np.int64)
    return Truth(gains, gains.sum(), times, none, unknown, [], policy_course(model))


def oracle_rows(truth: Truth, runs: dict[str, Run]) -> list[list[str]]:
    """Return what the table says of optimal gains, diameters and policies, and of the agents."""
    from windage.report import share
    from windage.report.figures.style import upwards

    largest = truth.largest
    low, high = number(largest.lower), number(largest.upper)
    bracket = f"{low if low == high else f'{low} to {high}'} at t={largest.t:,}"
    rows = [
        ["mean rho*", f"{number(truth.mean_gain)} +- {upwards(truth.gains.error)}", ""],
        ["D max", bracket if largest.lower == largest.lower else "not known", ""],
        ["policy changes", f"{truth.policies.changes:,} seen", ""],
    ]
    for name, run in runs.items():
        part = share(run, truth)
        earned = f"{part:.1%} of the sum of rho*" if part == part else "nothing is to be earned"
        rows.append([f"{name} earns", earned, ""])
    return rows


def oracle_target(target: Path) -> Path:
    """Return where the oracle's picture goes, beside the other.

    >>> oracle_target(Path("out/river.png")).as_posix()
    'out/river-oracle.png'
    """
    return target.with_name(f"{target.stem}-oracle{target.suffix}")


def _is_blend(model: DriftingMDP) -> bool:
    """Return whether the cost of the oracle does not grow with T."""
    from windage.models import Blend

    source = model.source
    if not isinstance(source, Blend):
        return False
    schedules = (source.rewards.schedule, source.kernels.schedule)
    return all(schedule.stops(model.horizon) is not None for schedule in schedules)
