"""Where a command may write: asked before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path

from windage.errors import InputError

__all__ = ["require_place"]


def require_place(target: Path) -> None:
    """Refuse a picture that could not be written, or for which a folder of the root were made."""
    folders = target.absolute().parents
    folder = next(one for one in folders if one.exists())
    why = (
        "it is a folder" if target.is_dir()
        else "its folder is a file" if not folder.is_dir()
        else "its folder is read-only" if not os.access(folder, os.W_OK)
        else f"there is no folder {folders[-2]}" if len(folders) > 1 and folder == folders[-1]
        else ""
    )  # fmt: skip
    if why:
        raise InputError(
            f"cannot be written ({why})",
            field=str(target),
            fix="name a file in a folder you may write to",
        )
