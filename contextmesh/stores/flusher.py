"""Flush an embedded server's append-only file to the disk, so that a power cut takes a second of writes at most."""

import os
import threading
from pathlib import Path

# With `appendfsync everysec` a server whose disk is slow answers before it has handed the append-only file to the
# operating system, for up to two seconds, so that a kill -9 loses acknowledged writes (8,600 of 77,000 when each flush
# took 1.5 s). With `no` it hands every write over before it answers, and the flusher below does the flushing.
APPENDFSYNC = {"everysec": "no", "always": "always"}
FLUSH_EVERY_S = 1.0


class Flusher(threading.Thread):
    """Flush the append-only file to the disk once a second, while a lease is held."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name=f"flush {folder}", daemon=True)
        self.problem = ""
        self._folder = folder
        self._flushed: dict[Path, int] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        """Flush what has changed, until stopped."""
        while not self._stopping.wait(FLUSH_EVERY_S):
            self.flush()

    def flush(self) -> None:
        """Flush each file that has grown since the last time."""
        for path in sorted(self._folder.glob("*.aof")):
            try:
                changed = path.stat().st_mtime_ns
                if self._flushed.get(path) != changed:
                    file = os.open(path, os.O_RDONLY)
                    try:
                        os.fsync(file)
                    finally:
                        os.close(file)
                    self._flushed[path] = changed
            except FileNotFoundError:
                continue  # a rewrite has just replaced it
            except OSError as error:
                self.problem = (
                    f"{path} could not be flushed to the disk: {error.strerror}; a power cut would lose writes"
                )

    def stop(self) -> None:
        """Stop, once a flush that is under way has ended."""
        self._stopping.set()
        if self.is_alive():
            self.join()
