"""What the tests of delivery share. What touches the store runs in memory and in FalkorDB."""

from collections.abc import Callable, Iterator

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from tests.conftest import START
from tests.core.faulty import PATIENCE_S


@pytest.fixture
def graph(opened: Callable[[], Graph]) -> Graph:
    return opened()


@pytest.fixture
def memory() -> Iterator[Graph]:
    """A graph whose store makes no difference."""
    graph = Graph(clock=TickingClock(START))
    yield graph
    graph.close_sinks(PATIENCE_S)
