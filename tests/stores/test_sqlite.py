"""The log in a file: what is in it, who may use it at once, what goes wrong with files, and that nothing is lost.

Run as a script, this file is another process: `python test_sqlite.py KIND PATH ...`.
"""

import contextlib
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contextmesh.core.events import encode
from contextmesh.core.graph import Graph
from contextmesh.core.stores import EventStore
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    CorruptedEventPayloadError,
    DuplicateEventError,
    EventNotFoundError,
    IncompatibleRuntimeState,
    NotFoundError,
    QueryError,
    ReadOnlyError,
    RunNotFoundError,
    UsageError,
)
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import branch_of, event, ids_of, object_created

NOBODY = 65534
USES: list[Callable[[EventStore], Any]] = [
    lambda log: log.tip(),
    lambda log: log.count(),
    lambda log: log.read(0, 1),
    lambda log: list(log.iter_events()),
    lambda log: log.get_event("evt_001"),
    lambda log: log.position_of("evt_001"),
    lambda log: log.append(event(8)),
    lambda log: log.append_many([event(9)], expected=log.tip(), commit_id="z"),
    lambda log: log.reserve("evt", 1),
    lambda log: log.raise_counter("evt", 1),
    lambda log: log.truncate_after(log.tip()),
    lambda log: log.fork(branch_of(log, 0)),
    lambda log: log.branches(),
    lambda log: log.branch("twig"),
    lambda log: log.drop_branch("twig"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[SQLiteEventStore]:
    log = SQLiteEventStore(path)
    yield log
    log.close()


@contextlib.contextmanager
def opened(path: Path | str, **options: Any) -> Iterator[SQLiteEventStore]:
    log = SQLiteEventStore(path, **options)
    try:
        yield log
    finally:
        log.close()


def asked(path: Path, *statements: str) -> list[tuple[Any, ...]]:
    """What anyone's SQLite shell would answer; the last statement counts."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return [connection.execute(statement).fetchall() for statement in statements][-1]
    finally:
        connection.close()


def started(kind: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, kind, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answered(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate("go\n", timeout=120)
    assert process.returncode == 0
    return out.split()


# What is in the file


def test_rows(log: SQLiteEventStore, path: Path) -> None:
    """Events as canonical JSON text with their schema version, their batch and their commit."""
    log.append_many([event(1), event(2)], expected=0, commit_id="a")
    log.append(event(3))
    query = "SELECT position, last, id, commit_id, v, event, typeof(event) FROM events ORDER BY position"
    assert asked(path, query) == [
        (1, 2, "evt_001", "a", 1, encode(event(1)), "text"),
        (2, 2, "evt_002", "a", 1, encode(event(2)), "text"),
        (3, 3, "evt_003", "evt_003", 1, encode(event(3)), "text"),
    ]


def test_a_copy_of_the_file_carries_everything(tmp_path: Path, path: Path) -> None:
    """After closing there is one file, for this user alone; wherever it is copied, all is there."""
    with opened(path, run_id="the run") as log:
        log.append_many([event(n) for n in range(1, 2000)], expected=0, commit_id="a")
        fork = log.fork(branch_of(log, 1500))
        fork.append(event(2001))
        fork.fork(branch_of(fork, 3, "twig-2")).append(event(2002))
        log.reserve("evt", 7)
        fork.reserve("evt", 70)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copy(path, tmp_path / "elsewhere")
    path.unlink()
    with opened(copy, create=False) as log:
        assert (log.run_id, log.tip(), log.branch("twig").tip(), log.branch("twig-2").tip()) == (
            "the run",
            1999,
            1501,
            4,
        )
        assert [row.payload["n"] for row in log.branch("twig").iter_events()] == [*range(1, 1501), 2001]
        assert ids_of(log.branch("twig-2")) == ["evt_001", "evt_002", "evt_003", "evt_2002"]
        assert (log.reserve("evt", 1), log.branch("twig").reserve("evt", 1)) == (8, 71)


def test_a_copy_made_while_it_is_open(log: SQLiteEventStore, path: Path, tmp_path: Path) -> None:
    """Between two commits the file alone is the whole log."""
    log.append(event(1))
    with opened(shutil.copy(path, tmp_path / "copy.db"), create=False) as copy:
        assert ids_of(copy) == ["evt_001"]


def test_how_it_is_kept(log: SQLiteEventStore) -> None:
    connection = log._file._connection
    assert connection is not None
    assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
    assert connection.execute("PRAGMA synchronous").fetchall() == [(3,)]  # EXTRA


def test_a_file_that_somebody_switched_to_a_write_ahead_log(path: Path, tmp_path: Path) -> None:
    with opened(path) as log:
        log.append(event(1))
    assert asked(path, "PRAGMA journal_mode = WAL") == [("wal",)]
    with opened(path) as log:
        log.append(event(2))
        assert [file.name for file in tmp_path.iterdir()] == ["log.db"]
        assert ids_of(log) == ["evt_001", "evt_002"]


def test_a_graph_on_it(path: Path) -> None:
    """What one process wrote, another one shows, graph and branches."""
    with opened(path) as log:
        graph = Graph(log)
        graph.add_object("Entity", {"label": "Checkout API"}, id="checkout-api")
        graph.patch_object("checkout-api", {"tier": 1})
        with graph.batch():
            graph.add_relation("checkout-api", "maya-chen", "OWNED_BY")
            graph.add_object("Memory", {"text": "errors rose"})
        before = graph.objects(), graph.relations(), list(graph.events)
    with opened(path) as log:
        graph = Graph(log)
        assert (graph.objects(), graph.relations(), list(graph.events)) == before
        assert graph.add_object("Memory").id == "Memory#2"


def test_branches_are_kept(path: Path) -> None:
    """Across processes too, a name is used once and a fork is found again."""
    with opened(path) as log:
        log.append(event(1))
        log.fork(branch_of(log, 1, "kept")).append(event(2))
        log.fork(branch_of(log, 1, "dropped")).append(event(3))
        log.drop_branch("dropped")
    with opened(path) as log:
        assert [row.name for row in log.branches()] == ["kept"]
        assert ids_of(log.branch("kept")) == ["evt_001", "evt_002"]
        for name in ("kept", "dropped"):
            with pytest.raises(AlreadyExistsError, match=f"a branch was called '{name}' already"):
                log.fork(branch_of(log, 0, name, "another run"))
    assert asked(path, "SELECT count(*) FROM events") == [(2,)]


def test_a_dropped_branch_reads_nothing(log: SQLiteEventStore) -> None:
    log.append(event(1))
    fork = log.fork(branch_of(log, 1))
    fork.append(event(2))
    log.drop_branch("twig")
    uses = [
        fork.tip,
        lambda: fork.read(1, 1),
        lambda: fork.position_of("evt_002"),
        lambda: fork.reserve("e", 1),
    ]
    for use in uses:
        with pytest.raises(NotFoundError, match="the branch 'twig' was dropped, perhaps by another process; fork anew"):
            use()


def test_an_event_id_is_used_once(log: SQLiteEventStore) -> None:
    """Nothing of the batch is kept; a branch may hold an id that its parent uses later."""
    log.append_many([event(1), event(2)], expected=0, commit_id="a")
    with pytest.raises(DuplicateEventError, match="the log holds an event 'evt_002' already"):
        log.append_many([event(3), event(2), event(4)], expected=2, commit_id="b")
    with pytest.raises(DuplicateEventError, match="the log holds an event 'evt_003' already"):
        log.append_many([event(3), event(3)], expected=2, commit_id="c")
    with pytest.raises(DuplicateEventError, match="the log holds an event 'evt_001' already"):
        log.append(event(1))
    assert (ids_of(log), log.append(event(3))) == (["evt_001", "evt_002"], 3)


def test_a_large_event(log: SQLiteEventStore) -> None:
    text = "x'\"\\ \U0001f525" * 400_000
    log.append(event(1, payload={"text": text}))
    assert log.get_event("evt_001").payload == {"text": text}


def test_positions_and_ids_that_no_log_has(log: SQLiteEventStore) -> None:
    """Numbers beyond 64 bits and texts that are none are answered like any other that is not there."""
    log.append(event(1))
    assert (log.read(2**70, 1), [row.position for row in log.read(-(2**70), 2**70)]) == ([], [1])
    assert (log.position_of("\ud800"), log.position_of("x" * 5000)) == (None, None)
    with pytest.raises(EventNotFoundError, match="no event"):
        log.get_event("\ud800")
    with pytest.raises(UsageError, match="it holds the positions 0 to 1"):
        log.truncate_after(2**70)


# Opening


def test_reading_creates_nothing(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError, match=r"there is no file .*log.db; pass create=True to begin a log there"):
        SQLiteEventStore(path, create=False)
    assert list(tmp_path.iterdir()) == []
    path.touch()
    with pytest.raises(RunNotFoundError, match=r"log.db is empty and holds no log; pass create=True"):
        SQLiteEventStore(path, create=False)
    assert path.read_bytes() == b""
    with opened(path) as log:
        run_id = log.run_id
    with opened(path, create=False) as log:
        assert (log.run_id, log.tip()) == (run_id, 0)


def test_the_run_of_a_file(path: Path) -> None:
    with opened(path, run_id="one") as log:
        log.append(event(1))
    for options in ({}, {"run_id": "one"}, {"run_id": None}, {"create": False}):
        with opened(path, **options) as log:
            assert (log.run_id, log.tip()) == ("one", 1)
    with pytest.raises(RunNotFoundError, match=r"log.db holds the run 'one', not 'two'; leave run_id out"):
        SQLiteEventStore(path, run_id="two")


@pytest.mark.parametrize("content", [b"hello", b"not a database, but long enough for a header" * 100, b"\0" * 5000])
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for create in (True, False):
        with pytest.raises(UsageError, match=r"log.db: it is no SQLite database; name a log, or a file that does not"):
            SQLiteEventStore(path, create=create)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "statements", [("CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)"), ("PRAGMA user_version = 1",)]
)
def test_a_database_of_something_else(path: Path, statements: tuple[str, ...]) -> None:
    asked(path, "PRAGMA journal_mode = WAL", *statements)
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(UsageError, match=r"log.db is a database of something else; name a log"):
            SQLiteEventStore(path, create=create)
    assert path.read_bytes() == before


def test_a_later_layout(path: Path) -> None:
    SQLiteEventStore(path).close()
    asked(path, "PRAGMA user_version = 2")
    with pytest.raises(IncompatibleRuntimeState, match=r"log.db has the layout 2, this contextmesh reads 1; upgrade"):
        SQLiteEventStore(path)


def test_places_that_are_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for place, message in [
        (tmp_path, "is a folder; expected the name of a file, such as"),
        ("", "is a folder; expected the name of a file"),
        (tmp_path / "none" / "log.db", r"the folder .*none does not exist; create it, or choose another"),
        (tmp_path / "file" / "log.db", r"the folder .*file does not exist"),
        (tmp_path / "pipe", "pipe is no ordinary file"),
        (tmp_path / "a\0b", "cannot be a file: .*null"),
        (tmp_path / ("x" * 300), "cannot be "),
        (":memory:", "cannot live in ':memory:'; use InMemoryEventStore"),
    ]:
        for create in (True, False):
            with pytest.raises((UsageError, RunNotFoundError), match=message):
                SQLiteEventStore(place, create=create)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "pipe"]


@pytest.mark.parametrize(
    "name", ["a?b#c%41&d=e.db", 'it\'s "so".db', "\u05e9\u05dc\u05d5\u05dd \U0001f525", "file:x?mode=ro"]
)
def test_odd_names(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(name) as log:
        monkeypatch.chdir("/")  # a relative name means what it meant when the file was opened
        log.append(event(1))
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_through_a_link(tmp_path: Path, path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "folder" / "real.db")
    with opened(link) as log, opened(tmp_path / "folder" / "real.db") as same:
        log.append(event(1))
        assert ids_of(same) == ["evt_001"]
        assert [file.name for file in (tmp_path / "folder").iterdir()] == ["real.db"]


# Closing


def test_use_after_close(log: SQLiteEventStore) -> None:
    """Every use says that the log is closed, in its branches too; closing again is harmless."""
    log.append(event(1))
    fork = log.fork(branch_of(log, 0))
    fork.close()
    assert fork.append(event(2)) == 1  # the file is the log's to close
    log.close()
    fork.close()
    log.close()
    for holder, use in itertools.product((log, fork), USES):
        with pytest.raises(UsageError, match=r"the log in .*log.db is closed here; open it again"):
            use(holder)


def test_closing_one_of_two(path: Path, log: SQLiteEventStore) -> None:
    with opened(path) as other:
        other.append(event(1))
    log.append(event(2))
    assert ids_of(log) == ["evt_001", "evt_002"]


# Files that go wrong


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Be a user whom the permissions of files bind."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


@pytest.mark.parametrize("mode", [0o444, 0o644])
def test_a_read_only_file(shared: Path, mode: int) -> None:
    """It is read like any other; a write is refused and leaves it as it was. So in a folder that is read-only."""
    path = shared / "log.db"
    with opened(path) as log:
        log.append(event(1))
        log.fork(branch_of(log, 0)).append(event(2))
    path.chmod(mode)
    shared.chmod(0o555)
    before = path.read_bytes()
    with unprivileged(), opened(path) as log:
        assert (ids_of(log), ids_of(log.branch("twig"))) == (["evt_001"], ["evt_002"])
        for use in (lambda: log.append(event(3)), lambda: log.reserve("evt", 1), lambda: log.drop_branch("twig")):
            with pytest.raises(ReadOnlyError, match=r"log.db: it.* (?:read and not written|cannot be opened)"):
                use()
        assert ids_of(log) == ["evt_001"]
    assert path.read_bytes() == before


def test_a_file_that_this_user_may_not_read_or_create(shared: Path) -> None:
    path = shared / "log.db"
    SQLiteEventStore(path).close()
    path.chmod(0)
    shared.chmod(0o555)
    with unprivileged():
        with pytest.raises(ReadOnlyError, match=r"log.db: it, or a journal beside it, cannot be opened; check who may"):
            SQLiteEventStore(path)
        with pytest.raises(ReadOnlyError, match=r"new.db cannot be created: Permission denied; choose another folder"):
            SQLiteEventStore(shared / "new.db")
    assert [file.name for file in shared.iterdir()] == ["log.db"]


def test_a_full_disk(log: SQLiteEventStore, path: Path) -> None:
    """Nothing of the batch is written, and the next one that fits is taken."""
    log.append(event(1))
    connection = log._file._connection
    assert connection is not None
    [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages + 5}")
    large = [event(n, payload={"text": "x" * 3000}) for n in range(2, 20)]
    for _ in range(2):
        with pytest.raises(QueryError, match=r"log.db: the disk is full, and nothing was written; make room and"):
            log.append_many(large, expected=1, commit_id="a")
        assert (ids_of(log), log.tip()) == (["evt_001"], 1)
    assert log.append(event(2)) == 2
    connection.execute("PRAGMA max_page_count = 100000")
    assert log.append_many(large[1:], expected=2, commit_id="a") == 19
    assert asked(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_is_removed_while_it_is_open(path: Path, tmp_path: Path, *, replaced: bool) -> None:
    """Nothing is read or written where nobody would look for it, and nothing is put into what came in its place."""
    with opened(tmp_path / "theirs.db") as theirs:
        theirs.append(event(7))
    with opened(path) as log:
        log.append(event(1))
        if replaced:
            (tmp_path / "theirs.db").rename(path)
        else:
            path.unlink()
        for use in USES:
            with pytest.raises(
                RunNotFoundError, match=r"log.db was removed or replaced while its log was open; put it"
            ):
                use(log)
    if replaced:
        with opened(path) as theirs:
            assert ids_of(theirs) == ["evt_007"]
    else:
        assert not path.exists()


def test_a_file_that_is_removed_just_before_a_write(
    log: SQLiteEventStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite looks once more, when it begins its journal."""
    log.append(event(1))
    monkeypatch.setattr(log._file, "_found", lambda: log._file._identity)
    path.unlink()
    with pytest.raises(RunNotFoundError, match=r"log.db was removed or replaced while its log was open"):
        log.append(event(2))


# Damage


DAMAGE: list[tuple[str, str]] = [
    ("event = 'garbage'", "the event at position 3 cannot be read"),
    ("event = ''", "the event at position 3 cannot be read"),
    ("event = '[]'", "the event at position 3 cannot be read"),
    ('event = \'{"id":"evt_003","what":1}\'', "the event at position 3 cannot be read"),
    ("event = substr(event, 1, 40)", "the event at position 3 cannot be read"),
    ("event = x'7b22ff'", "the event at position 3 cannot be read"),
    ("event = CAST(x'7b22c328' AS TEXT)", "the event at position 3 cannot be read"),
    (f'event = \'{{"type":"t","payload":{{"n":{"[" * 200_000}\'', "the event at position 3 cannot be read"),
    ("event = 7", "the event at position 3 cannot be read"),
    ("v = 'one'", "the event at position 3 cannot be read"),
    ("v = 0", "the event at position 3 cannot be read"),
    ("v = 2", "the event at position 3 has schema version 2, .* up to 1; upgrade"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_event(log: SQLiteEventStore, path: Path, damage: str, message: str) -> None:
    """Reading it says where it is; the others are read, and more are appended."""
    for n in range(1, 6):
        log.append(event(n))
    asked(path, f"UPDATE events SET {damage} WHERE position = 3")  # noqa: S608 - statements of this file
    for use in (
        lambda: log.get_event("evt_003"),
        lambda: log.read(2, 1),
        lambda: log.read(0, 10),
        lambda: list(log.iter_events()),
    ):
        with pytest.raises(CorruptedEventPayloadError, match=message):
            use()
    assert [log.get_event(f"evt_00{n}") for n in (1, 2, 4, 5)] == [event(1), event(2), event(4), event(5)]
    assert [row.event for row in (*log.read(0, 2), *log.read(3, 9))] == [event(1), event(2), event(4), event(5)]
    assert (log.tip(), log.position_of("evt_003"), log.append(event(6))) == (5, 3, 6)
    assert log.append_many([event(7)], expected=6, commit_id="a") == 7
    fork = log.fork(branch_of(log, 2))
    assert (fork.append(event(8)), ids_of(fork)) == (3, ["evt_001", "evt_002", "evt_008"])


@pytest.mark.parametrize(
    ("gone", "first", "missing"),
    [("= 1", 0, 1), ("= 3", 0, 3), ("= 3", 2, 3), ("= 5", 0, 5), (">= 5", 0, 5), (">= 5", 3, 5)],
)
def test_missing_events(log: SQLiteEventStore, path: Path, gone: str, first: int, missing: int) -> None:
    """An event that is gone is never passed over in silence."""
    log.append_many([event(1), event(2)], expected=0, commit_id="a")
    log.append(event(3))
    log.append_many([event(4), event(5), event(6)], expected=3, commit_id="b")
    asked(path, f"DELETE FROM events WHERE position {gone}")  # noqa: S608 - statements of this file
    with pytest.raises(
        CorruptedEventPayloadError, match=f"the event at position {missing} is missing; restore the log"
    ):
        list(log.iter_events(first))


def test_damaged_pages(path: Path) -> None:
    """What SQLite itself cannot read is said to be damaged; no error of its own gets out."""
    with opened(path) as log:
        log.append_many([event(n, payload={"text": "x" * 500}) for n in range(1, 400)], expected=0, commit_id="a")
    content = bytearray(path.read_bytes())
    content[8192:-4096] = os.urandom(len(content) - 8192 - 4096)
    path.write_bytes(content)
    message = r"log.db: it is damaged; restore the log from an export"
    with pytest.raises(CorruptedEventPayloadError, match=message), opened(path) as log:
        list(log.iter_events())


def test_a_database_without_its_tables(path: Path) -> None:
    SQLiteEventStore(path).close()
    asked(path, "DROP TABLE logs")
    with pytest.raises(QueryError, match=r"log.db: SQLite refused, and nothing was written \(no such table: logs\)"):
        SQLiteEventStore(path)
    asked(path, "CREATE TABLE logs (id, name, run_id)")
    with pytest.raises(RunNotFoundError, match=r"log.db holds no run"):
        SQLiteEventStore(path)


# Several at once


def test_a_reader_that_stops_halfway_holds_nobody_up(log: SQLiteEventStore, path: Path) -> None:
    log.append_many([event(n) for n in range(1, 3001)], expected=0, commit_id="a")
    reading = log.iter_events()
    assert next(reading).id == "evt_001"
    assert asked(path, "PRAGMA busy_timeout = 0", "BEGIN EXCLUSIVE", "COMMIT") == []
    reading.close()


def test_a_file_that_another_process_holds(log: SQLiteEventStore, path: Path) -> None:
    """After waiting in vain it says so; that is no conflict, and nothing was written."""
    log.append(event(1))
    connection = log._file._connection
    assert connection is not None
    connection.execute("PRAGMA busy_timeout = 1")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    for use in (lambda: log.append(event(2)), log.tip):
        with pytest.raises(QueryError, match=r"log.db: another process has held it for over 30 s; try again"):
            use()
    holder.execute("ROLLBACK")
    holder.close()
    assert (log.append(event(2)), ids_of(log)) == (2, ["evt_001", "evt_002"])


def test_many_processes(path: Path) -> None:
    """They make the file at once, and append to it: each event is there once, each number went out once."""
    processes = [started("writer", path, worker, 12) for worker in range(4)]
    answers = [answered(process) for process in processes]
    assert len({answer[0] for answer in answers}) == 1  # one run
    numbers = [int(number) for answer in answers for number in answer[1:]]
    assert sorted(numbers) == list(range(1, 2 * 4 * 12, 2))
    with opened(path, create=False) as log:
        rows = log.read(0, 10_000)
        assert log.run_id == answers[0][0]
    assert [row.position for row in rows] == list(range(1, 4 * 12 * 3 + 1))
    assert len({row.event.id for row in rows}) == 4 * 12 * 3
    for row in rows:  # a pair stands together
        if row.event.type == "pair.first":
            assert rows[row.position].event.payload == row.event.payload
            assert rows[row.position].event.type == "pair.second"
            assert row.last == row.position + 1


def test_what_was_acknowledged_survives_a_kill(path: Path) -> None:
    process = started("appender", path)
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(50)]
    process.kill()
    acknowledged += [int(line) for line in process.communicate()[0].split()]
    assert process.returncode == -signal.SIGKILL
    with opened(path, create=False) as log:
        assert log.tip() in (acknowledged[-1], acknowledged[-1] + 1)  # the last may have lost its way back only
        numbers = [row.payload["n"] for row in log.iter_events()]
        assert numbers == list(range(1, log.tip() + 1))
        assert log.append(event(10**6)) == len(numbers) + 1
    assert asked(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_batch_that_was_being_written_when_its_process_was_killed(path: Path) -> None:
    """Half of it was in the file already; whoever opens it next finds none of it."""
    with opened(path) as log:
        log.append(event(1))
    size = path.stat().st_size
    process = started("half", path)
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    process.kill()
    process.communicate()
    assert path.stat().st_size > size
    with opened(path) as log:
        assert (ids_of(log), log.append(event(2))) == (["evt_001"], 2)
    assert asked(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_forked_process_opens_the_file_anew(path: Path) -> None:
    """The connection of another process would undo that one's locks."""
    assert answered(started("forked", path)) == ["refused", "parent", "child"]
    with opened(path) as log:
        assert ids_of(log) == ["evt_001", "evt_002", "evt_003"]


def test_the_same_commit_from_two_processes(path: Path, log: SQLiteEventStore) -> None:
    """A client that sends its batch again from a new connection finds that it landed."""
    with opened(path) as again:
        log.append_many([event(1), event(2)], expected=0, commit_id="a")
        again.append(event(3))
        assert again.append_many([event(1), event(2)], expected=0, commit_id="a") == 2
        with pytest.raises(ConcurrentWriterError, match="ends at 3, this write expected 0"):
            again.append_many([object_created(9, "x")], expected=0, commit_id="b")
    assert ids_of(log) == ["evt_001", "evt_002", "evt_003"]


# The other processes


def writer(path: str, worker: int, n: int) -> None:
    sys.stdin.readline()  # all begin at once
    with opened(path) as log:
        sys.stdout.write(f"{log.run_id}\n")
        for number in range(1000 * (worker + 1), 1000 * (worker + 1) + 10 * n, 10):
            log.append(event(number))
            pair = [event(number + 1, "pair.first", {"n": number}), event(number + 2, "pair.second", {"n": number})]
            while True:
                with contextlib.suppress(ConcurrentWriterError):
                    log.append_many(pair, expected=log.tip(), commit_id=f"{number}")
                    break
            sys.stdout.write(f"{log.reserve('evt', 2)}\n")


def appender(path: str) -> None:
    with opened(path) as log:
        for number in itertools.count(1):
            sys.stdout.write(f"{log.append(event(number))}\n")
            sys.stdout.flush()


def half(path: str) -> None:
    with opened(path) as log, log._file.writing() as connection:
        connection.execute("PRAGMA cache_size = 5")  # what does not fit goes to the file before the end
        log._append(connection, rows := [event(n) for n in range(2, 5000)], [encode(row) for row in rows], 1, "a")
        sys.stdout.write("half\n")
        sys.stdout.flush()
        sys.stdin.readline()


def forked(path: str) -> None:
    log = SQLiteEventStore(path)
    log.append(event(1))
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert status == 0
        sys.stdout.write(f"{'parent' if log.append(event(3)) == 3 else ''}\nchild\n")
        log.close()
        return
    with pytest.raises(UsageError, match=r"was opened by the process that this one was forked from; open it here anew"):
        log.append(event(9))
    log.close()
    with opened(path) as anew:
        anew.append(event(2))
    sys.stdout.write("refused\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    {"writer": writer, "appender": appender, "half": half, "forked": forked}[kind](
        arguments[0], *map(int, arguments[1:])
    )
