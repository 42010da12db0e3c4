"""Several that use one file at once, and processes that are killed while they write.

Run as a script, this file is another process: `python test_processes.py KIND PATH ...`.
"""

import contextlib
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from contextmesh.core.events import encode
from contextmesh.errors import ConcurrentWriterError, QueryError, UsageError
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import event, ids_of, object_created
from tests.stores.sqlite.opening import asked, opened

ROOT = Path(__file__).parents[3]


def started(kind: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, kind, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answered(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate("go\n", timeout=120)
    assert process.returncode == 0
    return out.split()


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
