"""A log, with its branches, as one portable SQLite file.

The file is an ordinary database for anyone's tools: `logs` holds the log itself, named "", and its branches;
`events` one row a position: the event as canonical JSON, its schema version, its commit and where its batch ends;
`counters` what ids are minted from. See sqlite_file.py for how it is kept.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from contextmesh.core.events import SCHEMA_VERSION, Event, decode, encode
from contextmesh.core.forked import (
    ForkedEventStore,
    assembled,
    check_cut,
    check_drop,
    check_fork,
    check_forks,
    dropped_branch,
    iter_pages,
    missing_branch,
    missing_event,
)
from contextmesh.core.names import possible_ids
from contextmesh.core.stores import Branch, Entry
from contextmesh.errors import ConcurrentWriterError, CorruptedEventPayloadError, DuplicateEventError
from contextmesh.stores.sqlite_file import NEW_LOG, SQLiteFile, rows

LOG = "SELECT id, position, run_id FROM logs WHERE name = ? AND NOT dropped"
TIP = """
SELECT coalesce((SELECT max(position) FROM events WHERE log = logs.id), position) FROM logs WHERE id = ? AND NOT dropped
"""
APPEND = "INSERT INTO events (log, position, last, id, commit_id, v, event) VALUES (?, ?, ?, ?, ?, ?, ?)"
# An event comes as bytes: what a damaged file holds need not be text.
PAGE = """
SELECT position, last, v, CAST(event AS BLOB) FROM events WHERE log = ?1 AND position > ?2 AND position <=
    (SELECT last FROM events WHERE log = ?1 AND position <= ?3 ORDER BY position DESC LIMIT 1)
ORDER BY position
"""
ONE = "SELECT position, last, v, CAST(event AS BLOB) FROM events WHERE log = ? AND id = ?"
POSITION = "SELECT position FROM events WHERE log = ? AND id = ?"
COMMIT = "SELECT last, commit_id FROM events WHERE log = ? AND position = ?"
CUT = "DELETE FROM events WHERE log = ? AND position > ?"
BRANCHES = """
SELECT name, label, parent, position, run_id, created_at FROM logs WHERE name != '' AND NOT dropped ORDER BY name
"""
DROP = (
    "DELETE FROM events WHERE log = (SELECT id FROM logs WHERE name = ?)",
    "DELETE FROM counters WHERE log = (SELECT id FROM logs WHERE name = ?)",
    "UPDATE logs SET dropped = 1 WHERE name = ?",  # the name stays used
)
RESERVE = """
INSERT INTO counters (log, name, value) VALUES (?1, ?2, ?3) ON CONFLICT (log, name) DO UPDATE SET value = value + ?3
"""
RESERVED = "SELECT value FROM counters WHERE log = ? AND name = ?"
RAISE = """
INSERT INTO counters (log, name, value) VALUES (?1, ?2, ?3)
ON CONFLICT (log, name) DO UPDATE SET value = max(value, ?3)
"""


class _Log:
    """One of the logs in a file: the one that was not forked, or the tail of a branch."""

    def __init__(self, file: SQLiteFile, name: str) -> None:
        self._file = file
        self.branch_name = name
        with file.reading() as connection:
            found = rows(connection, LOG, name)
            if not found:
                raise missing_branch(name, _branches(connection))
        self._id, self._base, self.run_id = found[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.branch_name or self._file.path.name!r}>"

    def tip(self) -> int:
        with self._file.reading() as connection:
            return self._tip(connection)

    def _tip(self, connection: sqlite3.Connection) -> int:
        found = rows(connection, TIP, self._id)
        if not found:
            raise dropped_branch(self.branch_name)
        return int(found[0][0])

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:
        texts = [encode(event) for event in events]
        with self._file.writing() as connection:
            tip = self._tip(connection)
            if tip == expected:
                self._append(connection, events, texts, tip, commit_id)
            elif rows(connection, COMMIT, self._id, expected + 1) != [(expected + len(events), commit_id)]:
                msg = f"the log ends at {tip}, this write expected {expected}; read again and repeat it"
                raise ConcurrentWriterError(msg)
        return expected + len(events)

    def append(self, event: Event) -> int:
        texts = [encode(event)]
        with self._file.writing() as connection:
            tip = self._tip(connection)
            self._append(connection, [event], texts, tip, event.id)
        return tip + 1

    def _append(
        self, connection: sqlite3.Connection, events: Sequence[Event], texts: Sequence[str], tip: int, commit_id: str
    ) -> None:
        last = tip + len(events)
        lines = enumerate(zip(events, texts, strict=True), tip + 1)
        values = ((self._id, at, last, event.id, commit_id, SCHEMA_VERSION, text) for at, (event, text) in lines)
        try:
            connection.executemany(APPEND, values)
        except sqlite3.IntegrityError as error:
            refused = events[self._tip(connection) - tip]  # those before it are in, until the transaction is undone
            msg = f"the log holds an event {refused.id!r} already; every event needs an id of its own"
            raise DuplicateEventError(msg) from error

    def read(self, after: int, limit: int) -> list[Entry]:
        first = max(after, self._base)
        with self._file.reading() as connection:
            tip = self._tip(connection)
            if limit < 1 or first >= tip:
                return []
            page = rows(connection, PAGE, self._id, first, min(first + limit, tip))
        entries = [_entry(row, position) for position, row in enumerate(page, first + 1)]
        if not entries or entries[-1].position != entries[-1].last:
            raise _missing(first + len(entries) + 1)
        return entries

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        return iter_pages(self, after, until)

    def get_event(self, event_id: str) -> Event:
        found = self._find(ONE, event_id)
        if not found:
            raise missing_event(event_id)
        return _entry(found[0], found[0][0]).event

    def position_of(self, event_id: str) -> int | None:
        found = self._find(POSITION, event_id)
        return found[0][0] if found else None

    def _find(self, query: str, event_id: str) -> list[tuple[Any, ...]]:
        with self._file.reading() as connection:
            self._tip(connection)
            return [row for key in possible_ids([event_id]) for row in rows(connection, query, self._id, key)]

    def count(self) -> int:
        return self.tip()

    def reserve(self, counter: str, n: int) -> int:
        with self._file.writing() as connection:
            self._tip(connection)
            connection.execute(RESERVE, (self._id, counter, n))
            return int(rows(connection, RESERVED, self._id, counter)[0][0]) - n + 1

    def raise_counter(self, counter: str, at_least: int) -> None:
        with self._file.writing() as connection:
            self._tip(connection)
            connection.execute(RAISE, (self._id, counter, max(at_least, 0)))

    def truncate_after(self, position: int) -> None:
        with self._file.writing() as connection:
            tip = self._tip(connection)
            found = rows(connection, COMMIT, self._id, position) if self._base < position <= tip else []
            check_cut(position, tip, found[0][0] if found else position)
            check_forks(position, self.branch_name, _branches(connection))
            connection.execute(CUT, (self._id, position))

    def fork(self, branch: Branch) -> ForkedEventStore:
        with self._file.writing() as connection:
            used = bool(rows(connection, "SELECT 1 FROM logs WHERE name = ?", branch.name))
            check_fork(branch, self._tip(connection), used=used)
            fields = (branch.name, branch.label, self.branch_name, branch.position, branch.run_id, branch.created_at)
            connection.execute(NEW_LOG, fields)
        return self.branch(branch.name)

    def branches(self) -> list[Branch]:
        with self._file.reading() as connection:
            return _branches(connection)

    def branch(self, name: str) -> ForkedEventStore:
        return assembled(name, self.branches(), lambda row: _Log(self._file, row.name if row else ""))

    def drop_branch(self, name: str) -> None:
        with self._file.writing() as connection:
            check_drop(name, _branches(connection))
            for statement in DROP:
                connection.execute(statement, (name,))

    def close(self) -> None:
        """Do nothing: a branch's file is closed with the log that it was opened as."""


class SQLiteEventStore(_Log):
    """A log in one portable file, for what should travel, or live without a server.

    Any number of threads and processes may use the file at once. A copy of it, made while nobody writes, carries the
    log, its branches and its counters. Closing the log closes its branches too.

    Args:
        path: the file. A new one is created for this user alone (mode 0600), in a folder that exists.
        run_id: for a new file, what tells its history from every other, by default a random one; for one that
            exists, the run that it must hold.
        create: whether to begin a log where there is no file, or an empty one. Pass False where only reading is
            wanted: nothing is created then.

    Raises:
        RunNotFoundError: the file holds another run, or with `create=False` none.
        UsageError: a folder, a file in a folder that does not exist, or one that holds something else.
        IncompatibleRuntimeState: a later contextmesh wrote the file, in a layout of its own.
        ReadOnlyError: this user may not open the file, or not create it.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> log = SQLiteEventStore(f"{folder.name}/incident.db")
        >>> log.append(Event(id="evt_001", type="note.made", payload={"text": "errors rose"}))
        1
        >>> log.close()
        >>> again = SQLiteEventStore(f"{folder.name}/incident.db", create=False)
        >>> [event.payload["text"] for event in again.iter_events()]
        ['errors rose']
        >>> again.close(); folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, run_id: str | None = None, create: bool = True) -> None:
        super().__init__(SQLiteFile(path, run_id=run_id, create=create), "")

    def close(self) -> None:
        """Close the file, for the log's branches too; closing twice is fine."""
        self._file.close()


def _branches(connection: sqlite3.Connection) -> list[Branch]:
    names = ("name", "label", "parent", "position", "run_id", "created_at")
    return [Branch(**dict(zip(names, row, strict=True))) for row in rows(connection, BRANCHES)]


def _entry(row: tuple[Any, ...], expected: int) -> Entry:
    position, last, version, text = row
    if position != expected:
        raise _missing(expected)
    return Entry(position=position, event=decode(text, position, version), last=last)


def _missing(position: int) -> CorruptedEventPayloadError:
    return CorruptedEventPayloadError(f"the event at position {position} is missing; restore the log from an export")
