"""What the tests of core share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextmesh.stores.server import Server
from tests.core.branching import KINDS, Family


@pytest.fixture(params=KINDS)
def family(request: pytest.FixtureRequest, tmp_path: Path, server: Server, name: str) -> Iterator[Family]:
    """A log and its branches, of each kind of store."""
    family = Family(request.param, tmp_path, server, name)
    yield family
    family.close()
