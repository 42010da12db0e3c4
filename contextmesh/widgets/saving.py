"""Saving a view: a file that appears complete or not at all."""

import os
import tempfile
from pathlib import Path

from contextmesh.errors import UsageError


def write_whole(path: Path, text: str) -> None:
    """Write a text to a file that appears complete or not at all."""
    path = path.resolve()
    if not path.parent.is_dir() or path.is_dir():
        msg = f"{path} is a folder, or lies in one that does not exist; expected a file's name in a folder that does"
        raise UsageError(msg)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}; save it elsewhere"
        raise UsageError(msg) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
