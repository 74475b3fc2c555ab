"""Which agents of two studies belong together: those that are configured alike, else namesakes.

Labels are names that people give. The same agent in the same environment may be called otherwise in
a second study, and a name may stand for another agent there. So what is configured alike, to the
last number, is paired first, whatever it is called; what is left is paired by its names, and it is
said in what the two differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from windage.study.kinds import Player, World, hash_of
from windage.study.manifest import Manifest
from windage.validation import shown

__all__ = ["Difference", "Partners", "Place", "found_in", "pair"]

_NONE = object()


@dataclass(frozen=True)
class Place:
    """One agent in one environment at one horizon, as a study names them."""

    environment: str
    horizon: int
    agent: str

    def __str__(self) -> str:
        return f"{self.agent} on {self.environment}, T = {self.horizon:,}"


@dataclass(frozen=True)
class Difference:
    """Something that was set otherwise: `widening`, `environment.states`, the source of a class."""

    name: str
    first: str
    second: str


@dataclass(frozen=True)
class Partners:
    """Two places that are compared.

    Attributes
    ----------
    first, second
        What they are called in either study.
    differences
        In what they are configured otherwise; nothing if they were paired by what they are.
    """

    first: Place
    second: Place
    differences: tuple[Difference, ...]


class _Made(msgspec.Struct, frozen=True):
    """All that determines the runs of a place, the seed apart."""

    world: World
    player: Player

    @property
    def key(self) -> str:
        player = self.player
        return hash_of(self.world.key, player.id, player.parameters, player.digest, player.told)


def found_in(manifest: Manifest) -> dict[Place, _Made]:
    """Return the places of a study in its order, with what is there."""
    return {
        Place(one.environment, one.horizon, one.agent): _Made(
            manifest.worlds[one.world], manifest.players[one.player]
        )
        for one in manifest.runs
    }


def pair(first: Mapping[Place, _Made], second: Mapping[Place, _Made]) -> list[Partners]:
    """Return the places of two studies that belong together, in the order of the first.

    Nobody has two partners. Of several that are configured alike a namesake is taken first.
    """
    free: dict[str, list[Place]] = {}
    for place, made in second.items():
        free.setdefault(made.key, []).append(place)
    chosen: dict[Place, Place] = {}
    for mine in sorted(first, key=lambda place: place not in second):
        alike = free.get(first[mine].key, [])
        if alike:
            chosen[mine] = mine if mine in alike else alike[0]
            alike.remove(chosen[mine])
    taken = set(chosen.values())
    for mine in first:
        if mine not in chosen and mine in second and mine not in taken:
            chosen[mine] = mine
    return [
        Partners(mine, chosen[mine], tuple(_differences(first[mine], second[chosen[mine]])))
        for mine in first
        if mine in chosen
    ]


def _differences(first: _Made, second: _Made) -> Iterator[Difference]:
    """Yield in what two places differ, the environment first."""
    for prefix, one, other in (
        ("environment.", first.world, second.world),
        ("", first.player, second.player),
    ):
        if one.id != other.id:
            yield Difference(f"{prefix}id", one.id, other.id)
        for name in dict.fromkeys([*one.parameters, *other.parameters]):
            values = [made.parameters.get(name, _NONE) for made in (one, other)]
            if values[0] != values[1]:
                yield Difference(f"{prefix}{name}", *map(_text, values))
        if one.digest != other.digest:
            yield Difference(f"{prefix}source", one.digest or "-", other.digest or "-")
    if first.player.told != second.player.told:
        yield Difference("told", *(_told(made.player) for made in (first, second)))


def _told(player: Player) -> str:
    if player.told is None:
        return "what its kind is told"
    return " and ".join(player.told) or "nothing"


def _text(value: Any) -> str:
    """Return a parameter as a line of text; "-" if there is none."""
    if value is _NONE or value is None:
        return "-"
    return value if isinstance(value, str) else shown(value)
