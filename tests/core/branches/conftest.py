"""What the tests of branches share."""

from pathlib import Path

import pytest

from contextmesh.core.graph import Graph
from contextmesh.stores.server import Server
from tests.core.branching import Family, filled


@pytest.fixture
def stored(tmp_path: Path, server: Server, name: str) -> Family:
    """A family in FalkorDB, for what is about its keys and other processes."""
    return Family("falkordb", tmp_path, server, name)


@pytest.fixture
def graph(family: Family) -> Graph:
    """A graph of five events; see `filled`."""
    return filled(family.root())
