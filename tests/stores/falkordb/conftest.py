"""What the tests of faults share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextmesh.stores.server import Server, open_server


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to be killed."""
    with open_server(data_dir=tmp_path / "data") as server:
        yield server
