"""What is in the file of a log, and that it carries everything."""

import shutil
from pathlib import Path

import pytest

from contextmesh.core.events import encode
from contextmesh.core.graph import Graph
from contextmesh.errors import AlreadyExistsError, DuplicateEventError, EventNotFoundError, NotFoundError, UsageError
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import branch_of, event, ids_of
from tests.stores.sqlite.opening import asked, opened


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
