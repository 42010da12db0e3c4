"""Saving a view: a file that appears complete or not at all."""

from pathlib import Path

from contextmesh.errors import UsageError
from contextmesh.investigation.saving import whole_file


def write_whole(path: Path, text: str) -> None:
    """Write a text to a file that appears complete or not at all."""
    path = checked(path)
    with whole_file(path) as file:
        file.write(text)


def checked(path: Path) -> Path:
    """Return where a file is to be, links followed.

    Raises:
        UsageError: nothing can be written there; a device or a pipe would have to be replaced by a file.
    """
    try:
        path = path.resolve()
        has_folder, is_free = path.parent.is_dir(), path.is_file() or not path.exists()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        msg = f"{str(path)!r} cannot be a file's name: {why}; choose another one"
        raise UsageError(msg) from None
    if not has_folder or path.is_dir():
        msg = f"{path} is a folder, or lies in one that does not exist; expected a file's name in a folder that does"
        raise UsageError(msg)
    if not is_free:
        msg = f"{path} is a device or a pipe, and no file; choose another name"
        raise UsageError(msg)
    return path
