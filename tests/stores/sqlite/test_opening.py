"""Opening and closing a log in a file: which files are one, what is refused, use after closing."""

import itertools
import os
from pathlib import Path

import pytest

from contextmesh.errors import IncompatibleRuntimeState, RunNotFoundError, UsageError
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import branch_of, event, ids_of
from tests.stores.sqlite.opening import USES, asked, opened

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
