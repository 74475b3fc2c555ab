"""Public names of a package, read from its stub.

A public name stands in one place, a line of `__init__.pyi`, which type checkers read as it is:
`from windage.spaces import StateActions as StateActions` (the stubs of Scientific Python's SPEC 1).
"""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["public_ids", "public_names"]


def public_names(package: str, file: str) -> dict[str, str]:
    """Return the names that the stub beside `file` imports, and where `pkgutil` finds each.

    >>> import windage
    >>> public_names("windage", windage.__file__)["StateActions"]
    'windage.spaces:StateActions'
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    return {
        alias.name: f"{line.module}{'.' if line.module == package else ':'}{alias.name}"
        for line in imports
        for alias in line.names
    }


def public_ids(file: str) -> dict[str, str]:
    """Return the ids that stand as comments behind names in the stub beside `file`, and the homes.

    >>> import windage.agents
    >>> public_ids(windage.agents.__file__)["ucrl2"]
    'windage.agents.optimistic.ucrl2:UCRL2'
    """
    text = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    lines = text.splitlines()
    return {
        lines[alias.lineno - 1].partition("  # ")[2]: f"{line.module}:{alias.name}"
        for line in ast.parse(text).body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
        if "  # " in lines[alias.lineno - 1]
    }
