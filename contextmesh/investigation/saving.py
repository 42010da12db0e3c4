"""Files that appear complete or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from contextmesh.errors import UsageError


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file to write, which takes its place only once all is written and on the disk.

    Raises:
        UsageError: the folder takes no file.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}; save it elsewhere"
        raise UsageError(msg) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
