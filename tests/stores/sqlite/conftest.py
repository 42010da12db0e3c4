"""What the tests of the log in a file share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextmesh.stores.sqlite import SQLiteEventStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[SQLiteEventStore]:
    log = SQLiteEventStore(path)
    yield log
    log.close()
