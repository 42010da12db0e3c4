"""What the tests of promote share."""

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.graph import Graph
from tests.core.branching import Family, filled


@pytest.fixture
def graph(family: Family) -> Graph:
    """The parent: a graph of five events; see `filled`."""
    return filled(family.root())


@pytest.fixture
def alt(graph: Graph) -> Graph:
    """A fork of `graph` at its tip."""
    return fork(graph, label="alt")
