"""The SQLite file that a log and its branches live in: how it is opened, read, written and closed.

How it is kept, and why:

- A rollback journal, no write-ahead log. Between two commits the file alone is the whole log, so that a copy of it
  carries everything; it opens from a read-only folder and on a network drive; and SQLite itself refuses to write to a
  file that was moved away. The price is a slower commit: writers wait for readers, and each commit syncs.
- `synchronous = EXTRA`: what was acknowledged survives the death of the process, and a power cut too.
- One connection and one lock, usable from any thread. Other processes have connections of their own, and every
  change is one immediate transaction, which waits its turn.
- Once it is made, the file is only opened through SQLite: closing it otherwise would give up SQLite's locks on it.
"""

import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contextmesh.errors import (
    ContextMeshError,
    CorruptedEventPayloadError,
    IncompatibleRuntimeState,
    QueryError,
    ReadOnlyError,
    RunNotFoundError,
    UsageError,
)

APPLICATION_ID = 0x636D6C67  # "cmlg" in the file's header: whose database it is
LAYOUT = 1  # the file's user_version: which tables it has
BUSY_TIMEOUT_S = 30.0
PRIMARY_CODE = 0xFF  # the part of SQLite's error code that REASONS goes by
_OPENING = threading.Lock()  # nobody connects to a file while it is made, since closing it then would unlock it

CREATE = (
    """CREATE TABLE logs (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        label TEXT NOT NULL,
        parent TEXT NOT NULL,
        position INTEGER NOT NULL,
        run_id TEXT NOT NULL,
        created_at TEXT NOT NULL,
        dropped INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE events (
        log INTEGER NOT NULL REFERENCES logs (id),
        position INTEGER NOT NULL,
        last INTEGER NOT NULL CHECK (last >= position),
        id TEXT NOT NULL,
        commit_id TEXT NOT NULL,
        v INTEGER NOT NULL,
        event TEXT NOT NULL
    )""",
    "CREATE UNIQUE INDEX events_by_position ON events (log, position)",
    "CREATE UNIQUE INDEX events_by_id ON events (log, id)",
    """CREATE TABLE counters (
        log INTEGER NOT NULL REFERENCES logs (id),
        name TEXT NOT NULL,
        value INTEGER NOT NULL,
        PRIMARY KEY (log, name)
    ) WITHOUT ROWID""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {LAYOUT}",
)
NEW_LOG = "INSERT INTO logs (name, label, parent, position, run_id, created_at) VALUES (?, ?, ?, ?, ?, ?)"
HEADER = """
SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
       (SELECT count(*) FROM sqlite_master)
"""

REASONS: dict[int, tuple[type[ContextMeshError], str]] = {
    sqlite3.SQLITE_BUSY: (QueryError, f"another process has held it for over {BUSY_TIMEOUT_S:g} s; try again"),
    sqlite3.SQLITE_FULL: (QueryError, "the disk is full, and nothing was written; make room and repeat it"),
    sqlite3.SQLITE_READONLY: (ReadOnlyError, "it may be read and not written; copy it, and open the copy"),
    sqlite3.SQLITE_CANTOPEN: (ReadOnlyError, "it, or a journal beside it, cannot be opened; check who may write there"),
    sqlite3.SQLITE_CORRUPT: (CorruptedEventPayloadError, "it is damaged; restore the log from an export or a copy"),
    sqlite3.SQLITE_NOTADB: (UsageError, "it is no SQLite database; name a log, or a file that does not exist yet"),
}


class SQLiteFile:
    """An open file with a log in it, and its branches: one connection, given out to one thread at a time.

    Args:
        path: the file.
        run_id: the run that a new file begins, or that one which exists must hold.
        create: whether to begin a log where there is none.
    """

    def __init__(self, path: str | os.PathLike[str], *, run_id: str | None, create: bool) -> None:
        self.path = _checked(path)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        try:
            with _OPENING:
                if not self.path.exists():
                    self._make(create=create)
                self._connect()
            self._begin(run_id, create=create)
            self._check_run(run_id)
        except BaseException:
            self.close()
            raise

    def _make(self, *, create: bool) -> None:
        if not create:
            msg = f"there is no file {self.path}; pass create=True to begin a log there"
            raise RunNotFoundError(msg)
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:  # another process was faster
            return
        except OSError as error:
            msg = f"{self.path} cannot be created: {error.strerror}; choose another folder"
            raise (ReadOnlyError if isinstance(error, PermissionError) else UsageError)(msg) from error

    def _connect(self) -> None:
        try:
            self._connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",  # which creates no file
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise self._explained(error) from error
        self._identity = self._found()

    def _begin(self, run_id: str | None, *, create: bool) -> None:
        """Check whose file it is, and begin a log in an empty one."""
        with self.reading() as connection:
            empty = self._is_empty(connection)
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = EXTRA")
        if not empty:
            return
        if not create:
            msg = f"the file {self.path} is empty and holds no log; pass create=True to begin one there"
            raise RunNotFoundError(msg)
        with self.writing() as connection:
            if self._is_empty(connection):  # or else another process was faster
                for statement in CREATE:
                    connection.execute(statement)
                connection.execute(NEW_LOG, ("", "", "", 0, run_id or uuid.uuid4().hex, ""))

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        [(application, layout, tables)] = rows(connection, HEADER)
        if (application, layout, tables) == (0, 0, 0):
            return True
        if application != APPLICATION_ID:
            msg = f"{self.path} is a database of something else; name a log, or a file that does not exist yet"
            raise UsageError(msg)
        if layout != LAYOUT:
            msg = f"the log in {self.path} has the layout {layout}, this contextmesh reads {LAYOUT}; upgrade it"
            raise IncompatibleRuntimeState(msg)
        return False

    def _check_run(self, run_id: str | None) -> None:
        with self.reading() as connection:
            held = [row[0] for row in rows(connection, "SELECT run_id FROM logs WHERE name = ''")]
        if not held or (run_id and held != [run_id]):
            there = f"the run {held[0]!r}" if held else "no run"
            msg = f"the file {self.path} holds {there}, not {run_id!r}; leave run_id out to open what it holds"
            raise RunNotFoundError(msg)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            msg = f"the log in {self.path} is closed here; open it again"
            raise UsageError(msg)
        if self._pid != os.getpid():
            msg = f"the log in {self.path} was opened by the process that this one was forked from; open it here anew"
            raise UsageError(msg)
        if self._found() != self._identity:
            raise self._gone()
        return self._connection

    def _gone(self) -> RunNotFoundError:
        msg = f"the file {self.path} was removed or replaced while its log was open; put it back and open it again"
        return RunNotFoundError(msg)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give out the connection to this thread alone; every error of SQLite's becomes one of ours."""
        with self._lock:
            try:
                yield self._connected()
            except sqlite3.Error as error:
                raise self._explained(error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Do the same in one transaction, which no other process can come between; an exception undoes it."""
        with self.reading() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _explained(self, error: sqlite3.Error) -> ContextMeshError:
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_READONLY_DBMOVED:
            return self._gone()
        kind, reason = REASONS.get(code & PRIMARY_CODE, (QueryError, "SQLite refused, and nothing was written"))
        return kind(f"the file {self.path}: {reason} ({error})")

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
                self._connection = None


def rows(connection: sqlite3.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return all rows at once: a query that is left half read keeps its lock on the file."""
    return connection.execute(query, values).fetchall()


def _checked(path: str | os.PathLike[str]) -> Path:
    """Return where the file is or is to be, links followed, or refuse it."""
    if path == ":memory:":
        msg = "a log in a file cannot live in ':memory:'; use InMemoryEventStore"
        raise UsageError(msg)
    try:
        found = Path(path).resolve()
        exists, is_file, is_folder = found.exists(), found.is_file(), found.is_dir()
        has_folder = found.parent.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"{path!r} cannot be a file: {error}; name one, such as 'incident.db'"
        raise UsageError(msg) from error
    if is_folder:
        msg = f"{found} is a folder; expected the name of a file, such as {found / 'incident.db'}"
    elif exists and not is_file:
        msg = f"{found} is no ordinary file; expected the name of one, such as 'incident.db'"
    elif not has_folder:
        msg = f"the folder {found.parent} does not exist; create it, or choose another"
    else:
        return found
    raise UsageError(msg)
