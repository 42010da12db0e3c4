"""What the tests of the graph share. Each runs in memory and in FalkorDB."""

from collections.abc import Callable

import pytest

from contextmesh.core.graph import Graph
from tests.core.graph.emitted import prepare


@pytest.fixture
def graph(opened: Callable[..., Graph]) -> Graph:
    return opened()


@pytest.fixture
def prepared(graph: Graph) -> Graph:
    """A graph with the objects a and b, the relation r between them, and the proposed patch p on a."""
    return prepare(graph)


@pytest.fixture
def chain(graph: Graph) -> Graph:
    """a -> b -> c -> d, b -> b, x -> c; x and d are no objects."""
    for key in "abc":
        graph.add_object("Memory", id=key)
    for source, target, kind in [("a", "b", "T"), ("b", "c", "U"), ("c", "d", "T"), ("b", "b", "T"), ("x", "c", "U")]:
        graph.add_relation(source, target, kind, id=f"{source}{target}")
    return graph
