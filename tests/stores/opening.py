"""A workspace as another process opens it, and whether its graph agrees with its log."""

from contextmesh.core.graph import Graph
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.core import branching


def opened(server: Server, name: str) -> Graph:
    """Open a workspace as another process would."""
    return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))


def agrees_with_replay(graph: Graph) -> None:
    """The graph equals the replay of its log into a store of another kind, and holds no node twice."""
    branching.agrees_with_replay(graph)
    ids = [row[0] for row in graph._store._read("MATCH (n:Node) RETURN n.id")]
    assert len(ids) == len(set(ids)), "two nodes of one id"
