"""What the tests of the graph's view share: views that are closed after, and a graph whose shape is known."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import GraphView
from tests.conftest import START


@pytest.fixture
def make() -> Iterator[Callable[..., GraphView]]:
    """Make views, and close them after the test."""
    views: list[GraphView] = []

    def make(source: Workspace | Graph, **settings: Any) -> GraphView:
        views.append(GraphView(source, **settings))
        return views[-1]

    yield make
    for view in views:
        view.close()


@pytest.fixture
def chain() -> Graph:
    """a0 - a1 - ... - a9 and b0 beside a0, in a log of an event each."""
    graph = Graph(clock=TickingClock(START))
    for n in range(10):
        graph.add_object("Entity", {"label": f"Service {n}"}, id=f"a{n}")
        if n:
            graph.add_relation(f"a{n - 1}", f"a{n}", "DEPENDS_ON", id=f"r{n}")
    graph.add_object("Memory", {"label": "A note"}, id="b0")
    graph.add_relation("b0", "a0", "MENTIONS", id="m")
    return graph
