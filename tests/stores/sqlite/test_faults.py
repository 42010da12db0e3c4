"""Files that go wrong: permissions, a full disk, removal, damage. Nothing is lost or passed over in silence."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextmesh.errors import CorruptedEventPayloadError, QueryError, ReadOnlyError, RunNotFoundError
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import branch_of, event, ids_of
from tests.stores.sqlite.opening import USES, asked, opened

NOBODY = 65534


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
