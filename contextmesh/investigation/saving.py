"""Files that appear complete or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from contextmesh.errors import UsageError

ANYBODY = 0o666  # what `open` asks for; the process's umask takes its part away
ANYTHING = 0o777  # a file's permissions, without what would lend them to whoever runs it


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file to write, which takes its place only once all is written and on the disk.

    Who may read it is what it would be with `open`: as the file that it replaces, else as the process's umask says.

    Raises:
        UsageError: the folder takes no file.
    """
    temporary = path.with_name(f".contextmesh-{secrets.token_hex(8)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, ANYBODY)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}; save it elsewhere"
        raise UsageError(msg) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            if path.exists():
                os.fchmod(handle, path.stat().st_mode & ANYTHING)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
