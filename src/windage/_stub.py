"""Public names of a package, read from its stub.

A public name stands in one place, a line of `__init__.pyi`, which type checkers read as it is:
`from windage.spaces import StateActions as StateActions` (the stubs of Scientific Python's SPEC 1).
"""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["public_names"]


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
