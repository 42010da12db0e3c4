"""What the tests of core share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contextmesh.core.events import Clock, TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server, open_server
from tests.conftest import START
from tests.core.branching import KINDS, Family
from tests.core.faulty import PATIENCE_S


@pytest.fixture(params=["memory", "falkordb"])
def opened(request: pytest.FixtureRequest, server: Server, name: str) -> Iterator[Callable[..., Graph]]:
    """Open the test's graph; each call is another process's view of the same log and graph."""
    log, store, graphs = InMemoryEventStore(), InMemoryGraphStore(), []

    def opened(clock: Clock | None = None) -> Graph:
        clock = clock or TickingClock(START)
        if request.param == "memory":
            graphs.append(Graph(log, store, clock=clock))
        else:
            graphs.append(Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=clock))
        return graphs[-1]

    yield opened
    for graph in graphs:
        graph.close_sinks(PATIENCE_S)


@pytest.fixture(params=KINDS)
def family(request: pytest.FixtureRequest, tmp_path: Path, server: Server, name: str) -> Iterator[Family]:
    """A log and its branches, of each kind of store."""
    family = Family(request.param, tmp_path, server, name)
    yield family
    family.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """A server of the test's own, to which other processes can come, and its folder."""
    with open_server(data_dir=tmp_path / "data") as server:
        yield server, tmp_path / "data"
