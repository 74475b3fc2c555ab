"""The names Gymnasium knows our environments by, registered in whatever order things are imported.

`gymnasium.make("windage:windage/RiverSwim-v0")` imports `windage` and then looks the id up. Where
`windage` came first that import does nothing more, so the ids must be there by then: they are
registered when Gymnasium is loaded, be that before or after `windage`. Nothing heavy is imported.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["IDS", "register", "register_when_loaded"]

IDS = {
    "windage/Bandit-v0": "bandit-v0",
    "windage/Bidding-v0": "bidding-v0",
    "windage/Epidemic-v0": "epidemic-v0",
    "windage/Inventory-v0": "inventory-v0",
    "windage/Peril-v0": "peril-v0",
    "windage/Queue-v0": "queue-v0",
    "windage/RandomDrift-v0": "random-drift-v0",
    "windage/Replacement-v0": "replacement-v0",
    "windage/Ride-v0": "ride-v0",
    "windage/RiverSwim-v0": "riverswim-v0",
    "windage/TwoStateCosine-v0": "two-state-cosine-v0",
}
"""Gymnasium's id of each of our environments; a test compares them with `windage.envs`."""


def register() -> None:
    """Tell Gymnasium about every environment it does not know yet."""
    from gymnasium.envs import registration

    for name, ours in IDS.items():
        if name not in registration.registry:
            registration.register(name, "windage.gym.env:make_named", kwargs={"name": ours})


def register_when_loaded() -> None:
    """Register the ids now if Gymnasium is loaded, else as soon as it is."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


class _Watch(MetaPathFinder):
    """Waits for the import of Gymnasium, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Hand Gymnasium to Python's own finders, and have the ids registered after it."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(name)
        if found is not None and found.loader is not None:
            found.loader = _Registering(found.loader)
        return found


class _Registering(Loader):
    """A loader that registers the ids when the module has been loaded."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the loader of the module."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module as if nobody had waited for it, then register."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        register()
