"""Structure: next state and reward written down, so that only laws are left to learn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windage.errors import StateError, WindageError
from windage.spaces import StateActions, as_space
from windage.structure.tables import (
    Joint,
    as_reward,
    as_state,
    check_seen,
    check_uses,
    products,
    range_of,
)
from windage.structure.variables import (
    SEEN,
    Exogenous,
    Label,
    Law,
    Outcome,
    as_variables,
    ends,
    group_pairs,
    is_label,
    listed,
    many,
)
from windage.validation import freeze, shown

if TYPE_CHECKING:
    from windage.models import MDP, DriftingMDP, Noise
    from windage.structure.worlds import PushForward

__all__ = ["Structure"]

Ints: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]

_FORMAT = 1


class Structure:
    """Next state and reward as functions of state, action and the outcomes of variables.

    Parameters
    ----------
    space
        States and actions.
    variables
        The exogenous variables. Given the pair, their outcomes are independent.
    next_state
        `next_state(s, a, *outcomes)`, one outcome a variable, in their order; None in the place of
        a variable that the pair does not involve. It may take arrays of outcomes, or plain ones.
    reward
        `reward(s, a, *outcomes)`, any finite number; None if rewards are to be learned.
    reward_range
        (lowest, highest) reward. If not said: of the table, or (0, 1) if rewards are learned.

    Attributes
    ----------
    laws
        (index of the variable, label) of every law; the label is None if there is no group.
    law_sizes
        The number of outcomes of every law.
    law_of
        `law_of[pair, variable]`, the law that acts; -1 where the pair does not involve it.
    first
        `first[pair]`, where the joint outcomes of a pair start in `next_state` and `reward`. They
        are row-major over the variables that the pair involves: the last one goes fastest.
    next_state, reward
        The tables; `reward` is None if rewards are learned.
    seen
        What a step shows of each variable, as a code.

    Examples
    --------
    A shelf for two pieces, empty in the end if the demand is larger than what is on it:

    >>> space = StateActions([3, 2, 1])
    >>> demand = Exogenous("demand", range(3))
    >>> known = Structure(
    ...     space,
    ...     [demand],
    ...     next_state=lambda s, a, d: max(s + a - d, 0),
    ...     reward=lambda s, a, d: 5 * min(s + a, d) - 2 * a,
    ... )
    >>> print(known.describe())
    3 states, 6 state-action pairs.
    Known: the next state and the reward, from -4 to 10, of every state, action and outcome.
    Learned: 1 law.
      demand: 3 outcomes 0..2, one law for all pairs; seen at every step.
    That is 2 free numbers, where a learner of every transition row has 3 x 2 x 3 = 18.
    """

    space: StateActions
    variables: tuple[Exogenous, ...]
    laws: tuple[Law, ...]
    law_sizes: Ints
    law_of: NDArray[np.int32]
    first: Ints
    next_state: NDArray[np.int32]
    reward: Reals | None
    reward_range: tuple[float, float]
    seen: NDArray[np.int8]

    def __init__(
        self,
        space: StateActions,
        variables: Sequence[Exogenous],
        *,
        next_state: Callable[..., Any],
        reward: Callable[..., Any] | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        found = as_variables(variables)
        laws, law_of = group_pairs(as_space(space), found)
        joint = Joint(space, found, law_of)
        states = joint.tabulate(next_state, "next_state", as_state(space.n_states))
        rewards = None
        if reward is not None:
            rewards = joint.tabulate(reward, "reward", as_reward).astype(np.float64)
        self._set(joint, laws, states.astype(np.int32), rewards, reward_range)

    def _set(
        self,
        joint: Joint,
        laws: tuple[Law, ...],
        states: NDArray[np.int32],
        rewards: Reals | None,
        reward_range: object,
    ) -> None:
        codes = np.array([SEEN.index(v.seen) for v in joint.variables], dtype=np.int8)
        sizes = np.array([len(joint.variables[v].outcomes) for v, _ in laws], dtype=np.int64)
        low_high = range_of(joint, rewards, reward_range)
        check_uses(joint, states, rewards)
        check_seen(joint, laws, codes, states, rewards)
        freeze(sizes, joint.law_of, joint.first, states, codes)
        if rewards is not None:
            freeze(rewards)
        self.__dict__.update(
            space=joint.space,
            variables=joint.variables,
            laws=laws,
            law_sizes=sizes,
            law_of=joint.law_of,
            first=joint.first,
            next_state=states,
            reward=rewards,
            reward_range=low_high,
            seen=codes,
        )

    def joint_outcomes(self, pair: int) -> Iterator[tuple[Outcome | None, ...]]:
        """Yield the joint outcomes of a pair in the order of the tables, None for what it lacks."""
        return products(self.variables, self.law_of[pair])

    def model(self, laws: Mapping[str, Any], rewards: Any = None) -> MDP:
        """Return the model in which the variables have these laws.

        Its mean rewards are in the units of the structure's rewards.

        Parameters
        ----------
        laws
            `laws[name]`, one probability an outcome; {label: law} of a variable that is grouped.
        rewards
            The mean reward of every state-action pair, if the structure has no rewards.

        Examples
        --------
        >>> demand = Exogenous("demand", [0, 1])
        >>> known = Structure(
        ...     StateActions([2, 1]),
        ...     [demand],
        ...     next_state=lambda s, a, d: max(s + a - d, 0),
        ...     reward=lambda s, a, d: 5 * min(s + a, d) - 2 * a,
        ... )
        >>> known.model({"demand": [0.25, 0.75]}).rewards
        array([0.  , 1.75, 3.75])
        """
        from windage.structure.worlds import model

        return model(self, laws, rewards)

    def drifting(
        self,
        laws: Mapping[str, Any],
        *,
        horizon: int,
        rewards: Any = None,
        noise: Noise | str | None = None,
    ) -> DriftingMDP:
        """Return the drifting model of these laws: outcomes are drawn, and the rest follows.

        A run in it draws the outcomes of the variables; next state and reward are those of the
        structure, in its units, and the outcomes are shown to the agent.

        Parameters
        ----------
        laws
            `laws[name]`: a law that stays, `[outcome]`; a law for every t, `[t, outcome]`; or
            (base laws, schedule), as for `DriftingMDP.blend`, where a list of times in place of the
            schedule stands for knots. {label: ...} of a variable that is grouped.
        horizon
            T, the number of steps.
        rewards
            Mean rewards, if the structure has none: `[pair]`, `[t, pair]` or (bases, schedule).
        noise
            The law of rewards around them.

        Examples
        --------
        >>> import windage as wd
        >>> demand = Exogenous("demand", [0, 1])
        >>> known = Structure(
        ...     StateActions([2, 1]),
        ...     [demand],
        ...     next_state=lambda s, a, d: max(s + a - d, 0),
        ...     reward=lambda s, a, d: 5 * min(s + a, d) - 2 * a,
        ... )
        >>> season = ([[0.75, 0.25], [0.25, 0.75]], wd.schedules.Cosine(cycles=2))
        >>> shop = known.drifting({"demand": season}, horizon=1000)
        >>> agent = wd.MultiScale(known.space, horizon=1000, structure=known)
        >>> wd.run(shop, agent).rewards[:8]
        array([-2.,  0.,  0.,  0.,  5., -2.,  5.,  3.])
        """
        from windage.structure.worlds import drifting

        return drifting(self, laws, horizon, rewards, noise)

    @functools.cached_property
    def push_forward(self) -> PushForward:
        """What turns laws into rows and mean rewards, made once."""
        from windage.structure.worlds import PushForward

        return PushForward(self)

    def describe(self) -> str:
        """Return in words what is known, what is learned, and how many numbers that is."""
        space = self.space
        rewards = "the next state of every state, action and outcome; rewards are learned."
        if self.reward is not None:
            low, high = self.reward.min() + 0.0, self.reward.max() + 0.0
            rewards = (
                f"the next state and the reward, from {low:g} to {high:g}, "
                "of every state, action and outcome."
            )
        lines = [
            f"{many(space.n_states, 'state')}, {many(space.n_pairs, 'state-action pair')}.",
            f"Known: {rewards}",
            f"Learned: {many(len(self.laws), 'law')}.",
        ]
        lines += [f"  {self._about(f)}" for f in range(len(self.variables))]
        free = int((self.law_sizes - 1).sum())
        extra = "" if self.reward is not None else f" and {space.n_pairs:,} mean rewards"
        lines.append(
            f"That is {many(free, 'free number')}{extra}, where a learner of every transition row "
            f"has {space.n_states:,} x {space.mean_actions:.3g} x {space.n_states:,} = "
            f"{space.n_pairs * space.n_states:,}."
        )
        return "\n".join(lines)

    def _about(self, f: int) -> str:
        """Return one line on a variable: outcomes, laws, pairs, what is seen of it."""
        variable = self.variables[f]
        labels = [label for v, label in self.laws if v == f]
        involved = int((self.law_of[:, f] >= 0).sum())
        what = "one law"
        if labels != [None]:
            what = f"{many(len(labels), 'law')} ({listed(labels)})"
        where = (
            "for all pairs"
            if involved == self.space.n_pairs
            else f"for {many(involved, 'pair')} of {self.space.n_pairs:,}"
        )
        seen = {
            "always": "seen at every step",
            "involved": "seen where it is involved",
            "interval": "an interval of it is seen",
            "inferred": "inferred from next state and reward",
        }[variable.seen]
        size = len(variable.outcomes)
        return (
            f"{variable.name}: {size} outcomes {ends(variable.outcomes)}, {what} {where}; {seen}."
        )

    def same(self, other: object) -> bool:
        """Return whether two structures have the same space, variables and tables."""
        if not isinstance(other, Structure):
            return False
        tables = ("law_of", "next_state", "reward")
        return (
            self.space == other.space
            and self.laws == other.laws
            and self.reward_range == other.reward_range
            and [(v.name, v.outcomes, v.seen) for v in self.variables]
            == [(v.name, v.outcomes, v.seen) for v in other.variables]
            and all(_equal(getattr(self, name), getattr(other, name)) for name in tables)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the structure as plain data that JSON can hold; `from_dict` gives it back."""
        space = self.space
        names = space.action_names
        return {
            "windage_structure": _FORMAT,
            "actions": space.counts.tolist(),
            "state_names": None if space.state_names is None else list(space.state_names),
            "action_names": None if names is None else [list(of_state) for of_state in names],
            "variables": [
                {"name": v.name, "outcomes": list(v.outcomes), "seen": v.seen}
                for v in self.variables
            ],
            "laws": [[v, _unpacked(label)] for v, label in self.laws],
            "law_of": self.law_of.tolist(),
            "next_state": self.next_state.tolist(),
            "reward": None if self.reward is None else self.reward.tolist(),
            "reward_range": list(self.reward_range),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Structure:
        """Return the structure that `to_dict` wrote, or say what is wrong with the data."""
        try:
            version = data["windage_structure"]
        except (KeyError, TypeError):
            raise StateError(
                f"{shown(data)} is no structure",
                field="structure",
                fix="pass what Structure.to_dict returned",
            ) from None
        if version != _FORMAT:
            raise StateError(
                f"format {shown(version)}, this version reads {_FORMAT}",
                field="structure",
                fix="use the version of windage that wrote it",
            )
        try:
            return cls._restored(data)
        except (WindageError, KeyError, IndexError, TypeError, ValueError, OverflowError) as err:
            raise StateError(
                f"is damaged ({str(err) or type(err).__name__})",
                field="structure",
                fix="pass what Structure.to_dict returned, unchanged",
            ) from None

    @classmethod
    def _restored(cls, data: Mapping[str, Any]) -> Structure:
        space = StateActions(data["actions"], data["state_names"], data["action_names"])
        variables = as_variables([Exogenous(**variable) for variable in data["variables"]])
        laws = tuple((int(v), _packed(label)) for v, label in data["laws"])
        law_of = np.array(data["law_of"], dtype=np.int32)
        _check_laws(space, variables, laws, law_of)
        joint = Joint(space, variables, law_of)
        to_state = as_state(space.n_states)
        states = np.array([to_state(s) for s in data["next_state"]], dtype=np.int32)
        rewards = data["reward"]
        if rewards is not None:
            rewards = np.array([as_reward(r) for r in rewards], dtype=np.float64)
        for table in (states, states if rewards is None else rewards):
            if table.size != joint.first[-1]:
                raise ValueError(f"{table.size} entries for {joint.first[-1]} joint outcomes")
        structure = cls.__new__(cls)
        structure._set(joint, laws, states, rewards, tuple(data["reward_range"]))
        return structure

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Structure cannot be changed: {name} is fixed; make a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes as tables: functions stay behind."""
        return type(self).from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        names = ", ".join(repr(v.name) for v in self.variables)
        return f"Structure({self.space!r}, [{names}], {many(len(self.laws), 'law')})"


def _check_laws(
    space: StateActions,
    variables: tuple[Exogenous, ...],
    laws: tuple[Law, ...],
    law_of: NDArray[np.int32],
) -> None:
    """Refuse restored laws that do not fit together."""
    if law_of.shape != (space.n_pairs, len(variables)):
        raise ValueError(f"law_of has shape {law_of.shape}")
    owner = np.array([v for v, _ in laws])
    if len(set(laws)) < len(laws) or (np.diff(owner, prepend=0) < 0).any():
        raise ValueError("laws are not listed variable by variable, each once")
    for f in range(len(variables)):
        used = law_of[:, f][law_of[:, f] != -1]
        if not np.array_equal(np.unique(used), np.flatnonzero(owner == f)) or not used.size:
            raise ValueError(f"law_of does not use the laws of {variables[f].name}")
    if not all(label is None or is_label(label) for _, label in laws):
        raise ValueError("a label is neither a word nor a number")


def _unpacked(label: Label | None) -> Any:
    return [_unpacked(part) for part in label] if isinstance(label, tuple) else label


def _packed(label: Any) -> Label | None:
    return tuple(_packed(part) for part in label) if isinstance(label, (list, tuple)) else label


def _equal(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    return one is other is None or (
        one is not None and other is not None and np.array_equal(one, other)
    )
