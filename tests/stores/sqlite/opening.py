"""A log in a file, opened for a while; all that it can be used for; and what another program reads in it."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contextmesh.core.stores import EventStore
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import branch_of, event

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
