"""What the verbs about models share: reading a file, and the rows of a model's table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from windage.cli.tables import number, print_table

if TYPE_CHECKING:
    from windage.envs import Facts
    from windage.models import Budgets, Disconnection, DriftingMDP
    from windage.spaces import StateActions

__all__ = [
    "NO_GUARANTEE",
    "action_range",
    "apart",
    "communication",
    "file_named",
    "load",
    "print_model",
    "reason_to_skip_steps",
    "sizes",
    "stretch",
    "variation",
]

NO_GUARANTEE = "agents may still run, but no guarantee speaks of such a model"

_MOST_STEPS = 2_000_000  # looked at one by one: some three seconds
_STRETCHES = 5


def file_named(env: str) -> Path | None:
    """Return the path of a model's file; None for the id of an environment, without . and /."""
    return Path(env) if "." in env or "/" in env else None


def load(file: Path) -> DriftingMDP:
    """Read a model; an error names the file."""
    import windage as wd

    try:
        return wd.load(file)
    except wd.WindageError as err:
        if err.field.startswith(str(file)):
            raise
        field = f"{file}: {err.field}" if err.field else str(file)
        raise type(err)(err.problem, field=field, where=err.where, fix=err.fix) from None


def sizes(model: DriftingMDP) -> list[list[str]]:
    """Return the rows of states, actions, steps and noise."""
    space = model.space
    return [
        ["states", number(space.n_states), ""],
        ["actions a state", action_range(space.counts.tolist()), ""],
        ["pairs", number(space.n_pairs), ""],
        ["T", number(model.horizon), ""],
        ["noise", repr(model.noise).removeprefix("Noise.").removesuffix("()"), ""],
    ]


def reason_to_skip_steps(model: DriftingMDP) -> str:
    """Return why looking at every single step would take long; nothing if it would not."""
    if model.horizon <= _MOST_STEPS:
        return ""
    return f"{model.horizon:,} steps are more than {_MOST_STEPS:,}"


def variation(budgets: Budgets, facts: Facts | None, *, each_step: bool = True) -> list[list[str]]:
    """Return the rows of the budgets, beside their closed forms.

    Changes and largest steps are found by looking at each step, unless that is not wanted.
    """
    known = facts or (None, None, None)
    rows = [
        ["B_r", number(budgets.reward), number(known[0])],
        ["B_p", number(budgets.transition), number(known[1])],
    ]
    if each_step:
        reward_step, transition_step = budgets.largest_steps
        rows += [
            ["changes", number(budgets.changes), ""],
            ["largest step of r", number(reward_step), ""],
            ["largest step of p", number(transition_step), ""],
        ]
    if facts:
        rows.append(["D at most", "", number(known[2])])
    return rows


def communication(model: DriftingMDP) -> str:
    """Say when the model communicates."""
    holes = model.disconnections()
    if not holes:
        return "at every t"
    more = f", and in {len(holes) - 1} more stretches" if len(holes) > 1 else ""
    return f"not {stretch(holes[0], model.space)}{more}"


def stretch(hole: Disconnection, space: StateActions) -> str:
    """Say when and between which states there is no way."""
    when = f"t={hole.first}" + (f"..{hole.last}" if hole.last > hole.first else "")
    origin, target = space.describe_state(hole.origin), space.describe_state(hole.target)
    return f"at {when}: no policy leads from {origin} to {target}"


def apart(holes: list[Disconnection], space: StateActions) -> str:
    """Say when a model does not communicate, and between which states."""
    stretches = [stretch(hole, space) for hole in holes[:_STRETCHES]]
    if len(holes) == 1:
        return f"does not communicate {stretches[0]}"
    if len(holes) > _STRETCHES:
        stretches.append(f"and {len(holes) - _STRETCHES} more")
    return f"does not communicate in {len(holes)} stretches of time, {'; '.join(stretches)}"


def action_range(actions: list[int]) -> str:
    """Return the least and the largest number of actions, or the one there is."""
    low, high = min(actions), max(actions)
    return str(low) if low == high else f"{low}-{high}"


def print_model(rows: list[list[str]], *, closed_forms: bool) -> None:
    """Print the rows of a model's table, with or without the column of closed forms."""
    columns = 3 if closed_forms else 2
    print_table(["", "computed", "closed form"][:columns], [row[:columns] for row in rows])
