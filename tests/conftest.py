"""What every test may use: one embedded FalkorDB a session, and a workspace of its own for each test."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.errors import WorkspaceNotFoundError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import drop_workspace
from contextmesh.stores.server import Server, open_server

settings.register_profile(
    "contextmesh",
    deadline=None,  # a server's answer takes what it takes
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("contextmesh")

START = datetime(2026, 1, 1, tzinfo=UTC)
Workspace = Callable[[], AbstractContextManager[str]]
_numbers = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def _no_model() -> Iterator[None]:
    """No test asks a real model, whatever the environment of whoever runs them holds."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GROQ_API_KEY", "GROQ_BASE_URL", "CONTEXTMESH_GROQ_MODEL", "CONTEXTMESH_GROQ_RATES"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An embedded FalkorDB for the whole session (with xdist, one for each worker)."""
    with open_server(data_dir=tmp_path_factory.mktemp("falkordb")) as server:
        yield server


@pytest.fixture(scope="session")
def workspace(server: Server) -> Workspace:
    """Give out unused workspace names as context managers; for tests that want several, and for Hypothesis."""

    @contextmanager
    def fresh() -> Iterator[str]:
        name = f"test-{next(_numbers)}"
        yield name
        with suppress(WorkspaceNotFoundError):
            drop_workspace(server, name)

    return fresh


@pytest.fixture
def name(workspace: Workspace) -> Iterator[str]:
    """A workspace name that nobody uses, dropped after the test."""
    with workspace() as name:
        yield name


@pytest.fixture
def log(server: Server, name: str) -> FalkorDBEventStore:
    """The log of the test's workspace."""
    return FalkorDBEventStore(server, name)


@pytest.fixture
def store(server: Server, name: str) -> FalkorDBGraphStore:
    """The graph store of the test's workspace."""
    return FalkorDBGraphStore(server, name)


@pytest.fixture
def clock() -> TickingClock:
    """A clock that starts with 2026 and moves on by a second each time."""
    return TickingClock(START)


@pytest.fixture
def graph(log: FalkorDBEventStore, store: FalkorDBGraphStore, clock: TickingClock) -> Graph:
    """A graph in FalkorDB, empty."""
    return Graph(log, store, clock=clock)
